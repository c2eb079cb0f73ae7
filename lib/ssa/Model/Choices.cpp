//===- Choices.cpp - Which schedule an op gets ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/Model/Attend.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::ssa;

ScheduleAttr ssa::chooseSchedule(const AttendProblem &problem, TargetAttr target) {
  ScheduleAttr measured = getMeasuredSchedule(problem.op, target);
  if (!ChipRates::of(target).isMeasured)
    return measured;
  SmallVector<RatedSchedule> rated = rateSchedules(problem, target);
  if (rated.empty())
    return measured;
  bool isLegal = succeeded(measured.verifyFor(problem.op, target, [](const Twine &) {}));
  double limit = (1 - modelMargin) * rateSchedule(problem, measured, target).prediction.seconds;
  return isLegal && rated.front().prediction.seconds >= limit ? measured : rated.front().schedule;
}

ScheduleAttr ssa::getUsedSchedule(const AttendProblem &problem) {
  AgreeingAttr agreeing = AgreeingAttr::of(problem.op);
  return agreeing && problem.agree(agreeing) ? agreeing.getSchedule() : ScheduleAttr::of(problem.op);
}

bool ssa::isFasterApart(const AttendProblem &problem, TargetAttr target) {
  AttendProblem apart = problem;
  FailureOr<ForcedBlocks> forced = ForcedBlocks::find(problem.op, [](const Twine &) {});
  if (failed(forced) || !ChipRates::of(target).isMeasured)
    return false;
  apart.forced = *forced;
  constexpr double leastSaved = 1.25e-3; // that a kernel of 2500 instructions more is worth compiling
  auto isFaster = [&](ScheduleAttr schedule) {
    return ForcedBlocks::canBeApart(problem.op, schedule) &&
           rateSchedule(apart, schedule, target).prediction.seconds + leastSaved < rateSchedule(problem, schedule, target).prediction.seconds;
  };
  AgreeingAttr agreeing = AgreeingAttr::of(problem.op);
  return isFaster(ScheduleAttr::of(problem.op)) || (agreeing && isFaster(agreeing.getSchedule()));
}

/// The least percentage at which `agreeing` is predicted to be no slower; 100 if none is.
static int64_t findThreshold(AttendProblem problem, ScheduleAttr schedule, ScheduleAttr agreeing, TargetAttr target) {
  for (int64_t percent = 0; percent < 100; ++percent) {
    problem.agreement = percent / 100.0;
    if (rateSchedule(problem, agreeing, target).prediction.seconds <= rateSchedule(problem, schedule, target).prediction.seconds)
      return percent;
  }
  return 100;
}

FailureOr<ChoiceOnDevice> ssa::chooseOnDevice(const AttendProblem &problem, TargetAttr target, llvm::function_ref<void(const Twine &)> refuse) {
  auto fail = [&](const Twine &reason) {
    refuse(reason);
    return failure();
  };
  SparseAttendOp op = problem.op;
  if (!ChipRates::of(target).isMeasured)
    return fail("rates of '" + target.getChip() + "' have not been measured");
  if (op.isGathered() || !problem.getRowsPerList() || problem.width == 0)
    return fail("there are no lists of numbers that those of neighbouring queries may have, too");
  AttendProblem apart = problem, alike = problem;
  apart.agreement = leastAgreement;
  alike.agreement = mostAgreement;
  ScheduleAttr schedule = chooseSchedule(apart, target), agreeing = chooseSchedule(alike, target);
  if (schedule == agreeing)
    return fail("one schedule is the best for lists that agree and for those that do not");
  // What either schedule alone would lose where the other one is better, against what the model may be wrong by and what choosing costs.
  constexpr double lookSeconds = 15e-6; // the kernel that looks at lists
  auto getSeconds = [&](const AttendProblem &at, ScheduleAttr s) { return rateSchedule(at, s, target).prediction.seconds; };
  for (auto [at, better, other] : {std::tuple(&apart, schedule, agreeing), std::tuple(&alike, agreeing, schedule)}) {
    double seconds = getSeconds(*at, better), lost = getSeconds(*at, other) - seconds, cost = lookSeconds + getIdleSeconds(*at, other);
    if (lost < std::max(cost, modelMargin * seconds))
      return fail(llvm::formatv("schedules for lists that agree in {0:P0} and in {1:P0} differ by {2:f3} of {3:f3} ms, of which the choice takes {4:f3}", leastAgreement,
                                mostAgreement, lost * 1e3, seconds * 1e3, cost * 1e3));
  }
  return ChoiceOnDevice{schedule, AgreeingAttr::get(op.getContext(), findThreshold(problem, schedule, agreeing, target), agreeing)};
}
