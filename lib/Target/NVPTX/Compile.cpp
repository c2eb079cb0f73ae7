//===- Compile.cpp - From LLVM's dialects to PTX --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The compiler's own path rather than `gpu-module-to-binary`: that one knows fewer chips than LLVM does.
//
//===----------------------------------------------------------------------===//

#include "ChipNeeds.h"
#include "mlir/IR/Threading.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Support/Timing.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "ssa/Target/NVPTX.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Target/TargetMachine.h"
#include <mutex>

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
  void optimize();
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
                                           llvm::CodeGenOptLevel::Aggressive));
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

void Compilation::optimize() {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager calls;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(machine.get());
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(calls);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, calls, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(*module, modules);
}

void Compilation::emit(DeviceCode &code) {
  llvm::SmallString<0> ptx;
  llvm::raw_svector_ostream os(ptx);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, os, nullptr, llvm::CodeGenFileType::AssemblyFile)) {
    hasErrors = true;
    return;
  }
  passes.run(*module);
  code.ptx = ptx.str().str();
}

LogicalResult Compilation::generate(bool printLLVM, DeviceCode &code, TimingScope &timing) {
  std::string message;
  bool isDone = Guard().run(
      [&] {
        {
          TimingScope scope = timing.nest("LLVM optimization");
          optimize();
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

/// The kernels of a module, in as many parts as there are threads, about equally long; none where kernels call functions.
static SmallVector<SmallVector<Operation *>> partition(gpu::GPUModuleOp kernels) {
  SmallVector<std::pair<size_t, Operation *>> sizes;
  for (Operation &op : *kernels.getBody()) {
    auto function = dyn_cast<FunctionOpInterface>(op);
    if (!function || (function.isExternal() && function.getName().starts_with("llvm.")))
      continue;
    if (!op.hasAttr("nvvm.kernel"))
      return {};
    size_t size = 0;
    op.walk([&](Operation *) { ++size; });
    sizes.push_back({size, &op});
  }
  MLIRContext *context = kernels.getContext();
  size_t threads = context->isMultithreadingEnabled() ? context->getNumThreads() : 1;
  SmallVector<SmallVector<Operation *>> parts(std::min(threads, sizes.size()));
  if (parts.size() < 2)
    return {};
  // The longest first, each to the shortest part.
  SmallVector<size_t> lengths(parts.size());
  llvm::sort(sizes, [](const auto &a, const auto &b) { return a.first > b.first; });
  for (auto [size, op] : sizes) {
    size_t shortest = llvm::min_element(lengths) - lengths.begin();
    parts[shortest].push_back(op);
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

/// One text of several, the same whatever the parts were: one header, variables that parts share once, kernels in order.
static std::string mergePTX(ArrayRef<DeviceCode> parts, ArrayRef<std::string> order) {
  constexpr llvm::StringLiteral start = "\t// .globl\t";
  std::string merged;
  llvm::StringSet<> declared;
  llvm::StringMap<std::string> kernels;
  for (const DeviceCode &part : parts) {
    size_t first = StringRef(part.ptx).find(start);
    auto [head, body] = std::pair(StringRef(part.ptx).take_front(first), StringRef(part.ptx).drop_front(first));
    SmallVector<StringRef> lines;
    head.split(lines, '\n');
    for (StringRef line : ArrayRef(lines).drop_back())
      if (declared.insert(line).second || (merged.empty() || &part == &parts.front()))
        merged += (line + "\n").str();
    while (!body.empty()) {
      StringRef kernel = body.take_front(body.find(start, start.size()));
      body = body.drop_front(kernel.size());
      StringRef name = kernel.drop_front(start.size()).take_until([](char c) { return c == ' ' || c == '\n'; });
      kernels[name] = kernel.str();
    }
  }
  for (auto [i, name] : llvm::enumerate(order)) {
    renumber(kernels[name], i);
    merged += kernels[name];
  }
  return merged;
}

FailureOr<DeviceCode> ssa::compileKernels(gpu::GPUModuleOp kernels, TargetAttr target, bool printLLVM, TimingScope &timing) {
  SmallVector<SmallVector<Operation *>> parts;
  if (!printLLVM)
    parts = partition(kernels);
  if (parts.empty()) {
    DeviceCode code;
    if (failed(Compilation(kernels, target).run(printLLVM, code, timing)))
      return failure();
    return code;
  }
  SmallVector<std::string> order;
  for (auto function : kernels.getOps<FunctionOpInterface>())
    if (!function.isExternal())
      order.push_back(function.getName().str());
  SmallVector<OwningOpRef<gpu::GPUModuleOp>> modules;
  for (ArrayRef<Operation *> part : parts)
    modules.push_back(takePart(kernels, part));
  SmallVector<DeviceCode> codes(parts.size());
  Guard guard; // one for all threads
  LogicalResult result = failableParallelForEachN(kernels.getContext(), 0, parts.size(), [&](size_t i) {
    return Compilation(*modules[i], target).run(/*printLLVM=*/false, codes[i], timing);
  });
  if (failed(result))
    return failure();
  return DeviceCode{"", mergePTX(codes, order)};
}
