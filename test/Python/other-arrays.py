# RUN: env CC=%cc %python %s
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls with CuPy arrays, objects with `__cuda_array_interface__` or DLPack, raw pointers; results for them."""

import ctypes
import gc
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Inputs"))
from setup_fake import (
    PLANS,
    TESTS,
    equal,
    launches,
    main,
    parameters,
    records,
    refused,
    shape_of,
    test,
    text,
)  # noqa: E402
from libraries import BASE, SPACE, calls, make_cupy  # noqa: E402

import ssa  # noqa: E402
from ssa import _dlpack  # noqa: E402
from ssa._layout import View  # noqa: E402

cupy = make_cupy()
library = ssa.load(text(*[make() for make in PLANS.values()]))


class Interface:
    """An object with nothing but `__cuda_array_interface__`."""

    def __init__(self, offset, shape, typestr="<f4", **more):
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": typestr,
            "data": (BASE + offset, False),
            "version": 3,
            **more,
        }


class Packed:
    """An object with nothing but DLPack."""

    def __init__(self, offset, dtype, shape, strides, kind=(2, 0), versioned=False, read_only=False):
        self.view = View(BASE + offset, dtype, shape, strides, 0)
        self.kind, self.versioned, self.read_only = kind, versioned, read_only
        self.streams = []

    def __dlpack_device__(self):
        return self.kind

    def __dlpack__(self, stream=None, **more):
        self.streams.append(stream)
        if not self.versioned and more:
            raise TypeError("unexpected keyword argument 'max_version'")
        capsule = _dlpack.make(self, self.view)
        return versioned(capsule, self.read_only) if self.versioned else capsule


def versioned(capsule, read_only):
    """A capsule of DLPack 1.0 with the tensor of an older one."""
    old = ctypes.cast(_dlpack._get_pointer(capsule, b"dltensor"), ctypes.POINTER(_dlpack._Managed)).contents
    new = _dlpack._Versioned(1, 0, None, None, int(read_only), old.tensor)
    versioned.keep = (new, capsule)
    return _dlpack._new_capsule(ctypes.addressof(new), b"dltensor_versioned", None)


def passed(kinds="fpqpqpqq"):
    return parameters(launches(records())[-1], kinds)


# ---------------------------------------------------------------------------------------------------------------------
# CuPy


@test
def cupy_arrays():
    x, y = cupy.empty((4, 8), "<f4"), cupy.empty((4, 8), "<f4")
    records(), calls.clear()
    z = library.axpy(0.5, x, y)
    assert isinstance(z, cupy.ndarray)
    equal((z.shape, z.dtype.name), ((4, 8), "float32"))
    equal(calls, [("cupy.empty", (4, 8), "<f4", 0, 0)])
    equal(passed()[:6], [0.5, x.data.ptr - BASE, 8, y.data.ptr - BASE, 8, z.data.ptr - BASE])


@test
def cupy_streams_and_devices():
    x = cupy.ndarray((4, 8), "<f4", cupy.cuda.alloc(4096))
    with cupy.cuda.Device(1):
        on_1 = cupy.empty((4, 8), "<f4")
    records(), calls.clear()
    with cupy.cuda.ExternalStream(0x61):
        library.axpy(0.5, x, x)
    equal((shape_of(launches(records())[0])[4], calls[-1][-1]), (0x61, 0x61))
    library.axpy(0.5, on_1, on_1, stream=0x62)
    equal(calls[-1], ("cupy.empty", (4, 8), "<f4", 1, 0x62))
    equal((cupy.state["device"], cupy.state["stream"]), (0, 0))
    equal(shape_of(launches(records())[0])[4], 0x62)
    refused(
        ValueError, "axpy: argument 'y' must be in memory of device 0, but is on device 1", library.axpy, 0.5, x, on_1
    )


@test
def cupy_has_no_bf16():
    x = ssa.RawTensor(BASE, (2, 3, 5), "bf16")
    lse = cupy.empty((2, 3), "<f4")
    refused(
        TypeError,
        "pipeline: result 'out' cannot be allocated: CuPy has no bf16 without ml_dtypes; give out=",
        library.pipeline,
        x,
        4,
        out=(None, lse),
    )
    out, same = library.pipeline(x, 4, out=(ssa.RawTensor(BASE + 4096, (2, 3, 5), "bf16"), lse))
    assert same is lse
    equal([c[0] for c in calls[-1:]], ["cupy.alloc"])


@test
def cupy_results_that_are_arguments():
    x = cupy.empty((5, 4), "<f4")
    same, last, bits, own, again = library.aliases(x)
    assert same is x
    equal((last.data.ptr, last.shape), (x.data.ptr + 64, (4,)))
    equal((bits.data.ptr, bits.typestr), (x.data.ptr, "<i4"))
    equal(again.data.ptr, own.data.ptr)


# ---------------------------------------------------------------------------------------------------------------------
# __cuda_array_interface__


@test
def interfaces():
    z = library.axpy(0.5, Interface(0, (4, 8), strides=(64, 4)), Interface(4096, (4, 8), strides=None))
    assert isinstance(z, ssa.DeviceArray)
    equal(passed()[:5], [0.5, 0, 16, 4096, 8])
    library.chunks(Interface(0, (10, 5), "<u4"))
    refused(TypeError, "chunks: argument 'x' must be i32, but got i64", library.chunks, Interface(0, (10, 5), "<i8"))
    refused(TypeError, "chunks: argument 'x' must be i32, but got >i4", library.chunks, Interface(0, (10, 5), ">i4"))
    refused(TypeError, "chunks: argument 'x' must be i32, but got <c8", library.chunks, Interface(0, (10, 5), "<c8"))
    refused(
        ValueError,
        "axpy: argument 'x' must have strides that are multiples of its 4 bytes, but got (34, 4)",
        library.axpy,
        0.5,
        Interface(0, (4, 8), strides=(34, 4)),
        Interface(0, (4, 8)),
    )
    refused(
        ValueError,
        "axpy: argument 'x' must not have negative strides, but got -8x1",
        library.axpy,
        0.5,
        Interface(4096, (4, 8), strides=(-32, 4)),
        Interface(0, (4, 8)),
    )
    refused(
        TypeError,
        "axpy: argument 'x' must not have a mask",
        library.axpy,
        0.5,
        Interface(0, (4, 8), mask=3),
        Interface(0, (4, 8)),
    )


@test
def interfaces_say_no_device():
    """The driver knows whose memory it is."""
    z = library.axpy(0.5, Interface(SPACE, (4, 8)), Interface(SPACE + 4096, (4, 8)))
    equal(z.device, 1)
    assert " device 1 " in launches(records())[0]
    refused(
        ValueError,
        "axpy: argument 'y' must be in memory of device 0, but is on device 1",
        library.axpy,
        0.5,
        Interface(0, (4, 8)),
        Interface(SPACE, (4, 8)),
    )
    refused(
        TypeError,
        "axpy: argument 'y' must be in memory of device 0, but is in host memory",
        library.axpy,
        0.5,
        Interface(0, (4, 8)),
        Interface(16 - BASE, (4, 8)),
    )


@test
def interfaces_say_their_stream():
    """Work that makes an array is waited for on the stream of the call, not on the host."""
    x, y = Interface(0, (4, 8), stream=0x41), Interface(4096, (4, 8), stream=1)
    records()
    library.axpy(0.5, x, y, stream=0x42)
    waits = [line for line in records() if "waits" in line]
    equal(waits, ["stream 0x42 waits for stream 0x41", "stream 0x42 waits for stream 0x1"])
    library.axpy(0.5, y, y)
    equal([line for line in records() if "waits" in line], [])


@test
def read_only_results():
    x = Interface(0, (4, 8))
    z = Interface(1 << 20, (4, 8))
    z.__cuda_array_interface__["data"] = (BASE + (1 << 20), True)
    library.axpy(0.5, z, x)
    refused(ValueError, "axpy: result 'z' must not be read-only", library.axpy, 0.5, x, x, out=z)
    z = Packed(1 << 20, "f32", (4, 8), (8, 1), versioned=True, read_only=True)
    refused(ValueError, "axpy: result 'z' must not be read-only", library.axpy, 0.5, x, x, out=z)


# ---------------------------------------------------------------------------------------------------------------------
# DLPack


@test
def dlpack():
    versioned.keep = None
    alive = len(_dlpack._alive)
    for is_versioned in (False, True):
        x, y = (Packed(offset, "f32", (4, 8), (16, 1), versioned=is_versioned) for offset in (0, 4096))
        library.axpy(0.5, x, y, stream=0x31)
        equal(passed()[:5], [0.5, 0, 16, 4096, 16])
        equal(x.streams, [0x31] if is_versioned else [0x31, 0x31])
    library.axpy(0.5, x, y)
    equal(x.streams[-1], 1)  # the legacy default stream
    del x, y
    versioned.keep = None
    gc.collect()
    equal(len(_dlpack._alive), alive)  # capsules that were not consumed gave their memory back


@test
def dlpack_types():
    source = Packed(0, "bf16", (2, 3, 5), (15, 5, 1))
    library.pipeline(source, 4)
    library.sizes_only(
        source_of_sizes := Packed(0, "bf16", (4, 7), (7, 1)), Packed(4096, "f8e4m3fn", (2, 3, 16), (48, 16, 1))
    )
    assert source_of_sizes
    refused(
        TypeError,
        "pipeline: argument 'x' must be bf16, but got f16",
        library.pipeline,
        Packed(0, "f16", (2, 3, 5), (15, 5, 1)),
        4,
    )
    refused(
        TypeError,
        "axpy: argument 'x' must be in memory of a GPU, but is in host memory",
        library.axpy,
        0.5,
        Packed(0, "f32", (4, 8), (8, 1), kind=(1, 0)),
        Packed(0, "f32", (4, 8), (8, 1), kind=(1, 0)),
    )


# ---------------------------------------------------------------------------------------------------------------------
# Our own arrays


@test
def device_arrays():
    """Memory in the order of a stream, given back when nothing refers to it."""
    x = ssa.RawTensor(BASE, (4, 8), "float32")
    records()
    z = library.axpy(0.5, x, x, stream=0x21)
    equal((z.shape, z.strides, z.dtype, z.device, z.stream), ((4, 8), (8, 1), "f32", 0, 0x21))
    interface = z.__cuda_array_interface__
    equal(
        (interface["typestr"], interface["strides"], interface["data"], interface["stream"]),
        ("<f4", (32, 4), (z.pointer, False), 0x21),
    )
    library.axpy(0.5, z, x, stream=0x21)
    equal([line for line in records() if "waits" in line or line.startswith("free")], [f"free {z.pointer + 512:#x}"])
    library.axpy(0.5, z, x, stream=0x22)
    equal([line for line in records() if "waits" in line], ["stream 0x22 waits for stream 0x21"])
    pointer = z.pointer
    del z
    gc.collect()
    assert f"free {pointer:#x}" in records()


@test
def device_arrays_by_dlpack():
    x = ssa.RawTensor(BASE, (2, 3, 5), "bf16")
    out, lse = library.pipeline(x, 4)
    pointer = out.pointer
    equal(out.__dlpack_device__(), (2, 0))
    assert not hasattr(out, "__cuda_array_interface__") and hasattr(lse, "__cuda_array_interface__")
    view, read_only = _dlpack.read(out, 0)
    equal((view[:5], read_only), ((out.pointer, "bf16", (2, 3, 5), (15, 5, 1), 0), False))
    del out
    gc.collect()
    assert f"free {pointer:#x}" not in records()  # the capsule holds it
    del view
    gc.collect()
    assert f"free {pointer:#x}" in records()


@test
def capsules_that_are_consumed():
    """A consumer renames the capsule and calls its deleter later."""
    x = ssa.RawTensor(BASE, (4, 8), "f32")
    z = library.axpy(0.5, x, x)
    capsule = z.__dlpack__()
    managed = ctypes.cast(_dlpack._get_pointer(capsule, b"dltensor"), ctypes.POINTER(_dlpack._Managed))
    rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))
    name = ctypes.create_string_buffer(b"used_dltensor")
    rename(capsule, ctypes.cast(name, ctypes.c_char_p))
    pointer = z.pointer
    del z, capsule
    gc.collect()
    assert f"free {pointer:#x}" not in records()
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(managed.contents.deleter)(ctypes.addressof(managed.contents))
    gc.collect()
    assert f"free {pointer:#x}" in records()


@test
def capsules_wait_for_their_stream():
    x = ssa.RawTensor(BASE, (4, 8), "f32")
    z = library.axpy(0.5, x, x, stream=0x21)
    records()
    for stream, waits in (
        (None, ["stream (nil) waits for stream 0x21"]),
        (1, ["stream (nil) waits for stream 0x21"]),
        (0x21, []),
        (-1, []),
        (0x55, ["stream 0x55 waits for stream 0x21"]),
    ):
        z.__dlpack__(stream=stream)
        equal([line for line in records() if "waits" in line], waits)
    for more in ({"copy": True}, {"dl_device": (1, 0)}):
        try:
            z.__dlpack__(**more)
        except BufferError:
            continue
        raise AssertionError("expected a BufferError")


@test
def workspace_of_our_own():
    """Asked for and given back in the order of the stream, around the launches."""
    x = ssa.RawTensor(BASE, (2, 3, 5), "bf16")
    given = (ssa.RawTensor(BASE + 4096, (2, 3, 5), "bf16"), ssa.RawTensor(BASE + 8192, (2, 3), "f32"))
    library.pipeline(x, 4, out=given)
    records()
    library.pipeline(x, 4, out=given, stream=0x11)
    equal([line.split()[0] for line in records()], ["allocate", "launch", "launch", "free"])


@test
def raw_tensors():
    x = ssa.RawTensor(BASE, (4, 8), "float32", (16, 1), device=0)
    equal((x.dtype, x.strides, ssa.RawTensor(BASE, [4, 8], "f32").strides), ("f32", (16, 1), (8, 1)))
    equal(ssa.RawTensor(0, (), "bfloat16").dtype, "bf16")
    for what, error in (
        (lambda: ssa.RawTensor(BASE, (4,), "complex64"), TypeError),
        (lambda: ssa.RawTensor(BASE, (4, 8), "f32", (1,)), ValueError),
        (lambda: ssa.RawTensor(1.5, (4,), "f32"), TypeError),
        (lambda: ssa.RawTensor(BASE, (4.0,), "f32"), TypeError),
    ):
        try:
            what()
        except error:
            continue
        raise AssertionError("expected an error")
    refused(
        ValueError,
        "axpy: argument 'y' must be in memory of device 0, but is on device 1",
        library.axpy,
        0.5,
        x,
        ssa.RawTensor(BASE + SPACE, (4, 8), "f32", device=1),
    )
    refused(
        ValueError,
        "axpy: argument 'y' must be in memory of device 0, but is on device 1",
        library.axpy,
        0.5,
        x,
        ssa.RawTensor(BASE + SPACE, (4, 8), "f32"),
    )
    refused(
        ValueError,
        "axpy: argument 'y' must not be a null pointer",
        library.axpy,
        0.5,
        x,
        ssa.RawTensor(0, (4, 8), "f32"),
    )


@test
def mixed_libraries():
    """CuPy's memory where one of the arrays is CuPy's."""
    x = cupy.empty((4, 8), "<f4")
    assert isinstance(library.axpy(0.5, Interface(0, (4, 8)), x), cupy.ndarray)
    assert isinstance(
        library.axpy(0.5, Packed(0, "f32", (4, 8), (8, 1)), ssa.RawTensor(BASE, (4, 8), "f32")), ssa.DeviceArray
    )


main(TESTS)
