//===- Gather.cpp - gather ------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A copy: a thread moves `accessesPerThread` times `width` neighbouring channels of rows that a list names. The numbers
// of a list are not trusted: what does not exist is never read.
//
//===----------------------------------------------------------------------===//

#include "Block.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::ssa;

namespace {

class GatherKernel : public BlockKernel {
public:
  GatherKernel(HostFunction &host, GatherOp op, ValueRange arguments, int64_t width)
      : BlockKernel(host.builder, op, "ssa_gather", threads, arguments), op(op), width(width),
        heads(op.getType().getDimSize(1)), perRow(op.getType().getDimSize(4) / width),
        accesses(op.getType().getDimSize(3) * perRow), tiles(llvm::divideCeil(accesses, threads * accessesPerThread)) {}

  void build(HostFunction &host, Value output);

private:
  void buildItem(Value item);
  void copyAccess(Value b, Value h, Value m, Value access);

  static constexpr int64_t threads = 256, accessesPerThread = 4;
  GatherOp op;
  int64_t width, heads, perRow;
  int64_t accesses; // of one list
  int64_t tiles;    // of one list
};

} // namespace

void GatherKernel::copyAccess(Value b, Value h, Value m, Value access) {
  SelectionType selection = op.getSelection().getType();
  Value slot = div(access, index(perRow)), d = mul(rem(access, index(perRow)), index(width));
  Value g = div(h, index(heads / selection.getHeads()));
  Value number = load(getArgument(1), {b, g, m, div(slot, index(selection.getKeyBlock()))});
  Value n = add(mul(toIndex(number), index(selection.getKeyBlock())), rem(slot, index(selection.getKeyBlock())));
  Value exists = both(le(i32(0), number), lt(n, dim(getArgument(0), 2)));
  auto type = VectorType::get({width}, op.getType().getElementType());
  Value row = ifElse(
      exists, type,
      [&] {
        Value keyHead = div(h, index(heads / op.getInput().getType().getDimSize(1)));
        return SmallVector<Value>{loadVector(getArgument(0), {b, keyHead, n, d}, width)};
      },
      [&] {
        Value zero = arith::ConstantOp::create(builder, loc, cast<TypedAttr>(builder.getZeroAttr(type)));
        return SmallVector<Value>{zero};
      })[0];
  storeVector(row, getArgument(2), {b, h, m, slot, d});
}

/// An item is a stretch of the accesses of one list.
void GatherKernel::buildItem(Value item) {
  Value lists = dim(getArgument(1), 2);
  Value tile = rem(item, index(tiles)), row = div(item, index(tiles));
  Value m = rem(row, lists), head = div(row, lists), b = div(head, index(heads)), h = rem(head, index(heads));
  for (int64_t i = 0; i < accessesPerThread && i * threads < accesses; ++i) {
    Value access = add(mul(tile, index(threads * accessesPerThread)), add(threadId(), index(i * threads)));
    ifThen(lt(access, index(accesses)), [&] { copyAccess(b, h, m, access); });
  }
}

void GatherKernel::build(HostFunction &host, Value output) {
  Emitter e(host.builder, op.getLoc());
  Value lists = e.mul(e.mul(e.dim(output, 0), e.index(heads)), e.dim(output, 2));
  forEachItem(e.mul(lists, e.index(tiles)), [&](Value item) { buildItem(item); });
  finish();
}

LogicalResult ssa::convertGather(HostFunction &host, GatherOp op) {
  Value input = host.getBuffer(op.getInput()), selection = host.getBuffer(op.getSelection());
  FailureOr<Value> output = host.allocateResult(op, 0);
  if (failed(output))
    return failure();
  host.requireSameDim(op, {"selection", selection}, {"input", input}, 0);
  int64_t width = host.getVectorWidth(op, op.getType().getDimSize(4), {{"input", input}, {"output", *output}});
  if (op.getType().getDimSize(3) > 0)
    GatherKernel(host, op, {input, selection, *output}, width).build(host, *output);
  return success();
}
