//===- Select.cpp - topk, sort, union, indices ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "SSA.h"
#include <cmath>

using namespace mlir;
using namespace mlir::ssa;
using namespace mlir::ssa::reference;

namespace {

class Selector {
public:
  Selector(Evaluation &evaluation, TopKOp op)
      : evaluation(evaluation), op(op), type(op.getType()), scores{"scores", evaluation[op.getScores()]},
        within(op.getWithin() ? &evaluation[op.getWithin()] : nullptr), blocks(BlocksAttr::get(op.getContext(), type.getKeyBlock())),
        initBlocks(op.getInitBlocks()), localBlocks(op.getLocalBlocks()) {
    if (within)
      withinType = op.getWithin().getType();
    geometry.mask = op.getMask().value_or(nullptr);
    geometry.tokens = evaluation[op.getTokens()].getDim(2);
    geometry.queries = op.getQueries() ? evaluation[op.getQueries()].getDim(2) : scores.dim(2);
    if (op.getTopP())
      topP = double(float(op.getTopP()->convertToDouble()));
    if (op.getThreshold())
      threshold = float(op.getThreshold()->convertToDouble());
  }

  LogicalResult run();

private:
  struct Candidate {
    int64_t block;
    float score;
  };
  LogicalResult check();
  /// The blocks that may be taken, in ascending order: those that exist and that the mask allows.
  SmallVector<Candidate> candidates(int64_t b, int64_t g, int64_t m) const;
  void selectRow(int64_t b, int64_t g, int64_t m, MutableArrayRef<int32_t> out) const;

  int64_t firstPosition(int64_t m) const { return geometry.position(m * type.getQueryBlock()); }
  int64_t lastPosition(int64_t m) const {
    return geometry.position(std::min((m + 1) * type.getQueryBlock(), geometry.queries) - 1);
  }

  Evaluation &evaluation;
  TopKOp op;
  SelectionType type;
  NamedTensor scores;
  const Tensor *within;
  SelectionType withinType; // null without `within`
  BlocksAttr blocks;
  int64_t initBlocks, localBlocks;
  Geometry geometry;
  std::optional<double> topP;
  std::optional<float> threshold;
};

} // namespace

LogicalResult Selector::check() {
  SizeCheck sizes(op);
  NamedTensor tokens{"tokens", evaluation[op.getTokens()]};
  sizes.same(tokens, 0, scores, 0);
  if (op.getQueries()) {
    NamedTensor queries{"queries", evaluation[op.getQueries()]};
    sizes.same(queries, 0, scores, 0);
    sizes.is(scores, 2, ceilDiv(queries.dim(2), type.getQueryBlock()), "the query blocks of 'queries'");
  }
  if (within) {
    NamedTensor lists{"within", *within};
    sizes.same(lists, 0, scores, 0);
    sizes.is(scores, 3, lists.dim(3) * (withinType.getKeyBlock() / type.getKeyBlock()), "the blocks of a list of 'within'");
    sizes.lists(lists, ceilDiv(scores.dim(2), withinType.getQueryBlock() / type.getQueryBlock()), "the lists for the rows of 'scores'");
  } else {
    sizes.atMost(scores, 3, blocks.getNumBlocks(tokens.dim(2)), "the number of blocks of 'tokens'");
  }
  return sizes;
}

SmallVector<Selector::Candidate> Selector::candidates(int64_t b, int64_t g, int64_t m) const {
  SmallVector<Candidate> result;
  AllowedKeys allowed = geometry.allowed(firstPosition(m), lastPosition(m));
  ArrayRef<float> s = row(scores.tensor, b, g, m);
  auto add = [&](int64_t block, float score) {
    if (allowed.overlaps(geometry.existing(blocks, block)))
      result.push_back({block, score});
  };
  if (within) {
    int64_t perEntry = withinType.getKeyBlock() / type.getKeyBlock();
    int64_t listRow = within->getDim(2) == 1 ? 0 : m / (withinType.getQueryBlock() / type.getQueryBlock());
    for (auto [i, number] : llvm::enumerate(list(*within, b, g, listRow)))
      for (int64_t r = 0; number >= 0 && r < perEntry; ++r)
        add(int64_t(number) * perEntry + r, s[i * perEntry + r]);
    return result;
  }
  // A block without a score exists all the same: it may be forced.
  for (int64_t j = 0, n = blocks.getNumBlocks(geometry.tokens); j < n; ++j)
    add(j, j < int64_t(s.size()) ? s[j] : float(-infinity));
  return result;
}

