//===- Attend.cpp - sparse_attend -----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One kernel for both orders in which the rows of a tile share a list. A *cell* is a pair of key head and selection head; the
// rows of a list are its queries times the query heads of its cell. With query blocks that is the shared-list order, with one
// query a list it is head-packed; the tile is padded either way.
//
// Keys come in steps of `tileKeys` slots. A slot is a place in the list, or in the range that the mask allows; its *number* is
// the token or summary that it stands for. Keys and values are gathered row by row into a ring of tiles.
//
//===----------------------------------------------------------------------===//

#include "Conversion.h"
#include "KeySlots.h"
#include "ScoreTiles.h"
#include "TileEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <limits>
#include <numeric>

using namespace mlir;
using namespace mlir::ssa;

namespace {

/// The schedule, and what follows from it and from the types.
struct AttendPlan {
  ssa_gpu::Family family;
  int64_t tileRows, tileKeys, stages;
  int64_t cells, group, queryBlock;
  int64_t width; // elements that a thread copies at a time
  int64_t tilesPerList() const { return ceilDiv(queryBlock * group, tileRows); }
};

class AttendConversion {
public:
  AttendConversion(HostFunction &host, SparseAttendOp op)
      : host(host), op(op), dim(op.getQuery().getType().getDimSize(3)),
        valueDim(op.getOutput().getType().getDimSize(3)), elementType(op.getQuery().getType().getElementType()) {}
  LogicalResult run();

private:
  /// What a kernel sees: the order of its arguments.
  enum Argument { queryArg, keyArg, valueArg, outputArg, lseArg, tokensArg, firstFreeArg };

  LogicalResult checkSupported();
  LogicalResult readSchedule();
  void requireSizes();
  LogicalResult build(KernelBuilder &k, Value item, ArrayRef<Value> captured);
  void decodeItem(KernelBuilder &k, Value item);
  LogicalResult buildTile(KernelBuilder &k, ArrayRef<Value> captured);
  void loadStep(KernelBuilder &k, TileEmitter &t, const KeySlots &slots, Value step);
  FailureOr<Value> getLogits(KernelBuilder &k, TileEmitter &t, const KeySlots &slots, ScoreTiles &scores, Value products, Value stage);

  /// A row of the tile: which query of which head.
  struct Row {
    Value m, head, exists; // i32, i32, i1
  };
  Row getRow(Emitter &k, Value row);
  RowPlace placeOf(Emitter &k, const BufferView &view, Value row);

  bool contiguousSteps() {
    return op.getSelections().empty() || cast<SelectionType>(op.getSelections().front().getType()).getKeyBlock() % plan.tileKeys == 0;
  }
  int64_t paddedDim() const { return ceilDiv(dim, 16) * 16; }
  int64_t paddedValueDim() const { return ceilDiv(valueDim, 16) * 16; }

  HostFunction &host;
  SparseAttendOp op;
  int64_t dim, valueDim;
  Type elementType;
  AttendPlan plan;

  // In the kernel: the item's batch, cell, list and first row, and sizes.
  Value batch, cell, list, firstRow, queries, tokens, keyRows;
  BufferView queryView, keyView, valueView, outputView, lseView;
  Value queryTile, keyRing, valueRing, numberRing;
};

} // namespace

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

LogicalResult AttendConversion::checkSupported() {
  if (op.isGathered())
    return op.emitOpError("has no kernel for gathered keys: leave 'ssa.gather' out and attend 'at' the selection");
  if (op.getSelections().size() > 1)
    return op.emitOpError("has no kernel for more than one selection: join them by 'ssa.union'");
  Type key = op.getKey().getType().getElementType(), value = op.getValue().getType().getElementType();
  if (elementType.isF32() || key != elementType || value != elementType)
    return op.emitOpError() << "has a kernel for queries, keys and values of one type, bf16 or f16, but got " << elementType << ", " << key
                            << " and " << value;
  constexpr int64_t maxDim = 256;
  if (dim > maxDim || valueDim > maxDim)
    return op.emitOpError() << "has a kernel for head dims of up to " << maxDim << ", but got " << dim << " and " << valueDim;
  if (dim % 2 != 0 || valueDim % 2 != 0)
    return op.emitOpError() << "has a kernel for even head dims, as copies move 4 bytes or more, but got " << dim << " and " << valueDim;
  return success();
}

