//===- Attend.cpp - sparse_attend -----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Attend.h"
#include "AttendKernel.h"
#include "BranchOnDevice.h"
#include "ElementKernel.h"
#include "KeyOuter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "ssa/Conversion/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"
#include <limits>
#include <numeric>

using namespace mlir;
using namespace mlir::ssa;

namespace {

/// Which queries kernels are for, and where they write: all, or some neighbours of every sequence. The buffers of what has rows are for these then.
struct AttendRows {
  Value output, lse;
  /// Of each op, the number of tokens if the last of these queries were the last of all.
  SmallVector<Value, 1> tokens;
  /// Of before a loop: the queries of all, and how many sequences and queries there are at most.
  Value allQueries, mostBatches, mostQueries;
};

/// Makes the kernels of an op by one schedule.
class AttendConversion {
public:
  /// `join` is what the kernel makes the rows of, or null; it may make other ops as well.
  AttendConversion(HostFunction &host, SparseAttendOp op, const AttendJoin *join, ScheduleAttr schedule, const AttendRows &rows)
      : host(host), op(op), schedule(schedule), rows(rows), output(rows.output), lse(rows.lse) {
    for (SparseAttendOp source : join ? ArrayRef(join->attends) : ArrayRef(op))
      plan.sources.push_back({source});
    if (join)
      joined.emplace(host, *join);
  }
  ~AttendConversion() {
    if (apart)
      apart->op.erase();
  }
  LogicalResult run();

private:
  LogicalResult readSchedule();
  void readSource(AttendSource &source, ScheduleAttr schedule, bool mayHaveBoxes);
  /// Tensor maps of queries, and of each source.
  struct Maps {
    SmallVector<Value> query;
    SmallVector<SmallVector<Value>, 1> sources;
  };
  Maps createMaps();
  LogicalResult attend(const Maps &maps);
  /// `transposed` are lists turned around, if any; what is written may be partial outputs.
  LogicalResult buildKernel(Value output, Value lse, ValueRange transposed, const Maps &maps, Value items);
  SmallVector<Value> getLists(const AttendSource &source);
  LogicalResult attendWithMaps();
  Value createMap(Value buffer, ArrayRef<int64_t> box);
  Value createStretchMap(Value buffer, const AttendSource &source);
  Value createQueryMap();
  SmallVector<Value> createMaps(const AttendSource &source);
  struct RowTensor;
  RowTensor getRowTensor(Value buffer);
  SmallVector<Value> createRowMap(RowTensor &tensor);
  LogicalResult gather();
  void allocateParts();
  LogicalResult setApart(const ForcedBlocks &blocks);
  Value createPartialMap(Value outputs, Value lists);
  LogicalResult finishRun(const PartialOutputs &partials, Value map, const KeyOuter::Run &run, const Maps &maps);

  HostFunction &host;
  SparseAttendOp op;
  ScheduleAttr schedule;
  const AttendRows &rows;
  std::optional<JoinArguments> joined;
  AttendPlan plan;
  Value output, lse;
  SmallVector<SmallVector<Value>, 1> captured; // of each source
  SmallVector<Value> united;                   // lists, and who has their entries
  std::optional<KeyOuter> keyOuter;
  std::optional<PartialOutputs> parts;
  std::unique_ptr<AttendConversion> apart; // of forced blocks
};

} // namespace

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

static LogicalResult checkSupported(SparseAttendOp op) {
  int64_t dim = op.getQuery().getType().getDimSize(3), valueDim = op.getOutput().getType().getDimSize(3);
  constexpr int64_t maxDim = 576, maxValueDim = 512, widePart = 128;
  if (dim > maxDim || valueDim > maxValueDim)
    return op.emitOpError() << "has a kernel for head dims of up to " << maxDim << ", of values up to " << maxValueDim << ", but got " << dim
                            << " and " << valueDim;
  if (valueDim > 256 && valueDim % widePart != 0)
    return op.emitOpError() << "has a kernel for head dims of values above 256 that are multiples of " << widePart << ", but got " << valueDim;
  return success();
}

