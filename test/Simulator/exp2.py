# RUN: %python %s
"""Exponentials by polynomial (`ssa.polynomials`) against float64: the error that the head of lib/Target/NVPTX/ExpandMath.cpp promises."""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "test/Support")]

from make_gpu_tests import tool

VALUES = 16  # of a thread
LIMIT = 4 * 2.0**-24
SOURCE = """
!in = memref<?x16xf32>
module attributes {gpu.container_module} {
func.func @powers(%x: !in) -> !in {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 128 : index
  %n = memref.dim %x, %c0 : !in
  %o = memref.alloc(%n) : !in
  %blocks = arith.ceildivsi %n, %threads : index
  gpu.launch_func @kernels::@powers blocks in (%blocks, %c1, %c1) threads in (%threads, %c1, %c1) args(%x : !in, %o : !in)
  return %o : !in
}
gpu.module @kernels {
gpu.func @powers(%x: !in, %o: !in) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
  %c0 = arith.constant 0 : index
  %threads = arith.constant 128 : index
  %b = gpu.block_id x
  %t = gpu.thread_id x
  %first = arith.muli %b, %threads : index
  %i = arith.addi %first, %t : index
  %n = memref.dim %x, %c0 : !in
  %inside = arith.cmpi slt, %i, %n : index
  scf.if %inside {
    %a = vector.load %x[%i, %c0] : !in, vector<16xf32>
    %r = math.exp2 %a fastmath<afn> {ssa.polynomials = NUMBER : i64} : vector<16xf32>
    vector.store %r, %o[%i, %c0] : !in, vector<16xf32>
  }
  gpu.return
}
}
}
"""


def powers(number, x):
    """2^x as a kernel computes it, and its PTX."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        source = SOURCE.replace("NUMBER", str(number))
        subprocess.run([tool("ssa-opt"), "-", "--emit=bundle", "--chip=sm_100a", "-o", str(folder / "b.json")], input=source, text=True, check=True)
        np.save(folder / "x.npy", x)
        command = [tool("ssa-run"), str(folder / "b.json"), "--device=sim", "--chip=sm_100a", "--in", str(folder / "x.npy"), "--out", str(folder / "y.npy")]
        subprocess.run(command, check=True)
        return np.load(folder / "y.npy"), json.loads((folder / "b.json").read_text())["targets"][0]["ptx"]


def main():
    random = np.random.default_rng(0)
    # What the error depends on is the distance to a whole number; all halves of it, evenly, and any size.
    dense = np.arange(-(2**18), 2**18) / 2**19
    special = np.array([-np.inf, np.nan, -1e30, -200, -127.5, -127, -126.75, -126, -1, -0.0, 0, 0.5, 1, 8, 9, 127])
    x = np.concatenate([dense, random.uniform(-126, 127, 2**18), random.uniform(-126, 9, 2**18), special]).astype(np.float32).reshape(-1, VALUES)
    exact = 2.0 ** x.astype(np.float64)
    for number, instructions in (8, 0), (3, 10):  # all by polynomial; of 16 values ten by the instruction
        got, ptx = powers(number, x)
        assert ptx.count("ex2.approx.ftz.f32") == instructions and "fma.rn.f32x2" in ptx, ptx.count("ex2.approx.ftz.f32")
        error = np.abs(got.astype(np.float64) - exact)
        normal = exact >= 2.0**-126
        worst = (error[normal] / exact[normal]).max()
        print(f"{number} of 8 by polynomial: largest relative error {worst / 2.0**-24:.2f} u, of {normal.sum()} values")
        assert worst <= LIMIT
        assert (np.isnan(got) == np.isnan(x)).all()
        assert (error[~normal & ~np.isnan(x)] <= 2.0**-126).all() and (got[x <= -1000] == 0).all()
        # Rounded to bf16 these are what exact powers are, but for some that lie within the error of the middle of two.
        rounded = lambda v: (v.view(np.uint32).astype(np.uint64) + 0x7FFF + (v.view(np.uint32) >> 16 & 1)) >> 16
        other = rounded(got[normal]) != rounded(exact[normal].astype(np.float32))
        print(f"  rounded to bf16 {other.sum()} differ from exact powers")
        assert other.mean() < 2e-5


main()
