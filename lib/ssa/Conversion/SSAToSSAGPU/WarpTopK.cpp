//===- WarpTopK.cpp - topk of short rows ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A warp reads its row once and keeps the scores in shared memory. On the way
// every lane notes the greatest score of each of a few groups of its columns:
// the K-th greatest of all these is a bound that at least K scores reach, and
// usually hardly more. The keys of those that reach it are listed, in the order
// of their columns; among them the K-th greatest is searched by halving. Where
// more reach the bound than the list holds (many are equal), the whole row
// takes its place. What is written is in order without a sort. Only what is
// listed becomes keys: instructions bind, not memory.
//
//===----------------------------------------------------------------------===//

#include "TopK.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <limits>

using namespace mlir;
using namespace mlir::ssa;

namespace {

class WarpTopK : public BlockKernel {
public:
  WarpTopK(HostFunction &host, TopKOp op, const TopKOperands &operands)
      : BlockKernel(host.builder, op, "ssa_topk", warps * warpSize, operands.getArguments()), row(*this, op),
        width(op.getType().getWidth()), groups(llvm::PowerOf2Ceil(llvm::divideCeil(2 * width, warpSize))),
        capacity(std::max<int64_t>(128, 4 * width)) {
    assert(width > 0 && width <= maxWidthOfWarp && groups <= unroll && "expected a narrow list");
  }

  void build(HostFunction &host, const TopKOperands &operands);

private:
  /// `size` keys from `begin` (in words of shared memory) on; both i32, the size a multiple of a warp.
  struct KeyArray {
    Value begin, size;
  };
  struct Bound {
    Value key, greatest;
  };

  void selectRow();
  Bound loadRow();
  void loadChunk(Value first, bool isWhole, MutableArrayRef<Value> greatest);
  Bound findBound(ArrayRef<Value> greatest);
  Value listKeys(Value bound);
  void listChunk(Value first, Value boundScore, Value &count);
  void turnRowIntoKeys();
  void writeSelected(KeyArray keys, Value threshold, Value isList);
  Value countIf(KeyArray keys, llvm::function_ref<Value(Value key)> condition);
  Value searchKey(Value low, Value high, llvm::function_ref<Value(Value key)> countAtLeast);
  /// The lane's word `offset` + `i` (i32) + lane of an array. What is constant stays apart, so that it costs nothing.
  Value at(Value begin, Value i, int64_t offset = 0) { return add(add(begin, toIndex(add(i, lane()))), index(offset)); }

  int64_t getListWords() const { return capacity + warpSize; } // the list is read by whole warps

  static constexpr int64_t warps = 4, unroll = 8, chunk = unroll * warpSize, wordBytes = 4;

