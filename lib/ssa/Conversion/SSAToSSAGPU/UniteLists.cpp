//===- UniteLists.cpp - Unions of neighbouring lists ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For attention in the order of unions: the lists of a tile become one, which is sorted, and beside every entry stands which of them have it.
//
//===----------------------------------------------------------------------===//

#include "Attend.h"
#include "ElementKernel.h"
#include "ssa/IR/Geometry.h"

using namespace mlir;
using namespace mlir::ssa;

static constexpr int64_t bitsOfWord = 32;

SelectionType ssa::getTypeOfUnion(SelectionType selection, int64_t lists) {
  SmallVector<int64_t> shape(selection.getShape());
  shape[2] = ShapedType::kDynamic;
  shape[3] *= lists;
  return SelectionType::get(selection.getContext(), shape, selection.getKeyBlock(), selection.getQueryBlock() * lists, /*sorted=*/true);
}

Value ssa::findInList(Emitter &e, Value lists, int64_t width, ArrayRef<Value> where, Value number) {
  auto get = [&](Value i) { return e.load(lists, {where[0], where[1], where[2], i}); };
  // It stands in `begin` .. `begin` + `left`.
  Value begin = e.index(0);
  for (int64_t left = width; left > 1; left = ceilDiv(left, 2)) {
    int64_t half = left / 2;
    Value isLess = e.ult(get(e.add(begin, e.index(half - 1))), number);
    begin = e.select(isLess, e.add(begin, e.index(half)), begin);
  }
  return begin;
}

SmallVector<Value> ssa::uniteLists(HostFunction &host, SparseAttendOp op, SelectionType unions, int64_t words, Value mostBatches, Value mostQueries) {
  Location loc = op.getLoc();
  Emitter onHost(host.builder, loc);
  Value lists = host.getBuffer(op.getSelections().front());
  auto type = cast<SelectionType>(op.getSelections().front().getType());
  int64_t neighbours = unions.getQueryBlock() / type.getQueryBlock();
  auto count = [&](Value queries) { return onHost.ceilDiv(queries, onHost.index(unions.getQueryBlock())); };
  auto allocate = [&](int64_t columns) {
    IntegerAttr heads = host.builder.getIndexAttr(type.getHeads()), width = host.builder.getIndexAttr(columns);
    Value all;
    {
      OpBuilder::InsertionGuard guard = host.beforeLoop();
      all = host.allocateWorkspace(loc, {mostBatches, heads, count(mostQueries), width}, host.builder.getI32Type());
    }
    return host.loop ? host.getPart(all, 2, onHost.index(0), count(onHost.dim(host.getBuffer(op.getQuery()), 2))) : all;
  };
  Value united = allocate(unions.getWidth()), members = allocate(unions.getWidth() * words);
  buildUnionOfNeighbours(host, op, lists, type, neighbours, united);

  ElementKernel k(host, op, "ssa_members_of_union", {lists, united, members}, members);
  k.build([&](ArrayRef<Value> at) {
    Value number = k.load(k.getArgument(1), {at[0], at[1], at[2], k.div(at[3], k.index(words))});
    Value word = k.rem(at[3], k.index(words)), all = k.dim(k.getArgument(0), 2), servesAll = k.eq(all, k.index(1));
    Value isEntry = k.ge(number, k.i32(0));
    // Padding has no members.
    Value first = k.mul(word, k.index(bitsOfWord)), end = k.min(k.add(first, k.index(bitsOfWord)), k.index(neighbours));
    Value bits = k.loop(first, k.select(isEntry, end, first), k.index(1), k.i32(0), [&](Value list, ValueRange carried) -> SmallVector<Value> {
      Value place = k.add(k.mul(at[2], k.index(neighbours)), list), exists = k.lt(place, all);
      place = k.select(servesAll, k.index(0), k.min(place, k.sub(all, k.index(1))));
      Value found = findInList(k, k.getArgument(0), type.getWidth(), {at[0], at[1], place}, number);
      Value isMember = k.eq(k.load(k.getArgument(0), {at[0], at[1], place, found}), number);
      // Lists past the end have no rows: that these take part hides nothing from anyone.
      isMember = k.either(isMember, k.both(k.eq(exists, k.bit(false)), k.eq(servesAll, k.bit(false))));
      Value bit = k.shiftLeft(k.i32(1), k.toI32(k.sub(list, first)));
      return {k.select(isMember, k.either(carried[0], bit), carried[0])};
    })[0];
    k.store(bits, k.getArgument(2), at);
  });
  return {united, members};
}
