//===- Floats.cpp - Floating point instructions ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Lanes.h"
#include "Numeric.h"

using namespace mlir::ssa::sim;

namespace {
using U16 = uint16_t;
using U32 = uint32_t;
using U64 = uint64_t;
} // namespace

/// A sum rounded in a direction; opposite numbers give -0 when rounding down.
template <Rounding rounding>
static float addRounded(double a, double b) {
  float sum = canonical(roundToFloat(addWide(a, b), rounding));
  return rounding == Rounding::Down && sum == 0 && (std::signbit(a) || std::signbit(b)) ? -0.0f : sum;
}

/// f32 operations rounded in a direction, by f64 that is exact or next to what it stands for.
template <Rounding rounding>
static void addDirected(Tables &tables, const std::string &suffix) {
  auto &rows = tables.rows;
  rows["add." + suffix + ".f32"] = lanewise([](float a, float b) { return addRounded<rounding>(a, b); });
  rows["sub." + suffix + ".f32"] = lanewise([](float a, float b) { return addRounded<rounding>(a, -b); });
  rows["mul." + suffix + ".f32"] =
      lanewise([](float a, float b) { return canonical(roundToFloat(double(a) * double(b), rounding)); });
  rows["fma." + suffix + ".f32"] =
      lanewise([](float a, float b, float c) { return addRounded<rounding>(double(a) * double(b), c); });
}

/// Rows with `.ftz`, `.sat`, both and neither. `name` is what stands before them.
template <class F>
static void addVariants(Tables &tables, const std::string &name, F) {
  auto &rows = tables.rows;
  rows[name + ".f32"] = lanewise([](float a, float b) { return canonical(stateless<F>()(a, b)); });
  rows[name + ".ftz.f32"] =
      lanewise([](float a, float b) { return flush(canonical(stateless<F>()(flush(a), flush(b)))); });
  rows[name + ".sat.f32"] = lanewise([](float a, float b) { return saturate(stateless<F>()(a, b)); });
  rows[name + ".ftz.sat.f32"] =
      lanewise([](float a, float b) { return saturate(flush(stateless<F>()(flush(a), flush(b)))); });
}

template <class F>
static void addUnary(Tables &tables, const std::string &name, F) {
  tables.rows[name + ".f32"] = lanewise([](float a) { return canonical(stateless<F>()(a)); });
  tables.rows[name + ".ftz.f32"] = lanewise([](float a) { return flush(canonical(stateless<F>()(flush(a)))); });
}

static void addSingle(Tables &tables) {
  auto &rows = tables.rows;
  for (std::string rounding : {"", ".rn"}) {
    addVariants(tables, "add" + rounding, [](float a, float b) { return a + b; });
    addVariants(tables, "sub" + rounding, [](float a, float b) { return a - b; });
    addVariants(tables, "mul" + rounding, [](float a, float b) { return a * b; });
  }
  addDirected<Rounding::Zero>(tables, "rz");
  addDirected<Rounding::Down>(tables, "rm");
  addDirected<Rounding::Up>(tables, "rp");
  rows["fma.rn.f32"] = lanewise([](float a, float b, float c) { return canonical(std::fmaf(a, b, c)); });
  rows["fma.rn.ftz.f32"] =
      lanewise([](float a, float b, float c) { return flush(canonical(std::fmaf(flush(a), flush(b), flush(c)))); });
  rows["fma.rn.sat.f32"] = lanewise([](float a, float b, float c) { return saturate(std::fmaf(a, b, c)); });
  rows["fma.rn.ftz.sat.f32"] =
      lanewise([](float a, float b, float c) { return saturate(flush(std::fmaf(flush(a), flush(b), flush(c)))); });
  rows["mad.rn.f32"] = rows["fma.rn.f32"];
  for (std::string kind : {"div.rn", "div.approx", "div.full"}) {
    rows[kind + ".f32"] = lanewise([](float a, float b) { return canonical(a / b); });
    rows[kind + ".ftz.f32"] = lanewise([](float a, float b) { return flush(canonical(flush(a) / flush(b))); });
  }
  for (std::string kind : {"rn", "approx"}) {
    addUnary(tables, "rcp." + kind, [](float a) { return 1.0f / a; });
    addUnary(tables, "sqrt." + kind, [](float a) { return std::sqrt(a); });
  }
  addUnary(tables, "rsqrt.approx", [](float a) { return float(1.0 / std::sqrt(double(a))); });
  addUnary(tables, "ex2.approx", [](float a) { return float(std::exp2(double(a))); });
  addUnary(tables, "lg2.approx", [](float a) { return float(std::log2(double(a))); });
  addUnary(tables, "sin.approx", [](float a) { return float(std::sin(double(a))); });
  addUnary(tables, "cos.approx", [](float a) { return float(std::cos(double(a))); });
  rows["tanh.approx.f32"] = lanewise([](float a) { return canonical(float(std::tanh(double(a)))); });
  rows["abs.f32"] = lanewise([](float a) { return canonical(std::fabs(a)); });
  rows["abs.ftz.f32"] = lanewise([](float a) { return std::fabs(flush(a)); });
  rows["neg.f32"] = lanewise([](float a) { return canonical(-a); });
  rows["neg.ftz.f32"] = lanewise([](float a) { return -flush(a); });
  rows["copysign.f32"] = lanewise([](U32 a, U32 b) { return (a & 0x80000000) | (b & 0x7fffffff); });
  rows["testp.finite.f32"] = lanewise([](float a) { return bool(std::isfinite(a)); });
  rows["testp.infinite.f32"] = lanewise([](float a) { return bool(std::isinf(a)); });
  rows["testp.notanumber.f32"] = lanewise([](float a) { return bool(std::isnan(a)); });
  rows["testp.number.f32"] = lanewise([](float a) { return !std::isnan(a); });
  rows["testp.normal.f32"] = lanewise([](float a) { return bool(std::isnormal(a)); });
  rows["testp.subnormal.f32"] = lanewise([](float a) { return std::fpclassify(a) == FP_SUBNORMAL; });
}

