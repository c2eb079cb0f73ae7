//===- ChipCompilation.cpp - A module on its way to one chip --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ChipCompilation.h"
#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::ssa;

LogicalResult ChipCompilation::run(StringRef name, ModuleOp where, llvm::function_ref<void(OpPassManager &)> build) {
  // A scope of its own: passes are told apart by where they are, and those of the next pipeline may be where some of this one were.
  TimingScope scope = timing.nest(name);
  PassManager pm(where.getContext(), ModuleOp::getOperationName());
  pm.enableTiming(scope);
  pm.enableVerifier(false); // it would take a third of the time; kernels are verified once, and as LLVM IR once more
  if (options.configure && failed(options.configure(pm)))
    return failure();
  build(pm);
  return pm.run(where);
}

/// Every op of a pattern must have become kernels; one error for each kind of op.
LogicalResult ChipCompilation::checkComplete() {
  llvm::SmallDenseSet<OperationName> reported;
  bool isComplete = true;
  module.walk([&](Operation *op) {
    if (!isa_and_nonnull<SSADialect>(op->getDialect()) || op->hasTrait<mlir::OpTrait::IsTerminator>())
      return;
    isComplete = false;
    if (reported.insert(op->getName()).second)
      emitError(op->getLoc()) << "'" << op->getName() << "' has no kernel for " << target.getChip() << " yet";
  });
  return success(isComplete);
}

LogicalResult ChipCompilation::decide(StringRef chip) {
  LogicalResult result = run("Decisions", module, [&](OpPassManager &pm) {
    SSAAttachTargetPassOptions attach;
    attach.chip = chip.str();
    pm.addPass(createSSAAttachTargetPass(attach));
    buildSSADecisionsPipeline(pm, options.schedules);
  });
  target = TargetAttr::of(module);
  return result;
}

/// While they are tiles: then there is half as much to verify, and their own ops say most. What becomes of it is verified as LLVM IR.
LogicalResult ChipCompilation::verifyKernels() {
  TimingScope scope = timing.nest("Verifier");
  return success(succeeded(checkComplete()) && succeeded(verify(module)));
}

LogicalResult ChipCompilation::makeKernels() {
  if (failed(run("Kernels of tiles", module, buildSSADecidedToTilesPipeline)) || failed(verifyKernels()))
    return failure();
  if (failed(run("Kernels of threads", module, [&](OpPassManager &pm) { buildSSATilesToKernelsPipeline(pm, options.lowering); })))
    return failure();
  return options.emission == Emission::MLIR ? verify(module) : success();
}

LogicalResult ChipCompilation::makePlans() {
  // Integer expressions in as few operations as possible.
  LogicalResult simplified = run("Host functions", module, [](OpPassManager &pm) {
    OpPassManager &hosts = pm.nest<func::FuncOp>();
    hosts.addPass(createLowerAffinePass());
    hosts.addPass(createCanonicalizerPass());
    hosts.addPass(createCSEPass());
  });
  if (failed(simplified))
    return failure();
  TimingScope scope = timing.nest("Plans");
  FailureOr<std::vector<Plan>> built = buildPlans(module, target);
  if (failed(built))
    return failure();
  plans = std::move(*built);
  return success();
}

LogicalResult ChipCompilation::makeCode() {
  SmallVector<gpu::GPUModuleOp> kernels(module.getOps<gpu::GPUModuleOp>());
  if (kernels.size() > 1)
    return kernels[1].emitError("a module has one 'gpu.module' at most, but here is another");
  // Without the host functions, whose launches would not fit kernels of lower levels.
  OwningOpRef<ModuleOp> device = ModuleOp::create(module.getLoc());
  (*device)->setAttr(TargetAttr::attrName(), target);
  OpBuilder builder(device->getBodyRegion());
  if (kernels.empty())
    gpu::GPUModuleOp::create(builder, module.getLoc(), "kernels");
  else
    kernels.front()->moveBefore(device->getBody(), device->getBody()->end());
  bool printLLVM = options.emission == Emission::LLVM; // in one text
  SmallVector<std::string> order;
  if (!printLLVM)
    order = splitKernels(*device->getOps<gpu::GPUModuleOp>().begin());
  if (failed(run("Lowering of kernels", *device, buildKernelsToNVVMPipeline)))
    return failure();
  FailureOr<DeviceCode> compiled = compileKernels(*device, order, target, printLLVM, timing);
  if (failed(compiled))
    return failure();
  code = std::move(*compiled);
  return success();
}
