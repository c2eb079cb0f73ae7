//===- Packed.cpp - Half precision and pairs ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Lanes.h"
#include "Numeric.h"

using namespace mlir::ssa::sim;

namespace {
using U16 = uint16_t;
using U32 = uint32_t;
using U64 = uint64_t;

struct F16 {
  static constexpr Format format = formatF16;
  static constexpr const char *name = "f16";
};
struct BF16 {
  static constexpr Format format = formatBF16;
  static constexpr const char *name = "bf16";
};
} // namespace

template <class F>
static U64 mapFloats(U64 a, U64 b, U64 c, F function) {
  auto part = [](U64 value, int i) { return bits<float>(U32(value >> (32 * i))); };
  U64 low = bits<U32>(function(part(a, 0), part(b, 0), part(c, 0)));
  U64 high = bits<U32>(function(part(a, 1), part(b, 1), part(c, 1)));
  return high << 32 | low;
}

static void addPairsOfFloats(Tables &tables) {
  auto &rows = tables.rows;
  for (std::string rounding : {"", ".rn"}) {
    rows["add" + rounding + ".f32x2"] = lanewise(
        [](U64 a, U64 b) { return mapFloats(a, b, 0, [](float x, float y, float) { return canonical(x + y); }); });
    rows["sub" + rounding + ".f32x2"] = lanewise(
        [](U64 a, U64 b) { return mapFloats(a, b, 0, [](float x, float y, float) { return canonical(x - y); }); });
    rows["mul" + rounding + ".f32x2"] = lanewise(
        [](U64 a, U64 b) { return mapFloats(a, b, 0, [](float x, float y, float) { return canonical(x * y); }); });
  }
  rows["fma.rn.f32x2"] = lanewise([](U64 a, U64 b, U64 c) {
    return mapFloats(a, b, c, [](float x, float y, float z) { return canonical(std::fmaf(x, y, z)); });
  });
}

/// A scalar instruction on T and the same on both halves of a word. `F` takes and gives f64, exact before rounding.
template <class T, class F>
static void addHalf(Tables &tables, const std::string &name, F) {
  auto one = [](U16 a, U16 b, U16 c) {
    double result = stateless<F>()(decode(a, T::format), decode(b, T::format), decode(c, T::format));
    return U16(encode(result, T::format, Rounding::Nearest));
  };
  using One = decltype(one);
  constexpr int arity = F::arity;
  auto &rows = tables.rows;
  if constexpr (arity == 1) {
    rows[name + "." + T::name] = lanewise([](U16 a) { return stateless<One>()(a, 0, 0); });
    rows[name + "." + T::name + "x2"] = lanewise(
        [](U32 a) { return U32(stateless<One>()(U16(a >> 16), 0, 0)) << 16 | stateless<One>()(U16(a), 0, 0); });
  } else if constexpr (arity == 2) {
    rows[name + "." + T::name] = lanewise([](U16 a, U16 b) { return stateless<One>()(a, b, 0); });
    rows[name + "." + T::name + "x2"] = lanewise([](U32 a, U32 b) {
      return U32(stateless<One>()(U16(a >> 16), U16(b >> 16), 0)) << 16 | stateless<One>()(U16(a), U16(b), 0);
    });
  } else {
    rows[name + "." + T::name] = lanewise([](U16 a, U16 b, U16 c) { return stateless<One>()(a, b, c); });
    rows[name + "." + T::name + "x2"] = lanewise([](U32 a, U32 b, U32 c) {
      return U32(stateless<One>()(U16(a >> 16), U16(b >> 16), U16(c >> 16))) << 16 |
             stateless<One>()(U16(a), U16(b), U16(c));
    });
  }
}

namespace {
template <int n>
struct Arity {
  static constexpr int arity = n;
};
struct Add : Arity<2> {
  double operator()(double a, double b, double) const { return addWide(a, b); }
};
struct Sub : Arity<2> {
  double operator()(double a, double b, double) const { return addWide(a, -b); }
};
struct Mul : Arity<2> {
  double operator()(double a, double b, double) const { return a * b; }
};
struct Fma : Arity<3> {
  double operator()(double a, double b, double c) const { return addWide(a * b, c); }
};
struct FmaRelu : Arity<3> {
  double operator()(double a, double b, double c) const {
    double sum = addWide(a * b, c);
    return sum > 0 || sum != sum ? sum : 0.0;
  }
};
struct Min : Arity<2> {
  double operator()(double a, double b, double) const { return minimum(a, b); }
};
struct Max : Arity<2> {
  double operator()(double a, double b, double) const { return maximum(a, b); }
};
struct MinNaN : Arity<2> {
  double operator()(double a, double b, double) const { return minimumNaN(a, b); }
};
struct MaxNaN : Arity<2> {
  double operator()(double a, double b, double) const { return maximumNaN(a, b); }
};
struct Exp2 : Arity<1> {
  double operator()(double a, double, double) const { return std::exp2(a); }
};
struct Tanh : Arity<1> {
  double operator()(double a, double, double) const { return std::tanh(a); }
};
} // namespace

template <class T>
static void addHalves(Tables &tables) {
  for (std::string rounding : {"", ".rn"}) {
    addHalf<T>(tables, "add" + rounding, Add());
    addHalf<T>(tables, "sub" + rounding, Sub());
    addHalf<T>(tables, "mul" + rounding, Mul());
  }
  addHalf<T>(tables, "fma.rn", Fma());
  addHalf<T>(tables, "fma.rn.relu", FmaRelu());
  addHalf<T>(tables, "min", Min());
  addHalf<T>(tables, "max", Max());
  addHalf<T>(tables, "min.NaN", MinNaN());
  addHalf<T>(tables, "max.NaN", MaxNaN());
  addHalf<T>(tables, "ex2.approx", Exp2());
  addHalf<T>(tables, "ex2.approx.ftz", Exp2());
  addHalf<T>(tables, "tanh.approx", Tanh());
  auto &rows = tables.rows;
  std::string name = T::name;
  rows["abs." + name] = lanewise([](U16 a) { return U16(a & 0x7fff); });
  rows["neg." + name] = lanewise([](U16 a) { return U16(a ^ 0x8000); });
  rows["abs." + name + "x2"] = lanewise([](U32 a) { return a & 0x7fff7fff; });
  rows["neg." + name + "x2"] = lanewise([](U32 a) { return a ^ 0x80008000; });
  // f32 with operands of half precision.
  rows["fma.rn.f32." + name] = lanewise([](U16 a, U16 b, float c) {
    return canonical(std::fmaf(float(decode(a, T::format)), float(decode(b, T::format)), c));
  });
  for (std::string rounding : {"", ".rn"}) {
    rows["add" + rounding + ".f32." + name] =
        lanewise([](U16 a, float c) { return canonical(float(decode(a, T::format)) + c); });
    rows["sub" + rounding + ".f32." + name] =
        lanewise([](U16 a, float c) { return canonical(float(decode(a, T::format)) - c); });
  }
}

void mlir::ssa::sim::addPackedRows(Tables &tables) {
  addPairsOfFloats(tables);
  addHalves<F16>(tables);
  addHalves<BF16>(tables);
}
