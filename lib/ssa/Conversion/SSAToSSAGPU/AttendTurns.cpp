//===- AttendTurns.cpp - Two groups of warps that take turns --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An output that is too wide for the registers of one warpgroup is made by two, which have half of its columns each. Both need the weights
// of all keys, but these are made once: a group makes those of every second step, from all keys of that step, and gives them to the other
// with the maxima that they are relative to. So a product of scores is as wide as a step, and one group's softmax passes while products of
// the other are under way. Two steps in a row, those of group 0 and of group 1, are a round of the loop.
//
//   group 0   values times weights of 1 before   scores 0 | softmax 0     own values times weights 0                       | ..
//   group 1                                               | scores 1      softmax 1, values times weights of 0   own values | ..
//
// There is one loop over the rounds of all items, so that tensor cores go on where an item ends: its output is stored in the first round of the next one,
// when scores of that have begun.
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
                                                 Value ticket) {
  auto begin = [&](unsigned group, unsigned part) {
    const Turn &turn = turns[group];
    const Lookup &found = group == 0 ? first : second;
    const Rows &rows = turn.parts[part];
    Value ofPart = getTicketOf(group, part, ticket);
    t.acquire(rows.pipe, ofPart);
    beginRows(item, slots, found, rows, k.i32(0), ofPart);
    if (part == group) // behind the copies, which are not to wait for the list
      loadNumbers(slots, k.add(step, k.i32(group)), found, turn.numbers);
    t.publish(rows.pipe, ofPart);
  };
  // Queries are given back in every round, so that there is room for the next ones as soon as the last scores are made.
  t.acquire(queryPipe, ticket);
  if (slots.source->number == 0)
    k.ifThen(k.eq(step, k.i32(0)), [&] { loadQueries(item, t.slot(queryRing, k.i32(0)), ticket); });
  t.publish(queryPipe, ticket);
  begin(0, 0);
  begin(0, 1);
  if (slots.source->number == 0)
    k.ifThen(k.eq(step, k.i32(0)), [&] { fetchLists(item); });
  SmallVector<Value> following = lookUp(item, slots, k.add(step, k.i32(2)));
  begin(1, 1);
  begin(1, 0);
  following.push_back(next(ticket, 1));
  return following;
}

/// The lists of the item behind this one: producers look for their ends during the last round of this one, which is too short for that where they come from memory.
void AttendKernel::fetchLists(const Item &item) {
  Item next = decodeItem(item.next);
  for (const Source &source : sources)
    if (source.lists)
      getSlots(next, source).fetchList(k, *source.selection, source.lists, getPlaceOfList(source, next), plan.cells);
}

/// The part that the first group multiplies by in the next round has zeros at first.
Value AttendKernel::getTicketOf(unsigned group, unsigned part, Value ticket) { return group == 1 && part == 0 ? next(ticket, 1) : ticket; }

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

void AttendKernel::shareSum(unsigned group, Value sum, Value ticket) {
  t.acquire(turns[group].pipe, ticket);
  t.saveRows(sum, turns[group].rows);
  t.publish(turns[group].pipe, ticket);
}

/// The sum of what both groups have shared.
Value AttendKernel::joinSums(unsigned group, Value sum, Value ticket) {
  unsigned other = 1 - group;
  t.await(turns[other].pipe, ticket);
  Value joined = k.fadd(sum, getSharedRows(other));
  t.release(turns[other].pipe, ticket);
  return joined;
}

/// Adds a part of the products of queries and keys of a group's step.
Value AttendKernel::beginScoresOfTurn(unsigned group, unsigned part, Value lhs, Value ticket, Value products) {
  const Rows &rows = turns[group].parts[part];
  t.await(rows.pipe, getTicketOf(group, part, ticket));
  return beginScoresOfColumns(group, part, 0, getPaddedColumns(rows), lhs, products);
}

