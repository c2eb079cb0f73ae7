//===- SelectChain.cpp - What leads from routes to selections -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/IR/SelectChain.h"
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
    if (!isa_and_nonnull<RouteOp, RebinOp>(source)) {
      reason(source ? "its scores come from '" + source->getName().getStringRef() + "'" : Twine("its scores are an argument"));
      return failure();
    }
    if (llvm::count_if(scores.getUses(), [](OpOperand &use) { return !isa<tensor::DimOp>(use.getOwner()); }) != 1) {
      reason("the scores of '" + source->getName().getStringRef() + "' are used by more than one op");
      return failure();
    }
    chain.links.push_back({source, rowsPerRow});
    if (auto route = dyn_cast<RouteOp>(source)) {
      addLists(route.getWithin(), route.getQueryBlock(), rowsPerRow);
      std::reverse(chain.links.begin(), chain.links.end());
      return chain;
    }
    auto rebin = cast<RebinOp>(source);
    rowsPerRow *= rebin.getQueryBlock();
    scores = rebin.getInput();
  }
}
