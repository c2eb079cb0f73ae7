//===- StreamTopK.cpp - topk of rows that come in parts -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "StreamTopK.h"
#include "KeySlots.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <limits>

using namespace mlir;
using namespace mlir::ssa;

/// Loads of a lane from the list that are under way together.
static constexpr int64_t entriesAtATime = 8;
/// The same of keys alone: a wide list is read as fast as can be, for a narrow one less code is better.
static int64_t getKeysAtATime(int64_t width) { return width > 256 ? 16 : 8; }
/// Words of an entry of the list.
static constexpr int64_t entryWords = 2;
/// Columns for which a warp has bits, where histograms are.
static constexpr int64_t byteBits = 8, wordBits = 32, pageColumns = StreamSelector::histogramWords * wordBits;
/// Where one column of so many is listed it is quicker to look at all.
static constexpr int64_t denseShare = 4;

/// Keys that a list may have besides `width` when its floor has risen.
static int64_t getSlack(int64_t width) { return std::max(width / 16, std::min<int64_t>(width / 4, 32)); }

int64_t StreamSelector::getPadding(int64_t width) { return 2 * getKeysAtATime(width) * warpSize; }

StreamSelector::StreamSelector(BlockKernel &k, TopKOp op, const TopKOperands &in, int64_t capacity, int64_t loadsOfScore, bool inVectors)
    : Emitter(k.builder, k.loc), row(k, op, in), k(k), width(op.getType().getWidth()),
      scoresAtATime(std::max<int64_t>(16 / loadsOfScore, 1)), slack(getSlack(width)), trigger(FusedSelectAttr::getListTrigger(width)), capacity(capacity),
      keysAtATime(getKeysAtATime(width)), inVectors(inVectors && !row.canForce() && row.isOneRange()) {
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
  auto flat = MemRefType::get({entryWords * capacity}, builder.getI32Type(), StridedLayoutAttr::get(builder.getContext(), ShapedType::kDynamic, {1}));
  Value base = memref::ExtractStridedMetadataOp::create(builder, loc, buffer).getBaseBuffer();
  return memref::ReinterpretCastOp::create(builder, loc, flat, base, OpFoldResult(begin), {builder.getIndexAttr(entryWords * capacity)}, {builder.getIndexAttr(1)});
}

void StreamSelector::setState(StateWord word, Value v) {
  ifThen(eq(k.lane(), i32(0)), [&] { store(v, shared, add(stateBegin, index(word))); });
}

//===----------------------------------------------------------------------===//
// The list
//===----------------------------------------------------------------------===//

/// Where the entry is that comes `further` behind a slot.
Value StreamSelector::placeOfEntry(Value slot, int64_t further) { return mul(add(toIndex(slot), index(further)), index(entryWords)); }

void StreamSelector::storeEntry(Value list, Value slot, Value key, Value column) {
  auto type = VectorType::get({entryWords}, builder.getI32Type());
  storeVector(vector::FromElementsOp::create(builder, loc, type, ValueRange{key, column}), list, placeOfEntry(slot));
}

/// Keys that are never taken behind the last of the list, so many times as many as are looked at together.
void StreamSelector::padList(Value count, int64_t times) {
  Value slot = add(count, k.lane());
  for (int64_t u = 0; u < times * keysAtATime; ++u)
    store(i32(neverKey), list, placeOfEntry(slot, u * warpSize));
  k.warpBarrier();
}

/// Appends the keys of scores that reach the bound, with their columns. There is room for all.
void StreamSelector::listScores(ArrayRef<Value> scores, Value first, Value boundScore, ListState &state) {
  for (auto [u, score] : llvm::enumerate(scores)) {
    Value reaches = row.reaches(score, boundScore);
    auto some = [&, score = score, u = u] {
      Value mask = ballot(reaches), key = row.getReachingKey(score);
      ifThen(reaches, [&] { storeEntry(list, add(state[0], k.countBelow(mask)), key, add(first, add(k.lane(), i32(u * warpSize)))); });
      return SmallVector<Value>{add(state[0], popCount(mask)), umax(state[1], select(reaches, key, i32(neverKey)))};
    };
    state = ifElse(k.anyLane(reaches), ValueRange(state).getTypes(), some, [&] { return state; });
  }
}

