//===- SSACanonicalization.cpp - Local folds ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Only facts that one op and its operands show; whatever needs a cost or a target is a pass.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"
#include "ssa/IR/SSA.h"

using namespace mlir;
using namespace mlir::ssa;

/// Sorting what is sorted.
OpFoldResult SortOp::fold(FoldAdaptor) { return getInput().getType() == getType() ? getInput() : Value(); }

/// Sorting what is sorted already, into another width.
LogicalResult SortOp::canonicalize(SortOp op, PatternRewriter &rewriter) {
  auto inner = op.getInput().getDefiningOp<SortOp>();
  if (!inner)
    return rewriter.notifyMatchFailure(op, "the input is not sorted by an 'ssa.sort'");
  // The type in between may be the only one that agrees with both.
  if (failed(verifyCompatibleShape(op.getType().getShape().drop_back(),
                                   inner.getInput().getType().getShape().drop_back())))
    return rewriter.notifyMatchFailure(op, "the sizes contradict each other");
  rewriter.modifyOpInPlace(op, [&] { op.getInputMutable().assign(inner.getInput()); });
  return success();
}

/// The union with itself or with an empty list is a sort.
LogicalResult UnionOp::canonicalize(UnionOp op, PatternRewriter &rewriter) {
  auto isEmpty = [](Value v) { return cast<SelectionType>(v.getType()).getWidth() == 0; };
  Value only;
  if (op.getLhs() == op.getRhs() || isEmpty(op.getRhs()))
    only = op.getLhs();
  else if (isEmpty(op.getLhs()))
    only = op.getRhs();
  else
    return rewriter.notifyMatchFailure(op, "both lists count");
  rewriter.replaceOpWithNewOp<SortOp>(op, op.getType(), only);
  return success();
}

/// There and back gives the same set; `to_indices` of `from_indices` need not give the same numbers.
OpFoldResult FromIndicesOp::fold(FoldAdaptor) {
  auto source = getIndices().getDefiningOp<ToIndicesOp>();
  return source && source.getSelection().getType() == getType() ? source.getSelection() : Value();
}

/// Gathering an empty list gives no rows.
LogicalResult GatherOp::canonicalize(GatherOp op, PatternRewriter &rewriter) {
  if (op.getSelection().getType().getWidth() != 0)
    return rewriter.notifyMatchFailure(op, "the list is not empty");
  ReifiedRankedShapedTypeDims shapes;
  if (failed(op.reifyResultShapes(rewriter, shapes)))
    return rewriter.notifyMatchFailure(op, "the sizes are not known here");
  // The sizes of operands may be static where the result's are not.
  Value empty = tensor::EmptyOp::create(rewriter, op.getLoc(), shapes.front(), op.getType().getElementType());
  if (empty.getType() != op.getType())
    empty = tensor::CastOp::create(rewriter, op.getLoc(), op.getType(), empty);
  rewriter.replaceOp(op, empty);
  return success();
}

/// Merging one attention state gives it back, if it is one: an op of ours leaves 0 where the lse is -inf, anything else
/// may not.
LogicalResult MergeOp::canonicalize(MergeOp op, PatternRewriter &rewriter) {
  if (op.getParts().size() != 2 || op.getSinkLogits())
    return rewriter.notifyMatchFailure(op, "more than one part");
  Value output = op.getParts()[0], lse = op.getParts()[1];
  Operation *source = output.getDefiningOp();
  if (!isa_and_nonnull<SparseAttendOp, MergeOp>(source) || source->getResult(0) != output ||
      source->getResult(1) != lse)
    return rewriter.notifyMatchFailure(op, "the part is not the result of one attention op");
  if (output.getType() != op.getOutput().getType() || lse.getType() != op.getLse().getType())
    return rewriter.notifyMatchFailure(op, "the types differ");
  rewriter.replaceOp(op, {output, lse});
  return success();
}

/// Single tokens are what no `blocks` means.
template <typename OpT>
static LogicalResult dropDefaultBlocks(OpT op, PatternRewriter &rewriter) {
  if (!op.getBlocks() || !op.getBlocks()->isTokens())
    return rewriter.notifyMatchFailure(op, "no attribute is at its default");
  rewriter.modifyOpInPlace(op, [&] { op.removeBlocksAttr(); });
  return success();
}

LogicalResult RouteOp::canonicalize(RouteOp op, PatternRewriter &rewriter) { return dropDefaultBlocks(op, rewriter); }
LogicalResult SparseAttendOp::canonicalize(SparseAttendOp op, PatternRewriter &rewriter) {
  return dropDefaultBlocks(op, rewriter);
}
