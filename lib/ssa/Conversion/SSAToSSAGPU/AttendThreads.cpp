//===- AttendThreads.cpp - All threads copy and multiply -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttendKernel.h"

using namespace mlir;
using namespace mlir::ssa;

AttendKernel::State AttendKernel::attend(const KeySlots &slots, ScoreTiles &scores, Value lhs, Value stage, State state) {
  Value products = t.mma(plan.family, lhs, t.slot(keys.ring, stage), /*transposed=*/true, getZeroScores());
  SoftmaxStep softmax = getSoftmaxStep(slots, scores, products, getNumbers(stage), state.max, state.sum, [] {});
  Value scaled = rescale(state.output, softmax.rescale);
  Value sum = t.mma(plan.family, getWeights(softmax.weights), getValueTile(stage), /*transposed=*/false, scaled);
  return {softmax.max, softmax.sum, sum};
}

void AttendKernel::buildWithoutRoles(Value total) {
  k.forEachItem(total, {}, [&](Value number, ValueRange) -> SmallVector<Value> {
    Item item = decodeItem(number);
    KeySlots slots = getSlots(item);
    useList(slots, item);
    // Closes a group also where there is nothing to copy: groups are counted.
    auto loadStep = [&](Value step) {
      k.ifThen(k.lt(step, slots.steps), [&] {
        Value stage = k.rem(step, k.i32(plan.stages));
        Lookup found = lookUp(item, slots, step);
        loadRows(item, slots, found, keys, stage);
        if (!plan.valuesAreKeys)
          loadRows(item, slots, found, values, stage);
        loadNumbers(slots, step, found, getNumbers(stage));
      });
      t.commitCopies();
    };

    // Rows of the last item are still being read until all threads are here; its queries may still be under way, if it saw no key.
    t.waitCopies(0);
    Value queryTile = t.slot(queryRing, k.i32(0));
    loadQueries(item, queryTile);
    k.loop(k.i32(0), k.i32(plan.stages - 1), k.i32(1), loadStep);
    Value lhs = queryTile;
    if (plan.keepsQueries) {
      t.waitCopies(plan.stages - 2);
      lhs = t.loadOperand(queryTile);
    }
    ScoreTiles scores = getScores(item, slots);
    State initial = getInitialState();
    SmallVector<Value> state = k.loop(k.i32(0), slots.steps, k.i32(1), {initial.max, initial.sum, initial.output},
                                      [&](Value step, ValueRange carried) -> SmallVector<Value> {
      t.waitCopies(plan.stages - 2);
      loadStep(k.add(step, k.i32(plan.stages - 1)));
      Value stage = k.rem(step, k.i32(plan.stages));
      State next = attend(slots, scores, lhs, stage, {carried[0], carried[1], carried[2]});
      return {next.max, next.sum, next.output};
    });
    store(item, scores, {state[0], state[1], state[2]});
    return {};
  });
}
