//===- ssa-run.cpp - Runs a function of a pattern -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Cuda.h"
#include "Inputs.h"
#include "Options.h"
#include "Report.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Parser/Parser.h"
#include "ssa/InitAll.h"
#include "ssa/Reference/ArgumentNames.h"
#include "ssa/Reference/Interpreter.h"
#include "ssa/Simulator/Driver.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ThreadPool.h"

using namespace mlir;
using namespace mlir::ssa::reference;
namespace fs = llvm::sys::fs;

static constexpr llvm::StringLiteral helpText = R"(ssa-run: run a function that is written in the ssa dialect

usage: ssa-run FILE [--entry=NAME] [--in INPUT,INPUT,..] [--out FILE.npy,..] [--print]

  FILE             the pattern, text or bytecode, or a bundle (see ssa-opt --emit=bundle); '-' is standard input
  --entry=NAME     the function to run; the only public one if left out
  --in INPUT,..    one input per argument, in order; --in may repeat
  --out FILE,..    one .npy file per result, in order; --out may repeat
  --print          print a line for each input and result; so does leaving out --out
  --time           print where the time went, to standard error
  --device=DEVICE  where to run: cpu, which is the default, or an NVIDIA GPU: cuda, or cuda:N for the one of that number. A
                   pattern is compiled for it first. The environment variable SSA_LIBCUDA may name the driver's library.
                   sim is the simulator: the code for a GPU, run on the CPU and checked, see docs/simulator.md
  --chip=CHIP      the GPU that is simulated, sm_90a if left out
  --cores=N        the most cores to use; all if left out

An INPUT is
  q.npy                   a NumPy file. f2, f4 and f8 arrays feed floating point arguments, f64 to f8E4M3FN, rounded to
                          nearest even (values that overflow are told); i4, i8, i1, u1 and b1 feed integers and indices
  randn:SHAPE[:seed=N]    normal random numbers, e.g. randn:1x8x1000x64:seed=3; N is the input's number if left out
  uniform:SHAPE[:seed=N]  random numbers in [0, 1)
  zeros:SHAPE             zeros; any size may be 0
  arange:SHAPE            0, 1, 2, .. in row-major order
  value:X                 a scalar

Results that are bf16, f16 or f8 are written as f4, i32 as i4, i1 as b1. Files are written when all has succeeded.

  ssa-run moba.mlir --in randn:1x8x1000x64,randn:1x2x1000x64,randn:1x2x1000x64 --print
  ssa-run nsa.mlir --entry=nsa --in q.npy,k.npy,v.npy,g1.npy,g2.npy,g3.npy --out o.npy

Random numbers are the same everywhere. Element i of seed s is, with mix the finalizer of splitmix64 and
u(j) = (mix(mix(s) + (j + 1) * 0x9e3779b97f4a7c15) >> 11) / 2^53: uniform u(i), randn sqrt(-2 log(1 - u(2i))) cos(2 pi u(2i + 1)).
)";

/// The command line.
static Options options;

static LogicalResult emitError(const Twine &message) {
  llvm::errs() << "error: " << message << "\n";
  return failure();
}

//===----------------------------------------------------------------------===//
// The entry
//===----------------------------------------------------------------------===//

/// Names of functions as a list.
static std::string listNames(ArrayRef<FunctionOpInterface> functions) {
  return llvm::join(llvm::map_range(functions, [](FunctionOpInterface f) { return "@" + f.getName().str(); }), ", ");
}

static FunctionOpInterface findEntry(ModuleOp module) {
  SmallVector<FunctionOpInterface> functions, candidates;
  for (auto function : module.getOps<FunctionOpInterface>()) {
    if (function.isExternal())
      continue;
    functions.push_back(function);
    if (options.entry.empty() ? function.isPublic() : function.getName() == options.entry)
      candidates.push_back(function);
  }
  if (candidates.size() == 1)
    return candidates.front();
  if (functions.empty())
    (void)emitError("'" + options.file + "' has no function to run");
  else if (!options.entry.empty())
    (void)emitError("'" + options.file + "' has no function @" + options.entry + "; it has " + listNames(functions));
  else if (candidates.empty())
    (void)emitError("'" + options.file + "' has no public function; choose one with --entry: " + listNames(functions));
  else
    (void)emitError("'" + options.file +
                    "' has several public functions; choose one with --entry: " + listNames(candidates));
  return nullptr;
}

