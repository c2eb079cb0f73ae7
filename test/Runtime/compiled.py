# RUN: env CC=%cc %python %s
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bundles of the compiler: both launchers take them and ask the driver for the same; results have the shapes and types that
the interpreter gives them."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Inputs"))
from launching import ROOT, array, call, environment, equal, folder, launches, main, make_calls  # noqa: E402

sys.path.insert(0, str(ROOT / "scripts"))
from gpu_patterns import PATTERNS  # noqa: E402
from make_gpu_tests import source_of  # noqa: E402

NAMES = (
    "nsa",
    "moba_select",
    "merge bf16 4x128",
    "mix gate none",
    "pool mean 64",
    "sort 64",
    "attend at 16 x 64, group 4",
)
SIZES = ((2, 3, 130), (1, 1, 1), (0, 5, 7), (1, 0, 9))


def check(pattern):
    source = source_of(pattern)
    path = folder / "in.mlir"
    path.write_text(source)
    tool = [os.environ.get("SSA_OPT", "ssa-opt"), str(path), "--emit=bundle", "--chip=sm_90a"]
    bundle = subprocess.run(tool, capture_output=True, text=True, check=True).stdout
    plan = json.loads(bundle)["targets"][0]["entries"][0]
    calls = []
    for b, m, n in SIZES:
        arrays = pattern.make(b, m, n, 0)
        views, at = [], 4096
        for x, argument in zip(arrays.values(), plan["arguments"]):
            views.append(array(at if x.size else None, argument["dtype"], x.shape))
            at += 512 * (1 + x.size // 64)
        calls.append(call(pattern.entry, *views))
        equal(run(arrays, pattern, path, "cuda"), run(arrays, pattern, path, "cpu"))
    answers, records = make_calls(bundle, calls)
    assert all(answer.startswith("ok") for answer in answers), answers
    made = [len(launches(record)) for record in records[1:]]
    assert made[0] > 0 and made[1] > 0 and made[2] == 0, f"launches: {made}"


def run(arrays, pattern, path, device):
    """Shapes and types of the results of ssa-run."""
    for name, x in arrays.items():
        np.save(folder / f"{name}.npy", x)
    outs = [folder / f"out{i}.npy" for i in range(len(pattern.results.split()))]
    command = [os.environ.get("SSA_RUN", "ssa-run"), str(path), f"--entry={pattern.entry}", f"--device={device}"]
    command += ["--in", ",".join(str(folder / f"{name}.npy") for name in arrays), "--out", ",".join(map(str, outs))]
    subprocess.run(command, check=True, capture_output=True, env=environment(folder / "log"))
    return [(result.shape, result.dtype) for result in map(np.load, outs)]


def tests():
    for pattern in PATTERNS:
        if pattern.name in NAMES:

            def one(pattern=pattern):
                check(pattern)

            one.__name__ = pattern.name
            yield one


main(list(tests()))
