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

static constexpr int64_t lanes = 32, warpgroup = 128, rowsOfWarpgroup = 64;

/// Items are known to the device only.
Value AttendKernel::getKeyOuterTotal() {
  int64_t cellsOfHead = plan.cells / plan.selection().getHeads();
  return k.mul(k.toIndex(k.load(k.getArgument(numItemsArg), k.index(0))), k.index(cellsOfHead));
}

/// The entry of a row of the tile: which list it is of, times its width, and the place there; negative if there is no such row.
Value AttendKernel::loadEntryOf(const Item &item, Value row) {
  Value i = k.div(k.add(item.firstRow, row), k.i32(plan.rowsPerList)), exists = k.lt(i, item.numEntries);
  Value entry = k.load(k.getArgument(entriesArg), k.toIndex(k.add(item.firstEntry, k.select(exists, i, k.i32(0)))));
  return k.select(exists, entry, k.i32(-1));
}

Value AttendKernel::getEntry(const Item &item, Value row) {
  return item.entriesOfTile ? t.loadEntry(item.entriesOfTile, k.div(row, k.i32(plan.rowsOfBox))) : loadEntryOf(item, row);
}

/// So consumers need not look for it in memory.
void AttendKernel::publishKeyOuterItem(const Item &item, Value slot) {
  int64_t entries = plan.entriesOfTile();
  Value parts[] = {k.toI32(item.cell), item.block, item.firstRow};
  t.fill(t.slot(itemRing, slot), [&](Value i) {
    Value value = plan.hasQueryBoxes ? item.entriesOfBoxes.front() : loadEntryOf(item, k.min(i, k.i32(entries - 1)));
    for (auto [number, entry] : llvm::enumerate(item.entriesOfBoxes))
      value = number == 0 ? value : k.select(k.eq(i, k.i32(number)), entry, value);
    for (auto [number, part] : llvm::enumerate(parts))
      value = k.select(k.eq(i, k.i32(entries + number)), part, value);
    return value;
  });
}

AttendKernel::Item AttendKernel::readKeyOuterItem(Value slot) {
  Item item;
  item.exists = k.bit(true);
  item.entriesOfTile = t.slot(itemRing, slot);
  auto read = [&](PublishedPart part) { return t.loadEntry(item.entriesOfTile, k.i32(plan.entriesOfTile() + part)); };
  item.batch = k.getArgument(batchArg);
  item.cell = k.toIndex(read(cellPart));
  item.list = k.index(0);
  item.block = read(blockPart);
  item.firstRow = read(firstRowPart);
  setKeyOuterQueries(item);
  return item;
}

/// Those of all lists that were transposed together: closer bounds would take more loads than they save.
void AttendKernel::setKeyOuterQueries(Item &item) {
  Value firstList = k.toI32(k.getArgument(firstListArg)), queryBlock = k.i32(plan.queryBlock);
  Value end = k.mul(k.add(firstList, k.toI32(k.getArgument(numListsArg))), queryBlock);
  item.firstQuery = k.mul(firstList, queryBlock);
  item.lastQuery = k.sub(k.min(end, queries), k.i32(1));
}

/// What memory says of an item: a value for each part.
SmallVector<Value> AttendKernel::loadKeyOuterItem(Value number) {
  Value tile = k.div(number, k.index(plan.cells / plan.selection().getHeads()));
  Value parts = k.loadVector(k.getArgument(itemsArg), {tile, k.index(0)}, TransposedLists::numItemParts);
  SmallVector<Value> values;
  for (int64_t i = 0; i < TransposedLists::numItemParts; ++i)
    values.push_back(vector::ExtractOp::create(k.builder, k.loc, parts, i));
  return values;
}

AttendKernel::Item AttendKernel::decodeKeyOuterItem(Value number, ValueRange part) {
  Item item;
  item.exists = k.bit(true);
  Value cellsOfHead = k.index(plan.cells / plan.selection().getHeads()), cellInHead = k.rem(number, cellsOfHead);
  Value blocks = k.div(k.add(sources.front().keyRows, k.i32(plan.selection().getKeyBlock() - 1)), k.i32(plan.selection().getKeyBlock()));
  Value block = part[TransposedLists::blockPart];
  item.batch = k.getArgument(batchArg);
  item.cell = k.add(k.getArgument(firstCellArg), k.add(k.mul(k.toIndex(k.div(block, blocks)), cellsOfHead), cellInHead));
  item.list = k.index(0);
  item.block = k.rem(block, blocks);
  item.firstEntry = part[TransposedLists::firstEntryPart];
  item.numEntries = part[TransposedLists::entriesPart];
  item.firstRow = part[TransposedLists::firstRowPart];
  setKeyOuterQueries(item);
  return item;
}

