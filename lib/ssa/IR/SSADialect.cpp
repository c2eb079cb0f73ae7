//===- SSADialect.cpp - The ssa dialect -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/InliningUtils.h"
#include "ssa/IR/SSA.h"

using namespace mlir;
using namespace mlir::ssa;

#include "ssa/IR/SSADialect.cpp.inc"

namespace {
/// Patterns may be called as functions: every op can be inlined.
struct SSAInlinerInterface : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final { return true; }
  bool isLegalToInline(Region *, Region *, bool, IRMapping &) const final { return true; }
};
} // namespace

void SSADialect::initialize() {
  registerAttributes();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "ssa/IR/SSAOps.cpp.inc"
      >();
  addInterfaces<SSAInlinerInterface>();
}
