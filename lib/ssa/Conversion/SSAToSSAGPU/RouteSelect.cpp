//===- RouteSelect.cpp - Scores and selections in one kernel --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// As the kernel for scores with roles (RouteRoles), but a block scores a tile of rows to the end, in memory of its own that stays in the
// second-level cache, and seven warps, the selectors, select from these rows while the next tile is scored. Of every row and of all
// columns that are equal modulo 64 the consumers leave the greatest score: so selectors know a bound before they read the row.
//
//===----------------------------------------------------------------------===//

#include "RouteSelect.h"
#include "WarpTopK.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace mlir::ssa;

//===----------------------------------------------------------------------===//
// What both kernels have
//===----------------------------------------------------------------------===//

void SelectRoleKernel::decode(Value item) {
  decodeRows(item);
  std::tie(beginStep, endStep) = getSteps(index(0), ceilDiv(c.getColumns(*this), index(keys)));
  beginStep = min(beginStep, endStep);
}

SmallVector<Value> SelectRoleKernel::placeOf(Value ticket, Value query) {
  Value block = gpu::BlockIdOp::create(builder, loc, gpu::Dimension::x);
  return {block, add(mul(toIndex(slotOf(ticket, sets)), index(plan.tileQueries())), query)};
}

void SelectRoleKernel::storeTo(TileEmitter &t, RouteArgument a, Value ticket, Value scores, Value firstColumn) {
  BufferView view(*this, get(a));
  Value begin = add(view.getBegin(*this, placeOf(ticket, index(0))), firstColumn);
  auto place = [&](Value query) -> RowPlace { return {view.advance(*this, begin, 1, toIndex(query)), bit(true)}; };
  if (keysFirst)
    t.storeColumns(scores, view.buffer, i32(keys), place);
  else
    t.storeRows(scores, view.buffer, keys, /*width=*/2, place);
}

void SelectRoleKernel::addSelectRoles(Value total, int64_t registers, llvm::function_ref<void(Value item)> decode, ItemBody consume,
                                      llvm::function_ref<void()> beginSelecting, ItemBody select) {
  Value zero = i32(0);
  // Under a causal mask tiles are shorter and shorter.
  auto forEach = [&](ValueRange tickets, ItemBody body) {
    forEachItem(total, tickets, [&](Value number, ValueRange carried) { return body(backAndForth(number, total), carried); });
  };
  auto produce = [&](Value item, ValueRange tickets) {
    decode(item);
    return produceItem(zero, tickets);
  };
  addRoles([&] { forEach({zero, zero, zero}, consume); }, [&] { forEach({zero, zero}, produce); }, registers,
           [&] {
             beginSelecting();
             forEach({zero}, select);
           });
}

TopKOperands ssa::getSelectOperands(KernelBuilder &k, const RouteContext &c) {
  TopKOperands in;
  in.selection = c.get(k, RouteArgument::selection);
  in.tokens = c.get(k, RouteArgument::topkTokens);
  in.queries = c.get(k, RouteArgument::topkQueries);
  return in;
}

//===----------------------------------------------------------------------===//
// Complete rows
//===----------------------------------------------------------------------===//

namespace {

class RouteSelectKernel : public SelectRoleKernel {
public:
  RouteSelectKernel(RouteContext &c, const RoutePlan &plan, TopKOp topk) : SelectRoleKernel(c, plan, topk, numSelectors, numSets) {}

  void build(int64_t maxBlocks);

  static constexpr int64_t numSelectors = 224, numSets = 2;
  /// Groups of columns of which the greatest score is known: the rows of a step's tile.
  static constexpr int64_t groups = 64;

private:
  SmallVector<Value> consume(ValueRange tickets);
  SmallVector<Value> select(Value item, Value ticket, WarpSelector &selector);
  using Emitter::select;
};

} // namespace

