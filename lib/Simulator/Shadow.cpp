//===- Shadow.cpp - Who touched which word --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Lanes.h"

using namespace mlir::ssa::sim;

std::string Block::nameShared(uint32_t address) const {
  const std::string *best = nullptr;
  uint64_t start = 0;
  for (const auto &[name, variable] : kernel.sharedVariables)
    if (variable.space == Space::Shared && variable.offset <= address && (!best || variable.offset >= start)) {
      best = &name;
      start = variable.offset;
    }
  if (!best)
    return "shared memory at " + hex(address);
  return "'" + *best + "' + " + std::to_string(address - start);
}

std::string Block::describeMember(unsigned member) const {
  unsigned perBlock = numWarps * numLanes;
  std::string text = "thread " + std::to_string(member % perBlock);
  return cluster.blocks.size() == 1 ? text
                                    : text + " of block " + std::to_string(member / perBlock) + " of the cluster";
}

static void reportShared(Block &block, Warp &warp, const Instruction &instruction, unsigned lane, uint32_t address,
                         const SharedCell &cell, bool isWrite) {
  std::string where = block.nameShared(address), what = isWrite ? "writes " : "reads ";
  std::string other = block.describeMember(cell.thread);
  if (cell.flags & SharedCell::Pending)
    return warp.fault(instruction, lane, "async",
                      what + where + " while an asynchronous copy of " + other +
                          " is on its way there: nothing waited for it");
  warp.fault(instruction, lane, "race",
             what + where + ", which " + other + (cell.flags & SharedCell::Atomic ? " updated" : " wrote") +
                 (warp.hasMember(cell.thread) ? " in the same warp" : "") + " without a barrier in between");
}

/// A write after reads of others: all of them have to be known.
static void checkReaders(Block &block, Warp &warp, const Instruction &instruction, unsigned lane, uint32_t word) {
  const uint32_t *clocks = block.readClocks.data() + size_t(word) * block.clusterWarps;
  const uint32_t *lanes = block.readLanes.data() + size_t(word) * block.clusterWarps;
  for (unsigned w = 0; w < block.clusterWarps; ++w) {
    if (clocks[w] <= warp.knownLeast[w])
      continue;
    for (uint32_t left = lanes[w]; left; left &= left - 1) {
      unsigned reader = w * numLanes + unsigned(__builtin_ctz(left));
      bool isAsync = clocks[w] == UINT32_MAX;
      if (!isAsync && warp.knows(lane, reader, clocks[w]))
        continue;
      std::string where = block.nameShared(sharedBase + 4 * word);
      if (isAsync)
        warp.fault(instruction, lane, "async",
                   "writes " + where + " while a wgmma of warp " + std::to_string(w) +
                       " reads it: nothing waited for it");
      else
        warp.fault(instruction, lane, "race",
                   "writes " + where + ", which " + block.describeMember(reader) + " read" +
                       (w == warp.number ? " in the same warp" : "") + " without a barrier in between");
      return;
    }
  }
  for (unsigned pipe = 0; pipe < block.numPipes; ++pipe) {
    uint32_t when = block.pipeReads[size_t(word) * block.numPipes + pipe];
    if (!when || warp.knowsAs(lane, block.numMembers() + pipe, when))
      continue;
    bool isTensor = Unit(pipe % numUnits) == Unit::Tensor;
    warp.fault(instruction, lane, "async",
               "writes " + block.nameShared(sharedBase + 4 * word) + ", which " +
                   (isTensor ? "a tcgen05.mma or cp" : "a bulk copy") + " of warp " +
                   std::to_string(pipe / numUnits % block.numWarps) + " reads: nothing waited for " +
                   (isTensor ? "its tcgen05.commit" : "that (cp.async.bulk.wait_group.read)"));
    return;
  }
}

/// Records an access to shared memory and looks for what is wrong with it.
uint32_t Block::noteShared(Warp &warp, const Instruction &instruction, unsigned lane, uint32_t address, unsigned bytes,
                           bool isWrite, bool isAtomic) {
  if (!checks)
    return 0;
  uint32_t missing = 0;
  unsigned thread = warp.memberOf(lane);
  for (uint32_t at = address; at < address + bytes;) {
    uint32_t word = (at - sharedBase) / 4, first = at & 3, count = std::min(4 - first, address + bytes - at);
    uint16_t touched = uint16_t(((1u << count) - 1) << first);
    SharedCell &cell = cells[word];
    uint32_t here = at;
    at += count;
    if (cell.flags & SharedCell::Barrier && !(isWrite && isAtomic)) {
      if (instruction.width) { // the mbarrier instructions themselves have none
        warp.fault(instruction, lane, "mbarrier",
                   std::string(isWrite ? "writes" : "reads") + " the mbarrier at " + nameShared(here) +
                       " as plain memory");
        continue;
      }
    }
    bool overlaps = (cell.flags >> 4 & touched) != 0;
    bool isOrdered = cell.thread == thread
                         ? !(cell.flags & SharedCell::Pending)
                         : !cell.clock || !overlaps || (isAtomic && cell.flags & SharedCell::Atomic) ||
                               (cell.clock != UINT32_MAX && warp.knows(lane, cell.thread, cell.clock));
    if (!isOrdered)
      reportShared(*this, warp, instruction, lane, here, cell, isWrite);
    size_t slot = size_t(word) * clusterWarps + warp.number;
    if (!isWrite || isAtomic) {
      missing |= uint32_t(uint16_t(~cell.flags) & touched) >> first << (here - address);
      if (readClocks[slot] != warp.clock && readClocks[slot] != UINT32_MAX) {
        readClocks[slot] = warp.clock;
        readLanes[slot] = 0;
      }
      if (!isAtomic)
        readLanes[slot] |= 1u << lane;
      if (count < 4)
        cell.flags |= SharedCell::ReadInParts;
    }
    if (!isWrite)
      continue;
    if (count == 4 || !(cell.flags & SharedCell::ReadInParts))
      checkReaders(*this, warp, instruction, lane, word);
    cell.clock = warp.clock;
    cell.thread = uint16_t(thread);
    cell.flags = uint16_t((cell.flags & (SharedCell::Defined | SharedCell::ReadInParts)) | touched | touched << 4 |
                          (isAtomic ? SharedCell::Atomic : 0));
  }
  return missing;
}

