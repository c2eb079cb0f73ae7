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
  keyLow = tiles(plan.keyStages * plan.stepsPerTicket, plan.keys);
  // Of scores all chunks are under one ticket; of sums a ticket has one chunk.
  int64_t slots = plan.querySlots, entries = std::max<int64_t>(plan.tileQueries(), 8);
  visibleRings.end = arrays(slots, entries, i32Type());
  itemRing = arrays(slots, numItemEntries, i32Type());
  if (c.mask && c.mask.getWindow())
    visibleRings.begin = arrays(slots, entries, i32Type());
  if (c.mask && c.mask.getSink())
    visibleRings.sinkEnd = arrays(slots, entries, i32Type());
  if (c.op.getScales())
    scaleRing = arrays(plan.keyStages * plan.stepsPerTicket, plan.keys, f32Type());
  if (c.op.getWeights())
    weightRing = arrays(plan.queryStages, plan.pairs, f32Type());
  if (c.isSoftmax() && keysFirst)
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

Value RouteRoleKernel::stageOf(Value ticket, Value step) {
  Value slot = slotOf(ticket, plan.keyStages);
  return plan.stepsPerTicket > 1 ? add(mul(slot, i32(plan.stepsPerTicket)), step) : slot;
}

Value RouteRoleKernel::slotOf(Value ticket, int64_t slots) {
  return slots == 1 ? i32(0) : select(uge(ticket, i32(slots)), sub(ticket, i32(slots)), ticket);
}

/// What an item is, for those who have not found it out themselves.
void RouteRoleKernel::publishItem(TileEmitter &t, ArrayRef<Value> more) {
  SmallVector<Value> entries = {toI32(batch), toI32(cell), toI32(firstRow), lastQuery, beginStep, endStep};
  llvm::append_range(entries, more);
  assert(more.size() <= maxMore && "expected fewer entries");
  t.fill(t.slot(itemRing, querySlot), entries);
}

/// Waits for an item and what consumers need of it; as many further entries as are asked for.
SmallVector<Value> RouteRoleKernel::awaitItem(TileEmitter &t, Value ticket, int64_t more) {
  t.await(queryPipe, ticket);
  useQuerySlot(t, slotOf(ticket, plan.querySlots));
  // A value that all read from one lane is known to be the same for a warp.
  SmallVector<Value> entries;
  for (int64_t i = 0; i < numItemEntries - maxMore + more; ++i)
    entries.push_back(shuffle(t.loadEntry(t.slot(itemRing, querySlot), i32(i)), i32(0)));
  batch = toIndex(entries[0]);
  cell = toIndex(entries[1]);
  firstRow = toIndex(entries[2]);
  lastQuery = entries[3];
  beginStep = entries[4];
  endStep = entries[5];
  references = c.isSoftmax() && keysFirst && plan.chunks == 1 ? loadReferences(t, i32(0)) : Value();
  return llvm::to_vector(ArrayRef(entries).take_back(more));
}

//===----------------------------------------------------------------------===//
// Producers
//===----------------------------------------------------------------------===//

