//===- AttendTensorMemory.cpp - sparse_attend with tcgen05 ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Scores, weights and outputs are in tensor memory, where a lane is a row of the tile. Four roles:
//
//   softmax    reads the scores of a step, a thread its row, and writes the weights. Where a row's maximum has grown a lot, what is there
//              of its output is multiplied first, once the products before have ended: rarely.
//   finish     divides outputs by their sums and stores them, while the next item has begun.
//   load       copies, as with `wgmma`.
//   multiply   one thread that begins products, scores a step ahead of outputs.
//
//===----------------------------------------------------------------------===//

#include "AttendKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <limits>

using namespace mlir;
using namespace mlir::ssa;

//===----------------------------------------------------------------------===//
// Memory and roles
//===----------------------------------------------------------------------===//

/// What is handed over of an item: how many steps it has, and what its outputs are multiplied by.
void AttendKernel::allocateHandOver() {
  int64_t producers = plan.producers() / 32, warps = plan.tileRows / 32, issuer = 1;
  stepsRing = t.alloc({plan.itemSlots, int64_t(plan.sources.size())}, k.builder.getI32Type());
  factorRing = t.alloc({plan.itemSlots, plan.rowsOfBlock()}, k.builder.getF32Type());
  countRing = t.alloc({plan.itemSlots, 1}, k.builder.getI32Type());
  for (unsigned i = 0; plan.join && i < plan.join->getNumParts(); ++i)
    if (!plan.join->isOwn(i))
      otherFactorRings.push_back(t.alloc({plan.itemSlots, plan.rowsOfBlock()}, k.builder.getF32Type()));
  stepsPipe = t.allocPipe(plan.itemSlots, producers, issuer + warps);
  factorPipe = t.allocPipe(plan.itemSlots, warps, warps);
}

void AttendKernel::allocateTensors() {
  int64_t producers = plan.producers() / 32, warps = plan.tileRows / 32, issuer = 1;
  Type f32 = k.builder.getF32Type();
  allocateHandOver();
  queryPipe = t.allocPipe(plan.querySlots, producers, issuer);
  numberPipe = keys.pipe = t.allocPipe(plan.stages, producers, issuer + warps); // the softmax reads the numbers of a step
  if (!plan.valuesAreKeys)
    values.pipe = t.allocPipe(plan.stages, producers, issuer);
  scorePipe = t.allocPipe(plan.scoreSlots, issuer, warps);
  weightPipe = t.allocPipe(plan.weightSlots, warps, issuer);
  outputPipe = t.allocPipe(1, issuer, warps);
  tensors = t.allocTensors({{{plan.scoreSlots, plan.tileRows, plan.tileKeys}, f32},
                            {{plan.weightSlots, plan.tileRows, plan.tileKeys}, elementType},
                            {{plan.tileRows, plan.paddedValueDim()}, f32}});
  outputParts = {{tensors.back(), 0, plan.columnsOfThread()}};
}

void AttendKernel::buildTensorRoles(Value total) {
  int64_t finishRegisters = plan.join ? 88 : 48; // rows of other parts are on their way while pieces of its own are there
  constexpr int64_t loadRegisters = 56, multiplyRegisters = 40, most = 240;
  int64_t warpgroups = plan.tileRows / 128, share = 65536 / plan.threads / plan.blocksPerSM / 8 * 8;
  int64_t others = warpgroups * finishRegisters + loadRegisters + multiplyRegisters;
  int64_t registers = (share * plan.threads / 128 - others) / warpgroups / 8 * 8;
  k.setBlocksPerSM(plan.blocksPerSM);
  k.addRoles({{plan.tileRows, std::min(registers, most), [&] { softmax(total); }},
              {plan.tileRows, finishRegisters, [&] { finish(total); }},
              {plan.producers(), loadRegisters, [&] { load(total); }},
              {32, multiplyRegisters, [&] { multiply(total); }}});
  t.freeTensors(tensors);
}

/// How many steps an item has with the keys of each source.
SmallVector<Value> AttendKernel::takeSteps(Value ticket) {
  t.await(stepsPipe, ticket);
  SmallVector<Value> steps;
  for (const Source &source : sources)
    steps.push_back(t.loadEntry(t.slot(stepsRing, slotOf(ticket, plan.itemSlots)), k.i32(source.number)));
  t.release(stepsPipe, ticket);
  return steps;
}

static Value addAll(KernelBuilder &k, ArrayRef<Value> values) {
  return llvm::accumulate(values.drop_front(), values.front(), [&](Value a, Value b) { return k.add(a, b); });
}

