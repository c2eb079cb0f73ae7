//===- ScoreTiles.cpp - From products to softmax weights ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ScoreTiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "ssa/Target/MathAttrs.h"
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
      return t.broadcast(makePositions(), columns);
    default:
      return numbers;
    }
  });
}

double ScoreTiles::getScale(SparseAttendOp op) {
  std::optional<APFloat> written = op.getScale();
  return written ? double(float(written->convertToDouble())) : 1 / std::sqrt(double(op.getQuery().getType().getDimSize(3)));
}

ScoreTiles::ScoreTiles(Emitter &e, TileEmitter &t, SparseAttendOp op, int64_t columns, ArrayRef<Value> captured, Value batch, Value heads,
                       std::function<Value()> makePositions, const KeySlots &slots, bool scaleComesLast)
    : e(e), t(t), op(op), columns(columns), captured(captured), batch(batch), heads(heads), makePositions(std::move(makePositions)), slots(slots),
      scale(getScale(op)), factor(scaleComesLast ? scale * log2e : log2e), scaleComesLast(scaleComesLast) {}

Value ScoreTiles::hide(Value logits, Value numbers) {
  Value visible = slots.isVisible(e, numbers, t.broadcast(makePositions(), columns));
  return e.select(visible, logits, splat(-std::numeric_limits<double>::infinity()));
}

