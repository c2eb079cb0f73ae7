# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Patterns of ops that are fused: attention whose kernel makes the rows of a merge or mix, pooled projections. See gpu_patterns.py."""

from gpu_attend import CAUSAL, SHORT, raw_lists
from gpu_orders import WINDOW, tile
from gpu_patterns import SMALL, examples, keys, op, per_query, queries, states


def fused(name, join, heads, key_heads, schedule="", lists=None, mask=CAUSAL, elem="bf16", d=64, dv=None, others=("bf16",), own="bf16", result="bf16",
          own_part=0, values_are_keys=False, gate="sigmoid", rounding=1, sizes=SHORT):
    """`others` are the types of the parts that come from elsewhere, `own` that of the attention, the part number `own_part`; lists as in gpu_attend. `rounding` is what
    bounds are multiplied by."""
    wide = dv or d
    q, k, v = (f"tensor<?x{h}x?x{w}x{elem}>" for h, w in ((heads, d), (key_heads, d), (key_heads, wide)))
    row, l = (lambda e: f"tensor<?x{heads}x?x{wide}x{e}>"), f"tensor<?x{heads}x?xf32>"
    arguments = {"q": (q, queries(heads, d, elem)), "k": (k, keys(key_heads, d, elem))}
    before, value, at, at_type = "", "%v", "", ""
    if values_are_keys:
        # Values are the first columns of keys.
        value = "%vk"
        before = (f"  %zero = arith.constant 0 : index\n  %two = arith.constant 2 : index\n  %b = tensor.dim %k, %zero : {k}\n  %n = tensor.dim %k, %two : {k}\n"
                  f"  %vk = tensor.extract_slice %k[0, 0, 0, 0] [%b, {key_heads}, %n, {wide}] [1, 1, 1, 1] : {k} to {v}\n")
    else:
        arguments["v"] = v, keys(key_heads, wide, elem)
    if lists:
        g, width, block, query_block, one = lists
        shape = f"?x{g}x{1 if one else '?'}x{width}"
        at_type = f", !ssa.selection<{shape}, key_block = {block}, query_block = {query_block}>"
        arguments["t"] = f"tensor<{shape}xi32>", raw_lists(g, width, block, query_block, one)
        before += f"  %sel = ssa.from_indices %t : tensor<{shape}xi32> -> {at_type[2:]}\n"
        at = " at %sel"
    weight = states(heads) if join == "merge" else per_query(heads)
    parts = [("%o", "%l" if join == "merge" else "%g", own)]
    if join == "mix":
        arguments["g"] = l, weight
    for i, e in enumerate(others):
        arguments[f"o{i}"] = row(e), queries(heads, wide, e)
        arguments[f"w{i}"] = l, weight
        parts.insert(i if i < own_part else i + 1, (f"%o{i}", f"%w{i}", e))
    sinks = ""
    if join == "merge" and heads % 4:
        arguments["s"] = f"tensor<{heads}xf32>", examples.weights(heads)
        sinks = " sink_logits %s"
    pairs, types = ", ".join(f"({o}, {w})" for o, w, _ in parts), ", ".join(f"{row(e)}, {l}" for _, _, e in parts)
    dictionary = ", ".join(word for word in (mask, schedule and f"ssa.schedule = #ssa.schedule<{schedule}>") if word)
    attention = f"  %o, %l = ssa.sparse_attend %q, %k, {value}{at} {{{dictionary}}} : {q}, {k}, {v}{at_type} -> {row(own)}, {l}\n"
    if join == "merge":
        types += f", tensor<{heads}xf32>" if sinks else ""
        last = f"  %r, %z = ssa.merge {pairs}{sinks} : {types} -> {row(result)}, {l}\nreturn %r, %z : {row(result)}, {l}"
    else:
        last = f"  %r = ssa.mix {pairs} {{gate = {gate}}} : {types} -> {row(result)}\nreturn %r : {row(result)}"
    op(
        f"{join} in the kernel: {name}",
        before + attention + last,
        "rows lse" if join == "merge" else "rows",
        " ".join(["k" if values_are_keys else "v"] + [f"o{i}" for i in range(len(others))]),
        " ".join(f"{n}:{t}".replace(" ", "") for n, (t, _) in arguments.items()),
        branches=rounding * (len(parts) if join == "mix" else 1),
        queries_vary=not lists or lists[3] == 1,
        sizes=sizes,
        **{n: make for n, (_, make) in arguments.items()},
    )


LISTS = (2, 5, 64, 1, False)


