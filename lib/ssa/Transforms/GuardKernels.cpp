//===- GuardKernels.cpp - ssa-guard-kernels -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "ssa/IR/SSA.h"
#include "ssa/Transforms/Passes.h"

namespace mlir::ssa {
#define GEN_PASS_DEF_SSAGUARDKERNELSPASS
#include "ssa/Transforms/Passes.h.inc"
} // namespace mlir::ssa

using namespace mlir;

/// The argument is a buffer with room for a truth value.
static bool isFlag(gpu::GPUFuncOp kernel, int64_t number) {
  if (number < 0 || number >= int64_t(kernel.getNumArguments()))
    return false;
  auto type = dyn_cast<MemRefType>(kernel.getArgument(number).getType());
  return type && type.getRank() == 1 && type.getElementType().isInteger(1);
}

/// All of the kernel comes behind a branch.
static void guard(gpu::GPUFuncOp kernel, ssa::WhenAttr when) {
  Location loc = kernel.getLoc();
  Block *entry = &kernel.getBody().front(), *work = entry->splitBlock(entry->begin()), *leave = new Block;
  kernel.getBody().push_back(leave);
  auto builder = OpBuilder::atBlockEnd(entry);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value flag = memref::LoadOp::create(builder, loc, kernel.getArgument(when.getArgument()), zero);
  cf::CondBranchOp::create(builder, loc, flag, when.getIs() ? work : leave, when.getIs() ? leave : work);
  builder.setInsertionPointToEnd(leave);
  gpu::ReturnOp::create(builder, loc);
}

namespace {
struct GuardKernels : ssa::impl::SSAGuardKernelsPassBase<GuardKernels> {
  void runOnOperation() override {
    getOperation().walk([&](gpu::GPUFuncOp kernel) {
      ssa::WhenAttr when = ssa::WhenAttr::of(kernel);
      if (!when)
        return;
      if (isFlag(kernel, when.getArgument()))
        return guard(kernel, when);
      kernel.emitOpError("expected argument ") << when.getArgument() << " to be a buffer of rank 1 with elements of i1, as '" << ssa::WhenAttr::attrName()
                                               << "' says";
      signalPassFailure();
    });
  }
};
} // namespace
