//===- Call.cpp - Checks and evaluates calls ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// python/ssa/_call.py does the same, with the same messages.
//
//===----------------------------------------------------------------------===//

#include "ssa/Runtime/Call.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>
#include <limits>

using namespace mlir::ssa::runtime;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using llvm::Twine;

Error Call::fail(const Twine &message) const { return makeError(plan->entry + ": " + message); }

static std::string describe(ArrayRef<int64_t> extents) {
  return extents.empty() ? "()"
                         : llvm::join(llvm::map_range(extents, [](int64_t e) { return std::to_string(e); }), "x");
}

static std::string describe(const Extents &extents) {
  auto one = [](std::optional<int64_t> e) { return e ? std::to_string(*e) : "?"; };
  return extents.empty() ? "()" : llvm::join(llvm::map_range(extents, one), "x");
}

static std::string describeAddress(uint64_t address) { return "0x" + llvm::utohexstr(address, /*LowerCase=*/true); }

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

/// What has to hold for any array: `what` is "argument 'q'". An empty string if all is right.
static std::string checkLayout(const std::string &what, const ArrayView &array) {
  int64_t elements = 1, last = 0, reach;
  bool overflows = false;
  if (llvm::any_of(array.shape, [](int64_t size) { return size < 0; }))
    return what + " must not have negative sizes, but got " + describe(array.shape);
  for (auto [size, stride] : llvm::zip(array.shape, array.strides)) {
    if (array.isEmpty()) {
      overflows |= llvm::MulOverflow(elements, std::max<int64_t>(size, 1), elements);
      continue;
    }
    if (size > 1 && stride < 0)
      return what + " must not have negative strides, but got " + describe(array.strides);
    overflows |= llvm::MulOverflow(elements, std::max<int64_t>(size, 1), elements);
    if (size > 1)
      overflows |= llvm::MulOverflow(size - 1, stride, reach) || llvm::AddOverflow(last, reach, last);
  }
  constexpr int64_t limit = std::numeric_limits<int64_t>::max() / 16;
  if (overflows || elements > limit || last > limit)
    return what + " is too large: shape " + describe(array.shape) + ", strides " + describe(array.strides);
  return "";
}

/// Checks the address, and the strides of dimensions for which `isFree(d)` holds.
static std::string checkAlignment(const std::string &what, const ArrayView &array, int64_t alignment,
                                  llvm::function_ref<bool(size_t)> isFree) {
  if (array.isEmpty())
    return "";
  if (!array.pointer)
    return what + " must not be a null pointer";
  std::string rule = what + " must be aligned to " + std::to_string(alignment) + " bytes, but its ";
  if (array.pointer % alignment)
    return rule + "address is " + describeAddress(array.pointer);
  for (size_t d = 0; d < array.shape.size(); ++d) {
    int64_t bytes = array.strides[d] * getByteSize(array.dtype);
    if (array.shape[d] > 1 && isFree(d) && bytes % alignment)
      return rule + "stride in dimension " + std::to_string(d) + " is " + std::to_string(bytes) + " bytes";
  }
  return "";
}

/// Gives dimensions along which there is nothing to step, and all of an array without elements, the stride of a
/// contiguous array, so that what was there has no influence.
static void normalizeStrides(ArrayView &array) {
  int64_t step = 1;
  bool isEmpty = array.isEmpty();
  for (size_t d = array.shape.size(); d-- > 0;) {
    if (isEmpty || array.shape[d] <= 1)
      array.strides[d] = step;
    step *= std::max<int64_t>(array.shape[d], 1);
  }
}

static std::string checkContiguous(const std::string &what, const ArrayView &array) {
  if (array.isEmpty() || array.strides == ArrayView::contiguous(0, array.dtype, array.shape).strides)
    return "";
  return what + " must be contiguous, but got shape " + describe(array.shape) + " with strides " +
         describe(array.strides);
}

static std::string checkStride(const std::string &what, const ArrayView &array, unsigned dimension, int64_t expected) {
  if (array.shape[dimension] <= 1 || array.strides[dimension] == expected)
    return "";
  return what + " must have stride " + std::to_string(expected) + " in dimension " + std::to_string(dimension) +
         ", but got strides " + describe(array.strides);
}

