//===- KeySlots.cpp - The keys that a tile of queries visits --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "KeySlots.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "ssa_gpu/IR/SSAGPU.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::ssa;

BufferView::BufferView(Emitter &e, Value buffer) : buffer(buffer) {
  auto metadata = memref::ExtractStridedMetadataOp::create(e.builder, e.loc, buffer);
  offset = metadata.getOffset();
  strides.assign(metadata.getStrides().begin(), metadata.getStrides().end());
}

Value BufferView::getBegin(Emitter &e, ValueRange indices) const {
  Value begin = offset;
  for (auto [index, stride] : llvm::zip(indices, strides))
    begin = e.add(begin, e.mul(index, stride));
  return begin;
}

Value BufferView::advance(Emitter &e, Value begin, unsigned i, Value count) const { return e.add(begin, e.mul(count, strides[i])); }

Value ssa::getNumBlocks(Emitter &e, BlocksAttr blocks, Value tokens) {
  if (blocks.getStride() == blocks.getSize()) {
    Value count = e.ceilDiv(e.sub(tokens, e.index(blocks.getOffset())), e.index(blocks.getSize()));
    return e.select(e.eq(tokens, e.index(0)), e.index(0), count);
  }
  Value room = e.sub(tokens, e.index(blocks.getOffset() + blocks.getSize()));
  Value count = e.add(e.div(e.max(room, e.index(0)), e.index(blocks.getStride())), e.index(1));
  return e.select(e.lt(room, e.index(0)), e.index(0), count);
}

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

void KeySlots::useRange(Emitter &e) {
  const Config &c = config;
  Value zero = e.i32(0), end = c.keyRows;
  windowBegin = sinkSlots = sinkEnd = zero;
  bool isTokens = c.blocks.isTokens();
  if (c.mask && c.mask.getCausal()) {
    end = e.min(end, countSeen(e, c.lastPosition));
  }
  // Of summaries a window only masks: they are few.
  if (c.mask && c.mask.getWindow() && isTokens) {
    int64_t window = c.mask.getWindow();
    if (!c.mask.getCausal())
      end = e.min(end, e.max(e.add(c.lastPosition, e.i32(window)), zero));
    windowBegin = e.min(e.max(e.sub(getWindowEnd(e, c.firstPosition), e.i32(window - 1)), zero), end);
    if (c.mask.getSink()) {
      Value length = e.i32(getLength());
      sinkEnd = e.min(e.min(e.i32(c.mask.getSink()), c.keyRows), windowBegin);
      sinkSlots = e.mul(e.div(e.add(sinkEnd, e.i32(getLength() - 1)), length), length);
    }
  }
  rangeEnd = end;
  slots = e.add(sinkSlots, e.sub(end, windowBegin));
  finish(e);
}

void KeySlots::useBlock(Emitter &e, Value block, int64_t size) {
  sinkSlots = sinkEnd = e.i32(0);
  windowBegin = e.mul(block, e.i32(size));
  slots = e.max(e.min(e.i32(size), e.sub(config.keyRows, windowBegin)), e.i32(0));
  rangeEnd = e.add(windowBegin, slots);
  finish(e);
}

void KeySlots::finish(Emitter &e) { steps = e.div(e.add(slots, e.i32(config.tileKeys - 1)), e.i32(config.tileKeys)); }

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

void KeySlots::setList(Emitter &e, SelectionType selection, Value buffer, ArrayRef<Value> place, int64_t cells) {
  type = selection;
  lists = buffer;
  BufferView view(e, buffer);
  Value head = e.div(place[1], e.index(cells / type.getHeads()));
  // One list may serve every query.
  listRow = e.select(e.eq(e.dim(buffer, 2), e.index(1)), e.index(0), place[2]);
  listBegin = view.getBegin(e, {place[0], head, listRow});
}

void KeySlots::useList(Emitter &e, SelectionType selection, Value buffer, ArrayRef<Value> place, int64_t cells) {
  setList(e, selection, buffer, place, cells);
  numEntries = countEntries(e);
  slots = e.mul(numEntries, e.i32(type.getKeyBlock()));
  finish(e);
}

void KeySlots::fetchList(Emitter &e, SelectionType selection, Value buffer, ArrayRef<Value> place, int64_t cells) {
  setList(e, selection, buffer, place, cells);
  int64_t bytes = cast<MemRefType>(buffer.getType()).getElementTypeBitWidth() / 8;
  ssa_gpu::FetchAheadOp::create(e.builder, e.loc, buffer, listBegin, type.getWidth() * bytes);
}

