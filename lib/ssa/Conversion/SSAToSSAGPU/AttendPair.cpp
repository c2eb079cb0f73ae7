//===- AttendPair.cpp - sparse_attend with tcgen05 in pairs of blocks ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Two blocks have the 128 rows of a tile together, 64 each, with their outputs in full width. Products are those of both: each block has half of the
// keys of a step, for scores, and half of the columns of values, for outputs. What a row of scores or outputs is lies in two halves of the lanes, so two
// threads have a row; they exchange maxima and sums.
//
// Keys and values fill shared memory: rings of pieces, of 64 columns of keys and of 64 rows of values, are refilled while products read the pieces behind
// them. Values are gathered a step behind keys, in the order in which products ask for them.
//
//===----------------------------------------------------------------------===//

#include "AttendKernel.h"

using namespace mlir;
using namespace mlir::ssa;

static constexpr int64_t piece = ScheduleAttr::pieceOfPair;

void AttendKernel::allocatePair() {
  int64_t producers = plan.producers() / 32, warps = plan.tileRows / 32, issuer = 1, rows = plan.rowsOfBlock();
  int64_t keySlots = plan.stages * plan.keyPieces(), valueSlots = plan.stages * plan.valuePieces();
  Type i32 = k.builder.getI32Type(), f32 = k.builder.getF32Type();
  queryRing = t.alloc({plan.querySlots, rows, plan.dim}, elementType);
  keys.ring = t.alloc({keySlots, plan.tileKeys / 2, piece}, elementType);
  values.ring = t.alloc({valueSlots, piece, plan.columnsOfThread()}, elementType);
  weightTile = t.alloc({rows, plan.tileKeys}, elementType);
  rowRing = t.alloc({2, plan.tileKeys}, i32);
  numberRing = t.alloc({plan.stages, plan.stretches > 0 ? 2 * plan.stretches : plan.tileKeys}, i32);
  scratch = t.alloc({1, plan.groups * rows}, f32);
  allocateHandOver();
  queryPipe = t.allocPipe(plan.querySlots, producers, issuer, /*pair=*/true);
  keys.pipe = t.allocPipe(keySlots, producers, issuer, /*pair=*/true);
  values.pipe = t.allocPipe(valueSlots, producers, issuer, /*pair=*/true);
  numberPipe = t.allocPipe(plan.stages, producers, warps);
  scorePipe = t.allocPipe(plan.scoreSlots, issuer, warps, /*pair=*/true);
  weightPipe = t.allocPipe(plan.weightSlots, warps, issuer, /*pair=*/true);
  outputPipe = t.allocPipe(1, issuer, warps, /*pair=*/true);
  tensors = t.allocTensors({{{plan.scoreSlots, rows, plan.tileKeys}, f32}, {{rows, plan.paddedValueDim()}, f32}});
  outputTensor = tensors.back();
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// Which rows of the map the keys of a step are; none where no query of the tile sees them.
void AttendKernel::findRowsInPair(const Item &item, const KeySlots &slots, Value step) {
  Value number = slots.firstStep ? k.add(slots.firstStep, step) : step;
  Value base = k.add(k.mul(item.batch, rowSteps[0]), k.mul(getHead(item, keys), rowSteps[1]));
  auto getNumber = [&](Value entry) {
    return slots.isContiguous() ? slots.getNumber(k, slots.getStep(k, number), entry)
                                : slots.getNumber(k, k.add(k.mul(number, k.i32(plan.tileKeys)), entry));
  };
  t.fill(t.slot(rowRing, k.rem(step, k.i32(2))), [&](Value entry) {
    constexpr int64_t none = -1;
    Value key = getNumber(entry), isVisible = slots.isInSight(k, key), row = k.select(isVisible, key, k.i32(0));
    return k.select(isVisible, k.add(k.toI32(base), k.mul(row, k.toI32(rowSteps[2]))), k.i32(none));
  });
}

/// The keys that this block has of a step, piece by piece.
void AttendKernel::gatherKeysInPair(Value step, Value ticket) {
  Value rows = t.slot(rowRing, k.rem(step, k.i32(2))), first = k.mul(k.toI32(k.rankInPair()), k.i32(plan.tileKeys / 2));
  int64_t pieces = plan.keyPieces();
  for (int64_t i = 0; i < pieces; ++i) {
    Value at = k.add(k.mul(ticket, k.i32(pieces)), k.i32(i));
    t.acquire(keys.pipe, at);
    t.gatherBox(keys.map, k.i32(i * piece), t.slot(keys.ring, slotOf(at, plan.stages * pieces)), keys.pipe, at,
                [&](Value row) { return t.loadEntry(rows, k.add(first, row)); });
    t.publish(keys.pipe, at);
  }
}

/// This block's columns of the values of a step.
void AttendKernel::gatherValuesInPair(Value step, Value ticket) {
  Value rows = t.slot(rowRing, k.rem(step, k.i32(2))), column = k.mul(k.toI32(k.rankInPair()), k.i32(plan.columnsOfThread()));
  int64_t pieces = plan.valuePieces();
  for (int64_t i = 0; i < pieces; ++i) {
    Value at = k.add(k.mul(ticket, k.i32(pieces)), k.i32(i));
    t.acquire(values.pipe, at);
    t.gatherBox(keys.map, column, t.slot(values.ring, slotOf(at, plan.stages * pieces)), values.pipe, at,
                [&](Value row) { return t.loadEntry(rows, k.add(row, k.i32(i * piece))); });
    t.publish(values.pipe, at);
  }
}

/// All steps of an item; the next ticket.
Value AttendKernel::produceStepsInPair(const Item &item, const KeySlots &slots, Value steps, Value first) {
  Value one = k.i32(1);
  return k.loop(k.i32(0), k.add(steps, one), one, {first, first}, [&](Value step, ValueRange tickets) -> SmallVector<Value> {
    Value ticket = tickets[0], before = tickets[1], isStep = k.lt(step, steps);
    findRowsInPair(item, slots, step);
    t.barrier();
    k.ifThen(isStep, [&] { gatherKeysInPair(step, ticket); });
    k.ifThen(k.lt(k.i32(0), step), [&] { gatherValuesInPair(k.sub(step, one), before); });
    k.ifThen(isStep, [&] {
      t.acquire(numberPipe, ticket);
      loadNumbers(slots, step, slots.isContiguous() ? lookUp(item, slots, step) : Lookup(), slotOf(ticket, plan.stages));
      t.publish(numberPipe, ticket);
    });
    t.barrier(); // the rows of the step before have been read
    return {next(ticket, plan.stages), ticket};
  })[1];
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

void AttendKernel::beginScoresInPair(Value queryTile, Value keyTicket, Value scoreTicket) {
  int64_t pieces = plan.keyPieces();
  t.acquire(scorePipe, scoreTicket, /*inPair=*/true);
  Value scores = t.slot(tensors[0], slotOf(scoreTicket, plan.scoreSlots));
  for (int64_t i = 0; i < pieces; ++i) {
    Value at = k.add(k.mul(keyTicket, k.i32(pieces)), k.i32(i));
    t.await(keys.pipe, at, /*inPair=*/true);
    t.mmaTensor(t.columns(queryTile, i * piece, piece), t.slot(keys.ring, slotOf(at, plan.stages * pieces)), /*transposed=*/true, scores, k.bit(i > 0));
    t.release(keys.pipe, at, /*afterProducts=*/true);
  }
  t.publish(scorePipe, scoreTicket, /*afterProducts=*/true);
}

void AttendKernel::beginOutputsInPair(Value keyTicket, Value weightTicket, Value adds) {
  int64_t pieces = plan.valuePieces();
  t.await(weightPipe, weightTicket, /*inPair=*/true);
  for (int64_t i = 0; i < pieces; ++i) {
    Value at = k.add(k.mul(keyTicket, k.i32(pieces)), k.i32(i));
    t.await(values.pipe, at, /*inPair=*/true);
    t.mmaTensor(t.columns(weightTile, i * piece, piece), t.slot(values.ring, slotOf(at, plan.stages * pieces)), /*transposed=*/false, outputTensor,
                i == 0 ? adds : k.bit(true));
    t.release(values.pipe, at, /*afterProducts=*/true);
  }
  t.release(weightPipe, weightTicket, /*afterProducts=*/true);
}
