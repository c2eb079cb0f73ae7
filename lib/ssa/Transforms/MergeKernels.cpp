//===- MergeKernels.cpp - ssa-merge-kernels -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/OperationSupport.h"
#include "ssa/Transforms/Passes.h"

namespace mlir::ssa {
#define GEN_PASS_DEF_SSAMERGEKERNELSPASS
#include "ssa/Transforms/Passes.h.inc"
} // namespace mlir::ssa

using namespace mlir;

/// What kernels that are the same have in common. Operands are left out: they are compared.
static llvm::hash_code hashKernel(gpu::GPUFuncOp kernel) {
  llvm::hash_code hash = hash_value(kernel.getFunctionType());
  kernel.getBody().walk([&](Operation *op) {
    hash = llvm::hash_combine(hash, op->getName(), op->getRawDictionaryAttrs(), op->hashProperties());
    for (Type type : op->getResultTypes())
      hash = llvm::hash_combine(hash, type);
  });
  return hash;
}

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

namespace {
struct SSAMergeKernels : ssa::impl::SSAMergeKernelsPassBase<SSAMergeKernels> {
  void runOnOperation() override {
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
    DenseMap<size_t, SmallVector<gpu::GPUFuncOp>> known;
    auto nameOf = [&](gpu::GPUFuncOp kernel) {
      return SymbolRefAttr::get(kernels.getSymNameAttr(), FlatSymbolRefAttr::get(kernel.getNameAttr()));
    };
    for (auto kernel : llvm::make_early_inc_range(kernels.getOps<gpu::GPUFuncOp>())) {
      if (!kernel.isKernel())
        continue;
      SmallVector<gpu::GPUFuncOp> &candidates = known[hashKernel(kernel)];
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
