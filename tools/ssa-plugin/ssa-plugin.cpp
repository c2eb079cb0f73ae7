//===- ssa-plugin.cpp - The dialect and passes for other tools ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// mlir-opt --load-dialect-plugin=libSSAPlugin.so --load-pass-plugin=libSSAPlugin.so \
//   --pass-pipeline='builtin.module(ssa-optimize)'
//
//===----------------------------------------------------------------------===//

#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "ssa/InitAll.h"
#include "ssa/Version.h"

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT mlir::DialectPluginLibraryInfo mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "SSA", SSA_VERSION_STRING,
          [](mlir::DialectRegistry *registry) { mlir::ssa::registerDialects(*registry); }};
}

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT mlir::PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "SSA", SSA_VERSION_STRING, [] { mlir::ssa::registerPasses(); }};
}
