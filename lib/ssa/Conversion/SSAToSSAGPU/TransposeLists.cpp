//===- TransposeLists.cpp - Which lists have a key block ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Three kernels. The first sets a bit for every block and list that has it, and counts; the second says where the entries and items of each
// block begin; the third writes them, in the order of the bits. So no order depends on chance.
//
//===----------------------------------------------------------------------===//

#include "TransposeLists.h"
#include "Attend.h"
#include "Block.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "ssa/IR/Geometry.h"

using namespace mlir;
using namespace mlir::ssa;

static constexpr int64_t bits = 32;

TransposedLists::TransposedLists(HostFunction &host, SparseAttendOp op, Value capacity, int64_t rows, int64_t tileRows)
    : host(host), op(op), type(cast<SelectionType>(op.getSelections().front().getType())), rows(rows), tileRows(tileRows),
      lists(host.getBuffer(op.getSelections().front())) {
  Emitter e(host.builder, op.getLoc());
  Type i32 = e.builder.getI32Type();
  auto allocate = [&](ArrayRef<OpFoldResult> sizes) { return host.allocateWorkspace(op.getLoc(), sizes, i32); };
  blocks = e.ceilDiv(e.dim(host.getBuffer(op.getKey()), 2), e.index(type.getKeyBlock()));
  Value all = e.mul(blocks, e.index(type.getHeads())), places = e.mul(capacity, e.index(type.getHeads() * type.getWidth()));
  marks = allocate({all, e.ceilDiv(capacity, e.index(bits))});
  counts = allocate({all});
  firstEntries = allocate({all});
  firstItems = allocate({all});
  entries = allocate({places});
  mostItems = e.add(all, e.ceilDiv(e.mul(places, e.index(rows)), e.index(tileRows)));
  items = allocate({mostItems, e.builder.getIndexAttr(numItemParts)});
  numItems = allocate({e.builder.getIndexAttr(1)});
}

void TransposedLists::build(const ListRange &range) {
  buildMarks(range);
  buildPlaces();
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
/// A block of threads has 32 neighbouring key blocks of a head, and looks at all lists of the range.
class MarkKernel : public BlockKernel {
public:
  enum Argument { listsArg, marksArg, countsArg, queriesArg, tokensArg, blocksArg, batchArg, firstArg, countArg };
  MarkKernel(HostFunction &host, SparseAttendOp op, SelectionType type, ValueRange arguments)
      : BlockKernel(host.builder, op, "ssa_mark_lists", threads, arguments), op(op), type(type),
        bitsOfBlocks(addShared(builder.getI32Type(), blocksOfItem * wordsOfBlock)) {}

  void buildItem(Value item);

  static constexpr int64_t threads = 256, blocksOfItem = 32, wordsOfBlock = TransposedLists::maxLists / bits;

private:
  Value isInSight(Value number, Value list);
  void setBits(Value head, Value firstBlock);
  void countBits(Value head, Value firstBlock);

  SparseAttendOp op;
  SelectionType type;
  Value bitsOfBlocks;
};
} // namespace

/// False if the last query of the list stands before all keys of the block.
Value MarkKernel::isInSight(Value number, Value list) {
  MaskAttr mask = op.getMask().value_or(nullptr);
  if (!mask || !mask.getCausal())
    return bit(true);
  BlocksAttr blocks = op.getBlocksOrTokens();
  int64_t queryBlock = type.getQueryBlock();
  Value queries = getArgument(queriesArg), last = add(mul(add(getArgument(firstArg), list), index(queryBlock)), index(queryBlock - 1));
  Value position = sub(add(min(last, sub(queries, index(1))), getArgument(tokensArg)), queries);
  Value end = add(mul(toIndex(number), index(type.getKeyBlock() * blocks.getStride())), index(blocks.getOffset() + blocks.getSize() - 1));
  return le(end, position);
}

