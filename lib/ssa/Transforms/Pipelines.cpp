//===- Pipelines.cpp - Pipelines by name ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/Transforms/Passes.h"
#include "ssa/Conversion/Passes.h"
#include "ssa_gpu/Conversion/Passes.h"
#include "ssa_gpu/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void ssa::buildSSAOptimizePipeline(OpPassManager &pm) {
  pm.addPass(createCanonicalizerPass());
  pm.addPass(memref::createResolveRankedShapeTypeResultDimsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

void ssa::buildSSADecisionsPipeline(OpPassManager &pm, const SSASelectSchedulePassOptions &schedules) {
  pm.addPass(createInlinerPass());
  buildSSAOptimizePipeline(pm);
  pm.addPass(createSSAJoinSelectionsPass()); // what it merges may be fused
  pm.addPass(createSSAFusePass());
  pm.addPass(createSSASortSelectionPass());
  pm.addPass(createSSASelectSchedulePass(schedules));
  pm.addPass(createSSAChunkRowsPass());
}

/// Passes of functions: MLIR runs them on as many at once as there are threads.
static void addToFunctions(OpPassManager &pm, llvm::function_ref<void(OpPassManager &)> add) {
  add(pm.nest<func::FuncOp>());
  add(pm.nest<gpu::GPUModuleOp>().nest<gpu::GPUFuncOp>());
}

void ssa::buildSSADecidedToTilesPipeline(OpPassManager &pm) {
  pm.addPass(createConvertSSAToSSAGPUPass());
  // Kernels are simplified and compared while they are short. What lowering them leaves to do, LLVM does faster.
  GreedyRewriteConfig inOrder;
  inOrder.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled); // there are no blocks to merge
  inOrder.setMaxIterations(1); // a second walk over all finds nothing that the first has not been led to
  pm.addPass(createSSAMergeKernelsPass()); // those that are equal as they were made
  addToFunctions(pm, [&](OpPassManager &functions) {
    functions.addPass(createSSACommonSubexpressionsPass());
    functions.addPass(createCanonicalizerPass(inOrder));
  });
  pm.addPass(createSSAMergeKernelsPass());
}

void ssa::buildSSATilesToKernelsPipeline(OpPassManager &pm, const ssa_gpu::ConvertSSAGPUToNVVMPassOptions &lowering) {
  pm.addNestedPass<gpu::GPUModuleOp>(ssa_gpu::createSSAGPUVerifySyncPass());
  pm.addPass(ssa_gpu::createSSAGPUAllocatePass());
  pm.addNestedPass<gpu::GPUModuleOp>(ssa_gpu::createConvertSSAGPUToNVVMPass(lowering));
  addToFunctions(pm, [](OpPassManager &functions) { functions.addPass(createSSACommonSubexpressionsPass()); });
  pm.addPass(createSSAGuardKernelsPass());
  pm.addPass(createSSADependentLaunchesPass());
}

void ssa::buildSSAToKernelsPipeline(OpPassManager &pm) {
  buildSSADecisionsPipeline(pm);
  buildSSADecidedToTilesPipeline(pm);
  buildSSATilesToKernelsPipeline(pm);
}

void ssa::registerSSAPipelines() {
  PassPipelineRegistration<>("ssa-optimize", "Simplify patterns: local folds, common subexpressions, sizes from arguments",
                             buildSSAOptimizePipeline);
  PassPipelineRegistration<>("ssa-to-kernels", "From patterns to kernels and host functions that launch them",
                             buildSSAToKernelsPipeline);
}
