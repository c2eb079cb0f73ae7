//===- AttendRoles.cpp - Warps that copy and warps that multiply ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttendKernel.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace mlir::ssa;

void AttendKernel::allocateRoles() {
  int64_t producers = plan.producers() / 32, consumers = plan.consumers() / 32;
  stepsRing = t.alloc({plan.takesTurns ? plan.itemSlots : plan.querySlots, int64_t(plan.sources.size() + (plan.publishesItems() ? getNumRows() : 0))}, k.builder.getI32Type());
  if (plan.isStepwise())
    itemRing = t.alloc({plan.querySlots, plan.entriesOfTile() + numPublishedParts}, k.builder.getI32Type());
  queryPipe = t.allocPipe(plan.querySlots, producers, consumers);
  if (plan.takesTurns) { // which have pipes of their own
    stepsPipe = t.allocPipe(plan.itemSlots, producers, consumers);
    return;
  }
  keys.pipe = t.allocPipe(plan.stages, producers, consumers);
  if (!plan.valuesAreKeys)
    values.pipe = t.allocPipe(plan.stages, producers, consumers);
  if (plan.addsPartials) {
    partRing = t.alloc({plan.partSlots, plan.tileRows, plan.paddedValueDim()}, elementType);
    partPipe = t.allocPipe(plan.partSlots, producers, consumers);
  }
}

Value AttendKernel::next(Value ticket, int64_t slots) {
  Value more = k.add(ticket, k.i32(1));
  return k.select(k.eq(more, k.i32(2 * slots)), k.i32(0), more);
}

Value AttendKernel::slotOf(Value ticket, int64_t slots) {
  return k.select(k.uge(ticket, k.i32(slots)), k.sub(ticket, k.i32(slots)), ticket);
}

void AttendKernel::buildRoles(Value total) {
  // Producers keep few values, more where two steps are under way or places of rows are looked up an item ahead, the fewest where queries and scores of a
  // long step are in registers; the others share what registers are left, in eights.
  constexpr int64_t most = 240, longStep = 128;
  bool isShort = plan.keepsQueries && plan.tileKeys >= longStep; // of registers
  int64_t producerRegisters = plan.takesTurns ? 56 : plan.isStepwise() && !plan.hasQueryBoxes ? 72 : isShort ? 24 : 40;
  int64_t warpgroups = plan.consumers() / 128, share = 65536 / plan.threads / plan.blocksPerSM / 8 * 8;
  int64_t registers = (share * (warpgroups + 1) - producerRegisters) / warpgroups / 8 * 8;
  producerRegisters = std::max(producerRegisters, (share * (warpgroups + 1) - registers * warpgroups) / 8 * 8); // what the eights leave
  k.setBlocksPerSM(plan.blocksPerSM);
  registers = std::min(registers, most);
  auto produces = [&] { plan.isStepwise() ? produceKeyOuter(total) : plan.addsPartials ? produceWithPartials(total) : produce(total); };
  KernelBuilder::Role producers{plan.producers(), producerRegisters, produces};
  if (!plan.takesTurns)
    return k.addRoles({{plan.consumers(), registers, [&] { plan.isStepwise() ? consumeKeyOuter(total) : consume(total); }}, producers});
  int64_t ofGroup = plan.consumers() / 2;
  k.addRoles({{ofGroup, registers, [&] { takeTurns(0, total); }}, {ofGroup, registers, [&] { takeTurns(1, total); }}, producers});
}

/// The numbers of all items of a block and of one behind the last if there is any.
SmallVector<Value> AttendKernel::forEachItemAndOne(Value total, ValueRange inits, llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  Value first = gpu::BlockIdOp::create(k.builder, k.loc, gpu::Dimension::x), step = gpu::GridDimOp::create(k.builder, k.loc, gpu::Dimension::x);
  return k.forEachItem(k.select(k.lt(first, total), k.add(total, step), total), inits, body);
}

/// The item of a number, or one without rows.
AttendKernel::Item AttendKernel::decodeItemOrNone(Value number, Value total) {
  Value last = k.sub(total, k.index(1));
  Item item = decodeItem(k.min(number, last));
  item.exists = k.lt(number, total);
  item.next = k.min(k.add(number, gpu::GridDimOp::create(k.builder, k.loc, gpu::Dimension::x)), last);
  if (plan.isKeyOuter)
    item.numEntries = k.select(item.exists, item.numEntries, k.i32(0));
  return item;
}

