//===- Launch.cpp - Launches ----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Machine.h"
#include <chrono>
#include <ctime>
#include <thread>

using namespace mlir::ssa::sim;

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

static std::string describeSize(const std::array<uint32_t, 3> &size) {
  return std::to_string(size[0]) + " x " + std::to_string(size[1]) + " x " + std::to_string(size[2]);
}

/// The size of clusters: what the kernel wants, or what the launch says.
static std::array<uint32_t, 3> clusterOf(const Kernel &kernel, const LaunchConfig &config) {
  return kernel.requiredCluster[0] ? kernel.requiredCluster : config.cluster;
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
  std::array<uint32_t, 3> cluster = clusterOf(kernel, config);
  if (kernel.requiredCluster[0] && config.cluster != kernel.requiredCluster &&
      config.cluster != std::array<uint32_t, 3>{1, 1, 1})
    return "the kernel wants clusters of " + describeSize(kernel.requiredCluster) + " blocks, but got " +
           describeSize(config.cluster);
  uint64_t blocks = uint64_t(cluster[0]) * cluster[1] * cluster[2];
  if (!blocks || blocks > 16)
    return "a cluster must have 1 to 16 blocks, but has " + std::to_string(blocks);
  for (unsigned axis = 0; axis < 3; ++axis)
    if (config.grid[axis] % cluster[axis])
      return "a grid of " + describeSize(config.grid) + " blocks cannot be divided into clusters of " +
             describeSize(cluster);
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

namespace {
/// What one core does: it runs clusters to their ends. Where one waits for another, it goes on with others, as all that
/// fit on a GPU at once run at once.
class Worker {
public:
  Worker(Launch &launch, bool tellsProgress) : launch(launch), tellsProgress(tellsProgress) {}
  void run();

private:
  static constexpr unsigned mostResident = 148;

  bool startNext();
  void finish(size_t place);
  bool waitForOthers();

  Launch &launch;
  bool tellsProgress;
  std::vector<std::unique_ptr<Cluster>> active, unused;
  std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
};
} // namespace

bool Worker::startNext() {
  if (launch.numResident.fetch_add(1) >= mostResident && !active.empty()) {
    launch.numResident.fetch_sub(1);
    return false;
  }
  std::unique_ptr<Cluster> cluster;
  if (unused.empty())
    cluster = std::make_unique<Cluster>(launch);
  else {
    cluster = std::move(unused.back());
    unused.pop_back();
  }
  uint64_t index = launch.nextCluster.fetch_add(1);
  bool isLeft = index * cluster->blocks.size() < launch.numBlocks();
  if (isLeft)
    cluster->start(index);
  else
    launch.numResident.fetch_sub(1);
  (isLeft ? active : unused).push_back(std::move(cluster));
  return isLeft;
}

void Worker::finish(size_t place) {
  uint64_t perCluster = active[place]->blocks.size();
  uint64_t done = launch.doneBlocks.fetch_add(perCluster) + perCluster;
  launch.numResident.fetch_sub(1);
  launch.activity.fetch_add(1);
  unused.push_back(std::move(active[place]));
  active.erase(active.begin() + ptrdiff_t(place));
  auto now = std::chrono::steady_clock::now();
  if (tellsProgress && launch.settings.progress && now - last > std::chrono::milliseconds(200)) {
    launch.settings.progress(launch.kernel.name, done, launch.numBlocks());
    last = now;
  }
}

/// All that this core runs waits: until somebody else has done something. False if all wait.
bool Worker::waitForOthers() {
  uint64_t seen = launch.activity.load();
  launch.numWaiting.fetch_add(1);
  for (unsigned quiet = 0; quiet < 1000 && launch.activity.load() == seen && !launch.isStopped;) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    quiet = launch.numWaiting.load() == launch.numWorkers.load() ? quiet + 1 : 0;
  }
  launch.numWaiting.fetch_sub(1);
  return launch.activity.load() != seen;
}

void Worker::run() {
  uint64_t seen = launch.activity.load();
  while (!launch.isStopped.load(std::memory_order_relaxed)) {
    if (active.empty() && !startNext())
      break;
    for (size_t i = 0; i < active.size();)
      if (active[i]->resume() == Cluster::Done)
        finish(i);
      else
        ++i;
    uint64_t now = launch.activity.load();
    bool isQuiet = now == seen;
    seen = now;
    if (active.empty() || !isQuiet || startNext() || waitForOthers())
      continue;
    if (!launch.isStopped)
      active[0]->reportDeadlock();
    launch.isStopped = true;
  }
  launch.numWorkers.fetch_sub(1);
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
  launch.numWorkers = unsigned(numThreads);
  for (uint64_t i = 1; i < numThreads; ++i)
    threads.emplace_back([&] { Worker(launch, false).run(); });
  Worker(launch, true).run();
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