void AttendConversion::readSource(AttendSource &source, ScheduleAttr schedule, bool mayHaveBoxes) {
  SparseAttendOp op = source.op;
  if (!op.getSelections().empty())
    source.selection = cast<SelectionType>(op.getSelections().front().getType());
  if (plan.memberWords > 0)
    source.selection = getTypeOfUnion(*source.selection, schedule.getListsOfTile(op));
  source.queryBlock = source.selection && source.selection->getDimSize(2) != 1 ? source.selection->getQueryBlock() : 0;
  source.stretches = schedule.getStretches(op);
  source.hasBoxes = mayHaveBoxes && source.stretches > 0;
}

/// 0 if no source has lists for some queries.
static int64_t getLeastQueryBlock(ArrayRef<AttendSource> sources) {
  int64_t least = 0;
  for (const AttendSource &source : sources)
    if (source.queryBlock && (!least || source.queryBlock < least))
      least = source.queryBlock;
  return least;
}

LogicalResult AttendConversion::readSchedule() {
  TargetAttr target = TargetAttr::of(op);
  plan.instruction = schedule.getInstruction();
  plan.family = schedule.getInstruction() == Instruction::wgmma ? ssa_gpu::Family::wgmma : ssa_gpu::Family::mma_sync;
  plan.tileRows = schedule.getTileRows();
  plan.tileKeys = schedule.getTileKeys();
  plan.stages = schedule.getStages();
  plan.querySlots = schedule.getQuerySlots(op);
  plan.groups = schedule.getGroups(op);
  plan.valueParts = schedule.getValueParts(op);
  plan.scoreSlots = schedule.usesTensorMemory() ? schedule.getScoreSlots(op) : 0;
  plan.pair = schedule.getPair();
  plan.weightSlots = schedule.getWeightSlots();
  plan.itemSlots = plan.pair ? 1 : 2;
  plan.polynomials = schedule.getPolynomials();
  plan.takesTurns = schedule.takesTurns(op);
  plan.keepsWeightsInKeys = schedule.keepsWeightsInKeys(op);
  plan.keepsQueries = schedule.keepsQueries(op);
  plan.threads = schedule.getThreads(op);
  plan.blocksPerSM = schedule.getBlocksPerSM(op, target);
  // Producers run ahead into the next item, so blocks stay; others come and go.
  plan.maxBlocks = schedule.hasRoles() ? target.numSMs() * plan.blocksPerSM : KernelBuilder::maxGrid;
  plan.dim = op.getQuery().getType().getDimSize(3);
  plan.valueDim = op.getOutput().getType().getDimSize(3);
  plan.valuesAreKeys = op.valuesAreKeys();
  plan.cells = op.getCells();
  plan.split = schedule.getSplit();
  plan.partials = schedule.getPartials();
  plan.isKeyOuter = schedule.getOrder() == LoopOrder::key_outer;
  plan.partialsInQuads = plan.isKeyOuter && schedule.getPartials() == Partials::bf16 && !plan.usesTensorMemory() && plan.groups == 1 && plan.valueDim % 32 == 0;
  plan.memberWords = schedule.getMemberWords(op);
  plan.rowsPerList = ScheduleAttr::getRowsPerList(op).value_or(0);
  plan.group = op.getQuery().getType().getDimSize(1) / plan.cells;
  plan.width = std::numeric_limits<int64_t>::max();
  for (const AttendSource &source : plan.sources)
    plan.width = std::min(plan.width, host.getVectorWidth(source.op, std::gcd(plan.dim, plan.valueDim), {{"query", rows.allQueries},
                                                                                            {"key", host.getBuffer(source.op.getKey())},
                                                                                            {"value", host.getBuffer(source.op.getValue())}}));
  constexpr int64_t accelerated = 8; // elements of 16 bytes, to which the accelerator needs addresses and strides aligned
  // A box of values would have all columns of a panel, from the first on.
  bool isWhole = plan.valuesAreKeys || plan.valueParts == 1, isAccelerated = schedule.hasRoles() && target.hasTMA() && plan.width == accelerated;
  if (plan.pair && !isAccelerated)
    return op.emitOpError("has a schedule with 'pair', which needs rows of keys at multiples of 16 bytes");
  for (AttendSource &source : plan.sources)
    readSource(source, schedule, isAccelerated && !plan.pair && isWhole);
  // Where all queries share one list the tile is filled with queries.
  plan.queryBlock = std::max<int64_t>(plan.tileRows / plan.group, 1);
  if (plan.addsPartials && plan.queryBlock < plan.forced->keyBlock) // then all of them are of one block, mostly
    while (plan.forced->keyBlock % plan.queryBlock != 0)
      --plan.queryBlock;
  if (int64_t least = getLeastQueryBlock(plan.sources))
    plan.queryBlock = least;
  auto fit = [](int64_t a, int64_t b) { return a % b == 0 || b % a == 0; };
  // No tensor map is made in a loop, where the queries are others each time.
  bool mayHaveBoxes = isAccelerated && !host.loop;
  plan.gathers = mayHaveBoxes && plan.usesTensorMemory() && !plan.pair && plan.first().stretches == 0 && !op.isGathered();
  plan.hasQueryBoxes = mayHaveBoxes && !plan.isKeyOuter && !plan.usesTensorMemory() && fit(plan.tileRows, plan.group);
  // Shorter boxes take the accelerator longer than threads take to copy their rows.
  constexpr int64_t leastRows = 16;
  if (int64_t rows = std::min(plan.tileRows, plan.rowsPerList);
      mayHaveBoxes && plan.isStepwise() && rows % leastRows == 0 && fit(plan.tileRows, plan.rowsPerList) && fit(rows, plan.group)) {
    plan.hasQueryBoxes = true;
    plan.rowsOfBox = rows;
  }
  return success();
}

