//===- SSASchedule.cpp - Schedules of kernels -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "ssa/IR/AttendJoin.h"
#include "ssa/IR/Geometry.h"
#include "llvm/Support/MathExtras.h"
#include <limits>
#include <numeric>

using namespace mlir;
using namespace mlir::ssa;

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError, LoopOrder order, Instruction instruction, int64_t tileRows,
                                   int64_t tileKeys, int64_t stages, int64_t split, Partials partials, bool pair, int64_t polynomials) {
  int64_t rows = instruction == Instruction::tcgen05 ? 128 : instruction == Instruction::wgmma ? 64 : 16;
  if (tileRows < rows || tileRows > 256 || tileRows % rows != 0)
    return emitError() << "expected 'tile_rows' to be a multiple of " << rows << " up to 256, but got " << tileRows;
  if (tileKeys < 16 || tileKeys > 256 || tileKeys % 16 != 0)
    return emitError() << "expected 'tile_keys' to be a multiple of 16 up to 256, but got " << tileKeys;
  if (int64_t least = pair ? 1 : 2; stages < least || stages > 8)
    return emitError() << "expected 'stages' to be in " << least << " .. 8, but got " << stages;
  if (split < 1 || split > maxSplit)
    return emitError() << "expected 'split' to be in 1 .. " << maxSplit << ", but got " << split;
  if (split > 1 && order != LoopOrder::shared_list && order != LoopOrder::head_packed)
    return emitError() << "expected 'split' with 'order = " << stringifyLoopOrder(order) << "' to be 1, but got " << split;
  if (partials != Partials::f32 && order != LoopOrder::key_outer)
    return emitError() << "expected 'partials' with 'order = " << stringifyLoopOrder(order) << "' to be f32, but got " << stringifyPartials(partials);
  if (pair && (instruction != Instruction::tcgen05 || tileRows != 2 * rowsOfPair || tileKeys % (2 * pieceOfPair) != 0))
    return emitError() << "expected with 'pair' 'instruction' to be tcgen05, 'tile_rows' 128 and 'tile_keys' a multiple of 128, but got "
                       << stringifyInstruction(instruction) << ", " << tileRows << " and " << tileKeys;
  if (pair && order != LoopOrder::shared_list && order != LoopOrder::head_packed)
    return emitError() << "expected 'order' with 'pair' to be shared_list or head_packed, but got " << stringifyLoopOrder(order);
  if (polynomials < 0 || polynomials > maxPolynomials)
    return emitError() << "expected 'polynomials' to be in 0 .. " << maxPolynomials << ", but got " << polynomials;
  if (polynomials > 0 && instruction != Instruction::tcgen05)
    return emitError() << "expected 'polynomials' with 'instruction = " << stringifyInstruction(instruction) << "' to be 0, but got " << polynomials;
  return success();
}

bool SparseAttendOp::valuesAreKeys() {
  if (getValue() == getKey())
    return true;
  auto slice = getValue().getDefiningOp<tensor::ExtractSliceOp>();
  auto isAll = [](ArrayRef<int64_t> values, int64_t value) { return llvm::all_of(values, [=](int64_t v) { return v == value; }); };
  // Sizes are those of the keys but for the last: kernels require it of all keys and values.
  return slice && slice.getSource() == getKey() && slice.getType().getRank() == slice.getSourceType().getRank() &&
         isAll(slice.getStaticOffsets(), 0) && isAll(slice.getStaticStrides(), 1);
}

int64_t SparseAttendOp::getCells() {
  int64_t keyHeads = getKey().getType().getDimSize(1);
  return getSelections().empty() ? keyHeads : std::lcm(keyHeads, cast<SelectionType>(getSelections().front().getType()).getHeads());
}

static int64_t getDim(SparseAttendOp op) { return op.getQuery().getType().getDimSize(3); }
static int64_t getValueDim(SparseAttendOp op) { return op.getOutput().getType().getDimSize(3); }

