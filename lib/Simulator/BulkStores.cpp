//===- BulkStores.cpp - cp.async.bulk out of shared memory ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Copies and reductions by the asynchronous proxy into global memory. Shared memory is read at wait_group.read, and
// global memory is written at wait_group, or at the end of the block: not earlier.
//
//===----------------------------------------------------------------------===//

#include "BulkCopies.h"
#include "Numeric.h"

using namespace mlir::ssa::sim;

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

namespace {
using Combine = void (*)(uint8_t *to, const uint8_t *from);
struct Reduction {
  const char *name, *type;
  unsigned bytes;
  Combine combine;
};
} // namespace

template <class T, T (*function)(T, T)>
static void combine(uint8_t *to, const uint8_t *from) {
  T a, b;
  std::memcpy(&a, to, sizeof(T));
  std::memcpy(&b, from, sizeof(T));
  a = function(a, b);
  std::memcpy(to, &a, sizeof(T));
}
template <class T>
static T add(T a, T b) {
  return T(a + b);
}
template <class T>
static T smaller(T a, T b) {
  return a < b ? a : b;
}
template <class T>
static T larger(T a, T b) {
  return a > b ? a : b;
}
template <class T>
static T bothBits(T a, T b) {
  return a & b;
}
template <class T>
static T anyBits(T a, T b) {
  return a | b;
}
template <class T>
static T otherBits(T a, T b) {
  return a ^ b;
}
static uint16_t addHalf(uint16_t a, uint16_t b) { return toF16(fromF16(a) + fromF16(b)); }
static uint16_t addBrain(uint16_t a, uint16_t b) { return toBF16(fromBF16(a) + fromBF16(b)); }
static float addFloat(float a, float b) { return canonical(a + b); }

static constexpr Reduction reductions[] = {
    {"add", "u32", 4, combine<uint32_t, add<uint32_t>>},
    {"add", "s32", 4, combine<uint32_t, add<uint32_t>>},
    {"add", "u64", 8, combine<uint64_t, add<uint64_t>>},
    {"add", "f32", 4, combine<float, addFloat>},
    {"add", "f64", 8, combine<double, add<double>>},
    {"add", "f16", 2, combine<uint16_t, addHalf>},
    {"add", "bf16", 2, combine<uint16_t, addBrain>},
    {"min", "u32", 4, combine<uint32_t, smaller<uint32_t>>},
    {"min", "s32", 4, combine<int32_t, smaller<int32_t>>},
    {"min", "u64", 8, combine<uint64_t, smaller<uint64_t>>},
    {"min", "s64", 8, combine<int64_t, smaller<int64_t>>},
    {"max", "u32", 4, combine<uint32_t, larger<uint32_t>>},
    {"max", "s32", 4, combine<int32_t, larger<int32_t>>},
    {"max", "u64", 8, combine<uint64_t, larger<uint64_t>>},
    {"max", "s64", 8, combine<int64_t, larger<int64_t>>},
    {"and", "b32", 4, combine<uint32_t, bothBits<uint32_t>>},
    {"and", "b64", 8, combine<uint64_t, bothBits<uint64_t>>},
    {"or", "b32", 4, combine<uint32_t, anyBits<uint32_t>>},
    {"or", "b64", 8, combine<uint64_t, anyBits<uint64_t>>},
    {"xor", "b32", 4, combine<uint32_t, otherBits<uint32_t>>},
    {"xor", "b64", 8, combine<uint64_t, otherBits<uint64_t>>},
};

/// The reduction of an instruction, null for a copy. Its number plus 1 is in `extra`; of tiles it says no type, which
/// is that of the map, by its bytes and what the name allows.
static const Reduction *reductionOf(const Instruction &instruction) {
  return instruction.extra ? &reductions[instruction.extra - 1] : nullptr;
}

//===----------------------------------------------------------------------===//
// Stores
//===----------------------------------------------------------------------===//

