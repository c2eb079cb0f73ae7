//===- AttachTarget.cpp - ssa-attach-target -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/IR/SSA.h"
#include "ssa/Transforms/Passes.h"

namespace mlir::ssa {
#define GEN_PASS_DEF_SSAATTACHTARGETPASS
#include "ssa/Transforms/Passes.h.inc"
} // namespace mlir::ssa

using namespace mlir;
using namespace mlir::ssa;

namespace {
struct SSAAttachTarget : ssa::impl::SSAAttachTargetPassBase<SSAAttachTarget> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto present = module->getAttrOfType<TargetAttr>(TargetAttr::attrName());
    if (present && (chip.empty() || present.getChip() == chip))
      return;
    if (present) {
      module.emitError("is written for '") << present.getChip() << "', as its '" << TargetAttr::attrName()
                                           << "' says, and cannot be compiled for '" << chip << "'";
      return signalPassFailure();
    }
    StringRef wanted = chip.empty() ? TargetAttr::defaultChip() : StringRef(chip);
    auto target = TargetAttr::getChecked([&] { return module.emitError(); }, &getContext(), wanted);
    if (!target)
      return signalPassFailure();
    module->setAttr(TargetAttr::attrName(), target);
  }
};
} // namespace
