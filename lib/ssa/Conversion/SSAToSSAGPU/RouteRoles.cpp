//===- RouteRoles.cpp - route with roles of warps -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "RouteRoles.h"
#include "RouteSelect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"

using namespace mlir;
using namespace mlir::ssa;

//===----------------------------------------------------------------------===//
// Memory and roles
//===----------------------------------------------------------------------===//

void RouteRoleKernel::allocate() {
  TileEmitter t(*this, plan.keys, plan.groups);
  auto tiles = [&](int64_t slots, int64_t rows) { return t.alloc({slots, rows, plan.paddedDim}, plan.elementType); };
  auto arrays = [&](int64_t slots, int64_t size, Type type) { return t.alloc({slots, size}, type); };
  queryView = BufferView(*this, get(RouteArgument::query));
  keyView = BufferView(*this, get(RouteArgument::key));
  queryLow = tiles(plan.queryStages, plan.pairs);
  keyLow = tiles(plan.keyStages, plan.keys);
  // Of scores all chunks are under one ticket; of sums a ticket has one chunk.
  int64_t slots = joinsChunks() ? 1 : plan.queryStages, entries = std::max<int64_t>(plan.tileQueries(), 8);
  visibleRings.end = arrays(slots, entries, i32Type());
  if (c.mask && c.mask.getWindow())
    visibleRings.begin = arrays(slots, entries, i32Type());
  if (c.mask && c.mask.getSink())
    visibleRings.sinkEnd = arrays(slots, entries, i32Type());
  if (c.op.getScales())
    scaleRing = arrays(plan.keyStages, plan.keys, f32Type());
  if (c.op.getWeights())
    weightRing = arrays(plan.queryStages, plan.pairs, f32Type());
  if (c.isSoftmax() && keysFirst && plan.chunks > 1)
    referenceRing = arrays(plan.queryStages, plan.pairs, f32Type());
  if (plan.folds > 1)
    exchange = t.alloc({plan.pairs / 2 * keys / 2}, f32Type());
  int64_t consumers = plan.consumers(keysFirst) / warpSize;
  queryPipe = t.allocPipe(slots, producers / warpSize, consumers);
  keyPipe = t.allocPipe(plan.keyStages, producers / warpSize, consumers);
}

void RouteRoleKernel::useQuerySlot(TileEmitter &t, Value slot) {
  querySlot = slot;
  auto use = [&](Value ring) { return ring ? t.slot(ring, slot) : Value(); };
  visibleArrays.begin = use(visibleRings.begin);
  visibleArrays.end = use(visibleRings.end);
  visibleArrays.sinkEnd = use(visibleRings.sinkEnd);
}

void RouteRoleKernel::addRoles(llvm::function_ref<void()> consume, llvm::function_ref<void()> produce, int64_t producerRegisters,
                               llvm::function_ref<void()> other) {
  // Producers keep few values; the others share what registers are left, in eights.
  constexpr int64_t most = 240, warpgroup = 128;
  int64_t consumers = plan.consumers(keysFirst), behind = (producers + others) / warpgroup, share = 65536 / getNumThreads() / 8 * 8;
  int64_t registers = (share * getNumThreads() / warpgroup - producerRegisters * behind) / (consumers / warpgroup) / 8 * 8;
  setBlocksPerSM(1);
  SmallVector<Role> roles = {{consumers, std::min(registers, most), consume}, {producers, producerRegisters, produce}};
  if (others)
    roles.push_back({others, producerRegisters, other});
  KernelBuilder::addRoles(roles);
}

Value RouteRoleKernel::next(Value ticket, int64_t slots) {
  Value more = add(ticket, i32(1));
  return select(eq(more, i32(2 * slots)), i32(0), more);
}

Value RouteRoleKernel::slotOf(Value ticket, int64_t slots) { return select(uge(ticket, i32(slots)), sub(ticket, i32(slots)), ticket); }

//===----------------------------------------------------------------------===//
// Producers
//===----------------------------------------------------------------------===//

