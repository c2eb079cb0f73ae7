//===- Attend.cpp - sparse_attend, merge, mix -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "SSA.h"
#include <cmath>

using namespace mlir;
using namespace mlir::ssa;
using namespace mlir::ssa::reference;

namespace {

/// A selection with what its type says.
struct Lists {
  const Tensor *tensor;
  SelectionType type;
  /// The list of query `m` of head `h` out of `heads`.
  ArrayRef<int32_t> of(int64_t b, int64_t h, int64_t heads, int64_t m) const {
    return list(*tensor, b, h / (heads / tensor->getDim(1)), tensor->getDim(2) == 1 ? 0 : m / type.getQueryBlock());
  }
};

/// Keys of one query: `numbers` are tokens or rows of summaries, ascending and unique; `rows` is where they lie in `key` and
/// `value`.
struct KeySet {
  SmallVector<int64_t> numbers, rows;
  void add(int64_t number, int64_t row) {
    numbers.push_back(number);
    rows.push_back(row);
  }
};

class Attention {
public:
  Attention(Evaluation &evaluation, SparseAttendOp op)
      : evaluation(evaluation), op(op), query{"query", evaluation[op.getQuery()]}, key{"key", evaluation[op.getKey()]},
        value{"value", evaluation[op.getValue()]}, blocks(op.getBlocksOrTokens()), gathered(op.isGathered()),
        dim(query.dim(3)), valueDim(value.tensor.getShape().back()), scale(getScale(op.getScale(), dim)) {
    for (Value s : op.getSelections())
      selections.push_back({&evaluation[s], cast<SelectionType>(s.getType())});
    geometry.mask = op.getMask().value_or(nullptr);
    geometry.queries = query.dim(2);
    geometry.tokens = op.getTokens() ? evaluation[op.getTokens()].getDim(2) : key.dim(2);
    // Gathered rows hold whatever exists of the tokens; otherwise there may be fewer rows than blocks.
    numRows = gathered ? blocks.getNumBlocks(geometry.tokens) : key.dim(2);
  }

  LogicalResult run();

private:
  LogicalResult check();

  bool isVisible(int64_t number, int64_t position) const {
    return geometry.isVisible(blocks, number, position, position, Visibility::complete);
  }
  /// Adds the visible ones of the rows in `range`, each lying at its own number.
  void addVisible(KeySet &keys, TokenRange range, int64_t position) const;
  KeySet selectedKeys(int64_t b, int64_t h, int64_t m) const;
  KeySet gatheredKeys(int64_t b, int64_t h, int64_t m) const;
  LogicalResult attendRow(int64_t b, int64_t h, int64_t m, MutableArrayRef<float> out, float &lse) const;

  ArrayRef<float> rowOf(const Tensor &t, int64_t b, int64_t h, int64_t m, int64_t row, int64_t width) const {
    int64_t offset = b * t.getDim(1) + h / (query.dim(1) / t.getDim(1));
    if (gathered)
      offset = offset * t.getDim(2) + (t.getDim(2) == 1 ? 0 : m / selections.front().type.getQueryBlock());
    offset = offset * t.getDim(t.getRank() - 2) + row;
    return t.get<float>().slice(offset * width, width);
  }

  Evaluation &evaluation;
  SparseAttendOp op;
  NamedTensor query, key, value;
  BlocksAttr blocks;
  bool gathered;
  int64_t dim, valueDim, numRows;
  double scale;
  SmallVector<Lists> selections;
  Geometry geometry;
  ScoreRegion region;
  std::optional<Rounding> rounding;
};

} // namespace

LogicalResult Attention::check() {
  SizeCheck sizes(op);
  sizes.same(key, 0, query, 0).same(value, 0, key, 0).same(value, 2, key, 2);
  if (op.getTokens()) {
    NamedTensor tokens{"tokens", evaluation[op.getTokens()]};
    sizes.same(tokens, 0, query, 0);
    if (!gathered)
      sizes.atMost(key, 2, blocks.getNumBlocks(tokens.dim(2)), "the number of blocks of 'tokens'");
  }
  for (const Lists &s : selections) {
    NamedTensor lists{"selections", *s.tensor};
    sizes.same(lists, 0, query, 0);
    sizes.lists(lists, ceilDiv(query.dim(2), s.type.getQueryBlock()), "the query blocks of 'query'");
    if (gathered)
      sizes.same(key, 2, lists, 2);
  }
  return sizes;
}

void Attention::addVisible(KeySet &keys, TokenRange range, int64_t position) const {
  if (!blocks.isTokens()) {
    for (int64_t n = range.begin; n < range.end; ++n)
      if (isVisible(n, position))
        keys.add(n, n);
    return;
  }
  // Of tokens only those in sight are looked at, so that a window costs its width.
  AllowedKeys allowed = geometry.allowed(position);
  int64_t sinkEnd = std::min(range.end, allowed.sink.end);
  for (int64_t n = std::max(range.begin, allowed.sink.begin); n < sinkEnd; ++n)
    keys.add(n, n);
  int64_t windowBegin = std::max(range.begin, allowed.window.begin);
  if (allowed.sink.begin < allowed.sink.end)
    windowBegin = std::max(windowBegin, allowed.sink.end);
  for (int64_t n = windowBegin, end = std::min(range.end, allowed.window.end); n < end; ++n)
    keys.add(n, n);
}

