//===- SelectSchedule.cpp - ssa-select-schedule ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/Conversion/Passes.h"
#include "ssa/IR/SSA.h"
#include "ssa/Transforms/Passes.h"
#include <algorithm>
#include <numeric>

namespace mlir::ssa {
#define GEN_PASS_DEF_SSASELECTSCHEDULEPASS
#include "ssa/Transforms/Passes.h.inc"
} // namespace mlir::ssa

using namespace mlir;
using namespace mlir::ssa;

/// The rows that share a list: the queries of a block times the query heads that read the same keys. None if all queries share one.
static std::optional<int64_t> getRowsPerList(SparseAttendOp op) {
  if (op.getSelections().empty())
    return std::nullopt;
  auto selection = cast<SelectionType>(op.getSelections().front().getType());
  if (selection.getDimSize(2) == 1)
    return std::nullopt;
  int64_t cells = std::lcm(op.getKey().getType().getDimSize(1), selection.getHeads());
  return selection.getQueryBlock() * (op.getQuery().getType().getDimSize(1) / cells);
}

/// The choice follows what docs/kernels.md measured: tall tiles read keys and values for more rows, long steps synchronise less often;
/// rows that are not there cost as much as others, and so do steps that large blocks do not fill.
static ScheduleAttr selectSchedule(SparseAttendOp op, TargetAttr target) {
  int64_t dim = op.getQuery().getType().getDimSize(3), valueDim = op.getOutput().getType().getDimSize(3), widest = std::max(dim, valueDim);
  Instruction instruction = target.hasWGMMA() ? Instruction::wgmma : Instruction::mma_sync;
  int64_t rowsPerList = getRowsPerList(op).value_or(128);
  auto schedule = [&](int64_t rows, int64_t keys, int64_t stages) {
    return ScheduleAttr::get(op.getContext(), instruction, rows, keys, stages);
  };
  // A list of few rows gets one warp: many blocks fit, and each goes its own way. Wider heads would not leave registers for that.
  constexpr int64_t rowsOfWarp = 16;
  if (rowsPerList <= rowsOfWarp && widest <= 128)
    return ScheduleAttr::get(op.getContext(), Instruction::mma_sync, rowsOfWarp, /*tile_keys=*/16, /*stages=*/4);
  // Keys of such width leave room for few; groups of warps share the columns of the output.
  if (widest > 256)
    return schedule(64, op.valuesAreKeys() ? 64 : 32, 2);
  bool isTall = instruction == Instruction::wgmma && rowsPerList >= 128;
  // A step of 128 keys needs the registers that wider heads take for outputs, and score regions for what they compute with.
  ScheduleAttr tall = schedule(128, widest <= 128 && op.getScore().empty() ? 128 : 64, 2);
  if (isTall && tall.getSharedBytes(op) <= target.sharedMemoryBytes())
    return tall;
  ScheduleAttr three = schedule(64, 64, 3), two = schedule(64, 64, 2);
  // A third stage hides more latency, but not more than a second block on the multiprocessor.
  return three.getBlocksPerSM(op, target) >= two.getBlocksPerSM(op, target) && three.getSharedBytes(op) <= target.sharedMemoryBytes() ? three : two;
}

static LogicalResult verifySchedule(SparseAttendOp op, ScheduleAttr schedule, TargetAttr target) {
  if (schedule.getInstruction() == Instruction::wgmma && !target.hasWGMMA())
    return op.emitOpError() << "'instruction = wgmma' requires sm_90a, but the target is '" << target.getChip() << "'; use 'mma_sync'";
  constexpr int64_t maxThreads = 1024;
  if (int64_t threads = schedule.getThreads(op); threads > maxThreads)
    return op.emitOpError() << "'" << ScheduleAttr::attrName() << "' needs " << threads << " threads in a block, but " << target.getChip()
                            << " has " << maxThreads << "; lower 'tile_rows'";
  int64_t needed = schedule.getSharedBytes(op);
  if (needed > target.sharedMemoryBytes())
    return op.emitOpError() << "'" << ScheduleAttr::attrName() << "' needs " << needed << " bytes of shared memory, but " << target.getChip()
                            << " has " << target.sharedMemoryBytes() << "; lower 'stages', 'tile_keys' or 'tile_rows'";
  return success();
}

namespace {
struct SelectSchedule : ssa::impl::SSASelectSchedulePassBase<SelectSchedule> {
  void runOnOperation() override {
    TargetAttr target = TargetAttr::of(getOperation());
    WalkResult result = getOperation()->walk([&](SparseAttendOp op) {
      if (!target) {
        op.emitOpError("has no target; run 'ssa-attach-target'");
        return WalkResult::interrupt();
      }
      if (!takesTensorCores(op)) {
        if (!ScheduleAttr::of(op))
          return WalkResult::advance();
        op.emitOpError() << "has '" << ScheduleAttr::attrName() << "', but its kernel is one on CUDA cores, as operands are f32, of mixed types or of odd head dims";
        return WalkResult::interrupt();
      }
      if (!ScheduleAttr::of(op))
        op->setAttr(ScheduleAttr::attrName(), selectSchedule(op, target));
      return failed(verifySchedule(op, ScheduleAttr::of(op), target)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
