//===- BulkCopies.cpp - cp.async.bulk into shared memory ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Copies of many bytes by the asynchronous proxy into shared memory. They land when nothing else in the cluster can go
// on, and tell an mbarrier how many bytes came.
//
//===----------------------------------------------------------------------===//

#include "BulkCopies.h"
#include "SharedMatrix.h"

using namespace mlir::ssa::sim;

/// Reads bytes of global memory into a copy, from byte `to` on; false after a fault.
static bool readGlobal(Warp &warp, const Instruction &instruction, unsigned lane, uint64_t from, uint32_t bytes,
                       BulkCopy &copy, size_t to) {
  Block &block = *warp.block;
  for (uint32_t byte : {0u, bytes - 1})
    if (!warp.locate(instruction, Space::Global, lane, from + byte, 1))
      return false;
  Allocation &allocation = *block.lastAllocation;
  uint64_t offset = from - allocation.address;
  copy.undefined.resize((copy.data.size() + 15) / 16);
  for (uint32_t done = 0; done < bytes; done += 16)
    if (block.noteGlobal(warp, instruction, lane, allocation, offset + done, std::min(16u, bytes - done), false))
      copy.undefined[(to + done) / 16] = true;
  std::memcpy(copy.data.data() + to, allocation.data.get() + offset, bytes);
  return true;
}

/// Puts a copy on its way.
static void startCopy(Warp &warp, const Instruction &instruction, unsigned lane, Block &target, Block &signalled,
                      uint32_t barrier, BulkCopy copy) {
  if (!signalled.mbarriers.count(barrier))
    return warp.fault(instruction, lane, "mbarrier",
                      "there is no mbarrier at " + signalled.nameShared(barrier) + ": it was not initialized");
  const SharedCell &initialized = signalled.cells[(barrier - sharedBase) / 4];
  if (signalled.checks && !signalled.mbarriers[barrier].isFenced &&
      !warp.hasFenced(lane, initialized.thread, initialized.clock))
    warp.fault(instruction, lane, "proxy",
               "the mbarrier at " + signalled.nameShared(barrier) + " was initialized by " +
                   signalled.describeMember(initialized.thread) +
                   " without a fence.mbarrier_init or fence.proxy.async before this");
  copy.barrier = barrier;
  copy.target = &target;
  copy.signalled = &signalled;
  copy.warp = &warp;
  copy.lane = lane;
  for (uint32_t place : copy.places) {
    if (!warp.locate(instruction, Space::Shared, lane, place, 16, &target))
      return;
    target.noteShared(warp, instruction, lane, place, 16, true);
    for (uint32_t word = (place - sharedBase) / 4, end = word + 4; target.checks && word < end; ++word) {
      SharedCell &cell = target.cells[word];
      cell.flags = (cell.flags | SharedCell::Pending) & ~SharedCell::Defined;
      cell.clock = UINT32_MAX;
    }
  }
  warp.block->bulkCopies.push_back(std::move(copy));
}

static uint32_t sharedBarrier(const Warp &warp, const Instruction &instruction, unsigned lane) {
  int32_t offset = instruction.operands[3];
  return instruction.flags & NarrowBarrier ? warp.source<uint32_t>(offset)[lane]
                                           : toShared(warp.source<uint64_t>(offset)[lane]);
}

/// Sends a copy to one block or, with a mask, to several: places and barrier are the same in each.
static void sendCopy(Warp &warp, const Instruction &instruction, unsigned lane, uint32_t to, BulkCopy copy) {
  uint32_t barrier = sharedBarrier(warp, instruction, lane);
  Block *target = warp.ownerOf(instruction, lane, to), *signalled = warp.ownerOf(instruction, lane, barrier);
  if (!target || !signalled)
    return;
  auto &blocks = warp.block->cluster.blocks;
  bool isPair = instruction.flags & OfPair && (target->rank ^ signalled->rank) == 1;
  if (target != signalled && !isPair)
    return warp.fault(instruction, lane, "mbarrier", "the mbarrier is not in the block that the copy goes to");
  if (!(instruction.flags & Multicast))
    return startCopy(warp, instruction, lane, *target, *signalled, barrier, std::move(copy));
  uint32_t mask = warp.source<uint16_t>(instruction.operands[4])[lane];
  if (!mask || mask >> blocks.size())
    return warp.fault(instruction, lane, "async",
                      "the mask " + hex(mask) + " does not name blocks of a cluster of " +
                          std::to_string(blocks.size()));
  for (; mask; mask &= mask - 1) {
    unsigned rank = unsigned(__builtin_ctz(mask));
    Block &other = *blocks[isPair ? rank ^ 1 : rank];
    startCopy(warp, instruction, lane, *blocks[rank], other, barrier, copy);
  }
}

