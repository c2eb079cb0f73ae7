//===- RouteTiles.cpp - route on tensor cores -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "RouteTiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::ssa;

//===----------------------------------------------------------------------===//
// Pairs
//===----------------------------------------------------------------------===//

Value ssa::countRowTiles(Emitter &e, const RouteContext &c, const RoutePlan &plan, Value rows) {
  if (!c.rowsPerList)
    return e.ceilDiv(rows, e.index(plan.tileQueries()));
  return e.mul(e.ceilDiv(rows, e.index(c.rowsPerList)), e.index(ssa::ceilDiv(c.rowsPerList, plan.queries)));
}

Value ssa::countTiles(Emitter &e, const RouteContext &c, const RoutePlan &plan, Value buffer) {
  return e.mul(e.mul(e.dim(buffer, 0), e.index(c.cells)), countRowTiles(e, c, plan, e.dim(buffer, 2)));
}

/// Splits off what says which rows the item has. The last rows, which see most under a causal mask, go first.
void RouteTileKernel::decodeRows(Value &item) {
  Value rows = dim(get(RouteArgument::query), 2);
  Value tiles = countRowTiles(*this, c, plan, rows), tile = sub(sub(tiles, index(1)), split(item, tiles));
  cell = split(item, index(c.cells));
  batch = item;
  list = index(0);
  Value end = rows;
  if (c.rowsPerList) {
    Value tilesPerList = index(ssa::ceilDiv(c.rowsPerList, plan.queries)), perList = index(c.rowsPerList);
    list = div(tile, tilesPerList);
    firstRow = add(mul(list, perList), mul(rem(tile, tilesPerList), index(plan.queries)));
    end = min(end, mul(add(list, index(1)), perList));
  } else {
    firstRow = mul(tile, index(plan.tileQueries()));
  }
  lastRow = sub(end, index(1));
  lastQuery = toI32(min(sub(lastRow, firstRow), index(plan.tileQueries() - 1)));
}

RouteTileKernel::Pair RouteTileKernel::getPair(Value number, Value chunk) {
  Value group, inGroup = number;
  if (plan.groups > 1) {
    group = div(number, i32(plan.pairs / plan.groups));
    inGroup = rem(number, i32(plan.pairs / plan.groups));
  }
  Value query = rem(inGroup, i32(plan.queries)), inTile = div(inGroup, i32(plan.queries));
  if (group)
    query = add(query, mul(group, i32(plan.queries)));
  Value inUnit = add(mul(rem(chunk, i32(plan.chunksPerUnit)), i32(plan.heads)), inTile);
  Value unitBegin = add(mul(toI32(cell), i32(c.group)), mul(div(chunk, i32(plan.chunksPerUnit)), i32(plan.unit)));
  Value exists = both(le(query, lastQuery), both(lt(inTile, i32(plan.heads)), lt(inUnit, i32(plan.unit))));
  Value head = add(unitBegin, min(inUnit, i32(plan.unit - 1)));
  return {add(firstRow, toIndex(min(query, lastQuery))), toIndex(head), exists};
}

