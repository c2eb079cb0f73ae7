//===- TransposeLists.cpp - Which lists have a key block ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Three kernels. The first sets a bit for every block and list that has it, and counts those of each stretch of lists and before each word of bits in it;
// the second says where the entries of each block and stretch and the items of each block begin; the third writes them, in the order of the bits, and that
// nothing is known of places that stand for nothing. So no order depends on chance.
//
//===----------------------------------------------------------------------===//

#include "TransposeLists.h"
#include "Block.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace mlir::ssa;

static constexpr int64_t bits = 32;
/// Lists whose bits of a block are set and counted at a time: where there are few key blocks, stretches are what multiprocessors share.
static constexpr int64_t listsOfStretch = 4096;
/// A word of bits, and how many bits are set in those before of its stretch.
enum MarkPart { wordPart, beforePart, numMarkParts };

TransposedLists::TransposedLists(HostFunction &host, SparseAttendOp op, std::optional<ForcedBlocks> forced, Value heads, Value capacity, Value lanes, int64_t cells,
                                 int64_t rows, int64_t tileRows)
    : host(host), op(op), type(cast<SelectionType>(op.getSelections().front().getType())), forced(forced), firstPlace(forced ? forced->init : 0),
      places(forced ? forced->others : type.getWidth()), cells(cells), rows(rows), tileRows(tileRows), lists(host.getBuffer(op.getSelections().front())) {
  Emitter e(host.builder, op.getLoc());
  auto allocate = [&](Value size, ArrayRef<OpFoldResult> others = {}) { return LaneBuffer(host, op.getLoc(), lanes, size, others, e.builder.getI32Type()); };
  blocks = e.ceilDiv(e.dim(host.getBuffer(op.getKey()), 2), e.index(type.getKeyBlock()));
  Value all = e.mul(blocks, heads), most = e.mul(e.mul(capacity, heads), e.index(places));
  marks = allocate(all, {e.ceilDiv(capacity, e.index(bits)), e.builder.getIndexAttr(numMarkParts)});
  Value stretches = e.ceilDiv(capacity, e.index(listsOfStretch)), sizes = e.mul(all, stretches);
  counts = allocate(sizes);
  firstEntries = allocate(e.add(sizes, e.index(1)));
  firstItems = allocate(all);
  entries = allocate(most);
  mostItems = e.add(all, e.ceilDiv(e.mul(most, e.index(rows)), e.index(tileRows)));
  items = allocate(mostItems, {e.builder.getIndexAttr(numItemParts)});
  numItems = allocate(e.index(1));
}

void TransposedLists::build(const ListRange &range, Value lses) {
  for (LaneBuffer *buffer : {&items, &entries, &numItems, &marks, &counts, &firstEntries, &firstItems})
    buffer->select(host, range.lane);
  buildMarks(range);
  buildPlaces(range);
  buildEntries(range, lses);
}

/// The list that serves list `i` of a range: one may serve all.
static Value getListRow(Emitter &e, Value lists, Value first, Value i) {
  return e.select(e.eq(e.dim(lists, 2), e.index(1)), e.index(0), e.add(first, i));
}

//===----------------------------------------------------------------------===//
// Bits
//===----------------------------------------------------------------------===//

namespace {
/// A block of threads has some neighbouring key blocks of a head, and looks at a stretch of lists.
class MarkKernel : public BlockKernel {
public:
  enum Argument { listsArg, marksArg, countsArg, queriesArg, tokensArg, blocksArg, batchArg, headArg, firstArg, countArg };
  MarkKernel(HostFunction &host, SparseAttendOp op, SelectionType type, std::optional<ForcedBlocks> forced, ValueRange arguments)
      : BlockKernel(host.builder, op, "ssa_mark_lists", threads, arguments), op(op), type(type), forced(forced),
        bitsOfBlocks(addShared(builder.getI32Type(), blocksOfItem * wordsOfBlock)) {}

  void buildItem(Value item);

  static constexpr int64_t threads = 1024, blocksOfItem = 64, wordsOfBlock = listsOfStretch / bits;

private:
  Value isInSight(Value list, Value number);
  void setBits(Value head, Value firstBlock, Value begin, Value end);
  void countBits(Value head, Value firstBlock, Value stretch, Value begin, Value end);

