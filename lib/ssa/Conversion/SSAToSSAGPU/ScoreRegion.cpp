//===- ScoreRegion.cpp - Score regions in kernels -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ScoreRegion.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::ssa;

FailureOr<SmallVector<Value>> ssa::getCapturedScalars(HostFunction &host, Operation *op, Region &region) {
  llvm::SetVector<Value> captured;
  for (Operation &inner : region.getOps()) {
    if (isa<YieldOp>(inner)) {
      // Its operand may come from outside as well.
    } else if (!isa<arith::ArithDialect, math::MathDialect>(inner.getDialect()) || inner.getNumRegions() != 0) {
      return inner.emitOpError("has no meaning for kernels yet: score regions may use scalar ops of 'arith' and 'math'"), failure();
    }
    for (Value operand : inner.getOperands())
      if (!region.isAncestor(operand.getParentRegion()) && !matchPattern(operand, m_Constant()))
        captured.insert(operand);
  }
  return SmallVector<Value>(captured.getArrayRef());
}

Value ScoreShape::splat(Value scalar) const {
  if (!tiles)
    return scalar;
  return tiles->broadcast(tiles->mapRows(scalar.getType(), [&](Value) { return scalar; }), columns);
}

Value ScoreShape::constant(Type scalar, Attribute value) const {
  if (tiles)
    return tiles->constant(tiles->accumulatorType(columns, scalar), value);
  return arith::ConstantOp::create(e.builder, e.loc, scalar, cast<TypedAttr>(value));
}

Value ssa::applyScoreRegion(const ScoreShape &shape, Region &region, ArrayRef<Value> captured,
                            llvm::function_ref<Value(unsigned)> getArgument) {
  Block &block = region.front();
  IRMapping mapping;
  // Only what is used is made: an unused one would cost registers.
  for (BlockArgument argument : block.getArguments())
    if (!argument.use_empty())
      mapping.map(argument, getArgument(argument.getArgNumber()));
  llvm::SetVector<Value> seen;
  auto mapOperand = [&](Value operand) -> Value {
    if (Value known = mapping.lookupOrNull(operand))
      return known;
    Attribute constant;
    Value value;
    if (matchPattern(operand, m_Constant(&constant))) {
      value = shape.constant(operand.getType(), constant);
    } else {
      seen.insert(operand); // in the order of getCapturedScalars
      value = shape.splat(captured[seen.size() - 1]);
    }
    mapping.map(operand, value);
    return value;
  };
  for (Operation &inner : block.without_terminator()) {
    if (inner.hasTrait<mlir::OpTrait::ConstantLike>())
      continue;
    SmallVector<Value> operands = llvm::map_to_vector(inner.getOperands(), mapOperand);
    SmallVector<Type> types = llvm::map_to_vector(inner.getResultTypes(), [&](Type type) { return shape.getType(type); });
    Operation *copy = shape.e.builder.create(shape.e.loc, inner.getName().getIdentifier(), operands, types, inner.getAttrs());
    mapping.map(inner.getResults(), copy->getResults());
  }
  return mapOperand(block.getTerminator()->getOperand(0));
}
