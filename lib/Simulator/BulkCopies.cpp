//===- BulkCopies.cpp - cp.async.bulk -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Copies of many bytes by the asynchronous proxy into shared memory. They land when nothing else in the block can go
// on, and tell an mbarrier how many bytes came.
//
//===----------------------------------------------------------------------===//

#include "Lanes.h"
#include "TensorMap.h"

using namespace mlir::ssa::sim;

static uint32_t toShared(uint64_t address) {
  return uint32_t(address - sharedWindow < windowBytes ? address - sharedWindow : address);
}

/// Reads bytes of global memory into a copy; false after a fault.
static bool readGlobal(Warp &warp, const Instruction &instruction, unsigned lane, uint64_t from, uint32_t bytes,
                       uint8_t *to) {
  Block &block = *warp.block;
  for (uint32_t byte : {0u, bytes - 1})
    if (!warp.locate(instruction, Space::Global, lane, from + byte, 1))
      return false;
  Allocation &allocation = *block.lastAllocation;
  uint64_t offset = from - allocation.address;
  for (uint32_t done = 0; done < bytes; done += 16)
    if (block.noteGlobal(warp, instruction, lane, allocation, offset + done, std::min(16u, bytes - done), false)) {
      warp.fault(instruction, lane, "uninitialized",
                 "copies byte " + std::to_string(offset + done) + " of " + allocation.name +
                     ", which nothing has written");
      break;
    }
  std::memcpy(to, allocation.data.get() + offset, bytes);
  return true;
}

/// Puts a copy on its way.
static void startCopy(Warp &warp, const Instruction &instruction, unsigned lane, uint32_t barrier, BulkCopy copy) {
  Block &block = *warp.block;
  if (!block.mbarriers.count(barrier))
    return warp.fault(instruction, lane, "mbarrier",
                      "there is no mbarrier at " + block.nameShared(barrier) + ": it was not initialized");
  copy.barrier = barrier;
  copy.thread = warp.threadOf(lane);
  for (uint32_t place : copy.places) {
    if (!warp.locate(instruction, Space::Shared, lane, place, 16))
      return;
    block.noteShared(warp, instruction, lane, place, 16, true);
    for (uint32_t word = (place - sharedBase) / 4, end = word + 4; block.checks && word < end; ++word) {
      SharedCell &cell = block.cells[word];
      cell.flags = (cell.flags | SharedCell::Pending) & ~SharedCell::Defined;
      cell.clock = UINT32_MAX;
    }
  }
  block.bulkCopies.push_back(std::move(copy));
}

void Block::landBulkCopy() {
  BulkCopy copy = std::move(bulkCopies.front());
  bulkCopies.pop_front();
  Warp &warp = warps[copy.thread / numLanes];
  for (size_t i = 0; i < copy.places.size(); ++i) {
    std::memcpy(shared.data() + (copy.places[i] - sharedBase), copy.data.data() + 16 * i, 16);
    for (uint32_t word = (copy.places[i] - sharedBase) / 4, end = word + 4; checks && word < end; ++word) {
      SharedCell &cell = cells[word];
      cell.flags = uint16_t((cell.flags & ~SharedCell::Pending) | SharedCell::Defined | SharedCell::AsyncProxy);
      cell.clock = warp.clock;
      cell.thread = uint16_t(copy.thread);
    }
  }
  auto found = mbarriers.find(copy.barrier);
  if (found == mbarriers.end())
    return;
  warp.releaseTo(found->second.arriving, 1u << copy.thread % numLanes);
  found->second.bytes -= int64_t(copy.data.size());
  completePhase(found->second);
}

/// Flag: the register of the barrier's address is one of 32 bits.
constexpr uint32_t narrowBarrier = 1u << 30;

static uint32_t sharedBarrier(const Warp &warp, const Instruction &instruction, unsigned lane) {
  int32_t offset = instruction.operands[3];
  return instruction.flags & narrowBarrier ? warp.source<uint32_t>(offset)[lane]
                                           : toShared(warp.source<uint64_t>(offset)[lane]);
}

