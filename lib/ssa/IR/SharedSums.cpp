//===- SharedSums.cpp - Sums of a softmax that attention makes, too -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/IR/SharedSums.h"
#include <cmath>

using namespace mlir;
using namespace mlir::ssa;

/// What the dot product of an op is multiplied by.
template <typename Op>
static float getFactor(Op op) {
  std::optional<APFloat> written = op.getScale();
  return written ? float(written->convertToDouble()) : float(1 / std::sqrt(double(op.getQuery().getType().getDimSize(3))));
}

/// The tokens that the rows of the keys stand for.
template <typename Op>
static Value getTokensOrKey(Op op) {
  return op.getTokens() ? Value(op.getTokens()) : Value(op.getKey());
}

/// Why logits that are there for both, or what is there, differ; empty if nothing does.
static std::string getDifference(RouteOp route, SparseAttendOp attend) {
  if (route.getWithin())
    return "keys of no list";
  if (!route.getScore().empty())
    return "scores that no region makes";
  if (!attend.getScore().empty())
    return "scores that a region makes";
  if (route.getWeights() || route.getScales())
    return "logits without weights or scales";
  if (route.getQueryBlock() != 1)
    return "a row for every query";
  if (attend.getMask() != route.getMask() || attend.getBlocksOrTokens() != route.getBlocksOrTokens() || getTokensOrKey(attend) != getTokensOrKey(route))
    return "other visible keys";
  if (route.getVisible() != Visibility::complete)
    return "complete blocks only";
  return getFactor(attend) == getFactor(route) ? "" : "another scale";
}

FailureOr<SparseAttendOp> SharedSums::find(RouteOp op, llvm::function_ref<void(const Twine &)> reason) {
  SparseAttendOp first;
  std::string why;
  if (op.getNormalize() != Normalization::softmax || op.getBound())
    return failure();
  for (Operation *user : op.getQuery().getUsers()) {
    auto attend = dyn_cast<SparseAttendOp>(user);
    bool isOfAll = attend && attend.getSelections().empty() && attend->getBlock() == op->getBlock();
    if (!isOfAll || attend.getQuery() != op.getQuery() || attend.getKey() != op.getKey())
      continue;
    if (std::string difference = getDifference(op, attend); !difference.empty())
      why = difference;
    else if (!first || attend->isBeforeInBlock(first))
      first = attend;
  }
  if (first)
    return first;
  if (!why.empty())
    reason("'ssa.sparse_attend' to the same keys has " + Twine(why));
  return failure();
}

SparseAttendOp SharedSums::of(RouteOp op) {
  return op->hasAttr(attrName) ? find(op, [](const Twine &) {}).value_or(nullptr) : nullptr;
}

bool SharedSums::areTakenFrom(SparseAttendOp op) {
  return llvm::any_of(op.getQuery().getUsers(), [&](Operation *user) {
    auto route = dyn_cast<RouteOp>(user);
    return route && of(route) == op;
  });
}
