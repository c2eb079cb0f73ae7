# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long a pattern takes to become PTX, in one process: on one core, and on all that there are. Needs no GPU."""

import os
import pathlib
import re
import resource
import shutil
import statistics
import subprocess

EXAMPLE = pathlib.Path(__file__).resolve().parent.parent / "examples/nsa.mlir"
# The pattern alone: the example's second function is its selection once more, by itself.
PATTERN = EXAMPLE.read_text().split("\n// The selected blocks of every query")[0]
PARALLEL = ["ssa-opt", "-", "--emit=ptx", "--chip=sm_90a"]
COMMAND = [*PARALLEL, "--mlir-disable-threading"]


def get_cpu_ms(command):
    """CPU time of one run, the start of the process included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*command, "-o", "/dev/null"], input=PATTERN, text=True, check=True, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def get_wall_ms(command):
    """Wall time from the text to PTX, without the start of the process: what a program that has the compiler in it waits for."""
    timing = subprocess.run([*command, "--mlir-timing", "-o", "/dev/null"], input=PATTERN, text=True, check=True, capture_output=True).stderr
    return 1e3 * float(re.search(r"Total Execution Time: ([0-9.]+) seconds", timing)[1])


def measure(row, count):
    """As measure of compare.py. CPU time is that of one thread, wall time that with all cores, of which the result says how many."""
    on_all_cores = row.name == "compile-wall"
    result = {"name": row.name, "title": row.title, "kind": row.kind, "tokens": row.tokens, "flop": 0, "bytes": 0, "floor_ms": 0,
              "ms": {}, "rested": {}, "spread": {}, "runs": {}, "missing": {}, "cores": len(os.sched_getaffinity(0)) if on_all_cores else 1}
    if not shutil.which("ssa-opt"):
        result["missing"]["ssa"] = "not installed: ssa-opt"
        return result
    runs = [get_wall_ms(PARALLEL) if on_all_cores else get_cpu_ms(COMMAND) for _ in range(count)]
    low, middle, high = statistics.quantiles(runs, n=4)
    return result | {"ms": {"ssa": middle}, "spread": {"ssa": (high - low) / 2 / middle}, "runs": {"ssa": runs}}
