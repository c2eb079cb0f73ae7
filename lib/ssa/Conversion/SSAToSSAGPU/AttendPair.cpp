//===- AttendPair.cpp - sparse_attend with tcgen05 in pairs of blocks ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Two blocks have the 128 rows of a tile together, 64 each, with their outputs in full width. Products are those of both: each block has half of the
// keys of a step, for scores, and half of the columns of values, for outputs. What a row of scores or outputs is lies in two halves of the lanes, so two
// threads have a row; they exchange maxima and sums.
//
// Values are the first columns of keys, so half of a block's values of its own keys are there already: they are used where they are. Operands of a product
// lie at the same place in both blocks, which is why only as many columns can stay as the other block replaces: where one has columns of its own keys that
// are its values as well, the other has columns of its keys that it needs for scores alone. Once scores are made these become its values of the first one's
// keys. That place takes a step more than the rest, and of it:
//
//                    first block                                  second block
//   half 0   keys 0 .. 63,  columns 0 .. 127, for both   |  keys 64 .. 127, columns 0 .. 127,   then keys 0 .. 63,   columns 256 .. 383
//   half 1   keys 0 .. 63,  columns 256 .. 383, then     |  keys 64 .. 127, columns 256 .. 383, for both
//            keys 64 .. 127, columns 0 .. 127            |
//
// The other columns of keys are pieces of 64, the other columns of values a half of the keys each; both are refilled while products read what is behind them.
// That all columns stay in place would save more copies, but then no keys could come while outputs are made.
//
//===----------------------------------------------------------------------===//

#include "AttendKernel.h"

using namespace mlir;
using namespace mlir::ssa;

static constexpr int64_t piece = ScheduleAttr::pieceOfPair;
static constexpr unsigned halves = 2;

/// Where the columns of keys begin that only scores read, piece by piece.
SmallVector<int64_t> AttendKernel::getKeyPieces() const {
  SmallVector<int64_t> pieces;
  for (int64_t column = 0; column < plan.dim; column += piece)
    if (column >= plan.valueDim || column % plan.columnsOfThread() >= plan.columnsInPlace())
      pieces.push_back(column);
  return pieces;
}

