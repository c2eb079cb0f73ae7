//===- Access.cpp - Loads, stores and atomics -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Lanes.h"
#include "Numeric.h"

using namespace mlir::ssa::sim;

void Warp::fault(const Instruction &instruction, unsigned lane, std::string kind, std::string message) const {
  Fault fault;
  fault.kind = std::move(kind);
  fault.message = std::move(message);
  fault.kernel = kernel->name;
  fault.line = instruction.line;
  fault.instruction = block->launch.module.describe(instruction.line);
  fault.block = block->index;
  fault.thread = threadOf(lane);
  block->launch.add(std::move(fault));
}

uint64_t Warp::addressOf(const Instruction &instruction, unsigned lane, unsigned slot) const {
  int32_t offset = instruction.operands[slot];
  uint64_t base = instruction.flags & 1u << 31 ? source<uint32_t>(offset)[lane] : source<uint64_t>(offset)[lane];
  return base + uint64_t(instruction.immediate);
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// "argument 'q' (4096 bytes)".
static std::string describe(const Allocation &allocation) {
  return allocation.name + " (" + std::to_string(allocation.bytes) + " bytes)";
}

static std::string describeStranger(const Memory::Contents &memory, uint64_t address, unsigned bytes) {
  if (address < 65536)
    return hex(address) + " is no memory: the pointer is null";
  auto above = memory.allocations.upper_bound(address);
  if (above != memory.allocations.begin()) {
    const Allocation &below = *std::prev(above)->second;
    if (address < below.address + below.bytes)
      return "the last of " + std::to_string(bytes) + " bytes from offset " + std::to_string(address - below.address) +
             " are behind the end of " + describe(below);
    if (address - below.address - below.bytes < 1 << 24)
      return std::to_string(address - below.address - below.bytes) + " bytes behind the end of " + describe(below);
  }
  if (above != memory.allocations.end() && above->first - address < 1 << 24)
    return std::to_string(above->first - address) + " bytes before the start of " + describe(*above->second);
  return hex(address) + " is in no memory";
}

uint8_t *Warp::locate(const Instruction &instruction, Space space, unsigned lane, uint64_t address, unsigned bytes,
                      Block *owner) {
  if (address & (bytes - 1) & 31) {
    fault(instruction, lane, "misaligned", "an access of " + std::to_string(bytes) + " bytes at " + hex(address));
    return nullptr;
  }
  if (space == Space::Global) {
    Allocation *allocation = block->lastAllocation;
    if (!allocation || address - allocation->address >= allocation->bytes)
      block->lastAllocation = allocation = block->launch.memory.find(address);
    if (!allocation || address - allocation->address + bytes > allocation->bytes) {
      fault(instruction, lane, "out-of-bounds", describeStranger(block->launch.memory, address, bytes));
      return nullptr;
    }
    return allocation->data.get() + (address - allocation->address);
  }
  if (space == Space::Shared) {
    uint64_t offset = address - sharedBase;
    std::vector<uint8_t> &shared = (owner ? owner : block)->shared;
    if (address < sharedBase || offset + bytes > shared.size()) {
      fault(instruction, lane, "out-of-bounds",
            "shared memory at " + hex(address) + ", but the block has " + std::to_string(shared.size()) +
                " bytes from " + hex(sharedBase));
      return nullptr;
    }
    return shared.data() + offset;
  }
  if (space == Space::Local) {
    if (address + bytes > uint64_t(kernel->localBytes)) {
      fault(instruction, lane, "out-of-bounds",
            "local memory at " + hex(address) + ", but there are " + std::to_string(kernel->localBytes) + " bytes");
      return nullptr;
    }
    return block->local.data() + size_t(kernel->localBytes) * threadOf(lane) + address;
  }
  const std::vector<uint8_t> &bytesOf =
      space == Space::Param ? block->launch.config.parameters : block->launch.module.constantMemory;
  if (address + bytes > bytesOf.size()) {
    fault(instruction, lane, "out-of-bounds",
          std::string(space == Space::Param ? "parameters" : "constants") + " at " + hex(address));
    return nullptr;
  }
  return const_cast<uint8_t *>(bytesOf.data()) + address;
}

/// Splits a generic address; returns the space.
static Space resolve(Space space, uint64_t &address) {
  if (address - sharedWindow < windowBytes && (space == Space::Generic || space == Space::Shared)) {
    address -= sharedWindow;
    return Space::Shared;
  }
  if (space != Space::Generic)
    return space;
  if (address - localWindow < windowBytes) {
    address -= localWindow;
    return Space::Local;
  }
  if (address - paramWindow < windowBytes) {
    address -= paramWindow;
    return Space::Param;
  }
  return Space::Global;
}

namespace {
/// Where an access of a lane goes; no data after a fault.
struct Place {
  uint8_t *data = nullptr;
  Space space = Space::Generic;
  uint64_t address = 0;
  Block *owner = nullptr;
  /// Bytes that are read though nothing has written them.
  uint32_t undefined = 0;
};
} // namespace

/// Finds the memory of an access of a lane and records it.
static Place access(Warp &warp, const Instruction &instruction, unsigned lane, uint64_t address, unsigned bytes,
                    bool isWrite, bool isAtomic = false) {
  Place place;
  place.space = resolve(instruction.space, address);
  Block &block = *warp.block;
  place.owner = &block;
  if (place.space == Space::Shared) {
    uint32_t offset = uint32_t(address);
    if (!(place.owner = warp.ownerOf(instruction, lane, offset)))
      return place;
    address = offset;
  }
  place.address = address;
  place.data = warp.locate(instruction, place.space, lane, address, bytes, place.owner);
  if (!place.data)
    return place;
  if (place.space == Space::Shared)
    place.undefined = place.owner->noteShared(warp, instruction, lane, uint32_t(address), bytes, isWrite, isAtomic);
  else if (place.space == Space::Global) {
    Allocation &allocation = *block.lastAllocation;
    place.undefined =
        block.noteGlobal(warp, instruction, lane, allocation, address - allocation.address, bytes, isWrite, isAtomic);
  }
  return place;
}

//===----------------------------------------------------------------------===//
// ld, st
//===----------------------------------------------------------------------===//

enum AccessFlags : uint32_t { SignExtends = 1, RegisterShift = 1, RegisterMask = 3 << RegisterShift };

static void storeRegister(const Warp &warp, int32_t offset, unsigned size, unsigned lane, uint64_t value) {
  if (size == 1)
    warp.destination<uint16_t>(offset)[lane] = uint16_t(value);
  else if (size == 2)
    warp.destination<uint32_t>(offset)[lane] = uint32_t(value);
  else
    warp.destination<uint64_t>(offset)[lane] = value;
}

/// What is written to a flag, and what was released there, go together.
static std::unique_lock<std::mutex> lockFlags(Warp &warp, const Instruction &instruction) {
  std::unique_lock<std::mutex> lock(warp.block->launch.atomics, std::defer_lock);
  if (instruction.order && instruction.space != Space::Shared)
    lock.lock();
  return lock;
}

template <unsigned width>
static void load(Warp &warp, const Instruction &instruction) {
  const int32_t *to = warp.kernel->lists.data() + instruction.list;
  unsigned total = width * instruction.count, size = (instruction.flags & RegisterMask) >> RegisterShift;
  std::unique_lock<std::mutex> lock = lockFlags(warp, instruction);
  forEachLane(warp.active, [&](unsigned lane) {
    Place place =
        access(warp, instruction, lane, warp.addressOf(instruction, lane, 1), total, false, instruction.order);
    if (instruction.order && place.data) {
      uint64_t value = 0;
      std::memcpy(&value, place.data, width);
      warp.orderRead(instruction, lane, *place.owner, place.space, place.address, value);
    }
    for (unsigned i = 0; i < instruction.count; ++i) {
      uint64_t value = 0;
      if (place.data)
        std::memcpy(&value, place.data + i * width, width);
      if (place.undefined) {
        uint32_t missing = place.undefined >> (i * width) & uint32_t((uint64_t(1) << width) - 1);
        warp.setUndefined(to[i], 0, 1u << lane, missing & 15);
        warp.setUndefined(to[i], 1, 1u << lane, missing >> 4);
      }
      if (width < 8 && instruction.flags & SignExtends)
        value = uint64_t(int64_t(value << (64 - 8 * width)) >> (64 - 8 * width));
      storeRegister(warp, to[i], size, lane, value);
    }
  });
}

template <unsigned width>
static void store(Warp &warp, const Instruction &instruction) {
  const int32_t *from = warp.kernel->lists.data() + instruction.list;
  unsigned total = width * instruction.count;
  std::unique_lock<std::mutex> lock = lockFlags(warp, instruction);
  forEachLane(warp.active, [&](unsigned lane) {
    Place place = access(warp, instruction, lane, warp.addressOf(instruction, lane, 1), total, true, instruction.order);
    if (!place.data)
      return;
    if (instruction.order)
      warp.orderWrite(instruction, lane, *place.owner, place.space, place.address, false);
    for (unsigned i = 0; i < instruction.count; ++i) {
      // Registers may be wider than what is stored; the host is little-endian.
      unsigned lanes = instruction.flags >> (3 + 2 * i) & 3;
      const uint8_t *value = reinterpret_cast<const uint8_t *>(warp.source<uint8_t>(from[i])) + (size_t(lane) << lanes);
      std::memcpy(place.data + i * width, value, width);
      for (unsigned half = 0; warp.numUndefined && half < (width + 3) / 4; ++half)
        if (warp.undefinedIn(from[i], half) >> lane & 1)
          place.owner->undefine(place.address + i * width + 4 * half, std::min(width, 4u), place.space);
    }
  });
}

static Space takeSpace(Decoder &decoder) {
  static const Space spaces[] = {Space::Global, Space::Shared, Space::Shared, Space::Shared,
                                 Space::Local,  Space::Param,  Space::Param,  Space::Const};
  int number = decoder.takeOneOf(
      {"global", "shared", "shared::cta", "shared::cluster", "local", "param", "param::entry", "const"});
  return number < 0 ? Space::Generic : spaces[number];
}

/// How an access orders others; `otherwise` if it does not say.
static void takeOrder(Decoder &decoder, Order otherwise) {
  static constexpr Order orders[] = {Order::Weak,   Order::Acquire, Order::Release, Order::Both,
                                     Order::Strong, Order::Strong,  Order::Strong};
  int number = decoder.takeOneOf({"weak", "acquire", "release", "acq_rel", "relaxed", "volatile", "mmio"});
  decoder.instruction.order = uint8_t(number < 0 ? otherwise : orders[number]);
  int scope = decoder.takeOneOf({"cta", "cluster", "gpu", "sys"});
  decoder.instruction.isWide = scope < 0 || scope >= 2;
}

/// Hints that change nothing here.
static void takeHints(Decoder &decoder) {
  for (std::string_view hint : {"nc",
                                "ca",
                                "cg",
                                "cs",
                                "lu",
                                "cv",
                                "wb",
                                "wt",
                                "L1::evict_normal",
                                "L1::evict_unchanged",
                                "L1::evict_first",
                                "L1::evict_last",
                                "L1::no_allocate",
                                "L2::evict_last",
                                "L2::evict_normal",
                                "L2::evict_first",
                                "L2::cache_hint",
                                "L2::64B",
                                "L2::128B",
                                "L2::256B",
                                "unified"})
    decoder.take(hint);
}

static unsigned registerSize(Class kind) { return kind == Class::Half ? 1 : kind == Class::Word ? 2 : 3; }

/// What loads and stores have in common; the types, the space and the number of elements.
static bool decodeAccess(Decoder &decoder, std::string_view &type) {
  Instruction &instruction = decoder.instruction;
  instruction.space = takeSpace(decoder);
  takeOrder(decoder, Order::Weak);
  takeHints(decoder);
  int vector = decoder.takeOneOf({"v2", "v4", "v8"});
  instruction.count = vector < 0 ? 1 : 2 << vector;
  if (decoder.parts.size() != 1)
    return decoder.expectNoParts();
  type = decoder.parts[0];
  instruction.width = bytesOfType(type);
  return instruction.width >= 1 && instruction.width <= 8;
}

static bool checkCount(Decoder &decoder, unsigned count) {
  return count == decoder.instruction.count || decoder.fail("expected " + std::to_string(decoder.instruction.count) +
                                                            " registers, but got " + std::to_string(count));
}

static bool decodeLoad(Decoder &decoder) {
  std::string_view type;
  if (!decodeAccess(decoder, type) || !decoder.expectOperands(2, 3))
    return false;
  Instruction &instruction = decoder.instruction;
  unsigned count = 0;
  if (!decoder.address(1, instruction.space, 1) || !decoder.vector(decoder.operand(0), Class::None, true, count) ||
      !checkCount(decoder, count))
    return false;
  const Operand &first =
      decoder.operand(0).kind == Operand::Vector ? decoder.operand(0).elements[0] : decoder.operand(0);
  Class kind = Class::None;
  for (const Operand &element : decoder.operand(0).elements)
    if (kind == Class::None && element.kind == Operand::Name)
      kind = decoder.classOf(element.name);
  if (kind == Class::None && first.kind == Operand::Name)
    kind = decoder.classOf(first.name);
  if (kind == Class::None)
    kind = Class::Word;
  if (kind == Class::Double && decoder.operand(0).kind == Operand::Vector)
    for (const Operand &element : decoder.operand(0).elements)
      if (element.kind == Operand::Sink) { // a sink of the right width
        Class wide = Class::Double;
        if (!decoder.destination(
                element, wide,
                decoder.kernel.lists[instruction.list + (&element - decoder.operand(0).elements.data())]))
          return false;
      }
  instruction.flags |= (type[0] == 's' ? SignExtends : 0) | registerSize(kind) << RegisterShift;
  static const Handler handlers[] = {load<1>, load<2>, load<4>, load<8>};
  instruction.run = handlers[__builtin_ctz(instruction.width)];
  return true;
}

static bool decodeStore(Decoder &decoder) {
  std::string_view type;
  if (!decodeAccess(decoder, type) || !decoder.expectOperands(2, 3))
    return false;
  Instruction &instruction = decoder.instruction;
  if (!decoder.address(0, instruction.space, 1))
    return false;
  const Operand &value = decoder.operand(1);
  const Operand *elements = value.kind == Operand::Vector ? value.elements.data() : &value;
  unsigned count = value.kind == Operand::Vector ? value.elements.size() : 1;
  if (!checkCount(decoder, count))
    return false;
  for (unsigned i = 0; i < count; ++i) {
    Class kind = elements[i].kind == Operand::Name ? Class::None : instruction.width == 8 ? Class::Double : Class::Word;
    int32_t offset;
    if (!decoder.source(elements[i], kind, offset))
      return false;
    decoder.kernel.lists.push_back(offset);
    instruction.flags |= registerSize(kind) << (3 + 2 * i);
  }
  static const Handler handlers[] = {store<1>, store<2>, store<4>, store<8>};
  instruction.run = handlers[__builtin_ctz(instruction.width)];
  return true;
}

//===----------------------------------------------------------------------===//
// atom, red
//===----------------------------------------------------------------------===//

template <class T>
static T readAs(const Warp &warp, int32_t offset, unsigned lane) {
  return warp.source<T>(offset)[lane];
}

/// Operands: d, address, b, c.
template <class T, class F>
static void atomic(Warp &warp, const Instruction &instruction) {
  const F &function = stateless<F>();
  std::unique_lock<std::mutex> lock = lockFlags(warp, instruction);
  forEachLane(warp.active, [&](unsigned lane) {
    Place place = access(warp, instruction, lane, warp.addressOf(instruction, lane, 1), sizeof(T), true, true);
    T before = 0, b = readAs<T>(warp, instruction.operands[2], lane);
    T c = instruction.operands[3] == noRegister ? T(0) : readAs<T>(warp, instruction.operands[3], lane);
    if (place.undefined)
      warp.fault(instruction, lane, "uninitialized", "updates memory that nothing has written");
    if (place.data) {
      std::memcpy(&before, place.data, sizeof(T));
      T after = function(before, b, c);
      std::memcpy(place.data, &after, sizeof(T));
      bool isChanged = std::memcmp(&before, &after, sizeof(T)); // not where a lock is held by another
      if (instruction.operands[0] != noRegister)
        warp.orderRead(instruction, lane, *place.owner, place.space, place.address,
                       isChanged ? ++warp.block->events : uint64_t(before));
      if (isChanged)
        warp.orderWrite(instruction, lane, *place.owner, place.space, place.address, true);
    }
    if (instruction.operands[0] != noRegister)
      warp.destination<T>(instruction.operands[0])[lane] = before;
  });
}

template <class T, class F>
static Handler atomicHandler(F) {
  return atomic<T, F>;
}

template <class T>
static void addAtomics(std::map<std::string, Handler> &forms, const std::string &type) {
  forms["add." + type] = atomicHandler<T>([](T a, T b, T) { return T(a + b); });
  forms["min." + type] = atomicHandler<T>([](T a, T b, T) { return a < b ? a : b; });
  forms["max." + type] = atomicHandler<T>([](T a, T b, T) { return a > b ? a : b; });
}
template <class T>
static void addBitAtomics(std::map<std::string, Handler> &forms, const std::string &type) {
  forms["and." + type] = atomicHandler<T>([](T a, T b, T) { return a & b; });
  forms["or." + type] = atomicHandler<T>([](T a, T b, T) { return a | b; });
  forms["xor." + type] = atomicHandler<T>([](T a, T b, T) { return a ^ b; });
  forms["exch." + type] = atomicHandler<T>([](T, T b, T) { return b; });
  forms["cas." + type] = atomicHandler<T>([](T a, T b, T c) { return a == b ? c : a; });
}

static bool decodeAtomic(Decoder &decoder, bool hasResult) {
  static const std::map<std::string, Handler> forms = [] {
    std::map<std::string, Handler> result;
    addAtomics<uint32_t>(result, "u32");
    addAtomics<int32_t>(result, "s32");
    addAtomics<uint64_t>(result, "u64");
    addAtomics<int64_t>(result, "s64");
    addBitAtomics<uint32_t>(result, "b32");
    addBitAtomics<uint64_t>(result, "b64");
    result["inc.u32"] = atomicHandler<uint32_t>([](uint32_t a, uint32_t b, uint32_t) { return a >= b ? 0 : a + 1; });
    result["dec.u32"] =
        atomicHandler<uint32_t>([](uint32_t a, uint32_t b, uint32_t) { return a == 0 || a > b ? b : a - 1; });
    result["add.f32"] = atomicHandler<float>([](float a, float b, float) { return canonical(a + b); });
    result["add.f64"] = atomicHandler<double>([](double a, double b, double) { return canonical(a + b); });
    return result;
  }();
  Instruction &instruction = decoder.instruction;
  instruction.space = takeSpace(decoder);
  takeOrder(decoder, Order::Strong);
  takeHints(decoder);
  decoder.take("noftz");
  if (decoder.parts.size() != 2)
    return false;
  auto found = forms.find(std::string(decoder.parts[0]) + "." + std::string(decoder.parts[1]));
  if (found == forms.end())
    return false;
  Class kind = classOfType(decoder.parts[1]);
  unsigned operands = decoder.parts[0] == "cas" ? 2 : 1;
  instruction.run = found->second;
  if (!decoder.expectOperands(hasResult + 1 + operands, hasResult + 1 + operands) ||
      !decoder.address(hasResult, instruction.space, 1))
    return false;
  for (unsigned i = 0; i < operands; ++i)
    if (!decoder.source(hasResult + 1 + i, kind, 2 + i))
      return false;
  return !hasResult || decoder.operand(0).kind == Operand::Sink || decoder.destination(0, kind, 0);
}

void mlir::ssa::sim::addAccesses(Tables &tables) {
  tables.families["ld"] = decodeLoad;
  tables.families["ldu"] = decodeLoad;
  tables.families["st"] = decodeStore;
  tables.families["atom"] = [](Decoder &decoder) { return decodeAtomic(decoder, true); };
  tables.families["red"] = [](Decoder &decoder) { return decodeAtomic(decoder, false); };
}
