//===- ssa-lsp-server.cpp - Language server for editors -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/InitAll.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::ssa::registerAllDialects(registry);
  return failed(mlir::MlirLspServerMain(argc, argv, registry));
}
