//===- Explain.cpp - What the compiler does with a pattern ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/Target/Explain.h"
#include "ChipCompilation.h"
#include "Explanation.h"
#include "KernelAccess.h"
#include "PlanSizes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Transforms/Passes.h"
#include "ssa/Conversion/Passes.h"
#include "ssa/IR/AttendJoin.h"
#include "ssa/IR/SharedSums.h"
#include "ssa/Model/Tuning.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>

using namespace mlir;
using namespace mlir::ssa;

unsigned ssa::getSourceLine(Location loc) {
  unsigned line = 0;
  loc->walk([&](Location inner) {
    auto place = dyn_cast<FileLineColLoc>(inner);
    line = place ? place.getLine() : 0;
    return place ? WalkResult::interrupt() : WalkResult::advance();
  });
  return line;
}

namespace {

/// Makes an explanation, step by step.
class Explainer {
public:
  Explainer(ModuleOp module, const ExplainOptions &options, TimingScope &timing) : module(module), options(options), timing(timing) {}
  LogicalResult run();

  Explanation explanation;

private:
  using OpCounts = std::map<std::pair<std::string, std::string>, int64_t>; // by function and name of op
  static OpCounts countOps(ModuleOp where);
  LogicalResult countBefore(OpCounts &counts);
  void numberOps();
  void findResources();
  LogicalResult assemble(ChipCompilation &chip);
  ExplainedEntry explainEntry(const Plan &plan);
  void explainLaunches(const Plan &plan, const PlanSizes &sizes, AssumedSizes &assumed, ExplainedEntry &entry);
  void addFusion(Operation *op, AssumedSizes &assumed, ExplainedEntry &entry);
  ExplainedChoice explainChoice(SparseAttendOp op, AssumedSizes &sizes);
  ExplainedAgreement explainAgreement(const AttendProblem &problem, AgreeingAttr agreeing);
  Prediction predict(Operation *op, StringRef kernel, AssumedSizes &sizes, double bytes, int64_t runs, llvm::SmallPtrSetImpl<Operation *> &predicted);
  bool leaves(const PlanLaunch &launch, Operation *op, AssumedSizes &sizes);
  void addFused(const OpCounts &before);

  ModuleOp module;
  const ExplainOptions &options;
  TimingScope &timing;
  OwningOpRef<ModuleOp> pattern; // as decided
  DenseMap<int64_t, Operation *> numbered;
  llvm::StringMap<KernelResources> resources;
  Tuning tuning;
};

} // namespace

Explainer::OpCounts Explainer::countOps(ModuleOp where) {
  OpCounts counts;
  for (auto function : where.getOps<func::FuncOp>())
    if (function.isPublic())
      function.walk([&](Operation *op) {
        if (isa_and_nonnull<SSADialect>(op->getDialect()) && !isa<YieldOp>(op))
          ++counts[{function.getName().str(), op->getName().getStringRef().str()}];
      });
  return counts;
}

/// What the pattern consists of before anything is decided, without calls.
LogicalResult Explainer::countBefore(OpCounts &counts) {
  OwningOpRef<ModuleOp> copy = module.clone();
  PassManager pm(module.getContext(), ModuleOp::getOperationName());
  pm.addPass(createInlinerPass());
  buildSSAOptimizePipeline(pm);
  if (failed(pm.run(*copy)))
    return failure();
  counts = countOps(*copy);
  return success();
}

/// Gives every op a number, which its launches will have.
void Explainer::numberOps() {
  Builder builder(module.getContext());
  int64_t next = 0;
  module.walk([&](Operation *op) {
    if (op->getParentOfType<func::FuncOp>())
      op->setAttr(originAttrName, builder.getI64IntegerAttr(next++));
  });
}

/// The most registers with which as many blocks as wanted fit.
static int64_t boundRegisters(gpu::GPUFuncOp kernel, int64_t threads, TargetAttr target) {
  auto wanted = kernel->getAttrOfType<IntegerAttr>("nvvm.minctasm");
  int64_t blocks = wanted ? std::max<int64_t>(wanted.getInt(), 1) : 1;
  constexpr int64_t most = 255, step = 8;
  return std::min(most, target.registersPerSM() / (blocks * threads) / step * step);
}

