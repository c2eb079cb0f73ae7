//===- RouteScores.cpp - Scores of route on tensor cores ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Copies come one turn ahead of the products that read them. Where all queries of the tile stay in shared memory, and chunks have their
// keys in common, a turn is a step; else it is a chunk of a step.
//
//===----------------------------------------------------------------------===//

#include "RouteTiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::ssa;

namespace {

/// Which copies a turn waits for.
struct Turns {
  explicit Turns(const RoutePlan &plan)
      : ownKeys(plan.chunks > plan.chunksPerUnit), perStep(plan.keepsQueries && !ownKeys ? 1 : plan.chunks),
        isAhead(plan.keyStages > 1 && (plan.keepsQueries || plan.queryStages > 1)) {}

  bool ownKeys;    // chunks have key heads of their own
  int64_t perStep; // turns
  bool isAhead;    // there is room for the copies of the next turn
};

} // namespace

/// Starts the copies of a turn (i32), if there is one.
void RouteTileKernel::startTurn(TileEmitter &t, Value turn) {
  Turns turns(plan);
  Value number = div(turn, i32(turns.perStep)), chunk = rem(turn, i32(turns.perStep));
  ifThen(lt(number, endStep), [&] {
    Step step{toIndex(mul(number, i32(keys))), rem(turns.ownKeys ? turn : number, i32(plan.keyStages))};
    if (turns.ownKeys || turns.perStep == 1)
      loadKeys(t, chunk, step);
    else
      ifThen(eq(chunk, i32(0)), [&] { loadKeys(t, chunk, step); });
    if (!plan.keepsQueries)
      loadQueries(t, chunk, rem(turn, i32(plan.queryStages)));
  });
  t.commitCopies();
}

/// Waits for the copies of a turn, and starts those of the next.
void RouteTileKernel::takeTurn(TileEmitter &t, Value turn) {
  Turns turns(plan);
  if (turns.isAhead) {
    t.waitCopies(0);
    startTurn(t, add(turn, i32(1)));
  } else {
    gpu::BarrierOp::create(builder, loc); // the last turn's tiles have been read
    startTurn(t, turn);
    t.waitCopies(0);
  }
  if (!keyHigh)
    return;
  Value number = div(turn, i32(turns.perStep)), chunk = rem(turn, i32(turns.perStep));
  Value stage = rem(turns.ownKeys ? turn : number, i32(plan.keyStages)), isNew = turns.ownKeys ? bit(true) : eq(chunk, i32(0));
  ifThen(isNew, [&] { t.order(t.slot(keyLow, stage), t.slot(keyHigh, stage)); });
  if (!plan.keepsQueries) {
    Value queryStage = rem(turn, i32(plan.queryStages));
    t.order(t.slot(queryLow, queryStage), t.slot(queryHigh, queryStage));
  }
  t.waitCopies(turns.isAhead ? 1 : 0);
}

/// Scores of a chunk, with the heads joined, and with those of the chunks before.
Value RouteTileKernel::joinHeads(TileEmitter &t, Value queryStage, Value chunk, const Step &step, Value before) {
  return joinProducts(t, multiply(t, queryStage, step.stage), chunk, step, before);
}

/// How a value of a score region follows a positive factor of the product.
enum class Follows { constant, proportional, zero, otherwise };

static Follows getFollows(Value value, Value product, unsigned depth = 0) {
  constexpr unsigned maxDepth = 16;
  Operation *op = value.getDefiningOp();
  if (value == product)
    return Follows::proportional;
  if (matchPattern(value, m_AnyZeroFloat()))
    return Follows::zero;
  if (!op || op->getParentRegion() != product.getParentRegion())
    return Follows::constant;
  if (depth == maxDepth || op->getNumRegions() != 0)
    return Follows::otherwise;
  SmallVector<Follows> of = llvm::map_to_vector(op->getOperands(), [&](Value v) { return getFollows(v, product, depth + 1); });
  auto are = [&](std::initializer_list<Follows> some) { return llvm::all_of(of, [&](Follows f) { return llvm::is_contained(some, f); }); };
  if (are({Follows::constant, Follows::zero}))
    return Follows::constant;
  bool joins = isa<arith::AddFOp, arith::SubFOp, arith::NegFOp, arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp>(op);
  if (joins && are({Follows::proportional, Follows::zero}))
    return Follows::proportional;
  bool isFactor = isa<arith::MulFOp>(op) && llvm::is_contained(of, Follows::constant);
  return isFactor && are({Follows::proportional, Follows::constant}) ? Follows::proportional : Follows::otherwise;
}

