#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs compiled patterns on the GPU of this machine and compares with what is right. One table; exit code 0 if all is.

    python3 gpu_test.py [FOLDER] [WORD ..] [--markdown FILE] [--limit SECONDS]

FOLDER is what make_gpu_tests.py made (the folder of this script, if it is in one): bundles, expected results, and the
package. It needs Python 3.10 or later with torch and NumPy, and the driver; no compiler. With words, only patterns
whose name has one of them run.

Every case of a pattern is run
    plain      contiguous arguments, results into memory full of NaN
    strided    arguments and results that are parts of larger tensors with other strides, where the plan allows that
    whole      where there are fewer queries than keys: all queries of the sequence, of which the last ones are compared
    alone      where there are several sequences: each by itself gives the same bits as in the batch
and one case of a pattern 20 times, for the same bits, and in a CUDA graph. The error is the largest of |got -
expected| / bound over all results, so at most 1 is right; the bounds are those of docs/dialect.md (see
gpu_patterns.py for the kinds of results).
"""

import argparse
import dataclasses
import hashlib
import json
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]

import numpy as np  # noqa: E402
import torch  # noqa: E402

import ssa  # noqa: E402
from gpu_patterns import PATTERNS  # noqa: E402

DTYPES = {
    "bf16": torch.bfloat16,
    "f16": torch.float16,
    "f32": torch.float32,
    "f64": torch.float64,
    "i32": torch.int32,
    "i1": torch.bool,
    "f8e4m3fn": torch.float8_e4m3fn,
    "i64": torch.int64,
}
EPSILON = {"bf16": 2.0**-8, "f16": 2.0**-11, "f32": 2.0**-12}
REPEATS = 20
MOST_BYTES = 4 << 30  # of one argument of a "whole" case


class Wrong(Exception):
    pass


# ---------------------------------------------------------------------------------------------------------------------
# Comparing


@dataclasses.dataclass
class Expected:
    """One result: its shape, facts of all of it, numbers of the rows that are compared, their values as float64 or int64. Of lists that hang on
    scores the near ties, (row, number) of entries that may be there or not, and whether the number of entries may vary with them."""

    shape: tuple
    facts: np.ndarray
    rows: np.ndarray
    values: np.ndarray
    near: np.ndarray | None = None
    counts_vary: bool = False


def expected_of(folder, case, index):
    data = np.load(folder / case["file"])
    values = data[f"values{index}"]
    if values.dtype == np.uint16:
        values = (values.astype(np.uint32) << 16).view(np.float32)
    expected = Expected(
        tuple(data[f"shape{index}"]),
        data[f"facts{index}"],
        data[f"rows{index}"],
        values.astype(np.float64 if values.dtype.kind == "f" else np.int64),
    )
    if f"near{index}" in data:
        expected.near, expected.counts_vary = data[f"near{index}"], bool(data[f"counts_vary{index}"])
    return expected


def rows_of(result, rows, width):
    flat = result.reshape(-1, width)
    return flat[torch.from_numpy(rows).to(result.device)].cpu()


def check_facts(what, result, expected):
    """Of all elements, also those that are not compared one by one: how many are NaN, inf and -inf; their sum, of
    integers."""
    if result.dtype.is_floating_point:
        counts = [result.isnan().sum(), (result == float("inf")).sum(), (result == float("-inf")).sum()]
        got = [*map(int, counts), 0]
    else:
        got = [0, 0, 0, int(result.to(torch.int64).sum())]
    if got != list(expected):
        names = ("NaN", "inf", "-inf", "sum")
        differing = "; ".join(
            f"{name}: expected {e}, but got {g}" for name, e, g in zip(names, expected, got) if e != g
        )
        raise Wrong(f"{what}: in all elements, {differing}")


def bound_of(kind, expected, dtype, largest):
    magnitude = np.where(np.isfinite(expected), np.abs(expected), 0)
    if kind == "lse":
        return 2e-3 + 1e-3 * magnitude
    if kind == "scores":
        return EPSILON[dtype] * (magnitude.max(initial=0) + magnitude)
    return EPSILON[dtype] * (largest + magnitude)


def compare_lists(what, got, expected):
    """Lists of ascending numbers, padded with -1: the same but for entries at near ties. Returns how many rows differ."""
    near = {}
    for row, number in expected.near.tolist():
        near.setdefault(row, set()).add(number)
    differing = np.flatnonzero((got != expected.values).any(axis=1))
    for row in differing:
        mine, right = got[row], expected.values[row]
        entries = mine[mine >= 0]
        odd = (set(entries.tolist()) ^ set(right[right >= 0].tolist())) - near.get(row, set())
        ordered = (np.diff(entries) > 0).all() and (mine[len(entries) :] == -1).all()
        if odd or not ordered or (not expected.counts_vary and len(entries) != (right >= 0).sum()):
            raise Wrong(f"{what}: row {row}: expected {right}, but got {mine}; not near ties: {sorted(odd)[:8]}")
    return len(differing)


def compare(what, got, kind, dtype, expected, largest, outliers):
    """The largest error in units of the bound. Raises Wrong if more rows than `outliers` says are beyond it."""
    got = got.to(torch.float64).numpy() if got.dtype.is_floating_point else got.to(torch.int64).numpy()
    if kind == "list":
        excess = np.where(got == expected, 0.0, np.inf)
    else:
        special = (np.isnan(got) != np.isnan(expected)) | (
            (np.isinf(got) | np.isinf(expected)) & (got != expected) & ~np.isnan(got)
        )
        with np.errstate(invalid="ignore"):
            difference = np.where(np.isfinite(got) & np.isfinite(expected), np.abs(got - expected), 0)
            excess = np.where(
                special, np.inf, difference / np.maximum(bound_of(kind, expected, dtype, largest), 1e-300)
            )
    bad_rows = (excess > 1).any(axis=1)
    allowed = int(np.ceil(outliers * len(bad_rows))) if outliers else 0
    if bad_rows.sum() > allowed:
        row, column = np.argwhere(excess > 1)[0]
        raise Wrong(
            f"{what}: {bad_rows.sum()} of {len(bad_rows)} rows are wrong; row {row}, column {column}: expected "
            f"{expected[row, column]:.6g}, but got {got[row, column]:.6g}"
        )
    return float(excess[~bad_rows].max(initial=0)), int(bad_rows.sum())


# ---------------------------------------------------------------------------------------------------------------------
# Memory


def embed(tensor, free):
    """The same values in a larger tensor with other strides: heads and tokens exchanged, gaps of 32 elements, values
    around it that must not be read. `free` says which dimensions may have any stride."""
    if tensor.dim() < 2 or not all(free[:-1]) or 0 in tensor.shape:
        return tensor
    order = [0, 2, 1, *range(3, tensor.dim())] if tensor.dim() >= 4 else [*range(tensor.dim())]
    inner = tensor.permute(order)
    shape = list(inner.shape)
    shape[-1] += 32 - shape[-1] % 32 if shape[-1] % 32 else 32
    shape[0] += 1
    big = torch.empty(shape, dtype=tensor.dtype, device=tensor.device)
    poison(big)
    view = big[: inner.shape[0], ..., : inner.shape[-1]]
    view.copy_(inner)
    return view.permute(order)  # its own inverse


def poison(tensor):
    """Bytes that are NaN in every floating point format, -1 in every integer one."""
    tensor.view(torch.uint8).fill_(0xFF) if tensor.dtype != torch.bool else tensor.fill_(True)


def aligned(tensor, specification):
    """Whether a launcher takes the strides."""
    size = tensor.element_size()
    return all(
        stride * size % specification["alignment"] == 0
        for stride, n in zip(tensor.stride()[:-1], tensor.shape[:-1])
        if n > 1
    )


class Runner:
    """One pattern with its bundle."""

    def __init__(self, pattern, row, folder):
        self.pattern, self.row, self.folder = pattern, row, folder
        text = (folder / row["bundle"]).read_text()
        self.function = ssa.Bundle(text, row["bundle"])[row["entry"]]
        plan = next(p for p in json.loads(text)["targets"][0]["entries"] if p["entry"] == row["entry"])
        self.arguments, self.results = plan["arguments"], plan["results"]
        self.kinds = pattern.results.split()
        self.error, self.rows_off = 0.0, 0

    def tensors(self, arrays):
        """On the device, in the types of the arguments."""
        return [
            torch.from_numpy(np.ascontiguousarray(x)).cuda().to(DTYPES[a["dtype"]])
            for x, a in zip(arrays.values(), self.arguments)
        ]

    def largest(self, arrays):
        names = [name for name in self.pattern.values.split() if name in arrays]
        most = max((np.abs(arrays[name][np.isfinite(arrays[name])]).max(initial=0) for name in names), default=0.0)
        return self.pattern.branches * most

    def call(self, tensors, strided=False):
        """Results in memory full of NaN; with `strided` inside of larger tensors."""
        shapes = [result.shape for result in self._tuple(self.function(*tensors))]
        out = []
        for shape, result in zip(shapes, self.results):
            tensor = torch.empty(shape, dtype=DTYPES[result["dtype"]], device="cuda")
            poison(tensor)
            if strided and result["strides"] == "any":
                embedded = embed(tensor, [True] * tensor.dim())
                tensor = embedded if aligned(embedded, result) else tensor
            out.append(tensor)
        return self._tuple(self.function(*tensors, out=tuple(out)))

    @staticmethod
    def _tuple(results):
        return results if isinstance(results, tuple) else (results,)

    def check(self, what, results, case, arrays, last=None):
        """Compares with what is expected. With `last`, results have more queries, of which the last ones count."""
        largest = self.largest(arrays)
        for i, (result, kind) in enumerate(zip(results, self.kinds)):
            expected, name = expected_of(self.folder, case, i), f"{what}, result {i}"
            if last is not None:
                result = result[:, :, result.shape[2] - expected.shape[2] :]
            if tuple(result.shape) != expected.shape:
                raise Wrong(f"{name} has shape {tuple(result.shape)}, but {expected.shape} is expected")
            if not self.pattern.outliers:
                check_facts(name, result, expected.facts)
            got = rows_of(result.contiguous(), expected.rows, expected.values.shape[1])
            if expected.near is not None:
                error, off = 0.0, compare_lists(name, got.numpy(), expected)
            else:
                error, off = compare(name, got, kind, self.results[i]["dtype"], expected.values, largest, self.pattern.outliers)
            self.error, self.rows_off = max(self.error, error), self.rows_off + off

    def strided(self, tensors):
        moved = []
        for tensor, argument in zip(tensors, self.arguments):
            free = argument["strides"] != "contiguous" and [s is None for s in argument["strides"]]
            embedded = embed(tensor, free) if free else tensor
            moved.append(embedded if aligned(embedded, argument) else tensor)
        return moved

    def run_case(self, case):
        size = tuple(case["size"])
        b, m, n = size
        arrays = self.pattern.make(b, m, n, case["seed"])
        if digest(arrays) != case["inputs"]:
            raise Wrong(f"{size}: NumPy {np.__version__} makes other arguments than those the expected results are of")
        tensors = self.tensors(arrays)
        plain = self.call(tensors)
        self.check(f"{size} plain", plain, case, arrays)
        self.check(f"{size} strided", self.call(self.strided(tensors), strided=True), case, arrays)
        if b > 1:
            self.check_alone(size, tensors, plain)
        full = self.whole(tensors, size) if m < n and self.pattern.queries_vary else None
        if full:
            self.check(f"{size} whole", self.call(full), case, arrays, last=m)
        return tensors, plain

    def whole(self, tensors, size):
        """Arguments for all queries of the sequence: those of the case over and over, so that the last ones are the
        case. None where that would be too much memory."""
        m, n = size[1:]
        order = (torch.arange(n, device="cuda") - (n - m)) % m
        axes = self.pattern.query_axes()
        full = []
        for tensor, axis in zip(tensors, axes.values()):
            if axis is not None:
                if tensor.numel() * tensor.element_size() // m * n > MOST_BYTES:
                    return None
                bytes_ = tensor.view(torch.uint8) if tensor.element_size() == 1 else tensor  # f8 cannot be indexed
                tensor = bytes_.index_select(axis, order).view(tensor.dtype)
            full.append(tensor)
        return full

    def check_alone(self, size, tensors, together):
        """A sequence alone and in a batch: the same bits."""
        axes = list(self.pattern.batch_axes().values())
        for i in range(size[0]):
            alone = self.call([t if axis is None else t.narrow(axis, i, 1) for t, axis in zip(tensors, axes)])
            for number, (one, all_) in enumerate(zip(alone, together)):
                if not same_bits(one[0], all_[i]):
                    raise Wrong(f"{size} alone: result {number} of sequence {i} has other bits than in the batch")

    def check_repeats(self, tensors, first):
        for _ in range(REPEATS):
            if not all(map(same_bits, self.call(tensors), first)):
                raise Wrong(f"bits differ between runs of {[tuple(t.shape) for t in tensors]}")

    def check_graph(self, tensors, first):
        """Captured, with arguments that change in place before the replay."""
        changing = [t.clone(memory_format=torch.contiguous_format) for t in tensors]
        for t in changing:
            t.zero_() if t.dtype != torch.float8_e4m3fn else t.view(torch.uint8).zero_()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            results = self._tuple(self.function(*changing))
        for old, new in zip(changing, tensors):
            old.view(torch.uint8).copy_(new.view(torch.uint8)) if old.dtype == torch.float8_e4m3fn else old.copy_(new)
        graph.replay()
        if not all(map(same_bits, results, first)):
            raise Wrong("a CUDA graph gives other bits")

    def time(self, tensors):
        """Median of 10, in milliseconds, each with the second-level cache full of something else."""
        flush = torch.empty(64 << 20, dtype=torch.int32, device="cuda")
        events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(10)]
        for start, stop in events:
            flush.zero_()
            start.record()
            self.function(*tensors)
            stop.record()
        torch.cuda.synchronize()
        return sorted(start.elapsed_time(stop) for start, stop in events)[5]

    def run(self, deadline):
        """Runs all cases. Returns how many passed, and what went wrong."""
        passed, problems, timed = 0, [], None
        for number, case in enumerate(self.row["cases"]):
            if time.time() > deadline:
                problems.append(f"{len(self.row['cases']) - number} cases were not run: out of time")
                break
            try:
                tensors, first = self.run_case(case)
                if number == min(3, len(self.row["cases"]) - 1):
                    self.check_repeats(tensors, first)
                    self.check_graph(tensors, first)
                torch.cuda.synchronize()
                passed += 1
                if timed is None or np.prod(case["size"]) > np.prod(timed[0]):
                    timed = case["size"], tensors
            except Wrong as wrong:
                problems.append(str(wrong))
            except (ssa.DriverError, ssa.BundleError) as error:
                problems.append(f"{tuple(case['size'])}: {error}")
                break
            except (TypeError, ValueError) as error:
                problems.append(f"{tuple(case['size'])}: {type(error).__name__}: {error}")
        return passed, problems, (timed[0], self.time(timed[1])) if timed else None


def same_bits(a, b):
    a, b = a.contiguous(), b.contiguous()
    return (
        a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.view(torch.uint8), b.view(torch.uint8))
        if a.dim() and a.numel()
        else True
    )


def digest(arrays):
    state = hashlib.sha256()
    for name, x in arrays.items():
        state.update(f"{name} {x.dtype.str} {x.shape};".encode())
        state.update(np.ascontiguousarray(x).tobytes())
    return state.hexdigest()


# ---------------------------------------------------------------------------------------------------------------------
# The table


HEADINGS = ("pattern", "cases", "largest (b, m, n)", "error / bound", "rows off", "ms", "result")


def run_row(pattern, row, folder, deadline):
    """One line of the table, its state, and what is to be said below it."""
    total = len(row["cases"])
    largest = "x".join(map(str, max((c["size"] for c in row["cases"]), key=np.prod, default=())))
    if row["wrong"]:
        return (pattern.name, f"0/{total}", largest, "", "", "", "COMPILER"), "failed", list(row["wrong"].values())
    if not row["bundle"]:
        reason = next(iter(row["missing"].values()), "")
        return (pattern.name, f"0/{total}", largest, "", "", "", "no kernel yet"), "none", [reason]
    try:
        runner = Runner(pattern, row, folder)
        runner.function._bundle.load(0)
    except (ssa.BundleError, ssa.DriverError) as error:
        none = isinstance(error, ssa.BundleError) and "has code for" in str(error)
        return (
            (pattern.name, f"0/{total}", largest, "", "", "", "no kernel yet" if none else "FAILED"),
            "none" if none else "failed",
            [str(error)],
        )
    passed, problems, timed = runner.run(deadline)
    good = passed == total and not problems
    size, milliseconds = ("x".join(map(str, timed[0])), f"{timed[1]:.3f}") if timed else (largest, "")
    off = str(runner.rows_off) if pattern.outliers else ""
    line = pattern.name, f"{passed}/{total}", size, f"{runner.error:.3f}", off, milliseconds, "ok" if good else "FAILED"
    return line, "passed" if good else "failed", problems


def print_line(cells, widths):
    print(
        "  ".join(
            f"{cell:<{w}}" if i in (0, 6) else f"{cell:>{w}}" for i, (cell, w) in enumerate(zip(cells, widths))
        ).rstrip(),
        flush=True,
    )


def run_once(pattern, row, folder, most=20000):
    """The largest of a pattern's small cases, once and without comparing: for tools that watch kernels, which take long."""
    if not row["bundle"]:
        return "no kernel yet"
    runner = Runner(pattern, row, folder)
    case = max(row["cases"], key=lambda c: (np.prod(c["size"]) <= most, np.prod(c["size"]) * (1 if np.prod(c["size"]) <= most else -1)))
    b, m, n = case["size"]
    runner.function(*runner.tensors(pattern.make(b, m, n, case["seed"])))
    torch.cuda.synchronize()
    return f"ran at {b}x{m}x{n}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=HERE)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--markdown", type=pathlib.Path, help="write the table there, too")
    parser.add_argument("--limit", type=float, default=540, help="seconds after which no further case is begun (540)")
    parser.add_argument("--part", default="1/1", help="every so manieth pattern, as 2/8: for several processes at a time")
    parser.add_argument("--once", action="store_true", help="run a small case of each, without comparing, for compute-sanitizer")
    options = parser.parse_intermixed_args()
    if not (options.folder / "manifest.json").exists() and (HERE / "manifest.json").exists():
        options.words.insert(0, str(options.folder))
        options.folder = HERE
    started = time.time()
    manifest = json.loads((options.folder / "manifest.json").read_text())
    patterns = {pattern.name: pattern for pattern in PATTERNS}
    rows = [row for row in manifest["rows"] if not options.words or any(word in row["name"] for word in options.words)]
    part, parts = map(int, options.part.split("/"))
    rows = rows[part - 1 :: parts]
    if options.once:
        for row in rows:
            if time.time() < started + options.limit:
                print(f"{row['name']}: {run_once(patterns[row['name']], row, options.folder)}", flush=True)
        return 0
    device = f"{torch.cuda.get_device_name()} (sm_%d%d)" % torch.cuda.get_device_capability()
    driver = ssa._driver.get_driver().version_text
    about = f"{device}, CUDA driver {driver}, torch {torch.__version__}, {time.strftime('%Y-%m-%d')}"
    print(about)
    widths = [max([len(HEADINGS[0]), *(len(row["name"]) for row in rows)]), 5, 17, 13, 8, 8, 13]
    print_line(HEADINGS, widths)
    lines, counts, notes = [], {"passed": 0, "failed": 0, "none": 0}, []
    for row in rows:
        line, state, problems = run_row(patterns[row["name"]], row, options.folder, started + options.limit)
        counts[state] += 1
        lines.append(line)
        print_line(line, widths)
        for problem in problems[:4]:
            print(f"    {problem[:300]}", flush=True)
            notes.append(f"{row['name']}: {problem.splitlines()[0][:200]}")
        torch.cuda.empty_cache()
    print(f"{time.time() - started:.0f} s; {counts['none']} have no kernel yet")
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    if options.markdown:
        table = [HEADINGS, ("---",) * len(HEADINGS), *lines]
        text = "\n".join("| " + " | ".join(cells) + " |" for cells in table)
        options.markdown.write_text(f"{about}\n\n{text}\n\n" + "".join(f"- {note}\n" for note in notes))
    return bool(counts["failed"]) or not counts["passed"]


if __name__ == "__main__":
    sys.exit(main())
