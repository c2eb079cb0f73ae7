//===- SSA.h - The ssa dialect ----------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_IR_SSA_H
#define SSA_IR_SSA_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ssa/IR/SSADialect.h.inc"
#include "ssa/IR/SSAEnums.h.inc"

namespace mlir::ssa {
class SparseAttendOp;

/// The numbers that a kernel can sort at once: of a list, or of several that are united. They take 32 KiB of shared memory.
inline constexpr int64_t maxSortedNumbers = 8192;
} // namespace mlir::ssa

#define GET_ATTRDEF_CLASSES
#include "ssa/IR/SSAAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "ssa/IR/SSATypes.h.inc"

namespace mlir::ssa::OpTrait {

LogicalResult verifyStrictAttributes(Operation *op);

/// Says that `op` has no such attribute, and which one may have been meant.
std::string describeUnknownAttribute(OperationName op, StringRef attribute);

/// Refuses attributes without a dialect prefix that the op does not define, in every form of the assembly.
template <typename ConcreteType>
class StrictAttributes : public mlir::OpTrait::TraitBase<ConcreteType, StrictAttributes> {
public:
  static LogicalResult verifyTrait(Operation *op) { return verifyStrictAttributes(op); }
};

} // namespace mlir::ssa::OpTrait

#define GET_OP_CLASSES
#include "ssa/IR/SSAOps.h.inc"

#endif // SSA_IR_SSA_H
