# RUN: %python %s
"""Scores and summaries: types, visibility, chunks, lengths, scales, NaN."""

from ssareference import *
from ssatest import *

CAUSAL = dict(causal=True)
RELU = """ score (%x, %w, %b, %h, %p, %j) {
    %zero = arith.constant 0.0 : f32
    %r = arith.maximumf %x, %zero : f32
    %y = arith.mulf %r, %w : f32
    ssa.yield %y : f32
  }"""


def relu(x, w, b, h, p, j):
    return np.maximum(x, 0) * w


def run_pool(kind, x, blocks, scales=None, elem="f32", out=None, dynamic=True):
    """The rows of ssa.pool."""
    f = Function(dynamic)
    B, H, N, D = np.shape(x)
    text = f"ssa.pool {kind} {f.input(x, elem)}" + (f" scales {f.input(scales)}" if scales is not None else "")
    rows = None if dynamic else num_blocks(N, *np.atleast_1d(blocks))
    return f.run(f.op(text + attributes(blocks=blocks), tensor((None if dynamic else B, H, rows, D), out or elem)))[0]


def compare_scores(what, got, ref):
    """Scores are f32; the bound is relative to the largest of them."""
    compare(what, got, ref, "f32", np.abs(ref[np.isfinite(ref)]).max(initial=0))


def check_route(what, q, kc, blocks=None, elem="f32", region="", score=None, visible=None, **options):
    """Runs ssa.route on inputs rounded to `elem` and compares with the reference. Returns the scores."""
    q, kc = round_to(q, elem), round_to(kc, elem)
    got = run_route(q, kc, elem=elem, region=region, blocks=blocks, visible=visible, **options)
    options.pop("dynamic", None)
    ref = route(q, kc, blocks=(1,) if blocks is None else tuple(np.atleast_1d(blocks)), score=score, partial=visible == "partial",
                **options)
    compare_scores(what, got, ref)
    return got


# --- Types and shapes ------------------------------------------------------------------------------------------------


@case
def C16_scores_are_not_rounded_to_the_type_of_the_keys():
    q, kc = np.ones((1, 1, 1, 2)), np.array([[1, 0], [1, 2.0**-10]]).reshape(1, 1, 2, 2)
    for elem in ("bf16", "f32"):
        s, chosen = run_route(q, kc, elem=elem, scale=1.0, k=1)
        compare_exact("scores", s, np.array([1, 1 + 2.0**-10]).reshape(1, 1, 1, 2))
        compare_exact("list", chosen, np.array([1]).reshape(1, 1, 1, 1))


@case
def C16_scores_differ_by_a_sum_of_small_terms():
    """A sum held in bf16 or f16 would lose every later term."""
    q, kc = np.ones((1, 1, 1, 257)), np.full((1, 1, 2, 257), 2.0**-9)
    kc[..., 0] = 1
    kc[0, 0, 0, 200] = 0
    for elem in ("bf16", "f16"):
        s, chosen = run_route(q, kc, elem=elem, scale=1.0, k=1)
        compare_exact("scores", s, np.array([1.498046875, 1.5]).reshape(1, 1, 1, 2))
        compare_exact("list", chosen, np.array([1]).reshape(1, 1, 1, 1))


@case
def C16_scores_are_rounded_to_f32():
    """Scores that differ by less than f32 can hold tie, also when route and topk stand in one function."""
    q, kc = np.ones((1, 1, 1, 2)), np.array([[1, 0], [1, 2.0**-30]]).reshape(1, 1, 2, 2)
    s, chosen = run_route(q, kc, scale=1.0, k=1)
    compare_exact("scores", s, np.ones((1, 1, 1, 2)))
    compare_exact("list", chosen, np.zeros((1, 1, 1, 1)))


@case
def G1_head_dims():
    for D in (1, 8, 40, 64, 72, 100, 128, 192, 576):
        for elem in ("f32", "bf16", "f16"):
            check_route(f"d {D} {elem}", data(1, 2, 3, D, seed=1), data(1, 1, 50, D, seed=2), elem=elem)


@case
def G5_heads():
    for Hq, Hk, G in ((1, 1, 1), (3, 1, 1), (6, 2, 2), (28, 4, 4), (8, 4, 2), (8, 2, 4), (5, 1, 1), (4, 4, 1)):
        q, kc = data(2, Hq, 3, 16, seed=1), data(2, Hk, 20, 16, seed=2)
        for reduce in ("sum", "max"):
            check_route(f"{Hq}/{Hk} to {G} {reduce}", q, kc, G=G, reduce=reduce, dynamic=True)
        check_route(f"{Hq}/{Hk}, no reduction", q, kc)


