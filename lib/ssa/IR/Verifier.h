//===- Verifier.h - Checks that verifiers share -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_IR_VERIFIER_H
#define SSA_LIB_IR_VERIFIER_H

#include "ssa/IR/Geometry.h"
#include <cmath>
#include <limits>

namespace mlir::ssa {

/// Sizes and counts are below 2^31, so that sums and products of two of them cannot overflow.
constexpr int64_t maxSize = std::numeric_limits<int32_t>::max();

/// An operand or result with its name, for checks and messages.
struct Named {
  std::string name;
  ShapedType type;
  Named(StringRef name, Type type) : name(name.str()), type(cast<ShapedType>(type)) {}
};

/// The name and type of an operand that may be missing.
inline std::optional<Named> named(StringRef name, Value value) {
  return value ? std::optional<Named>(std::in_place, name, value.getType()) : std::nullopt;
}

/// A dimension of an operand or result; of a missing one nothing is known.
struct Dim {
  const Named *of = nullptr;
  unsigned i = 0;
  Dim() = default;
  Dim(const Named &of, unsigned i) : of(&of), i(i) {}
  Dim(const std::optional<Named> &of, unsigned i) : of(of ? &*of : nullptr), i(i) {}
  int64_t size() const { return of ? of->type.getDimSize(i) : ShapedType::kDynamic; }
  bool isDynamic() const { return ShapedType::isDynamic(size()); }
  StringRef name() const { return of ? of->name : StringRef(); }
};

class Verifier {
public:
  /// Begins with the sizes of all operands and results.
  explicit Verifier(Operation *op) : op(op) {
    for (auto [i, type] : llvm::enumerate(op->getOperandTypes()))
      bounded("operand", i, type);
    for (auto [i, type] : llvm::enumerate(op->getResultTypes()))
      bounded("result", i, type);
  }
  operator LogicalResult() const { return result; }
  bool failed() const { return mlir::failed(result); }

  /// Emits an error unless `condition`; only the first one of an op is emitted.
  template <typename... Args>
  Verifier &check(bool condition, Args &&...message) {
    if (!condition && succeeded(result)) {
      InFlightDiagnostic diag = op->emitOpError();
      (void)(diag << ... << std::forward<Args>(message));
      result = diag;
    }
    return *this;
  }

  /// `a` is `size` (`why` says what that is).
  Verifier &is(Dim a, int64_t size, StringRef why) {
    if (a.isDynamic() || ShapedType::isDynamic(size))
      return *this;
    return check(a.size() == size, "expected dimension ", a.i, " of '", a.name(), "' to be ", size, ", ", why,
                 ", but got ", a.size());
  }

  /// `a` is at most `size` (`why` says what that is).
  Verifier &atMost(Dim a, int64_t size, StringRef why) {
    if (a.isDynamic() || ShapedType::isDynamic(size))
      return *this;
    return check(a.size() <= size, "expected dimension ", a.i, " of '", a.name(), "' to be at most ", size, ", ", why,
                 ", but got ", a.size());
  }

  /// All of `dims` are equal, also where only some of them are static. Gives one that is, or the first.
  Dim equal(ArrayRef<Dim> dims) {
    Dim known = dims.front();
    for (Dim d : dims) {
      if (d.isDynamic())
        continue;
      if (known.isDynamic())
        known = d;
      check(d.size() == known.size(), "expected dimension ", d.i, " of '", d.name(), "' to be ", known.size(),
            ", dimension ", known.i, " of '", known.name(), "', but got ", d.size());
    }
    return known;
  }

  /// Widths of lists are part of the program: static.
  Verifier &hasWidth(Dim a, StringRef what) {
    return check(!a.of || !a.isDynamic(), "expected dimension ", a.i, " of '", a.name(), "', ", what,
                 ", to be static"); // ssa_c3
  }

  /// So are heads, ranks and head dims, and there is at least one.
  Verifier &isStatic(Dim a, StringRef what) {
    return hasWidth(a, what).check(a.size() != 0, "expected dimension ", a.i, " of '", a.name(), "', ", what,
                                   ", to be at least 1, but got 0");
  }

  /// The heads `many` are shared evenly among the heads `few`.
  Verifier &heads(Dim many, Dim few) {
    if (many.isDynamic() || few.isDynamic() || few.size() == 0)
      return *this;
    return check(many.size() % few.size() == 0, "expected the ", many.size(), " heads of '", many.name(),
                 "' to be a multiple of the ", few.size(), " heads of '", few.name(), "'");
  }

  /// The number of lists `a` is `rows`, or 1, which serves every row.
  Verifier &lists(Dim a, int64_t rows, StringRef why) { return a.size() == 1 ? *this : is(a, rows, why); }

  /// A finite number after rounding to f32.
  Verifier &finite(StringRef name, std::optional<APFloat> value) {
    if (!value)
      return *this;
    double number = value->convertToDouble();
    return check(std::isfinite(float(number)), "expected '", name, "' to be a finite f32, but got ", text(number));
  }

  /// A number in a message.
  static std::string text(double number) {
    char buffer[32];
    snprintf(buffer, sizeof(buffer), "%.9g", number);
    return buffer;
  }

private:
  void bounded(StringRef kind, unsigned index, Type type) {
    auto shaped = dyn_cast<ShapedType>(type);
    if (!shaped || !shaped.hasRank())
      return;
    for (auto [i, size] : llvm::enumerate(shaped.getShape()))
      check(size <= maxSize, "expected dimension ", i, " of ", kind, " #", index, " to be at most ", maxSize,
            ", but got ", size); // ssa_c2
    if (failed() || shaped.getRank() < 4 || shaped.isDynamicDim(0) || shaped.isDynamicDim(1))
      return;
    int64_t batches = shaped.getDimSize(0), heads = shaped.getDimSize(1);
    check(batches * heads <= maxSize, "expected batches * heads of ", kind, " #", index, " to be at most ", maxSize,
          ", but got ", batches, " * ", heads);
  }

  Operation *op;
  LogicalResult result = success();
};

/// `ceil(rows/block)`, dynamic if `rows` is.
inline int64_t ceilDivDim(int64_t rows, int64_t block) {
  return ShapedType::isDynamic(rows) ? rows : ceilDiv(rows, block);
}

/// The number of blocks of a dimension of tokens, dynamic if it is.
inline int64_t numBlocksDim(BlocksAttr blocks, int64_t tokens) {
  return ShapedType::isDynamic(tokens) ? tokens : blocks.getNumBlocks(tokens);
}

} // namespace mlir::ssa

#endif // SSA_LIB_IR_VERIFIER_H
