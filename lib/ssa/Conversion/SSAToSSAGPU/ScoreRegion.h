//===- ScoreRegion.h - Score regions in kernels -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CONVERSION_SSATOSSAGPU_SCOREREGION_H
#define SSA_LIB_CONVERSION_SSATOSSAGPU_SCOREREGION_H

#include "Conversion.h"
#include "TileEmitter.h"

namespace mlir::ssa {

/// What a score region uses from outside, scalars and tables, as values of the host function: arguments of the kernel. An op that has no
/// meaning for tiles is an error.
FailureOr<SmallVector<Value>> getScoreCaptures(HostFunction &host, Region &region);

/// What the values of a score region are in a kernel: scalars, or accumulator tiles of some columns.
class ScoreShape {
public:
  explicit ScoreShape(Emitter &e) : e(e) {}
  ScoreShape(Emitter &e, TileEmitter &t, int64_t columns) : e(e), tiles(&t), columns(columns) {}

  bool isTiled() const { return tiles; }
  /// With `perRow`, of tiles: one value per row.
  Type getType(Type scalar, bool perRow = false) const;
  /// One value everywhere.
  Value splat(Value scalar) const;
  Value constant(Type scalar, Attribute value, bool perRow = false) const;
  Value f32(double value) const { return constant(e.builder.getF32Type(), e.builder.getF32FloatAttr(float(value))); }
  Value i32(int64_t value) const { return constant(e.builder.getI32Type(), e.builder.getI32IntegerAttr(int32_t(value))); }

  /// The row tile that a tile repeats in all columns; null if it is not known to.
  Value getRows(Value tile) const;
  Value broadcastRows(Value rows) const { return tiles->broadcast(rows, columns); }
  /// Elements of `table` at these indices, and whether they are there; where not, nothing is read.
  std::pair<Value, Value> lookUp(Value table, ValueRange indices) const;

  Emitter &e;

private:
  TileEmitter *tiles = nullptr;
  int64_t columns = 0;
};

/// Builds the ops of a score region. `captured` is what the kernel has of getScoreCaptures; `getArgument(i)` makes an argument of
/// the region and is only called for those that it uses. Reading outside of a table, which no program may, gives NaN.
Value applyScoreRegion(const ScoreShape &shape, Region &region, ArrayRef<Value> captured, llvm::function_ref<Value(unsigned)> getArgument);

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_SCOREREGION_H
