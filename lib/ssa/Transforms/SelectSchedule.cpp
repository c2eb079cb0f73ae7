//===- SelectSchedule.cpp - ssa-select-schedule ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/Conversion/Passes.h"
#include "ssa/IR/SSA.h"
#include "ssa/Model/Tuning.h"
#include "ssa/Transforms/Passes.h"
#include "llvm/Support/Format.h"

namespace mlir::ssa {
#define GEN_PASS_DEF_SSASELECTSCHEDULEPASS
#include "ssa/Transforms/Passes.h.inc"
} // namespace mlir::ssa

using namespace mlir;
using namespace mlir::ssa;

/// Lists that select most of what a query sees cost more than they save.
static void remarkIfDenseIsFaster(const AttendProblem &problem, AssumedSizes &sizes, ScheduleAttr schedule, TargetAttr target) {
  SparseAttendOp op = problem.op;
  std::optional<Prediction> dense = predictDense(op, sizes, target);
  double sparse = rateSchedule(problem, schedule, target).prediction.seconds;
  if (!dense || dense->seconds >= sparse)
    return;
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "would be faster without its lists: predicted " << llvm::format("%.3g", dense->seconds * 1e3) << " ms dense, " << llvm::format("%.3g", sparse * 1e3)
     << " ms at lists, for " << problem.geometry.queries << " queries and " << problem.geometry.tokens << " tokens";
  op.emitRemark(text);
}

namespace {
struct SelectSchedule : ssa::impl::SSASelectSchedulePassBase<SelectSchedule> {
  using SSASelectSchedulePassBase::SSASelectSchedulePassBase;

  void runOnOperation() override {
    auto emitError = [&] { return getOperation()->emitError(); };
    FailureOr<Assumptions> assumed = Assumptions::parse(sizesText, agreement, emitError);
    if (failed(assumed))
      return signalPassFailure();
    assumptions = *assumed;
    if (!tuningFile.empty()) {
      FailureOr<Tuning> read = Tuning::read(tuningFile, &getContext(), emitError);
      if (failed(read))
        return signalPassFailure();
      tuning = std::move(*read);
    }
    SmallVector<SparseAttendOp> ops;
    getOperation()->walk([&](SparseAttendOp op) { ops.push_back(op); });
    for (SparseAttendOp op : ops)
      if (ScheduleAttr::of(op))
        written.insert(op);
    for (SparseAttendOp op : ops)
      if (failed(decide(op, TargetAttr::of(getOperation()))))
        return signalPassFailure();
    getOperation()->walk([&](Operation *op) {
      if (FusedAttendAttr::of(op))
        shareKernels(op, TargetAttr::of(getOperation()));
    });
  }

private:
  LogicalResult decide(SparseAttendOp op, TargetAttr target) {
    if (!target)
      return op.emitOpError("has no target; run 'ssa-attach-target'");
    ScheduleAttr written = ScheduleAttr::of(op);
    if (!takesTensorCores(op)) {
      if (!written)
        return success();
      return op.emitOpError() << "has '" << ScheduleAttr::attrName() << "', but its kernel is one on CUDA cores, as operands are f32, of mixed types or of odd head dims";
    }
    if (Attribute said = op->getAttr("ssa.agreement")) {
      auto share = dyn_cast<FloatAttr>(said);
      if (!share || !(share.getValueAsDouble() >= 0 && share.getValueAsDouble() <= 1))
        return op.emitOpError("expected 'ssa.agreement' to be a share in 0.0 .. 1.0, but got ") << said;
    }
    AssumedSizes sizes(assumptions);
    AttendProblem problem(op, sizes);
    ScheduleAttr schedule = written ? written : tuning.find(problem, target);
    if (!schedule)
      schedule = leaveToDevice(problem, target);
    if (!schedule)
      schedule = chooseSchedule(problem, target);
    auto refuse = [&](const Twine &reason) { op.emitOpError() << reason; };
    AgreeingAttr agreeing = AgreeingAttr::of(op);
    if (failed(schedule.verifyFor(op, target, refuse)) || (agreeing && failed(agreeing.verifyFor(op, target, refuse))))
      return failure();
    op->setAttr(ScheduleAttr::attrName(), schedule);
    if (isFasterApart(problem, target))
      op->setAttr(ForcedBlocks::attrName, UnitAttr::get(op.getContext()));
    remarkIfDenseIsFaster(problem, sizes, getUsedSchedule(problem), target);
    return success();
  }

  /// The kernel that makes a `merge` or `mix` makes as many of its parts as pays.
  void shareKernels(Operation *op, TargetAttr target) {
    FusedAttendAttr fused = FusedAttendAttr::of(op);
    auto ignore = [](const Twine &) {};
    FailureOr<AttendJoin> join = AttendJoin::find(op, fused.getPart(), fused.getWith(), ignore);
    if (failed(join) || !llvm::all_of(join->attends, takesTensorCores)) // what is written and wrong is told when kernels are made
      return;
    AssumedSizes sizes(assumptions);
    if (!fused.getWith().empty()) {
      if (FailureOr<SharedKernel> kernel = chooseSharedSchedule(*join, written, sizes, target, ignore); succeeded(kernel))
        setKernel(*kernel);
      return;
    }
    for (size_t part = 0; part < join->getParts().size() / 2; ++part) {
      auto attend = join->getParts()[2 * part].getDefiningOp<SparseAttendOp>();
      if (!attend || attend == join->attend || !takesTensorCores(attend))
        continue;
      FailureOr<SharedKernel> kernel = shareKernel(*join, part, written, sizes, target, [&](const Twine &why) { op->emitRemark("leaves a part to another kernel: ") << why; });
      if (failed(kernel))
        continue;
      setKernel(*kernel);
      join = kernel->join;
    }
  }

  /// An order is what the lists of each make of it.
  void setKernel(const SharedKernel &kernel) {
    for (SparseAttendOp attend : kernel.join.attends)
      attend->setAttr(ScheduleAttr::attrName(), kernel.schedule.withOrder(getPlainOrder(attend)));
    kernel.join.op->setAttr(FusedAttendAttr::attrName(), FusedAttendAttr::get(&getContext(), kernel.join.getPart(), kernel.join.getOtherParts()));
  }

  /// Where that is wanted and nobody says how much lists agree: gives the one schedule, and the op has the other one for lists that do.
  ScheduleAttr leaveToDevice(const AttendProblem &problem, TargetAttr target) {
    SparseAttendOp op = problem.op;
    bool isWanted = op->hasAttr(chooseAtRunTimeAttrName);
    if (AgreeingAttr::of(op) || !(isWanted || chooseAtRunTime))
      return {};
    if (op->hasAttr("ssa.agreement") || assumptions.agreement >= 0)
      return {}; // it is known
    FailureOr<ChoiceOnDevice> choice = chooseOnDevice(problem, target, [&](const Twine &reason) {
      if (isWanted)
        op.emitRemark("is not chosen at run time: ") << reason;
    });
    if (failed(choice))
      return {};
    op->setAttr(AgreeingAttr::attrName(), choice->agreeing);
    return choice->schedule;
  }

  DenseSet<Operation *> written; // attention with a schedule in the source
  Assumptions assumptions;
  Tuning tuning;
};
} // namespace
