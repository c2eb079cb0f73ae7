//===- RouteRows.cpp - route on CUDA cores --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For what tensor cores do not take as it is: f32, mixed types, rows of odd length or alignment. A thread computes a score by itself.
//
//===----------------------------------------------------------------------===//

#include "Block.h"
#include "Route.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <limits>

using namespace mlir;
using namespace mlir::ssa;

namespace {

class RouteRowKernel : public BlockKernel {
public:
  static constexpr int64_t threads = 256, columns = 32, rows = threads / columns;

  RouteRowKernel(RouteContext &context, StringRef name)
      : BlockKernel(context.host.builder, context.op, name, threads, context.arguments), context(context) {
    setBlocksPerSM(2); // else `ptxas` spills for sm_100, to have room for more
  }

  /// The score of a head at a row and block, before any softmax; all `index`.
  Value getScore(Value batch, Value head, Value row, Value j, Value position);
  void buildSoftmaxRow(Value batch, Value head, Value row);
  void buildScore(Value batch, Value cell, Value row, Value column);

  Value get(RouteArgument a) { return context.get(*this, a); }
  Value getBlock(Value batch, Value cell, Value row, Value column);

private:
  Value getProduct(Value batch, Value head, Value row, Value j);
  Value getExponent(Value score) { return fmul(score, f32(log2OfE)); }

  RouteContext &context;
};

} // namespace

Value RouteRowKernel::getBlock(Value batch, Value cell, Value row, Value column) {
  Value list = context.rowsPerList ? div(row, index(context.rowsPerList)) : index(0);
  return context.getBlock(*this, batch, cell, context.getListRow(*this, list), column);
}

Value RouteRowKernel::getProduct(Value batch, Value head, Value row, Value j) {
  Value query = get(RouteArgument::query), key = get(RouteArgument::key);
  Value keyHead = div(head, index(context.heads / context.keyHeads));
  return loop(index(0), index(context.dim), index(1), f32(0), [&](Value d, ValueRange sum) -> SmallVector<Value> {
    Value q = extend(load(query, {batch, head, row, d}));
    Value product = fmul(q, extend(load(key, {batch, keyHead, j, d})));
    if (context.has(RouteArgument::keyMax)) {
      Value other = fmul(q, extend(load(get(RouteArgument::keyMax), {batch, keyHead, j, d})));
      product = arith::MaximumFOp::create(builder, loc, product, other);
    }
    return {fadd(sum[0], product)};
  })[0];
}

Value RouteRowKernel::getScore(Value batch, Value head, Value row, Value j, Value position) {
  ScoreShape shape(*this);
  auto scaleOf = [&] { return load(get(RouteArgument::scales), {batch, div(head, index(context.heads / context.keyHeads)), j}); };
  auto weightOf = [&] { return load(get(RouteArgument::weights), {batch, head, row}); };
  auto batchOf = [&] { return context.getBatchNumber(*this, batch); };
  auto headOf = [&] { return toI32(head); };
  auto positionOf = [&] { return position; };
  auto blockOf = [&] { return toI32(j); };
  RouteContext::Terms terms{scaleOf, weightOf, batchOf, headOf, positionOf, blockOf};
  return context.getScore(shape, getProduct(batch, head, row, j), context.getCaptured(*this), terms);
}

/// Maximum and sum of a row of one head, by the lanes of a warp.
void RouteRowKernel::buildSoftmaxRow(Value batch, Value head, Value row) {
  Value none = f32(-std::numeric_limits<double>::infinity());
  Value cell = div(head, index(context.group));
  VisibleBlocks visible(*this, context, row);
  Value numColumns = dim(get(RouteArgument::scores), 3);
  SmallVector<Value> state =
      loop(toIndex(lane()), numColumns, index(warpSize), {none, f32(0)}, [&](Value column, ValueRange carried) -> SmallVector<Value> {
        Value j = getBlock(batch, cell, row, column);
        SmallVector<Value> kept = llvm::to_vector(carried);
        return ifElse(
            visible.contains(*this, j), carried.getTypes(),
            [&] { return joinSums(*this, kept, {getExponent(getScore(batch, head, row, toIndex(j), visible.position)), f32(1)}); },
            [&] { return kept; });
      });
  for (int64_t distance = 1; distance < warpSize; distance *= 2) {
    SmallVector<Value> other;
    for (Value v : state)
      other.push_back(gpu::ShuffleOp::create(builder, loc, v, distance, warpSize, gpu::ShuffleMode::XOR).getShuffleResult());
    state = joinSums(*this, state, other);
  }
  ifThen(eq(lane(), i32(0)), [&] {
    store(getLse(*this, state[0], state[1]), get(RouteArgument::lse), {batch, head, row});
  });
}

