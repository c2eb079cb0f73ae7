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

void BlockTopK::storeKept(Value score, Value slot) { store(bitcast(score, builder.getI32Type()), keys, toIndex(slot)); }
Value BlockTopK::loadKept(Value slot) { return row.getKey(bitcast(load(keys, toIndex(slot)), builder.getF32Type())); }

/// How many columns that may be taken have a score; those that must be taken may have none.
Value BlockTopK::countScored() { return max(min(sub(row.scored, row.begin), count), i32(0)); }

/// Puts a sample of a row whose scores do not fit the buffer there. How many of its keys should reach a bound that somewhat more than `width` keys of the
/// row reach.
Value BlockTopK::loadSample() {
  // Runs of as many columns as memory fetches at least, spread over the row; all loads of a thread are under way together.
  constexpr int64_t size = ScoreRow::vectorColumns, run = 64 / wordBytes;
  Value scored = countScored(), head = row.countBeforeVectors();
  Value distance = mul(div(sub(scored, i32(size)), i32(sampleSize / run * size)), i32(size)); // of runs
  SmallVector<Value> scores;
  for (int64_t first = 0; first < sampleSize / size; first += threads) {
    Value vector = add(thread(), i32(first)), inRun = mul(rem(vector, i32(run / size)), i32(size));
    Value column = add(add(row.begin, head), add(mul(div(vector, i32(run / size)), distance), inRun));
    for (auto [i, score] : llvm::enumerate(row.loadVector(column)))
      scores.push_back(row.mark(score, add(column, i32(i))));
  }
  for (auto [i, score] : llvm::enumerate(scores))
    storeKept(score, add(thread(), i32(i * threads)));
  // As many of the sample as of the row, and four times the deviation of that number.
  Value numColumns = arith::UIToFPOp::create(builder, loc, builder.getF32Type(), scored);
  Value share = fdiv(f32(double(width) * sampleSize), numColumns);
  Value spread = fmul(f32(4), math::SqrtOp::create(builder, loc, share));
  return arith::FPToUIOp::create(builder, loc, builder.getI32Type(), fadd(fadd(share, spread), f32(4)));
}

/// Appends those of the thread's scores that reach the bound to the buffer while there is room, in any order, and counts them all. Few are expected, so
/// all are looked at together.
void BlockTopK::append(ArrayRef<Value> scores, ArrayRef<Value> numbers, Value boundScore) {
  SmallVector<Value> reach = llvm::map_to_vector(scores, [&](Value score) { return row.reaches(score, boundScore); });
  auto addUp = [](ArrayRef<Value> values, auto add) { return llvm::accumulate(values.drop_front(), values.front(), add); };
  ifThen(addUp(reach, [&](Value a, Value b) { return either(a, b); }), [&] {
    SmallVector<Value> ones = llvm::map_to_vector(reach, [&](Value reaches) { return select(reaches, i32(1), i32(0)); });
    Value sum = addUp(ones, [&](Value a, Value b) { return add(a, b); }), place = atomicAdd(sum, words, index(collectedWord));
    ifThen(le(add(place, sum), slots), [&] {
      for (auto [score, number, reaches, one] : llvm::zip_equal(scores, numbers, reach, ones)) {
        ifThen(reaches, [&, score = score, number = number] {
          storeKept(score, place);
          store(number, columns, toIndex(place));
        });
        place = add(place, one);
      }
    });
  });
}

