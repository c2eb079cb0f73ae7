//===- SortSelection.cpp - ssa-sort-selection -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/IR/SSA.h"
#include "ssa/Transforms/Passes.h"

namespace mlir::ssa {
#define GEN_PASS_DEF_SSASORTSELECTIONPASS
#include "ssa/Transforms/Passes.h.inc"
} // namespace mlir::ssa

using namespace mlir;
using namespace mlir::ssa;

/// `selection` sorted, just before `op`.
static Value sortBefore(Operation *op, Value selection) {
  OpBuilder builder(op);
  auto type = cast<SelectionType>(selection.getType());
  auto sorted = SelectionType::get(op->getContext(), type.getShape(), type.getKeyBlock(), type.getQueryBlock(), /*sorted=*/true);
  return SortOp::create(builder, op->getLoc(), sorted, selection);
}

namespace {
struct SortSelection : ssa::impl::SSASortSelectionPassBase<SortSelection> {
  void runOnOperation() override {
    getOperation()->walk([&](SparseAttendOp op) {
      if (op.isGathered()) // rows lie in the order of the list
        return;
      for (OpOperand &operand : op.getSelectionsMutable()) {
        if (cast<SelectionType>(operand.get().getType()).getSorted())
          continue;
        operand.set(sortBefore(op, operand.get()));
        ++numSorted;
      }
    });
  }
};
} // namespace
