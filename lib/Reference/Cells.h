//===- Cells.h - Between tensors and cells ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_REFERENCE_CELLS_H
#define SSA_LIB_REFERENCE_CELLS_H

#include "ssa/Reference/ScalarProgram.h"
#include <array>

namespace mlir::ssa::reference {

/// The cells of one argument or result for one run of a program.
using CellArray = std::array<Cell, ScalarProgram::maxLanes>;

/// Element number `index` of `tensor`, and back (rounded or wrapped to the element type).
Cell getCell(const Tensor &tensor, int64_t index);
void setCell(Tensor &tensor, int64_t index, Cell cell);

/// Elements `base + offsets[n]` of `tensor`, and back.
void gatherCells(const Tensor &tensor, ArrayRef<int64_t> offsets, int64_t base, Cell *cells);
void scatterCells(Tensor &tensor, ArrayRef<int64_t> offsets, const Cell *cells);

/// Elements `first` to `first + count` of `tensor`, and back.
void loadCells(const Tensor &tensor, int64_t first, int64_t count, Cell *cells);
void storeCells(Tensor &tensor, int64_t first, int64_t count, const Cell *cells);

/// A cell of an integer.
inline Cell makeCell(int64_t value) {
  Cell cell;
  cell.i = value;
  return cell;
}

} // namespace mlir::ssa::reference

#endif // SSA_LIB_REFERENCE_CELLS_H
