//===- Arrays.cpp - Where arrays lie --------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/Runtime/Call.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir::ssa::runtime;

ArrayView ArrayView::contiguous(uint64_t pointer, DType dtype, llvm::ArrayRef<int64_t> shape) {
  ArrayView array;
  array.pointer = pointer;
  array.dtype = dtype;
  array.shape.assign(shape.begin(), shape.end());
  array.strides.resize(shape.size());
  uint64_t step = 1; // wraps where the array could not exist anyway
  for (size_t d = shape.size(); d-- > 0;) {
    array.strides[d] = step;
    step *= std::max<int64_t>(shape[d], 1);
  }
  return array;
}

bool ArrayView::isEmpty() const { return llvm::is_contained(shape, 0); }

int64_t ArrayView::getExtentInBytes() const {
  if (isEmpty())
    return 0;
  int64_t last = 0;
  for (auto [size, stride] : llvm::zip(shape, strides))
    last += (size - 1) * stride;
  return (last + 1) * getByteSize(dtype);
}

ArgumentValue ArgumentValue::ofInteger(int64_t value) {
  ArgumentValue argument;
  argument.isScalar = true;
  argument.integer = value;
  return argument;
}

ArgumentValue ArgumentValue::ofFloat(double value) {
  ArgumentValue argument;
  argument.isScalar = true;
  argument.dtype = DType::F64;
  argument.floating = value;
  return argument;
}

//===----------------------------------------------------------------------===//
// Overlap
//===----------------------------------------------------------------------===//

/// Bytes that one step of the dimensions below `period` bytes can reach, the element included; 0 if a longer stride is
/// no multiple of the period.
static int64_t getFootprint(const ArrayView &array, int64_t period) {
  int64_t bytes = getByteSize(array.dtype), last = 0;
  for (auto [size, stride] : llvm::zip(array.shape, array.strides)) {
    if (size == 1)
      continue;
    if (stride * bytes < period)
      last += (size - 1) * stride * bytes;
    else if (stride * bytes % period)
      return 0;
  }
  return last + bytes;
}

/// True if the bytes of the two modulo `period` are two separate intervals.
static bool areDisjointModulo(const ArrayView &a, const ArrayView &b, int64_t period) {
  int64_t sizeA = getFootprint(a, period), sizeB = getFootprint(b, period);
  if (!sizeA || !sizeB || sizeA + sizeB > period)
    return false;
  int64_t distance = (b.pointer % period + period - a.pointer % period) % period;
  return distance >= sizeA && distance <= period - sizeB;
}

bool mlir::ssa::runtime::areDisjoint(const ArrayView &a, const ArrayView &b) {
  uint64_t endA = a.pointer + a.getExtentInBytes(), endB = b.pointer + b.getExtentInBytes();
  if (a.isEmpty() || b.isEmpty() || endA <= b.pointer || endB <= a.pointer)
    return true;
  for (const ArrayView *array : {&a, &b})
    for (auto [size, stride] : llvm::zip(array->shape, array->strides))
      if (size > 1 && stride > 0 && areDisjointModulo(a, b, stride * getByteSize(array->dtype)))
        return true;
  return false;
}

bool mlir::ssa::runtime::isInjective(const ArrayView &array) {
  if (array.isEmpty())
    return true;
  llvm::SmallVector<std::pair<int64_t, int64_t>, 5> dims;
  for (auto [size, stride] : llvm::zip(array.shape, array.strides))
    if (size > 1)
      dims.push_back({stride, size});
  llvm::sort(dims);
  int64_t last = 0;
  for (auto [stride, size] : dims) {
    if (stride <= last)
      return false;
    last += (size - 1) * stride;
  }
  return true;
}
