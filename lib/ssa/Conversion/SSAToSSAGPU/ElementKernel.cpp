//===- ElementKernel.cpp - Kernels that make one element at a time --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ElementKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::ssa;

ElementKernel::ElementKernel(HostFunction &host, Operation *op, StringRef name, ValueRange arguments, Value output)
    : KernelBuilder(host.builder, op, name, threads, arguments), host(host), output(output),
      outputArgument(llvm::find(arguments, output) - arguments.begin()) {}

void ElementKernel::build(llvm::function_ref<void(ArrayRef<Value>)> body) {
  // An item is a stretch of the last two dimensions.
  int64_t rank = cast<MemRefType>(output.getType()).getRank(), outer = std::max<int64_t>(rank - 2, 0);
  auto getInner = [&](Emitter &e, Value buffer) {
    Value size = e.index(1);
    for (int64_t i = outer; i < rank; ++i)
      size = e.mul(size, e.dim(buffer, i));
    return size;
  };
  auto getTiles = [&](Emitter &e, Value inner) { return e.ceilDiv(inner, e.index(threads * elementsPerThread)); };
  Emitter e(host.builder, loc);
  Value count = getTiles(e, getInner(e, output));
  for (int64_t i = 0; i < outer; ++i)
    count = e.mul(count, e.dim(output, i));
  forEachItem(count, [&](Value item) {
    Value buffer = getArgument(outputArgument), inner = getInner(*this, buffer), tiles = getTiles(*this, inner);
    Value tile = split(item, tiles);
    SmallVector<Value> indices(rank);
    for (int64_t i = outer; i-- > 0;)
      indices[i] = split(item, dim(buffer, i));
    Value begin = mul(tile, index(threads * elementsPerThread)),
          end = min(add(begin, index(threads * elementsPerThread)), inner);
    loop(add(begin, threadId()), end, index(threads), [&](Value place) {
      if (rank > 0)
        indices[rank - 1] = rank > 1 ? rem(place, dim(buffer, rank - 1)) : place;
      if (rank > 1)
        indices[rank - 2] = div(place, dim(buffer, rank - 1));
      body(indices);
    });
  });
  finish();
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

LogicalResult Captures::add(Operation *user, Value v) {
  if (passed.contains(v))
    return success();
  Operation *source = v.getDefiningOp();
  bool isConstant = source && source->hasTrait<mlir::OpTrait::ConstantLike>();
  bool isPassed = isa<ShapedType>(v.getType()) || (v.getType().isIntOrIndex() && !isConstant) ||
                  (!source && (v.getType().isF32() || v.getType().isF64()));
  if (isPassed) {
    passed.insert(v);
    arguments.push_back(isa<ShapedType>(v.getType()) ? host.getBuffer(v) : host.getScalar(v));
    return success();
  }
  if (!source)
    return user->emitOpError("cannot be launched: it uses an argument of type ")
           << v.getType() << ", but scalar arguments of kernels are integers, f32 or f64";
  // Numbers that are not passed are computed where they are used.
  for (Value operand : source->getOperands())
    if (failed(add(user, operand)))
      return failure();
  cloned.insert(source);
  return success();
}

LogicalResult Captures::addRegions(Operation *op) {
  llvm::SetVector<Value> used;
  getUsedValuesDefinedAbove(op->getRegions(), used);
  for (Value v : used)
    if (failed(add(op, v)))
      return failure();
  return success();
}

void Captures::map(KernelBuilder &k, unsigned first, IRMapping &mapping) const {
  for (auto [i, v] : llvm::enumerate(passed))
    mapping.map(v, k.getArgument(first + i));
  for (Operation *op : cloned)
    k.builder.clone(*op, mapping);
}

LogicalResult ssa::checkRegion(Region &region) {
  for (Operation &op : region.front().without_terminator()) {
    bool isScalar = isa<arith::ArithDialect, math::MathDialect>(op.getDialect()) && op.getNumRegions() == 0;
    if (!isScalar && !isa<linalg::IndexOp, tensor::ExtractOp>(op))
      return op.emitOpError(
          "cannot be launched: regions may use scalar ops of 'arith' and 'math', 'linalg.index' and 'tensor.extract'");
  }
  return success();
}

SmallVector<Value> ssa::inlineRegion(Emitter &e, Region &region, IRMapping &mapping, ArrayRef<Value> indices) {
  for (Operation &op : region.front().without_terminator()) {
    if (auto place = dyn_cast<linalg::IndexOp>(op)) {
      mapping.map(place.getResult(), indices[place.getDim()]);
    } else if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      SmallVector<Value> at = llvm::map_to_vector(extract.getIndices(), [&](Value v) { return mapping.lookup(v); });
      mapping.map(extract.getResult(), e.load(mapping.lookup(extract.getTensor()), at));
    } else {
      e.builder.clone(op, mapping);
    }
  }
  return llvm::map_to_vector(region.front().getTerminator()->getOperands(), [&](Value v) { return mapping.lookup(v); });
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void ssa::fill(HostFunction &host, Operation *op, Value buffer, double value) {
  ElementKernel k(host, op, "ssa_fill", buffer, buffer);
  k.build([&](ArrayRef<Value> at) {
    Type type = cast<MemRefType>(buffer.getType()).getElementType();
    Value constant = arith::ConstantOp::create(k.builder, k.loc, k.builder.getFloatAttr(type, value));
    k.store(constant, k.getArgument(0), at);
  });
}

void ssa::copyElements(HostFunction &host, Operation *op, Value from, Value to) {
  ElementKernel k(host, op, "ssa_copy", {from, to}, to);
  k.build([&](ArrayRef<Value> indices) { k.store(k.load(k.getArgument(0), indices), k.getArgument(1), indices); });
}

Value ssa::copyBuffer(HostFunction &host, Operation *op, Value buffer) {
  Emitter e(host.builder, op->getLoc());
  auto type = cast<MemRefType>(buffer.getType());
  SmallVector<OpFoldResult> sizes;
  for (int64_t i = 0; i < type.getRank(); ++i)
    sizes.push_back(type.isDynamicDim(i) ? OpFoldResult(e.dim(buffer, i))
                                         : host.builder.getIndexAttr(type.getDimSize(i)));
  Value copy = host.allocateWorkspace(op->getLoc(), sizes, type.getElementType());
  copyElements(host, op, buffer, copy);
  return copy;
}
