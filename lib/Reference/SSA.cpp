//===- SSA.cpp - What the ops of the ssa dialect share --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "SSA.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace mlir::ssa;
using namespace mlir::ssa::reference;

LogicalResult reference::evaluateSSA(Evaluation &evaluation, Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](ProjectOp o) { return evaluateProject(evaluation, o); })
      .Case([&](PoolOp o) { return evaluatePool(evaluation, o); })
      .Case([&](RouteOp o) { return evaluateRoute(evaluation, o); })
      .Case([&](RebinOp o) { return evaluateRebin(evaluation, o); })
      .Case([&](TopKOp o) { return evaluateTopK(evaluation, o); })
      .Case([&](SortOp o) { return evaluateSort(evaluation, o); })
      .Case([&](UnionOp o) { return evaluateUnion(evaluation, o); })
      .Case([&](FromIndicesOp o) { return evaluateFromIndices(evaluation, o); })
      .Case([&](ToIndicesOp o) { return evaluateToIndices(evaluation, o); })
      .Case([&](GatherOp o) { return evaluateGather(evaluation, o); })
      .Case([&](SparseAttendOp o) { return evaluateSparseAttend(evaluation, o); })
      .Case([&](MergeOp o) { return evaluateMerge(evaluation, o); })
      .Case([&](MixOp o) { return evaluateMix(evaluation, o); })
      .Default([](Operation *o) { return o->emitOpError("cannot be evaluated on its own"); });
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

SizeCheck &SizeCheck::is(const NamedTensor &a, unsigned i, int64_t size, const Twine &what) {
  if (succeeded(result) && a.dim(i) != size)
    result = op->emitOpError() << "expected dimension " << i << " of '" << a.name << "' to be " << size << ", " << what
                               << ", but got " << a.dim(i);
  return *this;
}

SizeCheck &SizeCheck::atMost(const NamedTensor &a, unsigned i, int64_t size, const Twine &what) {
  if (succeeded(result) && a.dim(i) > size)
    result = op->emitOpError() << "expected dimension " << i << " of '" << a.name << "' to be at most " << size << ", "
                               << what << ", but got " << a.dim(i);
  return *this;
}

SizeCheck &SizeCheck::same(const NamedTensor &a, unsigned i, const NamedTensor &b, unsigned j) {
  return is(a, i, b.dim(j), "dimension " + Twine(j) + " of '" + b.name + "'");
}

SizeCheck &SizeCheck::lists(const NamedTensor &a, int64_t rows, const Twine &what) {
  return a.dim(2) == 1 ? *this : is(a, 2, rows, what);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// Sums `term(i)` in eight interleaved partial sums: fast, and one order of additions for all machines.
template <typename Term>
static double sumInterleaved(int64_t n, Term term) {
  constexpr int64_t lanes = 8;
  double sums[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int64_t l = 0; l < lanes; ++l)
      sums[l] += term(i + l);
  for (int64_t l = 0; i < n; ++i, ++l)
    sums[l] += term(i);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

double reference::dot(ArrayRef<double> a, ArrayRef<float> b) {
  const double *pa = a.data();
  const float *pb = b.data();
  return sumInterleaved(a.size(), [=](int64_t i) { return pa[i] * double(pb[i]); });
}

double reference::dotBound(ArrayRef<double> a, ArrayRef<float> low, ArrayRef<float> high) {
  return sumInterleaved(a.size(), [&](int64_t i) { return maxWithNaN(a[i] * double(low[i]), a[i] * double(high[i])); });
}

double reference::getScale(std::optional<APFloat> scale, int64_t dim) {
  return scale ? double(float(scale->convertToDouble())) : 1.0 / std::sqrt(double(dim));
}

//===----------------------------------------------------------------------===//
// ScoreRegion
//===----------------------------------------------------------------------===//

FailureOr<ScoreRegion> ScoreRegion::compile(const Evaluation &evaluation, Region &region) {
  ScoreRegion score;
  if (region.empty())
    return score;
  FailureOr<ScalarProgram> program = ScalarProgram::compile(region.front(), [&](Value v) { return evaluation[v]; });
  if (failed(program))
    return failure();
  score.program = std::move(*program);
  return score;
}

LogicalResult ScoreRegion::apply(const Row &row, ArrayRef<int64_t> numbers, MutableArrayRef<double> x) const {
  constexpr int64_t lanes = ScalarProgram::maxLanes;
  enum { X, W, B, H, P, N, numColumns };
  Cell cells[numColumns][lanes];
  bool hasWeight = row.weight.has_value();
  for (int64_t l = 0, n = std::min<int64_t>(lanes, x.size()); l < n; ++l) {
    cells[W][l].f = row.weight.value_or(1);
    cells[B][l].i = row.batch;
    cells[H][l].i = row.head;
    cells[P][l].i = row.position;
  }
  SmallVector<const Cell *, numColumns> arguments = {cells[X]};
  if (hasWeight)
    arguments.push_back(cells[W]);
  arguments.append({cells[B], cells[H], cells[P], cells[N]});
  for (int64_t begin = 0, size = x.size(); begin < size; begin += lanes) {
    int64_t n = std::min(lanes, size - begin);
    for (int64_t l = 0; l < n; ++l) {
      cells[X][l].f = x[begin + l];
      cells[N][l].i = numbers[begin + l];
    }
    Cell *result = cells[X];
    ScalarProgram::Failure failure;
    if (failed(program->run(n, arguments, result, failure)))
      return failure.where->emitOpError() << failure.error;
    for (int64_t l = 0; l < n; ++l)
      x[begin + l] = cells[X][l].f;
  }
  return success();
}
