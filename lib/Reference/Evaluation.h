//===- Evaluation.h - What the parts of the interpreter share ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_REFERENCE_EVALUATION_H
#define SSA_LIB_REFERENCE_EVALUATION_H

#include "ssa/Reference/Interpreter.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::ssa::reference {

/// The state of one call of a function: the values computed so far, limits and progress.
class Evaluation {
public:
  Evaluation(MLIRContext *context, const InterpreterOptions &options, unsigned depth = 0);

  /// The value of `v`; a null tensor if it has not been computed.
  const Tensor &operator[](Value v) const;
  void set(Value v, Tensor t) { values[v] = std::move(t); }

  /// Fails at `op` unless a tensor of `shape` fits the type of its result number `result`.
  LogicalResult checkShape(Operation *op, unsigned result, ArrayRef<int64_t> shape) const;

  /// A tensor of zeros for result number `result` of `op`, after checking `shape` against its static type and the
  /// memory limit. Emits an error at `op` and fails otherwise.
  FailureOr<Tensor> allocate(Operation *op, unsigned result, ArrayRef<int64_t> shape) const;

  /// Fails at `op` if `bytes` for `what` ("result 0") are more than the limits of memory allow.
  LogicalResult checkBytes(Operation *op, const Twine &what, int64_t bytes) const;

  /// Calls `body(i)` for every i in [0, count) on all cores and reports progress of `op`. Stops early and fails once a
  /// call fails, with the diagnostics of the lowest i that does; `body` must be safe to call from several threads.
  LogicalResult parallelFor(Operation *op, int64_t count, llvm::function_ref<LogicalResult(int64_t)> body) const;

  MLIRContext *getContext() const { return context; }
  const InterpreterOptions &getOptions() const { return options; }
  /// The number of calls that this one is inside of.
  unsigned getDepth() const { return depth; }

  /// Evaluates all ops of `block`, whose arguments are set, and gives the operands of its terminator.
  LogicalResult evaluateBlock(Block &block, SmallVectorImpl<Tensor> &results);

private:
  LogicalResult evaluateOp(Operation *op);
  LogicalResult evaluateCall(Operation *op);
  LogicalResult checkResults(Operation *op) const;

  MLIRContext *context;
  const InterpreterOptions &options;
  unsigned depth;
  int64_t maxTensorBytes;
  int64_t maxTotalBytes;
  DenseMap<Value, Tensor> values;
};

/// The name of an operand for messages: its ODS name in quotes where it has one, with its place for one of
/// several ("'selections' 1"); else "operand 2".
std::string describeOperand(Operation *op, unsigned number);

/// "1x8x64" style text of a shape, "?" where dynamic; "()" for rank 0.
std::string shapeText(ArrayRef<int64_t> shape);

/// Evaluates one op of the `ssa` dialect; its operands are in `evaluation`, its results are put there.
LogicalResult evaluateSSA(Evaluation &evaluation, Operation *op);

/// Evaluates one op of any other dialect: `arith`, `math`, `tensor`, `linalg` glue. An op without a meaning here is an
/// error.
LogicalResult evaluateGlue(Evaluation &evaluation, Operation *op);

} // namespace mlir::ssa::reference

#endif // SSA_LIB_REFERENCE_EVALUATION_H
