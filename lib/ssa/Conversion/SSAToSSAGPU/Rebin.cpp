//===- Rebin.cpp - rebin --------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A score of the result joins a window of `alpha + beta - 1` neighbouring scores (`alpha` and `beta` as in the paper:
// the steps of `from` in a block of `to` and in one of `from`) of every row of its query block. Neighbouring threads
// read neighbouring scores: a small window is one thread's, a wide one is shared by some lanes; rows are shared too.
// What they have is joined in shared memory, always in the same order.
//
//===----------------------------------------------------------------------===//

#include "Block.h"
#include "KeySlots.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <limits>

using namespace mlir;
using namespace mlir::ssa;

namespace {

class RebinKernel : public BlockKernel {
public:
  RebinKernel(HostFunction &host, RebinOp op, ValueRange arguments);

  void build(HostFunction &host, Value output);

private:
  void buildItem(Value item);
  void buildBlocks(Value b, Value g, Value m, Value first);
  int64_t blocksAtOnce() const { return threads / (lanes * rowSplits); }
  int64_t blocksPerItem() const { return blocksAtOnce() * blocksPerThread; }
  SmallVector<Value> joinWindow(Value b, Value g, Value firstRow, Value endRow, Value block, Value part);
  SmallVector<Value> joinScore(ValueRange joined, Value score, Value place);
  SmallVector<Value> combine(ValueRange x, ValueRange y);
  Value weight(Value place);

  static constexpr int64_t threads = 256;
  RebinOp op;
  bool isMax;
  int64_t alpha, beta, window;
  int64_t lanes = 1, rowSplits = 1; // threads of one score: both powers of two
  int64_t blocksPerThread = 1;
  SmallVector<Value> scratch;
};

} // namespace

RebinKernel::RebinKernel(HostFunction &host, RebinOp op, ValueRange arguments)
    : BlockKernel(host.builder, op, "ssa_rebin", threads, arguments), op(op), isMax(op.getKind() == Reduction::max),
      alpha(op.getTo().getSize() / op.getFrom().getStride()), beta(op.getFrom().getSize() / op.getFrom().getStride()),
      window(alpha + beta - 1) {
  constexpr int64_t maxRowSplits = 8, smallWindow = 8;
  while (window > smallWindow && lanes < warpSize && 2 * lanes <= alpha)
    lanes *= 2;
  while (rowSplits < maxRowSplits && 2 * rowSplits <= int64_t(op.getQueryBlock()))
    rowSplits *= 2;
  if (lanes * rowSplits == 1)
    blocksPerThread = 4; // finding out which row an item is of costs more than a score
}

/// How often the score at `place` of the window counts in a sum.
Value RebinKernel::weight(Value place) {
  Value least = min(add(place, index(1)), sub(index(window), place));
  least = min(least, index(std::min(alpha, beta)));
  return arith::UIToFPOp::create(builder, loc, builder.getF32Type(), toI32(least));
}

/// What is carried: the sum or maximum; for a sum also whether there is a term.
SmallVector<Value> RebinKernel::joinScore(ValueRange joined, Value score, Value place) {
  if (isMax)
    return {arith::MaximumFOp::create(builder, loc, joined[0], score)};
  Value none = f32(-std::numeric_limits<double>::infinity());
  Value counts = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNE, score, none);
  Value term = std::min(alpha, beta) == 1 ? score : fmul(score, weight(place));
  Value sum = select(counts, fadd(joined[0], term), joined[0]);
  return {sum, select(counts, i32(1), joined[1])};
}

SmallVector<Value> RebinKernel::combine(ValueRange x, ValueRange y) {
  if (isMax)
    return {arith::MaximumFOp::create(builder, loc, x[0], y[0])};
  return {fadd(x[0], y[0]), either(x[1], y[1])};
}

/// The part of a thread: places `part`, `part` + `lanes`, .. of the window, in rows `firstRow`, `firstRow` +
/// `rowSplits`, ..
SmallVector<Value> RebinKernel::joinWindow(Value b, Value g, Value firstRow, Value endRow, Value block, Value part) {
  Value scores = getArgument(0), columns = dim(scores, 3);
  Value begin = sub(mul(block, index(alpha)), index(beta - 1)); // may be negative
  SmallVector<Value> none = {f32(isMax ? -std::numeric_limits<double>::infinity() : 0)};
  if (!isMax)
    none.push_back(i32(0));
  if (lanes == 1) // a small window: all of it at once; what is out of range counts as -inf
    return loop(firstRow, endRow, index(rowSplits), none, [&](Value m, ValueRange carried) {
      SmallVector<Value> scoresOfWindow, joined(carried);
      Value last = sub(columns, index(1)), least = f32(-std::numeric_limits<double>::infinity());
      for (int64_t place = 0; place < window; ++place) {
        Value at = add(begin, index(place)), inside = min(max(at, index(0)), last);
        scoresOfWindow.push_back(select(eq(at, inside), load(scores, {b, g, m, inside}), least));
      }
      for (int64_t place = 0; place < window; ++place)
        joined = joinScore(joined, scoresOfWindow[place], index(place));
      return joined;
    });
  Value from = add(part, mul(ceilDiv(max(sub(sub(index(0), begin), part), index(0)), index(lanes)), index(lanes)));
  Value to = min(index(window), sub(columns, begin));
  return loop(firstRow, endRow, index(rowSplits), none, [&](Value m, ValueRange carried) {
    return loop(from, to, index(lanes), carried, [&](Value place, ValueRange joined) {
      return joinScore(joined, load(scores, {b, g, m, add(begin, place)}), place);
    });
  });
}

