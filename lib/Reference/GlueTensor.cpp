//===- GlueTensor.cpp - Ops of the tensor dialect -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Cells.h"
#include "Glue.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::ssa::reference;

//===----------------------------------------------------------------------===//
// Sizes and copies
//===----------------------------------------------------------------------===//

static int64_t getScalar(Evaluation &evaluation, Value value) { return evaluation[value].getInt(0); }

static SmallVector<int64_t> getScalars(Evaluation &evaluation, ValueRange values) {
  return llvm::map_to_vector(values, [&](Value v) { return getScalar(evaluation, v); });
}

/// Offsets, sizes or strides of which some are static.
static SmallVector<int64_t> resolve(Evaluation &evaluation, ArrayRef<OpFoldResult> mixed) {
  return llvm::map_to_vector(mixed, [&](OpFoldResult size) {
    if (auto attribute = dyn_cast<Attribute>(size))
      return cast<IntegerAttr>(attribute).getInt();
    return getScalar(evaluation, cast<Value>(size));
  });
}

/// The shape of `type` with `dynamic` in place of its dynamic sizes.
static SmallVector<int64_t> fillShape(ShapedType type, ArrayRef<int64_t> dynamic) {
  SmallVector<int64_t> shape(type.getShape());
  for (int64_t &size : shape)
    if (ShapedType::isDynamic(size)) {
      size = dynamic.front();
      dynamic = dynamic.drop_front();
    }
  return shape;
}

static LogicalResult checkSizes(Operation *op, ArrayRef<int64_t> shape) {
  for (auto [d, size] : llvm::enumerate(shape))
    if (size < 0)
      return op->emitOpError() << "has size " << size << " at dimension " << d << ", expected at least 0";
  return success();
}

/// Products and sums of sizes overflow only where a tensor has no elements, and then are not used.
static int64_t multiply(int64_t a, int64_t b) { return static_cast<int64_t>(uint64_t(a) * uint64_t(b)); }

static SmallVector<int64_t> getStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;)
    strides[d - 1] = multiply(strides[d], shape[d]);
  return strides;
}

/// A part of a tensor: where it starts and how far apart its elements are.
struct View {
  int64_t offset;
  SmallVector<int64_t> strides;
};

template <typename T>
static void copyElements(MutableArrayRef<T> to, const View &toView, ArrayRef<T> from, const View &fromView,
                         ArrayRef<int64_t> sizes) {
  if (llvm::is_contained(sizes, 0))
    return;
  SmallVector<int64_t> index(sizes.size(), 0);
  int64_t toOffset = toView.offset, fromOffset = fromView.offset;
  while (true) {
    to[toOffset] = from[fromOffset];
    size_t d = sizes.size();
    for (; d > 0; --d) {
      toOffset += toView.strides[d - 1];
      fromOffset += fromView.strides[d - 1];
      if (++index[d - 1] < sizes[d - 1])
        break;
      toOffset -= toView.strides[d - 1] * sizes[d - 1];
      fromOffset -= fromView.strides[d - 1] * sizes[d - 1];
      index[d - 1] = 0;
    }
    if (d == 0)
      return;
  }
}

/// Copies `sizes` elements; both tensors are of one element type.
static void copyView(Tensor &to, const View &toView, const Tensor &from, const View &fromView,
                     ArrayRef<int64_t> sizes) {
  from.visit([&](auto elements) {
    using T = std::decay_t<decltype(elements[0])>;
    copyElements<T>(to.getMutable<T>(), toView, elements, fromView, sizes);
  });
}

static View getWhole(ArrayRef<int64_t> shape) { return {0, getStrides(shape)}; }

/// The linear number of an element; fails at `op` if there is none.
static FailureOr<int64_t> getPlace(Operation *op, ArrayRef<int64_t> indices, ArrayRef<int64_t> shape) {
  int64_t place = 0;
  for (auto [d, index] : llvm::enumerate(indices)) {
    if (index < 0 || index >= shape[d])
      return op->emitOpError() << "has index " << index << " at dimension " << d << " of a tensor of shape "
                               << shapeText(shape);
    place = place * shape[d] + index;
  }
  return place;
}

