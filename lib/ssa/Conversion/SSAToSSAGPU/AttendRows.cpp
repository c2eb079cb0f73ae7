//===- AttendRows.cpp - sparse_attend on CUDA cores -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For f32 and mixed types, of which nothing may be rounded, and for odd head dims, which copies in pairs do not fit. Items and slots
// are those of the tensor-core kernel (Attend.cpp).
//
// A block keeps its rows of queries in shared memory, as f32, and goes through the keys in steps of as many as a warp has lanes. Of
// scores, a lane owns a key and the rows of its warp; of outputs, some columns of the same rows. So all that passes between
// the two products stays within a warp.
//
//===----------------------------------------------------------------------===//

#include "Attend.h"
#include "Block.h"
#include "KeySlots.h"
#include "ScoreRegion.h"
#include "ssa/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

using namespace mlir;
using namespace mlir::ssa;

bool ssa::takesTensorCores(SparseAttendOp op) {
  Type type = op.getQuery().getType().getElementType();
  bool isOneType = op.getKey().getType().getElementType() == type && op.getValue().getType().getElementType() == type;
  bool isEven = op.getQuery().getType().getDimSize(3) % 2 == 0 && op.getOutput().getType().getDimSize(3) % 2 == 0;
  return isOneType && type.getIntOrFloatBitWidth() == 16 && isEven;
}

namespace {

constexpr int64_t warps = 4, keysPerStep = warpSize, quad = 4;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// Rows in shared memory, as f32. The pitch is an odd number of quads, so that lanes with a row each read different banks.
struct SharedRows {
  SharedRows(int64_t rows, int64_t columns) : rows(rows), columns(columns), pitch(quad * (llvm::divideCeil(columns, quad) | 1)) {}
  int64_t bytes() const { return rows * pitch * 4; }
  int64_t rows, columns, pitch;
  Value memory;
};

/// What follows from types.
struct RowsPlan {
  RowsPlan(SparseAttendOp op, int64_t cells);
  int64_t dim, valueDim, cells, group, queryBlock;
  int64_t chunk, chunks; // of columns of outputs: a lane has so many neighbours, so many times
  int64_t rowsPerWarp;
  int64_t tileRows() const { return warps * rowsPerWarp; }
  int64_t tilesPerList() const { return ssa::ceilDiv(queryBlock * group, tileRows()); }
};

class AttendRowsKernel : public BlockKernel {
public:
  enum Argument { queryArg, keyArg, valueArg, outputArg, lseArg, tokensArg, firstFreeArg };

  AttendRowsKernel(HostFunction &host, SparseAttendOp op, const RowsPlan &plan, ValueRange arguments, size_t numCaptured);
  int64_t getSharedBytes() const { return queries.bytes() + keys.bytes() + values.bytes() + weights.bytes() + keysPerStep * 4; }
  void build(HostFunction &host, TargetAttr target);

private:
  /// A row of the warp: which query of which head.
  struct Row {
    Value m, head, position, exists; // index, index, i32, i1
  };
  /// Where a row that is copied lies, and whether it is there.
  struct Source {
    SmallVector<Value> at;
    Value exists;
  };

  void allocateShared();
  void decodeItem(Value item);
  Row getRow(Value inTile);
  KeySlots getSlots();
  void buildItem(Value item);
  void copyRows(Argument rows, const SharedRows &to, int64_t width, llvm::function_ref<Source(Value row)> source);
  void loadStep(const KeySlots &slots, Value step);
  SmallVector<Value> multiplyKeys();
  Value getLogit(const KeySlots &slots, const Row &row, Value product, Value number);
  SmallVector<Value> joinWeights(const KeySlots &slots, ValueRange state);
  SmallVector<Value> multiplyValues(ValueRange outputs, ValueRange rescale);
  void storeRow(const Row &row, ValueRange state, unsigned i);
  Value reduceWarp(Value v, llvm::function_ref<Value(Value, Value)> combine);
  Value exp(Value x) { return math::ExpOp::create(builder, loc, x); }

