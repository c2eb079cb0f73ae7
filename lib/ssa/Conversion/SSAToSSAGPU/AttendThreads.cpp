//===- AttendThreads.cpp - All threads copy and multiply -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttendKernel.h"

using namespace mlir;
using namespace mlir::ssa;

AttendKernel::State AttendKernel::attend(const Slots &slots, ScoreTiles &scores, Value lhs, Value stage, State state) {
  Value products = t.mma(plan.family, lhs, t.slot(keys.ring, stage), /*transposed=*/true, getZeroScores());
  SoftmaxStep softmax = getSoftmaxStep(slots, scores, [&] { return products; }, getNumbers(stage), state.max, state.sum, [] {});
  Value scaled = rescale(state.output, softmax.rescale, softmax.isKept);
  Value sum = t.mma(plan.family, getWeights(softmax.weights), getValueTile(stage), /*transposed=*/false, scaled);
  return {softmax.max, softmax.sum, sum};
}

/// The copies of a step, if there is one. Closes a group also where there is nothing to copy: groups are counted.
void AttendKernel::loadStep(const Item &item, const Slots &slots, Value step) {
  k.ifThen(k.lt(step, slots.steps), [&] {
    Value stage = k.rem(step, k.i32(plan.stages));
    Lookup found = lookUp(item, slots, step);
    loadRows(item, slots, found, keys, stage);
    if (!plan.valuesAreKeys)
      loadRows(item, slots, found, values, stage);
    loadNumbers(slots, step, found, getNumbers(stage));
  });
  t.commitCopies();
}

void AttendKernel::buildWithoutRoles(Value total) {
  k.forEachItem(total, {}, [&](Value number, ValueRange) -> SmallVector<Value> {
    Item item = decodeItem(number);
    SmallVector<Slots, 1> all = getAllSlots(item);
    for (Slots &slots : all)
      useList(slots, item);
    Value queryTile = t.slot(queryRing, k.i32(0)), lhs = queryTile;
    State state;
    for (const Slots &slots : all) {
      bool isFirst = slots.source == all.front().source;
      // Rows of the last keys are still being read until all threads are here; queries may still be under way, if nothing was seen.
      t.waitCopies(0);
      if (isFirst)
        loadQueries(item, queryTile);
      k.loop(k.i32(0), k.i32(plan.stages - 1), k.i32(1), [&](Value step) { loadStep(item, slots, step); });
      if (isFirst && plan.keepsQueries) {
        t.waitCopies(plan.stages - 2);
        lhs = t.loadOperand(queryTile);
      }
      ScoreTiles scores = getScores(item, slots);
      if (beginsSoftmax(*slots.source))
        state = getInitialState();
      SmallVector<Value> after = k.loop(k.i32(0), slots.steps, k.i32(1), {state.max, state.sum, state.output},
                                        [&](Value step, ValueRange carried) -> SmallVector<Value> {
        t.waitCopies(plan.stages - 2);
        loadStep(item, slots, k.add(step, k.i32(plan.stages - 1)));
        State next = attend(slots, scores, lhs, k.rem(step, k.i32(plan.stages)), {carried[0], carried[1], carried[2]});
        return {next.max, next.sum, next.output};
      });
      state = {after[0], after[1], after[2]};
      if (endsSoftmax(*slots.source))
        store({item, getSoftmax(*slots.source)}, scores, state);
    }
    return {};
  });
}