/// Puts a store on its way: checks both sides, and records that the lane writes there, which nobody can know yet.
static void startStore(Warp &warp, const Instruction &instruction, unsigned lane, BulkStore store) {
  Block &block = *warp.block;
  store.instruction = &instruction;
  store.lane = lane;
  store.group = warp.bulkGroups[lane];
  store.clock = warp.unitClocks[unsigned(Unit::Bulk)];
  for (uint32_t place : store.places) {
    if (!warp.locate(instruction, Space::Shared, lane, place, 16))
      return;
    noteBulkRead(warp, instruction, lane, block, place);
  }
  bool isAtomic = reductionOf(instruction);
  for (const BulkStore::Row &row : store.rows) {
    for (uint32_t byte : {0u, row.bytes - 1})
      if (!warp.locate(instruction, Space::Global, lane, row.address + byte, 1))
        return;
    uint32_t kept = warp.clock;
    warp.clock = GlobalStamp::never;
    for (uint32_t done = 0; done < row.bytes; done += 16) {
      uint64_t offset = row.address + done - block.lastAllocation->address;
      if (block.noteGlobal(warp, instruction, lane, *block.lastAllocation, offset, std::min(16u, row.bytes - done),
                           true, isAtomic) &&
          isAtomic)
        warp.fault(instruction, lane, "uninitialized", "updates memory that nothing has written");
    }
    warp.clock = kept;
  }
  ++warp.unitClocks[unsigned(Unit::Bulk)];
  warp.bulkStores.push_back(std::move(store));
}

static void readSource(Warp &warp, BulkStore &store) {
  if (!store.data.empty())
    return;
  store.data.resize(store.places.size() * 16);
  for (size_t i = 0; i < store.places.size(); ++i)
    std::memcpy(store.data.data() + 16 * i, warp.block->shared.data() + (store.places[i] - sharedBase), 16);
}

static void writeOut(Warp &warp, BulkStore &store) {
  Block &block = *warp.block;
  const Instruction &instruction = *store.instruction;
  const Reduction *reduction = reductionOf(instruction);
  std::unique_lock<std::mutex> lock(block.launch.atomics, std::defer_lock);
  if (reduction)
    lock.lock();
  for (const BulkStore::Row &row : store.rows) {
    uint8_t *to = warp.locate(instruction, Space::Global, store.lane, row.address, 1);
    const uint8_t *from = store.data.data() + row.offset;
    if (!reduction)
      std::memcpy(to, from, row.bytes);
    for (uint32_t at = 0; reduction && at < row.bytes; at += reduction->bytes)
      reduction->combine(to + at, from + at);
    for (uint32_t done = 0; done < row.bytes; done += 16) // from now on others can know
      block.noteGlobal(warp, instruction, store.lane, *block.lastAllocation,
                       row.address + done - block.lastAllocation->address, std::min(16u, row.bytes - done), true,
                       reduction);
  }
}

void Warp::finishStores(unsigned lane, uint32_t beforeGroup, bool writes) {
  uint32_t clock = 0;
  for (auto store = bulkStores.begin(); store != bulkStores.end();) {
    if (store->lane != lane || store->group >= beforeGroup) {
      ++store;
      continue;
    }
    clock = std::max(clock, store->clock);
    readSource(*this, *store);
    if (!writes) {
      ++store;
      continue;
    }
    writeOut(*this, *store);
    store = bulkStores.erase(store);
  }
  if (clock)
    learnOf(lane, Unit::Bulk, clock);
}

/// At the end of the block. What shared memory holds must have been read by then; what was read may land later.
void Warp::finishAllStores() {
  for (BulkStore &store : bulkStores) {
    if (store.data.empty())
      fault(
          *store.instruction, store.lane, "async",
          "the block ends while this reads its shared memory: nothing waited for that (cp.async.bulk.wait_group.read)");
    readSource(*this, store);
    writeOut(*this, store);
  }
  bulkStores.clear();
}