/// An item is a stretch of the blocks of one row of the result.
void RebinKernel::buildItem(Value item) {
  Value output = getArgument(1), columns = dim(output, 3), rows = dim(output, 2), tiles = ceilDiv(columns, index(blocksPerItem()));
  int64_t heads = op.getType().getDimSize(1);
  Value first = mul(split(item, tiles), index(blocksPerItem())), m = split(item, rows), g = split(item, index(heads)), b = item;
  for (int64_t i = 0; i < blocksPerThread; ++i)
    buildBlocks(b, g, m, add(first, index(i * blocksAtOnce())));
}

/// Blocks `first` .. of a row, one for `lanes * rowSplits` threads.
void RebinKernel::buildBlocks(Value b, Value g, Value m, Value first) {
  Value input = getArgument(0), output = getArgument(1), rowsIn = dim(input, 2);
  // Thread (row split, block, lane), so that the threads of a warp read one stretch of a row.
  Value part = rem(threadId(), index(lanes)), share = div(threadId(), index(lanes));
  Value slot = rem(share, index(blocksAtOnce())), split = div(share, index(blocksAtOnce()));
  Value block = add(first, slot), exists = lt(block, dim(output, 3));
  Value firstRow = mul(m, index(op.getQueryBlock())), endRow = min(add(firstRow, index(op.getQueryBlock())), rowsIn);
  endRow = select(both(exists, lt(index(0), dim(input, 3))), endRow, index(0));
  SmallVector<Value> joined = joinWindow(b, g, add(firstRow, split), endRow, block, part);
  auto join2 = [&](ValueRange x, ValueRange y) { return combine(x, y); };
  joined = join(joined, toI32(part), lanes, 1, scratch, join2);
  joined = join(joined, toI32(split), rowSplits, threads / rowSplits, scratch, join2);
  ifThen(both(exists, both(eq(part, index(0)), eq(split, index(0)))), [&] {
    Value none = f32(-std::numeric_limits<double>::infinity());
    Value score = isMax ? joined[0] : select(eq(joined[1], i32(0)), none, joined[0]);
    store(score, output, {b, g, m, block});
  });
}

void RebinKernel::build(HostFunction &host, Value output) {
  Emitter e(host.builder, op.getLoc());
  Value tiles = e.ceilDiv(e.dim(output, 3), e.index(blocksPerItem()));
  Value rows = e.mul(e.mul(e.dim(output, 0), e.dim(output, 1)), e.dim(output, 2));
  if (lanes * rowSplits > 1) {
    SmallVector<Type> types = {builder.getF32Type()};
    if (!isMax)
      types.push_back(builder.getI32Type());
    scratch = addScratch(types);
  }
  setBlocksPerSM(3); // reading takes no more, and without a word the assembler spills for it
  forEachItem(e.mul(rows, tiles), [&](Value item) { buildItem(item); });
  finish();
}

void ssa::requireRebinSizes(HostFunction &host, RebinOp op) {
  Value input = host.getBuffer(op.getInput()), tokens = host.getBuffer(op.getTokens());
  host.requireSameDim(op, {"tokens", tokens}, {"input", input}, 0);
  Emitter e(host.builder, op.getLoc());
  host.require(op, e.le(e.dim(input, 3), getNumBlocks(e, op.getFrom(), e.dim(tokens, 2))),
               "expected dimension 3 of 'input' to be at most the number of blocks of 'from'");
}

void ssa::buildRebin(HostFunction &host, RebinOp op, Value input, Value output) {
  RebinKernel(host, op, {input, output}).build(host, output);
}

LogicalResult ssa::convertRebin(HostFunction &host, RebinOp op) {
  FailureOr<Value> output = host.allocateResult(op, 0);
  if (failed(output))
    return failure();
  requireRebinSizes(host, op);
  buildRebin(host, op, host.getBuffer(op.getInput()), *output);
  return success();
}