/// The tensor map of a buffer: boxes of so many entries of each dimension but the last, of 64 columns.
Value AttendConversion::createMap(Value buffer, ArrayRef<int64_t> sizes) {
  OpBuilder::InsertionGuard guard = host.beforeLoop();
  MLIRContext *context = host.builder.getContext();
  Location loc = op.getLoc();
  Type type = cast<MemRefType>(buffer.getType()).getElementType();
  constexpr int64_t columns = 64;
  auto space = gpu::AddressSpaceAttr::get(context, gpu::AddressSpace::Workgroup);
  auto box = MemRefType::get({std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>()), columns}, type, MemRefLayoutAttrInterface(), space);
  auto map = nvgpu::TensorMapDescriptorType::get(context, box, nvgpu::TensorMapSwizzleKind::SWIZZLE_128B, nvgpu::TensorMapL2PromoKind::L2PROMO_256B,
                                                 nvgpu::TensorMapOOBKind::OOB_ZERO, nvgpu::TensorMapInterleaveKind::INTERLEAVE_NONE);
  Value unranked = memref::CastOp::create(host.builder, loc, UnrankedMemRefType::get(type, {}), buffer);
  Emitter e(host.builder, loc);
  SmallVector<Value> all = llvm::map_to_vector(sizes, [&](int64_t size) { return e.index(size); });
  all.push_back(e.index(columns));
  return nvgpu::TmaCreateDescriptorOp::create(host.builder, loc, map, unranked, all);
}

/// The map of keys or values of which a stretch is a box, whatever it is cut to. The rows of a head are there twice: as row `i` of so many that begin at row `w`,
/// for each `w`. The first `count` rows from `base` on are those from `length - count` on at `w = base + count - length`; behind these there are none, so a box
/// has zeros there, and nothing else is read. A stretch that ends within the first `length` rows is no box: there is no row before the first.
Value AttendConversion::createStretchMap(Value buffer, const AttendSource &source) {
  OpBuilder::InsertionGuard guard = host.beforeLoop();
  Emitter e(host.builder, op.getLoc());
  auto all = memref::ExtractStridedMetadataOp::create(host.builder, op.getLoc(), buffer);
  auto sizes = all.getSizes(), strides = all.getStrides();
  int64_t length = plan.tileKeys / source.stretches, columns = cast<MemRefType>(buffer.getType()).getShape().back(), any = ShapedType::kDynamic;
  Type type = cast<MemRefType>(buffer.getType()).getElementType();
  auto view = MemRefType::get({any, any, any, length, columns}, type, StridedLayoutAttr::get(type.getContext(), any, {any, any, any, any, 1}));
  auto constant = [&](int64_t value) -> OpFoldResult { return host.builder.getIndexAttr(value); };
  Value rows = memref::ReinterpretCastOp::create(host.builder, op.getLoc(), view, all.getBaseBuffer(), OpFoldResult(all.getOffset()),
                                                 ArrayRef<OpFoldResult>{sizes[0], sizes[1], sizes[2], constant(length), constant(columns)},
                                                 ArrayRef<OpFoldResult>{strides[0], strides[1], strides[2], strides[2], constant(1)});
  return createMap(rows, {1, 1, 1, length});
}

