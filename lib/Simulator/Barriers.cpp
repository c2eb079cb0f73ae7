//===- Barriers.cpp - bar, mbarrier and fences ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Lanes.h"

using namespace mlir::ssa::sim;

//===----------------------------------------------------------------------===//
// bar
//===----------------------------------------------------------------------===//

void Block::completeBarrier(NamedBarrier &barrier) {
  ++events;
  for (unsigned number : barrier.waiting) {
    Warp &warp = warps[number];
    warp.clocks.join(barrier.clocks);
    warp.updateLeast();
    warp.status = Warp::Running;
  }
  barrier = NamedBarrier();
}

/// Barriers that all threads take part in do not wait for threads that are gone.
void Block::checkBarriersAfterExit() {
  uint32_t left = 0;
  for (const Warp &warp : warps)
    left += __builtin_popcount(warp.live);
  for (NamedBarrier &barrier : barriers)
    if (barrier.arrived && !barrier.expected && barrier.arrived >= left)
      completeBarrier(barrier);
}

/// Operands: -, id, count. Flag 1: does not wait.
static void arriveAtBarrier(Warp &warp, const Instruction &instruction) {
  unsigned lane = warp.firstLane();
  uint32_t id = warp.source<uint32_t>(instruction.operands[1])[lane];
  uint32_t count = instruction.operands[2] == noRegister ? 0 : warp.source<uint32_t>(instruction.operands[2])[lane];
  Block &block = *warp.block;
  auto fail = [&](const std::string &message) { warp.fault(instruction, lane, "barrier", message); };
  if (id >= 16)
    return fail("barriers have numbers 0 to 15, but this is " + std::to_string(id));
  if (count % numLanes || count > (block.numThreads + 31) / 32 * 32)
    fail("the number of threads must be a multiple of 32 and at most that of the block, but is " +
         std::to_string(count));
  NamedBarrier &barrier = block.barriers[id];
  if (barrier.arrived && barrier.expected != count)
    fail("barrier " + std::to_string(id) + " is waited for by " +
         std::to_string(barrier.expected ? barrier.expected : block.numThreads) + " threads at line " +
         std::to_string(barrier.line) + ", but by " + std::to_string(count ? count : block.numThreads) + " here");
  if (!barrier.arrived) {
    barrier.expected = count;
    barrier.line = instruction.line;
  }
  warp.syncLanes(warp.live);
  warp.releaseTo(barrier.clocks, warp.live);
  barrier.arrived += count ? numLanes : __builtin_popcount(warp.live);
  if (!(instruction.flags & 1)) {
    barrier.waiting.push_back(warp.index);
    warp.status = Warp::AtBarrier;
    warp.barrierId = id;
  }
  warp.mustYield = true; // the last one does not always go first
  if (count && barrier.arrived >= count)
    block.completeBarrier(barrier);
  else if (!count)
    block.checkBarriersAfterExit();
}

static void syncWarp(Warp &warp, const Instruction &) { warp.syncLanes(warp.active); }

/// bar.sync, bar.arrive, bar.warp.sync, and their names as `barrier`.
static bool decodeBarrier(Decoder &decoder) {
  Instruction &instruction = decoder.instruction;
  if (decoder.take("cluster"))
    return decodeClusterBarrier(decoder);
  instruction.isCollective = true;
  if (decoder.take("warp")) {
    instruction.run = syncWarp;
    instruction.maskOperand = 1;
    return decoder.take("sync") && decoder.expectNoParts() && decoder.expectOperands(1, 1) &&
           decoder.source(0, Class::Word, 1);
  }
  decoder.take("cta");
  decoder.take("aligned");
  int mode = decoder.takeOneOf({"sync", "arrive"});
  if (mode < 0 || !decoder.expectNoParts() || !decoder.expectOperands(1, 2))
    return false;
  instruction.run = arriveAtBarrier;
  instruction.flags = mode;
  return decoder.source(0, Class::Word, 1) && (decoder.numOperands() < 2 || decoder.source(1, Class::Word, 2));
}

//===----------------------------------------------------------------------===//
// mbarrier
//===----------------------------------------------------------------------===//

void Block::completePhase(Mbarrier &barrier) {
  if (barrier.pending > 0 || barrier.bytes != 0)
    return;
  ++events;
  ++barrier.phase;
  barrier.pending = barrier.expected;
  barrier.completed = std::move(barrier.arriving);
  barrier.arriving = Clocks();
}

/// Arrivals that follow from something asynchronous.
void Block::arriveAt(uint32_t address, unsigned count, const Clocks &clocks) {
  auto found = mbarriers.find(address);
  if (found == mbarriers.end())
    return;
  Mbarrier &barrier = found->second;
  if (barrier.arriving.known.empty())
    resetClocks(barrier.arriving);
  barrier.arriving.join(clocks);
  barrier.pending -= count;
  completePhase(barrier);
}

