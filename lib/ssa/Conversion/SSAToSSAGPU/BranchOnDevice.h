//===- BranchOnDevice.h - Kernels of which some do the work -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CONVERSION_SSATOSSAGPU_BRANCHONDEVICE_H
#define SSA_LIB_CONVERSION_SSATOSSAGPU_BRANCHONDEVICE_H

#include "Conversion.h"

namespace mlir::ssa {

/// Makes a kernel that looks at a sample of the lists of `op`, and a buffer of one i1 that it sets: whether at least `percent` percent of a list are in
/// the one before, too. All calls with the same lists give the same.
Value measureAgreement(HostFunction &host, SparseAttendOp op, int64_t percent);

/// Makes the kernels of both branches. Those of `then` do something where the first element of `flag`, a buffer of i1, is set, and those of `otherwise`
/// where it is not; the others are launched as well, and leave at once.
LogicalResult branchOnDevice(HostFunction &host, Operation *op, Value flag, llvm::function_ref<LogicalResult()> then,
                             llvm::function_ref<LogicalResult()> otherwise);

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_BRANCHONDEVICE_H
