//===- Run.cpp - Warps and blocks -----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Machine.h"

using namespace mlir::ssa::sim;

std::string mlir::ssa::sim::hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

void Warp::start(Block &owner, unsigned place, uint32_t liveLanes) {
  block = &owner;
  kernel = &owner.kernel;
  index = place;
  number = owner.rank * owner.numWarps + place;
  firstMember = number * numLanes;
  constantsEnd = kernel->constants.data() + kernel->constants.size();
  live = lanes = liveLanes;
  pc = 0;
  limit = UINT32_MAX;
  others.clear();
  status = live ? Running : Done;
  waitFor = Split::Ready;
  clock = 1;
  owner.resetClocks(clocks);
  knownLeast.assign(owner.clusterWarps, 0);
  clusterArrivals = 0;
  laneFences.reset();
  spinAt = nullptr;
  for (auto &lane : laneClocks)
    lane.reset();
  hasLaneClocks = false;
  for (auto &list : copies)
    list.clear();
  copyGroup.fill(0);
  bulkStores.clear();
  bulkGroups.fill(0);
  unitClocks.fill(1);
  wgmmas.clear();
  wgmmaGroup = 0;
  numWgmmas = 0;
  executed = fenceAt = 0;
  isFenced = false;
  numUndefined = 0;
  undefined.assign(kernel->registerBytes / 32, 0);
  registerLimit = kernel->registersAtStart(owner.numThreads);
  registerLimits.clear();
  tensorKnown.assign(owner.numAgents, 0);
  tensorClocks.fill(1);
  tensorLoads.clear();
  tensorStores.clear();
  if (kernel->hasAsyncResults()) {
    touchedAt.assign(kernel->registerBytes / 64, 0);
    inFlight.assign(kernel->registerBytes / 64, 0);
  }
}

/// Lets the lowest split that can go on run; the warp is blocked if there is none.
void Warp::select() {
  size_t best = others.size();
  for (size_t i = 0; i < others.size(); ++i)
    if (others[i].state == Split::Ready && (best == others.size() || others[i].pc < others[best].pc))
      best = i;
  if (best == others.size()) {
    lanes = 0;
    status = others.empty() ? Done : Blocked;
    return;
  }
  pc = others[best].pc;
  lanes = others[best].lanes;
  others.erase(others.begin() + best);
  status = Running;
  limit = UINT32_MAX;
  for (const Split &split : others)
    if (split.pc > pc)
      limit = std::min(limit, split.pc);
}

/// Merges splits that stand at the same place, and goes on with the lowest.
void Warp::reschedule() {
  for (size_t i = 0; lanes && i < others.size();)
    if (others[i].pc == pc) {
      lanes |= others[i].lanes;
      others.erase(others.begin() + i);
    } else
      ++i;
  if (lanes == live && hasLaneClocks)
    settleLanes();
  if (lanes)
    others.push_back({pc, lanes, Split::Ready});
  select();
}

void Warp::branch(uint32_t taken, uint32_t target) {
  uint32_t stay = lanes & ~taken;
  if (!stay) {
    next = target;
    return;
  }
  if (!taken)
    return;
  others.push_back({target, taken, Split::Ready});
  lanes = stay;
}

void Warp::exitLanes(uint32_t leaving) {
  live &= ~leaving;
  lanes &= ~leaving;
  for (Split &split : others) // they may have waited for these
    if (split.state == Split::Collective)
      split.state = Split::Ready;
  if (!live) {
    status = Done;
    block->checkBarriersAfterExit();
  }
  block->cluster.checkBarrier();
}

/// Whether all lanes that take part are here; the split waits for them otherwise.
bool Warp::canRunCollective(const Instruction &instruction) {
  uint32_t members = live;
  if (instruction.maskOperand >= 0) {
    members = source<uint32_t>(instruction.operands[instruction.maskOperand])[firstLane()];
    if (members & ~live) {
      fault(instruction, firstLane(), "collective",
            "the mask " + hex(members) + " names lanes that have exited, or do not exist; live are " + hex(live));
      members &= live;
    }
    if (active & ~members)
      fault(instruction, __builtin_ctz(active & ~members), "collective",
            "lanes " + hex(active & ~members) + " execute this, but the mask " + hex(members) + " does not name them");
  }
  if (!(members & ~active))
    return true;
  if (!(members & ~lanes)) { // they stand here, but their guard keeps them off
    fault(instruction, firstLane(), "collective",
          "lanes " + hex(members & ~active) + " have to execute this too, but their guard is false");
    return true;
  }
  return false;
}

