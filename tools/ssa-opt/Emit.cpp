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
#include "ssa/Target/Explain.h"
#include "llvm/Support/BuryPointer.h"
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

static llvm::cl::opt<ExplanationForm>
    explanation("explain", llvm::cl::ValueOptional, llvm::cl::desc("compile, and say what becomes of the pattern"),
                llvm::cl::values(clEnumValN(ExplanationForm::Text, "", "for people"), clEnumValN(ExplanationForm::Text, "text", "for people"),
                                 clEnumValN(ExplanationForm::JSON, "json", "for tools")));

static llvm::cl::opt<bool> explainRegisters("explain-registers",
                                            llvm::cl::desc("with --explain: registers and spills as ptxas says, which takes longer"));

static llvm::cl::opt<std::string> sizes("sizes", llvm::cl::value_desc("131072 or tokens=N,queries=M,.."), llvm::cl::init("131072"),
                                        llvm::cl::desc("sizes that are assumed where types leave them open (with --emit or --explain)"));

static llvm::cl::opt<double> agreement("agreement", llvm::cl::value_desc("0 .. 1"), llvm::cl::init(-1.0),
                                       llvm::cl::desc("share that lists of neighbouring queries have in common (with --emit or --explain); default: "
                                                      "lists at random"));

static llvm::cl::opt<bool> chooseAtRunTime("choose-at-run-time",
                                           llvm::cl::desc("let the device choose between schedules for lists that agree and for others, where that "
                                                          "pays (with --emit or --explain)"));

static llvm::cl::opt<std::string> tuningFile("tuning", llvm::cl::value_desc("FILE"),
                                             llvm::cl::desc("schedules that ssa-tune measured (with --emit or --explain)"));

static llvm::cl::opt<bool> everyLaneArrives("every-lane-arrives",
                                            llvm::cl::desc("slower kernels for tools that look for races: all lanes of a warp arrive at barriers (with --emit)"));

/// The first option that needs `--emit` or `--explain`, if it is given.
static StringRef findStrayOption() {
  if (explainRegisters.getNumOccurrences())
    return "explain-registers";
  if (sizes.getNumOccurrences())
    return "sizes";
  if (agreement.getNumOccurrences())
    return "agreement";
  if (chooseAtRunTime.getNumOccurrences())
    return "choose-at-run-time";
  if (everyLaneArrives.getNumOccurrences())
    return "every-lane-arrives";
  return tuningFile.getNumOccurrences() ? "tuning" : "";
}

std::optional<LogicalResult> ssa::runEmission(llvm::StringRef input, llvm::StringRef output,
                                              const DialectRegistry &registry) {
  auto fail = [](const Twine &message) {
    llvm::errs() << "ssa-opt: error: " << message << "\n";
    return failure();
  };
  bool explains = explanation.getNumOccurrences();
  if (explains && emission.getNumOccurrences())
    return fail("'--explain' and '--emit' exclude each other");
  if (StringRef stray = findStrayOption(); !explains && !stray.empty() && (!emission.getNumOccurrences() || stray == "explain-registers"))
    return fail("'--" + stray + "' needs '--explain'" + (stray == "explain-registers" ? "" : " or '--emit'"));
  if (!explains && !emission.getNumOccurrences()) {
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

  // Never destroyed: the process ends, and taking everything apart would be a fortieth of its time.
  auto *buried = new MLIRContext(registry);
  llvm::BuryPointer(buried);
  MLIRContext &context = *buried;
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
  llvm::BuryPointer(module->getOperation());
  ModuleOp pattern = module.release();

  CompileOptions options;
  options.emission = emission;
  options.schedules.sizesText = sizes;
  options.schedules.agreement = agreement;
  options.schedules.chooseAtRunTime = chooseAtRunTime;
  options.schedules.tuningFile = tuningFile;
  options.lowering.everyLaneArrives = everyLaneArrives;
  options.chips = chips;
  options.configure = [](PassManager &pm) { return applyPassManagerCLOptions(pm); };
  std::string text;
  llvm::raw_string_ostream os(text);
  LogicalResult done = explains ? explain(pattern, {options, explanation, explainRegisters}, os, timing) : compile(pattern, options, os, timing);
  if (failed(done))
    return failure();
  std::unique_ptr<llvm::ToolOutputFile> out = openOutputFile(output, &message);
  if (!out)
    return fail(message);
  out->os() << text;
  out->keep();
  return success();
}