SmallVector<Value> RouteSelectKernel::consume(ValueRange tickets) {
  TileEmitter t(*this, plan.keys, plan.groups);
  awaitItem(t, tickets[0]);
  auto store = [&](Value scores, Value firstColumn) { storeTo(t, RouteArgument::scratch, tickets[2], scores, firstColumn); };
  Value none = splat(t, foldedColumns(), -infinity);
  t.acquire(rowsPipe, tickets[2]);
  loop(i32(0), beginStep, i32(1), [&](Value number) { store(none, toIndex(mul(number, i32(keys)))); });
  auto [ticket, maxima] = consumeScores(t, tickets[1], store, none);
  t.release(queryPipe, tickets[0]);
  storeTo(t, RouteArgument::maxima, tickets[2], maxima, index(0));
  t.publish(rowsPipe, tickets[2]);
  return {next(tickets[0], plan.querySlots), ticket, next(tickets[2], sets)};
}

/// Selects from the rows of an item, a warp from one at a time.
SmallVector<Value> RouteSelectKernel::select(Value item, Value ticket, WarpSelector &selector) {
  TileEmitter t(*this, plan.keys);
  decode(item);
  t.await(rowsPipe, ticket);
  // A warp that has a row more of one set has one fewer of the other.
  constexpr int64_t warps = numSelectors / warpSize;
  Value first = rem(add(getSelector(), mul(slotOf(ticket, sets), i32(warps / 2))), i32(warps));
  Value scored = min(toI32(c.getColumns(*this)), mul(endStep, i32(keys)));
  loop(first, add(lastQuery, i32(1)), i32(warps), [&](Value query) {
    SmallVector<Value> place = placeOf(ticket, toIndex(query)), maxima;
    selector.row.locate(batch, cell, add(firstRow, toIndex(query)));
    selector.row.useScores(get(RouteArgument::scratch), place, scored);
    for (int64_t group = 0; group < groups; group += warpSize)
      maxima.push_back(load(get(RouteArgument::maxima), {place[0], place[1], toIndex(add(lane(), i32(group)))}));
    selector.selectRow(maxima);
  });
  t.release(rowsPipe, ticket);
  return {next(ticket, sets)};
}

void RouteSelectKernel::build(int64_t maxBlocks) {
  Emitter e(c.host.builder, loc);
  Value total = addItems(countTiles(e, c, plan, c.getHost(RouteArgument::query)), maxBlocks);
  WarpSelector selector(*this, topk, getOperands(), /*keepsRow=*/false);
  Value lists = addShared(i32Type(), selector.getListWords() * (numSelectors / warpSize));
  allocate();
  TileEmitter t(*this, plan.keys);
  rowsPipe = t.allocPipe(sets, plan.consumers(keysFirst) / warpSize, numSelectors / warpSize);
  constexpr int64_t registers = 72; // of selectors, and of the producers
  addSelectRoles(total, registers, [&](Value item) { decode(item); }, [&](Value, ValueRange tickets) { return consume(tickets); },
                 [&] { selector.useMemory(lists, index(0), mul(toIndex(getSelector()), index(selector.getListWords()))); },
                 [&](Value item, ValueRange tickets) { return select(item, tickets[0], selector); });
  finish();
}

//===----------------------------------------------------------------------===//
// On the host
//===----------------------------------------------------------------------===//

/// Shared memory of the lists of a kernel's selectors.
static int64_t getListBytes(TopKOp topk) {
  constexpr int64_t wordBytes = 4, alignment = 1024; // of the tiles behind it
  int64_t slots = std::max<int64_t>(128, 4 * topk.getType().getWidth()) + 4 * warpSize; // as WarpSelector has them
  return llvm::alignTo(2 * slots * RouteSelectKernel::numSelectors / warpSize * wordBytes, alignment);
}

/// What a kernel's selectors need of shared memory.
int64_t RouteSelect::getSelectorBytes() const {
  return fused.getStretch() ? RouteStream::getSharedBytes() : getListBytes(topk);
}

std::optional<RouteRolePlans> RouteSelect::getPlans(const RouteContext &context) const {
  return RouteRolePlans::get(context, TargetAttr::of(route), getSelectorBytes(), SelectRoleKernel::maxGroups);
}