/// Keys or values of all sequences and heads as rows of a tensor of two dimensions.
struct AttendConversion::RowTensor {
  memref::ExtractStridedMetadataOp buffer;
  Value pitch, rows;        // elements from one row to the next, and how many there are
  SmallVector<Value> steps; // rows from one sequence, head and number to the next
  Value isOne, isSmall;     // i1: whether all strides are multiples of the pitch; whether i32 counts the rows
};

AttendConversion::RowTensor AttendConversion::getRowTensor(Value buffer) {
  Emitter e(host.builder, op.getLoc());
  RowTensor tensor;
  tensor.buffer = memref::ExtractStridedMetadataOp::create(host.builder, op.getLoc(), buffer);
  auto sizes = tensor.buffer.getSizes(), strides = tensor.buffer.getStrides();
  bool hasHeads = cast<MemRefType>(buffer.getType()).getDimSize(1) > 1;
  Value one = e.index(1);
  tensor.pitch = e.max(hasHeads ? e.min(strides[1], strides[2]) : strides[2], one);
  tensor.rows = one;
  for (unsigned i = 0; i < 3; ++i) { // of one there is no next
    Value isSingle = e.eq(sizes[i], one), step = e.select(isSingle, e.index(0), e.div(strides[i], tensor.pitch));
    Value fits = e.either(isSingle, e.eq(e.rem(strides[i], tensor.pitch), e.index(0)));
    tensor.isOne = tensor.isOne ? e.both(tensor.isOne, fits) : fits;
    tensor.rows = e.add(tensor.rows, e.mul(e.max(e.sub(sizes[i], one), e.index(0)), step));
    tensor.steps.push_back(step);
  }
  tensor.isSmall = e.le(tensor.rows, e.index(std::numeric_limits<int32_t>::max()));
  return tensor;
}

/// The map of such rows, one at a time, and the steps.
SmallVector<Value> AttendConversion::createRowMap(RowTensor &tensor) {
  Type type = cast<MemRefType>(tensor.buffer.getSource().getType()).getElementType();
  int64_t columns = cast<MemRefType>(tensor.buffer.getSource().getType()).getShape().back();
  auto layout = StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, {ShapedType::kDynamic, 1});
  auto view = MemRefType::get({ShapedType::kDynamic, columns}, type, layout);
  auto constant = [&](int64_t value) -> OpFoldResult { return host.builder.getIndexAttr(value); };
  Value all = memref::ReinterpretCastOp::create(host.builder, op.getLoc(), view, tensor.buffer.getBaseBuffer(), OpFoldResult(tensor.buffer.getOffset()),
                                                ArrayRef<OpFoldResult>{tensor.rows, constant(columns)}, ArrayRef<OpFoldResult>{tensor.pitch, constant(1)});
  SmallVector<Value> arguments = {createMap(all, {1})};
  llvm::append_range(arguments, tensor.steps);
  return arguments;
}

/// The map of a tile of queries, or of what a list has of it where keys come first. Its rows are those of all heads of a query, then of the next, so the map sees these dimensions exchanged.
Value AttendConversion::createQueryMap() {
  Value query = host.getBuffer(op.getQuery());
  auto metadata = memref::ExtractStridedMetadataOp::create(host.builder, op.getLoc(), query);
  auto exchange = [](ValueRange v) { return SmallVector<Value>{v[0], v[2], v[1], v[3]}; };
  Type type = cast<MemRefType>(query.getType()).getElementType();
  SmallVector<int64_t> dynamic(4, ShapedType::kDynamic);
  auto view = MemRefType::get(dynamic, type, StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, dynamic));
  Value exchanged = memref::ReinterpretCastOp::create(host.builder, op.getLoc(), view, metadata.getBaseBuffer(), metadata.getOffset(),
                                                      exchange(metadata.getSizes()), exchange(metadata.getStrides()));
  int64_t rows = plan.isKeyOuter ? plan.rowsOfBox : plan.tileRows, heads = std::min(plan.group, rows);
  return createMap(exchanged, {1, rows / heads, heads});
}

