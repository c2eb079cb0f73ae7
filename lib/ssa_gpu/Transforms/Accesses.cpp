//===- Accesses.cpp - What ops do with memory of the block ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "VerifySync.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::ssa_gpu;

bool InFlight::join(const InFlight &other) {
  bool isNew = false;
  for (auto &[op, age] : other.ages) {
    auto [known, inserted] = ages.insert({op, age});
    isNew |= inserted || age < known->second;
    known->second = std::min(known->second, age);
  }
  return isNew;
}

AllocOp mlir::ssa_gpu::getAllocation(Value memory) {
  while (Operation *op = memory.getDefiningOp()) {
    if (auto alloc = dyn_cast<AllocOp>(op))
      return alloc;
    if (!isa<SlotOp, ColumnsOp>(op))
      return nullptr;
    memory = op->getOperand(0);
  }
  return nullptr;
}

std::string mlir::ssa_gpu::describe(AllocOp alloc) {
  std::string text;
  llvm::raw_string_ostream(text) << "'" << alloc.getMemory().getType() << "'";
  return text;
}

SmallVector<Access, 2> mlir::ssa_gpu::getAccesses(Operation *op) {
  using Accesses = SmallVector<Access, 2>;
  return llvm::TypeSwitch<Operation *, Accesses>(op)
      .Case<CopyRowsOp, CopyBlockOp, CopyBoxOp, GatherBoxOp, ConvertRowsOp>([](auto copy) { return Accesses{{copy.getTile(), true}}; })
      .Case([](StoreOperandOp store) { return Accesses{{store.getTarget(), true}}; })
      .Case([](FillOp fill) { return Accesses{{fill.getArray(), true}}; })
      .Case([](OrderOp order) {
        return Accesses{{order.getLow(), false}, {order.getHigh(), false}, {order.getLow(), true}, {order.getHigh(), true}};
      })
      .Case([](JoinGroupsOp join) { return Accesses{{join.getScratch(), true}, {join.getScratch(), false}}; })
      .Case([](SaveRowsOp save) { return Accesses{{save.getArray(), true}}; })
      .Case<MmaOp, MmaTensorOp>([](auto mma) {
        Accesses reads;
        for (Value tile : {mma.getLhs(), Value(mma.getRhs())})
          if (isa<SharedType>(tile.getType()))
            reads.push_back({tile, false});
        return reads;
      })
      .Case([](LoadEntryOp load) { return Accesses{{load.getArray(), false}}; })
      .Case([](LoadQuadsOp load) { return Accesses{{load.getTile(), false}}; })
      .Case([](LoadOperandOp load) { return Accesses{{load.getTile(), false}}; })
      .Default([](Operation *) { return Accesses(); });
}

/// Whether an op of a region, or a part of memory that it makes, leads to an access there.
static bool isTouchedIn(Region &region, Value memory) {
  return llvm::any_of(memory.getUsers(), [&](Operation *user) {
    if (isa<SlotOp, ColumnsOp>(user))
      return isTouchedIn(region, user->getResult(0));
    return region.isAncestor(user->getParentRegion()) && !getAccesses(user).empty();
  });
}

bool mlir::ssa_gpu::isHandedOver(AllocOp alloc) {
  auto all = alloc->getParentRegion()->getOps<RolesOp>();
  return !all.empty() &&
         llvm::count_if((*all.begin()).getPrograms(), [&](Region &role) { return isTouchedIn(role, alloc.getMemory()); }) > 1;
}
