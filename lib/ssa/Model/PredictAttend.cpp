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
/// What looking up and copying a key takes where steps are no boxes of neighbours; without roles a warp looks up all of them.
constexpr double gatherKeySeconds = 0.0023 * microsecond, gatherKeyOfWarpSeconds = 0.015 * microsecond;
/// What meeting costs for each group of warps that shares the columns of outputs.
constexpr double meetSeconds = 0.33 * microsecond;
/// Where a step is one entry of a union, warps whose lists lack it leave out the softmax: what is waited for if no list has it, and more by the
/// share of those that do.
constexpr double leastWaiting = 0.42, waitingOfMembers = 0.43;
/// Warps whose rows are of several lists hide scores one by one: how much longer they wait, for each time that their number of lists doubles; and
/// where a step is several entries.
constexpr double waitingOfMixed = 0.12, waitingOfSeveral = 1.12;
/// What an item costs besides its steps.
constexpr double itemSeconds = 1.0 * microsecond, itemOfUnionSeconds = 2.0 * microsecond;
/// In the order key-outer: what gathering the rows of an item costs, how much more where they are no boxes, what a step waits for more as its products
/// are not under way together, for each warpgroup besides the first, what turning lists around costs for each number, and the share of the memory's
/// rate at which partial outputs are written between other things.
constexpr double gatherItemSeconds = 1.0 * microsecond, gatherSinglySeconds = 0.7 * microsecond, gatherRowSeconds = 0.02 * microsecond, apartSeconds = 0.25 * microsecond;
constexpr double transposeSeconds = 0.05e-9, writeShare = 0.55;
/// Kernels without roles: what a block waits for in a step, what a key of 256 columns takes, of which its warps share the copies, and what it
/// waits for where nothing but the next step is on its way. What its warps wait for one another. The share of its rate that `mma.sync` reaches.
constexpr double warpStepSeconds = 0.46 * microsecond, meetWarpsSeconds = 0.27 * microsecond, warpKeySeconds = 0.0065 * microsecond, copyKeySeconds = 0.0145 * microsecond;
constexpr double twoStagesSeconds = 0.7 * microsecond, mmaShare = 0.565;
/// How much longer such a step takes where lists are united.
constexpr double warpStepOfUnion = 1.12;
/// The share of the second-level cache's rate that copies of rows by threads reach, and what it is where the rows of a head do not fit that cache.
constexpr double rowShare = 0.97, farRowShare = 0.85, nearBytes = 40e6;
/// Uniting lists: bytes that are read and written for each number, and what a number takes for each step of the sort, whose number grows with the
/// square of the logarithm.
constexpr double unionBytes = 64, unionSeconds = 0.35e-12;
/// With tensor memory: instructions of a thread for a weight, and how many more where its exponential is a polynomial, counted in what `ptxas` 13.0 makes of a
/// step of 64 keys. Where others take registers for products their constants have it.
constexpr double instructionsOfWeight = 5, instructionsOfPolynomial = 6;
/// The share of the memory's rate at which rows of other parts are read where a kernel stores its own: the next step waits for them.
constexpr double joinedShare = 0.5;

/// A kernel in numbers: items, steps of each, and what a step does.
struct Loop {
  double items = 0, steps = 0;
  double flop = 0, exponentials = 0, loaded = 0, shared = 0, vector = 0; // of a step
  double blocksPerSM = 1;
  bool isGathered = false; // the keys of a step are no neighbours
  std::optional<double> members; // the share of the lists of a tile that have a step, where a step is one entry of a union
  double listsOfWarp = 1;
  double rowShare = ::rowShare;
  double itemSeconds = ::itemSeconds;
  double written = 0; // bytes of partial outputs
  double singlySeconds = 0; // of an item, which nothing else hides
};

} // namespace

static double padTo(int64_t multiple, int64_t n) { return double(ssa::ceilDiv(n, multiple) * multiple); }

