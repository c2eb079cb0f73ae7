//===- ScalarOps.h - The ops that scalar programs are made of ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_REFERENCE_SCALAROPS_H
#define SSA_LIB_REFERENCE_SCALAROPS_H

#include "mlir/IR/Operation.h"
#include "ssa/Reference/ScalarProgram.h"
#include <functional>
#include <string>

namespace mlir::ssa::reference {

/// The operands and the result of one step, for `count` lanes. Integers are sign-extended to 64 bits, i1 is 0 or 1.
struct Lanes {
  int64_t count;
  ArrayRef<const Cell *> in;
  /// Widths of the operands and the result; 64 for `index`, of no meaning for floating point.
  ArrayRef<unsigned> inBits;
  unsigned outBits;
  Cell *out;
  /// Where this is set, what goes wrong in a lane whose mask is 0 does not count.
  const Cell *mask;
  /// Stays empty unless something goes wrong.
  std::string &error;

  bool counts(int64_t lane) const { return !mask || mask[lane].i; }
};

/// Computes one result of one op.
using Kernel = std::function<void(const Lanes &)>;

/// The kernel for result `number` of an `arith`, `math` or `index` op; null if the op has none.
Kernel getScalarKernel(Operation *op, unsigned number);

/// The kernel of `select` on cells of any kind.
Kernel getSelectKernel();

/// The width that `type` computes in: 64 for `index` and floating point types.
unsigned getCellBits(Type type);

} // namespace mlir::ssa::reference

#endif // SSA_LIB_REFERENCE_SCALAROPS_H
