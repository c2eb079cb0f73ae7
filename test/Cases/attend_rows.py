# RUN: %python %s
"""Attention rows: rows without a key, extreme logits, scales, NaN and infinities."""

from ssareference import *
from ssatest import *

CAUSAL = dict(causal=True)


def column(values):
    """A 1x1xNx1 tensor: one number per key. With D = 1, scale = 1 and q = 1 keys are their own logits."""
    return np.array(values, np.float64).reshape(1, 1, -1, 1)


def full(value, *shape):
    return np.full((1, 1) + shape, float(value))


def only(what, result, o, lse):
    """Checks the single row of a result against known numbers."""
    got_o, got_lse = result
    compare(f"{what}: o", got_o, np.full(got_o.shape, float(o)), "f32", abs(o))
    compare_lse(f"{what}: lse", got_lse, np.full(got_lse.shape, float(lse)))


def empty(what, o, lse):
    """Checks that rows are exactly 0 and -inf."""
    check(o.size and lse.size, f"{what}: no rows")
    compare_exact(f"{what}: o", o, np.zeros(o.shape))
    compare_exact(f"{what}: lse", lse, np.full(lse.shape, -np.inf))


# --- Rows with no key ------------------------------------------------------------------------------------------------


@case
def A1_hole_of_16_lanes():
    q, k, v = data(1, 1, 1, 64, seed=1), data(1, 1, 32, 64, seed=2), data(1, 1, 32, 64, seed=3)
    idx = np.array([-1] * 16 + [5, 9] + [-1] * 14).reshape(1, 1, 1, 32)
    o, lse = check_attend("hole", q, k, v, idx)
    ref_o, ref_lse = attend(q, k, v, lambda b, h, m: [5, 9])
    compare("o", o, ref_o, "f32", 1)
    compare_lse("lse", lse, ref_lse)


@case
def A1_holes_around_a_tile():
    """Holes one lane shorter than a tile, as long, one longer; at the front, in the middle, at the back."""
    for tile in (8, 16, 32, 64, 128):
        rows, width = [], 2 * (tile + 1) + 2
        for hole in (tile - 1, tile, tile + 1):
            for row in ([-1] * hole + [5, 9], [5] + [-1] * hole + [9], [5, 9] + [-1] * hole,
                        [-1] * hole + [5, 9] + [-1] * hole, [-1] * hole + [9]):
                rows.append(row + [-1] * (width - len(row)))
        idx = np.array(rows).reshape(1, 1, len(rows), width)
        q, k, v = data(1, 1, len(rows), 64, seed=1), data(1, 1, 32, 64, seed=2), data(1, 1, 32, 64, seed=3)
        for elem in ("f32", "bf16"):
            check_attend(f"tile {tile} {elem}", q, k, v, idx, elem=elem)


@case
def A1_holes_of_blocks():
    """The same with blocks of keys, of which a causal mask hides the first ones of the list."""
    M = N = 256
    q, k, v = data(1, 2, M, 32, seed=1), data(1, 1, N, 32, seed=2), data(1, 1, N, 32, seed=3)
    idx = np.tile(np.array([15, 14, -1, -1, 7, 99, 0, -1, -1, -1]), (1, 1, M, 1))
    o, lse = check_attend("blocks", q, k, v, idx, key_block=16, mask=CAUSAL)
    check(np.isfinite(lse).all(), "every query sees block 0")


@case
def A2_queries_before_the_first_key():
    q, k, v = data(1, 1, 5, 64, seed=1), data(1, 1, 3, 64, seed=2), data(1, 1, 3, 64, seed=3)
    every = np.tile(np.arange(3), (1, 1, 5, 1))
    for elem in ("f32", "bf16", "f16"):
        for lists in (None, every):
            o, lse = check_attend(elem, q, k, v, lists, elem=elem, mask=CAUSAL)
            empty("rows 0, 1", o[:, :, :2], lse[:, :, :2])
            compare("row 2", o[:, :, 2], round_to(v, elem)[:, :, 0], elem, 1)
            ref_o, _ = attend(*(round_to(x, elem) for x in (q, k, v)), lambda b, h, m: [0, 1, 2])
            compare("row 4", o[:, :, 4], ref_o[:, :, 4], elem, 1)


@case
def A2_finite_logits_are_not_minus_infinity():
    """Very low logits are keys all the same."""
    lowest = -2e38
    for n in (1, 3):
        only(f"{n} keys", run_attend(full(1, 1, 1), column([lowest] * n), column([7] * n), scale=1.0), 7, lowest)


