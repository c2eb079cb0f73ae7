//===- Npy.h - NumPy's array files ------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_REFERENCE_NPY_H
#define SSA_REFERENCE_NPY_H

#include "ssa/Reference/Tensor.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBufferRef.h"

namespace mlir::ssa::reference {

/// Elements of an array, converted to an element type.
struct Imported {
  Tensor tensor;
  /// How many finite values lie beyond the largest of the element type; they became infinite, or that largest value
  /// where the type has no infinity.
  int64_t numOverflows = 0;
};

/// Reads an .npy file (format 1.0 to 3.0, row-major, little-endian f2, f4, f8, i1, i4, i8, u1 or b1) as a tensor of
/// `elementType`. Floating point elements are rounded to nearest even; integers must fit, and neither becomes the
/// other.
llvm::Expected<Imported> readNpy(llvm::MemoryBufferRef file, Type elementType);

/// Writes an .npy file: f64 as f8, narrower floating point as f4, i1 as b1, other integers as i4 or i8.
void writeNpy(const Tensor &tensor, raw_ostream &os);

} // namespace mlir::ssa::reference

#endif // SSA_REFERENCE_NPY_H
