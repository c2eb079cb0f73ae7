# RUN: %python %s
"""Lists that are made for some queries while others attend: the same bits as where all lists are made first, in any number of parts and lanes."""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "test/Support")]

from make_gpu_tests import tool

HEADS, KEY_HEADS, DIM = 8, 2, 64
SOURCE = """
!q = tensor<?x8x?x64xf16>
!kv = tensor<?x2x?x64xf16>
!s = tensor<?x2x?x?xf32>
!l = !ssa.selection<?x2x?x4, key_block = 16LISTS, sorted>
func.func @f(%q: !q, %k: !kv, %v: !kv) -> (!q, tensor<?x8x?xf32>) {
  %kc = ssa.pool mean %k {blocks = #ssa.blocks<16>} : !kv -> !kv
  POOLED
  %s = ssa.route QUERIES, %kc of %k FOR {blocks = #ssa.blocks<16>, mask = #ssa.mask<causal>ROUTE, reduce = sum} : !q, !kv, !kvQUERY_TYPE -> !s
  %a = ssa.topk %s of %k FOR {TOPKinit_blocks = 1, mask = #ssa.mask<causal>} : !s, !kvQUERY_TYPE -> !l
  %o, %z = ssa.sparse_attend %q, %k, %v at %a {mask = #ssa.mask<causal>OVERLAP, ssa.schedule = #ssa.schedule<SCHEDULE>}
      : !q, !kv, !kv, !l -> !q, tensor<?x8x?xf32>
  return %o, %z : !q, tensor<?x8x?xf32>
}
"""
UNION = "order = union, instruction = {}, tile_rows = 64, tile_keys = 32, stages = 2"
PACKED = "order = head_packed, instruction = mma_sync, tile_rows = 16, tile_keys = 16, stages = 2"
SHARED = "instruction = wgmma, tile_rows = 64, tile_keys = 16, stages = 2"
SOFTMAX, PLAIN = ", normalize = softmax", ", scale = 0.5"


def fill_in(overlap, schedule, route, fused, query_block):
    pooled = query_block > 1
    words = {
        "LISTS": f", query_block = {query_block}" if pooled else "",
        "POOLED": f"%qc = ssa.pool mean %q {{blocks = #ssa.blocks<{query_block}>}} : !q -> !q" if pooled else "",
        "QUERIES": "%qc" if pooled else "%q", "FOR": "for %q" if pooled else "", "QUERY_TYPE": ", !q" if pooled else "",
        "ROUTE": route + (f", query_block = {query_block}" if pooled else ""), "TOPK": f"ssa.fused_select = #ssa.fused_select<{fused}>, " if fused else "",
        "OVERLAP": f", ssa.overlap = #ssa.overlap<{overlap}>" if overlap else "", "SCHEDULE": schedule,
    }
    source = SOURCE
    for word in sorted(words, key=len, reverse=True):  # QUERY_TYPE before QUERIES
        source = source.replace(word, words[word])
    return source


def run(source, arrays, folder, device):
    names = []
    for name, array in arrays.items():
        names.append(folder / f"{name}.npy")
        np.save(names[-1], array)
    outs = [folder / "o.npy", folder / "l.npy"]
    (folder / "f.mlir").write_text(source)
    command = [tool("ssa-run"), str(folder / "f.mlir"), *device, "--in", ",".join(map(str, names)), "--out", ",".join(map(str, outs))]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{source}: {done.stderr}"
    return [np.load(out) for out in outs]


def check(chip, overlap, schedule, sizes, folder, route=SOFTMAX, fused="", query_block=1):
    what = f"{chip}, {overlap}, {schedule}, {sizes}, {fused}"
    rng = np.random.default_rng(1)
    batch, queries, tokens = sizes
    arrays = {"q": rng.standard_normal((batch, HEADS, queries, DIM)).astype(np.float16),
              **{name: rng.standard_normal((batch, KEY_HEADS, tokens, DIM)).astype(np.float16) for name in "kv"}}
    device = ["--device=sim", f"--chip={chip}"]
    whole, parts = (run(fill_in(how, schedule, route, fused, query_block), arrays, folder, device) for how in ("", overlap))
    for a, b in zip(whole, parts):
        assert (a.view(np.uint8) == b.view(np.uint8)).all(), f"{what}: other bits"
    right = run(fill_in("", schedule, route, "", query_block), arrays, folder, [])
    bound = 2.0**-11 * (np.abs(arrays["v"]).max() + np.abs(right[0].astype(float)))
    off = np.abs(parts[0].astype(float) - right[0].astype(float)) > bound
    assert off.any(-1).sum() <= 0.01 * off[..., 0].size, f"{what}: outputs are off"  # scores that tie up to rounding


with tempfile.TemporaryDirectory() as name:
    for case in (
        ("sm_90a", "rows = 32", UNION.format("wgmma"), (1, 37, 37)),
        ("sm_90a", "rows = 16, lanes = 3", UNION.format("wgmma"), (2, 131, 300)),
        ("sm_90a", "rows = 16, lanes = 1", UNION.format("wgmma"), (1, 40, 90)),
        ("sm_90a", "rows = 64", UNION.format("wgmma"), (2, 1, 200)),
        ("sm_90", "rows = 7, lanes = 16", PACKED, (1, 50, 50)),
        ("sm_90", "rows = 16", UNION.format("mma_sync"), (1, 0, 40)),
    ):
        check(*case, pathlib.Path(name))
    # A kernel that scores and selects, and lists that several queries share.
    check("sm_90a", "rows = 16", UNION.format("wgmma"), (67, 20, 70), pathlib.Path(name), fused="min_columns = 1, max_columns = 4096")
    check("sm_90a", "rows = 16, lanes = 4", PACKED, (67, 37, 70), pathlib.Path(name), PLAIN, "min_columns = 1, max_columns = 4096, stretch = 64")
    check("sm_90a", "rows = 2", SHARED, (1, 100, 130), pathlib.Path(name), query_block=16)