/// Goes over the marked scores of the row, a few of a thread at a time; what is carried is the thread's. Numbers are those of columns relative to the
/// row's begin.
Value BlockTopK::scanRow(Value init, llvm::function_ref<Value(ArrayRef<Value> scores, ArrayRef<Value> numbers, Value carried)> visit) {
  constexpr int64_t size = ScoreRow::vectorColumns, vectors = 4, restVectors = 2;
  // Vectors of columns that all have scores; then the columns before and behind them.
  int64_t chunk = vectors * size * threads;
  Value head = row.countBeforeVectors(), whole = max(sub(countScored(), head), i32(0));
  whole = sub(whole, rem(whole, i32(chunk)));
  Value own = add(head, mul(thread(), i32(size)));
  auto placeOf = [&](Value first, int64_t vector) { return add(add(own, first), i32(vector * size * threads)); };
  auto load = [&](Value place) { return row.loadVector(add(row.begin, place)); };
  auto visitWhole = [&]() -> SmallVector<Value> {
    SmallVector<Value> state;
    for (int64_t v = 0; v < vectors; ++v)
      state.append(load(placeOf(i32(0), v)));
    state.push_back(init);
    // A vector of the next chunk is loaded where one has been looked at: all others are under way meanwhile. Behind the last chunk it is that chunk's own.
    return {loop(i32(0), whole, i32(chunk), state, [&](Value first, ValueRange carried) {
      Value next = min(add(first, i32(chunk)), sub(whole, i32(chunk))), result = carried.back();
      SmallVector<Value> loaded;
      for (int64_t v = 0; v < vectors; ++v) {
        SmallVector<Value> scores, numbers;
        for (int64_t i = 0; i < size; ++i) {
          numbers.push_back(add(placeOf(first, v), i32(i)));
          scores.push_back(row.mark(carried[v * size + i], add(row.begin, numbers.back())));
        }
        result = visit(scores, numbers, result);
        loaded.append(load(placeOf(next, v)));
      }
      loaded.push_back(result);
      return loaded;
    }).back()};
  };
  Value carried = ifElse(lt(i32(0), whole), init.getType(), visitWhole, [&] { return SmallVector<Value>{init}; })[0];
  return loop(thread(), sub(count, whole), i32(restVectors * size * threads), carried, [&](Value first, ValueRange carried) {
    SmallVector<Value> numbers, places;
    for (int64_t u = 0; u < restVectors * size; ++u) {
      Value i = add(first, i32(u * threads));
      numbers.push_back(add(i, select(lt(i, head), i32(0), whole)));
      places.push_back(add(row.begin, numbers.back()));
    }
    SmallVector<Value> scores = row.loadMarked(places, /*areAll=*/false);
    Value result = carried[0];
    for (int64_t v = 0; v < restVectors; ++v)
      result = visit(ArrayRef(scores).slice(v * size, size), ArrayRef(numbers).slice(v * size, size), result);
    return SmallVector<Value>{result};
  })[0];
}

/// Fills the buffer with the scores that reach the bound; how many do.
Value BlockTopK::collect(Value bound) {
  fromOneThread([&] {
    for (unsigned word : {collectedWord, aboveWord})
      setWord(word, i32(0));
  });
  barrier();
  Value boundScore = row.getBoundScore(bound);
  scanRow(i32(0), [&](ArrayRef<Value> scores, ArrayRef<Value> numbers, Value carried) {
    append(scores, numbers, boundScore);
    return carried;
  });
  barrier();
  return getWord(collectedWord);
}