  SparseAttendOp op;
  RowsPlan plan;
  size_t numCaptured;
  int64_t queryWidth, keyWidth, valueWidth;
  SharedRows queries, keys, values, weights;
  Value numbers; // of a step's keys, i32

  // Of the item.
  Value batch, cell, list, firstRow, numQueries, shift, tokens, keyRows;
  SmallVector<Row> rows;
};

} // namespace

RowsPlan::RowsPlan(SparseAttendOp op, int64_t cells)
    : dim(op.getQuery().getType().getDimSize(3)), valueDim(op.getOutput().getType().getDimSize(3)), cells(cells),
      group(op.getQuery().getType().getDimSize(1) / cells) {
  chunk = std::min<int64_t>(llvm::PowerOf2Ceil(llvm::divideCeil(std::max<int64_t>(valueDim, 1), warpSize)), quad);
  chunks = llvm::divideCeil(valueDim, warpSize * chunk);
  std::optional<SelectionType> selection;
  if (!op.getSelections().empty())
    selection = cast<SelectionType>(op.getSelections().front().getType());
  bool sharedByAll = !selection || selection->getDimSize(2) == 1;
  // As many rows as there are, and as registers hold outputs of.
  constexpr int64_t maxRows = 8, maxOutputs = 64;
  int64_t rowsOfList = sharedByAll ? warps * maxRows : std::min<int64_t>(selection->getQueryBlock(), warps * maxRows) * group;
  rowsPerWarp = std::min<int64_t>(llvm::PowerOf2Ceil(llvm::divideCeil(rowsOfList, warps)), maxRows);
  while (rowsPerWarp > 1 && rowsPerWarp * chunks * chunk > maxOutputs)
    rowsPerWarp /= 2;
  queryBlock = sharedByAll ? std::max<int64_t>(tileRows() / group, 1) : selection->getQueryBlock();
}

AttendRowsKernel::AttendRowsKernel(HostFunction &host, SparseAttendOp op, const RowsPlan &plan, ValueRange arguments, size_t numCaptured)
    : BlockKernel(host.builder, op, "ssa_sparse_attend_rows", warps * warpSize, arguments), op(op), plan(plan), numCaptured(numCaptured),
      queryWidth(host.getVectorWidth(op, plan.dim, {{"query", arguments[queryArg]}})),
      keyWidth(host.getVectorWidth(op, plan.dim, {{"key", arguments[keyArg]}})),
      valueWidth(host.getVectorWidth(op, plan.valueDim, {{"value", arguments[valueArg]}})), queries(plan.tileRows(), plan.dim),
      keys(keysPerStep, plan.dim), values(keysPerStep, plan.valueDim), weights(plan.tileRows(), keysPerStep) {}

void AttendRowsKernel::allocateShared() {
  int64_t begin = 0;
  for (SharedRows *part : {&queries, &keys, &values, &weights}) {
    part->memory = getDynamicShared(builder.getF32Type(), index(begin), index(part->bytes() / 4));
    begin += part->bytes();
  }
  numbers = getDynamicShared(builder.getI32Type(), index(begin), index(keysPerStep));
}

void AttendRowsKernel::decodeItem(Value item) {
  numQueries = dim(getArgument(queryArg), 2);
  tokens = getArgument(tokensArg);
  keyRows = op.isGathered() ? getNumBlocks(*this, op.getBlocksOrTokens(), tokens) : dim(getArgument(keyArg), 2);
  shift = toI32(sub(tokens, numQueries));
  Value lists = ceilDiv(numQueries, index(plan.queryBlock));
  firstRow = mul(split(item, index(plan.tilesPerList())), index(plan.tileRows()));
  list = sub(sub(lists, index(1)), split(item, lists)); // those that see most go first
  cell = split(item, index(plan.cells));
  batch = item;
}

AttendRowsKernel::Row AttendRowsKernel::getRow(Value inTile) {
  Value inList = add(firstRow, inTile), query = div(inList, index(plan.group));
  Value m = add(mul(list, index(plan.queryBlock)), query);
  Value head = add(mul(cell, index(plan.group)), rem(inList, index(plan.group)));
  return {m, head, add(toI32(m), shift), both(lt(query, index(plan.queryBlock)), lt(m, numQueries))};
}

