//===- PredictAttend.cpp - Times of attention -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The constants were set on the H200's figures of docs/kernels.md; docs/explain.md compares them. A step of a kernel is a chain: scores,
// weights, products of values, so that its time is that of its products and something more.
//
//===----------------------------------------------------------------------===//

#include "ssa/Model/Attend.h"
#include <cmath>

using namespace mlir;
using namespace mlir::ssa;

namespace {

constexpr double microsecond = 1e-6;
/// What a step of a kernel with roles takes besides its products: waiting, and a part of the exponentials that nothing hides.
constexpr double stepSeconds = 0.32 * microsecond, exposedExponentials = 0.3;
/// The waiting where a block has one warpgroup that multiplies: it grows with the keys of the step, and is longer if no other block is there.
constexpr double loneSeconds[] = {0.30 * microsecond, 0.17 * microsecond}, loneKeySeconds[] = {0.0018 * microsecond, 0.0013 * microsecond};
/// What a step of a kernel with tensor memory is taken to wait for.
constexpr double tensorStepSeconds = 0.1 * microsecond;
/// What looking up and copying a key takes where steps are no boxes of neighbours.
constexpr double gatherKeySeconds = 0.0023 * microsecond;
/// What meeting costs for each group of warps that shares the columns of outputs.
constexpr double meetSeconds = 0.33 * microsecond;
/// What an item costs besides its steps.
constexpr double itemSeconds = 1.0 * microsecond;
/// In the order key-outer: what gathering the rows of an item costs, at most, and what turning lists around costs for each number.
constexpr double gatherItemSeconds = 0.3 * microsecond, gatherRowSeconds = 0.011 * microsecond, mostGatherSeconds = 1.75 * microsecond;
constexpr double transposeSeconds = 0.4e-9;
/// Kernels without roles: what a block waits for in a step, what a key of 256 columns takes, of which its warps share the copies, and what it
/// waits for where nothing but the next step is on its way. What its warps wait for one another. The share of its rate that `mma.sync` reaches.
constexpr double warpStepSeconds = 0.55 * microsecond, meetWarpsSeconds = 0.18 * microsecond, warpKeySeconds = 0.0065 * microsecond, copyKeySeconds = 0.0145 * microsecond;
constexpr double twoStagesSeconds = 0.7 * microsecond, mmaShare = 0.565;
/// The share of the second-level cache's rate that copies of rows by threads reach.
constexpr double rowShare = 0.77;

/// A kernel in numbers: items, steps of each, and what a step does.
struct Loop {
  double items = 0, steps = 0;
  double flop = 0, exponentials = 0, loaded = 0, shared = 0; // of a step
  double blocksPerSM = 1;
  bool isGathered = false; // the keys of a step are no neighbours
  double itemSeconds = ::itemSeconds;
  double written = 0; // bytes of partial outputs
};

} // namespace

static double padTo(int64_t multiple, int64_t n) { return double(ssa::ceilDiv(n, multiple) * multiple); }

/// Bytes of shared memory that the products of a step read.
static double getOperandBytes(const AttendProblem &p, ScheduleAttr s, int64_t groups) {
  double dim = padTo(16, p.dim), valueDim = padTo(16, p.valueDim), keys = s.getTileKeys();
  if (s.usesTensorMemory()) // weights come from tensor memory
    return s.getTileRows() / 128.0 * (128 * dim + keys * (dim + valueDim)) * p.elementBytes;
  if (!s.hasRoles()) // each warp reads all keys and values
    return s.getTileRows() / 16.0 * keys * (dim + valueDim) * p.elementBytes;
  double scores = (s.keepsQueries(p.op) ? 0 : groups * 64 * dim) + keys * dim;
  double values = (groups > 1 ? groups * 64 * keys : 0) + keys * valueDim;
  return s.getTileRows() / 64.0 * (scores + values) * p.elementBytes;
}

static double getPartialBytes(const AttendProblem &p, ScheduleAttr s) { return p.valueDim * (s.getPartials() == Partials::f32 ? 4 : 2) + 4; }

/// Rows of queries, one for each that an output over some keys is made of.
static double getPartialRows(const AttendProblem &p, ScheduleAttr s) {
  double rows = double(p.batch) * p.geometry.queries * p.heads;
  if (s.getOrder() == LoopOrder::key_outer)
    return rows * p.getKeysPerList(p.queryBlock) / p.keyBlock;
  return s.getSplit() > 1 ? rows * s.getSplit() : 0;
}

