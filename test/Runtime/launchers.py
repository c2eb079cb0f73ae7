# RUN: env CC=%cc %python %s
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls by both launchers, C++ and Python, on a driver that records: they must pack the same arguments, launch the
same grids and give the same messages."""

import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Inputs"))
from launching import (  # noqa: E402
    BASE,
    HEAP,
    SPACE,
    TESTS,
    array,
    call,
    equal,
    launches,
    main,
    make_calls,
    one,
    parameters,
    refused,
    shape_of,
    test,
)
from plans import PLANS, text  # noqa: E402

# ---------------------------------------------------------------------------------------------------------------------
# What reaches the driver


@test
def strides_scalars_and_streams():
    x, y = array(0, "f32", [40, 8], [16, 1]), array(1 << 20, "f32", [40, 8], [0, 1])
    answer, made = one("axpy", 0.5, x, y, stream=0x1234)
    equal(answer, f"ok {BASE + HEAP}")  # the first allocation
    equal(shape_of(made[0]), ("axpy", (3, 1, 1), (128, 1, 1), 0, 0x1234))
    equal(parameters(made[0], "fpqpqpqq"), [0.5, 0, 16, 1 << 20, 0, HEAP, 8, 40])


@test
def results_that_are_given():
    x, y = array(0, "f32", [40, 8]), array(1 << 20, "f32", [40, 8])
    answer, made = one("axpy", 0.5, x, y, out=[array(2 << 20, "f32", [40, 8], [12, 1])])
    equal(answer, f"ok {BASE + (2 << 20)}")
    equal(parameters(made[0], "fpqpqpqq"), [0.5, 0, 8, 1 << 20, 8, 2 << 20, 12, 40])


@test
def strides_of_dimensions_of_size_one():
    """Frameworks keep anything there; kernels get what a contiguous array has."""
    x, y = array(0, "f32", [1, 8], [3, 1]), array(1 << 20, "f32", [1, 8], [-77, 1])
    _, made = one("axpy", 1.0, x, y, out=[array(2 << 20, "f32", [1, 8], [5, 1])])
    equal(parameters(made[0], "fpqpqpqq"), [1.0, 0, 8, 1 << 20, 8, 2 << 20, 8, 1])


@test
def H1_zero_sizes():
    """No launch, no memory, no complaint about null pointers."""
    for strides in ([8, 1], [3, 1], [0, 0], [-8, 2]):  # NumPy has zeros there
        answer, made = one("axpy", 0.5, array(None, "f32", [0, 8]), array(None, "f32", [0, 8], strides))
        equal((answer, made), ("ok 0", []))
    answer, made = one("chunks", array(None, "i32", [0, 5]))
    equal([shape_of(m)[0] for m in made], ["begin", "end"])
    equal(parameters(made[1], "pq"), [0, 0])


@test
def workspace_views_and_conditions():
    x = array(4096, "bf16", [2, 3, 5])
    answers, records = make_calls(text(PLANS["pipeline"]()), [call("pipeline", x, 4)])
    # In the order of allocation: out, lse, and the workspace of 256 bytes of f32 (30 of them) and 6 i32.
    out, lse, scratch = HEAP, HEAP + 512, HEAP + 1024
    equal([r for r in records[1] if r.startswith("allocate")], ["allocate 60", "allocate 24", "allocate 280"])
    equal(answers, [f"ok {BASE + out} {BASE + lse}"])
    made = launches(records[1])
    equal(
        [shape_of(m) for m in made],
        [("first", (6, 1, 1), (128, 1, 1), 0, 0), ("second", (3, 2, 1), (64, 2, 1), 60000, 0)],
    )
    equal(parameters(made[0], "ppii"), [4096, scratch, 5, 4])
    equal(parameters(made[1], "ppppp"), [scratch, scratch + 256, 4096 + 30, out, lse])


@test
def conditions_that_hold():
    _, made = one("pipeline", array(4096, "bf16", [1, 3, 5]), 5)
    equal([shape_of(m)[0] for m in made], ["first", "odd", "second"])
    equal(parameters(made[1], "pp"), [4096 + 14, HEAP + 1024 + 256])


@test
def repeats():
    x = array(1 << 16, "i32", [10, 5])
    _, made = one("chunks", x)
    equal(
        [shape_of(m)[:2] for m in made],
        [
            ("begin", (1, 1, 1)),
            ("copy", (4, 1, 1)),
            ("check", (1, 1, 1)),
            ("copy", (4, 1, 1)),
            ("check", (1, 1, 1)),
            ("copy", (2, 1, 1)),
            ("check", (1, 1, 1)),
            ("end", (1, 1, 1)),
        ],
    )
    equal(
        [parameters(m, "ppi") for m in made if " copy " in m],
        [[(1 << 16) + 80 * i, HEAP + 80 * i, rows] for i, rows in enumerate((4, 4, 2))],
    )
    equal([parameters(m, "pq") for m in made if " check " in m], [[HEAP + 80 * i, 4 * i] for i in range(3)])


@test
def lanes():
    """Runs in turns on the caller's stream and one beside it, which begins behind what was before and ends before what follows."""
    plan = PLANS["chunks"]()
    plan.lists["repeats"][0]["lanes"] = 2
    for rows, beside in ((10, True), (4, False)):  # one run needs no other stream
        x = array(1 << 16, "i32", [rows, 5])
        _, records = make_calls(text(plan), [call("chunks", x, stream=0x1234)])
        made = [r for r in records[1] if r.startswith(("launch", "stream"))]
        told = [f"{shape_of(m)[0]} {shape_of(m)[4]:#x}" if m.startswith("launch") else m for m in made]
        runs = [f"{kernel} {stream}" for stream in ("0x1234", "0x1000", "0x1234") for kernel in ("copy", "check")]
        fork, join = ["stream 0x1000 waits for stream 0x1234"], ["stream 0x1234 waits for stream 0x1000"]
        equal(told, ["begin 0x1234", *(fork + runs + join if beside else runs[:2]), "end 0x1234"])


