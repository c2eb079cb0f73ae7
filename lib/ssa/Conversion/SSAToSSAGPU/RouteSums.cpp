//===- RouteSums.cpp - Softmax rows of route on tensor cores --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A thread adds up for itself: the sum of a row has eight columns, of which each is one thread's. Sums and maxima are of powers of two.
//
//===----------------------------------------------------------------------===//

#include "RouteTiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::ssa;



/// Joins a tile's scores with maximum and sum of the columns before.
SmallVector<Value> RouteTileKernel::addToSums(TileEmitter &t, Value scores, double factor, ValueRange state) {
  Value tileMax = fmul(t.reduce(ssa_gpu::RowReduction::max, scores), rowsOf(t, factor));
  Value max = arith::MaximumFOp::create(builder, loc, state[0], tileMax);
  // As long as there is nothing, differences are taken from 0: -inf - -inf is NaN.
  Value isNone = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, max, rowsOf(t, -infinity));
  Value reference = select(isNone, rowsOf(t, 0), max);
  Value rescale = exp2(*this, fsub(state[0], reference));
  Value negated = arith::NegFOp::create(builder, loc, reference);
  Value weights = getExponent(t, scores, factor, t.broadcast(negated, keys));
  Value sum = t.fold(ssa_gpu::RowReduction::sum, weights, keys, sumColumns);
  return {max, math::FmaOp::create(builder, loc, state[1], t.broadcast(rescale, sumColumns), sum)};
}

/// The scores with -inf where a key is not seen. Most steps are seen as a whole.
Value RouteTileKernel::hide(TileEmitter &t, Value scores, const Step &step) {
  // Numbers ascend, and later queries do not see less far.
  auto first = [&](Value array) { return t.loadEntry(array, i32(0)); };
  auto last = [&](Value array) { return t.loadEntry(array, max(lastQuery, i32(0))); };
  Value isSeen = lt(getNumber(t, step, i32(keys - 1)), first(visibleArrays.end));
  if (visibleArrays.begin)
    isSeen = both(isSeen, ge(getNumber(t, step, i32(0)), last(visibleArrays.begin)));
  auto hidden = [&]() -> SmallVector<Value> {
    auto ofQueries = [&](Value array) {
      return array ? ofPairs(t, i32Type(), [&](Value pair) { return t.loadEntry(array, rem(pair, i32(plan.queries))); }) : Value();
    };
    VisibleBlocks visible;
    visible.begin = ofQueries(visibleArrays.begin);
    visible.end = ofQueries(visibleArrays.end);
    visible.sinkEnd = ofQueries(visibleArrays.sinkEnd);
    Value numbers = ofKeys(t, i32Type(), [&](Value entry) { return getNumber(t, step, entry); });
    return {select(visible.contains(*this, numbers), scores, splat(t, keys, -infinity))};
  };
  return ifElse(isSeen, scores.getType(), [&] { return SmallVector<Value>{scores}; }, hidden)[0];
}

/// Writes maximum and sum of a part.
void RouteTileKernel::storeSums(TileEmitter &t, ValueRange state, Value chunk, Value part) {
  Value sum = t.reduce(ssa_gpu::RowReduction::sum, state[1]);
  for (auto [a, v] : {std::pair(RouteArgument::partMaxima, state[0]), std::pair(RouteArgument::partSums, sum)}) {
    BufferView view(*this, get(a));
    t.storeEntries(v, view.buffer, [&](Value row) -> RowPlace {
      Pair p = getPair(row, chunk);
      return {view.getBegin(*this, {batch, p.head, p.m, part}), p.exists};
    });
  }
}

/// An item is a tile of rows of one chunk, and a part of their columns: which chunk and part it is. Under a causal mask the last parts have least to do,
/// and the step from an item of a block to its next may be a multiple of the parts. So that a block does not have the same part of all its tiles, the parts
/// of a tile begin with one that differs from tile to tile as numbers drawn at random do.
std::pair<Value, Value> RouteTileKernel::decodeSums(Value item) {
  Value parts = dim(get(RouteArgument::partSums), 3);
  auto split = [&](Value count) {
    Value part = rem(item, count);
    item = div(item, count);
    return part;
  };
  Value inTile = split(parts);
  constexpr int64_t hashBits = 16, golden = 40503; // of 2^16
  Value hash = rem(mul(item, index(golden)), index(int64_t(1) << hashBits)), first = div(mul(hash, parts), index(int64_t(1) << hashBits));
  Value part = add(inTile, first), chunk = toI32(split(index(plan.chunks)));
  part = select(lt(part, parts), part, sub(part, parts));
  decodeRows(item);
  int64_t stepsPerPart = columnsPerPart / keys;
  Value begin = mul(part, index(stepsPerPart)), columns = ceilDiv(c.getColumns(*this), index(keys));
  std::tie(beginStep, endStep) = getSteps(begin, min(add(begin, index(stepsPerPart)), columns));
  return {chunk, part};
}

void RouteTileKernel::buildSumsItem(Value item) {
  TileEmitter t = getTiles();
  auto [chunk, part] = decodeSums(item);
  int64_t stages = plan.sumsStages;
  allocate(t, 1, stages, 1);

  // Steps count from that of the part's first column.
  Value zero = i32(0), steps = sub(endStep, beginStep);
  auto stepOf = [&](Value number) { return Step{toIndex(mul(add(beginStep, number), i32(keys))), rem(number, i32(stages))}; };
  auto loadStep = [&, chunk = chunk](Value number) {
    ifThen(lt(number, steps), [&] { loadKeys(t, chunk, stepOf(number)); });
    t.commitCopies();
  };
  gpu::BarrierOp::create(builder, loc); // what the last item left in shared memory has been read
  ifThen(lt(zero, steps), [&, chunk = chunk] {
    fillVisible(t);
    fillPairs(t, chunk, zero);
    loadQueries(t, chunk, zero);
    t.commitCopies();
    if (queryHigh) {
      t.waitCopies(0);
      t.order(t.slot(queryLow, zero), t.slot(queryHigh, zero));
    }
    if (stages > 1)
      loadStep(zero);
  });
  SmallVector<Value> initial = {rowsOf(t, -infinity), splat(t, sumColumns, 0)};
  SmallVector<Value> state = loop(zero, steps, i32(1), initial, [&, chunk = chunk](Value number, ValueRange carried) {
    if (stages > 1) {
      t.waitCopies(0);
      loadStep(add(number, i32(1)));
    } else {
      gpu::BarrierOp::create(builder, loc); // the last step's keys have been read
      loadStep(number);
      t.waitCopies(0);
    }
    Step step = stepOf(number);
    if (keyHigh) {
      t.order(t.slot(keyLow, step.stage), t.slot(keyHigh, step.stage));
      t.waitCopies(stages - 1);
    }
    auto [scores, factor] = getScores(t, multiply(t, zero, step.stage), chunk, step);
    return addToSums(t, hide(t, scores, step), factor, carried);
  });
  storeSums(t, state, chunk, part);
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

void ssa::addPartArguments(RouteContext &c) {
  auto parts = [&](Emitter &e) { return e.ceilDiv(c.getColumns(e), e.index(columnsPerPart)); };
  c.addArgument(RouteArgument::partMaxima, c.allocatePerRow(parts));
  c.addArgument(RouteArgument::partSums, c.allocatePerRow(parts));
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
      k.store(getLse(k, state[0], state[1]), c.get(k, RouteArgument::lse), {batch, head, m});
    });
  });
  k.finish();
}