//===----------------------------------------------------------------------===//
// Global memory
//===----------------------------------------------------------------------===//

/// The thread of a stamp within the cluster.
static unsigned memberOf(const Block &block, const GlobalStamp &stamp) {
  return (stamp.run - block.cluster.firstRun) * block.numWarps * numLanes + stamp.thread;
}

static void reportGlobal(Block &block, Warp &warp, const Instruction &instruction, unsigned lane,
                         const Allocation &allocation, uint64_t offset, const GlobalStamp &stamp, bool isWrite,
                         bool wasWrite) {
  bool isNear = stamp.run - block.cluster.firstRun < block.cluster.blocks.size();
  std::string who = isNear ? block.describeMember(memberOf(block, stamp)) : "another block";
  warp.fault(instruction, lane, "race",
             std::string(isWrite ? "writes" : "reads") + " byte " + std::to_string(offset) + " of " + allocation.name +
                 ", which " + who + (wasWrite ? " wrote" : " read") + " in this launch" +
                 (isNear ? " without a barrier in between" : ""));
}

uint32_t Block::noteGlobal(Warp &warp, const Instruction &instruction, unsigned lane, Allocation &allocation,
                           uint64_t offset, unsigned bytes, bool isWrite, bool isAtomic) {
  uint32_t missing = 0;
  if (!isWrite || isAtomic)
    for (unsigned i = 0; i < bytes; ++i)
      missing |= uint32_t(!allocation.defined[offset + i]) << i;
  if (isWrite)
    std::memset(allocation.defined.get() + offset, 1, bytes);
  if (!checks)
    return 0;
  unsigned thread = warp.threadOf(lane);
  for (uint64_t at = offset; at < offset + bytes;) {
    uint32_t first = at & 3, count = uint32_t(std::min<uint64_t>(4 - first, offset + bytes - at));
    uint32_t touched = ((1u << count) - 1) << first;
    uint64_t word = at / 4;
    auto conflicts = [&](const GlobalStamp &stamp) {
      if (stamp.run < launch.firstRun || !(stamp.bytes & touched) || (stamp.isAtomic && isAtomic))
        return false;
      if (stamp.run - cluster.firstRun < cluster.blocks.size())
        return !warp.knows(lane, memberOf(*this, stamp), stamp.clock);
      uint32_t number = uint32_t(stamp.run - launch.firstRun) % uint32_t(cluster.blocks.size());
      return !warp.knowsCluster(lane, stamp.run - number, number * numWarps * numLanes + stamp.thread, stamp.clock);
    };
    GlobalStamp mine{run, thread, warp.clock, touched, isAtomic, false};
    GlobalStamp writer = GlobalStamp::unpack(allocation.writers[word].load(std::memory_order_relaxed));
    if (conflicts(writer))
      reportGlobal(*this, warp, instruction, lane, allocation, at, writer, isWrite, true);
    if (isWrite) {
      GlobalStamp reader = GlobalStamp::unpack(allocation.readers[word].load(std::memory_order_relaxed));
      // Of several blocks that read it, only the last one is known: flags may have ordered the others too.
      bool isShared = reader.isShared && reader.run >= launch.firstRun && reader.bytes & touched &&
                      !(isAtomic && reader.isAtomic) && !warp.knowsOthers(lane);
      if (conflicts(reader) || isShared)
        reportGlobal(*this, warp, instruction, lane, allocation, at, reader, true, false);
      if (writer.run == run && writer.thread == thread)
        mine.bytes |= writer.bytes;
      allocation.writers[word].store(mine.pack(), std::memory_order_relaxed);
    } else {
      GlobalStamp reader = GlobalStamp::unpack(allocation.readers[word].load(std::memory_order_relaxed));
      if (reader.run >= launch.firstRun) {
        mine.isShared = reader.isShared || reader.run != run;
        mine.bytes |= reader.bytes;
      }
      allocation.readers[word].store(mine.pack(), std::memory_order_relaxed);
    }
    at += count;
  }
  return missing;
}

void Block::undefine(uint64_t address, unsigned bytes, Space space) {
  if (space == Space::Shared)
    for (uint64_t at = address; at < address + bytes; ++at)
      cells[(at - sharedBase) / 4].flags &= uint16_t(~(1u << (at & 3)));
  else if (space == Space::Global && lastAllocation)
    std::memset(lastAllocation->defined.get() + (address - lastAllocation->address), 0, bytes);
}
