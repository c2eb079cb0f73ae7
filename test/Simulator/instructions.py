# RUN: %python %s
"""Single instructions against what the PTX ISA says of them, computed here from its text with exact arithmetic.

A row is a spelling and a function of lane values to the result; inputs are chosen at the edges of each type. Floats are bit patterns throughout.

    instructions.py [--store FILE]     stores kernels, inputs and results for scripts/compare_instructions.py, which runs them on a GPU
"""

import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
from fractions import Fraction

SIM = os.path.join(os.environ.get("SSA_BIN", pathlib.Path(__file__).resolve().parents[2] / "build/bin"), "ssa-sim")
ROWS = []

# Types: register declaration, width in bits.
WIDTHS = {"b16": 16, "u16": 16, "s16": 16, "b32": 32, "u32": 32, "s32": 32, "b64": 64, "u64": 64, "s64": 64, "f16": 16, "bf16": 16,
          "f32": 32, "f64": 64, "f16x2": 32, "bf16x2": 32, "f32x2": 64, "e4m3x2": 16, "e5m2x2": 16, "pred": 1}
# Formats: exponent bits, mantissa bits, has infinity.
FORMATS = {"f16": (5, 10, True), "bf16": (8, 7, True), "f32": (8, 23, True), "f64": (11, 52, True), "e4m3": (4, 3, False), "e5m2": (5, 2, True)}
NAN = "nan"


def mask(x, bits):
    return x & ((1 << bits) - 1)


def signed(x, bits):
    x = mask(x, bits)
    return x - (1 << bits) if x >> (bits - 1) else x


# --- Floats, exactly: a number is a Fraction, an infinity, NAN, or "-0" -----------------------------------------------


def decode(bits, fmt):
    e, m, has_infinity = FORMATS[fmt]
    sign, exponent, mantissa = bits >> (e + m) & 1, bits >> m & ((1 << e) - 1), bits & ((1 << m) - 1)
    top, bias = (1 << e) - 1, (1 << (e - 1)) - 1
    if has_infinity and exponent == top:
        return NAN if mantissa else (-math.inf if sign else math.inf)
    if not has_infinity and exponent == top and mantissa == (1 << m) - 1:
        return NAN
    value = Fraction(mantissa | (1 << m if exponent else 0)) * Fraction(2) ** ((exponent or 1) - bias - m)
    return "-0" if sign and not value else -value if sign else value


def canonical_nan(fmt):
    e, m, _ = FORMATS[fmt]
    return (1 << (e + m)) - 1


