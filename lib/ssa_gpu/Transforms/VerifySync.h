//===- VerifySync.h - The two checks of ssa-gpu-verify-sync ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_GPU_TRANSFORMS_VERIFYSYNC_H
#define SSA_GPU_TRANSFORMS_VERIFYSYNC_H

#include "ssa_gpu/IR/SSAGPU.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include <string>

namespace mlir::ssa_gpu {

/// What was begun and may still be under way, with how much was begun or closed after it. It ends in that order.
class InFlight {
public:
  /// `age` is -1 for what is in no group yet.
  void add(Operation *op, int age) { ages[op] = age; }
  void grow() {
    for (auto &[op, age] : ages)
      ++age;
  }
  /// At most `pending` are left.
  void wait(int64_t pending) {
    ages.remove_if([&](auto &entry) { return entry.second >= pending; });
  }
  bool contains(Operation *op) const { return ages.contains(op); }
  auto getOps() const { return llvm::make_first_range(ages); }
  /// Adds what another path has begun. Returns whether that is news.
  bool join(const InFlight &other);

private:
  llvm::SmallMapVector<Operation *, int, 4> ages;
};

/// The allocation that a value is part of, or null.
AllocOp getAllocation(Value memory);

/// The type of an allocation in quotes, for messages.
std::string describe(AllocOp alloc);

/// What an op does with memory of the block that it is given.
struct Access {
  Value memory;
  bool writes;
};
SmallVector<Access, 2> getAccesses(Operation *op);

/// Whether several roles of a kernel touch an allocation: a pipe has to say when.
bool isHandedOver(AllocOp alloc);

/// Checks that roles touch what they hand over only while they hold a slot of the pipe that guards it, and give back each slot that they
/// take, after all that uses it is done.
LogicalResult verifyRoles(RolesOp roles);

/// The same of a kernel without roles, whose threads wait for products by pipes.
LogicalResult verifyPipes(Region &kernel);

} // namespace mlir::ssa_gpu

#endif // SSA_GPU_TRANSFORMS_VERIFYSYNC_H