/// Items are tiles of rows that have a key block in common: of the lists whose outputs are there at a time.
static void setKeyOuterItems(const AttendProblem &p, ScheduleAttr s, Loop &loop) {
  constexpr double mostBytes = 1 << 30, mostLists = 8192;
  double lists = double(ssa::ceilDiv(p.geometry.queries, p.queryBlock)), rowsOfList = double(p.queryBlock * p.getGroup());
  double together = std::clamp(mostBytes / (rowsOfList * p.cells * p.width * getPartialBytes(p, s)), 1.0, std::min(mostLists, std::max(lists, 1.0)));
  double blocks = std::max(p.getAllowedKeys(1) / p.keyBlock, 1.0), perList = p.getKeysPerList(p.queryBlock) / p.keyBlock;
  double rowsOfBlock = together * perList * rowsOfList / blocks;
  loop.items = p.batch * p.cells * (lists / together) * blocks * std::ceil(rowsOfBlock / s.getTileRows());
  loop.steps = std::ceil(double(p.keyBlock) / s.getTileKeys());
  // What other blocks on the multiprocessor gather takes its time as well.
  loop.itemSeconds = loop.blocksPerSM * std::min(gatherItemSeconds + gatherRowSeconds * s.getTileRows(), mostGatherSeconds);
}

static Loop getLoop(const AttendProblem &p, ScheduleAttr s, TargetAttr target) {
  Loop loop;
  SparseAttendOp op = p.op;
  int64_t rows = s.getTileRows(), keys = s.getTileKeys(), group = p.getGroup();
  // Where all queries share one list the tile is filled with queries.
  int64_t lists = s.getListsOfTile(op);
  int64_t queries = p.getRowsPerList() ? lists * p.queryBlock : std::max<int64_t>(rows / group, 1);
  int64_t tiles = ceilDiv(queries * group, rows);
  loop.items = double(p.batch) * p.cells * ceilDiv(p.geometry.queries, queries) * tiles;
  int64_t sharing = p.getRowsPerList() ? queries : std::max<int64_t>(std::min(queries, ceilDiv(rows, group)), 1);
  double perItem = (s.getOrder() == LoopOrder::union_lists ? p.getUnion(lists) : p.getKeysPerList(sharing)) / keys;
  loop.steps = p.hasLists ? std::ceil(perItem) : perItem + 0.5; // ranges begin anywhere in a step
  loop.blocksPerSM = s.getBlocksPerSM(op, target);
  if (s.getOrder() == LoopOrder::key_outer)
    setKeyOuterItems(p, s, loop);
  if (s.getSplit() > 1) {
    loop.items *= s.getSplit();
    loop.steps = std::ceil(loop.steps / s.getSplit());
  }
  loop.written = getPartialRows(p, s) * getPartialBytes(p, s);
  loop.isGathered = s.getStretches(op) == 0;
  loop.items *= s.getValueParts(op);
  double valueColumns = s.usesTensorMemory() ? s.getValueColumns(op) : padTo(16, p.valueDim);
  loop.flop = rows * keys * 2.0 * (padTo(16, p.dim) + valueColumns);
  loop.exponentials = double(rows) * keys;
  loop.loaded = keys * (padTo(64, p.dim) + (op.valuesAreKeys() ? 0 : padTo(64, p.valueDim))) * p.elementBytes;
  loop.shared = loop.loaded + getOperandBytes(p, s, s.getGroups(op));
  return loop;
}

/// Bytes that come from and go to memory once.
static double getMemoryBytes(const AttendProblem &p) {
  double queries = double(p.batch) * p.geometry.queries, keys = p.getAllowedKeys(std::max<int64_t>(p.geometry.queries, 1));
  if (p.hasLists)
    keys = std::min(keys, (p.isShared ? 1.0 : double(ceilDiv(p.geometry.queries, p.queryBlock))) * p.getKeysPerList(p.queryBlock));
  keys *= p.batch;
  SparseAttendOp op = p.op;
  double columns = p.dim + (op.valuesAreKeys() ? 0 : p.valueDim), keyHeads = op.getKey().getType().getDimSize(1);
  double lists = p.getRowsPerList() ? queries / p.queryBlock * p.cells * p.width * 4 : 0;
  return (queries * p.heads * (p.dim + p.valueDim) + keys * keyHeads * columns) * p.elementBytes + queries * p.heads * 4 + lists;
}

static UnitTimes getUnits(const AttendProblem &p, const Loop &loop, double matrixRate, const ChipRates &rates, double numSMs) {
  double steps = loop.items * loop.steps, cycles = rates.clock * numSMs;
  UnitTimes units;
  units.matrix = steps * loop.flop / matrixRate;
  units.special = steps * loop.exponentials / (ChipRates::exponentialsPerCycle * cycles);
  units.shared = steps * loop.shared / (ChipRates::sharedBytesPerCycle * cycles);
  units.l2 = steps * loop.loaded / rates.l2;
  units.memory = (getMemoryBytes(p) + loop.written) / rates.memory;
  return units;
}

/// The time of a step of a block with roles.
static double getRoleStepSeconds(const Loop &loop, ScheduleAttr s, int64_t groups, const UnitTimes &ofStep) {
  // Products and softmax are roles of their own; what a step waits for besides has not been measured.
  if (s.usesTensorMemory())
    return ofStep.longest() + tensorStepSeconds;
  double keys = s.getTileKeys(), waiting = stepSeconds;
  if (bool hasCompany = loop.blocksPerSM > 1; s.getTileRows() * groups == 64)
    waiting = loneSeconds[hasCompany] + loneKeySeconds[hasCompany] * keys;
  return std::max(ofStep.matrix, ofStep.shared) + waiting + (loop.isGathered ? gatherKeySeconds * keys : 0) + exposedExponentials * ofStep.special +
         (groups > 1 ? groups * meetSeconds : 0);
}

