//===- StreamTopK.cpp - topk of rows that come in parts -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "StreamTopK.h"
#include "KeySlots.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include <limits>

using namespace mlir;
using namespace mlir::ssa;

/// Loads of a lane from the list that are under way together.
static constexpr int64_t keysAtATime = 8;

StreamSelector::StreamSelector(BlockKernel &k, TopKOp op, const TopKOperands &in, int64_t capacity, int64_t loadsOfScore)
    : Emitter(k.builder, k.loc), row(k, op, in), k(k), width(op.getType().getWidth()),
      scoresAtATime(std::max<int64_t>(16 / loadsOfScore, 1)), slack(width / 4), trigger(FusedSelectAttr::getListTrigger(width)), capacity(capacity) {
  assert(width > 0 && width + slack <= trigger && "expected room in the list");
}

void StreamSelector::useShared(Value memory, Value state, Value histogram) {
  shared = memory;
  stateBegin = state;
  histogramBegin = histogram;
}

void StreamSelector::useList(Value buffer, ArrayRef<Value> place) { list = getList(buffer, place, capacity); }

Value StreamSelector::getList(Value buffer, ArrayRef<Value> place, int64_t capacity) {
  Value begin = BufferView(*this, buffer).getBegin(*this, place);
  auto flat = MemRefType::get({2 * capacity}, builder.getI32Type(), StridedLayoutAttr::get(builder.getContext(), ShapedType::kDynamic, {1}));
  Value base = memref::ExtractStridedMetadataOp::create(builder, loc, buffer).getBaseBuffer();
  return memref::ReinterpretCastOp::create(builder, loc, flat, base, OpFoldResult(begin), {builder.getIndexAttr(2 * capacity)}, {builder.getIndexAttr(1)});
}

void StreamSelector::setState(StateWord word, Value v) {
  ifThen(eq(k.lane(), i32(0)), [&] { store(v, shared, add(stateBegin, index(word))); });
}

//===----------------------------------------------------------------------===//
// The list
//===----------------------------------------------------------------------===//

/// `keysAtATime` keys (or columns) of the list from `first` on, of which there are `count`; `neverKey` behind them.
SmallVector<Value> StreamSelector::loadList(Value first, Value count, bool columns) {
  SmallVector<Value> values;
  Value last = sub(count, i32(1));
  for (int64_t u = 0; u < keysAtATime; ++u) {
    Value number = add(first, add(k.lane(), i32(u * warpSize)));
    Value slot = toIndex(min(number, last));
    Value value = load(list, columns ? add(slot, index(capacity)) : slot);
    values.push_back(columns ? value : select(lt(number, count), value, i32(neverKey)));
  }
  return values;
}

void StreamSelector::storeList(Value slot, Value key, Value column) {
  Value place = toIndex(slot);
  store(key, list, place);
  store(column, list, add(place, index(capacity)));
}

/// Appends the keys of scores that reach the bound, with their columns. There is room for all.
void StreamSelector::listScores(ArrayRef<Value> scores, Value first, Value boundScore, Value &count) {
  for (auto [u, score] : llvm::enumerate(scores)) {
    Value reaches = row.reaches(score, boundScore);
    auto some = [&, score = score, u = u] {
      Value mask = ballot(reaches);
      ifThen(reaches, [&] {
        storeList(add(count, k.countBelow(mask)), row.getReachingKey(score), add(first, add(k.lane(), i32(u * warpSize))));
      });
      return SmallVector<Value>{add(count, popCount(mask))};
    };
    count = ifElse(k.anyLane(reaches), builder.getI32Type(), some, [&] { return SmallVector<Value>{count}; })[0];
  }
}

Value StreamSelector::forEachTaken(Value count, const Threshold &threshold, llvm::function_ref<void(Value, Value, Value)> keep) {
  return loop(i32(0), count, i32(keysAtATime * warpSize), {i32(0), i32(0)}, [&](Value first, ValueRange carried) {
    SmallVector<Value> keys = loadList(first, count, /*columns=*/false), columns = loadList(first, count, /*columns=*/true);
    k.warpBarrier(); // what is kept may be written to where others have read
    Value written = carried[0], seen = carried[1];
    for (auto [key, column] : llvm::zip_equal(keys, columns)) {
      Value isEqual = eq(key, threshold.key), equals = ballot(isEqual);
      Value isTaken = either(ugt(key, threshold.key), both(isEqual, lt(add(seen, k.countBelow(equals)), threshold.room)));
      Value taken = ballot(isTaken);
      ifThen(isTaken, [&, key = key, column = column] { keep(add(written, k.countBelow(taken)), key, column); });
      written = add(written, popCount(taken));
      seen = add(seen, popCount(equals));
    }
    return SmallVector<Value>{written, seen};
  })[0];
}