/// The keys that one of the tile's queries may see.
KeySlots AttendRowsKernel::getSlots() {
  Value first = mul(list, index(plan.queryBlock)), group = index(plan.group), one = index(1);
  Value lastRow = min(add(firstRow, index(plan.tileRows() - 1)), index(plan.queryBlock * plan.group - 1));
  Value firstPosition = add(toI32(add(first, div(firstRow, group))), shift);
  Value lastPosition = add(toI32(min(add(first, div(lastRow, group)), sub(numQueries, one))), shift);
  KeySlots slots(*this, {op.getMask().value_or(nullptr), op.getBlocksOrTokens(), toI32(tokens), toI32(keyRows), firstPosition, lastPosition,
                         keysPerStep});
  if (op.getSelections().empty()) {
    slots.useRange(*this);
    return slots;
  }
  auto use = op.isGathered() ? &KeySlots::useGatheredRows : &KeySlots::useList;
  (slots.*use)(*this, cast<SelectionType>(op.getSelections().front().getType()), getArgument(firstFreeArg), {batch, cell, list}, plan.cells);
  return slots;
}

/// Copies rows to shared memory, `width` elements at a time; those that are not there become 0, and so does what fills the last quad.
void AttendRowsKernel::copyRows(Argument argument, const SharedRows &to, int64_t width, llvm::function_ref<Source(Value)> source) {
  Value buffer = getArgument(argument), threads = index(getNumThreads());
  Type type = cast<MemRefType>(buffer.getType()).getElementType();
  int64_t perRow = to.columns / width;
  loop(threadId(), index(to.rows * perRow), threads, [&](Value access) {
    Value row = div(access, index(perRow)), column = mul(rem(access, index(perRow)), index(width));
    Source from = source(row);
    SmallVector<Value> at = from.at;
    at.push_back(column);
    auto vector = VectorType::get({width}, type);
    Value loaded = ifElse(
        from.exists, vector, [&] { return SmallVector<Value>{loadVector(buffer, at, width)}; },
        [&] { return SmallVector<Value>{arith::ConstantOp::create(builder, loc, cast<TypedAttr>(builder.getZeroAttr(vector)))}; })[0];
    storeVector(extend(loaded), to.memory, add(mul(row, index(to.pitch)), column));
  });
  if (int64_t rest = llvm::alignTo(to.columns, quad) - to.columns)
    loop(threadId(), index(to.rows * rest), threads, [&](Value place) {
      Value column = add(index(to.columns), rem(place, index(rest)));
      store(f32(0), to.memory, add(mul(div(place, index(rest)), index(to.pitch)), column));
    });
}

/// Keys, values and numbers of a step. Numbers come first: all that is copied of a row needs its own.
void AttendRowsKernel::loadStep(const KeySlots &slots, Value step) {
  Value first = mul(step, i32(keysPerStep));
  ifThen(lt(thread(), i32(keysPerStep)), [&] {
    Value number = slots.getNumber(*this, add(first, thread()));
    store(select(slots.isInSight(*this, number), number, i32(KeySlots::none)), numbers, threadId());
  });
  barrier();
  Value head = div(cell, index(plan.cells / cast<MemRefType>(getArgument(keyArg).getType()).getDimSize(1)));
  auto source = [&](Value row) -> Source {
    Value number = load(numbers, row), exists = ne(number, i32(KeySlots::none));
    if (op.isGathered())
      return {{batch, head, slots.listRow, add(toIndex(first), row)}, exists};
    return {{batch, head, toIndex(number)}, exists};
  };
  copyRows(keyArg, keys, keyWidth, source);
  copyRows(valueArg, values, valueWidth, source);
}

