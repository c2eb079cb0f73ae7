//===- KeyOuter.h - The kernels of the order key_outer ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CONVERSION_SSATOSSAGPU_KEYOUTER_H
#define SSA_LIB_CONVERSION_SSATOSSAGPU_KEYOUTER_H

#include "AttendKernel.h"
#include "Partials.h"
#include "TransposeLists.h"

namespace mlir::ssa {

/// Attention in the order `key_outer`: in a loop of the host function over some lists of some heads of a sequence at a time, so that partial outputs take
/// bounded memory, lists are transposed, a kernel makes a partial output for every list and block of it, and another joins these.
class KeyOuter {
public:
  KeyOuter(HostFunction &host, SparseAttendOp op, const AttendPlan &plan);

  /// Which rows are worked on in a run: a sequence, some cells and some lists of it; host values.
  struct Run {
    Value batch, firstCell, cells, firstList, lists;
    Value firstPartial; // which of all lists whose partial outputs are in memory is the first
  };
  using Attend = llvm::function_ref<LogicalResult(const PartialOutputs &partials, ValueRange transposed, Value items)>;
  using Finish = llvm::function_ref<LogicalResult(const PartialOutputs &partials, const Run &run)>;

  /// Calls `attend` once, in the loop: it makes the kernel that writes partial outputs, whose arguments after the usual ones are `transposed`;
  /// there are at most `items` items. These are joined by the kernel that `finish` makes; where it is null, here: `further` says with what rows are joined behind;
  /// it may be null.
  /// All partial outputs that are in memory at a time, a row each, and how many lists they are of.
  Value getOutputs() const { return outputs.getAll(); }
  Value countLists(Emitter &e) const { return e.mul(lanes, getListsOfLane(e)); }

  LogicalResult build(Value output, Value lse, const JoinArguments *further, Attend attend, Finish finish);

private:
  Value getListsOfLane(Emitter &e) const { return e.mul(e.mul(capacity, heads), e.index(plan.cells / type.getHeads())); }
  void join(const ListRange &range, const PartialOutputs &partials, Value output, Value lse, const JoinArguments *further);

  HostFunction &host;
  SparseAttendOp op;
  const AttendPlan &plan;
  SelectionType type;
  Value lists;                // of a head of a sequence
  Value capacity, heads;      // lists of a head, and heads, that a run has at most
  Value ranges, headRanges;   // runs for the lists of a head, and for the heads
  Value count, lanes;         // all runs; those under way at a time
  std::optional<TransposedLists> transposed;
  LaneBuffer outputs, lses;
};

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_KEYOUTER_H
