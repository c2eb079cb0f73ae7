# RUN: %python %s %source
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Case I6 at its root: kernels of examples multiply sizes in 64 bits.

Numbers along one dimension, such as those of a block times its size, fit 32 bits; a product of two sizes or strides does not. Kernels of
topk are left out: what they multiply counts columns of one row.
"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1])


def products(text):
    """32-bit products of two values, neither of them a constant, in kernels: (kernel, line)."""
    kernel, constants = "", set()
    for line in text.splitlines():
        if started := re.search(r"gpu\.func @(\w+)", line):
            kernel, constants = started[1], set()
        if constant := re.match(r"\s*(%\w+) = (?:arith|llvm\.mlir)\.constant", line):
            constants.add(constant[1])
        found = re.match(r"\s*%\w+ = (?:arith\.muli|llvm\.mul) (%\w+), (%\w+) .*: (?:i32|vector<\w+i32>)", line)
        if kernel and found and not constants & {found[1], found[2]}:
            yield kernel, line.strip()


checked = 0
for path in sorted((ROOT / "examples").glob("*.mlir")):
    command = [os.environ.get("SSA_OPT", "ssa-opt"), str(path), "--emit=mlir", "--chip=sm_90a"]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode:  # no kernel yet: another test's concern
        continue
    checked += made.stdout.count("gpu.func @")
    wrong = [f"{path.name}: in {kernel}: {line}" for kernel, line in products(made.stdout) if "ssa_topk" not in kernel]
    if wrong:
        sys.exit("\n".join(wrong))
if not checked:
    sys.exit("no example has kernels")
# The reader of kernels finds what it looks for.
assert list(products("gpu.func @f(\n %0 = arith.muli %a, %b : i32\n %c = arith.constant 2 : i32\n %1 = arith.muli %a, %c : i32\n"
                     " %2 = arith.muli %a, %b : index\n")) == [("f", "%0 = arith.muli %a, %b : i32")]
