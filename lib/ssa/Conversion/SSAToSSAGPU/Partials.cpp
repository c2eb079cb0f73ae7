//===- Partials.cpp - Outputs over parts of the keys ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Partials.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
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
  using Store = llvm::function_ref<void(Value output, Value lse)>;
  PartsJoiner(RowKernel &k, const PartsOfRow &where, int64_t parts, const Place &at, int64_t width, Store store)
      : k(k), where(where), parts(parts), at(at), width(width), store(store) {}

  void build();

private:
  enum Argument { outputsArg, lsesArg };
  static constexpr int64_t unroll = 16;
  static constexpr double log2e = 1.4426950408889634;

  Value getRow(Value part) { return k.add(where.first, k.mul(part, where.stride)); }
  Value loadLse(Value part) { return k.Emitter::load(k.getArgument(lsesArg), getRow(part)); }
  Value isNone(Value x) { return arith::CmpFOp::create(k.builder, k.loc, arith::CmpFPredicate::OEQ, x, none()); }
  Value none() { return k.f32(-std::numeric_limits<double>::infinity()); }
  SmallVector<Value> forEachStretch(ValueRange inits, llvm::function_ref<SmallVector<Value>(Value begin, int64_t count, ValueRange)> body);
  SmallVector<Value> join(Value begin, int64_t count, Value max, ValueRange carried);

  RowKernel &k;
  const PartsOfRow &where;
  int64_t parts;
  const Place &at;
  int64_t width;
  Store store;
};

} // namespace

SmallVector<Value> PartsJoiner::forEachStretch(ValueRange inits, llvm::function_ref<SmallVector<Value>(Value, int64_t, ValueRange)> body) {
  int64_t whole = parts / unroll * unroll;
  SmallVector<Value> carried(inits);
  if (whole > 0)
    carried = k.loop(k.index(0), k.index(whole), k.index(unroll), carried, [&](Value begin, ValueRange c) { return body(begin, unroll, c); });
  return whole < parts ? body(k.index(whole), parts - whole, carried) : carried;
}

/// Adds the weights and weighted outputs of `count` parts. What a part without keys has in memory is read with the others, so that no load waits for
/// another, and counts as zeros.
SmallVector<Value> PartsJoiner::join(Value begin, int64_t count, Value max, ValueRange carried) {
  SmallVector<Value> weights, outputs;
  Value zero = k.splat(k.f32(0));
  for (int64_t i = 0; i < count; ++i) {
    Value part = k.add(begin, k.index(i)), lse = loadLse(part);
    weights.push_back(math::Exp2Op::create(k.builder, k.loc, k.fmul(k.fsub(lse, max), k.f32(log2e)), arith::FastMathFlags::afn));
    Value output = k.extend(k.loadVectorOnce(k.getArgument(outputsArg), {getRow(part), at.d}, width));
    outputs.push_back(k.select(isNone(lse), zero, output));
  }
  Value sum = carried[0], output = carried[1];
  for (int64_t i = 0; i < count; ++i) {
    sum = k.fadd(sum, weights[i]);
    output = math::FmaOp::create(k.builder, k.loc, outputs[i], k.splat(weights[i]), output);
  }
  return {sum, output};
}

void PartsJoiner::build() {
  Value greatest = forEachStretch({none()}, [&](Value begin, int64_t count, ValueRange carried) -> SmallVector<Value> {
    Value max = carried[0];
    for (int64_t i = 0; i < count; ++i)
      max = arith::MaximumFOp::create(k.builder, k.loc, max, loadLse(k.add(begin, k.index(i))));
    return {max};
  })[0];
  Value isEmpty = isNone(greatest), max = k.select(isEmpty, k.f32(0), greatest), zero = k.splat(k.f32(0));
  SmallVector<Value> sums = forEachStretch({k.f32(0), zero}, [&](Value begin, int64_t count, ValueRange carried) { return join(begin, count, max, carried); });
  Value log = math::LogOp::create(k.builder, k.loc, sums[0]), factor = k.splat(k.fdiv(k.f32(1), k.select(isEmpty, k.f32(1), sums[0])));
  store(k.fmul(sums[1], factor), k.select(isEmpty, none(), k.fadd(max, log)));
}

