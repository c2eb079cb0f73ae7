# RUN: %python %s
"""Attention whose schedule the device chooses, by how much lists of neighbouring queries agree: results are those of the interpreter either way, and
come from the kernels of the right schedule: without the launches of the other one they are the same bits, without its own there are none."""

import copy
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "test/Support")]

from make_gpu_tests import tool
from simulator import with_few_blocks

HEADS, KEY_HEADS, DIM, BLOCK, WIDTH = 8, 2, 64, 16, 5
SOURCE = """
func.func @f(%q: tensor<?x8x?x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>, %t: tensor<?x2x?x5xi32>)
    -> (tensor<?x8x?x64xf16>, tensor<?x8x?xf32>) {
  %s = ssa.from_indices %t : tensor<?x2x?x5xi32> -> !ssa.selection<?x2x?x5, key_block = 16>
  %o, %l = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>,
      ssa.schedule = #ssa.schedule<FIRST>, ssa.agreeing = #ssa.agreeing<percent = 50, schedule = <SECOND>>}
      : tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>, !ssa.selection<?x2x?x5, key_block = 16> -> tensor<?x8x?x64xf16>, tensor<?x8x?xf32>
  return %o, %l : tensor<?x8x?x64xf16>, tensor<?x8x?xf32>
}
"""
KEY_OUTER = "order = key_outer, instruction = {}, tile_rows = 64, tile_keys = 16, stages = 2"
UNION = "order = union, instruction = {}, tile_rows = 64, tile_keys = 32, stages = 2"
PACKED = "order = head_packed, instruction = mma_sync, tile_rows = 16, tile_keys = 16, stages = 2"


def make_lists(batch, queries, tokens, kept, rng):
    """Numbers of blocks; the list of the query before has the share `kept` of them, and no other."""
    blocks = -(-tokens // BLOCK)
    lists = np.empty((batch, KEY_HEADS, queries, WIDTH), np.int32)
    for row in lists.reshape(-1, queries, WIDTH):
        for m in range(queries):
            old = row[m - 1][: round(kept * WIDTH)] if m else np.empty(0, np.int32)
            others = np.setdiff1d(np.arange(blocks), row[m - 1] if m else [])
            row[m] = np.concatenate([old, rng.choice(others, WIDTH - len(old), replace=False)])
    return lists


def leave_out(bundle, branch):
    """The bundle without the launches of one branch: their grids are empty."""
    bundle = copy.deepcopy(bundle)
    for plan in (plan for target in bundle["targets"] for plan in target["entries"]):
        plan["values"].append(["const", 0])
        for launch in plan["launches"]:
            if launch.get("when", {}).get("is") == branch:
                launch["grid"][0] = len(plan["values"]) - 1
    return bundle


def run(program, arrays, folder, device=()):
    """Results, or what went wrong."""
    names = []
    for name, array in arrays.items():
        names.append(folder / f"{name}.npy")
        np.save(names[-1], array)
    outs = [folder / "o.npy", folder / "l.npy"]
    command = [tool("ssa-run"), str(program), *device, "--in", ",".join(map(str, names)), "--out", ",".join(map(str, outs))]
    done = subprocess.run(command, capture_output=True, text=True)
    return [np.load(out) for out in outs] if done.returncode == 0 else done.stderr


def check_close(got, right, values, what):
    assert not isinstance(got, str), f"{what}: {got}"
    bound = 2.0**-11 * (np.abs(values).max() + np.abs(right[0].astype(float)))
    assert (np.abs(got[0].astype(float) - right[0].astype(float)) <= bound).all(), f"{what}: outputs are off"
    empty = np.isneginf(right[1])
    assert (np.isneginf(got[1]) == empty).all(), f"{what}: not the same rows see nothing"
    assert (np.abs(got[1] - right[1])[~empty] <= 2e-3 + 1e-3 * np.abs(right[1][~empty])).all(), f"{what}: lses are off"


def check(chip, first, second, sizes, kept, agree, folder):
    what = f"{chip}, {first.split(',')[0]} or {second.split(',')[0]}, {sizes}, {kept:.0%} kept"
    source, path = folder / "f.mlir", folder / "f.json"
    source.write_text(SOURCE.replace("FIRST", first).replace("SECOND", second))
    subprocess.run([tool("ssa-opt"), str(source), "--emit=bundle", f"--chip={chip}", "-o", str(path)], check=True)
    whole = json.loads(path.read_text())
    rng = np.random.default_rng(1)
    batch, queries, tokens = sizes
    arrays = {"q": rng.standard_normal((batch, HEADS, queries, DIM)).astype(np.float16),
              **{name: rng.standard_normal((batch, KEY_HEADS, tokens, DIM)).astype(np.float16) for name in "kv"},
              "t": make_lists(batch, queries, tokens, kept, rng)}
    device = ["--device=sim", f"--chip={chip}", "--cores=1"]
    right, got = run(source, arrays, folder), run(path, arrays, folder, device)
    check_close(got, right, arrays["v"], what)
    for branch in (False, True):
        path.write_text(json.dumps(leave_out(whole, branch)))
        alone = run(path, arrays, folder, device)
        if branch != agree:
            assert all((a.view(np.uint8) == b.view(np.uint8)).all() for a, b in zip(alone, got)), f"{what}: other kernels took part"
        else:
            assert isinstance(alone, str) and "was never written" in alone, f"{what}: kernels that were to leave did not"
    path.write_text(json.dumps(with_few_blocks(whole, 1)))
    check_close(run(path, arrays, folder, device), right, arrays["v"], f"{what}, few blocks")


with tempfile.TemporaryDirectory() as name:
    wgmma, mma = ([order.format(instruction) for order in (KEY_OUTER, UNION)] for instruction in ("wgmma", "mma_sync"))
    for chip, first, second, sizes in (
        ("sm_90a", *wgmma, (1, 37, 200)),
        ("sm_90a", wgmma[1], wgmma[0], (2, 9, 331)),
        ("sm_90a", PACKED, wgmma[1], (1, 130, 177)),
        ("sm_90", *mma, (1, 37, 200)),
    ):
        for kept in (0.2, 0.8):
            check(chip, first, second, sizes, kept, kept > 0.5, pathlib.Path(name))
    # One query has no neighbour: there the first schedule is used.
    check("sm_90a", *wgmma, (2, 1, 200), 1.0, False, pathlib.Path(name))