bool RouteTileKernel::isProportional() const {
  if (c.op.getScore().empty())
    return true;
  Block &region = c.op.getScore().front();
  return getFollows(region.getTerminator()->getOperand(0), region.getArgument(0)) == Follows::proportional;
}

/// True if scales can come after heads are joined.
bool RouteTileKernel::scalesLast() const { return c.op.getScales() && !c.isSoftmax() && isProportional(); }

/// `max(x, 0)` takes two cycles of an instruction's, `x + |x|`, which is twice as much, takes one. Products of f8 are never infinite, and far from it, so
/// that a score which is proportional to them is exactly doubled if all that it sees of the product is doubled.
void RouteTileKernel::doubleScore() {
  constexpr double greatest = 448, limit = 0x1p100;
  Region &score = c.op.getScore();
  if (!isa<Float8E4M3FNType>(plan.elementType) || !scalesLast() || score.empty() || greatest * greatest * c.dim * std::abs(c.scale) > limit)
    return;
  auto isRelu = [&](Operation *op) { return isa<arith::MaximumFOp>(op) && llvm::any_of(op->getOperands(), [](Value v) { return matchPattern(v, m_AnyZeroFloat()); }); };
  if (!llvm::all_of(score.getArgument(0).getUsers(), isRelu))
    return;
  IRMapping mapping;
  score.cloneInto(&doubledScore, mapping);
  Value x = doubledScore.getArgument(0);
  for (Operation *user : llvm::make_early_inc_range(x.getUsers())) {
    OpBuilder at(user);
    Value magnitude = math::AbsFOp::create(at, user->getLoc(), x);
    user->replaceAllUsesWith(arith::AddFOp::create(at, user->getLoc(), x, magnitude));
    user->erase();
  }
}

/// Where scales come last. With a negative one scores are another function of the product, and with an infinite one the order counts: then
/// every product has its own.
RouteTileKernel::KeyScales RouteTileKernel::getKeyScales(TileEmitter &t, const Step &step) {
  if (!scalesLast() || plan.family != ssa_gpu::Family::wgmma || (keysFirst && foldedColumns() != plan.queries * plan.groups))
    return {};
  // All warps look at the scales of all keys, so that they go the same way: products are made on it together.
  Value fit = bit(true), ring = t.slot(scaleRing, step.stage);
  for (int64_t first = 0; first < keys; first += warpSize) {
    Value scale = t.loadEntry(ring, add(lane(), i32(first)));
    auto compare = [&](arith::CmpFPredicate predicate, double limit) { return arith::CmpFOp::create(builder, loc, predicate, scale, f32(limit)).getResult(); };
    fit = both(fit, both(compare(arith::CmpFPredicate::OGE, 0), compare(arith::CmpFPredicate::OLT, infinity)));
  }
  Value rows = keysFirst ? t.mapRows(f32Type(), [&](Value entry) { return t.loadEntry(ring, entry); }) : Value();
  return {rows, eq(ballot(fit), i32(-1))};
}

/// What `join` joins, where scales come last, and `joinScaled` with them elsewhere; all of `type`.
Value RouteTileKernel::joinUnscaled(Type type, const KeyScales &scales, llvm::function_ref<SmallVector<Value>()> join, llvm::function_ref<SmallVector<Value>()> joinScaled) {
  auto without = [&] {
    scalesAfter = true;
    SmallVector<Value> joined = join();
    scalesAfter = false;
    return joined;
  };
  return ifElse(scales.comeLast, type, without, joinScaled)[0];
}

/// What is joined, with the scales that come last.
Value RouteTileKernel::scaleJoined(TileEmitter &t, Value joined, const Step &step, const KeyScales &scales) {
  if (!scales.comeLast)
    return joined;
  auto getScales = [&] {
    if (scales.rows)
      return t.broadcast(scales.rows, foldedColumns());
    return t.mapColumns(foldedColumns(), f32Type(), [&](Value entry) { return t.loadEntry(t.slot(scaleRing, step.stage), entry); });
  };
  auto scale = [&]() -> SmallVector<Value> {
    Value single = doubledScore.empty() ? joined : fmul(joined, splat(t, foldedColumns(), 0.5));
    return {fmul(single, getScales())};
  };
  return ifElse(scales.comeLast, joined.getType(), scale, [&] { return SmallVector<Value>{joined}; })[0];
}