static uint32_t sharedOffset(const Warp &warp, const Instruction &instruction, unsigned lane, unsigned slot) {
  uint64_t address = warp.addressOf(instruction, lane, slot);
  return uint32_t(address >= sharedWindow ? address - sharedWindow : address);
}

/// The barrier at an address; null after a fault.
static Mbarrier *findBarrier(Warp &warp, const Instruction &instruction, unsigned lane, const Block *owner,
                             uint32_t address) {
  if (!owner)
    return nullptr;
  auto found = owner->mbarriers.find(address);
  if (found != owner->mbarriers.end())
    return const_cast<Mbarrier *>(&found->second);
  warp.fault(instruction, lane, "mbarrier",
             "there is no mbarrier at " + owner->nameShared(address) + ": it was not initialized");
  return nullptr;
}

static void markBarrier(Block &block, uint32_t address, bool isOne) {
  for (uint32_t word = (address - sharedBase) / 4, i = 0; i < 2; ++i) {
    SharedCell &cell = block.cells[word + i];
    cell.flags = isOne ? SharedCell::Barrier | SharedCell::Defined : 0;
  }
}

static void initBarrier(Warp &warp, const Instruction &instruction) {
  Block &block = *warp.block;
  const uint32_t *counts = warp.source<uint32_t>(instruction.operands[1]);
  forEachLane(warp.active, [&](unsigned lane) {
    uint64_t address = warp.addressOf(instruction, lane, 0);
    if (!warp.locate(instruction, Space::Shared, lane, address, 8))
      return;
    uint32_t at = sharedOffset(warp, instruction, lane, 0);
    if (block.mbarriers.count(at))
      warp.fault(instruction, lane, "mbarrier",
                 "the mbarrier at " + block.nameShared(at) + " is initialized already, at line " +
                     std::to_string(block.mbarriers[at].line));
    if (!counts[lane] || counts[lane] >= 1u << 20)
      warp.fault(instruction, lane, "mbarrier",
                 "the number of arrivals must be 1 to 1048575, but is " + std::to_string(counts[lane]));
    block.noteShared(warp, instruction, lane, at, 8, true);
    Mbarrier barrier;
    barrier.expected = counts[lane];
    barrier.pending = counts[lane];
    barrier.line = instruction.line;
    block.resetClocks(barrier.completed);
    // Who uses it must know that it was initialized, as of any other write.
    SharedCell &cell = block.cells[(at - sharedBase) / 4];
    barrier.completed.known[cell.thread] = 0;
    block.mbarriers[at] = std::move(barrier);
    for (uint32_t i = 0; i < 2; ++i)
      block.cells[(at - sharedBase) / 4 + i].flags |= SharedCell::Barrier;
  });
}

static void invalidateBarrier(Warp &warp, const Instruction &instruction) {
  forEachLane(warp.active, [&](unsigned lane) {
    uint32_t at = sharedOffset(warp, instruction, lane, 0);
    if (!findBarrier(warp, instruction, lane, warp.block, at))
      return;
    warp.block->mbarriers.erase(at);
    markBarrier(*warp.block, at, false);
  });
}

/// A barrier may be used by those who know of its initialization.
static void checkInitialized(Warp &warp, const Instruction &instruction, unsigned lane, const Block &owner,
                             uint32_t at) {
  const SharedCell &cell = owner.cells[(at - sharedBase) / 4];
  if (owner.checks && !warp.knows(lane, cell.thread, cell.clock))
    warp.fault(instruction, lane, "race",
               "the initialization of the mbarrier at " + owner.nameShared(at) + " by " +
                   owner.describeMember(cell.thread) + " is not ordered before this");
}

/// Flags of arrivals: how many bytes are expected comes first or alone, or follow.
enum ArriveFlags : uint32_t { ExpectsBytes = 1, OnlyExpects = 2, GivesState = 4, HasCount = 8 };

