//===- Explain.h - What the compiler does with a pattern --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_TARGET_EXPLAIN_H
#define SSA_TARGET_EXPLAIN_H

#include "ssa/Target/Bundle.h"

namespace mlir::ssa {

/// For people or for tools: docs/explain.md says what is in either.
enum class ExplanationForm { Text, JSON };

struct ExplainOptions {
  /// One chip at most, and the sizes that are assumed.
  CompileOptions compile;
  ExplanationForm form = ExplanationForm::Text;
  /// Registers and spills as `ptxas` says, rather than the most that there can be.
  bool assemble = false;
};

/// Compiles the public functions of `module`, which is changed, and writes what becomes of them, and what the model predicts.
/// Remarks of passes become part of that; errors are diagnostics.
LogicalResult explain(ModuleOp module, const ExplainOptions &options, llvm::raw_ostream &os, TimingScope &timing);

} // namespace mlir::ssa

#endif // SSA_TARGET_EXPLAIN_H
