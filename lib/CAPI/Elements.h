//===- Elements.h - Elements of arrays in memory ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CAPI_ELEMENTS_H
#define SSA_LIB_CAPI_ELEMENTS_H

#include "mlir/IR/MLIRContext.h"
#include "ssa-c/SSA.h"
#include "ssa/Reference/Tensor.h"
#include "llvm/Support/Error.h"

namespace mlir::ssa::capi {

inline bool isFloat(SSADType dtype) { return dtype >= SSA_DTYPE_F64 && dtype <= SSA_DTYPE_F8E4M3; }
inline bool isInteger(SSADType dtype) { return dtype >= SSA_DTYPE_BOOL && dtype <= SSA_DTYPE_I64; }

/// What reading an array into a tensor met.
struct ReadReport {
  /// How many finite values lie beyond the largest of the tensor's element type.
  int64_t numOverflows = 0;
  /// The integers that do not fit the element type, the first of them, and where it is.
  int64_t numMisfits = 0, misfit = 0, misfitIndex = 0;
};

/// Fills `tensor`, which has the extents of `view`, with its elements. The kind is a floating point one if and only if
/// the tensor's element type is.
ReadReport readElements(const SSAArrayView &view, reference::Tensor &tensor);

/// The elements of `tensor` as `dtype`, dense. Fails where an integer does not fit, and between floating point and
/// integers.
llvm::Expected<std::vector<char>> convertElements(const reference::Tensor &tensor, SSADType dtype);

/// The elements of `tensor` as they are held, if that is as `dtype`; null otherwise, or if there are none.
const void *getHeldElements(const reference::Tensor &tensor, SSADType dtype);

} // namespace mlir::ssa::capi

#endif // SSA_LIB_CAPI_ELEMENTS_H
