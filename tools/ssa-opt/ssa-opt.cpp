//===- ssa-opt.cpp - Checks and transforms patterns -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/InitAll.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

static constexpr llvm::StringLiteral helpText = R"(ssa-opt: check, simplify and transform sparse attention written in the ssa dialect

usage: ssa-opt [FILE] [options]      reads FILE (or standard input), writes IR to standard output

Checking
  ssa-opt pattern.mlir               parse and verify; print the result
  --verify-diagnostics               check 'expected-error' comments of a test
  --split-input-file                 treat parts between '// -----' as files of their own

Transforming
  --ssa-optimize                     local folds, common subexpressions, sizes from arguments
  --canonicalize, --cse, ..          any pass of MLIR
  --pass-pipeline='builtin.module(ssa-optimize)'
                                     several passes in a given order

Output
  -o FILE                            write there
  --emit-bytecode                    write bytecode, which is smaller and reads faster
  --mlir-print-op-generic            print the generic form
  --mlir-print-ir-after-all          print the IR after each pass
  --mlir-timing                      show where the time goes

More
  --help-all                         all options and passes, MLIR's included
  --show-dialects                    all dialects that can be read
  --version                          the version of LLVM it stands on

To run a pattern see ssa-run --help. The ops: docs of the dialect (build target ssa-doc).
)";

int main(int argc, char **argv) {
  // MLIR's own help lists some hundreds of passes; a newcomer wants the few that matter here.
  for (int i = 1; i < argc; ++i) {
    StringRef arg(argv[i]);
    if (arg == "--help" || arg == "-help" || arg == "-h") {
      llvm::outs() << helpText;
      return 0;
    }
    static char help[] = "--help";
    if (arg == "--help-all" || arg == "-help-all")
      argv[i] = help;
  }
  DialectRegistry registry;
  ssa::registerAllDialects(registry);
  ssa::registerAllPasses();
  return asMainReturnCode(MlirOptMain(argc, argv, "ssa-opt: the compiler for sparse attention\n", registry));
}
