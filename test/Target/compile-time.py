# RUN: %python %s %source
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long a whole pattern takes to compile: NSA for sm_90a, 10 kernels in one process on one core.

What takes the time is what LLVM is given, so the instructions of the kernels have a budget. The time itself is printed: it depends on
the machine and on what else it does. Who needs more instructions for a reason raises the budget with it; docs/performance/compile-time.md says what they
cost.
"""

import os
import pathlib
import re
import resource
import subprocess
import sys

BUDGET = 10950  # instructions of all kernels together
RUNS = 3

sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "benchmarks"))
from compile_time import COMMAND, PATTERN

command = [os.environ.get("SSA_OPT", "ssa-opt"), *COMMAND[1:], "--mlir-timing"]


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


times = []
for _ in range(RUNS):
    before = cpu_seconds()
    made = subprocess.run(command, input=PATTERN, capture_output=True, text=True)
    times.append(cpu_seconds() - before)
    if made.returncode:
        sys.exit(f"does not compile: {made.stderr[-2000:]}")

counts, kernel = {}, None
for line in made.stdout.splitlines():
    if entry := re.match(r"\.visible \.entry (\w+)", line):
        kernel = entry[1]
    elif kernel and re.match(r"\s*(?:@!?%\w+\s+)?[a-z][a-z0-9_]*[.\w:]*\s.*;|\s*wgmma\.", line):
        counts[kernel] = counts.get(kernel, 0) + 1
total = sum(counts.values())
if len(counts) != 10 or total < 1000:
    sys.exit(f"expected instructions of 10 kernels, but found {counts}")
for name, count in sorted(counts.items(), key=lambda item: -item[1]):
    print(f"{name:24} {count:6}")
print(f"{'all':24} {total:6} of {BUDGET}")
print(f"CPU time: {min(times):.3f} s, the least of {RUNS} runs")
# The report says what dominates.
print(re.sub(r"\n{2,}", "\n", made.stderr))
for part in ("ConvertSSAToSSAGPUPass", "SSANVPTXConvertPass", "Translation to LLVM IR", "LLVM optimization", "PTX generation"):
    if part not in made.stderr:
        sys.exit(f"'--mlir-timing' does not tell of '{part}'")
if total > BUDGET:
    sys.exit(f"expected at most {BUDGET} instructions, but got {total}")
