//===- Optimize.cpp - What LLVM does to kernels ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `ptxas` schedules, unrolls, hoists, folds addresses and allocates registers itself, and does it better the less it
// has been anticipated. What it cannot do is kept: constants through loops of known length, common subexpressions
// across blocks, narrower arithmetic.
//
//===----------------------------------------------------------------------===//

#include "Optimize.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/InlineCost.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/Inliner.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/DivRemPairs.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/IndVarSimplify.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/LoopUnrollPass.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

using namespace llvm;

static FunctionPassManager buildFunctionPipeline() {
  FunctionPassManager pipeline;
  auto combine = [&] {
    pipeline.addPass(InstCombinePass(InstCombineOptions().setVerifyFixpoint(false)));
    pipeline.addPass(SimplifyCFGPass());
  };
  // Nothing is hoisted: addresses that are cheap to compute again would be kept in registers through the loops of
  // products, up to the last one. `ptxas` knows how many registers there are.
  LoopPassManager loops;
  loops.addPass(LoopRotatePass());
  loops.addPass(IndVarSimplifyPass());
  loops.addPass(LoopFullUnrollPass(/*OptLevel=*/3));

  pipeline.addPass(SROAPass(SROAOptions::PreserveCFG));
  combine(); // or the lengths of loops are not seen
  pipeline.addPass(createFunctionToLoopPassAdaptor(std::move(loops)));
  pipeline.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  combine();
  pipeline.addPass(DivRemPairsPass()); // one division serves for its remainder too
  return pipeline;
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

  ModulePassManager pipeline;
  // Functions that kernels call, where there are any.
  pipeline.addPass(ModuleInlinerWrapperPass(getInlineParams(/*OptLevel=*/3, /*SizeOptLevel=*/0)));
  pipeline.addPass(createModuleToFunctionPassAdaptor(buildFunctionPipeline(), /*EagerlyInvalidate=*/true));
  pipeline.run(module, modules);
}

namespace {
/// Half of the code generator's time goes to passes that change addresses and loops on IR which is done.
struct CodeGenerationGate : OptPassGate {
  bool isEnabled() const override { return true; }
  bool shouldRunPass(StringRef pass, StringRef) const override {
    return !is_contained({"slsr", "nary-reassociate", "gvn", "Canonicalize Freeze Instructions in Loops",
                          "Loop Strength Reduction", "early-cse", "codegenprepare", "early-machinelicm", "machine-sink"},
                         pass);
  }
};
} // namespace

OptPassGate &mlir::ssa::getCodeGenerationGate() {
  static CodeGenerationGate gate;
  return gate;
}
