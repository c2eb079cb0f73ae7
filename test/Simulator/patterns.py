# RUN: %python %s --fast --few-blocks
"""Every kernel of every example and every form of the ops, run by the simulator with its checks and compared with the interpreter.

    patterns.py [--chips sm_90a,sm_100,sm_100a] [--sizes 1x37x67,..] [--fast] [PATTERN ..]

The patterns and what their results may differ by are those of the GPU tests (scripts/gpu_patterns.py). `--fast` runs each pattern at one
size on each chip. Patterns that have no kernels yet are told and left out. With sm_100, kernels for sm_100a are run where they use `tcgen05`: the
others are the same.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "test/Support")]

from gpu_patterns import PATTERNS
from make_gpu_tests import compile_pattern, evaluate, source_of, tool
from simulator import simulate, with_few_blocks

BOUNDS = {"bf16": 2.0**-8, "f16": 2.0**-11, "f32": 2.0**-12}
FAST = ((1, 37, 67),)
# Of these, more: lists that are full, several steps of keys, several blocks of queries, no keys beside other parts, no summaries beside keys.
MORE = {"nsa": (1, 3, 1100), "xattention": (1, 130, 260), "moba": (1, 5, 700), "msa": (1, 5, 1900), "quest": (1, 1, 600), "topk 64 within 40 blocks of 64": (1, 3, 5000),
        "stream 200 tokens, f8": (1, 37, 700), "stream 16 of 32/16 regrouped to 64, sum": (1, 50, 50), "nsa_select": (1, 20, 20), "stream 60 tokens of 24 heads, window and sink": (1, 70, 1100), "select 2048 tokens, f8": (1, 3, 2500),
        "merge in the kernel: three parts, group 3": (1, 5, 0), "mix in the kernel: three parts, group 3": (1, 5, 0), "merge in one kernel: summaries and other keys": (1, 5, 7)}


def compile_once(source, chips, path):
    """As compile_pattern, for all chips at once where that works."""
    command = [tool("ssa-opt"), "-", "--emit=bundle", f"--chip={','.join(chips)}", "-o", str(path)]
    if subprocess.run(command, input=source, text=True, capture_output=True).returncode == 0:
        return chips, {}, {}
    return compile_pattern(source, chips, path)


def compare(pattern, arrays, results, expected):
    """What is wrong with the results; '' if nothing is."""
    # What a bundle gives back are f32 files, so the type of a result is seen in its values.
    largest = "rows" in pattern.results.split() and max((float(np.abs(arrays[name][np.isfinite(arrays[name])]).max(initial=0)) for name in pattern.values.split() if name in arrays), default=0.0)
    for number, (kind, got, ref) in enumerate(zip(pattern.results.split(), results, expected)):
        if got.shape != ref.shape:
            return f"result {number} has shape {got.shape}, expected {ref.shape}"
        got, ref = got.astype(np.float64), ref.astype(np.float64)
        if kind == "list":
            wrong = got != ref
        else:
            narrow = not (got.astype(np.float32).view(np.uint32) & 0xFFFF).any()
            e = BOUNDS["bf16" if narrow else "f32"]
            size = np.abs(np.where(np.isfinite(ref), ref, 0))
            scale = largest if kind == "rows" else size.max(initial=0)
            bound = 2e-3 + 1e-3 * size if kind == "lse" else 2 * pattern.branches * e * (scale + size)
            wrong = (np.isnan(got) != np.isnan(ref)) | ((np.isinf(got) | np.isinf(ref)) & (got != ref) & ~np.isnan(got))
            with np.errstate(invalid="ignore"):
                wrong |= np.isfinite(got) & np.isfinite(ref) & (np.abs(got - ref) > bound)
        rows = wrong.reshape(-1, wrong.shape[-1]).any(axis=1) if wrong.ndim and wrong.size else np.zeros(0, bool)
        if rows.sum() > np.ceil(pattern.outliers * len(rows)):
            at = tuple(np.argwhere(wrong)[0])
            return f"result {number}: {rows.sum()} of {len(rows)} rows are wrong; at {[int(i) for i in at]} expected {ref[at]:.6g}, but got {got[at]:.6g}"
    return ""


def run_pattern(pattern, chips, sizes, few_blocks):
    """Lines to print, and whether all is right."""
    lines, good, start = [], True, time.time()
    with tempfile.TemporaryDirectory() as folder:
        bundle = pathlib.Path(folder, "bundle.json")
        source = source_of(pattern)
        compiled, missing, wrong = compile_once(source, chips, bundle)
        for chip, reason in wrong.items():
            good = False
            lines.append(f"  {chip}: compiler: {reason}")
        for chip, reason in missing.items():
            lines.append(f"  {chip}: no kernel: {reason}")
        if "sm_100" in compiled:
            texts = {target["chip"]: target["ptx"] for target in json.loads(bundle.read_text())["targets"]}
            compiled = [chip for chip in compiled if chip != "sm_100a" or "tcgen05" in texts[chip]]
        if compiled and few_blocks:
            bundle.write_text(json.dumps(with_few_blocks(json.loads(bundle.read_text()))))
        for number, size in enumerate(sizes):
            arrays = pattern.make(*size, seed=number)
            expected = evaluate(source, pattern, arrays, len(pattern.results.split()))
            for chip in compiled:
                results, problem = simulate(bundle, pattern, arrays, chip)
                problem = problem or compare(pattern, arrays, results, expected)
                if problem:
                    good = False
                    lines.append(f"  {chip} at {size}: {problem}")
    return [f"{'ok  ' if good else 'FAIL'} {pattern.name} ({time.time() - start:.1f} s)"] + lines, good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--chips", default="sm_90a,sm_100,sm_100a")
    parser.add_argument("--sizes", help="BxMxN, comma-separated; those of the pattern if left out")
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--few-blocks", action="store_true", help="two blocks that take all items")
    parser.add_argument("--examples", action="store_true", help="only those of examples/")
    options = parser.parse_intermixed_args()
    chosen = [p for p in PATTERNS if not options.patterns or p.name in options.patterns or p.entry in options.patterns]
    if options.examples:
        chosen = [p for p in chosen if p.source.endswith(".mlir")]
    if not chosen:
        sys.exit("there is no pattern of that name")

    def sizes(pattern):
        if options.sizes:
            return [tuple(map(int, size.split("x"))) for size in options.sizes.split(",")]
        if options.fast:
            return FAST + ((MORE[pattern.name],) if pattern.name in MORE else ())
        return [size for size in pattern.sizes if size[1] * size[2] <= 20000]

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for lines, good in pool.map(lambda p: run_pattern(p, options.chips.split(","), sizes(p), options.few_blocks), chosen):
            failed += not good
            print("\n".join(lines), flush=True)
    print(f"{len(chosen) - failed} of {len(chosen)} patterns are right")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
