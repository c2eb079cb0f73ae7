#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times our kernels and those of others on the same tensors, in one process, in turns.

    python3 benchmarks/compare.py [WORD ..] [--tokens 131072,32768] [--json FILE] [--plots FOLDER]

Needs torch and a GPU. Compiles attend.mlir and select.mlir where the compiler is installed; --bundles FOLDER has them compiled, as
attend.json and select.json:

    ssa-opt benchmarks/attend.mlir --emit=bundle --chip=sm_90a -o FOLDER/attend.json

A WORD restricts the cases to those with it in their name. Every implementation is checked against float64 on some rows before it is timed; one that is
not installed, fails or is wrong is reported, and does not stop the others. A line has the median of the runs, half the distance of the quartiles,
the rate of useful work, and what that work takes at the rates that an H200 reaches (810 TFLOP/s, 4.3 TB/s).
"""

import argparse
import json
import pathlib
import sys

import torch
from timing import time_alternating

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
import cases_attend  # noqa: E402
import cases_select  # noqa: E402
import ssa  # noqa: E402
from common import DIM, HEADS, KEY_HEADS  # noqa: E402


def get_bundle(name, folder):
    """A bundle from the folder; without one compiled now."""
    if folder:
        path = folder / f"{name}.json"
        return ssa.load(path) if path.exists() else None
    return ssa.compile((HERE / f"{name}.mlir").read_text(), name=f"{name}.mlir")


def all_cases(folder, sizes):
    """Cases of the bundles that there are, for each number of tokens."""
    attend, select = get_bundle("attend", folder), get_bundle("select", folder)
    for n in sizes:
        if attend:
            yield from cases_attend.attend_cases(attend, select, n)
        if select:
            yield from cases_select.select_cases(select, n)
    if select:
        yield from cases_select.topk_cases(select)
        yield from cases_select.op_cases(select)


def say(text):
    print(text, file=sys.stderr, flush=True)


def get_runs(prepared):
    """Implementations that run and are right, and why others are not there."""
    runs, missing = {}, {}
    for name, make in prepared.implementations.items():
        try:
            run = make()
            error = prepared.check(run())
            torch.cuda.synchronize()
        except ImportError as problem:
            missing[name] = f"not installed: {problem}"
        except Exception as problem:  # noqa: BLE001: one peer does not stop the rest
            missing[name] = f"{type(problem).__name__}: {str(problem).splitlines()[0] if str(problem) else ''}"
            torch.cuda.empty_cache()
        else:
            if error <= 1:
                runs[name] = run
            else:
                missing[name] = f"wrong: {error:.3g} times the bound"
    return runs, missing


def measure(case, count):
    prepared = case.prepare()
    runs, missing = get_runs(prepared)
    times, failed = time_alternating(runs, count)
    missing |= {name: f"{type(error).__name__}: {error}" for name, error in failed.items()}
    return {
        "case": case.name + (f", {case.tokens} tokens" if case.tokens else ""), "name": case.name, "kind": case.kind, "tokens": case.tokens,
        "flop": prepared.flop, "bytes": prepared.moved, "floor_ms": prepared.floor_ms, **prepared.notes,
        "ms": {name: t.median for name, t in times.items()}, "spread": {name: t.spread for name, t in times.items()},
        "runs": {name: t.runs for name, t in times.items()}, "missing": missing,
    }


def print_result(result):
    notes = f"  neighbouring lists share {result['agreement']:.0%}" if "agreement" in result else ""
    print(f"\n{result['case']}: floor {result['floor_ms']:.3f} ms{notes}")
    best = min(result["ms"].values(), default=0)
    for name, ms in sorted(result["ms"].items(), key=lambda pair: pair[1]):
        rate = f"{result['flop'] / ms / 1e9:8.0f} TFLOP/s" if result["flop"] else f"{result['bytes'] / ms / 1e9:8.2f} TB/s   "
        print(f"  {name:18} {ms:10.3f} ms  +- {result['spread'][name]:5.1%}  {rate}  {result['floor_ms'] / ms:6.1%} of the roof  {ms / best:6.2f} x")
    for name, reason in result["missing"].items():
        print(f"  {name:18} {'-':>10}     {reason[:150]}")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--tokens", default="131072", help="numbers of tokens, multiples of 128 (default 131072)")
    parser.add_argument("--count", type=int, default=10, help="runs of which the median counts (default 10)")
    parser.add_argument("--bundles", type=pathlib.Path, help="a folder with attend.json and select.json")
    parser.add_argument("--json", type=pathlib.Path, help="write all that was measured there")
    parser.add_argument("--plots", type=pathlib.Path, help="draw into this folder")
    options = parser.parse_args()
    if options.count < 10:
        parser.error("--count must be at least 10")
    if not torch.cuda.is_available():
        sys.exit("compare.py: error: there is no GPU that torch can use")
    sizes = [int(n) for n in options.tokens.split(",")]
    found = [c for c in all_cases(options.bundles, sizes) if not options.words or any(word in c.name for word in options.words)]
    print(f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}, medians of {options.count}, {HEADS}/{KEY_HEADS} heads of {DIM}, bf16")
    results = []
    for number, case in enumerate(found):
        say(f"[{number + 1}/{len(found)}] {case.name}")
        try:
            results.append(measure(case, options.count))
            print_result(results[-1])
        except Exception as problem:  # noqa: BLE001: one case does not stop the rest
            say(f"{case.name} failed: {type(problem).__name__}: {problem}")
        torch.cuda.empty_cache()
    if options.json:
        content = {"device": torch.cuda.get_device_name(0), "torch": torch.__version__, "results": results}
        options.json.write_text(json.dumps(content, indent=1))
    if options.plots:
        import plots

        for path in plots.draw(results, options.plots):
            say(f"drawn: {path}")


if __name__ == "__main__":
    main()
