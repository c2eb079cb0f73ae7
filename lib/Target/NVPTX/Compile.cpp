//===- Compile.cpp - From LLVM's dialects to PTX --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The compiler's own path rather than `gpu-module-to-binary`: that one knows fewer chips than LLVM does.
//
//===----------------------------------------------------------------------===//

#include "ChipNeeds.h"
#include "Optimize.h"
#include "Parts.h"
#include "mlir/IR/Threading.h"
#include "mlir/Support/Timing.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "ssa/Target/NVPTX.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/CodeGen/MachineModuleInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"
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
  kernels.getBody()->clear(); // each thread frees what it had, not one of them all in the end
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

namespace {
/// Options of the process that choose passes. They have their values again when the passes have been chosen.
class ChoiceOfPasses {
public:
  ChoiceOfPasses() : lock(mutex) {
    for (StringRef name : {"disable-lsr", "disable-cgp", "disable-constant-hoisting", "disable-mergeicmps",
                           "disable-partial-libcall-inlining"})
      if (auto *option = static_cast<llvm::cl::opt<bool> *>(llvm::cl::getRegisteredOptions().lookup(name))) {
        before.push_back({option, *option});
        *option = true;
      }
  }
  ~ChoiceOfPasses() {
    for (auto [option, value] : before)
      *option = value;
  }

private:
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock;
  SmallVector<std::pair<llvm::cl::opt<bool> *, bool>> before;
};

std::mutex ChoiceOfPasses::mutex;
} // namespace

/// `machine.addPassesToEmitFile`, without passes that find nothing in kernels or that `ptxas` does better. The gate would
/// stop those, but not the analyses before them. Which values live into blocks is asked by passes that do without, and
/// found once more for the next.
static bool addPasses(llvm::TargetMachine &machine, llvm::legacy::PassManager &passes, llvm::raw_pwrite_stream &os) {
  ChoiceOfPasses choice;
  llvm::TargetPassConfig *config = machine.createPassConfig(passes);
  for (const char *pass : {&llvm::EarlyMachineLICMID, &llvm::MachineSinkingLegacyID, &llvm::PeepholeOptimizerLegacyID,
                           &llvm::OptimizePHIsLegacyID, &llvm::LiveVariablesID, &llvm::MachineSchedulerID,
                           &llvm::StackColoringLegacyID, &llvm::StackSlotColoringID, &llvm::LiveStacksID,
                           &llvm::LocalStackSlotAllocationID, &llvm::StackFrameLayoutAnalysisPassID,
                           &llvm::FixupStatepointCallerSavedID, &llvm::RemoveRedundantDebugValuesID,
                           &llvm::LiveDebugValuesID})
    config->disablePass(pass);
  config->setDisableVerify(true); // verified it was when it was made
  auto *functions = new llvm::MachineModuleInfoWrapperPass(&machine);
  passes.add(config);
  passes.add(functions);
  if (config->addISelPasses())
    return false;
  config->addMachinePasses();
  config->setInitialized();
  if (machine.addAsmPrinter(passes, os, nullptr, llvm::CodeGenFileType::AssemblyFile, functions->getMMI().getContext()))
    return false;
  passes.add(llvm::createFreeMachineFunctionPass());
  return true;
}

void Compilation::emit(DeviceCode &code) {
  llvm::SmallString<0> ptx;
  llvm::raw_svector_ostream os(ptx);
  os.SetBufferSize(1 << 16); // what prints counts columns at every write to a stream without
  std::unique_ptr<llvm::OptPassGate> gate = createCodeGenerationGate(*module);
  context->setOptPassGate(*gate);
  {
    llvm::legacy::PassManager passes; // flushes what it prints when it ends
    if (addPasses(*machine, passes, os))
      passes.run(*module);
    else
      hasErrors = true;
  }
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

FailureOr<DeviceCode> ssa::compileKernels(ModuleOp device, ArrayRef<std::string> order, TargetAttr target, bool printLLVM, TimingScope &timing) {
  SmallVector<gpu::GPUModuleOp> parts(device.getOps<gpu::GPUModuleOp>());
  SmallVector<DeviceCode> codes(parts.size());
  Guard guard; // one for all threads
  LogicalResult result = failableParallelForEachN(device.getContext(), 0, parts.size(), [&](size_t i) {
    return Compilation(parts[i], target).run(printLLVM, codes[i], timing);
  });
  if (failed(result))
    return failure();
  if (order.empty())
    return std::move(codes.front());
  return DeviceCode{"", mergePTX(codes, order)};
}
