# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Patterns of single ops in all their forms, clause by clause, and what stands between ops: see gpu_patterns.py."""

import numpy as np

from gpu_patterns import (
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
    tokens,
    whole_scores,
)


def route_form(
    name,
    hq,
    hk,
    g,
    d,
    options,
    blocks=(16, 16),
    elem="bf16",
    query_block=1,
    within=None,
    word="",
    names=("k",),
    extra=(),
):
    """A row for route on summaries of `blocks` (size, stride); `extra` has further clauses: keyword, argument, type, maker."""
    size, stride = blocks
    q, k, tokens = f"tensor<?x{hq}x?x{d}x{elem}>", f"tensor<?x{hk}x?x{d}x{elem}>", f"tensor<?x{hk}x?x{d}xbf16>"
    operands, types, arguments, before, columns = (
        "%q, " + ", ".join(f"%{n}" for n in names) + " of %t",
        [q] + [k] * len(names) + [tokens],
        {},
        "",
        "?",
    )

    def summaries(rng, b, m, n):
        count = -(-n // size) if size == stride else max((n - size) // stride + 1, 0)
        return keys(hk, d, elem)(rng, b, m, count)

    arguments["q"] = lambda rng, b, m, n: queries(hq, d, elem)(rng, b, -(-m // query_block), n)
    arguments |= {n: summaries for n in names} | {"t": keys(hk, d)}
    if query_block > 1:
        operands, arguments["q0"] = operands + " for %q0", queries(hq, d)
        types.append(f"tensor<?x{hq}x?x{d}xbf16>")
    for keyword, n, t, maker in extra:
        operands, arguments[n] = operands + f" {keyword} %{n}", maker
        types.append(t)
    declared = dict(zip(arguments, types))
    if within:
        width, block = within
        raw, listed = f"tensor<?x{g}x?x{width}xi32>", f"!ssa.selection<?x{g}x?x{width}, key_block = {block}"
        before = f"  %a = ssa.from_indices %l : {raw} -> {listed}>\n  %c = ssa.sort %a : {listed}> -> {listed}, sorted>\n"
        operands, arguments["l"], columns = operands + " within %c", lists(g, width, block), width * block // size
        declared["l"] = raw
        types.append(f"{listed}, sorted>")
    out = f"tensor<?x{g}x?x{columns}xf32>"
    text = f"{before}  %y = ssa.route {word}{operands} {{blocks = #ssa.blocks<{size}, stride = {stride}>, {options}}} : {', '.join(types)} -> {out}"
    op(
        name,
        f"{text}\nreturn %y : {out}",
        "scores",
        "",
        " ".join(f"{n}:{t}" for n, t in declared.items()),
        sizes=tuple(case for case in SMALL + LONG[:2] if case[2] >= size),
        queries_vary=query_block == 1,
        **arguments,
    )


def add_route_forms():
    """Each clause and attribute of route on summaries of blocks, which are arguments of their own: no rounding of a pool comes between."""
    causal, softmax = "mask = #ssa.mask<causal>", "normalize = softmax, reduce = sum"
    route_form("route overlapping blocks, softmax", 16, 1, 1, 128, f"{causal}, {softmax}", (32, 16))
    route_form("route 4 key heads of a selection head", 16, 4, 1, 128, f"{causal}, {softmax}")
    route_form("route 3 heads, 2 to a key head", 12, 6, 4, 72, f"{causal}, visible = partial, reduce = max", elem="f16")
    route_form("route 20 heads", 20, 1, 1, 64, f"{causal}, {softmax}")
    route_form(
        "route window and sink",
        6,
        2,
        6,
        72,
        "mask = #ssa.mask<causal, window = 100, sink = 40>, visible = partial",
        elem="f16",
    )
    route_form("route window both ways", 6, 2, 2, 80, "mask = #ssa.mask<window = 50>, reduce = sum", (24, 7))
    route_form("route query blocks", 12, 4, 4, 64, f"{causal}, query_block = 64, reduce = sum", (64, 64), query_block=64)
    route_form("route bound", 8, 2, 2, 128, f"{causal}, visible = partial, reduce = max", word="bound ", names=("k", "kx"))
    route_form(
        "route weights, f32",
        8,
        2,
        2,
        40,
        f"{causal}, {softmax}",
        elem="f32",
        extra=(("weights", "w", "tensor<?x8x?xf32>", per_query(8)),),
    )
    route_form("route 160 heads", 160, 1, 1, 128, f"{causal}, {softmax}")
    route_form("route 2 x 40 heads, max", 80, 2, 1, 64, f"{causal}, normalize = softmax, reduce = max", elem="f16")
    route_form("route bound, 64 heads", 64, 1, 1, 128, f"{causal}, reduce = sum", word="bound ", names=("k", "kx"))
    route_form("route of every head", 4, 2, 4, 128, f"{causal}, normalize = softmax", (16, 8))
    route_form(
        "route weights, softmax",
        16,
        4,
        4,
        128,
        f"{causal}, {softmax}, scale = -0.5",
        extra=(("weights", "w", "tensor<?x16x?xf32>", per_query(16)),),
    )
    route_form("route within, 4 key heads", 16, 4, 1, 64, f"{causal}, {softmax}", within=(5, 64))
    route_form("route odd head dim", 4, 2, 2, 65, f"{causal}, reduce = sum")
    route_form("route head dim 576", 16, 1, 1, 576, f"{causal}, reduce = sum")
    route_form("route head dim 576, softmax", 20, 1, 1, 576, f"{causal}, {softmax}")
    route_form("route head dim 400, 3 heads, softmax", 6, 2, 2, 400, f"{causal}, normalize = softmax, reduce = max")
    route_form("route within lists of single queries", 64, 1, 1, 128, f"{causal}, reduce = sum", (1, 1), within=(12, 64))
    route_form("route within, softmax", 8, 2, 2, 64, f"{causal}, {softmax}", within=(5, 64))


def add_project_forms():
    for elem, rows, heads, inner, rank in (
        ("bf16", 1, 8, 7168, 64),
        ("f16", 4, 1, 130, 200),
        ("f32", 3, 3, 72, 6),
        ("bf16", 2, 2, 64, 33),
    ):
        x, w, y = (
            f"tensor<?x{rows}x?x{inner}x{elem}>",
            f"tensor<{heads}x{inner}x{rank}x{elem}>",
            f"tensor<?x{max(rows, heads)}x?x{rank}xf32>",
        )
        op(
            f"project {elem} {inner}x{rank}",
            f"  %y = ssa.project %x, %w : {x}, {w} -> {y}\nreturn %y : {y}",
            "scores",
            "",
            f"x:{x} w:{w}",
            x=queries(rows, inner, elem),
            w=examples.weights(heads, inner, rank, fmt=elem),
            sizes=SMALL,
        )


def add_pool_forms():
    """pool with every kind of block, type and row length."""
    for kind, blocks, elem, out, heads, width in (
        ("max", "8, stride = 4, offset = -4", "f32", "f32", 1, 24),
        ("mean", "1", "f16", "f32", 3, 40),
        ("mean", "700", "bf16", "bf16", 2, 128),
        ("mean", "5000", "f32", "f32", 1, 64),
        ("min", "32, stride = 1", "bf16", "f32", 1, 576),
        ("mean", "64", "bf16", "bf16", 2, 3),
    ):
        x, y = (f"tensor<?x{heads}x?x{width}x{t}>" for t in (elem, out))
        op(
            f"pool {kind} {blocks}, {elem} to {out}, rows of {width}",
            f"  %y = ssa.pool {kind} %k {{blocks = #ssa.blocks<{blocks}>}} : {x} -> {y}\nreturn %y : {y}",
            "rows",
            "k",
            f"k:{x}",
            k=keys(heads, width, elem),
            queries_vary=False,
        )
    for kind in ("max", "min"):
        x, y, s = "tensor<?x2x?x48xf8E4M3FN>", "tensor<?x2x?x48xf32>", "tensor<?x2x?xf32>"
        op(
            f"pool {kind} f8 with scales",
            f"  %y = ssa.pool {kind} %k scales %s {{blocks = #ssa.blocks<32, stride = 16>}} : {x}, {s} -> {y}\nreturn %y : {y}",
            "rows",
            "k",
            f"k:{x} s:{s}",
            k=keys(2, 48, "f8E4M3FN"),
            s=lambda rng, b, m, n: rng.uniform(0.5, 1.0, (b, 2, n)).astype(np.float32),
            queries_vary=False,
        )


def add_rebin_forms():
    t, k = "tensor<?x2x?x?xf32>", "tensor<?x1x?x16xbf16>"
    for kind, size, stride, to, query_block in (
        ("max", 1, 1, 128, 1),
        ("sum", 16, 16, 128, 8),
        ("sum", 8, 2, 2, 1),
        ("max", 64, 1, 32, 3),
        ("sum", 32, 16, 64, 50),
        ("sum", 4, 4, 4, 1),
    ):
        op(
            f"rebin {kind} {size}/{stride} to {to}, {query_block} rows",
            f"  %i = ssa.rebin {kind} %s of %k {{from = #ssa.blocks<{size}, stride = {stride}>, query_block = {query_block}, "
            f"to = #ssa.blocks<{to}>}} : {t}, {k} -> {t}\nreturn %i : {t}",
            "scores",
            "",
            f"s:{t} k:{k}",
            s=scores(
                2,
                lambda n, size=size, stride=stride: (
                    -(-n // size) if size == stride else max((n - size) // stride + 1, 0)
                ),
            ),
            k=tokens(),
            sizes=SMALL + LONG[:1],
            queries_vary=query_block == 1,
        )


def add_gather_forms():
    k, t, sel = "tensor<?x4x?x40xbf16>", "tensor<?x2x?x3xi32>", "!ssa.selection<?x2x?x3, key_block = 7>"
    rows = "tensor<?x4x?x21x40xbf16>"
    op(
        "gather, two key heads of a list",
        f"  %s = ssa.from_indices %t : {t} -> {sel}\n  %g = ssa.gather %k at %s : {k}, {sel} -> {rows}\nreturn %g : {rows}",
        "list",
        "",
        f"k:{k} t:{t}",
        k=keys(4, 40),
        t=lists(2, 3, 7),
        sizes=SMALL,
    )


def add_list_forms():
    """Lists of every width, and unions of lists that are sorted already."""
    for width in (2, 17, 1000, 4096):
        t, raw = f"tensor<?x2x?x{width}xi32>", f"!ssa.selection<?x2x?x{width}, key_block = 1"
        op(
            f"sort {width}, few numbers",
            f"  %a = ssa.from_indices %t : {t} -> {raw}>\n  %b = ssa.sort %a : {raw}> -> {raw}, sorted>\n"
            f"  %r = ssa.to_indices %b : {raw}, sorted> -> {t}\nreturn %r : {t}",
            "list",
            "",
            f"t:{t}",
            t=lambda rng, b, m, n, width=width: rng.integers(-3, min(n, 40), (b, 2, m, width)).astype(np.int32),
            sizes=SMALL,
        )
    for first, second in ((1, 1), (16, 16), (4, 2048), (4096, 4096)):
        a, b = (f"!ssa.selection<?x2x?x{w}, key_block = 1" for w in (first, second))
        out, r = f"!ssa.selection<?x2x?x{first + second}, key_block = 1, sorted>", f"tensor<?x2x?x{first + second}xi32>"
        op(
            f"union of sorted {first} and {second}",
            f"  %a = ssa.from_indices %s : tensor<?x2x?x{first}xi32> -> {a}>\n"
            f"  %b = ssa.from_indices %t : tensor<?x2x?x{second}xi32> -> {b}>\n"
            f"  %x = ssa.sort %a : {a}> -> {a}, sorted>\n  %y = ssa.sort %b : {b}> -> {b}, sorted>\n"
            f"  %c = ssa.union %x, %y : {a}, sorted>, {b}, sorted> -> {out}\n"
            f"  %r = ssa.to_indices %c : {out} -> {r}\nreturn %r : {r}",
            "list",
            "",
            f"s:tensor<?x2x?x{first}xi32> t:tensor<?x2x?x{second}xi32>",
            s=lists(2, first),
            t=lists(2, second),
            sizes=SMALL + ((1, 3, 5000),),
        )
    t, raw = "tensor<?x2x?x33xi32>", "!ssa.selection<?x2x?x33, key_block = 1>"
    op(
        "to_indices of what is not sorted",
        f"  %a = ssa.from_indices %t : {t} -> {raw}\n  %r = ssa.to_indices %a : {raw} -> {t}\nreturn %r : {t}",
        "list",
        "",
        f"t:{t}",
        t=lists(2, 33),
        sizes=SMALL,
    )


def rectified_scores(heads, blocks):
    """Mostly zeros, of both signs."""

    def make(rng, b, m, n):
        x = np.maximum(rng.standard_normal((b, heads, m, blocks(n))) - 1.5, 0).astype(np.float32)
        return x * rng.choice(np.array([-1, 1], np.float32), x.shape)

    return make


def near_scores(heads, blocks):
    """That differ in their last bits only, and many not at all."""
    return (
        lambda rng, b, m, n: (0x3F900000 | rng.integers(0, 1024, (b, heads, m, blocks(n))))
        .astype(np.uint32)
        .view(np.float32)
    )


def rising_scores(heads, blocks):
    return lambda rng, b, m, n: np.tile(np.arange(blocks(n), dtype=np.float32) - 100, (b, heads, m, 1))


def topk_form(name, width, block, dictionary, maker, sizes=SMALL, query_block=1, within=None):
    sel = f"!ssa.selection<?x2x?x{width}, key_block = {block}, query_block = {query_block}, sorted>"
    columns = within[0] * within[1] // block if within else None
    s, k, r = f"tensor<?x2x?x{columns or '?'}xf32>", "tensor<?x1x?x16xbf16>", f"tensor<?x2x?x{width}xi32>"
    blocks = (lambda n: columns) if within else lambda n: -(-n // block)
    made = maker(2, blocks)
    arguments = {"s": lambda rng, b, m, n: made(rng, b, -(-m // query_block), n), "k": tokens()}
    declared, operands, types, before = f"s:{s} k:{k}", "%s of %k", f"{s}, {k}", ""
    if query_block > 1:
        declared, operands, types = f"{declared} q:{k}", f"{operands} for %q", f"{types}, {k}"
        arguments["q"] = lambda rng, b, m, n: np.zeros((b, 1, m, 16), np.float32)
    if within:
        raw, listed = f"tensor<?x2x?x{within[0]}xi32>", f"!ssa.selection<?x2x?x{within[0]}, key_block = {within[1]}"
        before = f"  %a = ssa.from_indices %l : {raw} -> {listed}>\n  %c = ssa.sort %a : {listed}> -> {listed}, sorted>\n"
        declared, operands, types = f"{declared} l:{raw}", f"{operands} within %c", f"{types}, {listed}, sorted>"
        arguments["l"] = lists(2, *within)
    op(
        name,
        f"{before}  %x = ssa.topk {operands} {{{dictionary}}} : {types} -> {sel}\n"
        f"  %r = ssa.to_indices %x : {sel} -> {r}\nreturn %r : {r}",
        "list",
        "",
        declared,
        sizes=sizes,
        queries_vary=query_block == 1,
        **arguments,
    )


def add_topk_forms():
    """topk with every width, mask and order of scores, in rows that a warp and a block select from."""
    causal, rows = "mask = #ssa.mask<causal>", SMALL + LONG[:2]
    for width in (2, 17, 64, 100, 128, 129, 4096):
        topk_form(f"topk {width}", width, 1, "", scores, rows)
    for name, maker in (
        ("zeros", rectified_scores),
        ("near", near_scores),
        ("rising", rising_scores),
        ("ties", whole_scores),
    ):
        for width in (16, 300):
            topk_form(f"topk {width} of tokens, {name}", width, 1, causal, maker, SMALL + ((1, 5, 4096), (1, 4, 20000)))
    for width in (1, 16, 100, 1000, 2048, 4096):
        topk_form(
            f"topk {width} of long rows",
            width,
            1,
            "",
            scores,
            ((1, 2, 4097), (1, 3, 8193), (1, 2, 70001), (1, 2, 140000)),
        )
    topk_form("topk 512 of long rows, zeros", 512, 1, "", rectified_scores, ((1, 4, 140000),))
    for mask in ("causal, window = 100", "causal, window = 100, sink = 20", "window = 50", "window = 70, sink = 3"):
        forced = f"mask = #ssa.mask<{mask}>, init_blocks = 2, local_blocks = 3"
        topk_form(f"topk 12, {mask}", 12, 16, forced, scores, rows)
        topk_form(f"topk 12, {mask}, 40 queries", 12, 16, forced, scores, SMALL + LONG[:1], query_block=40)
    topk_form("topk 6 within 8 blocks of 64", 6, 16, f"{causal}, local_blocks = 1", scores, rows, within=(8, 64))
    topk_form(
        "topk 200 within 8 blocks of 128",
        200,
        1,
        f"{causal}, init_blocks = 4, local_blocks = 16",
        scores,
        rows,
        within=(8, 128),
    )
    # Rows that a warp reads twice; most of their entries lie between forced ones.
    topk_form(
        "topk 64 within 40 blocks of 64",
        64,
        1,
        f"{causal}, init_blocks = 4, local_blocks = 16",
        scores,
        rows,
        within=(40, 64),
    )
    topk_form("topk 24 within, ties", 24, 1, "", whole_scores, SMALL, within=(9, 7))
    for share in (0.0, 0.5, 1.0):
        topk_form(f"topk 20, top_p {share}, ties", 20, 1, f"{causal}, init_blocks = 1, top_p = {share}", whole_scores, rows)
    topk_form("topk 300, top_p and threshold", 300, 1, f"{causal}, threshold = 0.25, top_p = 0.6", positive_scores, rows)
    topk_form("topk 20, top_p within", 20, 1, f"{causal}, top_p = 0.8", positive_scores, SMALL, within=(5, 32))
    topk_form("topk 16, threshold -0", 16, 1, f"{causal}, threshold = -0.0", rectified_scores)


# ---------------------------------------------------------------------------------------------------------------------
# Ops of tensor and linalg around the dialect

# Batch and rows of an argument.
SIZES = """  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %x, %c0 : TYPE
  %m = tensor.dim %x, %c2 : TYPE
"""


def add_views():
    x, wide = "tensor<?x4x?x32xbf16>", "tensor<?x4x?x512xbf16>"
    op(
        "glue: strips of 16 rows, reversed",
        SIZES.replace("TYPE", x) + """  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : bf16
  %rows = arith.ceildivsi %m, %c16 : index
  %whole = arith.muli %rows, %c16 : index
  %more = arith.subi %whole, %m : index
  %padded = tensor.pad %x low[0, 0, 0, 0] high[0, 0, %more, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : bf16
  } : tensor<?x4x?x32xbf16> to tensor<?x4x?x32xbf16>
  %split = tensor.expand_shape %padded [[0], [1], [2, 3], [4]] output_shape [%b, 4, %rows, 16, 32]
    : tensor<?x4x?x32xbf16> into tensor<?x4x?x16x32xbf16>
  %e = tensor.empty(%b, %rows) : tensor<?x4x?x16x32xbf16>
  %reversed = linalg.generic {indexing_maps = [affine_map<(b, h, x, r, d) -> (b, h, x, 15 - r, d)>,
      affine_map<(b, h, x, r, d) -> (b, h, x, r, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%split : tensor<?x4x?x16x32xbf16>) outs(%e : tensor<?x4x?x16x32xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    linalg.yield %in : bf16
  } -> tensor<?x4x?x16x32xbf16>
  %y = tensor.collapse_shape %reversed [[0], [1], [2], [3, 4]] : tensor<?x4x?x16x32xbf16> into tensor<?x4x?x512xbf16>
""" + f"return %y : {wide}",
        "list",
        "",
        f"x:{x}",
        x=queries(4, 32),
        sizes=SMALL,
        queries_vary=False,
    )


def add_reductions():
    s, row = "tensor<?x2x?x?xf32>", "tensor<?x2x?xf32>"
    op(
        "glue: sums down columns and diagonals",
        SIZES.replace("TYPE", s) + """  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %n = tensor.dim %x, %c3 : tensor<?x2x?x?xf32>
  %zero = arith.constant 0.0 : f32
  %some = arith.maxsi %m, %c1 : index
  %low = arith.subi %some, %c1 : index
  %e = tensor.empty(%b, %n) : tensor<?x2x?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?x2x?xf32>) -> tensor<?x2x?xf32>
  %skewed = tensor.pad %x low[0, 0, 0, %low] high[0, 0, 0, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<?x2x?x?xf32> to tensor<?x2x?x?xf32>
  %v = linalg.generic {indexing_maps = [affine_map<(b, h, i, r) -> (b, h, r, i)>, affine_map<(b, h, i, r) -> (b, h, i)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x : tensor<?x2x?x?xf32>) outs(%init : tensor<?x2x?xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %a = arith.maximumf %in, %zero : f32
    %y = arith.addf %acc, %a : f32
    linalg.yield %y : f32
  } -> tensor<?x2x?xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(b, h, i, r) -> (b, h, r, i + r)>, affine_map<(b, h, i, r) -> (b, h, i)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%skewed : tensor<?x2x?x?xf32>) outs(%init : tensor<?x2x?xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %y = arith.addf %acc, %in : f32
    linalg.yield %y : f32
  } -> tensor<?x2x?xf32>
""" + f"return %v, %z : {row}, {row}",
        "scores scores",
        "",
        f"x:{s}",
        x=positive_scores(2, lambda n: n),
        sizes=SMALL,
        queries_vary=False,
    )


def add_copies():
    x = "tensor<?x4x?x32xbf16>"
    op(
        "glue: concat and insert",
        SIZES.replace("TYPE", x) + f"""  %twice = tensor.concat dim(2) %x, %y, %x : ({x}, {x}, {x}) -> {x}
  %part = tensor.extract_slice %x[0, 1, 0, 8] [%b, 2, %m, 16] [1, 1, 1, 1] : {x} to tensor<?x2x?x16xbf16>
  %z = tensor.insert_slice %part into %twice[0, 2, 0, 4] [%b, 2, %m, 16] [1, 1, 2, 1] : tensor<?x2x?x16xbf16> into {x}
return %z : {x}""",
        "list",
        "",
        f"x:{x} y:{x}",
        x=queries(4, 32),
        y=queries(4, 32),
        sizes=SMALL,
        queries_vary=False,
    )


def add_constants():
    """A tensor of numbers that stands in the pattern, added to every row."""
    x = "tensor<?x2x?x3xf32>"
    op(
        "glue: a constant tensor",
        f"""  %c = arith.constant dense<[[1.5, 2.0, -3.0], [0.5, 8.0, 13.0]]> : tensor<2x3xf32>
  %y = linalg.generic {{indexing_maps = [affine_map<(b, h, m, d) -> (h, d)>, affine_map<(b, h, m, d) -> (b, h, m, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}} ins(%c : tensor<2x3xf32>) outs(%x : {x}) {{
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  }} -> {x}
return %y : {x}""",
        "scores",
        "",
        f"x:{x}",
        x=queries(2, 3, "f32"),
        sizes=SMALL,
    )


add_route_forms()
add_project_forms()
add_pool_forms()
add_rebin_forms()
add_gather_forms()
add_list_forms()
add_topk_forms()
add_views()
add_reductions()
add_copies()
add_constants()
