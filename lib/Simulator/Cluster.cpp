//===- Cluster.cpp - Blocks that run together -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Lanes.h"

using namespace mlir::ssa::sim;

//===----------------------------------------------------------------------===//
// Execution
//===----------------------------------------------------------------------===//

Cluster::Cluster(Launch &launch)
    : launch(launch), size(launch.kernel.requiredCluster[0] ? launch.kernel.requiredCluster : launch.config.cluster) {
  unsigned count = size[0] * size[1] * size[2];
  for (unsigned rank = 0; rank < count; ++rank)
    blocks.push_back(std::make_unique<Block>(launch, *this, rank, count));
}

void Cluster::start(uint64_t index) {
  firstRun = launch.memory.nextRun.fetch_add(uint32_t(blocks.size())) & ((1u << 26) - 1);
  std::array<uint64_t, 2> count = {launch.config.grid[0] / size[0], launch.config.grid[1] / size[1]};
  position = {uint32_t(index % count[0]), uint32_t(index / count[0] % count[1]), uint32_t(index / count[0] / count[1])};
  arrived = phase = 0;
  arriving = completed = Clocks();
  for (unsigned rank = 0; rank < blocks.size(); ++rank) {
    std::array<uint32_t, 3> place = {position[0] * size[0] + rank % size[0],
                                     position[1] * size[1] + rank / size[0] % size[1],
                                     position[2] * size[2] + rank / size[0] / size[1]};
    blocks[rank]->reset(place, firstRun + rank);
  }
  // Warps take turns in another way in every cluster: any order is allowed, and each shows other faults.
  constexpr uint64_t budgets[] = {1 << 14, 1 << 14, 97, 13};
  budget = budgets[index / 2 % 4];
  isReversed = index % 2;
  seen = idleRounds = 0;
}

bool Cluster::isStopped() const {
  return launch.isStopped.load(std::memory_order_relaxed) ||
         std::any_of(blocks.begin(), blocks.end(), [](const auto &block) { return block->isStopped; });
}

bool Cluster::landSomething() {
  return std::any_of(blocks.begin(), blocks.end(), [](const auto &block) { return block->landSomething(); });
}

Cluster::State Cluster::resume() {
  unsigned numWarps = blocks[0]->clusterWarps;
  uint64_t limit = launch.settings.maxInstructionsPerBlock * blocks.size();
  while (!isStopped()) {
    bool isRunning = false, isIdle = true, isDone = true, isSpinning = false;
    uint64_t executed = 0, events = 0;
    for (unsigned i = 0; i < numWarps; ++i) {
      Warp &next = warp(isReversed ? numWarps - 1 - i : i);
      isDone &= next.status == Warp::Done;
      if (next.status != Warp::Done && next.poll()) {
        isRunning = true;
        next.run(budget);
        isIdle &= next.isIdle;
        isSpinning |= next.isSpinning;
      }
      executed += next.executed;
    }
    if (isDone) {
      for (auto &block : blocks) {
        block->checkTensorAtEnd();
        block->checkRegistersAtEnd();
        for (Warp &warp : block->warps)
          warp.finishAllStores();
      }
      return Done;
    }
    if (limit && executed > limit) {
      warp(0).fault(launch.kernel.code[0], 0, "limit",
                    "the block executed " + std::to_string(executed) + " instructions; " + std::to_string(limit) +
                        " are allowed");
      return Done;
    }
    // Warps that ask again and again, with nothing happening, wait as well.
    for (auto &block : blocks)
      events += block->events;
    idleRounds = isIdle && events == seen ? idleRounds + 1 : 0;
    seen = events;
    if (isRunning && idleRounds < 100)
      continue;
    bool landed = landSomething();
    idleRounds = 0;
    if (landed)
      continue;
    if (isSpinning)
      return Waiting;
    reportDeadlock();
    return Done;
  }
  return Done;
}

void Cluster::reportDeadlock() {
  for (auto &block : blocks)
    for (Warp &warp : block->warps)
      if (warp.status != Warp::Done) {
        uint32_t at = warp.status == Warp::AtBarrier ? warp.pc - 1 : warp.others.empty() ? warp.pc : warp.others[0].pc;
        unsigned lane = warp.others.empty() ? 0 : unsigned(__builtin_ctz(warp.others[0].lanes));
        warp.fault(launch.kernel.code[at], lane, "deadlock", "nothing can go on: " + block->describeWaits());
        break;
      }
}

//===----------------------------------------------------------------------===//
// barrier.cluster
//===----------------------------------------------------------------------===//

/// Completes the phase if all threads that live have arrived.
void Cluster::checkBarrier() {
  if (!arrived)
    return;
  uint32_t live = 0;
  for (auto &block : blocks)
    for (const Warp &warp : block->warps)
      live += unsigned(__builtin_popcount(warp.live));
  if (arrived < live)
    return;
  arrived = 0;
  ++phase;
  ++blocks[0]->events;
  completed = std::move(arriving);
  arriving = Clocks();
}

