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

/// Entries of the list that a lane loads together: a wide list is read as fast as can be, for a narrow one less code is better.
static int64_t getEntriesAtATime(int64_t width) { return width > 256 ? 8 : 4; }
/// The same of keys alone.
static int64_t getKeysAtATime(int64_t width) { return 2 * getEntriesAtATime(width); }
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
      scoresAtATime(std::max<int64_t>(8 / loadsOfScore, 1)), slack(getSlack(width)), trigger(FusedSelectAttr::getListTrigger(width)), capacity(capacity),
      keysAtATime(getKeysAtATime(width)), inVectors(inVectors && !row.canForce() && row.isOneRange()) {
  assert(width > 0 && width + slack <= trigger && "expected room in the list");
}

void StreamSelector::useShared(Value memory, Value state, Value histogram) {
  shared = memory;
  stateBegin = state;
  histogramBegin = histogram;
  lanesBelow = sub(shiftLeft(i32(1), k.lane()), i32(1));
}

void StreamSelector::useList(Value buffer, ArrayRef<Value> place) { list = getList(buffer, place, capacity); }

Value StreamSelector::getList(Value buffer, ArrayRef<Value> place, int64_t capacity) {
  Value begin = BufferView(*this, buffer).getBegin(*this, place);
  auto flat = MemRefType::get({entryWords * capacity}, builder.getI32Type(), StridedLayoutAttr::get(builder.getContext(), ShapedType::kDynamic, {1}));
  Value base = memref::ExtractStridedMetadataOp::create(builder, loc, buffer).getBaseBuffer();
  return memref::ReinterpretCastOp::create(builder, loc, flat, base, OpFoldResult(begin), {builder.getIndexAttr(entryWords * capacity)}, {builder.getIndexAttr(1)});
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

/// Keys that are never taken behind the last of the list, as many as are looked at together, and so many more behind those that are looked at by themselves.
void StreamSelector::padList(Value count) {
  Value slot = add(count, k.lane());
  for (int64_t u = 0; u < (looksAtFew() ? 2 : 1) * keysAtATime; ++u)
    store(i32(neverKey), list, placeOfEntry(slot, u * warpSize));
  k.warpBarrier();
}

std::pair<Value, Value> StreamSelector::loadEntry(Value slot, int64_t further) {
  Value entry = loadVector(list, placeOfEntry(slot, further), entryWords);
  return {vector::ExtractOp::create(builder, loc, entry, 0), vector::ExtractOp::create(builder, loc, entry, 1)};
}

/// Appends the key of a column's score where it reaches the bound. There is room for all lanes.
void StreamSelector::listScore(Value score, Value column, Value boundScore, ListState &state) {
  Value reaches = row.reaches(score, boundScore), mask = ballot(reaches);
  auto some = [&] {
    Value key = row.getReachingKey(score);
    ifThen(reaches, [&] { storeEntry(list, add(state[0], countBelow(mask)), key, column); });
    ListState more = {add(state[0], popCount(mask))};
    if (state.size() > 1)
      more.push_back(umax(state[1], select(reaches, key, i32(neverKey))));
    return more;
  };
  state = ifElse(ne(mask, i32(0)), ValueRange(state).getTypes(), some, [&] { return state; });
}

/// Of columns of which each may be forced, or not to be taken.
StreamSelector::ListState StreamSelector::listMarked(Value first, Value end, Value boundScore, ListState state) {
  return loop(first, end, i32(scoresAtATime * warpSize), state, [&](Value from, ValueRange carried) {
    SmallVector<Value> columns, scores;
    Value own = add(from, k.lane());
    for (int64_t u = 0; u < scoresAtATime; ++u) {
      columns.push_back(add(own, i32(u * warpSize)));
      scores.push_back(row.loadPlainScore(columns.back()));
    }
    ListState state(carried);
    for (auto [column, score] : llvm::zip_equal(columns, scores))
      listScore(select(lt(column, end), row.mark(score, column), f32(-std::numeric_limits<double>::infinity())), column, boundScore, state);
    return state;
  });
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
  constexpr int64_t wordsAtATime = 8;
  // Pages end where words that are looked at together do, but for the last, behind which there are scores of no meaning.
  Value aligned = mul(div(begin, i32(wordsAtATime)), i32(wordsAtATime));
  return loop(aligned, end, i32(wordsAtATime), state, [&](Value word, ValueRange carried) {
    SmallVector<Value> words, scores;
    Value column = add(add(first, mul(word, i32(wordBits))), k.lane()), last = sub(end, i32(1));
    for (int64_t u = 0; u < wordsAtATime; ++u) {
      Value number = add(word, i32(u));
      words.push_back(select(both(le(begin, number), lt(number, end)), load(shared, placeOfBits(min(number, last))), i32(0)));
      scores.push_back(row.loadPlainScore(add(column, i32(u * wordBits))));
    }
    Value count = carried[0], greatest = carried[1];
    for (auto [u, bits, score] : llvm::enumerate(words, scores)) {
      Value isListed = ne(both(shiftRight(bits, k.lane()), i32(1)), i32(0)), key = row.getPlainKey(score);
      ifThen(isListed, [&, u = u, bits = bits] { storeEntry(list, add(count, countBelow(bits)), key, add(column, i32(u * wordBits))); });
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

/// Leaves of the list's first `count` entries those that are taken, in their order; how many these are.
Value StreamSelector::keepTaken(Value count, const Threshold &threshold) {
  int64_t entriesAtATime = getEntriesAtATime(width);
  return loop(i32(0), count, i32(entriesAtATime * warpSize), {i32(0), i32(0)}, [&](Value first, ValueRange carried) {
    SmallVector<std::pair<Value, Value>> entries;
    for (int64_t u = 0; u < entriesAtATime; ++u)
      entries.push_back(loadEntry(add(first, k.lane()), u * warpSize));
    k.warpBarrier(); // what is kept may be written to where others have read
    Value kept = carried[0], seen = carried[1];
    for (auto [key, column] : entries) {
      Value isEqual = eq(key, threshold.key), equals = ballot(isEqual);
      Value isTaken = either(ugt(key, threshold.key), both(isEqual, lt(add(seen, countBelow(equals)), threshold.room))), taken = ballot(isTaken);
      ifThen(isTaken, [&, key = key, column = column] { storeEntry(list, add(kept, countBelow(taken)), key, column); });
      kept = add(kept, popCount(taken));
      seen = add(seen, popCount(equals));
    }
    return SmallVector<Value>{kept, seen};
  })[0];
}

/// What is made of the selection, of which the list has `count` entries.
void StreamSelector::leaveKept(Value count, Leave leave) {
  k.warpBarrier();
  int64_t entriesAtATime = std::min(getEntriesAtATime(width), ssa::ceilDiv(width, warpSize));
  loop(i32(0), i32(width), i32(entriesAtATime * warpSize), [&](Value first) {
    SmallVector<std::pair<Value, Value>> entries;
    for (int64_t u = 0; u < entriesAtATime; ++u)
      entries.push_back(loadEntry(add(first, k.lane()), u * warpSize));
    for (auto [u, entry] : llvm::enumerate(entries)) {
      Value rank = add(add(first, k.lane()), i32(u * warpSize));
      ifThen(lt(rank, i32(width)), [&, entry = entry] { leave(rank, lt(rank, count), entry.first, entry.second); });
    }
  });
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
SmallVector<Value> StreamSelector::narrow(Value first, Value count, ValueRange range, Value mostBits, Value slack) {
  constexpr int64_t binBits = 8, binsPerLane = histogramWords / warpSize, binsAtATime = 4;
  static_assert(histogramWords == 1 << binBits, "a bin for each number of so many bits");
  Value low = range[0], high = range[1], wanted = range[2];
  Value shift = min(max(sub(i32(32 - binBits), countLeadingZeros(sub(high, low))), i32(0)), mostBits);
  auto binAt = [&](Value number) { return add(histogramBegin, toIndex(number)); };
  for (int64_t i = 0; i < binsPerLane; i += binsAtATime)
    storeVector(broadcast(i32(0), binsAtATime), shared, binAt(add(mul(k.lane(), i32(binsAtATime)), i32(i * warpSize))));
  k.warpBarrier();
  forEachKey(first, count, {}, [&](Value key, ValueRange) {
    atomicAdd(i32(1), shared, binAt(umin(shiftRight(sub(high, key), shift), i32(histogramWords - 1))));
    return SmallVector<Value>();
  });
  k.warpBarrier();
  // A lane has neighbouring bins. The first has the greatest keys; the last has all below the others, and what is outside of the range.
  SmallVector<Value> inBins;
  Value bins, firstBin = mul(k.lane(), i32(binsPerLane)), sum = i32(0), passed = i32(0);
  for (int64_t i = 0; i < binsPerLane; ++i) {
    if (i % binsAtATime == 0)
      bins = loadVector(shared, binAt(add(firstBin, i32(i))), binsAtATime);
    inBins.push_back(vector::ExtractOp::create(builder, loc, bins, i % binsAtATime));
    sum = add(sum, inBins.back());
  }
  // The bin is behind those up to which there are fewer keys than are wanted.
  Value before = k.scanWarp(sum).before, reached = before, beforeBin = before;
  for (auto [i, size] : llvm::enumerate(ArrayRef(inBins).drop_back())) {
    reached = add(reached, size);
    Value isPassed = lt(reached, wanted);
    beforeBin = select(isPassed, reached, beforeBin);
    passed = select(isPassed, i32(i + 1), passed);
  }
  Value isMine = both(lt(before, wanted), le(wanted, add(reached, inBins.back())));
  Value owner = sub(i32(warpSize - 1), countLeadingZeros(ballot(isMine)));
  Value left = sub(wanted, k.shuffle(beforeBin, owner)), bin = k.shuffle(add(firstBin, passed), owner), end = sub(high, shiftLeft(bin, shift));
  Value size = select(eq(bin, i32(histogramWords - 1)), sub(end, low), umin(sub(shiftLeft(i32(1), shift), i32(1)), sub(end, low))), begin = sub(end, size);
  Value inRange = load(shared, binAt(bin)), takesAll = le(sub(inRange, left), slack), isFound = either(takesAll, eq(size, i32(0)));
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

StreamSelector::KeyRange StreamSelector::getRange(Value floor, Value greatest) {
  Value low = umax(floor, i32(1));
  return {low, row.canForce() ? i32(int32_t(forcedKey)) : umax(greatest, low)};
}

/// What `width` keys of the list, which is padded, and up to `slack` more, pass; all of them where it is short, as there are no more than `width`.
StreamSelector::Threshold StreamSelector::findThreshold(Value count, const KeyRange &range, Value slack, Value isShort) {
  int64_t few = keysAtATime * warpSize;
  Value behind = mul(ceilDiv(count, i32(few)), i32(few));
  // The first histogram is of the greatest scores only, as finely as is mostly enough.
  constexpr int64_t octaves = 4, mantissaBits = 23, binBits = 8, all = 32 - binBits;
  Value firstBits = i32(row.canForce() ? all : mantissaBits + llvm::Log2_64(octaves) - binBits);
  SmallVector<Value> found = loopWhile(
      {range.low, range.high, i32(width), isShort, i32(0), i32(0), count, firstBits}, [&](ValueRange state) { return eq(state[3], bit(false)); },
      [&](ValueRange state) {
        SmallVector<Value> range = narrow(state[5], state[6], state, state[7], slack), part = {state[5], state[6]};
        Value inRange = range.pop_back_val();
        if (looksAtFew()) {
          Value isFew = both(both(le(inRange, i32(few)), both(eq(slack, i32(0)), eq(state[5], i32(0)))), eq(range[3], bit(false)));
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

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// The least score whose key is listed beside a floor.
Value StreamSelector::getBound(Value floor) {
  Value bound = add(floor, i32(1));
  if (row.canForce())
    bound = select(eq(floor, i32(int32_t(forcedKey))), floor, bound);
  return row.getBoundScore(bound);
}

void StreamSelector::take(Value first, Value end, Value isFirst, Value isLast, Leave leave) {
  auto placeOf = [&](StateWord word) { return add(stateBegin, index(word)); };
  auto recall = [&](StateWord word, Value atFirst) { return select(isFirst, atFirst, load(shared, placeOf(word))); };
  Value floor = recall(floorWord, sub(row.getLowestKey(), i32(1)));
  ListState state = {recall(countWord, i32(0))};
  if (!row.canForce())
    state.push_back(recall(greatestWord, i32(neverKey)));
  first = max(first, row.begin);
  end = min(end, row.end);
  state = inVectors ? listPlain(first, end, getBound(floor), state) : listMarked(first, end, getBound(floor), state);
  k.warpBarrier(); // what was known of the row has been read
  Value count = state[0], greatest = row.canForce() ? Value() : k.warpMax(state[1]);
  auto keepBest = [&] {
    padList(count);
    Threshold threshold = findThreshold(count, getRange(floor, greatest), select(isLast, i32(0), i32(slack)), le(count, i32(width)));
    Value kept = keepTaken(count, threshold);
    ifThen(isLast, [&] { leaveKept(kept, leave); });
    return SmallVector<Value>{kept, select(eq(threshold.room, i32(0)), add(threshold.key, i32(1)), threshold.key)};
  };
  SmallVector<Value> now = ifElse(either(isLast, lt(i32(trigger), count)), {count.getType(), floor.getType()}, keepBest, [&] { return SmallVector<Value>{count, floor}; });
  ifThen(eq(k.lane(), i32(0)), [&] {
    store(now[0], shared, placeOf(countWord));
    store(now[1], shared, placeOf(floorWord));
    if (greatest)
      store(greatest, shared, placeOf(greatestWord));
  });
  k.warpBarrier();
}

void StreamSelector::leaveRow(Value rank, Value isThere, Value column) { row.storeEntry(rank, select(isThere, row.getBlock(column), i32(-1))); }

//===----------------------------------------------------------------------===//
// Parts of rows
//===----------------------------------------------------------------------===//

void StreamSelector::leavePart(Value lists, ArrayRef<Value> place, int64_t capacity, Value slot, Value isThere, Value key, Value column) {
  storeEntry(getList(lists, place, capacity), slot, select(isThere, key, i32(neverKey)), column);
}

void StreamSelector::selectFromParts(Value count) {
  // Keys of nothing are below all others: they are not in the range that is searched, and not taken.
  padList(count);
  SmallVector<Value> found = forEachKey(i32(0), count, {i32(0), i32(neverKey)}, [&](Value key, ValueRange carried) {
    return SmallVector<Value>{add(carried[0], select(ne(key, i32(neverKey)), i32(1), i32(0))), umax(carried[1], key)};
  });
  KeyRange range = getRange(sub(row.getLowestKey(), i32(1)), k.warpMax(found[1]));
  Value kept = keepTaken(count, findThreshold(count, range, /*slack=*/i32(0), le(k.warpSum(found[0]), i32(width))));
  leaveKept(kept, [&](Value rank, Value isThere, Value, Value column) { leaveRow(rank, isThere, column); });
}
