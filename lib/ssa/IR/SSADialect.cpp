//===- SSADialect.cpp - The ssa dialect -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/InliningUtils.h"
#include "ssa/IR/SSA.h"
#include "ssa/IR/ForcedBlocks.h"
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

/// Of an attribute `name`: that it is of its kind, on an op of its own kind.
template <typename Attr, typename... Ops>
static LogicalResult verifyPlace(Operation *op, NamedAttribute attribute, StringRef name, StringRef kind, StringRef owner) {
  if (attribute.getName() != name)
    return success();
  if (!isa<Ops...>(op))
    return op->emitOpError("cannot have '") << name << "': it belongs to " << owner;
  if (!isa<Attr>(attribute.getValue()))
    return op->emitOpError("expected '") << name << "' to be " << kind << ", but got " << attribute.getValue();
  return success();
}

/// The same of one that is called as its kind says.
template <typename Attr, typename... Ops>
static LogicalResult verifyPlace(Operation *op, NamedAttribute attribute, StringRef owner) {
  return verifyPlace<Attr, Ops...>(op, attribute, Attr::attrName(), ("a '#ssa." + Attr::getMnemonic() + "'").str(), owner);
}

/// Attributes of the dialect on ops of any dialect: the target of a module, the schedules of an attention op, the chunks of a selection.
LogicalResult SSADialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  return success(succeeded(verifyPlace<TargetAttr, ModuleOp>(op, attribute, "a module")) &&
                 succeeded(verifyPlace<ScheduleAttr, SparseAttendOp>(op, attribute, "'ssa.sparse_attend'")) &&
                 succeeded(verifyPlace<AgreeingAttr, SparseAttendOp>(op, attribute, "'ssa.sparse_attend'")) &&
                 succeeded(verifyPlace<OverlapAttr, SparseAttendOp>(op, attribute, "'ssa.sparse_attend'")) &&
                 succeeded(verifyPlace<WhenAttr, FunctionOpInterface>(op, attribute, "a kernel")) &&
                 succeeded(verifyPlace<ChunkAttr, TopKOp>(op, attribute, "'ssa.topk'")) &&
                 succeeded(verifyPlace<FusedSelectAttr, TopKOp>(op, attribute, "'ssa.topk'")) &&
                 succeeded(verifyPlace<FusedAttendAttr, MergeOp, MixOp>(op, attribute, "'ssa.merge' or 'ssa.mix'")) &&
                 succeeded(verifyPlace<UnitAttr, SparseAttendOp>(op, attribute, ForcedBlocks::attrName, "a unit attribute", "'ssa.sparse_attend'")) &&
                 succeeded(verifyPlace<UnitAttr, RouteOp>(op, attribute, SharedSums::attrName, "a unit attribute", "'ssa.route'")));
}