//===----------------------------------------------------------------------===//
// What an order is for
//===----------------------------------------------------------------------===//

/// The selection of an op that has one.
static std::optional<SelectionType> getSelection(SparseAttendOp op) {
  if (op.getSelections().empty())
    return std::nullopt;
  return cast<SelectionType>(op.getSelections().front().getType());
}

std::optional<int64_t> ScheduleAttr::getRowsPerList(SparseAttendOp op) {
  std::optional<SelectionType> selection = getSelection(op);
  if (!selection || selection->getDimSize(2) == 1)
    return std::nullopt;
  return selection->getQueryBlock() * (op.getQuery().getType().getDimSize(1) / op.getCells());
}

int64_t ScheduleAttr::getListsOfTile(SparseAttendOp op) const {
  std::optional<int64_t> rowsPerList = getRowsPerList(op);
  return getOrder() == LoopOrder::union_lists && rowsPerList ? std::max<int64_t>(getTileRows() / *rowsPerList, 1) : 1;
}

int64_t ScheduleAttr::getMemberWords(SparseAttendOp op) const {
  constexpr int64_t bits = 32;
  return getOrder() == LoopOrder::union_lists ? ceilDiv(getListsOfTile(op), bits) : 0;
}

LogicalResult ScheduleAttr::verifyOrder(LoopOrder order, SparseAttendOp op, function_ref<void(const Twine &)> reason) {
  if (order == LoopOrder::shared_list)
    return success();
  auto refuse = [&](const Twine &need, const Twine &found) {
    reason("'order = " + stringifyLoopOrder(order) + "' needs " + need + ", but " + found);
    return failure();
  };
  if (op.getSelections().empty())
    return refuse("lists of keys", "there are none");
  if (!getRowsPerList(op))
    return refuse("lists that differ between queries", "all queries share one");
  int64_t queryBlock = getSelection(op)->getQueryBlock();
  if (order == LoopOrder::head_packed)
    return queryBlock == 1 ? success() : refuse("a list for every query", "lists are for " + Twine(queryBlock) + " queries");
  if (op.isGathered())
    return refuse("keys that lists share", "they are gathered for every list");
  if (getSelection(op)->getWidth() == 0)
    return refuse("lists with numbers", "they have none");
  return success();
}