/// Of columns of which each may be forced, or not to be taken.
StreamSelector::ListState StreamSelector::listMarked(Value first, Value end, Value boundScore, bool haveScores, ListState state) {
  auto list = [&](Value from, ValueRange carried, int64_t loads, bool areAll) {
    SmallVector<Value> numbers;
    Value own = add(from, k.lane());
    for (int64_t u = 0; u < loads; ++u)
      numbers.push_back(add(own, i32(u * warpSize)));
    ListState state(carried);
    listScores(row.loadMarked(numbers, areAll), from, boundScore, state);
    return state;
  };
  Value rest = first, rowEnd = row.end;
  if (haveScores) {
    int64_t chunk = scoresAtATime * warpSize;
    rest = add(first, mul(div(max(sub(end, first), i32(0)), i32(chunk)), i32(chunk)));
    state = loop(first, rest, i32(chunk), state, [&](Value from, ValueRange carried) { return list(from, carried, scoresAtATime, /*areAll=*/true); });
  }
  row.end = end;
  state = loop(rest, end, i32(warpSize), state, [&](Value from, ValueRange carried) { return list(from, carried, 1, /*areAll=*/false); });
  row.end = rowEnd;
  return state;
}

/// Of columns that may all be taken, and none must be: those that reach the bound are bits first, of as many columns as a warp has bits for.
StreamSelector::ListState StreamSelector::listPlain(Value first, Value end, Value boundScore, ListState state) {
  Value origin = row.firstScored, begin = add(origin, mul(div(sub(first, origin), i32(chunkColumns)), i32(chunkColumns)));
  return loop(begin, end, i32(pageColumns), state, [&](Value page, ValueRange carried) {
    Value pageEnd = min(end, add(page, i32(pageColumns)));
    loop(page, pageEnd, i32(chunkColumns), [&](Value from) { markReaching(from, sub(from, page), boundScore); });
    k.warpBarrier();
    ListState state = listMarks(page, max(sub(first, page), i32(0)), sub(pageEnd, page), carried);
    k.warpBarrier(); // the bits have been read
    return state;
  });
}

/// Sets or clears the bits of a chunk of columns, those from bit `firstBit` on. Columns behind the last have some scores in memory, too.
void StreamSelector::markReaching(Value first, Value firstBit, Value boundScore) {
  Type byte = builder.getI8Type();
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext(), /*addressSpace=*/3);
  auto toI64 = [&](Value v) -> Value { return arith::IndexCastOp::create(builder, loc, builder.getI64Type(), v); };
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, shared);
  Value begin = add(address, mul(histogramBegin, index(wordBits / byteBits))), own = add(first, mul(k.lane(), i32(byteBits)));
  Value bytes = LLVM::IntToPtrOp::create(builder, loc, pointer, toI64(add(begin, toIndex(add(div(firstBit, i32(byteBits)), k.lane())))));
  for (int64_t group = 0; group < chunkColumns / (byteBits * warpSize); ++group) {
    Value bits = i32(0);
    int64_t further = group * byteBits * warpSize;
    for (int64_t v = 0; v < byteBits; v += ScoreRow::vectorColumns)
      for (auto [i, score] : llvm::enumerate(row.loadVector(add(own, i32(further + v)))))
        bits = either(bits, select(row.reaches(score, boundScore), i32(1 << (v + i)), i32(0)));
    Value at = LLVM::GEPOp::create(builder, loc, pointer, byte, bytes, LLVM::GEPArg(group * warpSize));
    LLVM::StoreOp::create(builder, loc, arith::TruncIOp::create(builder, loc, byte, bits), at);
  }
}

