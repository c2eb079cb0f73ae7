//===- Passes.h - Transforms of the ssa_gpu dialect -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_GPU_TRANSFORMS_PASSES_H
#define SSA_GPU_TRANSFORMS_PASSES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/Pass.h"

namespace mlir::ssa_gpu {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "ssa_gpu/Transforms/Passes.h.inc"

} // namespace mlir::ssa_gpu

#endif // SSA_GPU_TRANSFORMS_PASSES_H
