//===- TopP.cpp - topk limited by a share of the scores -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Sums are of f64, so that they decide as exact ones would. All are made in one order: a sum before a key is never more
// than one after it, and a key without mass changes none.
//
//===----------------------------------------------------------------------===//

#include "BlockTopK.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::ssa;

/// Puts the keys that are taken by their scores into the buffer, in any order.
BlockTopK::Masses BlockTopK::gatherTaken(const Threshold &threshold) {
  enum { gatheredWord = collectedWord, equalWord = takenWord };
  fromOneThread([&] {
    setWord(gatheredWord, i32(0));
    setWord(equalWord, i32(0));
  });
  barrier();
  SmallVector<Value> sums = loop(thread(), count, i32(threads), {f64(0), f64(0)}, [&](Value i, ValueRange carried) {
    Value column = add(row.begin, i);
    ScoreRow::Column entry = row.loadColumn(column);
    Value isForced = entry.isForced ? entry.isForced : bit(false), isFree = eq(isForced, bit(false));
    Value key = row.getScoreKey(entry.score);
    if (entry.mayBe)
      key = select(entry.mayBe, key, i32(neverKey));
    Value mass = row.getMass(key);
    ifThen(both(isFree, ugt(key, threshold.key)), [&] {
      Value place = atomicAdd(i32(1), words, index(gatheredWord));
      store(key, keys, toIndex(place));
    });
    ifThen(both(isFree, eq(key, threshold.key)), [&] { atomicAdd(i32(1), words, index(equalWord)); });
    Value isOther = both(isFree, ult(key, threshold.key));
    return SmallVector<Value>{fadd(carried[0], select(isForced, mass, f64(0))),
                              fadd(carried[1], select(isOther, mass, f64(0)))};
  });
  Masses masses = {sum(sums[0], doubles), sum(sums[1], doubles), Value()};
  Value equal = getWord(equalWord), taken = umin(equal, threshold.room), left = sub(equal, taken),
        gathered = getWord(gatheredWord);
  Value massLeft = fmul(arith::UIToFPOp::create(builder, loc, builder.getF64Type(), left), row.getMass(threshold.key));
  masses.others = fadd(masses.others, select(eq(left, i32(0)), f64(0),
                                             massLeft)); // 0 times inf is not meant
  forEach(taken, [&](Value i) { store(threshold.key, keys, toIndex(add(gathered, i))); });
  masses.size = add(gathered, taken);
  return masses;
}

/// Sorts the keys in the buffer, the greatest first.
void BlockTopK::sortKeys(Value size) {
  int64_t capacity = llvm::PowerOf2Ceil(width);
  loop(add(size, thread()), i32(capacity), i32(threads), [&](Value i) { store(i32(neverKey), keys, toIndex(i)); });
  barrier();
  auto invert = [&] {
    forEach(i32(capacity), [&](Value i) { store(bitXor(load(keys, toIndex(i)), i32(-1)), keys, toIndex(i)); });
  };
  invert();
  sort(keys, i32(0), capacity, thread(), threads);
  invert();
  barrier();
}

/// How many of the sorted keys are taken until the sum before is no longer below its share of all. One warp finds out:
/// each lane has a stretch of the keys.
Value BlockTopK::countNeeded(const Masses &masses) {
  ifThen(eq(warp(), i32(0)), [&] {
    Value length = ceilDiv(masses.size, i32(warpSize)), begin = mul(lane(), length),
          end = min(add(begin, length), masses.size);
    auto forEachMass = [&](Value init, llvm::function_ref<Value(Value before, Value next)> visit) {
      return loop(begin, end, i32(1), {f64(0), init}, [&](Value i, ValueRange carried) {
        Value next = visit ? visit(carried[0], carried[1]) : carried[1];
        return SmallVector<Value>{fadd(carried[0], row.getMass(load(keys, toIndex(i)))), next};
      });
    };
    Value own = forEachMass(i32(0), nullptr)[0];
    store(own, doubles, toIndex(lane()));
    warpBarrier();
    Value before = loop(i32(0), lane(), i32(1), masses.forced, [&](Value i, ValueRange sum) {
      return SmallVector<Value>{fadd(sum[0], load(doubles, toIndex(i)))};
    })[0];
    ifThen(eq(lane(), i32(warpSize - 1)), [&] { store(fadd(before, own), doubles, index(warpSize)); });
    warpBarrier();
    Value total = fadd(load(doubles, index(warpSize)), masses.others);
    Value limit = fmul(f64(double(float(op.getTopP()->convertToDouble()))), total);
    Value needed = forEachMass(i32(0), [&](Value local, Value count) {
      Value isNeeded = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, fadd(before, local), limit);
      return add(count, select(isNeeded, i32(1), i32(0)));
    })[1];
    Value sum = warpSum(needed);
    fromOneThread([&] { setWord(takenWord, sum); });
  });
  barrier();
  return getWord(takenWord);
}

/// The threshold for those of the taken keys whose scores make up the wanted share.
BlockTopK::Threshold BlockTopK::limitMass(const Threshold &threshold) {
  Masses masses = gatherTaken(threshold);
  sortKeys(masses.size);
  Value needed = countNeeded(masses), isNone = eq(needed, i32(0)), isAll = eq(needed, masses.size);
  Value last = load(keys, toIndex(max(sub(needed, i32(1)), i32(0))));
  fromOneThread([&] { setWord(inBinWord, i32(0)); });
  barrier();
  forEach(needed, [&](Value i) {
    ifThen(ugt(load(keys, toIndex(i)), last), [&] { atomicAdd(i32(1), words, index(inBinWord)); });
  });
  barrier();
  Value room = sub(needed, getWord(inBinWord));
  // Without any, only forced keys are above the threshold.
  Value key = select(isNone, i32(int32_t(forcedKey - 1)), last);
  return {select(isAll, threshold.key, key), select(isAll, threshold.room, room), bit(false)};
}