def add_joins():
    for join in ("merge", "mix"):
        fused("a sink alone" if join == "merge" else "one part", join, 6, 2, others=(), own="f32")
        fused("three parts, group 3", join, 6, 2, others=("bf16", "f32"), own_part=1, mask=WINDOW)
        fused("rows of 72, f16", join, 4, 4, elem="f16", d=72, others=("f16",), own="f32", result="f16")
        fused("f32 results", join, 8, 2, d=128, others=("bf16", "f32"), own="f32", result="f32", own_part=2, rounding=16)  # weights are rounded to bf16
        fused("lists of tokens", join, 8, 2, lists=(2, 100, 1, 1, False), others=("f32",))
        fused("lists of 64 queries", join, 8, 2, lists=(2, 3, 128, 64, False), d=128)
        fused("values of 384", join, 2, 1, elem="f16", d=384, others=("f16",), own="f16", result="f16", sizes=SMALL)
        fused("576/512", join, 16, 1, lists=(1, 70, 1, 1, False), d=576, dv=512, values_are_keys=True, others=("f32",), sizes=SMALL)
        fused("union", join, 32, 2, "order = union, " + tile(64, 64), LISTS, d=128)
        fused("key_outer", join, 8, 2, "order = key_outer, " + tile(64, 64), LISTS, others=("f32", "bf16"), own_part=1)
        fused("split", join, 8, 2, tile(64, 64) + ", split = 4", others=("bf16", "f32"), own_part=2)
        fused("mma_sync", join, 8, 2, tile(16, 16, 4, "mma_sync"), LISTS)
    fused("gates that are factors", "mix", 8, 2, gate="none", others=("bf16", "bf16"))


def add_pools():
    x, w = "tensor<?x1x?x72xbf16>", "tensor<3x72x16xbf16>"
    y = "tensor<?x3x?x16xbf16>"
    op(
        "pool before its projection",
        f"  %y = ssa.project %x, %w : {x}, {w} -> {y}\n  %m = ssa.pool mean %y {{blocks = #ssa.blocks<24, stride = 16>}} : {y} -> {y}\nreturn %m : {y}",
        "scores",
        "",
        f"x:{x} w:{w}",
        x=keys(1, 72),
        w=examples.weights(3, 72, 16, fmt="bf16"),
        sizes=SHORT,
        queries_vary=False,
    )


def shared(name, heads, cells, d, route, blocks=(16, 16), mask=CAUSAL, elem="bf16", key_heads=None, late=False, topk="", width=0, sizes=SHORT):
    """A softmax whose sums attention makes, which stands behind it if it is `late`: scores, or with `topk` lists, and the attention."""
    size, stride = blocks
    count = lambda n: -(-n // size) if size == stride else max((n - size) // stride + 1, 0)
    key_heads = key_heads or cells
    q, k, t = f"tensor<?x{heads}x?x{d}x{elem}>", f"tensor<?x{key_heads}x?x{d}x{elem}>", f"tensor<?x{key_heads}x?x8xbf16>"
    s, l, o = f"tensor<?x{cells}x?x?xf32>", f"tensor<?x{heads}x?xf32>", f"tensor<?x{heads}x?x{d}x{elem}>"
    summaries = lambda rng, b, m, n: keys(key_heads, d, elem)(rng, b, count(n), count(n))
    seen = f"blocks = #ssa.blocks<{size}, stride = {stride}>, {mask}"
    attention = f"  %o, %l = ssa.sparse_attend %q, %k, %v of %t {{{seen}}} : {q}, {k}, {k}, {t} -> {o}, {l}\n"
    scores = f"  %s = ssa.route %q, %k of %t {{{seen}, {route}, normalize = softmax}} : {q}, {k}, {t} -> {s}\n"
    made, made_type = "%s", s
    if topk:
        a, made, made_type = f"!ssa.selection<?x{cells}x?x{width}, key_block = {size}, sorted>", "%i", f"tensor<?x{cells}x?x{width}xi32>"
        scores += f"  %a = ssa.topk %s of %t {{{topk}}} : {s}, {t} -> {a}\n  %i = ssa.to_indices %a : {a} -> {made_type}\n"
    op(
        f"sums of attention: {name}",
        (scores + attention if late else attention + scores) + f"return {made}, %o, %l : {made_type}, {o}, {l}",
        f"{'list' if topk else 'scores'} rows lse",
        "v",
        f"q:{q} k:{k} v:{k} t:{t}",
        outliers=0.01 if topk else 0,
        sizes=sizes,
        q=queries(heads, d, elem),
        k=summaries,
        v=summaries,
        t=keys(key_heads, 8),
    )


def add_shared_sums():
    forced, one_kernel = f"{CAUSAL}, init_blocks = 1, local_blocks = 2", "ssa.fused_select = #ssa.fused_select<min_columns = 1, max_columns = 4096{}>"
    many = ((133, 3, 300), (3, 640, 700))
    shared("16 heads", 32, 2, 128, "reduce = sum")
    shared("20 heads, overlapping blocks", 20, 1, 64, "reduce = max", (32, 16), late=True)
    shared("every head, window and sink", 6, 6, 72, "reduce = none", (4, 4), "mask = #ssa.mask<causal, window = 90, sink = 20>", "f16", 3)
    shared("f32", 4, 2, 64, "reduce = sum", (8, 8), elem="f32")
    shared("head dim 256, window both ways", 4, 2, 256, "reduce = sum", (1, 1), "mask = #ssa.mask<window = 40>")
    shared("16 heads, 16 blocks", 32, 2, 64, "reduce = sum", late=True, topk=f"{forced}, {one_kernel.format('')}", width=16, sizes=many)
    shared("20 heads, 70 blocks", 20, 1, 40, "reduce = sum", (2, 2), topk=f"{forced}, {one_kernel.format(', stretch = 128')}", width=70, sizes=((133, 3, 500),))
    shared("in chunks", 8, 2, 64, "reduce = sum", topk=f"{forced}, ssa.chunk = #ssa.chunk<bytes = 4096, rows = 16>", width=4)


add_joins()
add_pools()
add_shared_sums()
