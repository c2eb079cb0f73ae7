//===- ExpandMath.cpp - ssa-nvptx-expand-math -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// NVPTX has no mathematical library of its own, and the toolkit's is not there when there is no toolkit. So functions
// become what the chip has (ex2, lg2, sin, cos, tanh, rsqrt, each approximate) and polynomials. All are computed in
// f32.
//
// Largest errors, relative where not said, for results that are normal numbers; u is 2^-24:
//
//   exp2, exp, expm1, log, log2, log10, rsqrt, cbrt, atan, atan2, asin, acos, tanh, erf   6u
//   log1p, acosh, asinh, atanh, sinh, cosh, erfc                                          8u
//   sin, cos    3u for |x| < pi / 4, else 5u absolute up to |x| = 2^22;    tan  sin / cos
//   powf, fpowi 2^-22 (2 + |y log2 x|)
//   sqrt, fma and roundings are exact; remf is where |x / y| < 2^23
//
// test/Integration/GPU/math_functions.py measures them.
//
// With fastmath<afn> the chip's approximations stand alone:
//
//   exp2, exp   2u + u |x|, results below 2^-126 are 0
//   log, log2, log10  2^-22, absolute where 1/2 < x < 2
//   sin, cos    2^-20 absolute, |x| <= pi;    tanh  2^-11
//
// With the attribute `ssa.polynomials` a part of an exp2<afn> is a polynomial of degree 5: 4u for -126 <= x <= 127, below that at most 2^-126, and 0
// of -inf. test/Simulator/exp2.py measures it.
//
//===----------------------------------------------------------------------===//

#include "MathBuilder.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "ssa/Target/MathAttrs.h"
#include "ssa/Target/NVPTX.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::ssa {
#define GEN_PASS_DEF_SSANVPTXEXPANDMATHPASS
#include "ssa/Target/Passes.h.inc"
} // namespace mlir::ssa

using namespace mlir;
using namespace mlir::ssa;
using arith::CmpFPredicate;

//===----------------------------------------------------------------------===//
// The functions
//===----------------------------------------------------------------------===//

static constexpr double log2e = 1.4426950408889634, ln2 = 0.6931471805599453, pi = 3.141592653589793;
static constexpr double infinity = std::numeric_limits<double>::infinity();
static constexpr double magic = 12582912; // 1.5 * 2^23: adding it rounds to an integer

static Value exp2(Math &m, Value x) { return m.ex2(x, /*flush=*/m.approximate); }

/// 2^x = 2^k 2^r with |r| <= 1/2, by additions and multiplications alone; x is at most 127. What is added to round carries the bias of an exponent, so that the
/// last bits of the sum are those of 2^k: 0 of the least x, where -inf is.
static Value exp2Polynomial(Math &m, Value x) {
  Value biased = m.c(magic + 127), a = m.maximum(x, m.c(-127)), shifted = m.add(a, biased), r = m.sub(a, m.sub(shifted, biased));
  Value p = m.poly(r, {1, 6.931470037e-01, 2.402224243e-01, 5.550733581e-02, 9.671512991e-03, 1.326472731e-03});
  return m.mul(p, m.toExponent(shifted));
}

/// An exp2 of which so many of eight pairs of values are polynomials, which instructions on two values at once compute.
static Value exp2InPart(OpBuilder &builder, Location loc, Value x, int64_t polynomials) {
  constexpr int64_t pairs = 8;
  auto type = cast<VectorType>(x.getType());
  Math one(builder, loc, type.getElementType(), /*approximate=*/true);
  SmallVector<Value> elements, chosen;
  SmallVector<int64_t> places;
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    elements.push_back(vector::ExtractOp::create(builder, loc, x, i));
    if (i / 2 % pairs < pairs - polynomials) {
      elements.back() = one.ex2(elements.back(), /*flush=*/true);
      continue;
    }
    chosen.push_back(elements.back());
    places.push_back(i);
  }
  if (chosen.empty())
    return vector::FromElementsOp::create(builder, loc, type, elements);
  auto part = VectorType::get(chosen.size(), type.getElementType());
  Math all(builder, loc, part, /*approximate=*/true);
  Value powers = exp2Polynomial(all, vector::FromElementsOp::create(builder, loc, part, chosen));
  for (auto [i, place] : llvm::enumerate(places))
    elements[place] = vector::ExtractOp::create(builder, loc, powers, i);
  return vector::FromElementsOp::create(builder, loc, type, elements);
}