void Block::landBulkCopy() {
  BulkCopy copy = std::move(bulkCopies.front());
  bulkCopies.pop_front();
  Warp &warp = *copy.warp;
  Block &target = *copy.target;
  if (copy.from) // from shared memory of this block
    std::memcpy(copy.data.data(), shared.data() + (copy.from - sharedBase), copy.data.size());
  for (size_t i = 0; i < copy.places.size(); ++i) {
    std::memcpy(target.shared.data() + (copy.places[i] - sharedBase), copy.data.data() + 16 * i, 16);
    for (uint32_t word = (copy.places[i] - sharedBase) / 4, end = word + 4; checks && word < end; ++word) {
      SharedCell &cell = target.cells[word];
      bool isDefined = i >= copy.undefined.size() || !copy.undefined[i];
      cell.flags = uint16_t((cell.flags & ~SharedCell::Pending) | (isDefined ? SharedCell::Defined : 0) | SharedCell::AsyncProxy);
      cell.clock = warp.clock;
      cell.thread = uint16_t(warp.memberOf(copy.lane));
    }
  }
  auto found = copy.signalled->mbarriers.find(copy.barrier);
  if (found == copy.signalled->mbarriers.end())
    return;
  Mbarrier &barrier = found->second;
  warp.releaseTo(barrier.arriving, 1u << copy.lane);
  if (copy.clock)
    barrier.arriving.known[numMembers() + warp.pipeOf(Unit::Bulk)] = copy.clock;
  barrier.bytes -= int64_t(copy.data.size());
  copy.signalled->completePhase(barrier);
}

//===----------------------------------------------------------------------===//
// Rows of bytes
//===----------------------------------------------------------------------===//

/// Checks that the asynchronous proxy may read bytes of shared memory, and records that a unit does.
static bool noteSource(Warp &warp, const Instruction &instruction, unsigned lane, uint32_t from, uint32_t bytes) {
  Block &block = *warp.block;
  for (uint32_t done = 0; done < bytes; done += 16) {
    if (!warp.locate(instruction, Space::Shared, lane, from + done, 16))
      return false;
    noteBulkRead(warp, instruction, lane, block, from + done);
  }
  return true;
}

void mlir::ssa::sim::noteBulkRead(Warp &warp, const Instruction &instruction, unsigned lane, Block &block,
                                  uint32_t place) {
  if (!block.checks)
    return;
  for (uint32_t word = (place - sharedBase) / 4, end = word + 4; word < end; ++word) {
    ReadProblem problem = problemOf(block.cells[word], warp, lane);
    if (!problem.what.empty())
      warp.fault(instruction, lane, problem.kind,
                 "reads " + block.nameShared(sharedBase + 4 * word) + ", but " + problem.what);
    block.noteUnit(warp, Unit::Bulk, word);
  }
}

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
    if (instruction.flags & FromShared) {
      copy.from = toShared(from);
      copy.clock = warp.unitClocks[unsigned(Unit::Bulk)];
      if (!noteSource(warp, instruction, lane, copy.from, bytes))
        return;
      ++warp.unitClocks[unsigned(Unit::Bulk)];
    } else if (bytes && !readGlobal(warp, instruction, lane, from, bytes, copy, 0))
      return;
    for (uint32_t done = 0; done < bytes; done += 16)
      copy.places.push_back((to & rankMask) + done);
    sendCopy(warp, instruction, lane, to, std::move(copy));
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

bool mlir::ssa::sim::readTile(Warp &warp, const Instruction &instruction, unsigned lane, uint32_t shared, Tile &tile) {
  TensorMap &map = tile.map;
  if (!readMap(warp, instruction, lane, map))
    return false;
  tile.isGathered = instruction.flags & Gathered;
  unsigned rank = tile.isGathered ? 2 : instruction.count;
  auto complain = [&](const char *kind, const std::string &message) {
    warp.fault(instruction, lane, kind, message);
    return false;
  };
  if (map.rank != rank)
    return complain("tensor-map",
                    "the map has " + std::to_string(map.rank) + " dimensions, the instruction " + std::to_string(rank));
  if (tile.isGathered && map.box[1] != 1)
    return complain("tensor-map",
                    "a map for gathering has boxes of one row, but this one of " + std::to_string(map.box[1]));
  // Whole patterns of the swizzle, or four rows somewhere in one: which pieces are exchanged follows from the address.
  unsigned alignment = map.swizzle ? 128u << map.swizzle : 128;
  if (tile.isGathered)
    alignment = std::min(alignment, std::max<unsigned>(tile.bytes(), 128));
  if (shared % alignment)
    return complain("misaligned", "a tile with this swizzle must start at a multiple of " + std::to_string(alignment) +
                                      " bytes, but starts at " + hex(shared));
  const int32_t *coordinates = warp.kernel->lists.data() + instruction.list;
  for (unsigned d = 0; d < instruction.count; ++d) {
    int32_t value = warp.source<int32_t>(coordinates[d])[lane];
    if (tile.isGathered && d)
      tile.rows[d - 1] = value;
    else
      tile.start[d] = value;
  }
  return true;
}

