//===- Tensor.cpp - Values of the reference interpreter -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/Reference/Tensor.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/bit.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/MathExtras.h"
#include <atomic>
#include <cmath>
#include <limits>
#ifdef LLVM_ON_UNIX
#include <sys/resource.h>
#include <unistd.h>
#endif

using namespace mlir;
using namespace mlir::ssa::reference;
using llvm::APFloat;

//===----------------------------------------------------------------------===//
// Rounding
//===----------------------------------------------------------------------===//

static constexpr uint64_t signBit = uint64_t(1) << 63;
static constexpr uint64_t implicitBit = uint64_t(1) << 52;

Rounding::Rounding(Type type) {
  const llvm::fltSemantics &semantics = cast<FloatType>(type).getFloatSemantics();
  precision = APFloat::semanticsPrecision(semantics);
  minExponent = APFloat::semanticsMinExponent(semantics);
  largest = APFloat::getLargest(semantics).convertToDouble();
  hasInf = APFloat::semanticsHasInf(semantics);
  hasNegativeZero = APFloat::getZero(semantics, /*Negative=*/true).isNegative();
  identity = precision >= 53;
  if (identity)
    return;
  double unit = std::ldexp(1.0, std::ilogb(largest) - (precision - 1));
  overflowBound = largest + unit / 2;
  // A tie goes to `largest` itself where its last digit is even (f8E4M3FN, whose odd neighbour is the NaN).
  if (std::fmod(largest / unit, 2.0) == 0.0)
    overflowBound = std::nextafter(overflowBound, std::numeric_limits<double>::infinity());
}

double Rounding::operator()(double x) const {
  if (identity)
    return x;
  uint64_t bits = llvm::bit_cast<uint64_t>(x), sign = bits & signBit, magnitude = bits & ~signBit;
  int exponent = static_cast<int>(magnitude >> 52) - 1023;
  double limit = llvm::bit_cast<double>(magnitude);
  if (limit != limit)
    return x;
  if (limit >= overflowBound) {
    double end = hasInf ? std::numeric_limits<double>::infinity() : largest;
    return sign ? -end : end;
  }

  // The number of low digits to drop; below the least normal exponent the spacing no longer shrinks.
  int drop = 53 - precision + std::max(minExponent - exponent, 0);
  if (drop >= 54) {
    magnitude = 0;
  } else if (drop == 53) {
    // Less than one unit, at least half of one: exactly half is a tie, which zero wins.
    bool tie = (magnitude & (implicitBit - 1)) == 0;
    magnitude = tie ? 0 : static_cast<uint64_t>(exponent + 1 + 1023) << 52;
  } else {
    uint64_t digits = (magnitude & (implicitBit - 1)) | implicitBit, odd = (digits >> drop) & 1;
    // A carry out of the digits increments the exponent, which is just what it should do.
    magnitude += (uint64_t(1) << (drop - 1)) - 1 + odd;
    magnitude &= ~((uint64_t(1) << drop) - 1);
    // With all stored digits dropped the mask has cut into nothing but them, and the exponent is intact.
  }
  if (magnitude == 0 && !hasNegativeZero)
    sign = 0;
  return llvm::bit_cast<double>(magnitude | sign);
}

bool Rounding::overflows(double x) const { return std::isfinite(x) && std::fabs(x) >= overflowBound; }

//===----------------------------------------------------------------------===//
// Tensor
//===----------------------------------------------------------------------===//

/// Keeps count of the elements held by all tensors, so that running out of memory can be an error and not an end.
static std::atomic<int64_t> liveTensorBytes{0};

/// Bytes of one element in the representation of `type`.
static int64_t elementBytes(Type type) {
  if (auto floatType = dyn_cast<FloatType>(type))
    return floatType.getWidth() <= 32 ? sizeof(float) : sizeof(double);
  if (auto integerType = dyn_cast<IntegerType>(type))
    return integerType.getWidth() <= 32 ? sizeof(int32_t) : sizeof(int64_t);
  return sizeof(int64_t);
}

static Tensor::Storage makeStorage(Type type, int64_t count) {
  bool narrow = elementBytes(type) == 4;
  if (isa<FloatType>(type))
    return narrow ? Tensor::Storage(Tensor::Elements<float>(count)) : Tensor::Storage(Tensor::Elements<double>(count));
  return narrow ? Tensor::Storage(Tensor::Elements<int32_t>(count)) : Tensor::Storage(Tensor::Elements<int64_t>(count));
}