//===----------------------------------------------------------------------===//
// Rows of bytes
//===----------------------------------------------------------------------===//

/// Operands: to, from, bytes, barrier.
static void copyBulk(Warp &warp, const Instruction &instruction) {
  forEachLane(warp.active, [&](unsigned lane) {
    uint32_t to = toShared(warp.addressOf(instruction, lane, 0));
    uint64_t from = warp.source<uint64_t>(instruction.operands[1])[lane];
    uint32_t bytes = warp.source<uint32_t>(instruction.operands[2])[lane];
    if (bytes % 16 || from % 16 || to % 16)
      return warp.fault(instruction, lane, "misaligned",
                        "a bulk copy of " + std::to_string(bytes) + " bytes from " + hex(from) + " to " + hex(to) +
                            ": all must be multiples of 16");
    BulkCopy copy;
    copy.data.resize(bytes);
    if (bytes && !readGlobal(warp, instruction, lane, from, bytes, copy.data.data()))
      return;
    for (uint32_t done = 0; done < bytes; done += 16)
      copy.places.push_back(to + done);
    startCopy(warp, instruction, lane, sharedBarrier(warp, instruction, lane), std::move(copy));
  });
}

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

/// The map that a generic address points to; false after a fault.
static bool readMap(Warp &warp, const Instruction &instruction, unsigned lane, TensorMap &map) {
  uint64_t address = warp.source<uint64_t>(instruction.operands[1])[lane];
  Space space = Space::Global;
  if (address - paramWindow < windowBytes) {
    address -= paramWindow;
    space = Space::Param;
  } else if (address < 65536)
    space = Space::Param; // an address in the space of parameters
  const uint8_t *first = warp.locate(instruction, space, lane, address, 1);
  const uint8_t *last = first ? warp.locate(instruction, space, lane, address + sizeof(map) - 1, 1) : nullptr;
  if (!last)
    return false;
  std::memcpy(&map, first, sizeof(map));
  if (map.magic == TensorMap::mark)
    return true;
  warp.fault(instruction, lane, "tensor-map", "this is no tensor map");
  return false;
}

/// What stands in a box at a place of the tensor, rows of the innermost dimension one after another.
static bool readBox(Warp &warp, const Instruction &instruction, unsigned lane, const TensorMap &map,
                    const int32_t *start, std::vector<uint8_t> &data) {
  uint32_t rowBytes = uint32_t(map.box[0]) * map.elementBytes, numRows = map.boxBytes() / rowBytes;
  uint8_t fill = map.fillsNaN ? 0xff : 0;
  data.assign(map.boxBytes(), fill);
  for (uint32_t row = 0; row < numRows; ++row) {
    uint64_t address = map.address;
    bool isInside = true;
    uint32_t rest = row;
    for (unsigned d = 1; d < map.rank; ++d) {
      int64_t index = int64_t(start[d]) + rest % map.box[d];
      rest /= map.box[d];
      isInside &= index >= 0 && index < int64_t(map.sizes[d]);
      address += uint64_t(index) * map.strides[d - 1];
    }
    int64_t first = std::max<int64_t>(start[0], 0),
            end = std::min<int64_t>(int64_t(start[0]) + map.box[0], map.sizes[0]);
    if (!isInside || first >= end)
      continue;
    if (!readGlobal(warp, instruction, lane, address + uint64_t(first) * map.elementBytes,
                    uint32_t(end - first) * map.elementBytes,
                    data.data() + size_t(row) * rowBytes + size_t(first - start[0]) * map.elementBytes))
      return false;
  }
  return true;
}

