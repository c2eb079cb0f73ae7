# RUN: %python %s
"""The selector: widths, ties, NaN and infinities, masks, chunks, rows that know nothing of each other."""

from ssareference import *
from ssatest import *

CAUSAL = dict(causal=True)
NAN, INF = np.nan, np.inf


def nan_of(bits):
    """A NaN of a given sign and payload."""
    return np.array(bits, np.uint32).view(np.float32)


def rows(*scores):
    """Scores of shape 1x1xMxN."""
    return np.array(scores, np.float32)[None, None]


def best(scores, k):
    """Reference lists without mask or forced blocks."""
    return np.stack([topk(r, k) for r in scores.reshape(-1, scores.shape[-1])]).reshape(*scores.shape[:3], k)


def causal_best(scores, k, N, size=1, query_block=1, M=None):
    """Reference lists under a causal mask; `scores` BxGxMqxNb."""
    B, G, Mq, Nb = scores.shape
    M = Mq if M is None else M
    out = np.full((B, G, Mq, k), -1)
    for b, g, i in np.ndindex(B, G, Mq):
        last = position(min((i + 1) * query_block, M) - 1, M, N)
        out[b, g, i] = topk(scores[b, g, i], k, deny=[j for j in range(Nb) if j * size > last])
    return out


def expect(what, scores, k, *lists):
    """Checks the lists of some rows against explicit ones, given without their padding."""
    ref = np.array([list(l) + [-1] * (k - len(l)) for l in lists]).reshape(1, 1, len(lists), k)
    compare_exact(what, run_topk(scores, k), ref)


# --- Meaning ---------------------------------------------------------------------------------------------------------


@case
def C1_every_width():
    scores = np.concatenate([data(2, 3, 4, 8, seed=1), np.tile(np.arange(8.0), (2, 3, 1, 1))], axis=2)
    for k in (0, 1, 2, 3, 7, 8, 9, 16, 100):
        for dynamic in (False, True):
            got = run_topk(scores, k, dynamic=dynamic)
            check(got.shape == (2, 3, 5, k), f"the width is {k}")
            compare_exact(f"k {k}", got, best(scores, k))
    o, lse = run_attend(data(1, 1, 3, 8), data(1, 1, 8, 8), data(1, 1, 8, 8), np.zeros((1, 1, 3, 0), int))
    compare_exact("k 0: o", o, np.zeros((1, 1, 3, 8)))
    compare_exact("k 0: lse", lse, np.full((1, 1, 3), -INF))


@case
def C1_width_0_into_attention():
    f = Function()
    s, q, k = f.input(data(1, 1, 3, 8)), f.input(data(1, 1, 3, 8)), f.input(data(1, 1, 8, 8))
    t = f.op(f"ssa.topk {s} of {k}", selection((1, 1, 3, 0), sorted=True))
    o, lse = f.run(*f.op(f"ssa.sparse_attend {q}, {k}, {k} at {t}", tensor((1, 1, 3, 8)), tensor((1, 1, 3))))
    compare_exact("o", o, np.zeros((1, 1, 3, 8)))
    compare_exact("lse", lse, np.full((1, 1, 3), -INF))


@case
def C3_width_above_the_number_of_keys():
    scores = data(1, 1, 249, 249, seed=1)
    got = run_topk(scores, 2048, mask=CAUSAL)
    ref = np.full((249, 2048), -1)
    for i in range(249):
        ref[i, : i + 1] = np.arange(i + 1)
    compare_exact("lists", got, ref[None, None])


@case
def C4_nan_of_either_sign_is_never_selected():
    for payload in (0x400000, 0x400001, 0x7FFFFF, 0x1, 0x3FFFFF, 0x555555):
        scores = rows([1, nan_of(0xFF800000 | payload), 2, nan_of(0x7F800000 | payload), 3])
        expect("k 2", scores, 2, [2, 4])
        expect("k 4", scores, 4, [0, 2, 4])
        expect("k 5", scores, 5, [0, 2, 4])
    expect("with infinities", rows([NAN, INF, -NAN, -INF, 0]), 4, [1, 4])


