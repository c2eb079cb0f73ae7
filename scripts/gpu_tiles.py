# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Patterns of attention that fill tiles of tensor memory, or do not: see gpu_patterns.py."""

from gpu_attend import CAUSAL, attend, raw_lists
from gpu_orders import WINDOW, ordered, tile
from gpu_patterns import SMALL, keys, op, queries


# The first queries see no key.
MORE = ((1, 70, 30), (2, 200, 65))


def add_tiles():
    for name, heads, key_heads, lists, options in (
        ("d 64, group 128", 128, 1, [], dict(d=64)),
        ("d 256", 3, 1, [], dict(d=256)),
        ("d 384, in two parts", 2, 1, [], dict(d=384, elem="f16")),
        ("d 72, group 3", 6, 2, [], dict(d=72)),
        ("128 heads of 576/512, tokens", 128, 1, [(1, 70, 1, 1, False)], dict(d=576, dv=512)),
        ("lists of 130 queries of 2 heads", 4, 2, [(2, 5, 64, 130, False)], dict(d=128)),
        # Maxima that grow by more than what is held, and logits so large that only their differences count.
        ("steep", 6, 2, [], dict(d=128, dictionary=f"{CAUSAL}, scale = 4.0")),
        ("one-hot", 2, 2, [], dict(d=64, dictionary=f"{CAUSAL}, scale = 1.0e5")),
        ("more queries than keys", 6, 2, [], dict(d=128, sizes=MORE)),
        ("rising from less than nothing", 2, 2, [], dict(d=64, dictionary=f"{CAUSAL}, scale = -2.0")),
    ):
        attend(f"attend in tiles, {name}", heads, key_heads, lists, **{"sizes": SMALL, **options})


def add_orders():
    """The loop orders, where tensor memory is."""
    rows = tile(128, 64, instruction="tcgen05")
    ordered("tcgen05, union of 8 queries", f"order = union, {rows}", 32, 2, [(2, 5, 64, 1, False)], sizes=SMALL)
    ordered("tcgen05, union of lists of 5 queries, tokens", f"order = union, {rows}", 4, 2, [(2, 40, 1, 5, False)], sizes=SMALL)
    ordered("tcgen05, key_outer", f"order = key_outer, {rows}, partials = bf16", 32, 2, [(2, 5, 64, 1, False)], d=128, sizes=SMALL)
    ordered("tcgen05, 3 parts of lists", f"order = head_packed, {rows}, split = 3", 8, 2, [(2, 9, 64, 1, False)], d=128, sizes=SMALL)


def latent(name, heads, key_heads, lists, d, dv, dictionary=CAUSAL, elem="bf16", score="", sizes=SMALL):
    """Values that are the first columns of keys; `lists` as in gpu_attend.py, one at most."""
    q, k, v, o = (f"tensor<?x{h}x?x{w}x{elem}>" for h, w in ((heads, d), (key_heads, d), (key_heads, dv), (heads, dv)))
    l = f"tensor<?x{heads}x?xf32>"
    declared, before, name_of, types, arguments = f"q:{q} k:{k}", "", "", "", {}
    if dv < d:
        before = "  %c0 = arith.constant 0 : index\n  %c2 = arith.constant 2 : index\n"
        before += f"  %b = tensor.dim %k, %c0 : {k}\n  %n = tensor.dim %k, %c2 : {k}\n"
        before += f"  %v = tensor.extract_slice %k[0, 0, 0, 0] [%b, {key_heads}, %n, {dv}] [1, 1, 1, 1] : {k} to {v}\n"
    for g, width, block, query_block, one in lists:
        shape = f"?x{g}x{1 if one else '?'}x{width}"
        sel = f"!ssa.selection<{shape}, key_block = {block}, query_block = {query_block}>"
        declared += f" t:tensor<{shape}xi32>"
        before += f"  %s = ssa.from_indices %t : tensor<{shape}xi32> -> {sel}\n"
        name_of, types = " at %s", f", {sel}"
        arguments["t"] = raw_lists(g, width, block, query_block, one)
    op(
        name,
        f"{before}  %o, %l = ssa.sparse_attend %q, %k, %{'v' if dv < d else 'k'}{name_of} {{{dictionary}}}{score} : {q}, {k}, {v}{types} -> {o}, {l}\n"
        f"return %o, %l : {o}, {l}",
        "rows lse",
        "k",
        declared,
        q=queries(heads, d, elem),
        k=keys(key_heads, d, elem),
        sizes=sizes,
        queries_vary=all(query_block == 1 for _, _, _, query_block, _ in lists),
        **arguments,
    )


def add_pairs():
    """Two blocks make the products of a tile together."""
    region = " score (%x, %i, %h, %p, %n) {\n    %y = math.tanh %x : f32\n    ssa.yield %y : f32\n  }"
    for name, order, keys_of_step, arguments, options in (
        ("tokens", "head_packed", 128, (128, 1, [(1, 150, 1, 1, False)], 576, 512), {}),
        ("tokens, 100 heads", "head_packed", 128, (100, 1, [(1, 150, 1, 1, False)], 192, 128), dict(elem="f16")),
        ("three pieces of values", "shared_list", 128, (3, 1, [], 448, 384), dict(elem="f16")),
        ("blocks of 128, two key heads", "shared_list", 128, (6, 2, [(2, 2, 128, 64, False)], 128, 128), {}),
        ("all keys, 3 heads", "shared_list", 128, (3, 1, [], 256, 256), {}),
        ("window and sink, two stages", "shared_list", 128, (5, 1, [], 64 + 128, 128), dict(mask=WINDOW, stages=2)),
        ("two parts of tokens, 200 heads", "head_packed", 128, (200, 1, [(1, 150, 1, 1, False)], 128, 128), dict(more=", split = 2")),
        ("score region, steep", "shared_list", 128, (4, 1, [], 128, 128), dict(mask=CAUSAL + ", scale = 4.0", score=region)),
        ("more queries than keys", "shared_list", 128, (3, 1, [], 128, 128), dict(sizes=MORE)),
        ("one-hot", "shared_list", 128, (2, 2, [], 128, 128), dict(mask=CAUSAL + ", scale = 1.0e5")),
    ):
        mask, stages, more = (options.pop(key, default) for key, default in (("mask", CAUSAL), ("stages", 1), ("more", "")))
        schedule = f"order = {order}, {tile(128, keys_of_step, stages, 'tcgen05')}{more}, pair = true"
        latent(f"pair, {name}", *arguments, dictionary=f"{mask}, ssa.schedule = #ssa.schedule<{schedule}>", **options)


def add_turns():
    """Outputs that two groups of warps have half of each (wgmma)."""
    region = " score (%x, %i, %h, %p, %j) {\n    %y = math.tanh %x : f32\n    ssa.yield %y : f32\n  }"
    for name, arguments, options in (
        ("tokens, 100 heads", (100, 1, [(1, 150, 1, 1, False)], 576, 512), {}),
        ("all keys, 384 of 448", (3, 1, [], 448, 384), dict(elem="f16")),
        ("window and sink", (5, 1, [], 576, 512), dict(dictionary=WINDOW)),
        ("values are keys, blocks of 32 for 5 queries", (6, 2, [(2, 5, 32, 5, False)], 512, 512), {}),
        ("score region, steep", (4, 1, [], 576, 512), dict(dictionary=CAUSAL + ", scale = 4.0", score=region)),
        ("more queries than keys", (3, 1, [], 576, 512), dict(sizes=MORE)),
    ):
        latent(f"turns, {name}", *arguments, **options)


add_tiles()
add_orders()
add_pairs()
add_turns()
