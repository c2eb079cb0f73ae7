//===- AttendStore.cpp - What becomes of the rows of a softmax ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Rows are divided by their sums and stored or, where they are part of a `merge` or `mix` that the kernel makes, added to those of other parts first.
//
//===----------------------------------------------------------------------===//

#include "AttendKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::ssa;

void AttendKernel::store(const Softmax &softmax, ScoreTiles &scores, State state) {
  if (plan.groups > 1 && plan.hasRoles()) // the sums of the last item have been read; between items without keys nothing else waits
    t.barrier();
  state.sum = t.joinGroups(ssa_gpu::RowReduction::sum, t.joinLanes(ssa_gpu::RowReduction::sum, state.sum), getScratch(1));
  storePart(softmax, scores, state, 0);
}

/// The parts whose weights count where a softmax ends: its own and, with the last one, those that come from elsewhere.
SmallVector<unsigned> AttendKernel::getPartsOf(const Softmax &softmax) const {
  SmallVector<unsigned> parts;
  for (unsigned i = 0; i < plan.join->getNumParts(); ++i)
    if (plan.join->isOwn(i) ? i == plan.join->getOwn(softmax.number) : softmax.number == getLastSoftmax())
      parts.push_back(i);
  return parts;
}

AttendKernel::Joined AttendKernel::join(const Softmax &softmax, Value &lse, Value firstColumn) {
  Joined joined;
  if (!plan.join)
    return joined;
  const Item &item = softmax.item;
  Type f32 = k.builder.getF32Type();
  SmallVector<Value> weights, others;
  SmallVector<unsigned> parts = getPartsOf(softmax);
  for (unsigned i : parts) {
    if (plan.join->hasOwnWeight(i)) {
      weights.push_back(lse);
      continue;
    }
    Value entries = joinedBuffers[plan.join->getWeight(i)];
    weights.push_back(t.mapRows(f32, [&](Value row) {
      Row r = getRow(item, row); // of rows that are not there, what the first has
      auto orFirst = [&](Value index) { return k.select(r.exists, index, k.index(0)); };
      return k.load(entries, {orFirst(item.batch), orFirst(k.toIndex(r.head)), orFirst(r.m)});
    }));
  }
  Value sinks;
  if (std::optional<unsigned> number = plan.join->getSinks())
    sinks = t.mapRows(f32, [&](Value row) { return k.load(joinedBuffers[*number], k.toIndex(getRow(item, row).head)); });
  JoinFactors factors = getJoinFactors(k, plan.join->getOp(), weights, sinks);
  for (auto [i, factor] : llvm::zip_equal(parts, factors.parts))
    plan.join->isOwn(i) ? void(joined.factor = factor) : others.push_back(factor);
  if (plan.join->isMerge())
    lse = factors.lse;
  joined.others = getOthers(softmax, others, firstColumn);
  return joined;
}

/// The rows of other parts from a column on, with these factors, and those that softmaxes before have left in the output.
AddedRows AttendKernel::getOthers(const Softmax &softmax, ArrayRef<Value> factors, Value firstColumn) {
  AddedRows others;
  if (!plan.join)
    return others;
  SmallVector<BufferView> views;
  auto add = [&](const BufferView &view, Value factor) {
    views.push_back(view);
    others.sources.push_back(view.buffer);
    others.factors.push_back(factor);
  };
  if (softmax.number > 0)
    add(outputView, t.constant(t.rowsType(k.builder.getF32Type()), k.builder.getF32FloatAttr(1)));
  for (unsigned i : getPartsOf(softmax))
    if (!plan.join->isOwn(i))
      add(BufferView(k, joinedBuffers[plan.join->getOutput(i)]), factors[views.size() - (softmax.number > 0)]);
  others.begin = [this, item = softmax.item, views, firstColumn](unsigned source, Value row) { return k.add(placeOf(item, views[source], row).begin, firstColumn); };
  others.width = plan.join->getWidth();
  others.skipZeros = plan.join->isMerge();
  return others;
}

/// Rows times their factors; in a merge a row of factor 0 is 0, whatever it holds.
Value AttendKernel::scaleRows(Value tile, Value factors) {
  int64_t columns = cast<RankedTensorType>(tile.getType()).getDimSize(1);
  Value scaled = k.fmul(tile, t.broadcast(factors, columns));
  if (!plan.join || !plan.join->isMerge())
    return scaled;
  Value zero = t.constant(cast<RankedTensorType>(factors.getType()), k.builder.getF32FloatAttr(0));
  Value isZero = arith::CmpFOp::create(k.builder, k.loc, arith::CmpFPredicate::OEQ, factors, zero);
  Value zeros = t.constant(cast<RankedTensorType>(tile.getType()), k.builder.getF32FloatAttr(0));
  return k.select(t.broadcast(isZero, columns), zeros, scaled);
}

void AttendKernel::storePart(const Softmax &softmax, ScoreTiles &scores, State state, unsigned group) {
  const Item &item = softmax.item;
  Type f32 = k.builder.getF32Type();
  State initial = getInitialState();
  Value reference = plan.addsPartials ? addPartials(item, state, scores.getNaturalReference(state.max)) : Value();
  // An empty row has sum 0 and is 0 / 1.
  Value one = t.constant(t.rowsType(f32), k.builder.getF32FloatAttr(1));
  Value isEmpty = arith::CmpFOp::create(k.builder, k.loc, arith::CmpFPredicate::OEQ, state.sum, initial.sum);
  Value factor = k.fdiv(one, k.select(isEmpty, one, state.sum));
  Value log = math::LogOp::create(k.builder, k.loc, state.sum, arith::FastMathFlags::afn); // off by 2^-22
  if (!reference)
    reference = plan.takesTurns ? scores.getHeldReference(state.max) : scores.getNaturalReference(state.max);
  Value lse = k.select(isEmpty, initial.max, k.fadd(reference, log));
  int64_t columns = plan.takesTurns ? getColumnsOfGroup() : plan.valueDim;
  Joined joined = join(softmax, lse, k.index(group * columns));
  factor = joined.factor ? k.fmul(factor, joined.factor) : factor;
  t.storeRows(scaleRows(state.output, factor), outputView.buffer, columns, plan.storeWidth(), [&](Value row) {
    RowPlace place = resultPlaceOf(item, outputView, row);
    return RowPlace{k.add(place.begin, k.index(group * columns)), place.exists};
  }, joined.others, /*share=*/0, plan.partialsInQuads);
  if (group > 0 || softmax.number < getLastSoftmax())
    return;
  t.storeEntries(lse, lseView.buffer, [&](Value row) { return resultPlaceOf(item, lseView, row); });
}