Value ScoreTiles::hideOutside(Value logits, const KeySlots::Step &step) {
  Type i32 = e.builder.getI32Type();
  MaskAttr mask = op.getMask().value_or(nullptr);
  BlocksAttr blocks = op.getBlocksOrTokens();
  int64_t window = mask ? mask.getWindow() : 0;
  bool causal = mask && mask.getCausal();
  auto rows = [&](Value scalar) { return t.mapRows(i32, [&](Value) { return scalar; }); };
  auto constant = [&](int64_t c) { return t.constant(t.rowsType(i32), e.builder.getI32IntegerAttr(c)); };
  Value position = causal || window ? makePositions() : Value(), seen;
  if (causal) { // whose last token is not after the query
    seen = e.sub(position, constant(blocks.getOffset() + blocks.getSize() - 1));
    if (blocks.getStride() > 1)
      seen = e.select(e.lt(seen, constant(0)), constant(-1), e.div(seen, constant(blocks.getStride())));
  } else if (window) {
    seen = e.add(position, constant(window - 1));
  }
  // Bounds of each row as columns of each stretch: no number of a column is needed, nor held.
  SmallVector<Value> last, first, below;
  for (auto [i, stretch] : llvm::enumerate(step)) {
    Value begin = e.i32(i * slots.getLength()), shift = rows(e.sub(stretch.base, begin));
    last.push_back(rows(e.add(begin, e.sub(stretch.count, e.i32(1)))));
    if (seen)
      last.back() = e.min(last.back(), e.sub(seen, shift));
    if (window)
      first.push_back(e.sub(e.sub(slots.getWindowEnd(e, position), constant(window - 1)), shift));
    if (window && mask.getSink())
      below.push_back(e.sub(constant(mask.getSink()), shift));
  }
  return ssa_gpu::HideColumnsOp::create(e.builder, e.loc, logits.getType(), logits, last, first, below);
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

Value ScoreTiles::exp2(Value v) { return math::Exp2Op::create(e.builder, e.loc, v, arith::FastMathFlags::afn); }
Value ScoreTiles::multiplyAdd(Value a, Value b, Value c) { return math::FmaOp::create(e.builder, e.loc, a, b, c); }

ScoreTiles::Reference ScoreTiles::getReference(Value max) {
  // Then the rest is less than 1/16: weights are at most a little more than those of growth.
  constexpr double nearest = 1 << 20;
  Reference reference;
  Value isNone = arith::CmpFOp::create(e.builder, e.loc, arith::CmpFPredicate::OEQ, max, splatRows(-std::numeric_limits<double>::infinity()));
  reference.max = e.select(isNone, splatRows(0), max);
  reference.product = e.fmul(reference.max, splatRows(factor));
  Value size = math::AbsFOp::create(e.builder, e.loc, reference.product);
  reference.isNear = arith::CmpFOp::create(e.builder, e.loc, arith::CmpFPredicate::OLE, size, splatRows(nearest));
  Value minus = arith::NegFOp::create(e.builder, e.loc, reference.product);
  reference.rest = e.select(reference.isNear, multiplyAdd(reference.max, splatRows(factor), minus), splatRows(0));
  return reference;
}

Value ScoreTiles::getRescale(Value before, Value max) {
  Reference now = getReference(max);
  return exp2(multiplyAdd(e.fsub(before, now.max), splatRows(factor), e.fsub(now.rest, getReference(before).rest)));
}

Value ScoreTiles::compare(arith::CmpFPredicate predicate, Value a, Value b) { return arith::CmpFOp::create(e.builder, e.loc, predicate, a, b); }

/// In units of log2. NaN, which is in the sum anyway, outgrows nothing, and neither does a row that has seen nothing yet.
Value ScoreTiles::getGrowth(Value max, Value held) { return e.fmul(e.fsub(max, held), splatRows(factor)); }

SoftmaxStep ScoreTiles::getSoftmaxStep(Value logits, Value max, Value sum, Value scratch, bool isOnlyStep) {
  using ssa_gpu::RowReduction;
  Value ofLanes = t.reduceLanes(RowReduction::max, logits);
  // A weight is one multiply-add away from a logit; where rounding would matter the difference to the maximum comes first: it is exact, however large the logits are.
  auto renew = [&] {
    Value stepMax = t.joinGroups(RowReduction::max, t.joinLanes(RowReduction::max, ofLanes), scratch);
    Value held = e.select(outgrows(stepMax, max), stepMax, max), rescale = getRescale(max, held);
    Reference now = getReference(held);
    Value areNear = t.warpAll(now.isNear), minus = arith::NegFOp::create(e.builder, e.loc, now.product);
    Value differences = t.changeRows(ssa_gpu::RowChange::subtract, logits, now.max, areNear);
    return SmallVector<Value>{differences, e.select(areNear, minus, now.rest), held, rescale, e.fmul(sum, rescale)};
  };
  SmallVector<Value> made;
  Value isKept;
  if (scratch || isOnlyStep) {
    made = renew();
  } else { // mostly no lane has to hear of the maxima of others
    Reference held = getReference(max);
    Value stays = compare(arith::CmpFPredicate::ULE, getGrowth(ofLanes, max), splatRows(heldGrowth)), minus = arith::NegFOp::create(e.builder, e.loc, held.product);
    isKept = t.warpAll(e.both(stays, held.isNear));
    Type rows = max.getType();
    made = e.ifElse(isKept, {logits.getType(), rows, rows, rows, rows}, [&] { return SmallVector<Value>{logits, minus, max, splatRows(1), sum}; }, renew);
  }
  Value weights = exp2(multiplyAdd(made[0], splat(factor), t.broadcast(made[1], columns)));
  return {made[2], e.fadd(made[4], t.reduceLanes(RowReduction::sum, weights)), made[3], weights, isKept};
}

ScoreTiles::HeldReference ScoreTiles::getHeld(Value held) {
  constexpr double nearest = 1 << 20;
  Value zero = splatRows(0), isNone = compare(arith::CmpFPredicate::OEQ, held, splatRows(-std::numeric_limits<double>::infinity()));
  Value finite = e.select(isNone, zero, held), product = e.fmul(finite, splatRows(factor));
  Value isNear = compare(arith::CmpFPredicate::OLE, math::AbsFOp::create(e.builder, e.loc, product), splatRows(nearest));
  Value whole = math::CeilOp::create(e.builder, e.loc, product);
  return {e.select(isNear, zero, finite), e.select(isNear, whole, zero), isNear};
}

Value ScoreTiles::getHeldRescale(Value before, Value held) {
  Value none = splatRows(-std::numeric_limits<double>::infinity()), one = splatRows(1);
  Value rescales = e.both(compare(arith::CmpFPredicate::ONE, before, held), compare(arith::CmpFPredicate::ONE, before, none)); // else sums stay or are 0
  HeldReference old = getHeld(before), now = getHeld(held);
  return e.select(rescales, exp2(multiplyAdd(e.fsub(old.base, now.base), splatRows(factor), e.fsub(old.power, now.power))), one);
}

SoftmaxStep ScoreTiles::getHeldStep(Value logits, Value held, Value scratch, int64_t polynomials) {
  SoftmaxStep step;
  Value stepMax = t.joinGroups(ssa_gpu::RowReduction::max, t.reduce(ssa_gpu::RowReduction::max, logits), scratch);
  step.max = e.select(outgrows(stepMax, held), stepMax, held);
  step.rescale = getHeldRescale(held, step.max);
  HeldReference now = getHeld(step.max);
  Value minus = t.broadcast(arith::NegFOp::create(e.builder, e.loc, now.power), columns);
  // The same bits either way for a row that is near.
  Value differences = t.changeRows(ssa_gpu::RowChange::subtract, logits, now.base, t.warpAll(now.isNear));
  step.weights = exp2(multiplyAdd(differences, splat(factor), minus));
  if (polynomials > 0)
    step.weights.getDefiningOp()->setAttr(polynomialsAttrName, e.builder.getI64IntegerAttr(polynomials));
  return step;
}

Value ScoreTiles::addUp(Value sum, const SoftmaxStep &step) {
  return e.fadd(e.fmul(sum, step.rescale), t.reduce(ssa_gpu::RowReduction::sum, step.weights));
}

Value ScoreTiles::getHeldReference(Value held) {
  HeldReference reference = getHeld(held);
  Value natural = scaleComesLast ? e.fmul(reference.base, splatRows(scale)) : reference.base;
  return e.fadd(natural, e.fmul(reference.power, splatRows(1 / log2e)));
}

Value ScoreTiles::getNaturalReference(Value max) {
  Value natural = scaleComesLast ? e.fmul(max, splatRows(scale)) : max;
  return e.fsub(natural, e.fmul(getReference(max).rest, splatRows(1 / log2e)));
}
