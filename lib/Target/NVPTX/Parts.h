//===- Parts.h - One text of the PTX of several modules ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_TARGET_NVPTX_PARTS_H
#define SSA_LIB_TARGET_NVPTX_PARTS_H

#include "ssa/Target/NVPTX.h"

namespace mlir::ssa {

/// One text of those of parts, the same whatever the parts were: a header, variables, kernels in order.
std::string mergePTX(ArrayRef<DeviceCode> parts, ArrayRef<std::string> order);

} // namespace mlir::ssa

#endif // SSA_LIB_TARGET_NVPTX_PARTS_H
