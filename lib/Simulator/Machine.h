//===- Machine.h - What executes a kernel -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Order between threads is kept as vector clocks. Each warp has a clock, which ticks when it synchronizes; an access
// carries thread and clock. A warp knows, for every thread, up to which clock that thread's accesses happened before
// its own (`known`), and which of these may be touched by the asynchronous proxy as well (`fenced`). An access of
// another thread that is not known is a race, however the warps happened to be scheduled.
//
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_SIMULATOR_MACHINE_H
#define SSA_LIB_SIMULATOR_MACHINE_H

#include "Program.h"
#include "TensorMemory.h"
#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>

namespace mlir::ssa::sim {

class Block;
class Cluster;
class Warp;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

struct Allocation {
  uint64_t address = 0, bytes = 0;
  std::string name;
  std::unique_ptr<uint8_t[]> data;
  /// One byte for each byte: 1 where something was written.
  std::unique_ptr<uint8_t[]> defined;
  /// For each word who wrote it last and who read it, see GlobalStamp.
  std::unique_ptr<std::atomic<uint64_t>[]> writers, readers;
};

struct Memory::Contents {
  /// By address; they do not touch each other.
  std::map<uint64_t, std::unique_ptr<Allocation>> allocations;
  uint64_t next = uint64_t(0x10) << 32;
  unsigned counter = 0;
  /// Numbers of blocks that ran, over all launches.
  std::atomic<uint32_t> nextRun{1};

  Allocation *find(uint64_t address) const {
    auto above = allocations.upper_bound(address);
    if (above == allocations.begin())
      return nullptr;
    Allocation *found = std::prev(above)->second.get();
    return address - found->address < found->bytes ? found : nullptr;
  }
};

/// Who accessed a word of global memory, packed so that it can be replaced in one step.
struct GlobalStamp {
  uint32_t run = 0, thread = 0, clock = 0, bytes = 0;
  bool isAtomic = false, isShared = false;          // shared: blocks other than `run` read it too
  static constexpr uint32_t never = (1u << 22) - 1; // a clock that nobody knows

  uint64_t pack() const {
    return uint64_t(run) << 38 | uint64_t(thread) << 28 | uint64_t(std::min(clock, (1u << 22) - 1)) << 6 |
           uint64_t(bytes) << 2 | uint64_t(isAtomic) << 1 | isShared;
  }
  static GlobalStamp unpack(uint64_t bits) {
    return {uint32_t(bits >> 38),     uint32_t(bits >> 28) & 1023, uint32_t(bits >> 6) & ((1u << 22) - 1),
            uint32_t(bits >> 2) & 15, bool(bits >> 1 & 1),         bool(bits & 1)};
  }
};

/// What is known of a word of shared memory.
struct SharedCell {
  uint32_t clock = 0; // of the last write
  uint16_t thread = 0;
  uint16_t flags = 0;
  enum : uint16_t {
    Defined = 0xf,      // one bit for each byte
    Written = 0xf0,     // the bytes of the last write
    Atomic = 0x100,     // the last write was one
    Pending = 0x200,    // an asynchronous copy is on its way here
    AsyncProxy = 0x400, // the last write came from the asynchronous proxy
    ReadInParts = 0x800,
    Barrier = 0x1000, // part of an mbarrier
  };
};

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// What is known of threads of other clusters, or what was released: clocks of the members of a cluster, by its first
/// run.
using KnownClusters = std::map<uint32_t, std::shared_ptr<const std::vector<uint32_t>>>;
using KnownClustersPtr = std::shared_ptr<const KnownClusters>;
void joinClusters(KnownClustersPtr &to, const KnownClustersPtr &from);

/// Vector clocks of a warp, or what a barrier collected.
struct Clocks {
  std::vector<uint32_t> known, fenced; // by thread, then by pipe of tcgen05
  KnownClustersPtr others;
  std::vector<uint32_t> tensor; // by agent of tensor memory