/// Appends the columns of the bits `begin` .. `end`-1, that of bit 0 being `first`. A lane has words that follow one another.
StreamSelector::ListState StreamSelector::listMarks(Value first, Value begin, Value end, ValueRange state) {
  Value none = i32(0), one = i32(1), firstWord = div(begin, i32(wordBits)), endWord = ceilDiv(end, i32(wordBits));
  ifThen(eq(k.lane(), none), [&] { // others of the first and the last word do not count
    auto keep = [&](Value word, Value bits) { store(both(load(shared, placeOfBits(word)), bits), shared, placeOfBits(word)); };
    keep(firstWord, shiftLeft(i32(-1), rem(begin, i32(wordBits))));
    keep(sub(endWord, one), shiftRight(i32(-1), both(sub(none, end), i32(wordBits - 1))));
  });
  k.warpBarrier();
  Value perLane = ceilDiv(sub(endWord, firstWord), i32(warpSize));
  Value own = min(add(firstWord, toI32(mul(toIndex(k.lane()), toIndex(perLane)))), endWord), ownEnd = min(add(own, perLane), endWord);
  Value count = loop(own, ownEnd, one, none, [&](Value word, ValueRange sum) { return SmallVector<Value>{add(sum[0], popCount(load(shared, placeOfBits(word))))}; })[0];
  BlockKernel::Scan scan = k.scanWarp(count);
  Value total = add(state[0], scan.total), isDense = lt(i32(chunkColumns / denseShare), div(scan.total, max(perLane, one)));
  auto dense = [&] { return SmallVector<Value>{listWords(first, firstWord, endWord, state)}; };
  auto sparse = [&] { return SmallVector<Value>{listBits(first, own, ownEnd, {add(state[0], scan.before), state[1]})}; };
  return {total, ifElse(isDense, builder.getI32Type(), dense, sparse)[0]};
}

/// The same of many columns of words `begin` .. `end`-1: a word after the other. The greatest key.
Value StreamSelector::listWords(Value first, Value begin, Value end, ValueRange state) {
  // Pages end where words that are looked at together do, but for the last, behind which there are scores of no meaning.
  Value aligned = mul(div(begin, i32(entriesAtATime)), i32(entriesAtATime));
  return loop(aligned, end, i32(entriesAtATime), state, [&](Value word, ValueRange carried) {
    SmallVector<Value> words, scores;
    Value column = add(add(first, mul(word, i32(wordBits))), k.lane()), last = sub(end, i32(1));
    for (int64_t u = 0; u < entriesAtATime; ++u) {
      Value number = add(word, i32(u));
      words.push_back(select(both(le(begin, number), lt(number, end)), load(shared, placeOfBits(min(number, last))), i32(0)));
      scores.push_back(row.loadPlainScore(add(column, i32(u * wordBits))));
    }
    Value count = carried[0], greatest = carried[1];
    for (auto [u, bits, score] : llvm::enumerate(words, scores)) {
      Value isListed = ne(both(shiftRight(bits, k.lane()), i32(1)), i32(0)), key = row.getPlainKey(score);
      ifThen(isListed, [&, u = u, bits = bits] { storeEntry(list, add(count, k.countBelow(bits)), key, add(column, i32(u * wordBits))); });
      count = add(count, popCount(bits));
      greatest = umax(greatest, select(isListed, key, i32(neverKey)));
    }
    return SmallVector<Value>{count, greatest};
  })[1];
}

/// The same of few columns, of a lane's words `begin` .. `end`-1: a lane one after the other.
Value StreamSelector::listBits(Value first, Value begin, Value end, SmallVector<Value> state) {
  Value none = i32(0), one = i32(1);
  // Goes on to the next word that has bits: these, and the word behind it.
  auto advance = [&](Value bits, Value next) {
    return loopWhile({bits, next}, [&](ValueRange carried) { return both(eq(carried[0], none), lt(carried[1], end)); },
                     [&](ValueRange carried) { return SmallVector<Value>{load(shared, placeOfBits(carried[1])), add(carried[1], one)}; });
  };
  state.append(advance(none, begin));
  return loopWhile(state, [&](ValueRange carried) { return ne(carried[2], none); }, [&](ValueRange carried) {
    Value bits = carried[2], column = add(add(first, mul(sub(carried[3], one), i32(wordBits))), countTrailingZeros(bits));
    Value key = row.getPlainKey(row.loadPlainScore(column));
    storeEntry(list, carried[0], key, column);
    SmallVector<Value> results = {add(carried[0], one), umax(carried[1], key)};
    results.append(advance(both(bits, sub(bits, one)), carried[3]));
    return results;
  })[1];
}