void Explainer::findResources() {
  module.walk([&](gpu::GPUFuncOp kernel) {
    int64_t threads = kernel.getKnownBlockSize() ? (*kernel.getKnownBlockSize())[0] : 1;
    resources[kernel.getName()] = {threads, getStaticSharedMemory(kernel), boundRegisters(kernel, threads, explanation.target), std::nullopt};
  });
}

LogicalResult Explainer::assemble(ChipCompilation &chip) {
  if (failed(chip.makeCode()))
    return failure();
  auto said = describePTX(module.getLoc(), chip.code.ptx, chip.target, timing);
  if (failed(said))
    return failure();
  for (auto &[name, code] : *said)
    if (auto known = resources.find(name); known != resources.end()) {
      known->second.registers = code.registers;
      known->second.spilledBytes = code.spilledBytes;
    }
  return success();
}

LogicalResult Explainer::run() {
  auto emitError = [&] { return module.emitError(); };
  const SSASelectSchedulePassOptions &schedules = options.compile.schedules;
  FailureOr<Assumptions> assumptions = Assumptions::parse(schedules.sizesText, schedules.agreement, emitError);
  if (failed(assumptions))
    return failure();
  explanation.assumptions = *assumptions;
  if (!schedules.tuningFile.empty()) {
    FailureOr<Tuning> read = Tuning::read(schedules.tuningFile, module.getContext(), emitError);
    if (failed(read))
      return failure();
    tuning = std::move(*read);
  }
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Remark)
      return failure(); // somebody else's
    std::string text = diagnostic.str();
    ExplainedRemark remark{getSourceLine(diagnostic.getLocation()), text};
    if (llvm::none_of(explanation.remarks, [&](const ExplainedRemark &r) { return r.line == remark.line && r.text == remark.text; }))
      explanation.remarks.push_back(std::move(remark));
    return success();
  });
  OpCounts before;
  ChipCompilation chip(module, options.compile, timing);
  if (failed(countBefore(before)) || failed(chip.decide(options.compile.chips.empty() ? "" : options.compile.chips.front())))
    return failure();
  explanation.target = chip.target;
  numberOps();
  pattern = module.clone();
  pattern->walk([&](Operation *op) {
    if (auto number = op->getAttrOfType<IntegerAttr>(originAttrName))
      numbered[number.getInt()] = op;
  });
  if (failed(chip.makeKernels()) || failed(chip.makePlans()))
    return failure();
  findResources();
  if (options.assemble && failed(assemble(chip)))
    return failure();
  for (const Plan &plan : chip.plans)
    explanation.entries.push_back(explainEntry(plan));
  addFused(before);
  return success();
}

