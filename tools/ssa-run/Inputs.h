//===- Inputs.h - Where the inputs of a run come from -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_TOOLS_SSA_RUN_INPUTS_H
#define SSA_TOOLS_SSA_RUN_INPUTS_H

#include "ssa/Reference/Npy.h"

namespace mlir::ssa::reference {

/// Makes the input that `spec` names: the path of an .npy file, or what to generate:
///
///   randn:SHAPE[:seed=N]    the normal distribution of mean 0 and variance 1
///   uniform:SHAPE[:seed=N]  [0, 1)
///   zeros:SHAPE             0
///   arange:SHAPE            0, 1, 2, .. in row-major order
///   value:X                 a scalar
///
/// SHAPE is `1x8x1000x64`, and empty for a scalar. The seed is `number`, the place among the inputs, unless given.
///
/// Element i depends on the seed and i alone. With mix the finalizer of splitmix64, g = 0x9e3779b97f4a7c15 and
/// bits(j) = mix(mix(seed) + (j + 1) * g) modulo 2^64, uniform is u(i) = (bits(i) >> 11) / 2^53, and randn is by
/// Box-Muller sqrt(-2 log(1 - u(2i))) * cos(2 pi u(2i + 1)), in double and then rounded to the element type.
llvm::Expected<Imported> makeInput(StringRef spec, unsigned number, Type elementType);

} // namespace mlir::ssa::reference

#endif // SSA_TOOLS_SSA_RUN_INPUTS_H
