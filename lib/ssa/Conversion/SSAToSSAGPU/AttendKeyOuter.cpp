//===- AttendKeyOuter.cpp - Attention, a key block at a time --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// In the order `key_outer` an item is a key block and a tile of rows of lists that have it. What the kernel makes of them is an attention
// state over that block, which goes to the place of the block in its list.
//
//===----------------------------------------------------------------------===//

#include "AttendKernel.h"
#include "TransposeLists.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::ssa;

/// Items are known to the device only.
Value AttendKernel::getKeyOuterTotal() {
  int64_t cellsOfHead = plan.cells / plan.selection->getHeads();
  return k.mul(k.toIndex(k.load(k.getArgument(numItemsArg), k.index(0))), k.index(cellsOfHead));
}

/// The place in lists of entry `i` (i32) of an item's block.
AttendKernel::Entry AttendKernel::getEntry(const Item &item, Value i) {
  Value inside = k.max(k.min(i, k.sub(item.numEntries, k.i32(1))), k.i32(0));
  Value entry = k.load(k.getArgument(entriesArg), k.toIndex(k.add(item.firstEntry, inside))), width = k.i32(plan.selection->getWidth());
  return {k.toIndex(k.div(entry, width)), k.toIndex(k.rem(entry, width))};
}

/// What memory says of an item: a value for each part.
SmallVector<Value> AttendKernel::loadKeyOuterItem(Value number) {
  Value tile = k.div(number, k.index(plan.cells / plan.selection->getHeads()));
  Value parts = k.loadVector(k.getArgument(itemsArg), {tile, k.index(0)}, TransposedLists::numItemParts);
  SmallVector<Value> values;
  for (int64_t i = 0; i < TransposedLists::numItemParts; ++i)
    values.push_back(vector::ExtractOp::create(k.builder, k.loc, parts, i));
  return values;
}

AttendKernel::Item AttendKernel::decodeKeyOuterItem(Value number, ValueRange part) {
  Item item;
  item.exists = k.bit(true);
  Value cellsOfHead = k.index(plan.cells / plan.selection->getHeads()), cellInHead = k.rem(number, cellsOfHead);
  Value blocks = k.div(k.add(keyRows, k.i32(plan.selection->getKeyBlock() - 1)), k.i32(plan.selection->getKeyBlock()));
  Value block = part[TransposedLists::blockPart];
  item.batch = k.getArgument(batchArg);
  item.cell = k.add(k.mul(k.toIndex(k.div(block, blocks)), cellsOfHead), cellInHead);
  item.list = k.index(0);
  item.block = k.rem(block, blocks);
  item.firstEntry = part[TransposedLists::firstEntryPart];
  item.numEntries = part[TransposedLists::entriesPart];
  item.firstRow = part[TransposedLists::firstRowPart];
  // Those of all lists that were transposed together: closer bounds would take more loads than they save.
  Value shift = k.sub(tokens, queries), firstList = k.toI32(k.getArgument(firstListArg)), queryBlock = k.i32(plan.queryBlock);
  Value end = k.mul(k.add(firstList, k.toI32(k.getArgument(numListsArg))), queryBlock);
  item.firstPosition = k.add(k.mul(firstList, queryBlock), shift);
  item.lastPosition = k.add(k.sub(k.min(end, queries), k.i32(1)), shift);
  return item;
}

AttendKernel::Row AttendKernel::getKeyOuterRow(const Item &item, Value row) {
  Value inBlock = k.add(item.firstRow, row), rows = k.i32(plan.rowsPerList), number = k.div(inBlock, rows), inList = k.rem(inBlock, rows);
  Entry entry = getEntry(item, number);
  Value group = k.i32(plan.group), list = k.add(k.getArgument(firstListArg), entry.list);
  Value m = k.add(k.mul(list, k.index(plan.queryBlock)), k.toIndex(k.div(inList, group)));
  Value head = k.add(k.mul(k.toI32(item.cell), group), k.rem(inList, group));
  Value place = k.add(k.mul(item.cell, k.getArgument(numListsArg)), entry.list);
  place = k.add(k.mul(place, k.index(plan.selection->getWidth())), entry.place);
  Value partial = k.add(k.mul(place, k.index(plan.rowsPerList)), k.toIndex(inList));
  return {m, head, k.both(k.lt(number, item.numEntries), k.lt(m, k.dim(queryView.buffer, 2))), partial};
}
