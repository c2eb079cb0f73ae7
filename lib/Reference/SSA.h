//===- SSA.h - What the ops of the ssa dialect share ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_REFERENCE_SSA_H
#define SSA_LIB_REFERENCE_SSA_H

#include "Evaluation.h"
#include "ssa/IR/Geometry.h"
#include "ssa/Reference/ScalarProgram.h"
#include <limits>

namespace mlir::ssa::reference {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The value of an operand with its name, for checks and messages.
struct NamedTensor {
  StringRef name;
  const Tensor &tensor;
  int64_t dim(unsigned i) const { return tensor.getDim(i); }
};

/// Checks sizes that an op equates; the first that differ are an error at the op.
class SizeCheck {
public:
  explicit SizeCheck(Operation *op) : op(op) {}

  /// Dimension `i` of `a` is `size`; `what` says what that is.
  SizeCheck &is(const NamedTensor &a, unsigned i, int64_t size, const Twine &what);
  /// Dimension `i` of `a` is at most `size`.
  SizeCheck &atMost(const NamedTensor &a, unsigned i, int64_t size, const Twine &what);
  /// Dimension `i` of `a` is dimension `j` of `b`.
  SizeCheck &same(const NamedTensor &a, unsigned i, const NamedTensor &b, unsigned j);
  /// Dimension 2 of the lists `a` is `rows`, or 1, which serves every row.
  SizeCheck &lists(const NamedTensor &a, int64_t rows, const Twine &what);

  operator LogicalResult() const { return result; }

private:
  Operation *op;
  LogicalResult result = success();
};

/// The offset of row (i0, i1, ..) of a row-major tensor whose last dimensions make a row.
inline int64_t rowOffset(const Tensor &t, int64_t i0, int64_t i1, int64_t i2) {
  return ((i0 * t.getDim(1) + i1) * t.getDim(2) + i2) * (t.getRank() > 3 ? t.getDim(3) : 1);
}

/// Row (b, h, n) of a tensor of rank 4.
inline ArrayRef<float> row(const Tensor &t, int64_t b, int64_t h, int64_t n) {
  return t.get<float>().slice(rowOffset(t, b, h, n), t.getDim(3));
}

/// Entry (b, h, n) of a tensor of rank 3.
inline float entry(const Tensor &t, int64_t b, int64_t h, int64_t n) { return t.get<float>()[rowOffset(t, b, h, n)]; }

/// List (b, g, m) of a selection.
inline ArrayRef<int32_t> list(const Tensor &t, int64_t b, int64_t g, int64_t m) {
  return t.get<int32_t>().slice(rowOffset(t, b, g, m), t.getDim(3));
}

/// `a . b` in double. The order of additions is fixed, so the bits are the same everywhere.
double dot(ArrayRef<double> a, ArrayRef<float> b);

/// `sum_d max(a_d * low_d, a_d * high_d)`: Quest's bound.
double dotBound(ArrayRef<double> a, ArrayRef<float> low, ArrayRef<float> high);

inline double maxWithNaN(double a, double b) { return std::isnan(a) || std::isnan(b) ? a + b : std::max(a, b); }
inline double minWithNaN(double a, double b) { return std::isnan(a) || std::isnan(b) ? a + b : std::min(a, b); }

/// `scale` rounded to f32, or `1/sqrt(dim)`.
double getScale(std::optional<APFloat> scale, int64_t dim);

/// The score region of an op, compiled; without one it does nothing.
class ScoreRegion {
public:
  static FailureOr<ScoreRegion> compile(const Evaluation &evaluation, Region &region);

  bool exists() const { return program.has_value(); }

  /// What a region knows of one row of scores.
  struct Row {
    std::optional<double> weight; // only of `route`
    int64_t batch, head, position;
  };

  /// Replaces every `x[i]`, the score of `row` for the block, row or token `numbers[i]`.
  LogicalResult apply(const Row &row, ArrayRef<int64_t> numbers, MutableArrayRef<double> x) const;

private:
  std::optional<ScalarProgram> program;
};

LogicalResult evaluateProject(Evaluation &evaluation, ProjectOp op);
LogicalResult evaluatePool(Evaluation &evaluation, PoolOp op);
LogicalResult evaluateGather(Evaluation &evaluation, GatherOp op);
LogicalResult evaluateRoute(Evaluation &evaluation, RouteOp op);
LogicalResult evaluateRebin(Evaluation &evaluation, RebinOp op);
LogicalResult evaluateTopK(Evaluation &evaluation, TopKOp op);
LogicalResult evaluateSort(Evaluation &evaluation, SortOp op);
LogicalResult evaluateUnion(Evaluation &evaluation, UnionOp op);
LogicalResult evaluateFromIndices(Evaluation &evaluation, FromIndicesOp op);
LogicalResult evaluateToIndices(Evaluation &evaluation, ToIndicesOp op);
LogicalResult evaluateSparseAttend(Evaluation &evaluation, SparseAttendOp op);
LogicalResult evaluateMerge(Evaluation &evaluation, MergeOp op);
LogicalResult evaluateMix(Evaluation &evaluation, MixOp op);

} // namespace mlir::ssa::reference

#endif // SSA_LIB_REFERENCE_SSA_H