Error Call::checkArray(unsigned number) {
  const Argument &argument = plan->arguments[number];
  ArrayView &array = arguments[number].array;
  std::string what = "argument '" + argument.name + "'";
  if (array.dtype != argument.dtype)
    return fail(what + " must be " + getName(argument.dtype) + ", but got " + getName(array.dtype));
  bool matches = array.shape.size() == argument.shape.size();
  for (size_t d = 0; matches && d < array.shape.size(); ++d)
    matches = argument.shape[d].value_or(array.shape[d]) == array.shape[d];
  if (!matches)
    return fail(what + " must have shape " + describe(argument.shape) + ", but got " + describe(array.shape));
  if (array.strides.size() != array.shape.size())
    return fail(what + " must have as many strides as sizes");
  std::string wrong = checkLayout(what, array);
  if (wrong.empty()) {
    normalizeStrides(array);
    if (argument.isContiguous)
      wrong = checkContiguous(what, array);
    else
      for (size_t d = array.shape.size(); wrong.empty() && d-- > 0;)
        if (argument.strides[d])
          wrong = checkStride(what, array, d, *argument.strides[d]);
  }
  auto isFree = [&](size_t d) { return !argument.isContiguous && !argument.strides[d]; };
  if (wrong.empty() && argument.access != Access::None)
    wrong = checkAlignment(what, array, argument.alignment, isFree);
  return wrong.empty() ? Error::success() : fail(wrong);
}

static std::string checkScalar(const Argument &argument, const ArgumentValue &value) {
  std::string what = "argument '" + argument.name + "' must be ";
  std::string dtype = getName(argument.dtype).str();
  if (isInteger(value.dtype) != isInteger(argument.dtype))
    return what + dtype + ", but got " + (isInteger(value.dtype) ? "an integer" : "a floating point number");
  unsigned width = argument.dtype == DType::I1 ? 1 : 8 * getByteSize(argument.dtype);
  bool fits = width == 1 ? value.integer == 0 || value.integer == 1 : llvm::isIntN(width, value.integer);
  if (isInteger(argument.dtype) && !fits)
    return what + dtype + ", but got " + std::to_string(value.integer);
  return "";
}

