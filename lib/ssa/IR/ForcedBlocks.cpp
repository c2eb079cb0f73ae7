//===- ForcedBlocks.cpp - Blocks that every list has ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/IR/ForcedBlocks.h"
#include <limits>

using namespace mlir;
using namespace mlir::ssa;

static bool isCausal(std::optional<MaskAttr> mask) { return mask && mask->getCausal() && !mask->getWindow(); }

/// Why lists of `topk` do not have what it forces at places that are known, or the queries of `attend` do not see it; empty if nothing is in the way.
static std::string getObstacle(SparseAttendOp attend, TopKOp topk) {
  SelectionType type = topk.getType();
  if (topk.getWithin() || topk.getTopP() || topk.getThreshold())
    return "is selected by more than scores";
  if (topk.getLocalBlocks() == 0)
    return "lacks the query's own block, unless it is chosen";
  if (type.getQueryBlock() != 1 || type.getDimSize(2) == 1)
    return "is for several queries";
  if (!isCausal(topk.getMask()) || !isCausal(attend.getMask()))
    return "is of other keys than those before the query";
  if (topk.getTokens() != attend.getKey() || attend.getTokens() || attend.isGathered())
    return "is of other tokens";
  if (attend.getCells() != attend.getKey().getType().getDimSize(1))
    return "is for some of the heads that read the same keys";
  int64_t forced = topk.getInitBlocks() + topk.getLocalBlocks();
  if (forced * type.getKeyBlock() > std::numeric_limits<int32_t>::max())
    return "has blocks of too many keys";
  return forced < type.getWidth() ? "" : "has no other blocks";
}

FailureOr<ForcedBlocks> ForcedBlocks::find(SparseAttendOp op, llvm::function_ref<void(const Twine &)> reason) {
  auto topk = op.getSelections().size() == 1 ? op.getSelections().front().getDefiningOp<TopKOp>() : nullptr;
  if (!topk || topk.getInitBlocks() + topk.getLocalBlocks() == 0) {
    reason("no 'ssa.topk' forces blocks into its lists");
    return failure();
  }
  if (std::string obstacle = getObstacle(op, topk); !obstacle.empty()) {
    reason("a list " + obstacle);
    return failure();
  }
  SelectionType type = topk.getType();
  int64_t init = topk.getInitBlocks(), local = topk.getLocalBlocks();
  return ForcedBlocks{init, local, type.getWidth() - init - local, type.getKeyBlock()};
}

std::optional<ForcedBlocks> ForcedBlocks::of(SparseAttendOp op) {
  if (!op->hasAttr(attrName))
    return std::nullopt;
  FailureOr<ForcedBlocks> found = find(op, [](const Twine &) {});
  return succeeded(found) ? std::optional(*found) : std::nullopt;
}

bool ForcedBlocks::canBeApart(SparseAttendOp op, ScheduleAttr schedule) {
  constexpr int64_t most = 128; // else registers do not suffice
  int64_t columns = op.getOutput().getType().getDimSize(3);
  return schedule.getOrder() == LoopOrder::key_outer && schedule.getInstruction() == Instruction::wgmma && schedule.getPartials() == Partials::bf16 &&
         op.getQuery().getType().getDimSize(3) <= most && columns <= most && columns % 32 == 0;
}

LogicalResult ForcedBlocks::verify(SparseAttendOp op, llvm::function_ref<void(const Twine &)> reason) {
  if (failed(find(op, reason)))
    return failure();
  AgreeingAttr agreeing = AgreeingAttr::of(op);
  ScheduleAttr schedule = ScheduleAttr::of(op);
  if ((schedule && canBeApart(op, schedule)) || (agreeing && canBeApart(op, agreeing.getSchedule())))
    return success();
  reason("no schedule has 'order = key_outer', 'instruction = wgmma' and 'partials = bf16', for heads of up to 128 columns, of values a multiple of 32");
  return failure();
}