  void reset(size_t numThreads, size_t numAgents) {
    known.assign(numThreads, 0);
    fenced.assign(numThreads, 0);
    tensor.assign(numAgents, 0);
    others.reset();
  }
  void join(const Clocks &other) {
    for (size_t i = 0; i < known.size(); ++i) {
      known[i] = std::max(known[i], other.known[i]);
      fenced[i] = std::max(fenced[i], other.fenced[i]);
    }
    joinTensor(other.tensor);
    if (other.others != others)
      joinClusters(others, other.others);
  }
  void joinTensor(const std::vector<uint32_t> &other) {
    for (size_t i = 0; i < tensor.size(); ++i)
      tensor[i] = std::max(tensor[i], other[i]);
  }
};

/// What a thread released, or a fence of it: what happened before. `narrow` is for threads of the cluster only.
struct Released {
  KnownClustersPtr wide, narrow;

  void join(const Released &other) {
    joinClusters(wide, other.wide);
    joinClusters(narrow, other.narrow);
  }
};

/// How an access of a flag orders others: as a strong one (relaxed, volatile, atomic), which fences make more of, as an
/// acquire or a release.
enum class Order : uint8_t { Weak, Strong, Acquire, Release, Both };

/// A launch under way, shared by the blocks.
class Launch {
public:
  Launch(const Module &module, const Kernel &kernel, Memory &memory, const LaunchConfig &config,
         const Settings &settings)
      : module(module.contents()), kernel(kernel), memory(memory.contents()), config(config), settings(settings) {}

  const Module::Contents &module;
  const Kernel &kernel;
  Memory::Contents &memory;
  const LaunchConfig &config;
  const Settings &settings;
  uint32_t firstRun = 0;
  std::atomic<uint64_t> nextCluster{0}, doneBlocks{0};
  std::atomic<bool> isStopped{false};
  std::atomic<uint64_t> threadInstructions{0}, warpInstructions{0};
  std::mutex atomics; // read-modify-write of global memory, and what was released there
  std::unordered_map<uint64_t, Released> released;
  /// Counts what others may wait for.
  std::atomic<uint64_t> activity{0};
  std::atomic<unsigned> numWorkers{0}, numWaiting{0}, numResident{0};

  uint64_t numBlocks() const { return uint64_t(config.grid[0]) * config.grid[1] * config.grid[2]; }
  void add(Fault fault);
  std::vector<Fault> takeFaults();

private:
  std::mutex mutex;
  std::map<std::pair<unsigned, std::string>, Fault> faults;
  uint64_t numFaults = 0; // repeated ones too
};

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

struct NamedBarrier {
  uint32_t expected = 0; // threads; 0 for all that live
  uint32_t arrived = 0;
  unsigned line = 0;
  Clocks clocks;
  std::vector<unsigned> waiting; // warps
};

struct Mbarrier {
  uint32_t expected = 0;
  int64_t pending = 0, bytes = 0;
  uint64_t phase = 0;
  unsigned line = 0;
  Clocks arriving, completed;
  /// Whether the thread that initialized it made that known to the asynchronous proxy.
  bool isFenced = false;
};

/// An asynchronous copy of one thread that has not landed.
struct AsyncCopy {
  uint32_t to = 0;
  uint8_t bytes = 0;
  uint8_t data[16];
  uint32_t group = 0;
  uint64_t number = 0;    // in order of issue, within the block
  uint32_t undefined = 0; // bytes that the source did not have
};

/// An arrival that follows when copies have landed.
struct AsyncArrival {
  unsigned thread = 0;
  uint32_t barrier = 0;
  uint64_t number = 0; // copies with smaller numbers have to land first
  unsigned line = 0;
};

/// Units that read shared memory on their own for a warp: what tcgen05 does, and bulk copies. Like threads they have
/// clocks, which those know of who waited for them.
enum class Unit : uint8_t { Tensor, Bulk };
constexpr unsigned numUnits = 2;

/// A copy of many bytes by the asynchronous proxy into shared memory: where each 16 of them go.
struct BulkCopy {
  std::vector<uint8_t> data;
  std::vector<uint32_t> places;
  std::vector<bool> undefined; // of each place: whether some bytes have never been written
  uint32_t barrier = 0;
  /// Whose shared memory it goes to, whose barrier is told, and who started it.
  Block *target = nullptr, *signalled = nullptr;
  Warp *warp = nullptr;
  unsigned lane = 0;
  /// Of copies between blocks: where it comes from, read when it lands, and the clock of the unit.
  uint32_t from = 0, clock = 0;
};

/// A copy out of shared memory: 16 bytes each from `places`, in rows to global memory.
struct BulkStore {
  const Instruction *instruction;
  unsigned lane;
  uint32_t group, clock;
  std::vector<uint32_t> places;
  struct Row {
    uint64_t address;
    uint32_t offset, bytes;
  };
  std::vector<Row> rows;
  std::vector<uint8_t> data; // once it was read
};

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

/// Lanes that stand at the same instruction.
struct Split {
  uint32_t pc = 0, lanes = 0;
  enum State : uint8_t { Ready, Collective, Mbarrier, Cluster, Registers } state = Ready;
  // Of waits.
  uint32_t barrier = 0;
  uint64_t phase = 0;
};

struct PendingWgmma {
  const Instruction *instruction;
  uint64_t a, b;
  bool accumulates;
  uint32_t group;
};

class Warp {
public:
  Block *block = nullptr;
  const Kernel *kernel = nullptr;
  unsigned index = 0;
  /// Of all warps of the cluster, and of all its threads the number of lane 0 (warps that are not full count as such).
  unsigned number = 0, firstMember = 0;
  uint8_t *registers = nullptr;
  const uint8_t *constantsEnd = nullptr;