/// The same by what producers say.
AttendKernel::Item AttendKernel::receiveItem(Value slot) {
  SmallVector<Value> values;
  for (size_t i = 0, numRows = getNumRows(); i < numRows; ++i)
    values.push_back(t.loadEntry(slot, k.i32(plan.sources.size() + i)));
  values[3] = k.ne(values[3], k.i32(0));
  Item item = unpackRows(values);
  setQueries(item);
  return item;
}

/// What says which rows an item has, for a loop that carries it.
SmallVector<Value> AttendKernel::packRows(const Item &item) {
  // Batch and cell as one number: registers are short. There are fewer than 2^31, each of which has rows of its own in memory.
  Value cell = k.toI32(k.add(k.mul(item.batch, k.index(plan.cells)), item.cell));
  SmallVector<Value> values = {cell, k.toI32(item.list), item.firstRow, item.exists};
  if (item.part)
    values.push_back(item.part);
  if (plan.isKeyOuter)
    values.append({item.block, item.firstEntry, item.numEntries});
  if (plan.addsPartials)
    values.push_back(item.firstPart);
  return values;
}

AttendKernel::Item AttendKernel::unpackRows(ArrayRef<Value> values) {
  Item item;
  Value cells = k.i32(plan.cells);
  item.batch = k.toIndex(k.div(values[0], cells));
  item.cell = k.toIndex(k.rem(values[0], cells));
  item.list = k.toIndex(values[1]);
  item.firstRow = values[2];
  item.exists = values[3];
  if (plan.split > 1)
    item.part = values[4];
  if (plan.isKeyOuter) {
    item.block = values[values.size() - 3];
    item.firstEntry = values[values.size() - 2];
    item.numEntries = values.back();
  }
  if (plan.addsPartials)
    item.firstPart = values.back();
  return item;
}

/// What is before the first item.
AttendKernel::Item AttendKernel::getNoItem() {
  Item none;
  none.batch = none.cell = none.list = k.index(0);
  none.firstRow = none.block = none.firstEntry = none.numEntries = none.firstPart = k.i32(0);
  none.part = plan.split > 1 ? k.i32(0) : Value();
  none.exists = k.bit(false);
  return none;
}

/// Every softmax has a step, in which there may be nothing to see; one for each group where they take turns.
Value AttendKernel::getSteps(const Slots &slots) {
  Value one = k.i32(1), two = k.i32(2);
  auto atLeastOne = [&](Value steps) { return beginsSoftmax(*slots.source) ? k.max(steps, one) : steps; };
  return plan.takesTurns ? k.mul(atLeastOne(k.div(k.add(slots.steps, one), two)), two) : atLeastOne(slots.steps);
}

/// Fills a slot with zeros: the values of the step before the first.
void AttendKernel::publishZeros(const Rows &rows) {
  Value first = k.i32(0);
  t.acquire(rows.pipe, first);
  t.copyRows(sources.front().tableOf(rows).view.buffer, t.slot(rows.ring, first), rows.columns, plan.width, [&](Value) { return RowPlace{k.index(0), k.bit(false)}; }, /*rare=*/true);
  if (!plan.takesTurns) { // else their pipe waits for copies itself
    t.commitCopies();
    t.finishCopies(0);
  }
  t.publish(rows.pipe, first);
}

void AttendKernel::produce(Value total) {
  publishZeros(plan.takesTurns ? turns[1].parts[0] : plan.valuesAreKeys ? keys : values);
  Value firstKeys = k.i32(plan.valuesAreKeys && !plan.takesTurns ? 1 : 0); // behind the zeros
  forEachItemAndOne(total, {k.i32(0), firstKeys}, [&](Value number, ValueRange tickets) -> SmallVector<Value> {
    Item item = decodeItemOrNone(number, total);
    // What there is to copy is looked up before there is room for it, that of the first step before there is room for queries.
    SmallVector<Slots, 1> all = getAllSlots(item);
    SmallVector<Value> steps;
    for (Slots &slots : all) {
      useList(slots, item);
      steps.push_back(getSteps(slots));
    }
    SmallVector<Value> numbers = steps;
    if (plan.publishesItems())
      for (Value value : packRows(item))
        numbers.push_back(value.getType().isInteger(1) ? k.select(value, k.i32(1), k.i32(0)) : value);
    Value querySlot = slotOf(tickets[0], plan.querySlots);
    Lookup found = lookUp(item, all.front(), k.i32(0));
    if (plan.takesTurns) { // whose queries come with the keys of a round
      t.acquire(stepsPipe, tickets[0]);
      t.fill(t.slot(stepsRing, slotOf(tickets[0], plan.itemSlots)), numbers);
      t.publish(stepsPipe, tickets[0]);
    } else {
      t.acquire(queryPipe, tickets[0]);
      loadQueries(item, t.slot(queryRing, querySlot), tickets[0]);
      t.fill(t.slot(stepsRing, querySlot), numbers);
      t.publish(queryPipe, tickets[0]);
    }
    Value ticket = copySteps(item, all.front(), steps.front(), found, tickets[1]);
    for (const Slots &slots : ArrayRef(all).drop_front())
      ticket = produceSteps(item, slots, steps[slots.source->number], ticket);
    return {next(tickets[0], plan.takesTurns ? plan.itemSlots : plan.querySlots), ticket};
  });
}