Value StreamSelector::forEachTaken(Value count, const Threshold &threshold, llvm::function_ref<void(Value, Value, Value)> keep) {
  Value choosesEquals = lt(i32(0), threshold.room);
  return loop(i32(0), count, i32(entriesAtATime * warpSize), {i32(0), i32(0)}, [&](Value first, ValueRange carried) {
    SmallVector<Value> entries;
    for (int64_t u = 0; u < entriesAtATime; ++u)
      entries.push_back(Emitter::loadVector(list, placeOfEntry(add(first, k.lane()), u * warpSize), entryWords));
    k.warpBarrier(); // what is kept may be written to where others have read
    Value written = carried[0], seen = carried[1];
    for (Value entry : entries) {
      Value key = vector::ExtractOp::create(builder, loc, entry, 0), column = vector::ExtractOp::create(builder, loc, entry, 1);
      Value isAbove = ugt(key, threshold.key);
      auto chooseEquals = [&]() -> SmallVector<Value> {
        Value isEqual = eq(key, threshold.key), equals = ballot(isEqual);
        Value isTaken = either(isAbove, both(isEqual, lt(add(seen, k.countBelow(equals)), threshold.room)));
        return {isTaken, add(seen, popCount(equals))};
      };
      SmallVector<Value> chosen = ifElse(choosesEquals, {builder.getI1Type(), builder.getI32Type()}, chooseEquals, [&] { return SmallVector<Value>{isAbove, seen}; });
      Value taken = ballot(chosen[0]);
      ifThen(chosen[0], [&] { keep(add(written, k.countBelow(taken)), key, column); });
      written = add(written, popCount(taken));
      seen = chosen[1];
    }
    return SmallVector<Value>{written, seen};
  })[0];
}

//===----------------------------------------------------------------------===//
// The K-th greatest
//===----------------------------------------------------------------------===//

/// Keys of `count` entries from `first` on, a few of a lane at a time; behind them there are others that are never taken.
SmallVector<Value> StreamSelector::forEachKey(Value first, Value count, ValueRange inits, llvm::function_ref<SmallVector<Value>(Value key, ValueRange carried)> visit) {
  return loop(first, add(first, count), i32(keysAtATime * warpSize), inits, [&](Value first, ValueRange carried) {
    SmallVector<Value> keys, state(carried);
    for (int64_t u = 0; u < keysAtATime; ++u)
      keys.push_back(load(list, placeOfEntry(add(first, k.lane()), u * warpSize)));
    for (Value key : keys)
      state = visit(key, state);
    return state;
  });
}

