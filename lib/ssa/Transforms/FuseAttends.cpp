//===- FuseAttends.cpp - What ssa-fuse does with attention ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Fuse.h"
#include "ssa/Conversion/Passes.h"
#include "ssa/IR/AttendJoin.h"
#include "ssa/IR/Geometry.h"

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

} // namespace

void ssa::populateFuseGatherPatterns(RewritePatternSet &patterns) { patterns.add<FuseGatherIntoAttend>(patterns.getContext()); }

static int64_t getValueBytes(Value rows) { return getElementTypeOrSelf(rows).getIntOrFloatBitWidth() / 8; }

/// Whether a join takes less time in the kernel of a part than in one of its own. That would read the part, which had been written, as well as the others; where
/// attention stores its rows they are read more slowly, as the next step waits for it.
static bool pays(AttendJoin join) {
  constexpr double exposed = 1.5; // measured, docs/kernels.md
  int64_t others = 0, own = getValueBytes(join.attend.getOutput());
  for (size_t i = 0; i < join.getParts().size(); i += 2)
    others += i == 2 * join.parts.front() ? 0 : getValueBytes(join.getParts()[i]);
  return exposed * others < others + 2 * own;
}

/// The last part whose kernel can: what the others make is there then, and no op is moved further than it has to be.
static void fuseJoin(Operation *op) {
  if (!TargetAttr::of(op) || FusedAttendAttr::of(op))
    return;
  std::optional<AttendJoin> last;
  std::string why;
  int64_t count = AttendJoin::getParts(op).size() / 2;
  for (int64_t part = 0; part < count; ++part) {
    FailureOr<AttendJoin> join = AttendJoin::find(op, part, [&](const Twine &reason) { why += (why.empty() ? "" : "; ") + reason.str(); });
    if (failed(join))
      continue;
    if (!takesTensorCores(join->attend)) {
      why += (why.empty() ? "part " : "; part ") + std::to_string(part) + " is made on CUDA cores";
      continue;
    }
    if (!last || last->attend->isBeforeInBlock(join->attend))
      last = *join;
  }
  if (last && !pays(*last))
    op->emitRemark("is a kernel of its own: that reads so many parts faster than the kernel of one of them");
  else if (last)
    op->setAttr(FusedAttendAttr::attrName(), FusedAttendAttr::get(op->getContext(), last->parts.front(), ArrayRef<int64_t>()));
  else
    op->emitRemark("is a kernel of its own: ") << why;
}

void ssa::fuseAttends(ModuleOp module) {
  module.walk([](SparseAttendOp op) {
    if (op.isGathered())
      op.emitRemark("keys are gathered before they are attended to: they do not come from an 'ssa.gather' of 'of' at the same list");
  });
  module.walk([](Operation *op) {
    if (isa<MergeOp, MixOp>(op))
      fuseJoin(op);
  });
}