KeySet Attention::selectedKeys(int64_t b, int64_t h, int64_t m) const {
  KeySet keys;
  SmallVector<TokenRange> ranges;
  if (selections.empty())
    ranges.push_back({0, numRows});
  for (const Lists &s : selections)
    for (int64_t number : s.of(b, h, query.dim(1), m)) {
      int64_t size = s.type.getKeyBlock();
      if (number >= 0 && number * size < numRows)
        ranges.push_back({number * size, std::min((number + 1) * size, numRows)});
    }
  llvm::sort(ranges, [](TokenRange a, TokenRange c) { return a.begin < c.begin; });
  int64_t end = 0; // what is below has been added: every key counts once
  for (TokenRange range : ranges) {
    addVisible(keys, {std::max(range.begin, end), range.end}, geometry.position(m));
    end = std::max(end, range.end);
  }
  return keys;
}

KeySet Attention::gatheredKeys(int64_t b, int64_t h, int64_t m) const {
  KeySet keys;
  const Lists &lists = selections.front();
  int64_t size = lists.type.getKeyBlock();
  SmallVector<std::pair<int64_t, int64_t>> entries; // number and place
  for (auto [i, number] : llvm::enumerate(lists.of(b, h, query.dim(1), m)))
    if (number >= 0)
      entries.push_back({number, int64_t(i)});
  llvm::sort(entries);
  // Of a block listed twice the first place counts.
  entries.erase(std::unique(entries.begin(), entries.end(), [](auto a, auto c) { return a.first == c.first; }), entries.end());
  for (auto [number, place] : entries)
    for (int64_t r = 0; r < size; ++r)
      if (int64_t n = number * size + r; n < numRows && isVisible(n, geometry.position(m)))
        keys.add(n, place * size + r);
  return keys;
}

LogicalResult Attention::attendRow(int64_t b, int64_t h, int64_t m, MutableArrayRef<float> out, float &lse) const {
  KeySet keys = gathered ? gatheredKeys(b, h, m) : selectedKeys(b, h, m);
  ArrayRef<float> narrow = row(query.tensor, b, h, m);
  SmallVector<double> q(narrow.begin(), narrow.end()), x(keys.numbers.size());
  for (auto [logit, r] : llvm::zip_equal(x, keys.rows))
    logit = scale * dot(q, rowOf(key.tensor, b, h, m, r, dim));
  if (region.exists() && failed(region.apply({std::nullopt, b, h, geometry.position(m)}, keys.numbers, x)))
    return failure();

  double max = -infinity, sum = 0;
  for (double logit : x)
    max = maxWithNaN(max, logit);
  lse = float(-infinity);
  if (max == -infinity)
    return success(); // the empty set: `out` is 0
  SmallVector<double> o(valueDim, 0);
  for (auto [logit, r] : llvm::zip_equal(x, keys.rows)) {
    if (logit == -infinity)
      continue; // as if not in the set, whatever its value is
    double p = std::exp(logit - max);
    sum += p;
    const float *v = rowOf(value.tensor, b, h, m, r, valueDim).data();
    double *acc = o.data();
    for (int64_t d = 0; d < valueDim; ++d)
      acc[d] += p * double(v[d]);
  }
  for (auto [to, from] : llvm::zip_equal(out, o))
    to = float((*rounding)(from / sum));
  lse = float(max + std::log(sum));
  return success();
}

LogicalResult Attention::run() {
  if (failed(check()))
    return failure();
  FailureOr<ScoreRegion> compiled = ScoreRegion::compile(evaluation, op.getScore());
  if (failed(compiled))
    return failure();
  region = std::move(*compiled);
  int64_t batches = query.dim(0), heads = query.dim(1), rows = query.dim(2);
  FailureOr<Tensor> output = evaluation.allocate(op, 0, {batches, heads, rows, valueDim});
  FailureOr<Tensor> lse = evaluation.allocate(op, 1, {batches, heads, rows});
  if (failed(output) || failed(lse))
    return failure();
  rounding.emplace(output->getElementType());
  MutableArrayRef<float> out = output->getMutable<float>(), lseOut = lse->getMutable<float>();
  LogicalResult result = evaluation.parallelFor(op, batches * heads * rows, [&](int64_t i) {
    return attendRow(i / (heads * rows), i / rows % heads, i % rows, out.slice(i * valueDim, valueDim), lseOut[i]);
  });
  evaluation.set(op.getOutput(), std::move(*output));
  evaluation.set(op.getLse(), std::move(*lse));
  return result;
}

LogicalResult reference::evaluateSparseAttend(Evaluation &evaluation, SparseAttendOp op) { return Attention(evaluation, op).run(); }

//===----------------------------------------------------------------------===//
// merge, mix
//===----------------------------------------------------------------------===//