/// x log2(e) = k + r with |r| <= 1/2 in the range of results, computed with log2(e) in two parts.
static Value exp(Math &m, Value x) {
  if (m.approximate)
    return m.ex2(m.mul(x, m.c(log2e)), /*flush=*/true);
  Value inRange = m.min(m.max(x, m.c(-87.33)), m.c(88.02));
  Value shifted = m.fma(inRange, m.c(log2e), m.c(magic));
  Value k = m.sub(shifted, m.c(magic));
  Value r = m.fma(x, m.c(log2e - float(log2e)), m.fma(x, m.c(log2e), m.neg(k)));
  return m.mul(m.ex2(r, /*flush=*/true), m.exp2OfRounded(shifted));
}

static Value expm1(Math &m, Value x) {
  Value p =
      m.poly(x, {5.000000596e-01, 1.666666865e-01, 4.166531563e-02, 8.333072998e-03, 1.399745699e-03, 1.999289525e-04});
  Value nearZero = m.copySign(m.fma(m.mul(x, x), p, x), x);
  return m.select(m.lt(m.abs(x), m.c(0.5)), nearZero, m.sub(exp(m, x), m.c(1)));
}

/// 2 atanh(s) for |s| < 0.2.
static Value twiceAtanh(Math &m, Value s) {
  Value u = m.mul(s, s);
  return m.fma(m.mul(s, u), m.poly(u, {6.666694880e-01, 3.995782435e-01, 3.036056757e-01}), m.add(s, s));
}

/// log(x) times a factor. lg2 is off by an absolute 2^-22 near 1; there log(x) = 2 atanh((x - 1) / (x + 1)) is used.
static Value logTimes(Math &m, Value x, double factor) {
  Value far = m.mul(m.lg2(x), m.c(ln2 * factor));
  if (m.approximate)
    return far;
  Value s = m.div(m.sub(x, m.c(1)), m.add(x, m.c(1)));
  return m.select(m.lt(m.abs(s), m.c(0.2)), m.mul(twiceAtanh(m, s), m.c(factor)), far);
}

static Value log(Math &m, Value x) { return logTimes(m, x, 1); }
static Value log2(Math &m, Value x) { return logTimes(m, x, log2e); }
static Value log10(Math &m, Value x) { return logTimes(m, x, 0.43429448190325182); }

static Value log1p(Math &m, Value x) {
  Value s = m.div(x, m.add(x, m.c(2)));
  Value far = m.mul(m.lg2(m.add(x, m.c(1))), m.c(ln2));
  return m.select(m.lt(m.abs(s), m.c(0.2)), m.copySign(twiceAtanh(m, s), x), far);
}

static Value rsqrt(Math &m, Value x) { return m.rsqrt(x); }

static Value cbrt(Math &m, Value x) {
  Value a = m.abs(x), y = m.ex2(m.mul(m.lg2(a), m.c(1.0 / 3)), /*flush=*/false), square = m.mul(y, y);
  Value better = m.sub(y, m.div(m.fma(square, y, m.neg(a)), m.mul(m.c(3), square))); // Newton's step
  Value isSpecial = m.cmp(CmpFPredicate::OEQ, m.add(a, a), a);                       // 0 and inf
  return m.copySign(m.select(isSpecial, a, better), x);
}

