//===- AttendTurns.cpp - Two groups of warps that take turns --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An output that is too wide for the registers of one warpgroup is made by two, which have half of its columns each. Both need the weights
// of all keys, but these are made once: a group makes those of every second step, from all keys of that step, and gives them to the other
// with the maxima that they are relative to. So a product of scores is as wide as a step, and one group's softmax passes while products of
// the other are under way. Two steps in a row, those of group 0 and of group 1, are a round of the loop.
//
// Where keys are so much longer than values the weights of a step lie behind its values, in columns of its keys that only scores needed.
//
//===----------------------------------------------------------------------===//

#include "AttendKernel.h"

using namespace mlir;
using namespace mlir::ssa;

/// The values that the rows of a group had when it shared them.
Value AttendKernel::getSharedRows(unsigned group) {
  return t.mapRows(k.builder.getF32Type(), [&](Value row) { return t.loadEntry(exchanges[group].rows, row); });
}

/// Where the weights of a group's step are.
Value AttendKernel::getSharedWeights(unsigned group, Value keyTicket) {
  if (!plan.keepsWeightsInKeys)
    return exchanges[group].weights;
  return t.columns(t.slot(keys.ring, slotOf(keyTicket, plan.stages)), llvm::alignTo(plan.valueDim, 64), plan.tileKeys);
}

void AttendKernel::shareWeights(unsigned group, const SoftmaxStep &softmax, Value keyTicket, Value ticket) {
  t.acquire(exchanges[group].pipe, ticket);
  if (plan.keepsWeightsInKeys) // all warps of the group have multiplied by these keys
    t.barrier();
  t.saveRows(softmax.max, exchanges[group].rows);
  t.storeOperand(softmax.weights, getSharedWeights(group, keyTicket));
  t.finishCopies(0);
  t.publish(exchanges[group].pipe, ticket);
}

/// The sum of what both groups have.
Value AttendKernel::joinSums(unsigned group, Value sum, Value ticket) {
  t.acquire(exchanges[group].pipe, ticket);
  t.saveRows(sum, exchanges[group].rows);
  t.publish(exchanges[group].pipe, ticket);
  unsigned other = 1 - group;
  t.await(exchanges[other].pipe, ticket);
  Value joined = k.fadd(sum, getSharedRows(other));
  t.release(exchanges[other].pipe, ticket);
  return joined;
}

/// Carries maxima, the sums of the group's steps, outputs, and the tickets of keys and weights.
SmallVector<Value> AttendKernel::takeTwoTurns(unsigned group, const KeySlots &slots, ScoreTiles &scores, Value lhs, ValueRange carried) {
  State state{carried[0], carried[1], carried[2]};
  Value tickets[] = {carried[3], next(carried[3], plan.stages)}, ticket = carried[4];
  unsigned other = 1 - group;
  Value own = tickets[group], ownStage = slotOf(own, plan.stages);
  auto multiply = [&](Value weights, unsigned step, Value output) {
    return t.beginMma(weights, getValueTile(slotOf(tickets[step], plan.stages), group), /*transposed=*/false, output);
  };
  auto getSoftmax = [&](Value products) { return getSoftmaxStep(slots, scores, products, ownStage, state.max, state.sum, [] {}); };
  // What the other group's new maxima, which are there now, make of the state.
  auto followOther = [&] {
    t.await(exchanges[other].pipe, ticket);
    t.await(keys.pipe, tickets[other]);
    Value max = getSharedRows(other), factors = scores.getRescale(state.max, max);
    state = {max, k.fmul(state.sum, factors), rescale(state.output, factors)};
    state.output = multiply(getSharedWeights(other, tickets[other]), other, state.output);
  };
  auto releaseOther = [&] {
    t.release(exchanges[other].pipe, ticket);
    t.release(keys.pipe, tickets[other]);
  };
  auto endOwn = [&](const SoftmaxStep &softmax) {
    state.output = multiply(t.toOperand(softmax.weights, elementType), group, rescale(state.output, softmax.rescale));
    state.output = t.waitMma(state.output, 0);
    t.release(keys.pipe, own);
  };
  Value products = beginScores(lhs, own);
  if (group == 0) {
    SoftmaxStep softmax = getSoftmax(t.waitMma(products, 0));
    shareWeights(group, softmax, own, ticket);
    state.max = softmax.max;
    state.sum = softmax.sum;
    endOwn(softmax);
    followOther();
    state.output = t.waitMma(state.output, 0);
    releaseOther();
  } else {
    followOther();
    SoftmaxStep softmax = getSoftmax(t.waitMma(products, 1));
    shareWeights(group, softmax, own, ticket);
    state.output = t.waitMma(state.output, 0);
    releaseOther();
    state.max = softmax.max;
    state.sum = softmax.sum;
    endOwn(softmax);
  }
  return {state.max, state.sum, state.output, next(tickets[1], plan.stages), next(ticket, 1)};
}

void AttendKernel::takeTurns(unsigned group, Value total) {
  Value zero = k.i32(0);
  forEachItemAndOne(total, {zero, zero, zero}, [&](const Item &item, ValueRange tickets) -> SmallVector<Value> {
    KeySlots slots = getSlots(item);
    ScoreTiles scores = getScores(item, slots);
    Value steps = awaitQueries(slots, tickets[0]), lhs = t.slot(queryRing, slotOf(tickets[0], plan.querySlots));
    State initial = getInitialState();
    SmallVector<Value> state = k.loop(zero, steps, k.i32(2), {initial.max, initial.sum, initial.output, tickets[1], tickets[2]},
                                      [&](Value, ValueRange carried) { return takeTwoTurns(group, slots, scores, lhs, carried); });
    t.release(queryPipe, tickets[0]);
    storePart(item, scores, {state[0], joinSums(group, state[1], state[4]), state[2]}, group);
    return {next(tickets[0], plan.querySlots), state[3], next(state[4], 1)};
  });
}