LogicalResult ScheduleAttr::verifyFor(SparseAttendOp op, TargetAttr target, function_ref<void(const Twine &)> reason) const {
  auto refuse = [&](const Twine &why) {
    reason(why);
    return failure();
  };
  if (failed(verifyOrder(getOrder(), op, reason)))
    return failure();
  std::string order = ("'order = " + stringifyLoopOrder(getOrder()) + "'").str(), chip = target.getChip().str();
  if (getInstruction() == Instruction::wgmma && !target.hasWGMMA())
    return refuse("'instruction = wgmma' requires sm_90a, but the target is '" + chip + "'; use 'mma_sync'");
  if (usesTensorMemory() && !target.hasTCGen05())
    return refuse("'instruction = tcgen05' requires sm_100a, sm_100f, sm_103a or sm_110a, but the target is '" + chip + "'; use 'mma_sync'");
  if (getPair() && (!op.valuesAreKeys() || op.isGathered() || getDim(op) % pieceOfPair != 0 || getValueDim(op) % 128 != 0))
    return refuse("'pair' needs values that are the first columns of keys that are not gathered, and head dims that are multiples of 64, of values of 128, but they are " +
                  Twine(getDim(op)) + " and " + Twine(getValueDim(op)));
  if (getPair() && AttendJoin::of(op))
    return refuse("'pair' is not for attention whose kernel writes the '" + Twine(AttendJoin::of(op)->op->getName().getStringRef()) + "' that it is part of; leave 'pair' out");
  if (getValueParts(op) > 1 && getOrder() == LoopOrder::key_outer)
    return refuse(order + " with 'instruction = tcgen05' needs values of up to 256 columns, but they have " + Twine(getValueDim(op)));
  if (takesTurns(op) && getStages() != 2)
    return refuse("'" + attrName() + "' needs 'stages' to be 2, as two groups of warps have a step each of keys that values are part of, but it is " + Twine(getStages()));
  if (int64_t columns = getTensorColumns(op), most = 512; columns > most)
    return refuse("'" + attrName() + "' needs " + Twine(columns) + " columns of tensor memory, but " + chip + " has " + Twine(most) +
                  "; lower 'tile_keys' or 'tile_rows'");
  if (int64_t multiple = getGroups(op) * (getInstruction() == Instruction::mma_sync ? 16 : 8); getGroups(op) > 1 && getTileKeys() % multiple != 0)
    return refuse("'" + attrName() + "' needs 'tile_keys' to be a multiple of " + Twine(multiple) + ", as " + Twine(getGroups(op)) +
                  " groups of warps share outputs of " + Twine(getValueDim(op)) + " columns, but it is " + Twine(getTileKeys()));
  if (std::optional<SelectionType> selection = getSelection(op)) {
    int64_t lists = getListsOfTile(op), width = selection->getWidth(), keyBlock = selection->getKeyBlock();
    if (getOrder() == LoopOrder::union_lists && lists < 2)
      return refuse(order + " needs two lists in a tile, but one has " + Twine(*getRowsPerList(op)) + " rows and 'tile_rows' is " +
                    Twine(getTileRows()));
    if (getOrder() == LoopOrder::union_lists && lists * width > maxSortedNumbers)
      return refuse(order + " sorts up to " + Twine(maxSortedNumbers) + " numbers, but " + Twine(lists) + " lists of a tile have " +
                    Twine(lists * width) + "; lower 'tile_rows'");
    if (getOrder() == LoopOrder::key_outer && keyBlock % getTileKeys() != 0)
      return refuse(order + " needs blocks of whole steps, but 'tile_keys' is " + Twine(getTileKeys()) + " and blocks have " + Twine(keyBlock) +
                    (keyBlock == 1 ? " key" : " keys"));
  }
  if (getPartials() == Partials::bf16 && !op.getOutput().getType().getElementType().isBF16())
    return refuse("'partials = bf16' is for outputs of bf16: others are more accurate");
  constexpr int64_t maxThreads = 1024;
  if (int64_t threads = getThreads(op); threads > maxThreads)
    return refuse("'" + attrName() + "' needs " + Twine(threads) + " threads in a block, but " + chip + " has " + Twine(maxThreads) +
                  "; lower 'tile_rows'");
  if (int64_t needed = getSharedBytes(op); needed > target.sharedMemoryBytes())
    return refuse("'" + attrName() + "' needs " + Twine(needed) + " bytes of shared memory, but " + chip + " has " +
                  Twine(target.sharedMemoryBytes()) + "; lower 'stages', 'tile_keys' or 'tile_rows'");
  return success();
}

//===----------------------------------------------------------------------===//
// What a block takes
//===----------------------------------------------------------------------===//

int64_t ScheduleAttr::getGroups(SparseAttendOp op) const {
  if (usesTensorMemory()) // in a pair half of the columns are in half of the lanes
    return getPair() ? 2 : 1;
  // A thread holds a 64th of the output of 16 rows, beside scores and weights.
  int64_t most = hasRoles() ? 256 : 128;
  return getValueDim(op) <= 256 ? 1 : ceilDiv(getValueDim(op), most);
}

int64_t ScheduleAttr::getValueParts(SparseAttendOp op) const {
  constexpr int64_t most = 256; // columns of one product
  return usesTensorMemory() && !getPair() ? ceilDiv(getValueDim(op), most) : 1;
}

int64_t ScheduleAttr::getValueColumns(SparseAttendOp op) const { return ceilDiv(getValueDim(op) / getValueParts(op), 16) * 16; }