//===----------------------------------------------------------------------===//
// The K-th greatest
//===----------------------------------------------------------------------===//

/// One histogram of the keys in `low` .. `high`: the range becomes that of the bin of the `wanted`-th greatest of them. Carried are both
/// ends, `wanted`, whether the threshold is found (it is `low` then), and its room.
SmallVector<Value> StreamSelector::narrow(Value count, ValueRange range, int64_t slack) {
  constexpr int64_t binBits = 8, binsPerLane = histogramWords / warpSize;
  static_assert(histogramWords == 1 << binBits, "a bin for each number of so many bits");
  Value low = range[0], high = range[1], wanted = range[2];
  Value shift = max(sub(i32(32 - binBits), countLeadingZeros(sub(high, low))), i32(0));
  auto binAt = [&](Value number) { return add(histogramBegin, toIndex(number)); };
  for (int64_t i = 0; i < binsPerLane; ++i)
    store(i32(0), shared, binAt(add(k.lane(), i32(i * warpSize))));
  k.warpBarrier();
  loop(i32(0), count, i32(keysAtATime * warpSize), [&](Value first) {
    for (Value key : loadList(first, count, /*columns=*/false))
      ifThen(both(uge(key, low), ule(key, high)), [&] { atomicAdd(i32(1), shared, binAt(shiftRight(sub(key, low), shift))); });
  });
  k.warpBarrier();
  // A lane has neighbouring bins, the first lane the last of all.
  SmallVector<Value> numbers, inBins;
  Value sum = i32(0), bin = i32(0), beforeBin = i32(0), inBin = i32(0), isMine = bit(false);
  for (int64_t i = 0; i < binsPerLane; ++i) {
    numbers.push_back(sub(i32(histogramWords - 1 - i), mul(k.lane(), i32(binsPerLane))));
    inBins.push_back(load(shared, binAt(numbers.back())));
    sum = add(sum, inBins.back());
  }
  Value before = k.scanWarp(sum).before;
  for (auto [number, size] : llvm::zip_equal(numbers, inBins)) {
    Value reached = add(before, size), isIt = both(lt(before, wanted), ge(reached, wanted));
    bin = select(isIt, number, bin);
    beforeBin = select(isIt, before, beforeBin);
    inBin = select(isIt, size, inBin);
    isMine = either(isMine, isIt);
    before = reached;
  }
  Value owner = countTrailingZeros(ballot(isMine));
  auto ofOwner = [&](Value v) { return k.shuffle(v, owner); };
  Value left = sub(wanted, ofOwner(beforeBin)), begin = add(low, shiftLeft(ofOwner(bin), shift));
  Value end = umin(high, add(begin, sub(shiftLeft(i32(1), shift), i32(1))));
  Value takesAll = le(sub(ofOwner(inBin), left), i32(slack)), isFound = either(takesAll, eq(shift, i32(0)));
  k.warpBarrier(); // the bins have been read
  return {begin, end, left, isFound, select(takesAll, i32(std::numeric_limits<int32_t>::max()), left)};
}

/// What `width` keys of the list, and up to `slack` more, pass; all of them where it is short, as there are no more than `width`.
StreamSelector::Threshold StreamSelector::findThreshold(Value count, int64_t slack, Value isShort) {
  Value low = umax(getState(floorWord), i32(1));
  Value high = row.canForce() ? i32(int32_t(forcedKey)) : umax(getState(greatestWord), low);
  SmallVector<Value> found = loopWhile(
      {low, high, i32(width), isShort, i32(0)}, [&](ValueRange range) { return eq(range[3], bit(false)); },
      [&](ValueRange range) { return narrow(count, range, slack); });
  return {select(isShort, i32(neverKey), found[0]), found[4]};
}