/// What kernels are given to copy rows of a source as boxes.
SmallVector<Value> AttendConversion::createMaps(const AttendSource &source) {
  SparseAttendOp op = source.op;
  if (plan.pair) {
    OpBuilder::InsertionGuard guard = host.beforeLoop();
    RowTensor keys = getRowTensor(host.getBuffer(op.getKey()));
    host.require(op, keys.isOne, "expected strides of 'key' that are multiples of the least, as rows are gathered from one tensor; a schedule without 'pair' takes others");
    host.require(op, keys.isSmall, "expected less than 2^31 rows of 'key'; a schedule without 'pair' takes more");
    return createRowMap(keys);
  }
  SmallVector<Value> maps;
  if (!source.hasBoxes)
    return maps;
  maps.push_back(createStretchMap(host.getBuffer(op.getKey()), source));
  if (!plan.valuesAreKeys)
    maps.push_back(createStretchMap(host.getBuffer(op.getValue()), source));
  return maps;
}

AttendConversion::Maps AttendConversion::createMaps() {
  Maps maps;
  if (plan.hasQueryBoxes)
    maps.query.push_back(createQueryMap());
  for (const AttendSource &source : plan.sources)
    maps.sources.push_back(createMaps(source));
  return maps;
}

/// Attention whose rows are gathered by the accelerator where they lie in a tensor of two dimensions, by threads else.
LogicalResult AttendConversion::gather() {
  Emitter e(host.builder, op.getLoc());
  SmallVector<RowTensor, 2> tensors = {getRowTensor(host.getBuffer(op.getKey()))};
  if (!plan.valuesAreKeys)
    tensors.push_back(getRowTensor(host.getBuffer(op.getValue())));
  Value fits;
  for (const RowTensor &tensor : tensors)
    fits = fits ? e.both(fits, e.both(tensor.isOne, tensor.isSmall)) : e.both(tensor.isOne, tensor.isSmall);
  LogicalResult result = success();
  e.ifThenElse(fits, [&] {
    SmallVector<Value> maps;
    for (RowTensor &tensor : tensors)
      llvm::append_range(maps, createRowMap(tensor));
    result = attend({{}, {maps}});
  }, [&] {
    plan.gathers = false;
    if (succeeded(result))
      result = attend({{}, {{}}});
  });
  return result;
}

LogicalResult AttendConversion::run() {
  if (failed(readSchedule()))
    return failure();
  for (AttendSource &source : plan.sources) {
    FailureOr<SmallVector<Value>> values = getScoreCaptures(host, source.op.getScore());
    if (failed(values))
      return failure();
    source.numCaptured = values->size();
    captured.push_back(*values);
  }
  if (joined)
    joined->requireSizes(host, output);
  if (joined && plan.split == 1 && !plan.isKeyOuter) { // else those who join partial outputs do it
    plan.join = &*joined;
    plan.gathers = false; // with rows of other parts to read it spills
  }
  if (plan.memberWords > 0)
    united = uniteLists(host, op, plan.selection(), plan.memberWords, rows.mostBatches, rows.mostQueries);
  if (std::optional<ForcedBlocks> blocks = ForcedBlocks::of(op); blocks && ForcedBlocks::canBeApart(op, schedule) && failed(setApart(*blocks)))
    return failure();
  if (plan.isKeyOuter)
    keyOuter.emplace(host, op, plan);
  if (plan.split > 1)
    allocateParts();
  return attendWithMaps();
}

/// No tensor map is of a tensor without elements. Boxes of stretches are not copied then: none of these is of so many rows that are there. But where the
/// accelerator gathers rows each is a box, so where there are no keys at all other kernels see nothing but what other parts saw.
LogicalResult AttendConversion::attendWithMaps() {
  if (!plan.pair && !plan.gathers)
    return attend(createMaps());
  Emitter e(host.builder, op.getLoc());
  LogicalResult result = success();
  auto hasRows = [&](Value buffer) { return e.both(e.lt(e.index(0), e.dim(buffer, 0)), e.lt(e.index(0), e.dim(buffer, 2))); };
  Value haveRows = e.both(hasRows(host.getBuffer(op.getQuery())), hasRows(host.getBuffer(op.getKey())));
  e.ifThenElse(haveRows, [&] { result = plan.gathers ? gather() : attend(createMaps()); }, [&] {
    if (joined && joined->hasOthers())
      return buildJoin(host, *joined, output, lse);
    fill(host, op, output, 0);
    fill(host, op, lse, -std::numeric_limits<double>::infinity());
  });
  return result;
}

