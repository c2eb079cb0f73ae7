//===- SSAOps.cpp - Ops of the ssa dialect --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "SSAAssembly.h"
#include "ssa/IR/SSA.h"

using namespace mlir;
using namespace mlir::ssa;

/// Size `dim` of a result; failure, and nothing said, if there is none.
static FailureOr<OpFoldResult> reifyExistingDim(ReifyRankedShapedTypeOpInterface op, OpBuilder &builder, int result,
                                                int dim) {
  if (dim < 0 || dim >= cast<ShapedType>(op->getResult(result).getType()).getRank())
    return failure();
  ReifiedRankedShapedTypeDims shapes;
  if (failed(op.reifyResultShapes(builder, shapes)))
    return failure();
  return shapes[result][dim];
}

#define GET_OP_CLASSES
#include "ssa/IR/SSAOps.cpp.inc"

BlocksAttr RouteOp::getBlocksOrTokens() { return getBlocks().value_or(BlocksAttr::get(getContext(), 1)); }
BlocksAttr SparseAttendOp::getBlocksOrTokens() { return getBlocks().value_or(BlocksAttr::get(getContext(), 1)); }

//===----------------------------------------------------------------------===//
// Names of results, for readable assembly
//===----------------------------------------------------------------------===//

void ProjectOp::getAsmResultNames(OpAsmSetValueNameFn set) { set(getOutput(), "projected"); }
void PoolOp::getAsmResultNames(OpAsmSetValueNameFn set) { set(getOutput(), "pooled"); }
void RouteOp::getAsmResultNames(OpAsmSetValueNameFn set) { set(getScores(), "scores"); }
void RebinOp::getAsmResultNames(OpAsmSetValueNameFn set) { set(getOutput(), "scores"); }
void TopKOp::getAsmResultNames(OpAsmSetValueNameFn set) { set(getSelection(), "sel"); }
void SortOp::getAsmResultNames(OpAsmSetValueNameFn set) { set(getOutput(), "sel"); }
void UnionOp::getAsmResultNames(OpAsmSetValueNameFn set) { set(getOutput(), "sel"); }
void FromIndicesOp::getAsmResultNames(OpAsmSetValueNameFn set) { set(getSelection(), "sel"); }
void ToIndicesOp::getAsmResultNames(OpAsmSetValueNameFn set) { set(getIndices(), "indices"); }
void GatherOp::getAsmResultNames(OpAsmSetValueNameFn set) { set(getOutput(), "gathered"); }
void MixOp::getAsmResultNames(OpAsmSetValueNameFn set) { set(getOutput(), "o"); }

void SparseAttendOp::getAsmResultNames(OpAsmSetValueNameFn set) {
  set(getOutput(), "o");
  set(getLse(), "lse");
}
void MergeOp::getAsmResultNames(OpAsmSetValueNameFn set) {
  set(getOutput(), "o");
  set(getLse(), "lse");
}