void Warp::run(uint64_t budget) {
  const Instruction *code = kernel->code.data();
  bool tracksRegisters = kernel->hasAsyncResults() && block->checks;
  uint64_t threadInstructions = 0, warpInstructions = 0;
  mustYield = isIdle = isSpinning = false;
  while (status == Running && budget-- && !mustYield) {
    const Instruction &instruction = code[pc];
    active = lanes;
    if (instruction.guard != noRegister)
      active &= instruction.isGuardNegated ? ~predicate(instruction.guard) : predicate(instruction.guard);
    next = pc + 1;
    if (active || instruction.isControl) {
      if (instruction.isCollective && active && !canRunCollective(instruction)) {
        others.push_back({pc, lanes, Split::Collective});
        select();
        continue;
      }
      ++executed;
      if (tracksRegisters)
        checkRegisters(instruction);
      if (numUndefined)
        followUndefined(instruction);
      instruction.run(*this, instruction);
      ++warpInstructions;
      threadInstructions += __builtin_popcount(active);
      if (waitFor != Split::Ready) {
        others.push_back({pc, lanes, waitFor, waitBarrier, waitPhase});
        waitFor = Split::Ready;
        select();
        continue;
      }
    }
    bool isInOrder = next == pc + 1;
    pc = next;
    if (status == Done)
      break;
    if (!lanes) {
      select();
      continue;
    }
    if (!others.empty() && (!isInOrder || pc >= limit || instruction.isControl))
      reschedule();
  }
  block->launch.threadInstructions.fetch_add(threadInstructions, std::memory_order_relaxed);
  block->launch.warpInstructions.fetch_add(warpInstructions, std::memory_order_relaxed);
}