//===----------------------------------------------------------------------===//
// Shapes and single elements
//===----------------------------------------------------------------------===//

static LogicalResult evaluateOp(Evaluation &evaluation, tensor::EmptyOp op) {
  SmallVector<int64_t> shape = fillShape(op.getType(), getScalars(evaluation, op.getDynamicSizes()));
  if (failed(checkSizes(op, shape)))
    return failure();
  FailureOr<Tensor> result = evaluation.allocate(op, 0, shape);
  if (failed(result))
    return failure();
  evaluation.set(op, *result);
  return success();
}

static LogicalResult setIndex(Evaluation &evaluation, Operation *op, int64_t value) {
  FailureOr<Tensor> result = evaluation.allocate(op, 0, {});
  if (failed(result))
    return failure();
  result->setInt(0, value);
  evaluation.set(op->getResult(0), *result);
  return success();
}

static LogicalResult evaluateOp(Evaluation &evaluation, tensor::DimOp op) {
  const Tensor &source = evaluation[op.getSource()];
  int64_t dim = getScalar(evaluation, op.getIndex());
  if (dim < 0 || dim >= source.getRank())
    return op->emitOpError() << "asks for dimension " << dim << " of a tensor of shape "
                             << shapeText(source.getShape());
  return setIndex(evaluation, op, source.getDim(dim));
}

static LogicalResult evaluateOp(Evaluation &evaluation, tensor::RankOp op) {
  return setIndex(evaluation, op, evaluation[op.getTensor()].getRank());
}

static LogicalResult evaluateOp(Evaluation &evaluation, tensor::CastOp op) {
  const Tensor &source = evaluation[op.getSource()];
  if (failed(evaluation.checkShape(op, 0, source.getShape())))
    return failure();
  evaluation.set(op, Tensor(source));
  return success();
}

static LogicalResult evaluateOp(Evaluation &evaluation, tensor::ExtractOp op) {
  const Tensor &source = evaluation[op.getTensor()];
  FailureOr<int64_t> place = getPlace(op, getScalars(evaluation, op.getIndices()), source.getShape());
  FailureOr<Tensor> result = evaluation.allocate(op, 0, {});
  if (failed(place) || failed(result))
    return failure();
  setCell(*result, 0, getCell(source, *place));
  evaluation.set(op, *result);
  return success();
}