/// Of as many of its columns from `first` on.
Value AttendKernel::beginScoresOfColumns(unsigned group, unsigned part, int64_t first, int64_t columns, Value lhs, Value products) {
  const Rows &rows = turns[group].parts[part];
  Value tile = t.slot(rows.ring, k.i32(0));
  if (columns < getPaddedColumns(rows))
    tile = t.columns(tile, first, columns);
  return t.beginMma(t.columns(lhs, rows.firstColumn + first, columns), tile, /*transposed=*/true, products);
}

int64_t AttendKernel::getPaddedColumns(const Rows &rows) { return cast<ssa_gpu::SharedType>(rows.ring.getType()).getShape().back(); }

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

void AttendKernel::endOther(unsigned group, Round &round, int64_t pending) {
  unsigned other = 1 - group;
  round.state.output = t.waitMma(round.state.output, pending);
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

/// Stores what the softmax before has made, and begins with nothing; scores of the next one are under way.
void AttendKernel::endSoftmax(unsigned group, ScoreTiles &scores, const End &end, Round &round) {
  State &state = round.state, initial = getInitialState();
  Value first = round.ticket, second = next(first, 1);
  SmallVector<Value> begun = k.ifElse(end.isHere, {state.max.getType(), state.sum.getType(), state.output.getType()}, [&] {
    if (group == 0)
      shareSum(0, state.sum, first);
    storePart(end.softmax, scores, {state.max, joinSums(group, state.sum, group == 0 ? second : first), state.output}, group);
    // Made here, not a constant: a choice between that and the output would keep both.
    return SmallVector<Value>{initial.max, initial.sum, t.broadcast(initial.sum, getColumnsOfGroup())};
  }, [&] { return SmallVector<Value>{state.max, state.sum, state.output}; });
  state = {begun[0], begun[1], begun[2]};
  round.ticket = k.select(end.isHere, second, first);
}

/// The first group: what the other made in the round before, then a step of its own.
void AttendKernel::takeFirstTurn(const Slots &slots, ScoreTiles &scores, Value lhs, const End &end, Round &round) {
  followOther(0, scores, round);
  beginOther(0, round);
  if (!storesUnderScores()) {
    endOther(0, round, /*pending=*/0);
    if (end.isHere)
      endSoftmax(0, scores, end, round);
  }
  t.await(queryPipe, round.keyTicket);
  t.await(turns[0].parts[0].pipe, round.keyTicket);
  // A few scores, so that tensor cores do not wait; then these keys are given back.
  constexpr int64_t most = 128;
  int64_t columns = getPaddedColumns(turns[0].parts[0]), few = std::min(columns, most);
  Value products = beginScoresOfColumns(0, 0, 0, few, lhs, getZeroScores());
  if (storesUnderScores())
    endOther(0, round, /*pending=*/1);
  if (few < columns)
    products = beginScoresOfColumns(0, 0, few, columns - few, lhs, products);
  products = beginScoresOfTurn(0, 1, lhs, round.keyTicket, products);
  t.acquire(turnPipe, round.keyTicket);
  t.publish(turnPipe, round.keyTicket);
  if (end.isHere && storesUnderScores())
    endSoftmax(0, scores, end, round);
  products = t.waitMma(products, 0);
  t.release(queryPipe, round.keyTicket);
  SoftmaxStep softmax = getSoftmaxOfTurn(0, slots, scores, products, round);
  shareWeights(0, softmax, round.ticket);
  t.release(turns[0].parts[1].pipe, round.keyTicket); // where the weights may be
  multiplyOwn(0, scores, softmax, round);
}

/// The second group: a step of its own, with what the other makes in this round.
void AttendKernel::takeSecondTurn(const Slots &slots, ScoreTiles &scores, Value lhs, const End &end, Round &round) {
  if (end.isHere)
    k.ifThen(end.isHere, [&] { shareSum(1, round.state.sum, next(round.ticket, 1)); });
  if (end.isHere && !storesUnderScores())
    endSoftmax(1, scores, end, round);
  // Once the other group has begun its scores, which then come first: tensor cores work during its softmax.
  t.await(turnPipe, round.keyTicket);
  t.release(turnPipe, round.keyTicket);
  t.await(queryPipe, round.keyTicket);
  Value products = beginScoresOfTurn(1, 1, lhs, round.keyTicket, getZeroScores());
  products = beginScoresOfTurn(1, 0, lhs, round.keyTicket, products);
  if (end.isHere && storesUnderScores())
    endSoftmax(1, scores, end, round);
  followOther(1, scores, round);
  products = t.waitMma(products, 0);
  t.release(queryPipe, round.keyTicket);
  t.release(turns[1].parts[0].pipe, next(round.keyTicket, 1));
  SoftmaxStep softmax = getSoftmaxOfTurn(1, slots, scores, products, round);
  beginOther(1, round); // behind the maxima: while it is begun this group does nothing else
  shareWeights(1, softmax, next(round.ticket, 1));
  endOther(1, round, /*pending=*/0);
  multiplyOwn(1, scores, softmax, round);
}

/// A round: a step of each group.
void AttendKernel::takeTurn(unsigned group, const Slots &slots, ScoreTiles &scores, Value lhs, const End &end, Round &round) {
  group == 0 ? takeFirstTurn(slots, scores, lhs, end, round) : takeSecondTurn(slots, scores, lhs, end, round);
  round.keyTicket = next(round.keyTicket, 1);
  round.ticket = next(round.ticket, 1);
}

/// What the first group takes from the second in its first round: weights of 0, of keys that are 0.
void AttendKernel::giveNothing() {
  Value zero = k.i32(0);
  t.acquire(turns[1].pipe, zero);
  t.saveRows(getInitialState().max, turns[1].rows);
  t.storeOperand(getZeroScores(), getSharedWeights(1));
  t.finishCopies(0);
  t.publish(turns[1].pipe, zero);
  t.await(turns[1].parts[0].pipe, zero);
  t.release(turns[1].parts[0].pipe, zero);
}

/// One loop over the rounds of all items: a softmax ends in the first round of the next one, while the scores of that are made; behind the last item comes
/// one without queries and keys.
void AttendKernel::takeTurns(unsigned group, Value total) {
  Value zero = k.i32(0);
  State initial = getInitialState();
  SmallVector<Value> ofRows = packRows(getNoItem()), inits = {zero};
  size_t numRows = ofRows.size();
  inits.append(ofRows);
  inits.append({initial.max, initial.sum, initial.output, zero, zero});
  if (group == 1)
    giveNothing();
  forEachItemAndOne(total, inits, [&](Value number, ValueRange carried) -> SmallVector<Value> {
    Item item = decodeItemOrNone(number, total);
    Value itemTicket = carried[0];
    End end{{}, {unpackRows(SmallVector<Value>(carried.slice(1, numRows))), getLastSoftmax()}};
    SmallVector<Slots, 1> all = getAllSlots(item);
    SmallVector<Value> steps = takeSteps(itemTicket);
    SmallVector<Value> state(carried.drop_front(1 + numRows));
    for (Slots &slots : all) {
      const Source &source = *slots.source;
      if (source.lists)
        slots.useSteps(*source.selection, source.op.isGathered(), source.lists, steps[source.number]);
      ScoreTiles scores = getScores(item, slots);
      state = k.loop(zero, steps[source.number], k.i32(2), state, [&](Value step, ValueRange v) -> SmallVector<Value> {
        Round round{{v[0], v[1], v[2]}, v[3], v[4]};
        end.isHere = beginsSoftmax(source) ? k.eq(step, zero) : Value();
        takeTurn(group, slots, scores, t.slot(queryRing, zero), end, round);
        return {round.state.max, round.state.sum, round.state.output, round.keyTicket, round.ticket};
      });
      end.softmax = {item, getSoftmax(source)};
    }
    SmallVector<Value> yielded = {next(itemTicket, plan.itemSlots)};
    yielded.append(packRows(item));
    yielded.append(state);
    return yielded;
  });
}
