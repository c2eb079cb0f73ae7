//===- TopK.cpp - topk ----------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Short rows with a narrow list are a warp's work, which keeps the shortest in registers; all others are a block's. Where the length of rows is known at
// a call only, kernels for all lengths are made, and one is launched.
//
//===----------------------------------------------------------------------===//

#include "TopK.h"

using namespace mlir;
using namespace mlir::ssa;

/// The columns of a row, where the types tell.
static std::optional<int64_t> getStaticColumns(TopKOp op) {
  int64_t size = op.getType().getKeyBlock();
  if (op.getWithin())
    return op.getWithin().getType().getWidth() * (op.getWithin().getType().getKeyBlock() / size);
  int64_t tokens = cast<ShapedType>(op.getTokens().getType()).getDimSize(2);
  return ShapedType::isDynamic(tokens) ? std::nullopt : std::optional<int64_t>(llvm::divideCeil(tokens, size));
}

/// The columns of a row, on the host: blocks that exist, or slots of `within`.
static Value getColumns(HostFunction &host, TopKOp op) {
  Emitter e(host.builder, op.getLoc());
  if (std::optional<int64_t> columns = getStaticColumns(op))
    return e.index(*columns);
  return e.ceilDiv(e.dim(host.getBuffer(op.getTokens()), 2), e.index(op.getType().getKeyBlock()));
}

void ssa::requireTopKSizes(HostFunction &host, TopKOp op) {
  SelectionType type = op.getType();
  Emitter e(host.builder, op.getLoc());
  Value columns = getColumns(host, op);
  NamedBuffer scores{"scores", host.getBuffer(op.getScores())};
  host.requireSameDim(op, {"tokens", host.getBuffer(op.getTokens())}, scores, 0);
  if (op.getQueries()) {
    Value queries = host.getBuffer(op.getQueries());
    host.requireSameDim(op, {"queries", queries}, scores, 0);
    host.require(op, e.eq(e.dim(scores.buffer, 2), e.ceilDiv(e.dim(queries, 2), e.index(type.getQueryBlock()))),
                 "expected dimension 2 of 'scores' to be the query blocks of 'queries'");
  }
  if (!op.getWithin()) {
    host.require(op, e.le(e.dim(scores.buffer, 3), columns),
                 "expected dimension 3 of 'scores' to be at most the number of blocks of 'tokens'");
    return;
  }
  Value within = host.getBuffer(op.getWithin());
  host.requireSameDim(op, {"within", within}, scores, 0);
  host.require(op, e.eq(e.dim(scores.buffer, 3), columns),
               "expected dimension 3 of 'scores' to be the blocks of a list of 'within'");
  Value lists = e.dim(within, 2);
  int64_t rowsPerList = op.getWithin().getType().getQueryBlock() / type.getQueryBlock();
  Value wanted = e.ceilDiv(e.dim(scores.buffer, 2), e.index(rowsPerList));
  Value servesAll = e.eq(lists, e.index(1));
  host.require(op, e.eq(e.select(servesAll, wanted, lists), wanted),
               "expected dimension 2 of 'within' to be the lists for the rows of 'scores'");
}

void ssa::buildTopK(HostFunction &host, TopKOp op, Value scores, Value selection, const RowPart &part) {
  SelectionType type = op.getType();
  if (type.getWidth() == 0)
    return; // nothing to write
  Emitter e(host.builder, op.getLoc());
  TopKOperands operands;
  operands.scores = scores;
  operands.selection = selection;
  operands.tokens = e.dim(host.getBuffer(op.getTokens()), 2);
  Value queries = e.dim(host.getBuffer(op.getQueries() ? op.getQueries() : op.getScores()), 2);
  operands.queries = part.getQueries(e, queries, type.getQueryBlock());
  if (op.getWithin())
    operands.within = part.getLists(host, host.getBuffer(op.getWithin()), op.getWithin().getType().getQueryBlock() / type.getQueryBlock());
  operands.columns = getColumns(host, op);
  operands.rows = e.mul(e.mul(e.dim(selection, 0), e.dim(selection, 1)), e.dim(selection, 2));

  std::optional<int64_t> columns = getStaticColumns(op);
  // Ways of selecting, those for shorter rows first.
  struct Way {
    int64_t maxColumns;
    std::function<void()> build;
  };
  SmallVector<Way> ways;
  if (!op.getTopP() && type.getWidth() <= maxWidthOfShort)
    ways.push_back({maxColumnsOfShort, [&] { buildShortTopK(host, op, operands); }});
  if (!op.getTopP() && type.getWidth() <= maxWidthOfWarp)
    ways.push_back({maxColumnsOfWarp, [&] { buildWarpTopK(host, op, operands, /*keepsRow=*/columns.value_or(0) <= maxKeptColumns); }});
  ways.push_back({std::numeric_limits<int64_t>::max(), [&] { buildBlockTopK(host, op, operands); }});
  if (columns)
    return llvm::find_if(ways, [&](const Way &way) { return *columns <= way.maxColumns; })->build();
  std::function<void(ArrayRef<Way>)> choose = [&](ArrayRef<Way> ways) {
    if (ways.size() == 1)
      return ways.front().build();
    e.ifThenElse(e.le(operands.columns, e.index(ways.front().maxColumns)), ways.front().build, [&] { choose(ways.drop_front()); });
  };
  choose(ways);
}

LogicalResult ssa::convertTopK(HostFunction &host, TopKOp op) {
  FailureOr<Value> selection = host.allocateResult(op, 0);
  if (failed(selection))
    return failure();
  requireTopKSizes(host, op);
  buildTopK(host, op, host.getBuffer(op.getScores()), *selection, RowPart());
  return success();
}
