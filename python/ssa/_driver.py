# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The CUDA driver through ctypes."""

from __future__ import annotations

import ctypes
import os
import threading
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p

from ._errors import DriverError

INVALID_VALUE, UNSUPPORTED_PTX_VERSION = 1, 222

_SIGNATURES = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (POINTER(c_int),),
    "cuGetErrorName": (c_int, POINTER(c_char_p)),
    "cuGetErrorString": (c_int, POINTER(c_char_p)),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDevicePrimaryCtxRetain": (POINTER(c_void_p), c_int),
    "cuCtxGetCurrent": (POINTER(c_void_p),),
    "cuCtxPushCurrent_v2": (c_void_p,),
    "cuCtxPopCurrent_v2": (POINTER(c_void_p),),
    "cuModuleLoadDataEx": (POINTER(c_void_p), c_char_p, c_uint, POINTER(c_int), POINTER(c_void_p)),
    "cuModuleUnload": (c_void_p,),
    "cuModuleGetFunction": (POINTER(c_void_p), c_void_p, c_char_p),
    "cuFuncGetAttribute": (POINTER(c_int), c_int, c_void_p),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuPointerGetAttribute": (c_void_p, c_int, c_uint64),
    "cuStreamCreate": (POINTER(c_void_p), c_uint),
    "cuEventCreate": (POINTER(c_void_p), c_uint),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventDestroy_v2": (c_void_p,),
    "cuStreamWaitEvent": (c_void_p, c_void_p, c_uint),
    "cuThreadExchangeStreamCaptureMode": (POINTER(c_int),),
    "cuLaunchKernel": (c_void_p, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_void_p, c_void_p, c_void_p),
    "cuMemAllocAsync": (POINTER(c_uint64), c_size_t, c_void_p),
    "cuMemFreeAsync": (c_uint64, c_void_p),
}
# Asked for when a plan needs them: older drivers do not have them.
_LATER = {
    "cuLaunchKernelEx": (c_void_p, c_void_p, c_void_p, c_void_p),
    "cuTensorMapEncodeTiled": (
        c_void_p,
        c_int,
        c_uint,
        c_uint64,
        c_void_p,
        c_void_p,
        c_void_p,
        c_void_p,
        c_int,
        c_int,
        c_int,
        c_int,
    ),
}


class Driver:
    """The driver, opened and initialized. Entry points are attributes; they return a CUresult for `check`."""

    def __init__(self) -> None:
        name = os.environ.get("SSA_LIBCUDA") or ("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
        try:
            library = ctypes.CDLL(name)
        except OSError as error:
            raise DriverError(
                f"{name} cannot be opened: {error}; running on a GPU needs the NVIDIA driver (SSA_LIBCUDA may "
                "name its library)"
            ) from None
        for symbol, signature in {**_SIGNATURES, **_LATER}.items():
            function = getattr(library, symbol, None)
            if function is None and symbol in _SIGNATURES:
                raise DriverError(f"{name} has no {symbol}; update the NVIDIA driver")
            if function is not None:
                function.argtypes, function.restype = signature, c_int
            setattr(self, symbol.partition("_v2")[0], function)
        self.process = os.getpid()
        self.check(self.cuInit(0), "initialize the CUDA driver")
        version, count = c_int(), c_int()
        self.check(self.cuDriverGetVersion(byref(version)), "ask the CUDA driver for its version")
        self.check(self.cuDeviceGetCount(byref(count)), "count CUDA devices")
        self.version, self.num_devices = version.value, count.value

    @property
    def version_text(self) -> str:
        return f"{self.version // 1000}.{self.version % 1000 // 10}"

    def check(self, result: int, what: str) -> None:
        """Raises DriverError "cannot `what`: CUDA_ERROR_.. (its meaning)" unless `result` is 0."""
        if not result:
            return
        name, text = c_char_p(), c_char_p()
        self.cuGetErrorName(result, byref(name))
        self.cuGetErrorString(result, byref(text))
        meaning = f" ({text.value.decode()})" if text.value else ""
        raise DriverError(
            f"cannot {what}: {name.value.decode() if name.value else f'CUresult {result}'}{meaning}", result
        )


_driver: "Driver | None" = None
_lock = threading.Lock()


def get_driver() -> Driver:
    """The driver of this process; DriverError if there is none."""
    global _driver
    driver = _driver
    if driver is None:
        with _lock:
            if _driver is None:
                _driver = Driver()
            driver = _driver
    if driver.process != os.getpid():
        raise DriverError(
            "this process was forked from one that used CUDA, which does not work; start it with the 'spawn' method "
            "of multiprocessing"
        )
    return driver


class LaunchAttribute(ctypes.Structure):
    _fields_ = [("id", c_uint), ("pad", c_uint), ("value", c_uint * 16)]


class LaunchConfig(ctypes.Structure):
    _fields_ = [
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared", c_uint),
        ("stream", c_void_p),
        ("attributes", POINTER(LaunchAttribute)),
        ("count", c_uint),
    ]
