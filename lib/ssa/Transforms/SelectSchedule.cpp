//===- SelectSchedule.cpp - ssa-select-schedule ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/Conversion/Passes.h"
#include "ssa/IR/SSA.h"
#include "ssa/Transforms/Passes.h"
#include <algorithm>

namespace mlir::ssa {
#define GEN_PASS_DEF_SSASELECTSCHEDULEPASS
#include "ssa/Transforms/Passes.h.inc"
} // namespace mlir::ssa

using namespace mlir;
using namespace mlir::ssa;

/// The schedule for tensor memory; none if its tiles do not fit. A tile has 128 rows or two times as many.
static ScheduleAttr selectTensorSchedule(SparseAttendOp op, LoopOrder order, TargetAttr target) {
  int64_t dim = op.getQuery().getType().getDimSize(3), valueDim = op.getOutput().getType().getDimSize(3), widest = std::max(dim, valueDim);
  bool isTall = ScheduleAttr::getRowsPerList(op).value_or(256) >= 256 && widest <= 128 && op.getScore().empty();
  auto make = [&](int64_t keys, int64_t stages) {
    return ScheduleAttr::get(op.getContext(), order, Instruction::tcgen05, isTall ? 256 : 128, keys, stages, /*split=*/1, Partials::f32);
  };
  // The most keys a step for which two stages fit; more stages where there is room.
  for (int64_t keys : {64, 32, 16}) {
    ScheduleAttr best = make(keys, 2);
    if (best.getSharedBytes(op) > target.sharedMemoryBytes())
      continue;
    for (int64_t stages : {3, 4})
      if (ScheduleAttr more = make(keys, stages);
          more.getSharedBytes(op) <= target.sharedMemoryBytes() && more.getBlocksPerSM(op, target) >= best.getBlocksPerSM(op, target))
        best = more;
    return best;
  }
  return {};
}

/// The choice follows what docs/kernels.md measured: tall tiles read keys and values for more rows, long steps synchronise less often;
/// rows that are not there cost as much as others, and so do steps that large blocks do not fill.
static ScheduleAttr selectSchedule(SparseAttendOp op, TargetAttr target) {
  int64_t dim = op.getQuery().getType().getDimSize(3), valueDim = op.getOutput().getType().getDimSize(3), widest = std::max(dim, valueDim);
  Instruction instruction = target.hasWGMMA() ? Instruction::wgmma : Instruction::mma_sync;
  int64_t rowsPerList = ScheduleAttr::getRowsPerList(op).value_or(128);
  auto ignore = [](const Twine &) {};
  LoopOrder order = succeeded(ScheduleAttr::verifyOrder(LoopOrder::head_packed, op, ignore)) ? LoopOrder::head_packed : LoopOrder::shared_list;
  if (ScheduleAttr tensor = target.hasTCGen05() ? selectTensorSchedule(op, order, target) : ScheduleAttr())
    return tensor;
  auto make = [&](Instruction instruction, int64_t rows, int64_t keys, int64_t stages) {
    return ScheduleAttr::get(op.getContext(), order, instruction, rows, keys, stages, /*split=*/1, Partials::f32);
  };
  auto schedule = [&](int64_t rows, int64_t keys, int64_t stages) { return make(instruction, rows, keys, stages); };
  // A list of few rows gets one warp: many blocks fit, and each goes its own way. Wider heads would not leave registers for that.
  constexpr int64_t rowsOfWarp = 16;
  if (rowsPerList <= rowsOfWarp && widest <= 128)
    return make(Instruction::mma_sync, rowsOfWarp, /*tile_keys=*/16, /*stages=*/4);
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
      auto refuse = [&](const Twine &reason) { op.emitOpError() << reason; };
      return failed(ScheduleAttr::of(op).verifyFor(op, target, refuse)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
