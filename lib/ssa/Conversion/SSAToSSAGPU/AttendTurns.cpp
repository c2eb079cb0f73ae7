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

void AttendKernel::allocateTurns() {
  int64_t producers = plan.producers() / 32, ofGroup = plan.consumers() / 32 / plan.groups, columns = getColumnsOfGroup();
  for (unsigned group : {0, 1}) {
    Turn &turn = turns[group];
    for (unsigned part : {0, 1}) {
      Rows &rows = turn.parts[part];
      rows = keys;
      rows.firstColumn = part * columns;
      rows.columns = part == 0 ? columns : plan.dim - columns;
      rows.ring = t.alloc({1, plan.tileKeys, part == 0 ? columns : plan.paddedDim() - columns}, elementType);
      // Of its own step a group is the only one to read the part that its outputs are of.
      rows.pipe = t.allocPipe(1, producers, part == group ? ofGroup : 2 * ofGroup, /*pair=*/false, /*copies=*/true);
    }
    turn.numbers = allocNumbers({});
    turn.rows = t.alloc({plan.tileRows}, k.builder.getF32Type());
    if (group > 0 || !plan.keepsWeightsInKeys)
      turn.weights = t.alloc({plan.tileRows, plan.tileKeys}, elementType);
    turn.pipe = t.allocPipe(1, ofGroup, ofGroup);
  }
  turnPipe = t.allocPipe(1, ofGroup, ofGroup);
  allocateRoles();
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// The steps of both groups, part by part in the order in which products ask for them.
SmallVector<Value> AttendKernel::produceTwoTurns(const Item &item, const Slots &slots, Value step, const Lookup &first, const Lookup &second,
                                                 Value ticket, Hook produceQueries) {
  auto begin = [&](unsigned group, unsigned part) {
    const Turn &turn = turns[group];
    const Lookup &found = group == 0 ? first : second;
    const Rows &rows = turn.parts[part];
    t.acquire(rows.pipe, ticket);
    beginRows(item, slots, found, rows, k.i32(0), ticket);
    if (part == group) // behind the copies, which are not to wait for the list
      loadNumbers(slots, k.add(step, k.i32(group)), found, turn.numbers);
    t.publish(rows.pipe, ticket);
  };
  begin(0, 0);
  begin(0, 1);
  if (produceQueries) // which wait for the last products of the item before, where there is room for these keys long since
    k.ifThen(k.eq(step, k.i32(0)), produceQueries);
  SmallVector<Value> following = lookUp(item, slots, k.add(step, k.i32(2)));
  begin(1, 1);
  begin(1, 0);
  following.push_back(next(ticket, 1));
  return following;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// The values that the rows of a group had when it shared them.
Value AttendKernel::getSharedRows(unsigned group) {
  return t.mapRows(k.builder.getF32Type(), [&](Value row) { return t.loadEntry(turns[group].rows, row); });
}

/// Where the weights of a group's step are.
Value AttendKernel::getSharedWeights(unsigned group) {
  if (turns[group].weights)
    return turns[group].weights;
  return t.columns(t.slot(turns[group].parts[1].ring, k.i32(0)), llvm::alignTo(plan.valueDim, 64) - getColumnsOfGroup(), plan.tileKeys);
}

void AttendKernel::shareWeights(unsigned group, const SoftmaxStep &softmax, Value ticket) {
  t.acquire(turns[group].pipe, ticket);
  if (!turns[group].weights) // all warps of the group have multiplied by these keys
    t.barrier();
  t.saveRows(softmax.max, turns[group].rows);
  t.storeOperand(softmax.weights, getSharedWeights(group));
  t.finishCopies(0);
  t.publish(turns[group].pipe, ticket);
}

/// The sum of what both groups have.
Value AttendKernel::joinSums(unsigned group, Value sum, Value ticket) {
  t.acquire(turns[group].pipe, ticket);
  t.saveRows(sum, turns[group].rows);
  t.publish(turns[group].pipe, ticket);
  unsigned other = 1 - group;
  t.await(turns[other].pipe, ticket);
  Value joined = k.fadd(sum, getSharedRows(other));
  t.release(turns[other].pipe, ticket);
  return joined;
}

/// Adds a part of the products of queries and keys of a group's step.
Value AttendKernel::beginScoresOfTurn(unsigned group, unsigned part, Value lhs, Value ticket, Value products) {
  const Rows &rows = turns[group].parts[part];
  t.await(rows.pipe, ticket);
  Value tile = t.slot(rows.ring, k.i32(0));
  int64_t columns = cast<ssa_gpu::SharedType>(tile.getType()).getShape()[1];
  return t.beginMma(t.columns(lhs, rows.firstColumn, columns), tile, /*transposed=*/true, products);
}

/// Adds the products of a step's weights and the values of a group's columns.
Value AttendKernel::beginOutputs(unsigned group, unsigned turn, Value weights, Value output) {
  Value values = t.columns(t.slot(turns[turn].parts[group].ring, k.i32(0)), 0, getColumnsOfGroup());
  return t.beginMma(weights, values, /*transposed=*/false, output);
}

SoftmaxStep AttendKernel::getSoftmaxOfTurn(unsigned group, const Slots &slots, ScoreTiles &scores, Value products, const Round &round) {
  return getSoftmaxStep(slots, scores, [&] { return products; }, turns[group].numbers, round.state.max, round.state.sum, [] {});
}

/// What the maxima of the other group's step make of the state.
void AttendKernel::followOther(unsigned group, ScoreTiles &scores, Round &round) {
  unsigned other = 1 - group;
  State &state = round.state;
  t.await(turns[other].pipe, round.ticket);
  t.await(turns[other].parts[group].pipe, round.keyTicket);
  Value max = getSharedRows(other), factors = scores.getHeldRescale(state.max, max);
  state = {max, k.fmul(state.sum, factors), rescale(state.output, factors)};
}

void AttendKernel::beginOther(unsigned group, Round &round) {
  unsigned other = 1 - group;
  round.state.output = beginOutputs(group, other, getSharedWeights(other), round.state.output);
}

void AttendKernel::endOther(unsigned group, Round &round) {
  unsigned other = 1 - group;
  round.state.output = t.waitMma(round.state.output, 0);
  t.release(turns[other].pipe, round.ticket);
  t.release(turns[other].parts[group].pipe, round.keyTicket);
}

/// The products of the group's own step.
void AttendKernel::multiplyOwn(unsigned group, ScoreTiles &scores, const SoftmaxStep &softmax, Round &round) {
  State &state = round.state;
  state.max = softmax.max;
  state.output = beginOutputs(group, group, t.toOperand(softmax.weights, elementType), rescale(state.output, softmax.rescale));
  state.sum = scores.addUp(state.sum, softmax); // while the product is under way
  state.output = t.waitMma(state.output, 0);
  t.release(turns[group].parts[group].pipe, round.keyTicket);
}

/// A round: a step of each group.
void AttendKernel::takeTurns(unsigned group, const Slots &slots, ScoreTiles &scores, Value lhs, Round &round) {
  if (group == 1) { // once the other group has begun its own, which then come first: tensor cores work during its softmax
    t.await(turnPipe, round.keyTicket);
    t.release(turnPipe, round.keyTicket);
  }
  // The part of its outputs comes first.
  Value products = beginScoresOfTurn(group, group, lhs, round.keyTicket, getZeroScores());
  products = beginScoresOfTurn(group, 1 - group, lhs, round.keyTicket, products);
  if (group == 0) {
    t.acquire(turnPipe, round.keyTicket);
    t.publish(turnPipe, round.keyTicket);
    products = t.waitMma(products, 0);
    SoftmaxStep softmax = getSoftmaxOfTurn(group, slots, scores, products, round);
    shareWeights(group, softmax, round.ticket);
    t.release(turns[0].parts[1].pipe, round.keyTicket); // where the weights may be
    multiplyOwn(group, scores, softmax, round);
    followOther(group, scores, round);
    beginOther(group, round);
    endOther(group, round);
  } else {
    followOther(group, scores, round);
    products = t.waitMma(products, 0);
    t.release(turns[1].parts[0].pipe, round.keyTicket);
    SoftmaxStep softmax = getSoftmaxOfTurn(group, slots, scores, products, round);
    beginOther(group, round); // behind the maxima: while it is begun this group does nothing else
    shareWeights(group, softmax, round.ticket);
    endOther(group, round);
    multiplyOwn(group, scores, softmax, round);
  }
  round.keyTicket = next(round.keyTicket, 1);
  round.ticket = next(round.ticket, 1);
}

void AttendKernel::takeTurns(unsigned group, Value total) {
  Value zero = k.i32(0);
  forEachItemAndOne(total, {zero, zero, zero}, [&](Value number, ValueRange tickets) -> SmallVector<Value> {
    Item item = decodeItemOrNone(number, total);
    SmallVector<Slots, 1> all = getAllSlots(item);
    t.await(queryPipe, tickets[0]);
    SmallVector<Value> steps = readSteps(all, tickets[0]);
    Value lhs = t.slot(queryRing, slotOf(tickets[0], plan.querySlots));
    Round round{{}, tickets[1], tickets[2]};
    auto pack = [&] { return SmallVector<Value>{round.state.max, round.state.sum, round.state.output, round.keyTicket, round.ticket}; };
    auto unpack = [&](ValueRange v) { round = {{v[0], v[1], v[2]}, v[3], v[4]}; };
    for (const Slots &slots : all) {
      const Source &source = *slots.source;
      ScoreTiles scores = getScores(item, slots);
      if (beginsSoftmax(source))
        round.state = getInitialState();
      unpack(k.loop(zero, steps[source.number], k.i32(2), pack(), [&](Value, ValueRange carried) {
        unpack(carried);
        takeTurns(group, slots, scores, lhs, round);
        return pack();
      }));
      if (source.number + 1 == sources.size())
        t.release(queryPipe, tickets[0]);
      if (!endsSoftmax(source))
        continue;
      State &state = round.state;
      storePart({item, getSoftmax(source)}, scores, {state.max, joinSums(group, state.sum, round.ticket), state.output}, group);
      round.ticket = next(round.ticket, 1);
    }
    return {next(tickets[0], plan.querySlots), round.keyTicket, round.ticket};
  });
}
