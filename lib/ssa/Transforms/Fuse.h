//===- Fuse.h - The parts of ssa-fuse ---------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_TRANSFORMS_FUSE_H
#define SSA_LIB_TRANSFORMS_FUSE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::ssa {

/// Attention to gathered rows becomes attention at their list.
void populateFuseGatherPatterns(RewritePatternSet &patterns);
/// Means of projections become projections of means.
void populateFusePoolPatterns(RewritePatternSet &patterns);

/// Decides which softmaxes of `route` take their sums from attention, which is moved before them; remarks say why attention to the same keys is not taken.
void shareSums(ModuleOp module);

/// Decides which kernels of attention make the rows of a `merge` or `mix`; remarks say why the others do not, and which rows are gathered first.
void fuseAttends(ModuleOp module);
/// Remarks on projections that are pooled and yet stored.
void remarkPools(ModuleOp module);

} // namespace mlir::ssa

#endif // SSA_LIB_TRANSFORMS_FUSE_H
