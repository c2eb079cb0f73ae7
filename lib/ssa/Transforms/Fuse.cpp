//===- Fuse.cpp - ssa-fuse ------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/IR/SSA.h"
#include "ssa/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::ssa {
#define GEN_PASS_DEF_SSAFUSEPASS
#include "ssa/Transforms/Passes.h.inc"
} // namespace mlir::ssa

using namespace mlir;
using namespace mlir::ssa;

namespace {

/// Attention to gathered rows is attention at the list that they were gathered by: the kernel gathers them itself.
struct FuseGatherIntoAttend : OpRewritePattern<SparseAttendOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SparseAttendOp op, PatternRewriter &rewriter) const override {
    if (!op.isGathered())
      return rewriter.notifyMatchFailure(op, "the keys are not gathered");
    auto key = op.getKey().getDefiningOp<GatherOp>(), value = op.getValue().getDefiningOp<GatherOp>();
    if (!key || !value)
      return rewriter.notifyMatchFailure(op, "keys or values do not come from 'ssa.gather'");
    Value selection = op.getSelections().front();
    if (key.getSelection() != selection || value.getSelection() != selection)
      return rewriter.notifyMatchFailure(op, "they were gathered by another list");
    // Rows that the gathered tensor has as 0 because they do not exist must not exist for attention either.
    if (key.getInput() != op.getTokens() || !op.getBlocksOrTokens().isTokens())
      return rewriter.notifyMatchFailure(op, "'of' is not what the keys were gathered from");
    rewriter.modifyOpInPlace(op, [&] {
      op.getKeyMutable().assign(key.getInput());
      op.getValueMutable().assign(value.getInput());
      op.getTokensMutable().clear();
    });
    return success();
  }
};

struct Fuse : ssa::impl::SSAFusePassBase<Fuse> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FuseGatherIntoAttend>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
    getOperation()->walk([](SparseAttendOp op) {
      if (op.isGathered())
        op.emitRemark("keys are gathered before they are attended to: they do not come from an 'ssa.gather' of 'of' at the same list");
    });
  }
};

} // namespace
