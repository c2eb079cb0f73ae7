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
      row(*this, op, TopKOperands::inKernel(*this, op)), width(op.getType().getWidth()), threads(getNumThreads()) {
  setBlocksPerSM(op.getTopP() ? 1 : 2);
}

Value BlockTopK::loadRowKey(Value i) { return row.getKey(row.loadMarked(add(row.begin, i), /*areAll=*/false)[0]); }

//===----------------------------------------------------------------------===//
// Collecting
//===----------------------------------------------------------------------===//

/// Puts a sample of a row that does not fit the buffer there. How many of its
/// keys should reach a bound that somewhat more than `width` keys of the row
/// reach.
Value BlockTopK::loadSample() {
  // Runs of four columns, spread over the row.
  constexpr int64_t run = 4;
  int64_t samplesPerWarp = sampleSize / getNumWarps();
  Value distance = div(count, i32(sampleSize / run));
  forEachInPart(i32(samplesPerWarp), [&](Value slot, Value i) {
    Value number = add(mul(warp(), i32(samplesPerWarp)), i);
    Value place = add(mul(div(number, i32(run)), distance), rem(number, i32(run)));
    store(loadRowKey(place), keys, toIndex(slot));
  });
  // As many of the sample as of the row, and four times the deviation of that number.
  Value numColumns = arith::UIToFPOp::create(builder, loc, builder.getF32Type(), count);
  Value share = fdiv(f32(double(width) * sampleSize), numColumns);
  Value spread = fmul(f32(4), math::SqrtOp::create(builder, loc, share));
  return arith::FPToUIOp::create(builder, loc, builder.getI32Type(), fadd(fadd(share, spread), f32(4)));
}

/// Appends the keys of those of a warp's scores that reach the bound to its part of the buffer while there is room;
/// `end` is where the next one goes. Score u is of column `first` + u * `threads` + thread. Few are expected: what is
/// done for each score is little, and none of it with other warps.
void BlockTopK::append(ArrayRef<Value> scores, Value boundScore, Value first, Value &end) {
  Value partEnd = add(partBegin, partSize);
  for (auto [u, score] : llvm::enumerate(scores)) {
    Value reaches = row.reaches(score, boundScore);
    auto none = [&] { return SmallVector<Value>{end}; };
    auto some = [&, score = score, u = u] {
      Value mask = ballot(reaches), place = add(end, countBelow(mask));
      ifThen(both(reaches, lt(place, partEnd)), [&] {
        store(row.getReachingKey(score), keys, toIndex(place));
        store(add(first, add(thread(), i32(u * threads))), columns, toIndex(place));
      });
      return SmallVector<Value>{add(end, popCount(mask))};
    };
    end = ifElse(anyLane(reaches), builder.getI32Type(), some, none)[0];
  }
}

/// Goes over the marked scores of the row, several of a thread on their way at a time; what is carried is the thread's. Score u of a
/// stretch is that of column `first` + u * `threads` + thread, relative to the row's begin.
Value BlockTopK::scanRow(Value init, llvm::function_ref<Value(ArrayRef<Value> scores, Value first, Value carried)> visit) {
  // Strides of columns that all have scores, then the rest.
  int64_t chunk = unroll * threads;
  Value whole = max(min(sub(row.scored, row.begin), count), i32(0));
  whole = sub(whole, rem(whole, i32(chunk)));
  auto loadFrom = [&](Value first, int64_t strides, bool areAll) {
    SmallVector<Value> numbers;
    for (int64_t u = 0; u < strides; ++u)
      numbers.push_back(add(add(row.begin, first), add(thread(), i32(u * threads))));
    return row.loadMarked(numbers, areAll);
  };
  Value last = sub(whole, i32(chunk));
  auto visitAhead = [&]() -> SmallVector<Value> {
    SmallVector<Value> state = loadFrom(i32(0), unroll, /*areAll=*/true);
    state.push_back(init);
    return {loop(i32(0), whole, i32(chunk), state, [&](Value first, ValueRange carried) {
      SmallVector<Value> scores(carried.drop_back()), next = loadFrom(min(add(first, i32(chunk)), last), unroll, /*areAll=*/true);
      next.push_back(visit(scores, first, carried.back()));
      return next;
    }).back()};
  };
  auto visitFrom = [&](int64_t strides, bool areAll) {
    return [&, strides, areAll](Value first, ValueRange carried) { return SmallVector<Value>{visit(loadFrom(first, strides, areAll), first, carried[0])}; };
  };
  // The scores of the next strides are under way while some are looked at, behind the last ones their own again; where columns may be forced what tells
  // these takes the registers.
  Value carried = row.canForce() ? loop(i32(0), whole, i32(chunk), init, visitFrom(unroll, /*areAll=*/true))[0]
                                 : ifElse(lt(i32(0), whole), init.getType(), visitAhead, [&] { return SmallVector<Value>{init}; })[0];
  return loop(whole, count, i32(threads), carried, visitFrom(1, /*areAll=*/false))[0];
}