/// Scores of one chunk, whose keys may have scales of their own.
Value RouteTileKernel::joinProducts(TileEmitter &t, Value products, Value chunk, const Step &step, Value before) {
  KeyScales scales = getKeyScales(t, step);
  if (!scales.comeLast)
    return joinScaled(t, products, chunk, step, before);
  auto join = [&] { return SmallVector<Value>{joinScaled(t, products, chunk, step, Value())}; };
  Value joined = scaleJoined(t, joinUnscaled(t.accumulatorType(foldedColumns(), f32Type()), scales, join, join), step, scales);
  if (!before)
    return joined;
  return c.isMax() ? arith::MaximumFOp::create(builder, loc, before, joined).getResult() : fadd(before, joined);
}

/// The same with scales, if there are any, applied to every product, unless they come after.
Value RouteTileKernel::joinScaled(TileEmitter &t, Value products, Value chunk, const Step &step, Value before) {
  auto [scores, factor] = getScores(t, products, chunk, step);
  if (c.isSoftmax())
    scores = getExponent(t, scores, factor, references ? references : loadReferences(t, chunk));
  ssa_gpu::RowReduction kind = c.isMax() ? ssa_gpu::RowReduction::max : ssa_gpu::RowReduction::sum;
  if (!keysFirst)
    return t.foldRows(kind, scores, before);
  int64_t columns = llvm::alignTo(plan.heads * plan.queries, 8);
  if (plan.unit % plan.heads != 0 || plan.heads * plan.queries % 8 != 0) { // pairs without a head add nothing
    Value exists = ofPairs(t, builder.getI1Type(), [&](Value pair) { return getPair(pair, chunk).exists; });
    scores = select(exists, scores, splat(t, plan.pairs, c.isMax() ? -infinity : 0));
  }
  Value joined = t.fold(kind, scores, columns, plan.queries);
  if (!before)
    return joined;
  return c.isMax() ? arith::MaximumFOp::create(builder, loc, before, joined).getResult() : fadd(before, joined);
}

/// Scores of a step, a column for each query, -inf where nobody sees them.
Value RouteTileKernel::getStepScores(TileEmitter &t, Value number) {
  Turns turns(plan);
  auto join = [&](Value chunk, Value turn, Value before) {
    Value stage = rem(turns.ownKeys ? turn : number, i32(plan.keyStages));
    Value queryStage = plan.keepsQueries ? chunk : rem(turn, i32(plan.queryStages));
    return joinHeads(t, queryStage, chunk, {toIndex(mul(number, i32(keys))), stage}, before);
  };
  if (turns.perStep == 1)
    takeTurn(t, number);
  Value scores;
  if (plan.chunks == 1)
    scores = join(i32(0), number, Value());
  else
    scores = loop(i32(0), i32(plan.chunks), i32(1), splat(t, foldedColumns(), c.isMax() ? -infinity : 0),
                  [&](Value chunk, ValueRange before) -> SmallVector<Value> {
                    Value turn = number;
                    if (turns.perStep > 1) {
                      turn = add(mul(number, i32(plan.chunks)), chunk);
                      takeTurn(t, turn);
                    }
                    return {join(chunk, turn, before[0])};
                  })[0];
  Value lastTurn = turns.ownKeys ? add(mul(number, i32(plan.chunks)), i32(plan.chunks - 1)) : number;
  Step step{toIndex(mul(number, i32(keys))), rem(lastTurn, i32(plan.keyStages))};
  return hideScores(t, scores, step, loadVisible(t));
}

/// What the queries of the columns of joined scores see.
VisibleBlocks RouteTileKernel::loadVisible(TileEmitter &t) {
  auto loadArray = [&](Value array) { return array ? ofQueries(t, i32Type(), [&](Value query) { return t.loadEntry(array, query); }) : Value(); };
  VisibleBlocks visible;
  visible.begin = loadArray(visibleArrays.begin);
  visible.end = loadArray(visibleArrays.end);
  visible.sinkEnd = loadArray(visibleArrays.sinkEnd);
  return visible;
}

