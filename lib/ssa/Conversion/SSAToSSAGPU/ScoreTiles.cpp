//===- ScoreTiles.cpp - From products to softmax weights ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ScoreTiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"
#include <cmath>

using namespace mlir;
using namespace mlir::ssa;

static constexpr double log2e = 1.4426950408889634;

//===----------------------------------------------------------------------===//
// Score regions
//===----------------------------------------------------------------------===//

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

FailureOr<Value> ScoreTiles::applyRegion(Value scores, Value numbers) {
  Block &block = op.getScore().front();
  IRMapping mapping;
  auto toTile = [&](Value rows) { return t.broadcast(rows, columns); };
  auto splatScalar = [&](Value scalar) { return toTile(t.mapRows(scalar.getType(), [&](Value) { return scalar; })); };
  mapping.map(block.getArgument(0), scores);
  // Only what is used is made: an unused one would cost registers.
  auto mapIfUsed = [&](unsigned i, llvm::function_ref<Value()> make) {
    if (!block.getArgument(i).use_empty())
      mapping.map(block.getArgument(i), make());
  };
  mapIfUsed(1, [&] { return splatScalar(batch); });
  mapIfUsed(2, [&] { return toTile(heads); });
  mapIfUsed(3, [&] { return toTile(positions); });
  mapIfUsed(4, [&] { return numbers; });
  llvm::SetVector<Value> seen;
  auto mapOperand = [&](Value operand) -> Value {
    if (Value known = mapping.lookupOrNull(operand))
      return known;
    Attribute constant;
    if (matchPattern(operand, m_Constant(&constant))) {
      Value tile = t.constant(t.accumulatorType(columns, operand.getType()), constant);
      mapping.map(operand, tile);
      return tile;
    }
    seen.insert(operand); // in the order of getCapturedScalars
    Value tile = splatScalar(captured[seen.size() - 1]);
    mapping.map(operand, tile);
    return tile;
  };
  for (Operation &inner : block.without_terminator()) {
    if (inner.hasTrait<mlir::OpTrait::ConstantLike>())
      continue;
    SmallVector<Value> operands = llvm::map_to_vector(inner.getOperands(), mapOperand);
    SmallVector<Type> types = llvm::map_to_vector(inner.getResultTypes(), [&](Type type) -> Type { return t.accumulatorType(columns, type); });
    Operation *copy = e.builder.create(e.loc, inner.getName().getIdentifier(), operands, types, inner.getAttrs());
    mapping.map(inner.getResults(), copy->getResults());
  }
  return mapOperand(block.getTerminator()->getOperand(0));
}

//===----------------------------------------------------------------------===//
// ScoreTiles
//===----------------------------------------------------------------------===//

ScoreTiles::ScoreTiles(Emitter &e, TileEmitter &t, SparseAttendOp op, int64_t columns, ArrayRef<Value> captured, Value batch, Value heads,
                       Value positions, const KeySlots &slots)
    : e(e), t(t), op(op), columns(columns), captured(captured), batch(batch), heads(heads), positions(positions), slots(slots) {
  std::optional<APFloat> written = op.getScale();
  scale = written ? double(float(written->convertToDouble())) : 1 / std::sqrt(double(op.getQuery().getType().getDimSize(3)));
  // A positive scale changes no order: it joins the factor of the exponent, one multiplication less.
  scaleComesLast = scale > 0 && op.getScore().empty();
}

FailureOr<Value> ScoreTiles::getLogits(Value products, Value numbers) {
  Value logits = products;
  if (!scaleComesLast) {
    logits = e.fmul(products, splat(scale));
    if (!op.getScore().empty()) {
      FailureOr<Value> scores = applyRegion(logits, numbers);
      if (failed(scores))
        return failure();
      logits = *scores;
    }
  }
  Value visible = slots.isVisible(e, numbers, t.broadcast(positions, columns));
  return e.select(visible, logits, splat(-std::numeric_limits<double>::infinity()));
}

SoftmaxStep ScoreTiles::getSoftmaxStep(Value logits, Value max, Value sum) {
  Value none = splatRows(-std::numeric_limits<double>::infinity());
  SoftmaxStep step;
  step.max = arith::MaximumFOp::create(e.builder, e.loc, max, t.reduce(ssa_gpu::RowReduction::max, logits));
  // As long as a row has seen nothing, differences are taken from 0: -inf - -inf is NaN.
  Value isNone = arith::CmpFOp::create(e.builder, e.loc, arith::CmpFPredicate::OEQ, step.max, none);
  Value reference = e.select(isNone, splatRows(0), step.max);
  // The difference comes first: it is exact where it matters, however large the logits are.
  double factor = scaleComesLast ? scale * log2e : log2e;
  auto exp = [&](Value difference, Value factors) -> Value {
    return math::Exp2Op::create(e.builder, e.loc, e.fmul(difference, factors));
  };
  step.rescale = exp(e.fsub(max, reference), splatRows(factor));
  step.weights = exp(e.fsub(logits, t.broadcast(reference, columns)), splat(factor));
  step.sum = e.fadd(e.fmul(sum, step.rescale), t.reduce(ssa_gpu::RowReduction::sum, step.weights));
  return step;
}

Value ScoreTiles::getNaturalMax(Value max) { return scaleComesLast ? e.fmul(max, splatRows(scale)) : max; }
