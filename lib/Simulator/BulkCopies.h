//===- BulkCopies.h - What bulk copies share --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_SIMULATOR_BULKCOPIES_H
#define SSA_LIB_SIMULATOR_BULKCOPIES_H

#include "Lanes.h"
#include "TensorMap.h"

namespace mlir::ssa::sim {

inline uint32_t toShared(uint64_t address) {
  return uint32_t(address - sharedWindow < windowBytes ? address - sharedWindow : address);
}

/// A tile that a lane names: its map and where it starts. Of a gather, `rows` are the four rows.
struct Tile {
  TensorMap map;
  int32_t start[5], rows[4];
  bool isGathered = false;

  const int32_t *gathered() const { return isGathered ? rows : nullptr; }
  uint32_t rowBytes() const { return uint32_t(map.box[0]) * map.elementBytes; }
  uint32_t bytes() const { return isGathered ? 4 * rowBytes() : map.boxBytes(); }
  /// Where 16 bytes of the tile are in shared memory.
  uint32_t place(uint32_t to, uint32_t done) const {
    uint32_t mask = map.swizzle ? (1u << map.swizzle) - 1 : 0, at = to + done;
    return at ^ ((at >> 7 & mask) << 4);
  }
};

/// Reads the tile of a lane, whose map is in operand 1, and checks where it is in shared memory. False after a fault.
bool readTile(Warp &warp, const Instruction &instruction, unsigned lane, uint32_t shared, Tile &tile);

/// The bulk unit of a warp reads 16 bytes of shared memory: checks that it may, and records it.
void noteBulkRead(Warp &warp, const Instruction &instruction, unsigned lane, Block &block, uint32_t place);

/// Decodes [map, {coordinates}] into operand 1, the list and the count.
bool decodeTile(Decoder &decoder, size_t operand, unsigned dimensions, bool isGathered);

/// An address without displacement: `[register]` or `[variable]`. Registers of 32 bits are allowed in slot 3 only.
bool decodePlainAddress(Decoder &decoder, size_t number, unsigned slot);

/// Flags of bulk copies: the register of the barrier's address is one of 32 bits; the copy goes to several blocks; its
/// barrier may be in the other block of a pair; rows are gathered; the source is shared memory.
enum BulkFlags : uint32_t {
  NarrowBarrier = 1u << 30,
  Multicast = 1u << 29,
  OfPair = 1u << 28,
  Gathered = 1u << 27,
  FromShared = 1u << 26
};

/// cp.async.bulk.global.shared::cta and the like, what stands behind `bulk`. `isReduction` for cp.reduce.
bool decodeBulkStore(Decoder &decoder, bool isTensor, bool isReduction);
bool decodeBulkGroup(Decoder &decoder);

} // namespace mlir::ssa::sim

#endif // SSA_LIB_SIMULATOR_BULKCOPIES_H
