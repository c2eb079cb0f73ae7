//===- ScalarOps.cpp - The ops that scalar programs are made of -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One row per op. A row is a function on double (floating point), int64_t (integers read as signed), uint64_t (read
// as unsigned), bool (i1 results) or Cell (either); `lift` makes the loop over lanes and the conversions from it.
//
//===----------------------------------------------------------------------===//

#include "ScalarOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::ssa::reference;

//===----------------------------------------------------------------------===//
// From functions to kernels
//===----------------------------------------------------------------------===//

namespace {
/// As the last parameters of a row: the widths of the first operand and of the result.
struct InWidth {
  unsigned bits;
};
struct OutWidth {
  unsigned bits;
};

/// How a parameter of a row is read from lane `n` of operand `i`.
template <typename T>
struct Read;
template <>
struct Read<double> {
  static double get(const Cell *in, unsigned, int64_t n) { return in[n].f; }
};
template <>
struct Read<Cell> {
  static Cell get(const Cell *in, unsigned, int64_t n) { return in[n]; }
};
template <>
struct Read<int64_t> {
  static int64_t get(const Cell *in, unsigned bits, int64_t n) {
    return static_cast<int64_t>(static_cast<uint64_t>(in[n].i) << (64 - bits)) >> (64 - bits);
  }
};
template <>
struct Read<uint64_t> {
  static uint64_t get(const Cell *in, unsigned bits, int64_t n) {
    return (static_cast<uint64_t>(in[n].i) << (64 - bits)) >> (64 - bits);
  }
};
template <>
struct Read<InWidth> {
  static InWidth get(const Cell *, unsigned bits, int64_t) { return {bits}; }
};
template <>
struct Read<OutWidth> {
  static OutWidth get(const Cell *, unsigned bits, int64_t) { return {bits}; }
};

/// The width that a parameter needs to be told.
template <typename T>
unsigned widthFor(const Lanes &lanes, size_t i) {
  if (std::is_same_v<T, InWidth>)
    return lanes.inBits[0];
  if (std::is_same_v<T, OutWidth>)
    return lanes.outBits;
  return i < lanes.inBits.size() ? lanes.inBits[i] : 64;
}

template <typename T>
void write(Cell &out, T value, unsigned bits) {
  if constexpr (std::is_same_v<T, double>)
    out.f = value;
  else if constexpr (std::is_same_v<T, Cell>)
    out = value;
  else if constexpr (std::is_same_v<T, bool>)
    out.i = value;
  else if (bits == 1)
    out.i = static_cast<int64_t>(value) & 1;
  else
    out.i = static_cast<int64_t>(static_cast<uint64_t>(value) << (64 - bits)) >> (64 - bits);
}

template <typename Fn, typename R, typename... A, size_t... I>
Kernel liftIndexed(Fn fn, R (Fn::*)(A...) const, std::index_sequence<I...>) {
  return [fn](const Lanes &lanes) {
    const Cell *in[] = {(I < lanes.in.size() ? lanes.in[I] : nullptr)...};
    unsigned bits[] = {widthFor<A>(lanes, I)...};
    Cell *__restrict out = lanes.out;
    unsigned outBits = lanes.outBits;
    for (int64_t n = 0, count = lanes.count; n < count; ++n)
      write<R>(out[n], fn(Read<A>::get(in[I], bits[I], n)...), outBits);
  };
}

template <typename Fn, typename R, typename... A>
Kernel liftMember(Fn fn, R (Fn::*member)(A...) const) {
  return liftIndexed(fn, member, std::index_sequence_for<A...>());
}

/// The kernel that applies `fn` to every lane.
template <typename Fn>
Kernel lift(Fn fn) {
  return liftMember(fn, &Fn::operator());
}

/// `kernel`, which divides by its second operand and gives anything where that is 0.
Kernel dividing(Kernel kernel) {
  return [kernel](const Lanes &lanes) {
    kernel(lanes);
    for (int64_t n = 0; n < lanes.count; ++n)
      if (lanes.in[1][n].i == 0 && lanes.counts(n)) {
        lanes.error = "division of " + std::to_string(lanes.in[0][n].i) + " by zero";
        return;
      }
  };
}

using Table = llvm::StringMap<Kernel>;
} // namespace

//===----------------------------------------------------------------------===//
// Functions of more than a line
//===----------------------------------------------------------------------===//

