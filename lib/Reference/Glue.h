//===- Glue.h - Ops around the dialect --------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_REFERENCE_GLUE_H
#define SSA_LIB_REFERENCE_GLUE_H

#include "Evaluation.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "ssa/Reference/ScalarProgram.h"

namespace mlir::ssa::reference {

/// The value of an integer, floating point or elements attribute of the constant `op`; an error at `op` if it has none
/// here.
FailureOr<Tensor> tensorFromAttribute(Operation *op, Attribute attribute);

/// The error for an op that has no meaning here; `where` narrows it down ("in a region of scalars") or is empty.
LogicalResult emitNotEvaluated(Operation *op, StringRef where);

/// The error for what went wrong in a run of a program.
LogicalResult emitFailure(const ScalarProgram::Failure &failure);

/// Evaluates one op of the `tensor` dialect.
LogicalResult evaluateTensorOp(Evaluation &evaluation, Operation *op);

/// Evaluates one structured op.
LogicalResult evaluateLinalgOp(Evaluation &evaluation, linalg::LinalgOp op);

} // namespace mlir::ssa::reference

#endif // SSA_LIB_REFERENCE_GLUE_H
