//===- ScoreRow.cpp - One row of scores in a kernel -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "KeySlots.h"
#include "TopK.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <limits>

using namespace mlir;
using namespace mlir::ssa;

SmallVector<Value> TopKOperands::getArguments() const {
  SmallVector<Value> arguments = {scores, selection, tokens, queries, columns};
  if (within)
    arguments.push_back(within);
  return arguments;
}

TopKOperands TopKOperands::inKernel(KernelBuilder &k, TopKOp op) {
  TopKOperands in;
  in.scores = k.getArgument(scoresArgument);
  in.selection = k.getArgument(selectionArgument);
  in.tokens = k.getArgument(tokensArgument);
  in.queries = k.getArgument(queriesArgument);
  in.columns = k.getArgument(columnsArgument);
  if (op.getWithin())
    in.within = k.getArgument(withinArgument);
  return in;
}

static constexpr double infinity = std::numeric_limits<double>::infinity();

/// Bits of the marked score of a column that must be taken: a NaN.
static constexpr int32_t forcedMark = 0x7fffffff;
/// The key of the least finite f32.
static constexpr int32_t lowestFiniteKey = 0x00800000;

//===----------------------------------------------------------------------===//
// Place
//===----------------------------------------------------------------------===//

Value ScoreRow::getNumRows() {
  return k.mul(k.mul(k.dim(in.selection, 0), k.dim(in.selection, 1)), k.dim(in.selection, 2));
}

Value ScoreRow::getMaxColumns() { return in.columns; }

void ScoreRow::locate(Value row) {
  Value rows = k.dim(in.scores, 2), heads = k.index(type.getHeads());
  Value query = k.split(row, rows), head = k.split(row, heads);
  locate(row, head, query);
  useScores(in.scores, {b, g, m}, k.toI32(k.dim(in.scores, 3)));
  if (isWithin())
    end = scored;
}

void ScoreRow::useScores(Value buffer, ArrayRef<Value> place, Value count, Value firstColumn) {
  scoreBuffer = buffer;
  scorePlace.assign(place.begin(), place.end());
  firstScored = firstColumn;
  useScores([this, buffer, place = llvm::to_vector(place)](Value column) {
    SmallVector<Value> at = place;
    at.push_back(getNumber(column));
    return k.load(buffer, at);
  }, count);
}

/// Which of the scores in the buffer is that of a column.
Value ScoreRow::getNumber(Value column) {
  if (!firstScored)
    return k.toIndex(column);
  // Where columns differ by constants addresses do.
  auto sum = column.getDefiningOp<arith::AddIOp>();
  std::optional<int64_t> further = sum ? getConstantIntValue(sum.getRhs()) : std::nullopt;
  Value number = k.toIndex(k.sub(further ? sum.getLhs() : column, firstScored));
  return further ? k.add(number, k.index(*further)) : number;
}

void ScoreRow::useScores(std::function<Value(Value)> load, Value count) {
  loadScore = std::move(load);
  scored = count;
}

void ScoreRow::locate(Value batch, Value head, Value query) {
  b = batch;
  g = head;
  m = query;
  Value tokens = in.tokens, queries = in.queries;
  Value shift = k.sub(tokens, queries), firstQuery = k.mul(m, k.index(type.getQueryBlock()));
  Value endQuery = k.min(k.add(firstQuery, k.index(type.getQueryBlock())), queries);
  Value first = k.add(firstQuery, shift), last = k.sub(k.add(endQuery, shift), k.index(1));
  Value size = k.index(type.getKeyBlock()), numBlocks = k.ceilDiv(tokens, size);
  locateMask(first, last, numBlocks);
  if (op.getLocalBlocks()) {
    // Queries before the first token have no block.
    Value own = k.toI32(k.div(k.max(last, k.index(0)), size)), other = k.toI32(k.div(k.max(first, k.index(0)), size));
    localBegin = k.sub(other, k.i32(op.getLocalBlocks() - 1));
    Value count = k.add(k.sub(own, localBegin), k.i32(1));
    localSize = k.select(k.lt(last, k.index(0)), k.i32(0), count);
  }
  if (!isWithin())
    return;
  int64_t rowsPerList = op.getWithin().getType().getQueryBlock() / type.getQueryBlock();
  Value isShared = k.eq(k.dim(in.within, 2), k.index(1));
  listRow = k.select(isShared, k.index(0), k.div(m, k.index(rowsPerList)));
  entryEnd = k.toI32(k.ceilDiv(numBlocks, k.index(blocksPerEntry())));
  begin = k.i32(0);
}

