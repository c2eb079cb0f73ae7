//===- WarpTopK.cpp - topk of short rows ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A warp reads its row once and keeps the keys in shared memory. On the way every lane notes the greatest key of each
// of a few groups of its columns: the K-th greatest of all these is a bound that at least K keys reach, and usually
// hardly more. The keys that reach it are listed, in the order of their columns; among them the K-th greatest is
// searched by halving. Where more keys reach the bound than the list holds (many are equal), the whole row takes its
// place. What is written is in order without a sort.
//
//===----------------------------------------------------------------------===//

#include "TopK.h"

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
  Bound loadKeys();
  void loadChunk(Value first, bool isWhole, MutableArrayRef<Value> greatest);
  Value listKeys(Value bound);
  void listChunk(ArrayRef<Value> keys, Value bound, Value first, Value &count);
  void writeSelected(KeyArray keys, Value threshold, Value isList);
  Value countIf(KeyArray keys, llvm::function_ref<Value(Value key)> condition);
  Value searchKey(Value low, Value high, llvm::function_ref<Value(Value key)> countAtLeast);
  Value at(Value begin, Value i) { return toIndex(add(add(begin, i), lane())); }

  int64_t getListWords() const { return capacity + warpSize; } // the list is read by whole warps

  static constexpr int64_t warps = 4, unroll = 8, chunk = unroll * warpSize, wordBytes = 4;

  ScoreRow row;
  int64_t width, groups, capacity;
  Value memory;                                   // of all warps
  Value keysBegin, listBegin, columnsBegin, size; // of this warp, words; the columns that are kept
};

} // namespace

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Keys of `chunk` columns from `first` (relative to the row's begin) on.
void WarpTopK::loadChunk(Value first, bool isWhole, MutableArrayRef<Value> greatest) {
  SmallVector<Value> columns, scores;
  for (int64_t u = 0; u < unroll; ++u) {
    columns.push_back(add(add(row.begin, first), add(lane(), i32(u * warpSize))));
    scores.push_back(isWhole ? row.loadScore(columns.back()) : row.loadScoreOrNone(columns.back()));
  }
  for (int64_t u = 0; u < unroll; ++u) {
    Value key = isWhole ? row.getKey(columns[u], scores[u]) : row.getKeyOrNever(columns[u], scores[u]);
    store(key, memory, at(keysBegin, add(first, i32(u * warpSize))));
    Value &group = greatest[u % groups];
    group = umax(group, key);
  }
}

/// Fills the keys; the bound that at least `width` of them reach, if so many can be taken.
WarpTopK::Bound WarpTopK::loadKeys() {
  Value count = max(sub(row.end, row.begin), i32(0));
  Value whole = max(min(sub(row.scored, row.begin), count), i32(0)); // chunks of columns that all have scores
  whole = sub(whole, rem(whole, i32(chunk)));
  SmallVector<Value> greatest(groups, i32(neverKey));
  for (bool isWhole : {true, false}) {
    greatest = loop(isWhole ? i32(0) : whole, isWhole ? whole : count, i32(chunk), greatest,
                    [&](Value first, ValueRange carried) {
                      SmallVector<Value> next(carried);
                      loadChunk(first, isWhole, next);
                      return next;
                    });
  }
  size = mul(ceilDiv(count, i32(chunk)), i32(chunk));
  Value most = greatest[0];
  for (Value other : ArrayRef(greatest).drop_front())
    most = umax(most, other);
  Value lowest = row.getLowestKey();
  most = umax(warpMax(most), lowest);
  Value bound = searchKey(lowest, most, [&](Value key) {
    Value sum = i32(0);
    for (Value group : greatest)
      sum = add(sum, popCount(ballot(uge(group, key))));
    return sum;
  });
  return {bound, most};
}

//===----------------------------------------------------------------------===//
// Searching
//===----------------------------------------------------------------------===//

/// The greatest key in `low` .. `high` that `width` keys reach, or one that exactly so many reach; `low` if fewer do.
/// No key is greater than `high`.
Value WarpTopK::searchKey(Value low, Value high, llvm::function_ref<Value(Value)> countAtLeast) {
  Value wanted = i32(width);
  high = select(le(countAtLeast(low), wanted), low, high);
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
void WarpTopK::listChunk(ArrayRef<Value> keys, Value bound, Value first, Value &count) {
  for (auto [u, key] : llvm::enumerate(keys)) {
    Value reaches = uge(key, bound), mask = ballot(reaches);
    auto none = [&] { return SmallVector<Value>{count}; };
    auto some = [&, key = key, u = u] {
      Value place = add(count, countBelow(mask));
      ifThen(both(reaches, lt(place, i32(capacity))), [&] {
        Value column = add(add(row.begin, first), add(lane(), i32(u * warpSize)));
        store(key, memory, toIndex(add(listBegin, place)));
        store(column, memory, toIndex(add(columnsBegin, place)));
      });
      return SmallVector<Value>{add(count, popCount(mask))};
    };
    count = ifElse(ne(mask, i32(0)), builder.getI32Type(), some, none)[0];
  }
}

/// Lists the keys that reach the bound; how many do.
Value WarpTopK::listKeys(Value bound) {
  Value count = loop(i32(0), size, i32(chunk), i32(0), [&](Value first, ValueRange carried) {
    SmallVector<Value> keys;
    for (int64_t u = 0; u < unroll; ++u)
      keys.push_back(load(memory, at(keysBegin, add(first, i32(u * warpSize)))));
    Value next = carried[0];
    listChunk(keys, bound, first, next);
    return SmallVector<Value>{next};
  })[0];
  // Padding of the last warp's share.
  ifThen(le(count, i32(capacity)), [&] { store(i32(neverKey), memory, at(listBegin, count)); });
  return count;
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
              isList, builder.getI32Type(), [&] { return SmallVector<Value>{load(memory, at(columnsBegin, i))}; },
              [&] { return SmallVector<Value>{add(add(row.begin, i), lane())}; })[0];
          row.storeColumn(add(carried[0], countBelow(taken)), column);
        });
        return SmallVector<Value>{add(carried[0], popCount(taken)), add(carried[1], popCount(equals))};
      });
  row.storePadding(written[0], lane(), warpSize);
}