bool Tensor::isSupported(Type elementType) {
  if (auto floatType = dyn_cast<FloatType>(elementType)) {
    const llvm::fltSemantics &semantics = floatType.getFloatSemantics();
    return floatType.getWidth() <= 64 && APFloat::semanticsHasZero(semantics) && APFloat::semanticsHasNaN(semantics) &&
           APFloat::semanticsHasSignedRepr(semantics);
  }
  if (auto integerType = dyn_cast<IntegerType>(elementType))
    return integerType.getWidth() >= 1 && integerType.getWidth() <= 64;
  return isa<IndexType>(elementType);
}

int64_t Tensor::byteSize(Type elementType, ArrayRef<int64_t> shape) {
  constexpr int64_t tooLarge = std::numeric_limits<int64_t>::max();
  if (llvm::any_of(shape, [](int64_t size) { return size < 0; }))
    return tooLarge;
  if (llvm::is_contained(shape, 0))
    return 0;
  int64_t bytes = elementBytes(elementType);
  for (int64_t size : shape)
    if (llvm::MulOverflow(bytes, size, bytes))
      return tooLarge;
  return bytes;
}

int64_t Tensor::memoryLimit() {
  int64_t half = int64_t(8) << 30;
#ifdef LLVM_ON_UNIX
  int64_t pages = sysconf(_SC_PHYS_PAGES), pageBytes = sysconf(_SC_PAGESIZE);
  if (pages > 0 && pageBytes > 0)
    half = pages / 2 * pageBytes;
  // A process may be given less than the machine has.
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    half = std::min<int64_t>(half, limit.rlim_cur / 2);
#endif
  return half;
}

int64_t Tensor::liveBytes() { return liveTensorBytes; }

Tensor::Tensor(Type elementType, ArrayRef<int64_t> shape) : elementType(elementType), shape(shape) {
  int64_t bytes = byteSize(elementType, shape);
  numElements = bytes / elementBytes(elementType);
  if (isFloat())
    rounding = Rounding(elementType);
  liveTensorBytes += bytes;
  storage = std::shared_ptr<Storage>(new Storage(makeStorage(elementType, numElements)), [bytes](Storage *held) {
    delete held;
    liveTensorBytes -= bytes;
  });
}

/// Towards zero, saturating, NaN to 0.
static int64_t toInteger(double x) {
  constexpr double bound = 9223372036854775808.0;
  if (x != x)
    return 0;
  if (x >= bound)
    return std::numeric_limits<int64_t>::max();
  if (x < -bound)
    return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(x);
}

double Tensor::getFloat(int64_t index) const {
  return std::visit([index](const auto &elements) { return static_cast<double>(elements[index]); }, *storage);
}

int64_t Tensor::getInt(int64_t index) const {
  return std::visit(
      [index](const auto &elements) -> int64_t {
        if constexpr (std::is_floating_point_v<std::decay_t<decltype(elements[0])>>)
          return toInteger(elements[index]);
        else
          return elements[index];
      },
      *storage);
}

void Tensor::setFloat(int64_t index, double value) {
  if (!isFloat())
    return setInt(index, toInteger(value));
  value = rounding(value);
  if (auto *narrow = std::get_if<Elements<float>>(storage.get()))
    (*narrow)[index] = static_cast<float>(value);
  else
    getMutable<double>()[index] = value;
}

void Tensor::setInt(int64_t index, int64_t value) {
  if (isFloat())
    return setFloat(index, static_cast<double>(value));
  unsigned width = elementType.isIndex() ? 64 : elementType.getIntOrFloatBitWidth();
  value = width == 1 ? value & 1 : llvm::SignExtend64(value, width);
  if (auto *narrow = std::get_if<Elements<int32_t>>(storage.get()))
    (*narrow)[index] = static_cast<int32_t>(value);
  else
    getMutable<int64_t>()[index] = value;
}

Tensor Tensor::copy() const {
  Tensor result(elementType, shape);
  *result.storage = *storage;
  return result;
}

Tensor Tensor::reshaped(ArrayRef<int64_t> newShape) const {
  Tensor result = *this;
  result.shape.assign(newShape.begin(), newShape.end());
  return result;
}