/// All steps of an item; the next ticket.
Value AttendKernel::produceSteps(const Item &item, const Slots &slots, Value steps, Value first) {
  if (plan.pair)
    return produceStepsInPair(item, slots, steps, first);
  if (plan.gathers)
    return gatherSteps(item, slots, steps, first);
  return copySteps(item, slots, steps, lookUp(item, slots, k.i32(0)), first);
}

/// The same by copies of rows or boxes, those of the first step `found`.
Value AttendKernel::copySteps(const Item &item, const Slots &slots, Value steps, const Lookup &found, Value first) {
  Lookup carried = found;
  carried.push_back(first);
  return k.loop(k.i32(0), steps, k.i32(plan.takesTurns ? 2 : 1), carried, [&](Value step, ValueRange carried) -> SmallVector<Value> {
    Lookup found(carried.drop_back()), following = lookUp(item, slots, k.add(step, k.i32(1)));
    Value ticket = carried.back();
    if (plan.takesTurns)
      return produceTwoTurns(item, slots, step, found, following, ticket);
    following.push_back(copyStep(item, slots, step, found, ticket));
    return following;
  }).back();
}

/// One of them; the next ticket.
Value AttendKernel::copyStep(const Item &item, const Slots &slots, Value step, const Lookup &found, Value ticket) {
  Value stage = slotOf(ticket, plan.stages), after = next(ticket, plan.stages);
  t.acquire(keys.pipe, ticket);
  loadNumbers(slots, step, found, getNumbers(stage));
  loadRows(item, slots, found, keys, stage, ticket);
  t.publish(keys.pipe, ticket);
  if (!plan.valuesAreKeys) { // with `wgmma` zeros were the first values
    Value valueTicket = plan.usesTensorMemory() ? ticket : after;
    t.acquire(values.pipe, valueTicket);
    loadRows(item, slots, found, values, slotOf(valueTicket, plan.stages), valueTicket);
    t.publish(values.pipe, valueTicket);
  }
  return after;
}

/// The numbers of an item's steps, which the producers have counted where that takes a list, or they say all of an item.
SmallVector<Value> AttendKernel::readSteps(MutableArrayRef<Slots> all, Value ticket) {
  SmallVector<Value> steps;
  for (Slots &slots : all) {
    const Source &source = *slots.source;
    if (!source.lists && !plan.publishesItems()) {
      steps.push_back(getSteps(slots));
      continue;
    }
    steps.push_back(t.loadEntry(t.slot(stepsRing, slotOf(ticket, plan.querySlots)), k.i32(source.number)));
    if (source.lists)
      slots.useSteps(*source.selection, source.op.isGathered(), source.lists, steps.back());
  }
  return steps;
}

Value AttendKernel::beginScores(Value lhs, Value ticket) {
  t.await(keys.pipe, ticket);
  return t.beginMma(lhs, t.slot(keys.ring, slotOf(ticket, plan.stages)), /*transposed=*/true, getZeroScores());
}

