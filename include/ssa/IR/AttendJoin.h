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

  /// The `merge` or `mix` that the kernel of an op makes, if any.
  static std::optional<AttendJoin> of(SparseAttendOp op);

  /// Outputs of the parts of a `merge` or `mix` and what weighs them, in turn.
  static OperandRange getParts(Operation *op);
  OperandRange getParts() const { return getParts(op); }
  /// Null if there are none.
  Value getSinkLogits() const;

  Operation *op; // MergeOp or MixOp
  unsigned part;
  SparseAttendOp attend;
};

} // namespace mlir::ssa

#endif // SSA_IR_ATTENDJOIN_H