void MarkKernel::setBits(Value head, Value firstBlock) {
  Value width = index(type.getWidth()), buffer = getArgument(listsArg);
  loop(threadId(), mul(getArgument(countArg), width), index(threads), [&](Value i) {
    Value list = div(i, width), row = getListRow(*this, buffer, getArgument(firstArg), list);
    Value number = load(buffer, {getArgument(batchArg), head, row, rem(i, width)}), place = sub(number, toI32(firstBlock));
    Value exists = both(ult(place, i32(blocksOfItem)), lt(number, toI32(getArgument(blocksArg))));
    ifThen(both(exists, isInSight(number, list)), [&] {
      Value word = add(mul(toIndex(place), index(wordsOfBlock)), div(list, index(bits)));
      atomicOr(shiftLeft(i32(1), toI32(rem(list, index(bits)))), bitsOfBlocks, word);
    });
  });
}

/// Every warp has some of the blocks.
void MarkKernel::countBits(Value head, Value firstBlock) {
  Value words = ceilDiv(getArgument(countArg), index(bits)), blocks = getArgument(blocksArg);
  loop(toIndex(warp()), min(index(blocksOfItem), sub(blocks, firstBlock)), index(getNumWarps()), [&](Value place) {
    Value row = add(mul(head, blocks), add(firstBlock, place));
    Value count = loop(index(0), words, index(warpSize), i32(0), [&](Value first, ValueRange carried) -> SmallVector<Value> {
      Value word = add(first, toIndex(lane())), exists = lt(word, words);
      Value found = load(bitsOfBlocks, add(mul(place, index(wordsOfBlock)), min(word, index(wordsOfBlock - 1))));
      ifThen(exists, [&] { store(found, getArgument(marksArg), {row, word}); });
      return {add(carried[0], select(exists, popCount(found), i32(0)))};
    })[0];
    Value total = warpSum(count);
    ifThen(eq(lane(), i32(0)), [&] { store(total, getArgument(countsArg), row); });
  });
}

void MarkKernel::buildItem(Value item) {
  Value groups = ceilDiv(getArgument(blocksArg), index(blocksOfItem)), head = div(item, groups);
  Value firstBlock = mul(rem(item, groups), index(blocksOfItem));
  barrier(); // the bits of the item before have been read
  loop(threadId(), index(blocksOfItem * wordsOfBlock), index(threads), [&](Value i) { store(i32(0), bitsOfBlocks, i); });
  barrier();
  setBits(head, firstBlock);
  barrier();
  countBits(head, firstBlock);
}