std::optional<RouteSelect> RouteSelect::get(HostFunction &host, const SelectChain &chain) {
  TopKOp topk = chain.topk;
  FusedSelectAttr fused = FusedSelectAttr::of(topk);
  auto route = cast<RouteOp>(chain.links.front().op);
  auto rebin = dyn_cast<RebinOp>(chain.links.back().op);
  TargetAttr target = TargetAttr::of(route);
  if (!fused || !target || chain.links.size() > (rebin ? 2 : 1) || topk.getTopP() || topk.getWithin())
    return std::nullopt;
  bool regroups = rebin && fused.getStretch() && rebin.getQueryBlock() == 1 && Regroup(rebin).divides(fused.getStretch());
  if (rebin ? !regroups : !fused.getStretch() && topk.getType().getWidth() > WarpSelector::maxWidthFromMaxima)
    return std::nullopt;
  RouteSelect result(host, route, rebin, topk, fused);
  RouteContext context(host, route);
  std::optional<RouteRolePlans> plans = result.getPlans(context);
  if (!plans || fused.getStretch() % plans->scores.keys != 0 || (plans->scores.folds > 1 && !fused.getStretch()))
    return std::nullopt;
  result.tileQueries = plans->scores.tileQueries();
  result.blocks = target.numSMs();
  return result;
}

Value RouteSelect::countTiles(Value query) const {
  Emitter e(host->builder, topk.getLoc());
  return e.mul(e.mul(e.dim(query, 0), e.index(route.getType().getDimSize(1))), e.ceilDiv(e.dim(query, 2), e.index(tileQueries)));
}

bool RouteSelect::isAlwaysUsed() const {
  return fused.getMinColumns() == 0 && fused.getMaxColumns() == std::numeric_limits<int32_t>::max() && getStream().splits();
}

/// Where there are fewer tiles of rows than multiprocessors, rows are better split up.
Value RouteSelect::isUsed() const {
  Emitter e(host->builder, topk.getLoc());
  if (isAlwaysUsed())
    return e.bit(true);
  Value columns = e.dim(host->getBuffer(route.getKey()), 2);
  Value isLong = e.le(e.index(std::max<int64_t>(fused.getMinColumns(), 1)), columns), fits = e.le(columns, e.index(fused.getMaxColumns()));
  Value used = e.both(isLong, fits);
  return getStream().splits() ? used : e.both(used, e.le(e.index(blocks), countTiles(host->getBuffer(route.getQuery()))));
}

/// As many blocks for a tile as there are multiprocessors for it: a warp selects from a row in about the time of `stepsOfRow` steps. So parts have that
/// many steps at least before rows are shared, and half of it where there is more room than that takes.
std::pair<Value, Value> RouteSelect::splitRows(Value query, int64_t keysOfStep) const {
  constexpr int64_t stepsOfRow = 8, selectors = RouteStream::selectors / warpSize;
  Emitter e(host->builder, topk.getLoc());
  Value one = e.index(1), most = e.index(getStream().maxParts), columns = e.dim(host->getBuffer(route.getKey()), 2);
  Value room = e.max(e.div(e.index(blocks), e.max(countTiles(query), one)), one);
  auto getParts = [&](Value room, int64_t steps) { return e.min(e.min(room, most), e.max(e.div(columns, e.index(steps * keysOfStep)), one)); };
  Value rows = e.min(e.dim(query, 2), e.index(tileQueries));
  Value shares = e.max(e.min(e.div(room, getParts(room, stepsOfRow)), e.ceilDiv(rows, e.index(selectors))), one);
  return {getParts(e.div(room, shares), stepsOfRow / 2), shares};
}