LogicalResult AttendConversion::attend(const Maps &maps) {
  Emitter e(host.builder, op.getLoc());
  if (plan.isKeyOuter) {
    Maps others = apart ? apart->createMaps() : Maps();
    Value partialMap = apart ? apart->createPartialMap(keyOuter->getOutputs(), keyOuter->countLists(e)) : Value();
    auto finish = [&](const PartialOutputs &partials, const KeyOuter::Run &run) { return apart->finishRun(partials, partialMap, run, others); };
    return keyOuter->build(output, lse, joined ? &*joined : nullptr, [&](const PartialOutputs &partials, ValueRange transposed, Value items) {
      return buildKernel(partials.outputs, partials.lses, transposed, maps, items);
    }, apart ? KeyOuter::Finish(finish) : nullptr);
  }
  Value q = host.getBuffer(op.getQuery()), numLists = e.ceilDiv(e.dim(q, 2), e.index(plan.queryBlock));
  Value items = e.mul(e.mul(e.dim(q, 0), e.index(plan.cells * plan.tilesPerList() * plan.split * plan.valueParts)), numLists);
  if (plan.split == 1)
    return buildKernel(output, lse, {}, maps, items);
  if (failed(buildKernel(parts->outputs, parts->lses, {}, maps, items)))
    return failure();
  joinPartials(host, op, *parts, plan.split, output, lse, {}, [&](KernelBuilder &k, const Place &at) -> PartsOfRow {
    constexpr unsigned outputArg = 2;
    Value row = k.add(k.mul(at.b, k.dim(k.getArgument(outputArg), 1)), at.h);
    row = k.add(k.mul(row, k.dim(k.getArgument(outputArg), 2)), at.m);
    return {k.mul(row, k.index(plan.split)), k.index(1)};
  }, joined ? &*joined : nullptr, joined ? joined->get() : ArrayRef<Value>());
  return success();
}

/// What sees the forced blocks: attention without lists, under a mask that shows these.
LogicalResult AttendConversion::setApart(const ForcedBlocks &blocks) {
  OpBuilder beside(op);
  auto forced = cast<SparseAttendOp>(beside.clone(*op));
  forced.getSelectionsMutable().clear();
  forced.setMaskAttr(blocks.getMask(op.getContext()));
  apart = std::make_unique<AttendConversion>(host, forced, /*join=*/nullptr, ForcedBlocks::getSchedule(op.getContext()), rows);
  plan.forced = apart->plan.forced = blocks;
  apart->plan.addsPartials = true;
  apart->captured = captured;
  apart->plan.sources.front().numCaptured = plan.sources.front().numCaptured;
  if (joined)
    apart->plan.join = &*joined;
  return apart->readSchedule();
}

/// The map of partial outputs, of which a box is what a tile's rows have of one part: by lists, parts and rows of a list.
Value AttendConversion::createPartialMap(Value outputs, Value lists) {
  Emitter e(host.builder, op.getLoc());
  int64_t parts = plan.placesOfList(), columns = plan.valueDim, rows = std::min(plan.group, plan.tileRows), any = ShapedType::kDynamic;
  auto type = cast<MemRefType>(outputs.getType());
  auto view = MemRefType::get({any, parts, plan.group, columns}, type.getElementType(), StridedLayoutAttr::get(op.getContext(), any, {any, any, any, 1}));
  SmallVector<OpFoldResult> sizes = {lists}, strides;
  for (int64_t size : {parts, plan.group, columns})
    sizes.push_back(host.builder.getIndexAttr(size));
  for (int64_t stride : {parts * plan.group * columns, plan.group * columns, columns, int64_t(1)})
    strides.push_back(host.builder.getIndexAttr(stride));
  Value base = memref::ExtractStridedMetadataOp::create(host.builder, op.getLoc(), outputs).getBaseBuffer();
  Value all = memref::ReinterpretCastOp::create(host.builder, op.getLoc(), view, base, OpFoldResult(host.builder.getIndexAttr(0)), sizes, strides);
  return createMap(all, {plan.group < plan.tileRows ? plan.queryBlock : 1, 1, rows});
}

