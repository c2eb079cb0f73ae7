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



// Weights and sums are relative to a reference that a row has from the first step in which it sees something, that step's maximum. It is raised where a sum
// becomes so great that it might overflow, so that steps need no maxima, whose exchange between lanes all weights would wait for.
static constexpr double greatestSum = 0x1p32;

RouteTileKernel::Sums RouteTileKernel::beginSums(TileEmitter &t) {
  return {rowsOf(t, -infinity), rowsOf(t, 0), splat(t, sumColumns, 0), bit(true)};
}

/// With references that are maxima where rows have none yet, or `attempt` exceeds what it may be. What a row's reference is depends on the row alone.
RouteTileKernel::Sums RouteTileKernel::raiseReferences(TileEmitter &t, Value scores, double factor, const Sums &sums, Value attempt) {
  auto compare = [&](arith::CmpFPredicate predicate, Value a, double b) { return arith::CmpFOp::create(builder, loc, predicate, a, rowsOf(t, b)).getResult(); };
  Value isNone = compare(arith::CmpFPredicate::OEQ, sums.reference, -infinity);
  Value exceeds = compare(arith::CmpFPredicate::UGE, t.reduce(ssa_gpu::RowReduction::max, attempt), greatestSum);
  Value tileMax = fmul(t.reduce(ssa_gpu::RowReduction::max, scores), rowsOf(t, factor));
  Value raised = arith::MaximumFOp::create(builder, loc, sums.reference, tileMax);
  Value reference = select(either(isNone, exceeds), raised, sums.reference);
  // As long as there is nothing, differences are taken from 0: -inf - -inf is NaN.
  Value isSome = compare(arith::CmpFPredicate::UNE, reference, -infinity);
  Value origin = select(isSome, reference, rowsOf(t, 0)), rescale = exp2(*this, fsub(sums.reference, origin));
  return {reference, arith::NegFOp::create(builder, loc, origin), fmul(sums.sum, t.broadcast(rescale, sumColumns)), eq(t.warpAll(isSome), bit(false))};
}

/// Adds a tile's scores.
RouteTileKernel::Sums RouteTileKernel::addToSums(TileEmitter &t, Value scores, double factor, const Sums &sums) {
  SmallVector<Value> initial = sums.getValues();
  initial.push_back(sums.sum);
  SmallVector<Value> last = repeatWhile(initial, [&](ValueRange carried) {
    Sums before(carried);
    auto raise = [&] { return raiseReferences(t, scores, factor, before, carried.back()).getValues(); };
    Sums now(ifElse(before.isOpen, carried.drop_back().getTypes(), raise, [&] { return before.getValues(); }));
    Value weights = getExponent(t, scores, factor, t.broadcast(now.negated, keys));
    Value sum = fadd(now.sum, t.fold(ssa_gpu::RowReduction::sum, weights, keys, sumColumns));
    Value fits = t.warpAll(arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, sum, splat(t, sumColumns, greatestSum)));
    Value again = eq(either(fits, before.isOpen), bit(false));
    now.isOpen = either(now.isOpen, again);
    SmallVector<Value> next = now.getValues();
    next.push_back(sum);
    return std::pair(again, next);
  });
  Sums after(last);
  after.sum = last.back();
  return after;
}

/// The keys that all queries see, from the first to the one behind the last (i32). Numbers ascend, and later queries do not see less far.
std::pair<Value, Value> RouteTileKernel::getSeen(TileEmitter &t) {
  Value first = visibleArrays.begin ? t.loadEntry(visibleArrays.begin, max(lastQuery, i32(0))) : i32(0);
  return {first, t.loadEntry(visibleArrays.end, i32(0))};
}

/// The scores with -inf where a key is not seen. Most steps are seen as a whole.
Value RouteTileKernel::hide(TileEmitter &t, Value scores, const Step &step, std::pair<Value, Value> seen) {
  Value isSeen = both(le(seen.first, getNumber(t, step, i32(0))), lt(getNumber(t, step, i32(keys - 1)), seen.second));
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

/// Writes reference and sum of a part.
void RouteTileKernel::storeSums(TileEmitter &t, const Sums &sums, Value chunk, Value part) {
  Value sum = t.reduce(ssa_gpu::RowReduction::sum, sums.sum);
  for (auto [a, v] : {std::pair(RouteArgument::partMaxima, sums.reference), std::pair(RouteArgument::partSums, sum)}) {
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
  Value inTile = split(item, parts);
  constexpr int64_t hashBits = 16, golden = 40503; // of 2^16
  Value hash = rem(mul(item, index(golden)), index(int64_t(1) << hashBits)), first = div(mul(hash, parts), index(int64_t(1) << hashBits));
  Value part = add(inTile, first), chunk = toI32(split(item, index(plan.chunks)));
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
  SmallVector<Value> state = loop(zero, steps, i32(1), beginSums(t).getValues(), [&, chunk = chunk](Value number, ValueRange carried) {
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
    return addToSums(t, hide(t, scores, step, getSeen(t)), factor, Sums(carried)).getValues();
  });
  storeSums(t, Sums(state), chunk, part);
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
      Value m = k.split(number, rows), head = k.split(number, k.index(c.heads)), batch = number;
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
