# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Patterns of attention in all its forms: see gpu_patterns.py."""

import numpy as np

from gpu_patterns import LONG, SMALL, examples, keys, op, queries

round_to = examples.round_to

CAUSAL = "mask = #ssa.mask<causal>"
SHORT = SMALL + LONG[:2]


def raw_lists(heads, width, block, query_block=1, one=False):
    """Lists in any order, with repeats and numbers that name no block: one for each query block, or one for all."""

    def make(rng, b, m, n):
        rows = 1 if one else -(-m // query_block)
        return rng.integers(-2, -(-n // block) + 2, (b, heads, rows, width), dtype="int32")

    return make


def attend(name, heads, key_heads, lists=(), dictionary=CAUSAL, elem="bf16", d=64, dv=None, sizes=SHORT):
    """`lists` has (heads, width, key block, query block, one for all) of each selection; `elem` one type, or those of queries, keys,
    values and the output."""
    eq, ek, ev, eo = elem if isinstance(elem, tuple) else (elem,) * 4
    wide = dv or d
    q, k, v, o = (
        f"tensor<?x{h}x?x{w}x{e}>" for h, w, e in ((heads, d, eq), (key_heads, d, ek), (key_heads, wide, ev), (heads, wide, eo))
    )
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
        q=queries(heads, d, eq),
        k=keys(key_heads, d, ek),
        v=keys(key_heads, wide, ev),
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
    for name, elem, heads, key_heads, g, width, block, query_block, one, dictionary in (
        ("attend gathered tokens", "bf16", 8, 2, 2, 90, 1, 1, False, CAUSAL),
        ("attend gathered blocks of 64", "bf16", 8, 4, 2, 5, 64, 1, False, "mask = #ssa.mask<causal, window = 100, sink = 3>"),
        ("attend gathered, 3 heads of a key head", "bf16", 6, 2, 6, 7, 16, 32, False, CAUSAL),
        ("attend gathered, one list", "bf16", 4, 2, 2, 11, 8, 1, True, CAUSAL),
        ("attend gathered, f32", "f32", 4, 2, 2, 11, 8, 16, False, CAUSAL),
    ):
        rows, count = width * block, 1 if one else "?"
        q, g5, t = f"tensor<?x{heads}x?x64x{elem}>", f"tensor<?x{key_heads}x{count}x{rows}x64x{elem}>", "tensor<?x1x?x64xbf16>"
        shape, l = f"?x{g}x{count}x{width}", f"tensor<?x{heads}x?xf32>"
        sel = f"!ssa.selection<{shape}, key_block = {block}, query_block = {query_block}>"

        def gathered(rng, b, m, n, elem=elem, heads=key_heads, rows=rows, query_block=query_block, one=one):
            count = 1 if one else -(-m // query_block)
            return keys(heads * count, 64, elem)(rng, b, m, rows).reshape(b, heads, count, rows, 64)

        op(
            name,
            f"  %s = ssa.from_indices %t : tensor<{shape}xi32> -> {sel}\n"
            f"  %o, %l = ssa.sparse_attend %q, %k, %v of %n at %s {{{dictionary}}} : {q}, {g5}, {g5}, {t}, {sel} -> {q}, {l}\n"
            f"return %o, %l : {q}, {l}",
            "rows lse",
            "v",
            f"q:{q} k:{g5} v:{g5} n:{t} t:tensor<{shape}xi32>",
            q=queries(heads, 64, elem),
            k=gathered,
            v=gathered,
            n=keys(1, 64),
            t=raw_lists(g, width, block, query_block, one),
            sizes=SMALL + ((1, 20, 500),),
            queries_vary=query_block == 1,
        )


def add_tables():
    """Score regions that read tensors from outside: one value for a head, a key, a pair; floats and integers."""
    l = "tensor<?x6x?xf32>"

    def form(name, tables, region, elem="bf16", **made):
        q, k = (f"tensor<?x{heads}x?x64x{elem}>" for heads in (6, 2))
        declared = "".join(f" {n}:{t}" for n, t in tables.items())
        op(
            name,
            f"  %o, %l = ssa.sparse_attend %q, %k, %v {{mask = #ssa.mask<causal>}} score (%x, %b, %h, %p, %n) {{\n{region}"
            f"    ssa.yield %y : f32\n  }} : {q}, {k}, {k} -> {q}, {l}\nreturn %o, %l : {q}, {l}",
            "rows lse",
            "v",
            f"q:{q} k:{k} v:{k}{declared}",
            q=queries(6, 64, elem),
            k=keys(2, 64, elem),
            v=keys(2, 64, elem),
            sizes=SHORT,
            **made,
        )

    form(
        "attend, a table of tokens and heads",
        {"t": "tensor<?x6x?xbf16>"},
        "    %i = arith.index_cast %b : i32 to index\n    %j = arith.index_cast %h : i32 to index\n"
        "    %m = arith.index_cast %n : i32 to index\n    %e = tensor.extract %t[%i, %j, %m] : tensor<?x6x?xbf16>\n"
        "    %f = arith.extf %e : bf16 to f32\n    %y = arith.addf %x, %f : f32\n",
        t=lambda rng, b, m, n: round_to(rng.standard_normal((b, 6, n)), "bf16"),
    )
    for elem in ("bf16", "f32"):
        form(
            f"attend, a table of distances, {elem}",
            {"t": "tensor<6x40xf32>"},
            "    %j = arith.index_cast %h : i32 to index\n    %d = arith.subi %p, %n : i32\n"
            "    %last = arith.constant 39 : i32\n    %near = arith.minsi %d, %last : i32\n"
            "    %i = arith.index_cast %near : i32 to index\n    %e = tensor.extract %t[%j, %i] : tensor<6x40xf32>\n"
            "    %y = arith.addf %x, %e : f32\n",
            elem,
            t=examples.weights(6, 40),
        )
    form(
        "attend, constant slopes",
        {},
        "    %i = arith.index_cast %h : i32 to index\n"
        "    %t = arith.constant dense<[0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625]> : tensor<6xf32>\n"
        "    %e = tensor.extract %t[%i] : tensor<6xf32>\n    %d = arith.subi %n, %p : i32\n"
        "    %f = arith.sitofp %d : i32 to f32\n    %z = arith.mulf %e, %f : f32\n    %y = arith.addf %x, %z : f32\n",
    )
    form(
        "attend, a table of near keys, branches",
        {"t": "tensor<?xf32>"},
        "    %zero = arith.constant 0 : index\n    %far = arith.constant -1.0 : f32\n"
        "    %size = tensor.dim %t, %zero : tensor<?xf32>\n    %d = arith.subi %p, %n : i32\n"
        "    %i = arith.index_cast %d : i32 to index\n    %near = arith.cmpi slt, %i, %size : index\n"
        "    %bias = scf.if %near -> f32 {\n      %e = tensor.extract %t[%i] : tensor<?xf32>\n      scf.yield %e : f32\n"
        "    } else {\n      scf.yield %far : f32\n    }\n    %y = arith.addf %x, %bias : f32\n",
        t=examples.weights(9),
    )
    form(
        "attend, documents by a table of integers",
        {"t": "tensor<?xi32>"},
        "    %i = arith.index_cast %p : i32 to index\n    %j = arith.index_cast %n : i32 to index\n"
        "    %e = tensor.extract %t[%i] : tensor<?xi32>\n    %f = tensor.extract %t[%j] : tensor<?xi32>\n"
        "    %same = arith.cmpi eq, %e, %f : i32\n    %none = arith.constant 0xFF800000 : f32\n"
        "    %y = arith.select %same, %x, %none : f32\n",
        t=lambda rng, b, m, n: np.sort(rng.integers(0, 4, n)).astype(np.int32),
    )


def add_route_tables():
    for elem, heads in (("bf16", 8), ("f32", 2)):  # on tensor cores and on CUDA cores
        rq, rk, out = f"tensor<?x{heads}x?x64x{elem}>", f"tensor<?x1x?x64x{elem}>", "tensor<?x1x?x?xf32>"
        op(
            f"route, a table of heads and blocks, {elem}",
            f"  %s = ssa.route %q, %k {{mask = #ssa.mask<causal>, normalize = softmax, reduce = sum}} score (%x, %w, %b, %h, %p, %j) {{\n"
            "    %i = arith.index_cast %h : i32 to index\n    %n = arith.index_cast %j : i32 to index\n"
            f"    %e = tensor.extract %t[%i] : tensor<{heads}xf32>\n    %f = tensor.extract %u[%n] : tensor<?xf32>\n"
            "    %z = arith.addf %x, %e : f32\n    %y = arith.addf %z, %f : f32\n"
            f"    ssa.yield %y : f32\n  }} : {rq}, {rk} -> {out}\nreturn %s : {out}",
            "scores",
            "",
            f"q:{rq} k:{rk} t:tensor<{heads}xf32> u:tensor<?xf32>",
            q=queries(heads, 64, elem),
            k=keys(1, 64, elem),
            t=examples.weights(heads),
            u=lambda rng, b, m, n: rng.standard_normal(n).astype(np.float32),
            sizes=SHORT,
        )


def add_heads():
    """Key heads and selection heads of which neither divides the other."""
    attend("attend at 6 lists for 4 key heads", 12, 4, [(6, 5, 32, 1, False)])
    attend("attend at 3 lists for 2 key heads, 64 queries", 6, 2, [(3, 4, 64, 64, False)], d=128)
    attend("attend at 2 lists for 3 key heads, f32", 6, 3, [(2, 5, 32, 1, False)], elem="f32")


def add_cuda_cores():
    """f32, mixed types and odd head dims, of which nothing may be rounded before it is multiplied."""
    attend("attend f32, group 2", 4, 2, elem="f32", d=128)
    attend("attend f32, window and sink", 3, 3, (), "mask = #ssa.mask<causal, window = 100, sink = 3>", "f32", d=40)
    attend("attend f32, 256/200", 2, 1, elem="f32", d=256, dv=200, sizes=SMALL)
    attend("attend f32, 576/512", 8, 1, elem="f32", d=576, dv=512, sizes=SMALL)
    attend("attend f32 to bf16, scale 0", 2, 2, (), "mask = #ssa.mask<causal>, scale = 0.0", ("f32", "f32", "f32", "bf16"))
    attend("attend f32 at 9 x 16, group 3", 6, 2, [(2, 9, 16, 1, False)], elem="f32", d=80)
    attend("attend f32 at 3 x 64 for 64 queries", 4, 2, [(4, 3, 64, 64, False)], elem="f32")
    attend("attend f32 at one list", 4, 2, [(2, 70, 1, 1, True)], elem="f32")
    attend("attend f32 at tokens and blocks", 4, 2, [(2, 40, 1, 1, False), (2, 3, 32, 1, False)], elem="f32")
    attend("attend mixed types", 4, 2, elem=("bf16", "f16", "f32", "f16"), d=72)
    attend("attend odd head dims", 4, 1, elem="bf16", d=65, dv=33)
    attend("attend f16, one column", 2, 2, [(2, 5, 32, 1, False)], elem="f16", d=7, dv=1)


add_several_selections()
add_heads()
add_cuda_cores()
add_gathered()
add_tables()
add_route_tables()