/// The blocks that the mask allows to one of the queries at positions `first` .. `last`: see Geometry::allowed.
void ScoreRow::locateMask(Value first, Value last, Value numBlocks) {
  MaskAttr mask = op.getMask().value_or(nullptr);
  Value zero = k.index(0), size = k.index(type.getKeyBlock()), tokens = in.tokens;
  Value windowFirst = zero, windowEnd = tokens;
  auto clamp = [&](Value n) { return k.max(k.min(n, tokens), zero); };
  if (mask && mask.getCausal())
    windowEnd = clamp(k.add(last, k.index(1)));
  if (mask && mask.getWindow()) {
    windowFirst = k.max(k.sub(first, k.index(mask.getWindow() - 1)), zero);
    Value visibleEnd = windowEnd;
    if (!mask.getCausal())
      windowEnd = clamp(k.add(last, k.index(mask.getWindow())));
    if (mask.getSink())
      sinkEnd = k.toI32(k.ceilDiv(k.min(k.index(mask.getSink()), visibleEnd), size));
  }
  windowBegin = k.toI32(k.div(windowFirst, size));
  Value windowLast = k.select(k.lt(windowFirst, windowEnd), k.toI32(k.ceilDiv(windowEnd, size)), windowBegin);
  windowSize = k.sub(windowLast, windowBegin);
  begin = sinkEnd ? k.i32(0) : windowBegin;
  end = sinkEnd ? k.max(windowLast, sinkEnd) : windowLast;
}

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

/// The scores of columns before `end`. Without `haveAll` some may have none; no
/// branch depends on which.
SmallVector<Value> ScoreRow::loadScores(ArrayRef<Value> columns, bool haveAll) {
  if (haveAll)
    return llvm::map_to_vector(columns, loadScore);
  SmallVector<Value> none(columns.size(), k.f32(-infinity));
  SmallVector<Type> types(columns.size(), k.builder.getF32Type());
  Value last = k.sub(scored, k.i32(1));
  return k.ifElse(
      k.lt(k.i32(0), scored), types,
      [&] {
        return llvm::map_to_vector(columns, [&](Value column) {
          return k.select(k.lt(column, scored), loadScore(k.min(column, last)), none.front());
        });
      },
      [&] { return none; });
}

/// The entry of `within` that a column belongs to.
Value ScoreRow::loadEntry(Value column) {
  Value entry = k.toIndex(k.div(column, k.i32(blocksPerEntry())));
  return k.load(in.within, {b, g, listRow, entry});
}

Value ScoreRow::getBlock(Value column) {
  if (!isWithin())
    return column;
  Value perEntry = k.i32(blocksPerEntry());
  return k.add(k.mul(loadEntry(column), perEntry), k.rem(column, perEntry));
}

void ScoreRow::classify(Value number, Column &column) {
  Value block = number;
  auto require = [&](Value condition) { column.mayBe = column.mayBe ? k.both(column.mayBe, condition) : condition; };
  if (isWithin()) {
    Value entry = loadEntry(number), perEntry = k.i32(blocksPerEntry());
    require(k.ult(entry, entryEnd)); // neither padding nor past the end
    block = k.add(k.mul(entry, perEntry), k.rem(number, perEntry));
  }
  // Without a gap between sink and window `begin` and `end` say it all.
  if (isWithin() || sinkEnd) {
    Value isAllowed = k.ult(k.sub(block, windowBegin), windowSize);
    require(sinkEnd ? k.either(isAllowed, k.ult(block, sinkEnd)) : isAllowed);
  }
  if (op.getInitBlocks())
    column.isForced = k.ult(block, k.i32(op.getInitBlocks()));
  if (op.getLocalBlocks()) {
    Value isLocal = k.ult(k.sub(block, localBegin), localSize);
    column.isForced = column.isForced ? k.either(column.isForced, isLocal) : isLocal;
  }
}

