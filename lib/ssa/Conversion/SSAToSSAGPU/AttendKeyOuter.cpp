//===- AttendKeyOuter.cpp - Attention, a key block at a time --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// In the order `key_outer` an item is a key block and a tile of rows of lists that have it. What the kernel makes of them is an attention
// state over that block, which goes to the place of the block in its list.
//
//===----------------------------------------------------------------------===//

#include "AttendKernel.h"
#include "TransposeLists.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::ssa;

/// Items are known to the device only.
Value AttendKernel::getKeyOuterTotal() {
  int64_t cellsOfHead = plan.cells / plan.selection->getHeads();
  return k.mul(k.toIndex(k.load(k.getArgument(numItemsArg), k.index(0))), k.index(cellsOfHead));
}

/// The entry of a row of the tile: which list it is of, times its width, and the place there; negative if there is no such row.
Value AttendKernel::getEntry(const Item &item, Value row) {
  if (item.entriesOfRows)
    return t.loadEntry(item.entriesOfRows, row);
  Value i = k.div(k.add(item.firstRow, row), k.i32(plan.rowsPerList)), exists = k.lt(i, item.numEntries);
  Value entry = k.load(k.getArgument(entriesArg), k.toIndex(k.add(item.firstEntry, k.select(exists, i, k.i32(0)))));
  return k.select(exists, entry, k.i32(-1));
}

/// So consumers need not look for it in memory.
void AttendKernel::publishKeyOuterItem(const Item &item, Value slot) {
  Value parts[] = {k.toI32(item.cell), item.block, item.firstRow};
  t.fill(t.slot(itemRing, slot), [&](Value i) {
    Value value = getEntry(item, k.min(i, k.i32(plan.tileRows - 1)));
    for (auto [number, part] : llvm::enumerate(parts))
      value = k.select(k.eq(i, k.i32(plan.tileRows + number)), part, value);
    return value;
  });
}

AttendKernel::Item AttendKernel::readKeyOuterItem(Value slot) {
  Item item;
  item.exists = k.bit(true);
  item.entriesOfRows = t.slot(itemRing, slot);
  auto read = [&](PublishedPart part) { return t.loadEntry(item.entriesOfRows, k.i32(plan.tileRows + part)); };
  item.batch = k.getArgument(batchArg);
  item.cell = k.toIndex(read(cellPart));
  item.list = k.index(0);
  item.block = read(blockPart);
  item.firstRow = read(firstRowPart);
  setKeyOuterPositions(item);
  return item;
}

/// Those of all lists that were transposed together: closer bounds would take more loads than they save.
void AttendKernel::setKeyOuterPositions(Item &item) {
  Value shift = k.sub(tokens, queries), firstList = k.toI32(k.getArgument(firstListArg)), queryBlock = k.i32(plan.queryBlock);
  Value end = k.mul(k.add(firstList, k.toI32(k.getArgument(numListsArg))), queryBlock);
  item.firstPosition = k.add(k.mul(firstList, queryBlock), shift);
  item.lastPosition = k.add(k.sub(k.min(end, queries), k.i32(1)), shift);
}

/// What memory says of an item: a value for each part.
SmallVector<Value> AttendKernel::loadKeyOuterItem(Value number) {
  Value tile = k.div(number, k.index(plan.cells / plan.selection->getHeads()));
  Value parts = k.loadVector(k.getArgument(itemsArg), {tile, k.index(0)}, TransposedLists::numItemParts);
  SmallVector<Value> values;
  for (int64_t i = 0; i < TransposedLists::numItemParts; ++i)
    values.push_back(vector::ExtractOp::create(k.builder, k.loc, parts, i));
  return values;
}

AttendKernel::Item AttendKernel::decodeKeyOuterItem(Value number, ValueRange part) {
  Item item;
  item.exists = k.bit(true);
  Value cellsOfHead = k.index(plan.cells / plan.selection->getHeads()), cellInHead = k.rem(number, cellsOfHead);
  Value blocks = k.div(k.add(keyRows, k.i32(plan.selection->getKeyBlock() - 1)), k.i32(plan.selection->getKeyBlock()));
  Value block = part[TransposedLists::blockPart];
  item.batch = k.getArgument(batchArg);
  item.cell = k.add(k.getArgument(firstCellArg), k.add(k.mul(k.toIndex(k.div(block, blocks)), cellsOfHead), cellInHead));
  item.list = k.index(0);
  item.block = k.rem(block, blocks);
  item.firstEntry = part[TransposedLists::firstEntryPart];
  item.numEntries = part[TransposedLists::entriesPart];
  item.firstRow = part[TransposedLists::firstRowPart];
  setKeyOuterPositions(item);
  return item;
}

