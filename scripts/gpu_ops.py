# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Patterns of single ops: see gpu_patterns.py."""

import numpy as np

from gpu_patterns import (
    ALL,
    LONG,
    SMALL,
    examples,
    keys,
    lists,
    op,
    per_query,
    positive_scores,
    queries,
    scores,
    states,
    tokens,
    whole_scores,
)


def add_merges():
    for elem in ("bf16", "f16", "f32"):
        for heads, width in ((4, 128), (3, 80)):
            q, l = f"tensor<?x{heads}x?x{width}x{elem}>", f"tensor<?x{heads}x?xf32>"
            op(
                f"merge {elem} {heads}x{width}",
                f"  %o, %l = ssa.merge (%o1, %l1), (%o2, %l2), (%o3, %l3) : {q}, {l}, {q}, {l}, {q}, {l} -> {q}, {l}\n"
                f"return %o, %l : {q}, {l}",
                "rows lse",
                "o1 o2 o3",
                f"o1:{q} l1:{l} o2:{q} l2:{l} o3:{q} l3:{l}",
                o1=queries(heads, width, elem),
                l1=states(heads),
                o2=queries(heads, width, elem),
                l2=states(heads),
                o3=queries(heads, width, elem),
                l3=states(heads),
            )
    q, l = "tensor<?x4x?x64xbf16>", "tensor<?x4x?xf32>"
    op(
        "merge with sinks",
        f"  %o, %l = ssa.merge (%o1, %l1), (%o2, %l2) sink_logits %s : {q}, {l}, {q}, {l}, tensor<4xf32> -> {q}, {l}\n"
        f"return %o, %l : {q}, {l}",
        "rows lse",
        "o1 o2",
        f"o1:{q} l1:{l} o2:{q} l2:{l} s:tensor<4xf32>",
        o1=queries(4, 64),
        l1=states(4),
        o2=queries(4, 64),
        l2=states(4),
        s=examples.weights(4),
    )
    for gate in ("sigmoid", "none"):
        op(
            f"mix gate {gate}",
            f"  %o = ssa.mix (%o1, %g1), (%o2, %g2) {{gate = {gate}}} : {q}, {l}, {q}, {l} -> {q}\nreturn %o : {q}",
            "rows",
            "o1 o2",
            f"o1:{q} g1:{l} o2:{q} g2:{l}",
            o1=queries(4, 64),
            g1=per_query(4),
            o2=queries(4, 64),
            g2=per_query(4),
        )


def add_rows():
    for kind in ("mean", "max", "min"):
        for blocks in ("64", "32, stride = 16", "48, offset = -5"):
            t = "tensor<?x3x?x80xbf16>"
            op(
                f"pool {kind} {blocks}",
                f"  %y = ssa.pool {kind} %k {{blocks = #ssa.blocks<{blocks}>}} : {t} -> {t}\nreturn %y : {t}",
                "rows",
                "k",
                f"k:{t}",
                k=keys(3, 80),
                queries_vary=False,
            )
    t = "tensor<?x2x?x128xf8E4M3FN>"
    op(
        "pool mean f8 with scales",
        "  %y = ssa.pool mean %k scales %s {blocks = #ssa.blocks<128>} : "
        f"{t}, tensor<?x2x?xf32> -> tensor<?x2x?x128xbf16>\nreturn %y : tensor<?x2x?x128xbf16>",
        "rows",
        "k",
        f"k:{t} s:tensor<?x2x?xf32>",
        k=keys(2, 128, "f8E4M3FN"),
        s=lambda rng, b, m, n: rng.uniform(0.5, 1.0, (b, 2, n)).astype(np.float32),
        queries_vary=False,
    )
    x, w, y = "tensor<?x4x?x128xbf16>", "tensor<4x128x16xbf16>", "tensor<?x4x?x16xbf16>"
    op(
        "project bf16",
        f"  %y = ssa.project %x, %w : {x}, {w} -> {y}\nreturn %y : {y}",
        "scores",
        "",
        f"x:{x} w:{w}",
        x=queries(4, 128),
        w=examples.weights(4, 128, 16, fmt="bf16"),
    )
    for elem, width, block in (("bf16", 128, 1), ("f16", 64, 32), ("f32", 24, 3)):
        k, sel = f"tensor<?x2x?x{width}x{elem}>", f"!ssa.selection<?x4x?x5, key_block = {block}>"
        rows = f"tensor<?x4x?x{5 * block}x{width}x{elem}>"
        op(
            f"gather {elem} blocks of {block}",
            f"  %s = ssa.from_indices %t : tensor<?x4x?x5xi32> -> {sel}\n"
            f"  %g = ssa.gather %k at %s : {k}, {sel} -> {rows}\n"
            f"return %g : {rows}",
            "list",
            "",
            f"k:{k} t:tensor<?x4x?x5xi32>",
            k=keys(2, width, elem),
            t=lists(4, 5, block),
            sizes=SMALL + ((1, 200, 1000),),
        )


