# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of other libraries, none of which is imported here."""

from __future__ import annotations

import operator
import sys
from typing import Any, Iterable

from . import _device, _dlpack
from ._bundle import DTYPE_BYTES
from ._layout import ANYWHERE, HOST, UNKNOWN, View, contiguous

# Integers have no sign of their own.
DTYPE_NAMES = {
    "bool": "i1",
    "int8": "i8",
    "uint8": "i8",
    "int16": "i16",
    "uint16": "i16",
    "int32": "i32",
    "uint32": "i32",
    "int64": "i64",
    "uint64": "i64",
    "float8_e4m3fn": "f8e4m3fn",
    "float8_e5m2": "f8e5m2",
    "float16": "f16",
    "half": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float": "f32",
    "float64": "f64",
    "double": "f64",
}
DTYPE_NAMES.update({name: name for name in DTYPE_BYTES})
_LONG_NAMES = {
    "i1": "bool",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
}
_TYPESTRS = {
    "i1": "|b1",
    "i8": "|i1",
    "i16": "<i2",
    "i32": "<i4",
    "i64": "<i8",
    "f16": "<f2",
    "f32": "<f4",
    "f64": "<f8",
}
_FROM_TYPESTR = {
    "b1": "i1",
    "i1": "i8",
    "u1": "i8",
    "i2": "i16",
    "u2": "i16",
    "i4": "i32",
    "u4": "i32",
    "i8": "i64",
    "u8": "i64",
    "f2": "f16",
    "f4": "f32",
    "f8": "f64",
}
_dtype_cache: "dict[Any, str]" = {}


def dtype_name(dtype: Any) -> str:
    """The plan's name of a dtype of any library; as it calls itself if plans have none."""
    try:
        return _dtype_cache[dtype]
    except (KeyError, TypeError):
        pass
    name = getattr(dtype, "name", None)
    name = (name if isinstance(name, str) else str(dtype)).rpartition(".")[2]
    found = DTYPE_NAMES.get(name, name)
    try:
        _dtype_cache[dtype] = found
    except TypeError:
        pass
    return found


class RawTensor:
    """Memory that no library of arrays owns.

    Args:
        pointer: address on the device of the first element; 0 where there is none, or where only sizes are used.
        shape: sizes, in elements.
        dtype: "f32", "bf16", "f16", "f8e4m3fn", "i32", .., or the long names "float32", "bfloat16", ..
        strides: distances in elements; None: row-major without gaps.
        device: ordinal of the device; None: the driver is asked whose memory it is.

    Whoever makes one keeps the memory alive until the work that uses it is done.
    """

    __slots__ = ("pointer", "shape", "dtype", "strides", "device")

    def __init__(
        self,
        pointer: int,
        shape: "Iterable[int]",
        dtype: str,
        strides: "Iterable[int] | None" = None,
        device: "int | None" = None,
    ) -> None:
        self.pointer = operator.index(pointer)
        self.shape = tuple(map(operator.index, shape))
        name = dtype_name(dtype)
        if name not in DTYPE_BYTES:
            raise TypeError(f"RawTensor: unknown dtype {dtype!r}; known are {', '.join(DTYPE_BYTES)}")
        self.dtype = name
        self.strides = contiguous(self.shape) if strides is None else tuple(map(operator.index, strides))
        if len(self.strides) != len(self.shape):
            raise ValueError(f"RawTensor: expected {len(self.shape)} strides, but got {len(self.strides)}")
        self.device = device

    def __repr__(self) -> str:
        return f"RawTensor({self.pointer:#x}, {self.shape}, {self.dtype!r}, {self.strides}, {self.device})"


