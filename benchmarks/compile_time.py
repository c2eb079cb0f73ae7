# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long a pattern takes to become PTX, in one process on one core. Needs no GPU."""

import pathlib
import resource
import shutil
import statistics
import subprocess

EXAMPLE = pathlib.Path(__file__).resolve().parent.parent / "examples/nsa.mlir"
# The pattern alone: the example's second function is its selection once more, by itself.
PATTERN = EXAMPLE.read_text().split("\n// The selected blocks of every query")[0]
COMMAND = ["ssa-opt", "-", "--emit=ptx", "--chip=sm_90a", "--mlir-disable-threading"]


def cpu_ms():
    """CPU time of one run, the start of the process included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*COMMAND, "-o", "/dev/null"], input=PATTERN, text=True, check=True, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def measure(row, count):
    """As measure of compare.py."""
    result = {"name": row.name, "title": row.title, "kind": row.kind, "tokens": row.tokens, "flop": 0, "bytes": 0, "floor_ms": 0,
              "ms": {}, "rested": {}, "spread": {}, "runs": {}, "missing": {}}
    if not shutil.which("ssa-opt"):
        result["missing"]["ssa"] = "not installed: ssa-opt"
        return result
    runs = [cpu_ms() for _ in range(count)]
    low, middle, high = statistics.quantiles(runs, n=4)
    return result | {"ms": {"ssa": middle}, "spread": {"ssa": (high - low) / 2 / middle}, "runs": {"ssa": runs}}