void AttendKernel::load(Value total) {
  // Tickets of items, queries, keys.
  k.forEachItem(total, SmallVector<Value>(3, k.i32(0)), [&](Value number, ValueRange tickets) -> SmallVector<Value> {
    Item item = decodeItem(number);
    SmallVector<Slots, 1> all = getAllSlots(item);
    SmallVector<Value> steps;
    for (Slots &slots : all) {
      useList(slots, item);
      steps.push_back(slots.steps);
    }
    t.acquire(stepsPipe, tickets[0]);
    t.fill(t.slot(stepsRing, slotOf(tickets[0], plan.itemSlots)), steps);
    t.publish(stepsPipe, tickets[0]);
    // A tile without keys needs no queries.
    SmallVector<Value> none(tickets.drop_front());
    SmallVector<Value> after = k.ifElse(k.lt(k.i32(0), addAll(k, steps)), TypeRange(ValueRange(none)), [&]() -> SmallVector<Value> {
      t.acquire(queryPipe, tickets[1]);
      loadQueries(item, t.slot(queryRing, slotOf(tickets[1], plan.querySlots)));
      t.commitCopies();
      t.finishCopies(0);
      t.publish(queryPipe, tickets[1]);
      Value ticket = tickets[2];
      for (const Slots &slots : all)
        ticket = produceSteps(item, slots, slots.steps, ticket);
      return {next(tickets[1], plan.querySlots), ticket};
    }, [&] { return none; });
    return {next(tickets[0], plan.itemSlots), after[0], after[1]};
  });
}

/// Which rows of their map the keys or values of a step are; none where no query of the tile sees them.
void AttendKernel::findRows(const Item &item, const Slots &slots, Value step, const Rows &rows, Value found) {
  Value number = slots.firstStep ? k.add(slots.firstStep, step) : step;
  const Table &table = slots.source->tableOf(rows);
  Value base = k.add(k.mul(item.batch, table.rowSteps[0]), k.mul(getHead(item, table), table.rowSteps[1]));
  auto getNumber = [&](Value entry) {
    return slots.isContiguous() ? slots.getNumber(k, slots.getStep(k, number), entry)
                                : slots.getNumber(k, k.add(k.mul(number, k.i32(plan.tileKeys)), entry));
  };
  t.fill(found, [&](Value entry) {
    constexpr int64_t none = -1;
    Value key = getNumber(entry), isVisible = slots.isInSight(k, key), row = k.select(isVisible, key, k.i32(0));
    return k.select(isVisible, k.add(k.toI32(base), k.mul(row, k.toI32(table.rowSteps[2]))), k.i32(none));
  });
}

