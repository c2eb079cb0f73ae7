//===- Report.h - What a run tells its user ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_TOOLS_SSA_RUN_REPORT_H
#define SSA_TOOLS_SSA_RUN_REPORT_H

#include "ssa/Reference/Tensor.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>

namespace mlir::ssa::reference {

/// Prints one line: "result 0: tensor<?x4xf32>, shape 3x4, min -1, max 2, mean 0.5, nan 0, inf 0, -inf 0, values 1 2
/// ..". Minimum, maximum and mean are over what is finite.
void printSummary(raw_ostream &os, const Twine &name, Type type, const Tensor &tensor);

/// Shows how far an evaluation has got once it has taken some seconds: in one line that is written over on a terminal,
/// else in a line every time as many seconds have passed.
class ProgressLine {
public:
  explicit ProgressLine(double seconds) : interval(seconds) {}
  ~ProgressLine() { clear(); }
  void update(StringRef opName, double fraction);
  void clear();

private:
  using Clock = std::chrono::steady_clock;
  std::chrono::duration<double> interval;
  Clock::time_point start = Clock::now(), last = start;
  bool isShown = false;
};

/// Time by kind of op.
class TimeTable {
public:
  void add(StringRef opName, double seconds);
  void print(raw_ostream &os) const;

private:
  struct Row {
    unsigned count = 0;
    double seconds = 0;
  };
  llvm::MapVector<StringRef, Row> rows;
};

} // namespace mlir::ssa::reference

#endif // SSA_TOOLS_SSA_RUN_REPORT_H
