//===- Evaluate.cpp - Arrays and evaluation of the C API ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Elements.h"
#include "Handles.h"
#include "mlir/IR/TypeUtilities.h"
#include "ssa/Reference/ArgumentNames.h"
#include "ssa/Reference/Interpreter.h"
#include <cstring>
#include <map>
#include <mutex>

using namespace mlir;
using namespace mlir::ssa::capi;
using namespace mlir::ssa::reference;

struct SSAArray {
  /// The tensor's element type lives in it.
  std::shared_ptr<ContextState> context;
  Tensor tensor;
  std::mutex mutex;
  /// What has been asked for, by kind.
  std::map<SSADType, std::vector<char>> converted;
};

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

void ssaArrayDestroy(SSAArray *array) { delete array; }

SSADType ssaArrayGetDType(const SSAArray *array) {
  return array ? getDType(array->tensor.getElementType()) : SSA_DTYPE_NONE;
}

int32_t ssaArrayGetRank(const SSAArray *array) { return array ? array->tensor.getRank() : 0; }

const int64_t *ssaArrayGetShape(const SSAArray *array) {
  return array && array->tensor.getRank() ? array->tensor.getShape().data() : nullptr;
}

int64_t ssaArrayGetNumElements(const SSAArray *array) { return array ? array->tensor.getNumElements() : 0; }

SSAError *ssaArrayGetData(SSAArray *array, SSADType dtype, const void **data) {
  static const int64_t nothing = 0;
  if (data)
    *data = nullptr;
  if (SSAError *error = checkParameters(__func__, {{"array", array}, {"data", data}}))
    return error;
  std::lock_guard<std::mutex> lock(array->mutex);
  *data = getHeldElements(array->tensor, dtype);
  auto known = array->converted.find(dtype);
  if (!*data && known == array->converted.end()) {
    llvm::Expected<std::vector<char>> bytes = convertElements(array->tensor, dtype);
    if (!bytes)
      return makeError(SSA_ERROR_USAGE, "ssaArrayGetData: " + toString(bytes.takeError()));
    known = array->converted.emplace(dtype, std::move(*bytes)).first;
  }
  if (!*data)
    *data = known->second.empty() ? static_cast<const void *>(&nothing) : known->second.data();
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// What an argument of a type takes, for messages: "bf16 or f32".
static std::string getAcceptedKinds(Type type, SSADType own) {
  std::string text = ssaDTypeGetName(own);
  if (isFloat(own) && own != SSA_DTYPE_F64 && own != SSA_DTYPE_F32)
    text += " or f32";
  else if (type.isIndex())
    text += " or i32";
  return text;
}

static bool isAccepted(SSADType dtype, Type type, SSADType own) {
  return dtype == own || (dtype == SSA_DTYPE_F32 && isFloat(own) && own != SSA_DTYPE_F64) ||
         (dtype == SSA_DTYPE_I32 && type.isIndex());
}

static std::string getShapeText(ArrayRef<int64_t> shape) {
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : "x") + (size == -1 ? "?" : std::to_string(size));
  return text.empty() ? "()" : text;
}

/// What is wrong with an array for a type, to follow "argument 0 '%q' of @attend"; empty if nothing.
static std::string checkView(const SSAArrayView &view, const SSAType &type, Type elementType, int64_t maxBytes) {
  if (type.dtype == SSA_DTYPE_NONE)
    return " has type " + type.text + ", for which no array can be passed";
  if (!isAccepted(view.dtype, elementType, type.dtype))
    return std::string(" has kind ") + ssaDTypeGetName(view.dtype) + ", but its type " + type.text + " wants " +
           getAcceptedKinds(elementType, type.dtype);
  if (view.rank != type.rank)
    return " has rank " + std::to_string(view.rank) + ", but its type " + type.text + " wants " +
           std::to_string(type.rank);
  if (view.rank && !view.shape)
    return " has no shape: 'shape' is null, but the rank is " + std::to_string(view.rank);
  ArrayRef<int64_t> shape(view.shape, view.rank);
  for (auto [i, size] : llvm::enumerate(shape)) {
    if (size < 0)
      return " has shape " + getShapeText(shape) + ", which is negative at dimension " + std::to_string(i);
    if (type.shape[i] != -1 && size != type.shape[i])
      return " has shape " + getShapeText(shape) + ", but its type " + type.text + " wants " +
             std::to_string(type.shape[i]) + " at dimension " + std::to_string(i);
  }
  int64_t bytes = Tensor::byteSize(elementType, shape);
  if (bytes > maxBytes)
    return " has shape " + getShapeText(shape) + ", which needs " +
           (bytes == std::numeric_limits<int64_t>::max() ? "more than any memory" : std::to_string(bytes) + " bytes") +
           ", but one tensor may take at most " + std::to_string(maxBytes);
  if (bytes && !view.data)
    return " has no elements: 'data' is null, but the shape is " + getShapeText(shape);
  return "";
}

