//===- BlockTopK.cpp - topk of long rows or wide lists --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "BlockTopK.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::ssa;

BlockTopK::BlockTopK(HostFunction &host, TopKOp op, const TopKOperands &operands)
    : BlockKernel(host.builder, op, "ssa_topk_long", op.getTopP() ? 256 : 512, operands.getArguments()), op(op),
      row(*this, op), width(op.getType().getWidth()), threads(getNumThreads()), sectionWords(wordsPerThread * threads),
      sectionColumns(sectionWords * wordBits) {
  setBlocksPerSM(op.getTopP() ? 1 : 2);
}

Value BlockTopK::loadRowKey(Value i) {
  Value column = add(row.begin, i);
  return row.getKeyOrNever(column, row.loadScoreOrNone(column));
}

//===----------------------------------------------------------------------===//
// Collecting
//===----------------------------------------------------------------------===//

/// A key that somewhat more than `width` keys of a row that does not fit the buffer should reach. Uses the buffer.
Value BlockTopK::guessBound() {
  // Runs of four columns, spread over the row.
  constexpr int64_t run = 4;
  Value distance = div(count, i32(sampleSize / run));
  forEach(i32(sampleSize), [&](Value i) {
    Value place = add(mul(div(i, i32(run)), distance), rem(i, i32(run)));
    store(loadRowKey(place), keys, toIndex(i));
  });
  barrier();
  // As many of the sample as of the row, and four times the deviation of that number.
  Value share =
      fdiv(f32(double(width) * sampleSize), arith::UIToFPOp::create(builder, loc, builder.getF32Type(), count));
  Value spread = fmul(f32(4), math::SqrtOp::create(builder, loc, share));
  Value wanted = arith::FPToUIOp::create(builder, loc, builder.getI32Type(), fadd(fadd(share, spread), f32(4)));
  auto source = [&](Value i) { return load(keys, toIndex(i)); };
  return findThreshold(source, i32(sampleSize), wanted, row.getLowestKey()).key;
}

/// Appends those of a warp's keys that reach the bound to the buffer while there is room, and counts them all. Key u is
/// of column `first` + u * `threads` + thread. Few are expected: what is done for each is little, and none of it by the
/// whole warp.
void BlockTopK::append(ArrayRef<Value> found, Value bound, Value first) {
  SmallVector<Value> reaches;
  Value own = i32(0);
  for (Value key : found) {
    reaches.push_back(uge(key, bound));
    own = add(own, select(reaches.back(), i32(1), i32(0)));
  }
  Scan ranks = scanWarp(own);
  ifThen(ne(ranks.total, i32(0)), [&] {
    Value begin = ifElse(
        eq(lane(), i32(0)), builder.getI32Type(),
        [&] { return SmallVector<Value>{atomicAdd(ranks.total, words, index(collectedWord))}; },
        [&] { return SmallVector<Value>{i32(0)}; })[0];
    Value place = add(shuffle(begin, i32(0)), ranks.before);
    for (auto [u, key] : llvm::enumerate(found)) {
      ifThen(both(reaches[u], lt(place, slots)), [&, key = key, u = u] {
        store(key, keys, toIndex(place));
        store(add(first, add(thread(), i32(u * threads))), columns, toIndex(place));
      });
      place = add(place, select(reaches[u], i32(1), i32(0)));
    }
  });
}

/// Fills the buffer with the keys that reach the bound.
void BlockTopK::collect(Value bound) {
  fromOneThread([&] { setWord(collectedWord, i32(0)); });
  barrier();
  // Strides of columns that all have scores, then the rest.
  int64_t chunk = unroll * threads;
  Value whole = max(min(sub(row.scored, row.begin), count), i32(0));
  whole = sub(whole, rem(whole, i32(chunk)));
  auto columnOf = [&](Value first, int64_t u) { return add(add(row.begin, first), add(thread(), i32(u * threads))); };
  loop(i32(0), whole, i32(chunk), [&](Value first) {
    SmallVector<Value> scores, found;
    for (int64_t u = 0; u < unroll; ++u)
      scores.push_back(row.loadScore(columnOf(first, u)));
    for (int64_t u = 0; u < unroll; ++u)
      found.push_back(row.getKey(columnOf(first, u), scores[u]));
    append(found, bound, first);
  });
  loop(whole, count, i32(threads), [&](Value first) {
    Value key = loadRowKey(add(first, thread()));
    append(key, bound, first);
  });
  barrier();
}