LogicalResult AttendConversion::readSchedule() {
  ScheduleAttr schedule = ScheduleAttr::of(op);
  if (!schedule)
    return op.emitOpError("has no schedule; run 'ssa-select-schedule'");
  plan.family = schedule.getInstruction() == Instruction::wgmma ? ssa_gpu::Family::wgmma : ssa_gpu::Family::mma_sync;
  plan.tileRows = schedule.getTileRows();
  plan.tileKeys = schedule.getTileKeys();
  plan.stages = schedule.getStages();
  int64_t heads = op.getQuery().getType().getDimSize(1), keyHeads = op.getKey().getType().getDimSize(1);
  plan.cells = keyHeads;
  std::optional<SelectionType> selection;
  if (!op.getSelections().empty()) {
    selection = cast<SelectionType>(op.getSelections().front().getType());
    plan.cells = std::max(keyHeads, selection->getHeads());
    if (plan.cells % keyHeads != 0 || plan.cells % selection->getHeads() != 0)
      return op.emitOpError() << "has a kernel for key heads and selection heads that divide one another, but got " << keyHeads << " and "
                              << selection->getHeads();
  }
  plan.group = heads / plan.cells;
  // Where all queries share one list the tile is filled with queries.
  bool sharedByAll = !selection || selection->getDimSize(2) == 1;
  plan.queryBlock = sharedByAll ? std::max<int64_t>(plan.tileRows / plan.group, 1) : selection->getQueryBlock();
  plan.width = host.getVectorWidth(op, std::gcd(dim, valueDim), {{"query", host.getBuffer(op.getQuery())},
                                                                 {"key", host.getBuffer(op.getKey())},
                                                                 {"value", host.getBuffer(op.getValue())}});
  return success();
}

void AttendConversion::requireSizes() {
  NamedBuffer q{"query", host.getBuffer(op.getQuery())}, k{"key", host.getBuffer(op.getKey())}, v{"value", host.getBuffer(op.getValue())};
  host.requireSameDim(op, k, q, 0);
  host.requireSameDim(op, v, k, 0);
  host.requireSameDim(op, v, k, 2);
  Emitter e(host.builder, op.getLoc());
  if (op.getTokens()) {
    NamedBuffer tokens{"tokens", host.getBuffer(op.getTokens())};
    host.requireSameDim(op, tokens, q, 0);
    host.require(op, e.le(e.dim(k.buffer, 2), getNumBlocks(e, op.getBlocksOrTokens(), e.dim(tokens.buffer, 2))),
                 "expected dimension 2 of 'key' to be at most the number of blocks of 'tokens'");
  }
  for (Value s : op.getSelections()) {
    NamedBuffer lists{"selections", host.getBuffer(s)};
    host.requireSameDim(op, lists, q, 0);
    Value rows = e.dim(lists.buffer, 2), wanted = e.ceilDiv(e.dim(q.buffer, 2), e.index(cast<SelectionType>(s.getType()).getQueryBlock()));
    host.require(op, e.either(e.eq(rows, e.index(1)), e.eq(rows, wanted)),
                 "expected dimension 2 of 'selections' to be 1 or the number of query blocks of 'query'");
  }
}