class DeviceArray:
    """A result in memory of this package: what calls return that get neither torch nor CuPy arrays.

    Other libraries take it by `__cuda_array_interface__` (not bf16 and f8, which that cannot say) or `__dlpack__`:
    `torch.from_dlpack(array)`, `jax.dlpack.from_dlpack(array)`, `cupy.asarray(array)`. The memory is given back when
    nothing refers to it any more, in the order of the stream that it was made on.

    Attributes: `pointer`, `shape`, `strides` (in elements), `dtype` ("f32", ..), `device` (ordinal), `stream`.
    """

    def __init__(self, view: View, stream: int, owner: Any = None) -> None:
        self.pointer, self.dtype, self.shape, self.strides, self.device = view[:5]
        self.stream = stream
        self._owner = owner

    def __del__(self) -> None:
        if getattr(self, "_owner", self) is None and self.pointer and not sys.is_finalizing():
            _device.release(_device.get_device(self.device), self.pointer, self.stream)

    @property
    def __cuda_array_interface__(self) -> "dict[str, Any]":
        if self.dtype not in _TYPESTRS:
            raise AttributeError(f"__cuda_array_interface__ cannot say {self.dtype}; use __dlpack__")
        size_of = DTYPE_BYTES[self.dtype]
        return {
            "shape": self.shape,
            "typestr": _TYPESTRS[self.dtype],
            "data": (self.pointer, False),
            "strides": tuple(s * size_of for s in self.strides),
            "version": 3,
            "stream": self.stream or 1,
        }

    def __dlpack_device__(self) -> "tuple[int, int]":
        return _dlpack.CUDA, self.device

    def __dlpack__(
        self, *, stream: "int | None" = None, max_version: Any = None, dl_device: Any = None, copy: "bool | None" = None
    ) -> Any:
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("DeviceArray makes no copies and stays on its device")
        consumer = 0 if stream in (None, 1) else stream
        if consumer != -1 and consumer != self.stream:
            _device.wait_for(_device.get_device(self.device), consumer, self.stream)
        return _dlpack.make(self, View(self.pointer, self.dtype, self.shape, self.strides, self.device))

    def __repr__(self) -> str:
        return f"DeviceArray({self.dtype}, shape {self.shape}, device {self.device})"


def _ordinal(device: Any) -> int:
    """The ordinal that a library's device object, name or number stands for."""
    if isinstance(device, int):
        return device
    kind, index = getattr(device, "type", None), getattr(device, "index", None)
    if kind is None:
        kind, _, number = str(device).partition(":")
        index = int(number) if number.isdigit() else None
    if kind == "meta":
        return ANYWHERE
    return (index or 0) if kind == "cuda" else HOST


def is_torch(array: Any) -> bool:
    library = get_torch()
    return library is not None and isinstance(array, library.torch.Tensor)


def is_cupy(array: Any) -> bool:
    cupy = sys.modules.get("cupy")
    return cupy is not None and isinstance(array, cupy.ndarray)


def is_array(value: Any) -> bool:
    return isinstance(value, RawTensor) or any(
        hasattr(value, name) for name in ("data_ptr", "__cuda_array_interface__", "__dlpack__", "__array_interface__")
    )


def device_of(array: Any) -> "int | None":
    """The ordinal of the device of an array; None for host memory, negative if it may be anywhere."""
    if hasattr(array, "data_ptr"):
        device = _ordinal(array.device)
    elif isinstance(array, (RawTensor, DeviceArray)):
        device = UNKNOWN if array.device is None else _ordinal(array.device)
        if device == UNKNOWN and array.pointer:
            return _device.pointer_device(array.pointer)
    elif is_cupy(array):
        device = array.device.id
    elif hasattr(array, "__dlpack_device__"):
        kind, ordinal = array.__dlpack_device__()
        device = ordinal if kind in (_dlpack.CUDA, _dlpack.CUDA_MANAGED) else HOST
    elif hasattr(array, "__cuda_array_interface__"):
        pointer = array.__cuda_array_interface__["data"][0]
        return _device.pointer_device(pointer) if pointer else UNKNOWN
    else:
        device = HOST
    return None if device == HOST else device


def _check_torch(array: Any) -> None:
    torch = sys.modules["torch"]
    if array.layout is not torch.strided:
        raise TypeError(f"must be a strided tensor, but got layout {array.layout}")
    if array.requires_grad and torch.is_grad_enabled():
        raise ValueError("requires a gradient, which is not computed here; use torch.no_grad(), or detach() it")