AttendKernel::Row AttendKernel::getKeyOuterRow(const Item &item, Value row) { return getKeyOuterRow(item, row, getEntry(item, row)); }

AttendKernel::Row AttendKernel::getKeyOuterRow(const Item &item, Value row, Value entry) {
  Value inList = k.rem(k.add(item.firstRow, row), k.i32(plan.rowsPerList)), width = k.i32(plan.placesOfList());
  Value exists = k.ge(entry, k.i32(0)), known = k.max(entry, k.i32(0)), list = k.toIndex(k.div(known, width)), group = k.i32(plan.group);
  Value m = k.add(k.mul(k.add(k.getArgument(firstListArg), list), k.index(plan.queryBlock)), k.toIndex(k.div(inList, group)));
  Value head = k.add(k.mul(k.toI32(item.cell), group), k.rem(inList, group));
  Value place = k.add(k.mul(k.sub(item.cell, k.getArgument(firstCellArg)), k.getArgument(numListsArg)), list);
  place = k.add(k.mul(place, k.index(plan.placesOfList())), k.toIndex(k.rem(known, width)));
  Value partial = k.add(k.mul(place, k.index(plan.rowsPerList)), k.toIndex(inList));
  return {m, head, k.both(exists, k.lt(m, k.dim(queryView.buffer, 2))), partial};
}

Value AttendKernel::produceStep(const Item &item, const Slots &slots, Value step, Value ticket) {
  Lookup found = lookUp(item, slots, step);
  Value stage = slotOf(ticket, plan.stages);
  t.acquire(keys.pipe, ticket);
  loadNumbers(slots, step, found, getNumbers(stage));
  loadRows(item, slots, found, keys, stage, ticket);
  t.publish(keys.pipe, ticket);
  if (!plan.valuesAreKeys) {
    t.acquire(values.pipe, ticket);
    loadRows(item, slots, found, values, stage, ticket);
    t.publish(values.pipe, ticket);
  }
  return next(ticket, plan.stages);
}

/// What memory says of an item, which is looked up while the one before is worked on. Where queries are boxes an entry for each of the first lanes
/// and what memory says of the item behind are part of it, so that no load waits for another. `parts` are known or none.
SmallVector<Value> AttendKernel::lookUpItem(Value number, Value total, ValueRange parts) {
  auto load = [&](Value number) { return loadKeyOuterItem(k.max(k.min(number, k.sub(total, k.index(1))), k.index(0))); };
  SmallVector<Value> found = parts.empty() ? load(number) : SmallVector<Value>(parts);
  if (!plan.hasQueryBoxes)
    return found;
  Value lane = k.rem(k.toI32(k.threadId()), k.i32(lanes));
  found.push_back(loadEntryOf(decodeKeyOuterItem(number, found), k.mul(lane, k.i32(plan.rowsOfBox))));
  found.append(load(k.add(number, gpu::GridDimOp::create(k.builder, k.loc, gpu::Dimension::x))));
  return found;
}

/// Copies what each entry has of the queries; behind the last entry are zeros.
void AttendKernel::loadQueryBoxes(const Item &item, Value tile, Value ticket) {
  for (auto [i, entry] : llvm::enumerate(item.entriesOfBoxes)) {
    Row first = getKeyOuterRow(item, k.i32(i * plan.rowsOfBox), entry);
    Value m = k.select(first.exists, k.toI32(first.m), queries);
    t.copyBox(queryMap, {k.toI32(item.batch), m, first.head}, tile, queryPipe, ticket, i * plan.rowsOfBox);
  }
}

/// The first keys of an item are on their way before its queries are there.
void AttendKernel::produceKeyOuter(Value total) {
  constexpr int64_t numParts = TransposedLists::numItemParts;
  Value first = gpu::BlockIdOp::create(k.builder, k.loc, gpu::Dimension::x), stride = gpu::GridDimOp::create(k.builder, k.loc, gpu::Dimension::x);
  SmallVector<Value> inits = {k.i32(0), k.i32(0)};
  inits.append(lookUpItem(first, total, {}));
  k.forEachItem(total, inits, [&](Value number, ValueRange carried) -> SmallVector<Value> {
    ValueRange known = carried.drop_front(2);
    Item item = decodeKeyOuterItem(number, known.take_front(numParts));
    for (int64_t i = 0; plan.hasQueryBoxes && i < plan.entriesOfTile(); ++i)
      item.entriesOfBoxes.push_back(gpu::ShuffleOp::create(k.builder, k.loc, known[numParts], i, lanes, gpu::ShuffleMode::IDX).getShuffleResult());
    SmallVector<Value> following = lookUpItem(k.add(number, stride), total, plan.hasQueryBoxes ? known.take_back(numParts) : ValueRange());
    Slots slots = getSlots(item);
    Value querySlot = slotOf(carried[0], plan.querySlots), queryTile = t.slot(queryRing, querySlot);
    t.acquire(queryPipe, carried[0]);
    if (plan.hasQueryBoxes) {
      loadQueryBoxes(item, queryTile, carried[0]);
    } else {
      loadQueries(item, queryTile);
      t.commitCopies();
    }
    Value ticket = produceStep(item, slots, k.i32(0), carried[1]);
    publishKeyOuterItem(item, querySlot);
    if (!plan.hasQueryBoxes)
      t.finishCopies(0);
    t.publish(queryPipe, carried[0]);
    if (!plan.isOneStep())
      ticket = k.loop(k.i32(1), getSteps(slots), k.i32(1), ticket, [&](Value step, ValueRange tickets) -> SmallVector<Value> {
        return {produceStep(item, slots, step, tickets[0])};
      })[0];
    SmallVector<Value> yielded = {next(carried[0], plan.querySlots), ticket};
    yielded.append(following);
    return yielded;
  });
}

