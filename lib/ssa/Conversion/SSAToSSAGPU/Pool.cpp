//===- Pool.cpp - pool ----------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One pass over the rows. A thread owns `width` neighbouring channels of one key block and every `splits`-th of its
// rows; the threads that share a block join what they have through shared memory, always in the same order.
//
//===----------------------------------------------------------------------===//

#include "Block.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <limits>

using namespace mlir;
using namespace mlir::ssa;

namespace {

/// How the threads of a block share the work: thread `((block * splits) + split) * columns + column`.
struct PoolTiling {
  static constexpr int64_t threads = 256;

  PoolTiling(BlocksAttr blocks, int64_t dim, int64_t width) {
    constexpr int64_t maxColumns = 32, rowsPerThread = 8, maxSplits = 16;
    int64_t perRow = dim / width;
    chunks = llvm::divideCeil(perRow, maxColumns);
    columns = llvm::divideCeil(perRow, chunks);
    while (splits < maxSplits && splits * rowsPerThread < blocks.getSize() && 2 * splits * columns <= threads)
      splits *= 2;
    blocksPerTile = threads / (columns * splits);
  }

  int64_t chunks = 1;  // of the columns of a row
  int64_t columns = 1; // accesses side by side
  int64_t splits = 1;  // a power of two
  int64_t blocksPerTile = 1;
};

class PoolKernel : public BlockKernel {
public:
  PoolKernel(HostFunction &host, PoolOp op, ValueRange arguments, int64_t width)
      : BlockKernel(host.builder, op, "ssa_pool", PoolTiling::threads, arguments), op(op), kind(op.getKind()),
        tiling(op.getBlocks(), op.getInput().getType().getDimSize(3), width), width(width) {}

  void build(HostFunction &host, Value input, Value output);

private:
  void buildItem(Value item);
  Value initial();
  Value combine(Value a, Value b);
  Value loadRow(Value b, Value h, Value n, Value d);
  Value joinRows(Value b, Value h, Value d, Value begin, Value end, Value init);
  Value accumulate(Value b, Value h, Value d, Value begin, Value end);

  PoolOp op;
  PoolKind kind;
  PoolTiling tiling;
  int64_t width;
  SmallVector<Value> scratch;
};

} // namespace

/// What changes nothing.
Value PoolKernel::initial() {
  double infinity = std::numeric_limits<double>::infinity();
  double value = kind == PoolKind::mean ? 0 : kind == PoolKind::max ? -infinity : infinity;
  return broadcast(f32(value), width);
}

Value PoolKernel::combine(Value a, Value b) {
  switch (kind) {
  case PoolKind::mean:
    return fadd(a, b);
  case PoolKind::max:
    return arith::MaximumFOp::create(builder, loc, a, b);
  case PoolKind::min:
    return arith::MinimumFOp::create(builder, loc, a, b);
  }
  llvm_unreachable("a kind of pooling");
}

/// Row (b, h, n) from channel `d` on, times its scale.
Value PoolKernel::loadRow(Value b, Value h, Value n, Value d) {
  Value row = extend(loadVector(getArgument(0), {b, h, n, d}, width));
  return op.getScales() ? fmul(row, broadcast(load(getArgument(2), {b, h, n}), width)) : row;
}

/// Joins `init` and the rows `begin`, `begin` + `splits`, .. below `end`, several of which are on their way at a time.
Value PoolKernel::joinRows(Value b, Value h, Value d, Value begin, Value end, Value init) {
  constexpr int64_t unroll = 4;
  Value count = ceilDiv(max(sub(end, begin), index(0)), index(tiling.splits));
  Value whole = sub(count, rem(count, index(unroll)));
  auto joinFrom = [&](Value first, Value joined, int64_t numRows) {
    SmallVector<Value> rows;
    for (int64_t u = 0; u < numRows; ++u)
      rows.push_back(loadRow(b, h, add(begin, mul(add(first, index(u)), index(tiling.splits))), d));
    for (Value row : rows)
      joined = combine(joined, row);
    return SmallVector<Value>{joined};
  };
  Value joined = loop(index(0), whole, index(unroll), init,
                      [&](Value first, ValueRange carried) { return joinFrom(first, carried[0], unroll); })[0];
  return loop(whole, count, index(1), joined,
              [&](Value first, ValueRange carried) { return joinFrom(first, carried[0], 1); })[0];
}