/// How many keys of the row are above the bound.
Value BlockTopK::countAbove(Value bound) {
  Value aboveScore = row.getBoundScore(add(bound, i32(1)));
  Value own = scanRow(i32(0), [&](ArrayRef<Value> scores, ArrayRef<Value>, Value sum) {
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

/// Keeps only the columns that are taken.
void BlockTopK::dropOthers(const Threshold &threshold, Value taken) {
  forEach(taken, [&](Value slot) {
    ifThen(ult(loadKept(slot), threshold.key), [&] { store(i32(noColumn), columns, toIndex(slot)); });
  });
}

/// `body(column, bit, word)` for the kept columns of the section from column `first` on, relative to the row's begin.
void BlockTopK::forEachInSection(Value taken, Value first, llvm::function_ref<void(Value column, Value bit, Value word)> body) {
  forEach(taken, [&](Value slot) {
    Value column = load(columns, toIndex(slot)), place = sub(column, first);
    ifThen(ult(place, i32(sectionColumns)), [&] { body(column, shiftLeft(i32(1), rem(place, i32(wordBits))), toIndex(div(place, i32(wordBits)))); });
  });
}

/// Sets the bits of the section from column `first` on (relative to the row's begin).
void BlockTopK::markFromBuffer(Value taken, Value first) {
  forEach(getSectionWords(first), [&](Value word) { store(i32(0), above, toIndex(word)); });
  barrier();
  forEachInSection(taken, first, [&](Value, Value bit, Value word) { atomicOr(bit, above, word); });
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

/// The thread's stretch of the words of a section.
std::pair<Value, Value> BlockTopK::getStretch(Value first) {
  Value words = getSectionWords(first), length = ceilDiv(words, i32(threads)), begin = min(mul(thread(), length), words);
  return {begin, min(add(begin, length), words)};
}

/// Writes the columns of a section that are in the buffer, of which `written` entries are before it; how many there are then.
Value BlockTopK::writeFromBuffer(Value first, Value written, Value taken) {
  auto [begin, end] = getStretch(first);
  Value count = loop(begin, end, i32(1), i32(0), [&](Value word, ValueRange sum) {
    return SmallVector<Value>{add(sum[0], popCount(load(above, toIndex(word))))};
  })[0];
  Scan ranks = scan(count, sums);
  // The rank of the first column of each word; what was kept there is not needed any more.
  loop(begin, end, i32(1), add(written, ranks.before), [&](Value word, ValueRange rank) {
    store(rank[0], keys, toIndex(word));
    return SmallVector<Value>{add(rank[0], popCount(load(above, toIndex(word))))};
  });
  barrier();
  forEachInSection(taken, first, [&](Value column, Value bit, Value word) {
    Value before = popCount(both(load(above, word), sub(bit, i32(1))));
    row.storeColumn(add(load(keys, word), before), add(row.begin, column));
  });
  barrier(); // the words have been read
  return add(written, ranks.total);
}

/// Writes the columns of a section whose bits come from the row, of which `written` entries and `seen` keys equal to the threshold are before it; both
/// numbers behind it.
SmallVector<Value> BlockTopK::writeFromRow(Value first, Value written, Value seen, Value room) {
  auto [begin, end] = getStretch(first);
  SmallVector<Value> counts = loop(begin, end, i32(1), {i32(0), i32(0)}, [&](Value word, ValueRange sums) {
    return SmallVector<Value>{add(sums[0], popCount(load(above, toIndex(word)))), add(sums[1], popCount(load(keys, toIndex(word))))};
  });
  Scan ranks = scan(counts[0], sums), equals = scan(counts[1], sums);
  Value left = max(sub(room, seen), i32(0)); // of keys equal to the threshold
  Value rank = add(written, add(ranks.before, min(equals.before, left)));
  loop(begin, end, i32(1), {rank, max(sub(left, equals.before), i32(0))}, [&](Value word, ValueRange carried) {
    auto [taken, roomLeft] = takeFirst(load(keys, toIndex(word)), carried[1]);
    Value firstColumn = add(row.begin, add(first, mul(word, i32(wordBits))));
    return SmallVector<Value>{writeBits(either(load(above, toIndex(word)), taken), firstColumn, carried[0]), roomLeft};
  });
  barrier(); // the words have been read
  return {add(written, add(ranks.total, min(equals.total, left))), add(seen, equals.total)};
}

void BlockTopK::writeSelected(const Threshold &threshold, Value isInBuffer, Value taken) {
  Type i32Type = builder.getI32Type();
  ifThen(isInBuffer, [&] { dropOthers(threshold, taken); });
  auto isOpen = [&](ValueRange carried) { return both(lt(carried[0], count), lt(carried[1], i32(width))); };
  SmallVector<Value> end = loopWhile({i32(0), i32(0), i32(0)}, isOpen, [&](ValueRange carried) {
    Value first = carried[0], written = carried[1], seen = carried[2];
    auto fromBuffer = [&] {
      markFromBuffer(taken, first);
      barrier();
      return SmallVector<Value>{writeFromBuffer(first, written, taken), seen};
    };
    auto fromRow = [&] {
      markFromRow(threshold, first);
      barrier();
      return writeFromRow(first, written, seen, threshold.room);
    };
    SmallVector<Value> next = ifElse(isInBuffer, {i32Type, i32Type}, fromBuffer, fromRow);
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
      {lt(slots, countScored()), no, lowest, none, no, no, none}, [&](ValueRange carried) { return eq(carried[1], no); },
      [&](ValueRange carried) {
        Value isSample = carried[0], bound = carried[2];
        auto sample = [&] {
          Value wanted = loadSample();
          return SmallVector<Value>{wanted, lowest, bit(true), i32(sampleSize), no, no};
        };
        auto collectAll = [&] {
          Value collected = collect(bound), overflows = lt(slots, collected);
          Value isEnough = ge(collected, i32(width));
          Value isInBuffer = both(eq(overflows, no), either(eq(bound, lowest), isEnough));
          // Where too many reach the bound, most are usually equal to it, and it is the threshold.
          Value above = ifElse(
              overflows, i32Type, [&] { return SmallVector<Value>{countAbove(bound)}; },
              [&] { return SmallVector<Value>{i32(width)}; })[0];
          Value isKnown = both(isEnough, lt(above, i32(width)));
          Value wanted = select(isKnown, sub(i32(width), above), i32(width));
          Value begin = select(either(isInBuffer, isKnown), bound, lowest);
          return SmallVector<Value>{wanted, begin, isInBuffer, collected, isKnown, both(isKnown, eq(collected, i32(width)))};
        };
        SmallVector<Value> round = ifElse(isSample, {i32Type, i32Type, bitType, i32Type, bitType, bitType}, sample, collectAll);
        Value isInBuffer = round[2], taken = round[3];
        auto visitKeys = [&](llvm::function_ref<void(Value)> visit) {
          ifThen(isInBuffer,
                 [&] { forEach(taken, [&](Value slot) { visit(loadKept(slot)); }); });
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
  // The buffer holds a row that is not too long, and for `top_p` the list.
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
    row.locate(item);
    selectRow();
  });
  setReadOnly(TopKOperands::scoresArgument, wordBytes);
  finish(e.mul(getSlots(e, operands.columns), e.index(2 * wordBytes)));
}

void ssa::buildBlockTopK(HostFunction &host, TopKOp op, const TopKOperands &operands) {
  BlockTopK(host, op, operands).build(host, operands);
}
