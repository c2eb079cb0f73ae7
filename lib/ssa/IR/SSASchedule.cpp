//===- SSASchedule.cpp - Schedules of kernels -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/IR/Geometry.h"

using namespace mlir;
using namespace mlir::ssa;

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError, Instruction instruction, int64_t tileRows,
                                   int64_t tileKeys, int64_t stages) {
  int64_t rows = instruction == Instruction::wgmma ? 64 : 16;
  if (tileRows < rows || tileRows > 256 || tileRows % rows != 0)
    return emitError() << "expected 'tile_rows' to be a multiple of " << rows << " up to 256, but got " << tileRows;
  if (tileKeys < 16 || tileKeys > 256 || tileKeys % 16 != 0)
    return emitError() << "expected 'tile_keys' to be a multiple of 16 up to 256, but got " << tileKeys;
  if (stages < 2 || stages > 8)
    return emitError() << "expected 'stages' to be in 2 .. 8, but got " << stages;
  return success();
}

int64_t ScheduleAttr::getSharedBytes(int64_t dim, int64_t valueDim) const {
  // Rows are kept in panels of 64 columns of 16 bits; every step has the numbers of its keys.
  auto padded = [](int64_t columns) { return ceilDiv(columns, 64) * 64 * 2; };
  return getTileRows() * padded(dim) + getStages() * getTileKeys() * (padded(dim) + padded(valueDim) + 4);
}
