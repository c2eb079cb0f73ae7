//===- Prepare.cpp - ssa-nvptx-prepare ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "ssa/Target/NVPTX.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::ssa {
#define GEN_PASS_DEF_SSANVPTXPREPAREPASS
#include "ssa/Target/Passes.h.inc"
} // namespace mlir::ssa

using namespace mlir;
using namespace mlir::ssa;

/// Rows start at multiples of this, as TMA and swizzled layouts want it.
static constexpr int64_t sharedMemoryAlignment = 1024;

/// Bytes of the widest access of a thread.
static constexpr uint64_t maxAccess = 16;

//===----------------------------------------------------------------------===//
// Dynamic shared memory
//===----------------------------------------------------------------------===//

static void expandDynamicSharedMemory(gpu::DynamicSharedMemoryOp op) {
  auto kernels = op->getParentOfType<gpu::GPUModuleOp>();
  auto wanted = cast<MemRefType>(op.getType());
  auto type = MemRefType::get({0}, wanted.getElementType(), MemRefLayoutAttrInterface(), wanted.getMemorySpace());
  OpBuilder builder(op);
  if (!kernels.lookupSymbol(dynamicSharedMemoryName)) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(kernels.getBody());
    memref::GlobalOp::create(builder, op.getLoc(), dynamicSharedMemoryName, /*sym_visibility=*/nullptr, type,
                             /*initial_value=*/nullptr, /*constant=*/false,
                             builder.getI64IntegerAttr(sharedMemoryAlignment));
  }
  Value symbol = memref::GetGlobalOp::create(builder, op.getLoc(), type, dynamicSharedMemoryName);
  op.replaceAllUsesWith(memref::CastOp::create(builder, op.getLoc(), wanted, symbol).getResult());
  op.erase();
}

//===----------------------------------------------------------------------===//
// Alignment
//===----------------------------------------------------------------------===//

uint64_t ssa::getAccessAlignment(VectorType type) {
  if (!type.getElementType().isIntOrFloat() || type.isScalable())
    return 1;
  uint64_t element = llvm::divideCeil(type.getElementTypeBitWidth(), 8), bytes = element * type.getNumElements();
  return std::max(std::min(bytes & -bytes, maxAccess), element & -element);
}

template <typename AccessOp>
static void setAlignment(AccessOp op) {
  if (!op.getAlignment())
    op.setAlignment(std::optional<uint64_t>(getAccessAlignment(op.getVectorType())));
}

/// An assumption about an argument is said once, at the argument.
static void hoistAssumption(memref::AssumeAlignmentOp op) {
  auto argument = dyn_cast<BlockArgument>(op.getMemref());
  auto kernel = dyn_cast<gpu::GPUFuncOp>(op->getParentOp());
  if (!argument || !kernel || !kernel.isKernel() || argument.getOwner() != &kernel.getBody().front())
    return;
  StringRef name = LLVM::LLVMDialect::getAlignAttrName();
  auto known = kernel.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), name);
  if (!known || known.getInt() < op.getAlignment())
    kernel.setArgAttr(argument.getArgNumber(), name, OpBuilder(op).getI64IntegerAttr(op.getAlignment()));
  op.replaceAllUsesWith(op.getMemref());
  op.erase();
}

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

