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

/// Joins the parts of one row. The loops are left to `ptxas` to unroll.
class PartsJoiner {
public:
  using Store = llvm::function_ref<void(Value output, Value lse)>;
  PartsJoiner(RowKernel &k, const PartsOfRow &where, int64_t parts, const Place &at, int64_t width, Store store)
      : k(k), where(where), parts(parts), at(at), width(width), store(store) {}

  void build();

private:
  enum Argument { outputsArg, lsesArg };
  static constexpr double log2e = 1.4426950408889634;

  Value getRow(Value part) { return k.add(where.first, k.mul(part, where.stride)); }
  Value loadLse(Value part) { return k.Emitter::load(k.getArgument(lsesArg), getRow(part)); }
  Value isNone(Value x) { return arith::CmpFOp::create(k.builder, k.loc, arith::CmpFPredicate::OEQ, x, none()); }
  Value none() { return k.f32(-std::numeric_limits<double>::infinity()); }
  SmallVector<Value> forEachPart(ValueRange inits, llvm::function_ref<SmallVector<Value>(Value part, ValueRange carried)> body) {
    return k.loop(k.index(0), k.index(parts), k.index(1), inits, body);
  }
  Value loadOutput(Value part, Value isNone);
  SmallVector<Value> join(Value part, Value max, ValueRange carried);

  RowKernel &k;
  const PartsOfRow &where;
  int64_t parts;
  const Place &at;
  int64_t width;
  Store store;
};

} // namespace

/// What a part without keys has in memory is read like that of others, so that no load waits for another, and counts as zeros: whole words, as elements
/// are more.
Value PartsJoiner::loadOutput(Value part, Value isNone) {
  constexpr int64_t wordBits = 32;
  Value row = k.loadVectorOnce(k.getArgument(outputsArg), {getRow(part), at.d}, width);
  auto type = cast<VectorType>(row.getType());
  int64_t bits = width * type.getElementTypeBitWidth();
  if (type.getElementTypeBitWidth() >= wordBits || bits % wordBits != 0)
    return k.select(isNone, k.splat(k.f32(0)), k.extend(row));
  Value words = vector::BitCastOp::create(k.builder, k.loc, VectorType::get({bits / wordBits}, k.builder.getI32Type()), row);
  words = k.select(isNone, k.broadcast(k.i32(0), bits / wordBits), words);
  return k.extend(vector::BitCastOp::create(k.builder, k.loc, type, words));
}

/// Adds the weight and the weighted output of a part.
SmallVector<Value> PartsJoiner::join(Value part, Value max, ValueRange carried) {
  Value lse = loadLse(part), weight = math::Exp2Op::create(k.builder, k.loc, k.fmul(k.fsub(lse, max), k.f32(log2e)), arith::FastMathFlags::afn);
  Value sum = k.fadd(carried[0], weight), output = loadOutput(part, isNone(lse));
  return {sum, math::FmaOp::create(k.builder, k.loc, output, k.splat(weight), carried[1])};
}

void PartsJoiner::build() {
  Value greatest = forEachPart({none()}, [&](Value part, ValueRange carried) -> SmallVector<Value> {
    return {arith::MaximumFOp::create(k.builder, k.loc, carried[0], loadLse(part))};
  })[0];
  Value isEmpty = isNone(greatest), max = k.select(isEmpty, k.f32(0), greatest), zero = k.splat(k.f32(0));
  SmallVector<Value> sums = forEachPart({k.f32(0), zero}, [&](Value part, ValueRange carried) { return join(part, max, carried); });
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
