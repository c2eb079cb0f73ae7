//===- Optimize.h - What LLVM does to kernels -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_TARGET_NVPTX_OPTIMIZE_H
#define SSA_LIB_TARGET_NVPTX_OPTIMIZE_H

#include <memory>

namespace llvm {
class Module;
class OptPassGate;
class TargetMachine;
} // namespace llvm

namespace mlir::ssa {

/// Optimises kernels before the code generator. It takes a quarter of the time of LLVM's default pipeline, and `ptxas`
/// makes shorter code with fewer registers of the result.
void optimizeKernels(llvm::Module &module, llvm::TargetMachine &machine);

/// Keeps the code generator from passes that `ptxas` does better, or that kernels of `module` have no registers for.
std::unique_ptr<llvm::OptPassGate> createCodeGenerationGate(const llvm::Module &module);

} // namespace mlir::ssa

#endif // SSA_LIB_TARGET_NVPTX_OPTIMIZE_H