namespace {
/// A part of `merge` or `mix`: rows, and one number per row.
struct Part {
  const Tensor *rows, *perRow;
};
} // namespace

/// The parts of an op, after checking that they have the same `B` and `M`.
static FailureOr<SmallVector<Part>> getParts(Evaluation &evaluation, Operation *op, OperandRange operands, StringRef second) {
  SmallVector<Part> parts;
  NamedTensor first{"part 0", evaluation[operands[0]]};
  SizeCheck sizes(op);
  for (size_t i = 0; i < operands.size(); i += 2) {
    parts.push_back({&evaluation[operands[i]], &evaluation[operands[i + 1]]});
    std::string name = "part " + std::to_string(i / 2), perRow = (second + " of " + name).str();
    for (unsigned dim : {0u, 2u})
      sizes.same({name, *parts.back().rows}, dim, first, dim).same({perRow, *parts.back().perRow}, dim, first, dim);
  }
  if (failed(LogicalResult(sizes)))
    return failure();
  return parts;
}

/// `out = sum weights[i] * row of part i / divisor`; parts of weight 0 are left out when `skipZero`, whatever they hold.
static void sumRows(ArrayRef<Part> parts, ArrayRef<double> weights, int64_t i, double divisor, bool skipZero, const Rounding &rounding,
                    MutableArrayRef<float> out) {
  SmallVector<double> o(out.size(), 0);
  for (auto [part, weight] : llvm::zip_equal(parts, weights)) {
    if (skipZero && weight == 0)
      continue;
    for (auto [to, from] : llvm::zip_equal(o, part.rows->get<float>().slice(i * out.size(), out.size())))
      to += weight * double(from);
  }
  for (auto [to, from] : llvm::zip_equal(out, o))
    to = float(rounding(from / divisor));
}

LogicalResult reference::evaluateMerge(Evaluation &evaluation, MergeOp op) {
  FailureOr<SmallVector<Part>> parts = getParts(evaluation, op, op.getParts(), "lse");
  if (failed(parts))
    return failure();
  const Tensor &first = *parts->front().rows;
  int64_t heads = first.getDim(1), rows = first.getDim(2), dim = first.getDim(3);
  FailureOr<Tensor> output = evaluation.allocate(op, 0, first.getShape());
  FailureOr<Tensor> lse = evaluation.allocate(op, 1, {first.getDim(0), heads, rows});
  if (failed(output) || failed(lse))
    return failure();
  Rounding rounding(output->getElementType());
  const Tensor *sinks = op.getSinkLogits() ? &evaluation[op.getSinkLogits()] : nullptr;
  MutableArrayRef<float> out = output->getMutable<float>(), lseOut = lse->getMutable<float>();
  LogicalResult result = evaluation.parallelFor(op, first.getDim(0) * heads * rows, [&](int64_t i) {
    double max = -infinity, sum = 0;
    for (const Part &part : *parts)
      max = maxWithNaN(max, part.perRow->get<float>()[i]);
    lseOut[i] = float(-infinity);
    if (max == -infinity)
      return success(); // all parts are empty
    double sink = sinks ? sinks->get<float>()[i / rows % heads] : -infinity;
    double reference = maxWithNaN(max, sink);
    SmallVector<double> weights;
    for (const Part &part : *parts) {
      float partLse = part.perRow->get<float>()[i];
      weights.push_back(partLse == float(-infinity) ? 0 : std::exp(partLse - reference));
      sum += weights.back();
    }
    double sinkWeight = sink == -infinity ? 0 : std::exp(sink - reference);
    sumRows(*parts, weights, i, sum + sinkWeight, /*skipZero=*/true, rounding, out.slice(i * dim, dim));
    lseOut[i] = float(reference + std::log(sum));
    return success();
  });
  evaluation.set(op.getOutput(), std::move(*output));
  evaluation.set(op.getLse(), std::move(*lse));
  return result;
}

LogicalResult reference::evaluateMix(Evaluation &evaluation, MixOp op) {
  FailureOr<SmallVector<Part>> parts = getParts(evaluation, op, op.getParts(), "gate");
  if (failed(parts))
    return failure();
  const Tensor &first = *parts->front().rows;
  int64_t dim = first.getDim(3);
  FailureOr<Tensor> output = evaluation.allocate(op, 0, first.getShape());
  if (failed(output))
    return failure();
  Rounding rounding(output->getElementType());
  MutableArrayRef<float> out = output->getMutable<float>();
  LogicalResult result = evaluation.parallelFor(op, first.getDim(0) * first.getDim(1) * first.getDim(2), [&](int64_t i) {
    SmallVector<double> weights;
    for (const Part &part : *parts) {
      double gate = part.perRow->get<float>()[i];
      weights.push_back(op.getGate() == Gate::sigmoid ? 1 / (1 + std::exp(-gate)) : gate);
    }
    sumRows(*parts, weights, i, /*divisor=*/1, /*skipZero=*/false, rounding, out.slice(i * dim, dim));
    return success();
  });
  evaluation.set(op.getOutput(), std::move(*output));
  return result;
}