static std::string count(size_t n, StringRef noun) {
  return std::to_string(n) + " " + noun.str() + (n == 1 ? "" : "s");
}

static LogicalResult checkCounts(FunctionOpInterface entry) {
  std::string name = "@" + entry.getName().str();
  if (options.inputs.size() != entry.getNumArguments())
    return emitError(name + " takes " + count(entry.getNumArguments(), "input") + ", but --in gives " +
                     Twine(options.inputs.size()) + ": " + describeSignature(entry));
  if (!options.outputs.empty() && options.outputs.size() != entry.getNumResults())
    return emitError(name + " gives " + count(entry.getNumResults(), "result") + ", but --out takes " +
                     Twine(options.outputs.size()) + ": " + describeSignature(entry));
  return success();
}

//===----------------------------------------------------------------------===//
// Inputs and outputs
//===----------------------------------------------------------------------===//

/// "input 1 '%k' (k.npy)".
static std::string describeInput(FunctionOpInterface entry, unsigned number) {
  std::string name = getArgumentName(entry, number);
  return "input " + std::to_string(number) + (name.empty() ? "" : " '" + name + "'") + " (" + options.inputs[number] +
         ")";
}

static FailureOr<SmallVector<Tensor>> makeInputs(FunctionOpInterface entry) {
  SmallVector<Tensor> inputs;
  for (auto [i, type] : llvm::enumerate(entry.getArgumentTypes())) {
    Type elementType = getElementTypeOrSelf(type);
    // The interpreter has the words for an argument that it cannot hold.
    if (!Tensor::isSupported(elementType)) {
      inputs.emplace_back();
      continue;
    }
    llvm::Expected<Imported> input = makeInput(options.inputs[i], i, elementType);
    if (!input)
      return emitError(describeInput(entry, i) + " " + llvm::toString(input.takeError()));
    if (input->numOverflows) {
      llvm::errs() << "warning: " << describeInput(entry, i) << " was rounded to " << elementType << "; "
                   << count(input->numOverflows, "value") << " of " << input->tensor.getNumElements()
                   << " overflow it\n";
    }
    inputs.push_back(std::move(input->tensor));
  }
  return inputs;
}

/// A result on its way to a file: in a file of its own beside it, which takes its place once all of them are there.
static LogicalResult writeResults(ArrayRef<Tensor> results) {
  std::vector<fs::TempFile> files;
  LogicalResult done = success();
  for (auto [path, tensor] : llvm::zip(options.outputs, results)) {
    llvm::Expected<fs::TempFile> file = fs::TempFile::create(path + ".%%%%%%%%", 0666);
    if (!file) {
      done = emitError("cannot write '" + path + "': " + llvm::toString(file.takeError()));
      break;
    }
    files.push_back(std::move(*file));
    llvm::raw_fd_ostream os(files.back().FD, /*shouldClose=*/false);
    writeNpy(tensor, os);
    os.flush();
    if (os.has_error()) {
      done = emitError("cannot write '" + path + "': " + os.error().message());
      os.clear_error();
      break;
    }
  }
  for (auto [i, file] : llvm::enumerate(files)) {
    llvm::Error error = succeeded(done) ? file.keep(options.outputs[i]) : file.discard();
    if (error)
      done = emitError("cannot write '" + options.outputs[i] + "': " + llvm::toString(std::move(error)));
  }
  return done;
}