void WarpTopK::selectRow() {
  warpBarrier(); // what was read for the row before has been read
  Bound bound = loadKeys();
  warpBarrier();
  Value count = listKeys(bound.key);
  warpBarrier();
  Value isList = le(count, i32(capacity));
  Value listSize = mul(ceilDiv(count, i32(warpSize)), i32(warpSize));
  KeyArray keys = {select(isList, listBegin, keysBegin), select(isList, listSize, size)};
  Value threshold = searchKey(bound.key, bound.greatest,
                              [&](Value key) { return countIf(keys, [&](Value other) { return uge(other, key); }); });
  writeSelected(keys, threshold, isList);
}

/// Words of shared memory for the keys of a row.
static Value getKeyWords(Emitter &e, Value columns, int64_t chunk) {
  return e.mul(e.ceilDiv(columns, e.index(chunk)), e.index(chunk));
}

void WarpTopK::build(HostFunction &host, const TopKOperands &operands) {
  Emitter e(host.builder, loc);
  // Of a warp: the keys of its row, the keys of the list, its columns.
  Value listWords = e.index(2 * getListWords()), warpWords = e.add(getKeyWords(e, operands.columns, chunk), listWords);
  forEachItem(e.ceilDiv(operands.rows, e.index(warps)), [&](Value item) {
    Value keyWords = getKeyWords(*this, row.getMaxColumns(), chunk), words = add(keyWords, index(2 * getListWords()));
    memory = getDynamicShared(builder.getI32Type(), index(0), mul(words, index(warps)));
    keysBegin = mul(warp(), toI32(words));
    listBegin = add(keysBegin, toI32(keyWords));
    columnsBegin = add(listBegin, i32(getListWords()));
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
