//===- Explanation.h - What is said of a module -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_TARGET_BUNDLE_EXPLANATION_H
#define SSA_LIB_TARGET_BUNDLE_EXPLANATION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "ssa/Model/Attend.h"
#include "ssa/Target/Plan.h"

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace mlir::ssa {

/// What the code of a kernel takes of a multiprocessor.
struct KernelResources {
  int64_t threads = 0, staticShared = 0, registers = 0;
  std::optional<int64_t> spilledBytes; // none: `registers` is a bound
};

/// A launch, all its runs together.
struct ExplainedKernel {
  std::string name;
  Operation *op = nullptr; // of the pattern; null if it is launched for none
  int64_t runs = 1, blocks = 0, threads = 0, sharedBytes = 0, registers = 0, blocksPerSM = 0;
  std::optional<int64_t> spilledBytes;
  double bytes = 0; // read and written
  bool leaves = false; // at once, as the device chooses others
  Prediction prediction;
};

/// What the device chooses by: predicted times of both schedules for lists that agree little, as much as makes the second one the better, and much.
struct ExplainedAgreement {
  AgreeingAttr agreeing;
  RatedSchedule other; // than the one that lists lead to as they are assumed
  bool agree;          // that is the second one
  struct Times {
    double agreement, seconds, agreeingSeconds;
  };
  SmallVector<Times> times;
};

/// How the schedule of an attention op was chosen.
struct ExplainedChoice {
  SparseAttendOp op;
  StringRef source; // written, tuning, measured, model, device, shared
  double agreement;
  RatedSchedule chosen;
  SmallVector<RatedSchedule> rated; // the fastest first
  std::optional<Prediction> dense;  // the fastest one without lists
  double usefulFlop;                // of pairs of a query and a key that it attends to
  std::optional<ExplainedAgreement> onDevice;
  double together = 0; // what all would take if blocks that every list has were not attended to apart; 0 if they are not
};

/// Rows that a gather keeps.
struct ExplainedGather {
  GatherOp op;
  int64_t keptBytes, sourceBytes;
};

/// Ops that one kernel does.
struct ExplainedFusion {
  Operation *op, *into;  // the second names the kernel
  StringRef part;        // of the first, that is done; empty: all
  std::string condition; // empty: always
  int64_t savedBytes;    // that are neither written nor read
};

struct ExplainedEntry {
  func::FuncOp pattern;
  std::vector<ExplainedKernel> kernels;
  std::vector<ExplainedChoice> choices;
  std::vector<ExplainedGather> gathers;
  std::vector<ExplainedFusion> fusions;
  std::vector<std::pair<std::string, int64_t>> fused; // ops that became part of others
  std::vector<std::string> refusals;                  // of a launcher at these sizes
  int64_t argumentBytes = 0, resultBytes = 0, workspaceBytes = 0;
  unsigned skipped = 0; // launches that are left out at these sizes
};

struct ExplainedRemark {
  unsigned line; // 0: none
  std::string text;
};

struct Explanation {
  TargetAttr target;
  Assumptions assumptions;
  std::vector<ExplainedEntry> entries;
  std::vector<ExplainedRemark> remarks;

  void printText(llvm::raw_ostream &os) const;
  void printJSON(llvm::raw_ostream &os) const;
};

/// The line in the source that an op comes from; 0 if that is not known.
unsigned getSourceLine(Location loc);

} // namespace mlir::ssa

#endif // SSA_LIB_TARGET_BUNDLE_EXPLANATION_H