/// Joins the rows of a thread. Long sums are made of shorter ones, so that the error does not grow with the number of
/// rows.
Value PoolKernel::accumulate(Value b, Value h, Value d, Value begin, Value end) {
  constexpr int64_t rowsOfSum = 64;
  int64_t stride = rowsOfSum * tiling.splits;
  if (op.getBlocks().getSize() <= 2 * stride)
    return joinRows(b, h, d, begin, end, initial());
  return loop(begin, end, index(stride), initial(), [&](Value from, ValueRange sum) {
    Value to = min(end, add(from, index(stride)));
    return SmallVector<Value>{combine(sum[0], joinRows(b, h, d, from, to, initial()))};
  })[0];
}

/// An item is a tile of blocks of one head, and a chunk of their columns.
void PoolKernel::buildItem(Value item) {
  BlocksAttr blocks = op.getBlocks();
  auto inputType = op.getInput().getType();
  Value numBlocks = dim(getArgument(1), 2), numTokens = dim(getArgument(0), 2);
  Value tiles = ceilDiv(numBlocks, index(tiling.blocksPerTile));
  Value chunk = split(item, index(tiling.chunks)), tile = split(item, tiles), h = split(item, index(inputType.getDimSize(1))), b = item;

  Value column = rem(threadId(), index(tiling.columns)), share = div(threadId(), index(tiling.columns));
  Value split = rem(share, index(tiling.splits)), slot = div(share, index(tiling.splits));
  Value j = add(mul(tile, index(tiling.blocksPerTile)), slot);
  Value access = add(mul(chunk, index(tiling.columns)), column), d = mul(access, index(width));
  Value isSharing = lt(slot, index(tiling.blocksPerTile));
  Value exists = both(both(isSharing, lt(j, numBlocks)), lt(access, index(inputType.getDimSize(3) / width)));

  Value first = add(mul(j, index(blocks.getStride())), index(blocks.getOffset()));
  Value begin = max(first, index(0)), end = min(add(first, index(blocks.getSize())), numTokens);
  Value sum = accumulate(b, h, d, add(begin, split), select(exists, end, index(0)));
  Value position = toI32(select(isSharing, split, index(tiling.splits)));
  sum = join(sum, position, tiling.splits, tiling.columns, scratch,
             [&](ValueRange x, ValueRange y) { return SmallVector<Value>{combine(x[0], y[0])}; })[0];
  ifThen(both(exists, eq(split, index(0))), [&] {
    if (kind == PoolKind::mean) {
      Value count = arith::UIToFPOp::create(builder, loc, builder.getF32Type(), toI32(sub(end, begin)));
      sum = fdiv(sum, broadcast(count, width));
    }
    storeVector(round(sum, op.getOutput().getType().getElementType()), getArgument(1), {b, h, j, d});
  });
}

void PoolKernel::build(HostFunction &host, Value input, Value output) {
  Emitter e(host.builder, op.getLoc());
  Value tiles = e.ceilDiv(e.dim(output, 2), e.index(tiling.blocksPerTile));
  Value heads = e.mul(e.dim(input, 0), e.dim(input, 1));
  if (tiling.splits > 1)
    scratch = addScratch(VectorType::get({width}, builder.getF32Type()));
  constexpr int64_t blocksPerSM = 4; // 64 registers a thread: less would not hold the rows that are on their way
  setBlocksPerSM(blocksPerSM);
  forEachItem(e.mul(e.mul(heads, tiles), e.index(tiling.chunks)), [&](Value item) { buildItem(item); });
  finish();
}

LogicalResult ssa::convertPool(HostFunction &host, PoolOp op) {
  Value input = host.getBuffer(op.getInput());
  FailureOr<Value> output = host.allocateResult(op, 0);
  if (failed(output))
    return failure();
  SmallVector<Value> arguments = {input, *output};
  if (op.getScales()) {
    Value scales = host.getBuffer(op.getScales());
    arguments.push_back(scales);
    for (unsigned i : {0, 2})
      host.requireSameDim(op, {"scales", scales}, {"input", input}, i);
  }
  int64_t width =
      host.getVectorWidth(op, op.getInput().getType().getDimSize(3), {{"input", input}, {"output", *output}});
  PoolKernel(host, op, arguments, width).build(host, input, *output);
  return success();
}