Value ScoreRow::arePlain(Value first, int64_t count) {
  if (!isWithin() || !op.getWithin().getType().getSorted() || sinkEnd || count % blocksPerEntry() != 0)
    return nullptr;
  // Entries between the first and the last lie between them, if the last is no padding.
  Value perEntry = k.i32(blocksPerEntry());
  Value low = loadEntry(first), high = loadEntry(k.add(first, k.i32(count - 1)));
  Value begin = k.max(windowBegin, k.i32(op.getInitBlocks())), end = k.add(windowBegin, windowSize);
  if (op.getLocalBlocks())
    end = k.min(end, localBegin);
  Value isInside = k.both(k.le(begin, k.mul(low, perEntry)), k.le(k.mul(k.add(high, k.i32(1)), perEntry), end));
  return k.both(isInside, k.le(low, high));
}

std::optional<ScoreRow::PlainColumns> ScoreRow::getPlainColumns() {
  if (isWithin() || sinkEnd)
    return std::nullopt;
  PlainColumns plain;
  plain.begin = k.min(k.max(begin, k.i32(op.getInitBlocks())), end);
  auto clamp = [&](Value column) { return k.max(k.min(column, end), plain.begin); };
  plain.end = clamp(op.getLocalBlocks() ? localBegin : end);
  MaskAttr mask = op.getMask().value_or(nullptr);
  if (op.getLocalBlocks() && !(mask && mask.getCausal())) // else the query's own block is the last
    plain.rest = clamp(k.add(localBegin, localSize));
  return plain;
}

SmallVector<Value> ScoreRow::loadPlain(ArrayRef<Value> columns) {
  SmallVector<Value> scores = loadScores(columns, /*haveAll=*/true);
  if (canForce()) // no NaN may look like the mark
    for (Value &score : scores)
      score = arith::MaxNumFOp::create(k.builder, k.loc, score, k.f32(-infinity));
  return scores;
}

ScoreRow::Column ScoreRow::loadColumn(Value number) {
  Column column;
  column.score = loadScores(number, /*haveAll=*/false)[0];
  classify(number, column);
  return column;
}

Value ScoreRow::mark(Value score, Value number) {
  Column column;
  classify(number, column);
  Value none = k.f32(-infinity), mark = score;
  if (column.isForced) { // no other NaN may look like the mark
    mark = arith::MaxNumFOp::create(k.builder, k.loc, score, none);
    mark = k.select(column.isForced, k.bitcast(k.i32(forcedMark), k.builder.getF32Type()), mark);
  }
  return column.mayBe ? k.select(column.mayBe, mark, none) : mark;
}

SmallVector<Value> ScoreRow::loadMarked(ArrayRef<Value> columns, bool areAll) {
  Value last = k.sub(end, k.i32(1)), none = k.f32(-infinity);
  auto clamp = [&](Value column) { return areAll ? column : k.min(column, last); };
  SmallVector<Value> real = llvm::map_to_vector(columns, clamp), marked;
  SmallVector<Value> scores = loadScores(real, areAll);
  for (auto [wanted, number, score] : llvm::zip_equal(columns, real, scores)) {
    Value mark = this->mark(score, number);
    marked.push_back(areAll ? mark : k.select(k.lt(wanted, end), mark, none));
  }
  return marked;
}

/// Bytes of a score, which lies at a multiple of that.
static constexpr int64_t scoreBytes = 4;

Value ScoreRow::getPlace(Value column) { return k.add(BufferView(k, scoreBuffer).getBegin(k, scorePlace), getNumber(column)); }

Value ScoreRow::countBeforeVectors() {
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(k.builder, k.loc, scoreBuffer);
  Value number = k.add(k.div(address, k.index(scoreBytes)), getPlace(begin)); // of the score in memory
  return k.toI32(k.rem(k.sub(k.index(0), number), k.index(vectorColumns)));
}