/// A tensor map is 128 bytes of the kernel's parameters, which the chip reads where they are.
static void passTensorMapsByValue(gpu::GPUFuncOp kernel) {
  MLIRContext *context = kernel.getContext();
  OpBuilder builder(kernel.getBody());
  auto pointer = LLVM::LLVMPointerType::get(context);
  SmallVector<Type> inputs(kernel.getArgumentTypes());
  for (BlockArgument argument : kernel.getArguments()) {
    if (!isa<nvgpu::TensorMapDescriptorType>(argument.getType()))
      continue;
    Type descriptor = argument.getType();
    argument.setType(pointer);
    inputs[argument.getArgNumber()] = pointer;
    auto cast = UnrealizedConversionCastOp::create(builder, argument.getLoc(), descriptor, argument);
    argument.replaceAllUsesExcept(cast.getResult(0), cast);
    unsigned number = argument.getArgNumber();
    Type bytes = LLVM::LLVMArrayType::get(builder.getI64Type(), 16);
    kernel.setArgAttr(number, LLVM::LLVMDialect::getByValAttrName(), TypeAttr::get(bytes));
    kernel.setArgAttr(number, LLVM::LLVMDialect::getAlignAttrName(), builder.getI64IntegerAttr(64));
    kernel.setArgAttr(number, "nvvm.grid_constant", builder.getUnitAttr());
    kernel.removeArgAttr(number, LLVM::LLVMDialect::getWriteOnlyAttrName()); // of the tensor, not of the map
  }
  kernel.setFunctionType(FunctionType::get(context, inputs, {}));
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Whether `op` has to be taken apart before the conversion to LLVM's dialects.
static bool isComposed(Operation *op) {
  if (isa<arith::CeilDivSIOp, arith::CeilDivUIOp, arith::FloorDivSIOp, memref::SubViewOp, memref::ExpandShapeOp,
          memref::CollapseShapeOp, memref::ExtractStridedMetadataOp>(op))
    return true;
  // Ops on vectors of rank 1 have a counterpart, with few exceptions.
  if (isa<vector::TransferReadOp, vector::TransferWriteOp, vector::ContractionOp, vector::GatherOp, vector::MaskOp,
          vector::MultiDimReductionOp, vector::OuterProductOp, vector::ScanOp, vector::TransposeOp, vector::ShapeCastOp,
          vector::ExtractStridedSliceOp, vector::InsertStridedSliceOp, vector::CreateMaskOp, vector::ConstantMaskOp>(
          op))
    return true;
  auto isDeep = [](Type type) {
    auto vector = dyn_cast<VectorType>(type);
    return vector && vector.getRank() != 1;
  };
  StringRef dialect = op->getName().getDialectNamespace();
  return dialect == "affine" ||
         (dialect == "vector" && (llvm::any_of(op->getResultTypes(), isDeep) ||
                                  (isa<vector::BroadcastOp>(op) && isDeep(op->getOperand(0).getType()))));
}

namespace {
/// A ceiling division by a power of two is a shift, also of a negative number. Only a number within `divisor` of the largest one would have
/// another result: sizes, positions and their differences are far from it.
struct ShiftCeilDiv : OpRewritePattern<arith::CeilDivSIOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::CeilDivSIOp op, PatternRewriter &rewriter) const override {
    APInt divisor;
    if (!matchPattern(op.getRhs(), m_ConstantInt(&divisor)) || !divisor.isPowerOf2() || divisor.isNegative())
      return rewriter.notifyMatchFailure(op, "not by a power of two");
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(rewriter, op.getLoc(), rewriter.getIntegerAttr(op.getType(), value));
    };
    Value up = arith::AddIOp::create(rewriter, op.getLoc(), op.getLhs(), constant(divisor.getSExtValue() - 1));
    rewriter.replaceOpWithNewOp<arith::ShRSIOp>(op, up, constant(divisor.logBase2()));
    return success();
  }
};
} // namespace

/// Walking to the ops is cheaper than trying patterns on all.
static void expandByPatterns(gpu::GPUModuleOp kernels) {
  SmallVector<Operation *> ops;
  kernels.walk([&](Operation *op) {
    if (isComposed(op))
      ops.push_back(op);
  });
  if (ops.empty())
    return;
  RewritePatternSet patterns(kernels.getContext());
  arith::populateCeilFloorDivExpandOpsPatterns(patterns);
  patterns.add<ShiftCeilDiv>(kernels.getContext(), /*benefit=*/2);
  memref::populateExpandStridedMetadataPatterns(patterns);
  populateAffineToStdConversionPatterns(patterns); // strided metadata is expanded to it
  vector::populateVectorBitCastLoweringPatterns(patterns);
  vector::populateVectorBroadcastLoweringPatterns(patterns);
  vector::populateVectorContractLoweringPatterns(patterns, vector::VectorContractLowering::OuterProduct);
  vector::populateVectorFromElementsUnrollPatterns(patterns);
  vector::populateVectorGatherLoweringPatterns(patterns);
  vector::populateVectorInsertExtractStridedSliceTransforms(patterns);
  vector::populateVectorInterleaveLoweringPatterns(patterns);
  vector::populateVectorMaskOpLoweringPatterns(patterns);
  vector::populateVectorMultiReductionLoweringPatterns(patterns, vector::VectorMultiReductionLowering::InnerParallel);
  vector::populateVectorRankReducingFMAPattern(patterns);
  vector::populateVectorScanLoweringPatterns(patterns);
  vector::populateVectorShapeCastLoweringPatterns(patterns);
  vector::populateVectorTransferLoweringPatterns(patterns);
  vector::populateVectorTransferPermutationMapLoweringPatterns(patterns);
  vector::populateVectorTransposeLoweringPatterns(patterns, vector::VectorTransposeLowering::EltWise);
  GreedyRewriteConfig config;
  config.setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
  (void)applyOpPatternsGreedily(ops, std::move(patterns), config); // what is left is refused further on
}

namespace {
struct Prepare : ssa::impl::SSANVPTXPreparePassBase<Prepare> {
  void runOnOperation() override {
    gpu::GPUModuleOp kernels = getOperation();
    expandByPatterns(kernels);
    kernels.walk([](Operation *op) {
      llvm::TypeSwitch<Operation *>(op)
          .Case([](gpu::DynamicSharedMemoryOp o) { expandDynamicSharedMemory(o); })
          .Case<vector::LoadOp, vector::StoreOp>([](auto o) { setAlignment(o); })
          .Case([](memref::AssumeAlignmentOp o) { hoistAssumption(o); });
    });
    for (auto kernel : kernels.getOps<gpu::GPUFuncOp>())
      if (kernel.isKernel())
        passTensorMapsByValue(kernel);
  }
};
} // namespace