Value RouteRoleKernel::produceKeys(Value chunk, Value ticket) {
  TileEmitter t(*this, plan.keys);
  Value at = toI32(add(batch, get(RouteArgument::firstBatch))), head = getKeyHead(chunk);
  return loop(beginStep, endStep, i32(plan.stepsPerTicket), ticket, [&](Value number, ValueRange carried) {
    Value ticket = carried[0];
    t.acquire(keyPipe, ticket);
    for (int64_t step = 0; step < plan.stepsPerTicket; ++step) { // those behind the last are not looked at
      Value stage = stageOf(ticket, i32(step)), first = mul(add(number, i32(step)), i32(keys));
      if (scaleRing) {
        Value last = sub(toI32(dim(get(RouteArgument::key), 2)), i32(1));
        t.fill(t.slot(scaleRing, stage),
               [&](Value entry) { return load(get(RouteArgument::scales), {batch, head, toIndex(min(add(first, entry), last))}); });
      }
      t.copyBox(get(RouteArgument::keyMap), {at, toI32(head), first}, t.slot(keyLow, stage), keyPipe, ticket);
    }
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

SmallVector<Value> RouteRoleKernel::produceItem(Value chunk, ValueRange tickets, ArrayRef<Value> more) {
  TileEmitter t(*this, plan.keys);
  Value slot = slotOf(tickets[0], plan.querySlots);
  t.acquire(queryPipe, tickets[0]);
  useQuerySlot(t, slot);
  publishItem(t, more);
  fillVisible(t);
  auto copy = [&](Value chunk, Value slot) { plan.hasQueryBoxes ? copyQueryBoxes(t, chunk, slot, tickets[0]) : loadQueries(t, chunk, slot); };
  auto load = [&](Value number) {
    copy(number, number);
    fillPairs(t, number, number);
  };
  if (joinsChunks() && plan.chunks > 1) {
    loop(i32(0), i32(plan.chunks), i32(1), load);
  } else {
    ifThen(lt(beginStep, endStep), [&] { copy(chunk, slot); }); // of an item without keys nobody looks at them
    fillPairs(t, chunk, slot);
  }
  if (!plan.hasQueryBoxes) {
    t.commitCopies();
    t.finishCopies(0);
  }
  t.publish(queryPipe, tickets[0]);
  return {next(tickets[0], plan.querySlots), produceKeys(chunk, tickets[1])};
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// Sums of the rows of an item that has steps, and the next ticket of keys.
std::pair<RouteTileKernel::Sums, Value> RouteRoleKernel::consumeSums(TileEmitter &t, Value chunk, Value ticket) {
  // Rows of up to 128 numbers of 16 bits stay in registers, which leaves shared memory to the keys.
  bool inRegisters = plan.elementType.getIntOrFloatBitWidth() == 16 && plan.paddedDim <= 128;
  Value queries = t.slot(queryLow, querySlot), lhs = inRegisters ? t.loadOperand(queries) : queries;
  auto [firstSeen, endSeen] = getSeen(t);
  std::pair<Value, Value> seen(shuffle(firstSeen, i32(0)), shuffle(endSeen, i32(0)));
  auto begin = [&](Value keys) { return t.beginMma(lhs, keys, /*transposed=*/true, splat(t, getColumns(), 0)); };
  auto join = [&](Value number, Value products, Value stage, ValueRange state) {
    Step step{toIndex(mul(number, i32(keys))), stage};
    auto [scores, factor] = getScores(t, products, chunk, step);
    return addToSums(t, hide(t, scores, step, seen), factor, Sums(state)).getValues();
  };
  auto [after, state] = consumeAhead(t, ticket, beginSums(t).getValues(), begin, join);
  return {Sums(state), after};
}

void RouteRoleKernel::buildSums(int64_t maxBlocks) {
  Emitter e(c.host.builder, loc);
  Value query = c.getHost(RouteArgument::query), parts = e.dim(c.getHost(RouteArgument::partSums), 3);
  Value tiles = countRowTiles(e, c, plan, e.dim(query, 2));
  Value total = addItems(e.mul(e.mul(e.mul(e.dim(query, 0), e.index(c.cells * plan.chunks)), tiles), parts), maxBlocks);
  allocate();
  auto consume = [&](Value, ValueRange tickets) -> SmallVector<Value> {
    TileEmitter t(*this, plan.pairs);
    SmallVector<Value> more = awaitItem(t, tickets[0], 2), none = beginSums(t).getValues();
    Value chunk = plan.chunks > 1 ? more[0] : i32(0), part = toIndex(more[1]);
    none.push_back(tickets[1]);
    auto consumeSteps = [&] {
      auto [sums, ticket] = consumeSums(t, chunk, tickets[1]);
      SmallVector<Value> state = sums.getValues();
      state.push_back(ticket);
      return state;
    };
    SmallVector<Value> state = ifElse(lt(beginStep, endStep), ValueRange(none).getTypes(), consumeSteps, [&] { return none; });
    t.release(queryPipe, tickets[0]);
    storeSums(t, Sums(state), chunk, part);
    return {next(tickets[0], plan.querySlots), state.back()};
  };
  auto produce = [&](Value number, ValueRange tickets) {
    auto [chunk, part] = decodeSums(number);
    return produceItem(chunk, tickets, {chunk, toI32(part)});
  };
  addRoles([&] { forEachItem(total, {i32(0), i32(0)}, consume); }, [&] { forEachItem(total, {i32(0), i32(0)}, produce); });
  finish();
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

/// The scores of a step, from the products of its only chunk.
Value RouteRoleKernel::joinStep(TileEmitter &t, Value products, Value number, Value stage, const VisibleBlocks &visible) {
  Step step{toIndex(mul(number, i32(keys))), stage};
  return hideScores(t, joinProducts(t, products, i32(0), step, Value()), step, visible);
}

/// What `join` makes of the last products that need the keys of a ticket; it needs their scales.
SmallVector<Value> RouteRoleKernel::releaseKeys(TileEmitter &t, Value ticket, llvm::function_ref<SmallVector<Value>()> join) {
  if (!scaleRing)
    t.release(keyPipe, ticket);
  SmallVector<Value> joined = join();
  if (scaleRing)
    t.release(keyPipe, ticket);
  return joined;
}

Value RouteRoleKernel::beginProducts(TileEmitter &t, Value keys, Value chunk) {
  Value queries = t.slot(queryLow, getQuerySlot(chunk));
  return t.beginMma(keysFirst ? keys : queries, keysFirst ? queries : keys, /*transposed=*/true, splat(t, getColumns(), 0));
}

Value RouteRoleKernel::loadStepKeys(TileEmitter &t, const Step &step) {
  Value tile = t.slot(keyLow, step.stage);
  // Keys in registers are read from shared memory once for all chunks: 16 registers, as many as there are.
  constexpr int64_t maxRowBytes = 128;
  bool isShort = plan.paddedDim * plan.elementType.getIntOrFloatBitWidth() / 8 <= maxRowBytes;
  return keysFirst && isShort ? t.loadOperand(tile) : tile;
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

/// The steps of an item that has some, of one chunk: the products of one are under way while those of the step before are joined.
std::pair<Value, SmallVector<Value>> RouteRoleKernel::consumeAhead(TileEmitter &t, Value ticket, ValueRange state, llvm::function_ref<Value(Value keys)> begin,
                                                                   JoinStep join) {
  bool arePairs = plan.stepsPerTicket == 2; // under a ticket
  auto multiplyAt = [&](Value ticket, int64_t step) { return begin(t.slot(keyLow, stageOf(ticket, i32(step)))); };
  auto joinAt = [&](Value number, Value products, Value ticket, Value step, ValueRange state, bool releases) {
    auto joined = [&] { return join(number, products, stageOf(ticket, step), state); };
    return releases ? releaseKeys(t, ticket, joined) : joined();
  };
  auto carry = [](Value ticket, ArrayRef<Value> state, ArrayRef<Value> more) {
    SmallVector<Value> carried = {ticket};
    llvm::append_range(carried, state);
    llvm::append_range(carried, more);
    return carried;
  };
  // Turns of two steps, as long as there is one behind them.
  Value rest = add(beginStep, mul(div(sub(sub(endStep, beginStep), i32(1)), i32(2)), i32(2)));
  t.await(keyPipe, ticket);
  SmallVector<Value> carried = carry(ticket, llvm::to_vector(state), t.waitMma(multiplyAt(ticket, 0), 0));
  carried = loop(beginStep, rest, i32(2), carried, [&](Value number, ValueRange turn) {
    Value first = turn[0], second = arePairs ? first : next(first, plan.keyStages), third = next(second, plan.keyStages);
    if (!arePairs)
      t.await(keyPipe, second);
    Value ahead = multiplyAt(second, 1);
    SmallVector<Value> state = joinAt(number, turn.back(), first, i32(0), turn.drop_front().drop_back(), /*releases=*/!arePairs);
    t.await(keyPipe, third); // before the products are waited for, so that then the next ones begin at once
    Value products = t.waitMma(ahead, 0);
    ahead = multiplyAt(third, 0);
    state = joinAt(add(number, i32(1)), products, second, i32(1), state, /*releases=*/true);
    return carry(third, state, t.waitMma(ahead, 0));
  });
  // One or two are left.
  carried.push_back(rest);
  auto joinNext = [&](ValueRange turn) {
    Value number = turn.back(), products = turn.drop_back().back(), ticket = turn[0], after = add(number, i32(1));
    SmallVector<Value> state = joinAt(number, products, ticket, sub(number, rest), turn.drop_front().drop_back(2), /*releases=*/!arePairs);
    return std::pair(lt(after, endStep), carry(arePairs ? ticket : next(ticket, plan.keyStages), state, {products, after}));
  };
  auto multiplyNext = [&](ValueRange turn) {
    SmallVector<Value> state(turn);
    if (!arePairs)
      t.await(keyPipe, turn[0]);
    state[state.size() - 2] = t.waitMma(multiplyAt(turn[0], 1), 0);
    return state;
  };
  carried = repeatWhile(carried, joinNext, multiplyNext);
  Value last = carried[0];
  if (arePairs) {
    t.release(keyPipe, last);
    last = next(last, plan.keyStages);
  }
  return {last, llvm::to_vector(ArrayRef(carried).drop_front().drop_back(2))};
}

std::pair<Value, Value> RouteRoleKernel::consumeScores(TileEmitter &t, Value ticket,
                                                       llvm::function_ref<void(Value scores, Value firstColumn)> store, Value maxima) {
  TileEmitter joined = t.folded(plan.folds);
  VisibleBlocks visible = loadVisible(joined);
  auto keep = [&](Value number, Value scores, Value greatest) {
    store(scores, toIndex(mul(number, i32(keys))));
    return maxima ? arith::MaxNumFOp::create(builder, loc, greatest, scores).getResult() : Value();
  };
  auto joinOne = [&](Value number, Value products, Value stage, Value greatest) {
    return keep(number, joinStep(t, products, number, stage, visible), greatest);
  };
  auto carry = [&](Value ticket, Value greatest) { return maxima ? SmallVector<Value>{ticket, greatest} : SmallVector<Value>{ticket}; };
  SmallVector<Value> state = carry(ticket, maxima);
  if (plan.chunks == 1 && hasTwoProducts()) {
    auto begin = [&](Value keys) { return beginProducts(t, keys, i32(0)); };
    auto join = [&](Value number, Value products, Value stage, ValueRange state) {
      Value greatest = joinOne(number, products, stage, maxima ? state[0] : Value());
      return maxima ? SmallVector<Value>{greatest} : SmallVector<Value>();
    };
    auto ahead = [&] {
      auto [last, rest] = consumeAhead(t, ticket, ArrayRef(state).drop_front(), begin, join);
      return carry(last, maxima ? rest[0] : Value());
    };
    state = ifElse(lt(beginStep, endStep), ValueRange(state).getTypes(), ahead, [&] { return state; });
    return {state[0], maxima ? state[1] : Value()};
  }
  state = loop(beginStep, endStep, i32(1), state, [&](Value number, ValueRange carried) {
    Value ticket = carried[0], greatest = maxima ? carried[1] : Value(), stage = slotOf(ticket, plan.keyStages);
    t.await(keyPipe, ticket);
    if (plan.chunks == 1) {
      Value products = multiply(t, getQuerySlot(i32(0)), stage);
      releaseKeys(t, ticket, [&] {
        greatest = joinOne(number, products, stage, greatest);
        return SmallVector<Value>();
      });
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
  Value tiles = countTiles(e, c, plan, c.getHost(RouteArgument::query)), steps = e.ceilDiv(c.getColumns(e), e.index(plan.keys));
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
  auto consume = [&](Value, ValueRange tickets) -> SmallVector<Value> {
    TileEmitter t = getConsumerTiles(), joined = t.folded(plan.folds);
    SmallVector<Value> more = awaitItem(t, tickets[0], 2);
    Value first = more[0], last = more[1];
    auto hide = [&](Value begin, Value end) {
      loop(begin, end, i32(1), [&](Value number) { storeScores(joined, splat(joined, foldedColumns(), -infinity), toIndex(mul(number, i32(keys)))); });
    };
    hide(first, beginStep);
    Value ticket = consumeScores(t, tickets[1], [&](Value scores, Value firstColumn) { storeScores(joined, scores, firstColumn); }).first;
    t.release(queryPipe, tickets[0]);
    hide(endStep, last);
    return {next(tickets[0], plan.querySlots), ticket};
  };
  auto produce = [&](Value number, ValueRange tickets) {
    auto [first, last] = decode(number);
    return produceItem(i32(0), tickets, {first, last});
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
