//===- Merge.cpp - merge, mix ---------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Both read each part once and write the result once. Every thread computes the factors of its row for itself: that costs
// less than sharing them. A kernel that makes one of the parts may do so where it stores its rows (`ssa.fused_attend`).
//
//===----------------------------------------------------------------------===//

#include "Merge.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include <limits>

using namespace mlir;
using namespace mlir::ssa;

//===----------------------------------------------------------------------===//
// What the ops take
//===----------------------------------------------------------------------===//

JoinArguments::JoinArguments(HostFunction &host, Operation *op) : JoinArguments(host, op, ArrayRef<unsigned>()) {}
JoinArguments::JoinArguments(HostFunction &host, const AttendJoin &join) : JoinArguments(host, join.op, join.parts) {}

JoinArguments::JoinArguments(HostFunction &host, Operation *op, ArrayRef<unsigned> own) : op(op), own(own) {
  auto add = [&](Value v) {
    arguments.push_back(host.getBuffer(v));
    return unsigned(arguments.size() - 1);
  };
  OperandRange parts = AttendJoin::getParts(op);
  for (unsigned i = 0; i < getNumParts(); ++i) {
    outputs.push_back(isOwn(i) ? 0 : add(parts[2 * i]));
    weights.push_back(hasOwnWeight(i) ? 0 : add(parts[2 * i + 1]));
  }
  if (auto merge = dyn_cast<MergeOp>(op); merge && merge.getSinkLogits())
    sinks = add(merge.getSinkLogits());
}

SmallVector<Value> JoinArguments::getParts(llvm::function_ref<Value(Value)> ofRows, llvm::function_ref<Value(Value)> ofSinks) const {
  SmallVector<Value> parts;
  for (auto [i, argument] : llvm::enumerate(arguments))
    parts.push_back(i == sinks ? ofSinks(argument) : ofRows(argument));
  return parts;
}

void JoinArguments::requireSizes(HostFunction &host, Value output) {
  SmallVector<NamedBuffer> rows = {{"output", output}};
  for (unsigned i = 0; i < getNumParts(); ++i) {
    std::string name = "part " + std::to_string(i), weight = (isMerge() ? "lse of " : "gate of ") + name;
    SmallVector<NamedBuffer> read;
    if (!isOwn(i))
      read.push_back(rows.emplace_back(NamedBuffer{name, arguments[outputs[i]]}));
    if (!hasOwnWeight(i))
      read.push_back({weight, arguments[weights[i]]});
    for (const NamedBuffer &buffer : read)
      for (unsigned dim : {0, 2})
        host.requireSameDim(op, buffer, {own.empty() ? "part 0" : "the attention that joins it", own.empty() ? arguments.front() : output}, dim);
  }
  width = host.getVectorWidth(op, cast<MemRefType>(output.getType()).getDimSize(3), rows);
}

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

static Value exp(Emitter &e, Value x) { return math::ExpOp::create(e.builder, e.loc, x); }

/// `value` as a scalar, or as a tile like `like`.
static Value constantLike(Emitter &e, Value like, double value) {
  auto tile = dyn_cast<ShapedType>(like.getType());
  if (!tile)
    return e.f32(value);
  return arith::ConstantOp::create(e.builder, e.loc, DenseElementsAttr::get(tile, e.builder.getF32FloatAttr(float(value))));
}

static JoinFactors getMergeFactors(Emitter &e, ArrayRef<Value> lses, Value sink) {
  Value like = lses.front(), none = constantLike(e, like, -std::numeric_limits<double>::infinity()), zero = constantLike(e, like, 0);
  auto isNone = [&](Value x) -> Value { return arith::CmpFOp::create(e.builder, e.loc, arith::CmpFPredicate::OEQ, x, none); };
  auto maximum = [&](Value a, Value b) -> Value { return arith::MaximumFOp::create(e.builder, e.loc, a, b); };
  Value max = none;
  for (Value lse : lses)
    max = maximum(max, lse);
  Value reference = sink ? maximum(max, sink) : max;
  // Where nothing is to be weighed, the difference of two infinities would be NaN.
  auto weigh = [&](Value x) { return e.select(isNone(x), zero, exp(e, e.fsub(x, reference))); };
  JoinFactors factors;
  Value sum = zero;
  for (Value lse : lses) {
    factors.parts.push_back(weigh(lse));
    sum = e.fadd(sum, factors.parts.back());
  }
  // All empty: nothing is added, and 0 is written.
  Value one = constantLike(e, like, 1), total = sink ? e.fadd(sum, weigh(sink)) : sum;
  Value share = e.fdiv(one, e.select(isNone(max), one, total));
  for (Value &part : factors.parts)
    part = e.fmul(part, share);
  Value log = math::LogOp::create(e.builder, e.loc, sum);
  factors.lse = e.select(isNone(max), none, e.fadd(reference, log));
  return factors;
}