SmallVector<Value> ScoreRow::loadVector(Value first) {
  // A pointer, as a load from the buffer would require this alignment of all rows.
  OpBuilder &builder = k.builder;
  auto toI64 = [&](Value v) -> Value { return arith::IndexCastOp::create(builder, k.loc, builder.getI64Type(), v); };
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext(), /*addressSpace=*/1);
  Value base = LLVM::IntToPtrOp::create(builder, k.loc, pointer, toI64(memref::ExtractAlignedPointerAsIndexOp::create(builder, k.loc, scoreBuffer)));
  Value address = LLVM::GEPOp::create(builder, k.loc, pointer, builder.getF32Type(), base, LLVM::GEPArg(toI64(getPlace(first))));
  auto type = VectorType::get({vectorColumns}, builder.getF32Type());
  Value vector = LLVM::LoadOp::create(builder, k.loc, type, address, vectorColumns * scoreBytes);
  SmallVector<Value> scores;
  for (int64_t i = 0; i < vectorColumns; ++i)
    scores.push_back(vector::ExtractOp::create(builder, k.loc, vector, i));
  return scores;
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

/// A number that orders as a score does which is not NaN.
Value ScoreRow::orderBits(Value score) {
  Value bits = k.bitcast(k.fadd(score, k.f32(0)), k.builder.getI32Type()); // -0 becomes +0
  Value sign = arith::ShRSIOp::create(k.builder, k.loc, bits, k.i32(31));
  return k.bitXor(bits, k.either(sign, k.i32(std::numeric_limits<int32_t>::min())));
}

Value ScoreRow::getScoreKey(Value score) {
  Value isScore = arith::CmpFOp::create(k.builder, k.loc, arith::CmpFPredicate::OGT, score, k.f32(-infinity));
  return k.select(isScore, orderBits(score), k.i32(neverKey));
}

Value ScoreRow::withForced(Value key, Value marked) {
  if (!canForce())
    return key;
  Value isForced = k.eq(k.bitcast(marked, k.builder.getI32Type()), k.i32(forcedMark));
  return k.select(isForced, k.i32(int32_t(forcedKey)), key);
}

Value ScoreRow::getKey(Value marked) { return withForced(getScoreKey(marked), marked); }
Value ScoreRow::getReachingKey(Value marked) { return withForced(orderBits(marked), marked); }

Value ScoreRow::reaches(Value marked, Value boundScore) {
  Value isAbove = arith::CmpFOp::create(k.builder, k.loc, arith::CmpFPredicate::OGE, marked, boundScore);
  if (!canForce())
    return isAbove;
  return k.either(isAbove, k.eq(k.bitcast(marked, k.builder.getI32Type()), k.i32(forcedMark)));
}

Value ScoreRow::getBoundScore(Value key) {
  // Keys below that of the least finite score are of none; above that of +inf
  // comes the mark, which is NaN.
  key = k.umax(key, k.i32(lowestFiniteKey));
  Value sign = arith::ShRSIOp::create(k.builder, k.loc, key,
                                      k.i32(31)); // all ones of a score that is not negative
  Value flip = k.either(k.bitXor(sign, k.i32(-1)), k.i32(std::numeric_limits<int32_t>::min()));
  return k.bitcast(k.bitXor(key, flip), k.builder.getF32Type());
}

Value ScoreRow::getMass(Value key) {
  Value bits = k.bitXor(key, k.i32(std::numeric_limits<int32_t>::min())); // of a score that is
                                                                          // not negative
  Value score =
      arith::ExtFOp::create(k.builder, k.loc, k.builder.getF64Type(), k.bitcast(bits, k.builder.getF32Type()));
  return k.select(k.lt(key, k.i32(0)), score, k.f64(0));
}

Value ScoreRow::getLowestKey() {
  uint32_t lowest = neverKey + 1;
  if (op.getThreshold()) {
    float threshold = float(op.getThreshold()->convertToDouble()) + 0.0f; // -0 becomes +0
    uint32_t bits = llvm::bit_cast<uint32_t>(threshold);
    lowest = bits >> 31 ? ~bits : bits | 0x80000000;
  }
  return k.i32(int32_t(lowest));
}

//===----------------------------------------------------------------------===//
// The list
//===----------------------------------------------------------------------===//

void ScoreRow::storeEntry(Value rank, Value number) {
  k.store(number, in.selection, {b, g, m, k.toIndex(rank)});
}

void ScoreRow::storePadding(Value rank, Value thread, int64_t numThreads) {
  k.loop(k.add(rank, thread), k.i32(type.getWidth()), k.i32(numThreads), [&](Value i) { storeEntry(i, k.i32(-1)); });
}