void StreamSelector::raiseFloor(Value count) {
  Threshold threshold = findThreshold(count, slack);
  // What is written lies before what has not been read.
  Value kept = forEachTaken(count, threshold, [&](Value rank, Value key, Value column) { storeList(rank, key, column); });
  k.warpBarrier();
  setState(countWord, kept);
  setState(floorWord, threshold.key);
  k.warpBarrier();
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

void StreamSelector::begin() {
  k.warpBarrier(); // what was known of the row before has been read
  setState(countWord, i32(0));
  setState(floorWord, sub(row.getLowestKey(), i32(1)));
  setState(greatestWord, i32(neverKey));
  k.warpBarrier();
}

void StreamSelector::takeColumns(Value first, Value end, bool haveScores) {
  int64_t chunk = scoresAtATime * warpSize;
  Value floor = getState(floorWord), bound = add(floor, i32(1));
  if (row.canForce())
    bound = select(eq(floor, i32(int32_t(forcedKey))), floor, bound);
  Value boundScore = row.getBoundScore(bound), rowEnd = row.end;
  first = max(first, row.begin);
  end = min(end, row.end);
  auto list = [&](Value from, ValueRange carried, int64_t loads, bool areAll) -> SmallVector<Value> {
    SmallVector<Value> numbers;
    Value own = add(from, k.lane());
    for (int64_t u = 0; u < loads; ++u)
      numbers.push_back(add(own, i32(u * warpSize)));
    SmallVector<Value> scores = row.loadMarked(numbers, areAll);
    Value count = carried[0], greatest = carried[1];
    for (Value score : scores)
      if (!row.canForce())
        greatest = arith::MaxNumFOp::create(builder, loc, greatest, score);
    listScores(scores, from, boundScore, count);
    return {count, greatest};
  };
  Value greatest = getState(greatestWord);
  SmallVector<Value> state = {getState(countWord), f32(-std::numeric_limits<double>::infinity())};
  Value rest = first;
  if (haveScores) {
    rest = add(first, mul(div(max(sub(end, first), i32(0)), i32(chunk)), i32(chunk)));
    state = loop(first, rest, i32(chunk), state, [&](Value from, ValueRange carried) { return list(from, carried, scoresAtATime, /*areAll=*/true); });
  }
  row.end = end;
  state = loop(rest, end, i32(warpSize), state, [&](Value from, ValueRange carried) { return list(from, carried, 1, /*areAll=*/false); });
  row.end = rowEnd;
  k.warpBarrier();
  setState(countWord, state[0]);
  if (!row.canForce())
    setState(greatestWord, umax(greatest, k.warpMax(row.getScoreKey(state[1]))));
  k.warpBarrier();
}

void StreamSelector::take(Value first, Value end) {
  takeColumns(first, end, /*haveScores=*/true);
  Value count = getState(countWord);
  ifThen(lt(i32(trigger), count), [&] { raiseFloor(count); });
}

void StreamSelector::takeForced(Value first, Value end) {
  if (!row.canForce())
    return;
  row.useScores([&](Value) { return f32(-std::numeric_limits<double>::infinity()); }, i32(0));
  takeColumns(first, end, /*haveScores=*/false);
}

void StreamSelector::finish() {
  Value count = getState(countWord);
  Threshold threshold = findThreshold(count, /*slack=*/0);
  Value written = forEachTaken(count, threshold, [&](Value rank, Value, Value column) { row.storeColumn(rank, column); });
  row.storePadding(written, k.lane(), warpSize);
}

//===----------------------------------------------------------------------===//
// Parts of rows
//===----------------------------------------------------------------------===//

void StreamSelector::finishPart(Value parts, ArrayRef<Value> place, int64_t capacityOfParts, Value first) {
  Value target = getList(parts, place, capacityOfParts);
  auto keep = [&](Value rank, Value key, Value column) {
    Value slot = toIndex(add(first, rank));
    store(key, target, slot);
    store(column, target, add(slot, index(capacityOfParts)));
  };
  Value count = getState(countWord);
  Value written = forEachTaken(count, findThreshold(count, /*slack=*/0), keep);
  loop(add(written, k.lane()), i32(width), i32(warpSize), [&](Value rank) { keep(rank, i32(neverKey), i32(0)); });
}

void StreamSelector::selectFromParts(Value count) {
  // Keys of nothing are below all others: they are not in the range that is searched, and not taken.
  SmallVector<Value> found = loop(i32(0), count, i32(keysAtATime * warpSize), {i32(0), i32(neverKey)}, [&](Value first, ValueRange carried) {
    Value existing = carried[0], greatest = carried[1];
    for (Value key : loadList(first, count, /*columns=*/false)) {
      existing = add(existing, popCount(ballot(ne(key, i32(neverKey)))));
      greatest = umax(greatest, key);
    }
    return SmallVector<Value>{existing, greatest};
  });
  begin();
  setState(greatestWord, k.warpMax(found[1]));
  k.warpBarrier();
  Threshold threshold = findThreshold(count, /*slack=*/0, le(found[0], i32(width)));
  Value written = forEachTaken(count, threshold, [&](Value rank, Value, Value column) { row.storeColumn(rank, column); });
  row.storePadding(written, k.lane(), warpSize);
}
