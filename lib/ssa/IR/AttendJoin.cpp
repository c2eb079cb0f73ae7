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
  auto accept = [&](SparseAttendOp attend) { return FailureOr<AttendJoin>({op, {unsigned(part)}, {attend}, attend}); };
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

/// Queries that share a list, where there is one for some of them; 0 where one serves all or there is none.
static int64_t getQueryBlock(SparseAttendOp op) {
  auto selection = op.getSelections().empty() ? SelectionType() : cast<SelectionType>(op.getSelections().front().getType());
  return selection && selection.getDimSize(2) != 1 ? selection.getQueryBlock() : 0;
}

SmallVector<int64_t> AttendJoin::getOtherParts() const {
  SmallVector<int64_t> others;
  for (unsigned part : parts)
    if (part != getPart())
      others.push_back(part);
  return others;
}

int64_t AttendJoin::getQueryBlock() const {
  int64_t least = 0;
  for (SparseAttendOp attend : attends)
    if (int64_t block = ::getQueryBlock(attend); block && (!least || block < least))
      least = block;
  return least;
}

FailureOr<AttendJoin> AttendJoin::find(Operation *op, int64_t part, ArrayRef<int64_t> with, llvm::function_ref<void(const Twine &)> reason) {
  FailureOr<AttendJoin> join = find(op, part, reason);
  SmallVector<int64_t> all(with);
  all.push_back(part);
  llvm::sort(all);
  if (failed(join) || with.empty())
    return join;
  join->parts.clear();
  join->attends.clear();
  for (int64_t number : all) {
    auto refuse = [&](const Twine &why) {
      reason("part " + Twine(number) + " " + why);
      return failure();
    };
    FailureOr<AttendJoin> other = find(op, number, reason);
    if (failed(other))
      return failure();
    SparseAttendOp first = join->attend, attend = other->attend;
    if (llvm::is_contained(join->parts, unsigned(number)))
      return refuse("is there twice");
    if (attend.getQuery() != first.getQuery())
      return refuse("has other queries");
    if (attend.getCells() != first.getCells())
      return refuse("has " + Twine(attend.getCells()) + " pairs of key and selection heads, not " + Twine(first.getCells()));
    if (attend.valuesAreKeys() != first.valuesAreKeys())
      return refuse("has values " + Twine(attend.valuesAreKeys() ? "that are columns of its keys" : "of their own") + ", unlike the others");
    if (AgreeingAttr::of(attend))
      return refuse("has a schedule that the device chooses");
    join->parts.push_back(number);
    join->attends.push_back(attend);
  }
  int64_t queryBlock = join->getQueryBlock();
  for (auto [number, attend] : llvm::zip_equal(join->parts, join->attends))
    if (int64_t block = ::getQueryBlock(attend); block && block % queryBlock != 0) {
      reason("part " + Twine(number) + " has lists for " + Twine(block) + " queries, no multiple of " + Twine(queryBlock));
      return failure();
    }
  return join;
}

LogicalResult AttendJoin::verifySchedule(ScheduleAttr schedule, llvm::function_ref<void(const Twine &)> reason) const {
  if (parts.size() == 1)
    return success();
  std::string why;
  if (schedule.getOrder() != LoopOrder::shared_list && schedule.getOrder() != LoopOrder::head_packed)
    why = ("'order = " + stringifyLoopOrder(schedule.getOrder()) + "'").str();
  else if (schedule.getSplit() > 1)
    why = "'split'";
  else if (schedule.getPair())
    why = "'pair'";
  else if (schedule.usesTensorMemory() && isa<MixOp>(op))
    why = "'instruction = tcgen05' with a softmax for each";
  if (why.empty())
    return success();
  reason("no kernel for several parts has " + why);
  return failure();
}

LogicalResult AttendJoin::verifySchedules(llvm::function_ref<void(const Twine &)> reason) const {
  // An order is what lists make of it.
  auto getSchedule = [](SparseAttendOp attend) {
    ScheduleAttr schedule = ScheduleAttr::of(attend);
    return schedule && schedule.getOrder() == LoopOrder::head_packed ? schedule.withOrder(LoopOrder::shared_list) : schedule;
  };
  for (auto [part, attend] : llvm::zip_equal(parts, attends)) {
    ScheduleAttr schedule = getSchedule(attend);
    if (schedule && failed(verifySchedule(schedule, reason)))
      return failure();
    if (schedule == getSchedule(attends.front()))
      continue;
    reason("parts " + Twine(parts.front()) + " and " + Twine(part) + " have different schedules");
    return failure();
  }
  return success();
}

std::optional<AttendJoin> AttendJoin::of(SparseAttendOp op) {
  for (Operation *user : op.getOutput().getUsers())
    if (FusedAttendAttr fused = FusedAttendAttr::of(user)) {
      FailureOr<AttendJoin> join = find(user, fused.getPart(), fused.getWith(), [](const Twine &) {});
      if (succeeded(join) && llvm::is_contained(join->attends, op))
        return *join;
    }
  return std::nullopt;
}
