//===- SortSelection.cpp - ssa-sort-selection -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/IR/SSA.h"
#include "ssa/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

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

/// `selection` with padding in the places of numbers that stand before already, just before `op`.
static Value dropRepeatsBefore(Operation *op, Value selection) {
  ImplicitLocOpBuilder b(op->getLoc(), op);
  auto type = cast<SelectionType>(selection.getType());
  RankedTensorType listType = type.getIndicesType();
  Value list = ToIndicesOp::create(b, listType, selection);
  // The last loop goes over the list that a number is in.
  AffineMap own = AffineMap::getMultiDimMapWithTargets(5, {0, 1, 2, 3}, b.getContext());
  AffineMap other = AffineMap::getMultiDimMapWithTargets(5, {0, 1, 2, 4}, b.getContext());
  SmallVector<utils::IteratorType> loops(5, utils::IteratorType::parallel);
  loops.back() = utils::IteratorType::reduction;
  auto body = [](OpBuilder &builder, Location loc, ValueRange args) {
    ImplicitLocOpBuilder b(loc, builder);
    Value isBefore = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, linalg::IndexOp::create(b, 4), linalg::IndexOp::create(b, 3));
    Value isSame = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, args[0], args[1]);
    Value none = arith::ConstantIntOp::create(b, b.getI32Type(), -1);
    linalg::YieldOp::create(b, arith::SelectOp::create(b, arith::AndIOp::create(b, isBefore, isSame), none, args[1]).getResult());
  };
  Value unique = linalg::GenericOp::create(b, TypeRange(listType), ValueRange(list), ValueRange(list), ArrayRef<AffineMap>{other, own}, loops, body)
                     .getResult(0);
  return FromIndicesOp::create(b, selection.getType(), unique);
}

namespace {
struct SortSelection : ssa::impl::SSASortSelectionPassBase<SortSelection> {
  void runOnOperation() override {
    getOperation()->walk([&](SparseAttendOp op) {
      for (OpOperand &operand : op.getSelectionsMutable()) {
        if (cast<SelectionType>(operand.get().getType()).getSorted())
          continue;
        if (op.isGathered()) { // rows lie in the order of the list
          operand.set(dropRepeatsBefore(op, operand.get()));
          continue;
        }
        operand.set(sortBefore(op, operand.get()));
        ++numSorted;
      }
    });
  }
};
} // namespace
