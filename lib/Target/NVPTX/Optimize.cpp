//===- Optimize.cpp - What LLVM does to kernels ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `ptxas` schedules, unrolls, folds addresses and allocates registers itself, and does it better the less it has been
// anticipated. What it does not do is kept: constants through loops of known length, common subexpressions across
// blocks, narrower arithmetic; and what keeps values in registers through loops where there are registers to spare.
//
//===----------------------------------------------------------------------===//

#include "Optimize.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Analysis/InlineCost.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/Inliner.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/DivRemPairs.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/GVN.h"
#include "llvm/Transforms/Scalar/IndVarSimplify.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/LoopUnrollPass.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/BypassSlowDivision.h"

using namespace llvm;

namespace {
/// What the threads of a kernel do with their registers, of which a block has 65536.
struct RegisterUse {
  explicit RegisterUse(const Function &kernel);

  /// Addresses that are kept for a whole loop take registers that products need, or more warps. Measured on an H200:
  /// top-k of long rows takes half the time without, attention in blocks of one warp a quarter more.
  bool allowsHoisting() const { return !isTight && (!hasProducts || numThreads < 64); }

  /// Kernels of attention and routing, which are most of the code, have accesses that are as wide as they should be.
  bool hasWideAccesses() const { return hasProducts || hasRoles; }

  unsigned numThreads = 0;
  bool isTight;             // a block is large, or says itself how many have to fit; of one warp many fit
  bool hasProducts = false; // by `mma.sync`, whose operands are registers
  bool hasRoles = false;    // each with registers of its own, as few as it needs
};
} // namespace

RegisterUse::RegisterUse(const Function &kernel) {
  StringRef size = kernel.getFnAttribute("nvvm.reqntid").getValueAsString();
  for (numThreads = size.empty() ? 0 : 1; !size.empty();) {
    unsigned threads = 0;
    size.consumeInteger(10, threads);
    numThreads *= threads;
    size = size.drop_while([](char c) { return !isDigit(c); });
  }
  isTight = numThreads >= 512 || (numThreads >= 64 && kernel.hasFnAttribute("nvvm.minctasm"));
  for (const Instruction &instruction : instructions(kernel))
    if (auto *call = dyn_cast<CallBase>(&instruction); call && call->getCalledFunction()) {
      hasProducts |= call->getCalledFunction()->getName().starts_with("llvm.nvvm.mma.");
      hasRoles |= call->getCalledFunction()->getName().starts_with("llvm.nvvm.setmaxnreg.");
    }
}

static FunctionPassManager buildPipeline(RegisterUse use) {
  FunctionPassManager pipeline;
  pipeline.addPass(SROAPass(SROAOptions::PreserveCFG));
  pipeline.addPass(EarlyCSEPass());
  pipeline.addPass(SimplifyCFGPass());
  // All loops are rotated before one is analyzed: it makes worthless what is known about those around it.
  pipeline.addPass(createFunctionToLoopPassAdaptor(LoopRotatePass()));
  // Loops of known length first: what they leave is simplified once.
  LoopPassManager unroll;
  unroll.addPass(IndVarSimplifyPass());
  unroll.addPass(LoopFullUnrollPass(/*OptLevel=*/3));
  pipeline.addPass(createFunctionToLoopPassAdaptor(std::move(unroll)));
  pipeline.addPass(InstCombinePass(InstCombineOptions().setVerifyFixpoint(false)));
  pipeline.addPass(SimplifyCFGPass());
  if (use.allowsHoisting())
    pipeline.addPass(createFunctionToLoopPassAdaptor(LICMPass(LICMOptions()), /*UseMemorySSA=*/true));
  if (use.isTight && !use.hasRoles)
    pipeline.addPass(GVNPass()); // takes twice as long as the next, and spares a register or two
  else
    pipeline.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  pipeline.addPass(DivRemPairsPass()); // one division serves for its remainder too
  return pipeline;
}

/// A division of 64 bits takes a hundred instructions, one of 32 bits a dozen; most numbers that are divided fit.
static void divideByFewerBits(Function &function) {
  const DenseMap<unsigned, unsigned> widths = {{64, 32}};
  for (BasicBlock *block = &function.front(), *next; block; block = next) {
    next = block->getNextNode();
    bypassSlowDivision(block, widths);
  }
}

/// What all lanes of a warp do together must not be copied into branches that some of them take.
static void markConvergent(Function &function) {
  for (llvm::Instruction &instruction : instructions(function))
    if (auto *call = dyn_cast<CallBase>(&instruction))
      if (auto *text = dyn_cast<InlineAsm>(call->getCalledOperand()); text && text->getAsmString().contains(".sync"))
        call->setConvergent();
}

void mlir::ssa::optimizeKernels(Module &module, TargetMachine &machine) {
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager calls;
  llvm::ModuleAnalysisManager modules; // MLIR has one too
  PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(calls);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, calls, modules);

  // Functions that kernels call, where there are any.
  ModuleInlinerWrapperPass(getInlineParams(/*OptLevel=*/3, /*SizeOptLevel=*/0)).run(module, modules);
  modules.invalidate(module, PreservedAnalyses::none());
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    markConvergent(function);
    buildPipeline(RegisterUse(function)).run(function, functions);
    divideByFewerBits(function);
    functions.clear(function, function.getName());
  }
}

namespace {
/// Half of the code generator's time goes to passes that change addresses and loops on IR which is done. Common
/// subexpressions of machine instructions are found, among them those of addresses, which are none before: `ptxas` does
/// not find all, and top-k took a tenth longer without.
class CodeGenerationGate : public OptPassGate {
public:
  explicit CodeGenerationGate(const Module &module) {
    for (const Function &function : module) {
      RegisterUse use(function);
      std::string description = ("function (" + function.getName() + ")").str();
      if (use.isTight && use.hasRoles)
        tight.insert(description);
      if (use.hasWideAccesses())
        wide.insert(description);
    }
  }

  bool isEnabled() const override { return true; }
  bool shouldRunPass(StringRef pass, StringRef description) const override {
    if (pass == "machine-cse") // what it keeps for longer would be spilled
      return !tight.contains(description);
    if (pass == "load-store-vectorizer")
      return !wide.contains(description);
    return !is_contained({"slsr", "nary-reassociate", "early-cse"}, pass);
  }

private:
  StringSet<> tight, wide;
};
} // namespace

std::unique_ptr<OptPassGate> mlir::ssa::createCodeGenerationGate(const Module &module) {
  return std::make_unique<CodeGenerationGate>(module);
}