/// Columns that are allocated for so many: a power of two.
static int64_t getAllocatedColumns(int64_t columns) { return std::max<int64_t>(llvm::PowerOf2Ceil(columns), 32); }

/// Outputs and weights, two of which share a column, and so many tiles of scores.
static int64_t getTensorColumns(ScheduleAttr schedule, SparseAttendOp op, int64_t scoreSlots) {
  constexpr int64_t lanes = 128;
  if (schedule.getPair()) // half of the columns in half of the lanes each; weights are in shared memory
    return getAllocatedColumns((schedule.getValueColumns(op) + schedule.getTileKeys() * scoreSlots) / 2);
  int64_t ofLanes = schedule.getValueColumns(op) + schedule.getTileKeys() * scoreSlots + schedule.getTileKeys() / 2 * schedule.getWeightSlots();
  return getAllocatedColumns(schedule.getTileRows() / lanes * ofLanes);
}

int64_t ScheduleAttr::getScoreSlots(SparseAttendOp op) const {
  // Scores are in registers soon, but a second tile is mostly there anyway.
  return ::getTensorColumns(*this, op, 2) == ::getTensorColumns(*this, op, 1) ? 2 : 1;
}

int64_t ScheduleAttr::getTensorColumns(SparseAttendOp op) const { return usesTensorMemory() ? ::getTensorColumns(*this, op, getScoreSlots(op)) : 0; }

bool ScheduleAttr::takesTurns(SparseAttendOp op) const { return getInstruction() == Instruction::wgmma && op.valuesAreKeys() && getGroups(op) == 2; }

/// Columns of a tile as it lies in memory: panels of 64 columns of 16 bits are whole.
static int64_t getPaddedColumns(int64_t columns) { return ceilDiv(columns, 64) * 64; }

bool ScheduleAttr::keepsWeightsInKeys(SparseAttendOp op) const {
  int64_t columns = getPaddedColumns(getDim(op)) - getPaddedColumns(getValueDim(op));
  return getTileRows() == getTileKeys() && getPaddedColumns(getTileKeys()) <= columns;
}

int64_t ScheduleAttr::getStretches(SparseAttendOp op) const {
  constexpr int64_t most = 4, shortest = 16; // more places, or places of fewer keys, are not looked up faster than those of rows
  if (op.isGathered())
    return 0;
  if (std::optional<SelectionType> selection = getSelection(op)) {
    int64_t block = selection->getKeyBlock(), keys = getTileKeys();
    if (block % keys == 0)
      return 1;
    return hasRoles() && keys % block == 0 && block % 8 == 0 && block >= shortest && keys / block <= most ? keys / block : 0;
  }
  // The keys of a short sink and those of a window share a step.
  MaskAttr mask = op.getMask().value_or(nullptr);
  bool hasSink = mask && mask.getWindow() && mask.getSink() && op.getBlocksOrTokens().isTokens();
  return hasRoles() && hasSink && getTileKeys() % (2 * shortest) == 0 && mask.getSink() <= getTileKeys() / 2 ? 2 : 1;
}

bool ScheduleAttr::keepsQueries(SparseAttendOp op) const {
  if (usesTensorMemory() || getGroups(op) > 1)
    return false;
  if (!hasRoles())
    return true;
  constexpr int64_t shortStep = 64, longStep = 128, widest = 128;
  if (getTileKeys() > longStep || std::max(getDim(op), getValueDim(op)) > widest)
    return false;
  if (getTileKeys() <= shortStep)
    return true;
  // Scores of a long step leave few registers beside queries: none for a score region or a second source of keys, nor for producers that look up single rows.
  if (!op.getScore().empty() || getStretches(op) == 0)
    return false;
  std::optional<AttendJoin> join = AttendJoin::of(op);
  return !join || join->attends.size() == 1;
}