@test
def tensor_maps_and_clusters():
    x = array(1 << 16, "bf16", [3, 2, 50, 64], [6400, 64, 128, 1])
    answers, records = make_calls(text(PLANS["maps"]()), [call("maps", x)])
    made, encoded = launches(records[1]), [r for r in records[1] if r.startswith("tensor map")]
    equal(len(made), 2)
    assert " cluster 2 1 1 dependent " in made[0] and " cluster 16 1 1 parameters" in made[1], made
    # bf16 of 64, 50, 2, 3 from the inside; strides in bytes; swizzle 3 is 128b, promotion 3 is 256b.
    address = f"{BASE + (1 << 16):#x}"
    assert (
        f"tensor map dtype 9 address {address} sizes 64 50 2 3 strides 256 128 12800 box 64 step 1 32 "
        "step 1 1 step 1 1 step 1 "
        "interleave 0 swizzle 3 promotion 3 fill 0"
    ) in encoded, encoded
    assert (
        f"tensor map dtype 0 address {BASE + (1 << 16) + 256:#x} sizes 64 50 strides 128 box 64 step 1 16 step 1 "
        "interleave 0 swizzle 0 promotion 0 fill 1"
    ) in encoded, encoded
    n, first, y, second, i8 = parameters(made[0], "impmb")
    equal((n, y, i8), (50, HEAP, 1))
    assert first != second and first != bytes(128)
    equal(parameters(made[1], "m"), [second])
    # More than 8 blocks in a cluster must be asked for.
    equal([r for r in records[1] if r.startswith("attribute")], ["attribute 14 of wide is 1"])


@test
def maps_of_launches_that_are_left_out():
    answer, made = one("maps", array(None, "bf16", [3, 2, 0, 64]))
    equal((answer, made), (f"ok {BASE + HEAP}", []))


@test
def maps_of_nothing():
    # The driver refuses them; a kernel gets 128 zeros in their place.
    answer, made = one("maps", array(None, "bf16", [0, 2, 50, 64]))
    assert answer.startswith("ok"), answer
    n, first, y, second, i8 = parameters(made[0], "impmb")
    equal((n, first), (50, bytes(128)))
    assert second != first


@test
def every_kind_of_parameter():
    answer, made = one("scalars", 1, -128, 32767, -(2**31), 2**63 - 1, -1.5, 0.1)
    equal([shape_of(m)[0] for m in made], ["scalars", "nothing"])
    f32 = 0.10000000149011612
    got = parameters(made[0], "bqbhbibfdffdfdfh")
    assert math.isnan(got.pop(11))
    equal(
        got, [1, 2**63 - 1, -128, 32767, -128, -(2**31), -128, -1.5, 0.1, math.inf, -math.inf, f32, 0.1, math.inf, -2]
    )
    equal(parameters(made[1], ""), [])