void Selector::selectRow(int64_t b, int64_t g, int64_t m, MutableArrayRef<int32_t> out) const {
  // Forced: the first blocks, and those at and before the own block of every query that stands at a token.
  int64_t first = std::max<int64_t>(firstPosition(m), 0), last = lastPosition(m), size = blocks.getSize();
  TokenRange local;
  if (last >= 0 && localBlocks > 0)
    local = {first / size - localBlocks + 1, last / size + 1};

  SmallVector<int32_t> taken;
  SmallVector<Candidate> free;
  double before = 0; // the mass of what is taken
  auto mass = [](const Candidate &c) { return c.score > 0 ? double(c.score) : 0.0; };
  for (const Candidate &c : candidates(b, g, m)) {
    if (c.block < initBlocks || local.contains(c.block)) {
      taken.push_back(c.block);
      before += mass(c);
    } else if (c.score > float(-infinity)) { // -inf and NaN are never chosen by score
      free.push_back(c);
    }
  }
  llvm::sort(free, [](const Candidate &a, const Candidate &c) {
    return a.score > c.score || (a.score == c.score && a.block < c.block);
  });
  double total = before; // summed in the order of taking, so that a share of 1 takes all that has mass
  for (const Candidate &c : free)
    total += mass(c);
  for (const Candidate &c : free) {
    bool fits = taken.size() < out.size() && (!threshold || c.score >= *threshold) && (!topP || before < *topP * total);
    if (!fits)
      break;
    before += mass(c);
    taken.push_back(c.block);
  }
  llvm::sort(taken);
  std::fill(llvm::copy(taken, out.begin()), out.end(), -1);
}

LogicalResult Selector::run() {
  if (failed(check()))
    return failure();
  int64_t heads = scores.dim(1), rows = scores.dim(2), width = type.getWidth();
  FailureOr<Tensor> selection = evaluation.allocate(op, 0, {scores.dim(0), heads, rows, width});
  if (failed(selection))
    return failure();
  MutableArrayRef<int32_t> out = selection->getMutable<int32_t>();
  LogicalResult result = evaluation.parallelFor(op, scores.dim(0) * heads * rows, [&](int64_t i) {
    selectRow(i / (heads * rows), i / rows % heads, i % rows, out.slice(i * width, width));
    return success();
  });
  evaluation.set(op.getSelection(), std::move(*selection));
  return result;
}

LogicalResult reference::evaluateTopK(Evaluation &evaluation, TopKOp op) { return Selector(evaluation, op).run(); }

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

/// Fills every list of result 0 of `op` with the numbers of the lists of `inputs`: ascending, unique, padding last.
static LogicalResult joinLists(Evaluation &evaluation, Operation *op, ArrayRef<const Tensor *> inputs) {
  const Tensor &first = *inputs.front();
  int64_t width = cast<SelectionType>(op->getResult(0).getType()).getWidth();
  int64_t lists = first.getDim(0) * first.getDim(1) * first.getDim(2);
  FailureOr<Tensor> output = evaluation.allocate(op, 0, {first.getDim(0), first.getDim(1), first.getDim(2), width});
  if (failed(output))
    return failure();
  MutableArrayRef<int32_t> out = output->getMutable<int32_t>();
  LogicalResult result = evaluation.parallelFor(op, lists, [&](int64_t i) {
    SmallVector<int32_t> numbers;
    for (const Tensor *input : inputs)
      llvm::copy_if(input->get<int32_t>().slice(i * input->getDim(3), input->getDim(3)), std::back_inserter(numbers),
                    [](int32_t n) { return n >= 0; });
    llvm::sort(numbers);
    numbers.erase(llvm::unique(numbers), numbers.end());
    MutableArrayRef<int32_t> to = out.slice(i * width, width);
    std::fill(llvm::copy(numbers, to.begin()), to.end(), -1);
    return success();
  });
  evaluation.set(op->getResult(0), std::move(*output));
  return result;
}

LogicalResult reference::evaluateSort(Evaluation &evaluation, SortOp op) {
  return joinLists(evaluation, op, {&evaluation[op.getInput()]});
}

LogicalResult reference::evaluateUnion(Evaluation &evaluation, UnionOp op) {
  NamedTensor lhs{"lhs", evaluation[op.getLhs()]}, rhs{"rhs", evaluation[op.getRhs()]};
  if (failed(SizeCheck(op).same(rhs, 0, lhs, 0).same(rhs, 2, lhs, 2)))
    return failure();
  return joinLists(evaluation, op, {&lhs.tensor, &rhs.tensor});
}

LogicalResult reference::evaluateFromIndices(Evaluation &evaluation, FromIndicesOp op) {
  evaluation.set(op.getSelection(), evaluation[op.getIndices()]);
  return success();
}

LogicalResult reference::evaluateToIndices(Evaluation &evaluation, ToIndicesOp op) {
  const Tensor &selection = evaluation[op.getSelection()];
  FailureOr<Tensor> indices = evaluation.allocate(op, 0, selection.getShape());
  if (failed(indices))
    return failure();
  llvm::transform(selection.get<int32_t>(), indices->getMutable<int32_t>().begin(), [](int32_t n) { return std::max(n, -1); });
  evaluation.set(op.getIndices(), std::move(*indices));
  return success();
}