static LogicalResult evaluateOp(Evaluation &evaluation, tensor::InsertOp op) {
  const Tensor &dest = evaluation[op.getDest()];
  FailureOr<int64_t> place = getPlace(op, getScalars(evaluation, op.getIndices()), dest.getShape());
  FailureOr<Tensor> result = evaluation.allocate(op, 0, dest.getShape());
  if (failed(place) || failed(result))
    return failure();
  copyView(*result, getWhole(dest.getShape()), dest, getWhole(dest.getShape()), dest.getShape());
  setCell(*result, *place, getCell(evaluation[op.getScalar()], 0));
  evaluation.set(op, *result);
  return success();
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

/// Part of a tensor of `shape` that a slice reads or writes; fails at `op` if it is not inside.
static FailureOr<View> getSlice(Evaluation &evaluation, OffsetSizeAndStrideOpInterface op, ArrayRef<int64_t> sizes,
                                ArrayRef<int64_t> shape) {
  SmallVector<int64_t> offsets = resolve(evaluation, op.getMixedOffsets());
  SmallVector<int64_t> strides = resolve(evaluation, op.getMixedStrides());
  View view{0, getStrides(shape)};
  if (failed(checkSizes(op, sizes)))
    return failure();
  for (size_t d = 0; d < shape.size(); ++d) {
    // In 128 bits, since nothing about the operands may be trusted.
    __int128 first = offsets[d], last = first + __int128(strides[d]) * std::max<int64_t>(sizes[d] - 1, 0);
    bool inside = sizes[d] == 0 ? first >= 0 && first <= shape[d]
                                : std::min(first, last) >= 0 && std::max(first, last) < shape[d];
    if (!inside)
      return op->emitOpError() << "has " << sizes[d] << " elements from " << offsets[d] << " in steps of " << strides[d]
                               << " at dimension " << d << " of a tensor of shape " << shapeText(shape);
    view.offset += multiply(offsets[d], view.strides[d]);
    view.strides[d] = sizes[d] > 1 ? view.strides[d] * strides[d] : 0;
  }
  return view;
}

/// `shape` without the dimensions in `dropped`.
static SmallVector<int64_t> dropDims(ArrayRef<int64_t> shape, const llvm::SmallBitVector &dropped) {
  SmallVector<int64_t> kept;
  for (auto [d, size] : llvm::enumerate(shape))
    if (!dropped.test(d))
      kept.push_back(size);
  return kept;
}

static LogicalResult evaluateOp(Evaluation &evaluation, tensor::ExtractSliceOp op) {
  const Tensor &source = evaluation[op.getSource()];
  SmallVector<int64_t> sizes = resolve(evaluation, op.getMixedSizes());
  FailureOr<View> view = getSlice(evaluation, op, sizes, source.getShape());
  if (failed(view))
    return failure();
  FailureOr<Tensor> result = evaluation.allocate(op, 0, dropDims(sizes, op.getDroppedDims()));
  if (failed(result))
    return failure();
  copyView(*result, getWhole(sizes), source, *view, sizes);
  evaluation.set(op, *result);
  return success();
}

static LogicalResult evaluateOp(Evaluation &evaluation, tensor::InsertSliceOp op) {
  const Tensor &source = evaluation[op.getSource()], &dest = evaluation[op.getDest()];
  SmallVector<int64_t> sizes = resolve(evaluation, op.getMixedSizes());
  FailureOr<View> view = getSlice(evaluation, op, sizes, dest.getShape());
  if (failed(view))
    return failure();
  SmallVector<int64_t> expected = dropDims(sizes, op.getDroppedDims());
  if (source.getShape() != ArrayRef(expected))
    return op->emitOpError() << "operand 0 has shape " << shapeText(source.getShape()) << ", expected "
                             << shapeText(expected) << ", the sizes of the slice";
  FailureOr<Tensor> result = evaluation.allocate(op, 0, dest.getShape());
  if (failed(result))
    return failure();
  copyView(*result, getWhole(dest.getShape()), dest, getWhole(dest.getShape()), dest.getShape());
  copyView(*result, *view, source, getWhole(sizes), sizes);
  evaluation.set(op, *result);
  return success();
}

//===----------------------------------------------------------------------===//
// Other shapes
//===----------------------------------------------------------------------===//

/// The source of `op` under another shape of as many elements.
static LogicalResult setReshaped(Evaluation &evaluation, Operation *op, ArrayRef<int64_t> shape) {
  const Tensor &source = evaluation[op->getOperand(0)];
  if (failed(checkSizes(op, shape)) || failed(evaluation.checkShape(op, 0, shape)))
    return failure();
  if (Tensor::byteSize(source.getElementType(), shape) != Tensor::byteSize(source.getElementType(), source.getShape()))
    return op->emitOpError() << "result 0 has shape " << shapeText(shape)
                             << ", expected as many elements as its source of shape " << shapeText(source.getShape());
  evaluation.set(op->getResult(0), source.reshaped(shape));
  return success();
}

static LogicalResult evaluateOp(Evaluation &evaluation, tensor::ExpandShapeOp op) {
  SmallVector<int64_t> shape = resolve(evaluation, op.getMixedOutputShape());
  const Tensor &source = evaluation[op.getSrc()];
  for (auto [d, group] : llvm::enumerate(op.getReassociationIndices())) {
    // Sizes are compared as bytes, which never overflow.
    SmallVector<int64_t> sizes = llvm::map_to_vector(group, [&](int64_t i) { return shape[i]; });
    if (Tensor::byteSize(source.getElementType(), sizes) != Tensor::byteSize(source.getElementType(), source.getDim(d)))
      return op->emitOpError() << "expands dimension " << d << " of size " << source.getDim(d) << " to "
                               << shapeText(sizes) << ", which is another size";
  }
  return setReshaped(evaluation, op, shape);
}

static LogicalResult evaluateOp(Evaluation &evaluation, tensor::CollapseShapeOp op) {
  const Tensor &source = evaluation[op.getSrc()];
  SmallVector<int64_t> shape;
  for (const ReassociationIndices &group : op.getReassociationIndices()) {
    int64_t size = 1;
    for (int64_t d : group)
      if (llvm::MulOverflow(size, source.getDim(d), size))
        return op->emitOpError() << "collapses sizes of " << shapeText(source.getShape())
                                 << " to one that is too large";
    shape.push_back(size);
  }
  return setReshaped(evaluation, op, shape);
}

static LogicalResult evaluateOp(Evaluation &evaluation, tensor::ReshapeOp op) {
  const Tensor &shapeTensor = evaluation[op.getShape()];
  SmallVector<int64_t> shape;
  for (int64_t i = 0; i < shapeTensor.getNumElements(); ++i)
    shape.push_back(shapeTensor.getInt(i));
  return setReshaped(evaluation, op, shape);
}

static LogicalResult evaluateOp(Evaluation &evaluation, tensor::ConcatOp op) {
  int64_t dim = op.getDim(), total = 0;
  ArrayRef<int64_t> first = evaluation[op.getInputs()[0]].getShape();
  for (auto [i, input] : llvm::enumerate(op.getInputs())) {
    ArrayRef<int64_t> shape = evaluation[input].getShape();
    for (size_t d = 0; d < shape.size(); ++d)
      if (static_cast<int64_t>(d) != dim && shape[d] != first[d])
        return op->emitOpError() << "operand " << i << " has shape " << shapeText(shape) << ", expected " << first[d]
                                 << " at dimension " << d << " as in operand 0";
    if (llvm::AddOverflow(total, shape[dim], total))
      return op->emitOpError() << "has operands whose sizes at dimension " << dim << " are too large to add";
  }
  SmallVector<int64_t> shape(first);
  shape[dim] = total;
  FailureOr<Tensor> result = evaluation.allocate(op, 0, shape);
  if (failed(result))
    return failure();
  View part = getWhole(shape);
  for (Value input : op.getInputs()) {
    const Tensor &source = evaluation[input];
    copyView(*result, part, source, getWhole(source.getShape()), source.getShape());
    part.offset += multiply(source.getDim(dim), part.strides[dim]);
  }
  evaluation.set(op, *result);
  return success();
}

//===----------------------------------------------------------------------===//
// New elements
//===----------------------------------------------------------------------===//

/// Fills `result` with what `body` gives for the indices of each element.
static LogicalResult fillFromIndices(Evaluation &evaluation, Operation *op, Block &body, Tensor &result) {
  FailureOr<ScalarProgram> program = ScalarProgram::compile(body, [&](Value v) { return evaluation[v]; });
  if (failed(program))
    return failure();
  SmallVector<int64_t> strides = getStrides(result.getShape());
  int64_t count = result.getNumElements(), batch = ScalarProgram::maxLanes;
  return evaluation.parallelFor(op, llvm::divideCeil(count, batch), [&](int64_t b) -> LogicalResult {
    std::vector<CellArray> cells(result.getRank() + 1);
    int64_t begin = b * batch, lanes = std::min(batch, count - begin);
    SmallVector<const Cell *> in;
    for (int64_t d = 0; d < result.getRank(); ++d) {
      for (int64_t n = 0; n < lanes; ++n)
        cells[d][n].i = (begin + n) / strides[d] % result.getDim(d);
      in.push_back(cells[d].data());
    }
    ScalarProgram::Failure failure;
    if (failed(program->run(lanes, in, cells.back().data(), failure)))
      return emitFailure(failure);
    storeCells(result, begin, lanes, cells.back().data());
    return success();
  });
}

static LogicalResult evaluateOp(Evaluation &evaluation, tensor::GenerateOp op) {
  SmallVector<int64_t> shape =
      fillShape(cast<ShapedType>(op.getType()), getScalars(evaluation, op.getDynamicExtents()));
  if (failed(checkSizes(op, shape)))
    return failure();
  FailureOr<Tensor> result = evaluation.allocate(op, 0, shape);
  if (failed(result) || failed(fillFromIndices(evaluation, op, op.getBody().front(), *result)))
    return failure();
  evaluation.set(op, *result);
  return success();
}

static LogicalResult evaluateOp(Evaluation &evaluation, tensor::PadOp op) {
  const Tensor &source = evaluation[op.getSource()];
  SmallVector<int64_t> low = resolve(evaluation, op.getMixedLowPad()), high = resolve(evaluation, op.getMixedHighPad());
  SmallVector<int64_t> shape(source.getShape());
  for (size_t d = 0; d < shape.size(); ++d)
    if (low[d] < 0 || high[d] < 0 || llvm::AddOverflow(shape[d], low[d], shape[d]) ||
        llvm::AddOverflow(shape[d], high[d], shape[d]))
      return op->emitOpError() << "pads dimension " << d << " by " << low[d] << " and " << high[d]
                               << ", expected at least 0 and a size that fits in 64 bits";
  FailureOr<Tensor> result = evaluation.allocate(op, 0, shape);
  if (failed(result) || failed(fillFromIndices(evaluation, op, op.getRegion().front(), *result)))
    return failure();
  View inner = getWhole(shape);
  for (size_t d = 0; d < shape.size(); ++d)
    inner.offset += multiply(low[d], inner.strides[d]);
  copyView(*result, inner, source, getWhole(source.getShape()), source.getShape());
  evaluation.set(op, *result);
  return success();
}

static LogicalResult evaluateOp(Evaluation &evaluation, tensor::SplatOp op) {
  SmallVector<int64_t> shape = fillShape(op.getType(), getScalars(evaluation, op.getDynamicSizes()));
  if (failed(checkSizes(op, shape)))
    return failure();
  FailureOr<Tensor> result = evaluation.allocate(op, 0, shape);
  if (failed(result))
    return failure();
  Cell value = getCell(evaluation[op.getInput()], 0);
  for (int64_t i = 0; i < result->getNumElements(); ++i)
    setCell(*result, i, value);
  evaluation.set(op, *result);
  return success();
}

static LogicalResult evaluateOp(Evaluation &evaluation, tensor::FromElementsOp op) {
  FailureOr<Tensor> result = evaluation.allocate(op, 0, op.getType().getShape());
  if (failed(result))
    return failure();
  for (auto [i, element] : llvm::enumerate(op.getElements()))
    setCell(*result, i, getCell(evaluation[element], 0));
  evaluation.set(op, *result);
  return success();
}

LogicalResult mlir::ssa::reference::evaluateTensorOp(Evaluation &evaluation, Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<tensor::CastOp, tensor::CollapseShapeOp, tensor::ConcatOp, tensor::DimOp, tensor::EmptyOp,
            tensor::ExpandShapeOp, tensor::ExtractOp, tensor::ExtractSliceOp, tensor::FromElementsOp,
            tensor::GenerateOp, tensor::InsertOp, tensor::InsertSliceOp, tensor::PadOp, tensor::RankOp,
            tensor::ReshapeOp, tensor::SplatOp>([&](auto typed) { return evaluateOp(evaluation, typed); })
      .Default([](Operation *other) { return emitNotEvaluated(other, ""); });
}
