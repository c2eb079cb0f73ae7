//===- Passes.h - Conversions from the ssa dialect --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_CONVERSION_PASSES_H
#define SSA_CONVERSION_PASSES_H

#include "ssa/IR/SSA.h"
#include "mlir/Pass/Pass.h"

namespace mlir::ssa {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "ssa/Conversion/Passes.h.inc"

/// True if the kernel of an attention op is one of tiles, which a schedule describes; it is one on CUDA cores for f32 and mixed
/// types, of which nothing may be rounded, and for odd head dims.
bool takesTensorCores(SparseAttendOp op);

/// Numbers ops, for those who want to know which one a launch is of: the conversion hands it on from op to launch.
inline constexpr llvm::StringLiteral originAttrName = "ssa.origin";

/// On a loop of a host function: how many runs that follow one another may be under way at a time, as each has memory of its own.
inline constexpr llvm::StringLiteral lanesAttrName = "ssa.lanes";

/// On an attention op: which schedule is used may be left to the device.
inline constexpr llvm::StringLiteral chooseAtRunTimeAttrName = "ssa.choose_at_run_time";

/// The attribute of a module whose kernels may be launched before those before them have ended, and of a launch whose kernel waits by itself for those.
inline constexpr llvm::StringLiteral dependentLaunchesAttrName = "ssa.dependent_launches";
inline constexpr llvm::StringLiteral dependentAttrName = "ssa.dependent";

} // namespace mlir::ssa

#endif // SSA_CONVERSION_PASSES_H
