//===- SSASchedule.cpp - Schedules of kernels -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "ssa/IR/Geometry.h"
#include <limits>

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

bool SparseAttendOp::valuesAreKeys() {
  if (getValue() == getKey())
    return true;
  auto slice = getValue().getDefiningOp<tensor::ExtractSliceOp>();
  auto isAll = [](ArrayRef<int64_t> values, int64_t value) { return llvm::all_of(values, [=](int64_t v) { return v == value; }); };
  // Sizes are those of the keys but for the last: kernels require it of all keys and values.
  return slice && slice.getSource() == getKey() && slice.getType().getRank() == slice.getSourceType().getRank() &&
         isAll(slice.getStaticOffsets(), 0) && isAll(slice.getStaticStrides(), 1);
}

static int64_t getDim(SparseAttendOp op) { return op.getQuery().getType().getDimSize(3); }
static int64_t getValueDim(SparseAttendOp op) { return op.getOutput().getType().getDimSize(3); }

int64_t ScheduleAttr::getGroups(SparseAttendOp op) const {
  // A thread holds a 64th of the output of 16 rows, beside scores and weights.
  int64_t most = hasRoles() ? 256 : 128;
  return getValueDim(op) <= 256 ? 1 : ceilDiv(getValueDim(op), most);
}

int64_t ScheduleAttr::getQuerySlots(SparseAttendOp op) const {
  // A long ring of keys takes the room of a second tile.
  return hasRoles() && getDim(op) <= 128 && getStages() * getTileKeys() <= 256 ? 2 : 1;
}

int64_t ScheduleAttr::getThreads(SparseAttendOp op) const {
  return 2 * getTileRows() * getGroups(op) + (hasRoles() ? numProducers : 0);
}

int64_t ScheduleAttr::getSharedBytes(SparseAttendOp op) const {
  // Rows are kept in panels of 64 columns of 16 bits; every step has the numbers of its keys.
  auto padded = [](int64_t columns) { return ceilDiv(columns, 64) * 64 * 2; };
  int64_t rows = getTileRows(), keys = getTileKeys(), slots = getQuerySlots(op), groups = getGroups(op);
  int64_t step = padded(getDim(op)) + (op.valuesAreKeys() ? 0 : padded(getValueDim(op))) + 4;
  int64_t barriers = hasRoles() ? 16 * (2 * getStages() + slots) + 4 * slots : 0;
  int64_t exchanged = groups > 1 ? rows * (padded(keys) + 8 * groups) : 0;
  constexpr int64_t alignment = 16;
  return slots * rows * padded(getDim(op)) + getStages() * keys * step + exchanged + barriers + 4 * alignment;
}

int64_t ScheduleAttr::getBlocksPerSM(SparseAttendOp op, TargetAttr target) const {
  constexpr int64_t reserved = 1024; // of a block
  int64_t byMemory = target.sharedMemoryBytesPerSM() / (getSharedBytes(op) + reserved);
  // Fewer registers than these are not worth a second block.
  int64_t byRegisters = target.registersPerSM() / (getThreads(op) * 128);
  return std::max<int64_t>(std::min(byMemory, byRegisters), 1);
}

LogicalResult ChunkAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t bytes, int64_t rows) {
  if (bytes < 1)
    return emitError() << "expected 'bytes' to be at least 1, but got " << bytes;
  if (rows < 1 || rows > std::numeric_limits<int32_t>::max())
    return emitError() << "expected 'rows' to be in 1 .. 2147483647, but got " << rows;
  return success();
}