/// The kernel that sees forced blocks and adds the partial outputs to what it makes of them.
LogicalResult AttendConversion::finishRun(const PartialOutputs &partials, Value map, const KeyOuter::Run &run, const Maps &maps) {
  Emitter e(host.builder, op.getLoc());
  Value queryBlock = e.index(plan.queryBlock), tiles = e.sub(e.ceilDiv(e.add(run.firstList, run.lists), queryBlock), e.div(run.firstList, queryBlock));
  Value items = e.mul(e.mul(run.cells, e.index(plan.tilesPerList())), tiles);
  return buildKernel(output, lse, {map, partials.lses, run.firstPartial, run.batch, run.firstCell, run.cells, run.firstList, run.lists}, maps, items);
}

/// Memory for the outputs of all parts of the steps.
void AttendConversion::allocateParts() {
  Emitter e(host.builder, op.getLoc());
  Value q = host.getBuffer(op.getQuery()), rows = e.mul(e.mul(e.dim(q, 0), e.dim(q, 1)), e.dim(q, 2));
  parts = allocatePartials(host, op.getLoc(), e.mul(rows, e.index(plan.split)), plan.valueDim, e.builder.getF32Type());
}

/// What says which keys rows see.
SmallVector<Value> AttendConversion::getLists(const AttendSource &source) {
  if (plan.memberWords > 0)
    return united;
  if (plan.isKeyOuter || !source.selection)
    return {};
  return {host.getBuffer(source.op.getSelections().front())};
}

LogicalResult AttendConversion::buildKernel(Value output, Value lse, ValueRange transposed, const Maps &maps, Value items) {
  SmallVector<Value> arguments = {host.getBuffer(op.getQuery()), output, lse};
  for (ValueRange more : {transposed, ValueRange(maps.query)})
    llvm::append_range(arguments, more);
  SmallVector<unsigned> readOnly = {AttendKernel::queryArg};
  if (plan.addsPartials)
    readOnly.push_back(AttendKernel::partialLsesArg);
  SmallVector<std::pair<unsigned, int64_t>> joinedRows; // and how many bytes a thread reads of one
  for (unsigned i = 0; plan.join && i < plan.join->getNumParts(); ++i)
    if (!plan.join->isOwn(i)) {
      Value rows = plan.join->get()[plan.join->getOutput(i)];
      joinedRows.push_back({arguments.size() + plan.join->getOutput(i), plan.join->getWidth() * cast<MemRefType>(rows.getType()).getElementTypeBitWidth() / 8});
    }
  if (plan.join)
    llvm::append_range(arguments, plan.join->get());
  for (auto [i, source] : llvm::enumerate(plan.sources)) {
    readOnly.append({unsigned(arguments.size()), unsigned(arguments.size() + 1)});
    arguments.append({host.getBuffer(source.op.getKey()), host.getBuffer(source.op.getValue()), rows.tokens[i]});
    arguments.append(getLists(source));
    arguments.append(maps.sources[i]);
    arguments.append(captured[i]);
  }
  KernelBuilder k(host.builder, op, "ssa_sparse_attend", plan.threads, arguments);
  LogicalResult result = AttendKernel(k, plan).build(items);
  for (unsigned number : readOnly)
    k.setReadOnly(number, plan.width * op.getQuery().getType().getElementTypeBitWidth() / 8);
  int64_t storedBytes = plan.storeWidth() * cast<MemRefType>(output.getType()).getElementTypeBitWidth() / 8;
  plan.hasSoftmaxes() ? k.setAligned(AttendKernel::outputArg, storedBytes) : k.setWriteOnly(AttendKernel::outputArg, storedBytes);
  k.setWriteOnly(AttendKernel::lseArg, 4);
  for (auto [number, bytes] : joinedRows)
    k.setReadOnly(number, bytes);
  k.finish();
  return result;
}

/// With what makes its lists, for some queries at a time.
static LogicalResult convertOverlappedAttend(HostFunction &host, SparseAttendOp op, const SelectChain &chain, llvm::function_ref<LogicalResult()> prepare,
                                             const AttendRows &all) {
  Emitter e(host.builder, op.getLoc());
  Value lists = op.getSelections().front();
  int64_t queryBlock = cast<SelectionType>(lists.getType()).getQueryBlock();
  return convertOverlapped(host, chain, OverlapAttr::of(op), prepare, [&](const RowPart &part, Value mostRows) {
    RowPart queries = part.scale(e, queryBlock);
    Value query = queries.getRows(host, all.allQueries), allLists = host.getBuffer(lists);
    AttendRows rows = all;
    rows.output = queries.getRows(host, all.output);
    rows.lse = queries.getRows(host, all.lse);
    // Behind the part there are fewer queries than in all.
    Value behind = e.sub(queries.getQueries(e, e.dim(all.allQueries, 2), 1), e.dim(query, 2));
    rows.tokens = {e.sub(all.tokens.front(), behind)};
    {
      OpBuilder::InsertionGuard guard = host.beforeLoop();
      rows.mostQueries = e.mul(mostRows, e.index(queryBlock));
    }
    host.setBuffer(op.getQuery(), query);
    host.setBuffer(lists, part.getRows(host, allLists));
    LogicalResult result = AttendConversion(host, op, /*join=*/nullptr, ScheduleAttr::of(op), rows).run();
    host.setBuffer(op.getQuery(), all.allQueries);
    host.setBuffer(lists, allLists);
    return result;
  });
}