JoinFactors ssa::getJoinFactors(Emitter &e, Operation *op, ArrayRef<Value> weights, Value sink) {
  if (isa<MergeOp>(op))
    return getMergeFactors(e, weights, sink);
  JoinFactors factors;
  for (Value gate : weights) {
    if (cast<MixOp>(op).getGate() == Gate::sigmoid) {
      Value one = constantLike(e, gate, 1), zero = constantLike(e, gate, 0);
      gate = e.fdiv(one, e.fadd(one, exp(e, e.fsub(zero, gate))));
    }
    factors.parts.push_back(gate);
  }
  return factors;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

std::pair<Value, Value> ssa::joinRow(RowKernel &k, const JoinArguments &join, unsigned first, const Place &at, Value ownOutput, Value ownLse) {
  SmallVector<Value> weights;
  for (unsigned i = 0; i < join.getNumParts(); ++i)
    weights.push_back(join.hasOwnWeight(i) ? ownLse : k.loadEntry(k.getArgument(first + join.getWeight(i)), at));
  Value sink;
  if (std::optional<unsigned> sinks = join.getSinks())
    sink = memref::LoadOp::create(k.builder, k.loc, k.getArgument(first + *sinks), at.h);
  JoinFactors factors = getJoinFactors(k, join.getOp(), weights, sink);
  Value sum, zero = k.splat(k.f32(0));
  for (auto [i, factor] : llvm::enumerate(factors.parts)) {
    Value output = join.isOwn(i) ? ownOutput : k.load(k.getArgument(first + join.getOutput(i)), at);
    Value term = k.fmul(k.splat(factor), output);
    // A part of weight 0 adds nothing to a merge, whatever it holds.
    if (join.isMerge())
      term = k.select(arith::CmpFOp::create(k.builder, k.loc, arith::CmpFPredicate::OEQ, factor, k.f32(0)), zero, term);
    sum = sum ? k.fadd(sum, term) : term;
  }
  return {sum, factors.lse};
}

void ssa::buildJoin(HostFunction &host, const JoinArguments &join, Value output, Value lse) {
  Operation *op = join.getOp();
  SmallVector<Value> arguments = {output};
  if (join.isMerge())
    arguments.push_back(lse);
  size_t first = arguments.size();
  llvm::append_range(arguments, join.get());
  RowKernel k(host, op, join.isMerge() ? "ssa_merge" : "ssa_mix", arguments, output, join.getWidth());
  k.forEachPlace([&](const Place &at) {
    auto [row, joinedLse] = joinRow(k, join, first, at, k.splat(k.f32(0)), k.f32(-std::numeric_limits<double>::infinity()));
    k.store(row, k.getArgument(0), at);
    if (join.isMerge())
      k.ifThen(k.eq(at.d, k.index(0)), [&, value = joinedLse] { k.storeEntry(value, k.getArgument(1), at); });
  });
  k.finish();
}

/// The kernel of an op that no other does.
static void convertJoin(HostFunction &host, Operation *op, Value output, Value lse) {
  JoinArguments join(host, op);
  join.requireSizes(host, output);
  buildJoin(host, join, output, lse);
}

LogicalResult ssa::convertMerge(HostFunction &host, MergeOp op) {
  FailureOr<Value> output = host.allocateResult(op, 0), lse = host.allocateResult(op, 1);
  if (failed(output) || failed(lse))
    return failure();
  convertJoin(host, op, *output, *lse);
  return success();
}

LogicalResult ssa::convertMix(HostFunction &host, MixOp op) {
  FailureOr<Value> output = host.allocateResult(op, 0);
  if (failed(output))
    return failure();
  convertJoin(host, op, *output, Value());
  return success();
}
