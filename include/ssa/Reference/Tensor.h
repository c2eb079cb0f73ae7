//===- Tensor.h - Values of the reference interpreter -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_REFERENCE_TENSOR_H
#define SSA_REFERENCE_TENSOR_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MemAlloc.h"
#include <cstdint>
#include <limits>
#include <memory>
#include <variant>
#include <vector>

namespace llvm {
struct fltSemantics;
} // namespace llvm

namespace mlir::ssa::reference {

/// Rounds doubles to the nearest value of a narrower floating point format, ties to even.
///
/// Values beyond the largest finite number become infinite, except in formats without infinities
/// (f8E4M3FN), where they saturate; NaN stays NaN. Integer arithmetic on the bits: no rounding mode and no fast-math
/// flag has a say in it.
class Rounding {
public:
  /// Rounds nothing, like f64.
  Rounding() = default;

  /// `type` is a floating point type that Tensor::isSupported.
  explicit Rounding(Type type);

  double operator()(double x) const;

  /// True if `x` is finite and its nearest value in the format is not (or saturates).
  bool overflows(double x) const;

private:
  int precision = 53;
  int minExponent = -1022;
  double largest = 0;
  /// The least magnitude that no longer rounds to `largest`.
  double overflowBound = std::numeric_limits<double>::infinity();
  bool hasInf = true;
  bool hasNegativeZero = true;
  /// True for f64, where nothing is rounded.
  bool identity = true;
};

/// Memory that the system gives as zeros: a tensor that only its shape is read of costs none.
template <typename T>
struct ZeroedAllocator {
  using value_type = T;

  ZeroedAllocator() = default;
  template <typename U>
  ZeroedAllocator(const ZeroedAllocator<U> &) {}

  T *allocate(size_t count) { return static_cast<T *>(llvm::safe_calloc(count, sizeof(T))); }
  void deallocate(T *start, size_t) { std::free(start); }
  /// Elements without a value of their own are already there.
  template <typename U>
  void construct(U *) {}
  template <typename U, typename Arg>
  void construct(U *place, Arg &&value) {
    ::new (static_cast<void *>(place)) U(std::forward<Arg>(value));
  }
  friend bool operator==(ZeroedAllocator, ZeroedAllocator) { return true; }
  friend bool operator!=(ZeroedAllocator, ZeroedAllocator) { return false; }
};

/// A dense row-major tensor on the host, any rank, zero sizes too; scalars and `index` values are tensors of
/// rank 0, selections are `i32` tensors. Copies share their elements.
///
/// Elements are stored in the narrowest of four representations that holds them exactly: `float` for floating
/// point types of up to 32 bits, `double` for f64, `int32_t` for integers of up to 32 bits (sign-extended; i1 is
/// 0 or 1), `int64_t` for wider ones and `index`.
class Tensor {
public:
  template <typename T>
  using Elements = std::vector<T, ZeroedAllocator<T>>;
  using Storage = std::variant<Elements<float>, Elements<double>, Elements<int32_t>, Elements<int64_t>>;

  Tensor() = default;

  /// A tensor of zeros. `elementType` must be one that `isSupported` and `byteSize` of the two must fit in memory.
  Tensor(Type elementType, ArrayRef<int64_t> shape);

  /// True if a tensor of this element type can be held at all: index, integers of 1 to 64 bits and floating point types
  /// of at most 64 bits that have zero, NaN and a sign.
  static bool isSupported(Type elementType);

  /// The bytes that a tensor of this type needs here, or the largest int64_t if that does not fit in one.
  static int64_t byteSize(Type elementType, ArrayRef<int64_t> shape);

  /// The most bytes that one tensor should take: half of the machine's memory.
  static int64_t memoryLimit();

  /// The bytes that all tensors of this process hold at the moment.
  static int64_t liveBytes();

  Type getElementType() const { return elementType; }
  ArrayRef<int64_t> getShape() const { return shape; }
  int64_t getRank() const { return shape.size(); }
  int64_t getDim(unsigned i) const { return shape[i]; }
  int64_t getNumElements() const { return numElements; }
  bool isFloat() const { return isa<FloatType>(elementType); }
  explicit operator bool() const { return storage != nullptr; }

  /// All elements; T must be the representation of the element type (see above).
  template <typename T>
  ArrayRef<T> get() const {
    return std::get<Elements<T>>(*storage);
  }
  template <typename T>
  MutableArrayRef<T> getMutable() {
    return std::get<Elements<T>>(*storage);
  }

  /// Calls `fn` with all elements, an ArrayRef of whichever the representation is.
  template <typename Fn>
  void visit(Fn fn) const {
    std::visit([&](const auto &elements) { fn(ArrayRef(elements.data(), elements.size())); }, *storage);
  }

  /// One element, converted (floating point to integer: towards zero, saturating, NaN to 0); `set` functions round to
  /// the element type (see Rounding) or wrap to its width.
  double getFloat(int64_t index) const;
  int64_t getInt(int64_t index) const;
  void setFloat(int64_t index, double value);
  void setInt(int64_t index, int64_t value);

  /// A tensor with elements of its own.
  Tensor copy() const;

  /// The same elements under another shape of as many elements.
  Tensor reshaped(ArrayRef<int64_t> newShape) const;

private:
  Type elementType;
  SmallVector<int64_t, 5> shape;
  int64_t numElements = 0;
  /// Of floating point element types.
  Rounding rounding;
  std::shared_ptr<Storage> storage;
};

} // namespace mlir::ssa::reference

#endif // SSA_REFERENCE_TENSOR_H
