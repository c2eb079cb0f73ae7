//===- Convert.cpp - ssa-nvptx-convert ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What `convert-vector-to-llvm`, `convert-gpu-to-nvvm` and some smaller passes do, in one conversion: that takes half
// the time. Before it and after it only those ops are looked at that have to be, where upstream's passes ask about all.
//
//===----------------------------------------------------------------------===//

#include "ConvertNumbers.h"
#include "mlir/Conversion/ConvertToLLVM/ToLLVMInterface.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/LoweringOptions.h"
#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/NVGPUToNVVM/NVGPUToNVVM.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/BasicPtxBuilderInterface.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
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
/// Upstream's pattern looks for a constant of `arith`, and finds that of LLVM's dialect which has replaced it.
struct ConvertDim : ConvertOpToLLVMPattern<memref::DimOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(memref::DimOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    IntegerAttr index;
    auto type = dyn_cast<MemRefType>(op.getSource().getType());
    if (!type || !matchPattern(adaptor.getIndex(), m_Constant(&index)) || index.getInt() < 0 ||
        index.getInt() >= type.getRank())
      return failure();
    rewriter.replaceOp(op, MemRefDescriptor(adaptor.getSource()).size(rewriter, op.getLoc(), index.getInt()));
    return success();
  }
};

/// Between all lanes of a warp, with nobody who asks whether the other lane takes part: what upstream computes of the
/// width are constants.
struct ConvertShuffle : ConvertOpToLLVMPattern<gpu::ShuffleOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(gpu::ShuffleOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Type type = adaptor.getValue().getType();
    IntegerAttr width;
    if (!matchPattern(adaptor.getWidth(), m_Constant(&width)) || width.getInt() != 32 || !op.getValid().use_empty() ||
        !(type.isInteger(32) || type.isF32()))
      return failure();
    Location loc = op.getLoc();
    auto constant = [&](int32_t c) -> Value {
      return LLVM::ConstantOp::create(rewriter, loc, rewriter.getI32IntegerAttr(c));
    };
    bool isUp = op.getMode() == gpu::ShuffleMode::UP;
    Value shuffled = NVVM::ShflOp::create(rewriter, loc, type, constant(-1), adaptor.getValue(), adaptor.getOffset(),
                                          constant(isUp ? 0 : 31), getKind(op.getMode()), UnitAttr());
    rewriter.replaceOp(op, {shuffled, Value()});
    return success();
  }

private:
  static NVVM::ShflKind getKind(gpu::ShuffleMode mode) {
    switch (mode) {
    case gpu::ShuffleMode::XOR:
      return NVVM::ShflKind::bfly;
    case gpu::ShuffleMode::UP:
      return NVVM::ShflKind::up;
    case gpu::ShuffleMode::DOWN:
      return NVVM::ShflKind::down;
    case gpu::ShuffleMode::IDX:
      return NVVM::ShflKind::idx;
    }
    llvm_unreachable("a mode that shuffles do not have");
  }
};

/// Types, patterns and what is legal: one of each for all kernels, which are converted at once.
struct Rules {
  explicit Rules(MLIRContext *context);

  LLVMTypeConverter converter;
  LLVMConversionTarget target;
  FrozenRewritePatternSet patterns, structures, composites, texts;
};

struct Convert : ssa::impl::SSANVPTXConvertPassBase<Convert> {
  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    createConvertNVGPUToNVVMPass()->getDependentDialects(registry);
    createConvertGpuOpsToNVVMOps()->getDependentDialects(registry);
  }

  LogicalResult initialize(MLIRContext *context) override {
    rules = std::make_shared<Rules>(context);
    return success();
  }

  void runOnOperation() override {
    gpu::GPUModuleOp kernels = getOperation();
    if (failed(expandAll(kernels)))
      return signalPassFailure();
    ssa::convertNumbers(kernels);
    ByValueArguments byValue = findByValue(kernels);
    if (failed(convert(kernels)))
      return signalPassFailure();
    restoreByValue(kernels, byValue);
    finishAll(kernels);
  }

