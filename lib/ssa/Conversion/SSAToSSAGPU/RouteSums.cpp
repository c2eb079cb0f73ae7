//===- RouteSums.cpp - Softmax rows of route on tensor cores --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "RouteTiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::ssa;

/// Joins a tile's scores with maximum and sum of the columns before.
SmallVector<Value> RouteTileKernel::addToSums(TileEmitter &t, Value scores, ValueRange state) {
  Value max = arith::MaximumFOp::create(builder, loc, state[0], t.reduce(ssa_gpu::RowReduction::max, scores));
  // As long as there is nothing, differences are taken from 0: -inf - -inf is NaN.
  Value isNone = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, max, rowsOf(t, -infinity));
  Value reference = select(isNone, rowsOf(t, 0), max);
  Value rescale = exp2(*this, fmul(fsub(state[0], reference), rowsOf(t, log2OfE)));
  Value weights = exp2(*this, fmul(fsub(scores, t.broadcast(reference, tileColumns)), splat(t, log2OfE)));
  return {max, fadd(fmul(state[1], rescale), t.reduce(ssa_gpu::RowReduction::sum, weights))};
}

/// The tiles of columns of a part; those after the last that is seen have nothing to add.
std::pair<Value, Value> RouteTileKernel::getColumnTiles(Value part) {
  Value columns = dim(get(RouteArgument::scores), 3);
  Value begin = mul(part, index(tilesPerPart)), end = min(add(begin, index(tilesPerPart)), ceilDiv(columns, index(tileColumns)));
  if (c.op.getWithin()) // without keys no column stands for any
    return {begin, select(eq(dim(get(RouteArgument::key), 2), index(0)), begin, end)};
  VisibleBlocks last(*this, c, min(add(firstRow, index(tiling.queries - 1)), lastRow));
  Value limit = last.sinkEnd ? max(last.end, last.sinkEnd) : last.end;
  return {begin, min(end, ceilDiv(toIndex(limit), index(tileColumns)))};
}

/// Writes maximum and sum of a part.
void RouteTileKernel::storeSums(TileEmitter &t, ValueRange state, Value chunk, Value part) {
  for (auto [a, v] : {std::pair(RouteArgument::partMaxima, state[0]), std::pair(RouteArgument::partSums, state[1])}) {
    BufferView view(*this, get(a));
    t.storeEntries(v, view.buffer, [&](Value row) -> RowPlace {
      Row r = getRow(row, chunk);
      return {view.getBegin(*this, {batch, r.head, r.m, part}), r.exists};
    });
  }
}

/// An item is a tile of rows of one chunk, and a part of their columns.
void RouteTileKernel::buildSumsItem(Value item) {
  TileEmitter t(*this, tileRows);
  Value parts = dim(get(RouteArgument::partSums), 3);
  auto split = [&](Value count) {
    Value part = rem(item, count);
    item = div(item, count);
    return part;
  };
  Value part = split(parts), chunk = toI32(split(index(chunks)));
  decodeRows(item);
  int64_t stages = plan.bytes(1, 2) <= plan.sharedBytes ? 2 : 1;
  prepareItem(t, 1, stages);

  std::pair<Value, Value> tiles = getColumnTiles(part);
  Value begin = tiles.first, end = tiles.second;
  Value zero = i32(0), ringSize = i32(stages), steps = toI32(max(sub(end, begin), index(0)));
  auto loadStep = [&](Value step) {
    ifThen(lt(step, steps), [&] {
      Value stage = rem(step, ringSize), first = mul(add(begin, toIndex(step)), index(tileColumns));
      fillNumbers(t, t.slot(numberRing, stage), first);
      loadKeys(t, chunk, stage, first);
    });
    t.commitCopies();
  };
  gpu::BarrierOp::create(builder, loc); // what the last item left in shared memory has been read
  fillVisible(t);
  loadQueries(t, chunk, zero);
  if (stages > 1)
    loadStep(zero);
  else
    t.commitCopies();
  t.waitCopies(0);
  if (queryHigh) {
    orderQueries(t, zero);
    t.waitCopies(0);
  }
  SmallVector<Value> state = loop(zero, steps, i32(1), {rowsOf(t, -infinity), rowsOf(t, 0)}, [&](Value step, ValueRange carried) {
    Value stage = rem(step, ringSize);
    if (stages > 1)
      t.waitCopies(0);
    else
      gpu::BarrierOp::create(builder, loc);
    loadStep(stages > 1 ? add(step, i32(1)) : step);
    if (stages == 1)
      t.waitCopies(0);
    if (keyHigh) {
      orderKeys(t, stage);
      t.waitCopies(stages - 1);
    }
    Value numbers = t.slot(numberRing, stage);
    Value scores = getTileScores(t, multiply(t, zero, stage), chunk, numbers);
    return addToSums(t, select(getVisibleTile(t, numbers), scores, splat(t, -infinity)), carried);
  });
  storeSums(t, state, chunk, part);
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

void RouteTileKernel::buildSums(Value condition) {
  Emitter e(c.host.builder, loc);
  Value query = c.getHost(RouteArgument::query), parts = e.dim(c.getHost(RouteArgument::partSums), 3);
  Value tiles = e.mul(e.mul(e.dim(query, 0), e.index(c.cells * chunks)), countRowTiles(e, e.dim(query, 2)));
  Value items = e.mul(tiles, parts);
  forEachItem(condition ? e.select(condition, items, e.index(0)) : items, [&](Value item) { buildSumsItem(item); });
  finish();
}

/// Joins the parts of each row of a softmax: a thread has a row.
void ssa::joinRouteParts(RouteContext &c) {
  constexpr int64_t threads = 128;
  KernelBuilder k(c.host.builder, c.op, "ssa_route_join", threads, c.arguments);
  Emitter e(c.host.builder, c.op.getLoc());
  Value query = c.getHost(RouteArgument::query);
  Value total = e.mul(e.mul(e.dim(query, 0), e.index(c.heads)), e.dim(query, 2));
  k.forEachItem(e.ceilDiv(total, e.index(threads)), [&](Value item) {
    Value rows = k.dim(c.get(k, RouteArgument::query), 2), batches = k.dim(c.get(k, RouteArgument::query), 0);
    Value number = k.add(k.mul(item, k.index(threads)), k.threadId());
    k.ifThen(k.lt(number, k.mul(k.mul(batches, k.index(c.heads)), rows)), [&] {
      Value m = k.rem(number, rows), rest = k.div(number, rows);
      Value head = k.rem(rest, k.index(c.heads)), batch = k.div(rest, k.index(c.heads));
      Value maxima = c.get(k, RouteArgument::partMaxima), sums = c.get(k, RouteArgument::partSums);
      SmallVector<Value> initial = {k.f32(-std::numeric_limits<double>::infinity()), k.f32(0)};
      SmallVector<Value> state = k.loop(k.index(0), k.dim(sums, 3), k.index(1), initial, [&](Value part, ValueRange carried) {
        return joinSums(k, carried, {k.load(maxima, {batch, head, m, part}), k.load(sums, {batch, head, m, part})});
      });
      auto [reference, factor] = getReferenceAndFactor(k, state[0], state[1]);
      k.store(reference, c.get(k, RouteArgument::maxima), {batch, head, m});
      k.store(factor, c.get(k, RouteArgument::factors), {batch, head, m});
    });
  });
  k.finish();
}