/// The time in which every block on a multiprocessor makes a step.
static double getStepSeconds(const Loop &loop, ScheduleAttr s, int64_t groups, const UnitTimes &ofStep, const ChipRates &rates, double numSMs) {
  double blocks = loop.blocksPerSM;
  if (s.hasRoles())
    return blocks * getRoleStepSeconds(loop, s, groups, ofStep); // warpgroups take turns at the tensor cores
  double warps = s.getTileRows() / 16.0 * groups, keys = s.getTileKeys();
  double width = loop.flop / (s.getTileRows() * keys) / 512; // in 256 columns of keys and values
  double chain = warpStepSeconds + (warps > 1 ? meetWarpsSeconds : 0) + keys * width * (warpKeySeconds + copyKeySeconds / warps) + (s.getStages() == 2 ? twoStagesSeconds / warps : 0);
  return std::max({chain, blocks * loop.flop / (mmaShare * rates.mmaSync / numSMs), blocks * ofStep.l2 / rowShare});
}

Prediction ssa::predictAttend(const AttendProblem &p, ScheduleAttr s, TargetAttr target) {
  const ChipRates &rates = ChipRates::of(target);
  double numSMs = target.numSMs(), matrixRate = s.getInstruction() == Instruction::mma_sync ? rates.mmaSync : rates.matrix;
  Loop loop = getLoop(p, s, target);
  Prediction result;
  result.units = getUnits(p, loop, matrixRate, rates, numSMs);
  Loop one = loop;
  one.items = numSMs; // a step on every multiprocessor
  one.steps = 1;
  UnitTimes ofStep = getUnits(p, one, matrixRate, rates, numSMs);
  ofStep.memory = 0;
  SparseAttendOp op = p.op;
  double step = getStepSeconds(loop, s, s.getGroups(op), ofStep, rates, numSMs);
  double rounds = std::max(loop.items / (numSMs * loop.blocksPerSM), loop.items > 0 ? 1.0 : 0.0);
  double chain = rounds * (loop.steps * step + loop.itemSeconds);
  result.seconds = std::max(chain, result.units.longest()) + launchSeconds;
  constexpr double mostly = 0.7;
  result.binds = result.units.longest() > mostly * result.seconds ? result.units.binding() : StringRef("latency");
  return result;
}

/// What the order needs besides. Lists are united by kernels that sort, so many times reading and writing what they make. Partial outputs are
/// joined at the rate of a copy, nearly.
static double getOtherSeconds(const AttendProblem &p, ScheduleAttr s, const ChipRates &rates) {
  double numbers = double(p.batch) * p.cells * ceilDiv(p.geometry.queries, p.queryBlock) * p.width;
  constexpr double bytes = 16, times = 4, joinShare = 0.85;
  double seconds = 0;
  if (s.getOrder() == LoopOrder::union_lists)
    seconds += numbers * bytes * times / rates.memory + 2 * launchSeconds;
  if (s.getOrder() == LoopOrder::key_outer)
    seconds += numbers * transposeSeconds + 4 * launchSeconds;
  if (double rows = getPartialRows(p, s); rows > 0)
    seconds += rows * getPartialBytes(p, s) / (joinShare * rates.memory) + launchSeconds;
  return seconds;
}

RatedSchedule ssa::rateSchedule(const AttendProblem &problem, ScheduleAttr schedule, TargetAttr target) {
  RatedSchedule rated{schedule, predictAttend(problem, schedule, target), 0};
  rated.prediction.seconds += getOtherSeconds(problem, schedule, ChipRates::of(target));
  return rated;
}

SmallVector<RatedSchedule> ssa::rateSchedules(const AttendProblem &problem, TargetAttr target) {
  SmallVector<RatedSchedule> rated;
  for (auto [number, schedule] : llvm::enumerate(enumerateSchedules(problem, target))) {
    rated.push_back(rateSchedule(problem, schedule, target));
    rated.back().number = number;
  }
  // Equal times stand in the order of the enumeration.
  llvm::sort(rated, [&](const RatedSchedule &a, const RatedSchedule &b) { return std::tie(a.prediction.seconds, a.number) < std::tie(b.prediction.seconds, b.number); });
  return rated;
}

std::optional<Prediction> ssa::predictDense(SparseAttendOp op, AssumedSizes &sizes, TargetAttr target) {
  if (op.getSelections().empty() || op.isGathered())
    return std::nullopt;
  SparseAttendOp dense = op.clone();
  dense.getSelectionsMutable().clear();
  SmallVector<RatedSchedule> rated = rateSchedules(AttendProblem(dense, sizes), target);
  dense.erase();
  return rated.empty() ? std::nullopt : std::optional(rated.front().prediction);
}
