# RUN: %python %s
"""Attention by shape: causal masks, windows, head counts, head dims, odd lengths, zero sizes."""

from ssareference import *
from ssatest import *

CAUSAL = dict(causal=True)


def qkv(B, Hq, Hk, M, N, D, Dv=None, seed=0):
    return data(B, Hq, M, D, seed=seed + 1), data(B, Hk, N, D, seed=seed + 2), data(B, Hk, N, Dv or D, seed=seed + 3)


def lists(B, G, M, K, blocks, seed=0):
    """Random lists without repeats, with about one lane of padding in eight."""
    rng = np.random.default_rng(seed)
    idx = np.argsort(rng.random((B, G, M, max(blocks, K))), axis=3)[..., :K]
    return np.where((idx < blocks) & (rng.random(idx.shape) > 0.125), idx, -1)


def seen(what, M, N, sets, **mask):
    """Checks which keys each query sees: key `n` alone carries channel `n` of v, and all logits are 0."""
    for every in (None, np.tile(np.arange(N), (1, 1, M, 1))):
        o, lse = run_attend(np.zeros((1, 1, M, 4)), np.zeros((1, 1, N, 4)), np.eye(N)[None, None], every, mask=mask)
        for m in range(M):
            compare_exact(f"{what}: keys of query {m}", np.flatnonzero(o[0, 0, m]), np.array(sets[m], int))
        count = np.array([[[len(s) for s in sets]]], float)
        compare_lse(f"{what}: lse", lse, np.log(count, where=count > 0, out=np.full(count.shape, -np.inf)))


# --- Causal masks and windows ----------------------------------------------------------------------------------------


@case
def F1_causal_is_aligned_bottom_right():
    seen("m 2 n 5", 2, 5, [range(4), range(5)], causal=True)
    seen("m 5 n 3", 5, 3, [[], [], [0], [0, 1], [0, 1, 2]], causal=True)
    seen("m 4 n 4", 4, 4, [range(i + 1) for i in range(4)], causal=True)
    seen("m 1 n 6", 1, 6, [range(6)], causal=True)


@case
def F1_random_data():
    for M, N in ((2, 5), (5, 3), (4, 4), (1, 130), (130, 1), (70, 200), (200, 70)):
        for dynamic in (False, True):
            check_attend(f"m {M} n {N}", *qkv(2, 4, 2, M, N, 16), mask=CAUSAL, dynamic=dynamic)


