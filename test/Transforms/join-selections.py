# RUN: %python %s
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ssa-join-selections: what it makes of attention at several selections gives the same rows as before, and every key once."""

import os
import subprocess

import numpy as np

from ssareference import attend, selected, union
from ssatest import Function, attributes, case, check, compare, compare_lse, data, expect_error, main, row_max, run

B, H, HK, M, N, D = 2, 12, 4, 37, 130, 16


def joined(text):
    done = subprocess.run([os.environ.get("SSA_OPT", "ssa-opt"), "-", "--ssa-join-selections"], input=text, text=True, capture_output=True)
    check(done.returncode == 0, done.stderr)
    return done.stdout


def raw(seed, heads, rows, width, blocks):
    """Any order, repeats, and numbers that name no block, of both signs and up to the largest."""
    x = np.random.default_rng(seed).integers(-2, blocks + 2, (B, heads, rows, width)).astype(np.int32)
    x[..., -1:] = np.random.default_rng(seed).choice([-(2**31), 2**31 - 1, 0, 1], (B, heads, rows, min(width, 1)))
    return x


def compare_joined(lists, dynamic=True, mask=None, region="", rows=M, tokens=N):
    """`lists` holds (heads, lists, width, key_block, query_block) each; `lists` of them 0: one for each query block."""
    q, k, v = data(B, H, rows, D), data(B, HK, tokens, D, seed=1), data(B, HK, tokens, D, seed=2)
    f = Function(dynamic)
    args = [f.input(x) for x in (q, k, v)]
    arrays = [
        raw(7 + i, heads, count or -(-rows // queries), width, -(-tokens // block))
        for i, (heads, count, width, block, queries) in enumerate(lists)
    ]
    at = [f.lists(x, block, queries) for x, (_, _, _, block, queries) in zip(arrays, lists)]
    text = f"ssa.sparse_attend {', '.join(args)} at {', '.join(at)}{attributes(mask=mask)}{region}"
    results = f.op(text, f.tensor((B, H, rows, D)), f.tensor((B, H, rows)))
    after = joined(f.text(*results))
    check(not [line for line in after.splitlines() if "sparse_attend" in line and line.count("!ssa.selection") > 1], after)
    before, (o, lse) = f.run(*results), run(after, "main", f.data)
    keys = union(*(selected(x, rows, tokens, H, l[3], l[4], **(mask or {})) for x, l in zip(arrays, lists)))
    bound = row_max(v, keys, B, H, rows)
    if not region:
        ref_o, ref_lse = attend(q, k, v, keys)
        compare("o", o, ref_o, "f32", bound)
        compare_lse("lse", lse, ref_lse)
    compare("o", o, before[0], "f32", bound)
    compare_lse("lse", lse, before[1])
    return after


CAUSAL = {"causal": True}


@case
def the_same_blocks_are_united():
    after = compare_joined([(4, 0, 3, 16, 1), (4, 0, 5, 16, 1)], mask=CAUSAL)
    check(after.count("ssa.union") == 1 and "ssa.merge" not in after, after)


@case
def one_of_equal_blocks_may_be_one_list_in_this_run():
    """The types cannot tell."""
    for counts in ((1, 0), (0, 1), (1, 1)):
        after = compare_joined([(4, counts[0], 3, 16, 8), (4, counts[1], 5, 16, 8)], mask=CAUSAL)
        check(after.count("ssa.union") == 1, after)


@case
def static_sizes():
    after = compare_joined([(4, 0, 3, 16, 1), (4, 0, 5, 16, 1)], dynamic=False)
    check("ssa.union" in after and "tensor.generate" not in after, after)


@case
def blocks_of_two_sizes():
    after = compare_joined([(4, 0, 20, 1, 1), (4, 0, 3, 16, 1)], mask=CAUSAL)
    check(after.count("= ssa.sparse_attend") == 2 and "ssa.merge" in after, after)


@case
def blocks_of_no_common_measure():
    compare_joined([(4, 0, 4, 12, 1), (4, 0, 3, 8, 1)], mask=CAUSAL)
    compare_joined([(4, 0, 4, 15, 1), (4, 0, 3, 6, 1), (4, 0, 3, 4, 1)], mask=CAUSAL)


@case
def heads_differ():
    compare_joined([(2, 0, 4, 16, 1), (4, 0, 3, 16, 1)], mask=CAUSAL)
    compare_joined([(3, 0, 4, 16, 1), (4, 0, 3, 4, 1)], mask=CAUSAL)
    compare_joined([(12, 0, 4, 16, 1), (1, 0, 3, 4, 1)], mask=CAUSAL)


@case
def query_blocks_differ():
    compare_joined([(4, 0, 4, 16, 8), (4, 0, 3, 16, 1)], mask=CAUSAL)
    compare_joined([(4, 0, 4, 16, 6), (4, 0, 3, 4, 4)], mask=CAUSAL)


@case
def one_list_beside_lists_of_single_queries():
    for dynamic in (True, False):
        compare_joined([(4, 1, 9, 1, 1), (4, 0, 30, 1, 1)], dynamic, mask=CAUSAL)
        compare_joined([(4, 1, 9, 1, 64), (4, 0, 3, 16, 8)], dynamic, mask=CAUSAL)
        compare_joined([(4, 1, 3, 16, 1), (4, 1, 9, 1, 64)], dynamic, mask=CAUSAL)


@case
def three_kinds():
    compare_joined([(4, 0, 9, 1, 1), (2, 1, 2, 32, 1), (4, 0, 3, 8, 8), (4, 0, 7, 1, 1)], mask={"causal": True, "window": 40, "sink": 3})


@case
def lists_of_no_width():
    compare_joined([(4, 0, 0, 16, 1), (4, 0, 3, 8, 1)])
    compare_joined([(4, 0, 0, 16, 1), (4, 0, 0, 8, 1)])


@case
def no_queries_or_keys():
    compare_joined([(4, 1, 3, 16, 1), (4, 0, 3, 8, 8)], rows=0)
    compare_joined([(4, 0, 3, 16, 1), (4, 0, 3, 8, 1)], tokens=0)


@case
def with_a_score_region():
    region = """ score (%x, %b, %h, %p, %n) {
    %odd = arith.remsi %n, %two : i32
    %z = arith.sitofp %odd : i32 to f32
    %y = arith.subf %x, %z : f32
    ssa.yield %y : f32
  }"""
    region = region.replace("    %odd", "    %two = arith.constant 2 : i32\n    %odd")
    compare_joined([(4, 0, 20, 1, 1), (4, 0, 3, 16, 1)], mask=CAUSAL, region=region)


@case
def the_same_list_twice():
    text = """func.func @main(%q: tensor<1x2x?x16xf32>, %k: tensor<1x2x?x16xf32>, %t: tensor<1x2x?x3xi32>) -> tensor<1x2x?x16xf32> {
  %s = ssa.from_indices %t : tensor<1x2x?x3xi32> -> !ssa.selection<1x2x?x3, key_block = 8>
  %o, %l = ssa.sparse_attend %q, %k, %k at %s, %s : tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>,
      !ssa.selection<1x2x?x3, key_block = 8>, !ssa.selection<1x2x?x3, key_block = 8> -> tensor<1x2x?x16xf32>, tensor<1x2x?xf32>
  return %o : tensor<1x2x?x16xf32>
}
"""
    after = joined(text)
    check("ssa.union" not in after and "ssa.merge" not in after, after)


@case
def sizes_that_do_not_match():
    """Lists for more query blocks than there are, or for another batch: found before anything is read."""
    f = Function(dynamic=True)
    args = [f.input(data(B, h, n, D)) for h, n in ((H, M), (HK, N), (HK, N))]
    at = [f.lists(raw(1, 4, M + 3, 3, 9), 16), f.lists(raw(2, 4, M, 3, 9), 8)]
    f_results = f.op(f"ssa.sparse_attend {', '.join(args)} at {', '.join(at)}", f.tensor((B, H, M, D)), f.tensor((B, H, M)))
    text = joined(f.text(*f_results))
    expect_error(lambda: run(text, "main", f.data), "expected dimension 2 of 'selections' to be 1 or the number of query blocks of 'query'")
    f.data[3] = f.data[3][:1, :, :M]
    expect_error(lambda: run(text, "main", f.data), "expected dimension 0 of 'selections' to be dimension 0 of 'query'")


if __name__ == "__main__":
    main()