/// A step of an item. Carries maxima, sums, outputs and the ticket of the keys.
SmallVector<Value> AttendKernel::attendKeyOuter(const Slots &slots, ScoreTiles &scores, Value queryTile, ValueRange carried) {
  // Not before the loop: ptxas 13.0 gave the registers of an operand that all steps read to their weights as well.
  Value lhs = plan.keepsQueries ? t.loadOperand(queryTile) : queryTile;
  Value ticket = carried[3], stage = slotOf(ticket, plan.stages), products = beginScores(lhs, ticket);
  SoftmaxStep softmax = getSoftmaxStep(slots, scores, [&] { return t.waitMma(products, 0); }, getNumbers(stage), carried[0], carried[1], [&] {
    if (!plan.valuesAreKeys)
      t.release(keys.pipe, ticket);
  });
  // In the first step there is nothing to rescale.
  Value scaled = plan.isOneStep() ? carried[2] : rescale(carried[2], softmax.rescale, softmax.isKept), weights = getWeights(softmax.weights);
  if (!plan.valuesAreKeys)
    t.await(values.pipe, ticket);
  Value output = t.mma(plan.family, weights, getValueTile(stage), /*transposed=*/false, scaled);
  t.release(plan.valuesAreKeys ? keys.pipe : values.pipe, ticket);
  if (plan.groups > 1) // all groups have read the weights
    t.barrier();
  return {softmax.max, softmax.sum, output, next(ticket, plan.stages)};
}

/// All steps of an item, and its outputs; gives the next ticket of keys.
Value AttendKernel::attendItem(const Item &item, const Slots &slots, Value queryTile, Value ticket) {
  ScoreTiles scores = getScores(item, slots);
  State initial = getInitialState();
  SmallVector<Value> state = {initial.max, initial.sum, initial.output, ticket};
  auto attend = [&](ValueRange carried) { return attendKeyOuter(slots, scores, queryTile, carried); };
  state = plan.isOneStep() ? attend(state) : k.loop(k.i32(0), getSteps(slots), k.i32(1), state, [&](Value, ValueRange carried) { return attend(carried); });
  store({item, 0}, scores, {state[0], state[1], state[2]});
  return state[3];
}

/// Gives back keys and values without a look at them.
void AttendKernel::passStep(Value ticket) {
  for (Value pipe : {keys.pipe, values.pipe})
    if (pipe) {
      t.await(pipe, ticket);
      t.release(pipe, ticket);
    }
}

/// The queries' slot says which rows these are, so it is given back behind the outputs.
void AttendKernel::consumeKeyOuter(Value total) {
  k.forEachItem(total, {k.i32(0), k.i32(0)}, [&](Value, ValueRange tickets) -> SmallVector<Value> {
    Value slot = slotOf(tickets[0], plan.querySlots);
    t.await(queryPipe, tickets[0]);
    Item item = readKeyOuterItem(slot);
    Slots slots = getSlots(item);
    Value ticket = tickets[1];
    if (!plan.isOneStep() || plan.groups > 1) {
      ticket = attendItem(item, slots, t.slot(queryRing, slot), ticket);
    } else { // of the last entries of a block a tile often has few: groups of warps without rows do nothing
      Value firstRow = k.mul(k.div(k.toI32(k.threadId()), k.i32(warpgroup)), k.i32(rowsOfWarpgroup));
      k.ifThenElse(k.ge(getEntry(item, firstRow), k.i32(0)), [&] { attendItem(item, slots, t.slot(queryRing, slot), ticket); }, [&] { passStep(ticket); });
      ticket = next(ticket, plan.stages);
    }
    t.release(queryPipe, tickets[0]);
    return {next(tickets[0], plan.querySlots), ticket};
  });
}