/// Bytes of shared memory that the products of a step read.
static double getOperandBytes(const AttendProblem &p, ScheduleAttr s, int64_t groups) {
  double dim = padTo(16, p.dim), valueDim = padTo(16, p.valueDim), keys = s.getTileKeys();
  if (s.getPair()) { // a block's rows; weights, which it writes, are read for every 256 columns
    double rows = ScheduleAttr::rowsOfPair, products = std::max(valueDim / 256, 1.0);
    return (rows * dim + keys / 2 * dim + (1 + products) * rows * keys + keys * valueDim / 2) * p.elementBytes;
  }
  if (s.usesTensorMemory()) // weights come from tensor memory
    return s.getTileRows() / 128.0 * (128 * dim + keys * (dim + valueDim)) * p.elementBytes;
  if (!s.hasRoles()) // each warp reads all keys and values
    return s.getTileRows() / 16.0 * keys * (dim + valueDim) * p.elementBytes;
  double scores = (s.keepsQueries(p.op) ? 0 : groups * 64 * dim) + keys * dim;
  double values = (groups > 1 ? groups * 64 * keys : 0) + keys * valueDim;
  return s.getTileRows() / 64.0 * (scores + values) * p.elementBytes;
}

static double getPartialBytes(const AttendProblem &p, ScheduleAttr s) { return p.valueDim * (s.getPartials() == Partials::f32 ? 4 : 2) + 4; }

/// Blocks of a list whose outputs are memory between two kernels, in the order key-outer.
static double getPartialBlocks(const AttendProblem &p, ScheduleAttr s) {
  return std::max(p.getKeysPerList(p.queryBlock) / p.keyBlock - p.getBlocksApart(s), 0.0);
}

/// Rows of queries, one for each that an output over some keys is made of.
static double getPartialRows(const AttendProblem &p, ScheduleAttr s) {
  double rows = double(p.batch) * p.geometry.queries * p.heads;
  if (s.getOrder() == LoopOrder::key_outer)
    return rows * getPartialBlocks(p, s);
  return s.getSplit() > 1 ? rows * s.getSplit() : 0;
}

/// Lists of a head whose outputs over key blocks are there at a time.
static double getListsTogether(const AttendProblem &p, ScheduleAttr s) {
  constexpr double mostBytes = 1.125 * (1 << 30), mostQueryBytes = 16 << 20; // of a run; of its queries in a head
  double lists = double(ssa::ceilDiv(p.geometry.queries, p.queryBlock)), rowsOfList = double(p.queryBlock * p.getGroup());
  double together = std::min(mostBytes / ((p.width - p.getBlocksApart(s)) * getPartialBytes(p, s)), mostQueryBytes / (p.dim * p.elementBytes)) / rowsOfList;
  return std::clamp(together, 1.0, std::max(lists, 1.0));
}

