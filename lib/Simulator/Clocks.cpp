//===- Clocks.cpp - What happens before what ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Lanes.h"

using namespace mlir::ssa::sim;

void Warp::updateLeast() {
  for (unsigned w = 0; w < block->clusterWarps; ++w) {
    unsigned first = w * numLanes, last = first + block->lanesOf(w);
    uint32_t least = UINT32_MAX;
    for (unsigned t = first; t < last; ++t)
      least = std::min(least, clocks.known[t]);
    knownLeast[w] = least;
  }
}

/// The lanes see what each of them did before.
void Warp::syncLanes(uint32_t members) {
  if (members == live) {
    if (hasLaneClocks)
      for (auto &lane : laneClocks)
        if (lane) {
          clocks.join(*lane);
          lane.reset();
        }
    bool hadLanes = hasLaneClocks;
    hasLaneClocks = false;
    forEachLane(members, [&](unsigned lane) { clocks.known[memberOf(lane)] = clock; });
    if (hadLanes)
      updateLeast();
    else {
      uint32_t least = clock;
      for (unsigned lane = 0; lane < block->lanesOf(index); ++lane)
        least = std::min(least, clocks.known[memberOf(lane)]);
      knownLeast[number] = least;
    }
    ++clock;
    return;
  }
  Clocks together = clocks;
  forEachLane(members, [&](unsigned lane) {
    if (laneClocks[lane])
      together.join(*laneClocks[lane]);
    together.known[memberOf(lane)] = clock;
  });
  forEachLane(members, [&](unsigned lane) { laneClocks[lane] = std::make_unique<Clocks>(together); });
  hasLaneClocks = true;
  ++clock;
}

/// What the lanes did and know goes along with a signal of theirs.
void Warp::releaseTo(Clocks &collected, uint32_t members) {
  if (collected.known.empty())
    block->resetClocks(collected);
  collected.join(clocks);
  forEachLane(members, [&](unsigned lane) {
    if (laneClocks[lane])
      collected.join(*laneClocks[lane]);
    collected.known[memberOf(lane)] = clock;
  });
  ++clock;
}

/// Once all lanes are together: what each of them learned by itself, the warp knows.
void Warp::settleLanes() {
  for (size_t t = 0; t < clocks.known.size(); ++t) {
    uint32_t known = UINT32_MAX, fenced = UINT32_MAX;
    forEachLane(live, [&](unsigned lane) {
      const Clocks &own = laneClocks[lane] ? *laneClocks[lane] : clocks;
      known = std::min(known, own.known[t]);
      fenced = std::min(fenced, own.fenced[t]);
    });
    clocks.known[t] = std::max(clocks.known[t], known);
    clocks.fenced[t] = std::max(clocks.fenced[t], fenced);
  }
  for (auto &lane : laneClocks) // instructions on tensor memory are those of the whole warp
    if (lane)
      clocks.joinTensor(lane->tensor);
  hasLaneClocks = false;
  for (auto &lane : laneClocks) {
    if (!lane)
      continue;
    bool isMore = false;
    for (size_t t = 0; t < clocks.known.size() && !isMore; ++t)
      isMore = lane->known[t] > clocks.known[t] || lane->fenced[t] > clocks.fenced[t];
    if (!isMore)
      lane.reset();
    hasLaneClocks |= isMore;
  }
  updateLeast();
}

void Warp::acquire(const Clocks &from, uint32_t members) {
  if (from.known.empty())
    return;
  if (members == live) {
    clocks.join(from);
    updateLeast();
    return;
  }
  forEachLane(members, [&](unsigned lane) {
    if (!laneClocks[lane])
      laneClocks[lane] = std::make_unique<Clocks>(clocks);
    laneClocks[lane]->join(from);
  });
  hasLaneClocks = true;
}

/// A lane knows what a unit of this warp did up to a clock.
void Warp::learnOf(unsigned lane, Unit unit, uint32_t when) {
  unsigned who = block->numMembers() + pipeOf(unit);
  if (active != live && !laneClocks[lane]) {
    laneClocks[lane] = std::make_unique<Clocks>(clocks);
    hasLaneClocks = true;
  }
  uint32_t &known = active == live ? clocks.known[who] : laneClocks[lane]->known[who];
  known = std::max(known, when);
}

/// All that the lanes know may be touched by the asynchronous proxy from now on.
void Warp::fenceAsync(uint32_t members) {
  for (size_t t = 0; t < clocks.known.size(); ++t)
    clocks.fenced[t] = std::max(clocks.fenced[t], clocks.known[t]);
  forEachLane(members, [&](unsigned lane) {
    if (laneClocks[lane])
      for (size_t t = 0; t < clocks.known.size(); ++t)
        clocks.fenced[t] = std::max(clocks.fenced[t], laneClocks[lane]->known[t]);
    clocks.fenced[memberOf(lane)] = clock;
  });
  ++clock;
}
