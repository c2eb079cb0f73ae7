//===- InitAll.cpp - Everything the project registers ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/InitAll.h"
#include "ssa/Conversion/Passes.h"
#include "ssa/IR/SSA.h"
#include "ssa/Target/NVPTX.h"
#include "ssa/Transforms/Passes.h"
#include "ssa_gpu/Conversion/Passes.h"
#include "ssa_gpu/IR/SSAGPU.h"
#include "ssa_gpu/Transforms/Passes.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"

using namespace mlir;

void ssa::registerDialects(DialectRegistry &registry) { registry.insert<SSADialect, ssa_gpu::SSAGPUDialect>(); }

void ssa::registerAllDialects(DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registerNVPTXTarget(registry);
  ssa::registerDialects(registry);
}

void ssa::registerPasses() {
  registerSSAConversionPasses();
  ssa_gpu::registerSSAGPUConversionPasses();
  ssa_gpu::registerSSAGPUTransformsPasses();
  registerSSATransformsPasses();
  registerSSATargetPasses();
  registerNVPTXPipelines();
  registerSSAPipelines();
}

void ssa::registerAllPasses() {
  mlir::registerAllPasses();
  ssa::registerPasses();
}
