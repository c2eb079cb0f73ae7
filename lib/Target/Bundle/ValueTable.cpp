//===- ValueTable.cpp - Integer expressions of plans ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/Target/Plan.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace mlir::ssa;

bool PlanValue::readsValues() const {
  return !llvm::is_contained({"const", "dim", "stride", "scalar", "result_stride", "index"}, operation);
}

ValueNumber ValueTable::add(PlanValue value) {
  std::string key = (value.operation + " " + value.predicate).str();
  for (int64_t operand : value.operands)
    key += " " + std::to_string(operand);
  auto [entry, isNew] = known.try_emplace(key, values.size());
  if (isNew)
    values.push_back(std::move(value));
  return entry->second;
}

ValueNumber ValueTable::leaf(StringRef operation, ArrayRef<int64_t> operands, unsigned stage) {
  return add({operation, "", SmallVector<int64_t, 3>(operands), stage});
}

std::optional<int64_t> ValueTable::getConstant(ValueNumber v) const {
  if (values[v].operation == "const")
    return values[v].operands.front();
  return std::nullopt;
}

/// The quotient of `x` by a `y` that is not 0, rounded down.
static int64_t floorDiv(int64_t x, int64_t y) { return x / y - (x % y != 0 && (x < 0) != (y < 0)); }

/// The result for constants; nothing if it overflows.
static std::optional<int64_t> fold(StringRef operation, int64_t x, int64_t y) {
  int64_t result;
  if (operation == "add")
    return llvm::AddOverflow(x, y, result) ? std::nullopt : std::optional(result);
  if (operation == "sub")
    return llvm::SubOverflow(x, y, result) ? std::nullopt : std::optional(result);
  if (operation == "mul")
    return llvm::MulOverflow(x, y, result) ? std::nullopt : std::optional(result);
  if (operation == "max")
    return std::max(x, y);
  if (operation == "min")
    return std::min(x, y);
  if (operation == "and")
    return x && y;
  if (operation == "or")
    return x || y;
  if (y == 0)
    return 0;
  if (x == std::numeric_limits<int64_t>::min())
    return std::nullopt;
  if (operation == "div")
    return x / y;
  if (operation == "rem")
    return x % y;
  if (operation == "floordiv")
    return floorDiv(x, y);
  return -floorDiv(-x, y); // ceildiv
}

ValueNumber ValueTable::binary(StringRef operation, ValueNumber x, ValueNumber y) {
  std::optional<int64_t> a = getConstant(x), b = getConstant(y);
  if (a && b)
    if (std::optional<int64_t> result = fold(operation, *a, *b))
      return constant(*result);
  bool isProduct = operation == "mul", isSum = operation == "add";
  if (a && (isProduct || isSum || operation == "and" || operation == "or")) { // constants stand on the right
    std::swap(x, y);
    std::swap(a, b);
  }
  if (b && ((*b == 0 && (isSum || operation == "sub" || operation == "or")) ||
            (*b == 1 && (isProduct || operation == "div" || operation == "floordiv" || operation == "ceildiv"))))
    return x;
  if (b == 0 && (isProduct || operation == "and"))
    return constant(0);
  if (x == y && (operation == "max" || operation == "min"))
    return x;
  return add({operation, "", {x, y}, std::max(getStage(x), getStage(y))});
}

ValueNumber ValueTable::compare(StringRef predicate, ValueNumber x, ValueNumber y) {
  std::optional<int64_t> a = getConstant(x), b = getConstant(y);
  if (x == y)
    return constant(predicate == "eq" || predicate == "sle" || predicate == "sge");
  if (a && b)
    return constant(llvm::StringSwitch<bool>(predicate)
                        .Case("eq", *a == *b)
                        .Case("ne", *a != *b)
                        .Case("slt", *a < *b)
                        .Case("sle", *a <= *b)
                        .Case("sgt", *a > *b)
                        .Default(*a >= *b));
  return add({"cmp", predicate, {x, y}, std::max(getStage(x), getStage(y))});
}

ValueNumber ValueTable::select(ValueNumber c, ValueNumber x, ValueNumber y) {
  if (std::optional<int64_t> condition = getConstant(c))
    return *condition ? x : y;
  if (x == y)
    return x;
  return add({"select", "", {c, x, y}, std::max({getStage(c), getStage(x), getStage(y)})});
}