/// NaN if either is; of two zeros the positive one. Selections without branches become vector code.
static double maximum(double a, double b) {
  uint64_t bitsOfEqual = llvm::bit_cast<uint64_t>(a) & llvm::bit_cast<uint64_t>(b);
  double larger = a > b ? a : b;
  larger = a == b ? llvm::bit_cast<double>(bitsOfEqual) : larger;
  return a != a ? a : larger;
}

static double minimum(double a, double b) { return -maximum(-a, -b); }

/// The other one if one is NaN.
static double maxNum(double a, double b) { return a != a ? b : b != b ? a : maximum(a, b); }
static double minNum(double a, double b) { return a != a ? b : b != b ? a : minimum(a, b); }

static double roundEven(double x) {
  double whole = std::trunc(x);
  return std::fabs(x - whole) == 0.5 ? std::copysign(2 * std::round(x / 2), x) : std::round(x);
}

// Division that is defined for all operands: by zero 0 (see `dividing`), the overflowing quotient wraps.
static int64_t divS(int64_t a, int64_t b) {
  return b == 0 ? 0 : b == -1 ? static_cast<int64_t>(-static_cast<uint64_t>(a)) : a / b;
}
static int64_t remS(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
static uint64_t divU(uint64_t a, uint64_t b) { return b == 0 ? 0 : a / b; }
static uint64_t remU(uint64_t a, uint64_t b) { return b == 0 ? 0 : a % b; }
static int64_t floorDiv(int64_t a, int64_t b) { return divS(a, b) - (remS(a, b) != 0 && (a < 0) != (b < 0)); }
static int64_t ceilDiv(int64_t a, int64_t b) { return divS(a, b) + (remS(a, b) != 0 && (a < 0) == (b < 0)); }

/// Zero to a negative power is taken for 0 here.
static int64_t powI(int64_t base, int64_t exponent) {
  if (exponent < 0)
    return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  uint64_t result = 1, square = base;
  for (; exponent; exponent >>= 1, square *= square)
    if (exponent & 1)
      result *= square;
  return result;
}

/// Towards zero; what does not fit saturates and NaN gives 0 (`arith` leaves these undefined).
static int64_t toSigned(double x, OutWidth width) {
  double bound = std::ldexp(1.0, width.bits - 1);
  if (x != x)
    return 0;
  if (x >= bound)
    return width.bits == 64 ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(bound) - 1;
  return x <= -bound ? llvm::minIntN(width.bits) : static_cast<int64_t>(x);
}
static uint64_t toUnsigned(double x, OutWidth width) {
  if (!(x > 0))
    return 0;
  return x >= std::ldexp(1.0, width.bits) ? llvm::maxUIntN(width.bits) : static_cast<uint64_t>(x);
}

template <typename T>
static uint64_t highHalf(T a, T b, unsigned bits) {
  using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
  return static_cast<uint64_t>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> bits);
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

using F = double;
using S = int64_t;
using U = uint64_t;

static void addFloatArithmetic(Table &t) {
  t["arith.addf"] = lift([](F a, F b) { return a + b; });
  t["arith.subf"] = lift([](F a, F b) { return a - b; });
  t["arith.mulf"] = lift([](F a, F b) { return a * b; });
  t["arith.divf"] = lift([](F a, F b) { return a / b; });
  t["arith.remf"] = lift([](F a, F b) { return std::fmod(a, b); });
  t["arith.negf"] = lift([](F a) { return -a; });
  t["arith.maximumf"] = lift([](F a, F b) { return maximum(a, b); });
  t["arith.minimumf"] = lift([](F a, F b) { return minimum(a, b); });
  t["arith.maxnumf"] = lift([](F a, F b) { return maxNum(a, b); });
  t["arith.minnumf"] = lift([](F a, F b) { return minNum(a, b); });
  t["arith.extf"] = lift([](F a) { return a; });
}

static void addIntegerArithmetic(Table &t) {
  t["arith.addi"] = t["index.add"] = lift([](U a, U b) { return a + b; });
  t["arith.subi"] = t["index.sub"] = lift([](U a, U b) { return a - b; });
  t["arith.muli"] = t["index.mul"] = lift([](U a, U b) { return a * b; });
  t["arith.divsi"] = t["index.divs"] = dividing(lift([](S a, S b) { return divS(a, b); }));
  t["arith.divui"] = t["index.divu"] = dividing(lift([](U a, U b) { return divU(a, b); }));
  t["arith.remsi"] = t["index.rems"] = dividing(lift([](S a, S b) { return remS(a, b); }));
  t["arith.remui"] = t["index.remu"] = dividing(lift([](U a, U b) { return remU(a, b); }));
  t["arith.ceildivsi"] = t["index.ceildivs"] = dividing(lift([](S a, S b) { return ceilDiv(a, b); }));
  t["arith.ceildivui"] = t["index.ceildivu"] = dividing(lift([](U a, U b) { return divU(a, b) + (remU(a, b) != 0); }));
  t["arith.floordivsi"] = t["index.floordivs"] = dividing(lift([](S a, S b) { return floorDiv(a, b); }));
  t["arith.maxsi"] = t["index.maxs"] = lift([](S a, S b) { return a > b ? a : b; });
  t["arith.maxui"] = t["index.maxu"] = lift([](U a, U b) { return a > b ? a : b; });
  t["arith.minsi"] = t["index.mins"] = lift([](S a, S b) { return a < b ? a : b; });
  t["arith.minui"] = t["index.minu"] = lift([](U a, U b) { return a < b ? a : b; });
  t["arith.andi"] = t["index.and"] = lift([](S a, S b) { return a & b; });
  t["arith.ori"] = t["index.or"] = lift([](S a, S b) { return a | b; });
  t["arith.xori"] = t["index.xor"] = lift([](S a, S b) { return a ^ b; });
  // A shift by the width or more is poison in `arith`; here all digits are shifted out.
  t["arith.shli"] = t["index.shl"] = lift([](U a, U n, InWidth w) { return n >= w.bits ? U(0) : a << n; });
  t["arith.shrui"] = t["index.shru"] = lift([](U a, U n, InWidth w) { return n >= w.bits ? U(0) : a >> n; });
  t["arith.shrsi"] = t["index.shrs"] = lift([](S a, U n, InWidth w) { return a >> (n >= w.bits ? 63 : n); });
  t["arith.addui_extended"] = t["arith.addi"];
  t["arith.addui_extended#1"] = lift([](U a, U b, InWidth w) { return a > llvm::maxUIntN(w.bits) - b; });
  t["arith.mulsi_extended"] = t["arith.mului_extended"] = t["arith.muli"];
  t["arith.mulsi_extended#1"] = lift([](S a, S b, InWidth w) { return highHalf(a, b, w.bits); });
  t["arith.mului_extended#1"] = lift([](U a, U b, InWidth w) { return highHalf(a, b, w.bits); });
}

static void addCasts(Table &t) {
  t["arith.extsi"] = t["arith.trunci"] = t["arith.index_cast"] = t["index.casts"] = lift([](S a) { return a; });
  t["arith.extui"] = t["arith.index_castui"] = t["index.castu"] = lift([](U a) { return a; });
  t["arith.sitofp"] = lift([](S a) { return static_cast<F>(a); });
  t["arith.uitofp"] = lift([](U a) { return static_cast<F>(a); });
  t["arith.fptosi"] = lift([](F a, OutWidth w) { return toSigned(a, w); });
  t["arith.fptoui"] = lift([](F a, OutWidth w) { return toUnsigned(a, w); });
  t["arith.select"] = getSelectKernel();
}

static void addMath(Table &t) {
  t["math.absf"] = lift([](F a) { return std::fabs(a); });
  t["math.acos"] = lift([](F a) { return std::acos(a); });
  t["math.acosh"] = lift([](F a) { return std::acosh(a); });
  t["math.asin"] = lift([](F a) { return std::asin(a); });
  t["math.asinh"] = lift([](F a) { return std::asinh(a); });
  t["math.atan"] = lift([](F a) { return std::atan(a); });
  t["math.atan2"] = lift([](F a, F b) { return std::atan2(a, b); });
  t["math.atanh"] = lift([](F a) { return std::atanh(a); });
  t["math.cbrt"] = lift([](F a) { return std::cbrt(a); });
  t["math.ceil"] = lift([](F a) { return std::ceil(a); });
  t["math.clampf"] = lift([](F a, F low, F high) { return minimum(maximum(a, low), high); });
  t["math.copysign"] = lift([](F a, F b) { return std::copysign(a, b); });
  t["math.cos"] = t["math.sincos#1"] = lift([](F a) { return std::cos(a); });
  t["math.cosh"] = lift([](F a) { return std::cosh(a); });
  t["math.erf"] = lift([](F a) { return std::erf(a); });
  t["math.erfc"] = lift([](F a) { return std::erfc(a); });
  t["math.exp"] = lift([](F a) { return std::exp(a); });
  t["math.exp2"] = lift([](F a) { return std::exp2(a); });
  t["math.expm1"] = lift([](F a) { return std::expm1(a); });
  t["math.floor"] = lift([](F a) { return std::floor(a); });
  t["math.fma"] = lift([](F a, F b, F c) { return std::fma(a, b, c); });
  t["math.fpowi"] = lift([](F a, S b) { return std::pow(a, static_cast<F>(b)); });
  t["math.isfinite"] = lift([](F a) { return bool(std::isfinite(a)); });
  t["math.isinf"] = lift([](F a) { return bool(std::isinf(a)); });
  t["math.isnan"] = lift([](F a) { return a != a; });
  t["math.log"] = lift([](F a) { return std::log(a); });
  t["math.log10"] = lift([](F a) { return std::log10(a); });
  t["math.log1p"] = lift([](F a) { return std::log1p(a); });
  t["math.log2"] = lift([](F a) { return std::log2(a); });
  t["math.powf"] = lift([](F a, F b) { return std::pow(a, b); });
  t["math.round"] = lift([](F a) { return std::round(a); });
  t["math.roundeven"] = lift([](F a) { return roundEven(a); });
  t["math.rsqrt"] = lift([](F a) { return 1 / std::sqrt(a); });
  t["math.sin"] = t["math.sincos"] = lift([](F a) { return std::sin(a); });
  t["math.sinh"] = lift([](F a) { return std::sinh(a); });
  t["math.sqrt"] = lift([](F a) { return std::sqrt(a); });
  t["math.tan"] = lift([](F a) { return std::tan(a); });
  t["math.tanh"] = lift([](F a) { return std::tanh(a); });
  t["math.trunc"] = lift([](F a) { return std::trunc(a); });
  t["math.absi"] = lift([](S a) { return a < 0 ? -U(a) : U(a); });
  t["math.ctlz"] = lift([](U a, InWidth w) { return S(llvm::countl_zero(a)) - S(64 - w.bits); });
  t["math.ctpop"] = lift([](U a) { return S(llvm::popcount(a)); });
  t["math.cttz"] = lift([](U a, InWidth w) { return a == 0 ? S(w.bits) : S(llvm::countr_zero(a)); });
  t["math.ipowi"] = lift([](S a, S b) { return powI(a, b); });
}

static Table makeTable() {
  Table table;
  addFloatArithmetic(table);
  addIntegerArithmetic(table);
  addCasts(table);
  addMath(table);
  return table;
}

Kernel mlir::ssa::reference::getSelectKernel() {
  return lift([](Cell condition, Cell a, Cell b) { return condition.i ? a : b; });
}

//===----------------------------------------------------------------------===//
// Ops whose kernel depends on an attribute or a type
//===----------------------------------------------------------------------===//

static Kernel getCompareKernel(arith::CmpFPredicate predicate) {
  using P = arith::CmpFPredicate;
  // clang-format off
  switch (predicate) {
  case P::AlwaysFalse: return lift([](F, F) { return false; });
  case P::OEQ: return lift([](F a, F b) { return a == b; });
  case P::OGT: return lift([](F a, F b) { return a > b; });
  case P::OGE: return lift([](F a, F b) { return a >= b; });
  case P::OLT: return lift([](F a, F b) { return a < b; });
  case P::OLE: return lift([](F a, F b) { return a <= b; });
  case P::ONE: return lift([](F a, F b) { return a < b || a > b; });
  case P::ORD: return lift([](F a, F b) { return a == a && b == b; });
  case P::UEQ: return lift([](F a, F b) { return !(a < b || a > b); });
  case P::UGT: return lift([](F a, F b) { return !(a <= b); });
  case P::UGE: return lift([](F a, F b) { return !(a < b); });
  case P::ULT: return lift([](F a, F b) { return !(a >= b); });
  case P::ULE: return lift([](F a, F b) { return !(a > b); });
  case P::UNE: return lift([](F a, F b) { return a != b; });
  case P::UNO: return lift([](F a, F b) { return a != a || b != b; });
  case P::AlwaysTrue: return lift([](F, F) { return true; });
  }
  // clang-format on
  return nullptr;
}

static Kernel getCompareKernel(arith::CmpIPredicate predicate) {
  using P = arith::CmpIPredicate;
  // clang-format off
  switch (predicate) {
  case P::eq: return lift([](S a, S b) { return a == b; });
  case P::ne: return lift([](S a, S b) { return a != b; });
  case P::slt: return lift([](S a, S b) { return a < b; });
  case P::sle: return lift([](S a, S b) { return a <= b; });
  case P::sgt: return lift([](S a, S b) { return a > b; });
  case P::sge: return lift([](S a, S b) { return a >= b; });
  case P::ult: return lift([](U a, U b) { return a < b; });
  case P::ule: return lift([](U a, U b) { return a <= b; });
  case P::ugt: return lift([](U a, U b) { return a > b; });
  case P::uge: return lift([](U a, U b) { return a >= b; });
  }
  // clang-format on
  return nullptr;
}

/// Reinterprets the bits of a value in the format of `from` as one of `to`; f32, f64 and the integers are worth a path
/// of their own.
static Kernel getBitcastKernel(Type from, Type to) {
  auto floatFrom = dyn_cast<FloatType>(from), floatTo = dyn_cast<FloatType>(to);
  if (!floatFrom && !floatTo)
    return lift([](S a) { return a; });
  if (from.isF64() && !floatTo)
    return lift([](Cell a) { return a; });
  if (to.isF64() && !floatFrom)
    return lift([](Cell a) { return a; });
  if (from.isF32() && !floatTo)
    return lift([](F a) { return S(llvm::bit_cast<int32_t>(static_cast<float>(a))); });
  if (to.isF32() && !floatFrom)
    return lift([](S a) { return static_cast<F>(llvm::bit_cast<float>(static_cast<int32_t>(a))); });
  unsigned width = floatFrom ? floatFrom.getWidth() : floatTo.getWidth();
  const llvm::fltSemantics *source = floatFrom ? &floatFrom.getFloatSemantics() : nullptr;
  const llvm::fltSemantics *target = floatTo ? &floatTo.getFloatSemantics() : nullptr;
  return lift([=](Cell a) {
    llvm::APInt bits(width, source ? 0 : a.i, /*isSigned=*/false, /*implicitTrunc=*/true);
    if (source) {
      llvm::APFloat value(a.f);
      bool losesInfo;
      value.convert(*source, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
      bits = value.bitcastToAPInt();
    }
    Cell result;
    if (target)
      result.f = llvm::APFloat(*target, bits).convertToDouble();
    else
      result.i = bits.getSExtValue();
    return result;
  });
}

/// Finite, not zero and of at least the least normal magnitude of `type`.
static Kernel getIsNormalKernel(FloatType type) {
  double least = std::ldexp(1.0, llvm::APFloat::semanticsMinExponent(type.getFloatSemantics()));
  return lift([least](F a) { return std::isfinite(a) && std::fabs(a) >= least; });
}

Kernel mlir::ssa::reference::getScalarKernel(Operation *op, unsigned number) {
  static const Table table = makeTable();
  Type in = op->getNumOperands() ? getElementTypeOrSelf(op->getOperand(0).getType()) : Type();
  Type out = getElementTypeOrSelf(op->getResult(number).getType());
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    return getCompareKernel(compare.getPredicate());
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return getCompareKernel(compare.getPredicate());
  if (auto compare = dyn_cast<index::CmpOp>(op))
    return getCompareKernel(static_cast<arith::CmpIPredicate>(
        arith::symbolizeCmpIPredicate(index::stringifyIndexCmpPredicate(compare.getPred()))
            .value_or(arith::CmpIPredicate::eq)));
  if (isa<arith::BitcastOp>(op))
    return getBitcastKernel(in, out);
  if (isa<arith::TruncFOp>(op) && isa<FloatType>(out))
    return lift([rounding = Rounding(out)](F a) { return rounding(a); });
  StringRef name = op->getName().getStringRef();
  if (name == "math.isnormal" && isa<FloatType>(in))
    return getIsNormalKernel(cast<FloatType>(in));
  auto row = table.find(number ? (name + "#" + Twine(number)).str() : name.str());
  return row == table.end() ? nullptr : row->second;
}

unsigned mlir::ssa::reference::getCellBits(Type type) {
  type = getElementTypeOrSelf(type);
  return isa<IntegerType>(type) ? cast<IntegerType>(type).getWidth() : 64;
}