namespace {
/// x = k pi/2 + r with |r| <= pi/4, and sine and cosine of r.
struct Turned {
  Turned(Math &m, Value x) {
    // pi/2 in three parts; what an fma leaves of x is rounded once.
    shifted = m.fma(x, m.c(2 / pi), m.c(magic));
    Value k = m.sub(shifted, m.c(magic));
    Value r = m.fma(k, m.c(-0x1.921fb6p+0), x);
    r = m.fma(k, m.c(0x1.777a5cp-25), r);
    r = m.fma(k, m.c(0x1.ee59dap-50), r);
    Value u = m.mul(r, r);
    sine = m.fma(m.mul(r, u), m.poly(u, {-1.666665375e-01, 8.332083002e-03, -1.950431615e-04}), r);
    Value p = m.poly(u, {4.166664183e-02, -1.388718490e-03, 2.441812649e-05});
    cosine = m.fma(m.mul(u, u), p, m.fma(u, m.c(-0.5), m.c(1)));
  }
  Value shifted, sine, cosine;
};
} // namespace

static Value sin(Math &m, Value x) {
  if (m.approximate)
    return m.sinApprox(x);
  Turned t(m, x);
  Value value = m.select(m.hasBit(t.shifted, 1), t.cosine, t.sine);
  value = m.select(m.hasBit(t.shifted, 2), m.neg(value), value);
  return m.select(m.eq(x, m.c(0)), x, value);
}

static Value cos(Math &m, Value x) {
  if (m.approximate)
    return m.cosApprox(x);
  Turned t(m, x);
  Value isOdd = m.hasBit(t.shifted, 1), value = m.select(isOdd, t.sine, t.cosine);
  // Quarters 1 and 2 of a turn are negative.
  Value sign = m.select(m.hasBit(t.shifted, 2), m.c(-1), m.c(1));
  return m.mul(value, m.select(isOdd, m.neg(sign), sign));
}

static Value tan(Math &m, Value x) {
  Turned t(m, x);
  Value isOdd = m.hasBit(t.shifted, 1);
  Value value = m.div(m.select(isOdd, m.neg(t.cosine), t.sine), m.select(isOdd, t.sine, t.cosine));
  return m.select(m.eq(x, m.c(0)), x, value);
}

static Value tanh(Math &m, Value x) {
  if (m.approximate)
    return m.tanhApprox(x);
  Value a = m.abs(x), u = m.mul(x, x);
  Value far = m.sub(m.c(1), m.div(m.c(2), m.add(m.ex2(m.mul(a, m.c(2 * log2e)), /*flush=*/true), m.c(1))));
  Value p = m.poly(u, {-3.333295882e-01, 1.332094222e-01, -5.268413574e-02, 1.645874418e-02});
  return m.copySign(m.select(m.lt(a, m.c(0.55)), m.fma(m.mul(x, u), p, x), far), x);
}

/// e^a / 2, which does not overflow before sinh and cosh do.
static Value halfExp(Math &m, Value a) {
  Value root = exp(m, m.mul(a, m.c(0.5)));
  return m.mul(m.mul(root, m.c(0.5)), root);
}

static Value sinh(Math &m, Value x) {
  Value a = m.abs(x), e = expm1(m, a);
  Value near = m.mul(m.c(0.5), m.add(e, m.div(e, m.add(e, m.c(1)))));
  return m.copySign(m.select(m.lt(a, m.c(20)), near, halfExp(m, a)), x);
}

static Value cosh(Math &m, Value x) {
  Value half = halfExp(m, m.abs(x));
  return m.add(half, m.div(m.c(0.25), half));
}

