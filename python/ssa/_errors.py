# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors that are neither a TypeError nor a ValueError of a call."""


class BundleError(ValueError):
    """A file or text is no bundle that this launcher reads."""


class DriverError(RuntimeError):
    """The CUDA driver is missing, too old, or refused something.

    `code` is the driver's CUresult, None if it was not asked.
    """

    def __init__(self, message: str, code: "int | None" = None) -> None:
        super().__init__(message)
        self.code = code


class CompileError(ValueError):
    """The compiler refused a module; the message is what it says."""


class CompilerNotFound(RuntimeError):
    """The compiler's library is not installed, or is too old."""