//===----------------------------------------------------------------------===//
// Selecting
//===----------------------------------------------------------------------===//

/// The bin in which the `wanted`-th greatest number counted by the histogram lies; -1 if there are not so many.
void BlockTopK::findBin(Value wanted) {
  SmallVector<Value> inBins, numbers;
  Value sum = i32(0);
  int64_t binsPerThread = bins / threads;
  for (int64_t i = 0; i < binsPerThread; ++i) { // from the last bin downwards
    numbers.push_back(sub(i32(bins - 1 - i), mul(thread(), i32(binsPerThread))));
    inBins.push_back(load(histogram, toIndex(numbers.back())));
    sum = add(sum, inBins.back());
  }
  Value before = scan(sum, sums).before;
  for (auto [number, inBin] : llvm::zip_equal(numbers, inBins)) {
    Value reached = add(before, inBin);
    ifThen(both(lt(before, wanted), ge(reached, wanted)), [&, number = number, inBin = inBin] {
      setWord(binWord, number);
      setWord(beforeBinWord, before);
      setWord(inBinWord, inBin);
    });
    before = reached;
  }
  barrier();
}

/// One histogram of the keys in `low` .. `high`: the range becomes that of the bin of the `wanted`-th greatest of them.
/// Carried are both ends, `wanted`, whether the threshold is found (it is `low` then) and whether all that reach it are
/// taken.
SmallVector<Value> BlockTopK::narrow(Source source, Value size, ValueRange range) {
  Value low = range[0], high = range[1], wanted = range[2];
  Value bits = sub(i32(32), countLeadingZeros(sub(high, low))), shift = max(sub(bits, i32(binBits)), i32(0));
  for (int64_t i = 0; i < bins; i += threads)
    store(i32(0), histogram, toIndex(add(thread(), i32(i))));
  fromOneThread([&] { setWord(binWord, i32(-1)); });
  barrier();
  forEach(size, [&](Value i) {
    Value key = source(i);
    ifThen(both(uge(key, low), ule(key, high)),
           [&] { atomicAdd(i32(1), histogram, toIndex(shiftRight(sub(key, low), shift))); });
  });
  barrier();
  findBin(wanted);
  Value bin = getWord(binWord), exists = ge(bin, i32(0)), inBin = getWord(inBinWord);
  Value left = select(exists, sub(wanted, getWord(beforeBinWord)), wanted);
  Value begin = select(exists, add(low, shiftLeft(bin, shift)), low);
  Value end = umin(high, add(begin, sub(shiftLeft(i32(1), shift), i32(1))));
  Value takesAll = select(exists, eq(inBin, left), bit(true));
  Value isFound = either(takesAll, eq(shift, i32(0)));
  barrier(); // the words have been read
  return {begin, end, left, isFound, takesAll};
}

