# RUN: env CC=%cc %python %s
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls with torch tensors, on a stand-in for torch and a driver that records."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Inputs"))
from setup_fake import (
    PLANS,
    TESTS,
    bundle,
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
from libraries import BASE, Device, Stream, calls, dense, make_torch  # noqa: E402

import json  # noqa: E402

import ssa  # noqa: E402

torch = make_torch()
library = ssa.load(text(*[make() for make in PLANS.values()]))
cuda0, cuda1, cpu, meta = Device("cuda", 0), Device("cuda", 1), Device("cpu"), Device("meta")


def tensor(*shape, dtype="float32", device=cuda0, strides=None):
    return torch.empty(shape, dtype=getattr(torch, dtype), device=device, strides=strides)


def xy(**more):
    return tensor(4, 8, **more), tensor(4, 8, **more)


def made():
    """Launches and allocations since the last time."""
    allocations = list(calls)
    calls.clear()
    return launches(records()), allocations


# ---------------------------------------------------------------------------------------------------------------------
# Results and memory


@test
def results_are_tensors():
    x, y = xy()
    made()
    z = library.axpy(0.5, x, y)
    launched, allocated = made()
    assert isinstance(z, torch.Tensor)
    equal((z.shape, z.stride(), z.dtype, z.device.index), ((4, 8), (8, 1), torch.float32, 0))
    equal(allocated, [("torch.empty", (4, 8), "torch.float32", "device(cuda:0)", 0)])
    equal(parameters(launched[0], "fpqpqpqq"), [0.5, x.pointer - BASE, 8, y.pointer - BASE, 8, z.pointer - BASE, 8, 4])


@test
def N10_workspace_comes_from_the_allocator_of_torch():
    """So that a call can be captured in a graph: the driver is asked for nothing but launches."""
    x = tensor(2, 3, 5, dtype="bfloat16")
    library.pipeline(x, 4)
    made()
    out, lse = library.pipeline(x, 4)
    log, allocated = records(), list(calls)
    calls.clear()
    equal([line.split()[0] for line in log], ["launch", "launch"])
    equal(
        [a[1:3] for a in allocated], [((2, 3, 5), "torch.bfloat16"), ((2, 3), "torch.float32"), ((280,), "torch.uint8")]
    )


@test
def results_that_are_given():
    x, y = xy()
    z = tensor(4, 8, strides=(12, 1))
    made()
    assert library.axpy(0.5, x, y, out=z) is z
    launched, allocated = made()
    equal((allocated, parameters(launched[0], "fpqpqpqq")[5:7]), ([], [z.pointer - BASE, 12]))
    assert library.axpy(0.5, x, y, out=(z,)) is z
    source, lse = tensor(2, 3, 5, dtype="bfloat16"), tensor(2, 3)
    made()
    out, same = library.pipeline(source, 4, out=(None, lse))
    assert same is lse and out.shape == (2, 3, 5)
    equal([a[1] for a in made()[1]], [(2, 3, 5), (280,)])


@test
def results_that_are_arguments():
    x = tensor(5, 4)
    same, last, bits, own, again = library.aliases(x)
    assert same is x
    equal((last.pointer, last.shape, last.dtype), (x.pointer + 64, (4,), torch.float32))
    equal((bits.pointer, bits.dtype, bits.storage), (x.pointer, torch.int32, x.storage))
    assert own.pointer != x.pointer and again.pointer == own.pointer and again.storage is own.storage
    inside = tensor(9, 4).set_(x.storage, 8, (5, 4), (4, 1))  # begins 32 bytes into its storage
    equal(library.aliases(inside)[1].pointer, inside.pointer + 64)
    refused(
        ValueError,
        "aliases: result 'same' is memory of an argument or another result; out must be None for it",
        library.aliases,
        x,
        out=(x, None, None, None, None),
    )


@test
def H1_zero_sizes():
    x, y = tensor(0, 8), tensor(0, 8)
    made()
    z = library.axpy(0.5, x, y)
    equal((z.shape, made()[0]), ((0, 8), []))


# ---------------------------------------------------------------------------------------------------------------------
# Streams and devices


@test
def N1_the_current_stream():
    x, y = xy()
    made()
    with torch.cuda.stream(Stream(0x51, 0)):
        library.axpy(0.5, x, y)
    launched, allocated = made()
    equal((shape_of(launched[0])[4], allocated[0][4]), (0x51, 0x51))


@test
def streams_that_are_given():
    """Memory is allocated for the stream that it is used on."""
    x = tensor(2, 3, 5, dtype="bfloat16")

    class Protocol:
        def __cuda_stream__(self):
            return 0, 0x77

    for stream in (Stream(0x77, 0), 0x77, Protocol()):
        made()
        library.pipeline(x, 4, stream=stream)
        launched, allocated = made()
        equal({shape_of(line)[4] for line in launched} | {a[4] for a in allocated}, {0x77})
        equal(torch.cuda.current_stream(0).cuda_stream, 0)
    refused(
        TypeError,
        "axpy: stream must be a stream of torch or CuPy, or a handle, but got str",
        library.axpy,
        0.5,
        *xy(),
        stream="0",
    )


@test
def N4_the_device_of_the_tensors():
    x, y = xy(device=cuda1)
    records()
    z = library.axpy(0.5, x, y)
    equal(z.device.index, 1)
    assert " device 1 " in launches(records())[0]
    x0, _ = xy()
    refused(
        ValueError, "axpy: argument 'y' must be in memory of device 0, but is on device 1", library.axpy, 0.5, x0, y
    )
    refused(
        ValueError,
        "axpy: result 'z' must be in memory of device 0, but is on device 1",
        library.axpy,
        0.5,
        *xy(),
        out=z,
    )


@test
def code_is_loaded_once_on_each_device():
    own = ssa.load(text(PLANS["axpy"]()))
    for device in (cuda0, cuda0, cuda1, cuda0, cuda1):
        own.axpy(0.5, *xy(device=device))
    equal([line.split()[2] for line in records() if line.startswith("load")], ["0", "1"])


@test
def devices_may_have_different_code():
    """Plans of different chips differ; the one of the device is taken."""
    made_for = {chip: bundle(PLANS["axpy"](), chips=[chip])["targets"][0] for chip in ("sm_90a", "sm_100a")}
    made_for["sm_100a"]["entries"][0]["launches"][0]["block"] = [256, 1, 1]
    both = {**bundle(PLANS["axpy"]()), "targets": [made_for["sm_100a"], made_for["sm_90a"]]}
    own = ssa.load(json.dumps(both))
    own.axpy(0.5, *xy())
    equal([shape_of(line)[2] for line in launches(records())], [(128, 1, 1)])


# ---------------------------------------------------------------------------------------------------------------------
# Arguments


@test
def arguments_by_name():
    x, y = xy()
    made()
    library.axpy(0.5, y=y, x=x)
    library.axpy(y=y, a=0.5, x=x)
    library.axpy(0.5, x, y)
    first, second, third = (parameters(line, "fpqpqpqq")[:5] for line in made()[0])
    assert first == second == third
    refused(TypeError, "axpy: there is no argument 'b'; the arguments are a, x, y", library.axpy, 0.5, x, b=y)
    refused(TypeError, "axpy: argument 'x' is given twice", library.axpy, 0.5, x, x=x)
    refused(TypeError, "axpy: expected 3 arguments (a, x, y), but got 2", library.axpy, 0.5, y=y)
    refused(TypeError, "axpy: expected 3 arguments (a, x, y), but got 4", library.axpy, 0.5, x, y, y)


@test
def J6_dtypes():
    x = tensor(10, 5, dtype="int32")
    library.chunks(x)
    for dtype, name in (
        ("int64", "i64"),
        ("int16", "i16"),
        ("float32", "f32"),
        ("bool", "i1"),
        ("bfloat16", "bf16"),
        ("complex64", "complex64"),
    ):
        refused(
            TypeError, f"chunks: argument 'x' must be i32, but got {name}", library.chunks, tensor(10, 5, dtype=dtype)
        )
    refused(
        TypeError,
        "chunks: argument 'x' must be in memory of a GPU, but is in host memory",
        library.chunks,
        tensor(10, 5, dtype="int32", device=cpu),
    )
    refused(
        TypeError,
        "axpy: argument 'y' must be in memory of device 0, but is in host memory",
        library.axpy,
        0.5,
        xy()[0],
        tensor(4, 8, device=cpu),
    )
    refused(
        TypeError,
        "axpy: argument 'x' must be in memory of a GPU, but is in host memory",
        library.axpy,
        0.5,
        *xy(device=meta),
    )


@test
def unsigned_integers_are_integers():
    own = PLANS["sizes_only"]()
    for argument in own.lists["arguments"]:
        argument.update(dtype="i8")
    for buffer in own.lists["buffers"][:2]:
        buffer.update(dtype="i8")
    ssa.load(text(own)).sizes_only(tensor(2, 3, dtype="uint8"), tensor(2, 3, 16, dtype="int8"))
    equal(len(launches(records())), 1)


@test
def J3_strides():
    x, y = xy()
    refused(
        ValueError,
        "axpy: argument 'x' must have stride 1 in dimension 1, but got strides 16x2",
        library.axpy,
        0.5,
        tensor(4, 8, strides=(16, 2)),
        y,
    )
    refused(
        ValueError,
        "axpy: result 'z' must have stride 1 in dimension 1, but got strides 16x2",
        library.axpy,
        0.5,
        x,
        y,
        out=tensor(4, 8, strides=(16, 2)),
    )
    library.axpy(0.5, tensor(4, 8, strides=(0, 1)), tensor(4, 8, strides=(1024, 1)))
    equal(parameters(launches(records())[0], "fpqpqpqq")[2::2][:2], [0, 1024])


@test
def J5_alignment():
    x, y = xy()
    x.pointer += 4
    library.axpy(0.5, *xy())  # the sizes are known, the address is new
    refused(
        ValueError,
        f"axpy: argument 'x' must be aligned to 16 bytes, but its address is {x.pointer:#x}",
        library.axpy,
        0.5,
        x,
        y,
    )


@test
def shapes():
    x, y = xy()
    refused(ValueError, "axpy: argument 'x' must have shape ?x8, but got 4x7", library.axpy, 0.5, tensor(4, 7), y)
    refused(ValueError, "axpy: argument 'x' must have shape ?x8, but got 1x4x8", library.axpy, 0.5, tensor(1, 4, 8), y)
    refused(
        ValueError,
        "axpy: dimension 0 of 'y' must be dimension 0 of 'x', but got 5 and 4",
        library.axpy,
        0.5,
        x,
        tensor(5, 8),
    )


@test
def overlap():
    x, y = xy()
    refused(ValueError, "axpy: result 'z' must not overlap argument 'y'", library.axpy, 0.5, x, y, out=y)
    qkv = tensor(4, 32)
    parts = [torch.Tensor(qkv.pointer + 32 * i, (4, 8), (32, 1), torch.float32, cuda0) for i in range(3)]
    library.axpy(0.5, parts[0], parts[1], out=parts[2])
    equal(len(launches(records())), 1)


@test
def scalars():
    x, y = xy()

    class Whole:
        def __index__(self):
            return 3

    library.axpy(2, x, y)
    library.axpy(True, x, y)
    equal([parameters(line, "fpqpqpqq")[0] for line in launches(records())], [2.0, 1.0])
    library.pipeline(tensor(2, 3, 5, dtype="bfloat16"), Whole())
    equal(parameters(launches(records())[0], "ppii")[3], 3)
    refused(TypeError, "axpy: argument 'a' must be f32, but got str", library.axpy, "0.5", x, y)
    refused(TypeError, "axpy: argument 'a' must be f32, but got NoneType", library.axpy, None, x, y)
    refused(TypeError, "axpy: argument 'x' must be an array, but got a number", library.axpy, 0.5, 1.0, y)
    refused(TypeError, "axpy: argument 'x' must be an array, but got list", library.axpy, 0.5, [1.0], y)
    refused(TypeError, "axpy: argument 'x' must be an array, but got NoneType", library.axpy, 0.5, None, y)
    # Reading a value from the device would wait for it.
    refused(TypeError, "axpy: argument 'a' must be f32, but got an array", library.axpy, tensor(), x, y)


@test
def what_cannot_be_computed_with():
    x, y = xy()
    x.requires_grad = True
    refused(
        ValueError,
        "axpy: argument 'x' requires a gradient, which is not computed here; use torch.no_grad(), or detach() it",
        library.axpy,
        0.5,
        x,
        y,
    )
    torch.grad = False
    library.axpy(0.5, x, y)
    torch.grad = True
    equal(len(launches(records())), 1)
    y.layout = torch.sparse_coo
    refused(
        TypeError,
        "axpy: argument 'y' must be a strided tensor, but got layout sparse_coo",
        library.axpy,
        0.5,
        xy()[0],
        y,
    )


@test
def results_in_wrong_numbers():
    x, y = xy()
    refused(
        TypeError, "axpy: out must have 1 array, one for each result, but has 2", library.axpy, 0.5, x, y, out=(x, y)
    )
    refused(
        TypeError,
        "pipeline: out must have 2 arrays, one for each result, but has 1",
        library.pipeline,
        tensor(2, 3, 5, dtype="bfloat16"),
        4,
        out=x,
    )
    refused(TypeError, "axpy: result 'z' must be an array, but got a number", library.axpy, 0.5, x, y, out=3)


@test
def sizes_of_tensors_without_memory():
    """Arguments of which only sizes are used may be anywhere."""
    x = tensor(2, 3, 16, dtype="float8_e4m3fn")
    for device in (meta, cpu, cuda1, cuda0):
        library.sizes_only(tensor(4, 7, dtype="bfloat16", device=device), x)
        kernel = parameters(launches(records())[0], "ppp")
        equal(kernel[1], x.pointer - BASE)


@test
def objects_with_data_ptr():
    """Not only torch.Tensor: whatever looks like one."""

    class Like:
        def __init__(self, pointer, shape, dtype="float32", device="cuda:0"):
            self.shape, self.dtype, self.device = shape, dtype, device
            self.data_ptr = lambda: pointer
            self.stride = lambda: dense(shape)

    pointer = BASE + (5 << 20)
    z = library.axpy(0.5, Like(pointer, (4, 8)), Like(pointer + 4096, [4, 8]))
    assert isinstance(z, ssa.DeviceArray), z
    equal((z.shape, z.dtype, z.device), ((4, 8), "f32", 0))
    equal(parameters(launches(records())[0], "fpqpqpqq")[1], 5 << 20)
    refused(
        TypeError,
        "axpy: argument 'x' must be in memory of a GPU, but is in host memory",
        library.axpy,
        0.5,
        Like(pointer, (4, 8), device="cpu"),
        Like(pointer, (4, 8), device="cpu"),
    )


@test
def N6_what_was_evaluated_is_kept():
    """Same sizes, strides and integers: the plan is not evaluated again, but what is new in the call counts."""
    import ssa._function as function

    counted, original = [], function.Call

    class Counting(original):
        def __init__(self, *args):
            counted.append(1)
            super().__init__(*args)

    function.Call = Counting
    own = ssa.load(text(PLANS["axpy"](), PLANS["pipeline"]()))
    x, y = xy()
    for a in (0.5, 0.25):
        own.axpy(a, x, y)
    own.axpy(1.0, y, x)
    equal(
        [parameters(line, "fpqpqpqq")[:2] for line in launches(records())],
        [[0.5, x.pointer - BASE], [0.25, x.pointer - BASE], [1.0, y.pointer - BASE]],
    )
    equal(len(counted), 1)
    own.axpy(1.0, tensor(4, 8, strides=(16, 1)), y)
    own.axpy(1.0, x, y, out=tensor(4, 8, strides=(16, 1)))
    own.axpy(1.0, tensor(5, 8), tensor(5, 8))
    source = tensor(2, 3, 5, dtype="bfloat16")
    for k in (4, 5, 4):
        own.pipeline(source, k)
    equal(len(counted), 6)
    equal([parameters(line, "ppii")[3] for line in launches(records()) if " first " in line], [4, 5, 4])
    for n in range(600):  # more than are kept
        own.axpy(1.0, tensor(n, 8), tensor(n, 8))
    assert len(own.axpy._prepared) <= 256
    function.Call = original


main(TESTS)
