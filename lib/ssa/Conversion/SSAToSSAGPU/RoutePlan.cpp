//===- RoutePlan.cpp - Sizes of route on tensor cores ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "RouteTiles.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace mlir::ssa;

RoutePlan::RoutePlan(const RouteContext &c, TargetAttr target)
    : usesTensorMemory(target.hasTCGen05()), family(target.hasWGMMA() ? ssa_gpu::Family::wgmma : ssa_gpu::Family::mma_sync), paddedDim(ssa::ceilDiv(c.dim, 16) * 16),
      operands(c.op.getBound() ? 2 : 1), unit(std::gcd(c.group, c.heads / c.keyHeads)), sharedBytes(target.sharedMemoryBytes()),
      sharedBytesPerSM(target.sharedMemoryBytesPerSM()) {
  // What has 8 bits is exact in both types of 16.
  Type types[] = {c.op.getQuery().getType().getElementType(), c.op.getKey().getType().getElementType()};
  bool sameKeys = !c.op.getKeyMax() || c.op.getKeyMax().getType().getElementType() == types[1];
  for (Type type : types) {
    if (type.isF32() || !sameKeys || (elementType && type.getIntOrFloatBitWidth() == 16 && type != elementType)) {
      elementType = Type();
      return;
    }
    if (type.getIntOrFloatBitWidth() == 16)
      elementType = type;
  }
  if (elementType)
    return;
  elementType = wideType = Float16Type::get(c.op.getContext());
  // Products of 8 bits, where rows are copied as they are: a bound is ordered in 16.
  constexpr int64_t bytesOfCopy = 16;
  if (usesTensorMemory && operands == 1 && isa<Float8E4M3FNType>(types[0]) && types[0] == types[1] && c.dim % bytesOfCopy == 0)
    elementType = types[0];
}

/// What `tilesOfPairs` tiles and the keys of the stages have besides rows.
int64_t RoutePlan::arrayBytes(const RouteContext &c, int64_t tilesOfPairs) const {
  int64_t perPair = (c.isSoftmax() ? 1 : 0) + (c.op.getWeights() ? 1 : 0), perKey = (c.op.getWithin() ? 1 : 0) + (c.op.getScales() ? 1 : 0);
  constexpr int64_t perQuery = 3, entryBytes = 4;
  return ((tilesOfPairs * perPair + perQuery) * pairs + std::max(keyStages, sumsStages) * perKey * keys) * entryBytes;
}

/// How the pairs of a tile are filled: accumulators have columns in eights, so there are eight queries at least, where as many share
/// their keys.
static void setPairs(RoutePlan &plan, const RouteContext &c) {
  constexpr int64_t eight = 8;
  bool isNarrow = c.rowsPerList && c.rowsPerList < eight;
  plan.queries = isNarrow ? int64_t(llvm::PowerOf2Ceil(c.rowsPerList)) : eight;
  plan.chunksPerUnit = ssa::ceilDiv(plan.unit, plan.pairs / plan.queries);
  plan.heads = ssa::ceilDiv(plan.unit, plan.chunksPerUnit);
  plan.chunks = c.group / plan.unit * plan.chunksPerUnit;
  if (isNarrow)
    return;
  plan.queries = plan.pairs / plan.heads / eight * eight;
  if (c.rowsPerList)
    plan.queries = std::min<int64_t>(plan.queries, llvm::alignTo(c.rowsPerList, eight));
}

bool RoutePlan::setSizes(const RouteContext &c) {
  constexpr int64_t large = 128, small = 64, reserved = 8192; // of a block, for arrays and by the system
  int64_t columnsOfProduct = elementType.getIntOrFloatBitWidth() == 8 ? 32 : 16;
  paddedDim = llvm::alignTo(c.dim, columnsOfProduct);
  // Tiles of tensor memory have 128 rows; wide heads leave room for 64 columns.
  if (usesTensorMemory) {
    if (setSizes(c, large, large) || setSizes(c, small, large))
      return true;
    bytesForTensors = std::max(scoresBytes(c), c.isSoftmax() ? ofSums(c).sumsBytes(c) : 0);
  }
  usesTensorMemory = false;
  if (wideType)
    elementType = wideType;
  paddedDim = llvm::alignTo(c.dim, 16);
  // Two blocks should fit, so that one computes while the other waits.
  int64_t size = 2 * (3 * large * rowBytes() + reserved) > sharedBytesPerSM ? small : large;
  return setSizes(c, size, size);
}

RoutePlan RoutePlan::ofSums(const RouteContext &c) const {
  RoutePlan sums = *this;
  std::swap(sums.pairs, sums.keys);
  setPairs(sums, c);
  return sums;
}

bool RoutePlan::setSizes(const RouteContext &c, int64_t pairsOfTile, int64_t keysOfStep) {
  pairs = pairsOfTile;
  keys = keysOfStep;
  setPairs(*this, c);
  keyStages = sumsStages = 2;
  if (c.makesSums() && ofSums(c).sumsBytes(c) > sharedBytes)
    sumsStages = 1;
  for (bool keeps : {true, false})
    for (int64_t stages : {2, 1}) {
      keepsQueries = keeps;
      queryStages = keeps ? chunks : stages;
      keyStages = stages;
      if (scoresBytes(c) <= sharedBytes)
        return !c.makesSums() || ofSums(c).sumsBytes(c) <= sharedBytes;
    }
  return false;
}