  SparseAttendOp op;
  SelectionType type;
  std::optional<ForcedBlocks> forced;
  Value bitsOfBlocks;
};
} // namespace

/// Whether the block begins before or at the last query of the list and is not forced; the first of those that are are not looked at. Positions fit 32 bits, and a block that is longer than that is one.
Value MarkKernel::isInSight(Value list, Value number) {
  MaskAttr mask = op.getMask().value_or(nullptr);
  if (!mask || !mask.getCausal())
    return bit(true);
  BlocksAttr blocks = op.getBlocksOrTokens();
  int64_t queryBlock = type.getQueryBlock();
  // Of the first list, and of the last query: what does not depend on the list is computed once.
  int64_t hidden = blocks.getOffset() + blocks.getSize() - 1 + (forced ? forced->local * forced->keyBlock : 0);
  Value room = sub(index(-hidden), sub(getArgument(queriesArg), getArgument(tokensArg)));
  Value first = add(room, add(mul(getArgument(firstArg), index(queryBlock)), index(queryBlock - 1))), last = add(room, sub(getArgument(queriesArg), index(1)));
  Value length = i32(std::min<int64_t>(type.getKeyBlock() * blocks.getStride(), std::numeric_limits<int32_t>::max()));
  return ge(min(add(toI32(first), mul(list, i32(queryBlock))), toI32(last)), mul(number, length));
}

/// Some neighbouring threads have the numbers of a list. What is loaded for lists to come is under way meanwhile.
void MarkKernel::setBits(Value head, Value firstBlock, Value begin, Value end) {
  constexpr int64_t ahead = 4;
  int64_t width = forced ? forced->others : type.getWidth(), before = forced ? forced->init : 0, threadsOfList = std::min<int64_t>(llvm::PowerOf2Ceil(width), threads), step = threads / threadsOfList;
  Value buffer = getArgument(listsArg), place = rem(thread(), i32(threadsOfList)), own = div(thread(), i32(threadsOfList));
  Value lastRow = sub(dim(buffer, 2), index(1)), blocksHere = min(sub(toI32(getArgument(blocksArg)), firstBlock), i32(blocksOfItem));
  for (int64_t firstPlace = 0; firstPlace < width; firstPlace += threadsOfList) {
    Value inList = add(place, i32(firstPlace)), bound = select(lt(inList, i32(width)), blocksHere, i32(0)), column = toIndex(add(min(inList, i32(width - 1)), i32(before)));
    // Before the first list there are none, which are in no item.
    loop(sub(own, i32(ahead * step)), sub(end, begin), i32(step), SmallVector<Value>(ahead, i32(-1)), [&](Value i, ValueRange numbers) {
      // One list may serve all.
      Value toCome = add(add(begin, i), i32(ahead * step)), row = min(add(getArgument(firstArg), toIndex(toCome)), lastRow);
      SmallVector<Value> next(numbers.drop_front());
      next.push_back(load(buffer, {getArgument(batchArg), add(getArgument(headArg), head), row, column}));
      Value inItem = sub(numbers.front(), firstBlock);
      ifThen(both(ult(inItem, bound), isInSight(add(begin, i), numbers.front())), [&] {
        Value word = add(mul(inItem, i32(wordsOfBlock)), div(i, i32(bits)));
        atomicOr(shiftLeft(i32(1), rem(step % bits ? i : own, i32(bits))), bitsOfBlocks, toIndex(word));
      });
      return next;
    });
  }
}