int64_t ScheduleAttr::getQuerySlots(SparseAttendOp op) const {
  if (usesTensorMemory()) // products of scores read the queries, and end long before an item does
    return 1;
  // Where tiles see few keys each, queries are what has to come in time; a long ring of keys takes the room of a second tile.
  if (getOrder() == LoopOrder::key_outer && hasRoles() && getDim(op) <= 128 && getTileRows() <= 192 && getStages() * getTileKeys() <= 128)
    return 3;
  if (getOrder() != LoopOrder::key_outer && keepsQueries(op)) // their slot is free as soon as an item begins
    return 1;
  return hasRoles() && getDim(op) <= 128 && getStages() * getTileKeys() <= 256 ? 2 : 1;
}

int64_t ScheduleAttr::getThreads(SparseAttendOp op) const {
  if (usesTensorMemory()) // a thread for the softmax of a row, and one for its output
    return 2 * getTileRows() + numProducers + numIssuers;
  return 2 * getTileRows() * getGroups(op) + (hasRoles() ? numProducers : 0);
}

/// Of a block of a pair: its rows of the queries, weights, half of the keys of steps and half of the columns of their values, some of which lie in one place;
/// which rows to gather, numbers, maxima, factors.
static int64_t getSharedBytesOfPair(ScheduleAttr schedule, SparseAttendOp op) {
  constexpr int64_t rows = ScheduleAttr::rowsOfPair, piece = ScheduleAttr::pieceOfPair;
  int64_t keys = schedule.getTileKeys(), stages = schedule.getStages(), dim = getDim(op);
  int64_t inPlace = ScheduleAttr::getColumnsInPlace(getValueDim(op)), ofKeys = dim - 2 * inPlace, ofValues = getValueDim(op) / 2 - inPlace;
  int64_t steps = (stages + 1) * 2 * keys * inPlace + stages * (keys * ofKeys + 2 * keys * ofValues), lists = (2 + stages) * 4 * keys;
  int64_t others = 2 * 4 * rows + 4 * rows + 4 * 16;
  int64_t slots = (stages + 1) * 2 + stages * (ofKeys / piece + (ofValues > 0 ? 2 : 0));
  int64_t barriers = 24 * (slots + 3 + schedule.getScoreSlots(op)) + (2 + stages) * 16;
  return rows * 2 * dim + steps + rows * 2 * keys + lists + others + barriers;
}

/// How many parts the kernel joins of what it may be part of.
static int64_t getJoinedParts(SparseAttendOp op) {
  std::optional<AttendJoin> join = AttendJoin::of(op);
  return join ? join->getParts().size() / 2 : 1;
}

int64_t ScheduleAttr::getSharedBytes(SparseAttendOp op) const {
  if (getPair())
    return getSharedBytesOfPair(*this, op);
  auto padded = [](int64_t columns) { return 2 * getPaddedColumns(columns); };
  int64_t rows = getTileRows(), keys = getTileKeys(), slots = getQuerySlots(op), groups = getGroups(op);
  // Every step has the numbers of its keys.
  int64_t step = padded(getDim(op)) + (op.valuesAreKeys() ? 0 : padded(usesTensorMemory() ? getValueColumns(op) : getValueDim(op))) + 4;
  int64_t barriers = hasRoles() ? 16 * (2 * getStages() + slots) + 4 * slots : 0;
  int64_t exchanged = groups > 1 ? rows * (padded(keys) + 8 * groups) : 0;
  if (takesTurns(op)) // maxima and weights of both groups, and what says that they are there; how many steps there are, of two items
    exchanged = 2 * rows * 4 + (keepsWeightsInKeys(op) ? 1 : 2) * rows * padded(keys) + 16 * (4 + getStages()) + 8;
  // Who takes part: of a block of keys, or of every key.
  int64_t members = getMemberWords(op) ? 4 * getMemberWords(op) * (getStretches(op) > 0 ? getStretches(op) : keys) : 0;
  if (usesTensorMemory()) { // rows of factors are handed to those that finish outputs
    constexpr int64_t items = 2; // whose steps and factors are handed over at a time
    barriers = 16 * (2 * getStages() + slots + getScoreSlots(op) + getWeightSlots() + 1 + 2 * items);
    exchanged = items * 4 * (rows * getJoinedParts(op) + 2);
  }
  // Which rows are gathered.
  int64_t found = usesTensorMemory() && getStretches(op) == 0 && !op.isGathered() ? 4 * keys * (op.valuesAreKeys() ? 1 : 2) : 0;
  // Which rows a tile has where keys come first, and a little more.
  int64_t gathered = getOrder() == LoopOrder::key_outer ? slots * 4 * (rows + 8) : 0;
  constexpr int64_t alignment = 16;
  return gathered + found + slots * rows * padded(getDim(op)) + getStages() * (keys * step + members) + exchanged + barriers + 4 * alignment;
}

