//===- Merge.cpp - merge, mix ---------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Both read each part once and write the result once. Every thread computes the weights of its row for itself: that costs
// less than sharing them.
//
//===----------------------------------------------------------------------===//

#include "RowKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include <limits>

using namespace mlir;
using namespace mlir::ssa;

/// The pairs of rows and entries of an op, as arguments 0, 1, .. of its kernel; all have the size of the first.
static SmallVector<Value> getParts(HostFunction &host, Operation *op, OperandRange parts, StringRef second) {
  SmallVector<Value> arguments;
  for (Value part : parts)
    arguments.push_back(host.getBuffer(part));
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    std::string name = "part " + std::to_string(i / 2);
    NamedBuffer named{i % 2 ? (second + " of " + name).str() : name, argument};
    for (unsigned dim : {0, 2})
      if (i > 0)
        host.requireSameDim(op, named, {"part 0", arguments.front()}, dim);
  }
  return arguments;
}

/// The rows among `parts`, and `output`.
static SmallVector<NamedBuffer> getRows(ArrayRef<Value> parts, Value output) {
  SmallVector<NamedBuffer> rows = {{"output", output}};
  for (size_t i = 0; i < parts.size(); i += 2)
    rows.push_back({"part " + std::to_string(i / 2), parts[i]});
  return rows;
}

namespace {
/// The weights of a row of `merge`.
struct MergeWeights {
  SmallVector<Value> parts; // of each part, not normalized
  Value total;              // with the sink
  Value lse;                // without it
};
} // namespace

static Value exp(Emitter &e, Value x) { return math::ExpOp::create(e.builder, e.loc, x); }

static MergeWeights getMergeWeights(Emitter &k, ArrayRef<Value> lses, Value sink) {
  Value none = k.f32(-std::numeric_limits<double>::infinity()), zero = k.f32(0);
  auto isNone = [&](Value x) -> Value { return arith::CmpFOp::create(k.builder, k.loc, arith::CmpFPredicate::OEQ, x, none); };
  auto maximum = [&](Value a, Value b) -> Value { return arith::MaximumFOp::create(k.builder, k.loc, a, b); };
  Value max = none;
  for (Value lse : lses)
    max = maximum(max, lse);
  Value reference = sink ? maximum(max, sink) : max;
  // Where nothing is to be weighed, the difference of two infinities would be NaN.
  auto weigh = [&](Value x) { return k.select(isNone(x), zero, exp(k, k.fsub(x, reference))); };
  MergeWeights weights;
  Value sum = zero;
  for (Value lse : lses) {
    weights.parts.push_back(weigh(lse));
    sum = k.fadd(sum, weights.parts.back());
  }
  weights.total = sink ? k.fadd(sum, weigh(sink)) : sum;
  Value log = math::LogOp::create(k.builder, k.loc, sum);
  weights.lse = k.select(isNone(max), none, k.fadd(reference, log));
  // All empty: nothing is added, and 0 / 1 is written.
  weights.total = k.select(isNone(max), k.f32(1), weights.total);
  return weights;
}

LogicalResult ssa::convertMerge(HostFunction &host, MergeOp op) {
  FailureOr<Value> output = host.allocateResult(op, 0), lse = host.allocateResult(op, 1);
  if (failed(output) || failed(lse))
    return failure();
  SmallVector<Value> arguments = getParts(host, op, op.getParts(), "lse");
  unsigned numParts = arguments.size() / 2;
  int64_t width = host.getVectorWidth(op, op.getOutput().getType().getDimSize(3), getRows(arguments, *output));
  arguments.append({*output, *lse});
  if (op.getSinkLogits())
    arguments.push_back(host.getBuffer(op.getSinkLogits()));

  RowKernel k(host, op, "ssa_merge", arguments, *output, width);
  k.forEachPlace([&](const Place &at) {
    SmallVector<Value> lses;
    for (unsigned i = 0; i < numParts; ++i)
      lses.push_back(k.loadEntry(k.getArgument(2 * i + 1), at));
    Value sink;
    if (op.getSinkLogits())
      sink = memref::LoadOp::create(k.builder, k.loc, k.getArgument(2 * numParts + 2), at.h);
    MergeWeights weights = getMergeWeights(k, lses, sink);
    Value zero = k.splat(k.f32(0)), sum = zero;
    for (unsigned i = 0; i < numParts; ++i) {
      // A part of weight 0 adds nothing, whatever it holds.
      Value isZero = arith::CmpFOp::create(k.builder, k.loc, arith::CmpFPredicate::OEQ, weights.parts[i], k.f32(0));
      Value term = k.fmul(k.splat(weights.parts[i]), k.load(k.getArgument(2 * i), at));
      sum = k.fadd(sum, k.select(isZero, zero, term));
    }
    k.store(k.fdiv(sum, k.splat(weights.total)), k.getArgument(2 * numParts), at);
    k.ifThen(k.eq(at.d, k.index(0)), [&] { k.storeEntry(weights.lse, k.getArgument(2 * numParts + 1), at); });
  });
  k.finish();
  return success();
}

LogicalResult ssa::convertMix(HostFunction &host, MixOp op) {
  FailureOr<Value> output = host.allocateResult(op, 0);
  if (failed(output))
    return failure();
  SmallVector<Value> arguments = getParts(host, op, op.getParts(), "gate");
  unsigned numParts = arguments.size() / 2;
  int64_t width = host.getVectorWidth(op, op.getType().getDimSize(3), getRows(arguments, *output));
  arguments.push_back(*output);

  RowKernel k(host, op, "ssa_mix", arguments, *output, width);
  k.forEachPlace([&](const Place &at) {
    Value sum;
    for (unsigned i = 0; i < numParts; ++i) {
      Value gate = k.loadEntry(k.getArgument(2 * i + 1), at);
      if (op.getGate() == Gate::sigmoid)
        gate = k.fdiv(k.f32(1), k.fadd(k.f32(1), exp(k, k.fsub(k.f32(0), gate))));
      Value term = k.fmul(k.splat(gate), k.load(k.getArgument(2 * i), at));
      sum = sum ? k.fadd(sum, term) : term;
    }
    k.store(sum, k.getArgument(2 * numParts), at);
  });
  k.finish();
  return success();
}
