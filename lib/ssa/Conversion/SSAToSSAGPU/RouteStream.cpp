//===- RouteStream.cpp - Selecting from rows while they are scored --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// As the kernel for complete rows (RouteSelect), but a tile of rows is handed to the selectors in stretches of columns, and of what they have
// seen of a row they keep only what may be among the greatest (StreamTopK). So a block's memory does not depend on how long rows are. Every
// row is one warp's, from its first column to the last. Where scores are regrouped on the way, selectors regroup them as they read them; what
// a score joins of the stretch before, the warp has moved to the front of its row in the next set.
//
// Where there are few tiles of rows an item is a part of one, some of its steps. A part begins a step early where scores are regrouped, and leaves
// its best columns in memory, from which a second kernel selects: parts are in the order of columns, and so are their lists. Where there are still
// multiprocessors left several blocks score the same, and each selects from a share of the rows: that takes longer than scoring a part.
//
//===----------------------------------------------------------------------===//

#include "RouteSelect.h"
#include "StreamTopK.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::ssa;

namespace {

class RouteStreamKernel : public SelectRoleKernel {
public:
  RouteStreamKernel(RouteContext &c, const RoutePlan &plan, TopKOp topk, const RouteStream &stream)
      : SelectRoleKernel(c, plan, topk, RouteStream::selectors, stream.getSets()), stream(stream) {}

  void build(int64_t maxBlocks);

  static constexpr int64_t warps = RouteStream::selectors / warpSize;

private:
  void decodePart(Value item);
  /// Columns of the scores: those of an item are in steps `beginStep` .. `endStep`-1, in stretches.
  struct Stretch {
    Value first, end; // columns (i32)
  };
  /// Those of the item; one, of nothing, where nobody sees a score.
  Value countStretches() { return max(ceilDiv(sub(endStep, beginStep), i32(stream.stretch / keys)), i32(1)); }
  Stretch getStretch(Value number);
  SmallVector<Value> consume(ValueRange tickets);
  SmallVector<Value> select(Value item, Value ticket, StreamSelector &selector);
  void forEachRow(StreamSelector &selector, llvm::function_ref<void(Value query)> body);
  void takeStretch(StreamSelector &selector, Value number, Value ticket, Value query);
  void leave(StreamSelector &selector, Value query, Value rank, Value isThere, Value key, Value column);
  Value countParts() { return toI32(get(RouteArgument::rowParts)); }
  /// Whether steps before those that rows have may have forced columns.
  bool hasColumnsBefore(StreamSelector &selector) { return selector.row.canForce() && c.mask && c.mask.getWindow(); }
  void hideOthers(ArrayRef<Value> place, const Stretch &stretch, Value isFirst);
  void moveToFront(Value ticket, Value query);
  Value loadRegrouped(ArrayRef<Value> place, const Stretch &stretch, Value column);
  using Emitter::select;

  const RouteStream &stream;
  Value shared;
  // Of the item: its tile (index), the part of its rows and the share that it selects from (i32; null if they are whole), the step (i32) behind the last
  // that rows have, and the first that is no other part's.
  Value tile, part, share, rowEnd, ownBegin;
};

} // namespace

//===----------------------------------------------------------------------===//
// Scoring
//===----------------------------------------------------------------------===//

void RouteStreamKernel::decodePart(Value item) {
  tile = item;
  if (stream.splits()) {
    share = toI32(split(tile, get(RouteArgument::rowShares)));
    part = toI32(split(tile, get(RouteArgument::rowParts)));
  }
  decode(tile);
  Value rowBegin = ownBegin = beginStep;
  rowEnd = endStep;
  if (!part)
    return;
  Value steps = ceilDiv(sub(rowEnd, rowBegin), countParts());
  ownBegin = min(add(rowBegin, toI32(mul(toIndex(part), toIndex(steps)))), rowEnd);
  endStep = min(add(ownBegin, steps), rowEnd);
  beginStep = ownBegin;
  if (stream.regroup.before) // scores of the step before are joined with the first ones
    beginStep = select(lt(ownBegin, endStep), max(sub(ownBegin, i32(1)), rowBegin), ownBegin);
}

RouteStreamKernel::Stretch RouteStreamKernel::getStretch(Value number) {
  Value first = mul(add(beginStep, mul(number, i32(stream.stretch / keys))), i32(keys));
  Value end = min(toI32(c.getColumns(*this)), mul(endStep, i32(keys)));
  return {first, min(add(first, i32(stream.stretch)), end)};
}

