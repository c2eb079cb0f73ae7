//===- ssa-opt.cpp - Checks and transforms patterns -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "../Help.h"
#include "Emit.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "ssa/InitAll.h"
#include "ssa/Version.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

static constexpr llvm::StringLiteral helpText =
    R"(ssa-opt checks, simplifies and transforms sparse attention written in the ssa dialect.

Usage: ssa-opt [FILE] [options]

Reads FILE (standard input if there is none), checks it, and writes it to standard output.

  ssa-opt pattern.mlir                  is it right? errors say what was found and expected
  ssa-opt pattern.mlir --ssa-optimize   the same, simpler
  ssa-opt pattern.mlir --emit=bundle --chip=sm_90a -o pattern.json

Compiling
  --emit=bundle                 PTX and launch plans in one file; or ptx, plan, mlir, llvm, cubin
  --chip=sm_90a,sm_100a         for these chips; sm_100a if none is named
  --explain                     kernels, choices, predicted times, memory; --explain=json for tools
  --sizes=tokens=4096           sizes that types leave open, for what is chosen and predicted

Pipelines
  --ssa-optimize                local folds, common subexpressions, sizes from arguments
  --ssa-to-kernels              kernels for the module's target, and what launches them
  --ssa-kernels-to-nvvm         these kernels in the dialects of LLVM and NVVM
  --pass-pipeline='builtin.module(canonicalize,cse)'
                                several passes, in this order
  --canonicalize, --cse         any pass by its name, those of MLIR too

Input
  --split-input-file            parts between lines '// -----' are files of their own
  --allow-unregistered-dialect  take ops that nobody defines
  --verify-diagnostics          check errors against 'expected-error' comments, for tests

Output
  -o FILE                       write there
  --emit-bytecode               write bytecode, which is smaller and faster to read
  --mlir-print-op-generic       print the generic form, with all there is
  --mlir-print-ir-after-all     print what each pass makes, to standard error
  --mlir-timing                 tell where the time goes

More
  --show-dialects               the dialects that can be read
  --help-all                    all options and all passes
  --version                     versions of ssa-opt and LLVM

To run a pattern: ssa-run --help
)";

int main(int argc, char **argv) {
  if (ssa::printHelp(argc, argv, helpText))
    return 0;
  llvm::InitLLVM init(argc, argv);
  llvm::cl::SetVersionPrinter(
      [](raw_ostream &os) { os << "ssa-opt " << SSA_VERSION_STRING << " (LLVM " << LLVM_VERSION_STRING << ")\n"; });
  DialectRegistry registry;
  ssa::registerAllDialects(registry);
  ssa::registerAllPasses();
  std::string input, output;
  std::tie(input, output) =
      registerAndParseCLIOptions(argc, argv, "ssa-opt: checks and transforms sparse attention\n", registry);
  // Not by opening it: what comes through a pipe can be read once.
  if (std::error_code error = llvm::sys::fs::access(input, llvm::sys::fs::AccessMode::Exist); error && input != "-") {
    llvm::errs() << "ssa-opt: error: cannot read '" << input << "': " << error.message() << "\n";
    return 1;
  }
  // Some of upstream's parsers and verifiers crash on faulty text, and nesting ten thousands deep wants a large stack.
  constexpr unsigned stackBytes = 1u << 29;
  LogicalResult result = failure();
  llvm::CrashRecoveryContext::Enable();
  llvm::CrashRecoveryContext recovery;
  bool survived = recovery.RunSafelyOnThread(
      [&] {
        if (std::optional<LogicalResult> emitted = ssa::runEmission(input, output, registry))
          result = *emitted;
        else
          result = MlirOptMain(argc, argv, input, output, registry);
      },
      stackBytes);
  if (!survived) {
    llvm::errs() << "ssa-opt: error: '" << input << "' is not valid, or a pass is wrong: MLIR itself crashed on it\n";
    std::_Exit(1); // nothing of the process can be relied on
  }
  return asMainReturnCode(result);
}
