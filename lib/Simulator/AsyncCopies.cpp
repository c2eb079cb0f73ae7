//===- AsyncCopies.cpp - cp.async -----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Copies land when something waits for them, not earlier: at wait_group, or, where a barrier is told of them, when
// nothing else in the block can go on.
//
//===----------------------------------------------------------------------===//

#include "Lanes.h"

using namespace mlir::ssa::sim;

static uint32_t toShared(uint64_t address) {
  return uint32_t(address - sharedWindow < windowBytes ? address - sharedWindow : address);
}

/// Flags: 1 the fourth operand is a predicate that says "ignore the source".
enum CopyFlags : uint32_t { IgnoresSource = 1, SourceIsNegated = 2 };

/// How many bytes a lane copies; the rest of the destination is filled with zeros. Operand 2 is the number, or a
/// predicate that says to ignore the source.
static uint32_t sourceBytesOf(const Warp &warp, const Instruction &instruction, unsigned lane) {
  uint32_t bytes = instruction.count;
  if (instruction.operands[2] == noRegister)
    return bytes;
  if (!(instruction.flags & IgnoresSource))
    return warp.source<uint32_t>(instruction.operands[2])[lane];
  bool isSet = warp.predicate(instruction.operands[2]) >> lane & 1;
  return isSet != bool(instruction.flags & SourceIsNegated) ? 0 : bytes;
}

/// Reads the source of a copy; false after a fault.
static bool readSource(Warp &warp, const Instruction &instruction, unsigned lane, uint32_t sourceBytes,
                       AsyncCopy &copy) {
  Block &block = *warp.block;
  uint64_t from = warp.source<uint64_t>(instruction.operands[1])[lane] + uint64_t(int64_t(int32_t(instruction.extra)));
  if (from & (instruction.count - 1)) {
    warp.fault(instruction, lane, "misaligned",
               "copies " + std::to_string(instruction.count) + " bytes from " + hex(from));
    return false;
  }
  for (uint32_t byte : {0u, sourceBytes - 1}) // the first and the last one: sizes need not be powers of two
    if (!warp.locate(instruction, Space::Global, lane, from + byte, 1))
      return false;
  Allocation &allocation = *block.lastAllocation;
  uint64_t offset = from - allocation.address;
  copy.undefined = block.noteGlobal(warp, instruction, lane, allocation, offset, sourceBytes, false);
  std::memcpy(copy.data, allocation.data.get() + offset, sourceBytes);
  return true;
}

/// Operands: to, from, source bytes or predicate; `count` bytes. The displacement of `from` is in `extra`.
static void copyAsync(Warp &warp, const Instruction &instruction) {
  Block &block = *warp.block;
  uint32_t bytes = instruction.count;
  forEachLane(warp.active, [&](unsigned lane) {
    uint32_t to = toShared(warp.addressOf(instruction, lane, 0));
    uint32_t sourceBytes = sourceBytesOf(warp, instruction, lane);
    if (sourceBytes > bytes) {
      warp.fault(instruction, lane, "async",
                 "copies " + std::to_string(sourceBytes) + " bytes into " + std::to_string(bytes));
      sourceBytes = bytes;
    }
    AsyncCopy copy = {};
    copy.to = to;
    copy.bytes = uint8_t(bytes);
    copy.group = warp.copyGroup[lane];
    copy.number = block.copyNumber++;
    if (!warp.locate(instruction, Space::Shared, lane, to, bytes) ||
        (sourceBytes && !readSource(warp, instruction, lane, sourceBytes, copy)))
      return;
    block.noteShared(warp, instruction, lane, to, bytes, true);
    for (uint32_t word = (to - sharedBase) / 4; block.checks && word < (to - sharedBase + bytes) / 4; ++word) {
      SharedCell &cell = block.cells[word];
      cell.flags = (cell.flags | SharedCell::Pending) & ~SharedCell::Defined;
      cell.clock = UINT32_MAX;
    }
    warp.copies[lane].push_back(copy);
  });
}

/// Lands the copies of a lane that were issued before a number, or that belong to groups before one.
void Warp::landCopies(unsigned lane, uint64_t beforeNumber, uint32_t beforeGroup) {
  std::deque<AsyncCopy> &list = copies[lane];
  while (!list.empty() && (list.front().number < beforeNumber || list.front().group < beforeGroup)) {
    const AsyncCopy &copy = list.front();
    std::memcpy(block->shared.data() + (copy.to - sharedBase), copy.data, copy.bytes);
    if (block->checks)
      for (uint32_t word = (copy.to - sharedBase) / 4; word < (copy.to - sharedBase + copy.bytes) / 4; ++word) {
        SharedCell &cell = block->cells[word];
        uint32_t missing = copy.undefined >> (4 * word - (copy.to - sharedBase)) & 15;
        cell.flags = uint16_t((cell.flags & ~SharedCell::Pending) | (SharedCell::Defined & ~missing));
        cell.clock = clock;
        cell.thread = uint16_t(memberOf(lane));
      }
    list.pop_front();
  }
}

static void commitCopies(Warp &warp, const Instruction &) {
  forEachLane(warp.active, [&](unsigned lane) { ++warp.copyGroup[lane]; });
}

static void waitForGroups(Warp &warp, const Instruction &instruction) {
  forEachLane(warp.active, [&](unsigned lane) {
    uint32_t groups = warp.copyGroup[lane], open = uint32_t(instruction.immediate);
    warp.landCopies(lane, 0, groups > open ? groups - open : 0);
  });
}

