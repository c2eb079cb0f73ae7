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
      unroll(keepsRow ? 8 : 16), wholeUnroll(16), chunk(unroll * warpSize), keysAtATime(keepsRow ? 1 : 4) {
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

/// Scores of a chunk's columns from `first` (relative to the row's begin) on.
SmallVector<Value> WarpSelector::loadScores(Value first, bool isWhole) {
  SmallVector<Value> numbers;
  for (int64_t u = 0; u < (isWhole ? wholeUnroll : unroll); ++u)
    numbers.push_back(add(add(row.begin, first), add(k.lane(), i32(u * warpSize))));
  Value arePlain = isWhole ? row.arePlain(add(row.begin, first), wholeUnroll * warpSize) : nullptr;
  if (!arePlain)
    return row.loadMarked(numbers, isWhole);
  SmallVector<Type> types(wholeUnroll, builder.getF32Type());
  return ifElse(arePlain, types, [&] { return row.loadPlain(numbers); }, [&] { return row.loadMarked(numbers, /*areAll=*/true); });
}

/// Chunks of columns that all have scores, then the others.
SmallVector<Value> WarpSelector::forEachChunk(ValueRange init,
                                              llvm::function_ref<SmallVector<Value>(Value, bool, ValueRange)> body) {
  Value whole = max(min(sub(row.scored, row.begin), columns), i32(0));
  int64_t wholeChunk = wholeUnroll * warpSize;
  whole = sub(whole, rem(whole, i32(wholeChunk)));
  SmallVector<Value> carried(init);
  for (bool isWhole : {true, false})
    carried = loop(isWhole ? i32(0) : whole, isWhole ? whole : columns, i32(isWhole ? wholeChunk : chunk), carried,
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

/// Appends the keys of scores that reach the bound, with their columns, as long as there is room; counts them all. Score u is of column `first` + 32 u +
/// lane.
void WarpSelector::listScores(ArrayRef<Value> scores, Value first, llvm::function_ref<Value(Value, Value)> reaches, llvm::function_ref<Value(Value)> key,
                              Value &count) {
  for (auto [u, score] : llvm::enumerate(scores)) {
    Value column = add(add(first, k.lane()), i32(u * warpSize)), isListed = reaches(score, column);
    auto none = [&] { return SmallVector<Value>{count}; };
    auto some = [&, score = score] {
      Value mask = ballot(isListed), place = add(count, k.countBelow(mask));
      ifThen(both(isListed, lt(place, i32(capacity))), [&] {
        Value slot = add(listBegin, toIndex(place));
        store(key(score), memory, slot);
        store(column, memory, add(slot, index(getListSlots())));
      });
      return SmallVector<Value>{add(count, popCount(mask))};
    };
    count = ifElse(k.anyLane(isListed), builder.getI32Type(), some, none)[0];
  }
}

/// Lists columns of which each may be forced, or not to be taken.
Value WarpSelector::listMarked(Value boundScore, Value first, Value end, Value count) {
  Value rowEnd = row.end;
  row.end = end;
  count = loop(first, end, i32(warpSize), count, [&](Value first, ValueRange carried) {
    Value count = carried[0];
    listScores(row.loadMarked(add(first, k.lane()), /*areAll=*/false), first, [&](Value score, Value) { return row.reaches(score, boundScore); },
               [&](Value score) { return row.getReachingKey(score); }, count);
    return SmallVector<Value>{count};
  })[0];
  row.end = rowEnd;
  return count;
}

/// Lists plain columns. Those without scores are never taken.
Value WarpSelector::listPlain(Value boundScore, Value first, Value end, Value count) {
  auto isAbove = [&](Value score) -> Value { return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGE, score, boundScore); };
  auto key = [&](Value score) { return row.getPlainKey(score); };
  end = min(end, row.scored);
  Value last = sub(end, i32(1)), size = max(sub(end, first), i32(0)), whole = add(first, sub(size, rem(size, i32(chunk))));
  for (auto [begin, end, loads] : {std::tuple(first, whole, unroll), std::tuple(whole, end, unroll / 2)})
    count = loop(begin, end, i32(loads * warpSize), count, [&, loads = loads](Value first, ValueRange carried) {
      bool isWhole = loads == unroll;
      SmallVector<Value> scores;
      for (int64_t u = 0; u < loads; ++u) {
        Value column = add(add(first, k.lane()), i32(u * warpSize));
        scores.push_back(row.loadPlainScore(isWhole ? column : min(column, last)));
      }
      Value count = carried[0];
      listScores(scores, first, [&](Value score, Value column) { return isWhole ? isAbove(score) : both(isAbove(score), le(column, last)); }, key, count);
      return SmallVector<Value>{count};
    })[0];
  return count;
}

/// Lists the keys that reach the bound; how many do.
Value WarpSelector::listKeys(Value bound) {
  Value boundScore = row.getBoundScore(bound), count = i32(0);
  auto list = [&](ArrayRef<Value> scores, Value first, Value count) {
    listScores(scores, add(row.begin, first), [&](Value score, Value) { return row.reaches(score, boundScore); },
               [&](Value score) { return row.getReachingKey(score); }, count);
    return SmallVector<Value>{count};
  };
  auto fromMemory = [&](Value first, ValueRange carried) {
    SmallVector<Value> scores;
    for (int64_t u = 0; u < unroll; ++u)
      scores.push_back(bitcast(load(memory, at(rowBegin, first, u * warpSize)), builder.getF32Type()));
    return list(scores, first, carried[0]);
  };
  auto fromRow = [&](Value first, bool isWhole, ValueRange carried) { return list(loadScores(first, isWhole), first, carried[0]); };
  if (keepsRow) {
    count = loop(i32(0), size, i32(chunk), count, fromMemory)[0];
  } else if (auto plain = row.getPlainColumns()) {
    count = listMarked(boundScore, row.begin, plain->begin, count);
    count = listPlain(boundScore, plain->begin, plain->end, count);
    count = listMarked(boundScore, plain->end, plain->rest ? plain->rest : row.end, count);
    if (plain->rest)
      count = listPlain(boundScore, plain->rest, row.end, count);
  } else {
    count = forEachChunk(count, fromRow)[0];
  }
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

/// Selects among the `count` keys of a list of at most one a lane.
void WarpSelector::selectFew(Value bound, Value count) {
  Value key = select(lt(k.lane(), count), load(memory, at(listBegin, i32(0))), i32(neverKey));
  Value threshold = umax(findGreatest(key), bound), isAbove = ugt(key, threshold), isEqual = eq(key, threshold), equals = ballot(isEqual);
  Value room = sub(i32(width), popCount(ballot(isAbove)));
  Value isTaken = either(isAbove, both(isEqual, lt(k.countBelow(equals), room))), taken = ballot(isTaken);
  ifThen(isTaken, [&] { row.storeColumn(k.countBelow(taken), load(memory, at(listBegin, i32(0), getListSlots()))); });
  row.storePadding(popCount(taken), k.lane(), warpSize);
}

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
    writeSelected(keys, searchKey(bound, greatest, [&](Value key) { return countIf(keys, [&](Value other) { return uge(other, key); }); }));
  };
  if (keepsRow)
    search();
  else // of few keys counting is quicker
    ifThenElse(le(count, i32(warpSize)), [&] { selectFew(bound, count); }, search);
}

/// Selects from a row of up to `keysOfLane` columns a lane, which stay in registers: one key after another, the greatest first.
void WarpSelector::selectShort(int64_t keysOfLane) {
  SmallVector<Value> numbers, keys;
  for (int64_t u = 0; u < keysOfLane; ++u)
    numbers.push_back(add(add(row.begin, k.lane()), i32(u * warpSize)));
  Value lowest = row.getLowestKey(), never = i32(neverKey);
  for (Value score : row.loadMarked(numbers, /*areAll=*/false)) {
    Value key = row.getKey(score);
    keys.push_back(select(uge(key, lowest), key, never));
  }
  auto greatest = [&](llvm::function_ref<Value(Value key)> value) {
    Value most = value(keys[0]);
    for (Value key : ArrayRef(keys).drop_front())
      most = umax(most, value(key));
    return k.warpMax(most);
  };
  auto countIf = [&](llvm::function_ref<Value(Value key)> condition) {
    Value sum = i32(0);
    for (Value key : keys)
      sum = add(sum, popCount(ballot(condition(key))));
    return sum;
  };
  auto countFrom = [&](Value least) { return countIf([&](Value key) { return uge(key, least); }); };
  Value first = greatest([](Value key) { return key; });
  Value threshold = loopWhile({first, countFrom(first)}, [&](ValueRange carried) { return both(ne(carried[0], never), lt(carried[1], i32(width))); },
                              [&](ValueRange carried) {
                                Value next = greatest([&](Value key) { return select(ult(key, carried[0]), key, never); });
                                return SmallVector<Value>{next, countFrom(next)};
                              })[0];
  threshold = umax(threshold, i32(neverKey + 1)); // all keys are taken that there are
  Value room = sub(i32(width), countIf([&](Value key) { return ugt(key, threshold); })), written = i32(0), seen = i32(0);
  for (auto [key, number] : llvm::zip_equal(keys, numbers)) {
    Value isEqual = eq(key, threshold), equals = ballot(isEqual);
    Value isTaken = either(ugt(key, threshold), both(isEqual, lt(add(seen, k.countBelow(equals)), room))), taken = ballot(isTaken);
    ifThen(isTaken, [&, number = number] { row.storeColumn(add(written, k.countBelow(taken)), number); });
    written = add(written, popCount(taken));
    seen = add(seen, popCount(equals));
  }
  row.storePadding(written, k.lane(), warpSize);
}

void WarpSelector::selectShortRow() {
  columns = max(sub(row.end, row.begin), i32(0));
  auto selectSome = [&] {
    ifThenElse(lt(i32(0), columns), [&] { selectShort(1); }, [&] { row.storePadding(i32(0), k.lane(), warpSize); });
  };
  ifThenElse(le(columns, i32(warpSize)), selectSome, [&] { selectShort(maxColumnsOfShort / warpSize); });
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
  // Of a narrow list half as many groups are enough.
  SmallVector<Value> groups(maxima);
  while (groups.size() > 1 && 2 * width <= int64_t(groups.size() - 1) * warpSize) {
    Value last = groups.pop_back_val();
    groups.back() = arith::MaxNumFOp::create(builder, loc, groups.back(), last);
  }
  Bound bound = findBound(groups);
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

static constexpr int64_t warps = 4;

/// `select` at the warp's row of an item, if there is one.
static void atRow(BlockKernel &k, ScoreRow &row, Value item, llvm::function_ref<void()> select) {
  Value number = k.add(k.mul(item, k.index(warps)), k.toIndex(k.warp()));
  k.ifThen(k.lt(number, row.getNumRows()), [&] {
    row.locate(number);
    select();
  });
}

void ssa::buildShortTopK(HostFunction &host, TopKOp op, const TopKOperands &operands) {
  BlockKernel k(host.builder, op, "ssa_topk_short", warps * warpSize, operands.getArguments());
  WarpSelector selector(k, op, TopKOperands::inKernel(k, op), /*keepsRow=*/false);
  Emitter e(host.builder, op.getLoc());
  k.forEachItem(e.ceilDiv(operands.rows, e.index(warps)), [&](Value item) { atRow(k, selector.row, item, [&] { selector.selectShortRow(); }); });
  k.finish();
}

void ssa::buildWarpTopK(HostFunction &host, TopKOp op, const TopKOperands &operands, bool keepsRow) {
  constexpr int64_t wordBytes = 4;
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
    atRow(k, selector.row, item, [&] { selector.selectRow(); });
  });
  k.finish(e.mul(warpWords, e.index(warps * wordBytes)));
}
