//===- SSAGPU.h - The ssa_gpu dialect ---------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_GPU_IR_SSAGPU_H
#define SSA_GPU_IR_SSAGPU_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <numeric>

#include "ssa_gpu/IR/SSAGPUDialect.h.inc"
#include "ssa_gpu/IR/SSAGPUEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ssa_gpu/IR/SSAGPUAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "ssa_gpu/IR/SSAGPUTypes.h.inc"

namespace mlir::ssa_gpu {

/// The attribute of a kernel whose blocks make products in pairs.
constexpr llvm::StringLiteral pairAttrName = "ssa_gpu.pair";

/// True if `type` is a tensor with this layout.
template <typename LayoutAttr>
bool hasLayout(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa_and_nonnull<LayoutAttr>(tensor.getEncoding());
}

/// True if `type` is a tile in registers.
inline bool isTile(Type type) {
  return hasLayout<AccumulatorAttr>(type) || hasLayout<RowsAttr>(type) || hasLayout<OperandAttr>(type) || hasLayout<PlacesAttr>(type);
}

/// The groups of warps over which the columns of a tile are spread.
int64_t getGroups(RankedTensorType tile);

/// The rows of a product that were joined to one of a tile.
int64_t getFolds(RankedTensorType tile);

/// True if a thread has whole rows of a tile.
bool isRowwise(RankedTensorType tile);

/// The rows of a tile that a box of a tensor map is.
int64_t getBoxRows(Type map, SharedType tile);

/// The number of values of a tile that a thread holds.
int64_t getValuesPerThread(RankedTensorType tile);

} // namespace mlir::ssa_gpu

#define GET_OP_CLASSES
#include "ssa_gpu/IR/SSAGPUOps.h.inc"

#endif // SSA_GPU_IR_SSAGPU_H