  ScoreRow row;
  int64_t width, groups, capacity;
  Value memory;              // of all warps
  Value rowBegin, listBegin; // of this warp: words (index); the list's columns follow its keys
  Value size;                // columns of the row that are kept (i32)
};

} // namespace

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Scores of `chunk` columns from `first` (relative to the row's begin) on.
void WarpTopK::loadChunk(Value first, bool isWhole, MutableArrayRef<Value> greatest) {
  SmallVector<Value> columns;
  for (int64_t u = 0; u < unroll; ++u)
    columns.push_back(add(add(row.begin, first), add(lane(), i32(u * warpSize))));
  for (auto [u, score] : llvm::enumerate(row.loadMarked(columns, isWhole))) {
    store(bitcast(score, builder.getI32Type()), memory, at(rowBegin, first, u * warpSize));
    Value &group = greatest[u % groups];
    group = arith::MaxNumFOp::create(builder, loc, group, score);
  }
}

/// A bound that at least `width` keys reach, if so many can be taken, from the
/// greatest scores of groups of columns; and the greatest key.
WarpTopK::Bound WarpTopK::findBound(ArrayRef<Value> greatest) {
  SmallVector<Value> keys = llvm::map_to_vector(greatest, [&](Value score) { return row.getKey(score); });
  Value most = keys[0], least = keys[0], lowest = row.getLowestKey();
  for (Value key : ArrayRef(keys).drop_front()) {
    most = umax(most, key);
    least = umin(least, key);
  }
  most = umax(warpMax(most), lowest);
  least = umax(warpMin(least), lowest);
  Value bound = searchKey(least, most, [&](Value key) {
    Value sum = i32(0);
    for (Value group : keys)
      sum = add(sum, popCount(ballot(uge(group, key))));
    return sum;
  });
  return {bound, row.getGreatestKey(most)};
}

WarpTopK::Bound WarpTopK::loadRow() {
  Value count = max(sub(row.end, row.begin), i32(0));
  Value whole = max(min(sub(row.scored, row.begin), count),
                    i32(0)); // chunks of columns that all have scores
  whole = sub(whole, rem(whole, i32(chunk)));
  SmallVector<Value> greatest(groups, f32(-std::numeric_limits<double>::infinity()));
  for (bool isWhole : {true, false}) {
    greatest = loop(isWhole ? i32(0) : whole, isWhole ? whole : count, i32(chunk), greatest,
                    [&](Value first, ValueRange carried) {
                      SmallVector<Value> next(carried);
                      loadChunk(first, isWhole, next);
                      return next;
                    });
  }
  size = mul(ceilDiv(count, i32(chunk)), i32(chunk));
  return findBound(greatest);
}

//===----------------------------------------------------------------------===//
// Searching
//===----------------------------------------------------------------------===//

/// The greatest key in `low` .. `high` that `width` keys reach, or one that exactly so many reach; `low` if fewer do.
/// No key is greater than `high`.
Value WarpTopK::searchKey(Value low, Value high, llvm::function_ref<Value(Value)> countAtLeast) {
  Value wanted = i32(width);
  high = select(le(countAtLeast(low), wanted), low, high);
  // Often so many are equal to the least that fewer are above it.
  high = select(lt(countAtLeast(add(low, i32(1))), wanted), umin(low, high), high);
  return loopWhile(
      {low, high}, [&](ValueRange range) { return ult(range[0], range[1]); },
      [&](ValueRange range) {
        Value half = shiftRight(add(sub(range[1], range[0]), i32(1)), i32(1));
        Value middle = add(range[0], half), count = countAtLeast(middle);
        Value next = select(ge(count, wanted), middle, range[0]);
        Value last = select(le(count, wanted), select(eq(count, wanted), middle, sub(middle, i32(1))), range[1]);
        return SmallVector<Value>{next, last};
      })[0];
}

Value WarpTopK::countIf(KeyArray keys, llvm::function_ref<Value(Value)> condition) {
  return loop(i32(0), keys.size, i32(warpSize), i32(0), [&](Value i, ValueRange count) {
    Value key = load(memory, at(keys.begin, i));
    return SmallVector<Value>{add(count[0], popCount(ballot(condition(key))))};
  })[0];
}

//===----------------------------------------------------------------------===//
// Listing
//===----------------------------------------------------------------------===//

/// Appends the keys of a chunk that reach the bound, with their columns, as long as there is room; counts them all.
void WarpTopK::listChunk(Value first, Value boundScore, Value &count) {
  SmallVector<Value> scores;
  for (int64_t u = 0; u < unroll; ++u) {
    Value bits = load(memory, at(rowBegin, first, u * warpSize));
    scores.push_back(bitcast(bits, builder.getF32Type()));
  }
  for (auto [u, score] : llvm::enumerate(scores)) {
    Value reaches = row.reaches(score, boundScore);
    auto none = [&] { return SmallVector<Value>{count}; };
    auto some = [&, score = score, u = u] {
      Value mask = ballot(reaches), place = add(count, countBelow(mask));
      ifThen(both(reaches, lt(place, i32(capacity))), [&] {
        Value column = add(add(row.begin, first), add(lane(), i32(u * warpSize)));
        Value slot = add(listBegin, toIndex(place));
        store(row.getReachingKey(score), memory, slot);
        store(column, memory, add(slot, index(getListWords())));
      });
      return SmallVector<Value>{add(count, popCount(mask))};
    };
    count = ifElse(anyLane(reaches), builder.getI32Type(), some, none)[0];
  }
}

/// Lists the keys that reach the bound; how many do.
Value WarpTopK::listKeys(Value bound) {
  Value boundScore = row.getBoundScore(bound);
  Value count = loop(i32(0), size, i32(chunk), i32(0), [&](Value first, ValueRange carried) {
    Value next = carried[0];
    listChunk(first, boundScore, next);
    return SmallVector<Value>{next};
  })[0];
  // Padding of the last warp's share.
  ifThen(le(count, i32(capacity)), [&] { store(i32(neverKey), memory, at(listBegin, count)); });
  return count;
}

void WarpTopK::turnRowIntoKeys() {
  loop(i32(0), size, i32(warpSize), [&](Value i) {
    Value place = at(rowBegin, i);
    store(row.getKey(bitcast(load(memory, place), builder.getF32Type())), memory, place);
  });
}

/// Writes the columns of the keys above the threshold, and of so many of those at it as there is room for.
void WarpTopK::writeSelected(KeyArray keys, Value threshold, Value isList) {
  Value above = countIf(keys, [&](Value key) { return ugt(key, threshold); });
  Value room = sub(i32(width), above);
  SmallVector<Value> written =
      loop(i32(0), keys.size, i32(warpSize), {i32(0), i32(0)}, [&](Value i, ValueRange carried) {
        Value key = load(memory, at(keys.begin, i)), isEqual = eq(key, threshold);
        Value equals = ballot(isEqual);
        Value isTaken = both(isEqual, lt(add(carried[1], countBelow(equals)), room));
        isTaken = either(isTaken, ugt(key, threshold));
        Value taken = ballot(isTaken);
        ifThen(isTaken, [&] {
          Value column = ifElse(
              isList, builder.getI32Type(),
              [&] { return SmallVector<Value>{load(memory, at(listBegin, i, getListWords()))}; },
              [&] { return SmallVector<Value>{add(add(row.begin, i), lane())}; })[0];
          row.storeColumn(add(carried[0], countBelow(taken)), column);
        });
        return SmallVector<Value>{add(carried[0], popCount(taken)), add(carried[1], popCount(equals))};
      });
  row.storePadding(written[0], lane(), warpSize);
}

void WarpTopK::selectRow() {
  warpBarrier(); // what was read for the row before has been read
  Bound bound = loadRow();
  warpBarrier();
  Value count = listKeys(bound.key);
  warpBarrier();
  Value isList = le(count, i32(capacity));
  ifThen(lt(i32(capacity), count), [&] {
    turnRowIntoKeys();
    warpBarrier();
  });
  Value listSize = mul(ceilDiv(count, i32(warpSize)), i32(warpSize));
  KeyArray keys = {select(isList, listBegin, rowBegin), select(isList, listSize, size)};
  Value threshold = searchKey(bound.key, bound.greatest,
                              [&](Value key) { return countIf(keys, [&](Value other) { return uge(other, key); }); });
  writeSelected(keys, threshold, isList);
}

/// Words of shared memory for a row.
static Value getRowWords(Emitter &e, Value columns, int64_t chunk) {
  return e.mul(e.ceilDiv(columns, e.index(chunk)), e.index(chunk));
}

void WarpTopK::build(HostFunction &host, const TopKOperands &operands) {
  Emitter e(host.builder, loc);
  // Of a warp: its row, the keys of the list, its columns.
  Value listWords = e.index(2 * getListWords()), warpWords = e.add(getRowWords(e, operands.columns, chunk), listWords);
  forEachItem(e.ceilDiv(operands.rows, e.index(warps)), [&](Value item) {
    Value rowWords = getRowWords(*this, row.getMaxColumns(), chunk), words = add(rowWords, index(2 * getListWords()));
    memory = getDynamicShared(builder.getI32Type(), index(0), mul(words, index(warps)));
    rowBegin = mul(toIndex(warp()), words);
    listBegin = add(rowBegin, rowWords);
    Value number = add(mul(item, index(warps)), toIndex(warp()));
    ifThen(lt(number, row.getNumRows()), [&] {
      row.locate(number);
      selectRow();
    });
  });
  finish(e.mul(warpWords, e.index(warps * wordBytes)));
}

void ssa::buildWarpTopK(HostFunction &host, TopKOp op, const TopKOperands &operands) {
  WarpTopK(host, op, operands).build(host, operands);
}