static Value atan2(Math &m, Value y, Value x) {
  Value ay = m.abs(y), ax = m.abs(x), low = m.min(ay, ax), high = m.max(ay, ax);
  Value q = m.select(m.eq(low, high), m.c(1), m.div(low, high)); // inf / inf is 1 here
  q = m.select(m.eq(high, m.c(0)), high, q);
  Value u = m.mul(q, q);
  Value p = m.poly(u, {-3.333316743e-01, 1.999413669e-01, -1.421420574e-01, 1.067892909e-01, -7.580552995e-02,
                       4.355324060e-02, -1.658099703e-02, 2.974543022e-03});
  Value r = m.fma(m.mul(q, u), p, q);
  r = m.select(m.lt(ax, ay), m.sub(m.c(pi / 2), r), r);
  r = m.select(m.isNegative(x), m.sub(m.c(pi), r), r);
  return m.select(m.cmp(CmpFPredicate::UNO, x, y), m.add(x, y), m.copySign(r, y));
}

static Value atan(Math &m, Value x) { return atan2(m, x, m.c(1)); }

/// sqrt(1 - x^2).
static Value otherLeg(Math &m, Value x) { return m.sqrt(m.mul(m.sub(m.c(1), x), m.add(m.c(1), x))); }
static Value asin(Math &m, Value x) { return atan2(m, x, otherLeg(m, x)); }
static Value acos(Math &m, Value x) { return atan2(m, otherLeg(m, x), x); }

static Value asinh(Math &m, Value x) {
  Value a = m.abs(x), square = m.mul(a, a);
  Value near = log1p(m, m.add(a, m.div(square, m.add(m.c(1), m.sqrt(m.add(square, m.c(1)))))));
  return m.copySign(m.select(m.lt(a, m.c(1e8)), near, m.add(log(m, a), m.c(ln2))), x);
}

static Value acosh(Math &m, Value x) {
  Value t = m.sub(x, m.c(1));
  Value near = log1p(m, m.add(t, m.sqrt(m.mul(t, m.add(t, m.c(2))))));
  Value value = m.select(m.lt(x, m.c(1e8)), near, m.add(log(m, x), m.c(ln2)));
  return m.select(m.lt(x, m.c(1)), m.c(std::nan("")), value);
}

static Value atanh(Math &m, Value x) {
  Value a = m.abs(x);
  return m.copySign(m.mul(m.c(0.5), log1p(m, m.div(m.add(a, a), m.sub(m.c(1), a)))), x);
}

/// erfc of x >= 0.9: e^(-x^2) t P(t) with t = 1 / (1 + 0.35 x), and x^2 in two parts.
static Value erfcTail(Math &m, Value x) {
  Value t = m.div(m.c(1), m.fma(x, m.c(0.35), m.c(1)));
  Value p = m.poly(t, {1.974914074e-01, 1.969107836e-01, 1.906374097e-01, 1.333411336e-01, 2.166952491e-01,
                       -9.058061987e-02, 2.575033605e-01, -1.020593792e-01});
  Value square = m.mul(x, x), rest = m.fma(x, x, m.neg(square));
  Value bell = exp(m, m.neg(square));
  bell = m.select(m.lt(x, m.c(11)), m.fma(bell, m.neg(rest), bell), m.c(0));
  return m.mul(bell, m.mul(t, p));
}

static Value erfNearZero(Math &m, Value x) {
  Value p = m.poly(m.mul(x, x), {1.128379107e+00, -3.761262596e-01, 1.128360033e-01, -2.685444430e-02, 5.189535208e-03,
                                 -8.020841051e-04, 7.889119297e-05});
  return m.mul(x, p);
}

static Value erf(Math &m, Value x) {
  Value a = m.abs(x);
  Value far = m.copySign(m.sub(m.c(1), erfcTail(m, a)), x);
  Value value = m.select(m.lt(a, m.c(0.9)), erfNearZero(m, x), far);
  return m.select(m.cmp(CmpFPredicate::UNO, x, x), x, value);
}

static Value erfc(Math &m, Value x) {
  Value tail = erfcTail(m, m.abs(x));
  Value far = m.select(m.isNegative(x), m.sub(m.c(2), tail), tail);
  Value value = m.select(m.lt(m.abs(x), m.c(0.9)), m.sub(m.c(1), erfNearZero(m, x)), far);
  return m.select(m.cmp(CmpFPredicate::UNO, x, x), x, value);
}