Value RouteTileKernel::hideScores(TileEmitter &t, Value scores, const Step &step, const VisibleBlocks &visible) {
  Value numbers = ofJoinedKeys(t, i32Type(), [&](Value entry) { return getNumber(t, step, entry); });
  return select(visible.contains(*this, numbers), scores, splat(t, foldedColumns(), -infinity));
}

/// The references of a chunk's pairs, negated.
Value RouteTileKernel::loadReferences(TileEmitter &t, Value chunk) {
  return ofPairs(t, f32Type(), [&](Value pair) { return t.loadEntry(t.slot(referenceRing, getQuerySlot(chunk)), pair); });
}

void RouteTileKernel::storeScores(TileEmitter &t, Value scores, Value firstColumn) {
  BufferView view(*this, get(RouteArgument::scores));
  Value begin = add(view.getBegin(*this, {batch, cell, firstRow}), firstColumn);
  Value columns = dim(view.buffer, 3), count = toI32(min(index(keys), sub(columns, firstColumn)));
  if (!keysFirst) {
    auto isThere = [&](Value query) { return le(query, lastQuery); };
    auto storeAll = [&] {
      t.storeRows(scores, view.buffer, keys, /*width=*/1, [&](Value query) -> RowPlace { return {view.advance(*this, begin, 2, toIndex(query)), isThere(query)}; });
    };
    auto storeSome = [&] { // element by element, as far as there are columns
      Value numbers = ofJoinedKeys(t, i32Type(), [](Value entry) { return entry; }), queries = ofQueries(t, i32Type(), [](Value query) { return query; });
      t.map({scores, numbers, queries}, i32Type(), [&](ValueRange of) -> SmallVector<Value> {
        ifThen(both(isThere(of[2]), lt(of[1], count)), [&] { store(of[0], view.buffer, {batch, cell, add(firstRow, toIndex(of[2])), add(firstColumn, toIndex(of[1]))}); });
        return {of[1]};
      });
    };
    ifElse(eq(count, i32(keys)), TypeRange(), [&] { storeAll(); return SmallVector<Value>(); }, [&] { storeSome(); return SmallVector<Value>(); });
    return;
  }
  t.storeColumns(scores, view.buffer, count, [&](Value query) -> RowPlace {
    return {view.advance(*this, begin, 2, toIndex(query)), le(query, lastQuery)};
  });
}

/// An item is a tile of rows and some steps: the first, and the one after the last, as index.
std::pair<Value, Value> RouteTileKernel::decodeScores(Value item) {
  Value steps = ceilDiv(c.getColumns(*this), index(keys)), perItem = get(RouteArgument::steps);
  Value items = ceilDiv(steps, perItem), begin = mul(split(item, items), perItem), end = min(add(begin, perItem), steps);
  decodeRows(item);
  std::tie(beginStep, endStep) = getSteps(begin, end);
  return {begin, end};
}

void RouteTileKernel::buildScoresItem(Value item) {
  TileEmitter t = getTiles();
  Turns turns(plan);
  auto [begin, end] = decodeScores(item);
  allocate(t, plan.queryStages, plan.keyStages, plan.chunks);

  gpu::BarrierOp::create(builder, loc); // what the last item left in shared memory has been read
  ifThen(lt(beginStep, endStep), [&] {
    fillVisible(t);
    loop(i32(0), i32(plan.chunks), i32(1), [&](Value chunk) {
      fillPairs(t, chunk, chunk);
      if (plan.keepsQueries)
        loadQueries(t, chunk, chunk);
    });
    t.commitCopies();
    if (queryHigh && plan.keepsQueries) {
      t.waitCopies(0);
      loop(i32(0), i32(plan.chunks), i32(1), [&](Value chunk) { t.order(t.slot(queryLow, chunk), t.slot(queryHigh, chunk)); });
    }
    if (turns.isAhead)
      startTurn(t, mul(beginStep, i32(turns.perStep)));
  });
  Value none = splat(t, foldedColumns(), -infinity);
  loop(toI32(begin), toI32(end), i32(1), [&](Value number) {
    Value isInSight = both(ge(number, beginStep), lt(number, endStep));
    Value scores = ifElse(
        isInSight, none.getType(), [&] { return SmallVector<Value>{getStepScores(t, number)}; },
        [&] { return SmallVector<Value>{none}; })[0];
    storeScores(t, scores, toIndex(mul(number, i32(keys))));
  });
}
