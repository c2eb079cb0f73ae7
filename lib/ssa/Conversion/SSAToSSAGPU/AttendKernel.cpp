//===- AttendKernel.cpp - The kernel of sparse_attend ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttendKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <limits>

using namespace mlir;
using namespace mlir::ssa;

AttendKernel::AttendKernel(KernelBuilder &k, const AttendPlan &plan)
    : k(k), plan(plan), t(k, plan.rowsOfBlock(), plan.takesTurns ? 1 : plan.groups, /*rowwise=*/plan.usesTensorMemory()),
      elementType(plan.first().op.getQuery().getType().getElementType()) {}

LogicalResult AttendKernel::build(Value items) {
  if (plan.pair)
    k.setPairs();
  readSizes();
  Value total = k.addItems(items, plan.maxBlocks);
  if (plan.isKeyOuter)
    total = getKeyOuterTotal();
  allocate();
  // Without a word the assembler spills a region's values; for sm_100 those of rows that one warp looks up, for more blocks than shared memory
  // has room for. For sm_90a it does not, and takes 4 % less time without (256 tokens a query, H200).
  bool isShort = plan.threads == 32 && plan.first().stretches == 0 && !TargetAttr::of(plan.first().op).hasWGMMA();
  bool hasRegion = llvm::any_of(plan.sources, [](const AttendSource &source) { return !source.op.getScore().empty(); });
  if (!plan.hasRoles() && (hasRegion || isShort))
    k.setBlocksPerSM(plan.blocksPerSM);
  if (plan.usesTensorMemory())
    buildTensorRoles(total);
  else
    plan.hasRoles() ? buildRoles(total) : buildWithoutRoles(total);
  return result;
}

//===----------------------------------------------------------------------===//
// Memory, sizes and places
//===----------------------------------------------------------------------===//

void AttendKernel::allocate() {
  if (plan.pair)
    return allocatePair();
  queryRing = t.alloc({plan.querySlots, plan.tileRows, plan.paddedDim()}, elementType);
  if (plan.takesTurns)
    return allocateTurns();
  keys.ring = t.alloc({plan.stages, plan.tileKeys, plan.paddedDim()}, elementType);
  if (!plan.valuesAreKeys)
    values.ring = t.alloc({plan.stages, plan.tileKeys, plan.paddedValueDim()}, elementType);
  for (Rows *rows : {&keys, &values})
    if (plan.gathers && rows->ring)
      rows->rowRing = t.alloc({1, plan.tileKeys}, k.builder.getI32Type());
  numberRings = allocNumbers(plan.stages);
  if (plan.groups > 1) {
    weightTile = t.alloc({plan.tileRows, plan.tileKeys}, elementType);
    scratch = t.alloc({2, plan.groups * plan.tileRows}, k.builder.getF32Type());
  }
  if (plan.usesTensorMemory())
    return allocateTensors();
  if (plan.hasRoles())
    allocateRoles();
}

void AttendKernel::readSizes() {
  queryView = BufferView(k, k.getArgument(queryArg));
  outputView = BufferView(k, k.getArgument(outputArg));
  lseView = BufferView(k, k.getArgument(lseArg));
  queries = k.toI32(k.dim(queryView.buffer, 2));
  keys.columns = plan.dim;
  values.columns = plan.valueDim / plan.valueParts;
  values.areValues = true;
  unsigned next = plan.isKeyOuter ? unsigned(firstFreeKeyOuterArg) : plan.addsPartials ? unsigned(firstFreeRunArg) : unsigned(firstFreeArg);
  if (plan.hasQueryBoxes)
    queryMap = k.getArgument(next++);
  for (size_t i = 0, count = plan.join ? plan.join->get().size() : 0; i < count; ++i)
    joinedBuffers.push_back(k.getArgument(next++));
  for (const AttendSource &source : plan.sources) {
    sources.emplace_back(source, sources.size());
    next = readSource(sources.back(), next);
  }
}