void Explainer::addFused(const OpCounts &before) {
  OpCounts after = countOps(*pattern);
  for (ExplainedEntry &entry : explanation.entries)
    for (auto &[key, count] : before)
      if (int64_t rest = after[key]; key.first == entry.pattern.getName() && rest < count)
        entry.fused.push_back({key.second, count - rest});
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

ExplainedEntry Explainer::explainEntry(const Plan &plan) {
  ExplainedEntry entry;
  entry.pattern = pattern->lookupSymbol<func::FuncOp>(plan.entry);
  AssumedSizes assumed(explanation.assumptions);
  SmallVector<SmallVector<int64_t>> shapes;
  for (BlockArgument argument : entry.pattern.getArguments()) {
    SmallVector<int64_t> &shape = shapes.emplace_back();
    if (auto type = dyn_cast<ShapedType>(argument.getType()))
      for (int64_t i = 0; i < type.getRank(); ++i)
        shape.push_back(assumed.get(argument, i));
  }
  PlanSizes sizes(plan, shapes);
  entry.refusals = sizes.getRefusals();
  for (auto [i, buffer] : llvm::enumerate(plan.buffers)) {
    if (buffer.kind == "argument")
      entry.argumentBytes += sizes.getBytes(i);
    else if (buffer.kind == "result")
      entry.resultBytes += sizes.getBytes(i);
  }
  entry.workspaceBytes = sizes.get(plan.workspaceBytes);
  entry.pattern.walk([&](Operation *op) {
    if (auto attend = dyn_cast<SparseAttendOp>(op); attend && ScheduleAttr::of(op))
      entry.choices.push_back(explainChoice(attend, assumed));
    else if (auto gather = dyn_cast<GatherOp>(op))
      entry.gathers.push_back({gather, assumed.getBytes(gather.getOutput()), assumed.getBytes(gather.getInput())});
    addFusion(op, assumed, entry);
  });
  explainLaunches(plan, sizes, assumed, entry);
  return entry;
}

/// What an op says of the kernel that does it, if that does others, too.
void Explainer::addFusion(Operation *op, AssumedSizes &assumed, ExplainedEntry &entry) {
  if (auto attend = dyn_cast<SparseAttendOp>(op))
    if (std::optional<AttendJoin> join = AttendJoin::of(attend))
      entry.fusions.push_back({join->op, attend, "", "", 2 * assumed.getBytes(attend.getOutput())});
  if (auto route = dyn_cast<RouteOp>(op))
    if (SparseAttendOp attend = SharedSums::of(route)) // queries are read once less
      entry.fusions.push_back({route, attend, "sums", "", assumed.getBytes(route.getQuery())});
  FusedSelectAttr select = FusedSelectAttr::of(op);
  Operation *route = select ? cast<TopKOp>(op).getScores().getDefiningOp() : nullptr;
  if (route)
    entry.fusions.push_back({op, route, "", llvm::formatv("for rows of {0} to {1} scores", select.getMinColumns(), select.getMaxColumns()),
                             2 * assumed.getBytes(route->getResult(0))});
}

ExplainedAgreement Explainer::explainAgreement(const AttendProblem &problem, AgreeingAttr agreeing) {
  ScheduleAttr first = ScheduleAttr::of(problem.op), second = agreeing.getSchedule();
  ExplainedAgreement found{agreeing, rateSchedule(problem, problem.agree(agreeing) ? first : second, explanation.target), problem.agree(agreeing), {}};
  for (double agreement : {leastAgreement, agreeing.getPercent() / 100.0, mostAgreement}) {
    AttendProblem at = problem;
    at.agreement = agreement;
    auto getSeconds = [&](ScheduleAttr s) { return rateSchedule(at, s, explanation.target).prediction.seconds; };
    found.times.push_back({agreement, getSeconds(first), getSeconds(second)});
  }
  return found;
}

ExplainedChoice Explainer::explainChoice(SparseAttendOp op, AssumedSizes &sizes) {
  TargetAttr target = explanation.target;
  AttendProblem problem(op, sizes);
  ScheduleAttr schedule = getUsedSchedule(problem);
  ExplainedChoice choice{op, "written", problem.agreement, rateSchedule(problem, schedule, target), rateSchedules(problem, target),
                         predictDense(op, sizes, target), problem.getUsefulFlop(), std::nullopt};
  if (problem.getBlocksApart(schedule) > 0) {
    AttendProblem together = problem;
    together.forced.reset();
    choice.together = rateSchedule(together, schedule, target).prediction.seconds;
  }
  if (AgreeingAttr agreeing = AgreeingAttr::of(op)) {
    choice.source = "device";
    choice.onDevice = explainAgreement(problem, agreeing);
    return choice;
  }
  if (std::optional<AttendJoin> join = AttendJoin::of(op); join && join->parts.size() > 1)
    choice.source = "shared";
  else if (schedule == tuning.find(problem, target))
    choice.source = "tuning";
  else if (schedule == getMeasuredSchedule(op, target))
    choice.source = "measured";
  else if (!choice.rated.empty() && schedule == choice.rated.front().schedule)
    choice.source = "model";
  return choice;
}

/// The first kernel of tiles of an attention op does what its schedule says, a second one what is apart; all others are predicted by what they read and write.
Prediction Explainer::predict(Operation *op, StringRef kernel, AssumedSizes &sizes, double bytes, int64_t runs,
                              llvm::SmallPtrSetImpl<Operation *> &predicted) {
  auto attend = dyn_cast_or_null<SparseAttendOp>(op);
  bool attends = attend && ScheduleAttr::of(attend) && kernel.contains("attend"), isFirst = attends && predicted.insert(op).second;
  if (attends && !isFirst)
    if (AttendProblem problem(attend, sizes); problem.getBlocksApart(getUsedSchedule(problem)) > 0)
      return predictApart(problem, getUsedSchedule(problem), explanation.target);
  if (isFirst) {
    if (std::optional<AttendJoin> join = AttendJoin::of(attend); join && join->parts.size() > 1)
      return predictAttend(JoinedProblem(*join, sizes), ScheduleAttr::of(attend), explanation.target);
    AttendProblem problem(attend, sizes);
    return predictAttend(problem, getUsedSchedule(problem), explanation.target);
  }
  return predictKernel(op, kernel, sizes, explanation.target, bytes, runs);
}

/// Whether the kernel is one of a schedule that the device does not use for lists as they are assumed.
bool Explainer::leaves(const PlanLaunch &launch, Operation *op, AssumedSizes &sizes) {
  auto attend = dyn_cast_or_null<SparseAttendOp>(op);
  AgreeingAttr agreeing = attend ? AgreeingAttr::of(attend) : AgreeingAttr();
  return launch.when && agreeing && launch.when->is != AttendProblem(attend, sizes).agree(agreeing);
}

void Explainer::explainLaunches(const Plan &plan, const PlanSizes &sizes, AssumedSizes &assumed, ExplainedEntry &entry) {
  TargetAttr target = explanation.target;
  llvm::SmallPtrSet<Operation *, 8> predicted;
  for (auto [i, launch] : llvm::enumerate(plan.launches)) {
    int64_t runs = sizes.getRuns(i);
    if (!runs) {
      ++entry.skipped;
      continue;
    }
    const KernelResources &code = resources[launch.kernel];
    ExplainedKernel kernel;
    kernel.name = launch.kernel;
    kernel.op = launch.origin ? numbered.lookup(*launch.origin) : nullptr;
    kernel.runs = runs;
    kernel.blocks = sizes.get(launch.grid[0]) * sizes.get(launch.grid[1]) * sizes.get(launch.grid[2]);
    kernel.threads = launch.block[0] * launch.block[1] * launch.block[2];
    kernel.sharedBytes = sizes.get(launch.shared) + code.staticShared;
    kernel.registers = code.registers;
    kernel.spilledBytes = code.spilledBytes;
    constexpr int64_t reserved = 1024, mostBlocks = 32; // of a block; of a multiprocessor
    kernel.blocksPerSM = std::min({target.sharedMemoryBytesPerSM() / (kernel.sharedBytes + reserved), target.threadsPerSM() / kernel.threads, mostBlocks,
                                   target.registersPerSM() / (std::max<int64_t>(kernel.registers, 1) * kernel.threads)});
    kernel.leaves = leaves(launch, kernel.op, assumed);
    if (kernel.leaves) {
      kernel.prediction.seconds = double(runs) * idleLaunchSeconds;
      kernel.prediction.binds = "launch";
      entry.kernels.push_back(std::move(kernel));
      continue;
    }
    // Once each: where an access is not known, a buffer counts as read and written. Runs share arguments and results among them; a lane uses its
    // part of workspace again.
    llvm::SmallSetVector<unsigned, 8> touched(launch.reads.begin(), launch.reads.end());
    touched.insert(launch.writes.begin(), launch.writes.end());
    for (unsigned buffer : touched)
      kernel.bytes += double(sizes.getBytes(buffer)) * (plan.buffers[buffer].kind == "workspace" ? double(runs) / sizes.getLanes(i) : 1);
    kernel.prediction = predict(kernel.op, launch.kernel, assumed, kernel.bytes, runs, predicted);
    entry.kernels.push_back(std::move(kernel));
  }
}

LogicalResult ssa::explain(ModuleOp module, const ExplainOptions &options, llvm::raw_ostream &os, TimingScope &timing) {
  if (options.compile.chips.size() > 1)
    return module.emitError("expected one chip to explain, but got ") << options.compile.chips.size();
  Explainer explainer(module, options, timing);
  if (failed(explainer.run()))
    return failure();
  options.form == ExplanationForm::Text ? explainer.explanation.printText(os) : explainer.explanation.printJSON(os);
  return success();
}