Value RouteTileKernel::getKeyHead(Value chunk) {
  Value unitBegin = add(mul(toI32(cell), i32(c.group)), mul(div(chunk, i32(plan.chunksPerUnit)), i32(plan.unit)));
  return toIndex(div(unitBegin, i32(c.heads / c.keyHeads)));
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// As many blocks as fit a multiprocessor's shared memory share its registers. Operands of `mma.sync` take more, as do scores of many queries,
/// each of which is written to a place of its own.
void RouteTileKernel::setBlocks(int64_t bytes) {
  constexpr int64_t reserved = 1024, threadsForRegisters = 512; // with 128 registers each
  if (plan.usesTensorMemory) { // of 512 columns; a thread holds a row of a product
    constexpr int64_t columns = 512;
    // Sums take more registers where a tile is not full, or a region computes its scores.
    bool isHeavy = !keysFirst && (!c.op.getScore().empty() || plan.heads * plan.queries < plan.pairs);
    int64_t threadsWithRows = isHeavy ? 256 : 384;
    int64_t most = std::min(columns / getColumns(), threadsWithRows / plan.threads());
    return setBlocksPerSM(std::clamp<int64_t>(plan.sharedBytesPerSM / (bytes + reserved), 1, most));
  }
  bool isLight = plan.family == ssa_gpu::Family::wgmma && !(keysFirst && foldedColumns() > 64);
  int64_t most = isLight ? threadsForRegisters / (2 * keys) : 1;
  setBlocksPerSM(std::clamp<int64_t>(plan.sharedBytesPerSM / (bytes + reserved), 1, most));
}

void RouteTileKernel::allocate(TileEmitter &t, int64_t queryStages, int64_t keyStages, int64_t chunks) {
  auto tiles = [&](int64_t stages, int64_t rows) { return t.alloc({stages, rows, plan.paddedDim}, plan.elementType); };
  auto arrays = [&](int64_t count, int64_t size, Type type) { return t.alloc({count, size}, type); };
  queryView = BufferView(*this, get(RouteArgument::query));
  keyView = BufferView(*this, get(RouteArgument::key));
  queryLow = tiles(queryStages, plan.pairs);
  keyLow = tiles(keyStages, keys);
  if (c.op.getBound()) {
    queryHigh = tiles(queryStages, plan.pairs);
    keyHigh = tiles(keyStages, keys);
    keyMaxView = BufferView(*this, get(RouteArgument::keyMax));
  }
  int64_t entries = std::max<int64_t>(plan.tileQueries(), 8);
  visibleArrays.end = t.alloc({entries}, i32Type());
  if (c.mask && c.mask.getWindow())
    visibleArrays.begin = t.alloc({entries}, i32Type());
  if (c.mask && c.mask.getSink())
    visibleArrays.sinkEnd = t.alloc({entries}, i32Type());
  if (c.op.getWithin())
    numberRing = arrays(keyStages, keys, i32Type());
  if (c.op.getScales())
    scaleRing = arrays(keyStages, keys, f32Type());
  if (c.op.getWeights())
    weightRing = arrays(chunks, plan.pairs, f32Type());
  if (c.isSoftmax() && keysFirst)
    referenceRing = arrays(chunks, plan.pairs, f32Type());
}

/// Writes what the rows of scores see, an entry a query; entries past the last row repeat it.
void RouteTileKernel::fillVisible(TileEmitter &t) {
  auto fill = [&](Value array, Value VisibleBlocks::*member) {
    if (array)
      t.fill(array, [&](Value entry) { return VisibleBlocks(*this, c, min(add(firstRow, toIndex(entry)), lastRow)).*member; });
  };
  fill(visibleArrays.begin, &VisibleBlocks::begin);
  fill(visibleArrays.end, &VisibleBlocks::end);
  fill(visibleArrays.sinkEnd, &VisibleBlocks::sinkEnd);
}

/// Some bits of a number, `left` places further to the left.
static Value moveBits(Emitter &e, Value n, int64_t mask, int64_t left) {
  Value bits = e.both(n, e.i32(mask));
  return left > 0 ? e.shiftLeft(bits, e.i32(left)) : e.shiftRight(bits, e.i32(-left));
}

/// Where the weight of a pair is: bits 1 to 3 are turned around, so that of two columns of eight, which are two heads, a thread has four side by side.
Value RouteTileKernel::getWeightPlace(Value pair) {
  return keysFirst ? add(both(pair, i32(~14)), add(moveBits(*this, pair, 8, -2), moveBits(*this, pair, 6, 1))) : pair;
}

Value RouteTileKernel::getPairOfWeight(Value place) {
  return keysFirst ? add(both(place, i32(~14)), add(moveBits(*this, place, 2, 2), moveBits(*this, place, 12, -1))) : place;
}

/// Writes what the pairs of a chunk have one of each; references negated.
void RouteTileKernel::fillPairs(TileEmitter &t, Value chunk, Value slot) {
  auto fill = [&](Value ring, llvm::function_ref<Value(Value entry)> pairOf, llvm::function_ref<Value(ValueRange place)> value) {
    if (ring)
      t.fill(t.slot(ring, slot), [&](Value entry) {
        Pair p = getPair(pairOf(entry), chunk);
        return value({batch, p.head, p.m});
      });
  };
  fill(weightRing, [&](Value entry) { return getPairOfWeight(entry); }, [&](ValueRange place) { return load(get(RouteArgument::weights), place); });
  fill(referenceRing, [](Value entry) { return entry; }, [&](ValueRange place) -> Value { return arith::NegFOp::create(builder, loc, c.loadReference(*this, place)); });
}

void RouteTileKernel::loadRows(TileEmitter &t, const BufferView &view, Value tile, int64_t width,
                               llvm::function_ref<RowPlace(Value)> place) {
  if (cast<MemRefType>(view.buffer.getType()).getElementTypeBitWidth() < plan.elementType.getIntOrFloatBitWidth())
    t.convertRows(view.buffer, tile, c.dim, width, place);
  else
    t.copyRows(view.buffer, tile, c.dim, width, place);
}

void RouteTileKernel::loadQueries(TileEmitter &t, Value chunk, Value stage) {
  loadRows(t, queryView, t.slot(queryLow, stage), plan.queryWidth, [&](Value row) -> RowPlace {
    Pair p = getPair(row, chunk);
    return {queryView.getBegin(*this, {batch, p.head, p.m}), p.exists};
  });
  if (queryHigh) // zeros, to be ordered
    loadRows(t, queryView, t.slot(queryHigh, stage), plan.queryWidth, [&](Value) -> RowPlace { return {index(0), bit(false)}; });
}

void RouteTileKernel::loadKeys(TileEmitter &t, Value chunk, const Step &step) {
  Value head = getKeyHead(chunk), listRow = c.getListRow(*this, list), keyRows = toI32(dim(get(RouteArgument::key), 2));
  auto getBlock = [&](Value entry) { return c.getBlock(*this, batch, cell, listRow, add(step.firstColumn, toIndex(entry))); };
  auto place = [&](const BufferView &view) {
    Value begin = view.getBegin(*this, {batch, head});
    return [&, begin](Value row) -> RowPlace {
      Value number = c.op.getWithin() ? getBlock(row) : add(toI32(step.firstColumn), row);
      return {view.advance(*this, begin, 2, toIndex(number)), lt(number, keyRows)};
    };
  };
  loadRows(t, keyView, t.slot(keyLow, step.stage), plan.keyWidth, place(keyView));
  if (keyHigh)
    loadRows(t, keyMaxView, t.slot(keyHigh, step.stage), plan.keyWidth, place(keyMaxView));
  if (numberRing)
    t.fill(t.slot(numberRing, step.stage), getBlock);
  if (scaleRing)
    t.fill(t.slot(scaleRing, step.stage), [&](Value entry) {
      Value number = c.op.getWithin() ? getBlock(entry) : add(toI32(step.firstColumn), entry);
      return load(get(RouteArgument::scales), {batch, head, toIndex(min(number, sub(keyRows, i32(1))))});
    });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// `forEachItem` with what products need around the loop.
void RouteTileKernel::forEachTile(Value count, llvm::function_ref<void(Value)> body) {
  if (!plan.usesTensorMemory)
    return forEachItem(count, body);
  Value total = addItems(count, maxGrid);
  TileEmitter t = getTiles();
  productPipe = t.allocPipe(1, /*producers=*/1, /*consumers=*/plan.threads() / 32);
  SmallVector<Value> tensors = t.allocTensors({{{getRows(), getColumns()}, f32Type()}});
  product = tensors.front();
  productTicket = memref::AllocaOp::create(builder, loc, MemRefType::get({1}, i32Type()));
  store(i32(0), productTicket, index(0));
  forEachItem(total, {}, [&](Value item, ValueRange) {
    body(item);
    return SmallVector<Value>();
  });
  t.freeTensors(tensors);
}

Value RouteTileKernel::multiplyInTensors(TileEmitter &t, Value queryStage, Value keyStage) {
  auto add = [&](Value queryRing, Value keyRing, bool adds) {
    Value queries = t.slot(queryRing, queryStage), keys = t.slot(keyRing, keyStage);
    keysFirst ? t.mmaTensor(keys, queries, /*transposed=*/true, product, bit(adds)) : t.mmaTensor(queries, keys, /*transposed=*/true, product, bit(adds));
  };
  Value ticket = load(productTicket, index(0));
  t.acquire(productPipe, ticket); // all have read the product before
  add(queryLow, keyLow, false);
  if (keyHigh)
    add(queryHigh, keyHigh, true);
  t.publish(productPipe, ticket, /*afterProducts=*/true);
  t.await(productPipe, ticket);
  Value values = t.loadTensor(product, i32(0), getColumns());
  t.release(productPipe, ticket);
  store(bitXor(ticket, i32(1)), productTicket, index(0)); // one slot: tickets are 0 and 1
  return values;
}

/// Adds the product of two tiles.
Value RouteTileKernel::addProduct(TileEmitter &t, Value lhs, Value rhs, Value sum) {
  if (plan.family == ssa_gpu::Family::wgmma)
    return t.mma(plan.family, lhs, rhs, /*transposed=*/true, sum);
  // Not all of the left operand is in registers at once.
  constexpr int64_t columns = 128;
  for (int64_t first = 0; first < plan.paddedDim; first += columns) {
    int64_t width = std::min(columns, plan.paddedDim - first);
    Value operand = t.loadOperand(t.columns(lhs, first, width));
    sum = t.mma(plan.family, operand, t.columns(rhs, first, width), /*transposed=*/true, sum);
  }
  return sum;
}

Value RouteTileKernel::multiply(TileEmitter &t, Value queryStage, Value keyStage) {
  if (plan.usesTensorMemory)
    return multiplyInTensors(t, queryStage, keyStage);
  auto addTo = [&](Value queryRing, Value keyRing, Value sum) {
    Value queries = t.slot(queryRing, queryStage), keys = t.slot(keyRing, keyStage);
    return keysFirst ? addProduct(t, keys, queries, sum) : addProduct(t, queries, keys, sum);
  };
  Value products = addTo(queryLow, keyLow, splat(t, getColumns(), 0));
  return keyHigh ? addTo(queryHigh, keyHigh, products) : products;
}

Value RouteTileKernel::ofKeys(TileEmitter &t, Type type, llvm::function_ref<Value(Value)> value) {
  return keysFirst ? t.broadcast(t.mapRows(type, value), getColumns()) : t.mapColumns(getColumns(), type, value);
}

Value RouteTileKernel::ofPairs(TileEmitter &t, Type type, llvm::function_ref<Value(Value)> value) {
  return keysFirst ? t.mapColumns(getColumns(), type, value) : t.broadcast(t.mapRows(type, value), getColumns());
}

Value RouteTileKernel::ofJoinedKeys(TileEmitter &t, Type type, llvm::function_ref<Value(Value)> value) {
  return keysFirst ? t.broadcast(t.mapRows(type, value), foldedColumns()) : t.mapColumns(foldedColumns(), type, value);
}

Value RouteTileKernel::ofQueries(TileEmitter &t, Type type, llvm::function_ref<Value(Value)> value) {
  return keysFirst ? t.mapColumns(foldedColumns(), type, value) : t.broadcast(t.mapRows(type, value), foldedColumns());
}

Value RouteTileKernel::getNumber(TileEmitter &t, const Step &step, Value entry) {
  return numberRing ? t.loadEntry(t.slot(numberRing, step.stage), entry) : add(toI32(step.firstColumn), entry);
}

std::pair<Value, double> RouteTileKernel::getScores(TileEmitter &t, Value products, Value chunk, const Step &step) {
  bool isProduct = c.op.getScore().empty() && !c.op.getWeights() && !c.op.getScales();
  if (c.isSoftmax() && isProduct && c.scale > 0) // both factors in one
    return {products, c.scale * log2OfE};
  ScoreShape shape(*this, t, getColumns());
  auto scaleOf = [&] {
    return ofKeys(t, f32Type(), [&](Value entry) { return t.loadEntry(t.slot(scaleRing, step.stage), entry); });
  };
  auto weightOf = [&] {
    return ofPairs(t, f32Type(), [&](Value pair) { return t.loadEntry(t.slot(weightRing, getQuerySlot(chunk)), getWeightPlace(pair)); });
  };
  auto batchOf = [&] { return shape.splat(c.getBatchNumber(*this, batch)); };
  auto headOf = [&] { return ofPairs(t, i32Type(), [&](Value pair) { return toI32(getPair(pair, chunk).head); }); };
  auto positionOf = [&] {
    return ofPairs(t, i32Type(), [&](Value pair) { return VisibleBlocks(*this, c, getPair(pair, chunk).m).position; });
  };
  auto blockOf = [&] { return ofKeys(t, i32Type(), [&](Value entry) { return getNumber(t, step, entry); }); };
  RouteContext::Terms terms{scaleOf, weightOf, batchOf, headOf, positionOf, blockOf};
  Region &region = scalesAfter && !doubledScore.empty() ? doubledScore : c.op.getScore();
  return {c.getScore(shape, products, c.getCaptured(*this), terms, region, /*scales=*/!scalesAfter), log2OfE};
}

/// `2^(scores * factor + reference)`.
Value RouteTileKernel::getExponent(TileEmitter &t, Value scores, double factor, Value reference) {
  return exp2(*this, math::FmaOp::create(builder, loc, scores, splat(t, getColumns(), factor), reference));
}

/// The steps among `begin` .. `end`-1 (index) in which a row of the tile may see something; i32.
std::pair<Value, Value> RouteTileKernel::getSteps(Value begin, Value end) {
  if (c.op.getWithin()) { // without keys no column stands for any
    Value hasKeys = lt(index(0), dim(get(RouteArgument::key), 2));
    return {toI32(begin), toI32(select(hasKeys, end, begin))};
  }
  VisibleBlocks first(*this, c, firstRow), last(*this, c, min(add(firstRow, index(plan.tileQueries() - 1)), lastRow));
  Value limit = last.sinkEnd ? max(last.end, last.sinkEnd) : last.end, tile = i32(keys);
  Value from = first.begin && !first.sinkEnd ? div(first.begin, tile) : i32(0);
  return {max(toI32(begin), from), min(toI32(end), ceilDiv(limit, tile))};
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

void RouteTileKernel::buildSums() {
  Emitter e(c.host.builder, loc);
  Value query = c.getHost(RouteArgument::query), parts = e.dim(c.getHost(RouteArgument::partSums), 3);
  Value tiles = countRowTiles(e, c, plan, e.dim(query, 2));
  Value items = e.mul(e.mul(e.mul(e.dim(query, 0), e.index(c.cells * plan.chunks)), tiles), parts);
  setBlocks(plan.sumsBytes(c));
  forEachTile(items, [&](Value item) { buildSumsItem(item); });
  finish();
}

void RouteTileKernel::buildScores() {
  Emitter e(c.host.builder, loc);
  Value scores = c.getHost(RouteArgument::scores), steps = e.ceilDiv(e.dim(scores, 3), e.index(plan.keys));
  Value tiles = countTiles(e, c, plan, scores);
  setBlocks(plan.scoresBytes(c));
  forEachTile(e.mul(tiles, e.ceilDiv(steps, c.getHost(RouteArgument::steps))), [&](Value item) { buildScoresItem(item); });
  finish();
}

Value ssa::getStepsPerItem(RouteContext &c, const RoutePlan &plan, int64_t wantedItems) {
  Emitter e(c.host.builder, c.op.getLoc());
  Value scores = c.getHost(RouteArgument::scores), steps = e.ceilDiv(e.dim(scores, 3), e.index(plan.keys)), one = e.index(1);
  Value tiles = countTiles(e, c, plan, scores);
  Value splits = e.max(e.div(e.index(wantedItems), e.max(tiles, one)), one);
  return e.max(e.ceilDiv(steps, splits), one);
}

/// Decides how wide copies are; false if they would be too narrow.
static bool setWidths(RoutePlan &plan, const RouteContext &c) {
  auto getWidth = [&](ArrayRef<NamedBuffer> rows, Type type) -> int64_t {
    bool isWide = type.getIntOrFloatBitWidth() == 16;
    if (isWide && c.dim % 2 != 0)
      return 0; // a copy moves 4 bytes at least
    int64_t most = plan.elementType.getIntOrFloatBitWidth() == 8 ? 16 : 8;
    int64_t width = std::min<int64_t>(c.host.getVectorWidth(c.op, c.dim, rows), most);
    return isWide && width < 2 ? 0 : width;
  };
  SmallVector<NamedBuffer> keys = {{"key", c.host.getBuffer(c.op.getKey())}};
  if (c.op.getKeyMax())
    keys.push_back({"key_max", c.host.getBuffer(c.op.getKeyMax())});
  plan.queryWidth = getWidth({{"query", c.host.getBuffer(c.op.getQuery())}}, c.op.getQuery().getType().getElementType());
  plan.keyWidth = getWidth(keys, c.op.getKey().getType().getElementType());
  return plan.queryWidth && plan.keyWidth;
}

bool ssa::buildRouteTiles(RouteContext &c, TargetAttr target) {
  if (buildRouteRoles(c, target))
    return true;
  RoutePlan plan(c, target);
  if (!target.hasMMASync() || !target.hasCpAsync() || !plan.elementType || !plan.setSizes(c) || !setWidths(plan, c))
    return false;
  if (plan.bytesForTensors > 0)
    c.op.emitRemark() << "makes its products with 'mma.sync': tiles for 'tcgen05' need " << plan.bytesForTensors << " bytes of shared memory, but '"
                      << target.getChip() << "' has " << plan.sharedBytes;
  if (c.makesSums()) {
    c.buildApart([&] {
      addPartArguments(c);
      RouteTileKernel(c, plan.ofSums(c), "ssa_route_softmax", /*keysFirst=*/false).buildSums();
      joinRouteParts(c);
    });
  }
  constexpr int64_t wantedItems = 1024;
  c.addArgument(RouteArgument::steps, getStepsPerItem(c, plan, wantedItems));
  RouteTileKernel(c, plan, "ssa_route", /*keysFirst=*/true).buildScores();
  return true;
}
