// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SSA_TRANSFORMS_PASSES_TD
#define SSA_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def SSAAttachTargetPass : Pass<"ssa-attach-target", "::mlir::ModuleOp"> {
  let summary = "say which chip a module is compiled for";
  let description = [{
    Input: any module. Output: the same with the attribute `ssa.target`, which later passes ask what the chip can do. Without `chip` a
    target that the module has is kept, and `sm_100a` is taken where there is none. A `chip` that is not the one the module has is an
    error: schedules written for one chip are not silently used for another.

    Example: `--ssa-attach-target=chip=sm_90a` gives `module attributes {ssa.target = #ssa.target<sm_90a>}`.
  }];
  let options = [Option<"chip", "chip", "std::string", "\"\"", "the chip, such as sm_90a">];
  let dependentDialects = ["::mlir::ssa::SSADialect"];
}

#endif // SSA_TRANSFORMS_PASSES_TD
