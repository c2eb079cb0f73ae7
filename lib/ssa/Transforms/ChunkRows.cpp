//===- ChunkRows.cpp - ssa-chunk-rows -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/IR/Geometry.h"
#include "ssa/IR/SelectChain.h"
#include "ssa/Transforms/Passes.h"

namespace mlir::ssa {
#define GEN_PASS_DEF_SSACHUNKROWSPASS
#include "ssa/Transforms/Passes.h.inc"
} // namespace mlir::ssa

using namespace mlir;
using namespace mlir::ssa;

/// True if all scores of a chain are known to take no more than `bytes`.
static bool fits(const SelectChain &chain, int64_t bytes) {
  int64_t total = 0;
  for (const SelectChain::Link &link : chain.links) {
    auto type = cast<ShapedType>(link.op->getResult(0).getType());
    if (!type.hasStaticShape())
      return false;
    total += type.getNumElements() * (type.getElementTypeBitWidth() / 8);
  }
  return total <= bytes;
}

namespace {
struct ChunkRows : ssa::impl::SSAChunkRowsPassBase<ChunkRows> {
  using SSAChunkRowsPassBase::SSAChunkRowsPassBase;

  void runOnOperation() override {
    if (bytes < 1 || rows < 1) {
      getOperation()->emitError("expected 'bytes' and 'rows' of 'ssa-chunk-rows' to be at least 1, but got ")
          << bytes.getValue() << " and " << rows.getValue();
      return signalPassFailure();
    }
    getOperation()->walk([&](TopKOp op) {
      if (ChunkAttr::of(op) || !op.getScores().getDefiningOp() || op.getType().getWidth() == 0)
        return; // what is an argument is in memory anyway
      FailureOr<SelectChain> chain = SelectChain::find(op, [&](const Twine &reason) {
        op.emitRemark("selects from scores that are in memory as a whole: ") << reason;
      });
      // A kernel that scores and selects leaves rows that are too long for it to chunks.
      if (failed(chain) || (!FusedSelectAttr::of(op) && fits(*chain, bytes)))
        return;
      int64_t step = ssa::ceilDiv(rows, chain->rowStep) * chain->rowStep;
      op->setAttr(ChunkAttr::attrName(), ChunkAttr::get(&getContext(), bytes, step));
    });
  }
};
} // namespace