  // Control flow.
  uint32_t live = 0;   // lanes that have not exited
  uint32_t lanes = 0;  // of the split that runs
  uint32_t active = 0; // that execute the instruction
  uint32_t pc = 0, next = 0;
  uint32_t limit = UINT32_MAX; // where the next split stands
  std::vector<Split> others;
  enum Status : uint8_t { Running, AtBarrier, Blocked, Done } status = Running;
  bool mustYield = false;
  bool isIdle = false;     // asked for something that is not there yet, and did nothing else since
  bool isSpinning = false; // what it asked for is for other clusters to give
  unsigned barrierId = 0;
  /// Why the split that runs has to wait, set by handlers; it then runs the instruction again.
  Split::State waitFor = Split::Ready;
  uint32_t waitBarrier = 0;
  uint64_t waitPhase = 0;

  // Order.
  uint32_t clock = 1;
  Clocks clocks;
  std::vector<uint32_t> knownLeast; // by warp: the least of `known` of its threads
  /// What single lanes know beyond that.
  std::array<std::unique_ptr<Clocks>, numLanes> laneClocks;
  bool hasLaneClocks = false;

  /// Of each lane: what its last fence covers, and what it read that a fence will order.
  struct LaneFence {
    Released covers, observed;
    bool isFenced = false;
  };
  std::unique_ptr<std::array<LaneFence, numLanes>> laneFences;
  /// What a strong read gave last and where, to see that a warp spins.
  const Instruction *spinAt = nullptr;
  uint64_t spinValue = 0;

  /// Lanes that arrived at the barrier of the cluster and have not waited yet, and in which phase.
  uint32_t clusterArrivals = 0;
  std::array<uint32_t, numLanes> clusterPhases = {};

  // Asynchronous work.
  std::deque<BulkStore> bulkStores;
  std::array<uint32_t, numLanes> bulkGroups = {};
  std::array<uint32_t, numUnits> unitClocks = {1, 1};
  std::array<std::deque<AsyncCopy>, numLanes> copies;
  std::array<uint32_t, numLanes> copyGroup = {};
  std::vector<PendingWgmma> wgmmas;
  uint32_t wgmmaGroup = 0;
  uint64_t numWgmmas = 0;
  /// By register: when it was last touched, in instructions of this warp; only for kernels with asynchronous results.
  std::vector<uint64_t> touchedAt;
  enum InFlight : uint8_t { Nothing, Factor, Accumulator, Loaded };
  std::vector<uint8_t> inFlight;
  uint64_t fenceAt = 0, executed = 0;
  bool isFenced = false; // by any wgmma.fence
  /// Registers of a thread, and what setmaxnreg made of them.
  uint32_t registerLimit = 0;
  std::vector<uint32_t> registerLimits;