/// Which column stands at place `i` of a row in the order of `in_quads`.
static Value getColumnInQuads(Emitter &e, Value i) {
  auto part = [&](int64_t bits, int64_t from) { return e.rem(e.div(i, e.index(from)), e.index(bits)); };
  Value quad = part(4, 8), block = part(4, 2);
  return e.add(e.add(e.sub(i, part(32, 1)), e.mul(block, e.index(8))), e.add(e.mul(quad, e.index(2)), part(2, 1)));
}

/// The four lanes of a quad have a pair of each of four blocks of eight columns: they exchange them so that each has all of one, which are those that
/// stand in its place in a row.
static Value exchangeInQuad(RowKernel &k, Value row) {
  constexpr int64_t blocks = 4, pair = 2, lanes = 32;
  SmallVector<Value> columns;
  for (int64_t i = 0; i < blocks * pair; ++i)
    columns.push_back(vector::ExtractOp::create(k.builder, k.loc, row, i));
  for (int64_t bit : {1, 2}) {
    Value isHigh = k.ne(k.both(k.toI32(k.threadId()), k.i32(bit)), k.i32(0));
    for (int64_t i = 0; i < blocks * pair; ++i) {
      if (i / pair & bit)
        continue;
      Value &low = columns[i], &high = columns[i + bit * pair];
      Value other = gpu::ShuffleOp::create(k.builder, k.loc, k.select(isHigh, low, high), bit, lanes, gpu::ShuffleMode::XOR).getShuffleResult();
      low = k.select(isHigh, other, low);
      high = k.select(isHigh, high, other);
    }
  }
  return vector::FromElementsOp::create(k.builder, k.loc, cast<VectorType>(row.getType()), columns);
}

void ssa::joinPartials(HostFunction &host, Operation *op, const PartialOutputs &partials, int64_t parts, Value output, Value lse, ValueRange arguments,
                       llvm::function_ref<PartsOfRow(KernelBuilder &k, const Place &at)> where, const JoinArguments *further,
                       ValueRange furtherArguments) {
  constexpr unsigned outputArg = 2, lseArg = 3;
  int64_t columns = cast<MemRefType>(output.getType()).getDimSize(3);
  int64_t width = host.getVectorWidth(op, columns, {{"output", output}, {"partial outputs", partials.outputs}});
  if (further)
    width = std::min(width, further->getWidth());
  SmallVector<Value> all = {partials.outputs, partials.lses, output, lse};
  llvm::append_range(all, arguments);
  unsigned furtherArg = all.size();
  llvm::append_range(all, furtherArguments);
  RowKernel k(host, op, "ssa_join_partials", all, output, width);
  auto store = [&](const Place &at, Value row, Value rowLse) {
    if (further) {
      auto [joined, joinedLse] = joinRow(k, *further, furtherArg, at, row, rowLse);
      row = joined;
      rowLse = further->isMerge() ? joinedLse : rowLse;
    }
    k.store(row, k.getArgument(outputArg), at);
    k.ifThen(k.eq(at.d, k.index(0)), [&] { k.storeEntry(rowLse, k.getArgument(lseArg), at); });
  };
  // Of less than what lanes exchange, each stores its pairs of columns.
  constexpr int64_t widthOfQuads = 8;
  auto storePairs = [&](const Place &at, Value row, Value rowLse) {
    int64_t atATime = std::min<int64_t>(width, 2);
    k.setWidth(atATime);
    for (int64_t i = 0; i < width; i += atATime) {
      Value columns = vector::ExtractStridedSliceOp::create(k.builder, k.loc, row, i, atATime, 1);
      store({at.b, at.h, at.m, getColumnInQuads(k, k.add(at.d, k.index(i)))}, columns, rowLse);
    }
    k.setWidth(width);
  };
  k.forEachPlaceOfWarps([&](const Place &at, Value exists) {
    PartsJoiner(k, where(k, at), parts, at, width, [&](Value row, Value rowLse) {
      bool isWhole = partials.inQuads && width == widthOfQuads;
      if (isWhole)
        row = exchangeInQuad(k, row);
      k.ifThen(exists, [&] { partials.inQuads && !isWhole ? storePairs(at, row, rowLse) : store(at, row, rowLse); });
    }).build();
  });
  k.finish();
}
