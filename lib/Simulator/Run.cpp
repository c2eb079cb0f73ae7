//===- Run.cpp - Warps, blocks and launches -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Machine.h"
#include <chrono>
#include <ctime>
#include <thread>

using namespace mlir::ssa::sim;

std::string mlir::ssa::sim::hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

void Warp::start(Block &owner, unsigned number, uint32_t liveLanes) {
  block = &owner;
  kernel = &owner.kernel;
  index = number;
  constantsEnd = kernel->constants.data() + kernel->constants.size();
  live = lanes = liveLanes;
  pc = 0;
  limit = UINT32_MAX;
  others.clear();
  status = live ? Running : Done;
  waitFor = Split::Ready;
  clock = 1;
  owner.resetClocks(clocks);
  knownLeast.assign(owner.numWarps, 0);
  for (auto &lane : laneClocks)
    lane.reset();
  hasLaneClocks = false;
  for (auto &list : copies)
    list.clear();
  copyGroup.fill(0);
  wgmmas.clear();
  wgmmaGroup = 0;
  numWgmmas = 0;
  executed = fenceAt = 0;
  numUndefined = 0;
  undefined.assign(kernel->registerBytes / 32, 0);
  registerLimit = 0;
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
  mustYield = isIdle = false;
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
    } else if (split.state == Split::Ready)
      isReady = true;
  if (isReady)
    select();
  return isReady;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

