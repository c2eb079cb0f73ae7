//===- AttendJoin.h - Attention that joins others ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_IR_ATTENDJOIN_H
#define SSA_IR_ATTENDJOIN_H

#include "ssa/IR/SSA.h"

namespace mlir::ssa {

/// A `merge` or `mix`, and the attention among its parts whose kernel can write its result: what that makes serves nothing else.
struct AttendJoin {
  /// Failure where part number `part` of `op` is not such attention; `reason` is told why.
  static FailureOr<AttendJoin> find(Operation *op, int64_t part, llvm::function_ref<void(const Twine &)> reason);
  /// Failure where there is no kernel that makes all of these parts.
  static FailureOr<AttendJoin> find(Operation *op, int64_t part, ArrayRef<int64_t> with, llvm::function_ref<void(const Twine &)> reason);

  /// The `merge` or `mix` that the kernel of an op makes, if any.
  static std::optional<AttendJoin> of(SparseAttendOp op);

  /// Outputs of the parts of a `merge` or `mix` and what weighs them, in turn.
  static OperandRange getParts(Operation *op);
  OperandRange getParts() const { return getParts(op); }
  /// Null if there are none.
  Value getSinkLogits() const;

  /// The part that is `attend`, and the others that the kernel makes.
  unsigned getPart() const { return parts[llvm::find(attends, attend) - attends.begin()]; }
  SmallVector<int64_t> getOtherParts() const;
  /// Whether one kernel can make all parts by the schedules that they have, or by this one.
  LogicalResult verifySchedules(llvm::function_ref<void(const Twine &)> reason) const;
  LogicalResult verifySchedule(ScheduleAttr schedule, llvm::function_ref<void(const Twine &)> reason) const;
  /// Queries that share a list in every part that has lists for some of them; 0 if there are none such.
  int64_t getQueryBlock() const;

  Operation *op; // MergeOp or MixOp
  /// What the kernel makes, in the order in which it does; the last of them in the pattern is `attend`.
  SmallVector<unsigned> parts;
  SmallVector<SparseAttendOp> attends;
  SparseAttendOp attend;
};

} // namespace mlir::ssa

#endif // SSA_IR_ATTENDJOIN_H