/// Products of scores of a step and of values of the step before are under way together: tensor cores work during a softmax. So a tile's last
/// product is under way during the first softmax of the next one, and a tile is stored then; behind the last item comes one without
/// queries or keys.
void AttendKernel::consume(Value total) {
  State initial = getInitialState();
  SmallVector<Value> ofRows = packRows(getNoItem()), inits = {k.i32(0)};
  inits.append(ofRows);
  size_t stateBegin = inits.size(), numRows = ofRows.size();
  inits.append({initial.max, initial.sum, initial.output});
  Value noWeights = getWeights(getZeroScores());
  if (plan.groups == 1) // those of groups are in shared memory
    inits.push_back(noWeights);
  inits.push_back(k.bit(true)); // products are added to outputs
  // The ticket of the keys or, if they are values, of those before, which are there until then.
  inits.push_back(k.i32(0));
  if (plan.valuesAreKeys)
    t.await(keys.pipe, inits.back());
  SmallVector<Value> ended = forEachItemAndOne(total, inits, [&](Value number, ValueRange carried) -> SmallVector<Value> {
    Value queryTicket = carried[0], querySlot = slotOf(queryTicket, plan.querySlots);
    Item item;
    if (!plan.publishesItems())
      item = decodeItemOrNone(number, total);
    t.await(queryPipe, queryTicket);
    if (plan.publishesItems())
      item = receiveItem(t.slot(stepsRing, querySlot));
    Softmax last = {unpackRows(SmallVector<Value>(carried.slice(1, numRows))), getLastSoftmax()};
    SmallVector<Slots, 1> all = getAllSlots(item);
    SmallVector<Value> steps = readSteps(all, queryTicket);
    Value queryTile = t.slot(queryRing, querySlot);
    Value lhs = plan.keepsQueries ? t.loadOperand(queryTile) : queryTile;
    if (plan.keepsQueries)
      t.release(queryPipe, queryTicket);
    SmallVector<Value> state(carried.drop_front(stateBegin));
    for (const Slots &slots : all) {
      ScoreTiles scores = getScores(item, slots);
      bool begins = beginsSoftmax(*slots.source);
      state = k.loop(k.i32(0), steps[slots.source->number], k.i32(1), state, [&](Value step, ValueRange carried) {
        return consumeStep(slots, scores, lhs, begins ? k.eq(step, k.i32(0)) : Value(), last, carried);
      });
      last = {item, getSoftmax(*slots.source)};
    }
    if (!plan.keepsQueries)
      t.release(queryPipe, queryTicket);
    SmallVector<Value> yielded = {next(queryTicket, plan.querySlots)};
    yielded.append(packRows(item));
    yielded.append(state);
    return yielded;
  });
  if (plan.valuesAreKeys)
    t.release(keys.pipe, ended.back());
}

/// Carries maxima, sums and outputs, weights unless groups share them, whether products of values are added to the outputs, and the ticket. In the first
/// step of a softmax the last one ends; `isFirst` is null where none begins.
SmallVector<Value> AttendKernel::consumeStep(const Slots &slots, ScoreTiles &scores, Value lhs, Value isFirst, const Softmax &last, ValueRange carried) {
  State state{carried[0], carried[1], carried[2]}, initial = getInitialState();
  Value weights = plan.groups == 1 ? carried[3] : weightTile, adds = carried.drop_back().back(), before = carried.back();
  // Zeros were the first values: where they have a pipe of their own their ticket is one behind that of the keys.
  Value ticket = plan.valuesAreKeys ? next(before, plan.stages) : before, products, output;
  auto beginOutput = [&] {
    return t.beginMma(weights, getValueTile(slotOf(before, plan.stages)), /*transposed=*/false, state.output, adds);
  };
  if (plan.valuesAreKeys) { // the slot of the values is wanted for keys
    output = beginOutput();
    products = beginScores(lhs, ticket);
    output = t.waitMma(output, 1);
    t.release(keys.pipe, before);
  } else {
    products = beginScores(lhs, ticket);
    t.await(values.pipe, before);
    output = beginOutput();
  }
  auto awaitProducts = [&] { return t.waitMma(products, plan.valuesAreKeys ? 0 : 1); };
  SoftmaxStep softmax = getSoftmaxStep(slots, scores, awaitProducts, getNumbers(slotOf(ticket, plan.stages)), isFirst ? k.select(isFirst, initial.max, state.max) : state.max,
                                       isFirst ? k.select(isFirst, initial.sum, state.sum) : state.sum, [&] {
    if (!plan.valuesAreKeys)
      t.release(keys.pipe, ticket);
  });
  if (!plan.valuesAreKeys) {
    output = t.waitMma(output, 0);
    t.release(values.pipe, before);
  }
  if (plan.groups > 1) // all groups have read the weights of the step before
    t.barrier();
  // Rounded they take half of the registers, which those who add partial outputs need.
  Value made = plan.addsPartials ? getWeights(softmax.weights) : Value();
  output = rescale(output, softmax.rescale, softmax.isKept, isFirst);
  if (isFirst) // nothing is added to it then
    k.ifThen(isFirst, [&] { store(last, scores, {state.max, state.sum, output}); });
  SmallVector<Value> yielded = {softmax.max, softmax.sum, output};
  if (!made)
    made = getWeights(softmax.weights);
  if (plan.groups == 1)
    yielded.push_back(made);
  yielded.push_back(isFirst ? k.ne(isFirst, k.bit(true)) : k.bit(true));
  yielded.push_back(plan.valuesAreKeys ? ticket : next(ticket, plan.stages));
  return yielded;
}