void AttendKernel::allocatePair() {
  int64_t producers = plan.producers() / 32, warps = plan.tileRows / 32, issuer = 1, rows = plan.rowsOfBlock(), ofHalf = plan.tileKeys / halves;
  int64_t keySlots = plan.stages * getKeyPieces().size(), valueSlots = plan.columnsApart() > 0 ? plan.stages * halves : 0, sharedSlots = (plan.stages + 1) * halves;
  Type i32 = k.builder.getI32Type(), f32 = k.builder.getF32Type();
  auto allocatePipe = [&](Rows &rows, int64_t slots) { rows.pipe = slots > 0 ? t.allocPipe(slots, producers, issuer, /*pair=*/true) : Value(); };
  queryRing = t.alloc({plan.querySlots, rows, plan.dim}, elementType);
  weightTile = t.alloc({rows, plan.tileKeys}, elementType);
  inPlace.ring = t.alloc({sharedSlots, ofHalf, plan.columnsInPlace()}, elementType);
  keys.ring = keySlots > 0 ? t.alloc({keySlots, ofHalf, piece}, elementType) : Value();
  values.ring = valueSlots > 0 ? t.alloc({valueSlots, ofHalf, plan.columnsApart()}, elementType) : Value();
  keys.rowRing = t.alloc({2, plan.tileKeys}, i32);
  numberRings = allocNumbers(plan.stages);
  scratch = t.alloc({1, plan.groups * rows}, f32);
  allocateHandOver();
  queryPipe = t.allocPipe(plan.querySlots, producers, issuer, /*pair=*/true);
  allocatePipe(inPlace, sharedSlots);
  allocatePipe(keys, keySlots);
  allocatePipe(values, valueSlots);
  numberPipe = t.allocPipe(plan.stages, producers, warps);
  scorePipe = t.allocPipe(plan.scoreSlots, issuer, warps, /*pair=*/true);
  weightPipe = t.allocPipe(plan.weightSlots, warps, issuer, /*pair=*/true);
  outputPipe = t.allocPipe(1, issuer, warps, /*pair=*/true);
  SmallVector<std::pair<SmallVector<int64_t>, Type>> tiles = {{{plan.scoreSlots, rows, plan.tileKeys}, f32}, {{rows, halves * plan.columnsInPlace()}, f32}};
  if (valueSlots > 0)
    tiles.push_back({{rows, halves * plan.columnsApart()}, f32});
  tensors = t.allocTensors(tiles);
  outputParts = {{tensors[1], 0, plan.columnsInPlace()}};
  if (valueSlots > 0)
    outputParts.push_back({tensors[2], plan.columnsInPlace(), plan.columnsApart()});
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// The ticket of a half of what is in place: keys are handed over first, values then, so each has a parity of its own.
Value AttendKernel::getPlaceOfHalf(Value ticket, unsigned half, bool ofValues) {
  int64_t steps = plan.stages + 1;
  return k.add(k.mul(k.rem(ticket, k.i32(steps)), k.i32(halves)), k.i32(half + (ofValues ? halves * steps : 0)));
}

/// Columns from `column` on of half of the keys of a step, from entry `first` on; with `isCopied`, only if that is true: else what is there stays.
void AttendKernel::gatherInPair(const Rows &rows, Value step, Value first, Value column, Value ticket, Value isCopied) {
  int64_t slots = cast<ssa_gpu::PipeType>(rows.pipe.getType()).getSlots();
  Value numbers = t.slot(keys.rowRing, k.rem(step, k.i32(2)));
  t.acquire(rows.pipe, ticket);
  auto gather = [&] {
    t.gatherBox(sources.front().keys.map, column, t.slot(rows.ring, slotOf(ticket, slots)), rows.pipe, ticket, [&](Value row) { return t.loadEntry(numbers, k.add(first, row)); });
  };
  isCopied ? k.ifThen(isCopied, gather) : gather();
  t.publish(rows.pipe, ticket);
}

/// The keys that this block has of a step.
void AttendKernel::gatherKeysInPair(Value step, Value ticket) {
  Value first = k.mul(k.toI32(k.rankInPair()), k.i32(plan.tileKeys / halves)), turn = k.rem(ticket, k.i32(2 * plan.stages));
  SmallVector<int64_t> pieces = getKeyPieces();
  for (auto [i, column] : llvm::enumerate(pieces))
    gatherInPair(keys, step, first, k.i32(column), k.add(k.mul(turn, k.i32(pieces.size())), k.i32(i)));
  for (unsigned half = 0; half < halves; ++half)
    gatherInPair(inPlace, step, first, k.i32(half * plan.columnsOfThread()), getPlaceOfHalf(ticket, half, /*ofValues=*/false));
}

/// This block's columns of the values of a step, but for those that are there.
void AttendKernel::gatherValuesInPair(Value step, Value ticket) {
  Value rank = k.toI32(k.rankInPair()), column = k.mul(rank, k.i32(plan.columnsOfThread())), turn = k.rem(ticket, k.i32(2 * plan.stages));
  auto firstOf = [&](unsigned half) { return k.i32(half * plan.tileKeys / halves); };
  for (unsigned half = 0; half < halves; ++half)
    gatherInPair(inPlace, step, firstOf(half), column, getPlaceOfHalf(ticket, half, /*ofValues=*/true), k.ne(rank, k.i32(half)));
  for (unsigned half = 0; half < halves && plan.columnsApart() > 0; ++half)
    gatherInPair(values, step, firstOf(half), k.add(column, k.i32(plan.columnsInPlace())), k.add(k.mul(turn, k.i32(halves)), k.i32(half)));
}

/// All steps of an item; the next ticket.
Value AttendKernel::produceStepsInPair(const Item &item, const Slots &slots, Value steps, Value first) {
  Value one = k.i32(1);
  return k.loop(k.i32(0), k.add(steps, one), one, {first, first}, [&](Value step, ValueRange tickets) -> SmallVector<Value> {
    Value ticket = tickets[0], before = tickets[1], isStep = k.lt(step, steps);
    findRows(item, slots, step, keys, t.slot(keys.rowRing, k.rem(step, k.i32(2))));
    t.barrier();
    k.ifThen(isStep, [&] { gatherKeysInPair(step, ticket); });
    k.ifThen(k.lt(k.i32(0), step), [&] { gatherValuesInPair(k.sub(step, one), before); });
    k.ifThen(isStep, [&] {
      Value turn = k.rem(ticket, k.i32(2 * plan.stages));
      t.acquire(numberPipe, turn);
      loadNumbers(slots, step, slots.isContiguous() ? lookUp(item, slots, step) : Lookup(), getNumbers(slotOf(turn, plan.stages)));
      t.publish(numberPipe, turn);
    });
    t.barrier(); // the rows of the step before have been read
    return {next(ticket, plan.keyTickets()), ticket};
  })[1];
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

void AttendKernel::beginScoresInPair(Value queryTile, Value keyTicket, Value scoreTicket) {
  t.acquire(scorePipe, scoreTicket, /*inPair=*/true);
  Value scores = t.slot(tensors[0], slotOf(scoreTicket, plan.scoreSlots)), adds = k.bit(false);
  auto begin = [&](const Rows &rows, int64_t slots, Value ticket, int64_t column, int64_t columns) {
    t.await(rows.pipe, ticket, /*inPair=*/true);
    t.mmaTensor(t.columns(queryTile, column, columns), t.slot(rows.ring, slotOf(ticket, slots)), /*transposed=*/true, scores, adds);
    t.release(rows.pipe, ticket, /*afterProducts=*/true);
    adds = k.bit(true);
  };
  Value turn = k.rem(keyTicket, k.i32(2 * plan.stages));
  SmallVector<int64_t> pieces = getKeyPieces();
  for (auto [i, column] : llvm::enumerate(pieces))
    begin(keys, plan.stages * pieces.size(), k.add(k.mul(turn, k.i32(pieces.size())), k.i32(i)), column, piece);
  for (unsigned half = 0; half < halves; ++half)
    begin(inPlace, (plan.stages + 1) * halves, getPlaceOfHalf(keyTicket, half, /*ofValues=*/false), half * plan.columnsOfThread(), plan.columnsInPlace());
  t.publish(scorePipe, scoreTicket, /*afterProducts=*/true);
}

void AttendKernel::beginOutputsInPair(Value keyTicket, Value weightTicket, Value adds) {
  t.await(weightPipe, weightTicket, /*inPair=*/true);
  auto begin = [&](const Rows &rows, int64_t slots, Value ticket, unsigned half, const OutputPart &part) {
    int64_t ofHalf = plan.tileKeys / halves;
    t.await(rows.pipe, ticket, /*inPair=*/true);
    t.mmaTensor(t.columns(weightTile, half * ofHalf, ofHalf), t.slot(rows.ring, slotOf(ticket, slots)), /*transposed=*/false, part.tensor,
                half == 0 ? adds : k.bit(true));
    t.release(rows.pipe, ticket, /*afterProducts=*/true);
  };
  Value turn = k.rem(keyTicket, k.i32(2 * plan.stages));
  for (unsigned half = 0; half < halves; ++half) {
    begin(inPlace, (plan.stages + 1) * halves, getPlaceOfHalf(keyTicket, half, /*ofValues=*/true), half, outputParts[0]);
    if (plan.columnsApart() > 0)
      begin(values, plan.stages * halves, k.add(k.mul(turn, k.i32(halves)), k.i32(half)), half, outputParts[1]);
  }
  t.release(weightPipe, weightTicket, /*afterProducts=*/true);
}
