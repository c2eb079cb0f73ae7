//===- Emit.h - Compiles instead of transforming ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_TOOLS_SSA_OPT_EMIT_H
#define SSA_TOOLS_SSA_OPT_EMIT_H

#include "mlir/IR/DialectRegistry.h"
#include <optional>

namespace mlir::ssa {

/// Does what `--emit` says, if it is given: compiles `input` and writes to `output`. Nothing if it is not given.
std::optional<LogicalResult> runEmission(llvm::StringRef input, llvm::StringRef output,
                                         const DialectRegistry &registry);

} // namespace mlir::ssa

#endif // SSA_TOOLS_SSA_OPT_EMIT_H