/// Of a softmax that makes its sums: a reference, and maximum and sum of each part.
Value RouteSelect::getBytesPerRow() const {
  Emitter e(host->builder, topk.getLoc());
  if (route.getNormalize() != Normalization::softmax || SharedSums::of(route))
    return e.index(0);
  Value parts = e.ceilDiv(e.dim(host->getBuffer(route.getKey()), 2), e.index(columnsPerPart));
  return e.mul(e.index(route.getQuery().getType().getDimSize(1) * 4), e.add(e.mul(parts, e.index(2)), e.index(1)));
}

RouteStream RouteSelect::getStream() const {
  int64_t stretch = fused.getStretch();
  return {stretch, rebin ? Regroup(rebin) : Regroup(), FusedSelectAttr::getMaxParts(topk.getType().getWidth(), stretch)};
}

void RouteSelect::allocate(Value isUsed, Value batches, Value rows) {
  Emitter e(host->builder, topk.getLoc());
  maxBatches = e.select(isUsed, batches, e.index(0));
  maxRows = rows;
  Value count = e.select(isUsed, e.index(blocks), e.index(0));
  auto allocate = [&](Value rows, Value columns, Type type) { return host->allocateWorkspace(topk.getLoc(), {count, rows, columns}, type); };
  Type f32Type = host->builder.getF32Type();
  if (fused.getStretch()) {
    RouteStream stream = getStream();
    Type i32Type = host->builder.getI32Type();
    scratch = allocate(e.index(stream.getSets() * tileQueries), e.index(stream.getRowColumns()), f32Type);
    lists = allocate(e.index(tileQueries), e.index(2 * stream.getListEntries(topk)), i32Type);
    if (stream.splits()) // fewer tiles than blocks
      partLists = host->allocateWorkspace(topk.getLoc(), {e.mul(count, e.index(tileQueries)), e.index(2 * stream.getPartEntries(topk))}, i32Type);
    return;
  }
  Value columns = e.dim(host->getBuffer(route.getKey()), 2), groups = e.index(RouteSelectKernel::groups);
  Value setRows = e.index(RouteSelectKernel::numSets * tileQueries);
  scratch = allocate(setRows, e.mul(e.ceilDiv(columns, groups), groups), f32Type);
  maxima = allocate(setRows, groups, f32Type);
}

LogicalResult RouteSelect::build(const RowPart &part, Value selection) const {
  TargetAttr target = TargetAttr::of(route);
  Emitter e(host->builder, topk.getLoc());
  RouteContext context(*host, route);
  context.maxBatches = maxBatches;
  context.maxRows = maxRows;
  if (failed(context.prepare({}, part)))
    return failure();
  std::optional<RouteRolePlans> plans = getPlans(context);
  addRoleArguments(context);
  if (context.makesSums())
    buildReferences(context, *plans, target);
  setMaps(context, plans->scores);
  Value queries = e.dim(host->getBuffer(topk.getQueries() ? topk.getQueries() : route.getQuery()), 2);
  context.addArgument(RouteArgument::selection, selection);
  context.addArgument(RouteArgument::topkTokens, e.dim(host->getBuffer(topk.getTokens()), 2));
  context.addArgument(RouteArgument::topkQueries, part.getQueries(e, queries, topk.getType().getQueryBlock()));
  context.addArgument(RouteArgument::scratch, scratch);
  context.addArgument(lists ? RouteArgument::lists : RouteArgument::maxima, lists ? lists : maxima);
  if (!fused.getStretch()) {
    RouteSelectKernel(context, plans->scores, topk).build(target.numSMs());
    return success();
  }
  RouteStream stream = getStream();
  if (stream.splits()) {
    auto [parts, shares] = splitRows(context.getHost(RouteArgument::query), plans->scores.keys);
    context.addArgument(RouteArgument::rowParts, parts);
    context.addArgument(RouteArgument::rowShares, shares);
    context.addArgument(RouteArgument::partLists, partLists);
  }
  stream.build(context, plans->scores, topk, target.numSMs());
  if (stream.splits())
    e.ifThen(e.lt(e.index(1), context.getHost(RouteArgument::rowParts)), [&] { stream.buildParts(context, plans->scores, topk); });
  return success();
}