static void waitForAll(Warp &warp, const Instruction &) {
  forEachLane(warp.active, [&](unsigned lane) { warp.landCopies(lane, UINT64_MAX, 0); });
}

/// cp.async.mbarrier.arrive: the arrival follows the copies. Without `.noinc` (flag 1) it is expected in addition.
static void arriveAfterCopies(Warp &warp, const Instruction &instruction) {
  Block &block = *warp.block;
  forEachLane(warp.active, [&](unsigned lane) {
    uint32_t at = toShared(warp.addressOf(instruction, lane, 0));
    auto found = block.mbarriers.find(at);
    if (found == block.mbarriers.end()) {
      warp.fault(instruction, lane, "mbarrier",
                 "there is no mbarrier at " + block.nameShared(at) + ": it was not initialized");
      return;
    }
    if (!(instruction.flags & 1))
      ++found->second.pending;
    block.arrivals.push_back({warp.threadOf(lane), at, block.copyNumber, instruction.line});
  });
}

/// Completes the oldest thing that is under way; false if there is none.
bool Block::landSomething() {
  if (arrivals.empty() && bulkCopies.empty() && tensorWork.empty())
    return false;
  ++events;
  // Which of the units is slower must not matter.
  if (!tensorWork.empty() && ((arrivals.empty() && bulkCopies.empty()) || index / 4 % 2)) {
    landTensorWork();
    return true;
  }
  if (arrivals.empty()) {
    landBulkCopy();
    return true;
  }
  // The arrivals of a warp's instruction together: which of its lanes is first shows nothing.
  AsyncArrival first = arrivals.front();
  while (!arrivals.empty() && arrivals.front().barrier == first.barrier && arrivals.front().line == first.line &&
         arrivals.front().thread / numLanes == first.thread / numLanes) {
    AsyncArrival arrival = arrivals.front();
    arrivals.pop_front();
    Warp &warp = warps[arrival.thread / numLanes];
    unsigned lane = arrival.thread % numLanes;
    warp.landCopies(lane, arrival.number, 0);
    auto found = mbarriers.find(arrival.barrier);
    if (found == mbarriers.end())
      continue;
    warp.releaseTo(found->second.arriving, 1u << lane);
    --found->second.pending;
    completePhase(found->second);
  }
  return true;
}

/// cp.async.ca.shared.global [to], [from], bytes{, source bytes | predicate}{, policy}
static bool decodeCopy(Decoder &decoder) {
  Instruction &instruction = decoder.instruction;
  bool hasPolicy = decoder.take("L2::cache_hint");
  for (std::string_view part : {"ca", "cg", "shared", "shared::cta", "global", "L2::64B", "L2::128B", "L2::256B"})
    decoder.take(part);
  int64_t bytes = 0;
  if (!decoder.expectNoParts() || !decoder.expectOperands(3 + hasPolicy, 4 + hasPolicy) || !decoder.number(2, bytes))
    return false;
  if (bytes != 4 && bytes != 8 && bytes != 16)
    return decoder.fail("a copy is of 4, 8 or 16 bytes");
  instruction.run = copyAsync;
  if (!decoder.address(1, Space::Global, 1))
    return false;
  instruction.extra = uint32_t(int32_t(instruction.immediate));
  instruction.immediate = 0;
  if (instruction.flags)
    return decoder.fail("the source of a copy must be a 64-bit address");
  if (!decoder.address(0, Space::Shared, 0))
    return false;
  instruction.count = uint8_t(bytes);
  if (decoder.numOperands() < 4u + hasPolicy)
    return true;
  const Operand &last = decoder.operand(3);
  bool isPredicate = last.kind == Operand::Name && decoder.classOf(last.name) == Class::Predicate;
  instruction.flags |= isPredicate ? IgnoresSource | (last.isNegated ? SourceIsNegated : 0) : 0;
  return decoder.source(3, isPredicate ? Class::Predicate : Class::Word, 2);
}

static bool decodeAsync(Decoder &decoder) {
  bool isReduction = decoder.take("reduce");
  if (!decoder.take("async"))
    return false;
  Instruction &instruction = decoder.instruction;
  if (decoder.take("bulk"))
    return decodeBulkCopy(decoder, isReduction);
  if (decoder.take("commit_group")) {
    instruction.run = commitCopies;
    return decoder.expectNoParts() && decoder.expectOperands(0, 0);
  }
  if (decoder.take("wait_group")) {
    instruction.run = waitForGroups;
    return decoder.expectNoParts() && decoder.expectOperands(1, 1) && decoder.number(0, instruction.immediate);
  }
  if (decoder.take("wait_all")) {
    instruction.run = waitForAll;
    return decoder.expectNoParts() && decoder.expectOperands(0, 0);
  }
  if (decoder.take("mbarrier")) {
    instruction.run = arriveAfterCopies;
    instruction.flags = decoder.take("noinc");
    for (std::string_view part : {"arrive", "shared", "shared::cta", "b64"})
      decoder.take(part);
    return decoder.expectNoParts() && decoder.expectOperands(1, 1) && decoder.address(0, Space::Shared, 0);
  }
  return decodeCopy(decoder);
}

void mlir::ssa::sim::addAsyncCopies(Tables &tables) { tables.families["cp"] = decodeAsync; }
