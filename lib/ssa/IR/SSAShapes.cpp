//===- SSAShapes.cpp - Result sizes as expressions of operand sizes -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "ssa/IR/SSA.h"

using namespace mlir;
using namespace mlir::ssa;

namespace {

/// Builds the sizes of one result: static sizes from its type, the others from operands.
class Reifier {
public:
  Reifier(OpBuilder &builder, Location loc, Value result)
      : builder(builder), loc(loc), type(cast<ShapedType>(result.getType())) {}

  /// Size `i` of a tensor or selection.
  OpFoldResult dim(Value v, unsigned i) {
    auto shaped = cast<ShapedType>(v.getType());
    if (!shaped.isDynamicDim(i))
      return builder.getIndexAttr(shaped.getDimSize(i));
    if (isa<SelectionType>(shaped)) {
      // A selection is an i32 tensor in memory, and that has a `tensor.dim`.
      if (auto from = v.getDefiningOp<FromIndicesOp>())
        v = from.getIndices();
      else
        v = ToIndicesOp::create(builder, loc, cast<SelectionType>(shaped).getIndicesType(), v);
    }
    return tensor::DimOp::create(builder, loc, v, i).getResult();
  }

  OpFoldResult ceilDiv(OpFoldResult a, int64_t b) {
    if (b == 1)
      return a;
    return arith::CeilDivSIOp::create(builder, loc, value(a), constant(b)).getResult();
  }

  OpFoldResult numBlocks(BlocksAttr blocks, OpFoldResult tokens) {
    Value n = value(tokens);
    if (blocks.getStride() == blocks.getSize()) {
      Value shifted =
          blocks.getOffset() ? arith::SubIOp::create(builder, loc, n, constant(blocks.getOffset())).getResult() : n;
      OpFoldResult count = ceilDiv(shifted, blocks.getSize());
      if (blocks.getOffset() == 0)
        return count;
      Value none = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, n, constant(0));
      return arith::SelectOp::create(builder, loc, none, constant(0), value(count)).getResult();
    }
    Value room = arith::SubIOp::create(builder, loc, n, constant(blocks.getOffset() + blocks.getSize()));
    Value whole = arith::FloorDivSIOp::create(builder, loc, room, constant(blocks.getStride()));
    Value count = arith::AddIOp::create(builder, loc, whole, constant(1));
    return arith::MaxSIOp::create(builder, loc, count, constant(0)).getResult();
  }

  /// Adds a result whose dynamic sizes are made by `make(i)`.
  LogicalResult finish(ReifiedRankedShapedTypeDims &shapes, llvm::function_ref<OpFoldResult(unsigned)> make) {
    SmallVector<OpFoldResult> sizes;
    for (unsigned i = 0; i < type.getRank(); ++i)
      sizes.push_back(type.isDynamicDim(i) ? make(i) : OpFoldResult(builder.getIndexAttr(type.getDimSize(i))));
    shapes.push_back(std::move(sizes));
    return success();
  }

private:
  Value constant(int64_t c) { return arith::ConstantIndexOp::create(builder, loc, c); }
  Value value(OpFoldResult r) { return getValueOrCreateConstantIndexOp(builder, loc, r); }

  OpBuilder &builder;
  Location loc;
  ShapedType type;
};

} // namespace

/// A result all of whose dynamic sizes are those of `source`.
static LogicalResult reifyLike(OpBuilder &builder, Value result, Value source, ReifiedRankedShapedTypeDims &shapes) {
  Reifier r(builder, result.getLoc(), result);
  return r.finish(shapes, [&](unsigned i) { return r.dim(source, i); });
}

LogicalResult ProjectOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  return reifyLike(builder, getOutput(), getInput(), shapes);
}

LogicalResult PoolOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  Reifier r(builder, getLoc(), getOutput());
  return r.finish(shapes, [&](unsigned i) {
    OpFoldResult size = r.dim(getInput(), i);
    return i == 2 ? r.numBlocks(getBlocks(), size) : size;
  });
}

LogicalResult RouteOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  Reifier r(builder, getLoc(), getScores());
  return r.finish(shapes, [&](unsigned i) -> OpFoldResult {
    if (i < 3)
      return r.dim(getQuery(), i);
    if (!getWithin())
      return r.dim(getKey(), 2);
    SelectionType within = getWithin().getType();
    return builder.getIndexAttr(within.getWidth() * (within.getKeyBlock() / getBlocksOrTokens().getSize()));
  });
}

LogicalResult RebinOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  Reifier r(builder, getLoc(), getOutput());
  return r.finish(shapes, [&](unsigned i) {
    if (i == 3)
      return r.numBlocks(getTo(), r.dim(getTokens(), 2));
    OpFoldResult size = r.dim(getInput(), i);
    return i == 2 ? r.ceilDiv(size, getQueryBlock()) : size;
  });
}

LogicalResult TopKOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  return reifyLike(builder, getSelection(), getScores(), shapes);
}

LogicalResult SortOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  return reifyLike(builder, getOutput(), getInput(), shapes);
}

LogicalResult UnionOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  return reifyLike(builder, getOutput(), getLhs(), shapes);
}

LogicalResult FromIndicesOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  return reifyLike(builder, getSelection(), getIndices(), shapes);
}

LogicalResult ToIndicesOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  // The sizes of a selection are found through its producer, else they are those of this very tensor.
  auto producer = getSelection().getDefiningOp<ReifyRankedShapedTypeOpInterface>();
  if (!producer)
    return failure();
  auto shape = producer.reifyShapeOfResult(builder, cast<OpResult>(getSelection()).getResultNumber());
  if (failed(shape))
    return failure();
  shapes.push_back(std::move(*shape));
  return success();
}

LogicalResult GatherOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  Reifier r(builder, getLoc(), getOutput());
  return r.finish(shapes, [&](unsigned i) { return i == 2 ? r.dim(getSelection(), 2) : r.dim(getInput(), i); });
}

LogicalResult SparseAttendOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  return failure(failed(reifyLike(builder, getOutput(), getQuery(), shapes)) ||
                 failed(reifyLike(builder, getLse(), getQuery(), shapes)));
}

LogicalResult MergeOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  Value first = getParts().front();
  return failure(failed(reifyLike(builder, getOutput(), first, shapes)) ||
                 failed(reifyLike(builder, getLse(), first, shapes)));
}

LogicalResult MixOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  return reifyLike(builder, getOutput(), getParts().front(), shapes);
}
