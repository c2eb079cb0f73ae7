//===- Route.cpp - route, rebin -------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "SSA.h"
#include <cmath>

using namespace mlir;
using namespace mlir::ssa;
using namespace mlir::ssa::reference;

namespace {

/// A column of scores that a row sees, and the block it stands for.
struct Column {
  int64_t slot, block;
};

class Router {
public:
  Router(Evaluation &evaluation, RouteOp op)
      : evaluation(evaluation), op(op), query{"query", evaluation[op.getQuery()]}, key{"key", evaluation[op.getKey()]},
        blocks(op.getBlocksOrTokens()), queryBlock(op.getQueryBlock()), selectionHeads(op.getType().getDimSize(1)),
        group(query.dim(1) / selectionHeads), scale(getScale(op.getScale(), query.dim(3))), visible(op.getVisible()),
        normalize(op.getNormalize()), reduce(op.getReduce()) {
    keyMax = optional(op.getKeyMax());
    weights = optional(op.getWeights());
    scales = optional(op.getScales());
    within = optional(op.getWithin());
    if (within)
      withinType = op.getWithin().getType();
    geometry.mask = op.getMask().value_or(nullptr);
    geometry.queries = op.getQueries() ? evaluation[op.getQueries()].getDim(2) : query.dim(2);
    geometry.tokens = op.getTokens()     ? evaluation[op.getTokens()].getDim(2)
                      : blocks.isTokens() ? key.dim(2)
                                          : blocks.getEnd(key.dim(2) - 1); // no mask and no region: all rows exist
  }

  LogicalResult run();

private:
  const Tensor *optional(Value v) { return v ? &evaluation[v] : nullptr; }
  LogicalResult check();

  /// The position at which a row stands: that of the last query of its block.
  int64_t position(int64_t m) const { return geometry.position(std::min((m + 1) * queryBlock, geometry.queries) - 1); }

  SmallVector<Column> visibleColumns(int64_t b, int64_t g, int64_t m) const;
  LogicalResult scoreHead(int64_t b, int64_t h, int64_t m, ArrayRef<Column> columns, MutableArrayRef<double> x) const;
  LogicalResult scoreRow(int64_t b, int64_t g, int64_t m, MutableArrayRef<float> out) const;

  Evaluation &evaluation;
  RouteOp op;
  NamedTensor query, key;
  const Tensor *keyMax, *weights, *scales, *within;
  BlocksAttr blocks;
  int64_t queryBlock, selectionHeads, group;
  SelectionType withinType; // null without `within`
  double scale;
  Visibility visible;
  Normalization normalize;
  Reduction reduce;
  Geometry geometry;
  ScoreRegion region;
};

} // namespace

LogicalResult Router::check() {
  SizeCheck sizes(op);
  sizes.same(key, 0, query, 0);
  if (keyMax)
    sizes.same({"key_max", *keyMax}, 0, key, 0).same({"key_max", *keyMax}, 2, key, 2);
  if (weights)
    sizes.same({"weights", *weights}, 0, query, 0).same({"weights", *weights}, 2, query, 2);
  if (scales)
    sizes.same({"scales", *scales}, 0, key, 0).same({"scales", *scales}, 2, key, 2);
  if (op.getQueries()) {
    NamedTensor queries{"queries", evaluation[op.getQueries()]};
    sizes.same(queries, 0, query, 0).is(query, 2, ceilDiv(queries.dim(2), queryBlock), "the query blocks of 'queries'");
  }
  if (op.getTokens()) {
    NamedTensor tokens{"tokens", evaluation[op.getTokens()]};
    sizes.same(tokens, 0, query, 0).atMost(key, 2, blocks.getNumBlocks(tokens.dim(2)), "the number of blocks of 'tokens'");
  }
  if (within) {
    NamedTensor lists{"within", *within};
    int64_t rowsPerList = withinType.getQueryBlock() / queryBlock;
    sizes.same(lists, 0, query, 0).lists(lists, ceilDiv(query.dim(2), rowsPerList), "the lists for the rows of 'query'");
  }
  return sizes;
}

/// The columns of a row that exist and that its query sees, in order.
SmallVector<Column> Router::visibleColumns(int64_t b, int64_t g, int64_t m) const {
  SmallVector<Column> columns;
  auto add = [&](int64_t slot, int64_t block) {
    if (block < key.dim(2) && geometry.isVisible(blocks, block, geometry.position(m * queryBlock), position(m), visible))
      columns.push_back({slot, block});
  };
  if (!within) {
    for (int64_t j = 0; j < key.dim(2); ++j)
      add(j, j);
    return columns;
  }
  int64_t perEntry = withinType.getKeyBlock() / blocks.getSize();
  int64_t listRow = within->getDim(2) == 1 ? 0 : m / (withinType.getQueryBlock() / queryBlock);
  for (auto [i, number] : llvm::enumerate(list(*within, b, g, listRow)))
    for (int64_t r = 0; number >= 0 && r < perEntry; ++r)
      add(int64_t(i) * perEntry + r, int64_t(number) * perEntry + r);
  return columns;
}

