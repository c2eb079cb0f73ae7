//===- TensorMemory.h - Tensor memory of a block ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tensor memory has 128 lanes of 512 columns of 32 bits. Who touches it are agents: for each warp its loads, its
// stores, and its pipe, which takes products and copies in order. Each agent counts its accesses in a clock of its
// own; a warp knows up to which clock those of other agents happened before its own (`Warp::tensorKnown`). What
// travels with barriers is Clocks::tensor: tcgen05.fence::before_thread_sync puts into it what the warp knows,
// tcgen05.fence::after_thread_sync takes from it. An access that has not been waited for is known to nobody.
//
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_SIMULATOR_TENSORMEMORY_H
#define SSA_LIB_SIMULATOR_TENSORMEMORY_H

#include "Program.h"
#include <array>
#include <deque>
#include <functional>
#include <vector>

namespace mlir::ssa::sim {

enum class TensorAgent : uint8_t { Load, Store, Pipe };

/// What is known of 16 lanes of a column.
struct TensorCell {
  uint16_t defined = 0; // by lane
  uint16_t writer = 0;  // the agent that wrote last
  uint32_t clock = 0;
};

struct TensorMemory {
  static constexpr unsigned numLanes = 128, numColumns = 512, numGroups = numLanes / 16, granule = 32;

  std::vector<uint32_t> words;      // by lane and column
  std::vector<TensorCell> cells;    // by 16 lanes and column
  std::vector<uint32_t> readClocks; // by cell and agent
  /// By 32 columns: the number of the allocation they belong to, 0 for none.
  std::array<uint16_t, numColumns / granule> owners = {};
  struct Allocation {
    unsigned column, numColumns;
    const Instruction *instruction;
  };
  std::vector<Allocation> allocations; // number 1 first; no columns once it is gone
  bool isRelinquished = false;

  uint32_t &word(unsigned lane, unsigned column) { return words[size_t(lane) * numColumns + column]; }
  TensorCell &cell(unsigned lane, unsigned column) { return cells[size_t(lane / 16) * numColumns + column]; }
  uint32_t *readers(unsigned lane, unsigned column, unsigned numAgents) {
    return readClocks.data() + (size_t(lane / 16) * numColumns + column) * numAgents;
  }
  void reset(unsigned numAgents, bool checks);
  /// The first column of `count` columns that are free, -1 if there are none. From the end of the memory if asked.
  int findFree(unsigned count, bool fromEnd) const;
};

/// Lanes and columns of tensor memory that an access touches: groups of 16 lanes, of which `lanes` has a bit each.
struct TensorRange {
  unsigned lane = 0, numLanes = 16, column = 0, numColumns = 0;
  uint16_t lanes = 0xffff;
};

/// A tcgen05.ld or st of a warp that nothing has waited for.
struct TensorTransfer {
  const Instruction *instruction;
  uint32_t address;
  uint32_t clock = 0;
  /// Of a store: values and which lanes of them are undefined, by register.
  std::vector<std::array<uint32_t, 32>> values;
  std::vector<uint32_t> undefined;
};

/// What stands in the pipe of a warp: a product, a copy, or a signal that those before it are done.
struct TensorWork {
  const Instruction *instruction;
  std::function<void()> run;
  bool isSignal = false;
};

} // namespace mlir::ssa::sim

#endif // SSA_LIB_SIMULATOR_TENSORMEMORY_H
