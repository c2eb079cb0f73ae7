//===- Block.h - Kernels whose threads work together ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the threads of a block or of a warp do together: wait for one another, vote, add up. All threads of the block,
// or all lanes of the warp, take part in each of these; so they stand where control flow is the same for all of them.
//
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CONVERSION_SSATOSSAGPU_BLOCK_H
#define SSA_LIB_CONVERSION_SSATOSSAGPU_BLOCK_H

#include "Conversion.h"

namespace mlir::ssa {

constexpr int64_t warpSize = 32;

class BlockKernel : public KernelBuilder {
public:
  BlockKernel(OpBuilder &host, Operation *op, StringRef name, int64_t threads, ValueRange arguments);

  int64_t getNumThreads() const { return numThreads; }
  int64_t getNumWarps() const { return numThreads / warpSize; }

  /// The numbers of the thread, of its lane and of its warp; i32.
  Value thread();
  Value lane();
  Value warp();

  /// All threads of the block see each other's writes.
  void barrier();
  /// All lanes of the warp do.
  void warpBarrier();

  /// Whether the condition holds in any lane.
  Value anyLane(Value condition);
  /// How many of the lanes below the own one are in `mask`.
  Value countBelow(Value mask);
  /// The value of lane `from`.
  Value shuffle(Value v, Value from);
  /// The value of the lane `distance` below; whether there is one in the same group of lanes.
  std::pair<Value, Value> shuffleUp(Value v, int64_t distance, int64_t groupSize = warpSize);
  /// The largest and the least unsigned value, the sum, in all lanes.
  Value warpMax(Value v);
  Value warpMin(Value v);
  Value warpSum(Value v);

  /// The sum over the threads before, and over all.
  struct Scan {
    Value before, total;
  };
  /// Adds up an i32 of each lane, in groups of `groupSize` neighbouring lanes, a power of two.
  Scan scanWarp(Value v, int64_t groupSize = warpSize);
  /// Adds up an i32 of each thread, in teams of neighbouring threads: a power of two, or a multiple of a warp.
  /// `scratch` is shared memory of one i32 per warp.
  Scan scan(Value v, Value scratch, int64_t teamSize);
  Scan scan(Value v, Value scratch) { return scan(v, scratch, numThreads); }
  /// The same of an i32 that all lanes of a warp have: over the warps before, and over all.
  Scan scanWarps(Value ofWarp, Value scratch, int64_t teamSize);

  /// The sum of an f64 of each thread, in an order that is always the same. `scratch` has one f64 per thread.
  Value sum(Value v, Value scratch);

  /// Sorts unsigned numbers in shared memory, `size` (a power of two) from `begin` (i32) on, upwards; if they rise and
  /// then fall that is little work. Thread `member` (i32) of `teamSize` for them; all teams of a block sort at the same
  /// time.
  void sort(Value memory, Value begin, int64_t size, Value member, int64_t teamSize, bool isBitonic = false);

  /// Joins the values that `count` threads, a power of two, hold: those at `position` 0 .. `count`-1, `stride` threads
  /// apart. The thread at position 0 gets the result; one at `count` has no part in it. `scratch` has an element per
  /// thread (and element of a vector) for each of `values`.
  SmallVector<Value> join(ValueRange values, Value position, int64_t count, int64_t stride, ValueRange scratch,
                          llvm::function_ref<SmallVector<Value>(ValueRange a, ValueRange b)> combine);
  /// Memory for `join`.
  SmallVector<Value> addScratch(TypeRange types);

private:
  /// An intrinsic of a warp.
  Value callWarp(Type type, StringRef intrinsic, ValueRange operands);

  int64_t numThreads;
};

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_BLOCK_H
