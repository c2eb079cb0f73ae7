//===- Pipelines.cpp - Pipelines by name ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/Transforms/Passes.h"
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

void ssa::registerSSAPipelines() {
  PassPipelineRegistration<>("ssa-optimize", "Simplify patterns: local folds, common subexpressions, sizes from arguments",
                             buildSSAOptimizePipeline);
}