def view_of(array: Any, stream: "int | None") -> "tuple[View, bool]":
    """Where an array lies, and whether it is read-only. With a stream, work queued elsewhere that makes the array is
    waited for on that stream. Raises TypeError, ValueError without a subject: "must be ..".
    """
    if hasattr(array, "data_ptr"):
        if is_torch(array):
            _check_torch(array)
        device = _ordinal(array.device)
        pointer = array.data_ptr() if device >= 0 else 0
        return View(pointer, dtype_name(array.dtype), tuple(array.shape), tuple(array.stride()), device), False
    if isinstance(array, RawTensor):
        device = UNKNOWN if array.device is None else _ordinal(array.device)
        return View(array.pointer, array.dtype, array.shape, array.strides, device), False
    if isinstance(array, DeviceArray) and array.stream == stream:
        return View(array.pointer, array.dtype, array.shape, array.strides, array.device), False
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is not None and "V" not in interface["typestr"]:
        return _from_interface(array, interface, stream)
    if hasattr(array, "__dlpack__"):
        return _dlpack.read(array, stream or 0)
    if hasattr(array, "__array_interface__"):
        shape = tuple(array.shape)
        return View(0, dtype_name(array.dtype), shape, contiguous(shape), HOST), False
    raise TypeError(f"must be an array, but got {type(array).__name__}")


