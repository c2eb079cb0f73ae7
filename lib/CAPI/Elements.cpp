//===- Elements.cpp - Elements of arrays in memory ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Elements.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <cstring>

using namespace mlir;
using namespace mlir::ssa::capi;
using mlir::ssa::reference::Rounding;
using mlir::ssa::reference::Tensor;

namespace {
struct Kind {
  const char *name;
  size_t size;
};
} // namespace

/// By number.
static constexpr Kind kinds[] = {{"none", 0}, {"f64", 8}, {"f32", 4}, {"f16", 2}, {"bf16", 2}, {"f8E4M3FN", 1},
                                 {"bool", 1}, {"i8", 1},  {"i16", 2}, {"i32", 4}, {"i64", 8}};

static const Kind &getKind(SSADType dtype) {
  return isFloat(dtype) || isInteger(dtype) ? kinds[dtype] : kinds[SSA_DTYPE_NONE];
}

size_t ssaDTypeGetSize(SSADType dtype) { return getKind(dtype).size; }

const char *ssaDTypeGetName(SSADType dtype) { return getKind(dtype).name; }

//===----------------------------------------------------------------------===//
// Narrow floating point formats
//===----------------------------------------------------------------------===//

namespace {
/// Sign, exponent, digits, from the highest bit down.
struct Format {
  int exponentBits, digitBits;
  bool hasInf;

  int bias() const { return (1 << (exponentBits - 1)) - 1; }
  int maxExponent() const { return (1 << exponentBits) - 1; }
  unsigned digitMask() const { return (1u << digitBits) - 1; }

  double decode(unsigned bits) const;
  /// `value` must be one of the format's.
  unsigned encode(double value) const;
};
} // namespace

static constexpr Format half{5, 10, true}, bfloat{8, 7, true}, f8E4M3FN{4, 3, false};

double Format::decode(unsigned bits) const {
  int exponent = bits >> digitBits & maxExponent();
  unsigned digits = bits & digitMask();
  double value;
  if (exponent == maxExponent() && hasInf)
    value = digits ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  else if (exponent == maxExponent() && digits == digitMask())
    value = std::numeric_limits<double>::quiet_NaN();
  else if (exponent == 0)
    value = std::ldexp(digits, 1 - bias() - digitBits);
  else
    value = std::ldexp(digits + (1u << digitBits), exponent - bias() - digitBits);
  return std::copysign(value, bits >> (exponentBits + digitBits) & 1 ? -1.0 : 1.0);
}