SmallVector<Value> RouteStreamKernel::consume(ValueRange tickets) {
  TileEmitter t = getConsumerTiles();
  awaitItem(t, tickets[0]);
  Value firstStep = beginStep, lastStep = endStep, perStretch = i32(stream.stretch / keys);
  SmallVector<Value> last = loop(i32(0), countStretches(), i32(1), {tickets[1], tickets[2]}, [&](Value number, ValueRange carried) -> SmallVector<Value> {
    beginStep = add(firstStep, mul(number, perStretch));
    endStep = min(add(beginStep, perStretch), lastStep);
    Value offset = toIndex(sub(i32(stream.getFront()), mul(beginStep, i32(keys))));
    t.acquire(rowsPipe, carried[1]);
    TileEmitter joined = t.folded(plan.folds);
    auto store = [&](Value scores, Value column) { storeTo(joined, RouteArgument::scratch, carried[1], scores, add(column, offset)); };
    Value ticket = consumeScores(t, carried[0], store).first;
    t.publish(rowsPipe, carried[1]);
    return {ticket, next(carried[1], sets)};
  });
  t.release(queryPipe, tickets[0]);
  return {next(tickets[0], plan.querySlots), last[0], last[1]};
}

//===----------------------------------------------------------------------===//
// Selecting
//===----------------------------------------------------------------------===//

void RouteStreamKernel::forEachRow(StreamSelector &selector, llvm::function_ref<void(Value query)> body) {
  Value first = getSelector(), step = i32(warps);
  if (share) {
    first = add(first, mul(share, step));
    step = toI32(mul(get(RouteArgument::rowShares), index(warps)));
  }
  loop(first, add(lastQuery, i32(1)), step, [&](Value query) {
    Value block = placeOf(i32(0), index(0))[0];
    selector.row.locate(batch, cell, add(firstRow, toIndex(query)));
    selector.useShared(shared, add(index(warps * StreamSelector::histogramWords), mul(toIndex(query), index(StreamSelector::stateWords))),
                       mul(toIndex(getSelector()), index(StreamSelector::histogramWords)));
    selector.useList(get(RouteArgument::lists), {block, toIndex(query)});
    body(query);
  });
}

/// The score of a column of the selection's row, from those of the stretch and what is around it.
Value RouteStreamKernel::loadRegrouped(ArrayRef<Value> place, const Stretch &stretch, Value column) {
  const Regroup &regroup = stream.regroup;
  Value scratch = get(RouteArgument::scratch), none = f32(-infinity);
  Value begin = toIndex(add(mul(column, i32(regroup.ratio)), sub(i32(stream.getFront()), stretch.first)));
  auto placeOf = [&](int64_t further) { return SmallVector<Value>{place[0], place[1], add(begin, index(further))}; };
  SmallVector<Value> scores;
  int64_t width = stream.readsVectors() ? RouteStream::vectorColumns : 1;
  for (int64_t i = -regroup.before; i < 0; ++i)
    scores.push_back(load(scratch, placeOf(i)));
  for (int64_t i = 0; i < regroup.ratio; i += width) {
    Value vector = loadVector(scratch, placeOf(i), width);
    for (int64_t j = 0; j < width; ++j)
      scores.push_back(vector::ExtractOp::create(builder, loc, vector, j));
  }
  Value joined = regroup.isMax ? none : f32(0), isThere = bit(false);
  for (auto [i, score] : llvm::enumerate(scores)) {
    if (regroup.isMax) {
      joined = arith::MaximumFOp::create(builder, loc, joined, score);
      continue;
    }
    int64_t weight = regroup.getWeight(i);
    Value counts = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNE, score, none);
    joined = select(counts, fadd(joined, weight == 1 ? score : fmul(score, f32(weight))), joined);
    isThere = either(isThere, counts);
  }
  return regroup.isMax ? joined : select(isThere, joined, none);
}

/// What windows have of the scores before the first and behind the last of a row.
void RouteStreamKernel::hideOthers(ArrayRef<Value> place, const Stretch &stretch, Value isFirst) {
  const Regroup &regroup = stream.regroup;
  Value size = max(sub(stretch.end, stretch.first), i32(0));
  loop(lane(), i32(regroup.before + regroup.getWindow() - 1), i32(warpSize), [&](Value i) {
    Value isBefore = lt(i, i32(regroup.before)), at = add(add(i, i32(stream.getFront() - regroup.before)), select(isBefore, i32(0), size));
    ifThen(either(isFirst, eq(isBefore, bit(false))), [&] { store(f32(-infinity), get(RouteArgument::scratch), {place[0], place[1], toIndex(at)}); });
  });
  warpBarrier();
}

