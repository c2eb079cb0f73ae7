# RUN: %python %s
"""Merging partial results and mixing branches: neutral elements, natural logarithms, sinks, splits."""

from ssareference import *
from ssatest import *

INF = np.inf


def state(values, lse):
    """A part with one head, one query per lse and the given channels."""
    values, lse = np.atleast_2d(values), np.atleast_1d(lse)
    return values[None, None].astype(float), lse[None, None].astype(float)


def check_merge(what, parts, sink_logits=None, elem="f32"):
    """Runs ssa.merge on outputs rounded to `elem` and compares with the reference. Returns `o` and `lse`."""
    parts = [(round_to(o, elem), round_to(l, "f32")) for o, l in parts]
    o, lse = run_merge(parts, sink_logits, elem)
    ref_o, ref_lse = merge(parts, sink_logits)
    live = [np.where(l[..., None] > -INF, np.abs(o), 0) for o, l in parts]
    compare(f"{what}: o", o, ref_o, elem, np.max(live, axis=(0, -1))[..., None])
    compare_lse(f"{what}: lse", lse, ref_lse)
    return o, lse


@case
def A5_an_empty_part_is_neutral():
    """The other part comes back bit for bit, on either side and among several, whatever the empty part holds."""
    v = data(1, 1, 1, 64, seed=1)
    for elem in ("f32", "bf16", "f16"):
        full = round_to(v, elem), np.full((1, 1, 1), 0.5)
        for fill in (0.0, 1e30, INF, np.nan):
            nothing = np.full(v.shape, fill), np.full((1, 1, 1), -INF)
            for parts in ([nothing, full], [full, nothing], [full], [nothing, full, nothing], [nothing, nothing, full]):
                o, lse = run_merge(parts, elem=elem)
                compare_bits(f"{elem}, {len(parts)} parts: o", o, full[0].astype(np.float32))
                compare_bits(f"{elem}, {len(parts)} parts: lse", lse, full[1].astype(np.float32))


@case
def A5_an_empty_part_beside_an_extreme_one():
    for l in (-1e30, -46340.0, 0.0, 1.4e11, 1e30):
        for parts in ([state([3], l), state([9], -INF)], [state([9], -INF), state([3], l)]):
            o, lse = run_merge(parts)
            compare_exact("o", o, state([3], l)[0])
            compare_exact("lse", lse, np.float32(state([3], l)[1]))


@case
def A5_all_parts_empty():
    for fill in (0.0, 7.0, INF, np.nan):
        for count in (1, 2, 4):
            for sinks in (None, [0.5], [-INF], [100.0]):
                o, lse = run_merge([state([fill, fill], -INF)] * count, None if sinks is None else np.array(sinks))
                compare_exact("o", o, np.zeros((1, 1, 1, 2)))
                compare_exact("lse", lse, np.full((1, 1, 1), -INF))


@case
def A5_rows_of_one_call():
    """Empty and full rows beside each other."""
    rng = np.random.default_rng(0)
    parts = []
    for _ in range(3):
        lse = rng.uniform(-5, 5, (2, 3, 7))
        lse[rng.random(lse.shape) < 0.5] = -INF
        parts.append((np.where(lse[..., None] > -INF, rng.uniform(-1, 1, (2, 3, 7, 8)), np.nan), lse))
    for elem in ("f32", "bf16"):
        for sinks in (None, np.array([0.5, -INF, 3.0])):
            o, lse = check_merge(elem, parts, sinks, elem)
            check(np.isfinite(o).all(), "NaN of an empty part")
            check((lse == -INF).sum() > 0 and np.isfinite(lse).sum() > 0, "rows of both kinds")


@case
def P1_natural_logarithm():
    o, lse = run_merge([state([0], np.log(1)), state([5], np.log(4))])
    compare("o", o, np.full((1, 1, 1, 1), 4.0), "f32", 5)
    compare_lse("lse", lse, np.full((1, 1, 1), np.log(5)))
    o, lse = run_attend(np.ones((1, 1, 1, 1)), np.array([[[[3.0]]]]), np.ones((1, 1, 1, 1)), scale=1.0)
    compare_exact("lse of one key", lse, np.full((1, 1, 1), 3.0))


@case
def P1_attention_in_parts():
    """Parts of the keys, merged, are attention over all of them."""
    q, k, v = data(2, 4, 5, 32, seed=1), data(2, 2, 60, 32, seed=2), data(2, 2, 60, 32, seed=3)
    ref_o, ref_lse = attend(q, k, v, masked(5, 60))
    for parts in (1, 2, 3, 5):
        f = Function()
        operands = ", ".join(f.input(x) for x in (q, k, v))
        states = []
        for part in np.array_split(np.arange(60), parts):
            at = f.lists(np.tile(part, (2, 1, 5, 1)))
            states.append(f.op(f"ssa.sparse_attend {operands} at {at}", tensor((2, 4, 5, 32)), tensor((2, 4, 5))))
        pairs = ", ".join(f"({o}, {l})" for o, l in states)
        o, lse = f.run(*f.op(f"ssa.merge {pairs}", tensor((2, 4, 5, 32)), tensor((2, 4, 5))))
        compare(f"{parts} parts: o", o, ref_o, "f32", 1)
        compare_lse(f"{parts} parts: lse", lse, ref_lse)