/// Items are tiles of rows that have a key block in common: of the lists whose outputs are there at a time.
static void setKeyOuterItems(const AttendProblem &p, ScheduleAttr s, Loop &loop) {
  double lists = double(ssa::ceilDiv(p.geometry.queries, p.queryBlock)), rowsOfList = double(p.queryBlock * p.getGroup()), together = getListsTogether(p, s);
  double blocks = std::max(p.getAllowedKeys(1) / p.keyBlock, 1.0), perList = getPartialBlocks(p, s);
  double rowsOfBlock = together * perList * rowsOfList / blocks;
  // The last tile of a block is half full, in the mean.
  loop.items = p.batch * p.cells * (lists / together) * blocks * std::max(rowsOfBlock / s.getTileRows() + 0.5, 1.0);
  loop.steps = std::ceil(double(p.keyBlock) / s.getTileKeys());
  // What other blocks on the multiprocessor gather takes its time as well. Without roles nothing is done meanwhile.
  loop.itemSeconds = loop.blocksPerSM * (gatherItemSeconds + (s.hasRoles() ? 0 : gatherRowSeconds * s.getTileRows()));
  constexpr int64_t rowsOfBox = 16;
  loop.singlySeconds = int64_t(rowsOfList) % rowsOfBox == 0 ? 0 : gatherSinglySeconds;
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
  if (double(p.geometry.tokens) * (p.dim + p.valueDim) * p.elementBytes > nearBytes)
    loop.rowShare = farRowShare;
  if (s.getOrder() == LoopOrder::union_lists) {
    loop.itemSeconds = itemOfUnionSeconds;
    loop.listsOfWarp = std::max(16.0 / double(p.getRowsPerList().value_or(16)), 1.0);
    if (p.keyBlock % keys == 0)
      loop.members = std::min(p.getKeysPerList(1) / std::max(p.getUnion(lists), 1.0), 1.0);
  }
  loop.items *= s.getValueParts(op);
  double valueColumns = s.usesTensorMemory() ? s.getValueColumns(op) : padTo(16, p.valueDim);
  loop.flop = rows * keys * 2.0 * (padTo(16, p.dim) + valueColumns);
  double polynomials = s.getPolynomials() / 8.0;
  loop.exponentials = (1 - polynomials) * rows * keys;
  if (s.usesTensorMemory())
    loop.vector = (instructionsOfWeight + polynomials * instructionsOfPolynomial) * rows * keys;
  loop.loaded = keys * (padTo(64, p.dim) + (op.valuesAreKeys() ? 0 : padTo(64, p.valueDim))) * p.elementBytes;
  if (s.getPair()) { // half of the rows, with half of the keys for scores and half of the columns of values
    loop.items *= 2;
    loop.flop /= 2;
    loop.exponentials /= 2;
    loop.vector /= 2;
    // Half of the values of its own keys stay where they are, as far as columns lie in place.
    loop.loaded = keys / 2.0 * (p.dim + p.valueDim - ScheduleAttr::getColumnsInPlace(p.valueDim)) * p.elementBytes;
  }
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
  units.vector = steps * loop.vector / (ChipRates::vectorFlopPerCycle / 2 * cycles);
  units.shared = steps * loop.shared / (ChipRates::sharedBytesPerCycle * cycles);
  units.l2 = steps * loop.loaded / rates.l2;
  units.memory = (getMemoryBytes(p) + loop.written + p.joinedBytes) / rates.memory;
  return units;
}

/// The time of a step of a block with roles.
static double getRoleStepSeconds(const Loop &loop, ScheduleAttr s, int64_t groups, const UnitTimes &ofStep) {
  double keys = s.getTileKeys(), waiting = stepSeconds;
  if (bool hasCompany = loop.blocksPerSM > 1; s.getTileRows() * groups == 64)
    waiting = loneSeconds[hasCompany] + loneKeySeconds[hasCompany] * keys;
  waiting += exposedExponentials * ofStep.special;
  if (s.getOrder() == LoopOrder::key_outer)
    waiting += apartSeconds * (s.getTileRows() / 64.0 - 1);
  if (s.getOrder() == LoopOrder::union_lists)
    waiting *= loop.members ? leastWaiting + waitingOfMembers * *loop.members : waitingOfSeveral;
  waiting *= 1 + waitingOfMixed * std::log2(loop.listsOfWarp);
  return std::max(ofStep.matrix, ofStep.shared) + waiting + (loop.isGathered ? gatherKeySeconds * keys : 0) + (groups > 1 ? groups * meetSeconds : 0);
}

/// The time of an item for every block on a multiprocessor, with tensor memory. Products and softmax are roles of their own, and copies run ahead: steps wait for
/// one another. What they wait for besides has not been measured; where there are two blocks one works while the other waits.
static double getTensorItemSeconds(const Loop &loop, const UnitTimes &ofStep) {
  double busy = std::max({ofStep.matrix, ofStep.vector, ofStep.special, ofStep.shared}), step = std::max(ofStep.l2, busy + tensorStepSeconds);
  return std::max(loop.steps * step + loop.itemSeconds, loop.blocksPerSM * loop.steps * std::max(busy, ofStep.l2));
}

