"""Support for numeric tests: run a module, check the results against a float64 reference.

References in float64 are in `ssareference`. A test file holds functions marked `@case` and ends with `main()`:

    @case
    def keys_before_the_query():
        o, lse = run(text, "attend", [q, k, v])
        ref_o, ref_lse = attend(q, k, v, masked(M, N, causal=True))
        compare("o", o, ref_o, "f32", abs(v).max())
        compare_lse("lse", lse, ref_lse)

Environment: SSA_RUN and SSA_OPT are the paths of the tools (else they are looked up on PATH); SSA_DEVICE is the device
(default cpu).
"""

import argparse
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import traceback

import numpy as np

from ssareference import attend, masked, selected, union


class SsaError(Exception):
    """The tool refused its input: exit code 1 and a message."""


class Crash(Exception):
    """The tool died or hung: a signal, a timeout, or an exit code that is neither 0 nor 1."""


# ---------------------------------------------------------------------------------------------------------------------
# Tools


def _tool(name):
    return os.environ.get(name.upper().replace("-", "_"), name)


def _execute(command, timeout):
    """Stdout and stderr of a command that exits with 0; SsaError for exit code 1, Crash for anything else."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=timeout)
    except subprocess.TimeoutExpired as e:
        raise Crash(f"no answer after {timeout} s: {' '.join(command)}") from e
    except OSError as e:
        raise Crash(f"cannot run {command[0]}: {e.strerror}") from e
    if done.returncode == 1:
        if not done.stderr.strip():
            raise Crash("exit code 1 without a message")
        raise SsaError(done.stderr.strip())
    if done.returncode:
        raise Crash(f"exit code {done.returncode}: {done.stderr.strip()[-2000:]}")
    return done.stdout, done.stderr


def _source(mlir, folder):
    """The path of a module given as a path or as text."""
    if isinstance(mlir, pathlib.Path):
        return str(mlir)
    path = pathlib.Path(folder, "in.mlir")
    path.write_text(mlir)
    return str(path)


def _split(text):
    """The comma-separated parts of `text`, not counting commas inside brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "<([{") - (c in ">)]}" and text[i - 1 : i + 1] != "->")
        if c == "," and not depth:
            parts.append(text[start:i])
            start = i + 1
    return [p.strip() for p in parts + [text[start:]] if p.strip()]


def _closing(text, start):
    """The position of the bracket that closes the one at `start`."""
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] in "([{<") - (text[i] in ")]}>" and text[i - 1 : i + 1] != "->")
        if not depth:
            return i
    raise ValueError("unbalanced brackets")


def num_results(text, entry):
    """How many results the function `entry` of a module has."""
    text = re.sub(r"//[^\n]*", "", text)
    head = re.search(r"func\.func\s+(?:public\s+|private\s+)?@" + re.escape(entry) + r"\s*\(", text)
    if not head:
        raise ValueError(f"no function @{entry}")
    rest = text[_closing(text, head.end() - 1) + 1 :].lstrip()
    if not rest.startswith("->"):
        return 0
    rest = rest[2:].lstrip()
    return len(_split(rest[1 : _closing(rest, 0)])) if rest.startswith("(") else 1


def _narrow(x):
    """An array as the tools read it: f32 or i32."""
    if x.dtype.kind in "iu":
        if x.size and (x.max() > 2**31 - 1 or x.min() < -(2**31)):
            raise ValueError("an index does not fit i32")
        return np.ascontiguousarray(x, np.int32).reshape(x.shape)
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(x, np.float32).reshape(x.shape)


def run(mlir, entry, inputs, device=None, convert=True, timeout=120):
    """Results of the function `entry` of a module (text or a pathlib.Path) as a list of arrays.

    Floats go in as f32 and are rounded by the tool to the type of the argument, integers as i32, scalars as rank 0;
    without `convert` arrays go in as they are. Raises SsaError with the text of the message when the tool refuses, Crash
    when it dies.
    """
    with tempfile.TemporaryDirectory() as folder:
        source = _source(mlir, folder)
        names = []
        for i, x in enumerate(inputs):
            names.append(os.path.join(folder, f"in{i}.npy"))
            np.save(names[-1], _narrow(np.asarray(x)) if convert else x)
        outs = [os.path.join(folder, f"out{i}.npy") for i in range(num_results(pathlib.Path(source).read_text(), entry))]
        command = [_tool("ssa-run"), source, f"--entry={entry}", f"--device={device or os.environ.get('SSA_DEVICE', 'cpu')}"]
        command += ["--in", ",".join(names)] if names else []
        command += ["--out", ",".join(outs)] if outs else []
        _execute(command, timeout)
        return [np.load(o) for o in outs]


