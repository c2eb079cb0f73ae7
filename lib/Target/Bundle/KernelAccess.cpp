//===- KernelAccess.cpp - What kernels do to their arguments --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "KernelAccess.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "ssa/Target/NVPTX.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::ssa;

namespace {

/// Collects what is done with one value and all views of it.
class AccessWalk {
public:
  void visit(Value root);
  KernelAccess access;

private:
  void visitUse(OpOperand &use);
  void align(int64_t bytes) { access.alignment = std::max(access.alignment, bytes); }
  void visitEffects(Operation *op, Value memory);

  SmallVector<Value> pending;
};

} // namespace

void AccessWalk::visit(Value root) {
  pending.push_back(root);
  while (!pending.empty())
    for (OpOperand &use : pending.pop_back_val().getUses())
      visitUse(use);
}

void AccessWalk::visitUse(OpOperand &use) {
  Operation *op = use.getOwner();
  if (auto assumption = dyn_cast<memref::AssumeAlignmentOp>(op))
    align(assumption.getAlignment());
  if (isa<memref::DimOp>(op))
    return;
  if (auto metadata = dyn_cast<memref::ExtractStridedMetadataOp>(op))
    return pending.push_back(metadata.getBaseBuffer());
  if (auto view = dyn_cast<ViewLikeOpInterface>(op); view && view.getViewSource() == use.get())
    return pending.push_back(op->getResult(0));
  if (auto load = dyn_cast<vector::LoadOp>(op))
    align(load.getAlignment().value_or(getAccessAlignment(load.getVectorType())));
  if (auto store = dyn_cast<vector::StoreOp>(op))
    align(store.getAlignment().value_or(getAccessAlignment(store.getVectorType())));
  visitEffects(op, use.get());
}

void AccessWalk::visitEffects(Operation *op, Value memory) {
  auto interface = dyn_cast<MemoryEffectOpInterface>(op);
  SmallVector<MemoryEffects::EffectInstance> effects;
  if (interface)
    interface.getEffectsOnValue(memory, effects);
  if (effects.empty()) { // nothing is known
    access.isRead = access.isWritten = true;
    return;
  }
  for (const MemoryEffects::EffectInstance &effect : effects) {
    access.isRead |= isa<MemoryEffects::Read>(effect.getEffect());
    access.isWritten |= isa<MemoryEffects::Write>(effect.getEffect());
  }
}

KernelAccess ssa::getKernelAccess(gpu::GPUFuncOp kernel, BlockArgument argument) {
  unsigned number = argument.getArgNumber();
  if (!isa<MemRefType>(argument.getType())) { // a tensor map
    bool isWritten = kernel.getArgAttr(number, "llvm.writeonly") != nullptr;
    return {!isWritten, isWritten, 1};
  }
  AccessWalk walk;
  walk.visit(argument);
  if (kernel.getArgAttr(number, "llvm.readonly"))
    walk.access.isWritten = false;
  if (kernel.getArgAttr(number, "llvm.writeonly"))
    walk.access.isRead = false;
  if (auto alignment = kernel.getArgAttrOfType<IntegerAttr>(number, "llvm.align"))
    walk.access.alignment = std::max(walk.access.alignment, alignment.getInt());
  return walk.access;
}

/// The bytes of a static buffer, or 0.
static int64_t getBytes(Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref || !memref.hasStaticShape() || !memref.getElementType().isIntOrFloat() ||
      !gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(memref))
    return 0;
  return memref.getNumElements() * llvm::divideCeil(memref.getElementTypeBitWidth(), 8);
}

int64_t ssa::getStaticSharedMemory(gpu::GPUFuncOp kernel) {
  int64_t bytes = 0;
  for (BlockArgument buffer : kernel.getWorkgroupAttributions())
    bytes += getBytes(buffer.getType());
  llvm::SmallDenseSet<StringRef> globals;
  kernel.walk([&](memref::GetGlobalOp op) {
    if (globals.insert(op.getName()).second)
      bytes += getBytes(op.getType());
  });
  return bytes;
}
