//===- TransposeLists.cpp - Which lists have a key block ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Three kernels. The first sets a bit for every block and list that has it, and counts those of each stretch of lists and before each word of bits in it;
// the second says where the entries of each block and stretch and the items of each block begin; the third writes them, in the order of the bits. So no
// order depends on chance.
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

TransposedLists::TransposedLists(HostFunction &host, SparseAttendOp op, Value heads, Value capacity, Value lanes, int64_t rows, int64_t tileRows)
    : host(host), op(op), type(cast<SelectionType>(op.getSelections().front().getType())), rows(rows), tileRows(tileRows),
      lists(host.getBuffer(op.getSelections().front())) {
  Emitter e(host.builder, op.getLoc());
  auto allocate = [&](Value size, ArrayRef<OpFoldResult> others = {}) { return LaneBuffer(host, op.getLoc(), lanes, size, others, e.builder.getI32Type()); };
  blocks = e.ceilDiv(e.dim(host.getBuffer(op.getKey()), 2), e.index(type.getKeyBlock()));
  Value all = e.mul(blocks, heads), places = e.mul(e.mul(capacity, heads), e.index(type.getWidth()));
  marks = allocate(all, {e.ceilDiv(capacity, e.index(bits)), e.builder.getIndexAttr(numMarkParts)});
  Value stretches = e.ceilDiv(capacity, e.index(listsOfStretch)), sizes = e.mul(all, stretches);
  counts = allocate(sizes);
  firstEntries = allocate(e.add(sizes, e.index(1)));
  firstItems = allocate(all);
  entries = allocate(places);
  mostItems = e.add(all, e.ceilDiv(e.mul(places, e.index(rows)), e.index(tileRows)));
  items = allocate(mostItems, {e.builder.getIndexAttr(numItemParts)});
  numItems = allocate(e.index(1));
}

void TransposedLists::build(const ListRange &range) {
  for (LaneBuffer *buffer : {&items, &entries, &numItems, &marks, &counts, &firstEntries, &firstItems})
    buffer->select(host, range.lane);
  buildMarks(range);
  buildPlaces(range);
  buildEntries(range);
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
  MarkKernel(HostFunction &host, SparseAttendOp op, SelectionType type, ValueRange arguments)
      : BlockKernel(host.builder, op, "ssa_mark_lists", threads, arguments), op(op), type(type),
        bitsOfBlocks(addShared(builder.getI32Type(), blocksOfItem * wordsOfBlock)) {}

  void buildItem(Value item);

  static constexpr int64_t threads = 1024, blocksOfItem = 64, wordsOfBlock = listsOfStretch / bits;

private:
  Value getBlocksInSight(Value list);
  void setBits(Value head, Value firstBlock, Value begin, Value end);
  void setBit(Value inStretch, Value place, Value bound);
  void countBits(Value head, Value firstBlock, Value stretch, Value begin, Value end);

  SparseAttendOp op;
  SelectionType type;
  Value bitsOfBlocks;
};
} // namespace

/// How many blocks begin before or at the last query of the list.
Value MarkKernel::getBlocksInSight(Value list) {
  Value all = toI32(getArgument(blocksArg));
  MaskAttr mask = op.getMask().value_or(nullptr);
  if (!mask || !mask.getCausal())
    return all;
  BlocksAttr blocks = op.getBlocksOrTokens();
  int64_t queryBlock = type.getQueryBlock();
  Value queries = getArgument(queriesArg), last = add(mul(add(getArgument(firstArg), toIndex(list)), index(queryBlock)), index(queryBlock - 1));
  Value position = sub(add(min(last, sub(queries, index(1))), getArgument(tokensArg)), queries);
  // Positions fit 32 bits, and a block that is longer than that is one.
  Value room = toI32(sub(position, index(blocks.getOffset() + blocks.getSize() - 1)));
  Value length = i32(std::min<int64_t>(type.getKeyBlock() * blocks.getStride(), std::numeric_limits<int32_t>::max()));
  return min(all, select(lt(room, i32(0)), i32(0), add(div(max(room, i32(0)), length), i32(1))));
}

/// Some neighbouring threads have the numbers of a list; several loads of a thread are under way at a time.
void MarkKernel::setBits(Value head, Value firstBlock, Value begin, Value end) {
  constexpr int64_t unroll = 8;
  int64_t width = type.getWidth(), threadsOfList = std::min<int64_t>(llvm::PowerOf2Ceil(width), threads), listsAtATime = threads / threadsOfList;
  Value buffer = getArgument(listsArg), first = getArgument(firstArg), place = rem(thread(), i32(threadsOfList));
  loop(add(begin, div(thread(), i32(threadsOfList))), end, i32(unroll * listsAtATime), [&](Value firstList) {
    for (int64_t firstPlace = 0; firstPlace < width; firstPlace += threadsOfList) {
      Value inList = add(place, i32(firstPlace)), isPlace = lt(inList, i32(width)), column = toIndex(min(inList, i32(width - 1)));
      SmallVector<Value> lists, numbers;
      for (int64_t u = 0; u < unroll; ++u) {
        lists.push_back(add(firstList, i32(u * listsAtATime)));
        Value row = getListRow(*this, buffer, first, toIndex(min(lists.back(), sub(end, i32(1)))));
        numbers.push_back(load(buffer, {getArgument(batchArg), add(getArgument(headArg), head), row, column}));
      }
      for (int64_t u = 0; u < unroll; ++u) {
        Value bound = max(min(sub(getBlocksInSight(lists[u]), firstBlock), i32(blocksOfItem)), i32(0));
        setBit(sub(lists[u], begin), sub(numbers[u], firstBlock), select(both(isPlace, lt(lists[u], end)), bound, i32(0)));
      }
    }
  });
}

