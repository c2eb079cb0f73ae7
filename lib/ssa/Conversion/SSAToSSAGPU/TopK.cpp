//===- TopK.cpp - topk ----------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Short rows with a narrow list are a warp's work, all others a block's. Where the length of rows is known at a call
// only, both kernels are made, and one is launched.
//
//===----------------------------------------------------------------------===//

#include "TopK.h"

using namespace mlir;
using namespace mlir::ssa;

/// Checks sizes that the op equates.
static void checkSizes(HostFunction &host, TopKOp op, const TopKOperands &operands, Value tokens, Value queries) {
  SelectionType type = op.getType();
  Emitter e(host.builder, op.getLoc());
  NamedBuffer scores{"scores", operands.scores};
  host.requireSameDim(op, {"tokens", tokens}, scores, 0);
  if (op.getQueries()) {
    host.requireSameDim(op, {"queries", queries}, scores, 0);
    host.require(op, e.eq(e.dim(operands.scores, 2), e.ceilDiv(e.dim(queries, 2), e.index(type.getQueryBlock()))),
                 "expected dimension 2 of 'scores' to be the query blocks of 'queries'");
  }
  if (!operands.within) {
    host.require(op, e.le(e.dim(operands.scores, 3), operands.columns),
                 "expected dimension 3 of 'scores' to be at most the number of blocks of 'tokens'");
    return;
  }
  SelectionType within = op.getWithin().getType();
  host.requireSameDim(op, {"within", operands.within}, scores, 0);
  host.require(op, e.eq(e.dim(operands.scores, 3), operands.columns),
               "expected dimension 3 of 'scores' to be the blocks of a list of 'within'");
  Value lists = e.dim(operands.within, 2);
  Value wanted = e.ceilDiv(e.dim(operands.scores, 2), e.index(within.getQueryBlock() / type.getQueryBlock()));
  Value servesAll = e.eq(lists, e.index(1));
  host.require(op, e.eq(e.select(servesAll, wanted, lists), wanted),
               "expected dimension 2 of 'within' to be the lists for the rows of 'scores'");
}

/// The columns of a row, where the types tell.
static std::optional<int64_t> getStaticColumns(TopKOp op) {
  int64_t size = op.getType().getKeyBlock();
  if (op.getWithin())
    return op.getWithin().getType().getWidth() * (op.getWithin().getType().getKeyBlock() / size);
  int64_t tokens = cast<ShapedType>(op.getTokens().getType()).getDimSize(2);
  return ShapedType::isDynamic(tokens) ? std::nullopt : std::optional<int64_t>(llvm::divideCeil(tokens, size));
}

LogicalResult ssa::convertTopK(HostFunction &host, TopKOp op) {
  SelectionType type = op.getType();
  FailureOr<Value> selection = host.allocateResult(op, 0);
  if (failed(selection))
    return failure();
  Emitter e(host.builder, op.getLoc());
  Value tokens = host.getBuffer(op.getTokens()), queries = op.getQueries() ? host.getBuffer(op.getQueries()) : Value();
  TopKOperands operands;
  operands.scores = host.getBuffer(op.getScores());
  operands.selection = *selection;
  operands.tokens = e.dim(tokens, 2);
  operands.queries = e.dim(queries ? queries : operands.scores, 2);
  if (op.getWithin())
    operands.within = host.getBuffer(op.getWithin());
  std::optional<int64_t> columns = getStaticColumns(op);
  operands.columns = columns ? e.index(*columns) : e.ceilDiv(operands.tokens, e.index(type.getKeyBlock()));
  operands.rows = e.mul(e.mul(e.dim(*selection, 0), e.dim(*selection, 1)), e.dim(*selection, 2));
  checkSizes(host, op, operands, tokens, queries);
  if (type.getWidth() == 0)
    return success(); // nothing to write

  if (op.getTopP() || type.getWidth() > maxWidthOfWarp) {
    buildBlockTopK(host, op, operands);
    return success();
  }
  if (columns) {
    *columns <= maxColumnsOfWarp ? buildWarpTopK(host, op, operands) : buildBlockTopK(host, op, operands);
    return success();
  }
  Value limit = e.index(maxColumnsOfWarp);
  e.ifThen(e.le(operands.columns, limit), [&] { buildWarpTopK(host, op, operands); });
  e.ifThen(e.lt(limit, operands.columns), [&] { buildBlockTopK(host, op, operands); });
  return success();
}
