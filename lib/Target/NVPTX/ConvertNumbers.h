//===- ConvertNumbers.h - Numbers from arith to LLVM ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_TARGET_NVPTX_CONVERTNUMBERS_H
#define SSA_LIB_TARGET_NVPTX_CONVERTNUMBERS_H

#include "mlir/IR/Operation.h"

namespace mlir::ssa {

/// Turns ops of `arith` on single numbers, whose types are LLVM's as they are, into LLVM's ops. What it leaves is for a conversion.
void convertNumbers(Operation *root);

} // namespace mlir::ssa

#endif // SSA_LIB_TARGET_NVPTX_CONVERTNUMBERS_H