/// Catches what would be found only after a long evaluation.
static LogicalResult checkOutputs() {
  llvm::StringSet<> seen;
  for (const std::string &path : options.outputs) {
    if (path.empty())
      return emitError("--out has an empty file name");
    if (!seen.insert(path).second)
      return emitError("--out has '" + path + "' twice");
    // Such a path would be replaced by a file.
    if (fs::exists(path) && !fs::is_regular_file(path))
      return emitError("cannot write '" + path + "': it is no regular file");
    StringRef folder = llvm::sys::path::parent_path(path);
    if (!folder.empty() && !fs::is_directory(folder))
      return emitError("cannot write '" + path + "': there is no folder '" + folder + "'");
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Main
//===----------------------------------------------------------------------===//

/// Evaluates the entry here.
static FailureOr<SmallVector<Tensor>> interpret(FunctionOpInterface entry, ArrayRef<Tensor> inputs, TimeTable &times) {
  InterpreterOptions settings;
  ProgressLine progress(options.progressAfter);
  settings.progress = [&](StringRef opName, double fraction) { progress.update(opName, fraction); };
  if (options.time)
    settings.finished = [&](StringRef opName, double seconds) { times.add(opName, seconds); };
  return evaluate(entry, inputs, settings);
}

static FailureOr<SmallVector<Tensor>> runOnGPU(FunctionOpInterface entry, ArrayRef<Tensor> inputs,
                                               CudaProgram &program) {
  ProgressLine progress(options.progressAfter);
  ssa::sim::Settings &settings = ssa::sim::driverSettings();
  settings.numThreads = options.numCores;
  settings.progress = [&](const std::string &kernel, uint64_t done, uint64_t total) {
    progress.update(kernel, double(done) / double(total));
  };
  llvm::scope_exit forget([&] { settings.progress = nullptr; });
  llvm::Expected<SmallVector<Tensor>> results = program.run(entry.getName(), inputs, entry.getResultTypes());
  if (!results)
    return emitError("device '" + options.device + "': " + llvm::toString(results.takeError()));
  return std::move(*results);
}

/// Runs the entry on a GPU if `program` is not null.
static LogicalResult run(FunctionOpInterface entry, CudaProgram *program, TimeTable &times) {
  if (failed(checkCounts(entry)) || failed(checkOutputs()))
    return failure();
  FailureOr<SmallVector<Tensor>> inputs = makeInputs(entry);
  if (failed(inputs))
    return failure();
  bool print = options.print || options.outputs.empty();
  for (unsigned i = 0; print && i < inputs->size(); ++i) {
    if (!(*inputs)[i])
      continue;
    std::string name = getArgumentName(entry, i);
    printSummary(llvm::outs(), "input " + Twine(i) + (name.empty() ? "" : " " + name), entry.getArgumentTypes()[i],
                 (*inputs)[i]);
  }
  llvm::outs().flush();

  FailureOr<SmallVector<Tensor>> results =
      program ? runOnGPU(entry, *inputs, *program) : interpret(entry, *inputs, times);
  if (failed(results))
    return failure();
  if (options.time) {
    times.print(llvm::errs());
    if (const ssa::sim::Statistics &done = ssa::sim::driverStatistics(); done.seconds > 0)
      llvm::errs() << llvm::format("simulated %.3f million thread instructions, %.1f million a second of a core\n",
                                   double(done.threadInstructions) / 1e6,
                                   double(done.threadInstructions) / 1e6 / done.seconds);
  }
  if (failed(writeResults(*results)))
    return failure();
  for (unsigned i = 0; print && i < results->size(); ++i)
    printSummary(llvm::outs(), "result " + Twine(i), entry.getResultTypes()[i], (*results)[i]);
  return success();
}

/// Parses the file. Some of upstream's parsers crash on faulty text (`dimensions = [1@`), which is the text's fault to
/// whoever wrote it: an error, after which nothing of the process can be relied on.
static OwningOpRef<ModuleOp> parseSafely(const llvm::SourceMgr &sourceMgr, MLIRContext &context) {
  OwningOpRef<ModuleOp> module;
  llvm::CrashRecoveryContext::Enable();
  llvm::CrashRecoveryContext recovery;
  constexpr unsigned stackBytes = 1u << 29; // nesting ten thousands deep wants it
  if (!recovery.RunSafelyOnThread([&] { module = parseNamed(sourceMgr, ParserConfig(&context)); }, stackBytes)) {
    (void)emitError("'" + options.file + "' is not valid: MLIR's own parser crashed on it");
    std::_Exit(1);
  }
  llvm::CrashRecoveryContext::Disable();
  return module;
}

/// The GPU or simulator that --device names; nullopt for the CPU.
static FailureOr<std::optional<DeviceChoice>> getGPU() {
  StringRef name = options.device;
  DeviceChoice choice;
  if (!options.chip.empty() && name != "sim")
    return emitError("--chip is for --device=sim only");
  if (name == "cpu")
    return std::optional<DeviceChoice>();
  if (name == "sim")
    choice.simulatedChip = options.chip.empty() ? "sm_90a" : options.chip;
  else if (!name.consume_front("cuda") ||
           !(name.empty() || (name.consume_front(":") && !name.getAsInteger(10, choice.number))))
    return emitError("device '" + options.device + "' is not known; there are cpu, cuda, cuda:N and sim");
  return std::optional(choice);
}

/// Runs what is in the file, on `gpu` if there is one.
static LogicalResult runFile(const llvm::SourceMgr &sourceMgr, MLIRContext &context,
                             const std::optional<DeviceChoice> &gpu) {
  TimeTable times;
  CudaProgram::Finished finished;
  if (options.time)
    finished = [&](StringRef step, double seconds) { times.add(step, seconds); };
  auto refuse = [](llvm::Error error) {
    std::string message = llvm::toString(std::move(error));
    return message.empty() ? failure() : emitError("device '" + options.device + "': " + message);
  };
  StringRef text = sourceMgr.getMemoryBuffer(sourceMgr.getMainFileID())->getBuffer();
  if (isBundle(text)) {
    if (!gpu)
      return emitError("'" + options.file +
                       "' is a bundle, which runs on a GPU only; use --device=cuda or --device=sim");
    llvm::Expected<std::unique_ptr<CudaProgram>> program = CudaProgram::loadBundle(*gpu, text, options.file, finished);
    if (!program)
      return refuse(program.takeError());
    OwningOpRef<ModuleOp> module = (*program)->makeSignatures(&context);
    FunctionOpInterface entry = findEntry(*module);
    return entry ? run(entry, program->get(), times) : failure();
  }
  OwningOpRef<ModuleOp> module = parseSafely(sourceMgr, context);
  if (!module)
    return failure();
  FunctionOpInterface entry = findEntry(*module);
  if (!entry || !gpu)
    return entry ? run(entry, nullptr, times) : failure();
  llvm::Expected<std::unique_ptr<CudaProgram>> program = CudaProgram::compile(*gpu, *module, options.file, finished);
  return program ? run(entry, program->get(), times) : refuse(program.takeError());
}

static LogicalResult runFile() {
  FailureOr<std::optional<DeviceChoice>> gpu = getGPU();
  if (failed(gpu))
    return failure();
  if (options.file.empty())
    return emitError("there is no FILE to run; see ssa-run --help");
  auto file = llvm::MemoryBuffer::getFileOrSTDIN(options.file);
  if (!file)
    return emitError("cannot read '" + options.file + "': " + file.getError().message());
  llvm::SourceMgr sourceMgr;
  sourceMgr.AddNewSourceBuffer(std::move(*file), SMLoc());
  DialectRegistry registry;
  ssa::registerAllDialects(registry);
  llvm::DefaultThreadPool pool(llvm::hardware_concurrency(options.numCores));
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  if (options.numCores != 1)
    context.setThreadPool(pool);
  context.printOpOnDiagnostic(false);
  SourceMgrDiagnosticHandler handler(sourceMgr, &context);
  return runFile(sourceMgr, context, *gpu);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  llvm::Expected<Options> parsed = Options::parse(ArrayRef<const char *>(argv + 1, argc - 1));
  if (!parsed)
    return failed(emitError(llvm::toString(parsed.takeError())));
  options = std::move(*parsed);
  if (options.help) {
    llvm::outs() << helpText;
    return 0;
  }
  return failed(runFile());
}
