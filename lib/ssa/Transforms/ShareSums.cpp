//===- ShareSums.cpp - What ssa-fuse does with sums of a softmax ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Fuse.h"
#include "mlir/Transforms/RegionUtils.h"
#include "ssa/IR/AttendJoin.h"
#include "ssa/IR/SharedSums.h"

using namespace mlir;
using namespace mlir::ssa;

/// Moves attention, with what it is made of, before the scores that take its sums.
static LogicalResult moveBefore(SparseAttendOp attend, RouteOp route) {
  if (attend->isBeforeInBlock(route))
    return success();
  IRRewriter rewriter(route);
  if (failed(moveOperationDependencies(rewriter, attend, route)))
    return failure();
  rewriter.moveOpBefore(attend, route);
  return success();
}

static void takeSums(RouteOp route) {
  if (!TargetAttr::of(route) || route->hasAttr(SharedSums::attrName))
    return;
  auto decline = [&](const Twine &why) { route.emitRemark("makes sums of its own: ") << why; };
  FailureOr<SparseAttendOp> attend = SharedSums::find(route, decline);
  if (failed(attend))
    return;
  if (AttendJoin::of(*attend))
    return decline("those of 'ssa.sparse_attend' are made later, for what it is part of");
  if (failed(moveBefore(*attend, route)))
    return decline("those of 'ssa.sparse_attend' are made later, of what the scores lead to");
  route->setAttr(SharedSums::attrName, UnitAttr::get(route.getContext()));
}

void ssa::shareSums(ModuleOp module) {
  SmallVector<RouteOp> routes; // first, as ops are moved
  module.walk([&](RouteOp route) { routes.push_back(route); });
  for (RouteOp route : routes)
    takeSums(route);
}
