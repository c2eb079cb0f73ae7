# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Patterns of routing and selecting in one kernel, and of long rows and wide lists in chunks: see gpu_patterns.py."""

import numpy as np

from gpu_patterns import examples, keys, op, per_query, queries

# With more tiles of queries than a GPU has multiprocessors: few queries of many sequences, and many of few.
MANY = ((133, 3, 300), (133, 1, 20))
LONG = ((3, 640, 700),)
# With so few that rows in stretches are split into parts, in a tile of which nobody sees a score, too.
SPLIT = ((1, 1, 40), (1, 5, 2050), (2, 17, 777), (1, 3, 20000))


def whole(heads, dim, elem="bf16"):
    """Numbers of which products are exact, with many ties."""
    return lambda rng, b, m, n: rng.integers(-1, 2, (b, heads, m, dim)).astype(np.float32)


FUSED = "ssa.fused_select = #ssa.fused_select<min_columns = 1, max_columns = 4096{}>"


def select_form(name, hq, hk, d, width, route, topk, blocks=(16, 16), elem="bf16", region="", extra=(), exact=False, sizes=MANY + LONG, stretch=0,
                rebin=None):
    """A row for route and topk; `extra` has further clauses of route: keyword, argument, type, maker. With `stretch` rows are selected from while
    they are being scored; `rebin` is a kind and the blocks that scores are regrouped to."""
    size, stride = blocks
    count = lambda n: -(-n // size) if size == stride else max((n - size) // stride + 1, 0)
    made = whole if exact else queries
    if width <= 64 or stretch:
        topk = f"{FUSED.format(f', stretch = {stretch}' if stretch else '')}, {topk}"
    kind, regrouped = rebin or ("", stride)
    q, k, t = f"tensor<?x{hq}x?x{d}x{elem}>", f"tensor<?x{hk}x?x{d}x{elem}>", f"tensor<?x{hk}x?x8xbf16>"
    s, a, l = f"tensor<?x{hk}x?x?xf32>", f"!ssa.selection<?x{hk}x?x{width}, key_block = {regrouped}, sorted>", f"tensor<?x{hk}x?x{width}xi32>"
    clauses = "".join(f" {keyword} %{n}" for keyword, n, _, _ in extra)
    types = ", ".join([q, k, t] + [kind for _, _, kind, _ in extra])
    summaries = whole(hk, d, elem) if exact else keys(hk, d, elem)
    arguments = {
        "q": lambda rng, b, m, n: made(hq, d, elem)(rng, b, m, n),
        "k": lambda rng, b, m, n: summaries(rng, b, count(n), count(n)),
        "t": keys(hk, 8),
    } | {n: maker for _, n, _, maker in extra}
    op(
        name,
        f"  %s = ssa.route %q, %k of %t{clauses} {{blocks = #ssa.blocks<{size}, stride = {stride}>, {route}}}{region} : {types} -> {s}\n"
        + (f"  %i = ssa.rebin {kind} %s of %t {{from = #ssa.blocks<{size}, stride = {stride}>, to = #ssa.blocks<{regrouped}>}} : {s}, {t} -> {s}\n" if rebin else "")
        + f"  %a = ssa.topk %{'i' if rebin else 's'} of %t {{{topk}}} : {s}, {t} -> {a}\n"
        f"  %l = ssa.to_indices %a : {a} -> {l}\nreturn %l : {l}",
        "list",
        "",
        " ".join(f"{n}:{kind}" for n, kind in zip(arguments, [q, k, t] + [kind for _, _, kind, _ in extra])),
        outliers=0 if exact else 0.01,
        sizes=sizes,
        **arguments,
    )


RELU = """ score (%x, %wh, %b, %h, %p, %j) {
    %zero = arith.constant 0.0 : f32
    %r = arith.maximumf %x, %zero : f32
    %z = arith.mulf %r, %wh : f32
    ssa.yield %z : f32
  }"""


def add_selects():
    causal, softmax = "mask = #ssa.mask<causal>", "normalize = softmax, reduce = sum"
    forced = f"{causal}, init_blocks = 1, local_blocks = 2"
    select_form("select 16 of a softmax over 16 heads", 32, 2, 64, 16, f"{causal}, {softmax}", forced)
    select_form("select 5 of a softmax over 3 heads, threshold", 12, 4, 72, 5, f"{causal}, {softmax}", f"{causal}, threshold = 0.3", elem="f16")
    select_form("select 64 of a softmax over 20 heads", 20, 1, 128, 64, f"{causal}, {softmax}", forced, blocks=(4, 4))
    select_form("select 3 of one head", 4, 4, 128, 3, f"{causal}, scale = 0.5, reduce = sum", f"{causal}, local_blocks = 1", exact=True)
    select_form("select 7 of a maximum, window and sink", 8, 2, 40, 7, "mask = #ssa.mask<causal, window = 100, sink = 20>, scale = 0.5, reduce = max",
                "mask = #ssa.mask<causal, window = 60, sink = 20>", exact=True)
    select_form("select 40 where all see all, ties", 16, 1, 16, 40, "scale = 0.5, reduce = sum", "local_blocks = 3", exact=True)
    weights = ("weights", "w", "tensor<?x64x?xf32>", per_query(64))
    narrow = (weights, ("scales", "sc", "tensor<?x1x?xf32>", lambda rng, b, m, n: examples.scales()(rng, b, m, n)))
    select_form("select 16 tokens, f8", 64, 1, 128, 16, f"scale = 1.0, {causal}, reduce = sum", causal, (1, 1), "f8E4M3FN", RELU, narrow)
    # In chunks: wide lists of long rows.
    few = lambda *values: lambda size: lambda rng, b, m, n: rng.choice(np.float32(values), size(b, m, n))
    exact = (("weights", "w", "tensor<?x64x?xf32>", few(-1, 0, 1, 2)(lambda b, m, n: (b, 64, m))),
             ("scales", "sc", "tensor<?x1x?xf32>", few(0.5, 1, 2)(lambda b, m, n: (b, 1, n))))
    select_form("select 2048 tokens, f8", 64, 1, 128, 2048, f"scale = 1.0, {causal}, reduce = sum", causal, (1, 1), "f8E4M3FN", RELU, exact,
                exact=True, sizes=((1, 20, 20000), (2, 3, 5000)))
    signs = (exact[0], ("scales", "sc", "tensor<?x1x?xf32>", few(-1, 0, 1, 2)(lambda b, m, n: (b, 1, n))))
    select_form("select 16 tokens, scales of any sign", 64, 1, 128, 16, f"scale = 1.0, {causal}, reduce = sum", causal, (1, 1), "f8E4M3FN",
                RELU, signs, exact=True)
    add_streams(few)


def add_streams(few):
    """Rows that are selected from while they are being scored: several stretches, and lists that are full."""
    causal, softmax = "mask = #ssa.mask<causal>", "normalize = softmax, reduce = sum"
    forced = f"{causal}, init_blocks = 1, local_blocks = 2"
    sizes = ((9, 3, 900), (9, 40, 1500)) + SPLIT
    select_form("stream 100 tokens", 16, 16, 16, 100, f"{causal}, reduce = sum", causal, (1, 1), stretch=128, sizes=sizes)
    select_form("stream 20 tokens, ties", 16, 16, 16, 20, "scale = 0.5, reduce = sum", "threshold = 0.5", (1, 1), exact=True, stretch=64, sizes=sizes)
    select_form("stream 90 tokens of 3 heads, forced", 48, 16, 16, 90, f"{causal}, reduce = max, scale = 0.5", forced, (1, 1), exact=True, stretch=192, sizes=sizes)
    select_form("stream 70 of a softmax over 20 heads", 20, 1, 40, 70, f"{causal}, {softmax}", forced, (2, 2), stretch=128, sizes=((133, 3, 500),))
    select_form("stream 30 tokens, window and sink", 16, 16, 16, 30, "mask = #ssa.mask<causal, window = 700, sink = 20>, scale = 0.5, reduce = sum",
                "mask = #ssa.mask<causal>, init_blocks = 3, local_blocks = 2", (1, 1), exact=True, stretch=128, sizes=sizes)
    select_form("stream 30 tokens, window", 16, 16, 16, 30, "mask = #ssa.mask<causal, window = 300>, reduce = sum",
                "mask = #ssa.mask<causal>, init_blocks = 3, local_blocks = 2", (1, 1), stretch=128, sizes=sizes)
    # Stretches of which columns are looked at side by side; a last round that is divided, as 144 tiles are for 132 blocks.
    select_form("stream 600 tokens, side by side", 16, 16, 16, 600, f"{causal}, reduce = sum", causal, (1, 1), stretch=1024, sizes=((9, 3, 4200),))
    select_form("stream 20 tokens, side by side, ties", 16, 16, 16, 20, "scale = 0.5, reduce = sum", "threshold = 0.5, mask = #ssa.mask<causal, window = 1500>", (1, 1),
                exact=True, stretch=1024, sizes=((9, 3, 2600),))
    # Scores by pairs: more than 16 heads of a key, and single tokens.
    select_form("stream 60 tokens of 24 heads, window and sink", 24, 1, 64, 60, "mask = #ssa.mask<causal, window = 700, sink = 20>, scale = 0.5, reduce = max",
                "mask = #ssa.mask<causal>, init_blocks = 3, local_blocks = 2", (1, 1), exact=True, stretch=512, sizes=((133, 3, 900), (45, 40, 1100)))
    for kind, blocks, regrouped, width, stretch in (("sum", (32, 16), 64, 16, 64), ("max", (32, 16), 64, 5, 64), ("sum", (4, 1), 1, 90, 64), ("sum", (8, 4), 8, 40, 128),
                                                    ("max", (1, 1), 16, 16, 192)):
        select_form(f"stream {width} of {blocks[0]}/{blocks[1]} regrouped to {regrouped}, {kind}", 32, 2, 64, width,
                    f"{causal}, {softmax if blocks[0] > 1 else 'scale = 0.5, reduce = sum'}", forced, blocks, stretch=stretch, rebin=(kind, regrouped),
                    sizes=((67, 3, 2050), (67, 20, 777)) + SPLIT + ((1, 20, 20), (1, 50, 50)))
    select_form("stream 12 of 32/16 regrouped to 64, window", 32, 2, 64, 12, "mask = #ssa.mask<causal, window = 900>, scale = 0.5, reduce = sum", forced, (32, 16),
                stretch=64, rebin=("sum", 64), exact=True, sizes=((67, 3, 2050),) + SPLIT)
    exact = (("weights", "w", "tensor<?x64x?xf32>", few(-1, 0, 1, 2)(lambda b, m, n: (b, 64, m))),
             ("scales", "sc", "tensor<?x1x?xf32>", few(-1, 0, 1, 2)(lambda b, m, n: (b, 1, n))))
    pairs = (("weights", "w", "tensor<?x24x?xf32>", few(-1, 0, 1, 2)(lambda b, m, n: (b, 24, m))),
             ("scales", "sc", "tensor<?x1x?xf32>", few(-1, 0, 1, 2)(lambda b, m, n: (b, 1, -(-n // 2)))))
    select_form("stream 80 blocks of 2, 24 heads, scales of any sign", 24, 1, 64, 80, f"scale = 1.0, {causal}, reduce = sum", causal, (2, 2), "bf16", RELU, pairs,
                exact=True, stretch=128, sizes=((133, 3, 700),))
    select_form("stream 200 tokens, f8", 64, 1, 128, 200, f"scale = 1.0, {causal}, reduce = sum", causal, (1, 1), "f8E4M3FN", RELU, exact, exact=True,
                stretch=256, sizes=((133, 3, 1100),))


add_selects()