/// Fills the buffer with the keys that reach the bound; how many the warp found.
Value BlockTopK::collect(Value bound) {
  fromOneThread([&] {
    for (unsigned word : {collectedWord, overflowWord, aboveWord})
      setWord(word, i32(0));
  });
  barrier();
  Value boundScore = row.getBoundScore(bound);
  Value end = scanRow(partBegin, [&](ArrayRef<Value> scores, Value first, Value end) {
    append(scores, boundScore, first, end);
    return end;
  });
  Value taken = sub(end, partBegin);
  ifThen(eq(lane(), i32(0)), [&] {
    atomicAdd(taken, words, index(collectedWord));
    ifThen(lt(partSize, taken), [&] { atomicOr(i32(1), words, index(overflowWord)); });
  });
  barrier();
  return taken;
}

/// How many keys of the row are above the bound.
Value BlockTopK::countAbove(Value bound) {
  Value aboveScore = row.getBoundScore(add(bound, i32(1)));
  Value own = scanRow(i32(0), [&](ArrayRef<Value> scores, Value, Value sum) {
    for (Value score : scores)
      sum = add(sum, select(row.reaches(score, aboveScore), i32(1), i32(0)));
    return sum;
  });
  atomicAdd(own, words, index(aboveWord));
  barrier();
  return getWord(aboveWord);
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
SmallVector<Value> BlockTopK::narrow(KeyVisitor visitKeys, ValueRange range) {
  Value low = range[0], high = range[1], wanted = range[2];
  Value bits = sub(i32(32), countLeadingZeros(sub(high, low))), shift = max(sub(bits, i32(binBits)), i32(0));
  for (int64_t i = 0; i < bins; i += threads)
    store(i32(0), histogram, toIndex(add(thread(), i32(i))));
  fromOneThread([&] { setWord(binWord, i32(-1)); });
  barrier();
  visitKeys([&](Value key) {
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

/// The threshold that `wanted` (at least 1) of the keys pass, or all from `lowest` on if there are fewer. It is `lowest` if it is
/// known.
BlockTopK::Threshold BlockTopK::findThreshold(KeyVisitor visitKeys, Value wanted, Value lowest, Value isKnown, Value takesAll) {
  SmallVector<Value> found = loopWhile(
      {lowest, i32(int32_t(forcedKey)), wanted, isKnown, takesAll}, [&](ValueRange range) { return eq(range[3], bit(false)); },
      [&](ValueRange range) { return narrow(visitKeys, range); });
  return {found[0], found[2], found[4]};
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// Sets the bits of the section from column `first` on (relative to the row's begin).
void BlockTopK::markFromBuffer(const Threshold &threshold, Value taken, Value first) {
  forEach(getSectionWords(first), [&](Value word) { store(i32(0), above, toIndex(word)); });
  barrier();
  forEachInPart(taken, [&](Value slot, Value) {
    Value key = load(keys, toIndex(slot)), place = sub(load(columns, toIndex(slot)), first);
    ifThen(both(uge(key, threshold.key), ult(place, i32(sectionColumns))), [&] {
      Value bit = shiftLeft(i32(1), rem(place, i32(wordBits)));
      atomicOr(bit, above, toIndex(div(place, i32(wordBits))));
    });
  });
}

/// How many words the section from column `first` on has.
Value BlockTopK::getSectionWords(Value first) {
  return min(ceilDiv(sub(count, first), i32(wordBits)), i32(sectionWords));
}

void BlockTopK::markFromRow(const Threshold &threshold, Value first) {
  // A warp makes `unroll` words at a time; lane u keeps word u.
  Value words = mul(ceilDiv(getSectionWords(first), i32(unroll)), i32(unroll));
  loop(mul(warp(), i32(unroll)), words, i32(getNumWarps() * unroll), [&](Value word) {
    SmallVector<Value> numbers;
    for (int64_t u = 0; u < unroll; ++u)
      numbers.push_back(add(add(row.begin, first), add(mul(add(word, i32(u)), i32(wordBits)), lane())));
    Value aboveBits = i32(0), equalBits = i32(0);
    for (auto [u, score] : llvm::enumerate(row.loadMarked(numbers, /*areAll=*/false))) {
      Value key = row.getKey(score), isMine = eq(lane(), i32(u));
      aboveBits = select(isMine, ballot(ugt(key, threshold.key)), aboveBits);
      equalBits = select(isMine, ballot(eq(key, threshold.key)), equalBits);
    }
    ifThen(lt(lane(), i32(unroll)), [&] {
      Value at = toIndex(add(word, lane()));
      store(aboveBits, above, at);
      store(equalBits, keys, at); // the buffer is not needed any more
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

/// Of the bits `equal` the first `room`; how much room is left.
std::pair<Value, Value> BlockTopK::takeFirst(Value equal, Value room) {
  SmallVector<Value> taken = loopWhile(
      {equal, i32(0), room}, [&](ValueRange bits) { return both(ne(bits[0], i32(0)), lt(i32(0), bits[2])); },
      [&](ValueRange bits) {
        Value lowest = both(bits[0], sub(i32(0), bits[0]));
        return SmallVector<Value>{bitXor(bits[0], lowest), either(bits[1], lowest), sub(bits[2], i32(1))};
      });
  return {taken[1], taken[2]};
}

/// Writes the columns of a section, of which `written` entries and `seen` keys equal to the threshold are before it;
/// both numbers behind it. Each thread has a stretch of the words.
SmallVector<Value> BlockTopK::writeSection(Value first, Value written, Value seen, Value room, Value isInBuffer) {
  Type i32Type = builder.getI32Type();
  Value numWords = getSectionWords(first), length = ceilDiv(numWords, i32(threads));
  Value begin = min(mul(thread(), length), numWords), end = min(add(begin, length), numWords);
  auto loadEqual = [&](Value word) { // of the buffer all keys that are equal are taken, and marked as if above
    return ifElse(
        isInBuffer, i32Type, [&] { return SmallVector<Value>{i32(0)}; },
        [&] { return SmallVector<Value>{load(keys, toIndex(word))}; })[0];
  };
  SmallVector<Value> counts = loop(begin, end, i32(1), {i32(0), i32(0)}, [&](Value word, ValueRange sums) {
    return SmallVector<Value>{add(sums[0], popCount(load(above, toIndex(word)))),
                              add(sums[1], popCount(loadEqual(word)))};
  });
  Scan ranks = scan(counts[0], sums);
  SmallVector<Value> equals = ifElse(
      isInBuffer, {i32Type, i32Type}, [&] { return SmallVector<Value>{i32(0), i32(0)}; },
      [&] {
        Scan scanned = scan(counts[1], sums);
        return SmallVector<Value>{scanned.before, scanned.total};
      });
  Value left = max(sub(room, seen), i32(0)); // of keys equal to the threshold
  Value rank = add(written, add(ranks.before, min(equals[0], left)));
  loop(begin, end, i32(1), {rank, max(sub(left, equals[0]), i32(0))}, [&](Value word, ValueRange carried) {
    auto [taken, roomLeft] = takeFirst(loadEqual(word), carried[1]);
    Value firstColumn = add(row.begin, add(first, mul(word, i32(wordBits))));
    Value next = writeBits(either(load(above, toIndex(word)), taken), firstColumn, carried[0]);
    return SmallVector<Value>{next, roomLeft};
  });
  barrier(); // the words have been read
  return {add(written, add(ranks.total, min(equals[1], left))), add(seen, equals[1])};
}

void BlockTopK::writeSelected(const Threshold &threshold, Value isInBuffer, Value taken) {
  auto isOpen = [&](ValueRange carried) { return both(lt(carried[0], count), lt(carried[1], i32(width))); };
  SmallVector<Value> end = loopWhile({i32(0), i32(0), i32(0)}, isOpen, [&](ValueRange carried) {
    Value first = carried[0];
    ifThen(isInBuffer, [&] { markFromBuffer(threshold, taken, first); });
    ifThen(eq(isInBuffer, bit(false)), [&] { markFromRow(threshold, first); });
    barrier();
    SmallVector<Value> next = writeSection(first, carried[1], carried[2], threshold.room, isInBuffer);
    return SmallVector<Value>{add(first, i32(sectionColumns)), next[0], next[1]};
  });
  row.storePadding(end[1], thread(), threads);
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

/// Finds the threshold, in two rounds where the row does not fit the buffer:
/// the threshold of the first, which looks at a sample, is the bound of what
/// the second collects. So there is one search in the code.
BlockTopK::Selection BlockTopK::selectKeys() {
  Value lowest = row.getLowestKey(), none = i32(0), no = bit(false);
  Type i32Type = builder.getI32Type(), bitType = builder.getI1Type();
  SmallVector<Value> last = loopWhile(
      {lt(slots, count), no, lowest, none, no, no, none}, [&](ValueRange carried) { return eq(carried[1], no); },
      [&](ValueRange carried) {
        Value isSample = carried[0], bound = carried[2];
        auto sample = [&] {
          Value wanted = loadSample();
          return SmallVector<Value>{wanted, lowest, bit(true), i32(sampleSize / getNumWarps()), no, no};
        };
        auto collectAll = [&] {
          Value taken = collect(bound), collected = getWord(collectedWord), overflows = ne(getWord(overflowWord), i32(0));
          Value isEnough = ge(collected, i32(width));
          Value isInBuffer = both(eq(overflows, no), either(eq(bound, lowest), isEnough));
          // Where too many reach the bound, most are usually equal to it, and it is the threshold.
          Value above = ifElse(
              overflows, i32Type, [&] { return SmallVector<Value>{countAbove(bound)}; },
              [&] { return SmallVector<Value>{i32(width)}; })[0];
          Value isKnown = both(isEnough, lt(above, i32(width)));
          Value wanted = select(isKnown, sub(i32(width), above), i32(width));
          Value begin = select(either(isInBuffer, isKnown), bound, lowest);
          return SmallVector<Value>{wanted, begin, isInBuffer, taken, isKnown, both(isKnown, eq(collected, i32(width)))};
        };
        SmallVector<Value> round = ifElse(isSample, {i32Type, i32Type, bitType, i32Type, bitType, bitType}, sample, collectAll);
        Value isInBuffer = round[2], taken = round[3];
        auto visitKeys = [&](llvm::function_ref<void(Value)> visit) {
          ifThen(isInBuffer,
                 [&] { forEachInPart(taken, [&](Value slot, Value) { visit(load(keys, toIndex(slot))); }); });
          ifThen(eq(isInBuffer, no), [&] { forEach(count, [&](Value i) { visit(loadRowKey(i)); }); });
        };
        Threshold found = findThreshold(visitKeys, round[0], round[1], round[4], round[5]);
        Value isDone = eq(isSample, no);
        return SmallVector<Value>{no, isDone, found.key, found.room, found.takesAll, isInBuffer, taken};
      });
  return {{last[2], last[3], last[4]}, last[5], last[6]};
}

void BlockTopK::selectRow() {
  count = max(sub(row.end, row.begin), i32(0));
  Selection selection = selectKeys();
  // If only some of the keys equal to the threshold are taken, it is the first
  // in the row.
  Value isInBuffer = both(selection.isInBuffer, selection.threshold.takesAll);
  if (op.getTopP()) {
    selection.threshold = limitMass(selection.threshold);
    isInBuffer = bit(false);
  }
  writeSelected(selection.threshold, isInBuffer, selection.taken);
  barrier(); // the buffer has been read
}

void BlockTopK::build(HostFunction &host, const TopKOperands &operands) {
  // The buffer holds a row that is not too long, and for `top_p` the list; each
  // warp has an equal part of it.
  int64_t least = op.getTopP() ? llvm::PowerOf2Ceil(width) : 1;
  auto getSlots = [&](Emitter &e, Value columns) {
    Value wanted = e.max(e.min(columns, e.index(maxSlots)), e.index(least));
    return e.mul(e.ceilDiv(wanted, e.index(threads)), e.index(threads));
  };
  Type i32Type = builder.getI32Type();
  above = histogram = addShared(i32Type, sectionWords); // never needed at the same time
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
    partSize = div(slots, i32(getNumWarps()));
    partBegin = mul(warp(), partSize);
    row.locate(item);
    selectRow();
  });
  finish(e.mul(getSlots(e, operands.columns), e.index(2 * wordBytes)));
}

void ssa::buildBlockTopK(HostFunction &host, TopKOp op, const TopKOperands &operands) {
  BlockTopK(host, op, operands).build(host, operands);
}