Error Call::checkArguments() {
  size_t expected = plan->arguments.size();
  auto names = llvm::map_range(plan->arguments, [](const Argument &argument) { return argument.name; });
  if (arguments.size() != expected)
    return fail("expected " + Twine(expected) + (expected == 1 ? " argument (" : " arguments (") +
                llvm::join(names, ", ") + "), but got " + Twine(arguments.size()));
  for (auto [i, argument] : llvm::enumerate(plan->arguments)) {
    if (argument.isScalar != arguments[i].isScalar)
      return fail(
          "argument '" + argument.name + "' must be " +
          (argument.isScalar ? getName(argument.dtype) + ", but got an array" : Twine("an array, but got a number")));
    if (!argument.isScalar) {
      if (Error error = checkArray(i))
        return error;
      continue;
    }
    std::string wrong = checkScalar(argument, arguments[i]);
    if (!wrong.empty())
      return fail(wrong);
    arguments[i].dtype = argument.dtype;
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// A quotient rounded towards zero, down (-1) or up (1); the divisor is not 0 and the quotient fits.
static int64_t divide(int64_t x, int64_t y, int direction) {
  int64_t quotient = x / y;
  if (direction && x % y && ((x < 0) != (y < 0)) == (direction < 0))
    quotient += direction;
  return quotient;
}

static bool isDivision(Operation operation) {
  return llvm::is_contained({Operation::Div, Operation::Rem, Operation::FloorDiv, Operation::CeilDiv}, operation);
}

/// The operation on two values; nullopt if the result does not fit.
static std::optional<int64_t> apply(Operation operation, int64_t x, int64_t y) {
  if (isDivision(operation) && !y)
    return 0;
  int64_t result;
  auto checked = [&](bool overflows) { return overflows ? std::nullopt : std::optional(result); };
  bool overflows = y == -1 && x == std::numeric_limits<int64_t>::min();
  switch (operation) {
  case Operation::Add:
    return checked(llvm::AddOverflow(x, y, result));
  case Operation::Sub:
    return checked(llvm::SubOverflow(x, y, result));
  case Operation::Mul:
    return checked(llvm::MulOverflow(x, y, result));
  case Operation::Div:
    return overflows ? std::nullopt : std::optional(divide(x, y, 0));
  case Operation::FloorDiv:
    return overflows ? std::nullopt : std::optional(divide(x, y, -1));
  case Operation::CeilDiv:
    return overflows ? std::nullopt : std::optional(divide(x, y, 1));
  case Operation::Rem:
    return overflows ? 0 : x % y;
  case Operation::Max:
    return std::max(x, y);
  case Operation::Min:
    return std::min(x, y);
  case Operation::Eq:
    return x == y;
  case Operation::Ne:
    return x != y;
  case Operation::Lt:
    return x < y;
  case Operation::Le:
    return x <= y;
  case Operation::Gt:
    return x > y;
  case Operation::Ge:
    return x >= y;
  case Operation::And:
    return x && y;
  default:
    return x || y;
  }
}

/// The value; an error if it cannot be computed, an empty one if that is because an operand could not be.
Expected<int64_t> Call::compute(unsigned number) const {
  const PlanValue &value = plan->values[number];
  auto [a, b, c] = value.operands;
  switch (value.operation) {
  case Operation::Const:
    return value.constant;
  case Operation::Dim:
    return arguments[a].array.shape[b];
  case Operation::Stride:
    return arguments[a].array.strides[b];
  case Operation::Scalar:
    return arguments[a].integer;
  case Operation::ResultStride:
    return resultArrays[a].strides[b];
  case Operation::Index:
    return indices[a];
  case Operation::Select:
    if (!values[a] || !values[b] || !values[c])
      return makeError("");
    return *values[a] ? *values[b] : *values[c];
  default:
    break;
  }
  if (!values[a] || !values[b])
    return makeError("");
  int64_t x = *values[a], y = *values[b];
  std::optional<int64_t> result = apply(value.operation, x, y);
  if (!result)
    return makeError("value " + Twine(number) + ", '" + getName(value.operation) + "' of " + Twine(x) + " and " +
                     Twine(y) + ", does not fit in 64 bits");
  return *result;
}

/// Computes a value. One that cannot be computed is an error only if a check does not say it better, so the first such
/// is kept in `problem`.
void Call::evaluate(unsigned number) {
  Expected<int64_t> value = compute(number);
  values[number] = value ? std::optional(*value) : std::nullopt;
  if (value)
    return;
  std::string why = llvm::toString(value.takeError());
  if (problem.empty())
    problem = why;
}

Error Call::runChecks() {
  for (const Check &check : plan->checks) {
    bool isUnary = check.kind == Check::Holds;
    if (!values[check.left] || (!isUnary && !values[check.right]))
      break;
    int64_t left = *values[check.left], right = isUnary ? 0 : *values[check.right];
    if (isUnary && !left)
      return fail(check.message);
    if (!isUnary && (check.kind == Check::Equal ? left != right : left > right))
      return fail(check.message + ", but got " + Twine(left) + " and " + Twine(right));
  }
  return problem.empty() ? Error::success() : fail(problem);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

Expected<Call> Call::create(const Plan &plan, ArrayRef<ArgumentValue> arguments) {
  Call call(plan);
  call.arguments.assign(arguments.begin(), arguments.end());
  if (Error error = call.checkArguments())
    return error;
  call.values.resize(plan.values.size());
  call.indices.resize(plan.repeats.size());
  for (unsigned number = 0; number < plan.numInputs; ++number)
    call.evaluate(number);
  if (Error error = call.runChecks())
    return error;
  for (const Result &result : plan.results) {
    llvm::SmallVector<int64_t, 5> shape;
    for (ValueNumber number : result.shape)
      shape.push_back(*call.values[number]);
    call.resultArrays.push_back(ArrayView::contiguous(0, result.dtype, shape));
    std::string wrong = checkLayout("result '" + result.name + "'", call.resultArrays.back());
    if (!wrong.empty())
      return call.fail(wrong);
  }
  return call;
}

Error Call::checkResult(unsigned number) const {
  const Result &result = plan->results[number];
  const ArrayView &array = resultArrays[number];
  std::string what = "result '" + result.name + "'";
  std::string wrong = checkLayout(what, array);
  if (wrong.empty() && result.isContiguous)
    wrong = checkContiguous(what, array);
  if (wrong.empty() && !result.isContiguous && !array.shape.empty())
    wrong = checkStride(what, array, array.shape.size() - 1, 1);
  auto isFree = [&](size_t d) { return !result.isContiguous && d + 1 < array.shape.size(); };
  if (wrong.empty())
    wrong = checkAlignment(what, array, result.alignment, isFree);
  if (wrong.empty() && !isInjective(array))
    wrong = what + " must not overlap itself, but got shape " + describe(array.shape) + " with strides " +
            describe(array.strides);
  return wrong.empty() ? Error::success() : fail(wrong);
}

Error Call::checkOverlap(unsigned number) const {
  std::string what = "result '" + plan->results[number].name + "' must not overlap ";
  for (auto [argument, value] : llvm::zip(plan->arguments, arguments))
    if (!argument.isScalar && argument.access != Access::None && !areDisjoint(resultArrays[number], value.array))
      return fail(what + "argument '" + argument.name + "'");
  for (unsigned other = 0; other < number; ++other)
    if (plan->results[other].isOwned && !areDisjoint(resultArrays[number], resultArrays[other]))
      return fail(what + "result '" + plan->results[other].name + "'");
  return Error::success();
}

Error Call::setResults(ArrayRef<ArrayView> arrays) {
  if (arrays.size() != resultArrays.size())
    return fail("expected " + Twine(resultArrays.size()) + " results, but got " + Twine(arrays.size()));
  for (auto [i, result] : llvm::enumerate(plan->results)) {
    if (!result.isOwned)
      continue;
    const ArrayView &array = arrays[i];
    std::string what = "result '" + result.name + "'";
    if (array.dtype != result.dtype)
      return fail(what + " must be " + getName(result.dtype) + ", but got " + getName(array.dtype));
    if (array.shape != resultArrays[i].shape || array.strides.size() != array.shape.size())
      return fail(what + " must have shape " + describe(resultArrays[i].shape) + ", but got " + describe(array.shape));
    resultArrays[i] = array;
    normalizeStrides(resultArrays[i]);
    if (Error error = checkResult(i))
      return error;
    if (Error error = checkOverlap(i))
      return error;
  }
  return evaluateRest();
}

Error Call::evaluateRest() {
  std::vector<bool> isRepeated(plan->values.size()); // those are computed when their repeat runs
  for (const Repeat &repeat : plan->repeats)
    std::fill(isRepeated.begin() + repeat.values[0], isRepeated.begin() + repeat.values[1], true);
  for (unsigned number = plan->numInputs; number < plan->values.size(); ++number)
    if (!isRepeated[number])
      evaluate(number);
  if (!problem.empty())
    return fail(problem);
  workspaceBytes = *values[plan->workspaceBytes];
  if (workspaceBytes < 0)
    return fail("the workspace has " + Twine(workspaceBytes) + " bytes");
  for (auto [array, result] : llvm::zip(resultArrays, plan->results)) {
    if (result.isOwned)
      continue;
    for (auto [d, number] : llvm::enumerate(plan->buffers[result.buffer].strides))
      array.strides[d] = *values[number];
    array.pointer = getAddress(result.buffer, 0);
  }
  return Error::success();
}

Error Call::forEachArray(llvm::function_ref<Error(const Twine &what, const ArrayView &array)> check) const {
  for (auto [argument, value] : llvm::zip(plan->arguments, arguments))
    if (!argument.isScalar && argument.access != Access::None)
      if (Error error = check("argument '" + argument.name + "'", value.array))
        return error;
  for (auto [result, array] : llvm::zip(plan->results, resultArrays))
    if (result.isOwned)
      if (Error error = check("result '" + result.name + "'", array))
        return error;
  return Error::success();
}
