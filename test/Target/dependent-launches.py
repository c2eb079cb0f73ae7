# RUN: %python %s %source
"""Kernels that may be launched before those before them have ended touch no memory before they have waited."""

import os
import pathlib
import re
import subprocess
import sys

ACCESS = re.compile(r"^\s*(?:@%p\d+ )?(?:ld|st|atom|red|cp|prefetch|mbarrier|wgmma|tcgen05)\b(?!\.param)")

count = 0
for name in ("nsa", "dsa"):
    text = "module attributes {ssa.dependent_launches} {\n" + (pathlib.Path(sys.argv[1]) / f"examples/{name}.mlir").read_text() + "}\n"
    text = re.sub(r"^(![\w]+ = .*)$", r"\1", text, flags=re.M)
    aliases = "".join(line + "\n" for line in text.splitlines() if re.match(r"[!#]\w+ = ", line))
    body = "\n".join(line for line in text.splitlines() if not re.match(r"[!#]\w+ = ", line))
    for chip in ("sm_90a", "sm_100a"):
        done = subprocess.run([os.environ["SSA_OPT"], "-", "--emit=ptx", f"--chip={chip}"], input=aliases + body, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        for kernel in re.split(r"^\.visible \.entry ", done.stdout, flags=re.M)[1:]:
            lines = kernel.splitlines()
            wait = next((i for i, line in enumerate(lines) if "griddepcontrol.wait" in line), None)
            first = next(i for i, line in enumerate(lines) if ACCESS.match(line))
            if wait is None or first < wait:
                sys.exit(f"{name} for {chip}: {lines[0]} has '{lines[first].strip()}' before it waits")
            count += 1
if count < 20:
    sys.exit(f"expected at least 20 kernels, but got {count}")
print(f"{count} kernels wait first")
