//===- Fuse.cpp - ssa-fuse ------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Fuse.h"
#include "ssa/IR/Geometry.h"
#include "ssa/IR/Regroup.h"
#include "ssa/IR/SelectChain.h"
#include "ssa/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include <numeric>

namespace mlir::ssa {
#define GEN_PASS_DEF_SSAFUSEPASS
#include "ssa/Transforms/Passes.h.inc"
} // namespace mlir::ssa

using namespace mlir;
using namespace mlir::ssa;

namespace {

/// Whether one kernel can score and select: decided for a `topk` and the `route` that its scores come from, regrouped by a `rebin` or not.
class ScoreAndSelect {
public:
  ScoreAndSelect(const SelectChain &chain, TargetAttr target, int64_t bytes)
      : topk(chain.topk), route(cast<RouteOp>(chain.links.front().op)), rebin(dyn_cast<RebinOp>(chain.links.back().op)), target(target),
        heads(route.getQuery().getType().getDimSize(1)), keyHeads(route.getKey().getType().getDimSize(1)),
        group(heads / route.getType().getDimSize(1)), headsPerKey(std::gcd(group, heads / keyHeads)) {
    // A complete row is the quickest to select a narrow list from; tokens are too many for that. Their selectors are called the fewer times the longer
    // stretches are, while regrouped scores are best selected from where they still are in the second-level cache.
    if (rebin)
      stretch = shortestStretch;
    else if (topk.getType().getWidth() > maxWidthOfRow || topk.getType().getKeyBlock() == 1)
      for (stretch = longestStretch; stretch > shortestStretch && getColumns(bytes) == 0;)
        stretch /= 2;
  }

  /// Why it cannot; empty if it can.
  std::string getReason() const;
  /// The longest rows for which the memory of all blocks takes no more than `bytes`; 0 if there are none.
  int64_t getColumns(int64_t bytes) const;

  int64_t stretch = 0; // of columns, in which rows are selected from; 0: a row is complete then

private:
  std::string getReasonOfRebin() const;

  static constexpr int64_t maxWidthOfRow = 64, shortestStretch = 2048, longestStretch = 4096;
  mutable TopKOp topk; // their accessors are not const
  mutable RouteOp route;
  mutable RebinOp rebin; // may be null
  TargetAttr target;
  int64_t heads, keyHeads, group, headsPerKey;
};

} // namespace

std::string ScoreAndSelect::getReasonOfRebin() const {
  if (!rebin)
    return "";
  if (int64_t queryBlock = rebin.getQueryBlock(); queryBlock != 1)
    return ("'ssa.rebin' joins the scores of " + Twine(queryBlock) + " queries").str();
  Regroup regroup(rebin);
  if (!regroup.divides(shortestStretch))
    return ("'ssa.rebin' makes windows of " + Twine(regroup.getWindow()) + " scores that begin every " + Twine(regroup.ratio) +
            ", of which steps of 64 are no multiple").str();
  return "";
}

std::string ScoreAndSelect::getReason() const {
  constexpr int64_t alignment = 16;
  Type query = route.getQuery().getType().getElementType(), key = route.getKey().getType().getElementType();
  int64_t rowBytes = route.getKey().getType().getDimSize(3) * key.getIntOrFloatBitWidth() / 8;
  if (!target.hasWGMMA() || !target.hasTMA())
    return ("'" + target.getChip() + "' has no 'wgmma'").str();
  if (topk.getTopP())
    return "'top_p' needs a whole row before it takes anything";
  if (route.getWithin() || topk.getWithin())
    return "keys under 'within' are not neighbours";
  if (route.getBound())
    return "a bound is made of two products";
  if (query != key || key.isF32())
    return "tensor cores do not take queries and keys of these types as they are";
  if (rowBytes % alignment != 0)
    return ("rows of keys have " + Twine(rowBytes) + " bytes, which is no multiple of " + Twine(alignment)).str();
  if (headsPerKey != group)
    return "a selection head has several key heads";
  return getReasonOfRebin();
}

int64_t ScoreAndSelect::getColumns(int64_t bytes) const {
  // Two warpgroups have 128 pairs of a query and a head each, with eight queries at least; there are two sets of their rows, or four of stretches.
  constexpr int64_t warpgroups = 2, pairs = 128, eight = 8, entryBytes = 4, step = 64;
  int64_t sets = stretch && !rebin ? 4 : 2;
  int64_t tiles = ssa::ceilDiv(group, pairs / eight), queries = pairs / ssa::ceilDiv(group, tiles) / eight * eight;
  int64_t bytesOfRow = bytes / (target.numSMs() * warpgroups * queries);
  if (!stretch)
    return bytesOfRow / (sets * entryBytes) / step * step;
  Regroup regroup = rebin ? Regroup(rebin) : Regroup();
  int64_t entries = FusedSelectAttr::getListEntries(topk.getType().getWidth(), regroup.getMaxListed(stretch, topk));
  bool fits = (sets * (stretch + regroup.before) + 2 * entries) * entryBytes <= bytesOfRow;
  return fits ? std::numeric_limits<int32_t>::max() : 0;
}

namespace {

struct Fuse : ssa::impl::SSAFusePassBase<Fuse> {
  using SSAFusePassBase::SSAFusePassBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateFuseGatherPatterns(patterns);
    populateFusePoolPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
    shareSums(getOperation()); // attention whose sums are taken is not joined later
    fuseAttends(getOperation());
    remarkPools(getOperation());
    getOperation()->walk([&](TopKOp op) { fuseIntoRoute(op); });
  }

  /// Scores that are there as a whole are what `ssa-chunk-rows` tells of.
  void fuseIntoRoute(TopKOp op) {
    TargetAttr target = TargetAttr::of(op);
    FailureOr<SelectChain> chain = SelectChain::find(op, [](const Twine &) {});
    if (!target || FusedSelectAttr::of(op) || op.getType().getWidth() == 0 || failed(chain))
      return;
    auto decline = [&](const Twine &reason) { op.emitRemark("is not scored and selected in one kernel: ") << reason; };
    for (const SelectChain::Link &link : ArrayRef(chain->links).drop_front())
      if (!isa<RebinOp>(link.op) || chain->links.size() > 2)
        return decline("'" + link.op->getName().getStringRef() + "' changes the scores");
    ScoreAndSelect kernel(*chain, target, bytes);
    int64_t columns = kernel.getColumns(bytes);
    if (std::string reason = kernel.getReason(); !reason.empty())
      return decline(reason);
    if (columns == 0)
      return decline("its scores need more than " + Twine(bytes.getValue()) + " bytes");
    bool splits = FusedSelectAttr::getMaxParts(op.getType().getWidth(), kernel.stretch) > 1; // there is no other way then
    int64_t leastColumns = splits ? 0 : std::min<int64_t>(minColumns, columns);
    op->setAttr(FusedSelectAttr::attrName(), FusedSelectAttr::get(&getContext(), leastColumns, columns, kernel.stretch));
  }
};

} // namespace