static Value powf(Math &m, Value x, Value y) {
  Value a = m.abs(x), one = m.c(1), half = m.mul(y, m.c(0.5));
  Value isInteger = m.eq(m.floor(y), y), isEven = m.eq(m.floor(half), half);
  Value size = m.select(m.eq(a, one), one, m.ex2(m.mul(y, m.lg2(a)), /*flush=*/false));
  Value oddSign = m.select(isEven, size, m.copySign(size, x));
  // A negative number has whole powers only; of -0 and -inf the others are those of 0 and inf.
  Value hasNone = m.both(m.lt(x, m.c(0)), m.lt(a, m.c(infinity)));
  Value value = m.select(isInteger, oddSign, m.select(hasNone, m.c(std::nan("")), size));
  value = m.select(m.cmp(CmpFPredicate::UNO, x, y), m.add(x, y), value);
  return m.select(m.eq(y, m.c(0)), one, m.select(m.eq(x, one), one, value));
}

/// x - trunc(x / y) y. The quotient may be off by one.
static Value remf(Math &m, Value x, Value y) {
  Value size = m.abs(y), a = m.abs(x);
  Value r = m.fma(m.neg(m.trunc(m.div(a, size))), size, a);
  r = m.select(m.lt(r, m.c(0)), m.add(r, size), r);
  r = m.select(m.lt(r, size), r, m.sub(r, size));
  r = m.select(m.both(m.eq(size, m.c(infinity)), m.lt(a, m.c(infinity))), a, r);
  return m.copySign(r, x);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
using Unary = Value (*)(Math &, Value);
using Binary = Value (*)(Math &, Value, Value);
} // namespace

static const llvm::StringMap<Unary> &unaryFunctions() {
  static const llvm::StringMap<Unary> table = {
      {"acos", acos},   {"acosh", acosh}, {"asin", asin}, {"asinh", asinh}, {"atan", atan},   {"atanh", atanh},
      {"cbrt", cbrt},   {"cos", cos},     {"cosh", cosh}, {"erf", erf},     {"erfc", erfc},   {"exp", exp},
      {"exp2", exp2},   {"expm1", expm1}, {"log", log},   {"log10", log10}, {"log1p", log1p}, {"log2", log2},
      {"rsqrt", rsqrt}, {"sin", sin},     {"sinh", sinh}, {"tan", tan},     {"tanh", tanh},
  };
  return table;
}

static const llvm::StringMap<Binary> &binaryFunctions() {
  static const llvm::StringMap<Binary> table = {{"atan2", atan2}, {"pow", powf}, {"powf", powf}, {"remf", remf}};
  return table;
}

/// Intrinsics that the backend has instructions for, by the op's name. They take any float type.
static StringRef exactFunction(StringRef name) {
  return llvm::StringSwitch<StringRef>(name)
      .Cases({"absf", "fabs"}, "llvm.fabs")
      .Case("ceil", "llvm.ceil")
      .Case("copysign", "llvm.copysign")
      .Case("floor", "llvm.floor")
      .Case("fma", "llvm.fma")
      .Case("maxnumf", "llvm.maxnum")
      .Case("minnumf", "llvm.minnum")
      .Case("round", "llvm.round")
      .Case("roundeven", "llvm.roundeven")
      .Case("sqrt", "llvm.sqrt")
      .Case("trunc", "llvm.trunc")
      .Case("ctpop", "llvm.ctpop")
      .Default("");
}

