//===- ForcedBlocks.h - Blocks that every list has --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_IR_FORCEDBLOCKS_H
#define SSA_IR_FORCEDBLOCKS_H

#include "ssa/IR/SSA.h"

namespace mlir::ssa {

/// What a `topk` forces into all lists of attention, of which every query has one: the first blocks, and the last ones up to the query's own. So queries of one
/// block have them in common, and where a list has others, these stand behind the first `init` places, `others` of them at most.
struct ForcedBlocks {
  int64_t init, local, others;
  int64_t keyBlock;

  /// A decision of `ssa-select-schedule`, or one written by hand, as a unit attribute of an `ssa.sparse_attend`: in the order `key_outer` forced blocks
  /// are attended to by the kernel that joins what is made of the others.
  static constexpr StringLiteral attrName = "ssa.forced_apart";

  /// Failure where there are none; `reason` is told why, a phrase about the op.
  static FailureOr<ForcedBlocks> find(SparseAttendOp op, llvm::function_ref<void(const Twine &)> reason);
  /// The same where that is decided.
  static std::optional<ForcedBlocks> of(SparseAttendOp op);
  /// Whether kernels of a schedule can do so: partial outputs are added as threads have them, whose registers must suffice.
  static bool canBeApart(SparseAttendOp op, ScheduleAttr schedule);
  /// Whether the decision can be carried out, by one of the schedules of the op.
  static LogicalResult verify(SparseAttendOp op, llvm::function_ref<void(const Twine &)> reason);

  int64_t count() const { return init + local; }
  /// How the kernel is built that attends to them.
  static ScheduleAttr getSchedule(MLIRContext *context) {
    return ScheduleAttr::get(context, LoopOrder::shared_list, Instruction::wgmma, /*tile_rows=*/128, /*tile_keys=*/64, /*stages=*/2, /*split=*/1, Partials::f32, /*pair=*/false);
  }
  /// What a query sees of these blocks: the first, and a window that begins with a block, as if it ended at the end of the query's own.
  MaskAttr getMask(MLIRContext *context) const { return MaskAttr::get(context, /*causal=*/true, local * keyBlock, init * keyBlock); }
};

} // namespace mlir::ssa

#endif // SSA_IR_FORCEDBLOCKS_H
