//===- WarpTopK.cpp - topk of short rows ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "WarpTopK.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <limits>

using namespace mlir;
using namespace mlir::ssa;

WarpSelector::WarpSelector(BlockKernel &k, TopKOp op, const TopKOperands &in, bool keepsRow)
    : Emitter(k.builder, k.loc), row(k, op, in), k(k), keepsRow(keepsRow), width(op.getType().getWidth()),
      groups(llvm::PowerOf2Ceil(llvm::divideCeil(2 * width, warpSize))), capacity(std::max<int64_t>(128, 4 * width)),
      unroll(keepsRow ? 8 : 16), chunk(unroll * warpSize), keysAtATime(keepsRow ? 1 : 4) {
  assert(width > 0 && width <= maxWidthOfWarp && groups <= unroll && "expected a narrow list");
}

Value WarpSelector::getRowWords(Emitter &e, Value columns) const {
  return keepsRow ? e.mul(e.ceilDiv(columns, e.index(chunk)), e.index(chunk)) : e.index(0);
}

void WarpSelector::useMemory(Value words, Value row, Value list) {
  memory = words;
  rowBegin = row;
  listBegin = list;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Scores of `chunk` columns from `first` (relative to the row's begin) on.
SmallVector<Value> WarpSelector::loadScores(Value first, bool isWhole) {
  SmallVector<Value> numbers;
  for (int64_t u = 0; u < unroll; ++u)
    numbers.push_back(add(add(row.begin, first), add(k.lane(), i32(u * warpSize))));
  Value arePlain = isWhole ? row.arePlain(add(row.begin, first), chunk) : nullptr;
  if (!arePlain)
    return row.loadMarked(numbers, isWhole);
  SmallVector<Type> types(unroll, builder.getF32Type());
  return ifElse(arePlain, types, [&] { return row.loadPlain(numbers); }, [&] { return row.loadMarked(numbers, /*areAll=*/true); });
}

/// Chunks of columns that all have scores, then the others.
SmallVector<Value> WarpSelector::forEachChunk(ValueRange init,
                                              llvm::function_ref<SmallVector<Value>(Value, bool, ValueRange)> body) {
  Value whole = max(min(sub(row.scored, row.begin), columns), i32(0));
  whole = sub(whole, rem(whole, i32(chunk)));
  SmallVector<Value> carried(init);
  for (bool isWhole : {true, false})
    carried = loop(isWhole ? i32(0) : whole, isWhole ? whole : columns, i32(chunk), carried,
                   [&](Value first, ValueRange carried) { return body(first, isWhole, carried); });
  return carried;
}

void WarpSelector::loadChunk(Value first, bool isWhole, MutableArrayRef<Value> greatest) {
  for (auto [u, score] : llvm::enumerate(loadScores(first, isWhole))) {
    if (keepsRow)
      store(bitcast(score, builder.getI32Type()), memory, at(rowBegin, first, u * warpSize));
    Value &group = greatest[u % groups];
    group = arith::MaxNumFOp::create(builder, loc, group, score);
  }
}

/// A bound that at least `width` keys reach, if so many can be taken, from the
/// greatest scores of groups of columns; and the greatest key.
WarpSelector::Bound WarpSelector::findBound(ArrayRef<Value> greatest) {
  SmallVector<Value> keys = llvm::map_to_vector(greatest, [&](Value score) { return row.getKey(score); });
  Value most = keys[0], least = keys[0], lowest = row.getLowestKey();
  for (Value key : ArrayRef(keys).drop_front()) {
    most = umax(most, key);
    least = umin(least, key);
  }
  most = umax(k.warpMax(most), lowest);
  least = umax(k.warpMin(least), lowest);
  if (!keepsRow || groups == 1) // of few keys counting is quicker
    return {umax(findGreatest(keys), lowest), row.getGreatestKey(most)};
  Value bound = searchKey(least, most, [&](Value key) {
    Value sum = i32(0);
    for (Value group : keys)
      sum = add(sum, popCount(ballot(uge(group, key))));
    return sum;
  });
  return {bound, row.getGreatestKey(most)};
}

WarpSelector::Bound WarpSelector::loadRow() {
  SmallVector<Value> none(groups, f32(-std::numeric_limits<double>::infinity()));
  return findBound(forEachChunk(none, [&](Value first, bool isWhole, ValueRange carried) {
    SmallVector<Value> next(carried);
    loadChunk(first, isWhole, next);
    return next;
  }));
}

//===----------------------------------------------------------------------===//
// Searching
//===----------------------------------------------------------------------===//

/// The greatest key in `low` .. `high` that `width` keys reach, or one that exactly so many reach; `low` if fewer do.
/// No key is greater than `high`.
Value WarpSelector::searchKey(Value low, Value high, llvm::function_ref<Value(Value)> countAtLeast) {
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

/// The `width`-th greatest of the keys that the lanes have. Of few keys it is quicker to count for each how many are above it.
Value WarpSelector::findGreatest(ArrayRef<Value> keys) {
  SmallVector<Value> above(keys.size(), i32(0));
  for (int64_t lane = 0; lane < warpSize; ++lane)
    for (Value key : keys) {
      Value other = k.shuffle(key, i32(lane));
      for (auto [count, own] : llvm::zip_equal(above, keys))
        count = add(count, select(ugt(other, own), i32(1), i32(0)));
    }
  Value least = i32(-1);
  for (auto [count, own] : llvm::zip_equal(above, keys))
    least = umin(least, select(lt(count, i32(width)), own, i32(-1)));
  return k.warpMin(least);
}

/// The same of a list of at most two keys a lane; the bound where there are fewer.
Value WarpSelector::searchList(Value bound, Value count) {
  SmallVector<Value> keys;
  for (int64_t first = 0; first < 2 * warpSize; first += warpSize) {
    Value isThere = lt(add(k.lane(), i32(first)), count);
    keys.push_back(select(isThere, load(memory, at(listBegin, i32(first))), i32(neverKey)));
  }
  return umax(findGreatest(keys), bound);
}

Value WarpSelector::loadKey(KeyArray keys, Value i) {
  auto fromList = [&] { return SmallVector<Value>{load(memory, at(listBegin, i))}; };
  if (keepsRow)
    return load(memory, at(select(keys.isList, listBegin, rowBegin), i));
  return ifElse(keys.isList, builder.getI32Type(), fromList, [&] {
    Value column = add(add(row.begin, i), k.lane());
    return SmallVector<Value>{row.getKey(row.loadMarked(column, /*areAll=*/false)[0])};
  })[0];
}

Value WarpSelector::countIf(KeyArray keys, llvm::function_ref<Value(Value)> condition) {
  return loop(i32(0), keys.size, i32(keysAtATime * warpSize), i32(0), [&](Value i, ValueRange count) {
    SmallVector<Value> some;
    for (int64_t u = 0; u < keysAtATime; ++u)
      some.push_back(loadKey(keys, add(i, i32(u * warpSize))));
    Value sum = count[0];
    for (Value key : some)
      sum = add(sum, popCount(ballot(condition(key))));
    return SmallVector<Value>{sum};
  })[0];
}

//===----------------------------------------------------------------------===//
// Listing
//===----------------------------------------------------------------------===//

/// Appends the keys of a chunk that reach the bound, with their columns, as long as there is room; counts them all.
void WarpSelector::listScores(ArrayRef<Value> scores, Value first, Value boundScore, Value &count) {
  for (auto [u, score] : llvm::enumerate(scores)) {
    Value reaches = row.reaches(score, boundScore);
    auto none = [&] { return SmallVector<Value>{count}; };
    auto some = [&, score = score, u = u] {
      Value mask = ballot(reaches), place = add(count, k.countBelow(mask));
      ifThen(both(reaches, lt(place, i32(capacity))), [&] {
        Value column = add(add(row.begin, first), add(k.lane(), i32(u * warpSize)));
        Value slot = add(listBegin, toIndex(place));
        store(row.getReachingKey(score), memory, slot);
        store(column, memory, add(slot, index(getListSlots())));
      });
      return SmallVector<Value>{add(count, popCount(mask))};
    };
    count = ifElse(k.anyLane(reaches), builder.getI32Type(), some, none)[0];
  }
}

/// Lists the keys that reach the bound; how many do.
Value WarpSelector::listKeys(Value bound) {
  Value boundScore = row.getBoundScore(bound);
  auto list = [&](ArrayRef<Value> scores, Value first, Value count) {
    listScores(scores, first, boundScore, count);
    return SmallVector<Value>{count};
  };
  auto fromMemory = [&](Value first, ValueRange carried) {
    SmallVector<Value> scores;
    for (int64_t u = 0; u < unroll; ++u)
      scores.push_back(bitcast(load(memory, at(rowBegin, first, u * warpSize)), builder.getF32Type()));
    return list(scores, first, carried[0]);
  };
  auto fromRow = [&](Value first, bool isWhole, ValueRange carried) { return list(loadScores(first, isWhole), first, carried[0]); };
  Value count = keepsRow ? loop(i32(0), size, i32(chunk), i32(0), fromMemory)[0] : forEachChunk(i32(0), fromRow)[0];
  // Padding of the last warp's share.
  ifThen(le(count, i32(capacity)), [&] {
    for (int64_t u = 0; u < keysAtATime; ++u)
      store(i32(neverKey), memory, at(listBegin, count, u * warpSize));
  });
  return count;
}

void WarpSelector::turnRowIntoKeys() {
  loop(i32(0), size, i32(warpSize), [&](Value i) {
    Value place = at(rowBegin, i);
    store(row.getKey(bitcast(load(memory, place), builder.getF32Type())), memory, place);
  });
}

/// Writes the columns of the keys above the threshold, and of so many of those at it as there is room for.
void WarpSelector::writeSelected(KeyArray keys, Value threshold) {
  Value above = countIf(keys, [&](Value key) { return ugt(key, threshold); });
  Value room = sub(i32(width), above);
  auto isOpen = [&](ValueRange carried) { return both(lt(carried[2], keys.size), lt(carried[0], i32(width))); };
  SmallVector<Value> written =
      loopWhile({i32(0), i32(0), i32(0)}, isOpen, [&](ValueRange carried) {
        Value i = carried[2], key = loadKey(keys, i), isEqual = eq(key, threshold);
        Value equals = ballot(isEqual);
        Value isTaken = both(isEqual, lt(add(carried[1], k.countBelow(equals)), room));
        isTaken = either(isTaken, ugt(key, threshold));
        Value taken = ballot(isTaken);
        ifThen(isTaken, [&] {
          Value column = ifElse(
              keys.isList, builder.getI32Type(),
              [&] { return SmallVector<Value>{load(memory, at(listBegin, i, getListSlots()))}; },
              [&] { return SmallVector<Value>{add(add(row.begin, i), k.lane())}; })[0];
          row.storeColumn(add(carried[0], k.countBelow(taken)), column);
        });
        return SmallVector<Value>{add(carried[0], popCount(taken)), add(carried[1], popCount(equals)), add(i, i32(warpSize))};
      });
  row.storePadding(written[0], k.lane(), warpSize);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// Selects among the `count` keys that reach the bound.
void WarpSelector::selectAmong(Value bound, Value greatest, Value count) {
  k.warpBarrier();
  Value isList = le(count, i32(capacity));
  if (keepsRow)
    ifThen(lt(i32(capacity), count), [&] {
      turnRowIntoKeys();
      k.warpBarrier();
    });
  Value step = i32(keysAtATime * warpSize), listSize = mul(ceilDiv(count, step), step);
  KeyArray keys = {isList, select(isList, listSize, size)};
  auto search = [&] {
    return searchKey(bound, greatest, [&](Value key) { return countIf(keys, [&](Value other) { return uge(other, key); }); });
  };
  Value threshold = keepsRow ? search()
                             : ifElse(le(count, i32(2 * warpSize)), builder.getI32Type(), [&] { return SmallVector<Value>{searchList(bound, count)}; },
                                      [&] { return SmallVector<Value>{search()}; })[0];
  writeSelected(keys, threshold);
}

void WarpSelector::selectRow() {
  columns = max(sub(row.end, row.begin), i32(0));
  size = mul(ceilDiv(columns, i32(chunk)), i32(chunk));
  k.warpBarrier(); // what was read for the row before has been read
  Bound bound = loadRow();
  k.warpBarrier();
  selectAmong(bound.key, bound.greatest, listKeys(bound.key));
}

void WarpSelector::selectRow(ArrayRef<Value> maxima) {
  columns = max(sub(row.end, row.begin), i32(0));
  size = mul(ceilDiv(columns, i32(keysAtATime * warpSize)), i32(keysAtATime * warpSize));
  Bound bound = findBound(maxima);
  // Where groups have columns that may not be taken, too few may reach the bound.
  Value lowest = row.getLowestKey(), no = bit(false);
  SmallVector<Value> found = loopWhile(
      {bound.key, i32(0), no}, [&](ValueRange carried) { return eq(carried[2], no); },
      [&](ValueRange carried) {
        k.warpBarrier(); // what was read of the list before has been read
        Value count = listKeys(carried[0]);
        Value isDone = either(ge(count, i32(width)), ule(carried[0], lowest));
        return SmallVector<Value>{select(isDone, carried[0], lowest), count, isDone};
      });
  selectAmong(found[0], bound.greatest, found[1]);
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

void ssa::buildWarpTopK(HostFunction &host, TopKOp op, const TopKOperands &operands, bool keepsRow) {
  constexpr int64_t warps = 4, wordBytes = 4;
  BlockKernel k(host.builder, op, "ssa_topk", warps * warpSize, operands.getArguments());
  WarpSelector selector(k, op, TopKOperands::inKernel(k, op), keepsRow);
  Emitter e(host.builder, op.getLoc());
  // Of a warp: its row, the keys of the list, its columns.
  Value warpWords = e.add(selector.getRowWords(e, operands.columns), e.index(selector.getListWords()));
  k.forEachItem(e.ceilDiv(operands.rows, e.index(warps)), [&](Value item) {
    Value rowWords = selector.getRowWords(k, selector.row.getMaxColumns()), words = k.add(rowWords, k.index(selector.getListWords()));
    Value memory = k.getDynamicShared(k.builder.getI32Type(), k.index(0), k.mul(words, k.index(warps)));
    Value rowBegin = k.mul(k.toIndex(k.warp()), words);
    selector.useMemory(memory, rowBegin, k.add(rowBegin, rowWords));
    Value number = k.add(k.mul(item, k.index(warps)), k.toIndex(k.warp()));
    k.ifThen(k.lt(number, selector.row.getNumRows()), [&] {
      selector.row.locate(number);
      selector.selectRow();
    });
  });
  k.finish(e.mul(warpWords, e.index(warps * wordBytes)));
}