int64_t ScheduleAttr::getBlocksPerSM(SparseAttendOp op, TargetAttr target) const {
  constexpr int64_t reserved = 1024; // of a block
  int64_t byMemory = target.sharedMemoryBytesPerSM() / (getSharedBytes(op) + reserved);
  // Fewer registers than these are not worth a second block.
  int64_t byRegisters = target.registersPerSM() / (getThreads(op) * 128);
  if (!usesTensorMemory())
    return std::max<int64_t>(std::min(byMemory, byRegisters), 1);
  if (!op.getScore().empty() || AttendJoin::of(op)) // these take registers
    return 1;
  constexpr int64_t columns = 512, threads = 1024; // of a multiprocessor; more threads would not have registers enough
  return std::max<int64_t>(std::min({byMemory, columns / getTensorColumns(op), threads / getThreads(op)}), 1);
}

LogicalResult ChunkAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t bytes, int64_t rows) {
  if (bytes < 1)
    return emitError() << "expected 'bytes' to be at least 1, but got " << bytes;
  if (rows < 1 || rows > std::numeric_limits<int32_t>::max())
    return emitError() << "expected 'rows' to be in 1 .. 2147483647, but got " << rows;
  return success();
}

LogicalResult AgreeingAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t percent, ScheduleAttr) {
  if (percent < 0 || percent > 100)
    return emitError() << "expected 'percent' to be in 0 .. 100, but got " << percent;
  return success();
}

LogicalResult AgreeingAttr::verifyFor(SparseAttendOp op, TargetAttr target, function_ref<void(const Twine &)> reason) const {
  if (op.isGathered() || !ScheduleAttr::getRowsPerList(op) || getSelection(op)->getWidth() == 0) {
    reason("cannot have '" + attrName() + "': it has no lists of numbers that those of neighbouring queries may have, too");
    return failure();
  }
  return getSchedule().verifyFor(op, target, reason);
}

LogicalResult OverlapAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t rows, int64_t lanes) {
  if (rows < 1 || rows > std::numeric_limits<int32_t>::max())
    return emitError() << "expected 'rows' to be in 1 .. 2147483647, but got " << rows;
  if (lanes < 1 || lanes > 16)
    return emitError() << "expected 'lanes' to be in 1 .. 16, but got " << lanes;
  return success();
}

LogicalResult FusedSelectAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t minColumns, int64_t maxColumns, int64_t stretch) {
  constexpr int64_t step = 64, most = 1 << 20;
  if (minColumns < 0 || maxColumns < minColumns || maxColumns > std::numeric_limits<int32_t>::max())
    return emitError() << "expected 'min_columns' and 'max_columns' to be in 0 .. 2147483647 and not to fall, but got " << minColumns << " and "
                       << maxColumns;
  if (stretch < 0 || stretch % step != 0 || stretch > most)
    return emitError() << "expected 'stretch' to be a multiple of " << step << " in 0 .. " << most << ", but got " << stretch;
  return success();
}