@case
def A3_empty_row_between_others():
    q, k, v = data(1, 1, 3, 64, seed=1), data(1, 1, 4, 64, seed=2), data(1, 1, 4, 64, seed=3)
    idx = np.array([[0, 1, 2, 3], [-1] * 4, [3, 1, -1, -1]]).reshape(1, 1, 3, 4)
    for padding in (-1, 4, -(2**31), 2**31 - 1):
        o, lse = check_attend(f"padding {padding}", q, k, v, np.where(idx == -1, padding, idx))
        empty("row 1", o[:, :, 1], lse[:, :, 1])


@case
def A3_list_of_width_0():
    q, k, v = data(2, 4, 3, 64, seed=1), data(2, 2, 4, 64, seed=2), data(2, 2, 4, 64, seed=3)
    empty("no list", *check_attend("width 0", q, k, v, np.zeros((2, 2, 3, 0), int)))


@case
def A3_every_logit_is_minus_infinity():
    q, v = full(1, 1, 1), column([1, 2])
    empty("all -inf", *run_attend(q, column([-np.inf, -np.inf]), v, scale=1.0))
    only("one left", run_attend(q, column([-np.inf, 0]), v, scale=1.0), 2, 0)


@case
def A7_one_key_per_sequence():
    """The sequences of a batch of different lengths, one call each: only the last query sees the key."""
    for number, (M, N) in enumerate(((76, 1), (34, 1), (146, 1))):
        q, k, v = data(1, 1, M, 32, seed=number), data(1, 1, N, 32, seed=10 + number), data(1, 1, N, 32, seed=20 + number)
        o, lse = check_attend(f"{M} queries", q, k, v, mask=CAUSAL)
        empty("rows before the last", o[:, :, :-1], lse[:, :, :-1])
        compare("last row", o[:, :, -1], v[:, :, 0], "f32", 1)


# --- Extreme logits, scale, rounding ---------------------------------------------------------------------------------


@case
def B1_logits_below_minus_4000():
    k = np.repeat(column([-430, -470, -470, -470]), 128, axis=3)
    for lists in (None, np.array([[[[3, 2, 1, 0]]]])):
        only("bf16", check_attend("bf16", full(1, 1, 128), k, column([1, 2, 3, 4]), lists, elem="bf16"), 1, -4864.89)


@case
def B2_one_key_of_logit_minus_46340():
    for lists in (None, np.array([[[[0]]]]), np.array([[[[-1] * 64 + [0]]]])):
        only("f32", check_attend("f32", full(64, 1, 128), full(-64, 1, 128), full(9, 1, 1), lists), 9, -46340.95)


@case
def B3_masked_keys_do_not_enter_the_maximum():
    q, k, v = full(-15000, 1, 1), column([1, 0]), column([3, 50])
    for idx in ([0, -1], [-1, 0], [0, 2], [0]):
        only(str(idx), run_attend(q, k, v, np.array(idx).reshape(1, 1, 1, -1), scale=1.0), 3, -15000)
    only("both keys", run_attend(q, k, v, np.array([[[[0, 1]]]]), scale=1.0), 50, 0)
    o, lse = run_attend(full(-15000, 2, 1), k, v, mask=CAUSAL, scale=1.0)
    only("causal", (o[:, :, :1], lse[:, :, :1]), 3, -15000)


@case
def B4_logits_of_1e11():
    for n in (1, 2):
        o, lse = run_attend(full(133120, 1, 64), full(133120, n, 64), full(133120, n, 64), elem="bf16")
        compare_exact(f"{n} keys: o", o, full(133120, 1, 64))
        compare_lse(f"{n} keys: lse", lse, full(1.4177e11, 1))
    o, _ = run_attend(full(133120, 1, 64), full(133120, 2, 64), np.repeat(column([1, 2]), 64, axis=3), elem="bf16")
    compare_exact("mean of v", o, full(1.5, 1, 64))


@case
def B5_logits_above_the_range_of_f16():
    k, v = np.repeat(column([128, 128, 127]), 64, axis=3), column([1, 3, 100])
    only("f16", check_attend("f16", full(128, 1, 64), k, v, elem="f16"), 2, 131072.69)