/// The steps of an item whose keys are no neighbours; the next ticket.
Value AttendKernel::gatherSteps(const Item &item, const Slots &slots, Value steps, Value first) {
  return k.loop(k.i32(0), steps, k.i32(1), first, [&](Value step, ValueRange carried) -> SmallVector<Value> {
    Value ticket = carried[0], stage = slotOf(ticket, plan.stages);
    auto foundOf = [&](const Rows &rows) { return t.slot(rows.rowRing, k.i32(0)); };
    for (const Rows *rows : {&keys, &values})
      if (rows->rowRing)
        findRows(item, slots, step, *rows, foundOf(*rows));
    t.barrier();
    auto gather = [&](const Rows &rows, Value column) {
      Value found = foundOf(rows);
      t.gatherBox(slots.source->tableOf(rows).map, column, t.slot(rows.ring, stage), rows.pipe, ticket, [&](Value row) { return t.loadEntry(found, row); });
      t.publish(rows.pipe, ticket);
    };
    t.acquire(keys.pipe, ticket);
    loadNumbers(slots, step, {}, getNumbers(stage));
    gather(keys, k.i32(0));
    if (!plan.valuesAreKeys) {
      t.acquire(values.pipe, ticket);
      gather(values, item.valuePart ? k.mul(k.toI32(item.valuePart), k.i32(plan.paddedValueDim())) : k.i32(0));
    }
    t.barrier(); // what was found has been read
    return {next(ticket, plan.stages)};
  })[0];
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

void AttendKernel::beginTensorScores(Value queryTile, Value keyTicket, Value scoreTicket) {
  if (plan.pair)
    return beginScoresInPair(queryTile, keyTicket, scoreTicket);
  t.await(keys.pipe, keyTicket);
  t.acquire(scorePipe, scoreTicket);
  t.mmaTensor(queryTile, t.slot(keys.ring, slotOf(keyTicket, plan.stages)), /*transposed=*/true, t.slot(tensors[0], slotOf(scoreTicket, plan.scoreSlots)),
              k.bit(false));
  t.publish(scorePipe, scoreTicket, /*afterProducts=*/true);
  if (!plan.valuesAreKeys)
    t.release(keys.pipe, keyTicket, /*afterProducts=*/true);
}

void AttendKernel::beginTensorOutputs(const Item &item, Value keyTicket, Value weightTicket, Value adds) {
  if (plan.pair)
    return beginOutputsInPair(keyTicket, weightTicket, adds);
  const Rows &rows = plan.valuesAreKeys ? keys : values;
  t.await(weightPipe, weightTicket);
  if (!plan.valuesAreKeys)
    t.await(rows.pipe, keyTicket);
  Value weights = t.slot(tensors[1], slotOf(weightTicket, plan.weightSlots)), tile = t.slot(rows.ring, slotOf(keyTicket, plan.stages));
  auto begin = [&](Value part) { t.mmaTensor(weights, part, /*transposed=*/false, outputParts.front().tensor, adds); };
  if (!plan.valuesAreKeys)
    begin(tile);
  else // some columns of the keys
    for (int64_t i = 0; i < plan.valueParts; ++i) {
      auto ofPart = [&, i] { begin(t.columns(tile, i * plan.paddedValueDim(), plan.paddedValueDim())); };
      plan.valueParts == 1 ? ofPart() : k.ifThen(k.eq(item.valuePart, k.index(i)), ofPart);
    }
  t.release(weightPipe, weightTicket, /*afterProducts=*/true);
  t.release(rows.pipe, keyTicket, /*afterProducts=*/true);
}

void AttendKernel::multiply(Value total) {
  auto nextKeys = [&](Value ticket) { return next(ticket, plan.keyTickets()); };
  auto nextScores = [&](Value ticket) { return next(ticket, plan.scoreSlots); };
  auto nextWeights = [&](Value ticket) { return next(ticket, plan.weightSlots); };
  // Tickets of items, queries, outputs, keys, scores, weights.
  k.forEachItem(total, SmallVector<Value>(6, k.i32(0)), [&](Value number, ValueRange tickets) -> SmallVector<Value> {
    Item item = decodeItem(number);
    Value steps = addAll(k, takeSteps(tickets[0])), queries = tickets[1], outputs = tickets[2];
    SmallVector<Value> none(tickets.drop_front());
    SmallVector<Value> after = k.ifElse(k.lt(k.i32(0), steps), TypeRange(ValueRange(none)), [&]() -> SmallVector<Value> {
      t.await(queryPipe, queries, plan.pair);
      Value queryTile = t.slot(queryRing, slotOf(queries, plan.querySlots));
      beginTensorScores(queryTile, tickets[3], tickets[4]);
      t.acquire(outputPipe, outputs, plan.pair); // the last item's are stored
      // The scores of a step before the outputs of the one before it.
      SmallVector<Value> last = k.loop(k.i32(1), steps, k.i32(1), {tickets[3], tickets[4], tickets[5]}, [&](Value step, ValueRange before) -> SmallVector<Value> {
        Value keyTicket = nextKeys(before[0]), scoreTicket = nextScores(before[1]);
        beginTensorScores(queryTile, keyTicket, scoreTicket);
        beginTensorOutputs(item, before[0], before[2], k.lt(k.i32(1), step));
        return {keyTicket, scoreTicket, nextWeights(before[2])};
      });
      t.release(queryPipe, queries, /*afterProducts=*/true);
      beginTensorOutputs(item, last[0], last[2], k.lt(k.i32(1), steps));
      t.publish(outputPipe, outputs, /*afterProducts=*/true);
      return {next(queries, plan.querySlots), next(outputs, 1), nextKeys(last[0]), nextScores(last[1]), nextWeights(last[2])};
    }, [&] { return none; });
    after.insert(after.begin(), next(tickets[0], plan.itemSlots));
    return after;
  });
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

/// Multiplies what there is of the outputs, if one of the warp's rows asks for it: in pieces, for which there are registers.
void AttendKernel::correct(Value rescale, Value weightTicket) {
  Value one = t.constant(t.rowsType(k.builder.getF32Type()), k.builder.getF32FloatAttr(1));
  Value isKept = arith::CmpFOp::create(k.builder, k.loc, arith::CmpFPredicate::OEQ, rescale, one);
  constexpr int64_t columns = 16;
  k.ifThen(k.eq(t.warpAll(isKept), k.bit(false)), [&] {
    Value last = plan.weightSlots == 1 ? weightTicket : next(weightTicket, plan.weightSlots);
    t.awaitEmpty(weightPipe, last); // the products before have ended
    for (const OutputPart &part : outputParts)
      k.loop(k.i32(0), k.i32(part.columns), k.i32(columns), [&](Value column) {
        int64_t ofAll = columns * plan.groups;
        t.storeTensor(k.fmul(t.loadTensor(part.tensor, column, ofAll), t.broadcast(rescale, ofAll)), part.tensor, column);
      });
  });
}

void AttendKernel::storeWeights(Value weights, Value ticket) {
  if (!plan.pair)
    return t.storeTensor(weights, t.slot(tensors[1], slotOf(ticket, plan.weightSlots)), k.i32(0));
  t.storeOperand(weights, weightTile);
  t.finishCopies(0);
  t.barrier(); // the maxima of the step have been read
}

void AttendKernel::softmax(Value total) {
  Type f32 = k.builder.getF32Type();
  auto ofRows = [&](double value) { return t.constant(t.rowsType(f32), k.builder.getF32FloatAttr(float(value))); };
  // Tickets of items, factors, keys, scores, weights.
  k.forEachItem(total, SmallVector<Value>(5, k.i32(0)), [&](Value number, ValueRange tickets) -> SmallVector<Value> {
    Item item = decodeItem(number);
    SmallVector<Slots, 1> all = getAllSlots(item);
    SmallVector<Value> steps = takeSteps(tickets[0]);
    SmallVector<Value> state = {ofRows(-std::numeric_limits<double>::infinity()), ofRows(0), tickets[2], tickets[3], tickets[4]};
    Value before = k.i32(0); // steps with the keys of other sources
    for (Slots &slots : all) {
      const Source &source = *slots.source;
      Value ofSource = steps[source.number];
      if (source.lists) // the producers have counted the list
        slots.useSteps(*source.selection, source.op.isGathered(), source.lists, ofSource);
      ScoreTiles scores = getScores(item, slots);
      state = k.loop(k.i32(0), ofSource, k.i32(1), state, [&](Value step, ValueRange carried) {
        return softmaxStep(slots, scores, source.number == 0 ? step : k.add(before, step), carried);
      });
      before = source.number == 0 ? ofSource : k.add(before, ofSource);
      if (!endsSoftmax(source))
        continue;
      Value sum = t.joinGroups(ssa_gpu::RowReduction::sum, state[1], getScratch(0));
      if (plan.groups > 1) // the sums have been read
        t.barrier();
      handOver(item, scores, tickets[1], before, state[0], sum);
    }
    return {next(tickets[0], plan.itemSlots), next(tickets[1], plan.itemSlots), state[2], state[3], state[4]};
  });
}

/// A step of the softmax. Carries what is held, sums, and tickets of keys, scores and weights; `step` counts from the first with keys.
SmallVector<Value> AttendKernel::softmaxStep(const Slots &slots, ScoreTiles &scores, Value step, ValueRange carried) {
  Value keyTicket = carried[2], scoreTicket = carried[3], weightTicket = carried[4];
  t.await(scorePipe, scoreTicket);
  Value products = t.loadTensor(t.slot(tensors[0], slotOf(scoreTicket, plan.scoreSlots)), k.i32(0), plan.tileKeys);
  t.release(scorePipe, scoreTicket);
  t.await(numberPipe, keyTicket);
  Value logits = getLogits(slots, scores, [&] { return products; }, getNumbers(slotOf(keyTicket, plan.stages)));
  t.release(numberPipe, keyTicket);
  SoftmaxStep softmax = scores.getHeldStep(logits, carried[0], getScratch(0), plan.polynomials);
  softmax.sum = scores.addUp(carried[1], softmax);
  k.ifThen(k.lt(k.i32(0), step), [&] { correct(softmax.rescale, weightTicket); });
  t.acquire(weightPipe, weightTicket);
  storeWeights(softmax.weights, weightTicket);
  t.publish(weightPipe, weightTicket);
  return {softmax.max, softmax.sum, next(keyTicket, plan.stages), next(scoreTicket, plan.scoreSlots), next(weightTicket, plan.weightSlots)};
}

/// Stores the log-sum-exps, and leaves what outputs are to be multiplied by.
void AttendKernel::handOver(const Item &item, ScoreTiles &scores, Value ticket, Value steps, Value held, Value sum) {
  auto ofRows = [&](double value) { return t.constant(t.rowsType(k.builder.getF32Type()), k.builder.getF32FloatAttr(float(value))); };
  Value isEmpty = arith::CmpFOp::create(k.builder, k.loc, arith::CmpFPredicate::OEQ, sum, ofRows(0)), slot = slotOf(ticket, plan.itemSlots);
  Value log = math::LogOp::create(k.builder, k.loc, sum);
  Value lse = k.select(isEmpty, ofRows(-std::numeric_limits<double>::infinity()), k.fadd(scores.getHeldReference(held), log));
  Value factor = k.fdiv(ofRows(1), k.select(isEmpty, ofRows(1), sum)); // an empty row is 0 / 1
  Joined joined = join({item, 0}, lse, k.index(0));
  t.acquire(factorPipe, ticket);
  t.saveRows(joined.factor ? k.fmul(factor, joined.factor) : factor, t.slot(factorRing, slot));
  for (auto [ring, factors] : llvm::zip_equal(otherFactorRings, joined.others.factors))
    t.saveRows(factors, t.slot(ring, slot));
  t.fill(t.slot(countRing, slot), [&](Value) { return steps; });
  t.publish(factorPipe, ticket);
  t.storeEntries(lse, lseView.buffer, [&](Value row) {
    RowPlace place = resultPlaceOf(item, lseView, row);
    return item.valuePart ? RowPlace{place.begin, k.both(place.exists, k.eq(item.valuePart, k.index(0)))} : place;
  });
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

void AttendKernel::storePiece(const Item &item, Value tile, int64_t column, int64_t columns, ArrayRef<Value> otherFactors) {
  // In a pair a piece is so many columns of each half.
  int64_t valid = plan.pair ? plan.groups * columns : std::min(columns, plan.valueDim / plan.valueParts - column);
  Value first = k.index(column);
  if (item.valuePart)
    first = k.add(first, k.mul(item.valuePart, k.index(plan.paddedValueDim())));
  t.storeRows(tile, outputView.buffer, valid, plan.storeWidth(), [&](Value row) -> RowPlace {
    RowPlace place = resultPlaceOf(item, outputView, row);
    return {k.add(place.begin, first), place.exists};
  }, getOthers({item, 0}, otherFactors, first), plan.pair ? plan.columnsOfThread() : 0);
}

void AttendKernel::finish(Value total) {
  Type f32 = k.builder.getF32Type(), i32 = k.builder.getI32Type();
  constexpr int64_t most = 32; // columns at a time
  auto forEachPiece = [&](llvm::function_ref<void(const OutputPart &part, int64_t column, int64_t columns)> body) {
    for (const OutputPart &part : outputParts)
      for (int64_t column = 0; column < part.columns; column += most)
        body(part, column, std::min(most, part.columns - column));
  };
  // Tickets of factors and outputs.
  k.forEachItem(total, {k.i32(0), k.i32(0)}, [&](Value number, ValueRange tickets) -> SmallVector<Value> {
    Item item = decodeItem(number);
    Value slot = slotOf(tickets[0], plan.itemSlots);
    t.await(factorPipe, tickets[0]);
    Value steps = t.loadEntry(t.slot(countRing, slot), k.i32(0));
    auto loadFactors = [&](Value ring) { return t.mapRows(f32, [&](Value row) { return t.loadEntry(t.slot(ring, slot), row); }); };
    Value factors = loadFactors(factorRing);
    SmallVector<Value> otherFactors = llvm::map_to_vector(otherFactorRings, loadFactors);
    t.release(factorPipe, tickets[0]);
    Value outputTicket = k.ifElse(k.lt(k.i32(0), steps), i32, [&]() -> SmallVector<Value> {
      t.await(outputPipe, tickets[1]);
      forEachPiece([&](const OutputPart &part, int64_t column, int64_t columns) {
        int64_t ofAll = columns * plan.groups;
        storePiece(item, scaleRows(t.loadTensor(part.tensor, k.i32(column), ofAll), factors), part.first + column, columns, otherFactors);
      });
      t.release(outputPipe, tickets[1]);
      return {next(tickets[1], 1)};
    }, [&]() -> SmallVector<Value> { // there were no products
      forEachPiece([&](const OutputPart &part, int64_t column, int64_t columns) {
        storePiece(item, t.constant(t.accumulatorType(columns * plan.groups, f32), k.builder.getF32FloatAttr(0)), part.first + column, columns, otherFactors);
      });
      return {tickets[1]};
    }).front();
    return {next(tickets[0], plan.itemSlots), outputTicket};
  });
}
