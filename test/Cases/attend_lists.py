# RUN: %python %s
"""Attention and gather over raw lists: padding, repeats, unused lanes, memory that no row may see."""

from ssareference import *
from ssatest import *

CAUSAL = dict(causal=True)
FILLS = (0.0, 1.0, 100.0, 1e3, 1e10, np.inf, -np.inf, np.nan)


def qkv(B, Hq, Hk, M, N, D, seed=0):
    return data(B, Hq, M, D, seed=seed + 1), data(B, Hk, N, D, seed=seed + 2), data(B, Hk, N, D, seed=seed + 3)


def row(*lanes):
    return np.array(lanes).reshape(1, 1, 1, -1)


def run_gather(k, idx, key_block=1, query_block=1, elem="f32", dynamic=False):
    """The rows of ssa.gather."""
    f = Function(dynamic)
    (B, H, N, D), (_, G, Mq, K) = np.shape(k), np.shape(idx)
    out = f.tensor((B, max(G, H), Mq, K * key_block, D), elem)
    return f.run(f.op(f"ssa.gather {f.input(k, elem)} at {f.lists(idx, key_block, query_block)}", out))[0]


def gathered(k, idx, size=1):
    """Reference of ssa.gather: row `i * size + r` is token `list[i] * size + r`, 0 where there is none."""
    (B, H, N, D), (_, G, Mq, K) = k.shape, idx.shape
    heads = max(G, H)
    out = np.zeros((B, heads, Mq, K * size, D))
    for b, h, m, i, r in np.ndindex(B, heads, Mq, K, size):
        n = int(idx[b, h * G // heads, m, i]) * size + r
        if 0 <= n < N:
            out[b, h, m, i * size + r] = k[b, h * H // heads, n]
    return out


def poisoned(k, v, hidden, fill):
    """Copies of k and v with `fill` in the hidden tokens, a boolean array BxN."""
    k, v = k.copy(), v.copy()
    for x in (k, v):
        x[np.broadcast_to(hidden[:, None, :], x.shape[:3])] = fill
    return k, v


# --- The contract of a list ------------------------------------------------------------------------------------------


@case
def E1_lanes_out_of_range():
    q, k, v = qkv(1, 1, 1, 1, 4, 64)
    ref_o, ref_lse = attend(q, k, v, lambda b, h, m: [0, 2])
    for idx in ([0, -1, 4, 2], [0, 2147483647, 2, -2147483648], [2, 5, -7, 0], [-2, 2, 0, 4]):
        for elem in ("f32", "bf16"):
            check_attend(f"{idx} {elem}", q, k, v, row(*idx), elem=elem)
        o, lse = run_attend(q, k, v, row(*idx))
        compare("o", o, ref_o, "f32", 1)
        compare_lse("lse", lse, ref_lse)


@case
def E1_blocks_out_of_range():
    """Numbers whose token number does not fit 32 bits, and the first block past a short last one."""
    q, k, v = qkv(1, 2, 1, 3, 70, 16)
    for bad in (2, 3, -1, 2**25, 2**26, 2**31 - 1, -(2**25), -(2**31)):
        for mask in ({}, CAUSAL, dict(causal=True, window=9)):
            idx = np.tile(row(bad, 1, bad, 0), (1, 1, 3, 1))
            check_attend(f"block {bad}", q, k, v, idx, key_block=64 if bad != 3 else 32, mask=mask)


@case
def E1_gather_lanes_out_of_range():
    k = data(2, 2, 10, 8, seed=1)
    for idx in ([0, -1, 10, 2], [0, 2147483647, 2, -2147483648]):
        lists = np.tile(np.array(idx), (2, 2, 3, 1))
        for elem in ("f32", "bf16"):
            x = round_to(k, elem)
            compare_exact(f"{idx} {elem}", run_gather(x, lists, elem=elem), gathered(x, lists))
    for size in (3, 4, 16):
        lists = np.tile(np.array([2, 0, -1, 3, 2**30, 2**31 - 1, -(2**30)]), (2, 2, 3, 1))
        compare_exact(f"block {size}", run_gather(k, lists, size, dynamic=True), gathered(k, lists, size))


@case
def E1_gather_heads():
    for H, G in ((1, 1), (1, 4), (4, 1), (2, 4), (4, 2), (3, 3)):
        k = data(2, H, 9, 5, seed=H)
        lists = np.random.default_rng(G).integers(-1, 6, (2, G, 3, 4))
        compare_exact(f"{H} key heads, {G} lists", run_gather(k, lists, 2), gathered(k, lists, 2))


@case
def O13_gather_sizes():
    for N in (2, 4, 16, 64):
        for K in (8, 32, 4096):
            k, lists = data(1, 1, N, 8, seed=N), np.random.default_rng(K).integers(-1, N + 1, (1, 1, 1, K))
            compare_exact(f"{K} of {N} rows", run_gather(k, lists), gathered(k, lists))


@case
def E2_unused_lanes():
    """Five lanes of 128 count; the rest is padding of any kind."""
    for M in (64, 65, 129):
        q, k, v = qkv(1, 2, 1, M, 200, 32)
        rng = np.random.default_rng(M)
        short = np.stack([rng.permutation(200)[:5] for _ in range(M)]).reshape(1, 1, M, 5)
        o, lse = check_attend(f"m {M}", q, k, v, short)
        for padding in (-1, -5, 200, 2**31 - 1):
            wide = np.concatenate([short, np.full((1, 1, M, 123), padding)], axis=3)
            wide_o, wide_lse = run_attend(q, k, v, wide)
            compare_bits(f"padding {padding}: o", wide_o, o)
            compare_bits(f"padding {padding}: lse", wide_lse, lse)


@case
def E4_each_key_counts_once():
    q, k, v = np.zeros((1, 1, 1, 4)), np.zeros((1, 1, 6, 4)), np.zeros((1, 1, 6, 1))
    v[0, 0, 5] = 1
    for lists in (row(2, 5, 5, 5), row(5, 2, 5, 2), row(-1, 5, 5, 2), [row(2, 5), row(5, 5)], [row(5), row(2)]):
        for sorted in (False, True):
            o, lse = run_attend(q, k, v, lists, sorted=sorted)
            compare("o", o, np.full((1, 1, 1, 1), 0.5), "f32", 1)
            compare_lse("lse", lse, np.full((1, 1, 1), np.log(2)))


@case
def E4_repeats_across_block_sizes():
    """Two lists of different block sizes and heads that overlap in tokens."""
    q, k, v = qkv(1, 4, 2, 5, 40, 16)
    rng = np.random.default_rng(0)
    tokens, blocks = rng.integers(-1, 44, (1, 4, 5, 9)), rng.integers(-1, 7, (1, 1, 3, 2))
    for mask in ({}, CAUSAL):
        f = Function()
        args = [f.input(x) for x in (q, k, v)]
        a, b = f.lists(tokens), f.lists(blocks, 8, 2)
        o, lse = f.run(*f.op(f"ssa.sparse_attend {', '.join(args)} at {a}, {b}{attributes(mask)}",
                             tensor((1, 4, 5, 16)), tensor((1, 4, 5))))
        keys = union(selected(tokens, 5, 40, 4, **mask), selected(blocks, 5, 40, 4, 8, 2, **mask))
        ref_o, ref_lse = attend(q, k, v, keys)
        compare("o", o, ref_o, "f32", 1)
        compare_lse("lse", lse, ref_lse)


@case
def E4_sort_and_union_drop_repeats():
    rng = np.random.default_rng(1)
    a, b = rng.integers(-3, 9, (2, 2, 4, 6)), rng.integers(-3, 9, (2, 2, 4, 3))
    f = Function()
    x, y = f.lists(a, 4), f.lists(b, 4)
    s = f.op(f"ssa.sort {x}", selection((2, 2, 4, 6), 4, sorted=True))
    u = f.op(f"ssa.union {x}, {y}", selection((2, 2, 4, 9), 4, sorted=True))
    got_s, got_u = f.run(f.indices(s), f.indices(u))
    for i in np.ndindex(2, 2, 4):
        for got, lanes in ((got_s, a[i]), (got_u, np.concatenate([a[i], b[i]]))):
            # A number past the end is padding only for an op that knows the end.
            keep = np.unique(lanes[lanes >= 0])
            compare_exact(f"row {i}", got[i], np.concatenate([keep, np.full(got.shape[3] - len(keep), -1)]))


# --- Memory that no row may see --------------------------------------------------------------------------------------


@case
def K1_cache_past_the_used_keys():
    """Four sequences of different lengths in caches of 128 tokens."""
    used = np.array([32, 64, 96, 48])
    hidden = np.arange(128) >= used[:, None]
    q, k, v = qkv(4, 2, 1, 1, 128, 32)
    for size in (1, 16):
        idx = np.full((4, 1, 1, 128 // size), -1)
        for b in range(4):
            idx[b, 0, 0, : used[b] // size] = np.arange(used[b] // size)
        results = [run_attend(q, *poisoned(k, v, hidden, fill), idx, size) for fill in (0.0, np.nan, np.inf)]
        check_attend(f"block {size}", q, *poisoned(k, v, hidden, 0.0), idx, size)
        for o, lse in results[1:]:
            compare_bits("o", o, results[0][0])
            compare_bits("lse", lse, results[0][1])


@case
def K3_any_fill_of_unused_keys():
    q, k, v = qkv(1, 2, 1, 3, 128, 32)
    hidden = np.arange(128)[None] >= 32
    idx = np.full((1, 1, 3, 128), -1)
    idx[..., :32] = np.arange(32)
    blocks = np.tile(np.array([1, -1, 0, 99]), (1, 1, 3, 1))
    for elem in ("f32", "bf16"):
        for lists, size in ((idx, 1), (blocks, 16)):
            check_attend(elem, q, *poisoned(k, v, hidden, 0.0), lists, size, elem=elem)
            results = [run_attend(q, *poisoned(k, v, hidden, fill), lists, size, elem=elem) for fill in FILLS]
            for fill, (o, lse) in zip(FILLS, results):
                compare_bits(f"{elem} fill {fill}: o", o, results[0][0])
                compare_bits(f"{elem} fill {fill}: lse", lse, results[0][1])


@case
def K3_any_fill_of_masked_keys():
    """Keys after the last query, before the window of the first one, of another batch and of another head."""
    q, k, v = qkv(2, 2, 2, 3, 80, 16)
    for mask, hidden in ((dict(causal=True, window=20), np.arange(80) <= 80 - 3 - 20),
                         (dict(causal=True, window=20, sink=4), (np.arange(80) <= 80 - 3 - 20) & (np.arange(80) >= 4))):
        check_attend(f"{mask}", q, k, v, mask=mask)
        results = [run_attend(q, *poisoned(k, v, np.tile(hidden, (2, 1)), fill), mask=mask) for fill in FILLS]
        for fill, (o, lse) in zip(FILLS, results):
            compare_bits(f"fill {fill}: o", o, results[0][0])
            compare_bits(f"fill {fill}: lse", lse, results[0][1])
    o, lse = run_attend(q, k, v)
    k[1, 1], v[1, 1] = np.nan, np.nan
    bad_o, bad_lse = run_attend(q, k, v)
    check(np.isnan(bad_lse[1, 1]).all(), "the head that holds NaN is NaN")
    for b, h in ((0, 0), (0, 1), (1, 0)):
        compare_bits("other heads: o", bad_o[b, h], o[b, h])
        compare_bits("other heads: lse", bad_lse[b, h], lse[b, h])


@case
def K3_last_block_past_the_causal_bound():
    """A query that sees only part of a block: NaN in the rest of it."""
    q, k, v = qkv(1, 1, 1, 1, 70, 16)
    f = dict(lists=row(0, 1, 2), key_block=32)
    o, lse = run_attend(q, k[:, :, :40], v[:, :, :40], mask=CAUSAL, **f)
    check_attend("40 keys", q, k[:, :, :40], v[:, :, :40], mask=CAUSAL, **f)
    early = np.concatenate([q, np.zeros((1, 1, 30, 16))], axis=2)
    for fill in FILLS:
        bad_k, bad_v = poisoned(k, v, np.arange(70)[None] >= 40, fill)
        got_o, got_lse = run_attend(early, bad_k, bad_v, np.tile(row(0, 1, 2), (1, 1, 31, 1)), 32, mask=CAUSAL)
        compare_lse(f"fill {fill}: lse", got_lse[:, :, :1], lse)
        if np.isfinite(fill):
            compare(f"fill {fill}: o", got_o[:, :, :1], o, "f32", 1)


@case
def K5_two_lanes_of_a_tile():
    q, k, v = qkv(1, 1, 1, 1, 64, 32)
    bad_k, bad_v = poisoned(k, v, np.arange(64)[None] >= 2, np.nan)
    for lanes in ([0, 1] + [-1] * 62, [-1] * 62 + [1, 0], [0] + [-1] * 62 + [1]):
        o, lse = run_attend(q, bad_k, bad_v, row(*lanes))
        ref_o, ref_lse = attend(q, k, v, lambda b, h, m: [0, 1])
        compare("o", o, ref_o, "f32", 1)
        compare_lse("lse", lse, ref_lse)


@case
def L2_padding_does_not_read_key_0():
    q, k, v = qkv(1, 1, 1, 1, 4, 16)
    v[0, 0, 0], k[0, 0, 0] = 1e4, 1e4
    o, _ = check_attend("attend", q, k, v, row(1, -1, 2))
    check(np.abs(o).max() <= 1, "no trace of key 0")
    compare_exact("gather", run_gather(v, row(1, -1, 2))[0, 0, 0], np.stack([v[0, 0, 1], 0 * v[0, 0, 1], v[0, 0, 2]]))


@case
def L1_keys_in_a_hole():
    """A list that leaves out the tokens of a missing page, with those tokens poisoned."""
    q, k, v = qkv(1, 1, 1, 1, 12, 16)
    bad_k, bad_v = poisoned(k, v, (np.arange(12)[None] // 4) == 1, np.nan)
    ref_o, ref_lse = attend(q, k, v, lambda b, h, m: [0, 9])
    for hole in (-1, 12, 2**31 - 1):
        o, lse = run_attend(q, bad_k, bad_v, row(0, hole, 9))
        compare("o", o, ref_o, "f32", 1)
        compare_lse("lse", lse, ref_lse)
    check_attend("pages", q, *poisoned(k, v, (np.arange(12)[None] // 4) == 1, 0.0), row(0, -1, 2), 4)
    ref_o, ref_lse = run_attend(q, k, v, row(0, -1, 2), 4)
    o, lse = run_attend(q, bad_k, bad_v, row(0, -1, 2), 4)
    compare_bits("pages: o", o, ref_o)
    compare_bits("pages: lse", lse, ref_lse)


@case
def L1_gathered_keys():
    """Attention over gathered rows sees what attention over the lists sees; gathered rows of padding count for nothing."""
    q, k, v = qkv(2, 4, 2, 3, 21, 16)
    idx = np.random.default_rng(3).integers(-2, 8, (2, 2, 3, 5))
    for mask in ({}, CAUSAL):
        f = Function()
        fq, fk, fv, s = *(f.input(x) for x in (q, k, v)), f.lists(idx, 4)
        rows = tensor((2, 2, 3, 20, 16))
        kg, vg = f.op(f"ssa.gather {fk} at {s}", rows), f.op(f"ssa.gather {fv} at {s}", rows)
        results = tensor((2, 4, 3, 16)), tensor((2, 4, 3))
        o, lse = f.run(*f.op(f"ssa.sparse_attend {fq}, {kg}, {vg} of {fk} at {s}{attributes(mask)}", *results))
        ref_o, ref_lse = attend(q, k, v, selected(idx, 3, 21, 4, 4, **mask))
        compare("o", o, ref_o, "f32", 1)
        compare_lse("lse", lse, ref_lse)


# --- Arguments that must count ---------------------------------------------------------------------------------------


@case
def Q1_list_of_one_block():
    v = np.zeros((1, 1, 512, 4))
    v[:, :, :64] = 1
    for mask in ({}, CAUSAL):
        for query_block in (1, 64):
            idx = np.zeros((1, 1, 512 // query_block, 1), int)
            o, _ = check_attend("block 0", data(1, 1, 512, 4), data(1, 1, 512, 4, seed=1), v, idx, 64, query_block, mask=mask)
            compare("o", o, np.ones(o.shape), "f32", 1)


@case
def Q2_query_blocks_and_key_blocks_differ():
    q, k, v = qkv(1, 2, 1, 300, 333, 16)
    rng = np.random.default_rng(2)
    for key_block, query_block in ((128, 64), (64, 128), (16, 7), (7, 16)):
        idx = rng.integers(-1, -(-333 // key_block) + 1, (1, 1, -(-300 // query_block), 2))
        for mask in ({}, CAUSAL):
            for dynamic in (False, True):
                check_attend(f"{query_block} x {key_block}", q, k, v, idx, key_block, query_block, mask=mask, dynamic=dynamic)


main()
