//===- AttendForced.cpp - Blocks that every list has ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Where lists have blocks in common in the order `key_outer`, a kernel attends to these without lists, an item being some neighbouring queries. Before it stores
// rows it adds the outputs that another kernel has made of the other blocks.
//
//===----------------------------------------------------------------------===//

#include "AttendKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <limits>

using namespace mlir;
using namespace mlir::ssa;

static constexpr double none = -std::numeric_limits<double>::infinity();

/// Tiles are those of all queries; of the first and the last of a run others may have some rows.
AttendKernel::Item AttendKernel::decodeItemOfRun(Value number) {
  Item item;
  Value queryBlock = k.index(plan.queryBlock), first = k.getArgument(firstQueryOfRunArg), firstTile = k.div(first, queryBlock);
  Value endTile = k.ceilDiv(k.add(first, k.getArgument(queriesOfRunArg)), queryBlock);
  item.firstRow = k.mul(k.toI32(k.split(number, k.index(plan.tilesPerList()))), k.i32(plan.tileRows));
  item.list = k.add(firstTile, k.split(number, k.sub(endTile, firstTile)));
  item.cell = k.add(k.getArgument(firstCellOfRunArg), number);
  item.batch = k.getArgument(batchOfRunArg);
  item.exists = k.bit(true);
  setQueries(item);
  return item;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

AttendKernel::Parts AttendKernel::getParts(const Item &item) {
  Value cell = k.sub(item.cell, k.getArgument(firstCellOfRunArg)), list = k.sub(k.toIndex(item.firstQuery), k.getArgument(firstQueryOfRunArg));
  list = k.add(k.getArgument(firstPartialListArg), k.add(k.mul(cell, k.getArgument(queriesOfRunArg)), list));
  Value firstRow = plan.group < plan.tileRows ? k.i32(0) : item.firstRow;
  return {k.toI32(list), firstRow, k.select(item.exists, k.i32(plan.placesOfList()), k.i32(0)), item.firstPart};
}

Value AttendKernel::getPartTicket(Value first, Value part) { return k.rem(k.add(first, part), k.i32(2 * plan.partSlots)); }

void AttendKernel::copyParts(const Parts &parts, Value first, Value end) {
  k.loop(first, k.min(end, parts.count), k.i32(1), [&](Value part) {
    Value ticket = getPartTicket(parts.firstTicket, part);
    t.acquire(partPipe, ticket);
    t.copyBox(k.getArgument(partialsArg), {parts.list, part, parts.firstRow}, t.slot(partRing, slotOf(ticket, plan.partSlots)), partPipe, ticket);
    t.publish(partPipe, ticket);
  });
}

/// An item's partial outputs are added in the first step of the next one. As many as there is room for come before that one, while steps go on, the others behind what
/// the step takes.
void AttendKernel::produceWithPartials(Value total) {
  publishZeros(plan.valuesAreKeys ? keys : values);
  Value zero = k.i32(0), ahead = k.i32(plan.partSlots), all = k.i32(plan.placesOfList());
  SmallVector<Value> inits = {zero, k.i32(plan.valuesAreKeys ? 1 : 0), zero, zero, zero, zero};
  forEachItemAndOne(total, inits, [&](Value number, ValueRange carried) -> SmallVector<Value> {
    Parts before{carried[2], carried[3], carried[4], carried[5]};
    Item item = decodeItemOrNone(number, total);
    item.firstPart = getPartTicket(before.firstTicket, before.count);
    Slots slots = getSlots(item);
    SmallVector<Value> numbers = {getSteps(slots)};
    for (Value value : packRows(item))
      numbers.push_back(value.getType().isInteger(1) ? k.select(value, k.i32(1), zero) : value);
    Lookup found = lookUp(item, slots, zero);
    Value querySlot = slotOf(carried[0], plan.querySlots);
    t.acquire(queryPipe, carried[0]);
    loadQueries(item, t.slot(queryRing, querySlot), carried[0]);
    t.fill(t.slot(stepsRing, querySlot), numbers);
    t.publish(queryPipe, carried[0]);
    Value ticket = copyStep(item, slots, zero, found, carried[1]);
    copyParts(before, ahead, all);
    ticket = k.loop(k.i32(1), numbers[0], k.i32(1), ticket, [&](Value step, ValueRange tickets) -> SmallVector<Value> {
      return {copyStep(item, slots, step, lookUp(item, slots, step), tickets[0])};
    })[0];
    Parts own = getParts(item);
    copyParts(own, zero, ahead);
    return {next(carried[0], plan.querySlots), ticket, own.list, own.firstRow, own.count, own.firstTicket};
  });
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// Of a row, and of a part that is an index. Rows that are not there have what the first one has, and behind the last part there are some without keys.
Value AttendKernel::loadLseOf(const Item &item, Value row, Value part) {
  Row r = getRow(item, row);
  Value last = k.index(plan.placesOfList() - 1), known = k.min(part, last), cell = k.sub(item.cell, k.getArgument(firstCellOfRunArg));
  Value list = k.add(k.mul(cell, k.getArgument(queriesOfRunArg)), k.sub(r.m, k.getArgument(firstQueryOfRunArg)));
  Value partial = k.add(k.mul(k.add(k.mul(list, k.index(plan.placesOfList())), known), k.index(plan.group)), k.toIndex(k.rem(r.head, k.i32(plan.group))));
  Value lse = k.load(k.getArgument(partialLsesArg), k.select(r.exists, partial, k.index(0)));
  return k.select(k.le(part, last), lse, k.f32(none));
}

/// The greatest lse of all parts of a row; each of its lanes looks at some.
Value AttendKernel::getGreatestLse(const Item &item) {
  constexpr int64_t lanes = 4;
  return t.joinLanes(ssa_gpu::RowReduction::max, t.mapRows(k.builder.getF32Type(), [&](Value row) {
    Value lane = k.rem(k.threadId(), k.index(lanes)), greatest = k.f32(none);
    for (int64_t first = 0; first < plan.placesOfList(); first += lanes)
      greatest = arith::MaximumFOp::create(k.builder, k.loc, greatest, loadLseOf(item, row, k.add(lane, k.index(first))));
    return greatest;
  }));
}

/// Adds the partial outputs of the rows' lists to `state`, whose sums are relative to what is returned then; before they are so to `reference`. What a part
/// without keys has in memory counts as zeros.
Value AttendKernel::addPartials(const Item &item, State &state, Value reference) {
  constexpr double log2e = 1.4426950408889634;
  Type f32 = k.builder.getF32Type();
  auto constant = [&](double value) { return t.constant(t.rowsType(f32), k.builder.getF32FloatAttr(float(value))); };
  auto compare = [&](arith::CmpFPredicate predicate, Value a, Value b) -> Value { return arith::CmpFOp::create(k.builder, k.loc, predicate, a, b); };
  Value nothing = constant(none), own = k.select(compare(arith::CmpFPredicate::OEQ, state.sum, constant(0)), nothing, reference);
  Value greatest = arith::MaximumFOp::create(k.builder, k.loc, own, getGreatestLse(item));
  greatest = k.select(compare(arith::CmpFPredicate::OEQ, greatest, nothing), constant(0), greatest);
  auto weigh = [&](Value lses) -> Value {
    return math::Exp2Op::create(k.builder, k.loc, k.fmul(k.fsub(lses, greatest), constant(log2e)), arith::FastMathFlags::afn);
  };
  auto spread = [&](Value rows) { return t.broadcast(rows, plan.paddedValueDim()); };
  auto loadLses = [&](Value part) { return t.mapRows(f32, [&](Value row) { return loadLseOf(item, row, k.toIndex(part)); }); };
  Value factor = weigh(own), count = k.select(item.exists, k.i32(plan.placesOfList()), k.i32(0));
  SmallVector<Value> carried = {k.fmul(state.sum, factor), k.fmul(state.output, spread(factor)), loadLses(k.i32(0))};
  carried = k.loop(k.i32(0), count, k.i32(1), carried, [&](Value part, ValueRange before) -> SmallVector<Value> {
    Value following = loadLses(k.add(part, k.i32(1))), weights = weigh(before[2]), ticket = getPartTicket(item.firstPart, part);
    t.await(partPipe, ticket);
    Value rows = t.loadQuads(t.slot(partRing, slotOf(ticket, plan.partSlots)), compare(arith::CmpFPredicate::UNE, before[2], nothing));
    t.release(partPipe, ticket);
    Value wide = arith::ExtFOp::create(k.builder, k.loc, cast<RankedTensorType>(rows.getType()).clone(f32), rows);
    return {k.fadd(before[0], weights), math::FmaOp::create(k.builder, k.loc, wide, spread(weights), before[1]), following};
  });
  state.sum = carried[0];
  state.output = carried[1];
  return greatest;
}
