//===- SelectChain.cpp - What leads from routes to selections -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/IR/SelectChain.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <numeric>

using namespace mlir;
using namespace mlir::ssa;

/// The rows of scores that share a list of `within`; 1 where all do.
static int64_t getRowsPerList(TypedValue<SelectionType> within, int64_t queryBlock) {
  if (!within || within.getType().getDimSize(2) == 1)
    return 1;
  return within.getType().getQueryBlock() / queryBlock;
}

/// The scores that a structured op makes others of, one by one; null where it does more than that: looks at other rows, at where it is, or
/// at something that has rows itself.
static Value getElementwiseScores(linalg::LinalgOp op) {
  constexpr unsigned batch = 0, row = 2, rank = 4;
  if (!op || !op.hasPureTensorSemantics() || op.getNumDpsInits() != 1 || op.getNumLoops() != rank || op.getNumParallelLoops() != rank)
    return Value();
  OpOperand &init = op.getDpsInitsMutable()[0];
  if (!op.getMatchingIndexingMap(&init).isIdentity() || !op.getMatchingBlockArgument(&init).use_empty())
    return Value();
  Value scores;
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    bool isScores = isa_and_nonnull<RouteOp, RebinOp, linalg::LinalgOp>(input->get().getDefiningOp()) && map.isIdentity();
    if (isScores && !scores)
      scores = input->get();
    else if (map.isFunctionOfDim(batch) || map.isFunctionOfDim(row))
      return Value();
  }
  bool looksAround = false;
  op->walk([&](Operation *inner) {
    auto index = dyn_cast<linalg::IndexOp>(inner);
    looksAround |= index && (index.getDim() == batch || index.getDim() == row);
  });
  return looksAround ? Value() : scores;
}

FailureOr<SelectChain> SelectChain::find(TopKOp op, llvm::function_ref<void(const Twine &)> reason) {
  SelectChain chain;
  chain.topk = op;
  auto addLists = [&](TypedValue<SelectionType> within, int64_t queryBlock, int64_t rowsPerRow) {
    int64_t rows = getRowsPerList(within, queryBlock);
    chain.rowStep = std::lcm(chain.rowStep, rows / std::gcd(rows, rowsPerRow));
  };
  addLists(op.getWithin(), op.getType().getQueryBlock(), 1);
  Value scores = op.getScores();
  for (int64_t rowsPerRow = 1;;) {
    Operation *source = scores.getDefiningOp();
    Value elementwise = source ? getElementwiseScores(dyn_cast<linalg::LinalgOp>(source)) : Value();
    if (!isa_and_nonnull<RouteOp, RebinOp>(source) && !elementwise) {
      reason(source ? "its scores come from '" + source->getName().getStringRef() + "'" : Twine("its scores are an argument"));
      return failure();
    }
    if (llvm::count_if(scores.getUses(), [](OpOperand &use) { return !isa<tensor::DimOp>(use.getOwner()); }) != 1) {
      reason("the scores of '" + source->getName().getStringRef() + "' are used by more than one op");
      return failure();
    }
    auto rebin = dyn_cast<RebinOp>(source);
    chain.links.push_back({source, rebin ? rebin.getInput() : elementwise, rowsPerRow});
    if (auto route = dyn_cast<RouteOp>(source)) {
      addLists(route.getWithin(), route.getQueryBlock(), rowsPerRow);
      std::reverse(chain.links.begin(), chain.links.end());
      return chain;
    }
    if (rebin)
      rowsPerRow *= rebin.getQueryBlock();
    scores = chain.links.back().scores;
  }
}
