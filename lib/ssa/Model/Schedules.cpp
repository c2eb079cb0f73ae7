//===- Schedules.cpp - The schedules that an op can have ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/Model/Attend.h"

using namespace mlir;
using namespace mlir::ssa;

static int64_t getDim(SparseAttendOp op) { return op.getQuery().getType().getDimSize(3); }
static int64_t getValueDim(SparseAttendOp op) { return op.getOutput().getType().getDimSize(3); }

int64_t ssa::getRegisterBound(SparseAttendOp op, ScheduleAttr schedule, TargetAttr target) {
  int64_t ofBlock = target.registersPerSM() / schedule.getBlocksPerSM(op, target), threads = schedule.getThreads(op);
  constexpr int64_t most = 255, mostWithRoles = 240, ofProducers = 56;
  if (!schedule.hasRoles() || schedule.usesTensorMemory())
    return std::min(most, ofBlock / threads);
  int64_t consumers = threads - ScheduleAttr::numProducers;
  return std::min(mostWithRoles, (ofBlock / threads * threads - ofProducers * ScheduleAttr::numProducers) / consumers / 8 * 8);
}

/// Registers that a thread takes at least: outputs, scores, their weights, and queries where they stay.
static int64_t getRegistersNeeded(SparseAttendOp op, ScheduleAttr schedule) {
  if (schedule.usesTensorMemory()) // outputs and scores are there
    return 0;
  int64_t groups = schedule.getGroups(op), keys = schedule.getTileKeys();
  constexpr int64_t others = 8, ofRegion = 32, ofMembers = 16, ofNumbers = 32;
  bool hasNumbers = schedule.getStretches(op) == 0;
  return ceilDiv(getValueDim(op), 2 * groups) + keys / groups / 2 + keys / groups / 4 + (schedule.keepsQueries(op) ? ceilDiv(getDim(op), 4) : 0) + others +
         (op.getScore().empty() ? 0 : ofRegion) + (schedule.getOrder() == LoopOrder::union_lists ? ofMembers : 0) + (hasNumbers ? ofNumbers : 0);
}

LoopOrder ssa::getPlainOrder(SparseAttendOp op) {
  auto ignore = [](const Twine &) {};
  return succeeded(ScheduleAttr::verifyOrder(LoopOrder::head_packed, op, ignore)) ? LoopOrder::head_packed : LoopOrder::shared_list;
}

/// Whether a schedule is worth a look: a tile that half of it would not hold, registers that suffice.
static bool isSensible(SparseAttendOp op, ScheduleAttr schedule, TargetAttr target) {
  int64_t rows = schedule.getTileRows(), keys = schedule.getTileKeys(), groups = schedule.getGroups(op);
  int64_t least = schedule.usesTensorMemory() ? 128 : schedule.hasRoles() ? 64 : 16;
  std::optional<int64_t> rowsPerList = ScheduleAttr::getRowsPerList(op);
  bool isOfOneList = schedule.getOrder() == LoopOrder::shared_list || schedule.getOrder() == LoopOrder::head_packed;
  bool isFilled = !isOfOneList || !rowsPerList || rows == least || rows / 2 < *rowsPerList;
  // Groups of warps that share columns have been compared on tiles of 64 rows.
  constexpr int64_t leastKeys = 16, rowsOfGroups = 64;
  // In longer steps of a union fewer entries can be left out: measured a quarter slower.
  constexpr int64_t mostKeysOfUnion = 64;
  if (schedule.getOrder() == LoopOrder::union_lists && keys > mostKeysOfUnion)
    return false;
  return isFilled && (groups == 1 || schedule.getPair() || (keys / groups >= leastKeys && rows == rowsOfGroups)) && getRegistersNeeded(op, schedule) <= getRegisterBound(op, schedule, target);
}

/// Parts of a list that are worth a look: as many as it takes to have a tile for every multiprocessor, and the steps in between.
static SmallVector<int64_t> getSplits(const AttendProblem &problem, TargetAttr target) {
  SmallVector<int64_t> splits = {1};
  int64_t tiles = problem.batch * problem.cells * problem.geometry.queries;
  for (int64_t split = 2; split <= ScheduleAttr::maxSplit && split * tiles <= 2 * target.numSMs(); split *= 2)
    splits.push_back(split);
  return splits;
}

SmallVector<ScheduleAttr> ssa::enumerateSchedules(const AttendProblem &problem, TargetAttr target) {
  SmallVector<ScheduleAttr> found;
  SparseAttendOp op = problem.op;
  auto ignore = [](const Twine &) {};
  bool isNarrow = op.getOutput().getType().getElementType().isBF16();
  auto consider = [&](LoopOrder order, Instruction instruction, int64_t rows, int64_t keys, int64_t stages, int64_t split, bool pair) {
    if (rows % (instruction == Instruction::tcgen05 ? 128 : instruction == Instruction::wgmma ? 64 : 16))
      return;
    bool hasPairs = order == getPlainOrder(op) && instruction == Instruction::tcgen05 && rows == 128;
    if (pair && (!hasPairs || keys % (2 * ScheduleAttr::pieceOfPair) != 0))
      return;
    if (stages < (pair ? 1 : 2))
      return;
    Partials partials = order == LoopOrder::key_outer && isNarrow ? Partials::bf16 : Partials::f32;
    auto schedule = ScheduleAttr::get(op.getContext(), order, instruction, rows, keys, stages, split, partials, pair);
    if (succeeded(schedule.verifyFor(op, target, ignore)) && isSensible(op, schedule, target))
      found.push_back(withBestPolynomials(problem, schedule, target));
  };
  // Of schedules that are predicted alike the first is chosen: a third stage makes steps of a union 2 to 3 % faster.
  constexpr int64_t stagesOfUnion[] = {3, 2, 4, 1}, stagesOfOthers[] = {2, 3, 4, 1}; // one is for pairs
  for (LoopOrder order : {getPlainOrder(op), LoopOrder::union_lists, LoopOrder::key_outer})
    for (int64_t split : order == getPlainOrder(op) ? getSplits(problem, target) : SmallVector<int64_t>{1})
      for (uint64_t instruction = 0; instruction <= getMaxEnumValForInstruction(); ++instruction)
        for (int64_t rows : {16, 32, 64, 128, 192, 256})
          for (int64_t keys : {16, 32, 64, 128})
            for (int64_t stages : order == LoopOrder::union_lists ? stagesOfUnion : stagesOfOthers)
              for (bool pair : {false, true})
                consider(order, Instruction(instruction), rows, keys, stages, split, pair);
  return found;
}

