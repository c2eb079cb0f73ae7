# RUN: %python %s
"""The checker itself: comparisons that must fail, rounding, the reference functions."""

from ssareference import *
from ssatest import *

NAN, INF = np.nan, np.inf


def fails(what, compare, *arguments):
    """Checks that a comparison fails."""
    try:
        compare("x", *arguments)
    except AssertionError:
        return check(True, what)
    check(False, f"{what}: expected a failed comparison")


COMPARISONS = (lambda what, got, ref: compare(what, got, ref, "f32", 1e30), compare_lse, compare_exact)


@case
def A10_nan_on_one_side():
    for compare in COMPARISONS:
        fails("NaN expected", compare, [0, 1], [NAN, 1])
        fails("NaN got", compare, [NAN, 1], [0, 1])
        fails("inf for NaN", compare, [INF], [NAN])
        fails("NaN for inf", compare, [NAN], [INF])
        compare("NaN on both sides", [NAN, 1], [NAN, 1])


@case
def A10_infinity_on_one_side():
    for compare in COMPARISONS:
        fails("a finite -inf", compare, [-1e30], [-INF])
        fails("-inf for a finite number", compare, [-INF], [-1e30])
        fails("signs differ", compare, [INF], [-INF])
        fails("the highest float for inf", compare, [np.finfo(np.float32).max], [INF])
        compare("inf on both sides", [INF, -INF], [INF, -INF])


@case
def A10_zeros_and_bounds():
    for compare in COMPARISONS:
        compare("zeros of both signs", [-0.0], [0.0])
        fails("shapes differ", compare, [0.0], [0.0, 0.0])
        fails("extents of 1 do not spread", compare, [[0.0]], [0.0])
        fails("empty for one", compare, [], [0.0])
        compare("empty", np.zeros((0, 3)), np.zeros((0, 3)))


@case
def A10_bounds():
    bounds = {"bf16": 2.0**-8, "f16": 2.0**-11, "f32": 2.0**-12}
    for fmt, e in bounds.items():
        compare(fmt, [2 + 5.99 * e], [2.0], fmt, 4)
        fails(fmt, compare, [2 + 6.01 * e], [2.0], fmt, 4)
        fails("one of two rows", compare, [[2.0], [3.9 * e]], [[2.0], [0.0]], fmt, np.array([[9.0], [3.0]]))
    compare_lse("lse", [-100 - 0.101], [-100.0])
    fails("lse", compare_lse, [-100 - 0.103], [-100.0])
    fails("exact", compare_exact, [1 + 2.0**-52], [1.0])
    fails("twice the error of dense attention", compare, [1 + 2.0**-13], [1.0], "f32", 1, np.array([1 + 2.0**-20]))
    compare("as good as dense attention", [1 + 2.0**-20], [1.0], "f32", 1, np.array([1 + 2.0**-20]))


@case
def A10_bits():
    compare_bits("same", np.float32([0, NAN]), np.float32([0, NAN]))
    fails("zeros of both signs", compare_bits, np.float32([-0.0]), np.float32([0.0]))
    fails("one bit", compare_bits, np.float32([1 + 2.0**-23]), np.float32([1]))
    fails("types differ", compare_bits, np.float32([0]), np.int32([0]))


@case
def A10_expected_errors():
    def refuse():
        raise SsaError("in.mlir:1:1: error: 3 for 2")

    def crash():
        raise Crash("exit code 139")

    expect_error(refuse, "3", "2")
    fails("no error", lambda what: expect_error(lambda: None))
    fails("another message", lambda what: expect_error(refuse, "4"))
    try:
        expect_error(crash)
        check(False, "a crash is not an error message")
    except Crash:
        check(True, "a crash stays one")


