//===- DependentLaunches.cpp - ssa-dependent-launches ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "ssa/Conversion/Passes.h"
#include "ssa/IR/SSA.h"
#include "ssa/Transforms/Passes.h"

namespace mlir::ssa {
#define GEN_PASS_DEF_SSADEPENDENTLAUNCHESPASS
#include "ssa/Transforms/Passes.h.inc"
} // namespace mlir::ssa

using namespace mlir;

/// Inline assembly that nothing which touches memory passes.
static void callAsm(OpBuilder &builder, Location loc, StringRef text) {
  LLVM::InlineAsmOp::create(builder, loc, LLVM::LLVMVoidType::get(builder.getContext()), ValueRange(), text, "~{memory}", /*has_side_effects=*/true,
                            /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
                            LLVM::AsmDialectAttr::get(builder.getContext(), LLVM::AsmDialect::AD_ATT), ArrayAttr());
}

/// The repeat that a launch is in whose runs are in lanes; null if there is none.
static Operation *getLanes(Operation *op) {
  while (op && !op->hasAttr(ssa::lanesAttrName))
    op = op->getParentOp();
  return op;
}

namespace {
struct DependentLaunches : ssa::impl::SSADependentLaunchesPassBase<DependentLaunches> {
  void runOnOperation() override {
    auto target = ssa::TargetAttr::of(getOperation());
    if (!target || !target.hasTMA() || !getOperation()->hasAttr(ssa::dependentLaunchesAttrName)) // TMA came with `griddepcontrol`
      return;
    getOperation().walk([](gpu::GPUFuncOp kernel) {
      if (!kernel.isKernel())
        return;
      auto builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
      // What was launched before has ended then, and what that waited for too. The next kernel may take what room this one leaves.
      callAsm(builder, kernel.getLoc(), "griddepcontrol.wait;");
      callAsm(builder, kernel.getLoc(), "griddepcontrol.launch_dependents;");
    });
    // Between streams launchers wait for all: the first launch of what has lanes, and the first behind it, depend on more than the launch before.
    Operation *before = nullptr;
    getOperation().walk([&](gpu::LaunchFuncOp launch) {
      Operation *lanes = getLanes(launch);
      if (lanes == before)
        launch->setAttr(ssa::dependentAttrName, UnitAttr::get(launch.getContext()));
      before = lanes;
    });
  }
};
} // namespace