@case
def P1_a_key_in_two_parts_counts_twice():
    o, lse = run_merge([state([1], 0), state([1], 0), state([4], 0)])
    compare("o", o, np.full((1, 1, 1, 1), 2.0), "f32", 4)
    compare_lse("lse", lse, np.full((1, 1, 1), np.log(3)))


@case
def P4_sink_of_one_key():
    o, lse = run_merge([state([8], 0)], np.array([np.log(3)]))
    compare("sink ln 3: o", o, np.full((1, 1, 1, 1), 2.0), "f32", 8)
    compare_exact("sink ln 3: lse", lse, np.zeros((1, 1, 1)))
    o, lse = run_merge([state([8], 0)], np.array([100.0]))
    check(np.isfinite(o).all() and np.abs(o).max() < 1e-30, f"sink 100: expected less than 1e-30, but got {o.max()}")
    compare_exact("sink 100: lse", lse, np.zeros((1, 1, 1)))
    o, lse = run_merge([state([8], 0)], np.array([-INF]))
    compare_exact("no sink: o", o, np.full((1, 1, 1, 1), 8.0))
    o, lse = run_merge([state([8], 0)], np.array([-1e30]))
    compare_exact("sink -1e30: o", o, np.full((1, 1, 1, 1), 8.0))


@case
def P4_sink_enters_once():
    """However many parts, the sink counts once; every head has its own."""
    q, k, v = data(1, 4, 3, 16, seed=1), data(1, 2, 64, 16, seed=2), data(1, 2, 64, 16, seed=3)
    sinks = np.array([0.5, -3.0, 4.0, -INF])
    whole_o, whole_lse = attend(q, k, v, masked(3, 64))
    ref_o = whole_o * (np.exp(whole_lse) / (np.exp(whole_lse) + np.exp(sinks)[:, None]))[..., None]
    for parts in (1, 2, 4):
        states = [attend(q, k, v, lambda b, h, m: part) for part in np.array_split(np.arange(64), parts)]
        o, lse = check_merge(f"{parts} parts", states, sinks)
        compare(f"{parts} parts: o", o, ref_o, "f32", 1)
        compare_lse(f"{parts} parts: lse", lse, whole_lse)


@case
def P4_sink_of_empty_rows():
    for sink in (0.5, 100.0, -INF):
        o, lse = run_merge([state([3], -INF)], np.array([sink]))
        compare_exact("o", o, np.zeros((1, 1, 1, 1)))
        compare_exact("lse", lse, np.full((1, 1, 1), -INF))


@case
def O6_nan_stays_in_its_row():
    parts = [state([[1], [2], [3]], [0, np.nan, 1]), state([[5], [6], [7]], [0, 0, -INF])]
    o, lse = run_merge(parts)
    compare_exact("o", o, np.array([3, np.nan, 3]).reshape(1, 1, 3, 1))
    check(np.isnan(lse[0, 0]).tolist() == [False, True, False], "the lse of one row is NaN")


@case
def B4_large_lse():
    """Weights come from differences: nothing overflows, nothing is lost."""
    for base in (-1e5, 0.0, 1e5):
        check_merge(f"base {base}", [state([0], base), state([5], base + 2), state([-1], base - 700)])


@case
def G3_value_dims_and_types():
    for Dv in (1, 8, 65, 512):
        for elem in ("f32", "bf16", "f16"):
            parts = [(data(2, 3, 4, Dv, seed=i), data(2, 3, 4, seed=9 + i, low=-3, high=3)) for i in range(3)]
            check_merge(f"dv {Dv} {elem}", parts, elem=elem)
    parts = [(round_to(o, "bf16"), l) for o, l in parts]
    o, _ = run_merge(parts, elem="bf16", out="f32")
    compare("f32 from bf16 parts", o, merge(parts)[0], "f32", 1)


@case
def A5_mix_of_an_empty_branch():
    """A branch of empty rows is zeros: it adds nothing, whatever its gate."""
    o, g = data(1, 2, 3, 8, seed=1), data(1, 2, 3, seed=2, low=-4, high=4)
    for gate, weight in ((None, 1 / (1 + np.exp(-g))), ("none", g)):
        f = Function()
        a, b, x, y = f.input(o), f.input(0 * o), f.input(g), f.input(g + 1)
        one, two = f.op(f"ssa.mix ({a}, {x}){attributes(gate=gate)}", tensor(o.shape)), \
            f.op(f"ssa.mix ({b}, {y}), ({a}, {x}){attributes(gate=gate)}", tensor(o.shape))
        one, two = f.run(one, two)
        compare_exact("with and without it", two, one)
        compare("value", one, weight[..., None] * o, "f32", 4)


main()