@case
def C5_nan_at_any_place():
    expect("first", rows([NAN, 1, 2, 3]), 3, [1, 2, 3])
    expect("last", rows([1, 2, 3, NAN]), 3, [0, 1, 2])
    rng = np.random.default_rng(0)
    values = np.concatenate([np.full(5, NAN), rng.permutation(295)])
    scores = rows(*(rng.permutation(values) for _ in range(20)))
    for k in (1, 16, 100, 295, 300):
        got = run_topk(scores, k)
        compare_exact(f"k {k}", got, best(scores, k))
        for m in range(20):
            chosen = np.sort(scores[0, 0, m, got[0, 0, m][got[0, 0, m] >= 0]])
            compare_exact(f"k {k}: scores of row {m}", chosen, np.arange(295)[-min(k, 295):])


@case
def C6_rows_with_few_scores_among_nan():
    rng = np.random.default_rng(0)
    scores = np.full((1, 1, 50, 4096), NAN, np.float32)
    for m in range(1, 50):
        scores[0, 0, m, rng.permutation(4096)[:3]] = rng.standard_normal(3)
    got = run_topk(scores, 512)
    compare_exact("all NaN", got[0, 0, 0], np.full(512, -1))
    check(((got == -1) | ((got >= 0) & (got < 4096))).all(), "every lane is -1 or a key")
    compare_exact("the others", got, best(scores, 512))
    compare_bits("again", run_topk(scores, 512), got)


@case
def C8_ties_go_to_the_lower_number():
    scores = rows([1, 2, 5, 4, 5])
    for k, list in enumerate(([2], [2, 4], [2, 3, 4], [1, 2, 3, 4], [0, 1, 2, 3, 4]), 1):
        expect(f"k {k}", scores, k, list)
    for value in (0, -3, 1e30, 1e-42, INF):
        expect(f"all {value}", rows([value] * 257), 64, range(64))
    expect("two classes", rows([1, 0] * 100), 120, sorted([*range(0, 200, 2), *range(1, 41, 2)]))


@case
def C8_lists_grow_with_k():
    scores = np.random.default_rng(0).integers(0, 5, (1, 1, 6, 100)).astype(float)
    lists = [run_topk(scores, k) for k in (*range(1, 12), 50, 51)]
    compare_exact("the longest", lists[-1], best(scores, 51))
    for shorter, longer in zip(lists, lists[1:]):
        for m in range(6):
            check(set(shorter[0, 0, m]) <= set(longer[0, 0, m]), f"row {m}: a wider list holds the narrower one")


@case
def C9_zeros_of_both_signs_tie():
    expect("k 2", rows([-0.0, 0.0, -0.0, 0.0]), 2, [0, 1])
    expect("k 3", rows([0.0, -0.0, 0.0, -0.0]), 3, [0, 1, 2])
    expect("around", rows([-1e-45, -0.0, 1e-45, 0.0]), 2, [1, 2])


@case
def C9_zeros_out_of_a_relu():
    """`relu(x) * w` gives -0 where w is negative and 0 where it is not."""
    region = """ score (%x, %w, %b, %h, %p, %j) {
    %zero = arith.constant 0.0 : f32
    %r = arith.maximumf %x, %zero : f32
    %y = arith.mulf %r, %w : f32
    ssa.yield %y : f32
  }"""
    q, kc = np.ones((1, 1, 2, 1)), np.array([-1.0, -2, -3, -4, 0, 5]).reshape(1, 1, 6, 1)
    for sign in (1.0, -1.0):
        weights = np.full((1, 1, 2), sign)
        s, got = run_route(q, kc, weights=weights, region=region, k=3, scale=1.0)
        compare_exact("scores", s, np.tile([0, 0, 0, 0, 0, 5 * sign], (1, 1, 2, 1)))
        compare_exact("lists", got, np.tile([0, 1, 5] if sign > 0 else [0, 1, 2], (1, 1, 2, 1)))


@case
def C10_ties_beyond_a_thousand():
    scores = np.zeros((1, 1, 1, 8320))
    scores[..., 5 + 83 * np.arange(100)] = 1
    got = run_topk(scores, 2048)
    check((got >= 0).all() and len(np.unique(got)) == 2048, "2048 different keys")
    check(np.isin(5 + 83 * np.arange(100), got).all(), "all winners are in")
    check(max(j for j in got[0, 0, 0] if scores[0, 0, 0, j] == 0) == 1971, "the last zero taken is 1971")
    compare_exact("list", got, best(scores, 2048))