/// The scores of one head, softmax included.
LogicalResult Router::scoreHead(int64_t b, int64_t h, int64_t m, ArrayRef<Column> columns, MutableArrayRef<double> x) const {
  int64_t keyHead = h / (query.dim(1) / key.dim(1));
  ArrayRef<float> narrow = row(query.tensor, b, h, m);
  SmallVector<double> q(narrow.begin(), narrow.end());
  SmallVector<int64_t> numbers;
  for (auto [i, column] : llvm::enumerate(columns)) {
    int64_t j = column.block;
    ArrayRef<float> k = row(key.tensor, b, keyHead, j);
    x[i] = scale * (keyMax ? dotBound(q, k, row(*keyMax, b, keyHead, j)) : dot(q, k));
    if (scales)
      x[i] *= entry(*scales, b, keyHead, j);
    numbers.push_back(j);
  }
  double weight = weights ? entry(*weights, b, h, m) : 1;
  if (region.exists()) {
    if (failed(region.apply({weight, b, h, position(m)}, numbers, x)))
      return failure();
  } else if (weights) {
    for (double &value : x)
      value *= weight;
  }
  if (normalize == Normalization::none)
    return success();
  double max = -infinity, sum = 0;
  for (double value : x)
    max = maxWithNaN(max, value);
  for (double &value : x) {
    // A score of -inf has no share, also when all scores are; NaN and +inf make the row NaN.
    value = value == -infinity ? 0 : std::exp(value - max);
    sum += value;
  }
  for (double &value : x)
    value = sum == 0 ? 0 : value / sum;
  return success();
}

/// The scores of one row: its heads joined, invisible columns `-inf`.
LogicalResult Router::scoreRow(int64_t b, int64_t g, int64_t m, MutableArrayRef<float> out) const {
  std::fill(out.begin(), out.end(), float(-infinity));
  SmallVector<Column> columns = visibleColumns(b, g, m);
  SmallVector<double> joined, x(columns.size());
  for (int64_t h = g * group; h < (g + 1) * group; ++h) {
    if (failed(scoreHead(b, h, m, columns, x)))
      return failure();
    if (joined.empty()) {
      joined = x;
      continue;
    }
    for (auto [total, value] : llvm::zip_equal(joined, x))
      total = reduce == Reduction::max ? maxWithNaN(total, value) : total + value;
  }
  for (auto [column, value] : llvm::zip_equal(columns, joined))
    out[column.slot] = float(value);
  return success();
}

LogicalResult Router::run() {
  if (failed(check()))
    return failure();
  FailureOr<ScoreRegion> compiled = ScoreRegion::compile(evaluation, op.getScore());
  if (failed(compiled))
    return failure();
  region = std::move(*compiled);
  int64_t rows = query.dim(2), columns = key.dim(2);
  if (within)
    columns = within->getDim(3) * (withinType.getKeyBlock() / blocks.getSize());
  FailureOr<Tensor> scores = evaluation.allocate(op, 0, {query.dim(0), selectionHeads, rows, columns});
  if (failed(scores))
    return failure();
  MutableArrayRef<float> out = scores->getMutable<float>();
  LogicalResult result = evaluation.parallelFor(op, query.dim(0) * selectionHeads * rows, [&](int64_t i) {
    return scoreRow(i / (selectionHeads * rows), i / rows % selectionHeads, i % rows, out.slice(i * columns, columns));
  });
  evaluation.set(op.getScores(), std::move(*scores));
  return result;
}

LogicalResult reference::evaluateRoute(Evaluation &evaluation, RouteOp op) { return Router(evaluation, op).run(); }

//===----------------------------------------------------------------------===//
// rebin
//===----------------------------------------------------------------------===//

LogicalResult reference::evaluateRebin(Evaluation &evaluation, RebinOp op) {
  NamedTensor input{"input", evaluation[op.getInput()]}, tokens{"tokens", evaluation[op.getTokens()]};
  BlocksAttr from = op.getFrom(), to = op.getTo();
  SizeCheck sizes(op);
  sizes.same(tokens, 0, input, 0).atMost(input, 3, from.getNumBlocks(tokens.dim(2)), "the number of blocks of 'from'");
  if (failed(LogicalResult(sizes)))
    return failure();
  int64_t queryBlock = op.getQueryBlock(), rowsIn = input.dim(2), columnsIn = input.dim(3), heads = input.dim(1);
  int64_t rows = ceilDiv(rowsIn, queryBlock), columns = to.getNumBlocks(tokens.dim(2));
  FailureOr<Tensor> output = evaluation.allocate(op, 0, {input.dim(0), heads, rows, columns});
  if (failed(output))
    return failure();
  // The paper's alpha and beta: steps of `from` in a block of `to` and of `from`.
  int64_t alpha = to.getSize() / from.getStride(), beta = from.getSize() / from.getStride();
  bool isMax = op.getKind() == Reduction::max;
  MutableArrayRef<float> out = output->getMutable<float>();
  LogicalResult result = evaluation.parallelFor(op, input.dim(0) * heads * rows, [&](int64_t i) {
    int64_t b = i / (heads * rows), g = i / rows % heads, first = i % rows * queryBlock;
    for (int64_t block = 0; block < columns; ++block) {
      std::optional<double> joined;
      for (int64_t m = first, end = std::min(first + queryBlock, rowsIn); m < end; ++m) {
        ArrayRef<float> s = row(input.tensor, b, g, m);
        for (int64_t x = 0; x < alpha; ++x)
          for (int64_t y = 0; y < beta; ++y) {
            int64_t j = alpha * block + alpha - 1 - x - y;
            if (j < 0 || j >= columnsIn || s[j] == float(-infinity))
              continue;
            joined = !joined ? s[j] : isMax ? maxWithNaN(*joined, s[j]) : *joined + double(s[j]);
          }
      }
      out[i * columns + block] = float(joined.value_or(-infinity));
    }
    return success();
  });
  evaluation.set(op.getOutput(), std::move(*output));
  return result;
}