void KeySlots::useGatheredRows(Emitter &e, SelectionType selection, Value buffer, ArrayRef<Value> place, int64_t cells) {
  setList(e, selection, buffer, place, cells);
  isGathered = true;
  slots = e.i32(type.getWidth() * type.getKeyBlock());
  finish(e);
}

void KeySlots::takePart(Emitter &e, Value part, int64_t parts) {
  Value perPart = e.div(e.add(steps, e.i32(parts - 1)), e.i32(parts));
  firstStep = e.mul(part, perPart);
  steps = e.max(e.min(perPart, e.sub(steps, firstStep)), e.i32(0));
  slots = e.min(slots, e.mul(e.add(firstStep, steps), e.i32(config.tileKeys)));
}

void KeySlots::useMembers(Emitter &e, Value buffer, ArrayRef<Value> place, int64_t cells) {
  members = buffer;
  membersBegin = BufferView(e, buffer).getBegin(e, {place[0], e.div(place[1], e.index(cells / type.getHeads())), place[2]});
}

void KeySlots::useSteps(SelectionType selection, bool gathered, Value buffer, Value count) {
  type = selection;
  isGathered = gathered;
  lists = buffer;
  steps = count;
}

/// A scalar load of entry `i` (i32) of a list.
static Value loadListEntry(Emitter &e, Value lists, Value begin, Value i) {
  // The list is read through a flat view: its place has been computed from strides already.
  auto type = cast<MemRefType>(lists.getType());
  auto flat = MemRefType::get({ShapedType::kDynamic}, type.getElementType(),
                              StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, {1}));
  auto base = memref::ExtractStridedMetadataOp::create(e.builder, e.loc, lists).getBaseBuffer();
  Value view = memref::ReinterpretCastOp::create(e.builder, e.loc, flat, base, OpFoldResult(begin), ArrayRef<OpFoldResult>{OpFoldResult(e.index(type.getDimSize(3)))},
                                                 ArrayRef<OpFoldResult>{e.builder.getIndexAttr(1)});
  return memref::LoadOp::create(e.builder, e.loc, view, e.toIndex(i));
}

Value KeySlots::getMembers(Emitter &e, Value step, Value i) const {
  Value words = e.i32(cast<MemRefType>(members.getType()).getDimSize(3) / type.getWidth()), size = e.i32(type.getKeyBlock());
  Value slot = e.add(e.mul(step, e.i32(config.tileKeys)), e.mul(e.div(i, words), e.i32(isContiguous() ? getLength() : 1)));
  Value isSlot = e.lt(slot, slots), entry = e.div(e.select(isSlot, slot, e.i32(0)), size);
  Value found = loadListEntry(e, members, membersBegin, e.add(e.mul(entry, words), e.rem(i, words)));
  return e.select(isSlot, found, e.i32(0));
}

/// False of padding, which past the end is too; compared in blocks, since the product may not fit.
Value KeySlots::isBlock(Emitter &e, Value entry) const {
  Value size = e.i32(type.getKeyBlock()), blocks = e.div(e.add(config.keyRows, e.sub(size, e.i32(1))), size);
  return e.both(e.ge(entry, e.i32(0)), e.lt(entry, blocks));
}

/// How many entries stand for blocks that exist and begin in sight: they come first in a sorted list. Every warp searches for itself, all lanes
/// at once.
Value KeySlots::countEntries(Emitter &e) {
  constexpr int64_t lanes = 32;
  Value lane = e.rem(e.toI32(gpu::ThreadIdOp::create(e.builder, e.loc, gpu::Dimension::x)), e.i32(lanes));
  Value width = e.i32(type.getWidth()), size = e.i32(type.getKeyBlock());
  // How many of the entries at `begin`, `begin + stride`, .. count.
  auto count = [&](Value begin, int64_t stride) -> Value {
    Value i = e.add(begin, e.mul(lane, e.i32(stride))), isEntry = e.lt(i, width);
    Value entry = loadListEntry(e, lists, listBegin, e.select(isEntry, i, e.i32(0))), exists = e.both(isEntry, isBlock(e, entry));
    Value first = e.mul(e.select(exists, entry, e.i32(0)), size);
    return e.popCount(e.ballot(e.both(exists, isVisibleFrom(e, first))));
  };
  Value begin = e.i32(0);
  int64_t left = type.getWidth(); // entries, from `begin` on, among which the first is that does not count
  while (left > lanes) {
    int64_t stride = ceilDiv(left, lanes);
    begin = e.add(begin, e.mul(e.max(e.sub(count(begin, stride), e.i32(1)), e.i32(0)), e.i32(stride)));
    left = stride;
  }
  return e.add(begin, count(begin, 1));
}