/// The arguments of a source, from number `next` on; gives the number behind them.
unsigned AttendKernel::readSource(Source &source, unsigned next) {
  source.keys.view = BufferView(k, k.getArgument(next++));
  source.values.view = BufferView(k, k.getArgument(next++));
  Value numTokens = k.getArgument(next++);
  source.tokens = k.toI32(numTokens);
  // Gathered rows hold whatever exists.
  source.keyRows = k.toI32(source.op.isGathered() ? getNumBlocks(k, source.op.getBlocksOrTokens(), numTokens) : k.dim(source.keys.view.buffer, 2));
  if (source.selection && !plan.isKeyOuter)
    source.lists = k.getArgument(next++);
  if (plan.memberWords > 0)
    source.members = k.getArgument(next++);
  for (Table *table : {&source.keys, &source.values}) {
    if ((!plan.pair && !plan.gathers && !source.hasBoxes) || (table == &source.values && plan.valuesAreKeys))
      continue;
    table->map = k.getArgument(next++);
    for (Value &step : table->rowSteps)
      step = source.hasBoxes ? Value() : k.getArgument(next++);
  }
  for (size_t i = 0; i < source.numCaptured; ++i)
    source.captured.push_back(k.getArgument(next++));
  return next;
}

AttendKernel::Item AttendKernel::decodeItem(Value number) {
  if (plan.isKeyOuter)
    return decodeKeyOuterItem(number, loadKeyOuterItem(number));
  if (plan.addsPartials)
    return decodeItemOfRun(number);
  Item item;
  Value lists = k.ceilDiv(k.dim(queryView.buffer, 2), k.index(plan.queryBlock));
  if (plan.split > 1)
    item.part = k.toI32(k.split(number, k.index(plan.split)));
  if (plan.valueParts > 1)
    item.valuePart = k.split(number, k.index(plan.valueParts));
  Value tile = k.split(number, k.index(plan.tilesPerList()));
  // Under a causal mask the last queries see most: they go first, so that the short ones fill the gaps.
  item.list = k.sub(k.sub(lists, k.index(1)), k.split(number, lists));
  item.cell = k.split(number, k.index(plan.cells));
  item.batch = number;
  item.exists = k.bit(true);
  item.firstRow = k.mul(k.toI32(tile), k.i32(plan.tileRows)); // of the pair, if blocks work in pairs
  setQueries(item);
  if (plan.pair)
    item.firstRow = k.add(item.firstRow, k.mul(k.toI32(k.rankInPair()), k.i32(plan.rowsOfBlock())));
  return item;
}

/// The queries of which an item has rows, by its list and its first row.
void AttendKernel::setQueries(Item &item) {
  Value group = k.i32(plan.group);
  Value lastRow = k.min(k.add(item.firstRow, k.i32(plan.tileRows - 1)), k.i32(plan.queryBlock * plan.group - 1));
  Value firstQuery = k.mul(k.toI32(item.list), k.i32(plan.queryBlock));
  item.firstQuery = k.add(firstQuery, k.div(item.firstRow, group));
  item.lastQuery = k.min(k.add(firstQuery, k.div(lastRow, group)), k.sub(queries, k.i32(1)));
}

AttendKernel::Row AttendKernel::getRow(const Item &item, Value row) {
  if (plan.isKeyOuter)
    return getKeyOuterRow(item, row);
  // Where a tile has whole queries, which one a row has of them does not depend on the item, and is the same for neighbours.
  bool hasWholeQueries = plan.rowsOfBlock() % plan.group == 0, isFull = plan.queryBlock * plan.group % plan.tileRows == 0;
  Value group = k.i32(plan.group), inTile = hasWholeQueries ? row : k.add(item.firstRow, row), query = k.div(inTile, group);
  if (hasWholeQueries)
    query = k.add(k.div(item.firstRow, group), query);
  Value m = k.add(k.mul(item.list, k.index(plan.queryBlock)), k.toIndex(query));
  Value head = k.add(k.mul(k.toI32(item.cell), group), k.rem(inTile, group)), exists = k.both(item.exists, k.lt(m, k.dim(queryView.buffer, 2)));
  if (!isFull)
    exists = k.both(exists, k.lt(query, k.i32(plan.queryBlock)));
  if (plan.addsPartials)
    exists = k.both(exists, k.ult(k.sub(m, k.getArgument(firstQueryOfRunArg)), k.getArgument(queriesOfRunArg)));
  return {m, head, exists, getPartialRow(item, m, head)};
}