/// The last scores of a stretch, to where they are in front of the next one.
void RouteStreamKernel::moveToFront(Value ticket, Value query) {
  int64_t before = stream.regroup.before;
  Value scratch = get(RouteArgument::scratch);
  SmallVector<Value> from = placeOf(ticket, toIndex(query)), to = placeOf(next(ticket, sets), toIndex(query));
  loop(lane(), i32(before), i32(warpSize), [&](Value i) {
    Value at = add(toIndex(i), index(stream.getFront() - before));
    store(load(scratch, {from[0], from[1], add(at, index(stream.stretch))}), scratch, {to[0], to[1], at});
  });
  warpBarrier();
}

/// What is selected of a row, or of a part of one.
void RouteStreamKernel::leave(StreamSelector &selector, Value query, Value rank, Value isThere, Value key, Value column) {
  auto leaveRow = [&] { selector.leaveRow(rank, isThere, column); };
  if (!part)
    return leaveRow();
  ifThenElse(eq(countParts(), i32(1)), leaveRow, [&] {
    Value row = add(mul(tile, index(plan.tileQueries())), toIndex(query)), first = mul(part, i32(topk.getType().getWidth()));
    selector.leavePart(get(RouteArgument::partLists), row, stream.getPartEntries(topk), add(first, rank), isThere, key, column);
  });
}

void RouteStreamKernel::takeStretch(StreamSelector &selector, Value number, Value ticket, Value query) {
  const Regroup &regroup = stream.regroup;
  Stretch stretch = getStretch(number);
  Value isFirst = eq(number, i32(0)), isLast = eq(number, sub(countStretches(), i32(1)));
  // Columns of the selection's row, which has scores for those before `scored`. Where a row's last scores are, some of the next column's may exist.
  auto columnAt = [&](Value score) { return div(score, i32(regroup.ratio)); };
  Value hasSteps = lt(ownBegin, endStep), hasEnd = both(isLast, eq(endStep, rowEnd));
  Value first = columnAt(max(stretch.first, mul(ownBegin, i32(keys)))), scored = columnAt(stretch.end);
  if (!regroup.isNone())
    scored = select(both(hasEnd, hasSteps), columnAt(add(stretch.end, i32(regroup.getWindow() - 1))), scored);
  SmallVector<Value> place = placeOf(ticket, toIndex(query));
  Value begin = first, end = scored = max(scored, first);
  if (selector.row.canForce()) { // columns that have no scores, too; of parts without steps the first one has them
    Value isOwn = part ? either(hasSteps, eq(part, i32(0))) : bit(true);
    end = select(both(hasEnd, isOwn), selector.row.end, scored);
  }
  if (hasColumnsBefore(selector))
    begin = select(part ? both(isFirst, eq(part, i32(0))) : isFirst, selector.row.begin, first);
  if (selector.readsVectors()) {
    selector.row.useScores(get(RouteArgument::scratch), place, scored, stretch.first);
  } else {
    hideOthers(place, stretch, isFirst);
    Value last = max(sub(scored, i32(1)), first);
    selector.row.useScores([this, &selector, stretch, place, first, scored, last](Value column) {
      Value at = min(column, last), isThere = lt(column, scored);
      if (hasColumnsBefore(selector)) {
        at = max(at, first);
        isThere = both(isThere, le(first, column));
      }
      return select(isThere, loadRegrouped(place, stretch, at), f32(-infinity));
    }, scored);
  }
  selector.take(begin, end, isFirst, isLast,
                [&](Value rank, Value isThere, Value key, Value column) { leave(selector, query, rank, isThere, key, column); });
  if (regroup.before)
    ifThen(eq(isLast, bit(false)), [&] { moveToFront(ticket, query); });
}