/// Operands: state, address, count or bytes.
static void arrive(Warp &warp, const Instruction &instruction) {
  forEachLane(warp.active, [&](unsigned lane) {
    uint32_t at = sharedOffset(warp, instruction, lane, 1);
    Block *owner = warp.ownerOf(instruction, lane, at);
    Mbarrier *barrier = findBarrier(warp, instruction, lane, owner, at);
    if (!barrier)
      return;
    Block &block = *owner;
    checkInitialized(warp, instruction, lane, block, at);
    uint32_t number = instruction.operands[2] == noRegister ? 1 : warp.source<uint32_t>(instruction.operands[2])[lane];
    if (instruction.flags & GivesState)
      warp.destination<uint64_t>(instruction.operands[0])[lane] = barrier->phase;
    if (instruction.flags & ExpectsBytes)
      barrier->bytes += number;
    uint32_t count = instruction.flags & ExpectsBytes ? 1 : number;
    if (instruction.flags & OnlyExpects)
      return;
    if (!count || count > barrier->pending) {
      warp.fault(instruction, lane, "mbarrier",
                 std::to_string(count) + " arrivals at the mbarrier at " + block.nameShared(at) +
                     ", which only waits for " + std::to_string(barrier->pending) + " of " +
                     std::to_string(barrier->expected));
      return;
    }
    warp.releaseTo(barrier->arriving, 1u << lane);
    barrier->pending -= count;
    block.completePhase(*barrier);
  });
}

/// Operands: p, address, parity or state. Flags: 1 parity, 2 may wait.
static void waitForPhase(Warp &warp, const Instruction &instruction) {
  Block &block = *warp.block;
  uint32_t done = 0;
  const Mbarrier *waited = nullptr;
  forEachLane(warp.active, [&](unsigned lane) {
    uint32_t at = sharedOffset(warp, instruction, lane, 1);
    Block *owner = warp.ownerOf(instruction, lane, at);
    Mbarrier *barrier = findBarrier(warp, instruction, lane, owner, at);
    if (barrier && owner != &block) {
      warp.fault(instruction, lane, "mbarrier", "waits for an mbarrier of another block: only arrivals are allowed");
      barrier = nullptr;
    }
    if (!barrier) {
      done |= 1u << lane;
      return;
    }
    checkInitialized(warp, instruction, lane, block, at);
    bool isComplete;
    if (instruction.flags & 1)
      isComplete = (barrier->phase & 1) != (warp.source<uint32_t>(instruction.operands[2])[lane] & 1);
    else
      isComplete = barrier->phase != warp.source<uint64_t>(instruction.operands[2])[lane];
    if (isComplete) {
      done |= 1u << lane;
      if (waited != barrier || warp.active != warp.live)
        warp.acquire(barrier->completed, warp.active == warp.live ? warp.live : 1u << lane);
      waited = barrier;
    } else {
      warp.waitBarrier = at;
      warp.waitPhase = barrier->phase;
    }
  });
  if (done != warp.active) {
    if (instruction.flags & 2) { // all lanes ask again later
      warp.waitFor = Split::Mbarrier;
      return;
    }
    warp.mustYield = warp.isIdle = true;
  } else
    ++block.events;
  warp.setPredicate(instruction.operands[0], done);
}

static bool decodeArrive(Decoder &decoder) {
  Instruction &instruction = decoder.instruction;
  instruction.run = arrive;
  bool expects = decoder.take("expect_tx");
  instruction.flags |= expects ? ExpectsBytes : 0;
  if (!decoder.expectNoParts())
    return false;
  bool hasState = decoder.operand(0).kind != Operand::Address;
  if (!decoder.expectOperands(hasState + 1, hasState + 2) || !decoder.address(hasState, Space::Shared, 1))
    return false;
  if (hasState && decoder.operand(0).kind != Operand::Sink) {
    instruction.flags |= GivesState;
    if (!decoder.destination(0, Class::Double, 0))
      return false;
  }
  size_t last = hasState + 1;
  return decoder.numOperands() <= last || decoder.source(last, Class::Word, 2);
}