/// The time in which every block on a multiprocessor makes a step.
static double getStepSeconds(const Loop &loop, ScheduleAttr s, int64_t groups, const UnitTimes &ofStep, const ChipRates &rates, double numSMs) {
  double blocks = loop.blocksPerSM;
  if (s.hasRoles())
    return blocks * getRoleStepSeconds(loop, s, groups, ofStep); // warpgroups take turns at the tensor cores
  double warps = s.getTileRows() / 16.0 * groups, keys = s.getTileKeys();
  double width = loop.flop / (s.getTileRows() * keys) / 512; // in 256 columns of keys and values
  double chain = warpStepSeconds + (warps > 1 ? meetWarpsSeconds : 0) + keys * width * (warpKeySeconds + copyKeySeconds / warps) + (s.getStages() == 2 ? twoStagesSeconds / warps : 0) +
                 (loop.isGathered ? gatherKeyOfWarpSeconds * keys / warps : 0);
  double step = std::max({chain, blocks * loop.flop / (mmaShare * rates.mmaSync / numSMs), blocks * ofStep.l2 / loop.rowShare});
  return s.getOrder() == LoopOrder::union_lists ? warpStepOfUnion * step : step;
}

/// What a step takes on every multiprocessor.
static UnitTimes getUnitsOfStep(const AttendProblem &p, Loop loop, double matrixRate, const ChipRates &rates, double numSMs) {
  loop.items = numSMs;
  loop.steps = 1;
  UnitTimes units = getUnits(p, loop, matrixRate, rates, numSMs);
  units.memory = 0;
  return units;
}

static double getMatrixRate(ScheduleAttr s, const ChipRates &rates) { return s.getInstruction() == Instruction::mma_sync ? rates.mmaSync : rates.matrix; }

ScheduleAttr ssa::withBestPolynomials(const AttendProblem &p, ScheduleAttr s, TargetAttr target) {
  if (!s.usesTensorMemory())
    return s;
  const ChipRates &rates = ChipRates::of(target);
  constexpr double margin = 0.99; // by less nothing is gained
  double least = 0;
  ScheduleAttr best = s;
  for (int64_t number = 0; number <= ScheduleAttr::maxPolynomials; ++number) {
    ScheduleAttr other = s.withPolynomials(number);
    double busy = getUnitsOfStep(p, getLoop(p, other, target), getMatrixRate(s, rates), rates, target.numSMs()).longest();
    if (number > 0 && busy > margin * least)
      continue;
    best = other;
    least = busy;
  }
  return best;
}

/// Bytes of queries and outputs.
static double getRowBytes(const AttendProblem &p) { return double(p.batch) * p.geometry.queries * p.heads * (p.dim + p.valueDim) * p.elementBytes; }

/// Of a kernel that sees keys of several sources, so many of which have a softmax of their own.
static Prediction predictSources(ArrayRef<AttendProblem> sources, int64_t softmaxes, ScheduleAttr s, TargetAttr target) {
  const ChipRates &rates = ChipRates::of(target);
  double numSMs = target.numSMs(), matrixRate = getMatrixRate(s, rates), chain = 0;
  Prediction result;
  for (const auto &[i, p] : llvm::enumerate(sources)) {
    Loop loop = getLoop(p, s, target);
    result.units += getUnits(p, loop, matrixRate, rates, numSMs);
    UnitTimes ofStep = getUnitsOfStep(p, loop, matrixRate, rates, numSMs);
    SparseAttendOp op = p.op;
    double ends = int64_t(i) < softmaxes ? loop.itemSeconds : 0;
    double item = s.usesTensorMemory() ? getTensorItemSeconds(loop, ofStep) : loop.steps * getStepSeconds(loop, s, s.getGroups(op), ofStep, rates, numSMs) + ends;
    double rounds = std::max(loop.items / (numSMs * loop.blocksPerSM), loop.items > 0 ? 1.0 : 0.0);
    chain += rounds * item;
    if (!s.usesTensorMemory()) // there others store
      chain += p.joinedBytes / (joinedShare * rates.memory);
    if (s.getOrder() == LoopOrder::key_outer)
      chain = std::max(chain, loop.written / (writeShare * rates.memory)) + rounds * loop.singlySeconds;
  }
  // Queries are read once, and outputs written.
  result.units.memory -= (sources.size() - 1) * getRowBytes(sources.front()) / rates.memory;
  result.seconds = std::max(chain, result.units.longest()) + launchSeconds;
  constexpr double mostly = 0.7;
  result.binds = result.units.longest() > mostly * result.seconds ? result.units.binding() : StringRef("latency");
  return result;
}