SmallVector<Value> RouteStreamKernel::select(Value item, Value ticket, StreamSelector &selector) {
  TileEmitter t(*this, plan.keys);
  decodePart(item);
  return loop(i32(0), countStretches(), i32(1), ticket, [&](Value number, ValueRange carried) {
    t.await(rowsPipe, carried[0]);
    forEachRow(selector, [&](Value query) { takeStretch(selector, number, carried[0], query); });
    t.release(rowsPipe, carried[0]);
    return SmallVector<Value>{next(carried[0], sets)};
  });
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

int64_t RouteStream::getListEntries(TopKOp topk) const {
  int64_t width = topk.getType().getWidth();
  return FusedSelectAttr::getListEntries(width, regroup.getMaxListed(stretch, topk)) + StreamSelector::getPadding(width);
}

int64_t RouteStream::getPartEntries(TopKOp topk) const {
  int64_t width = topk.getType().getWidth();
  return maxParts * width + StreamSelector::getPadding(width);
}

int64_t RouteStream::getSharedBytes() {
  constexpr int64_t maxQueries = 256, wordBytes = 4, alignment = 1024; // of the tiles behind it
  return llvm::alignTo((maxQueries * StreamSelector::stateWords + RouteStreamKernel::warps * StreamSelector::histogramWords) * wordBytes, alignment);
}

void RouteStreamKernel::build(int64_t maxBlocks) {
  Emitter e(c.host.builder, loc);
  Value tiles = countTiles(e, c, plan, c.getHost(RouteArgument::query));
  if (stream.splits())
    tiles = e.mul(tiles, e.mul(c.getHost(RouteArgument::rowParts), c.getHost(RouteArgument::rowShares)));
  Value total = addItems(tiles, maxBlocks);
  bool inVectors = stream.regroup.isNone() && stream.stretch % StreamSelector::chunkColumns == 0;
  StreamSelector selector(*this, topk, getOperands(), stream.getListEntries(topk), stream.getLoadsOfScore(), inVectors);
  shared = addShared(i32Type(), plan.tileQueries() * StreamSelector::stateWords + warps * StreamSelector::histogramWords);
  allocate();
  TileEmitter t(*this, plan.keys);
  rowsPipe = t.allocPipe(sets, plan.consumers(keysFirst) / warpSize, warps);
  constexpr int64_t registers = 56; // of selectors, and of the producers
  addSelectRoles(total, registers, [&](Value item) { decodePart(item); }, [&](Value, ValueRange tickets) { return consume(tickets); }, [] {},
                 [&](Value item, ValueRange tickets) { return select(item, tickets[0], selector); });
  finish();
}

void RouteStream::build(RouteContext &c, const RoutePlan &plan, TopKOp topk, int64_t maxBlocks) const {
  RouteStreamKernel(c, plan, topk, *this).build(maxBlocks);
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

namespace {

/// The kernel that selects from what parts of rows have left: a warp for a row.
class RoutePartsKernel : public RouteTileKernel {
public:
  RoutePartsKernel(RouteContext &c, const RoutePlan &plan, TopKOp topk) : RouteTileKernel(c, plan, "ssa_topk_parts", /*keysFirst=*/true, warps * warpSize), topk(topk) {}

  void build(int64_t entries);

private:
  static constexpr int64_t warps = 4;
  TopKOp topk;
};

} // namespace

void RoutePartsKernel::build(int64_t entries) {
  Emitter e(c.host.builder, loc);
  StreamSelector selector(*this, topk, getSelectOperands(*this, c), entries);
  Value shared = addShared(i32Type(), warps * StreamSelector::histogramWords);
  int64_t queries = plan.tileQueries(), itemsPerTile = ssa::ceilDiv(queries, warps);
  Value tiles = countTiles(e, c, plan, c.getHost(RouteArgument::query));
  forEachItem(e.mul(tiles, e.index(itemsPerTile)), [&](Value tile) {
    Value number = add(mul(split(tile, index(itemsPerTile)), index(warps)), toIndex(warp()));
    Value slot = add(mul(tile, index(queries)), number);
    decodeRows(tile);
    ifThen(le(toI32(number), lastQuery), [&] {
      selector.useShared(shared, /*stateBegin=*/Value(), mul(toIndex(warp()), index(StreamSelector::histogramWords)));
      selector.row.locate(batch, cell, add(firstRow, number));
      selector.useList(get(RouteArgument::partLists), slot);
      selector.selectFromParts(toI32(mul(get(RouteArgument::rowParts), index(topk.getType().getWidth()))));
    });
  });
  finish();
}

void RouteStream::buildParts(RouteContext &c, const RoutePlan &plan, TopKOp topk) const { RoutePartsKernel(c, plan, topk).build(getPartEntries(topk)); }