Value RouteRoleKernel::produceKeys(Value chunk, Value ticket) {
  TileEmitter t(*this, plan.keys);
  Value at = toI32(add(batch, get(RouteArgument::firstBatch))), head = getKeyHead(chunk);
  return loop(beginStep, endStep, i32(1), ticket, [&](Value number, ValueRange carried) {
    Value ticket = carried[0], stage = slotOf(ticket, plan.keyStages), first = mul(number, i32(keys));
    t.acquire(keyPipe, ticket);
    if (scaleRing) {
      Value last = sub(toI32(dim(get(RouteArgument::key), 2)), i32(1));
      t.fill(t.slot(scaleRing, stage),
             [&](Value entry) { return load(get(RouteArgument::scales), {batch, head, toIndex(min(add(first, entry), last))}); });
    }
    t.copyBox(get(RouteArgument::keyMap), {at, toI32(head), first}, t.slot(keyLow, stage), keyPipe, ticket);
    t.publish(keyPipe, ticket);
    return SmallVector<Value>{next(ticket, plan.keyStages)};
  })[0];
}

/// The pairs of each group: all queries of a head, then those of the next.
void RouteRoleKernel::copyQueryBoxes(TileEmitter &t, Value chunk, Value slot, Value ticket) {
  Value at = toI32(add(batch, get(RouteArgument::firstBatch))), head = toI32(getPair(i32(0), chunk).head);
  Value row = toI32(add(firstRow, get(RouteArgument::firstRow)));
  for (int64_t group = 0; group < plan.groups; ++group)
    t.copyBox(get(RouteArgument::queryMap), {at, head, add(row, i32(group * plan.queries))}, t.slot(queryLow, slot), queryPipe, ticket,
              group * (plan.pairs / plan.groups));
}