/// By the one schedule or, where the device finds out how much lists agree, by both.
static LogicalResult convertAttendTiles(HostFunction &host, SparseAttendOp op, const AttendJoin *join, const SelectChain *overlapped) {
  ScheduleAttr schedule = ScheduleAttr::of(op);
  SmallVector<SparseAttendOp, 1> ops(join ? ArrayRef(join->attends) : ArrayRef(op));
  if (failed(checkSupported(op)))
    return failure();
  if (!schedule)
    return op.emitOpError("has no schedule; run 'ssa-select-schedule'");
  if (op->hasAttr(ForcedBlocks::attrName) &&
      failed(ForcedBlocks::verify(op, [&](const Twine &reason) { op.emitOpError() << "cannot have '" << ForcedBlocks::attrName << "': " << reason; })))
    return failure();
  Operation *joinOp = join ? join->op : nullptr, *makesOutput = join ? joinOp : op, *makesLse = isa_and_nonnull<MergeOp>(joinOp) ? joinOp : op;
  AttendRows rows;
  auto prepare = [&]() -> LogicalResult {
    FailureOr<Value> output = host.allocateResult(op, 0, makesOutput->getResult(0)), lse = host.allocateResult(op, 1, makesLse->getResult(1));
    if (failed(output) || failed(lse))
      return failure();
    Emitter e(host.builder, op.getLoc());
    SmallVector<Value, 1> tokens;
    for (SparseAttendOp source : ops) {
      requireAttendSizes(host, source);
      tokens.push_back(e.dim(host.getBuffer(source.getTokens() ? source.getTokens() : source.getKey()), 2));
    }
    Value query = host.getBuffer(op.getQuery());
    rows = {*output, *lse, tokens, query, e.dim(query, 0), e.dim(query, 2)};
    return success();
  };
  if (overlapped)
    return convertOverlappedAttend(host, op, *overlapped, prepare, rows);
  if (failed(prepare()))
    return failure();
  auto build = [&](ScheduleAttr by) { return AttendConversion(host, op, join, by, rows).run(); };
  AgreeingAttr agreeing = AgreeingAttr::of(op);
  if (!agreeing)
    return build(schedule);
  return branchOnDevice(host, op, measureAgreement(host, op, agreeing.getPercent()), [&] { return build(agreeing.getSchedule()); }, [&] { return build(schedule); });
}

static LogicalResult checkLists(SparseAttendOp op) {
  if (op.getSelections().size() > 1)
    return op.emitOpError("has a kernel for one selection; run 'ssa-join-selections'");
  for (Value s : op.getSelections()) {
    auto type = cast<SelectionType>(s.getType());
    int64_t queryBlock = type.getQueryBlock(), heads = op.getQuery().getType().getDimSize(1);
    if (type.getDimSize(2) != 1 && queryBlock > std::numeric_limits<int32_t>::max() / heads)
      return op.emitOpError() << "has a kernel for lists that serve fewer than 2^31 rows, but 'query_block' is " << queryBlock << ", for up to "
                              << heads << " heads; of one list for all queries make dimension 2 static, 1";
  }
  return success();
}

LogicalResult ssa::convertSparseAttend(HostFunction &host, SparseAttendOp op, const AttendJoin *join, const SelectChain *overlapped) {
  for (SparseAttendOp source : join ? ArrayRef(join->attends) : ArrayRef(op))
    if (failed(checkLists(source)))
      return failure();
  return takesTensorCores(op) ? convertAttendTiles(host, op, join, overlapped) : convertAttendRows(host, op);
}
