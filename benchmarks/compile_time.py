# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long a pattern takes to become PTX, in one process: on one core, and on all that there are. Needs no GPU."""

import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import time

EXAMPLE = pathlib.Path(__file__).resolve().parent.parent / "examples/nsa.mlir"
# The pattern alone: the example's second function is its selection once more, by itself.
PATTERN = EXAMPLE.read_text().split("\n// The selected blocks of every query")[0]
PARALLEL = ["ssa-opt", "-", "--emit=ptx", "--chip=sm_90a"]
COMMAND = [*PARALLEL, "--mlir-disable-threading"]


def run(command):
    """CPU and wall time of one run in milliseconds, the start of the process included."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([*command, "-o", "/dev/null"], input=PATTERN, text=True, check=True, stderr=subprocess.DEVNULL)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"cpu": 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime), "wall": 1e3 * wall}


def measure(row, count):
    """As measure of compare.py. CPU time is that of one thread, wall time that with all cores, of which the result says how many."""
    on_all_cores = row.name == "compile-wall"
    result = {"name": row.name, "title": row.title, "kind": row.kind, "tokens": row.tokens, "flop": 0, "bytes": 0, "floor_ms": 0,
              "ms": {}, "rested": {}, "spread": {}, "runs": {}, "missing": {}, "cores": len(os.sched_getaffinity(0)) if on_all_cores else 1}
    if not shutil.which("ssa-opt"):
        result["missing"]["ssa"] = "not installed: ssa-opt"
        return result
    runs = [run(PARALLEL)["wall"] if on_all_cores else run(COMMAND)["cpu"] for _ in range(count)]
    low, middle, high = statistics.quantiles(runs, n=4)
    return result | {"ms": {"ssa": middle}, "spread": {"ssa": (high - low) / 2 / middle}, "runs": {"ssa": runs}}