@case
def C12_minus_infinity_is_never_selected():
    expect("two of four", rows([-INF, 2, -INF, 1]), 3, [1, 3])
    expect("none", rows([-INF] * 4), 3, [])
    k = 5
    for finite in (0, 1, k - 1, k, k + 1):
        scores = np.full((1, 1, 1, 12), -INF)
        scores[..., 11 - np.arange(finite)] = np.arange(finite) - 1e38
        compare_exact(f"{finite} finite", run_topk(scores, k), best(scores, k))


@case
def C12_any_finite_score_may_be_chosen():
    lowest = np.finfo(np.float32).min
    expect("the lowest floats", rows([-INF, lowest, -INF, lowest, NAN]), 3, [1, 3])
    expect("the highest float and inf", rows([np.finfo(np.float32).max, INF, INF]), 1, [1])


@case
def C13_scores_that_share_their_upper_bits():
    rng = np.random.default_rng(0)
    scores = (0x3F900000 | rng.integers(0, 1024, (1, 1, 4, 8192))).astype(np.uint32).view(np.float32)
    got = run_topk(scores, 2048)
    compare_exact("positive", got, best(scores, 2048))
    compare_exact("negative", run_topk(-scores, 2048), best(-scores, 2048))


# --- Rows and limits -------------------------------------------------------------------------------------------------


@case
def D1_long_and_short_rows():
    lengths = np.array([40000, 128, 40000] * 4)
    scores = data(1, 1, 12, 40000, seed=1)
    scores[0, 0][np.arange(40000) >= lengths[:, None]] = -INF
    got = run_topk(scores, 512)
    check((got[0, 0, 1::3, 128:] == -1).all() and (got[0, 0, 1::3, :128] >= 0).all(), "short rows take all they have")
    for m in range(6):
        compare_bits(f"row {m}", run_topk(scores[:, :, m : m + 1], 512), got[:, :, m : m + 1])
    compare_exact("lists", got, best(scores, 512))


@case
def D1_batches_and_heads():
    scores = np.random.default_rng(0).integers(-3, 9, (3, 4, 5, 70)).astype(float)
    got = run_topk(scores, 9)
    for b, g in np.ndindex(3, 4):
        compare_bits(f"batch {b} head {g}", run_topk(scores[b : b + 1, g : g + 1], 9), got[b : b + 1, g : g + 1])
    compare_exact("lists", got, best(scores, 9))


@case
def D5_widths_up_to_the_limit():
    scores = data(1, 1, 1, 131072, seed=1)
    for k in (12, 13, 64, 512, 2048, 4095, 4096):
        compare_exact(f"k {k}", run_topk(scores, k), best(scores, k))
    for k in (4097, 8192):
        expect_error(lambda: run_topk(scores, k), "4096", str(k))


@case
def E6_rows_with_few_keys():
    """Row m of 4 may choose among m - 1 keys; none for the first two."""
    scores = data(1, 1, 4, 8, seed=1)
    for m in range(4):
        scores[0, 0, m, max(m - 1, 0) :] = -INF
    expect("by score", scores, 4, [], [], [0], [0, 1])
    got = run_topk(data(1, 1, 4, 2, seed=2), 4, mask=CAUSAL)
    compare_exact("by position", got, np.array([[-1] * 4, [-1] * 4, [0, -1, -1, -1], [0, 1, -1, -1]])[None, None])


@case
def E9_numbers_beyond_the_precision_of_bf16():
    compare_exact("all of 4096", run_topk(np.zeros((1, 1, 1, 4096)), 4096), np.arange(4096).reshape(1, 1, 1, -1))
    scores = np.zeros((1, 1, 1, 70001))
    scores[..., [257, 4097, 65537, 69999, 70000]] = 1
    expect("odd numbers", scores, 5, [257, 4097, 65537, 69999, 70000])


