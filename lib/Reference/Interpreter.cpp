//===- Interpreter.cpp - The reference interpreter ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/Reference/Interpreter.h"
#include "Evaluation.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/IR/Verifier.h"
#include "ssa/IR/SSA.h"
#include "ssa/Reference/ArgumentNames.h"
#include <chrono>

using namespace mlir;
using namespace mlir::ssa::reference;

/// The most calls inside each other; the interpreter's own stack grows with them.
static constexpr unsigned maxDepth = 100;

//===----------------------------------------------------------------------===//
// Types and shapes
//===----------------------------------------------------------------------===//

std::string mlir::ssa::reference::shapeText(ArrayRef<int64_t> shape) {
  if (shape.empty())
    return "()";
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : "x") + (ShapedType::isDynamic(size) ? "?" : std::to_string(size));
  return text;
}

/// The static shape of a type of tensors, selections or scalars that the interpreter can hold.
static std::optional<ArrayRef<int64_t>> getHeldShape(Type type) {
  if (!Tensor::isSupported(getElementTypeOrSelf(type)))
    return std::nullopt;
  if (isa<RankedTensorType, ssa::SelectionType>(type))
    return cast<ShapedType>(type).getShape();
  if (isa<ShapedType>(type))
    return std::nullopt;
  return ArrayRef<int64_t>();
}