Block::Block(Launch &launch) : launch(launch), kernel(launch.kernel), checks(launch.settings.checks) {
  const auto &block = launch.config.block;
  numThreads = block[0] * block[1] * block[2];
  numWarps = (numThreads + numLanes - 1) / numLanes;
  shared.resize(kernel.sharedBytes + launch.config.dynamicSharedBytes);
  size_t words = shared.size() / 4 + 4;
  cells.resize(words);
  if (checks) {
    readClocks.resize(words * numWarps);
    readLanes.resize(words * numWarps);
  }
  if (kernel.usesTensorMemory) {
    numPipes = numWarps;
    numAgents = 3 * numWarps;
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
  case Special::ClusterSize:
    return 1;
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

void Block::reset(uint64_t blockIndex) {
  index = blockIndex;
  run = launch.memory.nextRun.fetch_add(1) & ((1u << 26) - 1);
  const auto &grid = launch.config.grid;
  position = {uint32_t(index % grid[0]), uint32_t(index / grid[0] % grid[1]), uint32_t(index / grid[0] / grid[1])};
  std::fill(shared.begin(), shared.end(), 0xa5);
  std::fill(cells.begin(), cells.end(), SharedCell());
  std::fill(readClocks.begin(), readClocks.end(), 0);
  std::fill(registerFile.begin(), registerFile.end(), 0xa5);
  for (NamedBarrier &barrier : barriers)
    barrier = NamedBarrier();
  mbarriers.clear();
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

/// Warps take turns in another way in every block: any order is allowed, and each shows other faults.
void Block::execute(uint64_t blockIndex) {
  reset(blockIndex);
  constexpr uint64_t budgets[] = {1 << 14, 1 << 14, 97, 13};
  uint64_t budget = budgets[index / 2 % 4];
  bool isReversed = index % 2;
  uint64_t limit = launch.settings.maxInstructionsPerBlock, seen = 0;
  unsigned idleRounds = 0;
  while (!isStopped && !launch.isStopped.load(std::memory_order_relaxed)) {
    bool isRunning = false, isIdle = true, isDone = true;
    uint64_t executed = 0;
    for (unsigned i = 0; i < numWarps; ++i) {
      Warp &warp = warps[isReversed ? numWarps - 1 - i : i];
      isDone &= warp.status == Warp::Done;
      if (warp.status != Warp::Done && warp.poll()) {
        isRunning = true;
        warp.run(budget);
        isIdle &= warp.isIdle;
      }
      executed += warp.executed;
    }
    if (isDone)
      return checkTensorAtEnd();
    if (limit && executed > limit)
      return warps[0].fault(kernel.code[0], 0, "limit",
                            "the block executed " + std::to_string(executed) + " instructions; " +
                                std::to_string(limit) + " are allowed");
    // Warps that ask again and again, with nothing happening, wait as well.
    idleRounds = isIdle && events == seen ? idleRounds + 1 : 0;
    seen = events;
    if (isRunning && idleRounds < 100)
      continue;
    if (!landSomething())
      return reportDeadlock();
    idleRounds = 0;
  }
}

void Block::reportDeadlock() {
  for (Warp &warp : warps)
    if (warp.status != Warp::Done) {
      uint32_t at = warp.status == Warp::AtBarrier ? warp.pc - 1 : warp.others.empty() ? warp.pc : warp.others[0].pc;
      unsigned lane = warp.others.empty() ? 0 : __builtin_ctz(warp.others[0].lanes);
      warp.fault(kernel.code[at], lane, "deadlock", "nothing can go on: " + describeWaits());
      return;
    }
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

std::string Fault::format() const {
  std::string text = kernel + ": line " + std::to_string(line) + " '" + instruction + "': " + kind + ": " + message;
  if (kind == "launch")
    return kernel + ": " + message;
  text += " (block " + std::to_string(block) + ", thread " + std::to_string(thread);
  if (count > 1)
    text += "; seen " + std::to_string(count) + " times";
  return text + ")";
}

void Launch::add(Fault fault) {
  std::lock_guard<std::mutex> lock(mutex);
  constexpr uint64_t most = 10000;
  if (++numFaults >= most)
    isStopped = true;
  auto [found, isNew] = faults.try_emplace({fault.line, fault.kind}, fault);
  if (isNew) {
    if (faults.size() >= settings.maxFaults)
      isStopped = true;
    return;
  }
  uint64_t count = found->second.count + 1;
  if (fault.block < found->second.block) // the same report however blocks are spread over cores
    found->second = std::move(fault);
  found->second.count = count;
}

std::vector<Fault> Launch::takeFaults() {
  std::vector<Fault> result;
  for (auto &[key, fault] : faults)
    result.push_back(std::move(fault));
  return result;
}

static std::string checkConfig(const Kernel &kernel, const LaunchConfig &config) {
  uint64_t threads = uint64_t(config.block[0]) * config.block[1] * config.block[2];
  if (!threads || threads > 1024)
    return "a block must have 1 to 1024 threads, but has " + std::to_string(threads);
  uint64_t required = uint64_t(kernel.requiredBlock[0]) * kernel.requiredBlock[1] * kernel.requiredBlock[2];
  if (required && config.block != kernel.requiredBlock)
    return "the kernel wants blocks of " + std::to_string(required) + " threads, but got " + std::to_string(threads);
  uint64_t most = uint64_t(kernel.maxBlock[0]) * kernel.maxBlock[1] * kernel.maxBlock[2];
  if (most && threads > most)
    return "the kernel takes blocks of at most " + std::to_string(most) + " threads, but got " +
           std::to_string(threads);
  if (config.parameters.size() != kernel.parameterBytes)
    return "the kernel takes " + std::to_string(kernel.parameterBytes) + " bytes of parameters, but got " +
           std::to_string(config.parameters.size());
  if (config.cluster[0] * config.cluster[1] * config.cluster[2] != 1)
    return "clusters are not supported by the simulator";
  if (kernel.sharedBytes + int64_t(config.dynamicSharedBytes) > 232448)
    return "a block has at most 232448 bytes of shared memory, but the launch needs " +
           std::to_string(kernel.sharedBytes + config.dynamicSharedBytes);
  return "";
}

/// Where races are looked for, each allocation needs to know who touched what.
static void prepareMemory(Launch &launch) {
  uint64_t total = launch.numBlocks();
  launch.firstRun = launch.memory.nextRun.load() & ((1u << 26) - 1);
  bool wraps = launch.firstRun + total >= (1u << 26) - 1;
  if (wraps) {
    launch.memory.nextRun = 1;
    launch.firstRun = 1;
  }
  if (!launch.settings.checks)
    return;
  for (auto &[address, allocation] : launch.memory.allocations) {
    if (allocation->writers && !wraps)
      continue;
    size_t words = allocation->bytes / 4 + 1;
    allocation->writers = std::make_unique<std::atomic<uint64_t>[]>(words);
    allocation->readers = std::make_unique<std::atomic<uint64_t>[]>(words);
    for (size_t i = 0; i < words; ++i) {
      allocation->writers[i].store(0, std::memory_order_relaxed);
      allocation->readers[i].store(0, std::memory_order_relaxed);
    }
  }
}

static void work(Launch &launch, bool tellsProgress) {
  Block block(launch);
  auto last = std::chrono::steady_clock::now();
  while (!launch.isStopped.load(std::memory_order_relaxed)) {
    uint64_t index = launch.nextBlock.fetch_add(1);
    if (index >= launch.numBlocks())
      return;
    block.execute(index);
    uint64_t done = launch.doneBlocks.fetch_add(1) + 1;
    auto now = std::chrono::steady_clock::now();
    if (tellsProgress && launch.settings.progress && now - last > std::chrono::milliseconds(200)) {
      launch.settings.progress(launch.kernel.name, done, launch.numBlocks());
      last = now;
    }
  }
}

std::vector<Fault> mlir::ssa::sim::launch(const Module &module, Memory &memory, const LaunchConfig &config,
                                          const Settings &settings, Statistics *statistics) {
  auto found = module.contents().kernels.find(config.kernel);
  Fault refusal;
  refusal.kind = "launch";
  refusal.kernel = config.kernel;
  if (found == module.contents().kernels.end()) {
    refusal.message = "there is no kernel of that name";
    return {refusal};
  }
  const Kernel &kernel = *found->second;
  refusal.message = checkConfig(kernel, config);
  if (!refusal.message.empty())
    return {refusal};
  Launch launch(module, kernel, memory, config, settings);
  if (!launch.numBlocks())
    return {};
  prepareMemory(launch);
  std::clock_t start = std::clock();
  uint64_t numThreads = settings.numThreads ? settings.numThreads : std::max(1u, std::thread::hardware_concurrency());
  numThreads = std::min(numThreads, launch.numBlocks());
  std::vector<std::thread> threads;
  for (uint64_t i = 1; i < numThreads; ++i)
    threads.emplace_back([&] { work(launch, false); });
  work(launch, true);
  for (std::thread &thread : threads)
    thread.join();
  if (statistics) {
    statistics->threadInstructions += launch.threadInstructions;
    statistics->warpInstructions += launch.warpInstructions;
    statistics->blocks += launch.doneBlocks;
    statistics->seconds += double(std::clock() - start) / CLOCKS_PER_SEC;
  }
  return launch.takeFaults();
}