/// The threshold that `wanted` (at least 1) of `size` keys pass, or all from `lowest` on if there are fewer. The keys
/// must be readable by all threads.
BlockTopK::Threshold BlockTopK::findThreshold(Source source, Value size, Value wanted, Value lowest) {
  Value no = bit(false);
  SmallVector<Value> found = loopWhile(
      {lowest, i32(int32_t(forcedKey)), wanted, no, no}, [&](ValueRange range) { return eq(range[3], no); },
      [&](ValueRange range) { return narrow(source, size, range); });
  return {found[0], found[2], found[4]};
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// Sets the bits of the section from column `first` on (relative to the row's begin).
void BlockTopK::markFromBuffer(const Threshold &threshold, Value collected, Value first) {
  forEach(collected, [&](Value i) {
    Value key = load(keys, toIndex(i)), place = sub(load(columns, toIndex(i)), first);
    ifThen(both(uge(key, threshold.key), ult(place, i32(sectionColumns))), [&] {
      Value bit = shiftLeft(i32(1), rem(place, i32(wordBits)));
      atomicOr(bit, above, toIndex(div(place, i32(wordBits))));
    });
  });
}

void BlockTopK::markFromRow(const Threshold &threshold, Value first) {
  Value numWords = min(ceilDiv(sub(count, first), i32(wordBits)), i32(sectionWords));
  // A warp makes `unroll` words at a time; lane u keeps word u.
  Value words = mul(ceilDiv(numWords, i32(unroll)), i32(unroll));
  loop(mul(warp(), i32(unroll)), words, i32(getNumWarps() * unroll), [&](Value word) {
    SmallVector<Value> places, scores;
    for (int64_t u = 0; u < unroll; ++u) {
      places.push_back(add(first, add(mul(add(word, i32(u)), i32(wordBits)), lane())));
      scores.push_back(row.loadScoreOrNone(add(row.begin, places.back())));
    }
    Value aboveBits = i32(0), equalBits = i32(0);
    for (int64_t u = 0; u < unroll; ++u) {
      Value key = row.getKeyOrNever(add(row.begin, places[u]), scores[u]), isMine = eq(lane(), i32(u));
      aboveBits = select(isMine, ballot(ugt(key, threshold.key)), aboveBits);
      equalBits = select(isMine, ballot(eq(key, threshold.key)), equalBits);
    }
    ifThen(lt(lane(), i32(unroll)), [&] {
      Value at = toIndex(add(word, lane()));
      store(aboveBits, above, at);
      store(equalBits, equal, at);
    });
  });
}

/// Writes the columns of `bits` from entry `rank` on; the entry after the last.
Value BlockTopK::writeBits(Value bits, Value firstColumn, Value rank) {
  return loopWhile(
      {bits, rank}, [&](ValueRange carried) { return ne(carried[0], i32(0)); },
      [&](ValueRange carried) {
        Value column = add(firstColumn, countTrailingZeros(carried[0]));
        row.storeColumn(carried[1], column);
        Value others = both(carried[0], sub(carried[0], i32(1)));
        return SmallVector<Value>{others, add(carried[1], i32(1))};
      })[1];
}

/// Writes the columns of a section, of which `written` entries and `seen` keys equal to the threshold are before it;
/// both numbers behind it.
SmallVector<Value> BlockTopK::writeSection(Value first, Value written, Value seen, Value room) {
  SmallVector<Value> aboveBits, equalBits;
  Value counts = i32(0);
  for (int64_t i = 0; i < wordsPerThread; ++i) {
    Value at = toIndex(add(mul(thread(), i32(wordsPerThread)), i32(i)));
    aboveBits.push_back(load(above, at));
    equalBits.push_back(load(equal, at));
    counts = add(counts, add(popCount(aboveBits.back()), shiftLeft(popCount(equalBits.back()), i32(16))));
  }
  Scan ranks = scan(counts, sums);
  auto low = [&](Value v) { return both(v, i32(0xffff)); };
  auto high = [&](Value v) { return shiftRight(v, i32(16)); };
  Value left = max(sub(room, seen), i32(0)); // of keys equal to the threshold
  Value rank = add(written, add(low(ranks.before), min(high(ranks.before), left)));
  Value mine = max(sub(left, high(ranks.before)), i32(0));
  for (int64_t i = 0; i < wordsPerThread; ++i) {
    // The first of the equal ones, as many as there is room for.
    SmallVector<Value> taken = loopWhile(
        {equalBits[i], i32(0), mine}, [&](ValueRange bits) { return both(ne(bits[0], i32(0)), lt(i32(0), bits[2])); },
        [&](ValueRange bits) {
          Value lowest = both(bits[0], sub(i32(0), bits[0]));
          return SmallVector<Value>{bitXor(bits[0], lowest), either(bits[1], lowest), sub(bits[2], i32(1))};
        });
    mine = taken[2];
    Value word = add(mul(thread(), i32(wordsPerThread)), i32(i));
    Value firstColumn = add(row.begin, add(first, mul(word, i32(wordBits))));
    rank = writeBits(either(aboveBits[i], taken[1]), firstColumn, rank);
  }
  return {add(written, add(low(ranks.total), min(high(ranks.total), left))), add(seen, high(ranks.total))};
}

void BlockTopK::writeSelected(const Threshold &threshold, Value isInBuffer, Value collected) {
  auto isOpen = [&](ValueRange carried) { return both(lt(carried[0], count), lt(carried[1], i32(width))); };
  SmallVector<Value> end = loopWhile({i32(0), i32(0), i32(0)}, isOpen, [&](ValueRange carried) {
    Value first = carried[0], written = carried[1], seen = carried[2];
    for (int64_t i = 0; i < wordsPerThread; ++i) {
      Value at = toIndex(add(mul(thread(), i32(wordsPerThread)), i32(i)));
      store(i32(0), above, at);
      store(i32(0), equal, at);
    }
    barrier();
    ifElse(
        isInBuffer, {},
        [&] {
          markFromBuffer(threshold, collected, first);
          return SmallVector<Value>();
        },
        [&] {
          markFromRow(threshold, first);
          return SmallVector<Value>();
        });
    barrier();
    SmallVector<Value> next = writeSection(first, written, seen, threshold.room);
    return SmallVector<Value>{add(first, i32(sectionColumns)), next[0], next[1]};
  });
  row.storePadding(end[1], thread(), threads);
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

void BlockTopK::selectRow() {
  count = max(sub(row.end, row.begin), i32(0));
  Value lowest = row.getLowestKey(), wanted = i32(width), fits = le(count, slots);
  Value bound = ifElse(
      fits, builder.getI32Type(), [&] { return SmallVector<Value>{lowest}; },
      [&] { return SmallVector<Value>{guessBound()}; })[0];
  collect(bound);
  Value collected = getWord(collectedWord);
  Value isInBuffer = both(le(collected, slots), either(eq(bound, lowest), ge(collected, wanted)));
  auto found = [](const Threshold &t) { return SmallVector<Value>{t.key, t.room, t.takesAll}; };
  SmallVector<Value> values = ifElse(
      isInBuffer, {builder.getI32Type(), builder.getI32Type(), builder.getI1Type()},
      [&] { return found(findThreshold([&](Value i) { return load(keys, toIndex(i)); }, collected, wanted, bound)); },
      [&] { return found(findThreshold([&](Value i) { return loadRowKey(i); }, count, wanted, lowest)); });
  Threshold threshold = {values[0], values[1], values[2]};
  isInBuffer = both(isInBuffer, threshold.takesAll);
  if (op.getTopP()) {
    threshold = limitMass(threshold);
    isInBuffer = bit(false);
  }
  writeSelected(threshold, isInBuffer, collected);
  barrier(); // the buffer has been read
}

void BlockTopK::build(HostFunction &host, const TopKOperands &operands) {
  // The buffer holds a row that is not too long, and for `top_p` the list.
  int64_t least = op.getTopP() ? llvm::PowerOf2Ceil(width) : 1;
  auto getSlots = [&](Emitter &e, Value columns) { return e.max(e.min(columns, e.index(maxSlots)), e.index(least)); };
  Type i32Type = builder.getI32Type();
  histogram = addShared(i32Type, bins);
  above = addShared(i32Type, sectionWords);
  equal = addShared(i32Type, sectionWords);
  sums = addShared(i32Type, getNumWarps());
  words = addShared(i32Type, numWords);
  if (op.getTopP())
    doubles = addShared(builder.getF64Type(), threads);
  Emitter e(host.builder, loc);
  forEachItem(operands.rows, [&](Value item) {
    Value size = getSlots(*this, row.getMaxColumns());
    keys = getDynamicShared(i32Type, index(0), size);
    columns = getDynamicShared(i32Type, mul(size, index(wordBytes)), size);
    slots = toI32(size);
    row.locate(item);
    selectRow();
  });
  finish(e.mul(getSlots(e, operands.columns), e.index(2 * wordBytes)));
}

void ssa::buildBlockTopK(HostFunction &host, TopKOp op, const TopKOperands &operands) {
  BlockTopK(host, op, operands).build(host, operands);
}