@case
def M2_rounding_like_the_hardware_formats():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(20000) * 10.0 ** rng.integers(-50, 45, 20000)
    x = np.concatenate([x, [0, -0.0, 65504, 65519.9, 65520, 1e-8, INF, -INF, NAN]])
    with np.errstate(over="ignore"):
        for fmt, kind in (("f32", np.float32), ("f16", np.float16)):
            compare_exact(fmt, round_to(x, fmt), x.astype(kind).astype(np.float64))
        single = x.astype(np.float32)
    bits = single.view(np.uint32)
    bf16 = (bits + 0x7FFF + ((bits >> 16) & 1) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    compare_exact("bf16", round_to(single, "bf16"), np.where(np.isnan(x), NAN, bf16))


@case
def M2_every_fp8_value():
    code = np.arange(0x7F)
    exponent, mantissa = code >> 3, code & 7
    values = np.where(exponent, (1 + mantissa / 8) * 2.0 ** (exponent - 7), mantissa / 8 * 2.0**-6)
    check(values[-1] == 448, "the largest value is 448")
    compare_exact("values", round_to(values, "f8E4M3FN"), values)
    compare_exact("negative", round_to(-values, "f8E4M3FN"), -values)
    halves = (values[1:] + values[:-1]) / 2
    even = np.where(code[:-1] % 2 == 0, values[:-1], values[1:])
    compare_exact("halves go to even", round_to(halves, "f8E4M3FN"), even)
    compare_exact("above a half", round_to(halves * 1.001, "f8E4M3FN"), values[1:])
    compare_exact("below a half", round_to(halves * 0.999, "f8E4M3FN"), values[:-1])
    compare_exact("saturation", round_to([449, 500, 1e30, INF, -INF, NAN], "f8E4M3FN"), [448] * 4 + [-448, NAN])


@case
def A10_reference_attention():
    """Two keys by hand; a repeat counts once; nothing for no key."""
    q, k, v = np.ones((1, 1, 1, 1)), np.array([0, np.log(3), 9]).reshape(1, 1, 3, 1), np.array([8.0, 4, 1]).reshape(1, 1, 3, 1)
    for keys, o, lse in (([0, 1], 5, np.log(4)), ([1, 0, 1, 1], 5, np.log(4)), ([], 0, -INF), ([0], 8, 0)):
        got_o, got_lse = attend(q, k, v, lambda b, h, m: keys, scale=1.0)
        check(got_lse.item() == lse or abs(got_lse.item() - lse) < 1e-12, f"lse over {keys}")
        check(abs(got_o.item() - o) < 1e-12, f"o over {keys}")


@case
def A10_reference_key_sets():
    compare_exact("causal", allowed(1, 3, 5, causal=True), [0, 1, 2, 3])
    compare_exact("window and sink", allowed(2, 3, 6, causal=True, window=2, sink=1), [0, 4, 5])
    compare_exact("both sides", allowed(0, 3, 6, window=2), [2, 3, 4])
    for blocks, counts in (((4,), (0, 1, 1, 2, 3)), ((4, 2), (0, 0, 1, 1, 3)), ((4, 4, -1), (0, 1, 2, 2, 3))):
        compare_exact(f"counts of {blocks}", [num_blocks(N, *blocks) for N in (0, 1, 4, 5, 9)], counts)
    compare_exact("short last block", listed([2, 0, 7, -1, 2], 9, 4), [0, 1, 2, 3, 8])
    compare_exact("offset", block_tokens(0, 9, 4, 4, -1), [0, 1, 2])


@case
def A10_reference_topk():
    compare_exact("ties", topk([1, 2, 2, 2], 2), [1, 2])
    compare_exact("NaN", topk([1, NAN, -INF, 0], 3), [0, 3, -1])
    compare_exact("denied and forced", topk([1, 9, 3, 2], 2, deny=[1], forced=[0]), [0, 2])
    compare_exact("top_p", topk([0.1, 0.4, 0.2, 0.3], 4, top_p=0.5), [1, 3, -1, -1])
    compare_exact("threshold", topk([0.1, 0.4, 0.2, 0.3], 4, threshold=0.25), [1, 3, -1, -1])


@case
def A10_number_of_results():
    for head, count in (("()", 0), ("(%a: f32)", 0), ("(%a: tensor<2xf32>, %b: !ssa.selection<1x2x3x4, key_block = 2>) -> f32", 1),
                        ("(%a: f32) -> (f32, !ssa.selection<1x2x3x4, key_block = 2, sorted>)", 2), ("() -> ()", 0)):
        check(num_results(f"func.func @f{head} {{\n  return\n}}", "f") == count, f"results of {head}")


main()
