//===- RouteTiles.cpp - route on tensor cores -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "RouteTiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <numeric>

using namespace mlir;
using namespace mlir::ssa;

RoutePlan::RoutePlan(const RouteContext &c, TargetAttr target)
    : family(target.hasWGMMA() ? ssa_gpu::Family::wgmma : ssa_gpu::Family::mma_sync), paddedDim(ceilDiv(c.dim, 16) * 16),
      operands(c.op.getBound() ? 2 : 1), unit(std::gcd(c.group, c.heads / c.keyHeads)), sharedBytes(target.sharedMemoryBytes()) {
  // What has 8 bits is exact in both types of 16.
  Type types[] = {c.op.getQuery().getType().getElementType(), c.op.getKey().getType().getElementType()};
  bool sameKeys = !c.op.getKeyMax() || c.op.getKeyMax().getType().getElementType() == types[1];
  for (Type type : types) {
    if (type.isF32() || !sameKeys || (elementType && type.getIntOrFloatBitWidth() == 16 && type != elementType)) {
      elementType = Type();
      return;
    }
    if (type.getIntOrFloatBitWidth() == 16)
      elementType = type;
  }
  if (!elementType)
    elementType = Float16Type::get(c.op.getContext());
}

/// Decides how wide copies are; false if they would be too narrow.
static bool setWidths(RoutePlan &plan, const RouteContext &c) {
  auto getWidth = [&](ArrayRef<NamedBuffer> rows, Type type) -> int64_t {
    bool isWide = type.getIntOrFloatBitWidth() == 16;
    if (isWide && c.dim % 2 != 0)
      return 0; // a copy moves 4 bytes at least
    int64_t width = std::min<int64_t>(c.host.getVectorWidth(c.op, c.dim, rows), 8);
    return isWide && width < 2 ? 0 : width;
  };
  SmallVector<NamedBuffer> keys = {{"key", c.host.getBuffer(c.op.getKey())}};
  if (c.op.getKeyMax())
    keys.push_back({"key_max", c.host.getBuffer(c.op.getKeyMax())});
  plan.queryWidth = getWidth({{"query", c.host.getBuffer(c.op.getQuery())}}, c.op.getQuery().getType().getElementType());
  plan.keyWidth = getWidth(keys, c.op.getKey().getType().getElementType());
  return plan.queryWidth && plan.keyWidth;
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// The number of row tiles of one cell.
Value RouteTileKernel::countRowTiles(Emitter &e, Value rows) {
  if (!c.rowsPerList)
    return e.ceilDiv(rows, e.index(tiling.queries));
  return e.mul(e.ceilDiv(rows, e.index(c.rowsPerList)), e.index(ssa::ceilDiv(c.rowsPerList, tiling.queries)));
}

/// Splits off what says which rows the item has.
void RouteTileKernel::decodeRows(Value &item) {
  Value rows = dim(get(RouteArgument::query), 2);
  Value tiles = countRowTiles(*this, rows), tile = rem(item, tiles);
  item = div(item, tiles);
  cell = rem(item, index(c.cells));
  batch = div(item, index(c.cells));
  list = index(0);
  Value end = rows;
  if (c.rowsPerList) {
    Value tilesPerList = index(ssa::ceilDiv(c.rowsPerList, tiling.queries)), perList = index(c.rowsPerList);
    list = div(tile, tilesPerList);
    firstRow = add(mul(list, perList), mul(rem(tile, tilesPerList), index(tiling.queries)));
    end = min(end, mul(add(list, index(1)), perList));
  } else {
    firstRow = mul(tile, index(tiling.queries));
  }
  lastRow = sub(end, index(1));
  lastQuery = toI32(min(sub(lastRow, firstRow), index(tiling.queries - 1)));
}

RouteTileKernel::Row RouteTileKernel::getRow(Value row, Value chunk) {
  Value query = div(row, i32(tiling.heads)), inTile = rem(row, i32(tiling.heads));
  Value inUnit = add(mul(rem(chunk, i32(chunksPerUnit)), i32(tiling.heads)), inTile);
  Value unitBegin = add(mul(toI32(cell), i32(c.group)), mul(div(chunk, i32(chunksPerUnit)), i32(plan.unit)));
  Value exists = le(query, lastQuery);
  if (plan.unit % tiling.heads != 0)
    exists = both(exists, lt(inUnit, i32(plan.unit)));
  Value head = add(unitBegin, min(inUnit, i32(plan.unit - 1)));
  return {add(firstRow, toIndex(min(query, lastQuery))), toIndex(head), exists};
}

Value RouteTileKernel::getKeyHead(Value chunk) {
  Value unitBegin = add(mul(toI32(cell), i32(c.group)), mul(div(chunk, i32(chunksPerUnit)), i32(plan.unit)));
  return toIndex(div(unitBegin, i32(c.heads / c.keyHeads)));
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

void RouteTileKernel::prepareItem(TileEmitter &t, int64_t queryStages, int64_t keyStages) {
  Type i32Type = builder.getI32Type();
  auto ring = [&](int64_t stages) { return t.alloc({stages, tileRows, plan.paddedDim}, plan.elementType); };
  queryLow = ring(queryStages);
  keyLow = ring(keyStages);
  queryView = BufferView(*this, get(RouteArgument::query));
  keyView = BufferView(*this, get(RouteArgument::key));
  if (c.op.getBound()) {
    queryHigh = ring(queryStages);
    keyHigh = ring(keyStages);
    keyMaxView = BufferView(*this, get(RouteArgument::keyMax));
  }
  numberRing = t.alloc({keyStages, tileColumns}, i32Type);
  visibleArrays.end = t.alloc({tileRows}, i32Type);
  if (c.mask && c.mask.getWindow())
    visibleArrays.begin = t.alloc({tileRows}, i32Type);
  if (c.mask && c.mask.getSink())
    visibleArrays.sinkEnd = t.alloc({tileRows}, i32Type);
}

/// Writes what the rows of scores see; entries past the last row repeat it.
void RouteTileKernel::fillVisible(TileEmitter &t) {
  auto fill = [&](Value array, Value VisibleBlocks::*member) {
    if (array)
      t.fill(array, [&](Value entry) { return VisibleBlocks(*this, c, min(add(firstRow, toIndex(entry)), lastRow)).*member; });
  };
  fill(visibleArrays.begin, &VisibleBlocks::begin);
  fill(visibleArrays.end, &VisibleBlocks::end);
  fill(visibleArrays.sinkEnd, &VisibleBlocks::sinkEnd);
}

void RouteTileKernel::fillNumbers(TileEmitter &t, Value numbers, Value firstColumn) {
  Value row = c.getListRow(*this, list);
  t.fill(numbers, [&](Value entry) { return c.getBlock(*this, batch, cell, row, add(firstColumn, toIndex(entry))); });
}

void RouteTileKernel::loadRows(TileEmitter &t, const BufferView &view, Value tile, int64_t width,
                               llvm::function_ref<RowPlace(Value)> place) {
  if (cast<MemRefType>(view.buffer.getType()).getElementTypeBitWidth() == 8)
    t.convertRows(view.buffer, tile, c.dim, width, place);
  else
    t.copyRows(view.buffer, tile, c.dim, width, place);
}

void RouteTileKernel::loadQueries(TileEmitter &t, Value chunk, Value stage) {
  loadRows(t, queryView, t.slot(queryLow, stage), plan.queryWidth, [&](Value row) -> RowPlace {
    Row r = getRow(row, chunk);
    return {queryView.getBegin(*this, {batch, r.head, r.m}), r.exists};
  });
  if (queryHigh) // zeros, for orderQueries
    loadRows(t, queryView, t.slot(queryHigh, stage), plan.queryWidth,
             [&](Value) -> RowPlace { return {index(0), arith::ConstantIntOp::create(builder, loc, builder.getI1Type(), 0)}; });
}

void RouteTileKernel::loadKeys(TileEmitter &t, Value chunk, Value stage, Value firstColumn) {
  Value head = getKeyHead(chunk), listRow = c.getListRow(*this, list);
  auto place = [&](const BufferView &view) {
    return [&](Value row) -> RowPlace {
      Value number = c.getBlock(*this, batch, cell, listRow, add(firstColumn, toIndex(row)));
      Value exists = ne(number, i32(RouteContext::none));
      return {view.getBegin(*this, {batch, head, toIndex(number)}), exists};
    };
  };
  loadRows(t, keyView, t.slot(keyLow, stage), plan.keyWidth, place(keyView));
  if (keyHigh)
    loadRows(t, keyMaxView, t.slot(keyHigh, stage), plan.keyWidth, place(keyMaxView));
}

void RouteTileKernel::orderQueries(TileEmitter &t, Value stage) { t.order(t.slot(queryLow, stage), t.slot(queryHigh, stage)); }
void RouteTileKernel::orderKeys(TileEmitter &t, Value stage) { t.order(t.slot(keyLow, stage), t.slot(keyHigh, stage)); }

//===----------------------------------------------------------------------===//
// Scores of a tile
//===----------------------------------------------------------------------===//

/// Adds the product of two tiles.
Value RouteTileKernel::addProduct(TileEmitter &t, Value queries, Value keys, Value sum) {
  if (plan.family == ssa_gpu::Family::wgmma)
    return t.mma(plan.family, queries, keys, /*transposed=*/true, sum);
  // Not all of the left operand is in registers at once.
  constexpr int64_t columns = 128;
  for (int64_t first = 0; first < plan.paddedDim; first += columns) {
    int64_t width = std::min(columns, plan.paddedDim - first);
    Value lhs = t.loadOperand(t.columns(queries, first, width));
    sum = t.mma(plan.family, lhs, t.columns(keys, first, width), /*transposed=*/true, sum);
  }
  return sum;
}

Value RouteTileKernel::multiply(TileEmitter &t, Value queryStage, Value keyStage) {
  Value products = addProduct(t, t.slot(queryLow, queryStage), t.slot(keyLow, keyStage), splat(t, 0));
  return keyHigh ? addProduct(t, t.slot(queryHigh, queryStage), t.slot(keyHigh, keyStage), products) : products;
}

/// Scores before any softmax of the rows of a chunk.
Value RouteTileKernel::getTileScores(TileEmitter &t, Value products, Value chunk, Value numbers) {
  ScoreShape shape(*this, t, tileColumns);
  Type f32Type = builder.getF32Type(), i32Type = builder.getI32Type();
  auto ofRows = [&](Type type, llvm::function_ref<Value(const Row &)> value) {
    return t.broadcast(t.mapRows(type, [&](Value row) { return value(getRow(row, chunk)); }), tileColumns);
  };
  auto scaleOf = [&]() -> Value {
    Value head = getKeyHead(chunk), last = sub(dim(get(RouteArgument::key), 2), index(1));
    return t.mapColumns(tileColumns, f32Type, [&](Value column) {
      return load(get(RouteArgument::scales), {batch, head, min(toIndex(t.loadEntry(numbers, column)), last)});
    });
  };
  auto weightOf = [&] { return ofRows(f32Type, [&](const Row &r) { return load(get(RouteArgument::weights), {batch, r.head, r.m}); }); };
  auto batchOf = [&] { return shape.splat(toI32(batch)); };
  auto headOf = [&] { return ofRows(i32Type, [&](const Row &r) { return toI32(r.head); }); };
  auto positionOf = [&] { return ofRows(i32Type, [&](const Row &r) { return VisibleBlocks(*this, c, r.m).position; }); };
  auto blockOf = [&] { return t.mapColumns(tileColumns, i32Type, [&](Value column) { return t.loadEntry(numbers, column); }); };
  RouteContext::Terms terms{scaleOf, weightOf, batchOf, headOf, positionOf, blockOf};
  return c.getScore(shape, products, c.getCaptured(*this), terms);
}

/// Which columns the rows of the tile see.
Value RouteTileKernel::getVisibleTile(TileEmitter &t, Value numbers) {
  Type i32Type = builder.getI32Type();
  auto ofRows = [&](Value array) -> Value {
    if (!array)
      return Value();
    return t.broadcast(t.mapRows(i32Type, [&](Value row) { return t.loadEntry(array, div(row, i32(tiling.heads))); }), tileColumns);
  };
  VisibleBlocks visible;
  visible.begin = ofRows(visibleArrays.begin);
  visible.end = ofRows(visibleArrays.end);
  visible.sinkEnd = ofRows(visibleArrays.sinkEnd);
  return visible.contains(*this, t.mapColumns(tileColumns, i32Type, [&](Value column) { return t.loadEntry(numbers, column); }));
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

/// False if no row of the tile sees a column of it. Numbers ascend, and later rows do not see less far.
Value RouteTileKernel::isInSight(TileEmitter &t) {
  Value numbers = t.slot(numberRing, i32(0)), last = i32(tiling.queries - 1);
  Value first = t.loadEntry(numbers, i32(0));
  Value isSeen = lt(first, t.loadEntry(visibleArrays.end, last));
  if (visibleArrays.begin)
    isSeen = both(isSeen, ge(t.loadEntry(numbers, i32(tileColumns - 1)), t.loadEntry(visibleArrays.begin, i32(0))));
  if (visibleArrays.sinkEnd)
    isSeen = either(isSeen, lt(first, t.loadEntry(visibleArrays.sinkEnd, last)));
  return isSeen;
}

/// Softmax, if any, and reduction: joins the scores of a chunk with those before.
Value RouteTileKernel::joinScores(TileEmitter &t, Value scores, Value chunk, Value before) {
  auto ofRows = [&](RouteArgument a) {
    Value rows = t.mapRows(builder.getF32Type(), [&](Value row) {
      Row r = getRow(row, chunk);
      return load(get(a), {batch, r.head, r.m});
    });
    return t.broadcast(rows, tileColumns);
  };
  if (c.isSoftmax()) {
    Value difference = fsub(scores, ofRows(RouteArgument::maxima));
    scores = fmul(exp2(*this, fmul(difference, splat(t, log2OfE))), ofRows(RouteArgument::factors));
  }
  if (plan.unit % tiling.heads != 0) { // rows without a head add nothing
    Value exists = t.mapRows(builder.getI1Type(), [&](Value row) { return getRow(row, chunk).exists; });
    scores = select(t.broadcast(exists, tileColumns), scores, splat(t, c.isMax() ? -infinity : 0));
  }
  if (c.isMax())
    return arith::MaximumFOp::create(builder, loc, before, scores);
  return fadd(before, scores);
}

/// The scores of all chunks together, for the columns from `firstColumn` on.
Value RouteTileKernel::joinChunks(TileEmitter &t, Value firstColumn, int64_t stages) {
  bool ownKeys = chunks > chunksPerUnit; // a chunk loads its keys
  Value zero = i32(0), numbers = t.slot(numberRing, zero);
  auto loadChunk = [&](Value chunk) {
    Value stage = rem(chunk, i32(stages));
    loadQueries(t, chunk, stage);
    if (ownKeys)
      loadKeys(t, chunk, stage, firstColumn);
  };
  if (!ownKeys)
    loadKeys(t, zero, zero, firstColumn);
  if (stages > 1)
    loadChunk(zero);
  t.commitCopies();
  if (keyHigh && !ownKeys) {
    t.waitCopies(0);
    orderKeys(t, zero);
  }
  Value initial = splat(t, c.isMax() ? -infinity : 0);
  return loop(zero, i32(chunks), i32(1), initial, [&](Value chunk, ValueRange carried) -> SmallVector<Value> {
    Value stage = rem(chunk, i32(stages)), keyStage = ownKeys ? stage : zero;
    if (stages > 1) {
      t.waitCopies(0);
      Value next = add(chunk, i32(1));
      ifThen(lt(next, i32(chunks)), [&] { loadChunk(next); });
      t.commitCopies();
    } else {
      gpu::BarrierOp::create(builder, loc); // the last chunk has been read
      loadChunk(chunk);
      t.commitCopies();
      t.waitCopies(0);
    }
    if (queryHigh) {
      orderQueries(t, stage);
      if (ownKeys)
        orderKeys(t, keyStage);
      t.waitCopies(stages - 1);
    }
    Value products = multiply(t, stage, keyStage);
    return {joinScores(t, getTileScores(t, products, chunk, numbers), chunk, carried[0])};
  })[0];
}

/// Writes the tile: joins the rows of its heads, hides what is not seen.
void RouteTileKernel::storeScores(TileEmitter &t, Value firstColumn) {
  Value scores = get(RouteArgument::scores), thread = toI32(threadId()), inTile = rem(thread, i32(tileColumns));
  Value column = add(firstColumn, toIndex(inTile)), isColumn = lt(column, dim(scores, 3));
  Value number = t.loadEntry(t.slot(numberRing, i32(0)), inTile);
  constexpr int64_t rowsAtOnce = 32 * warps / tileColumns;
  loop(div(thread, i32(tileColumns)), i32(tiling.queries), i32(rowsAtOnce), [&](Value query) {
    ifThen(both(isColumn, le(query, lastQuery)), [&] {
      Value m = add(firstRow, toIndex(query));
      Value begin = add(mul(query, i32(tiling.heads * pitch)), inTile);
      auto loadHead = [&](Value head) { return t.loadEntry(joined, add(begin, mul(head, i32(pitch)))); };
      Value score = loop(i32(1), i32(tiling.heads), i32(1), loadHead(i32(0)), [&](Value head, ValueRange sum) -> SmallVector<Value> {
        if (c.isMax())
          return {arith::MaximumFOp::create(builder, loc, sum[0], loadHead(head))};
        return {fadd(sum[0], loadHead(head))};
      })[0];
      auto entry = [&](Value array) { return array ? t.loadEntry(array, query) : Value(); };
      VisibleBlocks visible;
      visible.begin = entry(visibleArrays.begin);
      visible.end = entry(visibleArrays.end);
      visible.sinkEnd = entry(visibleArrays.sinkEnd);
      store(select(visible.contains(*this, number), score, none()), scores, {batch, cell, m, column});
    });
  });
}

void RouteTileKernel::buildScoresItem(Value item) {
  TileEmitter t(*this, tileRows);
  Value tiles = ceilDiv(dim(get(RouteArgument::scores), 3), index(tileColumns));
  Value firstColumn = mul(rem(item, tiles), index(tileColumns));
  item = div(item, tiles);
  decodeRows(item);
  bool ownKeys = chunks > chunksPerUnit;
  int64_t stages = chunks > 1 && plan.bytes(2, ownKeys ? 2 : 1) <= plan.sharedBytes ? 2 : 1;
  prepareItem(t, stages, ownKeys ? stages : 1);
  joined = t.alloc({tileRows * pitch}, builder.getF32Type());

  gpu::BarrierOp::create(builder, loc); // what the last item left in shared memory has been read
  fillVisible(t);
  fillNumbers(t, t.slot(numberRing, i32(0)), firstColumn);
  gpu::BarrierOp::create(builder, loc);
  ifThen(isInSight(t), [&] { t.spread(joinChunks(t, firstColumn, stages), joined, pitch); });
  gpu::BarrierOp::create(builder, loc);
  storeScores(t, firstColumn);
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

void RouteTileKernel::buildScores(Value condition) {
  Emitter e(c.host.builder, loc);
  Value scores = c.getHost(RouteArgument::scores);
  Value tiles = e.mul(e.mul(e.dim(scores, 0), e.index(c.cells)), countRowTiles(e, e.dim(scores, 2)));
  Value items = e.mul(tiles, e.ceilDiv(e.dim(scores, 3), e.index(tileColumns)));
  forEachItem(condition ? e.select(condition, items, e.index(0)) : items, [&](Value item) { buildScoresItem(item); });
  finish();
}

/// How tiles are filled, and when each way is taken (null: always).
static SmallVector<std::pair<RouteTiling, Value>> chooseTilings(RouteContext &c, const RoutePlan &plan) {
  if (c.rowsPerList) {
    int64_t queries = std::min(c.rowsPerList, tileRows);
    return {{{queries, std::clamp<int64_t>(tileRows / queries, 1, plan.unit)}, Value()}};
  }
  RouteTiling many{tileRows, 1};
  int64_t heads = std::min(plan.unit, tileRows);
  RouteTiling few{tileRows / heads, heads};
  constexpr int64_t maxFewRows = 32; // a tile of `many` would be half empty
  if (heads == 1)
    return {{many, Value()}};
  int64_t rows = c.op.getQuery().getType().getDimSize(2);
  if (ShapedType::isStatic(rows))
    return {{rows <= maxFewRows ? few : many, Value()}};
  Emitter e(c.host.builder, c.op.getLoc());
  Value dynamicRows = e.dim(c.getHost(RouteArgument::query), 2), limit = e.index(maxFewRows);
  return {{few, e.le(dynamicRows, limit)}, {many, e.lt(limit, dynamicRows)}};
}

bool ssa::buildRouteTiles(RouteContext &c, TargetAttr target) {
  RoutePlan plan(c, target);
  if (!target.hasMMASync() || !target.hasCpAsync() || !plan.elementType || plan.bytes(1, 1) > plan.sharedBytes || !setWidths(plan, c))
    return false;
  SmallVector<std::pair<RouteTiling, Value>> tilings = chooseTilings(c, plan);
  if (c.isSoftmax()) {
    auto parts = [&](Emitter &e) { return e.ceilDiv(e.dim(c.capacity, 3), e.index(tileColumns * tilesPerPart)); };
    c.addArgument(RouteArgument::partMaxima, c.allocatePerRow(parts));
    c.addArgument(RouteArgument::partSums, c.allocatePerRow(parts));
    for (auto &[tiling, condition] : tilings)
      RouteTileKernel(c, plan, tiling, "ssa_route_softmax").buildSums(condition);
    joinRouteParts(c);
  }
  for (auto &[tiling, condition] : tilings)
    RouteTileKernel(c, plan, tiling, "ssa_route").buildScores(condition);
  return true;
}
