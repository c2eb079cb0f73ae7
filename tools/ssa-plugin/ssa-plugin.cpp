//===- ssa-plugin.cpp - The dialect and passes for other tools ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// mlir-opt --load-dialect-plugin=libSSAPlugin.so --load-pass-plugin=libSSAPlugin.so
//
//===----------------------------------------------------------------------===//

#include "ssa/InitAll.h"
#include "ssa/IR/SSA.h"
#include "ssa/Transforms/Passes.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/Config/llvm-config.h"

extern "C" LLVM_ATTRIBUTE_WEAK mlir::DialectPluginLibraryInfo mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "SSA", LLVM_VERSION_STRING,
          [](mlir::DialectRegistry *registry) { registry->insert<mlir::ssa::SSADialect>(); }};
}

extern "C" LLVM_ATTRIBUTE_WEAK mlir::PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "SSA", LLVM_VERSION_STRING, [] { mlir::ssa::registerSSAPipelines(); }};
}