static bool decodeMbarrier(Decoder &decoder) {
  Instruction &instruction = decoder.instruction;
  decoder.kernel.usesMbarrier = true;
  int kind = decoder.takeOneOf({"init", "inval", "arrive", "test_wait", "try_wait", "expect_tx"});
  for (std::string_view part :
       {"shared", "shared::cta", "shared::cluster", "release", "acquire", "relaxed", "cta", "cluster", "b64"})
    decoder.take(part);
  switch (kind) {
  case 0:
    instruction.run = initBarrier;
    return decoder.expectNoParts() && decoder.expectOperands(2, 2) && decoder.address(0, Space::Shared, 0) &&
           decoder.source(1, Class::Word, 1);
  case 1:
    instruction.run = invalidateBarrier;
    return decoder.expectNoParts() && decoder.expectOperands(1, 1) && decoder.address(0, Space::Shared, 0);
  case 2:
    return decodeArrive(decoder);
  case 3:
  case 4: {
    bool isParity = decoder.take("parity");
    instruction.run = waitForPhase;
    instruction.flags = (isParity ? 1 : 0) | (kind == 4 ? 2 : 0);
    return decoder.expectNoParts() && decoder.expectOperands(3, 4) && decoder.address(1, Space::Shared, 1) &&
           decoder.source(2, isParity ? Class::Word : Class::Double, 2) && decoder.destination(0, Class::Predicate, 0);
  }
  case 5:
    instruction.run = arrive;
    instruction.flags = ExpectsBytes | OnlyExpects;
    return decoder.expectNoParts() && decoder.expectOperands(2, 2) && decoder.address(0, Space::Shared, 1) &&
           decoder.source(1, Class::Word, 2);
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Fences
//===----------------------------------------------------------------------===//

void Block::fenceBarriers(const Warp &warp, uint32_t lanes) {
  for (auto &[address, barrier] : mbarriers) {
    unsigned member = cells[(address - sharedBase) / 4].thread;
    barrier.isFenced |= warp.hasMember(member) && lanes >> member % numLanes & 1;
  }
}

static void fenceBarriers(Warp &warp, const Instruction &) { warp.block->fenceBarriers(warp, warp.active); }
static void fenceProxy(Warp &warp, const Instruction &instruction) {
  warp.fenceAsync(warp.active);
  fenceBarriers(warp, instruction);
}
static void fenceMemory(Warp &warp, const Instruction &instruction) { warp.fenceMemory(instruction.isWide); }
static void fenceNothing(Warp &, const Instruction &) {}

static bool decodeFence(Decoder &decoder) {
  bool isProxy = decoder.take("proxy"), isAsync = isProxy && decoder.take("async");
  bool isOfInit = decoder.take("mbarrier_init");
  decoder.instruction.run = isAsync ? fenceProxy : isOfInit ? fenceBarriers : isProxy ? fenceNothing : fenceMemory;
  decoder.instruction.isWide = decoder.takeOneOf({"cta", "cluster"}) < 0;
  for (std::string_view part :
       {"shared::cta", "shared::cluster", "global", "acq_rel", "sc", "release", "acquire", "gpu", "sys", "gl"})
    decoder.take(part);
  return decoder.expectNoParts() && decoder.expectOperands(0, 0);
}

void mlir::ssa::sim::addBarriers(Tables &tables) {
  tables.families["bar"] = decodeBarrier;
  tables.families["barrier"] = decodeBarrier;
  tables.families["mbarrier"] = decodeMbarrier;
  tables.families["fence"] = decodeFence;
  tables.families["membar"] = decodeFence;
}

//===----------------------------------------------------------------------===//
// Deadlocks
//===----------------------------------------------------------------------===//

std::string Block::describeWaits() const {
  // One line for each reason, with the warps that have it.
  std::map<std::string, std::string> reasons;
  auto add = [&](const std::string &reason, unsigned warp) {
    std::string &list = reasons[reason];
    list += (list.empty() ? "" : ", ") + std::to_string(warp);
  };
  for (const Warp &warp : warps) {
    if (warp.status == Warp::AtBarrier) {
      const NamedBarrier &barrier = barriers[warp.barrierId];
      add("for barrier " + std::to_string(warp.barrierId) + " (line " + std::to_string(barrier.line) + "), where " +
              std::to_string(barrier.arrived) + " of " +
              std::to_string(barrier.expected ? barrier.expected : numThreads) + " threads are",
          warp.index);
      continue;
    }
    if (warp.status == Warp::Running)
      add("in a loop (line " + std::to_string(kernel.code[warp.pc].line) + ")", warp.index);
    for (const Split &split : warp.others) {
      std::string line = " (line " + std::to_string(kernel.code[split.pc].line) + ")";
      if (split.state == Split::Mbarrier) {
        auto found = mbarriers.find(split.barrier);
        std::string state = "which is gone";
        if (found != mbarriers.end())
          state = std::to_string(found->second.pending) + " of " + std::to_string(found->second.expected) +
                  " arrivals and " + std::to_string(found->second.bytes) + " bytes missing in phase " +
                  std::to_string(found->second.phase);
        add("for the mbarrier at " + nameShared(split.barrier) + line + ", " + state, warp.index);
      } else if (split.state == Split::Registers)
        add("for " + std::to_string(split.phase) + " registers" + line + ", which the others do not leave", warp.index);
      else if (split.state == Split::Cluster)
        add("for the barrier of the cluster" + line + ", where " + std::to_string(cluster.arrived) + " threads are",
            warp.index);
      else
        add("for the other lanes of the warp, at" + line + " with lanes " + hex(split.lanes) + " of " + hex(warp.live),
            warp.index);
    }
  }
  std::string text;
  for (const auto &[reason, list] : reasons)
    text += (text.empty() ? "warps " : "; warps ") + list + " wait " + reason;
  return text;
}