def encode(x, fmt, rounding="rn", saturates=False):
    e, m, has_infinity = FORMATS[fmt]
    top, bias = (1 << e) - 1, (1 << (e - 1)) - 1
    infinity = top << m if has_infinity else (1 << (e + m)) - 1
    largest = infinity - 1
    if x == NAN:
        return None if fmt == "f64" else canonical_nan(fmt)  # NaN of f64 keeps a payload: compared with a GPU only
    if x == "-0":
        return 1 << (e + m)
    if isinstance(x, float):
        return (1 << (e + m) if x < 0 else 0) | (largest if saturates else infinity)
    negative = x < 0
    x = abs(x)
    exponent = max(x.numerator.bit_length() - x.denominator.bit_length() if x else -10000, 1 - bias)
    while x >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while exponent > 1 - bias and x < Fraction(2) ** exponent:
        exponent -= 1
    scaled = x / Fraction(2) ** (exponent - m)
    low = scaled.numerator // scaled.denominator
    rest = scaled - low
    up = {"rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low % 2), "rz": False, "rm": negative and rest > 0, "rp": not negative and rest > 0}[rounding]
    low += up
    bits = low + ((exponent - (1 - bias)) << m) if low >= 1 << m else low
    if bits > largest:
        stays = saturates or rounding == "rz" or (rounding == "rm" and not negative) or (rounding == "rp" and negative)
        bits = largest if stays else infinity
    return bits | (1 << (e + m) if negative else 0)


def plain(x):
    return Fraction(0) if x == "-0" else x


def negative(x):
    return x == "-0" or (x != NAN and plain(x) < 0)


def minus(x):
    return x if x == NAN else "-0" if x == 0 and x != "-0" else Fraction(0) if x == "-0" else -x


def add(a, b, rounding="rn"):
    if NAN in (a, b):
        return NAN
    if a == "-0" and b == "-0":
        return "-0"
    x, y = plain(a), plain(b)
    if isinstance(x, float) or isinstance(y, float):
        if isinstance(x, float) and isinstance(y, float) and x != y:
            return NAN
        return x if isinstance(x, float) else y
    total = x + y
    if total == 0 and rounding == "rm" and (negative(a) or negative(b)):
        return "-0"
    return total


def mul(a, b):
    if NAN in (a, b):
        return NAN
    x, y = plain(a), plain(b)
    is_negative = negative(a) != negative(b)
    if isinstance(x, float) or isinstance(y, float):
        return NAN if 0 in (x, y) else -math.inf if is_negative else math.inf
    return x * y if x * y else ("-0" if is_negative else Fraction(0))


def div(a, b):
    if NAN in (a, b):
        return NAN
    x, y = plain(a), plain(b)
    is_negative = negative(a) != negative(b)
    if isinstance(y, float):
        return NAN if isinstance(x, float) else "-0" if is_negative else Fraction(0)
    if isinstance(x, float) or y == 0:
        return NAN if x == 0 else -math.inf if is_negative else math.inf
    return x / y if x else ("-0" if is_negative else Fraction(0))


def less(a, b):
    return plain(a) < plain(b) or (a == "-0" and b == 0 and b != "-0")


def extreme(a, b, largest, nan_wins=False):
    if NAN in (a, b):
        return NAN if nan_wins or a == b else b if a == NAN else a
    return (b if less(a, b) else a) if largest else (b if less(b, a) else a)


# --- Inputs -------------------------------------------------------------------------------------------------------------

FLOATS = {
    "f32": [0, 0x80000000, 0x3F800000, 0xBF800000, 0x3F800001, 0x40490FDB, 0x7F7FFFFF, 0xFF7FFFFF, 0x00800000, 0x00000001, 0x807FFFFF,
            0x7F800000, 0xFF800000, 0x7FC00000, 0x4B000001, 0x33800000, 0xB3800000, 0x3F808000, 0x3F818000, 0x3F817FFF, 0x477FF000, 0x43E00000,
            0x43E80000, 0x7F7F8000, 0x3A000000, 0x37000001, 0x5F000000, 0xCF000000, 0x4EFFFFFF, 0x3EFFFFFF, 0x3FC00000, 0x40200000],
    "f64": [0, 1 << 63, 0x3FF0000000000000, 0xBFF0000000000001, 0x400921FB54442D18, 0x7FEFFFFFFFFFFFFF, 1, 0x7FF0000000000000,
            0xFFF0000000000000, 0x7FF8000000000000, 0x3FF0000010000000, 0x3FF0000010000001, 0x47EFFFFFE0000000, 0x36A0000000000000, 0x41DFFFFFFFC00000,
            0xC1E0000000000000],
}
FLOATS["f16"] = [0, 0x8000, 0x3C00, 0xBC00, 0x3C01, 0x7BFF, 0xFBFF, 0x0400, 1, 0x83FF, 0x7C00, 0xFC00, 0x7E00, 0x4248, 0x5BFF, 0x1400]
FLOATS["bf16"] = [0, 0x8000, 0x3F80, 0xBF80, 0x3F81, 0x7F7F, 0xFF7F, 0x0080, 1, 0x807F, 0x7F80, 0xFF80, 0x7FC0, 0x4049, 0x5E00, 0x3300]
for name in ("f16", "bf16"):
    FLOATS[name + "x2"] = [FLOATS[name][(i * 7 + 3) % 16] << 16 | FLOATS[name][i] for i in range(16)]
FLOATS["f32x2"] = [FLOATS["f32"][(i * 5 + 1) % 32] << 32 | x for i, x in enumerate(FLOATS["f32"])]
FLOATS["e4m3x2"] = [0x7F00, 0x7E01, 0x8088, 0x3C44, 0xFF08, 0x0107, 0xFE81, 0x3839]
FLOATS["e5m2x2"] = [0x7F00, 0x7B01, 0x8084, 0x3C44, 0x7C04, 0x0103, 0xFC81, 0x3839]


def integers(bits):
    top = 1 << bits
    return [x % top for x in (0, 1, 2, 3, 5, 31, 32, 33, 63, 100, 255, top // 2 - 1, top // 2, top // 2 + 1, top - 1, top - 2, 0x12345678, 0x9ABCDEF0, 0x5555, 0xF0F0F0F0, 64, 1 << 8, 7 << 12, top - 100)]


def inputs(t):
    return FLOATS[t] if t in FLOATS else [0, 1] if t == "pred" else integers(WIDTHS[t])


def row(name, result, arguments, function, shift=False):
    ROWS.append((name, result, arguments, function))


# --- Rows ----------------------------------------------------------------------------------------------------------------

for bits in (16, 32, 64):
    for t, view in ((f"u{bits}", lambda x, b=bits: mask(x, b)), (f"s{bits}", lambda x, b=bits: signed(x, b))):
        wide, b = f"{t[0]}{2 * bits}", bits
        row(f"add.{t}", t, [t, t], lambda x, y, b=b: x + y)
        row(f"sub.{t}", t, [t, t], lambda x, y, b=b: x - y)
        row(f"mul.lo.{t}", t, [t, t], lambda x, y: x * y)
        row(f"mul.hi.{t}", t, [t, t], lambda x, y, v=view, b=b: v(x) * v(y) >> b)
        row(f"mad.lo.{t}", t, [t, t, t], lambda x, y, z: x * y + z)
        if bits < 64:
            row(f"mul.wide.{t}", wide, [t, t], lambda x, y, v=view: v(x) * v(y))
            row(f"mad.wide.{t}", wide, [t, t, wide], lambda x, y, z, v=view: v(x) * v(y) + z)
        row(f"div.{t}", t, [t, t], lambda x, y, v=view: -1 if not v(y) else int(abs(v(x)) // abs(v(y))) * (1 if v(x) * v(y) >= 0 else -1))
        row(f"rem.{t}", t, [t, t], lambda x, y, v=view: -1 if not v(y) else abs(v(x)) % abs(v(y)) * (1 if v(x) >= 0 else -1))
        row(f"min.{t}", t, [t, t], lambda x, y, v=view: min(v(x), v(y)))
        row(f"max.{t}", t, [t, t], lambda x, y, v=view: max(v(x), v(y)))
        row(f"shr.{t}", t, [t, "u32"], lambda x, n, v=view, b=b: v(x) >> min(n, b))
        if bits > 16:
            def bfe(x, start, length, v=view, b=b, is_signed=t[0] == "s"):
                if start > 255 or length > 255:
                    return None  # the ISA leaves that open
                last = min(start + length - 1, b - 1)
                sign = is_signed and length and x >> last & 1
                out = 0
                for i in range(b):
                    bit = x >> (start + i) & 1 if i < length and start + i < b else sign
                    out |= bit << i
                return out if length else 0
            row(f"bfe.{t}", t, [t, "u32", "u32"], bfe)
    row(f"abs.s{bits}", f"s{bits}", [f"s{bits}"], lambda x, b=bits: abs(signed(x, b)))
    row(f"neg.s{bits}", f"s{bits}", [f"s{bits}"], lambda x: -x)
    t = f"b{bits}"
    row(f"and.{t}", t, [t, t], lambda x, y: x & y)
    row(f"or.{t}", t, [t, t], lambda x, y: x | y)
    row(f"xor.{t}", t, [t, t], lambda x, y: x ^ y)
    row(f"not.{t}", t, [t], lambda x: ~x)
    row(f"shl.{t}", t, [t, "u32"], lambda x, n, b=bits: x << min(n, b))
    row(f"selp.{t}", t, [t, t, "pred"], lambda x, y, p: x if p else y)
    if bits > 16:
        row(f"popc.{t}", "u32", [t], lambda x: bin(x).count("1"))
        row(f"clz.{t}", "u32", [t], lambda x, b=bits: b - x.bit_length())
        row(f"brev.{t}", t, [t], lambda x, b=bits: int(f"{x:0{b}b}"[::-1], 2))
        row(f"bfind.u{bits}", "u32", [f"u{bits}"], lambda x: x.bit_length() - 1)
row("min.relu.s32", "s32", ["s32", "s32"], lambda x, y: max(min(signed(x, 32), signed(y, 32)), 0))


def prmt(a, b, c):
    pool, out = b << 32 | a, 0
    for i in range(4):
        n = c >> (4 * i) & 15
        byte = pool >> (8 * (n & 7)) & 255
        out |= ((255 if byte & 128 else 0) if n & 8 else byte) << (8 * i)
    return out


row("prmt.b32", "b32", ["b32", "b32", "b32"], prmt)
row("shf.l.wrap.b32", "b32", ["b32", "b32", "u32"], lambda a, b, n: (b << 32 | a) << (n & 31) >> 32)
row("shf.r.wrap.b32", "b32", ["b32", "b32", "u32"], lambda a, b, n: (b << 32 | a) >> (n & 31))
row("shf.l.clamp.b32", "b32", ["b32", "b32", "u32"], lambda a, b, n: (b << 32 | a) << min(n, 32) >> 32)
row("shf.r.clamp.b32", "b32", ["b32", "b32", "u32"], lambda a, b, n: (b << 32 | a) >> min(n, 32))

COMPARES = {"eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b}
for name, function in COMPARES.items():
    for t in ("u16", "s16", "u32", "s32", "u64", "s64"):
        view = signed if t[0] == "s" else mask
        row(f"setp.{name}.{t}", "pred", [t, t], lambda x, y, f=function, v=view, b=WIDTHS[t]: f(v(x, b), v(y, b)))
    for t in ("f32", "f64", "f16", "bf16"):
        def ordered(x, y, f=function, t=t, otherwise=False):
            a, b = decode(x, t), decode(y, t)
            return otherwise if NAN in (a, b) else f(plain(a), plain(b))
        row(f"setp.{name}.{t}", "pred", [t, t], ordered)
        row(f"setp.{name}u.{t}", "pred", [t, t], lambda x, y, f=ordered: f(x, y, otherwise=True))


def float_row(name, t, count, function, rounding="rn"):
    """On floats of one type; pairs half by half."""
    one = t.removesuffix("x2")
    bits = WIDTHS[one]

    def whole(*values):
        out = 0
        for i in range(2 if t.endswith("x2") else 1):
            parts = [decode(v >> (bits * i) & ((1 << bits) - 1), one) for v in values]
            half = encode(function(*parts), one, rounding)
            if half is None:
                return None
            out |= half << (bits * i)
        return out

    row(name, t, [t] * count, whole)


for t in ("f32", "f64", "f32x2", "f16", "bf16", "f16x2", "bf16x2"):
    float_row(f"add.{t}" if t != "bf16" else "add.rn.bf16", t, 2, add)
    float_row(f"sub.{t}" if t != "bf16" else "sub.rn.bf16", t, 2, lambda a, b: add(a, minus(b)))
    float_row(f"mul.{t}" if t != "bf16" else "mul.rn.bf16", t, 2, mul)
    float_row(f"fma.rn.{t}", t, 3, lambda a, b, c: add(mul(a, b), c))
for rounding in ("rz", "rm", "rp"):
    float_row(f"add.{rounding}.f32", "f32", 2, lambda a, b, r=rounding: add(a, b, r), rounding)
    float_row(f"mul.{rounding}.f32", "f32", 2, mul, rounding)
for t in ("f32", "f64", "f16", "bf16", "f16x2", "bf16x2"):
    for largest in (False, True):
        name = "max" if largest else "min"
        float_row(f"{name}.{t}", t, 2, lambda a, b, m=largest: extreme(a, b, m))
        if t != "f64":
            float_row(f"{name}.NaN.{t}", t, 2, lambda a, b, m=largest: extreme(a, b, m, True))
float_row("max.NaN.f32", "f32", 3, lambda a, b, c: extreme(extreme(a, b, True, True), c, True, True))
float_row("div.rn.f32", "f32", 2, div)
float_row("div.rn.f64", "f64", 2, div)
float_row("rcp.rn.f32", "f32", 1, lambda a: div(Fraction(1), a))
float_row("abs.f32", "f32", 1, lambda a: minus(a) if negative(a) else a)
float_row("neg.f32", "f32", 1, minus)


def cvt(name, to, fro, **options):
    row(name, to, [fro], lambda x: None if decode(x, fro) == NAN and fro == "f64" else encode(decode(x, fro), to, **options))


for rounding in ("rn", "rz", "rm", "rp"):
    cvt(f"cvt.{rounding}.f32.f64", "f32", "f64", rounding=rounding)
    if rounding in ("rn", "rz"):
        cvt(f"cvt.{rounding}.f16.f32", "f16", "f32", rounding=rounding)
        cvt(f"cvt.{rounding}.bf16.f32", "bf16", "f32", rounding=rounding)
    for t in ("u32", "s32", "u64", "s64"):
        def to_float(x, r=rounding, t=t):
            return encode(Fraction(signed(x, WIDTHS[t]) if t[0] == "s" else x), "f32", r)
        row(f"cvt.{rounding}.f32.{t}", "f32", [t], to_float)
for fro in ("f16", "bf16"):
    row(f"cvt.f32.{fro}", "f32", [fro], lambda x, f=fro: encode(decode(x, f), "f32") if decode(x, f) != NAN else None)
row("cvt.f64.f32", "f64", ["f32"], lambda x: encode(decode(x, "f32"), "f64"))
for t in ("u32", "s32", "u64", "s64"):
    for rounding, exact in (("rzi", math.trunc), ("rni", round), ("rmi", math.floor), ("rpi", math.ceil)):
        def to_integer(x, t=t, exact=exact):
            value, bits = plain(decode(x, "f32")), WIDTHS[t]
            if value == NAN:
                return 0 if bits == 32 else None
            low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if t[0] == "s" else (0, (1 << bits) - 1)
            return low if value == -math.inf else high if value == math.inf else max(low, min(high, exact(value)))
        row(f"cvt.{rounding}.{t}.f32", t, ["f32"], to_integer)
for pair, options in (("f16x2", ""), ("bf16x2", ""), ("bf16x2", ".relu"), ("e4m3x2", ".satfinite"), ("e5m2x2", ".satfinite")):
    def to_pair(a, b, pair=pair, options=options):
        one, halves = pair.removesuffix("x2"), []
        for x in (b, a):
            value = decode(x, "f32")
            if options == ".relu" and value != NAN and negative(value):
                value = Fraction(0)
            halves.append(encode(value, one, saturates=options == ".satfinite"))
        return halves[1] << (WIDTHS[pair] // 2) | halves[0]
    row(f"cvt.rn{options}.{pair}.f32", pair, ["f32", "f32"], to_pair)
for f8 in ("e4m3", "e5m2"):
    row(f"cvt.rn.f16x2.{f8}x2", "f16x2", [f8 + "x2"], lambda x, f=f8: encode(decode(x >> 8, f), "f16") << 16 | encode(decode(x & 255, f), "f16"))
row("fma.rn.f32.bf16", "f32", ["bf16", "bf16", "f32"], lambda a, b, c: encode(add(mul(decode(a, "bf16"), decode(b, "bf16")), decode(c, "f32")), "f32"))

# Approximations: the largest relative error that the ISA allows.
APPROXIMATE = {}


def approximate(name, function, error, accepts=lambda x: True):
    APPROXIMATE[name] = error

    def whole(x):
        value = decode(x, "f32")
        if value == NAN or isinstance(value, float) or not accepts(float(plain(value))):
            return None
        return function(float(plain(value)))

    row(name, "f32", ["f32"], whole)


approximate("ex2.approx.f32", lambda x: 2.0**x, 2.0**-22, lambda x: -120 < x < 127)
approximate("lg2.approx.f32", math.log2, 2.0**-22, lambda x: 1e-30 < x)
approximate("rcp.approx.f32", lambda x: 1 / x, 2.0**-23, lambda x: 1e-30 < abs(x) < 1e30)
approximate("rsqrt.approx.f32", lambda x: x**-0.5, 2.0**-22.9, lambda x: 1e-30 < x)
approximate("sqrt.approx.f32", math.sqrt, 2.0**-23, lambda x: 1e-30 < x)
approximate("tanh.approx.f32", math.tanh, 2.0**-11, lambda x: abs(x) > 1e-30)

# --- Running -------------------------------------------------------------------------------------------------------------

DECLARED = {1: "pred", 16: "b16", 32: "b32", 64: "b64"}


def kernel(number, name, result, arguments):
    """Reads 64-bit words, one for each argument of each thread, and writes 64-bit words."""
    lines = [f".visible .entry k{number}(.param .u64 out, .param .u64 in)", "{", ".reg .b64 %a<8>;", ".reg .b32 %t<8>;", ".reg .pred %q<8>;"]
    lines += ["mov.u32 %t0, %tid.x;", "mov.u32 %t1, %ctaid.x;", "mov.u32 %t2, %ntid.x;", "mad.lo.u32 %t0, %t1, %t2, %t0;", "ld.param.b64 %a0, [out];", "ld.param.b64 %a1, [in];", "mul.wide.u32 %a2, %t0, 8;",
              "add.s64 %a0, %a0, %a2;", f"mul.wide.u32 %a2, %t0, {8 * len(arguments)};", "add.s64 %a1, %a1, %a2;"]
    for i, t in enumerate([result] + arguments):
        lines.append(f".reg .{DECLARED[WIDTHS[t]]} %x{i};")
    for i, t in enumerate(arguments, 1):
        bits = WIDTHS[t]
        if bits == 1:
            lines += [f"ld.global.b32 %t3, [%a1+{8 * (i - 1)}];", f"setp.ne.b32 %x{i}, %t3, 0;"]
        else:
            lines.append(f"ld.global.b{bits} %x{i}, [%a1+{8 * (i - 1)}];")
    lines.append(f"{name} " + ", ".join(f"%x{i}" for i in range(len(arguments) + 1)) + ";")
    lines.append("st.global.b64 [%a0], 0;")
    if WIDTHS[result] == 1:
        lines += ["selp.b32 %t3, 1, 0, %x0;", "st.global.b32 [%a0], %t3;"]
    else:
        lines.append(f"st.global.b{WIDTHS[result]} [%a0], %x0;")
    return "\n".join(lines + ["ret;", "}", ""])


def combinations(arguments):
    """All pairs of inputs; of three, a sample."""
    lists = [inputs(t) for t in arguments]
    if len(lists) == 1:
        return [(x,) for x in lists[0]]
    if len(lists) == 2:
        return [(x, y) for x in lists[0] for y in lists[1]]
    return [(lists[0][i % len(lists[0])], lists[1][(i * 7 + i // len(lists[0])) % len(lists[1])], lists[2][(i * 11 + i // 5) % len(lists[2])]) for i in range(512)]


def run_rows(store=None):
    wrong, stored = 0, []
    text = ".version 8.8\n.target sm_100a\n.address_size 64\n" + "".join(kernel(i, name, result, arguments) for i, (name, result, arguments, _) in enumerate(ROWS))
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(text)
        file.flush()
        for i, (name, result, arguments, function) in enumerate(ROWS):
            cases = combinations(arguments)
            words = ",".join(str(x) for case in cases for x in case)
            blocks = -(-len(cases) // 128)
            total = blocks * 128
            command = [SIM, file.name, f"--kernel=k{i}", f"--grid={blocks}", "--block=128", "--threads=1", f"--arg=out=i64[{total}]", f"--arg=in=i64[{total * len(arguments)}]:{words}", "--print=out"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                print(f"{name}: {done.stderr.strip()}")
                wrong += 1
                continue
            outputs = list(map(int, done.stdout.split()[1:]))[: len(cases)]
            stored.append({"name": name, "kernel": kernel(i, name, result, arguments), "entry": f"k{i}", "inputs": cases, "outputs": outputs, "bits": WIDTHS[result],
                           "approximate": name in APPROXIMATE})
            for case, got in zip(cases, outputs):
                expected = function(*case)
                if expected is None:
                    continue
                got = mask(got, WIDTHS[result])
                if name in APPROXIMATE:
                    value = struct.unpack("f", struct.pack("I", got))[0]
                    good = abs(value - expected) <= APPROXIMATE[name] * max(abs(expected), 2.0**-126) + (2.0**-22 if name.startswith("lg2") else 0)
                else:
                    expected = mask(int(expected), WIDTHS[result])
                    good = got == expected
                if not good:
                    shown = expected if name in APPROXIMATE else hex(expected)
                    print(f"{name} of {', '.join(map(hex, case))}: expected {shown}, but got {hex(got)}")
                    wrong += 1
                    break
    if store:
        pathlib.Path(store).write_text(json.dumps(stored))
    print(f"{len(ROWS) - wrong} of {len(ROWS)} instructions are right")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    run_rows(sys.argv[2] if sys.argv[1:2] == ["--store"] else None)
