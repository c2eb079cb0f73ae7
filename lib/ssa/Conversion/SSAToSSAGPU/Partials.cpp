//===- Partials.cpp - Outputs over parts of the keys ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Partials.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <limits>

using namespace mlir;
using namespace mlir::ssa;

PartialOutputs ssa::allocatePartials(HostFunction &host, Location loc, Value rows, int64_t columns, Type elementType) {
  Value outputs = host.allocateWorkspace(loc, {rows, host.builder.getIndexAttr(columns)}, elementType);
  return {outputs, host.allocateWorkspace(loc, {rows}, host.builder.getF32Type())};
}

namespace {

/// Joins the parts of one row; loads of `unroll` parts are under way at a time.
class PartsJoiner {
public:
  PartsJoiner(RowKernel &k, const PartsOfRow &where, int64_t parts, const Place &at, int64_t width)
      : k(k), where(where), parts(parts), at(at), width(width) {}

  void build();

private:
  enum Argument { outputsArg, lsesArg, outputArg, lseArg };
  static constexpr int64_t unroll = 16;
  static constexpr double log2e = 1.4426950408889634;

  Value getRow(Value part) { return k.add(where.first, k.mul(part, where.stride)); }
  Value loadLse(Value part) { return k.Emitter::load(k.getArgument(lsesArg), getRow(part)); }
  Value isNone(Value x) { return arith::CmpFOp::create(k.builder, k.loc, arith::CmpFPredicate::OEQ, x, none()); }
  Value none() { return k.f32(-std::numeric_limits<double>::infinity()); }
  SmallVector<Value> forEachStretch(ValueRange inits, llvm::function_ref<SmallVector<Value>(Value begin, int64_t count, ValueRange)> body);
  SmallVector<Value> join(Value begin, int64_t count, Value max, Value last, ValueRange carried);

  RowKernel &k;
  const PartsOfRow &where;
  int64_t parts;
  const Place &at;
  int64_t width;
};

} // namespace

SmallVector<Value> PartsJoiner::forEachStretch(ValueRange inits, llvm::function_ref<SmallVector<Value>(Value, int64_t, ValueRange)> body) {
  int64_t whole = parts / unroll * unroll;
  SmallVector<Value> carried(inits);
  if (whole > 0)
    carried = k.loop(k.index(0), k.index(whole), k.index(unroll), carried, [&](Value begin, ValueRange c) { return body(begin, unroll, c); });
  return whole < parts ? body(k.index(whole), parts - whole, carried) : carried;
}

/// Adds the weights and weighted outputs of `count` parts. What `last` holds stands in for parts that hold nothing: it is there to be read.
SmallVector<Value> PartsJoiner::join(Value begin, int64_t count, Value max, Value last, ValueRange carried) {
  SmallVector<Value> weights, outputs;
  for (int64_t i = 0; i < count; ++i) {
    Value part = k.add(begin, k.index(i)), lse = loadLse(part), empty = isNone(lse);
    Value exponent = k.fmul(k.fsub(lse, max), k.f32(log2e));
    Value weight = math::Exp2Op::create(k.builder, k.loc, exponent, arith::FastMathFlags::afn);
    weights.push_back(k.select(empty, k.f32(0), weight));
    Value row = getRow(k.select(empty, last, part));
    outputs.push_back(k.extend(k.loadVector(k.getArgument(outputsArg), {row, at.d}, width)));
  }
  Value sum = carried[0], output = carried[1];
  for (int64_t i = 0; i < count; ++i) {
    sum = k.fadd(sum, weights[i]);
    output = math::FmaOp::create(k.builder, k.loc, outputs[i], k.splat(weights[i]), output);
  }
  return {sum, output};
}

void PartsJoiner::build() {
  // The greatest lse, and the last part that has one.
  SmallVector<Value> found = forEachStretch({none(), k.index(0)}, [&](Value begin, int64_t count, ValueRange carried) -> SmallVector<Value> {
    Value max = carried[0], last = carried[1];
    for (int64_t i = 0; i < count; ++i) {
      Value part = k.add(begin, k.index(i)), lse = loadLse(part);
      max = arith::MaximumFOp::create(k.builder, k.loc, max, lse);
      last = k.select(isNone(lse), last, part);
    }
    return {max, last};
  });
  Value zero = k.splat(k.f32(0));
  auto store = [&](Value output, Value lse) {
    k.store(output, k.getArgument(outputArg), at);
    k.ifThen(k.eq(at.d, k.index(0)), [&] { k.storeEntry(lse, k.getArgument(lseArg), at); });
  };
  k.ifThenElse(isNone(found[0]), [&] { store(zero, none()); }, [&] {
    SmallVector<Value> sums = forEachStretch({k.f32(0), zero}, [&](Value begin, int64_t count, ValueRange carried) {
      return join(begin, count, found[0], found[1], carried);
    });
    Value log = math::LogOp::create(k.builder, k.loc, sums[0]);
    store(k.fmul(sums[1], k.splat(k.fdiv(k.f32(1), sums[0]))), k.fadd(found[0], log));
  });
}

void ssa::joinPartials(HostFunction &host, Operation *op, const PartialOutputs &partials, int64_t parts, Value output, Value lse, ValueRange arguments,
                       llvm::function_ref<PartsOfRow(KernelBuilder &k, const Place &at)> where) {
  int64_t columns = cast<MemRefType>(output.getType()).getDimSize(3);
  int64_t width = host.getVectorWidth(op, columns, {{"output", output}, {"partial outputs", partials.outputs}});
  SmallVector<Value> all = {partials.outputs, partials.lses, output, lse};
  llvm::append_range(all, arguments);
  RowKernel k(host, op, "ssa_join_partials", all, output, width);
  k.forEachPlace([&](const Place &at) { PartsJoiner(k, where(k, at), parts, at, width).build(); });
  k.finish();
}