void TransposedLists::buildMarks(const ListRange &range) {
  Emitter e(host.builder, op.getLoc());
  Value queries = e.dim(host.getBuffer(op.getQuery()), 2), tokens = e.dim(host.getBuffer(op.getTokens() ? op.getTokens() : op.getKey()), 2);
  MarkKernel k(host, op, type, {lists, marks, counts, queries, tokens, blocks, range.batch, range.first, range.count});
  k.forEachItem(e.mul(e.index(type.getHeads()), e.ceilDiv(blocks, e.index(MarkKernel::blocksOfItem))), [&](Value item) { k.buildItem(item); });
  k.finish();
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// One block adds up all counts.
void TransposedLists::buildPlaces() {
  constexpr int64_t threads = 1024;
  enum { countsArg, firstEntriesArg, firstItemsArg, numItemsArg };
  BlockKernel k(host.builder, op, "ssa_place_entries", threads, {counts, firstEntries, firstItems, numItems});
  Value entrySums = k.addShared(k.builder.getI32Type(), threads / warpSize), itemSums = k.addShared(k.builder.getI32Type(), threads / warpSize);
  Emitter e(host.builder, op.getLoc());
  k.forEachItem(e.index(1), [&](Value) {
    Value all = k.dim(k.getArgument(countsArg), 0);
    SmallVector<Value> sums = k.loop(k.index(0), all, k.index(threads), {k.i32(0), k.i32(0)}, [&](Value first, ValueRange carried) -> SmallVector<Value> {
      Value i = k.add(first, k.threadId()), exists = k.lt(i, all);
      Value count = k.load(k.getArgument(countsArg), k.min(i, k.sub(all, k.index(1))));
      count = k.select(exists, count, k.i32(0));
      Value tiles = k.toI32(k.ceilDiv(k.mul(k.toIndex(count), k.index(rows)), k.index(tileRows)));
      BlockKernel::Scan entriesBefore = k.scan(count, entrySums), itemsBefore = k.scan(tiles, itemSums);
      k.ifThen(exists, [&] {
        k.store(k.add(carried[0], entriesBefore.before), k.getArgument(firstEntriesArg), i);
        k.store(k.add(carried[1], itemsBefore.before), k.getArgument(firstItemsArg), i);
      });
      return {k.add(carried[0], entriesBefore.total), k.add(carried[1], itemsBefore.total)};
    });
    k.ifThen(k.eq(k.thread(), k.i32(0)), [&] { k.store(sums[1], k.getArgument(numItemsArg), k.index(0)); });
  });
  k.finish();
}

//===----------------------------------------------------------------------===//
// Entries and items
//===----------------------------------------------------------------------===//

/// A warp has one block of a head.
void TransposedLists::buildEntries(const ListRange &range) {
  constexpr int64_t threads = 256;
  enum { listsArg, marksArg, countsArg, firstEntriesArg, firstItemsArg, entriesArg, itemsArg, blocksArg, batchArg, firstArg, countArg };
  BlockKernel k(host.builder, op, "ssa_write_entries", threads,
                {lists, marks, counts, firstEntries, firstItems, entries, items, blocks, range.batch, range.first, range.count});
  Emitter e(host.builder, op.getLoc());
  auto writeItems = [&](Value block, Value firstEntry, Value count) {
    Value firstItem = k.toIndex(k.load(k.getArgument(firstItemsArg), block));
    Value tiles = k.ceilDiv(k.mul(k.toIndex(count), k.index(rows)), k.index(tileRows));
    k.loop(k.toIndex(k.lane()), tiles, k.index(warpSize), [&](Value tile) {
      Value parts[] = {k.toI32(block), firstEntry, count, k.toI32(k.mul(tile, k.index(tileRows)))};
      auto vector = VectorType::get({numItemParts}, k.builder.getI32Type());
      k.storeVector(vector::FromElementsOp::create(k.builder, k.loc, vector, parts), k.getArgument(itemsArg), {k.add(firstItem, tile), k.index(0)});
    });
  };
  auto writeEntries = [&](Value block, Value firstEntry) {
    Value number = k.toI32(k.rem(block, k.getArgument(blocksArg))), head = k.div(block, k.getArgument(blocksArg));
    Value words = k.ceilDiv(k.getArgument(countArg), k.index(bits));
    k.loop(k.index(0), words, k.index(warpSize), firstEntry, [&](Value first, ValueRange carried) -> SmallVector<Value> {
      Value word = k.add(first, k.toIndex(k.lane())), isWord = k.lt(word, words);
      Value marked = k.load(k.getArgument(marksArg), {block, k.min(word, k.sub(words, k.index(1)))});
      marked = k.select(isWord, marked, k.i32(0));
      BlockKernel::Scan before = k.scanWarp(k.popCount(marked));
      k.loopWhile({marked, k.add(carried[0], before.before)}, [&](ValueRange c) { return k.ne(c[0], k.i32(0)); }, [&](ValueRange c) -> SmallVector<Value> {
        Value list = k.add(k.mul(word, k.index(bits)), k.toIndex(k.countTrailingZeros(c[0])));
        Value row = getListRow(k, k.getArgument(listsArg), k.getArgument(firstArg), list);
        Value place = findInList(k, k.getArgument(listsArg), type.getWidth(), {k.getArgument(batchArg), head, row}, number);
        Value entry = k.toI32(k.add(k.mul(list, k.index(type.getWidth())), place));
        k.store(entry, k.getArgument(entriesArg), k.toIndex(c[1]));
        return {k.both(c[0], k.sub(c[0], k.i32(1))), k.add(c[1], k.i32(1))};
      });
      return {k.add(carried[0], before.total)};
    });
  };
  Value all = e.mul(blocks, e.index(type.getHeads()));
  k.forEachItem(e.ceilDiv(all, e.index(threads / warpSize)), [&](Value item) {
    Value block = k.add(k.mul(item, k.index(threads / warpSize)), k.toIndex(k.warp()));
    k.ifThen(k.lt(block, k.dim(k.getArgument(countsArg), 0)), [&] {
      Value firstEntry = k.load(k.getArgument(firstEntriesArg), block), count = k.load(k.getArgument(countsArg), block);
      writeItems(block, firstEntry, count);
      writeEntries(block, firstEntry);
    });
  });
  k.finish();
}