/// Operands: to, from, bytes.
static void storeBulk(Warp &warp, const Instruction &instruction) {
  forEachLane(warp.active, [&](unsigned lane) {
    uint64_t to = warp.source<uint64_t>(instruction.operands[0])[lane];
    uint32_t from = toShared(warp.addressOf(instruction, lane, 1));
    uint32_t bytes = warp.source<uint32_t>(instruction.operands[2])[lane];
    if (bytes % 16 || from % 16 || to % 16)
      return warp.fault(instruction, lane, "misaligned",
                        "a bulk copy of " + std::to_string(bytes) + " bytes from " + hex(from) + " to " + hex(to) +
                            ": all must be multiples of 16");
    BulkStore store = {};
    for (uint32_t done = 0; done < bytes; done += 16)
      store.places.push_back(from + done);
    if (bytes)
      store.rows.push_back({to, 0, bytes});
    startStore(warp, instruction, lane, std::move(store));
  });
}

/// Operands: from, map; the list holds the coordinates.
static void storeTile(Warp &warp, const Instruction &instruction) {
  forEachLane(warp.active, [&](unsigned lane) {
    uint32_t from = toShared(warp.addressOf(instruction, lane, 0));
    Tile tile;
    if (!readTile(warp, instruction, lane, from, tile))
      return;
    BulkStore store = {};
    for (uint32_t done = 0; done < tile.bytes(); done += 16)
      store.places.push_back(tile.place(from, done));
    forEachRow(tile.map, tile.start, tile.gathered(),
               [&](uint32_t row, uint64_t address, uint32_t offset, uint32_t bytes) {
                 store.rows.push_back({address, row * tile.rowBytes() + offset, bytes});
               });
    startStore(warp, instruction, lane, std::move(store));
  });
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

static void commitStores(Warp &warp, const Instruction &) {
  forEachLane(warp.active, [&](unsigned lane) { ++warp.bulkGroups[lane]; });
}

/// Flag 1: until the source was read.
static void waitForStores(Warp &warp, const Instruction &instruction) {
  forEachLane(warp.active, [&](unsigned lane) {
    uint32_t groups = warp.bulkGroups[lane], open = uint32_t(instruction.immediate);
    warp.finishStores(lane, groups > open ? groups - open : 0, !(instruction.flags & 1));
  });
}

bool mlir::ssa::sim::decodeBulkGroup(Decoder &decoder) {
  Instruction &instruction = decoder.instruction;
  decoder.kernel.usesBulkStores = true;
  bool isWait = decoder.numOperands();
  instruction.flags = decoder.take("read");
  instruction.run = isWait ? waitForStores : commitStores;
  return decoder.expectNoParts() && decoder.expectOperands(isWait, isWait) &&
         (!isWait || decoder.number(0, instruction.immediate));
}

bool mlir::ssa::sim::decodeBulkStore(Decoder &decoder, bool isTensor, bool isReduction) {
  Instruction &instruction = decoder.instruction;
  decoder.kernel.usesBulkStores = true;
  bool hasPolicy = decoder.take("L2::cache_hint"), isScattered = decoder.take("tile::scatter4");
  int dimensions = decoder.takeOneOf({"1d", "2d", "3d", "4d", "5d"});
  for (std::string_view part : {"global", "shared::cta", "tile", "noftz"})
    decoder.take(part);
  if (isReduction && isTensor)
    return decoder.fail("reductions of tiles are not supported by the simulator");
  for (const Reduction &reduction : reductions)
    if (isReduction && decoder.parts.size() == 2 && decoder.parts[0] == reduction.name &&
        decoder.parts[1] == reduction.type) {
      instruction.extra = uint32_t(&reduction - reductions) + 1;
      decoder.parts.clear();
    }
  size_t count = (isTensor ? 2 : 3) + hasPolicy;
  if (!decoder.expectNoParts() || isTensor != (dimensions >= 0) || isReduction != (instruction.extra != 0) ||
      !decoder.expectOperands(count, count))
    return false;
  instruction.run = isTensor ? storeTile : storeBulk;
  if (isTensor)
    return decodeTile(decoder, 0, unsigned(dimensions) + 1, isScattered) && decoder.address(1, Space::Shared, 0);
  return decodePlainAddress(decoder, 0, 0) && decoder.source(2, Class::Word, 2) && decoder.address(1, Space::Shared, 1);
}
