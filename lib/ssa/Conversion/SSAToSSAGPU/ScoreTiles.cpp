//===- ScoreTiles.cpp - From products to softmax weights ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ScoreTiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;
using namespace mlir::ssa;

static constexpr double log2e = 1.4426950408889634;

FailureOr<Value> ScoreTiles::applyRegion(Value scores, Value numbers) {
  ScoreShape shape(e, t, columns);
  return applyScoreRegion(shape, op.getScore(), captured, [&](unsigned i) -> Value {
    switch (i) {
    case 0:
      return scores;
    case 1:
      return shape.splat(batch);
    case 2:
      return t.broadcast(heads, columns);
    case 3:
      return t.broadcast(positions, columns);
    default:
      return numbers;
    }
  });
}

ScoreTiles::ScoreTiles(Emitter &e, TileEmitter &t, SparseAttendOp op, int64_t columns, ArrayRef<Value> captured, Value batch, Value heads,
                       Value positions, const KeySlots &slots)
    : e(e), t(t), op(op), columns(columns), captured(captured), batch(batch), heads(heads), positions(positions), slots(slots) {
  std::optional<APFloat> written = op.getScale();
  scale = written ? double(float(written->convertToDouble())) : 1 / std::sqrt(double(op.getQuery().getType().getDimSize(3)));
  // A positive scale changes no order: it joins the factor of the exponent, one multiplication less.
  scaleComesLast = scale > 0 && op.getScore().empty();
}

Value ScoreTiles::hide(Value logits, Value numbers) {
  Value visible = slots.isVisible(e, numbers, t.broadcast(positions, columns));
  return e.select(visible, logits, splat(-std::numeric_limits<double>::infinity()));
}

FailureOr<Value> ScoreTiles::getLogits(Value products, Value numbers) {
  Value logits = scaleProducts(products);
  if (!op.getScore().empty()) {
    FailureOr<Value> scores = applyRegion(logits, numbers);
    if (failed(scores))
      return failure();
    logits = *scores;
  }
  return hide(logits, numbers);
}

SoftmaxStep ScoreTiles::getSoftmaxStep(Value logits, Value max, Value sum, Value scratch) {
  Value none = splatRows(-std::numeric_limits<double>::infinity());
  SoftmaxStep step;
  Value stepMax = t.joinGroups(ssa_gpu::RowReduction::max, t.reduce(ssa_gpu::RowReduction::max, logits), scratch);
  step.max = arith::MaximumFOp::create(e.builder, e.loc, max, stepMax);
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