void RouteRowKernel::buildScore(Value batch, Value cell, Value row, Value column) {
  Value none = f32(-std::numeric_limits<double>::infinity());
  Value j = getBlock(batch, cell, row, column);
  VisibleBlocks visible(*this, context, row);
  Value first = mul(cell, index(context.group));
  Value score = ifElse(
      visible.contains(*this, j), builder.getF32Type(),
      [&] {
        Value initial = context.isMax() ? none : f32(0);
        Value end = add(first, index(context.group));
        return loop(first, end, index(1), initial, [&](Value head, ValueRange joined) -> SmallVector<Value> {
          Value x = getScore(batch, head, row, toIndex(j), visible.position);
          if (context.isSoftmax())
            x = exp2(*this, fsub(getExponent(x), context.loadReference(*this, {batch, head, row})));
          if (context.isMax())
            return {arith::MaximumFOp::create(builder, loc, joined[0], x)};
          return {fadd(joined[0], x)};
        });
      },
      [&] { return SmallVector<Value>{none}; })[0];
  store(score, get(RouteArgument::scores), {batch, cell, row, column});
}

static void buildSoftmaxRows(RouteContext &context) {
  RouteRowKernel k(context, "ssa_route_softmax");
  Emitter e(context.host.builder, context.op.getLoc());
  Value query = context.getHost(RouteArgument::query);
  Value total = e.mul(e.mul(e.dim(query, 0), e.index(context.heads)), e.dim(query, 2));
  k.forEachItem(e.ceilDiv(total, e.index(k.getNumWarps())), [&](Value item) {
    Value rows = k.dim(k.get(RouteArgument::query), 2), batches = k.dim(k.get(RouteArgument::query), 0);
    Value number = k.add(k.mul(item, k.index(k.getNumWarps())), k.toIndex(k.warp()));
    k.ifThen(k.lt(number, k.mul(k.mul(batches, k.index(context.heads)), rows)), [&] {
      Value row = k.split(number, rows), head = k.split(number, k.index(context.heads));
      k.buildSoftmaxRow(number, head, row);
    });
  });
  k.finish();
}

static void buildScores(RouteContext &context) {
  RouteRowKernel k(context, "ssa_route");
  constexpr int64_t tileRows = RouteRowKernel::rows, tileColumns = RouteRowKernel::columns;
  Emitter e(context.host.builder, context.op.getLoc());
  Value scores = context.getHost(RouteArgument::scores);
  Value tiles = e.mul(e.ceilDiv(e.dim(scores, 2), e.index(tileRows)), e.ceilDiv(e.dim(scores, 3), e.index(tileColumns)));
  k.forEachItem(e.mul(e.mul(e.dim(scores, 0), e.index(context.cells)), tiles), [&](Value item) {
    Value rows = k.dim(k.get(RouteArgument::scores), 2), columns = k.dim(k.get(RouteArgument::scores), 3);
    Value columnTile = k.split(item, k.ceilDiv(columns, k.index(tileColumns))), rowTile = k.split(item, k.ceilDiv(rows, k.index(tileRows)));
    Value cell = k.split(item, k.index(context.cells)), thread = k.toIndex(k.thread());
    Value row = k.add(k.mul(rowTile, k.index(tileRows)), k.div(thread, k.index(tileColumns)));
    Value column = k.add(k.mul(columnTile, k.index(tileColumns)), k.rem(thread, k.index(tileColumns)));
    k.ifThen(k.both(k.lt(row, rows), k.lt(column, columns)), [&] { k.buildScore(item, cell, row, column); });
  });
  k.finish();
}

void ssa::buildRouteRows(RouteContext &context) {
  if (context.makesSums())
    buildSoftmaxRows(context);
  buildScores(context);
}
