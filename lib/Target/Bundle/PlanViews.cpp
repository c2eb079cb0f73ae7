//===- PlanViews.cpp - Memory of host functions ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::ssa;

/// Buffers in workspace start at multiples of this: a line of the cache, twice, and what TMA wants.
static constexpr int64_t workspaceAlignment = 256;

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

SmallVector<ValueNumber> PlanBuilder::getRowMajorStrides(ArrayRef<ValueNumber> shape) {
  SmallVector<ValueNumber> strides(shape.size());
  ValueNumber stride = values.constant(1);
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride = values.binary("mul", stride, shape[i]);
  }
  return strides;
}

ValueNumber PlanBuilder::getByteSize(ArrayRef<ValueNumber> shape, Type elementType) {
  ValueNumber bytes = values.constant(llvm::divideCeil(elementType.getIntOrFloatBitWidth(), 8));
  for (ValueNumber size : llvm::reverse(shape))
    bytes = values.binary("mul", bytes, size);
  return bytes;
}

unsigned PlanBuilder::addBuffer(PlanBuffer buffer) {
  for (auto [i, known] : llvm::enumerate(plan.buffers))
    if (buffer.kind == "view" && known.kind == "view" && known.number == buffer.number &&
        known.offset == buffer.offset && known.dtype == buffer.dtype && known.shape == buffer.shape &&
        known.strides == buffer.strides)
      return i;
  plan.buffers.push_back(std::move(buffer));
  return plan.buffers.size() - 1;
}

/// The buffer with address, shape and strides of `view`.
unsigned PlanBuilder::getBuffer(const View &view) {
  const PlanBuffer &root = plan.buffers[view.root];
  StringRef dtype = getDTypeName(view.elementType);
  ValueNumber bytes =
      values.binary("add", view.base, values.binary("mul", view.offset, getByteSize({}, view.elementType)));
  if (values.getConstant(bytes) == 0 && root.dtype == dtype && root.shape == view.shape && root.strides == view.strides)
    return view.root;
  return addBuffer({"view", view.root, bytes, dtype.str(), view.shape, view.strides});
}

/// The buffer that the pointer of `view` points at; the offset is not in it.
unsigned PlanBuilder::getPointer(const View &view) {
  if (values.getConstant(view.base) == 0)
    return view.root;
  return addBuffer({"view", view.root, view.base, getDTypeName(view.elementType).str(), view.shape, view.strides});
}

void PlanBuilder::requireAlignment(unsigned root, int64_t bytes) {
  const PlanBuffer &buffer = plan.buffers[root];
  if (buffer.kind == "argument")
    plan.arguments[buffer.number].alignment = std::max(plan.arguments[buffer.number].alignment, bytes);
  else if (buffer.kind == "result")
    plan.results[buffer.number].alignment = std::max(plan.results[buffer.number].alignment, bytes);
}

FailureOr<View> PlanBuilder::getView(Operation *user, Value v) {
  auto known = views.find(v);
  if (known != views.end())
    return known->second;
  user->emitOpError("reads a buffer that is no argument, allocation or view of one");
  return failure();
}

LogicalResult PlanBuilder::setView(Operation *op, View view) {
  views[op->getResult(0)] = std::move(view);
  return success();
}

/// True if the type of a buffer tells no stride but the innermost.
static bool hasFreeStrides(Type type) {
  auto buffer = dyn_cast<MemRefType>(type);
  SmallVector<int64_t> strides;
  int64_t offset;
  return buffer && succeeded(buffer.getStridesAndOffset(strides, offset)) && !strides.empty() &&
         llvm::all_of(ArrayRef(strides).drop_back(), ShapedType::isDynamic);
}

/// True if only strides that are passed at a launch are used to address the memory of `buffer`.
static bool takesAnyStrides(Value buffer) {
  return llvm::all_of(buffer.getUsers(), [&](Operation *user) {
    if (isa<memref::DimOp, func::ReturnOp>(user))
      return true;
    if (isa<memref::CastOp>(user))
      return hasFreeStrides(user->getResult(0).getType());
    return isa<memref::SubViewOp>(user) && (hasFreeStrides(user->getResult(0).getType()) || takesAnyStrides(user->getResult(0)));
  });
}

