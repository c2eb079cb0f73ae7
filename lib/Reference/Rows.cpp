//===- Rows.cpp - project, pool, gather -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "SSA.h"

using namespace mlir;
using namespace mlir::ssa;
using namespace mlir::ssa::reference;

/// Writes `values`, rounded once to the element type, at `offset`.
static void store(Tensor &t, const Rounding &rounding, int64_t offset, ArrayRef<double> values) {
  MutableArrayRef<float> out = t.getMutable<float>().slice(offset, values.size());
  for (auto [to, from] : llvm::zip_equal(out, values))
    to = float(rounding(from));
}

LogicalResult reference::evaluateProject(Evaluation &evaluation, ProjectOp op) {
  NamedTensor input{"input", evaluation[op.getInput()]}, weight{"weight", evaluation[op.getWeight()]};
  int64_t batches = input.dim(0), heads = std::max(input.dim(1), weight.dim(0)), rows = input.dim(2), rank = weight.dim(2);
  FailureOr<Tensor> output = evaluation.allocate(op, 0, {batches, heads, rows, rank});
  if (failed(output))
    return failure();
  Rounding rounding(output->getElementType());
  ArrayRef<float> w = weight.tensor.get<float>();
  LogicalResult result = evaluation.parallelFor(op, batches * heads * rows, [&](int64_t i) {
    int64_t b = i / (heads * rows), h = i / rows % heads, n = i % rows;
    ArrayRef<float> x = row(input.tensor, b, input.dim(1) == 1 ? 0 : h, n);
    int64_t offset = (weight.dim(0) == 1 ? 0 : h) * weight.dim(1) * rank;
    SmallVector<double> y(rank, 0);
    for (int64_t d = 0; d < int64_t(x.size()); ++d)
      for (int64_t r = 0; r < rank; ++r)
        y[r] += double(x[d]) * double(w[offset + d * rank + r]);
    store(*output, rounding, i * rank, y);
    return success();
  });
  evaluation.set(op.getOutput(), std::move(*output));
  return result;
}

LogicalResult reference::evaluatePool(Evaluation &evaluation, PoolOp op) {
  NamedTensor input{"input", evaluation[op.getInput()]};
  const Tensor *scales = op.getScales() ? &evaluation[op.getScales()] : nullptr;
  if (scales) {
    NamedTensor named{"scales", *scales};
    if (failed(SizeCheck(op).same(named, 0, input, 0).same(named, 2, input, 2)))
      return failure();
  }
  BlocksAttr blocks = op.getBlocks();
  Geometry geometry{0, input.dim(2), nullptr};
  int64_t heads = input.dim(1), numBlocks = blocks.getNumBlocks(input.dim(2)), dim = input.dim(3);
  FailureOr<Tensor> output = evaluation.allocate(op, 0, {input.dim(0), heads, numBlocks, dim});
  if (failed(output))
    return failure();
  Rounding rounding(output->getElementType());
  PoolKind kind = op.getKind();
  LogicalResult result = evaluation.parallelFor(op, input.dim(0) * heads * numBlocks, [&](int64_t i) {
    int64_t b = i / (heads * numBlocks), h = i / numBlocks % heads;
    TokenRange tokens = geometry.existing(blocks, i % numBlocks);
    SmallVector<double> y(dim, kind == PoolKind::mean ? 0 : kind == PoolKind::max ? -infinity : infinity);
    for (int64_t n = tokens.begin; n < tokens.end; ++n) {
      ArrayRef<float> x = row(input.tensor, b, h, n);
      double scale = scales ? entry(*scales, b, h, n) : 1;
      for (int64_t d = 0; d < dim; ++d) {
        double value = double(x[d]) * scale;
        y[d] = kind == PoolKind::mean ? y[d] + value : kind == PoolKind::max ? maxWithNaN(y[d], value) : minWithNaN(y[d], value);
      }
    }
    if (kind == PoolKind::mean)
      for (double &value : y)
        value /= double(tokens.end - tokens.begin);
    store(*output, rounding, i * dim, y);
    return success();
  });
  evaluation.set(op.getOutput(), std::move(*output));
  return result;
}

LogicalResult reference::evaluateGather(Evaluation &evaluation, GatherOp op) {
  NamedTensor input{"input", evaluation[op.getInput()]}, selection{"selection", evaluation[op.getSelection()]};
  if (failed(SizeCheck(op).same(selection, 0, input, 0)))
    return failure();
  int64_t keyBlock = op.getSelection().getType().getKeyBlock(), dim = input.dim(3), width = selection.dim(3);
  int64_t heads = std::max(input.dim(1), selection.dim(1)), lists = selection.dim(2);
  FailureOr<Tensor> output = evaluation.allocate(op, 0, {input.dim(0), heads, lists, width * keyBlock, dim});
  if (failed(output))
    return failure();
  LogicalResult result = evaluation.parallelFor(op, input.dim(0) * heads * lists, [&](int64_t i) {
    int64_t b = i / (heads * lists), h = i / lists % heads, m = i % lists;
    ArrayRef<int32_t> numbers = list(selection.tensor, b, h / (heads / selection.dim(1)), m);
    float *out = output->getMutable<float>().data() + i * width * keyBlock * dim;
    for (int64_t slot = 0; slot < width * keyBlock; ++slot, out += dim) {
      int64_t n = int64_t(numbers[slot / keyBlock]) * keyBlock + slot % keyBlock;
      if (numbers[slot / keyBlock] >= 0 && n < input.dim(2))
        llvm::copy(row(input.tensor, b, h / (heads / input.dim(1)), n), out);
    }
    return success();
  });
  evaluation.set(op.getOutput(), std::move(*output));
  return result;
}