def add_lists():
    for width in (1, 5, 64, 100, 2048):
        raw, out = (
            f"!ssa.selection<?x2x?x{width}, key_block = 1>",
            f"!ssa.selection<?x2x?x{width}, key_block = 1, sorted>",
        )
        t = f"tensor<?x2x?x{width}xi32>"
        op(
            f"sort {width}",
            f"  %a = ssa.from_indices %t : {t} -> {raw}\n"
            f"  %b = ssa.sort %a : {raw} -> {out}\n"
            f"  %r = ssa.to_indices %b : {out} -> {t}\n"
            f"return %r : {t}",
            "list",
            "",
            f"t:{t}",
            t=lists(2, width),
            sizes=SMALL + ((1, 40, 5000),),
        )
    for first, second in ((4, 7), (64, 100)):
        a, b = (f"!ssa.selection<?x2x?x{w}, key_block = 16>" for w in (first, second))
        out = f"!ssa.selection<?x2x?x{first + second}, key_block = 16, sorted>"
        r = f"tensor<?x2x?x{first + second}xi32>"
        op(
            f"union {first} and {second}",
            f"  %a = ssa.from_indices %s : tensor<?x2x?x{first}xi32> -> {a}\n"
            f"  %b = ssa.from_indices %t : tensor<?x2x?x{second}xi32> -> {b}\n"
            f"  %c = ssa.union %a, %b : {a}, {b} -> {out}\n  %r = ssa.to_indices %c : {out} -> {r}\nreturn %r : {r}",
            "list",
            "",
            f"s:tensor<?x2x?x{first}xi32> t:tensor<?x2x?x{second}xi32>",
            s=lists(2, first, 16),
            t=lists(2, second, 16),
            sizes=SMALL + ((1, 40, 5000),),
        )