/// What `shape` breaks of `wanted`, as "5 at dimension 1" or "rank 3" to follow "wants"; empty if nothing.
static std::string getShapeMismatch(ArrayRef<int64_t> shape, ArrayRef<int64_t> wanted) {
  if (shape.size() != wanted.size())
    return "rank " + std::to_string(wanted.size());
  for (size_t d = 0; d < shape.size(); ++d)
    if (!ShapedType::isDynamic(wanted[d]) && shape[d] != wanted[d])
      return std::to_string(wanted[d]) + " at dimension " + std::to_string(d);
  return "";
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// The operands of the dialect's ops in the order of their definition. The last may be absent or repeated; elsewhere
/// absent and repeated ones show in `operandSegmentSizes`.
static ArrayRef<StringRef> getOperandNames(StringRef op) {
  static const llvm::StringMap<SmallVector<StringRef>> names = {
      {"ssa.project", {"input", "weight"}},
      {"ssa.pool", {"input", "scales"}},
      {"ssa.route", {"query", "key", "key_max", "tokens", "queries", "weights", "scales", "within"}},
      {"ssa.rebin", {"input", "tokens"}},
      {"ssa.topk", {"scores", "tokens", "queries", "within"}},
      {"ssa.sort", {"input"}},
      {"ssa.union", {"lhs", "rhs"}},
      {"ssa.from_indices", {"indices"}},
      {"ssa.to_indices", {"selection"}},
      {"ssa.gather", {"input", "selection"}},
      {"ssa.sparse_attend", {"query", "key", "value", "tokens", "selections"}},
      {"ssa.merge", {"parts", "sink_logits"}},
      {"ssa.mix", {"parts"}},
  };
  auto known = names.find(op);
  return known == names.end() ? ArrayRef<StringRef>() : ArrayRef<StringRef>(known->second);
}

std::string mlir::ssa::reference::describeOperand(Operation *op, unsigned number) {
  std::optional<Attribute> inherent = op->getInherentAttr("operandSegmentSizes");
  auto segments = dyn_cast_or_null<DenseI32ArrayAttr>(inherent.value_or(Attribute()));
  ArrayRef<StringRef> names = getOperandNames(op->getName().getStringRef());
  unsigned start = 0;
  for (auto [i, name] : llvm::enumerate(names)) {
    bool last = i + 1 == names.size();
    unsigned size = segments && i < static_cast<size_t>(segments.size()) ? segments[i]
                    : last                                               ? op->getNumOperands() - start
                                                                         : 1;
    if (number < start + size)
      return ("'" + name + "'" + (size > 1 ? " " + Twine(number - start) : Twine())).str();
    start += size;
  }
  return "operand " + std::to_string(number);
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

Evaluation::Evaluation(MLIRContext *context, const InterpreterOptions &options, unsigned depth)
    : context(context), options(options), depth(depth), maxTensorBytes(options.maxTensorBytes),
      maxTotalBytes(Tensor::memoryLimit() / 4 * 7) {
  if (maxTensorBytes <= 0)
    maxTensorBytes = Tensor::memoryLimit();
}

const Tensor &Evaluation::operator[](Value v) const {
  static const Tensor none;
  auto known = values.find(v);
  return known == values.end() ? none : known->second;
}

LogicalResult Evaluation::checkBytes(Operation *op, const Twine &what, int64_t bytes) const {
  int64_t left = std::max<int64_t>(std::min(maxTensorBytes, maxTotalBytes - Tensor::liveBytes()), 0);
  if (bytes <= left)
    return success();
  InFlightDiagnostic error = op->emitOpError() << what << " needs ";
  if (bytes == std::numeric_limits<int64_t>::max())
    error << "more bytes than 64 bits count";
  else
    error << bytes << " bytes";
  return error << ", but at most " << left << " can be had";
}

LogicalResult Evaluation::checkShape(Operation *op, unsigned result, ArrayRef<int64_t> shape) const {
  Type type = op->getResult(result).getType();
  std::optional<ArrayRef<int64_t>> wanted = getHeldShape(type);
  if (!wanted)
    return op->emitOpError() << "result " << result << " has type " << type
                             << ", which the interpreter cannot hold; it holds scalars and ranked tensors";
  std::string mismatch = getShapeMismatch(shape, *wanted);
  if (!mismatch.empty())
    return op->emitOpError() << "result " << result << " has shape " << shapeText(shape) << ", but its type " << type
                             << " wants " << mismatch;
  return success();
}

FailureOr<Tensor> Evaluation::allocate(Operation *op, unsigned result, ArrayRef<int64_t> shape) const {
  if (failed(checkShape(op, result, shape)))
    return failure();
  Type elementType = getElementTypeOrSelf(op->getResult(result).getType());
  if (failed(checkBytes(op, "result " + Twine(result), Tensor::byteSize(elementType, shape))))
    return failure();
  return Tensor(elementType, shape);
}

/// Every result of an op that has been evaluated must be there for its users.
LogicalResult Evaluation::checkResults(Operation *op) const {
  for (Value result : op->getResults())
    if (!(*this)[result])
      return op->emitOpError("has no value after its evaluation");
  return success();
}

LogicalResult Evaluation::evaluateOp(Operation *op) {
  if (isa<func::CallOp>(op))
    return evaluateCall(op);
  auto start = std::chrono::steady_clock::now();
  LogicalResult done = op->getName().getDialectNamespace() == "ssa" ? evaluateSSA(*this, op) : evaluateGlue(*this, op);
  if (options.finished)
    options.finished(op->getName().getStringRef(),
                     std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return success(succeeded(done) && succeeded(checkResults(op)));
}

LogicalResult Evaluation::evaluateBlock(Block &block, SmallVectorImpl<Tensor> &results) {
  // A value goes with its last use: a long chain of large tensors then needs the memory of two of them.
  DenseMap<Value, int64_t> uses;
  auto release = [&](Value value) {
    auto [count, isNew] = uses.try_emplace(value, 0);
    if (isNew)
      count->second = std::distance(value.use_begin(), value.use_end());
    if (--count->second <= 0)
      values.erase(value);
  };
  for (Operation &op : block.without_terminator()) {
    if (failed(evaluateOp(&op)))
      return failure();
    op.walk([&](Operation *nested) { llvm::for_each(nested->getOperands(), release); });
    for (Value result : op.getResults())
      if (result.use_empty())
        values.erase(result);
  }
  for (Value value : block.getTerminator()->getOperands())
    results.push_back((*this)[value]);
  return success();
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

static LogicalResult checkArgument(FunctionOpInterface function, unsigned number, const Tensor &tensor) {
  Type type = function.getArgumentTypes()[number];
  std::optional<ArrayRef<int64_t>> wanted = getHeldShape(type);
  if (!wanted)
    return function->emitError() << describeArgument(function, number) << " has type " << type
                                 << ", which the interpreter cannot hold; it holds scalars and ranked tensors";
  if (!tensor)
    return function->emitError() << describeArgument(function, number) << " is missing";
  if (tensor.getElementType() != getElementTypeOrSelf(type))
    return function->emitError() << describeArgument(function, number) << " has element type "
                                 << tensor.getElementType() << ", but its type " << type << " wants "
                                 << getElementTypeOrSelf(type);
  std::string mismatch = getShapeMismatch(tensor.getShape(), *wanted);
  if (!mismatch.empty())
    return function->emitError() << describeArgument(function, number) << " has shape " << shapeText(tensor.getShape())
                                 << ", but its type " << type << " wants " << mismatch;
  return success();
}

static FailureOr<SmallVector<Tensor>> callFunction(FunctionOpInterface function, ArrayRef<Tensor> arguments,
                                                   const InterpreterOptions &options, unsigned depth) {
  if (function.isExternal())
    return function->emitError() << "@" << function.getName() << " has no body to evaluate";
  Region &body = function.getFunctionBody();
  if (!body.hasOneBlock())
    return function->emitError() << "@" << function.getName() << " has " << body.getBlocks().size()
                                 << " blocks, but the interpreter evaluates functions of one";
  if (arguments.size() != function.getNumArguments())
    return function->emitError() << "@" << function.getName() << " takes " << function.getNumArguments()
                                 << " arguments, but got " << arguments.size();
  Evaluation evaluation(function->getContext(), options, depth);
  for (auto [i, tensor] : llvm::enumerate(arguments)) {
    if (failed(checkArgument(function, i, tensor)))
      return failure();
    evaluation.set(body.getArgument(i), tensor);
  }
  SmallVector<Tensor> results;
  if (failed(evaluation.evaluateBlock(body.front(), results)))
    return failure();
  return results;
}

LogicalResult Evaluation::evaluateCall(Operation *op) {
  auto call = cast<func::CallOp>(op);
  auto callee = SymbolTable::lookupNearestSymbolFrom<FunctionOpInterface>(op, call.getCalleeAttr());
  if (!callee)
    return op->emitOpError() << "calls '" << call.getCallee() << "', which is no function";
  if (depth + 1 >= maxDepth)
    return op->emitOpError() << "calls '" << call.getCallee() << "' inside of " << maxDepth
                             << " calls, which is the most; does it end?";
  SmallVector<Tensor> arguments = llvm::map_to_vector(op->getOperands(), [&](Value v) { return (*this)[v]; });
  FailureOr<SmallVector<Tensor>> results = callFunction(callee, arguments, options, depth + 1);
  if (failed(results))
    return failure();
  for (auto [value, tensor] : llvm::zip(op->getResults(), *results))
    set(value, tensor);
  return success();
}

FailureOr<SmallVector<Tensor>> mlir::ssa::reference::evaluate(FunctionOpInterface function, ArrayRef<Tensor> arguments,
                                                              const InterpreterOptions &options) {
  Operation *root = function;
  while (Operation *parent = root->getParentOp())
    root = parent;
  // Everything below relies on what the verifier has checked.
  if (failed(verify(root)))
    return failure();
  return callFunction(function, arguments, options, /*depth=*/0);
}
