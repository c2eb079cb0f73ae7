//===- Glue.h - Ops around the dialect --------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CONVERSION_SSATOSSAGPU_GLUE_H
#define SSA_LIB_CONVERSION_SSATOSSAGPU_GLUE_H

#include "Conversion.h"

namespace mlir::linalg {
class LinalgOp;
} // namespace mlir::linalg

namespace mlir::ssa {

/// Views and kernels for ops on tensors that are none of `ssa`. An op that has no meaning here is an error.
LogicalResult convertTensorOp(HostFunction &host, Operation *op);
LogicalResult convertStructuredOp(HostFunction &host, linalg::LinalgOp op);
/// What it requires of sizes, and what kernels cannot do; and the kernel alone, for a result of its own.
LogicalResult requireStructuredSizes(HostFunction &host, linalg::LinalgOp op);
LogicalResult buildStructuredOp(HostFunction &host, linalg::LinalgOp op, Value result);

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_GLUE_H
