//===- SharedSums.h - Sums of a softmax that attention makes, too -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_IR_SHAREDSUMS_H
#define SSA_IR_SHAREDSUMS_H

#include "ssa/IR/SSA.h"

namespace mlir::ssa {

/// A `route` with a softmax, and attention to the same keys with the same logits: its lse are the logarithms of the sums of the softmax.
struct SharedSums {
  /// A decision of `ssa-fuse`, or one written by hand, as a unit attribute of an `ssa.route`: its sums are those of attention before it.
  static constexpr StringLiteral attrName = "ssa.shared_sums";

  /// The first attention to all keys in the block whose sums are those of `op`. Failure where there is none; `reason` is told why attention with the same queries
  /// and keys is not.
  static FailureOr<SparseAttendOp> find(RouteOp op, llvm::function_ref<void(const Twine &)> reason);

  /// What `op` takes its sums from; null where it makes its own.
  static SparseAttendOp of(RouteOp op);

  /// Whether a `route` takes the sums of `op`.
  static bool areTakenFrom(SparseAttendOp op);
};

} // namespace mlir::ssa

#endif // SSA_IR_SHAREDSUMS_H
