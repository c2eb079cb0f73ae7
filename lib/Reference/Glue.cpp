//===- Glue.cpp - Ops around the dialect ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Glue.h"
#include "Cells.h"
#include "ScalarOps.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::ssa::reference;

LogicalResult mlir::ssa::reference::emitNotEvaluated(Operation *op, StringRef where) {
  return op->emitOpError("is not something the interpreter can evaluate")
         << (where.empty() ? "" : " ") << where
         << (where.empty()
                 ? "; it knows ssa, func.call, cf.assert, and arith, math, index, tensor and linalg on tensors and scalars"
                 : "; it knows arith, math, index, tensor.extract, tensor.dim and scf.if there");
}

LogicalResult mlir::ssa::reference::emitFailure(const ScalarProgram::Failure &failure) {
  return failure.where->emitOpError() << failure.error;
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

template <typename Values>
static void setFloats(Tensor &tensor, Values values) {
  for (auto [i, value] : llvm::enumerate(values))
    tensor.setFloat(i, value.convertToDouble());
}

template <typename Values>
static void setInts(Tensor &tensor, Values values) {
  for (auto [i, value] : llvm::enumerate(values))
    tensor.setInt(i, value.getSExtValue());
}

/// The dense form of a resource; null if its data is missing or of another size.
static ElementsAttr getResourceData(DenseResourceElementsAttr resource) {
  AsmResourceBlob *blob = resource.getRawHandle().getBlob();
  bool isSplat = false;
  if (!blob || !DenseElementsAttr::isValidRawBuffer(resource.getType(), blob->getData(), isSplat))
    return nullptr;
  return DenseElementsAttr::getFromRawBuffer(resource.getType(), blob->getData());
}

/// Sets all elements; false if they cannot be had.
static bool setElements(Tensor &tensor, ElementsAttr attribute) {
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(attribute)) {
    attribute = getResourceData(resource);
    if (!attribute)
      return false;
  }
  if (tensor.isFloat()) {
    auto values = attribute.tryGetValues<APFloat>();
    if (values)
      setFloats(tensor, *values);
    return values.has_value();
  }
  auto values = attribute.tryGetValues<APInt>();
  if (values)
    setInts(tensor, *values);
  return values.has_value();
}

FailureOr<Tensor> mlir::ssa::reference::tensorFromAttribute(Operation *op, Attribute attribute) {
  auto typed = dyn_cast<TypedAttr>(attribute);
  Type type = typed ? typed.getType() : Type(), elementType = type ? getElementTypeOrSelf(type) : Type();
  auto elements = dyn_cast<ElementsAttr>(attribute);
  if (!type || isa<VectorType>(type) || !Tensor::isSupported(elementType) ||
      (!elements && !isa<FloatAttr, IntegerAttr>(attribute)))
    return op->emitOpError(
        "has a value of a type that the interpreter cannot hold; it holds scalars and ranked tensors");
  ArrayRef<int64_t> shape = elements ? elements.getShapedType().getShape() : ArrayRef<int64_t>();
  InterpreterOptions defaults;
  if (failed(Evaluation(op->getContext(), defaults).checkBytes(op, "its value", Tensor::byteSize(elementType, shape))))
    return failure();
  Tensor tensor(elementType, shape);
  if (auto value = dyn_cast<FloatAttr>(attribute))
    tensor.setFloat(0, value.getValueAsDouble());
  else if (auto value = dyn_cast<IntegerAttr>(attribute))
    tensor.setInt(0, value.getValue().getSExtValue());
  else if (!setElements(tensor, elements))
    return op->emitOpError("has elements that cannot be read; is the data of a resource missing or of another size?");
  return tensor;
}

static LogicalResult evaluateConstant(Evaluation &evaluation, Operation *op, Attribute value) {
  if (auto typed = dyn_cast<TypedAttr>(value))
    if (auto type = dyn_cast<RankedTensorType>(typed.getType());
        type && failed(evaluation.checkBytes(op, "result 0", Tensor::byteSize(type.getElementType(), type.getShape()))))
      return failure();
  FailureOr<Tensor> tensor = tensorFromAttribute(op, value);
  if (failed(tensor))
    return failure();
  evaluation.set(op->getResult(0), *tensor);
  return success();
}

//===----------------------------------------------------------------------===//
// Scalar and elementwise ops
//===----------------------------------------------------------------------===//

/// The shape that all tensor operands of `op` have, which is () for scalars; fails at `op` if they differ.
static FailureOr<SmallVector<int64_t>> getCommonShape(Evaluation &evaluation, Operation *op) {
  std::optional<unsigned> first;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<ShapedType>(operand.get().getType()))
      continue;
    if (!first) {
      first = operand.getOperandNumber();
      continue;
    }
    ArrayRef<int64_t> found = evaluation[operand.get()].getShape();
    ArrayRef<int64_t> expected = evaluation[op->getOperand(*first)].getShape();
    if (found != expected)
      return op->emitOpError() << describeOperand(op, operand.getOperandNumber()) << " has shape " << shapeText(found)
                               << ", expected " << shapeText(expected) << ", the shape of "
                               << describeOperand(op, *first);
  }
  if (!first)
    return SmallVector<int64_t>();
  return SmallVector<int64_t>(evaluation[op->getOperand(*first)].getShape());
}

