//===- RowKernel.h - Kernels that stream rows -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Ops that read their operands once and write rows (b, h, m, 0 .. D-1): a thread owns `width` neighbouring values of one row.
//
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CONVERSION_SSATOSSAGPU_ROWKERNEL_H
#define SSA_LIB_CONVERSION_SSATOSSAGPU_ROWKERNEL_H

#include "Conversion.h"

namespace mlir::ssa {

/// Where a thread works: row (b, h, m), values from `d` on; or an entry of a row.
struct Place {
  Value b, h, m, d;
};

class RowKernel : public KernelBuilder {
public:
  /// A kernel over the rows of `output`, which is one of `arguments`; `width` divides the length of a row.
  RowKernel(HostFunction &host, Operation *op, StringRef name, ValueRange arguments, Value output, int64_t width);

  /// Builds the body: `body` is called for one place.
  void forEachPlace(llvm::function_ref<void(const Place &)> body);
  /// The same for programs whose lanes exchange values: `body` is run by all lanes of a warp, those behind the last place at that one, with `exists` false.
  void forEachPlaceOfWarps(llvm::function_ref<void(const Place &, Value exists)> body);

  /// `width` values from `at` on, as f32.
  Value load(Value rows, const Place &at);
  /// The entry of a tensor of rank 3 for the row of `at`.
  Value loadEntry(Value entries, const Place &at);
  void store(Value values, Value rows, const Place &at);
  void storeEntry(Value value, Value entries, const Place &at);
  /// A scalar, `width` times.
  Value splat(Value scalar);
  /// From here on `width` of all these is another, which divides that of the kernel.
  void setWidth(int64_t narrower) { width = narrower; }

private:
  void forEachPlaceOrLast(llvm::function_ref<void(Value place, Value perHead, llvm::function_ref<Place(Value place)> decode)> body);

  static constexpr int64_t threads = 256;
  HostFunction &host;
  Value output;
  unsigned outputArgument;
  int64_t width;
};

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_ROWKERNEL_H
