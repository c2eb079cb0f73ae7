//===- SelectChain.h - What leads from routes to selections -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_IR_SELECTCHAIN_H
#define SSA_IR_SELECTCHAIN_H

#include "ssa/IR/SSA.h"

namespace mlir::ssa {

/// A `topk` with the ops that make its scores, which serve nothing else: a `route`, and any number of `rebin` and of structured ops that
/// work score by score. A row of the selection needs only some of the rows of each, so that all can be done for some rows at a time.
struct SelectChain {
  struct Link {
    Operation *op;       // RouteOp, RebinOp or LinalgOp
    Value scores;        // that it makes others of; null for the route
    int64_t rowsPerRow;  // of its scores, for a row of the selection
  };

  /// Failure where there is no such chain; `reason` is told why.
  static FailureOr<SelectChain> find(TopKOp op, llvm::function_ref<void(const Twine &)> reason);

  TopKOp topk;
  SmallVector<Link> links; // the route first
  /// The first row of a part is a multiple of this, as lists serve so many rows.
  int64_t rowStep = 1;
};

} // namespace mlir::ssa

#endif // SSA_IR_SELECTCHAIN_H
