# RUN: %python %s
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Python launcher on a GPU: kernels in PTX made by hand, so that it needs no compiler.

python3 test/Integration/GPU/launcher.py [WORD ..]     tests whose names have one of the words
"""

import pathlib
import struct
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "test/Runtime/Inputs")]

import torch  # noqa: E402

import ssa  # noqa: E402
from plans import Plan, aliases, axpy, text  # noqa: E402

KERNELS = (HERE / "Inputs/launcher.ptx").read_text()
TESTS = []


class Skip(Exception):
    pass


def test(function):
    TESTS.append(function)
    return function


def equal(got, expected):
    assert got == expected, f"expected {expected}, but got {got}"


def same(got, expected):
    assert got.shape == expected.shape and torch.equal(got, expected), f"expected {expected}, but got {got}"


def refused(kind, message, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except Exception as error:  # noqa: BLE001
        assert type(error) is kind and message in str(
            error
        ), f"expected {kind.__name__}: .. {message} .., but got {error!r}"
    else:
        raise AssertionError(f"expected {kind.__name__}: {message}")


# ---------------------------------------------------------------------------------------------------------------------
# Plans


def sums():
    """Sums of rows in two launches: 32 partial sums a row in workspace, shared memory of 60000 bytes."""
    p = Plan("sums")
    x = p.tensor("x", "f32", [None, None], "contiguous", 4)
    rows, columns, one = p.value("dim", x, 0), p.value("dim", x, 1), p.const(1)
    bx = p.buffer(x)
    p.bytes = p.value("mul", rows, p.const(128))
    out, count = p.result("sums", "f32", [rows], "contiguous", 4), p.result("words", "i32", [rows], "contiguous", 4)
    bout, bcount = p.own(out), p.own(count)
    scratch = p.workspace(p.const(0), "f32", [rows, p.const(32)], [p.const(32), one])
    p.launch("partial", [rows, one, one], [["pointer", bx], ["pointer", scratch], ["i32", columns]], (32, 1, 1))
    p.launch(
        "total",
        [rows, one, one],
        [["pointer", scratch], ["pointer", bcount], ["pointer", bout], ["i32", p.const(15000)]],
        (32, 1, 1),
        p.const(60000),
    )
    return p


def chunks():
    """y = x + 1000 * (first row of its chunk of 4)."""
    p = Plan("chunks")
    x = p.tensor("x", "i32", [None, 5], "contiguous", 4)
    n, four, one, five = p.value("dim", x, 0), p.const(4), p.const(1), p.const(5)
    count, bytes_of_row = p.value("ceildiv", n, four), p.const(20)
    bx = p.buffer(x)
    by = p.own(p.result("y", "i32", [n, five], "contiguous", 4))
    begin = len(p.lists["values"])
    row = p.value("mul", p.value("index", 0), four)
    rows = p.value("min", p.value("sub", n, row), four)
    offset = p.value("mul", row, bytes_of_row)
    views = [p.view(b, offset, "i32", [rows, five], [five, one]) for b in (bx, by)]
    p.lists["repeats"] = [{"count": count, "values": [begin, len(p.lists["values"])], "launches": [0, 1]}]
    p.launch(
        "copy", [rows, one, one], [["pointer", views[0]], ["pointer", views[1]], ["i32", rows], ["i64", row]], (5, 1, 1)
    )
    return p


def scalars():
    """Each kind of parameter, written out as f64."""
    p = Plan("scalars")
    kinds = ("i1", "i64", "i8", "i16", "i8", "i32", "i8", "f32", "f64", "f32", "f64")
    names = [p.scalar(f"a{i}", kind) for i, kind in enumerate(kinds[:9])]
    passed = [[kind, p.value("scalar", a) if kind[0] == "i" else {"argument": a}] for kind, a in zip(kinds, names)]
    one = p.const(1)
    out = p.own(p.result("out", "f64", [p.const(11)], "contiguous", 8))
    p.launch("scalars", [one, one, one], [["pointer", out], *passed, ["f32", 0.1], ["f64", "-inf"]], (1, 1, 1))
    return p


def slow():
    """x + 1, in place, after some cycles."""
    p = Plan("slow")
    x, cycles = p.tensor("x", "f32", [32], "contiguous", 4, access="read_write"), p.scalar("cycles", "i64")
    one = p.const(1)
    p.launch("spin", [one, one, one], [["pointer", p.buffer(x)], ["i64", p.value("scalar", cycles)]], (32, 1, 1))
    p.result("y", "f32", [p.const(32)], "contiguous", 4, 0)
    return p


def tiles():
    """A copy by tensor map, padded with zeros to whole tiles; and one of every second row."""
    p = Plan("tiles")
    x = p.tensor("x", "f32", [None, None])
    rows, columns, one, eight, sixteen = p.value("dim", x, 0), p.value("dim", x, 1), p.const(1), p.const(8), p.const(16)
    bx = p.buffer(x)
    down, across = p.value("ceildiv", rows, eight), p.value("ceildiv", columns, sixteen)
    out_rows, out_columns = p.value("mul", down, eight), p.value("mul", across, sixteen)
    four = p.const(4)
    out = p.own(p.result("out", "f32", [out_rows, out_columns], "contiguous", 16))
    every_second = p.view(
        bx,
        p.const(0),
        "f32",
        [p.value("ceildiv", rows, p.const(2)), columns],
        [p.value("mul", p.value("stride", x, 0), p.const(2)), one],
    )
    second = p.own(p.result("second", "f32", [out_rows, out_columns], "contiguous", 16))
    clusters = p.own(p.result("clusters", "i32", [four], "contiguous", 4))
    common = {"box": [8, 16], "swizzle": "none", "l2_promotion": "128b", "fill": "zero", "interleave": "none"}
    p.lists["tensormaps"] = [{"buffer": bx, **common}, {"buffer": every_second, **common}]
    for number, result in ((0, out), (1, second)):
        p.launch(
            "tma", [across, down, one], [["tensormap", number], ["pointer", result], ["i32", out_columns]], (128, 1, 1)
        )
    p.launch("cluster", [four, one, one], [["pointer", clusters]], (1, 1, 1), cluster=[2, 1, 1])
    return p


chip = "sm_%d%d" % torch.cuda.get_device_capability()
library = ssa.Bundle(
    text(axpy(), sums(), chunks(), scalars(), slow(), aliases(), chips=["sm_80"], ptx=KERNELS), "launcher"
)


def rows(n=100, width=8, device="cuda"):
    return torch.randn(n, width, device=device)


# ---------------------------------------------------------------------------------------------------------------------
# Arguments and results


@test
def J1_strides_are_honoured():
    x, y = rows(100, 32)[:, 8:16], rows(1).expand(100, 8)
    same(library.axpy(0.5, x, y), torch.addcmul(y, x, torch.tensor(0.5, device="cuda")))
    out = torch.zeros(100, 16, device="cuda")
    z = library.axpy(2.0, x, rows(), out=out[:, :8])
    assert z.data_ptr() == out.data_ptr() and not out[:, 8:].any() and out[:, :8].any()
    transposed = rows(8, 100).t().contiguous()
    same(library.axpy(1.0, transposed, transposed), transposed + transposed)


@test
def J3_innermost_strides():
    refused(
        ValueError, "argument 'x' must have stride 1 in dimension 1", library.axpy, 0.5, rows(100, 16)[:, ::2], rows()
    )


@test
def J5_alignment():
    shifted = torch.randn(804, device="cuda")[1:801].view(100, 8)
    refused(ValueError, "must be aligned to 16 bytes, but its address is", library.axpy, 0.5, shifted, rows())
    refused(ValueError, "must be aligned to 16 bytes, but its stride", library.axpy, 0.5, rows(100, 9)[:, :8], rows())


@test
def J6_types_and_memory():
    x, y = rows(), rows()
    refused(TypeError, "argument 'x' must be f32, but got f16", library.axpy, 0.5, x.half(), y)
    host = "argument 'x' must be in memory of device 0, but is in host memory"
    refused(TypeError, host, library.axpy, 0.5, x.cpu(), y)
    refused(
        TypeError,
        "argument 'x' must be i32, but got i64",
        library.chunks,
        torch.zeros(4, 5, dtype=torch.int64, device="cuda"),
    )


@test
def what_else_is_refused():
    x, y = rows(), rows()
    sizes = "dimension 0 of 'y' must be dimension 0 of 'x', but got 99 and 100"
    refused(ValueError, sizes, library.axpy, 0.5, x, y[:99])
    refused(ValueError, "result 'z' must not overlap argument 'x'", library.axpy, 0.5, x, y, out=x)
    refused(ValueError, "requires a gradient", library.axpy, 0.5, x.clone().requires_grad_(), y)
    with torch.no_grad():
        library.axpy(0.5, x.clone().requires_grad_(), y)


@test
def H1_zero_sizes():
    equal(library.axpy(0.5, rows(0), rows(0)).shape, (0, 8))
    equal([t.shape for t in library.sums(rows(0, 7))], [(0,), (0,)])
    same(library.sums(rows(7, 0))[0], torch.zeros(7, device="cuda"))
    equal(library.chunks(torch.zeros(0, 5, dtype=torch.int32, device="cuda")).shape, (0, 5))


@test
def workspace_and_large_shared_memory():
    x = torch.arange(300 * 1000, device="cuda").view(300, 1000).remainder(97).float()
    for _ in range(3):
        total, words = library.sums(x)
        same(total, x.sum(1))
        same(words, torch.full((300,), 15000, dtype=torch.int32, device="cuda"))


@test
def repeats_and_views():
    for n in (1, 4, 5, 1003):
        x = torch.arange(5 * n, dtype=torch.int32, device="cuda").view(n, 5)
        first = torch.arange(n, dtype=torch.int32, device="cuda") // 4 * 4 * 1000
        same(library.chunks(x), x + first[:, None])


@test
def every_kind_of_parameter():
    values = (1, 2**53, -128, -32768, 127, -(2**31), -1, 1.5, 0.1)
    expected = [*map(float, values[:8]), 0.1, struct.unpack("f", struct.pack("f", 0.1))[0], float("-inf")]
    equal(library.scalars(*values, out=torch.empty(11, dtype=torch.float64, device="cuda")).tolist(), expected)


@test
def results_that_are_arguments():
    x = rows(6, 4)
    same_, last, bits, own, again = library.aliases(x)
    assert same_ is x
    same(last, x[5])
    same(bits, x.view(torch.int32))
    same(own, 2 * x)
    last.zero_()
    assert not x[5].any() and again.data_ptr() == own.data_ptr()


@test
def tensor_maps_and_clusters():
    if torch.cuda.get_device_capability() < (9, 0):
        raise Skip(f"needs sm_90, but this is {chip}")
    bundle = ssa.Bundle(text(tiles(), chips=["sm_90"], ptx=(HERE / "Inputs/tensor-maps.ptx").read_text()), "tiles")
    for x in (rows(16, 32), rows(13, 24), rows(40, 64)[:, 16:48]):
        n, m = x.shape
        for _ in range(2):
            out, second, clusters = bundle.tiles(x)
            expected = torch.zeros_like(out)
            expected[:n, :m] = x
            same(out, expected)
            expected.zero_()
            expected[: -(-n // 2), :m] = x[::2]
            same(second, expected)
            equal(clusters.tolist(), [2, 2, 2, 2])


# ---------------------------------------------------------------------------------------------------------------------
# Streams, graphs, devices, threads


@test
def N1_the_callers_stream():
    """A slow producer on a side stream; results are there once that stream is done, without a word to the default
    stream."""
    x, y = torch.zeros(32, device="cuda"), torch.zeros(4, 8, device="cuda")
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        library.slow(x, 200_000_000)
        z = library.axpy(1.0, x.view(4, 8), y)
    assert not side.query(), "the call waited for the device"
    side.synchronize()
    same(z, torch.ones(4, 8, device="cuda"))
    z = library.axpy(1.0, x.view(4, 8), y, stream=side)
    side.synchronize()
    same(z, torch.ones(4, 8, device="cuda"))


@test
def N10_nothing_is_waited_for():
    """torch's own check finds no synchronisation, and the driver is asked for no memory beside torch's pool."""
    x, y = rows(), rows()
    library.axpy(0.5, x, y), library.sums(x)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(5):
            library.axpy(0.5, x, y), library.sums(x)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated(), torch.cuda.mem_get_info()[0]
    for _ in range(50):
        library.sums(x)
    torch.cuda.synchronize()
    equal((torch.cuda.memory_allocated(), torch.cuda.mem_get_info()[0]), before)


def capture(call):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = call()
    return graph, results


@test
def N10_graphs_of_warm_functions():
    x, y = rows(), rows()
    library.axpy(0.5, x, y), library.sums(x)
    graph, (z, (total, _)) = capture(lambda: (z := library.axpy(0.5, x, y), library.sums(z)))
    for _ in range(20):
        x.copy_(torch.randint(-50, 50, x.shape, device="cuda"))
        y.copy_(torch.randint(-50, 50, y.shape, device="cuda"))
        graph.replay()
        same(z, 0.5 * x + y)
        same(total, z.sum(1))


@test
def graphs_of_cold_functions():
    """Code may be loaded while a graph is captured."""
    cold = ssa.Bundle(text(sums(), chips=["sm_80"], ptx=KERNELS + "\n// cold\n"), "cold")
    x = torch.ones(10, 64, device="cuda")
    graph, (total, _) = capture(lambda: cold.sums(x))
    x.fill_(2)
    graph.replay()
    same(total, torch.full((10,), 128.0, device="cuda"))


@test
def N4_the_tensors_device():
    if torch.cuda.device_count() < 2:
        raise Skip("needs 2 GPUs")
    x, y = rows(device="cuda:1"), rows(device="cuda:1")
    equal(torch.cuda.current_device(), 0)
    z = library.axpy(0.5, x, y)
    equal((z.device.index, torch.cuda.current_device()), (1, 0))
    same(z, 0.5 * x + y)
    refused(ValueError, "argument 'y' must be in memory of device 0, but is on device 1", library.axpy, 0.5, rows(), y)


@test
def threads_with_streams_of_their_own():
    failures = []
    fresh = ssa.Bundle(text(axpy(), sums(), chips=["sm_80"], ptx=KERNELS), "threads")

    def work(number):
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                for i in range(200):
                    x = torch.full((1 + i % 7, 8), float(number), device="cuda")
                    z = fresh.axpy(2.0, x, x)
                    total, _ = fresh.sums(z)
                    if i % 20 == 0:
                        same(total, torch.full((1 + i % 7,), 24.0 * number, device="cuda"))
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    equal(failures, [])


# ---------------------------------------------------------------------------------------------------------------------
# Other libraries, drivers


@test
def arrays_without_torch():
    x, y = rows(), rows()

    class Interface:
        def __init__(self, tensor):
            self.__cuda_array_interface__ = tensor.__cuda_array_interface__

    class Packed:
        def __init__(self, tensor):
            self.__dlpack__, self.__dlpack_device__ = tensor.__dlpack__, tensor.__dlpack_device__

    raw = [ssa.RawTensor(t.data_ptr(), t.shape, "float32") for t in (x, y)]
    for arguments in ((Interface(x), Interface(y)), (Packed(x), Packed(y)), raw):
        z = library.axpy(0.5, *arguments)
        assert isinstance(z, ssa.DeviceArray)
        same(torch.from_dlpack(z), 0.5 * x + y)
        same(torch.as_tensor(z, device="cuda"), 0.5 * x + y)
    pooled = library.sums(ssa.RawTensor(x.data_ptr(), x.shape, "f32"))[0]
    torch.testing.assert_close(torch.from_dlpack(pooled), x.sum(1))
    out = torch.empty(100, 8, device="cuda")
    library.axpy(0.5, *raw, out=ssa.RawTensor(out.data_ptr(), out.shape, "f32"))
    same(out, 0.5 * x + y)
    refused(
        TypeError,
        "must be in memory of a GPU, but is in host memory",
        library.axpy,
        0.5,
        x.cpu().numpy(),
        y.cpu().numpy(),
    )


@test
def N9_ptx_that_is_too_new():
    x, y = rows(), rows()
    too_new = ssa.Bundle(text(axpy(), chips=["sm_80"], ptx=KERNELS.replace(".version 7.8", ".version 99.9")), "too-new")
    refused(
        ssa.DriverError,
        "'too-new': the code for sm_80 is PTX 99.9, which the CUDA driver (version",
        too_new.axpy,
        0.5,
        x,
        y,
    )
    wrong = ssa.Bundle(text(axpy(), chips=["sm_80"], ptx=KERNELS.replace("ret;", "retreat;")), "wrong")
    refused(ssa.DriverError, "retreat", wrong.axpy, 0.5, x, y)
    other = ssa.Bundle(text(axpy(), chips=["sm_80"], ptx=KERNELS.replace(".entry axpy(", ".entry axqy(")), "other")
    refused(
        ssa.DriverError,
        "axpy: cannot find kernel 'axpy' in the code for sm_80: CUDA_ERROR_NOT_FOUND",
        other.axpy,
        0.5,
        x,
        y,
    )
    for newer in ("sm_80a", "sm_130"):
        refused(
            ssa.BundleError,
            f"'newer' has code for {newer}, but device 0",
            ssa.Bundle(text(axpy(), chips=[newer]), "newer").load,
        )
    same(library.axpy(0.5, x, y), 0.5 * x + y)


@test
def time_of_a_call():
    """Printed, not judged: what the host spends on a call, in microseconds."""
    x, y, z = rows(), rows(), rows()

    def spent(call, count=2000):
        call(0)
        torch.cuda.synchronize()
        start = time.perf_counter()
        for i in range(count):
            call(i)
        took = (time.perf_counter() - start) / count * 1e6
        torch.cuda.synchronize()
        return took

    a = torch.tensor(0.5, device="cuda")
    many = [(rows(n), rows(n)) for n in range(200, 700)]
    figures = {
        "same sizes": spent(lambda i: library.axpy(0.5, x, y)),
        "out=": spent(lambda i: library.axpy(0.5, x, y, out=z)),
        "two launches, workspace": spent(lambda i: library.sums(x)),
        "new sizes": spent(lambda i: library.axpy(0.5, *many[i]), 500),
        "torch.addcmul": spent(lambda i: torch.addcmul(y, x, a)),
    }
    print("     us: " + ", ".join(f"{name} {figure:.1f}" for name, figure in figures.items()))
    assert all(figure > 0 for figure in figures.values())


def main():
    words, counts = sys.argv[1:], {"passed": 0, "failed": 0, "skipped": 0}
    major, minor = torch.cuda.get_device_capability()
    print(
        f"{torch.cuda.get_device_name()} (sm_{major}{minor}), torch {torch.__version__}, "
        f"Python {sys.version.split()[0]}, CUDA driver "
        f"{ssa._driver.get_driver().version_text}"
    )
    for function in TESTS:
        if words and not any(word in function.__name__ for word in words):
            continue
        try:
            function()
            torch.cuda.synchronize()
            outcome = "passed"
            print(f"ok   {function.__name__}", flush=True)
        except Skip as reason:
            outcome = "skipped"
            print(f"skip {function.__name__}: {reason}", flush=True)
        except Exception as error:  # noqa: BLE001
            outcome = "failed"
            line = next((f.tb_lineno for f in _frames(error) if f.tb_frame.f_code.co_name == function.__name__), 0)
            print(f"FAIL {function.__name__} (line {line}): {type(error).__name__}: {error}", flush=True)
        counts[outcome] += 1
    print(
        f"{counts['passed']} passed, {counts['failed']} failed"
        + (f", {counts['skipped']} skipped" if counts["skipped"] else "")
    )
    sys.exit(bool(counts["failed"]) or not counts["passed"])


def _frames(error):
    frame = error.__traceback__
    while frame:
        yield frame
        frame = frame.tb_next


main()