@case
def B7_scale_of_0_is_not_the_default():
    q, k, v = data(1, 1, 1, 4, seed=1), np.repeat(column(range(5)), 4, axis=3), column(range(5))
    only("scale 0", check_attend("scale 0", q, k, v, scale=0.0), 2, np.log(5))
    o, lse = check_attend("default", q, k, v)
    check(abs(o.item() - 2) > 0.05 and abs(lse.item() - np.log(5)) > 0.05, "the default scale is not 0")
    only("selected", check_attend("selected", q, k, v, np.array([[[[4, 1, 1]]]]), scale=0.0), 2.5, np.log(2))


@case
def B7_negative_scale():
    q, k, v = data(1, 2, 3, 16, seed=1), data(1, 1, 9, 16, seed=2), data(1, 1, 9, 16, seed=3)
    negative = check_attend("negative", q, k, v, scale=-0.5)
    compare_exact("the sign moves to q", run_attend(-q, k, v, scale=0.5)[0], negative[0])


@case
def B8_default_scale_of_the_logical_head_dim():
    one = np.repeat(column([1, 0]), 80, axis=3)
    only("d 80", run_attend(full(1, 1, 80), one, column([5, 5])), 5, 8.94440)
    for D, Dv in ((80, 80), (192, 128), (40, 8), (576, 512), (1, 1)):
        q, k, v = full(1, 1, D), np.repeat(column([1, 0]), D, axis=3), data(1, 1, 2, Dv)
        _, lse = check_attend(f"d {D} dv {Dv}", q, k, v)
        compare_lse(f"d {D}", lse, full(np.logaddexp(np.sqrt(D), 0), 1))


@case
def M3_long_flat_tail():
    k, v = column([0] + [-7] * 4095), column([0] + [1] * 4095)
    for elem in ("f32", "bf16", "f16"):
        o, lse = check_attend(elem, full(1, 1, 1), k, v, elem=elem, scale=1.0)
        check(abs(o.item() - 0.7888) < 0.7888 * 0.02, f"{elem}: expected 0.7888, but got {o.item()}")


# --- NaN and infinities ----------------------------------------------------------------------------------------------


@case
def O6_first_tile_hidden():
    for tile in (16, 32, 64, 128, 256):
        idx = np.full((1, 1, 1, tile + 4), -1)
        idx[..., tile:] = [1, 3, 5, 7]
        check_attend(f"tile {tile}", data(1, 1, 1, 32, seed=1), data(1, 1, 9, 32, seed=2), data(1, 1, 9, 32, seed=3), idx)


@case
def O6_nan_logit_reaches_its_row_and_no_other():
    N = 200
    q, v = data(1, 1, N, 8, seed=1), data(1, 1, N, 8, seed=3)
    for at in (0, 15, 64, 130, N - 1):
        k = data(1, 1, N, 8, seed=2)
        k[0, 0, at, 3] = np.nan
        o, lse = check_attend(f"key {at}", q, k, v, mask=CAUSAL)
        check(np.isnan(lse[0, 0, at:]).all() and np.isnan(o[0, 0, at:]).all(), "rows that see the key are NaN")
        check(np.isfinite(lse[0, 0, :at]).all() and np.isfinite(o[0, 0, :at]).all(), "rows before it are not")


@case
def O6_nan_query():
    q, k, v = data(1, 2, 5, 8, seed=1), data(1, 1, 9, 8, seed=2), data(1, 1, 9, 8, seed=3)
    q[0, 1, 3, 0] = np.nan
    o, lse = check_attend("one row", q, k, v)
    check(np.isnan(lse).sum() == 1 and np.isnan(o).sum() == 8, "one row is NaN")
    empty("no keys", *(x[:, 1:, 3] for x in check_attend("no keys", q, k, v, np.full((1, 1, 5, 2), -1))))


@case
def O6_infinite_logit():
    v = column([1, 2, 3])
    for logits, bad in (([0, np.inf, 0], True), ([np.inf, -np.inf, np.nan], True), ([-np.inf, 0, -np.inf], False)):
        o, lse = run_attend(full(1, 1, 1), column(logits), v, scale=1.0)
        compare_exact("o", o, full(np.nan if bad else 2, 1, 1))
        compare_exact("lse", lse, full(np.nan if bad else 0, 1))


@case
def O7_negative_scores_of_11_keys():
    """Padded lanes must not bring in a 0 that beats logits in [-5, -1]."""
    for width in (11, 32, 96, 160):
        idx = np.full((1, 1, 1, width), -1)
        idx[..., -11:] = np.arange(11)
        logits = data(1, 1, 11, 1, seed=width, low=-5, high=-1)
        _, lse = check_attend(f"width {width}", full(1, 1, 1), logits, data(1, 1, 11, 4), idx, scale=1.0)
        check(lse.item() < np.log(11) - 1, "the sum of 11 scores below exp(-1)")


