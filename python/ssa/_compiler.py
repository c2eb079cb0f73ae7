# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler, through its C library (include/ssa-c/SSA.h)."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from ctypes import POINTER, byref, c_char_p, c_size_t, c_void_p
from pathlib import Path
from typing import Any, Iterable

from ._errors import CompileError, CompilerNotFound
from ._function import Bundle

_NAMES = {"darwin": "libSSACompiler.dylib", "win32": "SSACompiler.dll"}
_lock = threading.Lock()
_library: Any = None


def _candidates() -> "list[str]":
    """Where the library may be: what SSA_LIBRARY names and nothing else, or beside the package, in the build tree
    that the package is in, and where the system looks."""
    name = _NAMES.get(sys.platform, "libSSACompiler.so")
    named = os.environ.get("SSA_LIBRARY")
    if named:
        return [named]
    here = Path(__file__).resolve().parent
    beside = [here / name, here.parents[1] / "build" / "lib" / name]
    return [str(path) for path in beside if path.exists()] + [name]


def _open() -> Any:
    problems = []
    for path in _candidates():
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            problems.append(str(error))
            continue
        library.ssaGetVersionText.restype = c_char_p
        library.ssaErrorGetMessage.argtypes, library.ssaErrorGetMessage.restype = (c_void_p,), c_char_p
        library.ssaErrorDestroy.argtypes = (c_void_p,)
        library.ssaContextCreate.argtypes, library.ssaContextCreate.restype = (POINTER(c_void_p),), c_void_p
        library.ssaContextDestroy.argtypes = (c_void_p,)
        library.ssaModuleParse.argtypes = (c_void_p, c_char_p, c_size_t, c_char_p, POINTER(c_void_p))
        library.ssaModuleParse.restype = c_void_p
        library.ssaModuleDestroy.argtypes = (c_void_p,)
        library.ssaStringFree.argtypes = (c_void_p,)
        return library
    raise CompilerNotFound(
        f"the compiler's library cannot be opened: {'; '.join(problems)}; install ssa, or set SSA_LIBRARY to "
        "the path of libSSACompiler.so. Bundles that are compiled already need no compiler: ssa.load"
    )


def _get_library() -> Any:
    global _library
    with _lock:
        if _library is None:
            _library = _open()
        return _library


def _check(library: Any, error: "int | None") -> None:
    if error:
        message = library.ssaErrorGetMessage(error).decode(errors="replace")
        library.ssaErrorDestroy(error)
        raise CompileError(message)


def compile_text(text: "str | bytes", chips: "Iterable[str]", name: str) -> str:
    """The text of a bundle."""
    library = _get_library()
    emit = getattr(library, "ssaModuleEmitBundle", None)
    if emit is None:
        version = library.ssaGetVersionText().decode()
        raise CompilerNotFound(
            f"the compiler's library ({version}) has no ssaModuleEmitBundle; install a later one, or compile with "
            "ssa-opt --emit=bundle and use ssa.load"
        )
    emit.argtypes, emit.restype = (c_void_p, c_char_p, POINTER(c_void_p)), c_void_p
    source = text.encode() if isinstance(text, str) else bytes(text)
    context, module, bundle = c_void_p(), c_void_p(), c_void_p()
    try:
        _check(library, library.ssaContextCreate(byref(context)))
        _check(library, library.ssaModuleParse(context, source, len(source), name.encode(), byref(module)))
        _check(library, emit(module, ",".join(chips).encode(), byref(bundle)))
        return ctypes.string_at(bundle.value).decode()
    finally:
        if bundle:
            library.ssaStringFree(bundle)
        if module:
            library.ssaModuleDestroy(module)
        if context:
            library.ssaContextDestroy(context)


def compile(text: "str | bytes", chip: "str | Iterable[str] | None" = None, name: str = "<memory>") -> Bundle:
    """Compiles a module of the ssa dialect (text or bytecode) in this process.

        bundle = ssa.compile(open("nsa.mlir").read(), chip="sm_90a")
        o = bundle.nsa(q, k, v, g1, g2, g3)

    Args:
        text: the module.
        chip: the target, or several: "sm_90a", ["sm_90a", "sm_100a"]. None: that of device 0, whose driver must then
        be here.
        name: what messages call the module.

    Raises:
        CompileError: the module is not right, or cannot be compiled for the chip; with what the compiler says about it.
        CompilerNotFound: the compiler's library is not installed.
        DriverError: there is no device to ask for its chip.
    """
    if chip is None:
        from ._device import get_device

        chips = [get_device(0).best_chip]
    else:
        chips = [chip] if isinstance(chip, str) else list(chip)
    return Bundle(compile_text(text, chips, name), name)