/// Runs `program` on elements [begin, begin + lanes) of all operands.
static LogicalResult runElements(const ScalarProgram &program, ArrayRef<Tensor> operands,
                                 MutableArrayRef<Tensor> results, int64_t begin, int64_t lanes) {
  std::vector<CellArray> cells(operands.size() + results.size());
  SmallVector<const Cell *> in;
  SmallVector<Cell *> out;
  for (auto [i, operand] : llvm::enumerate(operands)) {
    in.push_back(cells[i].data());
    // A scalar among tensors (the condition of a select) serves all elements.
    if (operand.getRank() == 0)
      cells[i].fill(getCell(operand, 0));
    else
      loadCells(operand, begin, lanes, cells[i].data());
  }
  for (size_t r = 0; r < results.size(); ++r)
    out.push_back(cells[operands.size() + r].data());
  ScalarProgram::Failure failure;
  if (failed(program.run(lanes, in, out, failure)))
    return emitFailure(failure);
  for (auto [r, result] : llvm::enumerate(results))
    storeCells(result, begin, lanes, out[r]);
  return success();
}

static LogicalResult evaluateElementwise(Evaluation &evaluation, Operation *op) {
  FailureOr<SmallVector<int64_t>> shape = getCommonShape(evaluation, op);
  if (failed(shape))
    return failure();
  FailureOr<ScalarProgram> program = ScalarProgram::compileOp(op);
  if (failed(program))
    return failure();
  SmallVector<Tensor> operands = llvm::map_to_vector(op->getOperands(), [&](Value v) { return evaluation[v]; });
  SmallVector<Tensor> results;
  for (OpResult result : op->getResults()) {
    FailureOr<Tensor> tensor = evaluation.allocate(op, result.getResultNumber(), *shape);
    if (failed(tensor))
      return failure();
    results.push_back(*tensor);
    evaluation.set(result, *tensor);
  }
  int64_t count = results[0].getNumElements(), batch = ScalarProgram::maxLanes;
  return evaluation.parallelFor(op, llvm::divideCeil(count, batch), [&](int64_t b) {
    return runElements(*program, operands, results, b * batch, std::min(batch, count - b * batch));
  });
}

static Attribute toAttribute(const Tensor &scalar) {
  Type type = scalar.getElementType();
  if (auto floatType = dyn_cast<FloatType>(type))
    return FloatAttr::get(floatType, scalar.getFloat(0));
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  return IntegerAttr::get(type, APInt(width, scalar.getInt(0), /*isSigned=*/true, /*implicitTrunc=*/true));
}

/// Evaluates an op on scalars through its own folder.
static LogicalResult evaluateByFolding(Evaluation &evaluation, Operation *op) {
  // A clone on values without a definition: folders look at what defines their operands, and some change the op.
  Block scratch;
  IRMapping mapping;
  SmallVector<Attribute> constants;
  for (Value operand : op->getOperands()) {
    if (!mapping.contains(operand))
      mapping.map(operand, scratch.addArgument(operand.getType(), op->getLoc()));
    constants.push_back(toAttribute(evaluation[operand]));
  }
  Operation *clone = op->cloneWithoutRegions(mapping);
  SmallVector<OpFoldResult> folded;
  bool done = succeeded(clone->fold(constants, folded)) && folded.size() == op->getNumResults();
  for (auto [result, value] : llvm::zip(op->getResults(), folded)) {
    auto same = dyn_cast_if_present<BlockArgument>(dyn_cast_if_present<Value>(value));
    Attribute attribute = dyn_cast_if_present<Attribute>(value);
    if (same && same.getOwner() == &scratch)
      attribute = constants[std::distance(clone->operand_begin(), llvm::find(clone->getOperands(), Value(same)))];
    FailureOr<Tensor> tensor = failure();
    if (done && isa_and_present<IntegerAttr, FloatAttr>(attribute))
      tensor = tensorFromAttribute(op, attribute);
    done &= succeeded(tensor);
    if (done)
      evaluation.set(result, *tensor);
  }
  clone->destroy();
  if (done)
    return success();
  InFlightDiagnostic error = op->emitOpError("has no value for the operands (");
  llvm::interleaveComma(constants, error);
  return error << ")";
}

static bool isScalar(Type type) { return !isa<ShapedType>(type) && Tensor::isSupported(type); }

LogicalResult mlir::ssa::reference::evaluateGlue(Evaluation &evaluation, Operation *op) {
  Attribute constant;
  if (matchPattern(op, m_Constant(&constant)))
    return evaluateConstant(evaluation, op, constant);
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return evaluateLinalgOp(evaluation, linalgOp);
  StringRef dialect = op->getName().getDialectNamespace();
  if (dialect == "tensor")
    return evaluateTensorOp(evaluation, op);
  if (auto check = dyn_cast<cf::AssertOp>(op))
    return getCell(evaluation[check.getArg()], 0).i ? success() : LogicalResult(emitError(op->getLoc()) << check.getMsg());
  if (op->getNumRegions() || !op->getNumResults())
    return emitNotEvaluated(op, "");
  if ((dialect == "arith" || dialect == "math" || dialect == "index") && getScalarKernel(op, 0))
    return evaluateElementwise(evaluation, op);
  if (llvm::all_of(op->getOperandTypes(), isScalar) && llvm::all_of(op->getResultTypes(), isScalar) && isPure(op))
    return evaluateByFolding(evaluation, op);
  return emitNotEvaluated(op, "");
}