@case
def F3_summaries_are_complete():
    """Attention over one row per block: a block that a query has not passed, or that it is in, is hidden."""
    for M, N in ((21, 21), (7, 30), (19, 7)):
        for blocks in ((8,), (8, 4), (8, 4, -3)):
            rows = num_blocks(N, *blocks)
            q, k, v = qkv(1, 4, 2, M, rows, 16)
            idx = lists(1, 2, M, 3, rows + 1)
            for mask in (CAUSAL, dict(causal=True, window=11), {}):
                f = Function(dynamic=True)
                args = f"{f.input(q)}, {f.input(k)}, {f.input(v)} of {f.input(np.zeros((1, 2, N, 16)))}"
                types = f.tensor((1, 4, M, 16)), f.tensor((1, 4, M))
                every = f.op(f"ssa.sparse_attend {args}{attributes(mask, blocks)}", *types)
                some = f.op(f"ssa.sparse_attend {args} at {f.lists(idx)}{attributes(mask, blocks)}", *types)
                got = f.run(*every, *some)

                def shown(b, h, m):
                    return np.array([j for j in range(rows) if visible(j, m, M, N, *blocks, **mask)], int)

                def chosen(b, h, m):
                    return np.intersect1d(shown(b, h, m), idx[b, h // 2, m])

                for keys, o, lse in ((shown, *got[:2]), (chosen, *got[2:])):
                    ref_o, ref_lse = attend(q, k, v, keys)
                    compare(f"m {M} n {N} {blocks} {mask}: o", o, ref_o, "f32", row_max(v, keys, 1, 4, M))
                    compare_lse(f"m {M} n {N} {blocks} {mask}: lse", lse, ref_lse)


@case
def F5_tokens_after_the_query_in_its_block():
    q, k, v = qkv(1, 1, 1, 128, 128, 64)
    v[:, :, 71:] = 1e4
    for number in (1, 0):
        idx = np.full((1, 1, 128, 1), number)
        o, lse = check_attend(f"block {number}", q, k, v, idx, key_block=64, mask=CAUSAL)
        keys = np.arange(64, 71) if number else np.arange(64)
        ref_o, ref_lse = attend(q[:, :, 70:71], k, v, lambda b, h, m: keys)
        compare("row 70", o[:, :, 70:71], ref_o, "f32", 1)
        compare_lse("row 70", lse[:, :, 70:71], ref_lse)


@case
def F5_block_of_queries():
    """A list that serves 64 queries: each still sees only the keys before it."""
    q, k, v = qkv(1, 4, 2, 100, 130, 32)
    v[:, :, 100:] = 1e4
    idx = np.array([[[0, 1, 2], [2, 1, 0]], [[1, -1, 7], [2, -1, 0]]]).reshape(1, 2, 2, 3)
    check_attend("query block 64", q, k, v, idx, key_block=64, query_block=64, mask=CAUSAL)
    check_attend("one list for all", q, k, v, idx[:, :, :1], key_block=64, query_block=64, mask=CAUSAL)


@case
def F9_window_counts_the_query():
    for W in (2, 1, 3, 8, 100):
        seen(f"window {W}", 8, 8, [range(max(0, i - W + 1), i + 1) for i in range(8)], causal=True, window=W)
    seen("fewer queries", 3, 8, [[4, 5], [5, 6], [6, 7]], causal=True, window=2)
    seen("fewer keys", 5, 3, [[], [], [0], [0, 1], [1, 2]], causal=True, window=2)


@case
def F9_window_on_both_sides():
    seen("window 2", 6, 6, [[0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5]], window=2)
    seen("window 1", 3, 6, [[3], [4], [5]], window=1)
    seen("before the keys", 5, 2, [[], [], [0], [0, 1], [0, 1]], window=2)


@case
def F9_window_with_sink():
    seen("causal", 6, 6, [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 1, 3, 4], [0, 1, 4, 5]], causal=True, window=2, sink=2)
    seen("both sides", 4, 4, [[0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 2, 3]], window=2, sink=1)
    seen("sink before the window", 2, 6, [[0, 4], [0, 5]], causal=True, window=1, sink=1)
    seen("sink of more keys than there are", 2, 3, [[0, 1], [0, 1, 2]], causal=True, window=1, sink=9)


@case
def F9_window_over_blocks():
    q, k, v = qkv(1, 2, 1, 50, 83, 16)
    for mask in (dict(causal=True, window=17), dict(causal=True, window=5, sink=3), dict(window=9), dict(window=1, sink=20)):
        for size, queries in ((8, 1), (16, 4), (7, 3)):
            idx = lists(1, 1, -(-50 // queries), 6, 13)
            check_attend(f"{mask} block {size}", q, k, v, idx, size, queries, mask=mask)


@case
def F12_more_keys_than_the_causal_bound_of_a_tile():
    for M, N in ((65, 128), (130, 256), (129, 128), (64, 191)):
        q, k, v = qkv(1, 1, 1, M, N, 32)
        check_attend(f"m {M} n {N}", q, k, v, mask=CAUSAL)
        every = np.tile(np.arange(-(-N // 64) + 1), (1, 1, M, 1))
        check_attend(f"m {M} n {N} blocks", q, k, v, every, key_block=64, mask=CAUSAL)


# --- Head dims and head counts ---------------------------------------------------------------------------------------


@case
def G1_head_dims():
    for D in (8, 16, 40, 64, 72, 80, 96, 112, 128, 136, 160, 192, 256, 576):
        q, k, v = qkv(1, 1, 1, 3, 257, D)
        q[..., :-1] = 0
        q[..., -1] = 50
        idx = lists(1, 1, 3, 64, 257)
        check_attend(f"d {D} f32", q, k, v, idx)
        check_attend(f"d {D} bf16", q, k, v, idx, elem="bf16", dynamic=True)


@case
def G1_odd_head_dims():
    for D in (1, 3, 7, 65, 100, 127):
        check_attend(f"d {D}", *qkv(1, 2, 1, 3, 37, D), lists(1, 1, 3, 16, 37), elem="f16")


@case
def O15_head_dims_beyond_a_tile():
    for D in (192, 256, 576, 1024):
        check_attend(f"d {D}", *qkv(1, 2, 1, 3, 70, D), lists(1, 1, 3, 40, 70), elem="bf16", mask=CAUSAL)


@case
def G3_value_dims():
    for D, Dv in ((64, 128), (192, 128), (576, 512), (64, 8), (8, 1)):
        for elem in ("f32", "bf16"):
            o, _ = check_attend(f"d {D} dv {Dv}", *qkv(1, 2, 1, 3, 70, D, Dv), lists(1, 1, 3, 40, 70), elem=elem)
            check(o.shape == (1, 2, 3, Dv), "the width of o is that of v")


@case
def G5_head_groups():
    for Hq, Hk in ((1, 1), (3, 1), (5, 1), (7, 1), (12, 2), (28, 4), (21, 7)):
        for G in sorted({1, Hk, Hq}):
            check_attend(f"{Hq}/{Hk} heads, {G} lists", *qkv(2, Hq, Hk, 3, 65, 64), lists(2, G, 3, 16, 65), dynamic=True)


@case
def G5_lists_between_the_head_counts():
    """Selection heads that are neither the query nor the key heads, fewer and more than the key heads."""
    for Hq, Hk, G in ((12, 4, 2), (12, 2, 4), (12, 4, 6), (12, 3, 4), (6, 2, 3)):
        check_attend(f"{Hq}/{Hk} heads, {G} lists", *qkv(1, Hq, Hk, 3, 65, 16), lists(1, G, 3, 16, 65))


@case
def G8_many_heads_on_one_key_head():
    for Hq in (1, 2, 8, 11, 16, 17, 33, 64, 66, 128):
        q, k, v = qkv(1, Hq, 1, 2, 80, 576, 512)
        q[:, -1] *= -3
        check_attend(f"{Hq} heads", q, k, v, lists(1, 1, 2, 64, 80), elem="bf16")


@case
def G9_list_widths():
    q, k, v = qkv(1, 1, 1, 2, 4096, 32)
    for K in (1, 17, 100, 192, 257, 1000, 2047):
        check_attend(f"k {K}", q, k, v, lists(1, 1, 2, K, 4096, seed=K), elem="bf16")


@case
def G10_lengths_around_a_block():
    """All logits are -20, so that a key past the end, with logit 0, would win."""
    for N in (1, 63, 64, 65, 127, 129, 257, 1025):
        q, k, v = np.full((1, 1, 2, 16), 5.0), np.full((1, 1, N, 16), -1.0), data(1, 1, N, 16, seed=N)
        for size in (64, 128):
            idx = np.tile(np.arange(-(-N // size) + 2), (1, 1, 2, 1))
            for options in ({}, dict(mask=CAUSAL), dict(lists=idx, key_block=size), dict(lists=idx, key_block=size, mask=CAUSAL)):
                o, lse = check_attend(f"n {N} block {size}", q, k, v, **options)
            compare_lse("lse of the last row", lse[..., -1], np.full((1, 1), -20 + np.log(N)))


@case
def G12_one_query():
    check_attend("32 heads", *qkv(1, 32, 32, 1, 20, 128), np.arange(20).reshape(1, 1, 1, 20))
    check_attend("32 heads on 8", *qkv(1, 32, 8, 1, 20, 128), lists(1, 8, 1, 20, 20), elem="bf16", mask=CAUSAL)
    check_attend("one key", *qkv(1, 32, 32, 1, 1, 128), np.zeros((1, 32, 1, 1), int))
    check_attend("one key, no list", *qkv(1, 1, 1, 1, 1, 128), mask=CAUSAL)


@case
def I1_more_batches_heads_or_queries_than_a_grid_has_room_for():
    """With a single key every row is the value of its batch and head."""
    for B, H, M in ((65536, 1, 1), (1, 65536, 1), (1, 1, 65535 * 64 + 1)):
        D = 16 if M == 1 else 1
        q, k, v = qkv(B, H, 1, M, 1, D)
        for lists in (None, np.zeros((B, 1, 1, 1), int)):
            o, lse = run_attend(q, k, v, lists)
            compare("o", o, np.broadcast_to(v, o.shape), "f32", 1)
            compare_lse("lse", lse, (q * k).sum(axis=3) / np.sqrt(D))


# --- Zero sizes ------------------------------------------------------------------------------------------------------


@case
def H1_zero_sizes():
    for B, M, N in ((0, 5, 7), (2, 0, 7), (2, 5, 0), (0, 0, 0), (2, 0, 0)):
        for dynamic in (False, True):
            for idx in (None, np.full((B, 2, M, 3), 0)):
                for mask in (None, CAUSAL):
                    o, lse = check_attend(f"b {B} m {M} n {N}", *qkv(B, 4, 2, M, N, 16, 8), idx, dynamic=dynamic, mask=mask)
                    check(o.shape == (B, 4, M, 8) and lse.shape == (B, 4, M), "well-formed outputs")


@case
def H1_zero_sizes_of_the_other_ops():
    for B, M, N in ((0, 5, 7), (2, 0, 7), (2, 5, 0)):
        blocks = -(-N // 4)
        f = Function(dynamic=True)
        q, k = f.input(np.zeros((B, 4, M, 8))), f.input(np.zeros((B, 2, N, 8)))
        kc = f.op(f"ssa.pool mean {k} {{blocks = #ssa.blocks<4>}}", tensor((None, 2, None, 8)))
        s = f.op(f"ssa.route {q}, {kc} of {k} {{blocks = #ssa.blocks<4>, mask = #ssa.mask<causal>, reduce = sum}}",
                 tensor((None, 2, None, None)))
        r = f.op(f"ssa.rebin sum {s} of {k} {{from = #ssa.blocks<4>, to = #ssa.blocks<8>}}", tensor((None, 2, None, None)))
        t = f.op(f"ssa.topk {r} of {k} {{mask = #ssa.mask<causal>}}", selection((None, 2, None, 3), 8, sorted=True))
        g = f.op(f"ssa.gather {k} at {t}", tensor((None, 2, None, 24, 8)))
        o, l = f.op(f"ssa.sparse_attend {q}, {k}, {k} at {t} {{mask = #ssa.mask<causal>}}",
                    tensor((None, 4, None, 8)), tensor((None, 4, None)))
        mo, ml = f.op(f"ssa.merge ({o}, {l}), ({o}, {l})", tensor((None, 4, None, 8)), tensor((None, 4, None)))
        x = f.op(f"ssa.mix ({mo}, {l}) {{gate = none}}", tensor((None, 4, None, 8)))
        got = f.run(kc, s, r, f.indices(t), g, o, l, mo, ml, x)
        shapes = [(B, 2, blocks, 8), (B, 2, M, blocks), (B, 2, M, -(-N // 8)), (B, 2, M, 3), (B, 2, M, 24, 8), (B, 4, M, 8),
                  (B, 4, M), (B, 4, M, 8), (B, 4, M), (B, 4, M, 8)]
        for name, array, shape in zip("pool route rebin topk gather attend lse merge lse mix".split(), got, shapes):
            check(array.shape == shape, f"{name}, b {B} m {M} n {N}: expected {shape}, but got {array.shape}")
        if N == 0:
            compare_exact("no block to choose", got[3], np.full((B, 2, M, 3), -1))
            compare_exact("no row to gather", got[4], np.zeros((B, 2, M, 24, 8)))
            compare_exact("merge of empty rows", got[8], np.full((B, 4, M), -np.inf))


# --- Sequences of a batch, one call each -----------------------------------------------------------------------------


def sequences(what, ends_q, ends_k, Hq, Hk, D, elem="f32"):
    """One causal call per sequence of a batch; the lse of all."""
    all_lse = []
    for i, (M, N) in enumerate(zip(np.diff(ends_q), np.diff(ends_k))):
        o, lse = check_attend(f"{what}, sequence {i}", *qkv(1, Hq, Hk, M, N, D, seed=i), mask=CAUSAL, elem=elem, dynamic=True)
        all_lse.append(lse)
    return all_lse


@case
def H4_one_query_and_no_query():
    sequences("H4", [0, 1, 1, 2], [0, 3, 3, 8], 9, 3, 64)


@case
def H5_only_the_last_sequence_has_a_row():
    sequences("H5", [0, 0, 0, 0, 1], [0, 0, 0, 0, 1], 21, 7, 120, "bf16")


@case
def H6_sequences_without_queries_or_without_keys():
    sequences("H6", [0, 0, 3, 5, 5], [0, 4, 6, 9, 12], 2, 1, 256)
    lse = sequences("H6", [0, 0, 3, 5, 5], [0, 4, 4, 9, 12], 2, 1, 256)
    compare_exact("rows 0..2 are empty", lse[1], np.full((1, 2, 3), -np.inf))


main()
