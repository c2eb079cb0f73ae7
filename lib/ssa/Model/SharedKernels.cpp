//===- SharedKernels.cpp - Which parts of a join one kernel makes ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parts of a `merge` or `mix` in one kernel: their outputs are not written and read again, queries are read once, and there is one launch less. But all have one
// tile and one way to multiply, which may be a worse one for some of them: so it is compared with the kernels that they would have.
//
//===----------------------------------------------------------------------===//

#include "ssa/Model/Attend.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::ssa;

/// Whether all parts can have a schedule, each in its order.
static bool isLegal(const AttendJoin &join, ScheduleAttr schedule, TargetAttr target) {
  auto ignore = [](const Twine &) {};
  return succeeded(join.verifySchedule(schedule, ignore)) && llvm::all_of(join.attends, [&](SparseAttendOp attend) {
    return succeeded(schedule.withOrder(getPlainOrder(attend)).verifyFor(attend, target, ignore));
  });
}

static ScheduleAttr getSchedule(SparseAttendOp attend) {
  ScheduleAttr schedule = ScheduleAttr::of(attend);
  return schedule.getOrder() == getPlainOrder(attend) ? schedule.withOrder(LoopOrder::shared_list) : schedule;
}

FailureOr<SharedKernel> ssa::chooseSharedSchedule(const AttendJoin &join, const DenseSet<Operation *> &fixed, AssumedSizes &sizes, TargetAttr target,
                                                  llvm::function_ref<void(const Twine &)> refuse) {
  JoinedProblem problem(join, sizes);
  std::optional<SharedKernel> best;
  for (SparseAttendOp candidate : join.attends) {
    ScheduleAttr schedule = getSchedule(candidate);
    bool isAllowed = llvm::all_of(join.attends, [&](SparseAttendOp attend) { return !fixed.contains(attend) || getSchedule(attend) == schedule; });
    if (!isAllowed || !isLegal(join, schedule, target))
      continue;
    double seconds = predictAttend(problem, schedule, target).seconds;
    if (!best || seconds < best->seconds)
      best = {join, schedule, seconds};
  }
  if (best)
    return *best;
  refuse("its attention has no schedule that one kernel could have for all");
  return failure();
}

/// The time of the kernel of an op and of those that its order needs besides.
static double getSeconds(SparseAttendOp attend, AssumedSizes &sizes, TargetAttr target) {
  return rateSchedule(AttendProblem(attend, sizes), ScheduleAttr::of(attend), target).prediction.seconds;
}

FailureOr<SharedKernel> ssa::shareKernel(const AttendJoin &join, int64_t part, const DenseSet<Operation *> &fixed, AssumedSizes &sizes, TargetAttr target,
                                         llvm::function_ref<void(const Twine &)> refuse) {
  int64_t main = join.getPart();
  SmallVector<int64_t> with = join.getOtherParts();
  with.push_back(part);
  FailureOr<AttendJoin> joined = AttendJoin::find(join.op, main, with, refuse);
  if (failed(joined))
    return failure();
  FailureOr<SharedKernel> kernel = chooseSharedSchedule(*joined, fixed, sizes, target, refuse);
  if (failed(kernel))
    return failure();
  auto attend = AttendJoin::getParts(join.op)[2 * part].getDefiningOp<SparseAttendOp>();
  double before = join.parts.size() > 1 ? predictAttend(JoinedProblem(join, sizes), ScheduleAttr::of(join.attend), target).seconds : getSeconds(join.attend, sizes, target);
  double apart = before + getSeconds(attend, sizes, target);
  if (kernel->seconds < apart)
    return kernel;
  refuse(llvm::formatv("with part {0} one kernel would take {1:f3} ms, two take {2:f3}", part, kernel->seconds * 1e3, apart * 1e3));
  return failure();
}