SmallVector<Value> RouteRoleKernel::produceItem(Value chunk, ValueRange tickets) {
  TileEmitter t(*this, plan.keys);
  int64_t slots = joinsChunks() ? 1 : plan.queryStages;
  Value slot = slotOf(tickets[0], slots);
  t.acquire(queryPipe, tickets[0]);
  useQuerySlot(t, slot);
  fillVisible(t);
  auto load = [&](Value chunk, Value slot) {
    fillPairs(t, chunk, slot);
    plan.hasQueryBoxes ? copyQueryBoxes(t, chunk, slot, tickets[0]) : loadQueries(t, chunk, slot);
  };
  if (joinsChunks())
    loop(i32(0), i32(plan.chunks), i32(1), [&](Value number) { load(number, number); });
  else
    load(chunk, slot);
  if (!plan.hasQueryBoxes) {
    t.commitCopies();
    t.finishCopies(0);
  }
  t.publish(queryPipe, tickets[0]);
  return {next(tickets[0], slots), produceKeys(chunk, tickets[1])};
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// Maximum and sum of the rows of an item, and the next tickets.
SmallVector<Value> RouteRoleKernel::consumeSums(TileEmitter &t, Value chunk, ValueRange tickets) {
  useQuerySlot(t, slotOf(tickets[0], plan.queryStages));
  t.await(queryPipe, tickets[0]);
  // Rows of up to 128 numbers of 16 bits stay in registers, which leaves shared memory to the keys.
  bool inRegisters = plan.elementType.getIntOrFloatBitWidth() == 16 && plan.paddedDim <= 128;
  Value queries = t.slot(queryLow, querySlot), lhs = inRegisters ? t.loadOperand(queries) : queries;
  SmallVector<Value> initial = {rowsOf(t, -infinity), splat(t, sumColumns, 0), tickets[1]};
  SmallVector<Value> state = loop(beginStep, endStep, i32(1), initial, [&](Value number, ValueRange carried) {
    Value ticket = carried[2];
    Step step{toIndex(mul(number, i32(keys))), slotOf(ticket, plan.keyStages)};
    t.await(keyPipe, ticket);
    Value products = t.mma(plan.family, lhs, t.slot(keyLow, step.stage), /*transposed=*/true, splat(t, getColumns(), 0));
    if (!scaleRing)
      t.release(keyPipe, ticket);
    auto [scores, factor] = getScores(t, products, chunk, step);
    if (scaleRing)
      t.release(keyPipe, ticket);
    SmallVector<Value> joined = addToSums(t, hide(t, scores, step), factor, carried.take_front(2));
    joined.push_back(next(ticket, plan.keyStages));
    return joined;
  });
  t.release(queryPipe, tickets[0]);
  return {state[0], state[1], next(tickets[0], plan.queryStages), state[2]};
}

void RouteRoleKernel::buildSums(int64_t maxBlocks) {
  Emitter e(c.host.builder, loc);
  Value query = c.getHost(RouteArgument::query), parts = e.dim(c.getHost(RouteArgument::partSums), 3);
  Value tiles = countRowTiles(e, c, plan, e.dim(query, 2));
  Value total = addItems(e.mul(e.mul(e.mul(e.dim(query, 0), e.index(c.cells * plan.chunks)), tiles), parts), maxBlocks);
  allocate();
  auto forEach = [&](llvm::function_ref<SmallVector<Value>(Value chunk, Value part, ValueRange tickets)> body) {
    forEachItem(total, {i32(0), i32(0)}, [&](Value number, ValueRange tickets) {
      auto [chunk, part] = decodeSums(number);
      return body(chunk, part, tickets);
    });
  };
  addRoles(
      [&] {
        forEach([&](Value chunk, Value part, ValueRange tickets) -> SmallVector<Value> {
          TileEmitter t(*this, plan.pairs);
          SmallVector<Value> none = {rowsOf(t, -infinity), splat(t, sumColumns, 0), tickets[0], tickets[1]};
          SmallVector<Value> state = ifElse(
              lt(beginStep, endStep), ValueRange(none).getTypes(), [&] { return consumeSums(t, chunk, tickets); }, [&] { return none; });
          storeSums(t, ArrayRef(state).take_front(2), chunk, part);
          return {state[2], state[3]};
        });
      },
      [&] {
        forEach([&](Value chunk, Value, ValueRange tickets) { // of an item without keys there is nothing to copy
          SmallVector<Value> none(tickets);
          return ifElse(
              lt(beginStep, endStep), tickets.getTypes(), [&] { return produceItem(chunk, tickets); }, [&] { return none; });
        });
      });
  finish();
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

/// Those of one chunk stay in registers.
void RouteRoleKernel::takeReferences(TileEmitter &t) {
  references = Value();
  if (!c.isSoftmax() || plan.chunks > 1)
    return;
  references = ofPairs(t, f32Type(), [&](Value number) -> Value {
    Pair p = getPair(number, i32(0));
    return arith::NegFOp::create(builder, loc, c.loadReference(*this, {batch, p.head, p.m}));
  });
}

/// The scores of a step, from the products of its only chunk.
Value RouteRoleKernel::joinStep(TileEmitter &t, Value products, Value number, Value ticket, const VisibleBlocks &visible) {
  Step step{toIndex(mul(number, i32(keys))), slotOf(ticket, plan.keyStages)};
  if (!scaleRing)
    t.release(keyPipe, ticket);
  Value scores = joinProducts(t, products, i32(0), step, Value());
  if (scaleRing)
    t.release(keyPipe, ticket);
  return hideScores(t, scores, step, visible);
}

Value RouteRoleKernel::beginProducts(TileEmitter &t, Value keys, Value chunk) {
  Value queries = t.slot(queryLow, chunk);
  return t.beginMma(keysFirst ? keys : queries, keysFirst ? queries : keys, /*transposed=*/true, splat(t, getColumns(), 0));
}

Value RouteRoleKernel::loadStepKeys(TileEmitter &t, const Step &step) {
  Value tile = t.slot(keyLow, step.stage);
  // Keys in registers are read from shared memory once for all chunks: 16 registers, as many as there are.
  constexpr int64_t maxRowBytes = 128;
  bool isShort = plan.paddedDim * plan.elementType.getIntOrFloatBitWidth() / 8 <= maxRowBytes;
  return keysFirst && isShort ? t.loadOperand(tile) : tile;
}

Value RouteRoleKernel::awaitProducts(TileEmitter &t, Value ticket) {
  t.await(keyPipe, ticket);
  return beginProducts(t, t.slot(keyLow, slotOf(ticket, plan.keyStages)), i32(0));
}

/// The scores of a step, from several chunks; where registers allow the products of one are under way while those of another are joined.
Value RouteRoleKernel::joinChunks(TileEmitter &t, const Step &step) {
  KeyScales scales = getKeyScales(t, step);
  // By pairs a thread's rows are joined first, those of other warps at last.
  TileEmitter inThread = t.folded(keysFirst ? 1 : 2), atLast = t.folded(plan.folds);
  Value none = splat(inThread, foldedColumns(), c.isMax() ? -infinity : 0);
  auto inTurn = [&] {
    return loop(i32(0), i32(plan.chunks), i32(1), none, [&](Value chunk, ValueRange before) -> SmallVector<Value> {
      return {joinScaled(t, multiply(t, chunk, step.stage), chunk, step, before[0])};
    });
  };
  // Two chunks a turn, as they have registers of their own, and the last two behind them.
  auto ahead = [&]() -> SmallVector<Value> {
    Value keys = loadStepKeys(t, step), first = t.waitMma(beginProducts(t, keys, i32(0)), 0), last = i32(plan.chunks - 2);
    auto joinTwo = [&](Value chunk, Value products, Value before, bool isLast) -> SmallVector<Value> {
      Value after = add(chunk, i32(1)), second = beginProducts(t, keys, after);
      Value joined = joinScaled(t, products, chunk, step, before);
      second = t.waitMma(second, 0);
      Value third = isLast ? Value() : beginProducts(t, keys, add(chunk, i32(2)));
      joined = joinScaled(t, second, after, step, joined);
      return isLast ? SmallVector<Value>{joined} : SmallVector<Value>{joined, t.waitMma(third, 0)};
    };
    SmallVector<Value> state = loop(i32(0), last, i32(2), {none, first}, [&](Value chunk, ValueRange carried) { return joinTwo(chunk, carried[1], carried[0], /*isLast=*/false); });
    return joinTwo(last, state[1], state[0], /*isLast=*/true);
  };
  auto join = [&] { return hasTwoProducts() && plan.chunks % 2 == 0 ? ahead() : inTurn(); };
  Value joined = scales.comeLast ? joinUnscaled(none.getType(), scales, join, inTurn) : join()[0];
  for (int64_t folds = 2; folds < plan.folds; folds *= 2)
    joined = t.folded(folds).joinRows(c.isMax() ? ssa_gpu::RowReduction::max : ssa_gpu::RowReduction::sum, joined, exchange);
  return scaleJoined(atLast, joined, step, scales);
}

/// Scores of steps from one chunk. The products of one step are under way while those of the step before are joined.
SmallVector<Value> RouteRoleKernel::consumeAhead(TileEmitter &t, ValueRange initial,
                                                 llvm::function_ref<Value(Value number, Value products, Value ticket, Value greatest)> join) {
  bool hasMaxima = initial.size() > 1;
  auto greatestOf = [&](ValueRange carried) { return hasMaxima ? carried[1] : Value(); };
  auto carry = [&](Value ticket, Value greatest) { return hasMaxima ? SmallVector<Value>{ticket, greatest} : SmallVector<Value>{ticket}; };
  // Turns of two steps, as long as there is one behind them.
  Value rest = add(beginStep, mul(div(sub(sub(endStep, beginStep), i32(1)), i32(2)), i32(2)));
  SmallVector<Value> state(initial);
  state.push_back(t.waitMma(awaitProducts(t, initial[0]), 0));
  state = loop(beginStep, rest, i32(2), state, [&](Value number, ValueRange carried) {
    Value ticket = carried[0], greatest = greatestOf(carried), products = carried.back();
    for (int64_t i : {0, 1}) {
      Value after = next(ticket, plan.keyStages), ahead = awaitProducts(t, after);
      greatest = join(add(number, i32(i)), products, ticket, greatest);
      products = t.waitMma(ahead, 0);
      ticket = after;
    }
    SmallVector<Value> yielded = carry(ticket, greatest);
    yielded.push_back(products);
    return yielded;
  });
  Value greatest = join(rest, state.back(), state[0], greatestOf(state)), ticket = next(state[0], plan.keyStages);
  return loop(add(rest, i32(1)), endStep, i32(1), carry(ticket, greatest), [&](Value number, ValueRange carried) {
    Value products = t.waitMma(awaitProducts(t, carried[0]), 0);
    return carry(next(carried[0], plan.keyStages), join(number, products, carried[0], greatestOf(carried)));
  });
}

std::pair<Value, Value> RouteRoleKernel::consumeScores(TileEmitter &t, Value ticket,
                                                       llvm::function_ref<void(Value scores, Value firstColumn)> store, Value maxima) {
  TileEmitter joined = t.folded(plan.folds);
  VisibleBlocks visible = loadVisible(joined);
  auto keep = [&](Value number, Value scores, Value greatest) {
    store(scores, toIndex(mul(number, i32(keys))));
    return maxima ? arith::MaxNumFOp::create(builder, loc, greatest, scores).getResult() : Value();
  };
  auto joinOne = [&](Value number, Value products, Value ticket, Value greatest) {
    return keep(number, joinStep(t, products, number, ticket, visible), greatest);
  };
  auto carry = [&](Value ticket, Value greatest) { return maxima ? SmallVector<Value>{ticket, greatest} : SmallVector<Value>{ticket}; };
  SmallVector<Value> state = carry(ticket, maxima);
  if (plan.chunks == 1 && hasTwoProducts()) {
    state = ifElse(lt(beginStep, endStep), ValueRange(state).getTypes(), [&] { return consumeAhead(t, state, joinOne); }, [&] { return state; });
    return {state[0], maxima ? state[1] : Value()};
  }
  state = loop(beginStep, endStep, i32(1), state, [&](Value number, ValueRange carried) {
    Value ticket = carried[0], greatest = maxima ? carried[1] : Value(), stage = slotOf(ticket, plan.keyStages);
    t.await(keyPipe, ticket);
    if (plan.chunks == 1) {
      greatest = joinOne(number, multiply(t, i32(0), stage), ticket, greatest);
    } else {
      Step step{toIndex(mul(number, i32(keys))), stage};
      Value scores = joinChunks(t, step);
      t.release(keyPipe, ticket);
      greatest = keep(number, hideScores(joined, scores, step, visible), greatest);
    }
    return carry(next(ticket, plan.keyStages), greatest);
  });
  return {state[0], maxima ? state[1] : Value()};
}

void RouteRoleKernel::buildScores(int64_t maxBlocks) {
  Emitter e(c.host.builder, loc);
  Value query = c.getHost(RouteArgument::query), steps = e.ceilDiv(c.getColumns(e), e.index(plan.keys));
  Value tiles = e.mul(e.mul(e.dim(query, 0), e.index(c.cells)), countRowTiles(e, c, plan, e.dim(query, 2)));
  Value total = addItems(e.mul(tiles, e.ceilDiv(steps, c.getHost(RouteArgument::steps))), maxBlocks);
  allocate();
  /// Steps of the item that nobody sees are before and behind `beginStep` .. `endStep`-1.
  auto decode = [&](Value number) {
    auto [begin, end] = decodeScores(number);
    Value first = toI32(begin), last = toI32(end);
    beginStep = min(max(beginStep, first), last);
    endStep = max(min(endStep, last), beginStep);
    return std::pair(first, last);
  };
  auto consume = [&](Value number, ValueRange tickets) -> SmallVector<Value> {
    TileEmitter t = getConsumerTiles(), joined = t.folded(plan.folds);
    auto [first, last] = decode(number);
    takeReferences(t);
    t.await(queryPipe, tickets[0]);
    useQuerySlot(t, i32(0));
    auto hide = [&](Value begin, Value end) {
      loop(begin, end, i32(1), [&](Value number) { storeScores(joined, splat(joined, foldedColumns(), -infinity), toIndex(mul(number, i32(keys)))); });
    };
    hide(first, beginStep);
    Value ticket = consumeScores(t, tickets[1], [&](Value scores, Value firstColumn) { storeScores(joined, scores, firstColumn); }).first;
    t.release(queryPipe, tickets[0]);
    hide(endStep, last);
    return {next(tickets[0], 1), ticket};
  };
  auto produce = [&](Value number, ValueRange tickets) {
    decode(number);
    return produceItem(i32(0), tickets);
  };
  addRoles([&] { forEachItem(total, {i32(0), i32(0)}, consume); }, [&] { forEachItem(total, {i32(0), i32(0)}, produce); });
  finish();
}

//===----------------------------------------------------------------------===//
// The op
//===----------------------------------------------------------------------===//

/// A tensor map: boxes of `rows` rows in all, of these sizes, and the columns of a panel.
static Value createMap(RouteContext &c, Value source, int64_t heads, int64_t rows) {
  HostFunction &host = c.host;
  OpBuilder::InsertionGuard guard = host.beforeLoop();
  Emitter e(host.builder, c.op.getLoc());
  Type type = cast<MemRefType>(source.getType()).getElementType();
  int64_t columns = 128 / (type.getIntOrFloatBitWidth() / 8);
  auto space = gpu::AddressSpaceAttr::get(host.builder.getContext(), gpu::AddressSpace::Workgroup);
  auto box = MemRefType::get({heads * rows, columns}, type, MemRefLayoutAttrInterface(), space);
  auto map = nvgpu::TensorMapDescriptorType::get(host.builder.getContext(), box, nvgpu::TensorMapSwizzleKind::SWIZZLE_128B,
                                                 nvgpu::TensorMapL2PromoKind::L2PROMO_256B, nvgpu::TensorMapOOBKind::OOB_ZERO,
                                                 nvgpu::TensorMapInterleaveKind::INTERLEAVE_NONE);
  Value unranked = memref::CastOp::create(host.builder, e.loc, UnrankedMemRefType::get(type, {}), source);
  return nvgpu::TmaCreateDescriptorOp::create(host.builder, e.loc, map, unranked,
                                              ValueRange{e.index(1), e.index(heads), e.index(rows), e.index(columns)});
}

void ssa::setMaps(RouteContext &c, const RoutePlan &plan) {
  c.setArgument(RouteArgument::keyMap, createMap(c, c.host.getBuffer(c.op.getKey()), 1, plan.keys));
  if (plan.hasQueryBoxes)
    c.setArgument(RouteArgument::queryMap, createMap(c, c.host.getBuffer(c.op.getQuery()), plan.heads, plan.queries));
}

/// Decides element type and widths of copies; false if roles do not take the op.
static bool setRoleTypes(RoutePlan &plan, const RouteContext &c, TargetAttr target) {
  Type query = c.op.getQuery().getType().getElementType(), key = c.op.getKey().getType().getElementType();
  bool isNarrow = isa<Float8E4M3FNType>(query);
  if (!target.hasWGMMA() || !target.hasTMA() || !target.hasSetMaxRegister() || c.op.getWithin() || c.op.getBound() || query != key ||
      !(isNarrow || query.isF16() || query.isBF16()))
    return false;
  constexpr int64_t accelerated = 16, leastCopy = 4; // bytes: what the accelerator needs addresses aligned to, what `cp.async` moves
  int64_t bytes = isNarrow ? 1 : 2, columns = 32 / bytes;
  plan.elementType = query;
  plan.paddedDim = ssa::ceilDiv(c.dim, columns) * columns;
  plan.keyWidth = c.host.getVectorWidth(c.op, c.dim, {{"key", c.host.getBuffer(c.op.getKey())}});
  plan.queryWidth = c.host.getVectorWidth(c.op, c.dim, {{"query", c.host.getBuffer(c.op.getQuery())}});
  return plan.keyWidth * bytes == accelerated && plan.queryWidth * bytes >= leastCopy;
}

std::optional<RouteRolePlans> RouteRolePlans::get(const RouteContext &c, TargetAttr target, int64_t otherBytes, int64_t maxGroups) {
  RouteRolePlans plans{RoutePlan(c, target), RoutePlan(c, target)};
  if (!setRoleTypes(plans.sums, c, target) || !setRoleTypes(plans.scores, c, target) || (c.makesSums() && !plans.sums.setSumsWithRoles(c)) ||
      !plans.scores.setScoresWithRoles(c, otherBytes, maxGroups))
    return std::nullopt;
  if (RoutePlan pairs = plans.scores; pairs.setScoresByPairs(c, std::max(otherBytes, RouteStream::getSharedBytes())))
    plans.scores = pairs;
  // The accelerator fills a group's rows as a whole.
  constexpr int64_t maxBox = 256;
  for (RoutePlan *plan : {&plans.sums, &plans.scores})
    plan->hasQueryBoxes = plan->queryWidth == plan->keyWidth && plan->heads * plan->queries == plan->pairs / plan->groups &&
                          plan->heads <= maxBox && plan->queries <= maxBox;
  return plans;
}

void ssa::addRoleArguments(RouteContext &c) {
  Emitter e(c.host.builder, c.op.getLoc());
  if (!c.has(RouteArgument::firstBatch))
    c.addArgument(RouteArgument::firstBatch, c.part.getFirstBatch(e));
  c.addArgument(RouteArgument::firstRow, c.part.getFirstRow(e));
}

void ssa::buildReferences(RouteContext &c, const RouteRolePlans &plans, TargetAttr target) {
  c.buildApart([&] {
    addPartArguments(c);
    setMaps(c, plans.sums);
    RouteRoleKernel(c, plans.sums, "ssa_route_softmax", /*keysFirst=*/false).buildSums(target.numSMs());
    joinRouteParts(c);
  });
}

bool ssa::buildRouteRoles(RouteContext &c, TargetAttr target) {
  std::optional<RouteRolePlans> plans = RouteRolePlans::get(c, target);
  if (!plans)
    return false;
  addRoleArguments(c);
  if (c.makesSums())
    buildReferences(c, *plans, target);
  constexpr int64_t itemsPerBlock = 2;
  setMaps(c, plans->scores);
  c.addArgument(RouteArgument::steps, getStepsPerItem(c, plans->scores, itemsPerBlock * target.numSMs()));
  RouteRoleKernel(c, plans->scores, "ssa_route", /*keysFirst=*/plans->scores.folds == 1).buildScores(target.numSMs());
  return true;
}
