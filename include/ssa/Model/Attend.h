//===- Attend.h - Schedules of attention and their times -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_MODEL_ATTEND_H
#define SSA_MODEL_ATTEND_H

#include "ssa/IR/AttendJoin.h"
#include "ssa/IR/ForcedBlocks.h"
#include "ssa/IR/Geometry.h"
#include "ssa/Model/Model.h"

namespace mlir::ssa {

/// An attention op with all sizes.
struct AttendProblem {
  AttendProblem(SparseAttendOp op, AssumedSizes &sizes);

  SparseAttendOp op;
  int64_t batch, heads, dim, valueDim, cells;
  Geometry geometry;
  BlocksAttr rows; // that keys stand for
  bool hasLists;
  /// Of lists, where there are any: blocks of so many keys, so many to a list, for so many queries (all of them: `isShared`). Where the kernel has other parts whose
  /// lists are for fewer queries, so are its tiles.
  int64_t keyBlock = 1, width = 0, queryBlock = 1;
  bool isShared = true;
  double agreement;
  int64_t elementBytes;
  int64_t joinedBytes = 0; // of the rows of other parts that the kernel joins with its own
  std::optional<ForcedBlocks> forced; // blocks that are attended to apart, where the schedule is one for that

  int64_t getGroup() const { return heads / cells; }
  /// Query and head pairs that share a list; none if all queries share one.
  std::optional<int64_t> getRowsPerList() const;
  /// Keys that the mask allows to one of `count` neighbouring queries, averaged over the sequence.
  double getAllowedKeys(int64_t count) const;
  /// Keys that a list of `count` queries leads to, averaged over the sequence.
  double getKeysPerList(int64_t count) const;
  /// Different keys in the lists of `count` neighbouring queries that have one each, averaged over the sequence.
  double getUnion(int64_t count) const;
  /// Blocks of a list that are attended to apart by a schedule.
  int64_t getBlocksApart(ScheduleAttr schedule) const { return forced && ForcedBlocks::canBeApart(op, schedule) ? forced->count() : 0; }
  /// Whether lists that agree as they are taken to have the second one of two schedules.
  bool agree(AgreeingAttr agreeing) const { return 100 * agreement >= agreeing.getPercent(); }
  /// FLOP of the products that are wanted: of pairs of a query and a key that it attends to.
  double getUsefulFlop() const;
  double getFlopPerPair() const { return 2.0 * (dim + valueDim); }

private:
  double average(llvm::function_ref<double(int64_t first, int64_t last)> f, int64_t count) const;
};

/// Parts of a `merge` or `mix` that one kernel makes.
struct JoinedProblem {
  JoinedProblem(const AttendJoin &join, AssumedSizes &sizes);

  AttendJoin join;
  SmallVector<AttendProblem, 2> sources; // the first has what is joined
};

/// The schedule with as many polynomials for exponentials as make steps shortest: some where the special-function units take longest.
ScheduleAttr withBestPolynomials(const AttendProblem &problem, ScheduleAttr schedule, TargetAttr target);

/// A schedule that an op can have, and how long it would take with all its kernels.
struct RatedSchedule {
  ScheduleAttr schedule;
  Prediction prediction;
  unsigned number; // in the order of the enumeration
};

/// All schedules that are worth a look: those the target can run, whose registers suffice, whose tiles are no larger than what the op
/// has to fill them, and whose steps are split where there are few tiles. The order is fixed.
SmallVector<ScheduleAttr> enumerateSchedules(const AttendProblem &problem, TargetAttr target);

/// What docs/kernels.md measured to be best; taken where the model knows nothing that is better by more than its error.
ScheduleAttr getMeasuredSchedule(SparseAttendOp op, TargetAttr target);

/// The time of the kernel that attends.
Prediction predictAttend(const AttendProblem &problem, ScheduleAttr schedule, TargetAttr target);
Prediction predictAttend(const JoinedProblem &problem, ScheduleAttr schedule, TargetAttr target);

/// That of the kernel that attends to blocks apart, and adds outputs over the others.
Prediction predictApart(const AttendProblem &problem, ScheduleAttr schedule, TargetAttr target);

/// The same with the other kernels of its order.
RatedSchedule rateSchedule(const AttendProblem &problem, ScheduleAttr schedule, TargetAttr target);

/// What the kernels of a schedule cost where they are launched and leave at once.
double getIdleSeconds(const AttendProblem &problem, ScheduleAttr schedule);

/// All of `enumerateSchedules`, the shortest time first.
SmallVector<RatedSchedule> rateSchedules(const AttendProblem &problem, TargetAttr target);

/// Whether the blocks that all lists of an op have are predicted to be attended to faster apart, by its schedules.
bool isFasterApart(const AttendProblem &problem, TargetAttr target);

/// What the fastest kernel without lists would take; nothing where there are none, or the keys are gathered by them.
std::optional<Prediction> predictDense(SparseAttendOp op, AssumedSizes &sizes, TargetAttr target);

/// The measured schedule, unless another is predicted to be faster by more than the model is wrong, as far as that is known for the chip.
ScheduleAttr chooseSchedule(const AttendProblem &problem, TargetAttr target);

/// A schedule for lists that agree in less than `percent`, and one for others.
struct ChoiceOnDevice {
  ScheduleAttr schedule;
  AgreeingAttr agreeing;
};

/// What the device is to choose from, where nobody knows how much lists agree. Fails with a reason where that does not pay: a phrase about the op.
FailureOr<ChoiceOnDevice> chooseOnDevice(const AttendProblem &problem, TargetAttr target, llvm::function_ref<void(const Twine &reason)> refuse);

/// The schedule of the op that is used for lists that agree as they are taken to.
ScheduleAttr getUsedSchedule(const AttendProblem &problem);

/// The order without a union that an op has.
LoopOrder getPlainOrder(SparseAttendOp op);

/// One kernel for parts of a `merge` or `mix`, and its schedule, but for the order, which lists make.
struct SharedKernel {
  AttendJoin join;
  ScheduleAttr schedule;
  double seconds;
};

/// The fastest of the schedules that the parts have, as far as all can have it; those of `fixed` ops are not to change. Fails with a reason.
FailureOr<SharedKernel> chooseSharedSchedule(const AttendJoin &join, const DenseSet<Operation *> &fixed, AssumedSizes &sizes, TargetAttr target,
                                             llvm::function_ref<void(const Twine &)> refuse);
/// The kernel of `join`, which may make several parts, with one more. Fails with a reason where that is not possible or does not pay.
FailureOr<SharedKernel> shareKernel(const AttendJoin &join, int64_t part, const DenseSet<Operation *> &fixed, AssumedSizes &sizes, TargetAttr target,
                                    llvm::function_ref<void(const Twine &)> refuse);

/// What lists agree in that have little in common, and much.
inline constexpr double leastAgreement = 0, mostAgreement = 0.9;

/// The most registers that a thread which multiplies can have.
int64_t getRegisterBound(SparseAttendOp op, ScheduleAttr schedule, TargetAttr target);

/// What tuning calls an op: all that a schedule may depend on, but for sizes and chip.
std::string getTuningKey(SparseAttendOp op);

/// By how much a prediction must be better than the one for the measured schedule to be preferred.
inline constexpr double modelMargin = 0.1;

} // namespace mlir::ssa

#endif // SSA_MODEL_ATTEND_H
