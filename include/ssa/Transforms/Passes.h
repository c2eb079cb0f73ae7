//===- Passes.h - Passes and pipelines of the ssa dialect -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_TRANSFORMS_PASSES_H
#define SSA_TRANSFORMS_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "ssa_gpu/Conversion/Passes.h"

namespace mlir::ssa {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "ssa/Transforms/Passes.h.inc"

/// `ssa-optimize`: what makes a pattern simpler without a cost model or a target: local folds, common subexpressions, and
/// sizes of results expressed by sizes of arguments. Takes and gives functions of any dialects.
void buildSSAOptimizePipeline(OpPassManager &pm);

/// All that is decided before there are kernels, on patterns: what is fused, joined and sorted, schedules, chunks. Takes modules that have a target.
void buildSSADecisionsPipeline(OpPassManager &pm, const SSASelectSchedulePassOptions &schedules = {});

/// From patterns that are decided to kernels that work on tiles.
void buildSSADecidedToTilesPipeline(OpPassManager &pm);

/// From tiles to what a thread has of them and does.
void buildSSATilesToKernelsPipeline(OpPassManager &pm, const ssa_gpu::ConvertSSAGPUToNVVMPassOptions &lowering = {});

/// All three: from patterns to kernels: every public function becomes a host function on buffers that launches kernels, beside a
/// `gpu.module` with these. Takes modules that have a target; those already in that form pass through.
void buildSSAToKernelsPipeline(OpPassManager &pm);

/// Makes the pipelines known by name to `--pass-pipeline`.
void registerSSAPipelines();

} // namespace mlir::ssa

#endif // SSA_TRANSFORMS_PASSES_H