  // Tensor memory.
  std::vector<uint32_t> tensorKnown; // by agent
  std::array<uint32_t, 3> tensorClocks = {1, 1, 1};
  std::deque<TensorTransfer> tensorLoads, tensorStores;

  /// By half of a register: the lanes in which it holds what came from memory that nothing had written.
  std::vector<uint32_t> undefined;
  unsigned numUndefined = 0; // how many of them are not 0

  /// Threads have numbers within their block, and within the cluster: as its members.
  unsigned threadOf(unsigned lane) const { return index * numLanes + lane; }
  unsigned memberOf(unsigned lane) const { return firstMember + lane; }
  bool hasMember(unsigned member) const { return member / numLanes == number; }

  template <class T>
  const T *source(int32_t offset) const {
    return reinterpret_cast<const T *>((offset >= 0 ? registers : constantsEnd) + offset);
  }
  template <class T>
  T *destination(int32_t offset) const {
    return reinterpret_cast<T *>(registers + offset);
  }
  /// What a lane has of a register of 2, 4 or 8 bytes.
  uint64_t read(int32_t offset, unsigned bytes, unsigned lane) const {
    return bytes == 2   ? source<uint16_t>(offset)[lane]
           : bytes == 4 ? source<uint32_t>(offset)[lane]
                        : source<uint64_t>(offset)[lane];
  }
  void write(int32_t offset, unsigned bytes, unsigned lane, uint64_t value) const {
    if (bytes == 2)
      destination<uint16_t>(offset)[lane] = uint16_t(value);
    else if (bytes == 4)
      destination<uint32_t>(offset)[lane] = uint32_t(value);
    else
      destination<uint64_t>(offset)[lane] = value;
  }
  uint32_t predicate(int32_t offset) const { return *source<uint32_t>(offset); }
  void setPredicate(int32_t offset, uint32_t value) const {
    uint32_t *mask = destination<uint32_t>(offset);
    *mask = (*mask & ~active) | (value & active);
  }
  unsigned firstLane() const { return __builtin_ctz(active ? active : 1); }

  // Run.cpp.
  void start(Block &owner, unsigned number, uint32_t liveLanes);
  /// Runs until the warp cannot go on or `budget` instructions are done.
  void run(uint64_t budget);
  void branch(uint32_t taken, uint32_t target);
  void exitLanes(uint32_t lanes);
  bool poll();

  // Clocks.cpp.
  void syncLanes(uint32_t members);
  void settleLanes();
  void releaseTo(Clocks &collected, uint32_t members);
  void acquire(const Clocks &from, uint32_t members);
  void fenceAsync(uint32_t members);
  bool knows(unsigned lane, unsigned thread, uint32_t when) const {
    return thread == memberOf(lane) || clocks.known[thread] >= when ||
           (hasLaneClocks && laneClocks[lane] && laneClocks[lane]->known[thread] >= when);
  }
  /// The same; a lane of numLanes stands for the whole warp, and nobody knows of itself.
  bool knowsAs(unsigned lane, unsigned thread, uint32_t when) const {
    return lane == numLanes ? clocks.known[thread] >= when : knows(lane, thread, when);
  }
  /// Whether the asynchronous proxy may touch what a thread wrote.
  bool hasFenced(unsigned lane, unsigned thread, uint32_t when) const {
    return clocks.fenced[thread] >= when ||
           (lane != numLanes && hasLaneClocks && laneClocks[lane] && laneClocks[lane]->fenced[thread] >= when);
  }

  /// The number of a unit among those of the cluster, and among all that have clocks.
  unsigned pipeOf(Unit unit) const { return number * numUnits + unsigned(unit); }
  void learnOf(unsigned lane, Unit unit, uint32_t clock);

