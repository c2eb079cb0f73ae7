//===- Glue.cpp - Ops of the tensor dialect -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What only looks at a tensor in another way becomes a view of its buffer, the rest a kernel.
//
//===----------------------------------------------------------------------===//

#include "Glue.h"
#include "ElementKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::ssa;

static MemRefType getType(Value buffer) { return cast<MemRefType>(buffer.getType()); }

/// Sizes as values of the host function.
static SmallVector<OpFoldResult> getSizes(Emitter &e, Value buffer) {
  SmallVector<OpFoldResult> sizes;
  for (int64_t i = 0; i < getType(buffer).getRank(); ++i)
    sizes.push_back(getType(buffer).isDynamicDim(i) ? OpFoldResult(e.dim(buffer, i))
                                                    : e.builder.getIndexAttr(getType(buffer).getDimSize(i)));
  return sizes;
}

static Value toValue(Emitter &e, OpFoldResult size) {
  std::optional<int64_t> constant = getConstantIntValue(size);
  return constant ? e.index(*constant) : cast<Value>(size);
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

static LogicalResult convertExpandShape(HostFunction &host, tensor::ExpandShapeOp op) {
  Emitter e(host.builder, op.getLoc());
  Value source = host.getBuffer(op.getSrc());
  SmallVector<OpFoldResult> sizes = host.getSizes(op.getMixedOutputShape());
  SmallVector<ReassociationIndices> groups = op.getReassociationIndices();
  FailureOr<MemRefType> type =
      memref::ExpandShapeOp::computeExpandedType(getType(source), op.getType().getShape(), groups);
  if (failed(type))
    return op.emitOpError("cannot be launched: the strides of its source do not allow a view");
  for (auto [i, group] : llvm::enumerate(groups)) {
    Value product = e.index(1);
    for (int64_t dim : group)
      product = e.mul(product, toValue(e, sizes[dim]));
    if (group.size() > 1)
      host.require(op, e.eq(product, e.dim(source, i)),
                   "expected the new sizes to make up dimension " + Twine(i) + " of its source");
  }
  host.setView(op, memref::ExpandShapeOp::create(host.builder, op.getLoc(), *type, source, groups, sizes));
  return success();
}

/// Requires the dimensions of a group to be as one.
static void requireContiguous(HostFunction &host, Operation *op, Value source, ArrayRef<int64_t> group) {
  Emitter e(host.builder, op->getLoc());
  auto metadata = memref::ExtractStridedMetadataOp::create(host.builder, op->getLoc(), source);
  // From the inside, leaving out dimensions of size 1.
  Value expected, fits = e.bit(true);
  for (int64_t dim : llvm::reverse(group)) {
    if (getType(source).getDimSize(dim) == 1)
      continue;
    Value size = e.dim(source, dim), stride = metadata.getStrides()[dim], isOne = e.eq(size, e.index(1));
    if (!expected) {
      expected = e.mul(stride, size);
      continue;
    }
    fits = e.both(fits, e.either(isOne, e.eq(stride, expected)));
    expected = e.mul(expected, size);
  }
  host.require(op, fits,
               "expected dimensions " + Twine(group.front()) + " to " + Twine(group.back()) +
                   " of its source to follow one another in memory without gaps");
}

static LogicalResult convertCollapseShape(HostFunction &host, tensor::CollapseShapeOp op) {
  Value source = host.getBuffer(op.getSrc());
  // What this call allocates is contiguous; the type of a buffer does not say so.
  if (auto cast = source.getDefiningOp<memref::CastOp>(); cast && cast.getSource().getDefiningOp<memref::AllocOp>())
    source = cast.getSource();
  SmallVector<ReassociationIndices> groups = op.getReassociationIndices();
  if (!source.getDefiningOp<memref::AllocOp>())
    for (const ReassociationIndices &group : groups)
      if (llvm::count_if(group, [&](int64_t dim) { return getType(source).getDimSize(dim) != 1; }) > 1)
        requireContiguous(host, op, source, group);
  MemRefType type = memref::CollapseShapeOp::computeCollapsedType(getType(source), groups);
  host.setView(op, memref::CollapseShapeOp::create(host.builder, op.getLoc(), type, source, groups));
  return success();
}

/// The part of a buffer that a slice names, of the given shape.
static FailureOr<Value> getSlice(HostFunction &host, Operation *op, Value buffer, ArrayRef<int64_t> shape,
                                 OffsetSizeAndStrideOpInterface slice) {
  SmallVector<OpFoldResult> offsets = host.getSizes(slice.getMixedOffsets()),
                            sizes = host.getSizes(slice.getMixedSizes()),
                            strides = host.getSizes(slice.getMixedStrides());
  if (!strides.empty() && getConstantIntValue(strides.back()) != 1)
    return op->emitOpError("cannot be launched: the innermost stride of a slice must be 1"), failure();
  auto type = memref::SubViewOp::inferRankReducedResultType(shape, getType(buffer), offsets, sizes, strides);
  return memref::SubViewOp::create(host.builder, op->getLoc(), type, buffer, offsets, sizes, strides).getResult();
}

static LogicalResult convertExtractSlice(HostFunction &host, tensor::ExtractSliceOp op) {
  FailureOr<Value> slice = getSlice(host, op, host.getBuffer(op.getSource()), op.getType().getShape(), op);
  if (failed(slice))
    return failure();
  host.setView(op, *slice);
  return success();
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static LogicalResult convertInsertSlice(HostFunction &host, tensor::InsertSliceOp op) {
  Emitter e(host.builder, op.getLoc());
  Value source = host.getBuffer(op.getSource()), dest = host.getBuffer(op.getDest());
  bool isEmpty = op.getDest().getDefiningOp<tensor::EmptyOp>() != nullptr;
  Value result = isEmpty ? host.allocateWorkspace(op.getLoc(), getSizes(e, dest), getType(dest).getElementType())
                         : copyBuffer(host, op, dest);
  FailureOr<Value> slice = getSlice(host, op, result, op.getSourceType().getShape(), op);
  if (failed(slice))
    return failure();
  copyElements(host, op, source, host.castToBuffer(*slice));
  host.setView(op, result);
  return success();
}

static LogicalResult convertConcat(HostFunction &host, tensor::ConcatOp op) {
  Emitter e(host.builder, op.getLoc());
  int64_t along = op.getDim();
  SmallVector<Value> inputs = llvm::map_to_vector(op.getInputs(), [&](Value v) { return host.getBuffer(v); });
  SmallVector<OpFoldResult> sizes = getSizes(e, inputs.front());
  Value total = e.index(0);
  for (auto [number, input] : llvm::enumerate(inputs)) {
    total = e.add(total, e.dim(input, along));
    for (unsigned i = 0; i < sizes.size(); ++i)
      if (number > 0 && i != along)
        host.requireSameDim(op, {"input " + std::to_string(number), input}, {"input 0", inputs.front()}, i);
  }
  bool isDynamic = op.getType().isDynamicDim(along);
  sizes[along] = isDynamic ? OpFoldResult(total) : host.builder.getIndexAttr(op.getType().getDimSize(along));
  Value result = host.allocateWorkspace(op.getLoc(), sizes, op.getType().getElementType()), offset = e.index(0);
  for (Value input : inputs) {
    SmallVector<OpFoldResult> offsets(sizes.size(), host.builder.getIndexAttr(0)),
        strides(sizes.size(), host.builder.getIndexAttr(1));
    offsets[along] = offset;
    Value part = memref::SubViewOp::create(host.builder, op.getLoc(), result, offsets, getSizes(e, input), strides);
    copyElements(host, op, input, host.castToBuffer(part));
    offset = e.add(offset, e.dim(input, along));
  }
  host.setView(op, result);
  return success();
}

/// Makes the result of `op`, of the given sizes, element by element. `arguments` are host values that `make` wants
/// besides what is captured: arguments 0, 1, .. of the kernel.
static void makeElements(HostFunction &host, Operation *op, ArrayRef<OpFoldResult> sizes, ArrayRef<Value> arguments,
                         const Captures &captures,
                         llvm::function_ref<Value(ElementKernel &, ArrayRef<Value> indices, IRMapping &mapping)> make) {
  Value result = host.allocateWorkspace(op->getLoc(), sizes, getElementTypeOrSelf(op->getResult(0)));
  SmallVector<Value> all(arguments);
  llvm::append_range(all, captures.getArguments());
  all.push_back(result);
  ElementKernel k(host, op, ("ssa_" + op->getName().stripDialect()).str(), all, result);
  k.build([&](ArrayRef<Value> indices) {
    IRMapping mapping;
    captures.map(k, arguments.size(), mapping);
    k.store(make(k, indices, mapping), k.getArgument(all.size() - 1), indices);
  });
  host.setView(op->getResult(0), result);
}

static LogicalResult convertPad(HostFunction &host, tensor::PadOp op) {
  Emitter e(host.builder, op.getLoc());
  Captures captures(host);
  if (failed(checkRegion(op.getRegion())) || failed(captures.addRegions(op)))
    return failure();
  Value source = host.getBuffer(op.getSource());
  SmallVector<OpFoldResult> low = host.getSizes(op.getMixedLowPad()), high = host.getSizes(op.getMixedHighPad()), sizes;
  SmallVector<Value> arguments = {source};
  for (unsigned i = 0; i < low.size(); ++i) {
    Value before = toValue(e, low[i]), after = toValue(e, high[i]),
          size = e.add(e.add(e.dim(source, i), before), after);
    sizes.push_back(op.getType().isDynamicDim(i) ? OpFoldResult(size)
                                                 : host.builder.getIndexAttr(op.getType().getDimSize(i)));
    host.require(op, e.both(e.ge(before, e.index(0)), e.ge(after, e.index(0))),
                 "expected no negative padding of dimension " + Twine(i));
    arguments.push_back(before);
  }
  makeElements(
      host, op, sizes, arguments, captures, [&](ElementKernel &k, ArrayRef<Value> indices, IRMapping &mapping) {
        SmallVector<Value> inside;
        Value exists = k.bit(true);
        for (auto [i, index] : llvm::enumerate(indices)) {
          inside.push_back(k.sub(index, k.getArgument(1 + i)));
          exists = k.both(exists, k.ult(inside.back(), k.dim(k.getArgument(0), i)));
        }
        mapping.map(op.getRegion().getArguments(), indices);
        return k.ifElse(
            exists, op.getType().getElementType(), [&] { return SmallVector<Value>{k.load(k.getArgument(0), inside)}; },
            [&] { return inlineRegion(k, op.getRegion(), mapping, {}); })[0];
      });
  return success();
}

static LogicalResult convertGenerate(HostFunction &host, tensor::GenerateOp op) {
  Captures captures(host);
  if (failed(checkRegion(op.getBody())) || failed(captures.addRegions(op)))
    return failure();
  SmallVector<OpFoldResult> sizes =
      host.getSizes(getMixedValues(op.getType().getShape(), op.getDynamicExtents(), op.getContext()));
  makeElements(host, op, sizes, {}, captures, [&](ElementKernel &k, ArrayRef<Value> indices, IRMapping &mapping) {
    mapping.map(op.getBody().getArguments(), indices);
    return inlineRegion(k, op.getBody(), mapping, {})[0];
  });
  return success();
}

static LogicalResult convertSplat(HostFunction &host, tensor::SplatOp op) {
  Captures captures(host);
  if (failed(captures.add(op, op.getInput())))
    return failure();
  SmallVector<OpFoldResult> sizes =
      host.getSizes(getMixedValues(op.getType().getShape(), op.getDynamicSizes(), op.getContext()));
  makeElements(host, op, sizes, {}, captures,
               [&](ElementKernel &, ArrayRef<Value>, IRMapping &mapping) { return mapping.lookup(op.getInput()); });
  return success();
}

/// Tables of a few numbers; larger ones are arguments.
static LogicalResult convertConstant(HostFunction &host, arith::ConstantOp op) {
  constexpr int64_t maxElements = 1024;
  auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!elements)
    return op.emitOpError("cannot be launched: a constant tensor must be dense");
  int64_t count = elements.getNumElements();
  if (!elements.isSplat() && count > maxElements)
    return op.emitOpError("cannot be launched: a constant tensor may have ")
           << maxElements << " elements, unless all are the same, but this has " << count << "; pass it as an argument";
  ArrayRef<int64_t> shape = elements.getType().getShape();
  SmallVector<OpFoldResult> sizes = getAsIndexOpFoldResult(op.getContext(), shape);
  makeElements(host, op, sizes, {}, Captures(host), [&](ElementKernel &k, ArrayRef<Value> indices, IRMapping &) -> Value {
    if (elements.isSplat())
      return arith::ConstantOp::create(k.builder, k.loc, elements.getSplatValue<TypedAttr>());
    Value place = k.index(0);
    for (auto [index, size] : llvm::zip_equal(indices, shape))
      place = k.add(k.mul(place, k.index(size)), index);
    auto type = VectorType::get({count}, elements.getElementType());
    Value all = arith::ConstantOp::create(k.builder, k.loc, elements.reshape(type));
    return vector::ExtractOp::create(k.builder, k.loc, all, place);
  });
  return success();
}

LogicalResult ssa::convertTensorOp(HostFunction &host, Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](linalg::LinalgOp o) { return convertStructuredOp(host, o); })
      .Case([&](arith::ConstantOp o) { return convertConstant(host, o); })
      .Case([&](tensor::CollapseShapeOp o) { return convertCollapseShape(host, o); })
      .Case([&](tensor::ConcatOp o) { return convertConcat(host, o); })
      .Case([&](tensor::ExpandShapeOp o) { return convertExpandShape(host, o); })
      .Case([&](tensor::ExtractSliceOp o) { return convertExtractSlice(host, o); })
      .Case([&](tensor::GenerateOp o) { return convertGenerate(host, o); })
      .Case([&](tensor::InsertSliceOp o) { return convertInsertSlice(host, o); })
      .Case([&](tensor::PadOp o) { return convertPad(host, o); })
      .Case([&](tensor::SplatOp o) { return convertSplat(host, o); })
      .Default([&](Operation *o) {
        return o->emitOpError(
            "cannot be launched: around the ops of 'ssa' these have a meaning for kernels: scalar arithmetic, "
            "structured "
            "ops of 'linalg', and of 'tensor' cast, collapse_shape, concat, dim, empty, expand_shape, "
            "extract_slice, generate, insert_slice, pad and splat");
      });
}