/// Of the item's blocks the first `bound` count.
void MarkKernel::setBit(Value inStretch, Value place, Value bound) {
  ifThen(ult(place, bound), [&] {
    Value word = add(mul(place, i32(wordsOfBlock)), div(inStretch, i32(bits)));
    atomicOr(shiftLeft(i32(1), rem(inStretch, i32(bits))), bitsOfBlocks, toIndex(word));
  });
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
  MarkKernel k(host, op, type, {lists, marks.here, counts.here, queries, tokens, blocks, range.batch, range.firstHead, range.first, range.count});
  Value groups = e.mul(range.heads, e.ceilDiv(blocks, e.index(MarkKernel::blocksOfItem)));
  k.forEachItem(e.mul(groups, e.ceilDiv(range.count, e.index(listsOfStretch))), [&](Value item) { k.buildItem(item); });
  k.finish();
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

namespace {
/// One block adds up all counts: a thread has those of some key blocks that follow one another, stretch by stretch.
class PlaceKernel : public BlockKernel {
public:
  enum Argument { countsArg, firstEntriesArg, firstItemsArg, numItemsArg, itemsArg, blocksArg, listsArg };
  PlaceKernel(HostFunction &host, SparseAttendOp op, ValueRange arguments, int64_t rows, int64_t tileRows)
      : BlockKernel(host.builder, op, "ssa_place_entries", threads, arguments), rows(rows), tileRows(tileRows),
        entrySums(addShared(builder.getI32Type(), threads / warpSize)), itemSums(addShared(builder.getI32Type(), threads / warpSize)) {}

  void buildItem();

private:
  struct Sums {
    Value entries, items;
  };
  Sums addUp(Value stretches, Value begin, Value end, Sums before, llvm::function_ref<void(Value i, Value entries)> visitStretch,
             llvm::function_ref<void(Value block, Value items)> visitBlock);

  static constexpr int64_t threads = 1024;
  int64_t rows, tileRows;
  Value entrySums, itemSums;
};
} // namespace

/// Sums of entries and items up to each of the counts of the blocks `begin` .. `end`-1; several loads are under way at a time.
PlaceKernel::Sums PlaceKernel::addUp(Value stretches, Value begin, Value end, Sums before, llvm::function_ref<void(Value, Value)> visitStretch,
                                     llvm::function_ref<void(Value, Value)> visitBlock) {
  constexpr int64_t unroll = 4;
  Value firstCount = mul(begin, stretches), endCount = mul(end, stretches), last = sub(endCount, index(1));
  SmallVector<Value> inits = {before.entries, before.items, begin, index(0), i32(0)};
  SmallVector<Value> sums = loop(firstCount, endCount, index(unroll), inits, [&](Value first, ValueRange carried) -> SmallVector<Value> {
    SmallVector<Value> found;
    for (int64_t u = 0; u < unroll; ++u)
      found.push_back(load(getArgument(countsArg), min(add(first, index(u)), last)));
    Value entries = carried[0], items = carried[1], block = carried[2], stretch = carried[3], ofBlock = carried[4];
    for (int64_t u = 0; u < unroll; ++u) {
      Value i = add(first, index(u)), isHere = lt(i, endCount), count = select(isHere, found[u], i32(0));
      stretch = add(stretch, index(1));
      ofBlock = add(ofBlock, count);
      Value isLast = eq(stretch, stretches), tiles = toI32(ceilDiv(mul(toIndex(ofBlock), index(rows)), index(tileRows)));
      ifThen(isHere, [&] { visitStretch(i, entries); });
      ifThen(both(isHere, isLast), [&] { visitBlock(block, items); });
      entries = add(entries, count);
      items = add(items, select(isLast, tiles, i32(0)));
      block = add(block, select(isLast, index(1), index(0)));
      stretch = select(isLast, index(0), stretch);
      ofBlock = select(isLast, i32(0), ofBlock);
    }
    return {entries, items, block, stretch, ofBlock};
  });
  return {sums[0], sums[1]};
}

void PlaceKernel::buildItem() {
  Value stretches = ceilDiv(getArgument(listsArg), index(listsOfStretch)), blocks = getArgument(blocksArg), perThread = ceilDiv(blocks, index(threads));
  Value begin = min(mul(threadId(), perThread), blocks), end = min(add(begin, perThread), blocks);
  auto none = [](Value, Value) {};
  Sums own = addUp(stretches, begin, end, {i32(0), i32(0)}, none, none);
  Scan entries = scan(own.entries, entrySums), items = scan(own.items, itemSums);
  addUp(stretches, begin, end, {entries.before, items.before}, [&](Value i, Value before) { store(before, getArgument(firstEntriesArg), i); },
        [&](Value block, Value before) { store(before, getArgument(firstItemsArg), block); });
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
void TransposedLists::buildEntries(const ListRange &range) {
  constexpr int64_t threads = 256;
  enum { listsArg, marksArg, firstEntriesArg, firstItemsArg, entriesArg, itemsArg, blocksArg, batchArg, headArg, headsArg, firstArg, countArg };
  BlockKernel k(host.builder, op, "ssa_write_entries", threads,
                {lists, marks.here, firstEntries.here, firstItems.here, entries.here, items.here, blocks, range.batch, range.firstHead, range.heads, range.first, range.count});
  Emitter e(host.builder, op.getLoc());
  int64_t width = type.getWidth();
  // Where the entries of a block and stretch begin.
  auto loadFirst = [&](Value block, Value stretch) {
    Value stretches = k.ceilDiv(k.getArgument(countArg), k.index(listsOfStretch));
    return k.load(k.getArgument(firstEntriesArg), k.add(k.mul(block, stretches), stretch));
  };
  auto writeItems = [&](Value block) {
    Value firstItem = k.toIndex(k.load(k.getArgument(firstItemsArg), block)), firstEntry = loadFirst(block, k.index(0));
    Value count = k.sub(loadFirst(k.add(block, k.index(1)), k.index(0)), firstEntry), tiles = k.ceilDiv(k.mul(k.toIndex(count), k.index(rows)), k.index(tileRows));
    k.loop(k.toIndex(k.lane()), tiles, k.index(warpSize), [&](Value tile) {
      Value parts[] = {k.toI32(block), firstEntry, count, k.toI32(k.mul(tile, k.index(tileRows)))};
      auto vector = VectorType::get({numItemParts}, k.builder.getI32Type());
      k.storeVector(vector::FromElementsOp::create(k.builder, k.loc, vector, parts), k.getArgument(itemsArg), {k.add(firstItem, tile), k.index(0)});
    });
  };
  auto writeEntry = [&](Value head, Value place) {
    Value list = k.div(place, k.index(width)), row = getListRow(k, k.getArgument(listsArg), k.getArgument(firstArg), list);
    Value number = k.load(k.getArgument(listsArg), {k.getArgument(batchArg), k.add(k.getArgument(headArg), head), row, k.rem(place, k.index(width))});
    k.ifThen(k.ult(number, k.toI32(k.getArgument(blocksArg))), [&] {
      Value block = k.add(k.mul(head, k.getArgument(blocksArg)), k.toIndex(number));
      Value mark = k.loadVector(k.getArgument(marksArg), {block, k.div(list, k.index(bits)), k.index(0)}, numMarkParts);
      auto part = [&](MarkPart i) -> Value { return vector::ExtractOp::create(k.builder, k.loc, mark, int64_t(i)); };
      Value own = k.shiftLeft(k.i32(1), k.toI32(k.rem(list, k.index(bits))));
      k.ifThen(k.ne(k.both(part(wordPart), own), k.i32(0)), [&] { // it is in sight
        Value before = k.add(part(beforePart), k.popCount(k.both(part(wordPart), k.sub(own, k.i32(1)))));
        k.store(k.toI32(place), k.getArgument(entriesArg), k.toIndex(k.add(loadFirst(block, k.div(list, k.index(listsOfStretch))), before)));
      });
    });
  };
  auto perHead = [&](Emitter &e, Value lists) { return e.ceilDiv(e.mul(lists, e.index(width)), e.index(threads)); };
  Value all = e.mul(blocks, range.heads), warps = e.index(threads / warpSize);
  Value total = e.add(e.mul(perHead(e, range.count), range.heads), e.ceilDiv(all, warps));
  k.forEachItem(total, [&](Value item) {
    Value parts = perHead(k, k.getArgument(countArg)), forEntries = k.mul(parts, k.getArgument(headsArg));
    k.ifThenElse(k.lt(item, forEntries), [&] {
      Value head = item, place = k.add(k.mul(k.split(head, parts), k.index(threads)), k.threadId());
      k.ifThen(k.lt(place, k.mul(k.getArgument(countArg), k.index(width))), [&] { writeEntry(head, place); });
    }, [&] {
      Value block = k.add(k.mul(k.sub(item, forEntries), k.index(k.getNumWarps())), k.toIndex(k.warp()));
      k.ifThen(k.lt(block, k.mul(k.getArgument(blocksArg), k.getArgument(headsArg))), [&] { writeItems(block); });
    });
  });
  k.finish();
}