/// Every warp has some of the blocks.
void MarkKernel::countBits(Value head, Value firstBlock, Value stretch, Value begin, Value end) {
  Value words = ceilDiv(sub(end, begin), index(bits)), firstWord = div(begin, index(bits)), blocks = getArgument(blocksArg);
  Value stretches = ceilDiv(getArgument(countArg), index(listsOfStretch));
  loop(toIndex(warp()), min(index(blocksOfItem), sub(blocks, firstBlock)), index(getNumWarps()), [&](Value place) {
    Value row = add(mul(head, blocks), add(firstBlock, place));
    Value count = loop(index(0), words, index(warpSize), i32(0), [&](Value first, ValueRange carried) -> SmallVector<Value> {
      Value word = add(first, toIndex(lane())), exists = lt(word, words);
      Value found = load(bitsOfBlocks, add(mul(place, index(wordsOfBlock)), min(word, index(wordsOfBlock - 1))));
      found = select(exists, found, i32(0));
      Scan sums = scanWarp(popCount(found));
      ifThen(exists, [&] {
        Value parts[] = {found, add(carried[0], sums.before)};
        auto vector = VectorType::get({numMarkParts}, builder.getI32Type());
        storeVector(vector::FromElementsOp::create(builder, loc, vector, parts), getArgument(marksArg), {row, add(firstWord, word), index(0)});
      });
      return {add(carried[0], sums.total)};
    })[0];
    ifThen(eq(lane(), i32(0)), [&] { store(count, getArgument(countsArg), add(mul(row, stretches), stretch)); });
  });
}

void MarkKernel::buildItem(Value item) {
  Value count = getArgument(countArg), stretches = ceilDiv(count, index(listsOfStretch)), stretch = split(item, stretches);
  Value groups = ceilDiv(getArgument(blocksArg), index(blocksOfItem)), firstBlock = mul(split(item, groups), index(blocksOfItem)), head = item;
  Value begin = mul(stretch, index(listsOfStretch)), end = min(add(begin, index(listsOfStretch)), count);
  barrier(); // the bits of the item before have been read
  loop(threadId(), index(blocksOfItem * wordsOfBlock), index(threads), [&](Value i) { store(i32(0), bitsOfBlocks, i); });
  barrier();
  setBits(head, toI32(firstBlock), toI32(begin), toI32(end));
  barrier();
  countBits(head, firstBlock, stretch, begin, end);
}