/// Where there is an output for every part of the steps: which one it is.
Value AttendKernel::getPartialRow(const Item &item, Value m, Value head) {
  if (!item.part)
    return Value();
  Value row = k.add(k.mul(item.batch, k.dim(queryView.buffer, 1)), k.toIndex(head));
  row = k.add(k.mul(row, k.dim(queryView.buffer, 2)), m);
  return k.add(k.mul(row, k.index(plan.split)), k.toIndex(item.part));
}

RowPlace AttendKernel::placeOf(const Item &item, const BufferView &view, Value row) {
  Row r = getRow(item, row);
  return {view.getBegin(k, {item.batch, k.toIndex(r.head), r.m}), r.exists};
}

RowPlace AttendKernel::resultPlaceOf(const Item &item, const BufferView &view, Value row) {
  Row r = getRow(item, row);
  return {view.getBegin(k, r.partial ? SmallVector<Value>{r.partial} : SmallVector<Value>{item.batch, k.toIndex(r.head), r.m}), r.exists};
}

AttendKernel::Slots AttendKernel::getSlots(const Item &item, const Source &source) {
  Value visibleRows = k.select(item.exists, source.keyRows, k.i32(0)), shift = k.sub(source.tokens, queries); // from queries to their positions
  KeySlots keySlots(k, {source.op.getMask().value_or(nullptr), source.op.getBlocksOrTokens(), source.tokens, visibleRows, k.add(item.firstQuery, shift),
                        k.add(item.lastQuery, shift), plan.tileKeys, source.stretches, plan.addsPartials ? plan.forced->keyBlock : 1});
  Slots slots(keySlots, source);
  if (plan.isKeyOuter)
    slots.useBlock(k, item.block, plan.selection().getKeyBlock());
  else if (!source.selection)
    slots.useRange(k);
  if (item.part && !source.lists)
    slots.takePart(k, item.part, plan.split);
  return slots;
}

SmallVector<AttendKernel::Slots, 1> AttendKernel::getAllSlots(const Item &item) {
  SmallVector<Slots, 1> all;
  for (const Source &source : sources)
    all.push_back(getSlots(item, source));
  return all;
}

/// Which of the lists of a source an item has: those for more queries than its own serve several items.
std::array<Value, 3> AttendKernel::getPlaceOfList(const Source &source, const Item &item) {
  int64_t items = source.queryBlock ? source.queryBlock / plan.queryBlock : 1;
  return {item.batch, item.cell, items > 1 ? k.div(item.list, k.index(items)) : item.list};
}