/// The schedule for tensor memory; none if its tiles do not fit. A tile has 128 rows or two times as many.
static ScheduleAttr getTensorSchedule(SparseAttendOp op, LoopOrder order, TargetAttr target) {
  bool isTall = ScheduleAttr::getRowsPerList(op).value_or(256) >= 256 && std::max(getDim(op), getValueDim(op)) <= 128 && op.getScore().empty();
  auto make = [&](int64_t keys, int64_t stages) {
    return ScheduleAttr::get(op.getContext(), order, Instruction::tcgen05, isTall ? 256 : 128, keys, stages, /*split=*/1, Partials::f32, /*pair=*/false);
  };
  // Outputs that one block would have to make in parts, with scores for each, a pair makes at once.
  auto pair = ScheduleAttr::get(op.getContext(), order, Instruction::tcgen05, 128, /*tile_keys=*/128, /*stages=*/1, /*split=*/1, Partials::f32, /*pair=*/true);
  if (getValueDim(op) > 256 && ScheduleAttr::getRowsPerList(op).value_or(128) >= 128 && succeeded(pair.verifyFor(op, target, [](const Twine &) {})))
    return pair;
  // The most keys a step for which two stages fit; more stages where there is room.
  for (int64_t keys : {64, 32, 16}) {
    ScheduleAttr best = make(keys, 2);
    if (best.getSharedBytes(op) > target.sharedMemoryBytes())
      continue;
    for (int64_t stages : {3, 4})
      if (ScheduleAttr more = make(keys, stages);
          more.getSharedBytes(op) <= target.sharedMemoryBytes() && more.getBlocksPerSM(op, target) >= best.getBlocksPerSM(op, target))
        best = more;
    return best;
  }
  return {};
}

/// Tall tiles read keys and values for more rows, long steps synchronise less often; rows that are not there cost as much as others, and so do
/// steps that large blocks do not fill.
ScheduleAttr ssa::getMeasuredSchedule(SparseAttendOp op, TargetAttr target) {
  if (ScheduleAttr tensor = target.hasTCGen05() ? getTensorSchedule(op, getPlainOrder(op), target) : ScheduleAttr()) {
    AssumedSizes sizes{Assumptions()}; // a step is the same at any
    return withBestPolynomials(AttendProblem(op, sizes), tensor, target);
  }
  int64_t widest = std::max(getDim(op), getValueDim(op));
  Instruction instruction = target.hasWGMMA() ? Instruction::wgmma : Instruction::mma_sync;
  int64_t rowsPerList = ScheduleAttr::getRowsPerList(op).value_or(128);
  auto make = [&](Instruction instruction, int64_t rows, int64_t keys, int64_t stages) {
    return ScheduleAttr::get(op.getContext(), getPlainOrder(op), instruction, rows, keys, stages, /*split=*/1, Partials::f32, /*pair=*/false);
  };
  auto schedule = [&](int64_t rows, int64_t keys, int64_t stages) { return make(instruction, rows, keys, stages); };
  // A list of few rows gets one warp: many blocks fit, and each goes its own way. Wider heads would not leave registers for that.
  constexpr int64_t rowsOfWarp = 16;
  if (rowsPerList <= rowsOfWarp && widest <= 128)
    return make(Instruction::mma_sync, rowsOfWarp, /*tile_keys=*/16, /*stages=*/4);
  // Keys of such width leave room for few; groups of warps share the columns of the output.
  if (widest > 256)
    return schedule(64, op.valuesAreKeys() ? 64 : 32, 2);
  bool isTall = instruction == Instruction::wgmma && rowsPerList >= 128;
  // A step of 128 keys needs the registers that wider heads take for outputs, and score regions for what they compute with.
  int64_t keysOfTall = widest <= 128 && op.getScore().empty() ? 128 : 64;
  ScheduleAttr tall = schedule(128, keysOfTall, 2), longer = schedule(128, keysOfTall, 3);
  // Blocks of lists come from anywhere, later than those of a range; there is room for a third stage beside queries in registers.
  if (isTall && keysOfTall == 128 && ScheduleAttr::getRowsPerList(op) && longer.keepsQueries(op) && longer.getSharedBytes(op) <= target.sharedMemoryBytes())
    return longer;
  if (isTall && tall.getSharedBytes(op) <= target.sharedMemoryBytes())
    return tall;
  ScheduleAttr three = schedule(64, 64, 3), two = schedule(64, 64, 2);
  // A third stage hides more latency, but not more than a second block on the multiprocessor.
  return three.getBlocksPerSM(op, target) >= two.getBlocksPerSM(op, target) && three.getSharedBytes(op) <= target.sharedMemoryBytes() ? three : two;
}