/// The products of the lane's key with the queries of the warp.
SmallVector<Value> AttendRowsKernel::multiplyKeys() {
  Value zero = arith::ConstantOp::create(builder, loc, cast<TypedAttr>(builder.getZeroAttr(VectorType::get({quad}, builder.getF32Type()))));
  SmallVector<Value> zeros(plan.rowsPerWarp, zero);
  Value keyBegin = mul(toIndex(lane()), index(keys.pitch)), queryBegin = mul(toIndex(warp()), index(queries.pitch));
  SmallVector<Value> sums = loop(index(0), index(plan.dim), index(quad), zeros, [&](Value d, ValueRange carried) {
    Value key = loadVector(keys.memory, add(keyBegin, d), quad);
    SmallVector<Value> next;
    for (int64_t i = 0; i < plan.rowsPerWarp; ++i) {
      Value query = loadVector(queries.memory, add(add(queryBegin, d), index(i * warps * queries.pitch)), quad);
      next.push_back(math::FmaOp::create(builder, loc, query, key, carried[i]));
    }
    return next;
  });
  return llvm::map_to_vector(sums, [&](Value sum) -> Value {
    auto at = [&](int64_t i) -> Value { return vector::ExtractOp::create(builder, loc, sum, i); };
    return fadd(fadd(at(0), at(1)), fadd(at(2), at(3)));
  });
}

/// The logit of the lane's key for a row; `-inf` where it is hidden.
Value AttendRowsKernel::getLogit(const KeySlots &slots, const Row &row, Value product, Value number) {
  std::optional<APFloat> written = op.getScale();
  double scale = written ? double(float(written->convertToDouble())) : 1 / std::sqrt(double(plan.dim));
  Value logit = fmul(product, f32(scale));
  if (!op.getScore().empty()) {
    SmallVector<Value> captured;
    for (size_t i = 0; i < numCaptured; ++i)
      captured.push_back(getArgument(firstFreeArg + op.getSelections().size() + i));
    Value arguments[] = {logit, toI32(batch), toI32(row.head), row.position, number};
    logit = applyScoreRegion(ScoreShape(*this), op.getScore(), captured, [&](unsigned i) { return arguments[i]; });
  }
  return select(slots.isVisible(*this, number, row.position), logit, f32(-infinity));
}

Value AttendRowsKernel::reduceWarp(Value v, llvm::function_ref<Value(Value, Value)> combine) {
  for (int64_t distance = 1; distance < warpSize; distance *= 2)
    v = combine(v, gpu::ShuffleOp::create(builder, loc, v, distance, warpSize, gpu::ShuffleMode::XOR).getShuffleResult());
  return v;
}

/// Joins a step with those before. `state` has the maximum of each row, then the lane's part of the sum of each. Gives the new ones, then
/// what outputs are to be rescaled by; the weights of the step go to shared memory.
SmallVector<Value> AttendRowsKernel::joinWeights(const KeySlots &slots, ValueRange state) {
  int64_t count = plan.rowsPerWarp;
  SmallVector<Value> products = multiplyKeys(), maxima, sums, rescales;
  Value number = load(numbers, toIndex(lane()));
  for (int64_t i = 0; i < count; ++i) {
    Value logit = getLogit(slots, rows[i], products[i], number);
    Value max = reduceWarp(logit, [&](Value a, Value b) -> Value { return arith::MaximumFOp::create(builder, loc, a, b); });
    max = arith::MaximumFOp::create(builder, loc, state[i], max);
    // As long as a row has seen nothing, differences are taken from 0: -inf - -inf is NaN.
    Value isNone = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, max, f32(-infinity));
    Value reference = select(isNone, f32(0), max);
    Value weight = exp(fsub(logit, reference)), rescale = exp(fsub(state[i], reference));
    store(weight, weights.memory, add(mul(toIndex(add(warp(), i32(i * warps))), index(weights.pitch)), toIndex(lane())));
    maxima.push_back(max);
    sums.push_back(fadd(fmul(state[count + i], rescale), weight));
    rescales.push_back(rescale);
  }
  warpBarrier();
  maxima.append(sums);
  maxima.append(rescales);
  return maxima;
}