void AttendKernel::useList(Slots &slots, const Item &item) {
  const Source &source = *slots.source;
  if (!source.lists)
    return;
  std::array<Value, 3> place = getPlaceOfList(source, item);
  auto use = source.op.isGathered() ? &KeySlots::useGatheredRows : &KeySlots::useList;
  (slots.*use)(k, *source.selection, source.lists, place, plan.cells);
  if (source.members)
    slots.useMembers(k, source.members, place, plan.cells);
  if (item.part)
    slots.takePart(k, item.part, plan.split);
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void AttendKernel::loadQueries(const Item &item, Value tile) {
  t.copyRows(queryView.buffer, tile, plan.dim, plan.width, [&](Value row) { return placeOf(item, queryView, row); });
}

void AttendKernel::loadQueries(const Item &item, Value tile, Value ticket) {
  if (!plan.hasQueryBoxes) {
    loadQueries(item, tile);
    t.commitCopies();
    return t.finishCopies(0);
  }
  // Behind the last query are zeros: of queries that are not there, and of an item that is not.
  Row first = getRow(item, k.i32(0));
  Value m = k.select(item.exists, k.toI32(first.m), queries);
  t.copyBox(queryMap, {k.toI32(item.batch), m, first.head}, tile, queryPipe, ticket);
}

/// The same of each slot of a ring, where `ring` is its size.
AttendKernel::Numbers AttendKernel::allocNumbers(ArrayRef<int64_t> ring) {
  auto alloc = [&](int64_t size) {
    SmallVector<int64_t> shape(ring);
    shape.push_back(size);
    return t.alloc(shape, k.builder.getI32Type());
  };
  return {alloc(plan.numbersOfStep()), plan.memberWords > 0 ? alloc(plan.membersOfStep()) : Value()};
}

AttendKernel::Numbers AttendKernel::getNumbers(Value stage) {
  return {t.slot(numberRings.entries, stage), numberRings.members ? t.slot(numberRings.members, stage) : Value()};
}

void AttendKernel::loadNumbers(const Slots &slots, Value step, const Lookup &found, const Numbers &numbers) {
  step = slots.firstStep ? k.add(slots.firstStep, step) : step;
  Value first = k.mul(step, k.i32(plan.tileKeys));
  t.fill(numbers.entries, [&](Value entry) {
    if (!slots.isContiguous())
      return slots.getNumber(k, k.add(first, entry));
    Value value = found.back();
    for (auto [i, other] : llvm::enumerate(ArrayRef(found).drop_back()))
      value = k.select(k.eq(entry, k.i32(i)), other, value);
    return value;
  });
  if (plan.memberWords > 0)
    t.fill(numbers.members, [&](Value i) { return slots.getMembers(k, step, i); });
}

Value AttendKernel::getHead(const Item &item, const Table &table) {
  return k.div(item.cell, k.index(plan.cells / cast<MemRefType>(table.view.buffer.getType()).getDimSize(1)));
}

Value AttendKernel::getRowsBegin(const Item &item, const Slots &slots, const Rows &rows) {
  const Table &table = slots.source->tableOf(rows);
  Value head = getHead(item, table);
  Value begin = slots.source->op.isGathered() ? table.view.getBegin(k, {item.batch, head, slots.listRow}) : table.view.getBegin(k, {item.batch, head});
  return item.valuePart && rows.areValues ? k.add(begin, k.mul(item.valuePart, k.index(values.columns))) : begin;
}

KeySlots::Step AttendKernel::getStretches(ValueRange found) {
  KeySlots::Step step;
  for (size_t i = 0; i < found.size(); i += 2)
    step.push_back({found[i], found[i + 1]});
  return step;
}

AttendKernel::Lookup AttendKernel::lookUp(const Item &item, const Slots &slots, Value step) {
  step = slots.firstStep ? k.add(slots.firstStep, step) : step;
  if (slots.isContiguous()) {
    Lookup found;
    for (const KeySlots::Stretch &stretch : slots.getStep(k, step))
      found.append({stretch.base, stretch.count});
    return found;
  }
  Value first = k.mul(step, k.i32(plan.tileKeys));
  auto find = [&](const Rows &rows) {
    const BufferView &view = slots.source->tableOf(rows).view;
    Value begin = getRowsBegin(item, slots, rows);
    return t.findRows(cast<ssa_gpu::SharedType>(t.slot(rows.ring, k.i32(0)).getType()), plan.width, [&](Value row) -> RowPlace {
      Value number = slots.getNumber(k, k.add(first, row));
      Value place = slots.source->op.isGathered() ? view.advance(k, begin, 3, k.toIndex(k.add(first, row))) : view.advance(k, begin, 2, k.toIndex(number));
      return {place, slots.isInSight(k, number)};
    });
  };
  Lookup found = {find(plan.takesTurns ? turns[0].parts[0] : keys)};
  if (!plan.valuesAreKeys)
    found.push_back(find(values));
  return found;
}

void AttendKernel::loadRows(const Item &item, const Slots &slots, const Lookup &found, const Rows &rows, Value stage) {
  Value tile = t.slot(rows.ring, stage);
  const BufferView &view = slots.source->tableOf(rows).view;
  if (!slots.isContiguous())
    return t.copyRows(view.buffer, rows.areValues ? found.back() : found.front(), tile, rows.columns, plan.width, /*rare=*/false, rows.firstColumn);
  bool hasBoxes = slots.source->hasBoxes;
  KeySlots::Step step = getStretches(found);
  Value firstRow = getRowsBegin(item, slots, rows);
  auto copyRows = [&] {
    t.copyRows(view.buffer, tile, rows.columns, plan.width, [&](Value row) -> RowPlace {
      Value number = slots.getNumber(k, step, row);
      return {view.advance(k, firstRow, 2, k.toIndex(number)), slots.isInSight(k, number)};
    }, /*rare=*/hasBoxes || step.size() == 1, rows.firstColumn);
  };
  if (hasBoxes || step.size() > 1)
    return copyRows();
  KeySlots::Stretch all = step.front();
  Value isWhole = k.both(k.eq(slots.countInSight(k, all), k.i32(plan.tileKeys)), slots.isInSight(k, all));
  Value begin = k.add(view.advance(k, firstRow, 2, k.toIndex(all.base)), k.index(rows.firstColumn));
  k.ifThenElse(isWhole, [&] { t.copyBlock(view.buffer, begin, view.strides[2], tile, rows.columns, plan.width); }, copyRows);
}

void AttendKernel::copyBoxOr(llvm::function_ref<void()> copy, const Item &item, const Slots &slots, const Lookup &found, const Rows &rows,
                             Value stage, Value ticket) {
  if (!slots.source->hasBoxes)
    return copy();
  KeySlots::Step step = getStretches(found);
  const Table &table = slots.source->tableOf(rows);
  Value length = k.i32(slots.getLength()), areBoxes;
  SmallVector<Value> ends, counts; // see createStretchMap
  for (const KeySlots::Stretch &stretch : step) {
    counts.push_back(slots.countInSight(k, stretch));
    ends.push_back(k.add(stretch.base, counts.back()));
    Value isBox = k.both(k.le(length, ends.back()), slots.isInSight(k, stretch));
    areBoxes = areBoxes ? k.both(areBoxes, isBox) : isBox;
  }
  k.ifThenElse(areBoxes, [&] {
    Value batch = k.toI32(item.batch), head = k.toI32(getHead(item, table)), tile = t.slot(rows.ring, stage);
    for (size_t i = 0; i < step.size(); ++i)
      t.copyBox(table.map, {batch, head, k.sub(ends[i], length), k.sub(length, counts[i])}, tile, rows.pipe, ticket, i * slots.getLength(), rows.firstColumn);
  }, copy);
}

void AttendKernel::beginRows(const Item &item, const Slots &slots, const Lookup &found, const Rows &rows, Value stage, Value ticket) {
  copyBoxOr([&] { loadRows(item, slots, found, rows, stage); }, item, slots, found, rows, stage, ticket);
}

void AttendKernel::loadRows(const Item &item, const Slots &slots, const Lookup &found, const Rows &rows, Value stage, Value ticket) {
  copyBoxOr([&] {
    loadRows(item, slots, found, rows, stage);
    t.commitCopies();
    t.finishCopies(0);
  }, item, slots, found, rows, stage, ticket);
}

//===----------------------------------------------------------------------===//
// Products and softmax
//===----------------------------------------------------------------------===//

/// Whether all sources have one positive scale and no score region, so that it can join the factor of the exponent.
static bool haveOneScale(ArrayRef<AttendSource> sources) {
  return llvm::all_equal(llvm::map_range(sources, [](const AttendSource &source) { return ScoreTiles::getScale(source.op); })) &&
         llvm::all_of(sources, [](const AttendSource &source) { return ScoreTiles::canScaleLast(source.op); });
}

ScoreTiles AttendKernel::getScores(const Item &item, const Slots &slots) {
  Type i32 = k.builder.getI32Type();
  const Source &source = *slots.source;
  Value shift = k.sub(source.tokens, queries);
  std::function<Value()> makePositions = [this, item, shift, i32] {
    return t.mapRows(i32, [&](Value row) { return k.add(k.toI32(getRow(item, row).m), shift); });
  };
  if (!source.op.getScore().empty()) // which needs them in every step
    makePositions = [positions = makePositions()] { return positions; };
  Value heads = t.mapRows(i32, [&](Value row) { return getRow(item, row).head; });
  return ScoreTiles(k, t, source.op, plan.tileKeys, source.captured, k.toI32(item.batch), heads, makePositions, slots, haveOneScale(plan.sources));
}

AttendKernel::State AttendKernel::getInitialState() {
  Type f32 = k.builder.getF32Type();
  auto constant = [&](RankedTensorType type, float value) { return t.constant(type, k.builder.getF32FloatAttr(value)); };
  return {constant(t.rowsType(f32), -std::numeric_limits<float>::infinity()), constant(t.rowsType(f32), 0),
          constant(t.accumulatorType(getColumnsOfGroup(), f32), 0)};
}

/// The scores of one step, hidden ones `-inf`. What steps are is looked up while products are under way.
Value AttendKernel::getLogits(const Slots &slots, ScoreTiles &scores, Products awaitProducts, const Numbers &ofStep) {
  Type i32 = k.builder.getI32Type();
  Value entries = ofStep.entries, allVisible;
  llvm::unique_function<Value()> numbers;
  KeySlots::Step step;
  if (slots.isContiguous()) {
    for (int64_t i = 0; i < slots.source->stretches; ++i)
      step.push_back({t.loadEntry(entries, k.i32(2 * i)), t.loadEntry(entries, k.i32(2 * i + 1))});
    allVisible = slots.isAllVisible(k, step);
    numbers = [&, step] { return t.mapColumns(plan.tileKeys, i32, [&](Value column) { return slots.getNumber(k, step, column); }); };
  } else {
    allVisible = slots.isAllVisible(k, t.loadEntry(entries, k.i32(plan.tileKeys - 1)));
    numbers = [&] { return t.mapColumns(plan.tileKeys, i32, [&](Value column) { return t.loadEntry(entries, column); }); };
  }
  Value products = awaitProducts();
  if (!slots.source->op.getScore().empty()) {
    FailureOr<Value> logits = scores.getLogits(products, numbers());
    if (succeeded(logits))
      return hideFromOthers(*logits, ofStep);
    result = failure();
    return products;
  }
  // Most steps hide nothing from anyone.
  Value logits = scores.scaleProducts(products);
  bool hasBounds = slots.seesRanges() && (plan.groups == 1 || plan.takesTurns || step.size() == 1);
  logits = k.ifElse(allVisible, logits.getType(), [&] { return SmallVector<Value>{logits}; },
                    [&] { return SmallVector<Value>{hasBounds ? scores.hideOutside(logits, step) : scores.hide(logits, numbers())}; })
               .front();
  return hideFromOthers(logits, ofStep);
}

/// The list of a row of the tile, among those that were united.
Value AttendKernel::getListOfRow(Value row) {
  return k.min(k.div(row, k.i32(plan.rowsPerList)), k.i32(plan.tileRows / plan.rowsPerList - 1));
}

/// Where the keys of a stretch belong to one entry of a union: whether the lists of the rows have it.
Value AttendKernel::getMembers(const Numbers &numbers, int64_t stretch) {
  constexpr int64_t bits = 32;
  return t.mapRows(k.builder.getI1Type(), [&](Value row) {
    Value list = getListOfRow(row), word = t.loadEntry(numbers.members, k.add(k.i32(stretch * plan.memberWords), k.div(list, k.i32(bits))));
    return k.ne(k.both(k.shiftRight(word, k.rem(list, k.i32(bits))), k.i32(1)), k.i32(0));
  });
}

Value AttendKernel::hideFromOthers(Value logits, const Numbers &numbers) {
  if (plan.memberWords == 0 || plan.warpsHaveLists()) // warps that do not take part leave their scores out
    return logits;
  constexpr int64_t bits = 32;
  int64_t words = plan.memberWords;
  Type i32 = k.builder.getI32Type();
  Value hidden = t.constant(cast<RankedTensorType>(logits.getType()), k.builder.getF32FloatAttr(-std::numeric_limits<float>::infinity()));
  if (int64_t stretches = plan.first().stretches; stretches > 0) { // one answer for all keys of a stretch, mostly yes
    SmallVector<Value> areMembers;
    for (int64_t i = 0; i < stretches; ++i)
      areMembers.push_back(getMembers(numbers, i));
    Value isMember = llvm::accumulate(ArrayRef(areMembers).drop_front(), areMembers.front(), [&](Value a, Value b) { return k.both(a, b); });
    return k.ifElse(t.warpAll(isMember), logits.getType(), [&] { return SmallVector<Value>{logits}; }, [&] {
      return SmallVector<Value>{k.select(t.broadcastParts(areMembers, plan.tileKeys), logits, hidden)};
    }).front();
  }
  RankedTensorType tile = t.accumulatorType(plan.tileKeys, i32);
  Value word = t.mapRows(i32, [&](Value row) { return k.div(getListOfRow(row), k.i32(bits)); });
  Value bit = t.broadcast(t.mapRows(i32, [&](Value row) { return k.rem(getListOfRow(row), k.i32(bits)); }), plan.tileKeys);
  auto splat = [&](int64_t value) { return t.constant(tile, k.builder.getI32IntegerAttr(value)); };
  Value found = splat(0);
  for (int64_t w = 0; w < words; ++w) {
    Value column = t.mapColumns(plan.tileKeys, i32, [&](Value column) { return t.loadEntry(numbers.members, k.add(k.mul(column, k.i32(words)), k.i32(w))); });
    found = words == 1 ? column : k.select(k.eq(t.broadcast(word, plan.tileKeys), splat(w)), column, found);
  }
  return k.select(k.ne(k.both(k.shiftRight(found, bit), splat(1)), splat(0)), logits, hidden);
}

Value AttendKernel::getValueTile(Value stage) {
  return plan.valuesAreKeys ? t.columns(t.slot(keys.ring, stage), 0, plan.paddedValueDim()) : t.slot(values.ring, stage);
}

SoftmaxStep AttendKernel::getSoftmaxStep(const Slots &slots, ScoreTiles &scores, Products awaitProducts, const Numbers &numbers, Value max, Value sum,
                                         Hook afterNumbers) {
  Value logits = getLogits(slots, scores, awaitProducts, numbers), isNone;
  int64_t stretches = plan.first().stretches;
  bool mayLeaveOut = plan.memberWords > 0 && stretches > 0 && plan.groups == 1;
  Value isMember = mayLeaveOut ? getMembers(numbers, 0) : Value();
  if (mayLeaveOut) { // of a union a warp often has no row that takes part
    for (int64_t i = 1; i < stretches; ++i)
      isMember = k.either(isMember, getMembers(numbers, i));
    isNone = t.warpAll(k.eq(isMember, t.constant(t.rowsType(k.builder.getI1Type()), k.builder.getBoolAttr(false))));
  }
  afterNumbers();
  if (plan.takesTurns)
    return scores.getHeldStep(logits, max, getScratch(0), plan.polynomials);
  if (!mayLeaveOut)
    return scores.getSoftmaxStep(logits, max, sum, getScratch(0), plan.isOneStep());
  auto constant = [&](RankedTensorType type, float value) { return t.constant(type, k.builder.getF32FloatAttr(value)); };
  Type f32 = k.builder.getF32Type();
  SmallVector<Value> made = k.ifElse(isNone, {max.getType(), sum.getType(), max.getType(), logits.getType(), isNone.getType()}, [&] {
    // Zeros made of hidden scores, not constants: those would be moved to where an earlier product still reads its operand.
    auto tile = cast<RankedTensorType>(logits.getType());
    Value none = constant(tile, -std::numeric_limits<float>::infinity());
    Value hidden = plan.warpsHaveLists() ? k.select(t.broadcast(isMember, plan.tileKeys), logits, none) : logits;
    Value zeros = arith::MaximumFOp::create(k.builder, k.loc, hidden, constant(tile, 0));
    return SmallVector<Value>{max, sum, constant(t.rowsType(f32), 1), zeros, k.bit(true)};
  }, [&] {
    SoftmaxStep step = scores.getSoftmaxStep(logits, max, sum, getScratch(0), /*isOnlyStep=*/false);
    return SmallVector<Value>{step.max, step.sum, step.rescale, step.weights, step.isKept};
  });
  return {made[0], made[1], made[2], made[3], made[4]};
}

Value AttendKernel::getZeroScores() {
  return t.constant(t.accumulatorType(plan.tileKeys, k.builder.getF32Type()), k.builder.getF32FloatAttr(0));
}

/// Mostly no row of a warp has a new maximum, or a factor that is not 1; `isKept` says so, if it is known. Where `isStored`, if it is not null, the output is complete.
Value AttendKernel::rescale(Value output, Value factors, Value isKept, Value isStored) {
  Value one = t.constant(t.rowsType(k.builder.getF32Type()), k.builder.getF32FloatAttr(1));
  if (!isKept)
    isKept = t.warpAll(arith::CmpFOp::create(k.builder, k.loc, arith::CmpFPredicate::OEQ, factors, one));
  return t.changeRows(ssa_gpu::RowChange::scale, output, factors, isStored ? k.either(isKept, isStored) : isKept);
}

/// The weights as left operand. Where groups of warps have those of some keys each, all are gathered in shared memory.
Value AttendKernel::getWeights(Value weights) {
  if (plan.groups == 1)
    return t.toOperand(weights, elementType);
  t.storeOperand(weights, weightTile);
  t.barrier();
  return weightTile;
}
