//===- Bundle.cpp - Compiles patterns to bundles --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/Target/Bundle.h"
#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "mlir/Transforms/Passes.h"
#include "ssa/Target/NVPTX.h"
#include "ssa/Target/Plan.h"
#include "ssa/Transforms/Passes.h"
#include "ssa/Version.h"

using namespace mlir;
using namespace mlir::ssa;

namespace {

/// The module for one chip, on its way.
class ChipCompilation {
public:
  ChipCompilation(ModuleOp module, const CompileOptions &options, TimingScope &timing)
      : module(module), options(options), timing(timing) {}

  /// To host functions and kernels.
  LogicalResult makeKernels(StringRef chip);
  LogicalResult makePlans();
  /// To PTX; takes the kernels out of the module.
  LogicalResult makeCode();

  TargetAttr target;
  std::vector<Plan> plans;
  DeviceCode code;

private:
  LogicalResult run(ModuleOp where, llvm::function_ref<void(OpPassManager &)> build);
  LogicalResult checkComplete();

  ModuleOp module;
  const CompileOptions &options;
  TimingScope &timing;
};

} // namespace

LogicalResult ChipCompilation::run(ModuleOp where, llvm::function_ref<void(OpPassManager &)> build) {
  PassManager pm(where.getContext(), ModuleOp::getOperationName());
  pm.enableTiming(timing);
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

LogicalResult ChipCompilation::makeKernels(StringRef chip) {
  LogicalResult result = run(module, [&](OpPassManager &pm) {
    SSAAttachTargetPassOptions attach;
    attach.chip = chip.str();
    pm.addPass(createSSAAttachTargetPass(attach));
    buildSSAToKernelsPipeline(pm);
  });
  if (failed(result))
    return failure();
  target = TargetAttr::of(module);
  TimingScope scope = timing.nest("Verifier");
  return success(succeeded(checkComplete()) && succeeded(verify(module)));
}

LogicalResult ChipCompilation::makePlans() {
  // Integer expressions in as few operations as possible.
  LogicalResult simplified = run(module, [](OpPassManager &pm) {
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
  if (failed(run(*device, buildKernelsToNVVMPipeline)))
    return failure();
  auto lowered = *device->getOps<gpu::GPUModuleOp>().begin();
  FailureOr<DeviceCode> compiled = compileKernels(lowered, target, options.emission == Emission::LLVM, timing);
  if (failed(compiled))
    return failure();
  code = std::move(*compiled);
  return success();
}

//===----------------------------------------------------------------------===//
// Output
//===----------------------------------------------------------------------===//

static void writePlans(llvm::json::OStream &json, ArrayRef<Plan> plans) {
  json.attributeArray("entries", [&] {
    for (const Plan &plan : plans)
      plan.print(json);
  });
}

static void writeTarget(llvm::json::OStream &json, const ChipCompilation &chip, bool withCode) {
  json.object([&] {
    json.attribute("chip", chip.target.getChip());
    if (withCode) {
      unsigned version = chip.target.ptxVersion();
      json.attribute("ptx_version", std::to_string(version / 10) + "." + std::to_string(version % 10));
      json.attribute("ptx", chip.code.ptx);
    }
    writePlans(json, chip.plans);
  });
}

/// Compiles for each chip and writes a bundle.
static LogicalResult compileBundle(ModuleOp module, ArrayRef<std::string> chips, const CompileOptions &options,
                                   llvm::raw_ostream &os, TimingScope &timing) {
  std::string text;
  llvm::raw_string_ostream out(text);
  llvm::json::OStream json(out, 2);
  bool hasFailed = false;
  json.object([&] {
    json.attribute("format", "ssa-bundle");
    json.attribute("version", 1);
    json.attribute("producer", "ssa " SSA_VERSION_STRING);
    json.attributeArray("targets", [&] {
      for (const std::string &name : chips) {
        OwningOpRef<ModuleOp> copy = module.clone();
        ChipCompilation chip(*copy, options, timing);
        if (failed(chip.makeKernels(name)) || failed(chip.makePlans()) || failed(chip.makeCode())) {
          hasFailed = true;
          continue; // all chips get to say what they lack
        }
        writeTarget(json, chip, /*withCode=*/true);
      }
    });
  });
  if (hasFailed)
    return failure();
  os << text << "\n";
  return success();
}

LogicalResult ssa::compile(ModuleOp module, const CompileOptions &options, llvm::raw_ostream &os, TimingScope &timing) {
  std::vector<std::string> chips = options.chips;
  if (chips.empty())
    chips.push_back("");
  for (size_t i = 0; i < chips.size(); ++i)
    if (llvm::is_contained(ArrayRef(chips).take_front(i), chips[i]))
      return module.emitError("the chip '") << chips[i] << "' is named twice";
  if (options.emission == Emission::Bundle)
    return compileBundle(module, chips, options, os, timing);
  if (chips.size() > 1)
    return module.emitError("expected one chip, but got ") << chips.size() << "; only a bundle is for several";

  ChipCompilation chip(module, options, timing);
  if (failed(chip.makeKernels(chips.front())))
    return failure();
  if (options.emission == Emission::MLIR) {
    module.print(os);
    return success();
  }
  // Plans are made even if they are not wanted: an error in one is an error of the module.
  if (failed(chip.makePlans()))
    return failure();
  if (options.emission == Emission::Plan) {
    llvm::json::OStream json(os, 2);
    writeTarget(json, chip, /*withCode=*/false);
    json.flush();
    os << "\n";
    return success();
  }
  if (failed(chip.makeCode()))
    return failure();
  if (options.emission == Emission::Cubin) {
    FailureOr<std::string> cubin = assemblePTX(module.getLoc(), chip.code.ptx, chip.target, timing);
    if (failed(cubin))
      return failure();
    os << *cubin;
    return success();
  }
  os << (options.emission == Emission::LLVM ? chip.code.llvm : chip.code.ptx);
  return success();
}