/// `min` and `max` of two or three.
static void addExtremes(Tables &tables) {
  auto &rows = tables.rows;
  rows["min.f32"] = lanewise([](float a, float b) { return minimum(a, b); });
  rows["max.f32"] = lanewise([](float a, float b) { return maximum(a, b); });
  rows["min.ftz.f32"] = lanewise([](float a, float b) { return minimum(flush(a), flush(b)); });
  rows["max.ftz.f32"] = lanewise([](float a, float b) { return maximum(flush(a), flush(b)); });
  rows["min.NaN.f32"] = lanewise([](float a, float b) { return minimumNaN(a, b); });
  rows["max.NaN.f32"] = lanewise([](float a, float b) { return maximumNaN(a, b); });
  rows["min.f64"] = lanewise([](double a, double b) { return minimum(a, b); });
  rows["max.f64"] = lanewise([](double a, double b) { return maximum(a, b); });
  rows["min3.f32"] = lanewise([](float a, float b, float c) { return minimum(minimum(a, b), c); });
  rows["max3.f32"] = lanewise([](float a, float b, float c) { return maximum(maximum(a, b), c); });
  rows["min3.NaN.f32"] = lanewise([](float a, float b, float c) { return minimumNaN(minimumNaN(a, b), c); });
  rows["max3.NaN.f32"] = lanewise([](float a, float b, float c) { return maximumNaN(maximumNaN(a, b), c); });
}

/// The forms of `min` and `max` with three operands are spelled like those with two.
template <bool isMaximum>
static bool decodeExtreme(Decoder &decoder) {
  std::string name = isMaximum ? "max" : "min";
  for (std::string_view part : decoder.parts)
    name += "." + std::string(part);
  const auto &rows = Tables::get().rows;
  bool hasThree = decoder.numOperands() == 4;
  auto row = rows.find(hasThree ? (isMaximum ? "max3" : "min3") + name.substr(3) : "extreme." + name);
  if (row == rows.end())
    return false;
  decoder.instruction.run = row->second.run;
  for (size_t i = 0; i < row->second.arguments.size(); ++i)
    if (!decoder.source(i + 1, row->second.arguments[i], i + 1))
      return false;
  return decoder.expectOperands(3, 4) && decoder.destination(0, row->second.result, 0);
}

static void addDouble(Tables &tables) {
  auto &rows = tables.rows;
  for (std::string rounding : {"", ".rn"}) {
    rows["add" + rounding + ".f64"] = lanewise([](double a, double b) { return a + b; });
    rows["sub" + rounding + ".f64"] = lanewise([](double a, double b) { return a - b; });
    rows["mul" + rounding + ".f64"] = lanewise([](double a, double b) { return a * b; });
  }
  rows["fma.rn.f64"] = lanewise([](double a, double b, double c) { return std::fma(a, b, c); });
  rows["div.rn.f64"] = lanewise([](double a, double b) { return a / b; });
  rows["rcp.rn.f64"] = lanewise([](double a) { return 1 / a; });
  rows["sqrt.rn.f64"] = lanewise([](double a) { return std::sqrt(a); });
  rows["abs.f64"] = lanewise([](U64 a) { return a & ~(U64(1) << 63); });
  rows["neg.f64"] = lanewise([](U64 a) { return a ^ U64(1) << 63; });
  rows["copysign.f64"] = lanewise([](U64 a, U64 b) { return (a & U64(1) << 63) | (b & ~(U64(1) << 63)); });
}

void mlir::ssa::sim::addFloatRows(Tables &tables) {
  addSingle(tables);
  addExtremes(tables);
  addDouble(tables);
  auto &rows = tables.rows;
  // Two operands by the family too, so that a third one leads to the other form.
  for (const char *name : {"min.f32", "max.f32", "min.NaN.f32", "max.NaN.f32"}) {
    rows["extreme." + std::string(name)] = rows[name];
    rows.erase(name);
  }
  tables.families["min"] = decodeExtreme<false>;
  tables.families["max"] = decodeExtreme<true>;
}