private:
  /// Arguments of kernels that are passed by value, by their number after the conversion, with their attributes.
  /// Upstream's conversion drops these.
  using ByValueArguments = SmallVector<std::tuple<StringAttr, unsigned, DictionaryAttr>>;

  ByValueArguments findByValue(gpu::GPUModuleOp kernels) {
    ByValueArguments found;
    for (auto kernel : kernels.getOps<gpu::GPUFuncOp>()) {
      unsigned number = 0;
      for (BlockArgument argument : kernel.getArguments().take_front(kernel.getFunctionType().getNumInputs())) { // shared memory is behind them
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

  /// Takes apart what stands for a few other ops: structured control flow, and what has no counterpart of its own.
  LogicalResult expandAll(gpu::GPUModuleOp kernels) {
    SmallVector<Operation *> composed, structured;
    bool hasNVGPU = false;
    kernels.walk([&](Operation *op) {
      hasNVGPU |= op->getName().getDialectNamespace() == "nvgpu";
      if (isa<gpu::AllReduceOp, gpu::GlobalIdOp, gpu::ShuffleOp, gpu::SubgroupReduceOp>(op))
        composed.push_back(op);
      if (isa<scf::SCFDialect>(op->getDialect()) && op->getNumRegions())
        structured.push_back(op);
    });
    expand(structured, rules->structures, GreedyRewriteStrictness::ExistingOps);
    expand(composed, rules->composites, GreedyRewriteStrictness::ExistingAndNewOps);
    if (!hasNVGPU)
      return success();
    OpPassManager pm(gpu::GPUModuleOp::getOperationName());
    pm.addPass(createConvertNVGPUToNVVMPass());
    return runPipeline(pm, kernels);
  }

  static void expand(ArrayRef<Operation *> ops, const FrozenRewritePatternSet &patterns, GreedyRewriteStrictness strictness) {
    if (ops.empty())
      return;
    GreedyRewriteConfig config;
    config.setStrictness(strictness);
    config.enableFolding(false);
    (void)applyOpPatternsGreedily(ops, patterns, config);
  }

  /// What the conversion leaves: ops of `nvvm` that are inline assembly, casts that lead back to a type, and buffers that are put together and
  /// taken apart.
  void finishAll(gpu::GPUModuleOp kernels) {
    SmallVector<Operation *> texts;
    SmallVector<UnrealizedConversionCastOp> casts;
    SmallVector<LLVM::ExtractValueOp> parts;
    SmallVector<LLVM::InsertValueOp> wholes;
    kernels.walk([&](Operation *op) {
      if (auto text = dyn_cast<NVVM::BasicPtxBuilderInterface>(op))
        texts.push_back(text);
      else if (auto cast = dyn_cast<UnrealizedConversionCastOp>(op))
        casts.push_back(cast);
      else if (auto part = dyn_cast<LLVM::ExtractValueOp>(op))
        parts.push_back(part);
      else if (auto whole = dyn_cast<LLVM::InsertValueOp>(op))
        wholes.push_back(whole);
    });
    expand(texts, rules->texts, GreedyRewriteStrictness::ExistingOps);
    reconcileUnrealizedCasts(casts);
    for (LLVM::ExtractValueOp part : parts) {
      SmallVector<OpFoldResult, 1> folded;
      if (succeeded(part->fold(folded)) && !folded.empty() && isa<Value>(folded.front())) {
        part.replaceAllUsesWith(cast<Value>(folded.front()));
        part.erase();
      }
    }
    for (LLVM::InsertValueOp whole : llvm::reverse(wholes))
      if (whole->use_empty())
        whole.erase();
  }

  LogicalResult convert(gpu::GPUModuleOp kernels) {
    // Half as long: every op here either has a pattern that fits or is left for the verification of what comes out.
    ConversionConfig config;
    config.allowPatternRollback = false;
    config.foldingMode = DialectConversionFoldingMode::Never;
    return applyPartialConversion(kernels, rules->target, rules->patterns, config);
  }

  std::shared_ptr<Rules> rules;
};
} // namespace

static LowerToLLVMOptions getOptions(MLIRContext *context) {
  LowerToLLVMOptions options(context);
  options.overrideIndexBitwidth(64);
  return options;
}

static FrozenRewritePatternSet collect(MLIRContext *context, llvm::function_ref<void(RewritePatternSet &)> populate) {
  RewritePatternSet patterns(context);
  populate(patterns);
  return std::move(patterns);
}

Rules::Rules(MLIRContext *context)
    : converter(context, getOptions(context)), target(*context), structures(collect(context, populateSCFToControlFlowConversionPatterns)),
      composites(collect(context, populateGpuRewritePatterns)), texts(collect(context, populateNVVMToLLVMConversionPatterns)) {
  configureGpuToNVVMTypeConverter(converter);
  patterns = collect(context, [&](RewritePatternSet &all) {
    populateGpuToNVVMConversionPatterns(converter, all, /*benefit=*/10);
    populateGpuSubgroupReduceOpLoweringPattern(converter, all);
    all.add<ConvertDim, ConvertShuffle>(converter, /*benefit=*/11);
    for (Dialect *dialect : context->getLoadedDialects())
      if (llvm::is_contained({"arith", "cf", "index", "memref", "ub", "vector"}, dialect->getNamespace()))
        if (auto *interface = dyn_cast<ConvertToLLVMPatternInterface>(dialect))
          interface->populateConvertToLLVMConversionPatterns(target, converter, all);
  });
  configureGpuToNVVMConversionLegality(target);
}
