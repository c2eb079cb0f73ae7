//===- Compile.cpp - From LLVM's dialects to PTX --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The compiler's own path rather than `gpu-module-to-binary`: that one knows fewer chips than LLVM does.
//
//===----------------------------------------------------------------------===//

#include "ChipNeeds.h"
#include "Optimize.h"
#include "mlir/IR/Threading.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Support/Timing.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "ssa/Target/NVPTX.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Target/TargetMachine.h"
#include <mutex>
#include <set>

using namespace mlir;
using namespace mlir::ssa;

extern "C" { // one of LLVM's targets; the header that declares them declares all
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

static constexpr llvm::StringLiteral tripleName = "nvptx64-nvidia-cuda";

//===----------------------------------------------------------------------===//
// Guard
//===----------------------------------------------------------------------===//

namespace {
/// While one exists, a fatal error in LLVM, which would end the process, ends what runs in `run` instead.
class Guard {
public:
  Guard() {
    std::lock_guard<std::mutex> lock(mutex);
    if (count++ > 0)
      return;
    llvm::CrashRecoveryContext::Enable();
    llvm::install_fatal_error_handler(handle);
  }
  ~Guard() {
    std::lock_guard<std::mutex> lock(mutex);
    if (--count > 0)
      return;
    llvm::remove_fatal_error_handler();
    llvm::CrashRecoveryContext::Disable();
  }

  /// False if `work` was ended, with the reason in `message`. What it had built must then not be touched again.
  bool run(llvm::function_ref<void()> work, std::string &message) {
    current = &message;
    llvm::CrashRecoveryContext context;
    bool isDone = context.RunSafely(work);
    current = nullptr;
    return isDone;
  }

private:
  static void handle(void *, const char *reason, bool) {
    if (current)
      *current = reason;
    if (auto *context = llvm::CrashRecoveryContext::GetCurrent())
      context->HandleExit(1);
  }

  // The handlers are the process's, the error a thread's.
  static std::mutex mutex;
  static unsigned count;
  static thread_local std::string *current;
};

std::mutex Guard::mutex;
unsigned Guard::count = 0;
thread_local std::string *Guard::current = nullptr;
} // namespace

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

namespace {

/// Kernels that are compiled together, on their way.
class Compilation {
public:
  Compilation(gpu::GPUModuleOp kernels, TargetAttr target) : kernels(kernels), target(target) {}

  LogicalResult run(bool printLLVM, DeviceCode &code, TimingScope &timing);

private:
  LogicalResult translate();
  LogicalResult generate(bool printLLVM, DeviceCode &code, TimingScope &timing);
  LogicalResult createMachine();
  LogicalResult checkIntrinsics();
  void emit(DeviceCode &code);
  void reportTo(Location loc);

  gpu::GPUModuleOp kernels;
  TargetAttr target;
  // Not destroyed after a fatal error.
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
  std::unique_ptr<llvm::TargetMachine> machine;
  bool hasErrors = false;
};

} // namespace

LogicalResult Compilation::createMachine() {
  static std::once_flag initialized;
  std::call_once(initialized, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::Triple triple(tripleName);
  std::string message;
  const llvm::Target *nvptx = llvm::TargetRegistry::lookupTarget("", triple, message);
  if (!nvptx)
    return emitError(kernels.getLoc(), "LLVM has no NVPTX backend: ") << message;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Fast;
  std::string features = "+ptx" + std::to_string(target.ptxVersion());
  machine.reset(nvptx->createTargetMachine(triple, target.getChip(), features, options, std::nullopt, std::nullopt,
                                           llvm::CodeGenOptLevel::Default));
  return success();
}

/// Errors of the backend become errors at the module.
void Compilation::reportTo(Location loc) {
  struct Handler : llvm::DiagnosticHandler {
    Handler(Location loc, bool &hasErrors) : loc(loc), hasErrors(hasErrors) {}
    bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
      if (info.getSeverity() != llvm::DS_Error)
        return true; // the backend's remarks and warnings are about code that no user wrote
      std::string text;
      llvm::raw_string_ostream os(text);
      llvm::DiagnosticPrinterRawOStream printer(os);
      info.print(printer);
      emitError(loc, "the NVPTX backend says: ") << text;
      return hasErrors = true;
    }
    Location loc;
    bool &hasErrors;
  };
  context->setDiagnosticHandler(std::make_unique<Handler>(loc, hasErrors));
}

LogicalResult Compilation::translate() {
  if (failed(createMachine()))
    return failure();
  context = std::make_unique<llvm::LLVMContext>();
  reportTo(kernels.getLoc());
  module = translateModuleToLLVMIR(kernels, *context, kernels.getName(), /*disableVerification=*/true);
  if (!module)
    return failure();
  std::string message;
  llvm::raw_string_ostream os(message);
  if (llvm::verifyModule(*module, &os))
    return emitError(kernels.getLoc(), "the kernels are not valid LLVM IR: ") << StringRef(message).trim();
  module->setTargetTriple(llvm::Triple(tripleName));
  module->setDataLayout(machine->createDataLayout());
  return checkIntrinsics();
}

/// Ops may have become intrinsics that their names do not show.
LogicalResult Compilation::checkIntrinsics() {
  for (const llvm::Function &function : *module) {
    StringRef name = function.getName(), instruction = name;
    if (!function.isDeclaration())
      continue;
    if (instruction.consume_front("llvm.nvvm.")) {
      ChipQuery query = getChipNeed(instruction);
      if (query && !(target.*query)())
        return emitError(kernels.getLoc(), "the kernels use '") << name << "', which " << describeNeed(query, target);
    } else if (!function.isIntrinsic()) {
      return emitError(kernels.getLoc(), "the kernels call '") << name << "', which is defined nowhere";
    }
  }
  return success();
}

/// `machine->addPassesToEmitFile`, without the pass that rewrites what loops count: the gate would stop it, but not the analysis before it.
/// It is left out by an option of the process, which has its value again when the passes have been chosen.
static bool addPasses(llvm::TargetMachine &machine, llvm::legacy::PassManager &passes, llvm::raw_pwrite_stream &os) {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  auto *option = static_cast<llvm::cl::opt<bool> *>(llvm::cl::getRegisteredOptions().lookup("disable-lsr"));
  bool before = option && *option;
  if (option)
    *option = true;
  // Verified it was when it was made.
  bool fails = machine.addPassesToEmitFile(passes, os, nullptr, llvm::CodeGenFileType::AssemblyFile, /*DisableVerify=*/true);
  if (option)
    *option = before;
  return !fails;
}

void Compilation::emit(DeviceCode &code) {
  llvm::SmallString<0> ptx;
  llvm::raw_svector_ostream os(ptx);
  llvm::legacy::PassManager passes;
  if (!addPasses(*machine, passes, os)) {
    hasErrors = true;
    return;
  }
  std::unique_ptr<llvm::OptPassGate> gate = createCodeGenerationGate(*module);
  context->setOptPassGate(*gate);
  passes.run(*module);
  code.ptx = ptx.str().str();
}

LogicalResult Compilation::generate(bool printLLVM, DeviceCode &code, TimingScope &timing) {
  std::string message;
  bool isDone = Guard().run(
      [&] {
        {
          TimingScope scope = timing.nest("LLVM optimization");
          optimizeKernels(*module, *machine);
        }
        if (printLLVM) {
          llvm::raw_string_ostream os(code.llvm);
          module->print(os, nullptr);
        }
        TimingScope scope = timing.nest("PTX generation");
        emit(code);
      },
      message);
  if (isDone)
    return failure(hasErrors);
  // What LLVM was at work on is in no state to be destroyed.
  (void)module.release();
  (void)machine.release();
  (void)context.release();
  return emitError(kernels.getLoc(), "the kernels cannot be compiled for '") << target.getChip() << "': " << message;
}

LogicalResult Compilation::run(bool printLLVM, DeviceCode &code, TimingScope &timing) {
  {
    TimingScope scope = timing.nest("Translation to LLVM IR");
    if (failed(translate()))
      return failure();
  }
  return generate(printLLVM, code, timing);
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

/// The functions of a module that are compiled; none where some are no kernels: these are compiled together.
static SmallVector<Operation *> getKernels(gpu::GPUModuleOp kernels) {
  SmallVector<Operation *> found;
  for (auto function : kernels.getOps<FunctionOpInterface>()) {
    if (function.isExternal() && function.getName().starts_with("llvm."))
      continue;
    if (!function->hasAttr("nvvm.kernel"))
      return {};
    found.push_back(function);
  }
  return found;
}

/// Kernels in as many parts as there are threads, about equally long.
static SmallVector<SmallVector<Operation *>> partition(ArrayRef<Operation *> kernels) {
  SmallVector<std::pair<size_t, Operation *>> sizes;
  for (Operation *kernel : kernels) {
    size_t size = 0;
    kernel->walk([&](Operation *) { ++size; });
    sizes.push_back({size, kernel});
  }
  MLIRContext *context = kernels.front()->getContext();
  size_t threads = context->isMultithreadingEnabled() ? context->getNumThreads() : 1;
  SmallVector<SmallVector<Operation *>> parts(std::min(threads, sizes.size()));
  // The longest first, each to the shortest part.
  SmallVector<size_t> lengths(parts.size());
  llvm::sort(sizes, [](const auto &a, const auto &b) { return a.first > b.first; });
  for (auto [size, kernel] : sizes) {
    size_t shortest = llvm::min_element(lengths) - lengths.begin();
    parts[shortest].push_back(kernel);
    lengths[shortest] += size;
  }
  return parts;
}

/// A module of the functions in `part`, which are moved, and of copies of all that is no kernel.
static OwningOpRef<gpu::GPUModuleOp> takePart(gpu::GPUModuleOp kernels, ArrayRef<Operation *> part) {
  OpBuilder builder(kernels.getContext());
  OwningOpRef<gpu::GPUModuleOp> taken = gpu::GPUModuleOp::create(builder, kernels.getLoc(), kernels.getName());
  builder.setInsertionPointToStart(taken->getBody());
  for (Operation &op : llvm::make_early_inc_range(*kernels.getBody())) {
    auto function = dyn_cast<FunctionOpInterface>(op);
    if (!function || function.isExternal())
      builder.clone(op);
    else if (llvm::is_contained(part, &op))
      op.moveBefore(taken->getBody(), taken->getBody()->end());
  }
  return taken;
}

/// Replaces the number that the backend gives functions of a module, in names of labels and stack frames.
static void renumber(std::string &kernel, unsigned number) {
  for (StringRef prefix : {"$L__BB", "__local_depot"}) {
    std::string renamed;
    StringRef rest = kernel;
    while (true) {
      auto [before, after] = rest.split(prefix);
      renamed += before;
      if (before.size() == rest.size())
        break;
      renamed += (prefix + Twine(number)).str();
      rest = after.drop_while(llvm::isDigit);
    }
    kernel = std::move(renamed);
  }
}

/// One text of those of parts, the same whatever the parts were: a header, variables, kernels in order.
static std::string mergePTX(ArrayRef<DeviceCode> parts, ArrayRef<std::string> order) {
  constexpr llvm::StringLiteral start = "\t// .globl\t", headerEnd = ".address_size 64\n", bodyEnd = "\n}\n";
  std::set<std::string> variables; // each line declares one; parts have some in common
  auto declare = [&](StringRef text) {
    SmallVector<StringRef> lines;
    text.split(lines, '\n', -1, /*KeepEmpty=*/false);
    for (StringRef line : lines)
      if (line.starts_with("."))
        variables.insert(line.str());
  };
  llvm::StringMap<std::string> kernels;
  for (const DeviceCode &part : parts) {
    auto [head, body] = StringRef(part.ptx).split(headerEnd).second.split(start);
    declare(head);
    while (!body.empty()) {
      auto [kernel, rest] = body.split(start);
      StringRef name = kernel.take_until([](char c) { return c == ' ' || c == '\n'; });
      size_t first = kernel.find(".visible .entry"), end = kernel.rfind(bodyEnd) + bodyEnd.size();
      declare(kernel.take_front(first)); // variables stand before the first kernel that uses them
      declare(kernel.drop_front(end));
      kernels[name] = kernel.slice(first, end).str();
      body = rest;
    }
  }
  std::string merged = (StringRef(parts.front().ptx).split(headerEnd).first + headerEnd + "\n").str();
  for (const std::string &variable : variables)
    merged += variable + "\n";
  for (auto [i, name] : llvm::enumerate(order)) {
    renumber(kernels[name], i);
    merged += "\n// .globl " + name + "\n" + kernels[name];
  }
  return merged;
}

FailureOr<DeviceCode> ssa::compileKernels(gpu::GPUModuleOp kernels, TargetAttr target, bool printLLVM,
                                          TimingScope &timing) {
  SmallVector<Operation *> functions = getKernels(kernels);
  if (printLLVM || functions.empty()) {
    DeviceCode code;
    if (failed(Compilation(kernels, target).run(printLLVM, code, timing)))
      return failure();
    return code;
  }
  SmallVector<std::string> order;
  for (Operation *function : functions)
    order.push_back(cast<FunctionOpInterface>(function).getName().str());
  SmallVector<OwningOpRef<gpu::GPUModuleOp>> modules;
  for (ArrayRef<Operation *> part : partition(functions))
    modules.push_back(takePart(kernels, part));
  SmallVector<DeviceCode> codes(modules.size());
  Guard guard; // one for all threads
  LogicalResult result = failableParallelForEachN(kernels.getContext(), 0, modules.size(), [&](size_t i) {
    return Compilation(*modules[i], target).run(/*printLLVM=*/false, codes[i], timing);
  });
  if (failed(result))
    return failure();
  return DeviceCode{"", mergePTX(codes, order)};
}