/// The function that an op is, in the words of `math`; empty if it is none.
static StringRef getFunction(Operation *op) {
  StringRef name = op->getName().getStringRef();
  if (isa_and_nonnull<math::MathDialect>(op->getDialect()))
    return name.drop_front(StringRef("math.").size());
  if (isa<arith::MaxNumFOp, arith::MinNumFOp, arith::RemFOp>(op))
    return name.drop_front(StringRef("arith.").size());
  // Upstream's conversion takes these for calls into a library.
  if (isa<LLVM::CopySignOp, LLVM::CosOp, LLVM::ExpOp, LLVM::Exp2Op, LLVM::FAbsOp, LLVM::FCeilOp, LLVM::FFloorOp,
          LLVM::LogOp, LLVM::Log10Op, LLVM::Log2Op, LLVM::PowOp, LLVM::RoundEvenOp, LLVM::RoundOp, LLVM::SinOp,
          LLVM::SqrtOp>(op))
    return name.drop_front(StringRef("llvm.intr.").size());
  return "";
}

namespace {

/// Expands one op. Vectors of rank other than 1 are handled as flat ones.
class Expansion {
public:
  explicit Expansion(Operation *op) : op(op), builder(op), loc(op->getLoc()) {}

  /// Replaces the op; nothing is done where it has no expansion.
  LogicalResult run();

private:
  SmallVector<Value> compute(ArrayRef<Value> operands);
  Value computeExact(ArrayRef<Value> operands);
  Value computeClass(ArrayRef<Value> operands);
  Value computeInteger(ArrayRef<Value> operands);
  Value flat(Value v);
  Value withElement(Value v, Type elementType);

  Operation *op;
  OpBuilder builder;
  Location loc;
};

} // namespace

Value Expansion::flat(Value v) {
  auto type = dyn_cast<VectorType>(v.getType());
  if (!type || type.getRank() == 1)
    return v;
  auto flatType = VectorType::get({type.getNumElements()}, type.getElementType());
  return vector::ShapeCastOp::create(builder, loc, flatType, v);
}

/// `v` rounded or extended to another float type.
Value Expansion::withElement(Value v, Type elementType) {
  Type from = getElementTypeOrSelf(v);
  if (from == elementType)
    return v;
  auto vector = dyn_cast<VectorType>(v.getType());
  Type to = vector ? Type(vector.clone(elementType)) : elementType;
  if (from.getIntOrFloatBitWidth() < elementType.getIntOrFloatBitWidth())
    return arith::ExtFOp::create(builder, loc, to, v);
  return arith::TruncFOp::create(builder, loc, to, v);
}

Value Expansion::computeExact(ArrayRef<Value> operands) {
  StringRef name = exactFunction(getFunction(op));
  return name.empty() ? Value() : callIntrinsic(builder, loc, name, operands);
}

Value Expansion::computeClass(ArrayRef<Value> operands) {
  Value x = operands[0];
  if (isa<math::IsNaNOp>(op))
    return arith::CmpFOp::create(builder, loc, CmpFPredicate::UNO, x, x);
  if (!isa<math::IsInfOp, math::IsFiniteOp, math::IsNormalOp>(op))
    return {};
  auto constant = [&](APFloat value) -> Value {
    auto attr = FloatAttr::get(getElementTypeOrSelf(x), value);
    auto vector = dyn_cast<VectorType>(x.getType());
    return arith::ConstantOp::create(builder, loc, vector ? TypedAttr(DenseElementsAttr::get(vector, attr)) : attr);
  };
  const llvm::fltSemantics &semantics = cast<FloatType>(getElementTypeOrSelf(x)).getFloatSemantics();
  Value inf = constant(APFloat::getInf(semantics)), size = callIntrinsic(builder, loc, "llvm.fabs", x);
  auto compare = [&](CmpFPredicate p, Value b) -> Value { return arith::CmpFOp::create(builder, loc, p, size, b); };
  if (isa<math::IsInfOp>(op))
    return compare(CmpFPredicate::OEQ, inf);
  Value isFinite = compare(CmpFPredicate::OLT, inf);
  if (isa<math::IsFiniteOp>(op))
    return isFinite;
  Value isLarge = compare(CmpFPredicate::OGE, constant(APFloat::getSmallestNormalized(semantics)));
  return arith::AndIOp::create(builder, loc, isFinite, isLarge);
}