/// Adds the step's values, times their weights, to the rescaled outputs; a row has `chunks` vectors.
SmallVector<Value> AttendRowsKernel::multiplyValues(ValueRange outputs, ValueRange rescales) {
  SmallVector<Value> rescaled;
  for (auto [i, output] : llvm::enumerate(outputs))
    rescaled.push_back(fmul(output, broadcast(rescales[i / plan.chunks], plan.chunk)));
  Value column = mul(toIndex(lane()), index(plan.chunk)), weightBegin = mul(toIndex(warp()), index(weights.pitch));
  return loop(index(0), index(keysPerStep), index(quad), rescaled, [&](Value key, ValueRange carried) {
    SmallVector<Value> sums = llvm::to_vector(carried), own;
    for (int64_t i = 0; i < plan.rowsPerWarp; ++i)
      own.push_back(loadVector(weights.memory, add(add(weightBegin, key), index(i * warps * weights.pitch)), quad));
    for (int64_t k = 0; k < quad; ++k)
      for (int64_t c = 0; c < plan.chunks; ++c) {
        // Lanes past the last column multiply some other: what they have is not stored.
        Value at = min(add(column, index(c * warpSize * plan.chunk)), index(std::max<int64_t>(values.pitch - plan.chunk, 0)));
        Value value = loadVector(values.memory, add(mul(add(key, index(k)), index(values.pitch)), at), plan.chunk);
        for (int64_t i = 0; i < plan.rowsPerWarp; ++i) {
          Value weight = broadcast(vector::ExtractOp::create(builder, loc, own[i], k), plan.chunk);
          Value &sum = sums[i * plan.chunks + c];
          sum = math::FmaOp::create(builder, loc, weight, value, sum);
        }
      }
    return sums;
  });
}

/// Writes row `i` of the warp: `state` has maxima, sums and outputs.
void AttendRowsKernel::storeRow(const Row &row, ValueRange state, unsigned i) {
  Value max = state[i], sum = reduceWarp(state[plan.rowsPerWarp + i], [&](Value a, Value b) { return fadd(a, b); });
  Value isEmpty = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, sum, f32(0));
  Value factor = broadcast(select(isEmpty, f32(1), sum), plan.chunk);
  Type type = op.getOutput().getType().getElementType();
  ifThen(row.exists, [&] {
    for (int64_t c = 0; c < plan.chunks; ++c) {
      Value output = round(fdiv(state[2 * plan.rowsPerWarp + i * plan.chunks + c], factor), type);
      for (int64_t k = 0; k < plan.chunk; ++k) {
        Value column = add(mul(toIndex(lane()), index(plan.chunk)), index(c * warpSize * plan.chunk + k));
        Value element = vector::ExtractOp::create(builder, loc, output, k);
        ifThen(lt(column, index(plan.valueDim)), [&] { store(element, getArgument(outputArg), {batch, row.head, row.m, column}); });
      }
    }
    Value lse = select(isEmpty, f32(-infinity), fadd(max, math::LogOp::create(builder, loc, sum)));
    ifThen(eq(lane(), i32(0)), [&] { store(lse, getArgument(lseArg), {batch, row.head, row.m}); });
  });
}

void AttendRowsKernel::buildItem(Value item) {
  decodeItem(item);
  KeySlots slots = getSlots();
  int64_t count = plan.rowsPerWarp;
  rows.clear();
  for (int64_t i = 0; i < count; ++i)
    rows.push_back(getRow(toIndex(add(warp(), i32(i * warps)))));
  barrier(); // rows of the last item have been read
  copyRows(queryArg, queries, queryWidth, [&](Value row) -> Source {
    Row r = getRow(row);
    return {{batch, r.head, r.m}, r.exists};
  });
  SmallVector<Value> state(count, f32(-infinity));
  state.append(count, f32(0));
  auto vector = VectorType::get({plan.chunk}, builder.getF32Type());
  state.append(count * plan.chunks, arith::ConstantOp::create(builder, loc, cast<TypedAttr>(builder.getZeroAttr(vector))));
  state = loop(i32(0), slots.steps, i32(1), state, [&](Value step, ValueRange carried) {
    barrier(); // the last step has been read
    loadStep(slots, step);
    barrier();
    SmallVector<Value> joined = joinWeights(slots, carried);
    SmallVector<Value> outputs = multiplyValues(carried.drop_front(2 * count), ArrayRef(joined).drop_front(2 * count));
    joined.truncate(2 * count);
    joined.append(outputs);
    return joined;
  });
  for (int64_t i = 0; i < count; ++i)
    storeRow(rows[i], state, i);
}

