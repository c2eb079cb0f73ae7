//===- Convert.cpp - ssa-nvptx-convert ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What `convert-vector-to-llvm`, `convert-gpu-to-nvvm` and some smaller passes do, in one conversion: that takes half
// the time.
//
//===----------------------------------------------------------------------===//

#include "mlir/Conversion/ConvertToLLVM/ToLLVMInterface.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/LoweringOptions.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/NVGPUToNVVM/NVGPUToNVVM.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "ssa/Target/NVPTX.h"

namespace mlir::ssa {
#define GEN_PASS_DEF_SSANVPTXCONVERTPASS
#include "ssa/Target/Passes.h.inc"
} // namespace mlir::ssa

using namespace mlir;

namespace {
struct Convert : ssa::impl::SSANVPTXConvertPassBase<Convert> {
  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    createConvertNVGPUToNVVMPass()->getDependentDialects(registry);
    createConvertGpuOpsToNVVMOps()->getDependentDialects(registry);
  }

  void runOnOperation() override {
    gpu::GPUModuleOp kernels = getOperation();
    SmallVector<Operation *> composed;
    bool hasNVGPU = false;
    kernels.walk([&](Operation *op) {
      hasNVGPU |= op->getName().getDialectNamespace() == "nvgpu";
      if (isa<gpu::AllReduceOp, gpu::GlobalIdOp, gpu::ShuffleOp, gpu::SubgroupReduceOp>(op))
        composed.push_back(op);
    });
    expand(composed);
    if (hasNVGPU) {
      OpPassManager pm(gpu::GPUModuleOp::getOperationName());
      pm.addPass(createConvertNVGPUToNVVMPass());
      if (failed(runPipeline(pm, kernels)))
        return signalPassFailure();
    }
    ByValueArguments byValue = findByValue(kernels);
    if (failed(convert(kernels)))
      return signalPassFailure();
    restoreByValue(kernels, byValue);
  }

private:
  /// Arguments of kernels that are passed by value, by their number after the conversion, with their attributes.
  /// Upstream's conversion drops these.
  using ByValueArguments = SmallVector<std::tuple<StringAttr, unsigned, DictionaryAttr>>;

  ByValueArguments findByValue(gpu::GPUModuleOp kernels) {
    ByValueArguments found;
    for (auto kernel : kernels.getOps<gpu::GPUFuncOp>()) {
      unsigned number = 0;
      for (BlockArgument argument : kernel.getArguments()) {
        if (kernel.getArgAttr(argument.getArgNumber(), LLVM::LLVMDialect::getByValAttrName()))
          found.push_back({kernel.getNameAttr(), number, kernel.getArgAttrDict(argument.getArgNumber())});
        auto memref = dyn_cast<MemRefType>(argument.getType());
        number += memref ? 3 + 2 * memref.getRank() : 1;
      }
    }
    return found;
  }

  void restoreByValue(gpu::GPUModuleOp kernels, const ByValueArguments &arguments) {
    for (auto [name, number, attributes] : arguments)
      if (auto function = kernels.lookupSymbol<LLVM::LLVMFuncOp>(name))
        function.setArgAttrs(number, attributes);
  }

  /// Ops that stand for a few others.
  void expand(ArrayRef<Operation *> ops) {
    if (ops.empty())
      return;
    RewritePatternSet patterns(&getContext());
    populateGpuRewritePatterns(patterns);
    GreedyRewriteConfig config;
    config.setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
    (void)applyOpPatternsGreedily(ops, std::move(patterns), config);
  }

  LogicalResult convert(gpu::GPUModuleOp kernels) {
    LowerToLLVMOptions options(&getContext());
    options.overrideIndexBitwidth(64);
    LLVMTypeConverter converter(&getContext(), options);
    configureGpuToNVVMTypeConverter(converter);
    RewritePatternSet patterns(&getContext());
    LLVMConversionTarget target(getContext());
    populateGpuToNVVMConversionPatterns(converter, patterns, /*benefit=*/10);
    populateGpuSubgroupReduceOpLoweringPattern(converter, patterns);
    for (Dialect *dialect : getContext().getLoadedDialects())
      if (llvm::is_contained({"arith", "cf", "index", "memref", "ub", "vector"}, dialect->getNamespace()))
        if (auto *interface = dyn_cast<ConvertToLLVMPatternInterface>(dialect))
          interface->populateConvertToLLVMConversionPatterns(target, converter, patterns);
    configureGpuToNVVMConversionLegality(target);
    return applyPartialConversion(kernels, target, std::move(patterns));
  }
};
} // namespace
