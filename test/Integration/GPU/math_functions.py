# RUN: %python %s
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of `math` on a GPU against float64: the errors that the head of lib/Target/NVPTX/ExpandMath.cpp promises.

    python3 test/Integration/GPU/math_functions.py             with ssa-opt in build/bin or PATH (or SSA_OPT)
    python3 test/Integration/GPU/math_functions.py FILE.json   with a bundle made before by --bundle=FILE.json [--chip=sm_90a]
"""

import math
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "python"))

U = 2.0**-24
COUNT = 1 << 18

# Function: pairs of a range of arguments (with "log", spread over magnitudes and both signs) and the largest relative error in U.
FUNCTIONS = {
    "acos": [((-1, 1), 6)],
    "acosh": [((1, 20), 8), ((1.0001, 1e30, "log"), 8)],
    "asin": [((-1, 1), 6), ((1e-10, 1, "log"), 6)],
    "asinh": [((1e-6, 1e30, "log"), 8)],
    "atan": [((1e-6, 1e20, "log"), 6)],
    "atanh": [((-0.999, 0.999), 8), ((1e-6, 0.9, "log"), 8)],
    "cbrt": [((1e-30, 1e30, "log"), 6)],
    "cos": [((-0.7, 0.7), 3)],
    "cosh": [((-89, 89), 8)],
    "erf": [((-4, 4), 6), ((1e-6, 1, "log"), 6)],
    "erfc": [((-4, 9), 8)],
    "exp": [((-87, 88), 6)],
    "exp2": [((-126, 127), 6)],
    "expm1": [((-20, 88), 6), ((1e-6, 1, "log"), 6)],
    "log": [((1e-37, 1e38, "log"), 6), ((0.5, 2), 6)],
    "log10": [((1e-37, 1e38, "log"), 6), ((0.5, 2), 6)],
    "log1p": [((1e-6, 1e30, "log"), 8), ((-0.999, 1), 8)],
    "log2": [((1e-37, 1e38, "log"), 6), ((0.5, 2), 6)],
    "rsqrt": [((1e-37, 1e38, "log"), 6)],
    "sin": [((-0.7, 0.7), 3), ((1e-30, 1, "log"), 3)],
    "sinh": [((-89, 89), 8), ((1e-6, 1, "log"), 8)],
    "sqrt": [((1e-37, 1e38, "log"), 1)],
    "tan": [((-1, 1), 6)],
    "tanh": [((-10, 10), 6), ((1e-6, 1, "log"), 6)],
}
# The same with absolute errors.
ABSOLUTE = {"sin": [((-4194304, 4194304), 5)], "cos": [((-4194304, 4194304), 5)]}
EXACT = ["absf", "ceil", "floor", "round", "roundeven", "trunc"]
NEVER_NEGATIVE = {"acosh", "log", "log2", "log10", "rsqrt", "sqrt"}

KERNEL = """
func.func @NAME(%x: memref<?xf32>) -> memref<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 128 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %o = memref.alloc(%n) : memref<?xf32>
  %blocks = arith.ceildivsi %n, %threads : index
  gpu.launch_func @kernels::@NAME blocks in (%blocks, %c1, %c1) threads in (%threads, %c1, %c1) args(%x : memref<?xf32>, %o : memref<?xf32>)
  return %o : memref<?xf32>
}
"""
BODY = """
gpu.func @NAME(%x: memref<?xf32>, %o: memref<?xf32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
  %c0 = arith.constant 0 : index
  %threads = arith.constant 128 : index
  %b = gpu.block_id x
  %t = gpu.thread_id x
  %first = arith.muli %b, %threads : index
  %i = arith.addi %first, %t : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %inside = arith.cmpi slt, %i, %n : index
  scf.if %inside {
    %a = memref.load %x[%i] : memref<?xf32>
    %r = math.NAME %a : f32
    memref.store %r, %o[%i] : memref<?xf32>
  }
  gpu.return
}
"""


def compile_bundle(chip):
    names = [*FUNCTIONS, *EXACT]
    text = "module attributes {gpu.container_module} {" + "".join(KERNEL.replace("NAME", n) for n in names)
    text += "gpu.module @kernels {" + "".join(BODY.replace("NAME", n) for n in names) + "}}"
    built = ROOT / "build/bin/ssa-opt"
    tool = os.environ.get("SSA_OPT") or (str(built) if built.exists() else "ssa-opt")
    done = subprocess.run([tool, "--emit=bundle", "--chip=" + chip], input=text, text=True, capture_output=True)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def arguments(torch, name, low, high, spread=""):
    random = torch.rand(COUNT, dtype=torch.float64, device="cuda")
    if not spread:
        return (low + random * (high - low)).float()
    x = torch.exp(math.log(low) + random * (math.log(high) - math.log(low)))
    if name not in NEVER_NEGATIVE and not (name == "log1p"):
        x = torch.where(torch.rand_like(x) < 0.5, x, -x)
    return x.float()


def reference(torch, name, x):
    special = {
        "absf": torch.abs,
        "cbrt": lambda x: torch.sign(x) * torch.abs(x) ** (1 / 3),
        "round": lambda x: torch.sign(x) * torch.floor(torch.abs(x) + 0.5),
        "roundeven": torch.round,
    }
    return special.get(name, getattr(torch, name, None))(x.double())


def main():
    options = dict(a[2:].split("=", 1) for a in sys.argv[1:] if a.startswith("--"))
    if "bundle" in options:
        return pathlib.Path(options["bundle"]).write_text(compile_bundle(options.get("chip", "sm_90a")))
    import torch

    import ssa

    torch.manual_seed(1)
    major, minor = torch.cuda.get_device_capability()
    files = [a for a in sys.argv[1:] if not a.startswith("--")]
    bundle = ssa.load(files[0] if files else compile_bundle("sm_90a" if (major, minor) == (9, 0) else f"sm_{major}{minor}"))
    faults = 0

    def check(name, x, limit, relative):
        nonlocal faults
        got, expected = getattr(bundle, name)(x).double(), reference(torch, name, x)
        error = (got - expected).abs() / (expected.abs().clamp(min=1e-300) if relative else 1) / U
        ordinary = (expected.abs() > 2.0**-126) & (expected.abs() < 2.0**128)
        same = (got == expected) | (got.isnan() & expected.isnan()) | (expected.abs() >= 2.0**128) | ordinary
        worst = error[ordinary].max().item() if ordinary.any() else 0
        wrong = worst > limit or not same.all()
        faults += wrong
        print(f"{name:10} {'relative' if relative else 'absolute'} error {worst:6.2f} u, at most {limit}" + (" WRONG" if wrong else ""))

    for table, relative in (FUNCTIONS, True), (ABSOLUTE, False):
        for name, cases in table.items():
            for interval, limit in cases:
                check(name, arguments(torch, name, *interval), limit, relative)
    for name in EXACT:
        check(name, arguments(torch, name, -9, 9), 0, False)
    specials = torch.tensor([0.0, -0.0, 1, -1, math.inf, -math.inf, math.nan], device="cuda")
    for name in [*FUNCTIONS, *EXACT]:
        if name in ("sin", "cos", "tan"):
            continue  # of infinity; the others are those of above
        got, expected = getattr(bundle, name)(specials).double(), reference(torch, name, specials)
        close = (got - expected).abs() <= 16 * U * expected.abs()
        if not (close | (got == expected) | (got.isnan() & expected.isnan())).all():
            faults += 1
            print(f"{name} of {specials.tolist()} should be {expected.tolist()}, but is {got.tolist()} WRONG")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
