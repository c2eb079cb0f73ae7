//===- Inputs.cpp - Where the inputs of a run come from -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Inputs.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace mlir;
using namespace mlir::ssa::reference;

static constexpr StringLiteral knownSpecs = "randn:SHAPE[:seed=N], uniform:SHAPE[:seed=N], zeros:SHAPE, arange:SHAPE, "
                                            "value:X or the path of an .npy file";

static llvm::Error makeError(const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

static std::string typeText(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

static uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// Element `j` of the uniform sequence of `seed`.
static double uniformAt(uint64_t seed, uint64_t j) {
  return static_cast<double>(mix(mix(seed) + (j + 1) * 0x9e3779b97f4a7c15) >> 11) * 0x1p-53;
}

static double normalAt(uint64_t seed, uint64_t i) {
  constexpr double tau = 6.283185307179586;
  return std::sqrt(-2 * std::log(1 - uniformAt(seed, 2 * i))) * std::cos(tau * uniformAt(seed, 2 * i + 1));
}

//===----------------------------------------------------------------------===//
// Specs
//===----------------------------------------------------------------------===//

static llvm::Expected<SmallVector<int64_t>> parseShape(StringRef text) {
  SmallVector<int64_t> shape;
  SmallVector<StringRef> sizes;
  if (!text.empty())
    text.split(sizes, 'x');
  for (StringRef size : sizes)
    if (size.getAsInteger(10, shape.emplace_back()) || shape.back() < 0)
      return makeError("'" + text + "' is no shape; shapes are written like 1x8x1000x64");
  return shape;
}

static llvm::Expected<uint64_t> parseSeed(StringRef option, unsigned number) {
  if (option.empty())
    return number;
  uint64_t seed;
  if (!option.consume_front("seed="))
    return makeError("'" + option + "' is no option; seed=N is");
  if (option.getAsInteger(10, seed))
    return makeError("'" + option + "' is no seed; seed=N takes N from 0 to 2^64 - 1");
  return seed;
}

/// Sets all elements, counting those that overflow the element type.
static Imported fill(Tensor tensor, llvm::function_ref<double(int64_t)> value) {
  Imported result;
  result.tensor = std::move(tensor);
  Rounding rounding = result.tensor.isFloat() ? Rounding(result.tensor.getElementType()) : Rounding();
  for (int64_t i = 0; i < result.tensor.getNumElements(); ++i) {
    double x = value(i);
    result.numOverflows += rounding.overflows(x);
    result.tensor.setFloat(i, x);
  }
  return result;
}

static llvm::Expected<Imported> makeScalar(StringRef text, Type type) {
  Imported result;
  result.tensor = Tensor(type, {});
  if (isa<FloatType>(type)) {
    double value;
    if (text.getAsDouble(value, /*AllowInexact=*/true))
      return makeError("'" + text + "' is no number");
    result.numOverflows = Rounding(type).overflows(value);
    result.tensor.setFloat(0, value);
    return result;
  }
  int64_t value;
  if (text.getAsInteger(10, value))
    return makeError("'" + text + "' is no integer, but " + typeText(type) + " is expected");
  result.tensor.setInt(0, value);
  bool isBit = type.isInteger(1);
  if (result.tensor.getInt(0) != value || (isBit && value != 0 && value != 1))
    return makeError("'" + text + "' does not fit " + typeText(type));
  return result;
}

static llvm::Expected<Imported> makeArray(StringRef kind, StringRef rest, unsigned number, Type type) {
  auto [shapeText, option] = rest.split(':');
  bool isRandom = kind == "randn" || kind == "uniform";
  if (isRandom && !isa<FloatType>(type))
    return makeError("gives floating point numbers, but " + typeText(type) + " is expected");
  if (!isRandom && rest.contains(':'))
    return makeError("'" + option + "' is no option; " + kind + " has none");
  llvm::Expected<SmallVector<int64_t>> shape = parseShape(shapeText);
  if (!shape)
    return shape.takeError();
  llvm::Expected<uint64_t> seed = parseSeed(option, number);
  if (!seed)
    return seed.takeError();
  int64_t bytes = Tensor::byteSize(type, *shape);
  if (bytes > Tensor::memoryLimit())
    return makeError("is larger than half of the memory");
  Tensor tensor(type, *shape);
  if (kind == "zeros")
    return fill(tensor, [](int64_t) { return 0.0; });
  if (kind == "randn")
    return fill(tensor, [&](int64_t i) { return normalAt(*seed, i); });
  if (kind == "uniform")
    return fill(tensor, [&](int64_t i) { return uniformAt(*seed, i); });
  int64_t last = tensor.getNumElements() - 1;
  if (!tensor.isFloat() && last >= 0) {
    tensor.setInt(last, last);
    if (tensor.getInt(last) != last)
      return makeError("counts to " + Twine(last) + ", which does not fit " + typeText(type));
  }
  return fill(tensor, [](int64_t i) { return static_cast<double>(i); });
}

llvm::Expected<Imported> mlir::ssa::reference::makeInput(StringRef spec, unsigned number, Type elementType) {
  auto [kind, rest] = spec.split(':');
  if (kind == "value" && spec.contains(':'))
    return makeScalar(rest, elementType);
  if (llvm::is_contained({"randn", "uniform", "zeros", "arange"}, kind) && spec.contains(':'))
    return makeArray(kind, rest, number, elementType);
  auto file = llvm::MemoryBuffer::getFile(spec, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return makeError("cannot be read (" + file.getError().message() + "); an input is " + knownSpecs);
  return readNpy((*file)->getMemBufferRef(), elementType);
}