Value Expansion::computeInteger(ArrayRef<Value> operands) {
  Type type = operands[0].getType();
  if (isa<math::AbsIOp>(op))
    return LLVM::AbsOp::create(builder, loc, type, operands[0], /*is_int_min_poison=*/false);
  if (isa<math::CountLeadingZerosOp>(op))
    return LLVM::CountLeadingZerosOp::create(builder, loc, type, operands[0], /*is_zero_poison=*/false);
  if (isa<math::CountTrailingZerosOp>(op))
    return LLVM::CountTrailingZerosOp::create(builder, loc, type, operands[0], /*is_zero_poison=*/false);
  return {};
}

SmallVector<Value> Expansion::compute(ArrayRef<Value> operands) {
  for (auto method : {&Expansion::computeExact, &Expansion::computeInteger})
    if (Value value = (this->*method)(operands))
      return {value};
  auto type = dyn_cast<FloatType>(getElementTypeOrSelf(operands[0]));
  if (!type)
    return {};
  if (Value value = computeClass(operands))
    return {value};
  if (isa<math::ClampFOp>(op)) {
    Value low = arith::MaximumFOp::create(builder, loc, operands[0], operands[1]);
    return {arith::MinimumFOp::create(builder, loc, low, operands[2])};
  }
  if (type.getWidth() > 32 || type.getWidth() < 16)
    return {};
  auto flags = op->getAttrOfType<arith::FastMathFlagsAttr>("fastmath");
  bool approximate = flags && arith::bitEnumContainsAll(flags.getValue(), arith::FastMathFlags::afn);
  Value x = withElement(operands[0], builder.getF32Type());
  Math m(builder, loc, x.getType(), approximate);
  SmallVector<Value> values;
  if (auto polynomials = op->getAttrOfType<IntegerAttr>(polynomialsAttrName); polynomials && isa<math::Exp2Op>(op) && isa<VectorType>(x.getType()))
    values = {exp2InPart(builder, loc, x, polynomials.getInt())};
  else if (Unary unary = unaryFunctions().lookup(getFunction(op)))
    values = {unary(m, x)};
  else if (Binary binary = binaryFunctions().lookup(getFunction(op)))
    values = {binary(m, x, withElement(operands[1], builder.getF32Type()))};
  else if (isa<math::FPowIOp>(op))
    values = {powf(m, x, m.fromInteger(operands[1]))};
  else if (isa<math::SincosOp>(op))
    values = {sin(m, x), cos(m, x)};
  for (Value &value : values)
    value = withElement(value, type);
  return values;
}

LogicalResult Expansion::run() {
  // An op on `index` would have to know its width.
  if (llvm::any_of(op->getOperandTypes(), [](Type t) { return !getElementTypeOrSelf(t).isIntOrFloat(); }))
    return op->emitOpError("has no device code for 'index'; cast it to 'i64'");
  SmallVector<Value> operands = llvm::map_to_vector(op->getOperands(), [&](Value v) { return flat(v); });
  SmallVector<Value> values = compute(operands);
  if (values.empty())
    return op->emitOpError("has no device code for ") << op->getOperand(0).getType();
  for (auto [result, value] : llvm::zip_equal(op->getResults(), values)) {
    if (value.getType() != result.getType())
      value = vector::ShapeCastOp::create(builder, loc, result.getType(), value);
    result.replaceAllUsesWith(value);
  }
  op->erase();
  return success();
}

namespace {
struct ExpandMath : ssa::impl::SSANVPTXExpandMathPassBase<ExpandMath> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      if (!getFunction(op).empty())
        ops.push_back(op);
    });
    for (Operation *op : ops)
      if (failed(Expansion(op).run()))
        return signalPassFailure();
  }
};
} // namespace