void AttendRowsKernel::build(HostFunction &host, TargetAttr target) {
  Emitter e(host.builder, loc);
  Value query = host.getBuffer(op.getQuery());
  Value lists = e.ceilDiv(e.dim(query, 2), e.index(plan.queryBlock));
  Value items = e.mul(e.mul(e.dim(query, 0), e.index(plan.cells * plan.tilesPerList())), lists);
  allocateShared();
  // Blocks wait for their copies: more of them hide more, as far as shared memory goes. Above four registers would be short.
  constexpr int64_t maxBlocks = 4, reserved = 1024; // of a block
  setBlocksPerSM(std::clamp<int64_t>(target.sharedMemoryBytesPerSM() / (getSharedBytes() + reserved), 1, maxBlocks));
  forEachItem(items, [&](Value item) { buildItem(item); });
  finish(getSharedBytes());
}

void ssa::requireAttendSizes(HostFunction &host, SparseAttendOp op) {
  NamedBuffer q{"query", host.getBuffer(op.getQuery())}, k{"key", host.getBuffer(op.getKey())}, v{"value", host.getBuffer(op.getValue())};
  host.requireSameDim(op, k, q, 0);
  host.requireSameDim(op, v, k, 0);
  host.requireSameDim(op, v, k, 2);
  Emitter e(host.builder, op.getLoc());
  if (op.getTokens()) {
    NamedBuffer tokens{"tokens", host.getBuffer(op.getTokens())};
    host.requireSameDim(op, tokens, q, 0);
    if (!op.isGathered())
      host.require(op, e.le(e.dim(k.buffer, 2), getNumBlocks(e, op.getBlocksOrTokens(), e.dim(tokens.buffer, 2))),
                   "expected dimension 2 of 'key' to be at most the number of blocks of 'tokens'");
  }
  for (Value s : op.getSelections()) {
    NamedBuffer lists{"selections", host.getBuffer(s)};
    host.requireSameDim(op, lists, q, 0);
    if (op.isGathered())
      host.requireSameDim(op, k, lists, 2);
    Value rows = e.dim(lists.buffer, 2), wanted = e.ceilDiv(e.dim(q.buffer, 2), e.index(cast<SelectionType>(s.getType()).getQueryBlock()));
    host.require(op, e.either(e.eq(rows, e.index(1)), e.eq(rows, wanted)),
                 "expected dimension 2 of 'selections' to be 1 or the number of query blocks of 'query'");
  }
}

LogicalResult ssa::convertAttendRows(HostFunction &host, SparseAttendOp op) {
  TargetAttr target = TargetAttr::of(op);
  if (!target)
    return op.emitOpError("has no target; run 'ssa-attach-target'");
  FailureOr<SmallVector<Value>> captured = getScoreCaptures(host, op.getScore());
  if (failed(captured))
    return failure();
  FailureOr<Value> output = host.allocateResult(op, 0), lse = host.allocateResult(op, 1);
  if (failed(output) || failed(lse))
    return failure();
  requireAttendSizes(host, op);
  Emitter e(host.builder, op.getLoc());
  Value key = host.getBuffer(op.getKey()), tokens = op.getTokens() ? host.getBuffer(op.getTokens()) : key;
  SmallVector<Value> arguments = {host.getBuffer(op.getQuery()), key, host.getBuffer(op.getValue()), *output, *lse, e.dim(tokens, 2)};
  for (Value s : op.getSelections())
    arguments.push_back(host.getBuffer(s));
  llvm::append_range(arguments, *captured);
  AttendRowsKernel k(host, op, RowsPlan(op, op.getCells()), arguments, captured->size());
  if (k.getSharedBytes() > target.sharedMemoryBytes())
    return op.emitOpError() << "on CUDA cores needs " << k.getSharedBytes() << " bytes of shared memory for head dims of "
                            << op.getQuery().getType().getDimSize(3) << " and " << op.getOutput().getType().getDimSize(3) << ", but "
                            << target.getChip() << " has " << target.sharedMemoryBytes();
  k.build(host, target);
  return success();
}