/// Operands: to, map, -, barrier; the list holds the coordinates.
static void copyTile(Warp &warp, const Instruction &instruction) {
  forEachLane(warp.active, [&](unsigned lane) {
    uint32_t to = toShared(warp.addressOf(instruction, lane, 0));
    Tile tile;
    if (!readTile(warp, instruction, lane, to & rankMask, tile))
      return;
    BulkCopy copy;
    copy.data.assign(tile.bytes(), tile.map.fillsNaN ? 0xff : 0);
    bool isGood = true;
    forEachRow(tile.map, tile.start, tile.gathered(),
               [&](uint32_t row, uint64_t address, uint32_t offset, uint32_t bytes) {
                 isGood = isGood && readGlobal(warp, instruction, lane, address, bytes, copy,
                                               size_t(row) * tile.rowBytes() + offset);
               });
    if (!isGood)
      return;
    for (uint32_t done = 0; done < copy.data.size(); done += 16)
      copy.places.push_back(tile.place(to & rankMask, done));
    sendCopy(warp, instruction, lane, to, std::move(copy));
  });
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

bool mlir::ssa::sim::decodePlainAddress(Decoder &decoder, size_t number, unsigned slot) {
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
    decoder.instruction.flags |= NarrowBarrier;
  return !isNarrow || slot == 3 || decoder.fail("this address must be a 64-bit register");
}

bool mlir::ssa::sim::decodeTile(Decoder &decoder, size_t operand, unsigned dimensions, bool isGathered) {
  Instruction &instruction = decoder.instruction;
  instruction.flags |= isGathered ? Gathered : 0;
  if (isGathered && dimensions != 2)
    return decoder.fail("rows are gathered from and scattered to tensors of two dimensions");
  if (!decodePlainAddress(decoder, operand, 1))
    return false;
  const Operand &map = decoder.operand(operand);
  unsigned found = 0;
  if (map.elements.size() != 1 || !decoder.vector(map.elements[0], Class::Word, false, found))
    return decoder.fail("expected [map, {coordinates}]");
  instruction.count = uint8_t(isGathered ? 5 : dimensions);
  return found == instruction.count || decoder.fail("expected " + std::to_string(instruction.count) +
                                                    " coordinates, but got " + std::to_string(found));
}

bool mlir::ssa::sim::decodeBulkCopy(Decoder &decoder, bool isReduction) {
  Instruction &instruction = decoder.instruction;
  for (std::string_view part : decoder.parts)
    if (part.substr(0, 6) == "im2col")
      return decoder.fail("im2col modes of tensor maps are not supported by the simulator");
  if (decoder.take("commit_group") || decoder.take("wait_group"))
    return decodeBulkGroup(decoder);
  bool isTensor = decoder.take("tensor");
  if (decoder.take("prefetch")) {
    instruction.run = [](Warp &, const Instruction &) {};
    decoder.parts.clear();
    return true;
  }
  if (decoder.take("bulk_group"))
    return decodeBulkStore(decoder, isTensor, isReduction);
  if (isReduction)
    return decoder.fail("reductions into shared memory of other blocks are not supported by the simulator");
  if (!decoder.take("mbarrier::complete_tx::bytes"))
    return false;
  bool hasPolicy = decoder.take("L2::cache_hint"), isMulticast = decoder.take("multicast::cluster");
  int dimensions = decoder.takeOneOf({"1d", "2d", "3d", "4d", "5d"});
  bool isGathered = decoder.take("tile::gather4"), isGlobal = decoder.take("global");
  instruction.flags |= decoder.take("cta_group::2") ? OfPair : 0;
  instruction.flags |= isGlobal ? 0 : FromShared;
  instruction.flags |= isMulticast ? Multicast : 0;
  for (std::string_view part : {"shared::cluster", "shared::cta", "tile", "cta_group::1"})
    decoder.take(part);
  size_t next = isTensor ? 3 : 4, count = next + isMulticast + hasPolicy;
  if (!decoder.expectNoParts() || isTensor != (dimensions >= 0) || (isTensor && !isGlobal) ||
      !decoder.expectOperands(count, count))
    return false;
  if (!decodePlainAddress(decoder, next - 1, 3) || (isMulticast && !decoder.source(next, Class::Half, 4)))
    return false;
  decoder.kernel.usesBulkStores |= !isGlobal;
  instruction.run = isTensor ? copyTile : copyBulk;
  if (isTensor)
    return decodeTile(decoder, 1, unsigned(dimensions) + 1, isGathered) && decoder.address(0, Space::Shared, 0);
  return decodePlainAddress(decoder, 1, 1) && decoder.source(2, Class::Word, 2) && decoder.address(0, Space::Shared, 0);
}
