//===- Partials.h - Outputs over parts of the keys --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CONVERSION_SSATOSSAGPU_PARTIALS_H
#define SSA_LIB_CONVERSION_SSATOSSAGPU_PARTIALS_H

#include "Merge.h"

namespace mlir::ssa {

/// Attention states over parts of the keys, in memory between the kernel that makes them and the one that joins them: outputs, each
/// divided by its own sum, one a row, and an lse for each.
struct PartialOutputs {
  Value outputs, lses; // of the host function: rows x columns; rows
  bool inQuads = false; // columns are in the order of `in_quads` of `ssa_gpu.store_rows`
};

PartialOutputs allocatePartials(HostFunction &host, Location loc, Value rows, int64_t columns, Type elementType);

/// Where the parts of a row of the output are: the row of the first, and how many further the next one is.
struct PartsOfRow {
  Value first, stride; // index
};

/// Makes a kernel that joins `parts` parts of every row of `output`, in their order. `arguments` are
/// for `where`, from number 4 on. `further` says with what a row is joined further, and of what the arguments of that are; it may be null.
void joinPartials(HostFunction &host, Operation *op, const PartialOutputs &partials, int64_t parts, Value output, Value lse, ValueRange arguments,
                  llvm::function_ref<PartsOfRow(KernelBuilder &k, const Place &at)> where, const JoinArguments *further = nullptr,
                  ValueRange furtherArguments = {});

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_PARTIALS_H