/// False if the last query of the tile stands before the row: then it stands before all later ones too.
Value KeySlots::isVisibleFrom(Emitter &e, Value number) const {
  if (!config.mask || !config.mask.getCausal())
    return e.eq(number, number);
  Value end = e.add(e.mul(number, e.i32(config.blocks.getStride())), e.i32(config.blocks.getOffset() + config.blocks.getSize() - 1));
  return e.le(end, config.lastPosition);
}

Value KeySlots::getNumber(Emitter &e, Value slot) const {
  Value isSlot = e.lt(slot, slots);
  if (!lists) {
    Value tile = e.i32(config.tileKeys);
    return getNumber(e, getStep(e, e.div(slot, tile)), e.rem(slot, tile));
  }
  Value size = e.i32(type.getKeyBlock());
  Value entry = loadListEntry(e, lists, listBegin, e.select(isSlot, e.div(slot, size), e.i32(0)));
  if (isGathered) // a sorted list has been cut behind its blocks
    isSlot = e.both(isSlot, isBlock(e, entry));
  Value number = e.add(e.mul(e.select(isSlot, entry, e.i32(0)), size), e.rem(slot, size));
  return e.select(e.both(isSlot, e.lt(number, config.keyRows)), number, e.i32(none));
}

//===----------------------------------------------------------------------===//
// Stretches of neighbours
//===----------------------------------------------------------------------===//

KeySlots::Step KeySlots::getStep(Emitter &e, Value step) const {
  Step stretches;
  for (int64_t i = 0; i < config.stretches; ++i)
    stretches.push_back(getStretch(e, e.add(e.mul(step, e.i32(config.stretches)), e.i32(i))));
  return stretches;
}

KeySlots::Stretch KeySlots::getStretch(Emitter &e, Value number) const {
  Value length = e.i32(getLength()), first = e.mul(number, length), isSlot = e.lt(first, slots), base, end;
  if (!lists) {
    Value inSink = e.lt(first, sinkSlots);
    base = e.select(inSink, first, e.add(windowBegin, e.sub(first, sinkSlots)));
    end = e.select(inSink, sinkEnd, rangeEnd);
  } else {
    Value size = e.i32(type.getKeyBlock());
    Value entry = loadListEntry(e, lists, listBegin, e.select(isSlot, e.div(first, size), e.i32(0)));
    base = e.add(e.mul(e.select(isSlot, entry, e.i32(0)), size), e.rem(first, size));
    end = config.keyRows;
  }
  // Behind the last slot nothing is there: no key, nor a row of memory.
  return {e.select(isSlot, base, config.keyRows), e.select(isSlot, e.max(e.min(e.sub(end, base), length), e.i32(0)), e.i32(0))};
}

Value KeySlots::getNumber(Emitter &e, const Step &step, Value row) const {
  Value number;
  for (auto [i, stretch] : llvm::enumerate(step)) {
    Value inStretch = e.sub(row, e.i32(i * getLength()));
    Value found = e.select(e.lt(inStretch, stretch.count), e.add(stretch.base, inStretch), e.i32(none));
    number = i == 0 ? found : e.select(e.le(e.i32(i * getLength()), row), found, number);
  }
  return number;
}

/// The rows whose last token is not after a position: those that a causal mask shows there.
Value KeySlots::countSeen(Emitter &e, Value position) const {
  Value zero = e.i32(0), room = e.sub(position, e.i32(config.blocks.getOffset() + config.blocks.getSize() - 1));
  return e.select(e.lt(room, zero), zero, e.add(e.div(e.max(room, zero), e.i32(config.blocks.getStride())), e.i32(1)));
}

Value KeySlots::countInSight(Emitter &e, const Stretch &stretch) const {
  if (!config.mask || !config.mask.getCausal())
    return stretch.count;
  return e.max(e.min(e.sub(countSeen(e, config.lastPosition), stretch.base), stretch.count), e.i32(0));
}

Value KeySlots::isInSight(Emitter &e, const Stretch &stretch) const {
  // What the mask allows to neighbouring queries is without gaps, but for a sink, which has stretches of its own.
  Value none = e.i32(0), count = countInSight(e, stretch);
  Value inSight = e.both(isInSight(e, stretch.base), isInSight(e, e.sub(e.add(stretch.base, count), e.i32(1))));
  return e.either(e.eq(count, none), inSight);
}

Value KeySlots::isAllVisible(Emitter &e, const Step &step) const {
  Value all;
  for (const Stretch &stretch : step)
    all = all ? e.both(all, isAllVisible(e, stretch)) : isAllVisible(e, stretch);
  return all;
}

