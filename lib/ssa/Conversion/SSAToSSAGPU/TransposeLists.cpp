//===- TransposeLists.cpp - Which lists have a key block ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Three kernels. The first sets a bit for every block and list that has it, and counts those before each word of bits; the second says where the
// entries and items of each block begin; the third writes them, in the order of the bits. So no order depends on chance.
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
/// A word of bits, and how many bits are set in those before.
enum MarkPart { wordPart, beforePart, numMarkParts };

TransposedLists::TransposedLists(HostFunction &host, SparseAttendOp op, Value heads, Value capacity, Value lanes, int64_t rows, int64_t tileRows)
    : host(host), op(op), type(cast<SelectionType>(op.getSelections().front().getType())), rows(rows), tileRows(tileRows),
      lists(host.getBuffer(op.getSelections().front())) {
  Emitter e(host.builder, op.getLoc());
  auto allocate = [&](Value size, ArrayRef<OpFoldResult> others = {}) { return LaneBuffer(host, op.getLoc(), lanes, size, others, e.builder.getI32Type()); };
  blocks = e.ceilDiv(e.dim(host.getBuffer(op.getKey()), 2), e.index(type.getKeyBlock()));
  Value all = e.mul(blocks, heads), places = e.mul(e.mul(capacity, heads), e.index(type.getWidth()));
  marks = allocate(all, {e.ceilDiv(capacity, e.index(bits)), e.builder.getIndexAttr(numMarkParts)});
  counts = allocate(all);
  firstEntries = allocate(all);
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
/// A block of threads has some neighbouring key blocks of a head, and looks at all lists of the range, a stretch at a time.
class MarkKernel : public BlockKernel {
public:
  enum Argument { listsArg, marksArg, countsArg, queriesArg, tokensArg, blocksArg, batchArg, headArg, firstArg, countArg };
  MarkKernel(HostFunction &host, SparseAttendOp op, SelectionType type, ValueRange arguments)
      : BlockKernel(host.builder, op, "ssa_mark_lists", threads, arguments), op(op), type(type),
        bitsOfBlocks(addShared(builder.getI32Type(), blocksOfItem * wordsOfBlock)), countsBefore(addShared(builder.getI32Type(), blocksOfItem)) {}

  void buildItem(Value item);

  static constexpr int64_t threads = 1024, blocksOfItem = 64, listsOfStretch = 4096, wordsOfBlock = listsOfStretch / bits;

private:
  Value getBlocksInSight(Value list);
  void setBits(Value head, Value firstBlock, Value begin, Value end);
  void setBit(Value inStretch, Value place, Value bound);
  void countBits(Value head, Value firstBlock, Value begin, Value end);

  SparseAttendOp op;
  SelectionType type;
  Value bitsOfBlocks;
  Value countsBefore; // of each block, in the stretches before
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
void MarkKernel::countBits(Value head, Value firstBlock, Value begin, Value end) {
  Value words = ceilDiv(sub(end, begin), index(bits)), firstWord = div(begin, index(bits)), blocks = getArgument(blocksArg);
  loop(toIndex(warp()), min(index(blocksOfItem), sub(blocks, firstBlock)), index(getNumWarps()), [&](Value place) {
    Value row = add(mul(head, blocks), add(firstBlock, place));
    Value before = load(countsBefore, place);
    Value count = loop(index(0), words, index(warpSize), before, [&](Value first, ValueRange carried) -> SmallVector<Value> {
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
    warpBarrier(); // all lanes have read it
    ifThen(eq(lane(), i32(0)), [&] {
      store(count, countsBefore, place);
      store(count, getArgument(countsArg), row);
    });
  });
}

void MarkKernel::buildItem(Value item) {
  Value groups = ceilDiv(getArgument(blocksArg), index(blocksOfItem)), head = div(item, groups);
  Value firstBlock = mul(rem(item, groups), index(blocksOfItem));
  barrier(); // what the item before counted has been read
  loop(threadId(), index(blocksOfItem), index(threads), [&](Value i) { store(i32(0), countsBefore, i); });
  Value count = getArgument(countArg);
  loop(index(0), count, index(listsOfStretch), [&](Value begin) {
    Value end = min(add(begin, index(listsOfStretch)), count);
    barrier(); // the bits of the stretch before have been read
    loop(threadId(), index(blocksOfItem * wordsOfBlock), index(threads), [&](Value i) { store(i32(0), bitsOfBlocks, i); });
    barrier();
    setBits(head, toI32(firstBlock), toI32(begin), toI32(end));
    barrier();
    countBits(head, firstBlock, begin, end);
  });
}

void TransposedLists::buildMarks(const ListRange &range) {
  Emitter e(host.builder, op.getLoc());
  Value queries = e.dim(host.getBuffer(op.getQuery()), 2), tokens = e.dim(host.getBuffer(op.getTokens() ? op.getTokens() : op.getKey()), 2);
  MarkKernel k(host, op, type, {lists, marks.here, counts.here, queries, tokens, blocks, range.batch, range.firstHead, range.first, range.count});
  k.forEachItem(e.mul(range.heads, e.ceilDiv(blocks, e.index(MarkKernel::blocksOfItem))), [&](Value item) { k.buildItem(item); });
  k.finish();
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// One block adds up all counts: a thread has some that follow one another.
void TransposedLists::buildPlaces(const ListRange &range) {
  constexpr int64_t threads = 1024;
  enum { countsArg, firstEntriesArg, firstItemsArg, numItemsArg, itemsArg, allArg };
  Emitter e(host.builder, op.getLoc());
  BlockKernel k(host.builder, op, "ssa_place_entries", threads, {counts.here, firstEntries.here, firstItems.here, numItems.here, items.here, e.mul(blocks, range.heads)});
  Value entrySums = k.addShared(k.builder.getI32Type(), threads / warpSize), itemSums = k.addShared(k.builder.getI32Type(), threads / warpSize);
  k.forEachItem(e.index(1), [&](Value) {
    Value all = k.toI32(k.getArgument(allArg)), perThread = k.ceilDiv(all, k.i32(threads));
    Value begin = k.toI32(k.mul(k.threadId(), k.toIndex(perThread))), end = k.min(k.add(begin, perThread), all);
    // Sums of entries and items so far; several loads are under way at a time.
    constexpr int64_t unroll = 8;
    auto addUp = [&](Value entries, Value items, llvm::function_ref<void(Value i, Value entries, Value items)> visit) {
      return k.loop(begin, end, k.i32(unroll), {entries, items}, [&](Value first, ValueRange sums) -> SmallVector<Value> {
        SmallVector<Value> found, next(sums);
        for (int64_t u = 0; u < unroll; ++u) {
          Value i = k.add(first, k.i32(u)), count = k.load(k.getArgument(countsArg), k.toIndex(k.min(i, k.sub(end, k.i32(1)))));
          found.push_back(k.select(k.lt(i, end), count, k.i32(0)));
        }
        for (int64_t u = 0; u < unroll; ++u) {
          Value i = k.add(first, k.i32(u));
          if (visit)
            k.ifThen(k.lt(i, end), [&] { visit(k.toIndex(i), next[0], next[1]); });
          next[0] = k.add(next[0], found[u]);
          next[1] = k.add(next[1], k.toI32(k.ceilDiv(k.mul(k.toIndex(found[u]), k.index(rows)), k.index(tileRows))));
        }
        return next;
      });
    };
    SmallVector<Value> own = addUp(k.i32(0), k.i32(0), nullptr);
    BlockKernel::Scan entriesBefore = k.scan(own[0], entrySums), itemsBefore = k.scan(own[1], itemSums);
    addUp(entriesBefore.before, itemsBefore.before, [&](Value i, Value entries, Value items) {
      k.store(entries, k.getArgument(firstEntriesArg), i);
      k.store(items, k.getArgument(firstItemsArg), i);
    });
    k.ifThen(k.eq(k.thread(), k.i32(0)), [&] {
      k.store(itemsBefore.total, k.getArgument(numItemsArg), k.index(0));
      // The first item is read even if there is none.
      k.ifThen(k.eq(itemsBefore.total, k.i32(0)), [&] { k.storeVector(k.broadcast(k.i32(0), numItemParts), k.getArgument(itemsArg), {k.index(0), k.index(0)}); });
    });
  });
  k.finish();
}

//===----------------------------------------------------------------------===//
// Entries and items
//===----------------------------------------------------------------------===//

/// Some blocks of threads write entries, a thread that of a place in a list; in others a warp writes the items of a key block.
void TransposedLists::buildEntries(const ListRange &range) {
  constexpr int64_t threads = 256;
  enum { listsArg, marksArg, countsArg, firstEntriesArg, firstItemsArg, entriesArg, itemsArg, blocksArg, batchArg, headArg, headsArg, firstArg, countArg };
  BlockKernel k(host.builder, op, "ssa_write_entries", threads,
                {lists, marks.here, counts.here, firstEntries.here, firstItems.here, entries.here, items.here, blocks, range.batch, range.firstHead, range.heads, range.first, range.count});
  Emitter e(host.builder, op.getLoc());
  int64_t width = type.getWidth();
  auto writeItems = [&](Value block) {
    Value firstItem = k.toIndex(k.load(k.getArgument(firstItemsArg), block)), count = k.load(k.getArgument(countsArg), block);
    Value firstEntry = k.load(k.getArgument(firstEntriesArg), block), tiles = k.ceilDiv(k.mul(k.toIndex(count), k.index(rows)), k.index(tileRows));
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
        k.store(k.toI32(place), k.getArgument(entriesArg), k.toIndex(k.add(k.load(k.getArgument(firstEntriesArg), block), before)));
      });
    });
  };
  auto perHead = [&](Emitter &e, Value lists) { return e.ceilDiv(e.mul(lists, e.index(width)), e.index(threads)); };
  Value all = e.mul(blocks, range.heads), warps = e.index(threads / warpSize);
  Value total = e.add(e.mul(perHead(e, range.count), range.heads), e.ceilDiv(all, warps));
  k.forEachItem(total, [&](Value item) {
    Value parts = perHead(k, k.getArgument(countArg)), forEntries = k.mul(parts, k.getArgument(headsArg));
    k.ifThenElse(k.lt(item, forEntries), [&] {
      Value place = k.add(k.mul(k.rem(item, parts), k.index(threads)), k.threadId());
      k.ifThen(k.lt(place, k.mul(k.getArgument(countArg), k.index(width))), [&] { writeEntry(k.div(item, parts), place); });
    }, [&] {
      Value block = k.add(k.mul(k.sub(item, forEntries), k.index(k.getNumWarps())), k.toIndex(k.warp()));
      k.ifThen(k.lt(block, k.mul(k.getArgument(blocksArg), k.getArgument(headsArg))), [&] { writeItems(block); });
    });
  });
  k.finish();
}