def add_selectors():
    def topk(name, width, block, dictionary, maker, blocks, sizes=ALL):
        sel = f"!ssa.selection<?x2x?x{width}, key_block = {block}, sorted>"
        s, k, r = "tensor<?x2x?x?xf32>", "tensor<?x1x?x16xbf16>", f"tensor<?x2x?x{width}xi32>"
        op(
            name,
            f"  %a = ssa.topk %s of %k {dictionary} : {s}, {k} -> {sel}\n"
            f"  %r = ssa.to_indices %a : {sel} -> {r}\n"
            f"return %r : {r}",
            "list",
            "",
            f"s:{s} k:{k}",
            s=maker(2, blocks),
            k=tokens(),
            sizes=sizes,
        )

    def of(block):
        return lambda n: -(-n // block)

    causal = "mask = #ssa.mask<causal>"
    for width in (1, 16, 33):
        topk(f"topk {width} of blocks of 64", width, 64, f"{{{causal}}}", scores, of(64))
    topk("topk 16, forced blocks", 16, 64, f"{{{causal}, init_blocks = 1, local_blocks = 2}}", scores, of(64))
    topk("topk 16, top_p", 16, 64, f"{{{causal}, top_p = 0.7}}", positive_scores, of(64))
    topk("topk 16, threshold", 16, 64, f"{{{causal}, threshold = 0.5}}", scores, of(64))
    topk("topk 16, ties", 16, 16, f"{{{causal}}}", whole_scores, of(16))
    for width in (256, 2048):
        topk(
            f"topk {width} of tokens", width, 1, f"{{{causal}}}", scores, of(1), SMALL + ((1, 40, 5000), (1, 8, 32768))
        )
    s, k = "tensor<?x4x?x?xf32>", "tensor<?x1x?x16xbf16>"
    for kind in ("sum", "max"):
        op(
            f"rebin {kind} 32/16 to 64",
            f"  %i = ssa.rebin {kind} %s of %k {{from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>}} : {s}, {k} -> {s}\n"
            f"return %i : {s}",
            "scores",
            "",
            f"s:{s} k:{k}",
            s=scores(4, lambda n: max((n - 32) // 16 + 1, 0)),
            k=tokens(),
            sizes=SMALL + LONG[:2],
        )


def add_routes():
    short = SMALL + LONG[:2]

    def route(name, options, tq, tk, out, arguments, region="", extra=()):
        """`extra` has clauses (keyword, argument, type) after the keys."""
        clauses = "".join(f" {keyword} %{n}" for keyword, n, _ in extra)
        types = "".join(f", {t}" for _, _, t in extra)
        op(
            name,
            f"  %y = ssa.route %q, %k{clauses} {{{options}}}{region} : {tq}, {tk}{types} -> {out}\nreturn %y : {out}",
            "scores",
            "",
            f"q:{tq} k:{tk}" + "".join(f" {n}:{t}" for _, n, t in extra),
            sizes=short,
            **arguments,
        )

    q, k, out = "tensor<?x8x?x128xbf16>", "tensor<?x2x?x128xbf16>", "tensor<?x2x?x?xf32>"
    causal, plain = "mask = #ssa.mask<causal>", dict(q=queries(8, 128), k=keys(2, 128))
    route("route sum of 4 heads", f"{causal}, reduce = sum", q, k, out, plain)
    route("route softmax and max", f"{causal}, normalize = softmax, reduce = max", q, k, out, plain)
    # From step to step scores rise, so that sums would overflow, and fall, by more than a sum that is relative to the first would bear.
    steps = lambda rng, b, m, n: np.where(np.arange(n)[:, None] // 64 % 3 == 1, 100, 1).astype(np.float32) * keys(2, 128)(rng, b, m, n)
    route("route softmax and max, scores that rise", f"{causal}, normalize = softmax, reduce = max", q, k, out, dict(q=queries(8, 128), k=steps))
    narrow = "tensor<?x8x?x128xf8E4M3FN>", "tensor<?x1x?x128xf8E4M3FN>", "tensor<?x1x?x?xf32>"
    region = (
        " score (%x, %wh, %b, %h, %p, %j) {\n"
        "    %zero = arith.constant 0.0 : f32\n"
        "    %r = arith.maximumf %x, %zero : f32\n"
        "    %z = arith.mulf %r, %wh : f32\n    ssa.yield %z : f32\n  }"
    )
    route(
        "route of an indexer, f8",
        f"scale = 1.0, {causal}, reduce = sum",
        *narrow,
        dict(q=queries(8, 128, "f8E4M3FN"), k=keys(1, 128, "f8E4M3FN"), w=per_query(8), sc=examples.scales()),
        region,
        (("weights", "w", "tensor<?x8x?xf32>"), ("scales", "sc", "tensor<?x1x?xf32>")),
    )


def add_attends():
    def attend(name, hq, hk, d, dv, dictionary, elem="bf16", at="", types="", before="", sizes=ALL, **lists_):
        q, k, v, o = (f"tensor<?x{h}x?x{w}x{elem}>" for h, w in ((hq, d), (hk, d), (hk, dv), (hq, dv)))
        l = f"tensor<?x{hq}x?xf32>"
        declared = f"q:{q} k:{k} v:{v}" + "".join(f" {n}:{t}" for n, (t, _) in lists_.items())
        op(
            name,
            f"{before}  %o, %l = ssa.sparse_attend %q, %k, %v{at} {{{dictionary}}} : {q}, {k}, {v}{types} -> {o}, {l}\n"
            f"return %o, %l : {o}, {l}",
            "rows lse",
            "v",
            declared,
            q=queries(hq, d, elem),
            k=keys(hk, d, elem),
            v=keys(hk, dv, elem),
            sizes=sizes,
            **{n: maker for n, (_, maker) in lists_.items()},
        )

    causal, short = "mask = #ssa.mask<causal>", SMALL + LONG[:2]
    for group in (1, 3, 5, 16):
        attend(f"attend causal, group {group}", 2 * group, 2, 128, 128, causal, sizes=short)
    attend("attend window 100, sink 3", 4, 2, 64, 64, "mask = #ssa.mask<causal, window = 100, sink = 3>")
    attend("attend f16, 192/128", 4, 1, 192, 128, causal, "f16", sizes=short)
    attend("attend 576/512, 16 heads", 16, 1, 576, 512, causal, sizes=SMALL)
    attend("attend d 80", 3, 3, 80, 80, causal, sizes=short)
    for width, block, heads, group in ((16, 64, 4, 4), (5, 32, 2, 1), (300, 1, 8, 8), (3, 128, 6, 3)):
        g = heads // group
        sel, t = f"!ssa.selection<?x{g}x?x{width}, key_block = {block}>", f"tensor<?x{g}x?x{width}xi32>"
        attend(
            f"attend at {width} x {block}, group {group}",
            heads,
            g,
            128,
            128,
            causal,
            at=" at %s",
            types=f", {sel}",
            before=f"  %s = ssa.from_indices %t : {t} -> {sel}\n",
            t=(t, lists(g, width, block)),
        )


add_merges()
add_rows()
add_lists()
add_selectors()
add_routes()
add_attends()
