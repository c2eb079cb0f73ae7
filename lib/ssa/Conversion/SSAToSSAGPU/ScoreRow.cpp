//===- ScoreRow.cpp - One row of scores in a kernel -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "TopK.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <limits>

using namespace mlir;
using namespace mlir::ssa;

// Order of the kernels' arguments.
enum { scoresArgument, selectionArgument, tokensArgument, queriesArgument, columnsArgument, withinArgument };

SmallVector<Value> TopKOperands::getArguments() const {
  SmallVector<Value> arguments = {scores, selection, tokens, queries, columns};
  if (within)
    arguments.push_back(within);
  return arguments;
}

static constexpr double infinity = std::numeric_limits<double>::infinity();

//===----------------------------------------------------------------------===//
// Place
//===----------------------------------------------------------------------===//

Value ScoreRow::getNumRows() {
  Value selection = k.getArgument(selectionArgument);
  return k.mul(k.mul(k.dim(selection, 0), k.dim(selection, 1)), k.dim(selection, 2));
}

Value ScoreRow::getMaxColumns() { return k.getArgument(columnsArgument); }

void ScoreRow::locate(Value row) {
  Value scores = k.getArgument(scoresArgument), rows = k.dim(scores, 2), heads = k.index(type.getHeads());
  m = k.rem(row, rows);
  Value head = k.div(row, rows);
  b = k.div(head, heads);
  g = k.rem(head, heads);
  scored = k.toI32(k.dim(scores, 3));

  Value tokens = k.getArgument(tokensArgument), queries = k.getArgument(queriesArgument);
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
  Value isShared = k.eq(k.dim(k.getArgument(withinArgument), 2), k.index(1));
  listRow = k.select(isShared, k.index(0), k.div(m, k.index(rowsPerList)));
  entryEnd = k.toI32(k.ceilDiv(numBlocks, k.index(blocksPerEntry())));
  begin = k.i32(0);
  end = scored;
}

/// The blocks that the mask allows to one of the queries at positions `first` .. `last`: see Geometry::allowed.
void ScoreRow::locateMask(Value first, Value last, Value numBlocks) {
  MaskAttr mask = op.getMask().value_or(nullptr);
  Value zero = k.index(0), size = k.index(type.getKeyBlock()), tokens = k.getArgument(tokensArgument);
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

Value ScoreRow::loadScore(Value column) { return k.load(k.getArgument(scoresArgument), {b, g, m, k.toIndex(column)}); }

Value ScoreRow::loadScoreOrNone(Value column) {
  return k.ifElse(
      k.lt(column, scored), k.builder.getF32Type(), [&] { return SmallVector<Value>{loadScore(column)}; },
      [&] { return SmallVector<Value>{k.f32(-infinity)}; })[0];
}

/// The entry of `within` that a column belongs to.
Value ScoreRow::loadEntry(Value column) {
  Value entry = k.toIndex(k.div(column, k.i32(blocksPerEntry())));
  return k.load(k.getArgument(withinArgument), {b, g, listRow, entry});
}

Value ScoreRow::getBlock(Value column) {
  if (!isWithin())
    return column;
  Value perEntry = k.i32(blocksPerEntry());
  return k.add(k.mul(loadEntry(column), perEntry), k.rem(column, perEntry));
}

ScoreRow::Class ScoreRow::classify(Value column) {
  Class result;
  Value block = column;
  auto require = [&](Value condition) { result.mayBe = result.mayBe ? k.both(result.mayBe, condition) : condition; };
  if (isWithin()) {
    Value entry = loadEntry(column), perEntry = k.i32(blocksPerEntry());
    require(k.ult(entry, entryEnd)); // neither padding nor past the end
    block = k.add(k.mul(entry, perEntry), k.rem(column, perEntry));
  }
  // Without a gap between sink and window `begin` and `end` say it all.
  if (isWithin() || sinkEnd) {
    Value isAllowed = k.ult(k.sub(block, windowBegin), windowSize);
    require(sinkEnd ? k.either(isAllowed, k.ult(block, sinkEnd)) : isAllowed);
  }
  if (op.getInitBlocks())
    result.isForced = k.ult(block, k.i32(op.getInitBlocks()));
  if (op.getLocalBlocks()) {
    Value isLocal = k.ult(k.sub(block, localBegin), localSize);
    result.isForced = result.isForced ? k.either(result.isForced, isLocal) : isLocal;
  }
  return result;
}

Value ScoreRow::getKey(Value score, const Class &columnClass) {
  Value isScore = arith::CmpFOp::create(k.builder, k.loc, arith::CmpFPredicate::OGT, score, k.f32(-infinity));
  Value bits = k.bitcast(k.fadd(score, k.f32(0)), k.builder.getI32Type()); // -0 becomes +0
  Value sign = arith::ShRSIOp::create(k.builder, k.loc, bits, k.i32(31));
  Value key = k.bitXor(bits, k.either(sign, k.i32(std::numeric_limits<int32_t>::min())));
  key = k.select(isScore, key, k.i32(neverKey));
  if (columnClass.isForced)
    key = k.select(columnClass.isForced, k.i32(int32_t(forcedKey)), key);
  return columnClass.mayBe ? k.select(columnClass.mayBe, key, k.i32(neverKey)) : key;
}

Value ScoreRow::getKeyOrNever(Value column, Value score) {
  return k.ifElse(
      k.lt(column, end), k.builder.getI32Type(), [&] { return SmallVector<Value>{getKey(column, score)}; },
      [&] { return SmallVector<Value>{k.i32(neverKey)}; })[0];
}

Value ScoreRow::getMass(Value key) {
  Value bits = k.bitXor(key, k.i32(std::numeric_limits<int32_t>::min())); // of a score that is not negative
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
  k.store(number, k.getArgument(selectionArgument), {b, g, m, k.toIndex(rank)});
}

void ScoreRow::storePadding(Value rank, Value thread, int64_t numThreads) {
  k.loop(k.add(rank, thread), k.i32(type.getWidth()), k.i32(numThreads), [&](Value i) { storeEntry(i, k.i32(-1)); });
}
