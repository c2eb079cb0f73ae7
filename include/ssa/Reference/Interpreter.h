//===- Interpreter.h - The reference interpreter ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_REFERENCE_INTERPRETER_H
#define SSA_REFERENCE_INTERPRETER_H

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "ssa/Reference/Tensor.h"
#include <functional>

namespace mlir::ssa::reference {

struct InterpreterOptions {
  /// Called now and then (at most about ten times a second, one thread at a time) while an op runs, with its name and
  /// the fraction done.
  std::function<void(StringRef opName, double fraction)> progress;

  /// Called after each op with its name and the time it took.
  std::function<void(StringRef opName, double seconds)> finished;

  /// Most bytes that one tensor may take; beyond it evaluation ends with an error. 0: half of the machine's memory.
  int64_t maxTensorBytes = 0;
};

/// Evaluates `function` on `arguments`, one tensor per argument (scalars have rank 0, selections are i32), and gives
/// its results. Floating point arithmetic is in double; every op rounds its results once to the type that is written.
///
/// Errors (a shape that does not fit a type or another argument, an op without a meaning here) are diagnostics
/// at the op or function concerned that name the value, what was found and what was expected.
FailureOr<SmallVector<Tensor>> evaluate(FunctionOpInterface function, ArrayRef<Tensor> arguments,
                                        const InterpreterOptions &options = {});

} // namespace mlir::ssa::reference

#endif // SSA_REFERENCE_INTERPRETER_H
