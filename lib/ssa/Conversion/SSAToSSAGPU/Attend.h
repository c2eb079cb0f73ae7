//===- Attend.h - What the kernels of sparse_attend share -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CONVERSION_SSATOSSAGPU_ATTEND_H
#define SSA_LIB_CONVERSION_SSATOSSAGPU_ATTEND_H

#include "Conversion.h"

namespace mlir::ssa {

/// Requires what only a run can see of the sizes.
void requireAttendSizes(HostFunction &host, SparseAttendOp op);

/// The type of lists that unite `lists` neighbours each.
SelectionType getTypeOfUnion(SelectionType selection, int64_t lists);
/// Makes the kernels that unite the lists of `op` so; gives the unions and, for every entry, `words` numbers of 32 bits: bit `i` says that list
/// `i` of those that are united has it. There is memory for the lists of `mostQueries`
/// queries of `mostBatches` sequences, host values; there may be fewer.
SmallVector<Value> uniteLists(HostFunction &host, SparseAttendOp op, SelectionType unions, int64_t words, Value mostBatches, Value mostQueries);

/// The first place in list `where` of `width` numbers that does not come before `number`, or the last place: numbers ascend, and padding,
/// which is negative, comes last.
Value findInList(Emitter &e, Value lists, int64_t width, ArrayRef<Value> where, Value number);

/// Makes the kernel on CUDA cores.
LogicalResult convertAttendRows(HostFunction &host, SparseAttendOp op);

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_ATTEND_H