LogicalResult AttendConversion::run() {
  if (failed(checkSupported()) || failed(readSchedule()))
    return failure();
  FailureOr<Value> output = host.allocateResult(op, 0), lse = host.allocateResult(op, 1);
  if (failed(output) || failed(lse))
    return failure();
  requireSizes();

  Emitter e(host.builder, op.getLoc());
  Value q = host.getBuffer(op.getQuery()), key = host.getBuffer(op.getKey());
  Value numTokens = e.dim(op.getTokens() ? host.getBuffer(op.getTokens()) : key, 2);
  SmallVector<Value> arguments = {q, key, host.getBuffer(op.getValue()), *output, *lse, numTokens};
  if (!op.getSelections().empty())
    arguments.push_back(host.getBuffer(op.getSelections().front()));
  size_t firstCaptured = arguments.size();
  FailureOr<SmallVector<Value>> captured = getCapturedScalars(host, op, op.getScore());
  if (failed(captured))
    return failure();
  for (Value v : *captured)
    arguments.push_back(host.getScalar(v));

  Value lists = e.ceilDiv(e.dim(q, 2), e.index(plan.queryBlock));
  Value items = e.mul(e.mul(e.dim(q, 0), e.index(plan.cells * plan.tilesPerList())), lists);
  KernelBuilder k(host.builder, op, "ssa_sparse_attend", 2 * plan.tileRows, arguments);
  LogicalResult result = success();
  k.forEachItem(items, [&](Value item) {
    SmallVector<Value> scalars;
    for (size_t i = 0; i < captured->size(); ++i)
      scalars.push_back(k.getArgument(firstCaptured + i));
    result = build(k, item, scalars);
  });
  for (unsigned rows : {queryArg, keyArg, valueArg})
    k.setReadOnly(rows, plan.width * elementType.getIntOrFloatBitWidth() / 8);
  k.setWriteOnly(outputArg, 2 * cast<MemRefType>(output->getType()).getElementTypeBitWidth() / 8); // pairs of values
  k.setWriteOnly(lseArg, 4);
  k.finish();
  return result;
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

void AttendConversion::decodeItem(KernelBuilder &k, Value item) {
  queryView = BufferView(k, k.getArgument(queryArg));
  keyView = BufferView(k, k.getArgument(keyArg));
  valueView = BufferView(k, k.getArgument(valueArg));
  outputView = BufferView(k, k.getArgument(outputArg));
  lseView = BufferView(k, k.getArgument(lseArg));
  queries = k.toI32(k.dim(queryView.buffer, 2));
  keyRows = k.toI32(k.dim(keyView.buffer, 2));
  tokens = k.toI32(k.getArgument(tokensArg));

  Value lists = k.ceilDiv(k.dim(queryView.buffer, 2), k.index(plan.queryBlock));
  auto split = [&](Value count) {
    Value part = k.rem(item, count);
    item = k.div(item, count);
    return part;
  };
  Value tile = split(k.index(plan.tilesPerList()));
  // Under a causal mask the last queries see most: they go first, so that the short ones fill the gaps.
  list = k.sub(k.sub(lists, k.index(1)), split(lists));
  cell = split(k.index(plan.cells));
  batch = item;
  firstRow = k.mul(k.toI32(tile), k.i32(plan.tileRows));
}

AttendConversion::Row AttendConversion::getRow(Emitter &k, Value row) {
  Value inList = k.add(firstRow, row), group = k.i32(plan.group);
  Value query = k.div(inList, group);
  Value m = k.add(k.mul(k.toI32(list), k.i32(plan.queryBlock)), query);
  Value head = k.add(k.mul(k.toI32(cell), group), k.rem(inList, group));
  return {m, head, k.both(k.lt(query, k.i32(plan.queryBlock)), k.lt(m, queries))};
}

RowPlace AttendConversion::placeOf(Emitter &k, const BufferView &view, Value row) {
  Row r = getRow(k, row);
  return {view.getBegin(k, {batch, k.toIndex(r.head), k.toIndex(r.m)}), r.exists};
}

LogicalResult AttendConversion::build(KernelBuilder &k, Value item, ArrayRef<Value> captured) {
  decodeItem(k, item);
  TileEmitter t(k, plan.tileRows);
  queryTile = t.alloc({plan.tileRows, paddedDim()}, elementType);
  keyRing = t.alloc({plan.stages, plan.tileKeys, paddedDim()}, elementType);
  valueRing = t.alloc({plan.stages, plan.tileKeys, paddedValueDim()}, elementType);
  // The numbers of a step, or the first one and how many there are.
  numberRing = t.alloc({plan.stages, contiguousSteps() ? 2 : plan.tileKeys}, k.builder.getI32Type());
  return buildTile(k, captured);
}

/// Starts the copies of one step, closing a group also where there is none: groups are counted.
void AttendConversion::loadStep(KernelBuilder &k, TileEmitter &t, const KeySlots &slots, Value step) {
  k.ifThen(k.lt(step, slots.steps), [&] {
    Value stage = k.rem(step, k.i32(plan.stages)), first = k.mul(step, k.i32(plan.tileKeys));
    std::optional<KeySlots::Step> neighbours;
    if (slots.isContiguous())
      neighbours = slots.getStep(k, step);
    t.fill(t.slot(numberRing, stage), [&](Value entry) {
      if (neighbours)
        return k.select(k.eq(entry, k.i32(0)), neighbours->base, neighbours->count);
      return slots.getNumber(k, k.add(first, entry));
    });
    auto copy = [&](const BufferView &view, Value ring, int64_t columns) {
      Value head = k.div(cell, k.index(plan.cells / cast<MemRefType>(view.buffer.getType()).getDimSize(1)));
      Value begin = view.getBegin(k, {batch, head});
      if (neighbours)
        begin = view.advance(k, begin, 2, k.toIndex(neighbours->base));
      t.copyRows(view.buffer, t.slot(ring, stage), columns, plan.width, [&](Value row) -> RowPlace {
        Value number = neighbours ? slots.getNumber(k, *neighbours, row) : slots.getNumber(k, k.add(first, row));
        return {view.advance(k, begin, 2, k.toIndex(neighbours ? row : number)), slots.isInSight(k, number)};
      });
    };
    copy(keyView, keyRing, dim);
    copy(valueView, valueRing, valueDim);
  });
  t.commitCopies();
}

/// The scores of one step, hidden ones `-inf`.
FailureOr<Value> AttendConversion::getLogits(KernelBuilder &k, TileEmitter &t, const KeySlots &slots, ScoreTiles &scores, Value products, Value stage) {
  Type i32 = k.builder.getI32Type();
  Value entries = t.slot(numberRing, stage);
  if (!slots.isContiguous())
    return scores.getLogits(products, t.mapColumns(plan.tileKeys, i32, [&](Value column) { return t.loadEntry(entries, column); }));
  KeySlots::Step step{t.loadEntry(entries, k.i32(0)), t.loadEntry(entries, k.i32(1))};
  auto numbers = [&] { return t.mapColumns(plan.tileKeys, i32, [&](Value column) { return slots.getNumber(k, step, column); }); };
  if (!op.getScore().empty())
    return scores.getLogits(products, numbers());
  // Most steps hide nothing from anyone.
  Value logits = scores.scaleProducts(products);
  return k.ifElse(slots.isAllVisible(k, step), logits.getType(), [&] { return SmallVector<Value>{logits}; },
                  [&] { return SmallVector<Value>{scores.hide(logits, numbers())}; })
      .front();
}

LogicalResult AttendConversion::buildTile(KernelBuilder &k, ArrayRef<Value> captured) {
  TileEmitter t(k, plan.tileRows);
  Type f32 = k.builder.getF32Type(), i32 = k.builder.getI32Type();
  Value shift = k.sub(tokens, queries);

  // The positions between which the tile's queries stand.
  Value lastRow = k.min(k.add(firstRow, k.i32(plan.tileRows - 1)), k.i32(plan.queryBlock * plan.group - 1));
  Value firstQuery = k.mul(k.toI32(list), k.i32(plan.queryBlock));
  Value group = k.i32(plan.group);
  Value firstPosition = k.add(k.add(firstQuery, k.div(firstRow, group)), shift);
  Value lastPosition = k.add(k.min(k.add(firstQuery, k.div(lastRow, group)), k.sub(queries, k.i32(1))), shift);
  KeySlots slots(k, {op.getMask().value_or(nullptr), op.getBlocksOrTokens(), tokens, keyRows, firstPosition, lastPosition, plan.tileKeys});
  if (op.getSelections().empty())
    slots.useRange(k);
  else
    slots.useList(k, cast<SelectionType>(op.getSelections().front().getType()), k.getArgument(firstFreeArg), {batch, cell, list}, plan.cells);

  // Rows of the last item are still being read until all threads are here.
  gpu::BarrierOp::create(k.builder, k.loc);
  t.copyRows(queryView.buffer, queryTile, dim, plan.width, [&](Value row) { return placeOf(k, queryView, row); });
  for (int64_t s = 0; s + 1 < plan.stages; ++s)
    loadStep(k, t, slots, k.i32(s));
  Value lhs = queryTile;
  if (plan.family == ssa_gpu::Family::mma_sync) {
    t.waitCopies(plan.stages - 2);
    lhs = t.loadOperand(queryTile);
  }
  Value positions = t.mapRows(i32, [&](Value row) { return k.add(getRow(k, row).m, shift); });
  Value heads = t.mapRows(i32, [&](Value row) { return getRow(k, row).head; });
  ScoreTiles scores(k, t, op, plan.tileKeys, captured, k.toI32(batch), heads, positions, slots);

  auto accumulator = t.accumulatorType(paddedValueDim(), f32);
  Value zeros = t.constant(t.accumulatorType(plan.tileKeys, f32), k.builder.getF32FloatAttr(0));
  SmallVector<Value> inits = {t.constant(t.rowsType(f32), k.builder.getF32FloatAttr(-std::numeric_limits<float>::infinity())),
                              t.constant(t.rowsType(f32), k.builder.getF32FloatAttr(0)),
                              t.constant(accumulator, k.builder.getF32FloatAttr(0))};
  LogicalResult result = success();
  SmallVector<Value> state = k.loop(k.i32(0), slots.steps, k.i32(1), inits, [&](Value step, ValueRange carried) -> SmallVector<Value> {
    t.waitCopies(plan.stages - 2);
    loadStep(k, t, slots, k.add(step, k.i32(plan.stages - 1)));
    Value stage = k.rem(step, k.i32(plan.stages));
    Value products = t.mma(plan.family, lhs, t.slot(keyRing, stage), /*transposed=*/true, zeros);
    FailureOr<Value> logits = getLogits(k, t, slots, scores, products, stage);
    if (failed(logits)) {
      result = failure();
      return llvm::to_vector(carried);
    }
    SoftmaxStep softmax = scores.getSoftmaxStep(*logits, carried[0], carried[1]);
    Value scaled = k.fmul(carried[2], t.broadcast(softmax.rescale, paddedValueDim()));
    Value weights = t.toOperand(softmax.weights, elementType);
    Value sum = t.mma(plan.family, weights, t.slot(valueRing, stage), /*transposed=*/false, scaled);
    return {softmax.max, softmax.sum, sum};
  });

  // An empty row has sum 0 and is 0 / 1.
  Value one = t.constant(t.rowsType(f32), k.builder.getF32FloatAttr(1));
  Value isEmpty = arith::CmpFOp::create(k.builder, k.loc, arith::CmpFPredicate::OEQ, state[1], inits[1]);
  Value divisor = k.select(isEmpty, one, state[1]);
  t.storeRows(k.fdiv(state[2], t.broadcast(divisor, paddedValueDim())), outputView.buffer, valueDim,
              [&](Value row) { return placeOf(k, outputView, row); });
  Value log = math::LogOp::create(k.builder, k.loc, state[1]);
  Value lse = k.select(isEmpty, inits[0], k.fadd(scores.getNaturalMax(state[0]), log));
  t.storeEntries(lse, lseView.buffer, [&](Value row) { return placeOf(k, lseView, row); });
  return result;
}

LogicalResult ssa::convertSparseAttend(HostFunction &host, SparseAttendOp op) { return AttendConversion(host, op).run(); }
