//===- Regroup.h - How rebin regroups scores --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_IR_REGROUP_H
#define SSA_IR_REGROUP_H

#include "ssa/IR/Geometry.h"

namespace mlir::ssa {

/// The scores of a row that a score of a `rebin` joins: those of columns `ratio * b - before` .. `ratio * b + ratio - 1`. Without a `rebin`
/// a score is its own.
struct Regroup {
  Regroup() = default;
  explicit Regroup(RebinOp op)
      : ratio(op.getTo().getSize() / op.getFrom().getStride()), before(op.getFrom().getSize() / op.getFrom().getStride() - 1),
        isMax(op.getKind() == Reduction::max) {}

  bool isNone() const { return ratio == 1 && before == 0; }
  int64_t getWindow() const { return ratio + before; }
  /// How often the score at `place` of the window counts in a sum.
  int64_t getWeight(int64_t place) const { return std::min({place + 1, getWindow() - place, ratio, before + 1}); }
  /// The most results that are complete with `columns` columns, a multiple of the ratio, if they are the last.
  int64_t getMaxColumns(int64_t columns) const { return ceilDiv(columns + before, ratio); }
  /// The most columns that `topk` may list of these: as many as it must take may be others, without a score.
  int64_t getMaxListed(int64_t columns, TopKOp topk) const {
    return getMaxColumns(columns) + (topk.getInitBlocks() || topk.getLocalBlocks() ? topk.getType().getWidth() : 0);
  }

  /// True if stretches of so many columns (and the steps of 64 that they consist of) end where windows do.
  bool divides(int64_t columns) const { return columns % ratio == 0 && 64 % ratio == 0 && before <= columns; }

  int64_t ratio = 1, before = 0;
  bool isMax = false;
};

} // namespace mlir::ssa

#endif // SSA_IR_REGROUP_H
