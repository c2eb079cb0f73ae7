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

/// Which of the partial outputs is part `part` (an index) of a row; of rows that are not there the first one.
Value AttendKernel::getPartialOf(const Item &item, Value row, Value part) {
  Row r = getRow(item, row);
  Value cell = k.sub(item.cell, k.getArgument(firstCellOfRunArg)), list = k.sub(r.m, k.getArgument(firstQueryOfRunArg));
  Value place = k.add(k.mul(k.add(k.mul(cell, k.getArgument(queriesOfRunArg)), list), k.index(plan.placesOfList())), part);
  Value partial = k.add(k.mul(place, k.index(plan.group)), k.toIndex(k.rem(r.head, k.i32(plan.group))));
  return k.select(r.exists, partial, k.index(0));
}

/// Behind the last part there are some without keys.
Value AttendKernel::loadLseOf(const Item &item, Value row, Value part) {
  Value last = k.index(plan.placesOfList() - 1), lse = k.load(k.getArgument(partialLsesArg), getPartialOf(item, row, k.min(part, last)));
  return k.select(k.le(part, last), lse, k.f32(none));
}

/// The lses of a part and its outputs. What a part without keys has in memory is not read: it may be anything.
std::pair<Value, Value> AttendKernel::loadPart(const Item &item, const BufferView &partials, Value part) {
  Value lses = t.mapRows(k.builder.getF32Type(), [&](Value row) { return loadLseOf(item, row, part); });
  Value rows = t.loadRows(partials.buffer, plan.paddedValueDim(), [&](Value row) -> RowPlace {
    Value hasKeys = arith::CmpFOp::create(k.builder, k.loc, arith::CmpFPredicate::UNE, loadLseOf(item, row, part), k.f32(none));
    return {partials.getBegin(k, {getPartialOf(item, row, part)}), k.both(getRow(item, row).exists, hasKeys)};
  });
  return {lses, rows};
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

/// Adds the partial outputs of the rows' lists to `state`, whose sums are relative to what is returned then; before they are so to `reference`. Two parts are on
/// their way while one is added.
Value AttendKernel::addPartials(const Item &item, State &state, Value reference) {
  constexpr double log2e = 1.4426950408889634;
  constexpr int64_t ahead = 2;
  auto constant = [&](double value) { return t.constant(t.rowsType(k.builder.getF32Type()), k.builder.getF32FloatAttr(float(value))); };
  auto isEqual = [&](Value a, Value b) -> Value { return arith::CmpFOp::create(k.builder, k.loc, arith::CmpFPredicate::OEQ, a, b); };
  Value own = k.select(isEqual(state.sum, constant(0)), constant(none), reference);
  Value greatest = arith::MaximumFOp::create(k.builder, k.loc, own, getGreatestLse(item));
  greatest = k.select(isEqual(greatest, constant(none)), constant(0), greatest);
  auto weigh = [&](Value lses) -> Value {
    return math::Exp2Op::create(k.builder, k.loc, k.fmul(k.fsub(lses, greatest), constant(log2e)), arith::FastMathFlags::afn);
  };
  auto spread = [&](Value rows) { return t.broadcast(rows, plan.paddedValueDim()); };
  Value factor = weigh(own);
  BufferView partials(k, k.getArgument(partialsArg));
  SmallVector<Value> carried = {k.fmul(state.sum, factor), k.fmul(state.output, spread(factor))};
  for (int64_t i = 0; i < ahead; ++i) {
    auto [lses, rows] = loadPart(item, partials, k.index(i));
    carried.append({lses, rows});
  }
  carried = k.loop(k.index(0), k.index(plan.placesOfList()), k.index(ahead), carried, [&](Value first, ValueRange before) {
    SmallVector<Value> after(before);
    for (int64_t i = 0; i < ahead; ++i) {
      Value &lses = after[2 + 2 * i], &rows = after[3 + 2 * i], weights = weigh(lses);
      Value wide = arith::ExtFOp::create(k.builder, k.loc, cast<RankedTensorType>(rows.getType()).clone(k.builder.getF32Type()), rows);
      after[0] = k.fadd(after[0], weights);
      after[1] = math::FmaOp::create(k.builder, k.loc, wide, spread(weights), after[1]);
      std::tie(lses, rows) = loadPart(item, partials, k.add(first, k.index(ahead + i)));
    }
    return after;
  });
  state.sum = carried[0];
  state.output = carried[1];
  return greatest;
}
