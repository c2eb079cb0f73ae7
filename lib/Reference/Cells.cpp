//===- Cells.cpp - Between tensors and cells ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Cells.h"

using namespace mlir;
using namespace mlir::ssa::reference;

template <typename T>
static Cell toCell(T value) {
  Cell cell;
  if constexpr (std::is_floating_point_v<T>)
    cell.f = value;
  else
    cell.i = value;
  return cell;
}

Cell mlir::ssa::reference::getCell(const Tensor &tensor, int64_t index) {
  Cell cell;
  tensor.visit([&](auto elements) { cell = toCell(elements[index]); });
  return cell;
}

void mlir::ssa::reference::setCell(Tensor &tensor, int64_t index, Cell cell) {
  if (tensor.isFloat())
    tensor.setFloat(index, cell.f);
  else
    tensor.setInt(index, cell.i);
}

void mlir::ssa::reference::gatherCells(const Tensor &tensor, ArrayRef<int64_t> offsets, int64_t base, Cell *cells) {
  tensor.visit([&](auto elements) {
    for (size_t n = 0; n < offsets.size(); ++n)
      cells[n] = toCell(elements[base + offsets[n]]);
  });
}

void mlir::ssa::reference::scatterCells(Tensor &tensor, ArrayRef<int64_t> offsets, const Cell *cells) {
  for (size_t n = 0; n < offsets.size(); ++n)
    setCell(tensor, offsets[n], cells[n]);
}

void mlir::ssa::reference::loadCells(const Tensor &tensor, int64_t first, int64_t count, Cell *cells) {
  tensor.visit([&](auto elements) {
    for (int64_t n = 0; n < count; ++n)
      cells[n] = toCell(elements[first + n]);
  });
}

void mlir::ssa::reference::storeCells(Tensor &tensor, int64_t first, int64_t count, const Cell *cells) {
  for (int64_t n = 0; n < count; ++n)
    setCell(tensor, first + n, cells[n]);
}
