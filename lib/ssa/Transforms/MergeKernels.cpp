//===- MergeKernels.cpp - ssa-merge-kernels -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/OperationSupport.h"
#include "ssa/IR/SSA.h"
#include "ssa/Transforms/Passes.h"

namespace mlir::ssa {
#define GEN_PASS_DEF_SSAMERGEKERNELSPASS
#include "ssa/Transforms/Passes.h.inc"
} // namespace mlir::ssa

using namespace mlir;

/// The attributes without the name.
static SmallVector<NamedAttribute> getAttributes(gpu::GPUFuncOp kernel) {
  return llvm::filter_to_vector(kernel->getAttrs(), [](NamedAttribute attribute) {
    return attribute.getName() != SymbolTable::getSymbolAttrName();
  });
}

static bool isSame(gpu::GPUFuncOp a, gpu::GPUFuncOp b) {
  return getAttributes(a) == getAttributes(b) &&
         OperationEquivalence::isRegionEquivalentTo(&a.getBody(), &b.getBody(), OperationEquivalence::IgnoreLocations);
}

/// The arguments that a kernel has for nothing. A flag that decides whether it does anything is read later (`ssa-guard-kernels`).
static llvm::BitVector findUnusedArguments(gpu::GPUFuncOp kernel) {
  llvm::BitVector unused(kernel.getFunctionType().getNumInputs()); // shared memory is behind them
  for (unsigned i = 0; i < unused.size(); ++i)
    unused[i] = kernel.getArgument(i).use_empty();
  if (ssa::WhenAttr when = ssa::WhenAttr::of(kernel); when && when.getArgument() >= 0 && when.getArgument() < unused.size())
    unused.reset(when.getArgument());
  return unused;
}

/// Kernels and launches lose the arguments that the kernel does not use.
static void dropUnusedArguments(ModuleOp module) {
  DenseMap<Attribute, SmallVector<gpu::LaunchFuncOp>> launches;
  module.walk([&](gpu::LaunchFuncOp launch) { launches[launch.getKernel()].push_back(launch); });
  for (auto &[name, ofKernel] : launches) {
    auto kernel = SymbolTable::lookupNearestSymbolFrom<gpu::GPUFuncOp>(ofKernel.front(), cast<SymbolRefAttr>(name));
    if (!kernel)
      continue;
    llvm::BitVector unused = findUnusedArguments(kernel);
    if (unused.none() || failed(kernel.eraseArguments(unused)))
      continue;
    if (ssa::WhenAttr when = ssa::WhenAttr::of(kernel)) {
      int64_t dropped = llvm::count_if(unused.set_bits(), [&](unsigned i) { return i < when.getArgument(); });
      kernel->setAttr(ssa::WhenAttr::attrName(), ssa::WhenAttr::get(kernel.getContext(), when.getArgument() - dropped, when.getIs()));
    }
    for (gpu::LaunchFuncOp launch : ofKernel)
      for (int i = unused.find_last(); i != -1; i = unused.find_prev(i))
        launch.getKernelOperandsMutable().erase(i);
  }
}

namespace {
struct SSAMergeKernels : ssa::impl::SSAMergeKernelsPassBase<SSAMergeKernels> {
  void runOnOperation() override {
    dropUnusedArguments(getOperation());
    DenseMap<Attribute, SymbolRefAttr> replacements;
    for (auto kernels : getOperation().getOps<gpu::GPUModuleOp>())
      merge(kernels, replacements);
    getOperation().walk([&](gpu::LaunchFuncOp launch) {
      if (SymbolRefAttr kept = replacements.lookup(launch.getKernel()))
        launch.setKernelAttr(kept);
    });
  }

private:
  void merge(gpu::GPUModuleOp kernels, DenseMap<Attribute, SymbolRefAttr> &replacements) {
    DenseMap<Type, SmallVector<gpu::GPUFuncOp>> known; // few have the same type, and most of these soon differ
    auto nameOf = [&](gpu::GPUFuncOp kernel) {
      return SymbolRefAttr::get(kernels.getSymNameAttr(), FlatSymbolRefAttr::get(kernel.getNameAttr()));
    };
    for (auto kernel : llvm::make_early_inc_range(kernels.getOps<gpu::GPUFuncOp>())) {
      if (!kernel.isKernel())
        continue;
      SmallVector<gpu::GPUFuncOp> &candidates = known[kernel.getFunctionType()];
      auto *same = llvm::find_if(candidates, [&](gpu::GPUFuncOp other) { return isSame(kernel, other); });
      if (same == candidates.end()) {
        candidates.push_back(kernel);
        continue;
      }
      replacements[nameOf(kernel)] = nameOf(*same);
      kernel.erase();
      ++numMerged;
    }
  }
};
} // namespace