unsigned Format::encode(double value) const {
  unsigned sign = unsigned(std::signbit(value)) << (exponentBits + digitBits);
  if (std::isnan(value))
    return sign | unsigned(maxExponent()) << digitBits | (hasInf ? 1u << (digitBits - 1) : digitMask());
  value = std::fabs(value);
  if (std::isinf(value))
    return sign | unsigned(maxExponent()) << digitBits;
  if (value == 0)
    return sign;
  int exponent = std::max(std::ilogb(value), 1 - bias());
  unsigned digits = static_cast<unsigned>(std::ldexp(value, digitBits - exponent));
  // The leading digit of normal numbers is 1, and adds one to an exponent field that counts from 0.
  return sign | ((unsigned(exponent + bias() - 1) << digitBits) + digits);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

template <typename T>
static T load(const char *from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

/// Calls `visit(pointer, index)` for every element, in row-major order.
template <typename Visit>
static void forEachElement(const SSAArrayView &view, int64_t numElements, Visit visit) {
  int64_t size = getKind(view.dtype).size;
  SmallVector<int64_t> steps(view.rank), position(view.rank, 0);
  for (int64_t i = view.rank - 1, dense = size; i >= 0; dense *= view.shape[i--])
    steps[i] = view.strides ? view.strides[i] * size : dense;
  int64_t rowLength = view.rank ? view.shape[view.rank - 1] : 1, rowStep = view.rank ? steps.back() : 0;
  const char *row = static_cast<const char *>(view.data);
  for (int64_t index = 0; index < numElements;) {
    for (int64_t i = 0; i < rowLength; ++i)
      visit(row + i * rowStep, index++);
    for (int64_t d = view.rank - 2; d >= 0; --d) {
      row += steps[d];
      if (++position[d] < view.shape[d])
        break;
      row -= position[d] * steps[d];
      position[d] = 0;
    }
  }
}

/// Elements that the tensor holds as they are.
template <typename Held, typename Convert>
static void readAs(const SSAArrayView &view, Tensor &tensor, Convert convert) {
  MutableArrayRef<Held> to = tensor.getMutable<Held>();
  forEachElement(view, tensor.getNumElements(),
                 [&](const char *from, int64_t index) { to[index] = static_cast<Held>(convert(from)); });
}

static int64_t readRounded(const SSAArrayView &view, Tensor &tensor) {
  Rounding rounding(tensor.getElementType());
  int64_t numOverflows = 0;
  readAs<float>(view, tensor, [&](const char *from) {
    double value = load<float>(from);
    numOverflows += rounding.overflows(value);
    return rounding(value);
  });
  return numOverflows;
}

static int64_t loadInteger(SSADType dtype, const char *from) {
  switch (dtype) {
  case SSA_DTYPE_BOOL:
    return *from != 0;
  case SSA_DTYPE_I8:
    return load<int8_t>(from);
  case SSA_DTYPE_I16:
    return load<int16_t>(from);
  case SSA_DTYPE_I32:
    return load<int32_t>(from);
  default:
    return load<int64_t>(from);
  }
}

/// Integers, where the kind has more bits than an element type such as i4.
static ReadReport readIntegers(const SSAArrayView &view, Tensor &tensor) {
  ReadReport report;
  Type type = tensor.getElementType();
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  bool checked = width > 1 && width < 8 * getKind(view.dtype).size, isUnsigned = type.isUnsignedInteger();
  forEachElement(view, tensor.getNumElements(), [&](const char *from, int64_t index) {
    int64_t value = loadInteger(view.dtype, from);
    bool fits = !checked || (isUnsigned ? llvm::isUIntN(width, value) : llvm::isIntN(width, value));
    if (!fits && report.numMisfits++ == 0) {
      report.misfit = value;
      report.misfitIndex = index;
    }
    tensor.setInt(index, value);
  });
  return report;
}

ReadReport mlir::ssa::capi::readElements(const SSAArrayView &view, Tensor &tensor) {
  ReadReport report;
  switch (view.dtype) {
  case SSA_DTYPE_F64:
    readAs<double>(view, tensor, load<double>);
    return report;
  case SSA_DTYPE_F32:
    if (tensor.getElementType().isF32())
      readAs<float>(view, tensor, load<float>);
    else
      report.numOverflows = readRounded(view, tensor);
    return report;
  case SSA_DTYPE_F16:
    readAs<float>(view, tensor, [](const char *from) { return half.decode(load<uint16_t>(from)); });
    return report;
  case SSA_DTYPE_BF16:
    readAs<float>(view, tensor,
                  [](const char *from) { return llvm::bit_cast<float>(uint32_t(load<uint16_t>(from)) << 16); });
    return report;
  case SSA_DTYPE_F8E4M3:
    readAs<float>(view, tensor, [](const char *from) { return f8E4M3FN.decode(load<uint8_t>(from)); });
    return report;
  default:
    return readIntegers(view, tensor);
  }
}

//===----------------------------------------------------------------------===//
// Converting
//===----------------------------------------------------------------------===//

/// The elements of `tensor` as T.
template <typename T, typename Convert>
static std::vector<char> makeBytes(const Tensor &tensor, Convert convert) {
  std::vector<char> bytes(tensor.getNumElements() * sizeof(T));
  tensor.visit([&](auto elements) {
    for (auto [i, element] : llvm::enumerate(elements)) {
      T value = static_cast<T>(convert(element));
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
  });
  return bytes;
}

template <typename T>
static std::vector<char> roundTo(const Tensor &tensor, Type type, Format format) {
  Rounding rounding(type);
  return makeBytes<T>(tensor, [&](double value) { return format.encode(rounding(value)); });
}

template <typename T>
static std::vector<char> castTo(const Tensor &tensor) {
  return makeBytes<T>(tensor, [](auto value) { return value; });
}

/// Fails at the first element beyond `dtype`.
static llvm::Error checkFits(const Tensor &tensor, SSADType dtype) {
  unsigned width = 8 * getKind(dtype).size;
  for (int64_t i = 0; i < tensor.getNumElements(); ++i) {
    int64_t value = tensor.getInt(i);
    if (dtype == SSA_DTYPE_BOOL ? value != 0 && value != 1 : !llvm::isIntN(width, value))
      return llvm::createStringError("element " + Twine(i) + " is " + Twine(value) + ", which " + getKind(dtype).name +
                                     " does not hold");
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<char>> mlir::ssa::capi::convertElements(const Tensor &tensor, SSADType dtype) {
  MLIRContext *context = tensor.getElementType().getContext();
  if (tensor.isFloat() ? !isFloat(dtype) : !isInteger(dtype))
    return llvm::createStringError(Twine("expected ") + (tensor.isFloat() ? "a floating point" : "an integer") +
                                   " kind, as the elements are, but got " + getKind(dtype).name);
  if (!tensor.isFloat())
    if (llvm::Error error = checkFits(tensor, dtype))
      return std::move(error);
  switch (dtype) {
  case SSA_DTYPE_F64:
    return castTo<double>(tensor);
  case SSA_DTYPE_F32:
    return castTo<float>(tensor);
  case SSA_DTYPE_F16:
    return roundTo<uint16_t>(tensor, Float16Type::get(context), half);
  case SSA_DTYPE_BF16:
    return roundTo<uint16_t>(tensor, BFloat16Type::get(context), bfloat);
  case SSA_DTYPE_F8E4M3:
    return roundTo<uint8_t>(tensor, Float8E4M3FNType::get(context), f8E4M3FN);
  case SSA_DTYPE_I16:
    return castTo<int16_t>(tensor);
  case SSA_DTYPE_I32:
    return castTo<int32_t>(tensor);
  case SSA_DTYPE_I64:
    return castTo<int64_t>(tensor);
  default:
    return castTo<int8_t>(tensor);
  }
}

const void *mlir::ssa::capi::getHeldElements(const Tensor &tensor, SSADType dtype) {
  SSADType held = SSA_DTYPE_NONE;
  const void *data = nullptr;
  tensor.visit([&](auto elements) {
    using T = typename decltype(elements)::value_type;
    held = std::is_same_v<T, float>     ? SSA_DTYPE_F32
           : std::is_same_v<T, double>  ? SSA_DTYPE_F64
           : std::is_same_v<T, int32_t> ? SSA_DTYPE_I32
                                        : SSA_DTYPE_I64;
    data = elements.data();
  });
  return held == dtype ? data : nullptr;
}