@case
def E9_numbers_beyond_the_precision_of_f32():
    scores = np.zeros((1, 1, 1, 2**24 + 6), np.float32)
    scores[..., [2**24 + 1, 2**24 + 3, 2**24 + 5]] = 1
    expect("above 2^24", scores, 3, [2**24 + 1, 2**24 + 3, 2**24 + 5])


# --- Masks and chunks ------------------------------------------------------------------------------------------------


@case
def F3_future_blocks():
    """Blocks after the query score 100 and are still not chosen."""
    for query_block in (64, 1, 16):
        Mq = 256 // query_block
        block = np.arange(Mq) * query_block // 64
        scores = np.where(np.arange(4) > block[:, None], 100.0, data(Mq, 4, seed=1))[None, None]
        got = run_topk(scores, 4, N=256, M=256, key_block=64, query_block=query_block, mask=CAUSAL)
        ref = np.array([[*range(i + 1)] + [-1] * (3 - i) for i in block])[None, None]
        compare_exact(f"query block {query_block}", got, ref)


@case
def F3_blocks_of_queries_that_end_inside_a_key_block():
    for M, N, size, queries in ((100, 130, 16, 24), (37, 37, 8, 5), (50, 20, 4, 7), (10, 200, 32, 10)):
        Mq, Nb = -(-M // queries), -(-N // size)
        scores = data(2, 2, Mq, Nb, seed=M)
        got = run_topk(scores, 3, N, M, size, queries, mask=CAUSAL)
        compare_exact(f"m {M} n {N}", got, causal_best(scores, 3, N, size, queries, M))


@case
def F3_forced_blocks():
    """The first block, the query's own one and the one before it, whatever they score."""
    scores = data(1, 1, 96, 6, seed=1)
    scores[..., 0], scores[..., 3] = -INF, NAN
    got = run_topk(scores, 4, N=96, key_block=16, mask=CAUSAL, init_blocks=1, local_blocks=2)
    for m in range(96):
        own = m // 16
        forced = {0, own, max(own - 1, 0)}
        ref = topk(scores[0, 0, m], 4, deny=range(own + 1, 6), forced=forced)
        compare_exact(f"query {m}", got[0, 0, m], ref)


@case
def F3_forced_blocks_before_the_first_key():
    got = run_topk(data(1, 1, 5, 3), 3, N=3, mask=CAUSAL, init_blocks=1, local_blocks=2)
    ref = [[-1] * 3, [-1] * 3, [0, -1, -1], [0, 1, -1], [0, 1, 2]]
    compare_exact("causal", got, np.array(ref)[None, None])


@case
def F7_chunks_of_queries():
    """The last 16 of 64 queries in one call, in two and in 16 give the same lists as all 64."""
    scores = np.random.default_rng(0).integers(0, 9, (1, 2, 64, 64)).astype(float)
    for size, attrs in ((1, {}), (8, dict(init_blocks=1, local_blocks=2)), (1, dict(local_blocks=3))):
        s = scores[..., : 64 // size]
        whole = run_topk(s, 5, N=64, key_block=size, mask=CAUSAL, **attrs)
        for chunk in (16, 8, 1):
            for start in range(48, 64, chunk):
                end = start + chunk
                part = s[:, :, start:end, : -(-end // size)]
                got = run_topk(part, 5, N=end, key_block=size, mask=CAUSAL, **attrs)
                compare_bits(f"rows {start}..{end - 1} by {size}", got, whole[:, :, start:end])


@case
def F8_future_keys():
    scores = data(1, 1, 96, 96, seed=1)
    future = np.arange(96) > np.arange(96)[:, None]
    scores[0, 0][future] = 1e3
    ref = causal_best(scores, 16, 96)
    for dynamic in (False, True):
        compare_exact("all at once", run_topk(scores, 16, mask=CAUSAL, dynamic=dynamic), ref)
    compare_exact("among all keys", run_topk(scores, 16, mask=CAUSAL, within=np.tile(np.arange(96), (1, 1, 96, 1))), ref)
    blocks = np.tile(np.arange(12), (1, 1, 3, 1))
    got = run_topk(scores, 16, mask=CAUSAL, within=blocks, within_block=8, within_queries=32)
    compare_exact("among all blocks", got, ref)
    compare_exact("window of all", run_topk(scores, 16, mask=dict(causal=True, window=96)), ref)


@case
def F8_candidates():
    """Among the candidates of a list, numbers are those of keys, not of slots."""
    rng = np.random.default_rng(2)
    cand = np.stack([np.sort(rng.permutation(12)[:5]) for _ in range(6)]).reshape(1, 2, 3, 5)
    cand[0, 0, 1, 3:] = -1
    scores = data(1, 2, 12, 40, seed=3)
    got = run_topk(scores, 7, N=93, mask=CAUSAL, within=cand, within_block=8, within_queries=4)
    for g, m in np.ndindex(2, 12):
        lanes = cand[0, g, m // 4]
        keys = np.where(np.repeat(lanes, 8) < 0, -1, np.repeat(lanes, 8) * 8 + np.tile(np.arange(8), 5))
        dense = np.full(93, -INF)
        may = (keys >= 0) & (keys <= position(m, 12, 93))
        dense[keys[may]] = scores[0, g, m, may]
        compare_exact(f"head {g} query {m}", got[0, g, m], topk(dense, 7))


@case
def F9_windows():
    scores = data(1, 1, 8, 8, seed=1)
    for window, sink in ((2, 0), (1, 0), (3, 2), (8, 0)):
        for causal in (True, False):
            mask = dict(causal=causal, window=window, **(dict(sink=sink) if sink else {}))
            got = run_topk(scores, 4, mask=mask)
            for m in range(8):
                deny = np.setdiff1d(np.arange(8), allowed(m, 8, 8, **mask))
                compare_exact(f"{mask} query {m}", got[0, 0, m], topk(scores[0, 0, m], 4, deny))


@case
def K7_scores_outside_the_window():
    """Row 0 sees columns 10..19 of 32; the others hold NaN and +inf, and 16 lanes are asked for."""
    scores = data(1, 1, 13, 32, seed=1)
    for m in range(13):
        outside = np.setdiff1d(np.arange(32), np.arange(10 + m, min(20 + m, 32)))
        scores[0, 0, m, outside] = np.resize([NAN, INF, -NAN], len(outside))
    got = run_topk(scores, 16, mask=dict(causal=True, window=10))
    compare_exact("row 0", got[0, 0, 0], np.array([*range(10, 20)] + [-1] * 6))
    for m in range(13):
        compare_exact(f"row {m}", got[0, 0, m], np.array([*range(10 + m, 20 + m)] + [-1] * 6))


# --- Cuts by mass and by score ---------------------------------------------------------------------------------------


@case
def Q1_top_p_counts():
    scores = rows([0.1, 0.4, 0.2, 0.3], [1, 0, 0, 0], [0, 0, 0, 0], [-5, 3, NAN, -INF])
    for p, lists in ((0.0, ([], [], [], [])), (0.35, ([1], [0], [], [1])), (0.5, ([1, 3], [0], [], [1])),
                     (0.75, ([1, 2, 3], [0], [], [1]))):
        ref = np.array([[*l] + [-1] * (4 - len(l)) for l in lists])[None, None]
        compare_exact(f"top_p {p}", run_topk(scores, 4, top_p=float(p)), ref)


@case
def Q1_threshold_counts():
    scores = rows([0.1, 0.5, -1, INF], [NAN, -INF, 0.25, 0.5])
    for t, lists in ((0.5, ([1, 3], [3])), (-2.0, ([0, 1, 2, 3], [2, 3])), (0.25, ([1, 3], [2, 3])), (1e30, ([3], []))):
        ref = np.array([[*l] + [-1] * (4 - len(l)) for l in lists])[None, None]
        compare_exact(f"threshold {t}", run_topk(scores, 4, threshold=t), ref)
    got = run_topk(scores, 4, threshold=0.5, init_blocks=1)
    compare_exact("forced blocks aside", got, np.array([[0, 1, 3, -1], [0, 3, -1, -1]])[None, None])
    got = run_topk(rows([0.1, 0.4, 0.2, 0.3]), 4, threshold=0.25, top_p=0.35)
    compare_exact("with top_p", got, np.array([[1, -1, -1, -1]])[None, None])


main()
