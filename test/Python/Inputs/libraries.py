# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the package touches of torch and CuPy, on memory of the fake driver that has nothing behind it."""

import contextlib
import sys
import types

BASE, SPACE = 0x7E0000000000, 1 << 36
calls = []  # what was asked of the libraries


class Memory:
    """Addresses, a region for each device."""

    def __init__(self):
        self.next = {}

    def take(self, device, size, alignment=512):
        start = -(-self.next.get(device, 0x8000) // alignment) * alignment
        self.next[device] = start + max(size, 1)
        return BASE + device * SPACE + start


memory = Memory()


def dense(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= max(size, 1)
    return tuple(strides)


class DType:
    def __init__(self, name, size):
        self.text, self.size = name, size

    def __str__(self):
        return f"torch.{self.text}"


class Device:
    def __init__(self, kind, index=None):
        self.type, self.index = kind, index

    def __repr__(self):
        return f"device({self.type}:{self.index})"


class Stream:
    def __init__(self, handle, device=0):
        self.cuda_stream, self.device = handle, device


def tensor_class(torch):
    """torch.Tensor."""

    class Storage:
        def __init__(self, pointer):
            self.pointer = pointer

        def data_ptr(self):
            return self.pointer

    class Tensor:
        def __init__(self, pointer, shape, strides, dtype, device, storage=None):
            self.pointer, self.shape, self.strides, self.dtype, self.device = (
                pointer,
                tuple(shape),
                tuple(strides),
                dtype,
                device,
            )
            self.storage = storage or Storage(pointer)
            self.layout, self.requires_grad = torch.strided, False

        def data_ptr(self):
            return self.pointer

        def stride(self):
            return self.strides

        def untyped_storage(self):
            return self.storage

        def set_(self, storage, offset, shape, strides):
            return Tensor(storage.pointer + offset * self.dtype.size, shape, strides, self.dtype, self.device, storage)

        def __float__(self):
            raise AssertionError("a value was read from the device")

        __index__ = __float__

    return Tensor


def make_torch():
    """A module that answers to `torch`, put where `import torch` would have put it."""
    torch = types.ModuleType("torch")
    sizes = {
        "bool": 1,
        "int8": 1,
        "uint8": 1,
        "int16": 2,
        "int32": 4,
        "int64": 8,
        "float8_e4m3fn": 1,
        "float8_e5m2": 1,
        "float16": 2,
        "bfloat16": 2,
        "float32": 4,
        "float64": 8,
        "complex64": 8,
    }
    for name, size in sizes.items():
        setattr(torch, name, DType(name, size))
    torch.strided, torch.sparse_coo = "strided", "sparse_coo"
    torch.grad = True
    torch.is_grad_enabled = lambda: torch.grad
    torch.device = Device
    current = {}

    Tensor = tensor_class(torch)

    def empty(shape, dtype=torch.float32, device=None, strides=None):
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        device = device or Device("cpu")
        size = dtype.size * max(1, sum((n - 1) * s for n, s in zip(shape, strides or dense(shape))) + 1)
        pointer = 0 if 0 in shape else memory.take(device.index, size) if device.type == "cuda" else 0x5000
        calls.append(("torch.empty", shape, str(dtype), repr(device), current.get(device.index, 0)))
        return Tensor(pointer, shape, strides or dense(shape), dtype, device)

    @contextlib.contextmanager
    def stream_context(stream):
        before = current.get(stream.device, 0)
        current[stream.device] = stream.cuda_stream
        yield
        current[stream.device] = before

    torch.Tensor, torch.empty = Tensor, empty
    torch.cuda = types.ModuleType("torch.cuda")
    torch.cuda.current_stream = lambda device: Stream(current.get(device, 0), device)
    torch.cuda.stream = stream_context
    torch.cuda.Stream = Stream
    torch.cuda.ExternalStream = lambda handle, device=None: Stream(handle, device.index)
    sys.modules["torch"] = torch
    return torch


def array_class(state):
    """cupy.ndarray, and the class of its pointers."""
    names = {
        "|b1": ("bool", 1),
        "|i1": ("int8", 1),
        "<i2": ("int16", 2),
        "<i4": ("int32", 4),
        "<i8": ("int64", 8),
        "<f2": ("float16", 2),
        "<f4": ("float32", 4),
        "<f8": ("float64", 8),
    }

    class Pointer:
        def __init__(self, ptr):
            self.ptr = ptr

        def __add__(self, distance):
            return Pointer(self.ptr + distance)

    class Kind:
        def __init__(self, name, size):
            self.name, self.itemsize = name, size

    class ndarray:
        def __init__(self, shape, dtype, memptr, strides=None):
            self.shape, self.data = tuple(shape), memptr
            self.typestr = dtype
            self.dtype = Kind(*names[dtype])
            self.strides = strides or tuple(s * self.dtype.itemsize for s in dense(self.shape))
            self.device = types.SimpleNamespace(id=(memptr.ptr - BASE) // SPACE)

        @property
        def __cuda_array_interface__(self):
            return {
                "shape": self.shape,
                "typestr": self.typestr,
                "data": (self.data.ptr, False),
                "strides": self.strides,
                "version": 3,
                "stream": state["stream"] or 1,
            }

    return ndarray, Pointer


def make_cupy():
    cupy = types.ModuleType("cupy")
    state = {"device": 0, "stream": 0}

    ndarray, Pointer = array_class(state)

    class Scope:
        def __init__(self, key, value):
            self.key, self.value = key, value

        def __enter__(self):
            self.before = state[self.key]
            state[self.key] = self.value

        def __exit__(self, *error):
            state[self.key] = self.before

    def empty(shape, dtype):
        calls.append(("cupy.empty", tuple(shape), dtype, state["device"], state["stream"]))
        return ndarray(shape, dtype, Pointer(memory.take(state["device"], 4096)))

    def alloc(size):
        calls.append(("cupy.alloc", size, state["device"], state["stream"]))
        return Pointer(memory.take(state["device"], size))

    class DeviceScope(Scope):
        def __init__(self, number=None):
            super().__init__("device", state["device"] if number is None else number)
            self.id = self.value

    cupy.ndarray, cupy.empty = ndarray, empty
    cupy.cuda = types.SimpleNamespace(
        alloc=alloc,
        Device=DeviceScope,
        ExternalStream=lambda handle, device=-1: Scope("stream", handle),
        get_current_stream=lambda device=-1: types.SimpleNamespace(ptr=state["stream"]),
    )
    cupy.state = state
    sys.modules["cupy"] = cupy
    return cupy