@case
def G8_many_heads():
    for H in (1, 16, 33, 64, 128):
        weights = data(1, H, 2, seed=3)
        check_route(f"{H} heads", data(1, H, 2, 32, seed=1), data(1, 1, 70, 32, seed=2), G=1, weights=weights, reduce="sum",
                    scale=1.0, region=RELU, score=relu, mask=CAUSAL)


@case
def G10_lengths_around_a_block():
    """All scores are -20: one of a row that does not exist, 0, would win."""
    for N in (1, 63, 64, 65, 127, 129, 257):
        q, k = np.full((1, 1, 2, 16), 5.0), np.full((1, 1, N, 16), -1.0)
        for size in (64, 128):
            kc = run_pool("mean", k, size)
            compare_exact(f"n {N} block {size}: summaries", kc, np.full((1, 1, -(-N // size), 16), -1))
            s, chosen = run_route(q, kc, N=N, blocks=size, k=2, key_block=size)
            compare_scores(f"n {N} block {size}", s, np.full(s.shape, -20.0))
            few = -(-N // size) < 2
            compare_exact("lists", chosen, np.tile([0, -1] if few else [0, 1], (1, 1, 2, 1)))


@case
def F10_blocks_of_every_sequence():
    """Blocks start anew in each sequence: the counts are those of the parts, not of the whole."""
    for ends, size, count in (([0, 5, 12], 4, [2, 2]), ([0, 781, 2048], 32, [25, 40])):
        for N, blocks in zip(np.diff(ends), count):
            k = data(1, 1, N, 4, seed=N)
            kc = run_pool("mean", k, size)
            compare("summaries", kc, pool("mean", k, size), "f32", 1)
            s = run_route(data(1, 1, N, 4), kc, N=N, blocks=size, mask=CAUSAL, dynamic=True)
            check(s.shape == (1, 1, N, blocks), f"n {N}: expected {blocks} blocks, but got {s.shape[3]}")


@case
def F10_block_grids():
    kinds = "mean", "max", "min"
    grids = (4,), (32, 16), (8, 4, -4), (8, 8, -3), (1,), (5, 2)
    for N in (0, 1, 3, 4, 5, 31, 32, 33, 47, 48, 49):
        k, f = data(2, 2, N, 3, seed=N), Function(dynamic=True)
        x = f.input(k)
        rows = [f.op(f"ssa.pool {kind} {x}{attributes(blocks=blocks)}", tensor((None, 2, None, 3)))
                for blocks in grids for kind in kinds]
        results = iter(f.run(*rows))
        for blocks in grids:
            for kind in kinds:
                compare(f"n {N} {blocks} {kind}", next(results), pool(kind, k, *blocks), "f32", 1)


# --- Visibility ------------------------------------------------------------------------------------------------------


@case
def F3_future_blocks_are_minus_infinity():
    q, kc = data(1, 2, 256, 8, seed=1), np.full((1, 1, 4, 8), 100.0)
    for partial in (None, "partial"):
        s = check_route(str(partial), q, kc, N=256, blocks=64, mask=CAUSAL, visible=partial)
        m, j = np.arange(256)[:, None], np.arange(4)
        shown = 64 * j <= m if partial else 64 * j + 63 <= m
        compare_exact("hidden blocks", s == -np.inf, np.tile(~shown, (1, 2, 1, 1)))


@case
def F3_visibility_grids():
    masks = CAUSAL, dict(causal=True, window=9), dict(causal=True, window=5, sink=3), dict(window=6), {}
    for M, N in ((40, 40), (7, 40), (40, 7), (1, 33)):
        for blocks in ((8,), (8, 4), (8, 4, -3), (8, 8, -5)):
            q, kc = data(1, 1, M, 4), data(1, 1, num_blocks(N, *blocks), 4, seed=1)
            options = [(mask, visible) for mask in masks for visible in (None, "partial")]
            f = Function(dynamic=True)
            operands = f"{f.input(q)}, {f.input(kc)} of {f.input(np.zeros((1, 1, N, 4)))}"
            scores = [f.op(f"ssa.route {operands}{attributes(mask, blocks, visible=visible)}", tensor((None, 1, None, None)))
                      for mask, visible in options]
            for (mask, visible), got in zip(options, f.run(*scores)):
                ref = route(q, kc, N=N, blocks=blocks, mask=mask, partial=visible == "partial")
                compare_scores(f"m {M} n {N} {blocks} {mask} {visible}", got, ref)


@case
def F3_blocks_of_queries():
    for M, N, size, queries in ((40, 40, 8, 16), (33, 50, 8, 16), (30, 12, 4, 7)):
        Mq = -(-M // queries)
        kc = data(1, 1, num_blocks(N, size), 4, seed=1)
        for partial in (None, "partial"):
            check_route(f"m {M} n {N}", data(1, 2, Mq, 4), kc, N=N, M=M, blocks=size, query_block=queries, mask=CAUSAL,
                        visible=partial)


@case
def F7_chunks_of_queries():
    """Pool, route and topk of the last 16 of 64 queries, in one call, in two and in 16, give the lists of all 64."""
    q, k = data(1, 4, 64, 16, seed=1), data(1, 2, 64, 16, seed=2)
    for blocks in ((1,), (8,), (8, 4)):
        size = blocks[0]

        def chosen(start, end):
            """Scores and lists of some queries, over the keys up to the last of them."""
            f = Function(dynamic=True)
            fq, fk = f.input(q[:, :, start:end]), f.input(k[:, :, :end])
            kc = f.op(f"ssa.pool mean {fk}{attributes(blocks=blocks)}", tensor((None, 2, None, 16)))
            options = attributes(blocks=blocks, mask=CAUSAL, normalize="softmax", reduce="sum")
            s = f.op(f"ssa.route {fq}, {kc} of {fk}{options}", tensor((None, 2, None, None)))
            if len(blocks) > 1:
                s = f.op(f"ssa.rebin sum {s} of {fk} {{from = #ssa.blocks<8, stride = 4>, to = #ssa.blocks<8>}}",
                         tensor((None, 2, None, None)))
            t = f.op(f"ssa.topk {s} of {fk}{attributes(mask=CAUSAL, local_blocks=1 if size > 1 else 0)}",
                     selection((None, 2, None, 4), size, sorted=True))
            return f.run(s, f.indices(t))

        scores, whole = chosen(0, 64)
        for length in (16, 8, 1):
            for start in range(48, 64, length):
                s, lists = chosen(start, start + length)
                compare_bits(f"{blocks}: lists of rows {start}..{start + length - 1}", lists, whole[:, :, start : start + length])
                compare_bits(f"{blocks}: scores", s, scores[:, :, start : start + length, : s.shape[3]])


@case
def F7_chunks_of_query_blocks():
    """Chunks that start at multiples of the query block."""
    q, kc = data(1, 2, 6, 16, seed=1), data(1, 2, 12, 16, seed=2)

    def blocked(start, end):
        M, N = 8 * (end - start), 8 * end
        f = Function()
        fq, fkc = f.input(q[:, :, start:end]), f.input(kc[:, :, : N // 4])
        tokens, queries = f.input(np.zeros((1, 2, N, 16))), f.input(np.zeros((1, 2, M, 16)))
        s = f.op(f"ssa.route {fq}, {fkc} of {tokens} for {queries} {{blocks = #ssa.blocks<4>, query_block = 8, "
                 f"mask = #ssa.mask<causal>}}", tensor((1, 2, end - start, N // 4)))
        t = f.op(f"ssa.topk {s} of {tokens} for {queries} {{mask = #ssa.mask<causal>, init_blocks = 1}}",
                 selection((1, 2, end - start, 4), 4, 8, True))
        return f.run(f.indices(t))[0]

    whole = blocked(0, 6)
    for start, end in ((3, 6), (3, 4), (5, 6), (1, 2)):
        compare_bits(f"query blocks {start}..{end - 1}", blocked(start, end), whole[:, :, start:end])


@case
def F9_window_of_tokens():
    """Row 5 of 8 sees keys 4 and 5 with a window of 2."""
    s = check_route("window 2", data(1, 1, 8, 4), data(1, 1, 8, 4, seed=1), mask=dict(causal=True, window=2))
    compare_exact("keys of row 5", np.flatnonzero(s[0, 0, 5] > -np.inf), np.array([4, 5]))
    s = check_route("window 1", data(1, 1, 8, 4), data(1, 1, 8, 4, seed=1), mask=dict(causal=True, window=1))
    compare_exact("keys of row 5", np.flatnonzero(s[0, 0, 5] > -np.inf), np.array([5]))


# --- Arguments that must count ---------------------------------------------------------------------------------------


@case
def B7_scale_of_0():
    q, kc = data(1, 1, 3, 4, seed=1), data(1, 1, 5, 4, seed=2)
    compare_exact("scale 0", check_route("scale 0", q, kc, scale=0.0), np.zeros((1, 1, 3, 5)))
    check_route("negative", q, kc, scale=-2.5)
    check((check_route("default", q, kc) != 0).any(), "the default scale is not 0")
    check_route("softmax", q, kc, scale=0.0, normalize="softmax")


@case
def Q4_scales_count():
    """A scale of 2 per key doubles the scores, whatever the type of the keys."""
    q, kc = data(1, 4, 3, 16, seed=1), data(1, 2, 9, 16, seed=2)
    for elem in ("f32", "bf16", "f16", "f8E4M3FN"):
        x, y = round_to(4 * q, elem), round_to(4 * kc, elem)
        plain = run_route(x, y, elem=elem, scale=1.0, scales=np.ones((1, 2, 9)))
        compare_exact(f"{elem}: twice", run_route(x, y, elem=elem, scale=1.0, scales=np.full((1, 2, 9), 2.0)), 2 * plain)
        check_route(elem, x, y, elem=elem, scales=data(1, 2, 9, seed=3))
    compare_exact("before the region", run_route(q, kc, scales=-np.ones((1, 2, 9)), weights=np.ones((1, 4, 3)), region=RELU),
                  np.maximum(run_route(-q, kc), 0))


@case
def Q4_weights_count():
    q, kc = data(1, 4, 3, 16, seed=1), data(1, 1, 9, 16, seed=2)
    weights = data(1, 4, 3, seed=3)
    check_route("without a region", q, kc, weights=weights)
    check_route("with a region", q, kc, weights=weights, region=RELU, score=relu, scale=1.0)
    check_route("summed", q, kc, weights=weights, region=RELU, score=relu, reduce="sum", G=2, mask=CAUSAL)


# --- Quantized keys, NaN ---------------------------------------------------------------------------------------------


@case
def M1_rows_of_zeros():
    """Keys scaled per token to the range of fp8; a token and a channel of zeros stay zeros."""
    q, k = data(1, 2, 3, 16, seed=1), data(1, 2, 9, 16, seed=2)
    k[:, :, 3], k[..., 7] = 0, 0
    for floor in (0.0, 2.0**-126, 1.0):
        scales = np.abs(k).max(axis=3) / 448
        scales = round_to(np.where(scales == 0, floor, scales), "f32")
        packed = round_to(k / np.where(scales == 0, 1, scales)[..., None], "f8E4M3FN")
        s = check_route(f"scale {floor}", np.ones(q.shape), packed, elem="f8E4M3FN", scales=scales)
        compare_exact("key 3", s[..., 3], np.zeros((1, 2, 3)))


@case
def M1_pool_of_quantized_rows():
    x = round_to(data(1, 2, 9, 16, seed=2) * 300, "f8E4M3FN")
    x[:, :, 3] = 0
    scales = data(1, 2, 9, seed=3, low=0.001, high=0.01)
    for kind in ("mean", "max", "min"):
        got = run_pool(kind, x, 4, scales=scales, elem="f8E4M3FN", out="f32")
        compare(kind, got, pool(kind, x * scales[..., None], 4), "f32", 5)


@case
def O20_fp8_head_dims():
    for D in (8, 32, 64, 100, 128):
        q, kc = data(1, 2, 5, D, seed=1, low=-9, high=9), data(1, 1, 70, D, seed=2, low=-9, high=9)
        scales = data(1, 1, 70, seed=3, low=0.01, high=0.1)
        check_route(f"d {D}", q, kc, elem="f8E4M3FN", scales=scales, mask=CAUSAL)


@case
def M2_fp8_saturates():
    """Values beyond 448 saturate, NaN stays NaN, halves go to even."""
    f = Function()
    x = np.array([500, -1e6, np.nan, np.inf, -np.inf, 448, 464, 1e-3, 2.0**-10, 3 * 2.0**-10, -2.0**-10, 17, 19, 0.3])
    got = f.run(f.input(x, "f8E4M3FN"))[0]
    compare_exact("converted", got, np.array([448, -448, np.nan, 448, -448, 448, 448, 2.0**-9, 0, 2.0**-8, 0, 16, 20, 0.3125]))
    pooled = run_pool("max", np.array([500, 3, -1e6, np.nan]).reshape(1, 1, 4, 1), 1, np.ones((1, 1, 4)), "f8E4M3FN", "f32")
    compare_exact("pooled", pooled, np.array([448, 3, -448, np.nan]).reshape(1, 1, 4, 1))


@case
def O6_softmax_rows():
    """A visible NaN or +inf makes its row NaN; a hidden one does not; a row that sees nothing is -inf."""
    q = np.ones((1, 1, 6, 1))
    for value, bad in ((np.nan, True), (np.inf, True), (-np.inf, False)):
        kc = np.array([0.5, -1, value, 2]).reshape(1, 1, 4, 1)
        s = check_route(str(value), q, kc, scale=1.0, normalize="softmax", mask=CAUSAL)
        check((s[0, 0, :2] == -np.inf).all(), "rows 0 and 1 see nothing")
        check(np.isfinite(s[0, 0, 2:4, :1]).all(), "rows 2 and 3 do not see the value")
        check(np.isnan(s[0, 0, 4:, :2]).all() == bad, "rows 4 and 5 see it")
        s = check_route(str(value), q, kc, scale=1.0, mask=CAUSAL)
        check((s[0, 0, 2] == [0.5, -np.inf, -np.inf, -np.inf]).all(), "without softmax hidden blocks are -inf")


@case
def O7_softmax_of_11_negative_scores():
    for D in (1, 3):
        s = check_route("scores", np.ones((1, 1, 2, D)), data(1, 1, 11, D, seed=D, low=-5, high=-1), scale=1.0,
                        normalize="softmax")
        compare("sum of the row", s.sum(axis=3), np.ones((1, 1, 2)), "f32", 1)


@case
def O7_softmax_of_large_scores():
    s = check_route("1e5", np.ones((1, 1, 1, 1)), np.array([1e5, 1e5 - 1, -1e5]).reshape(1, 1, 3, 1), scale=1.0,
                    normalize="softmax")
    check(np.isfinite(s).all(), "no overflow")


@case
def K3_nan_in_one_block():
    """NaN in a key spoils its own block and no other; in a block no query may see it spoils nothing."""
    k = data(1, 1, 32, 4, seed=1)
    clean = run_pool("mean", k, 8)
    compare("clean summaries", clean, pool("mean", k, 8), "f32", 1)
    k[0, 0, 20] = np.nan
    kc = run_pool("mean", k, 8)
    compare_exact("summaries", np.isnan(kc[0, 0]).all(axis=1), np.array([False, False, True, False]))
    compare_bits("other blocks", np.delete(kc, 2, axis=2), np.delete(clean, 2, axis=2))
    q = data(1, 1, 32, 4, seed=2)
    options = dict(N=32, blocks=8, mask=CAUSAL, normalize="softmax")
    s, ref = run_route(q, kc, **options), run_route(q, clean, **options)
    compare_scores("clean scores", ref, route(q, pool("mean", data(1, 1, 32, 4, seed=1), 8), blocks=(8,), N=32, mask=CAUSAL,
                                              normalize="softmax"))
    compare_bits("rows before the block is complete", s[:, :, :23], ref[:, :, :23])
    check(np.isnan(s[0, 0, 23:, :2]).all(), "rows after it")


@case
def P5_row_alone_and_in_company():
    for elem in ("f32", "bf16"):
        q, kc = data(9, 4, 5, 64, seed=1, fmt=elem), data(9, 2, 50, 64, seed=2, fmt=elem)
        options = dict(G=2, reduce="sum", normalize="softmax", elem=elem, k=7)
        s, lists = run_route(q, kc, **options)
        for rows in (slice(0, 1), slice(4, 5), slice(0, 4)):
            part = run_route(q[rows], kc[rows], **options)
            compare_bits("scores", part[0], s[rows])
            compare_bits("lists", part[1], lists[rows])
        part = run_route(q[:, :, 4:], kc, **options)
        compare_bits("one query", part[0], s[:, :, 4:])


main()
