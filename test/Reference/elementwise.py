# RUN: %python %s
"""Elementwise ops on tensors against NumPy: rounding to every type, shapes, selects, casts that saturate, all sizes."""

from ssatest import *


def apply(op, inputs, types, result, tail=None):
    """One elementwise op on 1-d tensors; `tail` is what follows its operands, by default the type of all of them."""
    shape = "x".join(["?"] * np.ndim(inputs[0]))
    full = [t if np.ndim(x) == 0 else f"tensor<{shape}x{t}>" for x, t in zip(inputs, types)]
    out = f"tensor<{shape}x{result}>"
    names = [f"%a{i}" for i in range(len(inputs))]
    arguments = ", ".join(f"{n}: {t}" for n, t in zip(names, full))
    tail = tail(full, out) if tail else out
    text = f"func.func @f({arguments}) -> {out} {{\n  %r = {op} {', '.join(names)} : {tail}\n  return %r : {out}\n}}\n"
    return run(text, "f", inputs, convert=False)[0]


def to(full, out):
    return f"{full[0]} to {out}"


def doubles(count, seed):
    """Values of all magnitudes, and those half way between neighbours."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(count) * 10.0 ** rng.uniform(-50, 50, count)
    ties = np.ldexp(rng.integers(-(2**12), 2**12, count), rng.integers(-140, 120, count)).astype(np.float64)
    return np.concatenate([x, ties, [0.0, -0.0, np.inf, -np.inf, np.nan, 448, 464, 464.1, 480, 1e30, -1e300]])


@case
def rounding():
    x = doubles(5000, 1)
    for fmt in ("f32", "bf16", "f16", "f8E4M3FN"):
        got = apply("arith.truncf", [x], ["f64"], fmt, to)
        ref = round_to(x, fmt)
        if fmt == "f8E4M3FN":
            ref = np.where(np.isinf(x), np.copysign(448, x), ref)
        compare_exact(fmt, got, ref)
        check((np.signbit(got) == np.signbit(ref))[~np.isnan(ref)].all(), f"{fmt}: the sign of a zero differs")


@case
def rounding_without_negative_zero():
    got = apply("arith.truncf", [np.array([-1e-30, -0.0, 1e-30, 0.0, 300.0, -240.0])], ["f64"], "f8E4M3FNUZ", to)
    compare_exact("f8E4M3FNUZ", got, [0, 0, 0, 0, 240, -240])
    check(not np.signbit(got[:4]).any(), "there is no negative zero")


@case
def arithmetic_rounds_once():
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((2, 3, 700)).astype(np.float32)
    for fmt in ("bf16", "f16", "f32"):
        x, y = round_to(a, fmt), round_to(b, fmt)
        for op, ref in (("addf", x + y), ("mulf", x * y), ("divf", x / y)):
            compare_exact(f"{op} {fmt}", apply(f"arith.{op}", [a, b], [fmt, fmt], fmt), round_to(ref, fmt))


@case
def selects():
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((2, 5, 130)).astype(np.float32)
    c = rng.random((5, 130)) < 0.5
    compare_exact(
        "tensor",
        apply("arith.select", [c, a, b], ["i1", "f32", "f32"], "f32", lambda f, o: f"{f[0]}, {o}"),
        np.where(c, a, b),
    )
    for one in (False, True):
        text = """func.func @f(%c: i1, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32> {
          %r = arith.select %c, %a, %b : tensor<?x?xf32>
          return %r : tensor<?x?xf32>
        }"""
        compare_exact("scalar", run(text, "f", [np.array(one), a, b], convert=False)[0], a if one else b)


@case
def float_to_integer_saturates():
    x = np.array(
        [0.5, -0.5, 2.9, -2.9, 127.0, 128.0, -128.0, -129.0, 1e30, -1e30, np.inf, -np.inf, np.nan, 255.5, 256.0]
    )
    compare_exact(
        "fptosi i8",
        apply("arith.fptosi", [x], ["f64"], "i8", to),
        [0, 0, 2, -2, 127, 127, -128, -128, 127, -128, 127, -128, 0, 127, 127],
    )
    compare_exact(
        "fptoui i8",
        apply("arith.fptoui", [x], ["f64"], "i8", to).astype(np.uint8),
        [0, 0, 2, 0, 127, 128, 0, 0, 255, 0, 255, 0, 0, 255, 255],
    )
    compare_exact(
        "fptosi i64", apply("arith.fptosi", [x], ["f64"], "i64", to)[8:12], [2**63 - 1, -(2**63), 2**63 - 1, -(2**63)]
    )


@case
def shifts_out_of_range():
    a, n = np.array([-5, -5, -5, 5, 5], np.int32), np.array([31, 32, -1, 32, 100], np.int32)
    for op, ref in (("shli", [-(2**31), 0, 0, 0, 0]), ("shrui", [1, 0, 0, 0, 0]), ("shrsi", [-1, -1, -1, 0, 0])):
        compare_exact(op, apply(f"arith.{op}", [a, n], ["i32", "i32"], "i32"), ref)


@case
def division_overflow_wraps():
    a, b = np.array([-(2**31), -(2**31), 7], np.int32), np.array([-1, 1, -1], np.int32)
    for op, ref in (
        ("divsi", [-(2**31), -(2**31), -7]),
        ("remsi", [0, 0, 0]),
        ("floordivsi", [-(2**31), -(2**31), -7]),
        ("ceildivsi", [-(2**31), -(2**31), -7]),
    ):
        compare_exact(op, apply(f"arith.{op}", [a, b], ["i32", "i32"], "i32"), ref)


@case
def math_without_folders():
    x, y, z = np.random.default_rng(4).standard_normal((3, 1000))
    compare_exact("fma", apply("math.fma", [x, y, np.zeros(1000)], ["f64"] * 3, "f64"), x * y)
    text = """func.func @f(%a: tensor<?xf64>, %lo: tensor<?xf64>, %hi: tensor<?xf64>)
        -> (tensor<?xf64>, tensor<?xf64>, tensor<?xf64>) {
      %c = math.clampf %a to [%lo, %hi] : tensor<?xf64>
      %s, %t = math.sincos %a : tensor<?xf64>
      return %c, %s, %t : tensor<?xf64>, tensor<?xf64>, tensor<?xf64>
    }"""
    lo, hi = np.minimum(y, z), np.maximum(y, z)
    c, s, t = run(text, "f", [x, lo, hi], convert=False)
    compare_exact("clampf", c, np.clip(x, lo, hi))
    check(np.abs(s - np.sin(x)).max() < 1e-15 and np.abs(t - np.cos(x)).max() < 1e-15, "sincos")
    base, power = np.array([2, -3, 0, 0, 1, -1, -1, 5, 7, 2], np.int32), np.array(
        [10, 3, 0, 4, -7, -7, -8, -1, 40, 31], np.int32
    )
    compare_exact(
        "ipowi",
        apply("math.ipowi", [base, power], ["i32", "i32"], "i32"),
        [1024, -27, 1, 0, 1, -1, 1, 0, (7**40 + 2**31) % 2**32 - 2**31, -(2**31)],
    )
    got = apply(
        "math.fpowi",
        [x, np.arange(1000, dtype=np.int32) % 7 - 3],
        ["f64", "i32"],
        "f64",
        lambda f, o: f"{f[0]}, {f[1]}",
    )
    check(np.allclose(got, x ** (np.arange(1000) % 7 - 3.0), rtol=1e-14, atol=0), "fpowi")


@case
def narrow_bitcasts():
    x = np.array([1.0, -2.5, 0.0, 65504.0, np.inf], np.float32)
    got = apply("arith.bitcast", [x], ["f16"], "i16", to)
    compare_exact("f16", got.astype(np.int16), x.astype(np.float16).view(np.int16))
    compare_exact("i16", apply("arith.bitcast", [got], ["i16"], "f16", to), x)
    compare_exact(
        "bf16",
        apply("arith.bitcast", [got], ["i16"], "bf16", to),
        (got.astype(np.int64) << 16).astype(np.int32).view(np.float32),
    )


@case
def sizes():
    for shape in ((0,), (1,), (255,), (256,), (257,), (3, 0, 5), (2, 3, 129), (100001,)):
        x = np.random.default_rng(5).standard_normal(shape)
        compare_exact(f"{shape}", apply("math.absf", [x], ["f64"], "f64"), np.abs(x))


@case
def shapes_must_agree():
    x = np.zeros((2, 3))
    expect_error(
        lambda: apply("arith.addf", [x, np.zeros((2, 4))], ["f64", "f64"], "f64"),
        "'arith.addf' op operand 1 has shape 2x4, expected 2x3, the shape of operand 0",
    )


@case
def division_by_zero():
    a, b = np.arange(3000, dtype=np.int32), np.arange(3000, dtype=np.int32)[::-1] // 5
    for op in "divsi divui remsi remui ceildivsi ceildivui floordivsi".split():
        # The first of several, whatever the threads do.
        expect_error(
            lambda: apply(f"arith.{op}", [a, b], ["i32", "i32"], "i32"), f"'arith.{op}' op division of 2995 by zero"
        )


@case
def not_evaluated():
    text = """func.func @f(%a: tensor<4xf32>) -> tensor<4xbf16> {
      %r = arith.truncf %a downward : tensor<4xf32> to tensor<4xbf16>
      return %r : tensor<4xbf16>
    }"""
    expect_error(
        lambda: run(text, "f", [np.zeros(4)]),
        "'arith.truncf' op rounds in a way the interpreter does not know; it knows 'to_nearest_even'",
    )


main()
