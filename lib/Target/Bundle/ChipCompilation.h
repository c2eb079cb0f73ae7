//===- ChipCompilation.h - A module on its way to one chip ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_TARGET_BUNDLE_CHIPCOMPILATION_H
#define SSA_LIB_TARGET_BUNDLE_CHIPCOMPILATION_H

#include "mlir/Support/Timing.h"
#include "ssa/Target/Bundle.h"
#include "ssa/Target/NVPTX.h"
#include "ssa/Target/Plan.h"

namespace mlir::ssa {

/// The module for one chip. Its steps are to be called in the order of their declaration.
class ChipCompilation {
public:
  ChipCompilation(ModuleOp module, const CompileOptions &options, TimingScope &timing)
      : module(module), options(options), timing(timing) {}

  /// Sets the target and decides how kernels are to be built; the module is still a pattern.
  LogicalResult decide(StringRef chip);
  /// To host functions and kernels.
  LogicalResult makeKernels();
  LogicalResult makePlans();
  /// To PTX; takes the kernels out of the module.
  LogicalResult makeCode();

  TargetAttr target;
  std::vector<Plan> plans;
  DeviceCode code;

private:
  /// Runs the passes of one pipeline, whose times are told under `name`.
  LogicalResult run(StringRef name, ModuleOp where, llvm::function_ref<void(OpPassManager &)> build);
  LogicalResult checkComplete();
  LogicalResult verifyKernels();

  ModuleOp module;
  const CompileOptions &options;
  TimingScope &timing;
};

} // namespace mlir::ssa

#endif // SSA_LIB_TARGET_BUNDLE_CHIPCOMPILATION_H