void TransposedLists::buildMarks(const ListRange &range) {
  Emitter e(host.builder, op.getLoc());
  Value queries = e.dim(host.getBuffer(op.getQuery()), 2), tokens = e.dim(host.getBuffer(op.getTokens() ? op.getTokens() : op.getKey()), 2);
  MarkKernel k(host, op, type, forced, {lists, marks.here, counts.here, queries, tokens, blocks, range.batch, range.firstHead, range.first, range.count});
  Value groups = e.mul(range.heads, e.ceilDiv(blocks, e.index(MarkKernel::blocksOfItem)));
  k.forEachItem(e.mul(groups, e.ceilDiv(range.count, e.index(listsOfStretch))), [&](Value item) { k.buildItem(item); });
  k.finish();
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// How many items the entries of a block have.
static Value countItems(Emitter &e, Value entries, int64_t rows, int64_t tileRows) {
  return e.div(e.add(e.mul(entries, e.i32(rows)), e.i32(tileRows - 1)), e.i32(tileRows));
}

namespace {
/// One block adds up all counts. A warp has some key blocks that follow one another, a lane every 32nd of these: it adds them up, hears what the warps
/// before have, and says where each begins.
class PlaceKernel : public BlockKernel {
public:
  enum Argument { countsArg, firstEntriesArg, firstItemsArg, numItemsArg, itemsArg, blocksArg, listsArg };
  PlaceKernel(HostFunction &host, SparseAttendOp op, ValueRange arguments, int64_t rows, int64_t tileRows)
      : BlockKernel(host.builder, op, "ssa_place_entries", threads, arguments), rows(rows), tileRows(tileRows),
        scratch(addShared(builder.getI32Type(), threads / warpSize)), stretches(ceilDiv(getArgument(listsArg), index(listsOfStretch))) {}

  void buildItem();

private:
  Value forEachStretch(Value block, Value init, llvm::function_ref<void(Value i, Value before)> visit);
  Value countEntries(Value block);
  void place(Value begin, Value end, Value entries, Value items);

  static constexpr int64_t threads = 1024;
  int64_t rows, tileRows;
  Value scratch, stretches;
};
} // namespace

/// Adds the counts of a block to `init`.
Value PlaceKernel::forEachStretch(Value block, Value init, llvm::function_ref<void(Value, Value)> visit) {
  Value first = mul(block, stretches);
  return loop(first, add(first, stretches), index(1), init, [&](Value i, ValueRange before) -> SmallVector<Value> {
    visit(i, before[0]);
    return {add(before[0], load(getArgument(countsArg), i))};
  })[0];
}

Value PlaceKernel::countEntries(Value block) {
  return forEachStretch(block, i32(0), [](Value, Value) {});
}

/// Writes where the blocks `begin` .. `end`-1 of the warp begin, before which there are so many entries and items.
void PlaceKernel::place(Value begin, Value end, Value entries, Value items) {
  loop(begin, end, index(warpSize), {entries, items}, [&](Value first, ValueRange before) -> SmallVector<Value> {
    Value block = add(first, toIndex(lane())), exists = lt(block, end);
    Value count = select(exists, countEntries(min(block, sub(end, index(1)))), i32(0));
    Scan ofEntries = scanWarp(count), ofItems = scanWarp(countItems(*this, count, rows, tileRows));
    ifThen(exists, [&] {
      store(add(before[1], ofItems.before), getArgument(firstItemsArg), block);
      forEachStretch(block, add(before[0], ofEntries.before), [&](Value i, Value entry) { store(entry, getArgument(firstEntriesArg), i); });
    });
    return {add(before[0], ofEntries.total), add(before[1], ofItems.total)};
  });
}

void PlaceKernel::buildItem() {
  Value blocks = getArgument(blocksArg), perWarp = mul(ceilDiv(blocks, index(threads)), index(warpSize));
  Value begin = min(mul(toIndex(warp()), perWarp), blocks), end = min(add(begin, perWarp), blocks);
  SmallVector<Value> own = loop(add(begin, toIndex(lane())), end, index(warpSize), {i32(0), i32(0)}, [&](Value block, ValueRange sums) -> SmallVector<Value> {
    Value count = countEntries(block);
    return {add(sums[0], count), add(sums[1], countItems(*this, count, rows, tileRows))};
  });
  Scan entries = scanWarps(warpSum(own[0]), scratch, threads), items = scanWarps(warpSum(own[1]), scratch, threads);
  place(begin, end, entries.before, items.before);
  ifThen(eq(thread(), i32(0)), [&] {
    store(entries.total, getArgument(firstEntriesArg), mul(blocks, stretches));
    store(items.total, getArgument(numItemsArg), index(0));
    // The first item is read even if there is none.
    ifThen(eq(items.total, i32(0)), [&] { storeVector(broadcast(i32(0), TransposedLists::numItemParts), getArgument(itemsArg), {index(0), index(0)}); });
  });
}

void TransposedLists::buildPlaces(const ListRange &range) {
  Emitter e(host.builder, op.getLoc());
  PlaceKernel k(host, op, {counts.here, firstEntries.here, firstItems.here, numItems.here, items.here, e.mul(blocks, range.heads), range.count}, rows, tileRows);
  k.forEachItem(e.index(1), [&](Value) { k.buildItem(); });
  k.finish();
}

//===----------------------------------------------------------------------===//
// Entries and items
//===----------------------------------------------------------------------===//

/// Some blocks of threads write entries, a thread that of a place in a list; in others a warp writes the items of a key block.
void TransposedLists::buildEntries(const ListRange &range, Value lses) {
  constexpr int64_t threads = 256;
  enum { listsArg, marksArg, firstEntriesArg, firstItemsArg, entriesArg, itemsArg, lsesArg, blocksArg, batchArg, headArg, headsArg, firstArg, countArg };
  BlockKernel k(host.builder, op, "ssa_write_entries", threads,
                {lists, marks.here, firstEntries.here, firstItems.here, entries.here, items.here, lses, blocks, range.batch, range.firstHead, range.heads, range.first, range.count});
  Emitter e(host.builder, op.getLoc());
  // Where the entries of a block and stretch begin.
  auto loadFirst = [&](Value block, Value stretch) {
    Value stretches = k.ceilDiv(k.getArgument(countArg), k.index(listsOfStretch));
    return k.load(k.getArgument(firstEntriesArg), k.add(k.mul(block, stretches), stretch));
  };
  auto writeItems = [&](Value block) {
    Value firstItem = k.toIndex(k.load(k.getArgument(firstItemsArg), block)), firstEntry = loadFirst(block, k.index(0));
    Value count = k.sub(loadFirst(k.add(block, k.index(1)), k.index(0)), firstEntry), tiles = k.toIndex(countItems(k, count, rows, tileRows));
    k.loop(k.toIndex(k.lane()), tiles, k.index(warpSize), [&](Value tile) {
      Value parts[] = {k.toI32(block), firstEntry, count, k.toI32(k.mul(tile, k.index(tileRows)))};
      auto vector = VectorType::get({numItemParts}, k.builder.getI32Type());
      k.storeVector(vector::FromElementsOp::create(k.builder, k.loc, vector, parts), k.getArgument(itemsArg), {k.add(firstItem, tile), k.index(0)});
    });
  };
  auto writeNone = [&](Value head, Value place) {
    k.loop(k.index(0), k.index(cells * rows), k.index(1), [&](Value i) {
      Value cell = k.add(k.mul(head, k.index(cells)), k.div(i, k.index(rows))), inCell = k.add(k.mul(cell, k.mul(k.getArgument(countArg), k.index(places))), place);
      k.store(k.f32(-std::numeric_limits<double>::infinity()), k.getArgument(lsesArg), k.add(k.mul(inCell, k.index(rows)), k.rem(i, k.index(rows))));
    });
  };
  auto writeEntry = [&](Value head, Value place) {
    Value list = k.div(place, k.index(places)), row = getListRow(k, k.getArgument(listsArg), k.getArgument(firstArg), list);
    Value number = k.load(k.getArgument(listsArg), {k.getArgument(batchArg), k.add(k.getArgument(headArg), head), row, k.add(k.rem(place, k.index(places)), k.index(firstPlace))});
    Value isWritten = k.ifElse(k.ult(number, k.toI32(k.getArgument(blocksArg))), k.builder.getI1Type(), [&] {
      Value block = k.add(k.mul(head, k.getArgument(blocksArg)), k.toIndex(number));
      Value mark = k.loadVector(k.getArgument(marksArg), {block, k.div(list, k.index(bits)), k.index(0)}, numMarkParts);
      auto part = [&](MarkPart i) -> Value { return vector::ExtractOp::create(k.builder, k.loc, mark, int64_t(i)); };
      Value own = k.shiftLeft(k.i32(1), k.toI32(k.rem(list, k.index(bits)))), isInSight = k.ne(k.both(part(wordPart), own), k.i32(0));
      k.ifThen(isInSight, [&] {
        Value before = k.add(part(beforePart), k.popCount(k.both(part(wordPart), k.sub(own, k.i32(1)))));
        k.store(k.toI32(place), k.getArgument(entriesArg), k.toIndex(k.add(loadFirst(block, k.div(list, k.index(listsOfStretch))), before)));
      });
      return SmallVector<Value>{isInSight};
    }, [&] { return SmallVector<Value>{k.bit(false)}; })[0];
    k.ifThen(k.eq(isWritten, k.bit(false)), [&] { writeNone(head, place); });
  };
  auto perHead = [&](Emitter &e, Value lists) { return e.ceilDiv(e.mul(lists, e.index(places)), e.index(threads)); };
  Value all = e.mul(blocks, range.heads), warps = e.index(threads / warpSize);
  Value total = e.add(e.mul(perHead(e, range.count), range.heads), e.ceilDiv(all, warps));
  k.forEachItem(total, [&](Value item) {
    Value parts = perHead(k, k.getArgument(countArg)), forEntries = k.mul(parts, k.getArgument(headsArg));
    k.ifThenElse(k.lt(item, forEntries), [&] {
      Value head = item, place = k.add(k.mul(k.split(head, parts), k.index(threads)), k.threadId());
      k.ifThen(k.lt(place, k.mul(k.getArgument(countArg), k.index(places))), [&] { writeEntry(head, place); });
    }, [&] {
      Value block = k.add(k.mul(k.sub(item, forEntries), k.index(k.getNumWarps())), k.toIndex(k.warp()));
      k.ifThen(k.lt(block, k.mul(k.getArgument(blocksArg), k.getArgument(headsArg))), [&] { writeItems(block); });
    });
  });
  k.finish();
}
