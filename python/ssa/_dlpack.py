# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""DLPack capsules, read and made through ctypes."""

from __future__ import annotations

import ctypes
from ctypes import (
    POINTER,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
    py_object,
)
from typing import Any

from ._layout import HOST, View, contiguous

CPU, CUDA, CUDA_MANAGED = 1, 2, 13
_DTYPES = {
    (0, 8): "i8",
    (0, 16): "i16",
    (0, 32): "i32",
    (0, 64): "i64",
    (1, 8): "i8",
    (1, 16): "i16",
    (1, 32): "i32",
    (1, 64): "i64",
    (2, 16): "f16",
    (2, 32): "f32",
    (2, 64): "f64",
    (4, 16): "bf16",
    (6, 8): "i1",
    (10, 8): "f8e4m3fn",
    (12, 8): "f8e5m2",
}
_CODES = {
    "i8": (0, 8),
    "i16": (0, 16),
    "i32": (0, 32),
    "i64": (0, 64),
    "f16": (2, 16),
    "f32": (2, 32),
    "f64": (2, 64),
    "bf16": (4, 16),
    "i1": (6, 8),
    "f8e4m3fn": (10, 8),
    "f8e5m2": (12, 8),
}


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", c_void_p), ("deleter", c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", _Tensor),
    ]


# Prototypes of our own: those of ctypes.pythonapi are shared by the whole process.
_get_pointer = ctypes.PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_is_valid = ctypes.PYFUNCTYPE(c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer_of_dying = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_new_capsule = ctypes.PYFUNCTYPE(py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", ctypes.pythonapi))
_NAME, _VERSIONED_NAME = b"dltensor", b"dltensor_versioned"


def read(array: Any, stream: int) -> "tuple[View, bool]":
    """The memory of an object with `__dlpack__`, which is told the stream it is used on, and whether it is read-only.

    The view's `source` must be kept until the work on the memory is queued.
    """
    device_type, ordinal = array.__dlpack_device__()
    if device_type not in (CUDA, CUDA_MANAGED):
        shape = tuple(getattr(array, "shape", ()))
        return View(0, str(getattr(array, "dtype", "?")), shape, contiguous(shape), HOST), False
    stream = stream or 1  # the legacy default stream has this number here
    try:
        capsule = array.__dlpack__(stream=stream, max_version=(1, 1))
    except TypeError:
        capsule = array.__dlpack__(stream=stream)
    read_only = False
    if "dltensor_versioned" in repr(capsule):
        managed = ctypes.cast(_get_pointer(capsule, _VERSIONED_NAME), POINTER(_Versioned)).contents
        read_only = bool(managed.flags & 1)
    else:
        managed = ctypes.cast(_get_pointer(capsule, _NAME), POINTER(_Managed)).contents
    tensor = managed.tensor
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else contiguous(shape)
    dtype = _DTYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    name = dtype or f"DLPack type {tensor.code} of {tensor.bits} bits x {tensor.lanes}"
    # The capsule is not consumed: when it dies, it gives the memory back.
    return View((tensor.data or 0) + tensor.byte_offset, name, shape, strides, ordinal, capsule), read_only


_alive: "dict[int, tuple]" = {}


@ctypes.CFUNCTYPE(None, c_void_p)
def _delete(managed: int) -> None:
    _alive.pop(managed, None)


@ctypes.PYFUNCTYPE(None, c_void_p)
def _destroy(capsule: int) -> None:
    if _is_valid(capsule, _NAME):  # else a consumer owns the memory
        _alive.pop(_pointer_of_dying(capsule, _NAME), None)


def make(owner: Any, view: View) -> Any:
    """A capsule of a view that keeps `owner` alive."""
    rank = len(view.shape)
    shape, strides = (c_int64 * rank)(*view.shape), (c_int64 * rank)(*view.strides)
    code, bits = _CODES[view.dtype]
    tensor = _Tensor(view.pointer or None, CUDA, view.device, rank, code, bits, 1, shape, strides, 0)
    managed = _Managed(tensor, None, ctypes.cast(_delete, c_void_p))
    address = ctypes.addressof(managed)
    _alive[address] = managed, shape, strides, owner
    return _new_capsule(address, _NAME, ctypes.cast(_destroy, c_void_p))
