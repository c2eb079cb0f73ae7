//===- PredictKernel.cpp - Times of other kernels -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Shares of rates that kernels reach, set on the H200's figures of docs/kernels.md; docs/explain.md compares them.
//
//===----------------------------------------------------------------------===//

#include "ssa/Model/Attend.h"

using namespace mlir;
using namespace mlir::ssa;

/// Of the matrix rate by scores, without and with a softmax; of a copy's rate by kernels that walk rows; of the rate of CUDA cores by products on
/// them.
static constexpr double scoreShare = 0.64, softmaxShare = 0.47, copyShare = 0.55, vectorShare = 0.35;
/// Of a copy's rate by the kernel that joins partial outputs, which are long rows.
static constexpr double joinShare = 0.85;

/// Keys that a query's scores are made for, averaged over the sequence.
static double getScoredKeys(RouteOp op, AssumedSizes &sizes) {
  if (op.getWithin()) {
    auto within = cast<SelectionType>(op.getWithin().getType());
    return double(within.getWidth()) * sizes.get(op.getScores(), 3) / std::max<int64_t>(within.getWidth(), 1);
  }
  Geometry geometry;
  Value queries = op.getQueries() ? op.getQueries() : op.getQuery();
  geometry.queries = sizes.get(queries, 2);
  geometry.tokens = sizes.get(op.getTokens() ? op.getTokens() : op.getKey(), 2);
  geometry.mask = op.getMask().value_or(MaskAttr());
  int64_t stride = op.getBlocks() ? op.getBlocks()->getStride() : 1;
  double sum = 0;
  constexpr int64_t samples = 32;
  for (int64_t i = 0; i < samples; ++i) {
    AllowedKeys allowed = geometry.allowed(geometry.position((2 * i + 1) * geometry.queries / (2 * samples)));
    for (TokenRange range : {allowed.sink, allowed.window})
      sum += std::max<int64_t>(std::min(range.end, geometry.tokens) - std::max<int64_t>(range.begin, 0), 0);
  }
  return sum / samples / stride;
}

/// Sets what products of `pairs` rows of `dim` numbers take, `type` being that of the operands.
static double setProducts(Prediction &p, double pairs, int64_t dim, Type type, Type other, double share, TargetAttr target) {
  const ChipRates &rates = ChipRates::of(target);
  double flop = 2 * pairs * dim;
  bool onTensorCores = type == other && type.getIntOrFloatBitWidth() <= 16 && dim % 2 == 0;
  if (onTensorCores) {
    bool isWide = target.hasWGMMA() || target.hasTCGen05();
    double perRate = isWide && type.getIntOrFloatBitWidth() == 8 ? 2 : 1; // `mma.sync` makes f16 of f8
    p.units.matrix = flop / (perRate * (isWide ? rates.matrix : rates.mmaSync));
    return p.units.matrix / share;
  }
  p.units.vector = flop / (ChipRates::vectorFlopPerCycle * rates.clock * target.numSMs());
  return p.units.vector / vectorShare;
}

static Type getElement(Value v) { return cast<ShapedType>(v.getType()).getElementType(); }

static double predictRoute(Prediction &p, RouteOp op, AssumedSizes &sizes, TargetAttr target) {
  auto query = cast<ShapedType>(op.getQuery().getType());
  double rows = double(sizes.get(op.getQuery(), 0)) * query.getDimSize(1) * sizes.get(op.getQuery(), 2), pairs = rows * getScoredKeys(op, sizes);
  bool hasSoftmax = op.getNormalize() == Normalization::softmax;
  if (hasSoftmax)
    p.units.special = pairs / (ChipRates::exponentialsPerCycle * ChipRates::of(target).clock * target.numSMs());
  return setProducts(p, pairs * (op.getBound() ? 2 : 1), query.getDimSize(3), getElement(op.getQuery()), getElement(op.getKey()),
                     hasSoftmax ? softmaxShare : scoreShare, target);
}

Prediction ssa::predictKernel(Operation *op, StringRef kernel, AssumedSizes &sizes, TargetAttr target, double bytes, int64_t runs) {
  Prediction p;
  const ChipRates &rates = ChipRates::of(target);
  p.units.memory = bytes / rates.memory;
  double arithmetic = 0;
  // Maxima and sums of parts are joined by a kernel that makes no scores.
  if (auto route = dyn_cast_or_null<RouteOp>(op); route && !kernel.contains("join")) {
    arithmetic = predictRoute(p, route, sizes, target);
  } else if (auto project = dyn_cast_or_null<ProjectOp>(op)) {
    auto weights = cast<ShapedType>(project->getOperand(1).getType());
    Value input = project->getOperand(0);
    double rows = double(sizes.get(input, 0)) * cast<ShapedType>(input.getType()).getDimSize(1) * sizes.get(input, 2);
    arithmetic = setProducts(p, rows * weights.getDimSize(2), weights.getDimSize(1), getElement(input), weights.getElementType(), scoreShare, target);
  } else if (auto attend = dyn_cast_or_null<SparseAttendOp>(op); attend && kernel.contains("attend")) {
    AttendProblem problem(attend, sizes);
    p.units.vector = problem.getUsefulFlop() / (ChipRates::vectorFlopPerCycle * rates.clock * target.numSMs());
    arithmetic = p.units.vector / vectorShare;
  }
  // What products wait for hides what they write.
  double share = arithmetic > 0 ? 1 : kernel.contains("join_partials") ? joinShare : copyShare;
  p.seconds = std::max(arithmetic, p.units.memory / share) + runs * launchSeconds;
  constexpr double mostly = 0.4;
  p.binds = p.units.longest() > mostly * p.seconds ? p.units.binding() : StringRef("latency");
  return p;
}
