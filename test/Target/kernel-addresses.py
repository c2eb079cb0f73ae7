# RUN: %python %s %source
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Case I6 in the kernels of examples: no 32-bit product that may overflow is part of a global address."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1])
checked = 0
for path in sorted((ROOT / "examples").glob("*.mlir")):
    command = [os.environ.get("SSA_OPT", "ssa-opt"), str(path), "--emit=ptx", "--chip=sm_90a"]
    ptx = subprocess.run(command, capture_output=True, text=True)
    if ptx.returncode:  # no kernel yet: another test's concern
        continue
    checked += 1
    found = subprocess.run(
        [sys.executable, str(ROOT / "test/Support/ptx_addresses.py")], input=ptx.stdout, capture_output=True, text=True
    )
    if found.returncode:
        sys.exit(f"{path.name}: {found.stdout}{found.stderr}")
if not checked:
    sys.exit("no example has kernels")