def _from_interface(array: Any, interface: "dict[str, Any]", stream: "int | None") -> "tuple[View, bool]":
    typestr, shape = interface["typestr"], tuple(interface["shape"])
    dtype = _FROM_TYPESTR.get(typestr[1:], typestr) if typestr[0] != ">" else typestr
    pointer, read_only = interface["data"]
    strides = interface.get("strides")
    if interface.get("mask") is not None:
        raise TypeError("must not have a mask")
    if strides is None:
        strides = contiguous(shape)
    elif dtype in DTYPE_BYTES:
        size_of = DTYPE_BYTES[dtype]
        if any(s % size_of for s, n in zip(strides, shape) if n > 1):
            raise ValueError(f"must have strides that are multiples of its {size_of} bytes, but got {tuple(strides)}")
        strides = tuple(s // size_of for s in strides)
    device = array.device.id if is_cupy(array) else UNKNOWN
    producer = interface.get("stream")
    if producer is not None and stream is not None and pointer and (0 if producer == 1 else producer) != stream:
        ordinal = _device.pointer_device(pointer) if device < 0 else device
        if ordinal is not None:
            _device.wait_for(_device.get_device(ordinal), stream, producer)
    return View(pointer or 0, dtype, shape, tuple(strides), device), bool(read_only)


# ---------------------------------------------------------------------------------------------------------------------
# Memory and streams of libraries


class Torch:
    """torch, for calls with its tensors: its current stream, its caching allocator."""

    def __init__(self) -> None:
        self.torch = sys.modules["torch"]
        self.devices: "dict[int, Any]" = {}
        # What torch itself uses to launch: a number, without an object around it.
        self.raw_stream = getattr(getattr(self.torch, "_C", None), "_cuda_getCurrentRawStream", None)

    def current_stream(self, device: int) -> int:
        if self.raw_stream is not None:
            return self.raw_stream(device)
        return self.torch.cuda.current_stream(device).cuda_stream

    def device(self, ordinal: int) -> Any:
        if ordinal not in self.devices:
            self.devices[ordinal] = self.torch.device("cuda", ordinal)
        return self.devices[ordinal]

    def on_stream(self, device: int, stream: int) -> Any:
        """A context in which memory is allocated for a stream; None if that is what happens anyway."""
        if self.current_stream(device) == stream:
            return None
        return self.torch.cuda.stream(self.torch.cuda.ExternalStream(stream, device=self.device(device)))

    def empty(self, shape: "tuple[int, ...]", dtype: str, device: int, stream: int) -> Any:
        return self.torch.empty(shape, dtype=getattr(self.torch, _LONG_NAMES[dtype]), device=self.device(device))

    def scratch(self, size: int, device: int, stream: int) -> "tuple[int, Any]":
        memory = self.torch.empty((size,), dtype=self.torch.uint8, device=self.device(device))
        return memory.data_ptr(), memory

    def part(
        self, base: Any, distance: int, dtype: str, shape: "tuple[int, ...]", strides: "tuple[int, ...]", stream: int
    ) -> Any:
        storage = base.untyped_storage()
        offset = (base.data_ptr() - storage.data_ptr() + distance) // DTYPE_BYTES[dtype]
        empty = self.torch.empty(0, dtype=getattr(self.torch, _LONG_NAMES[dtype]), device=base.device)
        return empty.set_(storage, offset, shape, strides)


_torch: "Torch | None" = None


def get_torch() -> "Torch | None":
    """torch, if this process has imported it."""
    global _torch
    module = sys.modules.get("torch")
    if _torch is None or _torch.torch is not module:
        _torch = Torch() if hasattr(module, "Tensor") else None
    return _torch


class CuPy:
    """CuPy, for calls with its arrays: its current stream, its pool."""

    def __init__(self) -> None:
        self.cupy = sys.modules["cupy"]

    def current_stream(self, device: int) -> int:
        return self.cupy.cuda.get_current_stream(device).ptr

    def on_stream(self, device: int, stream: int) -> Any:
        if self.cupy.cuda.get_current_stream(device).ptr == stream and self.cupy.cuda.Device().id == device:
            return None
        return _Nested(self.cupy.cuda.Device(device), self.cupy.cuda.ExternalStream(stream, device))

    def dtype(self, dtype: str) -> Any:
        if dtype in _TYPESTRS:
            return _TYPESTRS[dtype]
        extension = sys.modules.get("ml_dtypes")
        if extension is None:
            raise TypeError(f"CuPy has no {dtype} without ml_dtypes; give out=")
        return getattr(extension, _LONG_NAMES[dtype])

    def empty(self, shape: "tuple[int, ...]", dtype: str, device: int, stream: int) -> Any:
        return self.cupy.empty(shape, self.dtype(dtype))

    def scratch(self, size: int, device: int, stream: int) -> "tuple[int, Any]":
        memory = self.cupy.cuda.alloc(size)
        return memory.ptr, memory

    def part(
        self, base: Any, distance: int, dtype: str, shape: "tuple[int, ...]", strides: "tuple[int, ...]", stream: int
    ) -> Any:
        size_of = DTYPE_BYTES[dtype]
        return self.cupy.ndarray(shape, self.dtype(dtype), base.data + distance, tuple(s * size_of for s in strides))


class _Nested:
    def __init__(self, *contexts: Any) -> None:
        self.contexts = contexts

    def __enter__(self) -> None:
        for context in self.contexts:
            context.__enter__()

    def __exit__(self, *error: Any) -> None:
        for context in reversed(self.contexts):
            context.__exit__(*error)


class _Scratch:
    """Memory that is given back, in the order of its stream, when nothing refers to it any more."""

    def __init__(self, size: int, device: int, stream: int) -> None:
        self.device, self.stream = _device.get_device(device), stream
        self.pointer = _device.allocate(self.device, size, stream)

    def __del__(self) -> None:
        if getattr(self, "pointer", 0):
            _device.release(self.device, self.pointer, self.stream)


class Own:
    """The driver itself, for all other arrays: the legacy default stream, memory in stream order."""

    def current_stream(self, device: int) -> int:
        return 0

    def on_stream(self, device: int, stream: int) -> Any:
        return None

    def empty(self, shape: "tuple[int, ...]", dtype: str, device: int, stream: int) -> DeviceArray:
        size = DTYPE_BYTES[dtype]
        for extent in shape:
            size *= extent
        pointer = _device.allocate(_device.get_device(device), size, stream)
        return DeviceArray(View(pointer, dtype, shape, contiguous(shape), device), stream)

    def scratch(self, size: int, device: int, stream: int) -> "tuple[int, Any]":
        memory = _Scratch(size, device, stream)
        return memory.pointer, memory

    def part(
        self, base: Any, distance: int, dtype: str, shape: "tuple[int, ...]", strides: "tuple[int, ...]", stream: int
    ) -> Any:
        view, _ = view_of(base, None)
        device = view.device if view.device >= 0 else _device.pointer_device(view.pointer) or 0
        pointer = view.pointer + distance if view.pointer else 0
        return DeviceArray(View(pointer, dtype, shape, strides, device), stream, owner=base)


def stream_handle(stream: Any) -> int:
    """The driver's handle of a stream of any library."""
    if isinstance(stream, int):
        return stream
    for name in ("cuda_stream", "ptr", "handle"):
        handle = getattr(stream, name, None)
        if handle is not None:
            return int(handle)
    if hasattr(stream, "__cuda_stream__"):
        protocol = stream.__cuda_stream__
        return int((protocol() if callable(protocol) else protocol)[1])
    raise TypeError(f"stream must be a stream of torch or CuPy, or a handle, but got {type(stream).__name__}")
