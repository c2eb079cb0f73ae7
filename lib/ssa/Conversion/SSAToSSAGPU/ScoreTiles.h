//===- ScoreTiles.h - From products to softmax weights ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CONVERSION_SSATOSSAGPU_SCORETILES_H
#define SSA_LIB_CONVERSION_SSATOSSAGPU_SCORETILES_H

#include "Conversion.h"
#include "KeySlots.h"
#include "ScoreRegion.h"
#include "TileEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <functional>

namespace mlir::ssa {

/// One step of a softmax that sees its row in parts.
struct SoftmaxStep {
  Value max, sum; // of the row so far; a maximum is held until one is much greater, since outputs are dear to rescale; the sum of a held step is added up later
  Value rescale;  // what earlier sums are to be multiplied by
  Value weights;  // of this part, relative to `max`
  Value isKept;   // i1: true in a warp none of whose rows has a new maximum; null where that is not known
};

/// Scale, score region, mask and softmax of an attention op on tiles.
class ScoreTiles {
public:
  /// The scale of an op's products, and whether it can join the factor of the exponent, one multiplication less: a positive one changes no order. Where ops have a
  /// softmax together it has to be the same of all.
  static double getScale(SparseAttendOp op);
  static bool canScaleLast(SparseAttendOp op) { return getScale(op) > 0 && op.getScore().empty(); }

  /// `makePositions` is called where a mask needs the positions of the rows: mostly it hides nothing, so they are not kept.
  ScoreTiles(Emitter &e, TileEmitter &t, SparseAttendOp op, int64_t columns, ArrayRef<Value> captured, Value batch, Value heads,
             std::function<Value()> makePositions, const KeySlots &slots, bool scaleComesLast);

  /// What is compared and exponentiated: products where a positive scale comes last, else scores; `-inf` where hidden.
  FailureOr<Value> getLogits(Value products, Value numbers);
  /// The two parts of that without a score region.
  Value scaleProducts(Value products) { return scaleComesLast ? products : e.fmul(products, splat(scale)); }
  Value hide(Value logits, Value numbers);
  /// The same for stretches of keys; `slots.seesRanges()`.
  Value hideOutside(Value logits, const KeySlots::Step &step);
  /// Each row decides for itself whether its maximum is held; `isOnlyStep` where none can be. Where the columns are spread over groups of warps maxima are joined
  /// through `scratch`. `sum` is what every lane has added up of its own columns.
  SoftmaxStep getSoftmaxStep(Value logits, Value max, Value sum, Value scratch, bool isOnlyStep);
  /// What sums of weights relative to `before` are to be multiplied by when `max` is the maximum.
  Value getRescale(Value before, Value max);
  /// What weights are relative to when `max` is the maximum, as a score: for the log-sum-exp.
  Value getNaturalReference(Value max);

  /// The same with weights relative to a power of two at a maximum, so that rescaling rounds nothing; a single key's weight may then be rounded. Of eight weights so
  /// many are polynomials.
  SoftmaxStep getHeldStep(Value logits, Value held, Value scratch, int64_t polynomials);
  /// The sum of the row so far, with that of a held step.
  Value addUp(Value sum, const SoftmaxStep &step);
  Value getHeldRescale(Value before, Value held);
  Value getHeldReference(Value held);

private:
  /// What weights are relative to: in units of log2 it is `factor * max - rest`. Where the product is small enough for it the rest is what
  /// its rounding leaves, so that a weight is one multiply-add away from a logit; else it is 0. All are row tiles.
  struct Reference {
    Value max;     // 0 of a row that has seen nothing: -inf - -inf is NaN
    Value product; // rounded
    Value isNear;  // i1
    Value rest;
  };
  Reference getReference(Value max);
  /// The same of what is held: a weight is `2^((logit - base) * factor - power)`. The power is whole, so that rescaling by it rounds nothing, and the base 0,
  /// where that is small enough to be exact; else the power is 0.
  struct HeldReference {
    Value base, power, isNear;
  };
  HeldReference getHeld(Value held);
  static constexpr double heldGrowth = 8; // weights up to 2^8, which f16 holds as well as those up to 1
  Value getGrowth(Value max, Value held);
  Value outgrows(Value max, Value held) { return compare(arith::CmpFPredicate::OGT, getGrowth(max, held), splatRows(heldGrowth)); }
  Value compare(arith::CmpFPredicate predicate, Value a, Value b);
  Value exp2(Value v);
  Value multiplyAdd(Value a, Value b, Value c);

  FailureOr<Value> applyRegion(Value scores, Value numbers);
  Value splat(double value) { return t.constant(t.accumulatorType(columns, e.builder.getF32Type()), e.builder.getF32FloatAttr(float(value))); }
  Value splatRows(double value) { return t.constant(t.rowsType(e.builder.getF32Type()), e.builder.getF32FloatAttr(float(value))); }

  Emitter &e;
  TileEmitter &t;
  SparseAttendOp op;
  int64_t columns;
  SmallVector<Value> captured;
  Value batch, heads;
  std::function<Value()> makePositions;
  const KeySlots &slots;
  double scale, factor; // of a logit, in units of log2
  bool scaleComesLast;
};

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_SCORETILES_H