/// One histogram of the keys in `low` .. `high`, of `count` entries from `first` on: the range becomes that of the bin of the `wanted`-th greatest of them.
/// Bins have `mostBits` bits at most, but for the last. Returned are both ends, `wanted`, whether the threshold is found (it is `low` then), how many keys
/// equal to it are taken, 0 if all are, and the keys in the bin.
SmallVector<Value> StreamSelector::narrow(Value first, Value count, ValueRange range, Value mostBits, int64_t slack) {
  constexpr int64_t binBits = 8, binsPerLane = histogramWords / warpSize;
  static_assert(histogramWords == 1 << binBits, "a bin for each number of so many bits");
  Value low = range[0], high = range[1], wanted = range[2];
  Value shift = min(max(sub(i32(32 - binBits), countLeadingZeros(sub(high, low))), i32(0)), mostBits);
  auto binAt = [&](Value number) { return add(histogramBegin, toIndex(number)); };
  for (int64_t i = 0; i < binsPerLane; ++i)
    store(i32(0), shared, binAt(add(k.lane(), i32(i * warpSize))));
  k.warpBarrier();
  forEachKey(first, count, {}, [&](Value key, ValueRange) {
    atomicAdd(i32(1), shared, binAt(umin(shiftRight(sub(high, key), shift), i32(histogramWords - 1))));
    return SmallVector<Value>();
  });
  k.warpBarrier();
  // A lane has neighbouring bins. The first has the greatest keys; the last has all below the others, and what is outside of the range.
  SmallVector<Value> numbers, inBins;
  Value sum = i32(0), ownBin = i32(0), beforeBin = i32(0), inBin = i32(0), isMine = bit(false);
  for (int64_t i = 0; i < binsPerLane; ++i) {
    numbers.push_back(add(mul(k.lane(), i32(binsPerLane)), i32(i)));
    inBins.push_back(load(shared, binAt(numbers.back())));
    sum = add(sum, inBins.back());
  }
  Value before = k.scanWarp(sum).before;
  for (auto [number, size] : llvm::zip_equal(numbers, inBins)) {
    Value reached = add(before, size), isIt = both(lt(before, wanted), ge(reached, wanted));
    ownBin = select(isIt, number, ownBin);
    beforeBin = select(isIt, before, beforeBin);
    inBin = select(isIt, size, inBin);
    isMine = either(isMine, isIt);
    before = reached;
  }
  Value owner = countTrailingZeros(ballot(isMine));
  auto ofOwner = [&](Value v) { return k.shuffle(v, owner); };
  Value left = sub(wanted, ofOwner(beforeBin)), bin = ofOwner(ownBin), end = sub(high, shiftLeft(bin, shift));
  Value size = select(eq(bin, i32(histogramWords - 1)), sub(end, low), umin(sub(shiftLeft(i32(1), shift), i32(1)), sub(end, low))), begin = sub(end, size);
  Value inRange = ofOwner(inBin), takesAll = le(sub(inRange, left), i32(slack)), isFound = either(takesAll, eq(size, i32(0)));
  k.warpBarrier(); // the bins have been read
  return {begin, end, left, isFound, select(takesAll, i32(0), left), inRange};
}

/// Copies the keys in `low` .. `high` of the list's first `count` entries to those from `to` on, where there is room; how many there are.
Value StreamSelector::copyRange(Value count, Value low, Value high, Value to) {
  Value counter = histogramBegin, size = sub(high, low);
  ifThen(eq(k.lane(), i32(0)), [&] { store(i32(0), shared, counter); });
  k.warpBarrier();
  forEachKey(i32(0), count, {}, [&](Value key, ValueRange) {
    ifThen(ule(sub(key, low), size), [&] { store(key, list, placeOfEntry(add(to, atomicAdd(i32(1), shared, counter)))); });
    return SmallVector<Value>();
  });
  k.warpBarrier();
  Value copied = load(shared, counter);
  k.warpBarrier(); // it has been read
  return copied;
}

