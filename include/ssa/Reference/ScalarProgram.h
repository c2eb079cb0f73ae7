//===- ScalarProgram.h - Scalar regions over many values --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_REFERENCE_SCALARPROGRAM_H
#define SSA_REFERENCE_SCALARPROGRAM_H

#include "mlir/IR/Block.h"
#include "ssa/Reference/Tensor.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <memory>
#include <string>

namespace mlir::ssa::reference {

/// One scalar: `f` for floating point values (always a double), `i` for integers, booleans and indices.
union Cell {
  double f;
  int64_t i;
};

/// A block of `arith`, `math`, `index`, `tensor.extract`, `tensor.dim` and `scf.if` ops, compiled once to a flat list
/// of steps and then run over many sets of arguments at a time. Floating point arithmetic is in double whatever the
/// type says (results of narrower types are not rounded in between, explicit `truncf` are); integers wrap to the width
/// of their type. Both branches of an `scf.if` run on all lanes, and what goes wrong in a branch not taken is ignored.
class ScalarProgram {
public:
  /// The most lanes that one `run` takes.
  static constexpr int64_t maxLanes = 256;

  /// Compiles `block`, whose terminator's operands are the results. `outside` gives the value of anything defined
  /// outside of the block. The value of `linalg.index d` is argument number `block.getNumArguments() + d`. Emits an
  /// error at the first op that has no meaning here.
  static FailureOr<ScalarProgram> compile(Block &block, llvm::function_ref<Tensor(Value)> outside);

  /// Compiles one op, whose operands are the arguments; types of tensors stand for their element types.
  static FailureOr<ScalarProgram> compileOp(Operation *op);

  unsigned getNumResults() const { return resultSlots.size(); }

  /// False if the results do not depend on argument `number`; `run` then does not look at its cells.
  bool usesArgument(unsigned number) const;

  struct Failure {
    Operation *where = nullptr;
    std::string error;
  };

  /// Runs on `lanes` (at most maxLanes) sets of arguments: `arguments[a][lane]` is block argument `a`; results go to
  /// `results[r][lane]`, which may be the cells of an argument. Safe to call from several threads. Fails, with the
  /// reason in `error` and the op it concerns in `where`, on a division by zero or an index that is out of range.
  LogicalResult run(int64_t lanes, ArrayRef<const Cell *> arguments, ArrayRef<Cell *> results, Failure &failure) const;

private:
  struct Code;
  class Compiler;

  std::shared_ptr<const Code> code;
  SmallVector<unsigned> resultSlots;
};

} // namespace mlir::ssa::reference

#endif // SSA_REFERENCE_SCALARPROGRAM_H
