//===- PlanSizes.cpp - The numbers of a plan at given sizes ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "PlanSizes.h"

using namespace mlir;
using namespace mlir::ssa;

PlanSizes::PlanSizes(const Plan &plan, ArrayRef<SmallVector<int64_t>> shapes) : plan(plan), shapes(shapes) {
  for (const PlanValue &value : plan.values)
    numbers.push_back(compute(value));
}

int64_t PlanSizes::getStride(ArrayRef<int64_t> shape, int64_t dim) {
  int64_t stride = 1;
  for (int64_t size : shape.drop_front(dim + 1))
    stride *= std::max<int64_t>(size, 1);
  return stride;
}

/// By folding, so that there is one place that says what an operation does.
int64_t PlanSizes::compute(const PlanValue &value) const {
  ValueTable table;
  auto operand = [&](unsigned i) { return table.constant(numbers[value.operands[i]]); };
  ValueNumber result;
  if (value.operation == "const")
    return value.operands.front();
  if (value.operation == "dim")
    return shapes[value.operands[0]][value.operands[1]];
  if (value.operation == "stride")
    return getStride(shapes[value.operands[0]], value.operands[1]);
  if (value.operation == "result_stride")
    return getStride(llvm::map_to_vector(plan.results[value.operands[0]].shape, [&](ValueNumber v) { return numbers[v]; }), value.operands[1]);
  if (value.operation == "scalar")
    return 1;
  if (value.operation == "index")
    return 0;
  if (value.operation == "cmp")
    result = table.compare(value.predicate, operand(0), operand(1));
  else if (value.operation == "select")
    result = table.select(operand(0), operand(1), operand(2));
  else
    result = table.binary(value.operation, operand(0), operand(1));
  return table.getConstant(result).value_or(0);
}

static int64_t getElementBytes(StringRef dtype) {
  int64_t bits = 0;
  // Of f8e4m3fn the 8.
  dtype.drop_while([](char c) { return !llvm::isDigit(c); }).consumeInteger(10, bits);
  return std::max<int64_t>(bits / 8, 1);
}

int64_t PlanSizes::getBytes(unsigned number) const {
  const PlanBuffer &buffer = plan.buffers[number];
  int64_t bytes = getElementBytes(buffer.dtype);
  for (ValueNumber size : buffer.shape)
    bytes *= get(size);
  return bytes;
}

int64_t PlanSizes::getLanes(unsigned number) const {
  for (const PlanRepeat &repeat : plan.repeats)
    if (repeat.launches[0] <= number && number < repeat.launches[1])
      return std::max<int64_t>(std::min(repeat.lanes, get(repeat.count)), 1);
  return 1;
}

int64_t PlanSizes::getRuns(unsigned number) const {
  const PlanLaunch &launch = plan.launches[number];
  bool isEmpty = llvm::any_of(launch.grid, [&](ValueNumber size) { return get(size) == 0; });
  if (isEmpty || (launch.condition && !get(*launch.condition)))
    return 0;
  for (const PlanRepeat &repeat : plan.repeats)
    if (repeat.launches[0] <= number && number < repeat.launches[1])
      return std::max<int64_t>(get(repeat.count), 0);
  return 1;
}

std::vector<std::string> PlanSizes::getRefusals() const {
  std::vector<std::string> found;
  for (const PlanCheck &check : plan.checks) {
    int64_t x = get(check.values.front()), y = get(check.values.back());
    bool holds = check.kind == "equal" ? x == y : check.kind == "at_most" ? x <= y : x != 0;
    if (!holds)
      found.push_back(check.message + (check.kind == "holds" ? "" : ", but got " + std::to_string(x) + " and " + std::to_string(y)));
  }
  return found;
}