  // Flags.cpp.
  void orderRead(const Instruction &instruction, unsigned lane, Block &owner, Space space, uint64_t address,
                 uint64_t value);
  void orderWrite(const Instruction &instruction, unsigned lane, Block &owner, Space space, uint64_t address,
                  bool isUpdate);
  void fenceMemory(bool isWide);
  bool knowsOthers(unsigned lane) const {
    return clocks.others || (hasLaneClocks && laneClocks[lane] && laneClocks[lane]->others);
  }
  bool knowsCluster(unsigned lane, uint32_t firstRun, unsigned member, uint32_t when) const;

  // Access.cpp.
  uint64_t addressOf(const Instruction &instruction, unsigned lane, unsigned slot) const;
  /// The memory of an access, null after a fault. Checks bounds and alignment only. Shared memory is that of `owner`,
  /// of this block if it is null.
  uint8_t *locate(const Instruction &instruction, Space space, unsigned lane, uint64_t address, unsigned bytes,
                  Block *owner = nullptr);
  /// The block whose shared memory an address of shared::cluster names, and the address there. Null after a fault.
  Block *ownerOf(const Instruction &instruction, unsigned lane, uint32_t &address);
  void fault(const Instruction &instruction, unsigned lane, std::string kind, std::string message) const;

  // Undefined.cpp.
  void followUndefined(const Instruction &instruction);
  void setUndefined(int32_t offset, unsigned half, uint32_t lanes, bool isUndefined);
  uint32_t undefinedIn(int32_t offset, unsigned half) const {
    return offset < 0 ? 0 : undefined[unsigned(offset) / 32 + half];
  }

  // TensorMemory.cpp.
  unsigned agentOf(TensorAgent kind) const { return number * 3 + unsigned(kind); }
  /// Records an access to tensor memory by an agent of this warp and reports what is wrong with it.
  /// Returns which of its lanes are undefined somewhere.
  uint16_t noteTensor(const Instruction &instruction, unsigned lane, Block &owner, const TensorRange &range,
                      TensorAgent kind, bool isWrite);
  /// False, and a fault, if a range is not allocated.
  bool checkTensorRange(const Instruction &instruction, unsigned lane, const Block &owner, const TensorRange &range);
  void waitForLoads();
  void waitForStores();

  // BulkStores.cpp.
  /// Reads what bulk stores of a lane before a group read, and writes it if asked.
  void finishStores(unsigned lane, uint32_t beforeGroup, bool writes);
  void finishAllStores();

  // AsyncCopies.cpp, Warpgroup.cpp.
  void landCopies(unsigned lane, uint64_t beforeNumber, uint32_t uptoGroup);
  void finishWgmmas(const Instruction &instruction, uint32_t uptoGroup);
  void checkRegisters(const Instruction &instruction);

private:
  void select();
  void reschedule();
  bool canRunCollective(const Instruction &instruction);
  void updateLeast();
  friend class Block;
};

/// One thread block of a cluster. Used again for block after block.
class Block {
public:
  Block(Launch &launch, Cluster &cluster, unsigned rank, unsigned clusterSize);

  Launch &launch;
  const Kernel &kernel;
  Cluster &cluster;
  unsigned rank;
  uint64_t index = 0;
  uint32_t run = 0;
  std::array<uint32_t, 3> position = {};
  unsigned numThreads, numWarps;
  unsigned clusterWarps; // of the cluster
  /// In the cluster: units that read shared memory on their own (see Unit), agents of tensor memory.
  unsigned numPipes = 0, numAgents = 0;
  bool checks;

  std::vector<uint8_t> shared;
  std::vector<SharedCell> cells;
  /// By word and warp of the cluster: when it last read the word, and which lanes.
  std::vector<uint32_t> readClocks, readLanes;
  std::vector<uint8_t> local;
  std::vector<uint8_t> registerFile;
  std::vector<Warp> warps;
  std::array<NamedBarrier, 16> barriers;
  std::map<uint32_t, Mbarrier> mbarriers;
  std::map<uint32_t, Released> released; // at flags in shared memory
  std::deque<AsyncArrival> arrivals;
  std::deque<BulkCopy> bulkCopies;
  uint64_t copyNumber = 0;
  /// Tensor memory, what is on its way to it, and by word and pipe when that read shared memory last.
  TensorMemory tensor;
  std::deque<TensorWork> tensorWork;
  std::vector<uint32_t> pipeReads;
  /// Of each warpgroup: what its wgmmas were, to see that the four warps agree.
  std::vector<std::vector<std::array<uint64_t, 3>>> wgmmaLog;
  Allocation *lastAllocation = nullptr;
  bool isStopped = false;
  /// Counts what could let someone go on.
  uint64_t events = 0;