/// Looks whether something that a split waits for has come; true if the warp can run.
bool Warp::poll() {
  if (status == Running)
    return true;
  if (status != Blocked)
    return false;
  bool isReady = false;
  for (Split &split : others)
    if (split.state == Split::Mbarrier) {
      auto found = block->mbarriers.find(split.barrier);
      if (found == block->mbarriers.end() || found->second.phase > split.phase) {
        if (found != block->mbarriers.end() && found->second.phase > split.phase + 1)
          fault(kernel->code[split.pc], unsigned(__builtin_ctz(split.lanes)), "mbarrier",
                "the mbarrier at " + block->nameShared(split.barrier) + " completed " +
                    std::to_string(found->second.phase - split.phase) + " phases while this waited for one");
        split.state = Split::Ready;
        isReady = true;
      }
    } else if (split.state == Split::Cluster && block->cluster.phase != uint32_t(split.phase)) {
      split.state = Split::Ready;
      isReady = true;
    } else if (split.state == Split::Registers && block->hasRegistersFor(*this, uint32_t(split.phase))) {
      split.state = Split::Ready;
      isReady = true;
    } else if (split.state == Split::Ready)
      isReady = true;
  if (isReady)
    select();
  return isReady;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

Block::Block(Launch &launch, Cluster &cluster, unsigned rank, unsigned clusterSize)
    : launch(launch), kernel(launch.kernel), cluster(cluster), rank(rank), checks(launch.settings.checks) {
  const auto &block = launch.config.block;
  numThreads = block[0] * block[1] * block[2];
  numWarps = (numThreads + numLanes - 1) / numLanes;
  clusterWarps = clusterSize * numWarps;
  shared.resize(kernel.sharedBytes + launch.config.dynamicSharedBytes);
  size_t words = shared.size() / 4 + 4;
  cells.resize(words);
  if (checks) {
    readClocks.resize(words * clusterWarps);
    readLanes.resize(words * clusterWarps);
  }
  if (kernel.usesTensorMemory) {
    numAgents = 3 * clusterWarps;
  }
  if (kernel.usesTensorMemory || kernel.usesBulkStores) {
    numPipes = numUnits * clusterWarps;
    pipeReads.resize(checks ? words * numPipes : 0);
  }
  local.resize(size_t(kernel.localBytes) * numThreads);
  registerFile.resize(size_t(kernel.registerBytes) * numWarps + 256);
  warps.resize(numWarps);
}

uint32_t Block::specialValue(Special kind, unsigned thread) const {
  const auto &size = launch.config.block;
  unsigned lane = thread % numLanes;
  switch (kind) {
  case Special::TidX:
    return thread % size[0];
  case Special::TidY:
    return thread / size[0] % size[1];
  case Special::TidZ:
    return thread / size[0] / size[1];
  case Special::NtidX:
  case Special::NtidY:
  case Special::NtidZ:
    return size[int(kind) - int(Special::NtidX)];
  case Special::CtaidX:
  case Special::CtaidY:
  case Special::CtaidZ:
    return position[int(kind) - int(Special::CtaidX)];
  case Special::NctaidX:
  case Special::NctaidY:
  case Special::NctaidZ:
    return launch.config.grid[int(kind) - int(Special::NctaidX)];
  case Special::Lane:
    return lane;
  case Special::WarpId:
    return thread / numLanes;
  case Special::NumWarps:
    return numWarps;
  case Special::SmId:
    return index % 132;
  case Special::NumSms:
    return 132;
  case Special::MaskEq:
    return 1u << lane;
  case Special::MaskLt:
    return (1u << lane) - 1;
  case Special::MaskLe:
    return (2u << lane) - 1;
  case Special::MaskGt:
    return ~((2u << lane) - 1);
  case Special::MaskGe:
    return ~((1u << lane) - 1);
  case Special::DynamicSharedBytes:
    return launch.config.dynamicSharedBytes;
  case Special::TotalSharedBytes:
    return shared.size();
  case Special::ClusterRank:
    return rank;
  case Special::ClusterSize:
    return cluster.blocks.size();
  case Special::ClusterCtaidX:
  case Special::ClusterCtaidY:
  case Special::ClusterCtaidZ: {
    unsigned axis = unsigned(kind) - unsigned(Special::ClusterCtaidX);
    return position[axis] % cluster.size[axis];
  }
  case Special::ClusterNctaidX:
  case Special::ClusterNctaidY:
  case Special::ClusterNctaidZ:
    return cluster.size[unsigned(kind) - unsigned(Special::ClusterNctaidX)];
  case Special::ClusterIdX:
  case Special::ClusterIdY:
  case Special::ClusterIdZ:
    return cluster.position[unsigned(kind) - unsigned(Special::ClusterIdX)];
  case Special::NumClustersX:
  case Special::NumClustersY:
  case Special::NumClustersZ: {
    unsigned axis = unsigned(kind) - unsigned(Special::NumClustersX);
    return launch.config.grid[axis] / cluster.size[axis];
  }
  default: // time stands still
    return 0;
  }
}

void Block::initializeRegisters(Warp &warp) {
  warp.registers = registerFile.data() + size_t(kernel.registerBytes) * warp.index;
  for (const Kernel::SpecialRegister &special : kernel.specials)
    for (unsigned lane = 0; lane < numLanes; ++lane) {
      uint32_t value = specialValue(special.kind, warp.index * numLanes + lane);
      if (special.isWide)
        warp.destination<uint64_t>(special.offset)[lane] = value;
      else
        warp.destination<uint32_t>(special.offset)[lane] = value;
    }
}

bool Block::isDone() const {
  return std::all_of(warps.begin(), warps.end(), [](const Warp &warp) { return warp.status == Warp::Done; });
}

void Block::reset(const std::array<uint32_t, 3> &place, uint32_t blockRun) {
  position = place;
  run = blockRun;
  const auto &grid = launch.config.grid;
  index = position[0] + uint64_t(grid[0]) * (position[1] + uint64_t(grid[1]) * position[2]);
  std::fill(shared.begin(), shared.end(), 0xa5);
  std::fill(cells.begin(), cells.end(), SharedCell());
  std::fill(readClocks.begin(), readClocks.end(), 0);
  std::fill(registerFile.begin(), registerFile.end(), 0xa5);
  for (NamedBarrier &barrier : barriers)
    barrier = NamedBarrier();
  mbarriers.clear();
  released.clear();
  arrivals.clear();
  bulkCopies.clear();
  copyNumber = 0;
  tensorWork.clear();
  std::fill(pipeReads.begin(), pipeReads.end(), 0);
  if (kernel.usesTensorMemory)
    tensor.reset(numAgents, checks);
  wgmmaLog.assign((numWarps + 3) / 4, {});
  isStopped = false;
  for (unsigned i = 0; i < numWarps; ++i) {
    unsigned left = numThreads - i * numLanes;
    warps[i].start(*this, i, left >= numLanes ? ~0u : (1u << left) - 1);
    initializeRegisters(warps[i]);
  }
}
