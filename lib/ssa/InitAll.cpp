//===- InitAll.cpp - Everything the project registers ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/InitAll.h"
#include "ssa/IR/SSA.h"
#include "ssa/Transforms/Passes.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"

using namespace mlir;

void ssa::registerDialects(DialectRegistry &registry) { registry.insert<SSADialect>(); }

void ssa::registerAllDialects(DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  ssa::registerDialects(registry);
}

void ssa::registerPasses() { registerSSAPipelines(); }

void ssa::registerAllPasses() {
  mlir::registerAllPasses();
  ssa::registerPasses();
}