Prediction ssa::predictAttend(const AttendProblem &p, ScheduleAttr s, TargetAttr target) { return predictSources(p, 1, s, target); }

Prediction ssa::predictAttend(const JoinedProblem &p, ScheduleAttr s, TargetAttr target) {
  return predictSources(p.sources, isa<MergeOp>(p.join.op) ? 1 : p.sources.size(), s, target);
}

/// Partial outputs are on their way while steps go on.
Prediction ssa::predictApart(const AttendProblem &p, ScheduleAttr s, TargetAttr target) {
  constexpr double readShare = 0.6;
  MLIRContext *context = target.getContext();
  double seconds = getPartialRows(p, s) * getPartialBytes(p, s) / ChipRates::of(target).memory;
  AttendProblem apart = p;
  const ForcedBlocks &forced = *p.forced;
  // Half of the own block is behind a query, in the mean.
  apart.geometry.mask = MaskAttr::get(context, /*causal=*/true, forced.local * p.keyBlock - p.keyBlock / 2, forced.init * p.keyBlock);
  apart.hasLists = false;
  apart.isShared = true;
  Prediction result = predictAttend(apart, ForcedBlocks::getSchedule(context), target);
  result.units.memory += seconds;
  result.seconds = std::max(result.seconds, seconds / readShare);
  return result;
}

/// What the order needs besides. Lists are united by kernels that sort. Partial outputs are joined at the rate of a copy, nearly.
static double getOtherSeconds(const AttendProblem &p, ScheduleAttr s, TargetAttr target) {
  const ChipRates &rates = ChipRates::of(target);
  double numbers = double(p.batch) * p.cells * ceilDiv(p.geometry.queries, p.queryBlock) * p.width;
  constexpr double joinShare = 0.85;
  double seconds = 0;
  if (s.getOrder() == LoopOrder::union_lists)
    seconds += numbers * (unionBytes / rates.memory + unionSeconds * std::pow(std::log2(double(s.getListsOfTile(p.op)) * p.width), 2)) + 2 * launchSeconds;
  if (s.getOrder() == LoopOrder::key_outer)
    seconds += numbers * transposeSeconds + 4 * launchSeconds;
  double bytes = getPartialRows(p, s) * getPartialBytes(p, s);
  if (p.getBlocksApart(s) > 0)
    seconds += predictApart(p, s, target).seconds;
  else if (bytes > 0)
    seconds += bytes / (joinShare * rates.memory) + launchSeconds;
  return seconds;
}

double ssa::getIdleSeconds(const AttendProblem &p, ScheduleAttr s) {
  constexpr double ofRun = 6, ofUnion = 3;
  if (s.getOrder() == LoopOrder::key_outer)
    return ofRun * p.batch * std::ceil(ceilDiv(p.geometry.queries, p.queryBlock) / getListsTogether(p, s)) * idleLaunchSeconds;
  return (s.getOrder() == LoopOrder::union_lists ? ofUnion : 1 + (s.getSplit() > 1)) * idleLaunchSeconds;
}

RatedSchedule ssa::rateSchedule(const AttendProblem &problem, ScheduleAttr schedule, TargetAttr target) {
  RatedSchedule rated{schedule, predictAttend(problem, schedule, target), 0};
  rated.prediction.seconds += getOtherSeconds(problem, schedule, target);
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