/// Reads one argument. Problems are diagnostics at the function.
static FailureOr<Tensor> readArgument(FunctionOpInterface function, unsigned number, const SSAArrayView &view,
                                      int64_t maxBytes) {
  Type type = function.getArgumentTypes()[number], elementType = getElementTypeOrSelf(type);
  std::string problem = checkView(view, describeType(type), elementType, maxBytes);
  if (!problem.empty())
    return function->emitError() << describeArgument(function, number) << problem;
  Tensor tensor(elementType, ArrayRef(view.shape, view.rank));
  ReadReport report = readElements(view, tensor);
  if (report.numMisfits)
    return function->emitError() << describeArgument(function, number) << " has " << report.misfit << " at element "
                                 << report.misfitIndex << ", which does not fit " << elementType;
  if (report.numOverflows)
    function->emitWarning() << describeArgument(function, number) << ": " << report.numOverflows << " of "
                            << tensor.getNumElements() << " values overflow " << elementType;
  return tensor;
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

/// Takes over the options of a program that may know fewer or more of them than this library.
static SSAError *readOptions(const SSAEvaluateOptions *given, SSAEvaluateOptions &options) {
  options = {};
  if (!given)
    return nullptr;
  if (given->size < sizeof(SSAEvaluateOptions))
    return makeError(SSA_ERROR_USAGE, "ssaModuleEvaluate: expected 'options->size' to be at least " +
                                          Twine(sizeof(SSAEvaluateOptions)) + ", but got " + Twine(given->size));
  const char *bytes = reinterpret_cast<const char *>(given);
  if (llvm::any_of(StringRef(bytes, given->size).drop_front(sizeof(SSAEvaluateOptions)), [](char c) { return c; }))
    return makeError(SSA_ERROR_USAGE,
                     "ssaModuleEvaluate: 'options' asks for something that this version of the library "
                     "does not know");
  options = *given;
  if (options.maxTensorBytes < 0)
    return makeError(SSA_ERROR_USAGE,
                     "ssaModuleEvaluate: expected 'options->maxTensorBytes' not to be negative, but got " +
                         Twine(options.maxTensorBytes));
  return nullptr;
}

static InterpreterOptions getInterpreterOptions(const SSAEvaluateOptions &options) {
  InterpreterOptions result;
  result.maxTensorBytes = options.maxTensorBytes;
  if (options.progress)
    result.progress = [callback = options.progress, userData = options.progressUserData](
                          StringRef op, double fraction) { callback(op.str().c_str(), fraction, userData); };
  return result;
}

static SSAError *checkCounts(FunctionOpInterface function, size_t numInputs, size_t numOutputs) {
  auto check = [&](StringRef what, size_t wanted, size_t got) {
    return wanted == got ? nullptr
                         : makeError(SSA_ERROR_ARGUMENT, "expected " + Twine(wanted) + " " + what + ", but got " +
                                                             Twine(got) + ", for " + describeSignature(function));
  };
  if (SSAError *error = check("inputs", function.getNumArguments(), numInputs))
    return error;
  return check("outputs", function.getNumResults(), numOutputs);
}

static SSAError *evaluateFunction(Call &call, FunctionOpInterface function, ArrayRef<SSAArrayView> inputs,
                                  MutableArrayRef<SSAArray *> outputs, const SSAEvaluateOptions &options) {
  if (SSAError *error = checkCounts(function, inputs.size(), outputs.size()))
    return error;
  SmallVector<Tensor> arguments;
  for (auto [i, view] : llvm::enumerate(inputs)) {
    // Nor may all of them take nearly all of the memory.
    int64_t maxBytes = std::min(options.maxTensorBytes ? options.maxTensorBytes : Tensor::memoryLimit(),
                                Tensor::memoryLimit() / 4 * 7 - Tensor::liveBytes());
    FailureOr<Tensor> argument = readArgument(function, i, view, maxBytes);
    if (failed(argument))
      return call.fail(SSA_ERROR_ARGUMENT, describeArgument(function, i) + " cannot be read");
    arguments.push_back(*argument);
  }
  FailureOr<SmallVector<Tensor>> results = evaluate(function, arguments, getInterpreterOptions(options));
  if (failed(results))
    return call.fail(SSA_ERROR_EVALUATE, "the evaluation of @" + function.getName() + " failed");
  for (auto [output, result] : llvm::zip_equal(outputs, *results))
    output = new SSAArray{call.getState(), result, {}, {}};
  return nullptr;
}

SSAError *ssaModuleEvaluate(SSAModule *module, const char *entry, const SSAArrayView *inputs, size_t numInputs,
                            SSAArray **outputs, size_t numOutputs, const SSAEvaluateOptions *options) {
  if (outputs)
    std::fill_n(outputs, numOutputs, nullptr);
  static const SSAArrayView noInput = {};
  SSAArray *noOutput = nullptr;
  Call call(__func__, module,
            {{"entry", entry},
             {"inputs", numInputs ? inputs : &noInput},
             {"outputs", numOutputs ? outputs : static_cast<const void *>(&noOutput)}});
  if (SSAError *error = call.takeRefusal())
    return error;
  SSAEvaluateOptions knownOptions;
  if (SSAError *error = readOptions(options, knownOptions))
    return error;
  if (SSAError *error = call.verify())
    return error;
  std::string problem;
  FunctionOpInterface function = findFunction(call.getModule(), entry, problem);
  if (!function)
    return makeError(SSA_ERROR_USAGE, problem);
  return evaluateFunction(call, function, ArrayRef(inputs, numInputs), MutableArrayRef(outputs, numOutputs),
                          knownOptions);
}
