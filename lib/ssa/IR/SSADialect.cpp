//===- SSADialect.cpp - The ssa dialect -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Transforms/InliningUtils.h"
#include "ssa/IR/SSA.h"
#include "ssa/IR/SharedSums.h"

using namespace mlir;
using namespace mlir::ssa;

#include "ssa/IR/SSADialect.cpp.inc"

namespace {
/// Patterns may be called as functions: every op can be inlined.
struct SSAInlinerInterface : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final { return true; }
  bool isLegalToInline(Region *, Region *, bool, IRMapping &) const final { return true; }
};
} // namespace

void SSADialect::initialize() {
  registerAttributes();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "ssa/IR/SSAOps.cpp.inc"
      >();
  addInterfaces<SSAInlinerInterface>();
}

/// Attributes of the dialect on ops of any dialect: the target of a module, the schedule of an attention op, the chunks of a selection.
LogicalResult SSADialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == TargetAttr::attrName()) {
    if (!isa<ModuleOp>(op))
      return op->emitOpError("cannot have '") << name << "': it belongs to a module";
    if (!isa<TargetAttr>(attribute.getValue()))
      return op->emitOpError("expected '") << name << "' to be a '#ssa.target', but got " << attribute.getValue();
  }
  if (name == ScheduleAttr::attrName()) {
    if (!isa<SparseAttendOp>(op))
      return op->emitOpError("cannot have '") << name << "': it belongs to 'ssa.sparse_attend'";
    if (!isa<ScheduleAttr>(attribute.getValue()))
      return op->emitOpError("expected '") << name << "' to be a '#ssa.schedule', but got " << attribute.getValue();
  }
  if (name == ChunkAttr::attrName()) {
    if (!isa<TopKOp>(op))
      return op->emitOpError("cannot have '") << name << "': it belongs to 'ssa.topk'";
    if (!isa<ChunkAttr>(attribute.getValue()))
      return op->emitOpError("expected '") << name << "' to be a '#ssa.chunk', but got " << attribute.getValue();
  }
  if (name == FusedSelectAttr::attrName()) {
    if (!isa<TopKOp>(op))
      return op->emitOpError("cannot have '") << name << "': it belongs to 'ssa.topk'";
    if (!isa<FusedSelectAttr>(attribute.getValue()))
      return op->emitOpError("expected '") << name << "' to be a '#ssa.fused_select', but got " << attribute.getValue();
  }
  if (name == FusedAttendAttr::attrName()) {
    if (!isa<MergeOp, MixOp>(op))
      return op->emitOpError("cannot have '") << name << "': it belongs to 'ssa.merge' or 'ssa.mix'";
    if (!isa<FusedAttendAttr>(attribute.getValue()))
      return op->emitOpError("expected '") << name << "' to be a '#ssa.fused_attend', but got " << attribute.getValue();
  }
  if (name == SharedSums::attrName) {
    if (!isa<RouteOp>(op))
      return op->emitOpError("cannot have '") << name << "': it belongs to 'ssa.route'";
    if (!isa<UnitAttr>(attribute.getValue()))
      return op->emitOpError("expected '") << name << "' to be a unit attribute, but got " << attribute.getValue();
  }
  return success();
}
