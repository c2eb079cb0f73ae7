//===- RowKernel.cpp - Kernels that stream rows ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "RowKernel.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::ssa;

RowKernel::RowKernel(HostFunction &host, Operation *op, StringRef name, ValueRange arguments, Value output, int64_t width)
    : KernelBuilder(host.builder, op, name, threads, arguments), host(host), output(output),
      outputArgument(llvm::find(arguments, output) - arguments.begin()), width(width) {}

/// Calls `body` with which place of a head a thread is at, how many there are, and what makes a place of a number.
void RowKernel::forEachPlaceOrLast(llvm::function_ref<void(Value place, Value perHead, llvm::function_ref<Place(Value place)> decode)> body) {
  auto type = cast<MemRefType>(output.getType());
  int64_t perRow = type.getDimSize(3) / width;
  // An item is a stretch of the (row, vector) pairs of one head.
  Emitter e(host.builder, loc);
  Value tilesPerHead = e.ceilDiv(e.mul(e.dim(output, 2), e.index(perRow)), e.index(threads));
  forEachItem(e.mul(e.mul(e.dim(output, 0), e.dim(output, 1)), tilesPerHead), [&](Value item) {
    Value perHead = mul(dim(getArgument(outputArgument), 2), index(perRow));
    Value tiles = ceilDiv(perHead, index(threads)), heads = dim(getArgument(outputArgument), 1);
    Value place = add(mul(split(item, tiles), index(threads)), threadId());
    body(place, perHead, [&](Value place) -> Place {
      Value batch = item, head = split(batch, heads);
      return {batch, head, div(place, index(perRow)), mul(rem(place, index(perRow)), index(width))};
    });
  });
}

void RowKernel::forEachPlace(llvm::function_ref<void(const Place &)> body) {
  forEachPlaceOrLast([&](Value place, Value perHead, llvm::function_ref<Place(Value)> decode) { ifThen(lt(place, perHead), [&] { body(decode(place)); }); });
}

void RowKernel::forEachPlaceOfWarps(llvm::function_ref<void(const Place &, Value)> body) {
  forEachPlaceOrLast([&](Value place, Value perHead, llvm::function_ref<Place(Value)> decode) {
    body(decode(min(place, sub(perHead, index(1)))), lt(place, perHead));
  });
}

/// The bytes that `width` elements of a buffer take.
static llvm::Align getAccessAlign(Value rows, int64_t width) {
  return llvm::Align(width * cast<MemRefType>(rows.getType()).getElementTypeBitWidth() / 8);
}

Value RowKernel::load(Value rows, const Place &at) {
  auto type = VectorType::get({width}, cast<MemRefType>(rows.getType()).getElementType());
  return extend(vector::LoadOp::create(builder, loc, type, rows, ValueRange{at.b, at.h, at.m, at.d},
                                       /*nontemporal=*/false, getAccessAlign(rows, width)));
}

Value RowKernel::loadEntry(Value entries, const Place &at) {
  return memref::LoadOp::create(builder, loc, entries, ValueRange{at.b, at.h, at.m});
}

void RowKernel::store(Value values, Value rows, const Place &at) {
  Value rounded = round(values, cast<MemRefType>(rows.getType()).getElementType());
  vector::StoreOp::create(builder, loc, rounded, rows, ValueRange{at.b, at.h, at.m, at.d}, /*nontemporal=*/false,
                          getAccessAlign(rows, width));
}

void RowKernel::storeEntry(Value value, Value entries, const Place &at) {
  memref::StoreOp::create(builder, loc, value, entries, ValueRange{at.b, at.h, at.m});
}

Value RowKernel::splat(Value scalar) {
  return vector::BroadcastOp::create(builder, loc, VectorType::get({width}, scalar.getType()), scalar);
}
