//===- ScoreRegion.h - Score regions in kernels -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CONVERSION_SSATOSSAGPU_SCOREREGION_H
#define SSA_LIB_CONVERSION_SSATOSSAGPU_SCOREREGION_H

#include "Conversion.h"
#include "TileEmitter.h"

namespace mlir::ssa {

/// The scalars that a score region uses from outside, which become arguments of the kernel. An op that has no meaning for tiles is
/// an error.
FailureOr<SmallVector<Value>> getCapturedScalars(HostFunction &host, Operation *op, Region &region);

/// What the values of a score region are in a kernel: scalars, or accumulator tiles of some columns.
class ScoreShape {
public:
  explicit ScoreShape(Emitter &e) : e(e) {}
  ScoreShape(Emitter &e, TileEmitter &t, int64_t columns) : e(e), tiles(&t), columns(columns) {}

  Type getType(Type scalar) const { return tiles ? Type(tiles->accumulatorType(columns, scalar)) : scalar; }
  /// One value everywhere.
  Value splat(Value scalar) const;
  Value constant(Type scalar, Attribute value) const;
  Value f32(double value) const { return constant(e.builder.getF32Type(), e.builder.getF32FloatAttr(float(value))); }
  Value i32(int64_t value) const { return constant(e.builder.getI32Type(), e.builder.getI32IntegerAttr(int32_t(value))); }

  Emitter &e;

private:
  TileEmitter *tiles = nullptr;
  int64_t columns = 0;
};

/// Builds the ops of a score region. `captured` is what the kernel has of getCapturedScalars; `getArgument(i)` makes an argument of
/// the region and is only called for those that it uses.
Value applyScoreRegion(const ScoreShape &shape, Region &region, ArrayRef<Value> captured, llvm::function_ref<Value(unsigned)> getArgument);

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_SCOREREGION_H
