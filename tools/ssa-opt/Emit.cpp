//===- Emit.cpp - Compiles instead of transforming ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Emit.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Support/Timing.h"
#include "ssa/Reference/ArgumentNames.h"
#include "ssa/Target/Bundle.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
using namespace mlir::ssa;

static llvm::cl::opt<Emission>
    emission("emit", llvm::cl::desc("compile, and write"),
             llvm::cl::values(clEnumValN(Emission::MLIR, "mlir", "host functions and kernels"),
                              clEnumValN(Emission::LLVM, "llvm", "LLVM IR of the kernels, optimised"),
                              clEnumValN(Emission::PTX, "ptx", "PTX of the kernels"),
                              clEnumValN(Emission::Plan, "plan", "what a launcher has to do, as JSON"),
                              clEnumValN(Emission::Bundle, "bundle", "PTX and plans for all chips, in one file"),
                              clEnumValN(Emission::Cubin, "cubin", "machine code, made by ptxas")));

static llvm::cl::list<std::string> chips("chip", llvm::cl::CommaSeparated, llvm::cl::value_desc("sm_90a,.."),
                                         llvm::cl::desc("compile for these chips (with --emit); default sm_100a"));

std::optional<LogicalResult> ssa::runEmission(llvm::StringRef input, llvm::StringRef output,
                                              const DialectRegistry &registry) {
  auto fail = [](const Twine &message) {
    llvm::errs() << "ssa-opt: error: " << message << "\n";
    return failure();
  };
  if (!emission.getNumOccurrences()) {
    if (chips.empty())
      return std::nullopt;
    return fail(
        "'--chip' needs '--emit'; to name the target of a module use '--ssa-attach-target=chip=" + chips.front() + "'");
  }
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(input, &message);
  if (!file)
    return fail(message);

  DefaultTimingManager timingManager;
  applyDefaultTimingManagerCLOptions(timingManager);
  TimingScope timing = timingManager.getRootScope();

  MLIRContext context(registry);
  context.printOpOnDiagnostic(false); // what an error points at is enough
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(file), SMLoc());
  SourceMgrDiagnosticHandler diagnostics(sources, &context);
  OwningOpRef<ModuleOp> module;
  {
    TimingScope scope = timing.nest("Parser");
    module = reference::parseNamed(sources, ParserConfig(&context));
  }
  if (!module)
    return failure();

  CompileOptions options;
  options.emission = emission;
  options.chips = chips;
  options.configure = [](PassManager &pm) { return applyPassManagerCLOptions(pm); };
  std::string text;
  llvm::raw_string_ostream os(text);
  if (failed(compile(*module, options, os, timing)))
    return failure();
  std::unique_ptr<llvm::ToolOutputFile> out = openOutputFile(output, &message);
  if (!out)
    return fail(message);
  out->os() << text;
  out->keep();
  return success();
}