/// Flag 1: without order.
static void arriveAtCluster(Warp &warp, const Instruction &instruction) {
  Cluster &cluster = warp.block->cluster;
  if (uint32_t again = warp.clusterArrivals & warp.active)
    warp.fault(instruction, unsigned(__builtin_ctz(again)), "barrier",
               "arrives at the barrier of the cluster again, without having waited");
  if (!(instruction.flags & 1))
    warp.releaseTo(cluster.arriving, warp.active);
  forEachLane(warp.active, [&](unsigned lane) { warp.clusterPhases[lane] = cluster.phase; });
  cluster.arrived += unsigned(__builtin_popcount(warp.active & ~warp.clusterArrivals));
  warp.clusterArrivals |= warp.active;
  cluster.checkBarrier();
}

static void waitForCluster(Warp &warp, const Instruction &instruction) {
  Cluster &cluster = warp.block->cluster;
  if (uint32_t strangers = warp.active & ~warp.clusterArrivals) {
    warp.fault(instruction, unsigned(__builtin_ctz(strangers)), "barrier",
               "waits for the barrier of the cluster without having arrived");
    return;
  }
  uint32_t arrivedIn = warp.clusterPhases[warp.firstLane()];
  if (arrivedIn == cluster.phase) {
    warp.waitFor = Split::Cluster;
    warp.waitPhase = arrivedIn;
    return;
  }
  warp.acquire(cluster.completed, warp.active);
  warp.clusterArrivals &= ~warp.active;
}

bool mlir::ssa::sim::decodeClusterBarrier(Decoder &decoder) {
  Instruction &instruction = decoder.instruction;
  int mode = decoder.takeOneOf({"arrive", "wait"});
  instruction.flags = decoder.take("relaxed");
  decoder.take("release");
  decoder.take("acquire");
  instruction.isCollective = decoder.take("aligned");
  instruction.run = mode ? waitForCluster : arriveAtCluster;
  return mode >= 0 && decoder.expectNoParts() && decoder.expectOperands(0, 0);
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

Block *Warp::ownerOf(const Instruction &instruction, unsigned lane, uint32_t &address) {
  unsigned rank = address >> rankShift;
  address &= rankMask;
  if (!rank || rank == block->rank + 1)
    return block;
  auto &blocks = block->cluster.blocks;
  if (rank > blocks.size()) {
    fault(instruction, lane, "out-of-bounds",
          "there is no block " + std::to_string(rank - 1) + " in a cluster of " + std::to_string(blocks.size()));
    return nullptr;
  }
  Block *owner = blocks[rank - 1].get();
  if (owner->isDone()) {
    fault(instruction, lane, "out-of-bounds",
          "shared memory of block " + std::to_string(rank - 1) + " of the cluster, which has ended");
    return nullptr;
  }
  return owner;
}

static uint32_t withRank(uint32_t address, uint32_t rank) { return (address & rankMask) | (rank + 1) << rankShift; }

/// mapa: operands d, address, rank. Flag 1: generic addresses.
template <class T>
static void mapAddress(Warp &warp, const Instruction &instruction) {
  T *to = warp.destination<T>(instruction.operands[0]);
  const T *from = warp.source<T>(instruction.operands[1]);
  const uint32_t *ranks = warp.source<uint32_t>(instruction.operands[2]);
  forEachLane(warp.active, [&](unsigned lane) {
    if (ranks[lane] >= warp.block->cluster.blocks.size())
      warp.fault(instruction, lane, "out-of-bounds",
                 "there is no block " + std::to_string(ranks[lane]) + " in a cluster of " +
                     std::to_string(warp.block->cluster.blocks.size()));
    uint64_t base = instruction.flags & 1 ? sharedWindow : 0;
    to[lane] = T(base + withRank(uint32_t(uint64_t(from[lane]) - base), ranks[lane]));
  });
}

static bool decodeMap(Decoder &decoder) {
  bool isGeneric = !decoder.take("shared::cluster");
  int type = decoder.takeOneOf({"u32", "u64"});
  Class kind = type ? Class::Double : Class::Word;
  decoder.instruction.run = type ? mapAddress<uint64_t> : mapAddress<uint32_t>;
  decoder.instruction.flags = isGeneric;
  return type >= 0 && decoder.expectNoParts() && decoder.expectOperands(3, 3) && decoder.source(1, kind, 1) &&
         decoder.source(2, Class::Word, 2) && decoder.destination(0, kind, 0);
}

/// getctarank: operands d, address.
template <class T>
static void rankOfAddress(Warp &warp, const Instruction &instruction) {
  uint32_t *to = warp.destination<uint32_t>(instruction.operands[0]);
  const T *from = warp.source<T>(instruction.operands[1]);
  forEachLane(warp.active, [&](unsigned lane) {
    uint32_t rank = uint32_t(from[lane]) >> rankShift;
    to[lane] = rank ? rank - 1 : warp.block->rank;
  });
}

static bool decodeRank(Decoder &decoder) {
  decoder.take("shared::cluster");
  int type = decoder.takeOneOf({"u32", "u64"});
  decoder.instruction.run = type ? rankOfAddress<uint64_t> : rankOfAddress<uint32_t>;
  return type >= 0 && decoder.expectNoParts() && decoder.expectOperands(2, 2) &&
         decoder.source(1, type ? Class::Double : Class::Word, 1) && decoder.destination(0, Class::Word, 0);
}

void mlir::ssa::sim::addClusterOperations(Tables &tables) {
  tables.families["mapa"] = decodeMap;
  tables.families["getctarank"] = decodeRank;
}
