//===- Bundle.h - Compiles patterns to bundles ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_TARGET_BUNDLE_H
#define SSA_TARGET_BUNDLE_H

#include "ssa/Transforms/Passes.h"
#include <functional>
#include <string>

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace mlir {
class TimingScope;
} // namespace mlir

namespace mlir::ssa {

/// What is written.
enum class Emission {
  MLIR,   // host functions and kernels
  LLVM,   // optimised LLVM IR of the kernels
  PTX,    // PTX of the kernels
  Plan,   // the plans, as JSON
  Bundle, // PTX and plans of all chips, as docs/bundle.md says
  Cubin   // machine code; needs ptxas
};

struct CompileOptions {
  Emission emission = Emission::Bundle;
  /// Empty: what the module says, else the default chip. More than one for bundles only.
  std::vector<std::string> chips;
  /// What schedules are chosen for.
  SSASelectSchedulePassOptions schedules;
  /// How kernels are made of tiles.
  ssa_gpu::ConvertSSAGPUToNVVMPassOptions lowering;
  /// Called with each pass manager before it runs.
  std::function<LogicalResult(PassManager &)> configure;
};

/// Compiles the public functions of `module`, which may be changed, and writes the outcome to `os`. Nothing is written
/// where there is an error; errors are diagnostics. Needs `registerAllDialects`.
LogicalResult compile(ModuleOp module, const CompileOptions &options, llvm::raw_ostream &os, TimingScope &timing);

} // namespace mlir::ssa

#endif // SSA_TARGET_BUNDLE_H
