# RUN: %python %s
"""Kernels that another compiler made, against NumPy: it is a simulator of PTX, not of what we emit. Inputs/gemm.cu uses mma.sync, Inputs/tma.cu
tensor maps and wgmma, Inputs/tensor.cu tensor maps and tcgen05; they are compiled by nvcc."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
SIM = os.path.join(os.environ.get("SSA_BIN", HERE.parents[1] / "build/bin"), "ssa-sim")


def to_bf16(x):
    return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def run(name, m, n, k, grid, maps=(), edit=None, fault=None):
    """With `edit`, a pair of pattern and replacement, the kernel is spoiled, and the simulator has to say `fault`."""
    rng = np.random.default_rng(m)
    a, b = rng.integers(-8, 9, (m, k)), rng.integers(-8, 9, (n, k))
    with tempfile.TemporaryDirectory() as folder:
        to_bf16(a).tofile(f"{folder}/a")
        to_bf16(b).tofile(f"{folder}/b")
        text = (HERE / "Inputs" / name).read_text()
        pathlib.Path(folder, name).write_text(re.sub(*edit, text) if edit else text)
        command = [SIM, f"{folder}/{name}", f"--grid={grid}", "--block=128", f"--arg=c=f32[{m * n}]"]
        command += [f"--arg=a=u16[{m * k}]:@{folder}/a", f"--arg=b=u16[{n * k}]:@{folder}/b", *maps, f"--arg=i32={m}", f"--arg=i32={n}", f"--arg=i32={k}", f"--save=c={folder}/c"]
        done = subprocess.run(command, capture_output=True, text=True)
        if fault:
            if not re.search(fault, done.stderr):
                sys.exit(f"{name} with {edit}: expected '{fault}', but got: {done.stderr}")
            return
        if done.returncode:
            sys.exit(f"{name}: {done.stderr}")
        got = np.fromfile(f"{folder}/c", np.float32).reshape(m, n)
    if not np.array_equal(got, a @ b.T):
        sys.exit(f"{name}: {m} x {n} x {k} is wrong")


for m, n, k in ((64, 64, 32), (70, 50, 40), (5, 130, 33), (1, 1, 1)):
    run("gemm.ptx", m, n, k, f"{-(-n // 64)},{-(-m // 64)}")
for m, n, k in ((64, 64, 64), (50, 24, 200), (1, 8, 328)):  # rows of a tensor map start at multiples of 16 bytes
    run("tma.ptx", m, n, k, 1, [f"--arg=map=a:{m}x{k}:64x64:128b", f"--arg=map=b:{n}x{k}:64x64:128b"])

for m, n, k in ((128, 64, 64), (100, 24, 200), (1, 8, 648)):
    run("tensor.ptx", m, n, k, 1, [f"--arg=map=a:{m}x{k}:128x64:128b", f"--arg=map=b:{n}x{k}:64x64:128b"])

small = (50, 24, 200, 1, ["--arg=map=a:50x200:64x64:128b", "--arg=map=b:24x200:64x64:128b"])
no_wait = (r"mbarrier.try_wait.parity\S* done, [^;]*;", "setp.eq.u32 done, 0, 0;")
run("tma.ptx", *small, no_wait, r"async: reads [AB] at .*, but an asynchronous copy of thread 0 is on its way there: nothing waited for it")
run("tma.ptx", *small, (r"(mov.u32\s+%r\d+), 16384;", r"\1, 16392;"), r"deadlock: nothing can go on: .* 0 of 1 arrivals and 8 bytes missing in phase 0")
run("tma.ptx", *small, (r"fence.proxy.async\S*;", ""), r"proxy: the mbarrier at .* was initialized by thread 0 without a fence.mbarrier_init or fence.proxy.async before this")

small = (100, 24, 400, 1, ["--arg=map=a:100x400:128x64:128b", "--arg=map=b:24x400:64x64:128b"])
spoiled = [(r"tcgen05.commit\S+ \[[^]]*\];", "", r"deadlock: nothing can go on"),
           (r"tcgen05.wait::ld.sync.aligned;", "", r"tcgen05: reads %\w+, the result of a tcgen05.ld that nothing waited for"),
           (r"tcgen05.fence::after_thread_sync;", "", r"tcgen05: .* a tcgen05.fence::after_thread_sync is missing here"),
           (r"tcgen05.fence::before_thread_sync;", "", r"tcgen05: .* it takes a tcgen05.fence::before_thread_sync")]
for pattern, replacement, fault in spoiled:
    run("tensor.ptx", *small, (pattern, replacement), fault)