  void reset(const std::array<uint32_t, 3> &place, uint32_t blockRun);
  bool isDone() const;
  unsigned numMembers() const { return clusterWarps * numLanes; }
  unsigned lanesOf(unsigned warp) const { return std::min(numLanes, numThreads - warp % numWarps * numLanes); }
  void resetClocks(Clocks &clocks) const { clocks.reset(numMembers() + numPipes, numAgents); }
  /// "thread 3", with its block if there are several in the cluster.
  std::string describeMember(unsigned member) const;

  // Barriers.cpp.
  /// Whether threads of a warp may have that many registers, with what the others have now.
  bool hasRegistersFor(const Warp &warp, uint32_t count) const;
  void checkRegistersAtEnd();
  void completeBarrier(NamedBarrier &barrier);
  void checkBarriersAfterExit();
  void completePhase(Mbarrier &barrier);
  bool landSomething();
  void landBulkCopy();
  /// A thread makes what it initialized known to the asynchronous proxy.
  void fenceBarriers(const Warp &warp, uint32_t lanes);
  void arriveAt(uint32_t address, unsigned count, const Clocks &clocks);
  std::string describeWaits() const;

  // TensorMemory.cpp, TensorProducts.cpp.
  void landTensorWork();
  void checkTensorAtEnd();
  std::string describeAgent(unsigned agent) const;

  // Shadow.cpp.
  // They record an access and report what is wrong with it. They return which bytes (one bit each) were read though
  // nothing has written them.
  uint32_t noteShared(Warp &warp, const Instruction &instruction, unsigned lane, uint32_t address, unsigned bytes,
                      bool isWrite, bool isAtomic = false);
  /// A unit of a warp reads 4 bytes of shared memory.
  void noteUnit(const Warp &warp, Unit unit, uint32_t word) {
    if (checks)
      pipeReads[size_t(word) * numPipes + warp.pipeOf(unit)] = warp.unitClocks[unsigned(unit)];
  }
  uint32_t noteGlobal(Warp &warp, const Instruction &instruction, unsigned lane, Allocation &allocation,
                      uint64_t offset, unsigned bytes, bool isWrite, bool isAtomic = false);
  /// Takes back that bytes were written: what was stored there is undefined itself.
  void undefine(uint64_t address, unsigned bytes, Space space);
  std::string nameShared(uint32_t address) const;
  uint32_t sharedEnd() const { return sharedBase + uint32_t(shared.size()); }

private:
  void initializeRegisters(Warp &warp);
  uint32_t specialValue(Special kind, unsigned thread) const;
};

/// Blocks that run together and see each other's shared memory; one block where the launch has no clusters.
class Cluster {
public:
  explicit Cluster(Launch &launch);

  Launch &launch;
  std::array<uint32_t, 3> size, position = {};
  std::vector<std::unique_ptr<Block>> blocks;
  uint32_t firstRun = 0;

  // barrier.cluster
  uint32_t arrived = 0, phase = 0;
  Clocks arriving, completed;

  enum State { Done, Waiting };
  void start(uint64_t index);
  /// Runs until the cluster is done or waits for another one.
  State resume();
  /// Nothing can go on, here and elsewhere.
  void reportDeadlock();
  Warp &warp(unsigned number) const {
    return blocks[number / blocks[0]->numWarps]->warps[number % blocks[0]->numWarps];
  }
  void checkBarrier();

private:
  bool isStopped() const;
  bool landSomething();

  uint64_t budget = 0, seen = 0;
  bool isReversed = false;
  unsigned idleRounds = 0;
};

std::string hex(uint64_t value);

} // namespace mlir::ssa::sim

#endif // SSA_LIB_SIMULATOR_MACHINE_H
