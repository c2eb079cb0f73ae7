//===- Compile.cpp - From LLVM's dialects to PTX --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The compiler's own path rather than `gpu-module-to-binary`: that one knows fewer chips than LLVM does.
//
//===----------------------------------------------------------------------===//

#include "ChipNeeds.h"
#include "mlir/Support/Timing.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "ssa/Target/NVPTX.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
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

/// Runs `work`; a fatal error in LLVM, which would end the process, ends `work` instead and is described in `message`. What it
/// had built must then not be touched again.
static bool runGuarded(llvm::function_ref<void()> work, std::string &message) {
  static std::mutex mutex; // the handlers are the process's
  std::lock_guard<std::mutex> lock(mutex);
  llvm::CrashRecoveryContext::Enable();
  llvm::ScopedFatalErrorHandler handler(
      [](void *where, const char *reason, bool) {
        *static_cast<std::string *>(where) = reason;
        if (auto *context = llvm::CrashRecoveryContext::GetCurrent())
          context->HandleExit(1);
      },
      &message);
  llvm::CrashRecoveryContext context;
  bool isDone = context.RunSafely(work);
  llvm::CrashRecoveryContext::Disable();
  return isDone;
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

namespace {

/// One module on its way.
class Compilation {
public:
  Compilation(gpu::GPUModuleOp kernels, TargetAttr target) : kernels(kernels), target(target) {}

  LogicalResult translate();
  LogicalResult generate(bool printLLVM, DeviceCode &code, TimingScope &timing);

private:
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
    return kernels.emitError("LLVM has no NVPTX backend: ") << message;
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
  module = translateModuleToLLVMIR(kernels, *context, kernels.getName());
  if (!module)
    return failure();
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
        return kernels.emitError("uses '") << name << "', which " << describeNeed(query, target);
    } else if (!function.isIntrinsic()) {
      return kernels.emitError("calls '") << name << "', which is defined nowhere";
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
  bool isDone = runGuarded(
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
  return kernels.emitError("cannot be compiled for '") << target.getChip() << "': " << message;
}

FailureOr<DeviceCode> ssa::compileKernels(gpu::GPUModuleOp kernels, TargetAttr target, bool printLLVM, TimingScope &timing) {
  Compilation compilation(kernels, target);
  {
    TimingScope scope = timing.nest("Translation to LLVM IR");
    if (failed(compilation.translate()))
      return failure();
  }
  DeviceCode code;
  if (failed(compilation.generate(printLLVM, code, timing)))
    return failure();
  return code;
}