def check_verifier(mlir, timeout=60):
    """The message with which the verifier or the parser refuses a module; '' when it is accepted."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            _execute([_tool("ssa-opt"), _source(mlir, folder)], timeout)
        except SsaError as e:
            return str(e)
    return ""


# ---------------------------------------------------------------------------------------------------------------------
# Numbers

# Mantissa bits, smallest normal exponent, largest finite value, and the relative bound of an output.
_FORMATS = {
    "f32": (23, -126, (2 - 2.0**-23) * 2.0**127, 2.0**-12),
    "bf16": (7, -126, (2 - 2.0**-7) * 2.0**127, 2.0**-8),
    "f16": (10, -14, 65504.0, 2.0**-11),
    "f8E4M3FN": (3, -6, 448.0, None),
}


def round_to(x, fmt):
    """`x` rounded to the nearest value of a format, ties to even, as float64. f8E4M3FN saturates; NaN stays NaN."""
    bits, low, top, _ = _FORMATS[fmt]
    x = np.asarray(x, np.float64)
    exponent = np.maximum(np.frexp(np.where(np.isfinite(x), x, 0))[1] - 1, low)
    step = np.ldexp(1.0, exponent - bits)
    with np.errstate(invalid="ignore", over="ignore"):
        y = np.where(np.isfinite(x), np.rint(x / step) * step, x)
        over = np.abs(y) > top
        return np.where(over, np.copysign(top if fmt == "f8E4M3FN" else np.inf, x), y)


_checks = 0


def check(condition, message):
    """Fails with `message` unless the condition holds."""
    global _checks
    _checks += 1
    if not condition:
        raise AssertionError(message)


def _first(wrong):
    """Text of the first index at which `wrong` holds."""
    return "[" + ", ".join(str(int(i)) for i in np.argwhere(wrong)[0]) + "]"


def _compare(what, got, ref, bound):
    """Equal shapes, equal positions of NaN, equal infinities, and `|got - ref| <= bound` elsewhere."""
    got, ref = np.asarray(got, np.float64), np.asarray(ref, np.float64)
    check(got.shape == ref.shape, f"{what}: expected shape {ref.shape}, but got {got.shape}")
    special = np.isnan(got) != np.isnan(ref)
    special |= (np.isinf(got) | np.isinf(ref)) & ~(got == ref) & ~np.isnan(got)
    with np.errstate(invalid="ignore"):
        wrong = special | (np.isfinite(ref) & np.isfinite(got) & (np.abs(got - ref) > bound))
    if wrong.any():
        at = np.argwhere(wrong)[0]
        check(False, f"{what}{_first(wrong)}: expected {ref[tuple(at)]:.9g}, but got {got[tuple(at)]:.9g}"
                     f" ({wrong.sum()} of {wrong.size} differ)")


def compare(what, got, ref, fmt, vmax, dense=None):
    """A float output against its reference: `|got - ref| <= e * (vmax + |ref|)` with the `e` of its format, equal positions
    of NaN and inf. `vmax` is the largest |v|, one number or one per row. `dense`, the same result by plain f32 arithmetic,
    bounds the largest error to twice its own."""
    ref = np.asarray(ref, np.float64)
    _compare(what, got, ref, _FORMATS[fmt][3] * (np.asarray(vmax, np.float64) + np.abs(np.where(np.isfinite(ref), ref, 0))))
    if dense is not None:
        def error(x):
            finite = np.isfinite(ref) & np.isfinite(x)
            return np.abs(np.where(finite, x, 0) - np.where(finite, ref, 0)).max(initial=0)

        ulp = 2.0 ** -_FORMATS[fmt][0] * np.abs(ref[np.isfinite(ref)]).max(initial=0)
        allowed = 2 * error(round_to(dense, fmt)) + ulp
        check(error(got) <= allowed, f"{what}: expected an error of at most {allowed:.3g}, twice that of dense attention, "
                                     f"but got {error(got):.3g}")


def compare_lse(what, got, ref):
    """A log-sum-exp against its reference: `|got - ref| <= 2e-3 + 1e-3 |ref|`, equal positions of NaN and inf."""
    ref = np.asarray(ref, np.float64)
    _compare(what, got, ref, 2e-3 + 1e-3 * np.abs(np.where(np.isfinite(ref), ref, 0)))


def compare_exact(what, got, ref):
    """Equal values: integers, or floats with equal positions of NaN. `-0.0` equals `0.0`."""
    _compare(what, got, ref, 0.0)


def compare_bits(what, got, ref):
    """The same shape, the same type and the same bytes."""
    got, ref = np.asarray(got), np.asarray(ref)
    check(got.shape == ref.shape and got.dtype == ref.dtype,
          f"{what}: expected {ref.dtype} {ref.shape}, but got {got.dtype} {got.shape}")
    if got.tobytes() != ref.tobytes():
        wrong = np.ascontiguousarray(got).view(np.uint32) != np.ascontiguousarray(ref).view(np.uint32)
        check(False, f"{what}: bits differ at {_first(wrong)} ({wrong.sum()} of {wrong.size})")


def errors(message):
    """What the errors of a message say, without their places, the lines of source they quote, and notes."""
    return "\n".join(re.findall(r"error: (.*)", message))


def expect_error(call, *words):
    """Calls `call`, which must raise SsaError with an error that holds every word. Returns the message."""
    try:
        call()
    except SsaError as e:
        check(errors(str(e)), f"expected 'error:' in the message, but got: {e}")
        for w in words:
            check(str(w) in errors(str(e)), f"expected {str(w)!r} in the error, but got: {e}")
        return str(e)
    check(False, f"expected an error{' with ' + ', '.join(map(str, words)) if words else ''}, but there is none")


# ---------------------------------------------------------------------------------------------------------------------
# Modules of one function


def tensor(shape, elem="f32"):
    """The text of a tensor type; an extent of None is dynamic."""
    return f"tensor<{''.join('?x' if s is None else f'{s}x' for s in shape)}{elem}>"


def selection(shape, key_block=1, query_block=1, sorted=False):
    """The text of a selection type; an extent of None is dynamic."""
    dims = "x".join("?" if s is None else str(s) for s in shape)
    queries = f", query_block = {query_block}" if query_block != 1 else ""
    return f"!ssa.selection<{dims}, key_block = {key_block}{queries}{', sorted' if sorted else ''}>"


def _number(x):
    """A float as MLIR reads it: with a point, or as bits when it is not finite."""
    if not np.isfinite(x):
        return f"0x{np.float64(x).view(np.uint64):016X} : f64"
    mantissa, e, exponent = repr(float(x)).partition("e")
    return mantissa + ("" if "." in mantissa else ".0") + e + exponent


def attributes(mask=None, blocks=None, **others):
    """The text of a dictionary. `mask` is a dict as for `allowed`, `blocks` a size or (size, stride, offset)."""
    parts = []
    if blocks is not None:
        values = np.atleast_1d(blocks)
        parts.append("blocks = #ssa.blocks<" + ", ".join(n + str(x) for n, x in zip(("", "stride = ", "offset = "), values)) + ">")
    if mask:
        words = [k if v is True else f"{k} = {v}" for k, v in mask.items() if v is not False]
        parts.append(f"mask = #ssa.mask<{', '.join(words)}>")
    parts += [f"{k} = {_number(v) if isinstance(v, float) else v}" for k, v in others.items() if v is not None]
    return " {" + ", ".join(parts) + "}" if parts else ""


class Function:
    """A function `@main` written op by op, with the data of its arguments.

    With `dynamic` the batch and the rows (axes 0 and 2 of tensors of rank 3 and more) are dynamic.
    """

    def __init__(self, dynamic=False):
        self.dynamic, self.types, self.data, self.body = dynamic, {}, [], []

    def tensor(self, shape, elem="f32"):
        """The text of a tensor type under the function's rule on dynamic extents."""
        return tensor(self._dims(shape), elem)

    def scores(self, shape):
        """The text of the type of scores, whose number of blocks may be dynamic too."""
        return tensor([*self._dims(shape)[:3], None if self.dynamic else shape[3]])

    def selection(self, shape, *blocks):
        """The text of a selection type under the same rule."""
        return selection(self._dims(shape), *blocks)

    def _dims(self, shape):
        return [None if self.dynamic and len(shape) > 2 and i in (0, 2) else s for i, s in enumerate(shape)]

    def input(self, x, elem="f32", type=None):
        """An argument that holds the array `x`."""
        x = np.asarray(x)
        name = f"%arg{len(self.data)}"
        self.types[name] = type or (self.tensor(x.shape, elem) if x.ndim else elem)
        self.data.append(x)
        return name

    def lists(self, x, key_block=1, query_block=1, sorted=False):
        """A selection made from an argument that holds the lists `x`."""
        x = np.asarray(x)
        made = self.op(f"ssa.from_indices {self.input(x, 'i32')}", self.selection(x.shape, key_block, query_block))
        return self.op(f"ssa.sort {made}", self.selection(x.shape, key_block, query_block, True)) if sorted else made

    def indices(self, value):
        """The lists of a selection as a tensor."""
        dims = re.search(r"<([\dx?]+)", self.types[value])[1]
        return self.op(f"ssa.to_indices {value}", f"tensor<{dims}xi32>")

    def op(self, text, *types):
        """Adds an op. Its operands are the values named in `text` before a score region; returns its results."""
        operands = [self.types[v] for v in re.findall(r"%\w+", text.partition(" score (")[0])]
        names = [f"%{len(self.types) + i}" for i in range(len(types))]
        self.types.update(zip(names, types))
        self.body.append(f"{', '.join(names)} = {text} : {', '.join(operands)} -> {', '.join(types)}")
        return names[0] if len(names) == 1 else names

    def text(self, *results):
        """The module, returning the given values."""
        arguments = ", ".join(f"{v}: {t}" for v, t in self.types.items() if v.startswith("%arg"))
        types = ", ".join(self.types[r] for r in results)
        lines = [f"func.func @main({arguments}) -> ({types}) {{", *self.body, f"return {', '.join(results)} : {types}"]
        return "\n  ".join(lines) + "\n}\n"

    def run(self, *results):
        """Runs the function; the given values as a list of arrays."""
        return run(self.text(*results), "main", self.data)