AttendKernel::Row AttendKernel::getKeyOuterRow(const Item &item, Value row) {
  Value inList = k.rem(k.add(item.firstRow, row), k.i32(plan.rowsPerList)), entry = getEntry(item, row), width = k.i32(plan.selection->getWidth());
  Value exists = k.ge(entry, k.i32(0)), known = k.max(entry, k.i32(0)), list = k.toIndex(k.div(known, width)), group = k.i32(plan.group);
  Value m = k.add(k.mul(k.add(k.getArgument(firstListArg), list), k.index(plan.queryBlock)), k.toIndex(k.div(inList, group)));
  Value head = k.add(k.mul(k.toI32(item.cell), group), k.rem(inList, group));
  Value place = k.add(k.mul(k.sub(item.cell, k.getArgument(firstCellArg)), k.getArgument(numListsArg)), list);
  place = k.add(k.mul(place, k.index(plan.selection->getWidth())), k.toIndex(k.rem(known, width)));
  Value partial = k.add(k.mul(place, k.index(plan.rowsPerList)), k.toIndex(inList));
  return {m, head, k.both(exists, k.lt(m, k.dim(queryView.buffer, 2))), partial};
}

Value AttendKernel::produceStep(const Item &item, const KeySlots &slots, Value step, Value ticket) {
  Lookup found = lookUp(item, slots, step);
  Value stage = slotOf(ticket, plan.stages);
  t.acquire(keys.pipe, ticket);
  loadNumbers(slots, step, found, stage);
  loadRows(item, slots, found, keys, stage, ticket);
  t.publish(keys.pipe, ticket);
  if (!plan.valuesAreKeys) {
    t.acquire(values.pipe, ticket);
    loadRows(item, slots, found, values, stage, ticket);
    t.publish(values.pipe, ticket);
  }
  return next(ticket, plan.stages);
}

/// What memory says of an item is read while the one before is worked on, and its first keys are on their way before its queries are there.
void AttendKernel::produceKeyOuter(Value total) {
  Value first = gpu::BlockIdOp::create(k.builder, k.loc, gpu::Dimension::x), stride = gpu::GridDimOp::create(k.builder, k.loc, gpu::Dimension::x);
  auto load = [&](Value number) { return loadKeyOuterItem(k.max(k.min(number, k.sub(total, k.index(1))), k.index(0))); };
  SmallVector<Value> inits = {k.i32(0), k.i32(0)};
  inits.append(load(first));
  k.forEachItem(total, inits, [&](Value number, ValueRange carried) -> SmallVector<Value> {
    SmallVector<Value> following = load(k.add(number, stride));
    Item item = decodeKeyOuterItem(number, carried.drop_front(2));
    KeySlots slots = getSlots(item);
    Value querySlot = slotOf(carried[0], plan.querySlots);
    t.acquire(queryPipe, carried[0]);
    loadQueries(item, t.slot(queryRing, querySlot));
    t.commitCopies();
    Value ticket = produceStep(item, slots, k.i32(0), carried[1]);
    publishKeyOuterItem(item, querySlot);
    t.finishCopies(0);
    t.publish(queryPipe, carried[0]);
    ticket = k.loop(k.i32(1), getSteps(slots), k.i32(1), ticket, [&](Value step, ValueRange tickets) -> SmallVector<Value> {
      return {produceStep(item, slots, step, tickets[0])};
    })[0];
    SmallVector<Value> yielded = {next(carried[0], plan.querySlots), ticket};
    yielded.append(following);
    return yielded;
  });
}

/// The queries' slot says which rows these are, so it is given back behind the outputs.
void AttendKernel::consumeKeyOuter(Value total) {
  k.forEachItem(total, {k.i32(0), k.i32(0)}, [&](Value, ValueRange tickets) -> SmallVector<Value> {
    Value slot = slotOf(tickets[0], plan.querySlots);
    t.await(queryPipe, tickets[0]);
    Item item = readKeyOuterItem(slot);
    KeySlots slots = getSlots(item);
    ScoreTiles scores = getScores(item, slots);
    Value queryTile = t.slot(queryRing, slot);
    State initial = getInitialState();
    SmallVector<Value> state = k.loop(k.i32(0), getSteps(slots), k.i32(1), {initial.max, initial.sum, initial.output, tickets[1]},
                                      [&](Value, ValueRange carried) -> SmallVector<Value> {
      // Not before the loop: ptxas 13.0 gave the registers of an operand that all steps read to their weights as well.
      Value lhs = plan.keepsQueries ? t.loadOperand(queryTile) : queryTile;
      Value ticket = carried[3], stage = slotOf(ticket, plan.stages), products = t.waitMma(beginScores(lhs, ticket), 0);
      SoftmaxStep softmax = getSoftmaxStep(slots, scores, products, stage, carried[0], carried[1], [&] {
        if (!plan.valuesAreKeys)
          t.release(keys.pipe, ticket);
      });
      Value scaled = rescale(carried[2], softmax.rescale), weights = getWeights(softmax.weights);
      if (!plan.valuesAreKeys)
        t.await(values.pipe, ticket);
      Value output = t.mma(plan.family, weights, getValueTile(stage), /*transposed=*/false, scaled);
      t.release(plan.valuesAreKeys ? keys.pipe : values.pipe, ticket);
      if (plan.groups > 1) // all groups have read the weights
        t.barrier();
      return {softmax.max, softmax.sum, output, next(ticket, plan.stages)};
    });
    store(item, scores, {state[0], state[1], state[2]});
    t.release(queryPipe, tickets[0]);
    return {next(tickets[0], plan.querySlots), state[3]};
  });
}