/// Operands: to, map, -, barrier; the list holds the coordinates.
static void copyTile(Warp &warp, const Instruction &instruction) {
  const int32_t *coordinates = warp.kernel->lists.data() + instruction.list;
  forEachLane(warp.active, [&](unsigned lane) {
    uint32_t to = toShared(warp.addressOf(instruction, lane, 0));
    TensorMap map;
    if (!readMap(warp, instruction, lane, map))
      return;
    if (map.rank != instruction.count)
      return warp.fault(instruction, lane, "tensor-map",
                        "the map has " + std::to_string(map.rank) + " dimensions, the instruction " +
                            std::to_string(instruction.count));
    unsigned alignment = map.swizzle ? 128u << map.swizzle : 128; // whole patterns of the swizzle
    if (to % alignment)
      return warp.fault(instruction, lane, "misaligned",
                        "a tile with this swizzle must start at a multiple of " + std::to_string(alignment) +
                            " bytes, but starts at " + hex(to));
    int32_t start[5];
    for (unsigned d = 0; d < map.rank; ++d)
      start[d] = warp.source<int32_t>(coordinates[d])[lane];
    BulkCopy copy;
    if (!readBox(warp, instruction, lane, map, start, copy.data))
      return;
    uint32_t mask = map.swizzle ? (1u << map.swizzle) - 1 : 0;
    for (uint32_t done = 0; done < copy.data.size(); done += 16) {
      uint32_t place = to + done;
      copy.places.push_back(place ^ ((place >> 7 & mask) << 4));
    }
    startCopy(warp, instruction, lane, sharedBarrier(warp, instruction, lane), std::move(copy));
  });
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

/// An address without displacement: `[register]` or `[variable]`.
static bool plainAddress(Decoder &decoder, size_t number, unsigned slot) {
  Instruction kept = decoder.instruction;
  if (!decoder.address(number, Space::Generic, slot))
    return false;
  int32_t base = decoder.instruction.operands[slot];
  bool isNarrow = decoder.instruction.flags >> 31;
  int64_t displacement = decoder.instruction.immediate;
  decoder.instruction.flags = kept.flags;
  decoder.instruction.immediate = kept.immediate;
  if (base < 0 && !isNarrow) // a variable: its address is a constant
    base = decoder.constant(Class::Double, uint64_t(displacement));
  else if (displacement)
    return decoder.fail("this address may have no displacement here");
  decoder.instruction.operands[slot] = base;
  if (isNarrow && slot == 3)
    decoder.instruction.flags |= narrowBarrier;
  return !isNarrow || slot == 3 || decoder.fail("this address must be a 64-bit register");
}

bool mlir::ssa::sim::decodeBulkCopy(Decoder &decoder) {
  Instruction &instruction = decoder.instruction;
  bool isTensor = decoder.take("tensor"), hasPolicy = decoder.take("L2::cache_hint");
  if (decoder.take("prefetch")) {
    instruction.run = [](Warp &, const Instruction &) {};
    decoder.parts.clear();
    return true;
  }
  int dimensions = decoder.takeOneOf({"1d", "2d", "3d", "4d", "5d"});
  bool isLoad = decoder.take("mbarrier::complete_tx::bytes");
  if (!isLoad)
    return decoder.fail("bulk copies out of shared memory are not supported by the simulator yet");
  for (std::string_view part : {"shared::cluster", "shared::cta", "global", "tile"})
    decoder.take(part);
  size_t count = (isTensor ? 3 : 4) + hasPolicy;
  if (!decoder.expectNoParts() || isTensor != (dimensions >= 0) || !decoder.expectOperands(count, count))
    return false;
  if (!plainAddress(decoder, 1, 1) || !plainAddress(decoder, isTensor ? 2 : 3, 3))
    return false;
  if (!isTensor) {
    instruction.run = copyBulk;
    return decoder.address(0, Space::Shared, 0) && decoder.source(2, Class::Word, 2);
  }
  instruction.run = copyTile;
  const Operand &map = decoder.operand(1);
  unsigned found = 0;
  if (map.elements.size() != 1 || !decoder.vector(map.elements[0], Class::Word, false, found))
    return decoder.fail("expected [map, {coordinates}]");
  instruction.count = uint8_t(dimensions + 1);
  if (found != instruction.count)
    return decoder.fail("expected " + std::to_string(instruction.count) + " coordinates, but got " +
                        std::to_string(found));
  return decoder.address(0, Space::Shared, 0);
}