# ---------------------------------------------------------------------------------------------------------------------
# Single ops


def data(*shape, seed=0, fmt="f32", low=-1.0, high=1.0):
    """Uniform numbers of a format."""
    return round_to(np.random.default_rng(seed).uniform(low, high, shape), fmt)


def run_attend(q, k, v, lists=None, key_block=1, query_block=1, sorted=False, elem="f32", out=None, dynamic=False,
               region="", **attrs):
    """`o` and `lse` of ssa.sparse_attend. `lists` is one array of lists or several; `attrs` go to `attributes`."""
    f = Function(dynamic)
    args = [f.input(x, elem) for x in (q, k, v)]
    lists = [] if lists is None else lists if isinstance(lists, (list, tuple)) else [lists]
    at = [f.lists(x, key_block, query_block, sorted) for x in lists]
    B, H, M, _ = np.shape(q)
    text = f"ssa.sparse_attend {', '.join(args)}{' at ' * bool(at)}{', '.join(at)}{attributes(**attrs)}{region}"
    return f.run(*f.op(text, f.tensor((B, H, M, np.shape(v)[3]), out or elem), f.tensor((B, H, M))))


def row_max(v, keys, B, H, M):
    """The largest finite |v| over the keys of every row, `BxHxMx1`."""
    v, group = np.abs(np.nan_to_num(v, nan=0, posinf=0, neginf=0)), H // np.shape(v)[1]
    top = np.zeros((B, H, M, 1))
    for b, h, m in np.ndindex(B, H, M):
        top[b, h, m] = v[b, h // group, keys(b, h, m)].max(initial=0)
    return top


def check_attend(what, q, k, v, lists=None, key_block=1, query_block=1, sorted=False, elem="f32", out=None, dynamic=False,
                 mask=None, scale=None):
    """Runs ssa.sparse_attend on inputs rounded to `elem` and compares with the reference. Returns `o` and `lse`."""
    q, k, v = (round_to(x, elem) for x in (q, k, v))
    B, H, M, _ = q.shape
    N = k.shape[2]
    if lists is None:
        keys = masked(M, N, **(mask or {}))
    else:
        several = lists if isinstance(lists, (list, tuple)) else [lists]
        keys = union(*(selected(x, M, N, H, key_block, query_block, **(mask or {})) for x in several))
    o, lse = run_attend(q, k, v, lists, key_block, query_block, sorted, elem, out, dynamic, mask=mask, scale=scale)
    ref_o, ref_lse = attend(q, k, v, keys, scale)
    compare_lse(f"{what}: lse", lse, ref_lse)
    compare(f"{what}: o", o, ref_o, out or elem, row_max(v, keys, B, H, M))
    return o, lse


def run_topk(s, k, N=None, M=None, key_block=1, query_block=1, within=None, within_block=None, within_queries=1,
             dynamic=False, **attrs):
    """The lists that ssa.topk makes of the scores `s`, over `N` tokens (by default as many as the scores span) and, with
    blocks of queries, `M` queries. `within` are lists of blocks of `within_block` keys for blocks of `within_queries`."""
    f = Function(dynamic)
    B, G, Mq, Nb = np.shape(s)
    scores = f.input(s, type=f.scores((B, G, Mq, Nb)))
    text = f"ssa.topk {scores} of {f.input(np.zeros((B, 1, Nb * key_block if N is None else N, 1)))}"
    if M is not None:
        text += f" for {f.input(np.zeros((B, G, M, 1)))}"
    if within is not None:
        text += f" within {f.lists(within, within_block or key_block, within_queries, True)}"
    out = f.op(text + attributes(**attrs), f.selection((B, G, Mq, k), key_block, query_block, True))
    return f.run(f.indices(out))[0]


def run_route(q, kc, G=None, N=None, M=None, elem="f32", query_block=1, k=None, key_block=1, scales=None, weights=None,
              dynamic=False, region="", **attrs):
    """Scores of ssa.route, and with `k` also the lists of ssa.topk on them. `N` tokens stand behind the rows of `kc`, `M`
    queries behind those of `q`."""
    f = Function(dynamic)
    (B, H, Mq, D), (_, Hk, Nb, _) = np.shape(q), np.shape(kc)
    text = f"ssa.route {f.input(q, elem)}, {f.input(kc, elem)}"
    tokens = "%arg1"
    if N is not None:
        tokens = f.input(np.zeros((B, Hk, N, D)), elem)
        text += f" of {tokens}"
    if M is not None:
        text += f" for {f.input(np.zeros((B, H, M, D)), elem)}"
    text += f" weights {f.input(weights)}" if weights is not None else ""
    text += f" scales {f.input(scales)}" if scales is not None else ""
    if query_block != 1:
        attrs["query_block"] = query_block
    s = f.op(text + attributes(**attrs) + region, f.scores((B, G or H, Mq, Nb)))
    if k is None:
        return f.run(s)[0]
    return f.run(s, f.indices(f.op(f"ssa.topk {s} of {tokens}", f.selection((B, G or H, Mq, k), key_block, 1, True))))


def run_merge(parts, sink_logits=None, elem="f32", out=None, dynamic=False):
    """`o` and `lse` of ssa.merge over `[(o, lse), ..]`."""
    f = Function(dynamic)
    pairs = [f"({f.input(o, elem)}, {f.input(l)})" for o, l in parts]
    sinks = f" sink_logits {f.input(sink_logits)}" if sink_logits is not None else ""
    o, lse = np.shape(parts[0][0]), np.shape(parts[0][1])
    return f.run(*f.op(f"ssa.merge {', '.join(pairs)}{sinks}", f.tensor(o, out or elem), f.tensor(lse)))


# ---------------------------------------------------------------------------------------------------------------------
# Cases

_cases = []


def case(function):
    """Marks a function as a test; its name is the name of the test."""
    _cases.append((function.__name__, function))
    return function


def _run_case(i):
    """The message with which a case fails, or None, and its time in seconds."""
    global _checks
    _checks, start, message = 0, time.time(), None
    try:
        _running[i][1]()
        if not _checks:
            message = "checked nothing"
    except Exception as e:
        line = next((f.lineno for f in reversed(traceback.extract_tb(e.__traceback__)) if f.filename != __file__), 0)
        kind = "" if isinstance(e, AssertionError) else f"{type(e).__name__}: "
        message = f"line {line}: {kind}{e}"
    return message, time.time() - start


def main(cases=None):
    """Runs a list of (name, function), by default every `@case`, on two processes. Prints one line per case and a last
    line with the counts; exits with 1 when a case failed."""
    global _running
    parser = argparse.ArgumentParser()
    parser.add_argument("filter", nargs="?", default="", help="run only the cases whose name holds this text")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="processes")
    arguments = parser.parse_args()
    _running = [c for c in (_cases if cases is None else cases) if arguments.filter in c[0]]
    failed = 0
    with multiprocessing.get_context("fork").Pool(arguments.jobs) as pool:
        for (name, _), (message, seconds) in zip(_running, pool.imap(_run_case, range(len(_running)))):
            failed += message is not None
            print(f"{'FAIL' if message else 'ok  '} {name} ({seconds:.1f} s){': ' if message else ''}{message or ''}", flush=True)
    print(f"{len(_running) - failed} passed, {failed} failed")
    sys.exit(bool(failed) or not _running)
