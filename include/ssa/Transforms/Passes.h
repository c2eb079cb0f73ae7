//===- Passes.h - Passes and pipelines of the ssa dialect -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_TRANSFORMS_PASSES_H
#define SSA_TRANSFORMS_PASSES_H

#include "mlir/Pass/PassManager.h"

namespace mlir::ssa {

/// `ssa-optimize`: what makes a pattern simpler without a cost model or a target: local folds, common subexpressions, and
/// sizes of results expressed by sizes of arguments. Takes and gives functions of any dialects.
void buildSSAOptimizePipeline(OpPassManager &pm);

/// Makes the pipelines known by name to `--pass-pipeline`.
void registerSSAPipelines();

} // namespace mlir::ssa

#endif // SSA_TRANSFORMS_PASSES_H