# --- A row depends on nothing else -----------------------------------------------------------------------------------


@case
def P5_row_alone_and_in_company():
    for elem, mask in (("f32", {}), ("bf16", {}), ("bf16", CAUSAL)):
        q, k, v = data(64, 4, 7, 32, seed=1), data(64, 2, 50, 32, seed=2), data(64, 2, 50, 32, seed=3)
        idx = np.random.default_rng(4).integers(-1, 13, (64, 2, 7, 6))
        options = dict(key_block=4, elem=elem, mask=mask)
        o, lse = check_attend(elem, q, k, v, idx, **options)
        for rows in (slice(0, 1), slice(0, 4), slice(3, 4)):
            part_o, part_lse = run_attend(q[rows], k[rows], v[rows], idx[rows], **options)
            compare_bits(f"batch {rows}: o", part_o, o[rows])
            compare_bits(f"batch {rows}: lse", part_lse, lse[rows])
        last_o, last_lse = run_attend(q[:1, :, -1:], k[:1], v[:1], idx[:1, :, -1:], **options)
        compare_bits("last query alone: o", last_o, o[:1, :, -1:])
        compare_bits("last query alone: lse", last_lse, lse[:1, :, -1:])
        turned = [np.roll(x, 5, axis=0) for x in (q, k, v, idx)]
        moved_o, moved_lse = run_attend(*turned, **options)
        compare_bits("moved: o", moved_o, np.roll(o, 5, axis=0))
        compare_bits("moved: lse", moved_lse, np.roll(lse, 5, axis=0))


@case
def P5_order_padding_and_repeats_of_a_list():
    q, k, v = data(1, 2, 3, 32, seed=1), data(1, 1, 400, 32, seed=2), data(1, 1, 400, 32, seed=3)
    rng = np.random.default_rng(5)
    idx = np.stack([rng.permutation(100)[:40] for _ in range(3)]).reshape(1, 1, 3, 40)
    for elem in ("f32", "bf16"):
        q, k, v = (round_to(x, elem) for x in (q, k, v))
        o, lse = check_attend(elem, q, k, v, idx, key_block=4, elem=elem)
        wide = np.full((1, 1, 3, 130), -1)
        wide[..., 7:47] = idx
        for name, lists in (("reversed", idx[..., ::-1]), ("ascending", np.sort(idx)), ("padded", wide),
                            ("twice", np.concatenate([idx, idx[..., ::-1]], axis=3))):
            other_o, other_lse = run_attend(q, k, v, lists, key_block=4, elem=elem)
            compare_bits(f"{elem} {name}: o", other_o, o)
            compare_bits(f"{elem} {name}: lse", other_lse, lse)
        sorted_o, sorted_lse = run_attend(q, k, v, idx, key_block=4, elem=elem, sorted=True)
        compare_bits(f"{elem} sorted: o", sorted_o, o)
        compare_bits(f"{elem} sorted: lse", sorted_lse, lse)


@case
def P5_same_bits_on_every_run():
    q, k, v = data(2, 4, 9, 64, seed=1), data(2, 2, 300, 64, seed=2), data(2, 2, 300, 64, seed=3)
    first = check_attend("first", q, k, v, mask=CAUSAL, elem="bf16")
    for _ in range(3):
        again = run_attend(q, k, v, mask=CAUSAL, elem="bf16")
        compare_bits("o", again[0], first[0])
        compare_bits("lse", again[1], first[1])


@case
def numbers_no_worse_than_dense_attention():
    """At most twice the error of attention with f32 accumulation over the same keys."""
    for elem in ("f32", "bf16", "f16"):
        q, k, v = (data(1, 2, n, 64, seed=n, fmt=elem) for n in (20, 333, 334))
        v = v[:, :, :333]
        idx = np.stack([np.random.default_rng(m).permutation(84)[:30] for m in range(20)]).reshape(1, 1, 20, 30)
        for lists, keys in ((None, masked(20, 333, causal=True)), (idx, selected(idx, 20, 333, 2, 4, causal=True))):
            o, _ = run_attend(q, k, v, lists, 4, elem=elem, mask=CAUSAL)
            ref, _ = attend(q, k, v, keys)
            plain, _ = attend(q, k, v, keys, dtype=np.float32)
            compare(elem, o, ref, elem, row_max(v, keys, 1, 2, 20), dense=plain)


main()
