//===- InitAll.h - Everything the project registers -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_INITALL_H
#define SSA_INITALL_H

#include "mlir/IR/DialectRegistry.h"

namespace mlir::ssa {

/// The dialects of this project.
void registerDialects(DialectRegistry &registry);

/// The dialects of this project and all of MLIR's with their extensions: what the tools read.
void registerAllDialects(DialectRegistry &registry);

/// The passes and pipelines of this project.
void registerPasses();

/// The passes and pipelines of this project and all of MLIR's.
void registerAllPasses();

} // namespace mlir::ssa

#endif // SSA_INITALL_H