Value KeySlots::isAllVisible(Emitter &e, const Stretch &stretch) const {
  Value all = e.eq(stretch.count, e.i32(getLength()));
  if (!config.mask)
    return all;
  BlocksAttr blocks = config.blocks;
  Value last = e.add(stretch.base, e.i32(getLength() - 1));
  Value end = e.add(e.mul(last, e.i32(blocks.getStride())), e.i32(blocks.getOffset() + blocks.getSize() - 1));
  if (config.mask.getCausal())
    all = e.both(all, e.le(end, config.firstPosition));
  if (int64_t window = config.mask.getWindow()) {
    if (!blocks.isTokens()) // not worth the thought: summaries are few
      return e.ne(stretch.base, stretch.base);
    all = e.both(all, e.lt(e.sub(getWindowEnd(e, config.lastPosition), e.i32(window)), stretch.base));
    if (!config.mask.getCausal())
      all = e.both(all, e.lt(last, e.add(config.firstPosition, e.i32(window))));
  }
  return all;
}

Value KeySlots::isAllVisible(Emitter &e, Value last) const {
  // The first of a sorted list may be hidden too, any of gathered rows.
  if (isGathered || (config.mask && config.mask.getWindow()))
    return e.ne(last, last);
  return isVisible(e, last, config.firstPosition);
}

//===----------------------------------------------------------------------===//
// The mask
//===----------------------------------------------------------------------===//

/// `scalar` as whatever `like` is: a scalar or a tile.
Value KeySlots::splatLike(Emitter &e, Value like, Value scalar) const {
  auto tile = dyn_cast<RankedTensorType>(like.getType());
  if (!tile)
    return scalar;
  APInt constant;
  if (matchPattern(scalar, m_ConstantInt(&constant)))
    return arith::ConstantOp::create(e.builder, e.loc, DenseElementsAttr::get(tile, e.builder.getIntegerAttr(tile.getElementType(), constant)));
  auto layout = ssa_gpu::RowsAttr::get(e.builder.getContext(), ssa_gpu::isRowwise(tile), ssa_gpu::getFolds(tile));
  auto rows = RankedTensorType::get({tile.getDimSize(0)}, tile.getElementType(), layout);
  auto map = ssa_gpu::MapRowsOp::create(e.builder, e.loc, rows);
  {
    OpBuilder::InsertionGuard guard(e.builder);
    e.builder.createBlock(&map.getBody(), {}, e.builder.getI32Type(), e.loc);
    ssa_gpu::YieldOp::create(e.builder, e.loc, scalar);
  }
  return ssa_gpu::BroadcastOp::create(e.builder, e.loc, tile, map);
}

Value KeySlots::getWindowEnd(Emitter &e, Value position) const {
  if (config.windowStep == 1)
    return position;
  auto constant = [&](int64_t c) { return splatLike(e, position, e.i32(c)); };
  Value step = constant(config.windowStep), known = e.max(position, constant(0)); // before the first token a query sees nothing
  return e.add(e.mul(e.div(known, step), step), constant(config.windowStep - 1));
}

Value KeySlots::isVisible(Emitter &e, Value number, Value first, Value last) const {
  auto constant = [&](int64_t c) { return splatLike(e, number, e.i32(c)); };
  Value isNumber = e.ne(number, constant(none));
  if (!config.mask)
    return isNumber;
  BlocksAttr blocks = config.blocks;
  Value begin = number, end = number;
  if (!blocks.isTokens()) {
    begin = e.add(e.mul(number, constant(blocks.getStride())), constant(blocks.getOffset()));
    end = e.add(begin, constant(blocks.getSize() - 1));
  }
  bool causal = config.mask.getCausal();
  Value visible = isNumber;
  if (causal) // of tokens, `none` is after every query
    visible = blocks.isTokens() ? e.le(end, last) : e.both(isNumber, e.le(end, last));
  int64_t window = config.mask.getWindow();
  if (!window)
    return visible;
  Value existingEnd = blocks.isTokens() ? end : e.min(end, splatLike(e, number, e.sub(config.tokens, e.i32(1))));
  Value inWindow = e.lt(e.sub(getWindowEnd(e, first), constant(window)), existingEnd);
  if (!causal)
    inWindow = e.both(inWindow, e.lt(begin, e.add(last, constant(window))));
  if (config.mask.getSink())
    inWindow = e.either(inWindow, e.lt(begin, constant(config.mask.getSink())));
  return e.both(visible, inWindow);
}