@test
def floats_round_to_nearest():
    for value, expected in ((1e39, math.inf), (-1e39, -math.inf), (1e-50, 0.0), (16777217.0, 16777216.0)):
        _, made = one("scalars", 0, 0, 0, 0, 0, value, 0.0)
        equal(parameters(made[0], "bqbhbibfdffdfdfh")[7], expected)


@test
def arithmetic_of_values():
    low, high = -(2**63), 2**63 - 1
    pairs = [(7, 2), (-7, 2), (7, -2), (-7, -2), (0, 5), (5, 0), (0, 0), (6, 3), (-6, 3), (low, 1), (high, 1), (1, -1)]
    answers, records = make_calls(text(PLANS["arithmetic"]()), [call("arithmetic", x, y) for x, y in pairs])
    for (x, y), answer, made in zip(pairs, answers, records[1:]):
        if not low <= x + y <= high or not low <= x - y <= high:
            assert answer.startswith("error"), answer
            continue
        got = parameters(launches(made)[0], "q" * 18)
        quotient = 0 if not y else int(math.copysign(abs(x) // abs(y), x * y))
        expected = [
            x + y,
            x - y,
            x * y,
            quotient,
            x - quotient * y if y else 0,
            x // y if y else 0,
            -(-x // y) if y else 0,
            max(x, y),
            min(x, y),
            x == y,
            x != y,
            x < y,
            x <= y,
            x > y,
            x >= y,
            x > y and x >= y,
            x > y or x >= y,
            x if x >= y else y,
        ]
        equal(got, list(map(int, expected)))


@test
def values_that_do_not_fit():
    low, high = -(2**63), 2**63 - 1
    for x, y, name, number in (
        (high, 1, "add", 2),
        (low, 1, "sub", 3),
        (high, 2, "add", 2),
        (2**40, 2**40, "mul", 4),
        (low, -1, "add", 2),
    ):
        refused("arithmetic", f"value {number}, '{name}' of {x} and {y}, does not fit in 64 bits", x, y)


@test
def results_without_memory_of_their_own():
    x = array(1 << 16, "f32", [5, 4])
    answer, made = one("aliases", x)
    base = BASE + (1 << 16)
    equal(answer, f"ok {base} {base + 64} {base} {BASE + HEAP} {BASE + HEAP}")
    equal(parameters(made[0], "pp"), [HEAP, 1 << 16])


@test
def arguments_whose_sizes_alone_are_used():
    """Their pointer may be null, or anything: it is passed on and never looked at."""
    x = array(4096, "f8e4m3fn", [2, 3, 16], [64, 16, 1])
    for pointer, passed in ((None, 0), (BASE + 1, 1)):
        answer, made = one("sizes_only", array(pointer, "bf16", [4, 7]), x)
        equal(shape_of(made[0])[1], (7, 2, 1))
        equal(parameters(made[0], "ppp"), [passed, 4096, HEAP])


# ---------------------------------------------------------------------------------------------------------------------
# Arguments that are refused


def xy(**changes):
    return array(0, "f32", [4, 8]) | changes, array(1 << 20, "f32", [4, 8])


@test
def number_and_kind_of_arguments():
    x, y = xy()
    refused("axpy", "expected 3 arguments (a, x, y), but got 2", 0.5, x)
    refused("chunks", "expected 1 argument (x), but got 2", x, y)
    refused("axpy", "argument 'x' must be an array, but got a number", 0.5, 3, y)
    refused("axpy", "argument 'a' must be f32, but got an array", x, x, y)
    refused("pipeline", "argument 'k' must be i32, but got a floating point number", array(0, "bf16", [1, 1, 1]), 1.5)


@test
def dtypes_and_shapes():
    x, y = xy()
    refused("axpy", "argument 'x' must be f32, but got bf16", 0.5, x | {"dtype": "bf16"}, y)
    refused("axpy", "argument 'x' must have shape ?x8, but got 4x7", 0.5, array(0, "f32", [4, 7]), y)
    refused("axpy", "argument 'y' must have shape ?x8, but got 8", 0.5, x, array(0, "f32", [8]))
    refused("axpy", "argument 'y' must have shape ?x8, but got ()", 0.5, x, array(0, "f32", []))
    refused("axpy", "argument 'x' must not have negative sizes, but got -4x8", 0.5, array(0, "f32", [-4, 8]), y)


@test
def sizes_that_must_agree():
    x, y = xy()
    refused("axpy", "dimension 0 of 'y' must be dimension 0 of 'x', but got 3 and 4", 0.5, x, array(0, "f32", [3, 8]))
    x = array(0, "bf16", [1, 2, 3])
    refused("pipeline", "'k' must be at most dimension 2 of 'x', but got 4 and 3", x, 4)
    refused("pipeline", "'k' must not be 0", x, 0)


@test
def strides_that_do_not_fit():
    x, y = xy()
    refused(
        "axpy", "argument 'x' must have stride 1 in dimension 1, but got strides 16x2", 0.5, x | {"strides": [16, 2]}, y
    )
    refused(
        "axpy", "argument 'x' must have stride 1 in dimension 1, but got strides 8x0", 0.5, x | {"strides": [8, 0]}, y
    )
    refused("axpy", "argument 'y' must not have negative strides, but got -8x1", 0.5, x, y | {"strides": [-8, 1]})
    refused(
        "chunks", "argument 'x' must be contiguous, but got shape 3x5 with strides 6x1", array(0, "i32", [3, 5], [6, 1])
    )
    refused(
        "sizes_only",
        "argument 'x' must have stride 16 in dimension 1, but got strides 64x20x1",
        array(None, "bf16", [1, 1]),
        array(0, "f8e4m3fn", [2, 3, 16], [64, 20, 1]),
    )
    huge = 2**61
    refused("axpy", f"argument 'x' is too large: shape 4x8, strides {huge}x1", 0.5, x | {"strides": [huge, 1]}, y)


@test
def J5_alignment():
    x, y = xy()
    for offset in (2, 4, 8):
        refused(
            "axpy",
            f"argument 'x' must be aligned to 16 bytes, but its address is {BASE + offset:#x}",
            0.5,
            array(offset, "f32", [4, 8]),
            y,
        )
    refused(
        "axpy",
        "argument 'x' must be aligned to 16 bytes, but its stride in dimension 0 is 36 bytes",
        0.5,
        x | {"strides": [9, 1]},
        y,
    )
    refused(
        "axpy",
        f"result 'z' must be aligned to 16 bytes, but its address is {BASE + 8:#x}",
        0.5,
        x,
        y,
        out=[array(BASE + 8, "f32", [4, 8])],
    )
    refused(
        "axpy",
        "result 'z' must be aligned to 16 bytes, but its stride in dimension 0 is 40 bytes",
        0.5,
        x,
        y,
        out=[array(2 << 20, "f32", [4, 8], [10, 1])],
    )
    _, made = one("axpy", 0.5, array(0, "f32", [1, 8], [9, 1]), array(0, "f32", [1, 8]))
    equal(len(made), 1)


@test
def memory():
    x, y = xy()
    refused("axpy", "argument 'y' must not be a null pointer", 0.5, x, y | {"pointer": 0})
    refused("axpy", "result 'z' must not be a null pointer", 0.5, x, y, out=[y | {"pointer": 0}])
    refused(
        "axpy", "argument 'y' must be in memory of device 0, but is in host memory", 0.5, x, y | {"pointer": 0x1000}
    )
    refused(
        "axpy",
        "argument 'y' must be in memory of device 0, but is on device 1",
        0.5,
        x,
        y | {"pointer": BASE + SPACE},
        DEVICES=2,
    )
    refused(
        "axpy",
        "result 'z' must be in memory of device 0, but is on device 1",
        0.5,
        x,
        y,
        out=[y | {"pointer": BASE + SPACE}],
        DEVICES=2,
    )


@test
def results_that_do_not_fit():
    x, y = xy()
    z = array(2 << 20, "f32", [4, 8])
    refused("axpy", "result 'z' must be f32, but got f16", 0.5, x, y, out=[z | {"dtype": "f16"}])
    refused("axpy", "result 'z' must have shape 4x8, but got 8x4", 0.5, x, y, out=[array(2 << 20, "f32", [8, 4])])
    refused(
        "axpy",
        "result 'z' must have stride 1 in dimension 1, but got strides 16x2",
        0.5,
        x,
        y,
        out=[z | {"strides": [16, 2]}],
    )
    refused(
        "axpy",
        "result 'z' must not overlap itself, but got shape 4x8 with strides 4x1",
        0.5,
        x,
        y,
        out=[z | {"strides": [4, 1]}],
    )
    refused(
        "axpy",
        "result 'z' must not overlap itself, but got shape 4x8 with strides 0x1",
        0.5,
        x,
        y,
        out=[z | {"strides": [0, 1]}],
    )
    refused(
        "pipeline",
        "result 'out' must be contiguous, but got shape 2x2x3 with strides 8x4x1",
        array(0, "bf16", [2, 2, 3]),
        1,
        out=[array(4096, "bf16", [2, 2, 3], [8, 4, 1]), None],
    )


@test
def results_that_overlap():
    x, y = xy()
    refused("axpy", "result 'z' must not overlap argument 'x'", 0.5, x, y, out=[array(112, "f32", [4, 8])])
    refused("axpy", "result 'z' must not overlap argument 'y'", 0.5, x, y, out=[y])
    refused(
        "pipeline",
        "result 'lse' must not overlap result 'out'",
        array(0, "bf16", [1, 2, 3]),
        1,
        out=[array(4096, "bf16", [1, 2, 3]), array(4104, "f32", [1, 2])],
    )
    for name, given in {"beside": array(128, "f32", [4, 8]), "between rows": array(32, "f32", [4, 8], [16, 1])}.items():
        x = array(0, "f32", [4, 8], [16, 1] if name == "between rows" else None)
        answer, made = one("axpy", 0.5, x, y, out=[given])
        assert answer.startswith("ok") and made, (name, answer)
    refused(
        "axpy",
        "result 'z' must not overlap argument 'x'",
        0.5,
        array(0, "f32", [4, 8], [16, 1]),
        y,
        out=[array(48, "f32", [4, 8], [16, 1])],
    )


@test
def integers_that_do_not_fit():
    good = [0, 0, 0, 0, 0, 0.0, 0.0]
    for position, name, value in (
        (0, "i1", 2),
        (0, "i1", -1),
        (1, "i8", 128),
        (1, "i8", -129),
        (2, "i16", 32768),
        (3, "i32", 2**31),
        (3, "i32", -(2**31) - 1),
    ):
        refused(
            "scalars",
            f"argument '{name}s' must be {name}, but got {value}",
            *good[:position],
            value,
            *good[position + 1 :],
        )


@test
def I1_launches_that_are_impossible():
    """Limits of grids, of 32-bit parameters and of shared memory are said."""
    for what, n, message in (
        (0, 2**31, "kernel 'limits' has a grid of 2147483648x1x1 blocks, but only 2147483647x65535x65535 are possible"),
        (0, -1, "kernel 'limits' has a grid of -1x1x1 blocks, but only 2147483647x65535x65535 are possible"),
        (1, 65536, "kernel 'limits' has a grid of 1x65536x1 blocks, but only 2147483647x65535x65535 are possible"),
        (2, 65536, "kernel 'limits' has a grid of 1x1x65536 blocks, but only 2147483647x65535x65535 are possible"),
        (3, 2**31, "argument 0 of kernel 'limits' is 2147483648, which does not fit i32"),
        (7, 2, "argument 1 of kernel 'limits' is 2, which does not fit i1"),
        (4, 2**31, "kernel 'limits' has 2147483648 bytes of shared memory"),
        (4, -1, "kernel 'limits' has -1 bytes of shared memory"),
        (
            4,
            232449,
            "kernel 'limits' needs 232449 bytes of shared memory for a block, but device 0 (Fake 0) has 232448",
        ),
        (5, -1, "result 'r' must not have negative sizes, but got -1"),
        (6, -1, "the workspace has -1 bytes"),
    ):
        refused("limits", message, what, n)
    for what, n in ((0, 2**31 - 1), (1, 65535), (2, 65535), (3, 2**31 - 1), (4, 232448), (5, 0)):
        answer, made = one("limits", what, n)
        assert answer.startswith("ok") and len(made) == 2, answer


@test
def checks_come_before_arithmetic_that_fails():
    refused("limits", f"'n' must be at most 2^40, but got {2**62} and {2**40}", 9, 2**62)
    refused("limits", f"value 4, 'mul' of {2**40} and {2**40}, does not fit in 64 bits", 9, 2**40)


@test
def O14_shared_memory_is_asked_for_once():
    """What is above the limit that holds without asking, less what the kernel has itself."""
    for static, values, asked in (
        (0, (49152, 49153, 60000, 50000), [49153, 60000]),
        (1024, (48128, 48129, 231424), [48129, 231424]),
    ):
        answers, records = make_calls(text(PLANS["limits"]()), [call("limits", 4, n) for n in values], STATIC=static)
        assert all(answer.startswith("ok") for answer in answers), answers
        equal(
            [r for some in records for r in some if r.startswith("attribute")],
            [f"attribute 8 of limits is {n}" for n in asked],
        )
    refused(
        "limits",
        "kernel 'limits' needs 232449 bytes of shared memory for a block, but device 0 (Fake 0) has 232448",
        4,
        231425,
        STATIC=1024,
    )


main(TESTS)
