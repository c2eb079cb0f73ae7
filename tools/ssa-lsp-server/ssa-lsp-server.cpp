//===- ssa-lsp-server.cpp - Language server for editors -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "../Help.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "ssa/InitAll.h"

static constexpr llvm::StringLiteral helpText =
    R"(ssa-lsp-server tells an editor about .mlir files with the ssa dialect: errors while typing, what an
op is, where a name is defined and used.

An editor starts it, and speaks the language server protocol with it on standard input and output.

  Visual Studio Code   extension "MLIR" (llvm-vs-code-extensions.vscode-mlir), in the settings
                         "mlir.server_path": "/path/to/ssa-lsp-server"
  Neovim               vim.lsp.config('ssa', { cmd = { 'ssa-lsp-server' }, filetypes = { 'mlir' } })
                       vim.lsp.enable('ssa')
  Emacs (eglot)        (add-to-list 'eglot-server-programs '(mlir-mode "ssa-lsp-server"))

More
  --help-all           all options
)";

int main(int argc, char **argv) {
  if (mlir::ssa::printHelp(argc, argv, helpText))
    return 0;
  mlir::DialectRegistry registry;
  mlir::ssa::registerAllDialects(registry);
  return failed(mlir::MlirLspServerMain(argc, argv, registry));
}
