//===- Tuning.h - What was measured on a GPU -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_MODEL_TUNING_H
#define SSA_MODEL_TUNING_H

#include "ssa/Model/Attend.h"
#include <vector>

namespace mlir::ssa {

/// A tuning file, as `ssa-tune` writes it and docs/explain.md describes it.
class Tuning {
public:
  /// Reads a file; errors name it and say what was expected.
  static FailureOr<Tuning> read(StringRef path, MLIRContext *context, llvm::function_ref<InFlightDiagnostic()> emitError);

  /// What was fastest for such an op on such a chip, at the sizes nearest to those of the problem; null if nothing was measured.
  ScheduleAttr find(const AttendProblem &problem, TargetAttr target) const;

private:
  struct Entry {
    std::string chip, op;
    double queries, tokens;
    ScheduleAttr schedule;
  };
  std::vector<Entry> entries;
};

} // namespace mlir::ssa

#endif // SSA_MODEL_TUNING_H