LogicalResult PlanBuilder::visitAlloc(memref::AllocOp op) {
  MemRefType type = op.getType();
  if (!type.getLayout().isIdentity() || getDTypeName(type.getElementType()).empty())
    return op.emitOpError("of ")
           << type << " has no meaning for a launcher: expected no layout, and elements of 1, 8, 16, 32 or 64 bits";
  if (repeat)
    return op.emitOpError("in a loop has no meaning for a launcher: allocate before it");
  View view;
  view.elementType = type.getElementType();
  view.base = view.offset = values.constant(0);
  for (OpFoldResult size : op.getMixedSizes()) {
    FailureOr<ValueNumber> v = getInteger(op, size);
    if (failed(v))
      return failure();
    if (values.getStage(*v) != PlanValue::beforeResults)
      return op.emitOpError("expected a size that depends on arguments alone");
    view.shape.push_back(*v);
  }
  view.strides = getRowMajorStrides(view.shape);
  PlanBuffer buffer{"workspace", 0, 0, getDTypeName(view.elementType).str(), view.shape, view.strides};
  auto result = resultOfAlloc.find(op.getResult());
  if (result != resultOfAlloc.end()) {
    unsigned number = result->second;
    buffer.kind = "result";
    buffer.number = number;
    plan.results[number].isContiguous = !takesAnyStrides(op);
    if (!plan.results[number].isContiguous)
      for (int64_t i = 0; i + 1 < type.getRank(); ++i)
        buffer.strides[i] = view.strides[i] = values.leaf("result_stride", {number, i}, PlanValue::afterResults);
  } else {
    buffer.number = plan.workspaceBytes;
    ValueNumber unit = values.constant(workspaceAlignment);
    ValueNumber bytes =
        values.binary("mul", values.binary("ceildiv", getByteSize(view.shape, view.elementType), unit), unit);
    plan.workspaceBytes = values.binary("add", plan.workspaceBytes, bytes);
  }
  view.root = addBuffer(std::move(buffer));
  return setView(op, std::move(view));
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

LogicalResult PlanBuilder::visitSubView(memref::SubViewOp op) {
  FailureOr<View> source = getView(op, op.getSource());
  if (failed(source))
    return failure();
  View view = *source;
  view.shape.clear();
  view.strides.clear();
  llvm::SmallBitVector dropped = op.getDroppedDims();
  SmallVector<OpFoldResult> offsets = op.getMixedOffsets(), sizes = op.getMixedSizes(), steps = op.getMixedStrides();
  for (size_t i = 0; i < sizes.size(); ++i) {
    FailureOr<ValueNumber> offset = getInteger(op, offsets[i]), size = getInteger(op, sizes[i]),
                           step = getInteger(op, steps[i]);
    if (failed(offset) || failed(size) || failed(step))
      return failure();
    ValueNumber stride = source->strides[i];
    view.offset = values.binary("add", view.offset, values.binary("mul", *offset, stride));
    if (dropped[i])
      continue;
    view.shape.push_back(*size);
    view.strides.push_back(values.binary("mul", stride, *step));
  }
  return setView(op, std::move(view));
}

LogicalResult PlanBuilder::visitExpandShape(memref::ExpandShapeOp op) {
  FailureOr<View> source = getView(op, op.getSrc());
  if (failed(source))
    return failure();
  View view = *source;
  SmallVector<OpFoldResult> sizes = op.getMixedOutputShape();
  view.shape.assign(sizes.size(), 0);
  view.strides.assign(sizes.size(), 0);
  for (auto [i, group] : llvm::enumerate(op.getReassociationIndices())) {
    ValueNumber stride = source->strides[i];
    for (int64_t dim : llvm::reverse(group)) {
      FailureOr<ValueNumber> size = getInteger(op, sizes[dim]);
      if (failed(size))
        return failure();
      view.shape[dim] = *size;
      view.strides[dim] = stride;
      stride = values.binary("mul", stride, *size);
    }
  }
  // A source of rank 0 has no groups: all sizes are 1.
  if (source->shape.empty()) {
    view.shape.assign(sizes.size(), values.constant(1));
    view.strides.assign(sizes.size(), values.constant(1));
  }
  return setView(op, std::move(view));
}

LogicalResult PlanBuilder::visitCollapseShape(memref::CollapseShapeOp op) {
  FailureOr<View> source = getView(op, op.getSrc());
  if (failed(source))
    return failure();
  View view = *source;
  view.shape.clear();
  view.strides.clear();
  for (const ReassociationIndices &group : op.getReassociationIndices()) {
    ValueNumber size = values.constant(1), stride = source->strides[group.back()];
    bool hasStride = false;
    for (int64_t dim : llvm::reverse(group)) {
      size = values.binary("mul", size, source->shape[dim]);
      // The innermost dimension that is longer than 1 says how far apart neighbours are.
      if (!hasStride && values.getConstant(source->shape[dim]) != 1) {
        stride = source->strides[dim];
        hasStride = true;
      }
    }
    view.shape.push_back(size);
    view.strides.push_back(stride);
  }
  return setView(op, std::move(view));
}

LogicalResult PlanBuilder::visitMemRefCast(memref::CastOp op) {
  FailureOr<View> view = getView(op, op.getSource());
  if (failed(view))
    return failure();
  auto type = dyn_cast<MemRefType>(op.getType());
  for (size_t i = 0; type && i < view->shape.size(); ++i) {
    if (type.isDynamicDim(i) || values.getConstant(view->shape[i]) == type.getDimSize(i))
      continue;
    ValueNumber size = values.constant(type.getDimSize(i));
    if (condition || repeat || values.getStage(view->shape[i]) != PlanValue::beforeResults)
      return op.emitOpError("to a static size cannot be checked before launches");
    std::string message =
        ("'memref.cast' expected dimension " + Twine(i) + " to be " + Twine(type.getDimSize(i))).str();
    plan.checks.push_back({"equal", {view->shape[i], size}, message});
    view->shape[i] = size;
  }
  return setView(op, std::move(*view));
}

LogicalResult PlanBuilder::visitReinterpretCast(memref::ReinterpretCastOp op) {
  FailureOr<View> source = getView(op, op.getSource());
  FailureOr<ValueNumber> offset = getInteger(op, op.getMixedOffsets().front());
  if (failed(source) || failed(offset))
    return failure();
  View view = *source;
  view.offset = *offset;
  view.shape.clear();
  view.strides.clear();
  for (auto [size, stride] : llvm::zip_equal(op.getMixedSizes(), op.getMixedStrides())) {
    FailureOr<ValueNumber> s = getInteger(op, size), t = getInteger(op, stride);
    if (failed(s) || failed(t))
      return failure();
    view.shape.push_back(*s);
    view.strides.push_back(*t);
  }
  return setView(op, std::move(view));
}

LogicalResult PlanBuilder::visitByteView(memref::ViewOp op) {
  FailureOr<View> source = getView(op, op.getSource());
  FailureOr<ValueNumber> shift = getInteger(op, op.getByteShift());
  if (failed(source) || failed(shift))
    return failure();
  View view = *source;
  view.elementType = op.getType().getElementType();
  view.base = values.binary("add", values.binary("add", view.base, view.offset), *shift); // the source is of bytes
  view.offset = values.constant(0);
  view.shape.clear();
  SmallVector<OpFoldResult> sizes = getMixedValues(op.getType().getShape(), op.getSizes(), op.getContext());
  for (OpFoldResult size : sizes) {
    FailureOr<ValueNumber> v = getInteger(op, size);
    if (failed(v))
      return failure();
    view.shape.push_back(*v);
  }
  view.strides = getRowMajorStrides(view.shape);
  return setView(op, std::move(view));
}

LogicalResult PlanBuilder::visitDim(memref::DimOp op) {
  FailureOr<View> view = getView(op, op.getSource());
  FailureOr<int64_t> number = getConstant(op, op.getIndex(), "the number of the dimension");
  if (failed(view) || failed(number))
    return failure();
  if (*number < 0 || *number >= int64_t(view->shape.size()))
    return op.emitOpError("asks for dimension ") << *number << " of a buffer of rank " << view->shape.size();
  return set(op, view->shape[*number]);
}

LogicalResult PlanBuilder::visitMetadata(memref::ExtractStridedMetadataOp op) {
  FailureOr<View> view = getView(op, op.getSource());
  if (failed(view))
    return failure();
  View base = *view;
  base.offset = values.constant(0);
  base.shape.clear();
  base.strides.clear();
  views[op.getBaseBuffer()] = std::move(base);
  integers[op.getOffset()] = view->offset;
  for (auto [value, number] : llvm::zip_equal(op.getSizes(), view->shape))
    integers[value] = number;
  for (auto [value, number] : llvm::zip_equal(op.getStrides(), view->strides))
    integers[value] = number;
  return success();
}

LogicalResult PlanBuilder::visitView(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](memref::AllocOp o) { return visitAlloc(o); })
      .Case([&](memref::SubViewOp o) { return visitSubView(o); })
      .Case([&](memref::ExpandShapeOp o) { return visitExpandShape(o); })
      .Case([&](memref::CollapseShapeOp o) { return visitCollapseShape(o); })
      .Case([&](memref::CastOp o) { return visitMemRefCast(o); })
      .Case([&](memref::ReinterpretCastOp o) { return visitReinterpretCast(o); })
      .Case([&](memref::ViewOp o) { return visitByteView(o); })
      .Case([&](memref::DimOp o) { return visitDim(o); })
      .Case([&](memref::ExtractStridedMetadataOp o) { return visitMetadata(o); })
      .Case([&](memref::AssumeAlignmentOp o) -> LogicalResult {
        FailureOr<View> view = getView(op, o.getMemref());
        if (failed(view))
          return failure();
        requireAlignment(view->root, o.getAlignment());
        return setView(op, std::move(*view));
      })
      .Case([&](memref::DeallocOp) { return success(); }) // workspace lives as long as the call
      .Default([&](Operation *o) { return refuse(o); });
}