//===----------------------------------------------------------------------===//
// With roles
//===----------------------------------------------------------------------===//

/// The bytes that a row of a tile takes.
static int64_t getRowBytes(const RoutePlan &plan) {
  return llvm::alignTo(plan.paddedDim * plan.elementType.getIntOrFloatBitWidth() / 8, 128);
}

/// What a block takes for other things: barriers, and the system.
static constexpr int64_t reservedForRoles = 2048;

/// The slots of keys for which there is room; 0 if there are fewer than `least`.
static int64_t getKeyStages(const RoutePlan &plan, const RouteContext &c, int64_t taken, int64_t least) {
  constexpr int64_t most = 8, entryBytes = 4;
  int64_t bytesPerKey = getRowBytes(plan) + (c.op.getScales() ? entryBytes : 0);
  int64_t stages = (plan.sharedBytes - reservedForRoles - taken) / (plan.keys * plan.stepsPerTicket * bytesPerKey);
  return stages < least ? 0 : std::min(stages, most);
}

bool RoutePlan::setSumsWithRoles(const RouteContext &c) {
  constexpr int64_t perQuery = 3, entryBytes = 4;
  pairs = 192; // 64 for each of three warpgroups
  keys = 64;   // two products at a time are in registers
  stepsPerTicket = 2;
  chunksPerUnit = ssa::ceilDiv(unit, pairs);
  heads = ssa::ceilDiv(unit, chunksPerUnit);
  queries = pairs / heads;
  chunks = c.group / unit * chunksPerUnit;
  // With two slots of queries the next item begins before the last has ended.
  for (int64_t slots : {2, 1}) {
    int64_t perSlot = pairs * (getRowBytes(*this) + (c.op.getWeights() ? entryBytes : 0)) + perQuery * std::max<int64_t>(queries, 8) * entryBytes;
    queryStages = querySlots = slots;
    keyStages = getKeyStages(*this, c, slots * perSlot, slots + 1);
    if (keyStages)
      return true;
  }
  return false;
}

bool RoutePlan::setScoresByPairs(const RouteContext &c, int64_t otherBytes) {
  constexpr int64_t keysOfGroup = 128, eight = 8, perQuery = 3, entryBytes = 4;
  pairs = 64; // rows of a warpgroup: four heads of twice eight queries
  folds = heads = 4;
  queries = eight;
  groups = pairs / (heads * queries);
  keyGroups = 2;
  keys = keyGroups * keysOfGroup;
  // Fewer heads are one chunk of keys times pairs. Which form an op has may not depend on whether it is selected from meanwhile, as sums have an order: of
  // single tokens rows are selected from in stretches, if at all.
  if (c.isSoftmax() || c.blocks.getSize() != 1 || unit != c.group || unit <= 128 / eight || unit % heads != 0)
    return false;
  chunksPerUnit = chunks = queryStages = unit / heads;
  keepsQueries = true;
  int64_t perPair = getRowBytes(*this) + (c.op.getWeights() ? entryBytes : 0), exchanged = pairs / 2 * keys / 2 * entryBytes;
  keyStages = getKeyStages(*this, c, chunks * pairs * perPair + perQuery * tileQueries() * entryBytes + exchanged + otherBytes, 2);
  return keyStages > 0;
}

bool RoutePlan::setScoresWithRoles(const RouteContext &c, int64_t otherBytes, int64_t maxGroups) {
  constexpr int64_t groupPairs = 128, eight = 8, perQuery = 3, entryBytes = 4;
  keys = 64;
  chunksPerUnit = ssa::ceilDiv(unit, groupPairs / eight);
  heads = ssa::ceilDiv(unit, chunksPerUnit);
  queries = groupPairs / heads / eight * eight;
  chunks = c.group / unit * chunksPerUnit;
  if (chunks > chunksPerUnit)
    return false; // key heads of their own
  keepsQueries = true;
  // Several chunks are better overlapped by two products at a time, for which three warpgroups have too few registers.
  for (groups = chunks % 2 == 0 ? std::min<int64_t>(maxGroups, 2) : maxGroups; groups > 0; --groups) {
    pairs = groups * groupPairs;
    int64_t perPair = getRowBytes(*this) + (c.isSoftmax() ? entryBytes : 0) + (c.op.getWeights() ? entryBytes : 0);
    int64_t perSlot = chunks * pairs * perPair + perQuery * tileQueries() * entryBytes;
    // With two slots the queries of the next item are there when the last one ends.
    for (int64_t slots : {chunks == 1 ? 2 : 1, 1}) {
      querySlots = slots;
      queryStages = slots * chunks;
      keyStages = getKeyStages(*this, c, slots * perSlot + otherBytes, slots + 2);
      if (keyStages)
        return true;
    }
  }
  return false;
}
