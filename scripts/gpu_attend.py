# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Patterns of attention in all its forms: see gpu_patterns.py."""

from gpu_patterns import LONG, SMALL, keys, op, queries

CAUSAL = "mask = #ssa.mask<causal>"
SHORT = SMALL + LONG[:2]


def raw_lists(heads, width, block, query_block=1, one=False):
    """Lists in any order, with repeats and numbers that name no block: one for each query block, or one for all."""

    def make(rng, b, m, n):
        rows = 1 if one else -(-m // query_block)
        return rng.integers(-2, -(-n // block) + 2, (b, heads, rows, width), dtype="int32")

    return make


def attend(name, heads, key_heads, lists, dictionary=CAUSAL, elem="bf16", d=64, dv=None, sizes=SHORT):
    """`lists` has (heads, width, key block, query block, one for all) of each selection."""
    q, k, v, o = (f"tensor<?x{h}x?x{w}x{elem}>" for h, w in ((heads, d), (key_heads, d), (key_heads, dv or d), (heads, dv or d)))
    l = f"tensor<?x{heads}x?xf32>"
    declared, before, names, types, arguments = f"q:{q} k:{k} v:{v}", "", [], "", {}
    for i, (g, width, block, query_block, one) in enumerate(lists):
        shape = f"?x{g}x{1 if one else '?'}x{width}"
        sel = f"!ssa.selection<{shape}, key_block = {block}, query_block = {query_block}>"
        declared += f" t{i}:tensor<{shape}xi32>"
        before += f"  %s{i} = ssa.from_indices %t{i} : tensor<{shape}xi32> -> {sel}\n"
        names.append(f"%s{i}")
        types += f", {sel}"
        arguments[f"t{i}"] = raw_lists(g, width, block, query_block, one)
    op(
        name,
        f"{before}  %o, %l = ssa.sparse_attend %q, %k, %v{' at ' * bool(names)}{', '.join(names)} {{{dictionary}}} : "
        f"{q}, {k}, {v}{types} -> {o}, {l}\nreturn %o, %l : {o}, {l}",
        "rows lse",
        "v",
        declared,
        q=queries(heads, d, elem),
        k=keys(key_heads, d, elem),
        v=keys(key_heads, dv or d, elem),
        sizes=sizes,
        queries_vary=all(query_block == 1 for _, _, _, query_block, _ in lists),
        **arguments,
    )


def add_several_selections():
    attend("attend at two lists, united", 8, 2, [(2, 4, 64, 1, False), (2, 5, 64, 1, False)], d=128)
    attend("attend at tokens and blocks", 8, 2, [(2, 100, 1, 1, False), (2, 4, 64, 1, False)], d=128)
    attend("attend at blocks of 48 and 32", 4, 4, [(4, 4, 48, 1, False), (2, 3, 32, 1, False)], elem="f16")
    attend("attend at one list and lists of 64 queries", 6, 2, [(6, 70, 1, 1, True), (2, 3, 128, 64, False)])
    attend(
        "attend at three lists, window",
        8,
        4,
        [(8, 40, 1, 1, False), (2, 2, 32, 1, True), (4, 3, 8, 16, False)],
        "mask = #ssa.mask<causal, window = 100, sink = 3>",
    )


def add_gathered():
    """Rows that come from somewhere else, by lists with repeats."""
    for name, heads, key_heads, g, width, block, query_block, one, dictionary in (
        ("attend gathered tokens", 8, 2, 2, 90, 1, 1, False, CAUSAL),
        ("attend gathered blocks of 64", 8, 4, 2, 5, 64, 1, False, "mask = #ssa.mask<causal, window = 100, sink = 3>"),
        ("attend gathered, 3 heads of a key head", 6, 2, 6, 7, 16, 32, False, CAUSAL),
        ("attend gathered, one list", 4, 2, 2, 11, 8, 1, True, CAUSAL),
    ):
        rows = width * block
        q, g5, t = f"tensor<?x{heads}x?x64xbf16>", f"tensor<?x{key_heads}x{1 if one else '?'}x{rows}x64xbf16>", "tensor<?x1x?x64xbf16>"
        shape, l = f"?x{g}x{1 if one else '?'}x{width}", f"tensor<?x{heads}x?xf32>"
        sel = f"!ssa.selection<{shape}, key_block = {block}, query_block = {query_block}>"

        def gathered(rng, b, m, n, heads=key_heads, rows=rows, query_block=query_block, one=one):
            count = 1 if one else -(-m // query_block)
            return keys(heads * count, 64)(rng, b, m, rows).reshape(b, heads, count, rows, 64)

        op(
            name,
            f"  %s = ssa.from_indices %t : tensor<{shape}xi32> -> {sel}\n"
            f"  %o, %l = ssa.sparse_attend %q, %k, %v of %n at %s {{{dictionary}}} : {q}, {g5}, {g5}, {t}, {sel} -> {q}, {l}\n"
            f"return %o, %l : {q}, {l}",
            "rows lse",
            "v",
            f"q:{q} k:{g5} v:{g5} n:{t} t:tensor<{shape}xi32>",
            q=queries(heads, 64),
            k=gathered,
            v=gathered,
            n=keys(1, 64),
            t=raw_lists(g, width, block, query_block, one),
            sizes=SMALL + ((1, 20, 500),),
            queries_vary=query_block == 1,
        )


add_several_selections()
add_gathered()
