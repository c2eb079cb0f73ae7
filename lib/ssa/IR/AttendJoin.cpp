//===- AttendJoin.cpp - Attention that joins others -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/IR/AttendJoin.h"
#include "ssa/IR/SharedSums.h"

using namespace mlir;
using namespace mlir::ssa;

OperandRange AttendJoin::getParts(Operation *op) {
  auto merge = dyn_cast<MergeOp>(op);
  return merge ? merge.getParts() : cast<MixOp>(op).getParts();
}

Value AttendJoin::getSinkLogits() const {
  auto merge = dyn_cast<MergeOp>(op);
  return merge ? merge.getSinkLogits() : Value();
}

FailureOr<AttendJoin> AttendJoin::find(Operation *op, int64_t part, llvm::function_ref<void(const Twine &)> reason) {
  auto refuse = [&](const Twine &why) -> FailureOr<AttendJoin> {
    reason("part " + Twine(part) + " " + why);
    return failure();
  };
  auto accept = [&](SparseAttendOp attend) { return FailureOr<AttendJoin>({op, unsigned(part), attend}); };
  OperandRange parts = getParts(op);
  int64_t count = parts.size() / 2;
  if (part < 0 || part >= count)
    return refuse("is none of " + Twine(count));
  auto attend = parts[2 * part].getDefiningOp<SparseAttendOp>();
  if (!attend || parts[2 * part] != attend.getOutput())
    return refuse("is not the output of an 'ssa.sparse_attend'");
  if (attend->getBlock() != op->getBlock())
    return refuse("is made in another block");
  if (!attend.getOutput().hasOneUse())
    return refuse("has an output that is used by others, too");
  if (OverlapAttr::of(attend))
    return refuse("is made for some queries at a time");
  if (SharedSums::areTakenFrom(attend))
    return refuse("has sums that an 'ssa.route' takes");
  // Everything that uses what the kernel makes stands behind the op that it is moved to.
  if (!isa<MergeOp>(op))
    return attend.getLse().use_empty() ? accept(attend) : refuse("has an lse that is used, too");
  if (parts[2 * part + 1] != attend.getLse())
    return refuse("is not weighed by its own lse");
  if (!attend.getLse().hasOneUse())
    return refuse("has an lse that is used by others, too");
  return accept(attend);
}

std::optional<AttendJoin> AttendJoin::of(SparseAttendOp op) {
  for (Operation *user : op.getOutput().getUsers())
    if (FusedAttendAttr fused = FusedAttendAttr::of(user)) {
      FailureOr<AttendJoin> join = find(user, fused.getPart(), [](const Twine &) {});
      if (succeeded(join) && join->attend == op)
        return *join;
    }
  return std::nullopt;
}
