//===- KernelAccess.h - What kernels do to their arguments ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_TARGET_BUNDLE_KERNELACCESS_H
#define SSA_LIB_TARGET_BUNDLE_KERNELACCESS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace mlir::ssa {

/// What a kernel does with the memory of one argument.
struct KernelAccess {
  bool isRead = false, isWritten = false;
  int64_t alignment = 1; // that it takes for granted, in bytes
};

/// Follows `argument` through views to loads and stores. Where that ends (the address becomes a number, say), the
/// argument is taken to be read and written, unless it has the attribute `llvm.readonly` or `llvm.writeonly`. What a
/// tensor map is of is taken to be read, or with `llvm.writeonly` written.
KernelAccess getKernelAccess(gpu::GPUFuncOp kernel, BlockArgument argument);

/// Bytes of shared memory of the kernel's own, without the dynamic.
int64_t getStaticSharedMemory(gpu::GPUFuncOp kernel);

} // namespace mlir::ssa

#endif // SSA_LIB_TARGET_BUNDLE_KERNELACCESS_H
