//===- Flags.cpp - Order by flags and fences ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A release leaves at its address what happened before it, an acquire that reads there takes it along. A fence makes a
// release of the strong writes after it, and an acquire of the strong reads before it. What threads of other clusters
// did is kept as their clocks, by cluster. An update of a flag keeps what was released there before.
//
//===----------------------------------------------------------------------===//

#include "Lanes.h"

using namespace mlir::ssa::sim;

void mlir::ssa::sim::joinClusters(KnownClustersPtr &to, const KnownClustersPtr &from) {
  if (!from || to == from)
    return;
  if (!to) {
    to = from;
    return;
  }
  auto joined = std::make_shared<KnownClusters>(*to);
  for (const auto &[run, clocks] : *from) {
    auto &known = (*joined)[run];
    if (known == clocks)
      continue;
    if (!known) {
      known = clocks;
      continue;
    }
    auto both = std::make_shared<std::vector<uint32_t>>(*known);
    for (size_t i = 0; i < both->size(); ++i)
      (*both)[i] = std::max((*both)[i], (*clocks)[i]);
    known = both;
  }
  to = joined;
}

/// All that happened before what a lane does next, its own accesses too.
static Released releaseOf(Warp &warp, unsigned lane, bool isWide) {
  auto own = std::make_shared<std::vector<uint32_t>>(warp.clocks.known);
  KnownClustersPtr others = warp.clocks.others;
  if (warp.laneClocks[lane]) {
    const Clocks &learned = *warp.laneClocks[lane];
    for (size_t i = 0; i < own->size(); ++i)
      (*own)[i] = std::max((*own)[i], learned.known[i]);
    joinClusters(others, learned.others);
  }
  (*own)[warp.memberOf(lane)] = warp.clock;
  auto all = others ? std::make_shared<KnownClusters>(*others) : std::make_shared<KnownClusters>();
  (*all)[warp.block->cluster.firstRun] = own;
  Released result;
  (isWide ? result.wide : result.narrow) = all;
  return result;
}

/// A lane takes along what others released.
static void takeAlong(Warp &warp, unsigned lane, const Released &released, bool isWide) {
  uint32_t self = warp.block->cluster.firstRun;
  auto take = [&](const KnownClustersPtr &clusters, bool takesAll) {
    if (!clusters)
      return;
    if (!warp.laneClocks[lane])
      warp.laneClocks[lane] = std::make_unique<Clocks>(warp.clocks);
    warp.hasLaneClocks = true;
    Clocks &clocks = *warp.laneClocks[lane];
    if (auto own = clusters->find(self); own != clusters->end())
      for (size_t i = 0; i < clocks.known.size(); ++i)
        clocks.known[i] = std::max(clocks.known[i], (*own->second)[i]);
    if (takesAll)
      joinClusters(clocks.others, clusters);
  };
  take(released.wide, isWide);
  take(released.narrow, false);
}

bool Warp::knowsCluster(unsigned lane, uint32_t firstRun, unsigned member, uint32_t when) const {
  auto has = [&](const Clocks &clocks) {
    if (!clocks.others)
      return false;
    auto found = clocks.others->find(firstRun);
    return found != clocks.others->end() && (*found->second)[member] >= when;
  };
  return has(clocks) || (hasLaneClocks && laneClocks[lane] && has(*laneClocks[lane]));
}

static Warp::LaneFence &fenceOf(Warp &warp, unsigned lane) {
  if (!warp.laneFences)
    warp.laneFences = std::make_unique<std::array<Warp::LaneFence, numLanes>>();
  return (*warp.laneFences)[lane];
}

/// What was released at an address; made if asked.
static Released *releasedAt(Block &owner, Space space, uint64_t address, bool isMade) {
  if (space == Space::Shared) {
    auto found = owner.released.find(uint32_t(address));
    return found != owner.released.end() ? &found->second : isMade ? &owner.released[uint32_t(address)] : nullptr;
  }
  auto &table = owner.launch.released;
  auto found = table.find(address);
  return found != table.end() ? &found->second : isMade ? &table[address] : nullptr;
}

/// A number for what a warp has in its registers.
static uint64_t stateOf(const Warp &warp, uint64_t value) {
  uint64_t state = value ^ warp.lanes;
  for (uint32_t at = 0; at + 8 <= warp.kernel->registerBytes; at += 8) {
    uint64_t word;
    std::memcpy(&word, warp.registers + at, sizeof(word));
    state = (state ^ word) * 0x9e3779b97f4a7c15;
    state ^= state >> 29;
  }
  return state;
}

void Warp::orderRead(const Instruction &instruction, unsigned lane, Block &owner, Space space, uint64_t address,
                     uint64_t value) {
  Order order = Order(instruction.order);
  // Asking for the same again, with the same in all registers: others have to go on first.
  if (space == Space::Global) {
    uint64_t state = stateOf(*this, value);
    if (spinAt == &instruction && spinValue == state)
      mustYield = isIdle = isSpinning = true;
    spinAt = &instruction;
    spinValue = state;
  }
  if (!block->checks)
    return;
  Released *released = releasedAt(owner, space, address, false);
  if (!released)
    return;
  if (order == Order::Acquire || order == Order::Both)
    takeAlong(*this, lane, *released, instruction.isWide);
  else
    fenceOf(*this, lane).observed.join(*released);
}

void Warp::orderWrite(const Instruction &instruction, unsigned lane, Block &owner, Space space, uint64_t address,
                      bool isUpdate) {
  Order order = Order(instruction.order);
  if (space == Space::Global)
    block->launch.activity.fetch_add(1, std::memory_order_relaxed);
  ++block->events;
  if (!block->checks)
    return;
  bool isRelease = order == Order::Release || order == Order::Both;
  bool isFenced = laneFences && (*laneFences)[lane].isFenced;
  Released *released = releasedAt(owner, space, address, isRelease || isFenced);
  if (!released)
    return;
  if (!isUpdate)
    *released = Released();
  if (isRelease) {
    released->join(releaseOf(*this, lane, instruction.isWide));
    ++clock;
  } else if (isFenced)
    released->join((*laneFences)[lane].covers);
}

void Warp::fenceMemory(bool isWide) {
  if (!block->checks)
    return;
  forEachLane(active, [&](unsigned lane) {
    LaneFence &fence = fenceOf(*this, lane);
    takeAlong(*this, lane, fence.observed, isWide);
    fence.observed = Released();
    fence.covers.join(releaseOf(*this, lane, isWide));
    fence.isFenced = true;
  });
  ++clock;
}