/// What `width` keys of the list, and up to `slack` more, pass; all of them where it is short, as there are no more than `width`.
StreamSelector::Threshold StreamSelector::findThreshold(Value count, int64_t slack, Value isShort) {
  Value low = umax(getState(floorWord), i32(1));
  Value high = row.canForce() ? i32(int32_t(forcedKey)) : umax(getState(greatestWord), low);
  // Where the threshold of a wide list is exact the last few that it may be are looked at by themselves, behind the keys of the list that are looked at together.
  int64_t few = keysAtATime * warpSize;
  bool looksAtFew = slack == 0 && width > few;
  Value behind = mul(ceilDiv(count, i32(few)), i32(few));
  padList(count, looksAtFew ? 2 : 1);
  // The first histogram is of the greatest scores only, as finely as is mostly enough.
  constexpr int64_t octaves = 4, mantissaBits = 23, binBits = 8, all = 32 - binBits;
  Value firstBits = i32(row.canForce() ? all : mantissaBits + llvm::Log2_64(octaves) - binBits);
  SmallVector<Value> found = loopWhile(
      {low, high, i32(width), isShort, i32(0), i32(0), count, firstBits}, [&](ValueRange state) { return eq(state[3], bit(false)); },
      [&](ValueRange state) {
        SmallVector<Value> range = narrow(state[5], state[6], state, state[7], slack), part = {state[5], state[6]};
        Value inRange = range.pop_back_val();
        if (looksAtFew) {
          Value isFew = both(both(le(inRange, i32(few)), eq(state[5], i32(0))), eq(range[3], bit(false)));
          auto takeFew = [&]() -> SmallVector<Value> { return {behind, copyRange(count, range[0], range[1], behind)}; };
          part = ifElse(isFew, ValueRange(part).getTypes(), takeFew, [&] { return part; });
        }
        range.append(part);
        range.push_back(i32(all));
        return range;
      });
  Value least = select(isShort, i32(neverKey + 1), found[0]), room = found[4];
  return {select(eq(room, i32(0)), sub(least, i32(1)), least), room};
}

void StreamSelector::raiseFloor(Value count) {
  Threshold threshold = findThreshold(count, slack);
  // What is written lies before what has not been read.
  Value kept = forEachTaken(count, threshold, [&](Value rank, Value key, Value column) { storeEntry(list, rank, key, column); });
  k.warpBarrier();
  setState(countWord, kept);
  setState(floorWord, select(eq(threshold.room, i32(0)), add(threshold.key, i32(1)), threshold.key));
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
  Value floor = getState(floorWord), bound = add(floor, i32(1));
  if (row.canForce())
    bound = select(eq(floor, i32(int32_t(forcedKey))), floor, bound);
  Value boundScore = row.getBoundScore(bound);
  first = max(first, row.begin);
  end = min(end, row.end);
  ListState state = {getState(countWord), getState(greatestWord)};
  if (haveScores && inVectors)
    state = listPlain(first, end, boundScore, state);
  else
    state = listMarked(first, end, boundScore, haveScores, state);
  k.warpBarrier();
  setState(countWord, state[0]);
  setState(greatestWord, k.warpMax(state[1]));
  k.warpBarrier();
}

void StreamSelector::take(Value first, Value end, Value isLast) {
  takeColumns(first, end, /*haveScores=*/true);
  Value count = getState(countWord), isFull = lt(i32(trigger), count);
  if (!row.canForce()) // nothing comes behind the last columns
    isFull = both(isFull, eq(isLast, bit(false)));
  ifThen(isFull, [&] { raiseFloor(count); });
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
  Value target = getList(parts, place, capacityOfParts), count = getState(countWord);
  auto keep = [&](Value rank, Value key, Value column) { storeEntry(target, add(first, rank), key, column); };
  Value written = forEachTaken(count, findThreshold(count, /*slack=*/0), keep);
  loop(add(written, k.lane()), i32(width), i32(warpSize), [&](Value rank) { keep(rank, i32(neverKey), i32(0)); });
}

void StreamSelector::selectFromParts(Value count) {
  // Keys of nothing are below all others: they are not in the range that is searched, and not taken.
  padList(count, 1);
  SmallVector<Value> found = forEachKey(i32(0), count, {i32(0), i32(neverKey)}, [&](Value key, ValueRange carried) {
    return SmallVector<Value>{add(carried[0], popCount(ballot(ne(key, i32(neverKey))))), umax(carried[1], key)};
  });
  begin();
  setState(greatestWord, k.warpMax(found[1]));
  k.warpBarrier();
  Threshold threshold = findThreshold(count, /*slack=*/0, le(found[0], i32(width)));
  Value written = forEachTaken(count, threshold, [&](Value rank, Value, Value column) { row.storeColumn(rank, column); });
  row.storePadding(written, k.lane(), warpSize);
}
