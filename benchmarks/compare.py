#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times our kernels and those of others on the same tensors, in one process, in turns.

    python3 benchmarks/compare.py [ROW ..] [--tokens 131072,32768] [--with ssa,flex] [--json FILE] [--plots FOLDER]
    python3 benchmarks/compare.py --list
    python3 benchmarks/compare.py --results FILE .. [--plots FOLDER]

Needs torch and a GPU; but for --list, which names the rows, and --results, which prints the table of what was measured before. Compiles attend.mlir,
select.mlir and methods.mlir where the compiler is installed; --bundles FOLDER has them compiled, as attend.json, select.json and methods.json:

    ssa-opt benchmarks/attend.mlir --emit=bundle --chip=sm_90a -o FOLDER/attend.json

A ROW is a name, or a part of some. Every implementation is checked against float64 on some rows before it is timed; one that is not installed, fails,
is wrong or takes longer than --limit is reported, and does not stop the others. A line has the median of the runs back to back, half the distance of
the quartiles, the median of runs with a rest before each, the rate of useful work, and what that work takes at the rates that an H200 reaches
(810 TFLOP/s, 4.3 TB/s). At the end comes a table of the rows for which there is a target.
"""

import argparse
import json
import pathlib
import sys

from rows import ALL_ROWS, find_rows, make_table

HERE = pathlib.Path(__file__).resolve().parent
# What one H200 reaches: products of bf16, and copies.
MATRIX_RATE, COPY_RATE = 810e12, 4.3e12


class Bundles:
    """The kernels of a file of patterns by its name: from a folder, or compiled now."""

    def __init__(self, folder):
        self.folder, self.loaded = folder, {}

    def __getitem__(self, name):
        import ssa

        if name not in self.loaded:
            text = (HERE / f"{name}.mlir").read_text()
            self.loaded[name] = ssa.load(self.folder / f"{name}.json") if self.folder else ssa.compile(text, name=f"{name}.mlir")
        return self.loaded[name]


def say(text):
    print(text, file=sys.stderr, flush=True)


def get_runs(prepared, wanted, limit):
    """Implementations that run and are right, and why others are not there."""
    import torch
    from timing import time_once

    runs, missing = {}, {}
    for name, make in (prepared.implementations | prepared.dense).items():
        if wanted and not any(name == w or name.startswith(w + ",") for w in wanted):
            continue
        try:
            run = make()
            error = prepared.check(run()) if name not in prepared.dense else 0
            torch.cuda.synchronize()
            ms = time_once(run)
        except ImportError as problem:
            missing[name] = f"not installed: {problem}"
        except Exception as problem:  # noqa: BLE001: one peer does not stop the rest
            missing[name] = f"{type(problem).__name__}: {str(problem).splitlines()[0] if str(problem) else ''}"
            torch.cuda.empty_cache()
        else:
            if error > 1 or error != error:
                missing[name] = f"wrong: {error:.3g} times the bound"
            elif ms > 1e3 * limit:
                missing[name] = f"left out: a run takes {ms / 1e3:.1f} s"
            else:
                runs[name] = run
    return runs, missing


def measure(row, options, bundles):
    if row.kind == "compile":
        import compile_time

        return compile_time.measure(row, options.count)
    import cases_attend
    import cases_method
    import cases_select
    from timing import rested_ms, time_alternating

    prepared = (cases_attend.CASES | cases_select.CASES | cases_method.CASES)[row.name](bundles, row.tokens)
    runs, missing = get_runs(prepared, options.only, options.limit)
    times, failed = time_alternating(runs, options.count)
    missing |= {name: f"{type(error).__name__}: {error}" for name, error in failed.items()}
    return {
        "name": row.name, "title": row.title, "kind": row.kind, "tokens": row.tokens, "flop": prepared.flop, "bytes": prepared.moved,
        "floor_ms": max(prepared.flop / MATRIX_RATE, prepared.moved / COPY_RATE) * 1e3, **prepared.notes,
        "ms": {name: t.median for name, t in times.items()}, "rested": {name: rested_ms(runs[name]) for name in times},
        "spread": {name: t.spread for name, t in times.items()}, "runs": {name: t.runs for name, t in times.items()}, "missing": missing,
    }


def print_result(result):
    notes = f"  neighbouring lists share {result['agreement']:.0%}" if "agreement" in result else ""
    if result.get("cores"):
        notes += f"  {result['cores']} core{'s' if result['cores'] > 1 else ''}"
    floor = f": floor {result['floor_ms']:.3f} ms" if result["floor_ms"] else ""
    print(f"\n{result['name']}, {result['title']}{floor}{notes}")
    best = min(result["ms"].values(), default=0)
    for name, ms in sorted(result["ms"].items(), key=lambda pair: pair[1]):
        rested = f"{result['rested'][name]:10.3f} rested" if name in result["rested"] else ""
        rate = f"{result['flop'] / ms / 1e9:8.0f} TFLOP/s" if result["flop"] else f"{result['bytes'] / ms / 1e9:8.2f} TB/s   "
        share = f"{rate}  {result['floor_ms'] / ms:6.1%} of the roof" if result["floor_ms"] else ""
        print(f"  {name:21} {ms:10.3f} ms  +- {result['spread'][name]:5.1%} {rested} {share}  {ms / best:6.2f} x")
    for name, reason in result["missing"].items():
        print(f"  {name:21} {'-':>10}     {reason[:150]}")
    sys.stdout.flush()


def measure_all(options):
    """Results of the rows that could be measured."""
    found = find_rows(options.rows, [int(n) for n in options.tokens.split(",")] if options.tokens else ())
    if not found:
        sys.exit(f"compare.py: error: no row has {' or '.join(options.rows)} in its name; --list names them")
    if any(row.kind != "compile" for row in found):
        import torch

        if not torch.cuda.is_available():
            sys.exit("compare.py: error: there is no GPU that torch can use")
        sys.path.insert(0, str(HERE.parent / "python"))
        print(f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}, medians of {options.count}, 64/4 heads of 128, causal, bf16, where nothing else is said")
    results, bundles = [], Bundles(options.bundles)
    for number, row in enumerate(found):
        say(f"[{number + 1}/{len(found)}] {row.name}")
        try:
            results.append(measure(row, options, bundles))
            print_result(results[-1])
        except Exception as problem:  # noqa: BLE001: one row does not stop the rest
            say(f"{row.name} failed: {type(problem).__name__}: {problem}")
        if options.json:
            options.json.write_text(json.dumps({"results": results}, indent=1))
        if "torch" in sys.modules:
            sys.modules["torch"].cuda.empty_cache()
    return results


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW")
    parser.add_argument("--list", action="store_true", help="name the rows")
    parser.add_argument("--results", nargs="+", type=pathlib.Path, metavar="FILE", help="the table of these files, of which later ones count")
    parser.add_argument("--tokens", help="numbers of tokens in place of the rows' own, multiples of 2048")
    parser.add_argument("--count", type=int, default=10, help="runs of which the median counts (default 10)")
    parser.add_argument("--limit", type=float, default=2, help="seconds that a run may take (default 2)")
    parser.add_argument("--with", dest="only", type=lambda text: text.split(","), help="only these implementations, such as ssa,triton")
    parser.add_argument("--bundles", type=pathlib.Path, help="a folder with attend.json, select.json and methods.json")
    parser.add_argument("--json", type=pathlib.Path, help="write all that was measured there")
    parser.add_argument("--plots", type=pathlib.Path, help="draw into this folder")
    options = parser.parse_args()
    if options.count < 10:
        parser.error("--count must be at least 10")
    return options


def main():
    options = parse()
    if options.list:
        for row in ALL_ROWS:
            print(f"{row.name:23} {row.title:58} {f'{row.target:g} {row.unit}' if row.target else ''}".rstrip())
        return
    if options.results:
        found = [r for path in options.results for r in json.loads(path.read_text())["results"]]
        results = list({(r["name"], r["tokens"]): r for r in found}.values())
    else:
        results = measure_all(options)
    print("\n" + "\n".join(make_table({(r["name"], r["tokens"]): r for r in results})))
    if options.plots:
        import plots

        for path in plots.draw(results, options.plots):
            say(f"drawn: {path}")


if __name__ == "__main__":
    main()
