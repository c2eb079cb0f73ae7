//===- MathAttrs.h - How functions are computed -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_TARGET_MATHATTRS_H
#define SSA_TARGET_MATHATTRS_H

#include "llvm/ADT/StringRef.h"

namespace mlir::ssa {

/// The attribute of a `math.exp2` with fastmath<afn>, an integer: of eight pairs of a thread's values so many are polynomials on the units that multiply
/// and add; of values by themselves none is.
constexpr llvm::StringLiteral polynomialsAttrName = "ssa.polynomials";

} // namespace mlir::ssa

#endif // SSA_TARGET_MATHATTRS_H
