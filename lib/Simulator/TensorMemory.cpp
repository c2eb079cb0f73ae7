//===- TensorMemory.cpp - tcgen05: memory, loads, stores, fences ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Loads fill registers when they are waited for, stores reach tensor memory then; see TensorMemory.h for the order.
//
//===----------------------------------------------------------------------===//

#include "Lanes.h"

using namespace mlir::ssa::sim;

void TensorMemory::reset(unsigned numAgents, bool checks) {
  words.assign(size_t(numLanes) * numColumns, 0x7fa5a5a5); // NaN, also as two halves
  cells.assign(checks ? size_t(numGroups) * numColumns : 0, TensorCell());
  readClocks.assign(cells.size() * numAgents, 0);
  owners.fill(0);
  allocations.clear();
  isRelinquished = false;
}

int TensorMemory::findFree(unsigned count, bool fromEnd) const {
  unsigned needed = count / granule, most = unsigned(owners.size()) - needed;
  for (unsigned i = 0; i <= most; ++i) {
    unsigned first = fromEnd ? most - i : i;
    if (std::all_of(owners.begin() + first, owners.begin() + first + needed, [](uint16_t owner) { return !owner; }))
      return int(first * granule);
  }
  return -1;
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

std::string Block::describeAgent(unsigned agent) const {
  static const char *kinds[] = {"tcgen05.ld", "tcgen05.st", "tcgen05.mma or cp"};
  std::string text = std::string("a ") + kinds[agent % 3] + " of warp " + std::to_string(agent / 3 % numWarps);
  if (cluster.blocks.size() > 1)
    text += " of block " + std::to_string(agent / 3 / numWarps) + " of the cluster";
  return text;
}

/// Why an access of an agent is not ordered before what this warp does.
static std::string whyUnordered(const Warp &warp, unsigned lane, unsigned agent, uint32_t when) {
  bool hasTravelled = warp.clocks.tensor[agent] >= when ||
                      (warp.hasLaneClocks && warp.laneClocks[lane] && warp.laneClocks[lane]->tensor[agent] >= when);
  if (hasTravelled)
    return "a tcgen05.fence::after_thread_sync is missing here";
  if (TensorAgent(agent % 3) == TensorAgent::Pipe)
    return "nothing waited for its tcgen05.commit";
  const Warp &other = warp.block->cluster.warp(agent / 3);
  const char *wait = TensorAgent(agent % 3) == TensorAgent::Load ? "tcgen05.wait::ld" : "tcgen05.wait::st";
  if (other.tensorKnown[agent] < when)
    return std::string("a ") + wait + " is missing after it";
  return "it takes a tcgen05.fence::before_thread_sync and a barrier after it, and a fence::after_thread_sync here";
}

bool Warp::checkTensorRange(const Instruction &instruction, unsigned lane, const Block &owner,
                            const TensorRange &range) {
  unsigned end = range.column + range.numColumns;
  const auto &owners = owner.tensor.owners;
  unsigned last = (end + TensorMemory::granule - 1) / TensorMemory::granule;
  bool isInside = end <= TensorMemory::numColumns && range.lane + range.numLanes <= TensorMemory::numLanes;
  for (unsigned i = range.column / TensorMemory::granule; isInside && i < last; ++i)
    isInside = owners[i] && owners[i] == owners[range.column / TensorMemory::granule];
  if (isInside)
    return true;
  std::string has;
  for (const TensorMemory::Allocation &allocation : owner.tensor.allocations)
    if (allocation.numColumns)
      has += (has.empty() ? "" : ", ") + std::to_string(allocation.column) + " to " +
             std::to_string(allocation.column + allocation.numColumns - 1);
  fault(instruction, lane, "out-of-bounds",
        "columns " + std::to_string(range.column) + " to " + std::to_string(end - 1) + " of tensor memory, lanes " +
            std::to_string(range.lane) + " to " + std::to_string(range.lane + range.numLanes - 1) + ", but " +
            (has.empty() ? "nothing is allocated" : "allocated are the columns " + has));
  return false;
}

uint16_t Warp::noteTensor(const Instruction &instruction, unsigned lane, Block &owner, const TensorRange &range,
                          TensorAgent kind, bool isWrite) {
  if (!block->checks)
    return 0;
  TensorMemory &memory = owner.tensor;
  unsigned numAgents = block->numAgents, self = agentOf(kind);
  bool isPipe = kind == TensorAgent::Pipe, isTold = false;
  uint16_t missing = 0;
  auto complain = [&](unsigned agent, uint32_t when, unsigned at, unsigned column, const char *did) {
    if (!isTold)
      fault(instruction, lane, "tcgen05",
            std::string(isWrite ? "writes" : "reads") + " column " + std::to_string(column) + " of lanes " +
                std::to_string(at) + " to " + std::to_string(at + 15) + " of tensor memory, which " +
                block->describeAgent(agent) + did + ": " + whyUnordered(*this, lane, agent, when));
    isTold = true;
  };
  // What a pipe takes, it does in order.
  auto isOrdered = [&](unsigned agent, uint32_t when) {
    return (isPipe && agent == self) || tensorKnown[agent] >= when;
  };
  for (unsigned at = range.lane; at < range.lane + range.numLanes; at += 16)
    for (unsigned column = range.column; column < range.column + range.numColumns; ++column) {
      TensorCell &cell = memory.cell(at, column);
      uint32_t *readers = memory.readers(at, column, numAgents);
      if (cell.clock && !isOrdered(cell.writer, cell.clock))
        complain(cell.writer, cell.clock, at, column, " writes");
      missing |= range.lanes & ~cell.defined;
      if (!isWrite) {
        readers[self] = tensorClocks[unsigned(kind)];
        continue;
      }
      for (unsigned agent = 0; agent < numAgents; ++agent)
        if (readers[agent] && !isOrdered(agent, readers[agent]))
          complain(agent, readers[agent], at, column, " reads");
      cell.writer = uint16_t(self);
      cell.clock = tensorClocks[unsigned(kind)];
      cell.defined |= range.lanes;
    }
  return missing;
}

static void fenceBefore(Warp &warp, const Instruction &) { warp.clocks.joinTensor(warp.tensorKnown); }

static void fenceAfter(Warp &warp, const Instruction &) {
  auto join = [&](const std::vector<uint32_t> &from) {
    for (size_t i = 0; i < from.size(); ++i)
      warp.tensorKnown[i] = std::max(warp.tensorKnown[i], from[i]);
  };
  join(warp.clocks.tensor);
  forEachLane(warp.active, [&](unsigned lane) {
    if (warp.laneClocks[lane])
      join(warp.laneClocks[lane]->tensor);
  });
}

/// Accesses of a kind are done.
static void complete(Warp &warp, TensorAgent kind) {
  warp.tensorKnown[warp.agentOf(kind)] = warp.tensorClocks[unsigned(kind)]++;
}

//===----------------------------------------------------------------------===//
// Allocation
//===----------------------------------------------------------------------===//

static uint32_t toShared(uint64_t address) {
  return uint32_t(address - sharedWindow < windowBytes ? address - sharedWindow : address);
}

/// The number of columns that an instruction names, 0 after a fault.
static unsigned numColumnsOf(Warp &warp, const Instruction &instruction, int32_t offset) {
  uint32_t count = warp.source<uint32_t>(offset)[warp.firstLane()];
  if (count >= 32 && count <= TensorMemory::numColumns && !(count & (count - 1)))
    return count;
  warp.fault(instruction, warp.firstLane(), "tcgen05",
             "the number of columns must be a power of two from 32 to 512, but is " + std::to_string(count));
  return 0;
}

/// Operands: -, where the address goes, columns.
static void allocate(Warp &warp, const Instruction &instruction) {
  Block &block = *warp.block;
  unsigned lane = warp.firstLane(), count = numColumnsOf(warp, instruction, instruction.operands[2]);
  uint32_t to = toShared(warp.addressOf(instruction, lane, 1));
  uint8_t *place = warp.locate(instruction, Space::Shared, lane, to, 4);
  if (!count || !place)
    return;
  TensorMemory &memory = block.tensor;
  if (memory.isRelinquished)
    warp.fault(instruction, lane, "tcgen05", "allocates after tcgen05.relinquish_alloc_permit");
  // Both blocks of a pair get the same columns.
  int column = memory.findFree(count, block.cluster.blocks[0]->index % 2);
  if (column < 0)
    return warp.fault(instruction, lane, "tcgen05",
                      "there are no " + std::to_string(count) + " columns of tensor memory left: this would wait " +
                          "forever");
  memory.allocations.push_back({unsigned(column), count, &instruction});
  std::fill_n(memory.owners.begin() + column / TensorMemory::granule, count / TensorMemory::granule,
              uint16_t(memory.allocations.size()));
  uint32_t address = uint32_t(column);
  std::memcpy(place, &address, sizeof(address));
  block.noteShared(warp, instruction, lane, to, 4, true);
}

/// Operands: -, address, columns.
static void deallocate(Warp &warp, const Instruction &instruction) {
  Block &block = *warp.block;
  unsigned lane = warp.firstLane(), count = numColumnsOf(warp, instruction, instruction.operands[2]);
  uint32_t address = warp.source<uint32_t>(instruction.operands[1])[lane];
  TensorMemory &memory = block.tensor;
  unsigned first = (address & 0xffff) / TensorMemory::granule;
  unsigned number = first < memory.owners.size() ? memory.owners[first] : 0;
  if (!number || memory.allocations[number - 1].column != address || memory.allocations[number - 1].numColumns != count)
    return warp.fault(instruction, lane, "tcgen05",
                      "frees " + std::to_string(count) + " columns at " + hex(address) +
                          ", which is no allocation of tensor memory");
  // All that was done there is over, and this warp knows.
  if (block.checks) {
    fenceAfter(warp, instruction);
    warp.noteTensor(instruction, lane, block, {0, TensorMemory::numLanes, address, count}, TensorAgent::Store, true);
    for (unsigned at = 0; at < TensorMemory::numLanes; at += 16)
      for (unsigned column = address; column < address + count; ++column) {
        memory.cell(at, column) = TensorCell();
        std::fill_n(memory.readers(at, column, block.numAgents), block.numAgents, 0);
      }
  }
  memory.allocations[number - 1].numColumns = 0;
  std::replace(memory.owners.begin(), memory.owners.end(), uint16_t(number), uint16_t(0));
}

static void relinquish(Warp &warp, const Instruction &) { warp.block->tensor.isRelinquished = true; }

void Block::checkTensorAtEnd() {
  if (!kernel.usesTensorMemory || isStopped)
    return;
  if (!tensorWork.empty())
    warps[0].fault(*tensorWork.front().instruction, 0, "tcgen05",
                   "the block ends while this is on its way: nothing waited for it");
  for (const TensorMemory::Allocation &allocation : tensor.allocations)
    if (allocation.numColumns)
      warps[0].fault(*allocation.instruction, 0, "tcgen05",
                     "the block ends, but these " + std::to_string(allocation.numColumns) +
                         " columns of tensor memory were not freed");
}

//===----------------------------------------------------------------------===//
// ld, st
//===----------------------------------------------------------------------===//

namespace {
enum class Shape : uint8_t { Lanes32, Bits64, Bits128, Bits256, Bits32x2 };

/// A form of ld or st, in Instruction::extra.
struct Form {
  Shape shape;
  bool isPacked; // two columns to a register, 16 bits of each
  uint16_t split;

  unsigned numLanes() const { return shape == Shape::Lanes32 ? 32 : 16; }
  /// Columns of 32 bits that the registers of all lanes cover side by side.
  unsigned numColumns(unsigned numRegisters) const {
    unsigned count = shape == Shape::Bits64                               ? 2 * numRegisters
                     : shape == Shape::Bits128 || shape == Shape::Bits256 ? 2 * numRegisters
                                                                          : numRegisters;
    return isPacked ? 2 * count : count;
  }
  struct Place {
    unsigned lane, column;
  };
  /// Where a register of a thread is; `column` counts what fills a register.
  Place locate(unsigned number, unsigned thread) const {
    switch (shape) {
    case Shape::Lanes32:
    case Shape::Bits32x2:
      return {thread % numLanes(), number};
    case Shape::Bits64:
      return {thread / 4 + thread % 2 * 8, number * 2 + thread / 2 % 2};
    case Shape::Bits128:
      return {thread / 4 + number % 2 * 8, number / 2 * 4 + thread % 4};
    case Shape::Bits256:
      return {thread / 4 + number / 2 % 2 * 8, number / 4 * 8 + thread % 4 * 2 + number % 2};
    }
    return {0, 0};
  }
};
static_assert(sizeof(Form) == sizeof(uint32_t));
} // namespace

static Form formOf(const Instruction &instruction) {
  Form form;
  std::memcpy(&form, &instruction.extra, sizeof(form));
  return form;
}

/// Calls the function with register, thread, lane and first column of everything that a transfer moves.
template <class F>
static void forEachPlace(const Instruction &instruction, uint32_t address, F function) {
  Form form = formOf(instruction);
  for (unsigned number = 0; number < instruction.count; ++number)
    for (unsigned thread = 0; thread < numLanes; ++thread) {
      Form::Place place = form.locate(number, thread);
      unsigned column =
          place.column * (form.isPacked ? 2 : 1) + (form.shape == Shape::Bits32x2 ? thread / 16 * form.split : 0);
      function(number, thread, (address >> 16) + place.lane, (address & 0xffff) + column);
    }
}

/// Records a transfer; false if there is no such memory. `missing` gets the lanes of tensor memory with undefined
/// cells.
static bool noteTransfer(Warp &warp, const Instruction &instruction, uint32_t address, bool isWrite) {
  Form form = formOf(instruction);
  Block &block = *warp.block;
  unsigned lane = address >> 16, quarter = warp.index % 4 * 32;
  if (lane != quarter && (form.numLanes() == 32 || lane != quarter + 16)) {
    warp.fault(instruction, 0, "tcgen05",
               "warp " + std::to_string(warp.index) + " can access lanes " + std::to_string(quarter) + " to " +
                   std::to_string(quarter + 31) + " of tensor memory only, but the address names lane " +
                   std::to_string(lane));
    return false;
  }
  TensorRange range = {lane, form.numLanes(), address & 0xffff, form.numColumns(instruction.count)};
  bool isTwice = form.shape == Shape::Bits32x2;
  for (unsigned half = 0; half < (isTwice ? 2 : 1); ++half, range.column += form.split) {
    if (!warp.checkTensorRange(instruction, 0, block, range))
      return false;
    warp.noteTensor(instruction, 0, block, range, isWrite ? TensorAgent::Store : TensorAgent::Load, isWrite);
  }
  return true;
}

static bool addressOfTransfer(Warp &warp, const Instruction &instruction, uint32_t &address) {
  const uint32_t *addresses = warp.source<uint32_t>(instruction.operands[1]);
  for (unsigned lane = 1; lane < numLanes; ++lane)
    if (addresses[lane] != addresses[0]) {
      warp.fault(instruction, lane, "tcgen05",
                 "the address differs between lanes: " + hex(addresses[0]) + " and " + hex(addresses[lane]));
      return false;
    }
  address = addresses[0] + uint32_t(instruction.immediate);
  if (warp.live == ~0u)
    return true;
  warp.fault(instruction, warp.firstLane(), "tcgen05", "needs a whole warp");
  return false;
}

static void load(Warp &warp, const Instruction &instruction) {
  TensorTransfer transfer;
  transfer.instruction = &instruction;
  if (!addressOfTransfer(warp, instruction, transfer.address) ||
      !noteTransfer(warp, instruction, transfer.address, false))
    return;
  for (unsigned i = 0; warp.block->checks && i < instruction.count; ++i)
    warp.inFlight[unsigned(warp.kernel->lists[instruction.list + i]) / 64] = Warp::Loaded;
  warp.tensorLoads.push_back(std::move(transfer));
}

static void fill(Warp &warp, const TensorTransfer &transfer) {
  const Instruction &instruction = *transfer.instruction;
  TensorMemory &memory = warp.block->tensor;
  const int32_t *registers = warp.kernel->lists.data() + instruction.list;
  bool isPacked = formOf(instruction).isPacked, checks = warp.block->checks;
  forEachPlace(instruction, transfer.address, [&](unsigned number, unsigned thread, unsigned lane, unsigned column) {
    uint32_t value = memory.word(lane, column);
    bool isDefined = !checks || memory.cell(lane, column).defined >> lane % 16 & 1;
    if (isPacked) {
      value = (value & 0xffff) | memory.word(lane, column + 1) << 16;
      isDefined &= !checks || memory.cell(lane, column + 1).defined >> lane % 16 & 1;
    }
    warp.destination<uint32_t>(registers[number])[thread] = value;
    if (!isDefined)
      warp.setUndefined(registers[number], 0, 1u << thread, true);
  });
}

void Warp::waitForLoads() {
  for (const TensorTransfer &transfer : tensorLoads) {
    fill(*this, transfer);
    for (unsigned i = 0; block->checks && i < transfer.instruction->count; ++i)
      inFlight[unsigned(kernel->lists[transfer.instruction->list + i]) / 64] = Nothing;
  }
  tensorLoads.clear();
  complete(*this, TensorAgent::Load);
}

static void store(Warp &warp, const Instruction &instruction) {
  TensorTransfer transfer;
  transfer.instruction = &instruction;
  if (!addressOfTransfer(warp, instruction, transfer.address) ||
      !noteTransfer(warp, instruction, transfer.address, true))
    return;
  const int32_t *registers = warp.kernel->lists.data() + instruction.list;
  transfer.values.resize(instruction.count);
  transfer.undefined.resize(instruction.count);
  for (unsigned i = 0; i < instruction.count; ++i) {
    std::memcpy(transfer.values[i].data(), warp.source<uint32_t>(registers[i]), sizeof(transfer.values[i]));
    transfer.undefined[i] = warp.numUndefined ? warp.undefinedIn(registers[i], 0) : 0;
  }
  warp.tensorStores.push_back(std::move(transfer));
}

void Warp::waitForStores() {
  TensorMemory &memory = block->tensor;
  for (const TensorTransfer &transfer : tensorStores) {
    bool isPacked = formOf(*transfer.instruction).isPacked;
    forEachPlace(*transfer.instruction, transfer.address,
                 [&](unsigned number, unsigned thread, unsigned lane, unsigned column) {
                   uint32_t value = transfer.values[number][thread];
                   memory.word(lane, column) = isPacked ? value & 0xffff : value;
                   if (isPacked)
                     memory.word(lane, column + 1) = value >> 16;
                   if (block->checks && transfer.undefined[number] >> thread & 1)
                     for (unsigned i = 0; i <= unsigned(isPacked); ++i)
                       memory.cell(lane, column + i).defined &= uint16_t(~(1u << lane % 16));
                 });
  }
  tensorStores.clear();
  complete(*this, TensorAgent::Store);
}

static void waitLoads(Warp &warp, const Instruction &) { warp.waitForLoads(); }
static void waitStores(Warp &warp, const Instruction &) { warp.waitForStores(); }

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

static bool decodeTransfer(Decoder &decoder, bool isLoad) {
  Instruction &instruction = decoder.instruction;
  static const unsigned registersOfOne[] = {1, 1, 2, 4, 1};
  int shape = decoder.takeOneOf({"32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"});
  int times = decoder.takeOneOf({"x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128"});
  Form form = {Shape(shape), decoder.take(isLoad ? "pack::16b" : "unpack::16b"), 0};
  if (decoder.take("red"))
    return decoder.fail("tcgen05.ld.red is not supported by the simulator");
  bool hasSplit = shape == 4;
  if (shape < 0 || times < 0 || !decoder.take("b32") || !decoder.expectNoParts() ||
      !decoder.expectOperands(2 + hasSplit, 2 + hasSplit))
    return false;
  int64_t split = 0;
  if (hasSplit && !decoder.number(isLoad ? 2 : 1, split))
    return false;
  form.split = uint16_t(split);
  std::memcpy(&instruction.extra, &form, sizeof(form));
  instruction.run = isLoad ? load : store;
  instruction.isCollective = true;
  unsigned count = 0, expected = registersOfOne[shape] << times;
  if (expected > 128)
    return decoder.fail("this form does not exist: it would take " + std::to_string(expected) + " registers");
  if (!decoder.tensorAddress(isLoad ? 1 : 0, 1, instruction.immediate) ||
      !decoder.vector(decoder.operand(isLoad ? 0 : 1 + hasSplit), Class::Word, isLoad, count))
    return false;
  instruction.count = uint8_t(count);
  return count == expected ||
         decoder.fail("expected " + std::to_string(expected) + " registers, but got " + std::to_string(count));
}

static bool decodeTensor(Decoder &decoder) {
  Instruction &instruction = decoder.instruction;
  decoder.kernel.usesTensorMemory = true;
  if (decoder.parts.empty())
    return false;
  std::string_view operation = decoder.parts.front();
  decoder.parts.erase(decoder.parts.begin());
  if (operation == "fence::before_thread_sync" || operation == "fence::after_thread_sync") {
    instruction.run = operation == "fence::before_thread_sync" ? fenceBefore : fenceAfter;
    return decoder.expectNoParts() && decoder.expectOperands(0, 0);
  }
  if (operation == "mma" || operation == "cp" || operation == "shift" || operation == "commit")
    return decodeTensorWork(decoder, operation);
  bool isWhole = decoder.take("sync") && decoder.take("aligned");
  if (!isWhole)
    return false;
  instruction.isCollective = true;
  if (operation == "ld" || operation == "st")
    return decodeTransfer(decoder, operation == "ld");
  if (operation == "wait::ld" || operation == "wait::st") {
    instruction.run = operation == "wait::ld" ? waitLoads : waitStores;
    return decoder.expectNoParts() && decoder.expectOperands(0, 0);
  }
  int group = decoder.takeOneOf({"cta_group::1", "cta_group::2"});
  if (!decoder.takeGroup(group + 1))
    return false;
  if (operation == "relinquish_alloc_permit") {
    instruction.run = relinquish;
    return group >= 0 && decoder.expectNoParts() && decoder.expectOperands(0, 0);
  }
  bool isAllocation = operation == "alloc";
  decoder.take("shared::cta");
  if ((!isAllocation && operation != "dealloc") || group < 0 || !decoder.take("b32") || !decoder.expectNoParts() ||
      !decoder.expectOperands(2, 2))
    return false;
  instruction.run = isAllocation ? allocate : deallocate;
  return (isAllocation ? decoder.address(0, Space::Shared, 1) : decoder.source(0, Class::Word, 1)) &&
         decoder.source(1, Class::Word, 2);
}

void mlir::ssa::sim::addTensorOperations(Tables &tables) { tables.families["tcgen05"] = decodeTensor; }
