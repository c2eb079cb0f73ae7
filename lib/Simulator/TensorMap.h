//===- TensorMap.h - Tensor maps of the simulator ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_SIMULATOR_TENSORMAP_H
#define SSA_LIB_SIMULATOR_TENSORMAP_H

#include <algorithm>
#include <cstdint>

namespace mlir::ssa::sim {

/// What the 128 bytes of a tensor map hold here. Dimensions count from the innermost.
struct TensorMap {
  static constexpr uint64_t mark = 0x70616d726f736e65;
  uint64_t magic = mark;
  uint64_t address = 0;
  uint64_t strides[4] = {}; // bytes, without the innermost
  uint32_t sizes[5] = {};
  uint16_t box[5] = {};
  uint8_t rank = 0, elementBytes = 0;
  uint8_t swizzle = 0; // 0 none, 1 32, 2 64, 3 128 bytes
  uint8_t fillsNaN = 0;

  uint32_t boxBytes() const {
    uint32_t bytes = elementBytes;
    for (unsigned d = 0; d < rank; ++d)
      bytes *= box[d];
    return bytes;
  }
};
static_assert(sizeof(TensorMap) <= 128);

/// Rows of the innermost dimension of a box: calls the function with the number of each row that is in the tensor, the
/// address of its first byte that is, where that is in the row, and how many bytes. `rows` are what a gather names in
/// place of the second dimension, null for a box.
template <class F>
void forEachRow(const TensorMap &map, const int32_t *start, const int32_t *rows, F function) {
  uint32_t numRows = rows ? 4 : map.boxBytes() / (uint32_t(map.box[0]) * map.elementBytes);
  int64_t first = std::max<int64_t>(start[0], 0), end = std::min<int64_t>(int64_t(start[0]) + map.box[0], map.sizes[0]);
  for (uint32_t row = 0; row < numRows; ++row) {
    uint64_t address = map.address;
    bool isInside = first < end;
    uint32_t rest = row;
    for (unsigned d = 1; d < map.rank; ++d) {
      int64_t index = rows ? rows[row] : int64_t(start[d]) + rest % map.box[d];
      rest /= map.box[d];
      isInside &= index >= 0 && index < int64_t(map.sizes[d]);
      address += uint64_t(index) * map.strides[d - 1];
    }
    if (isInside)
      function(row, address + uint64_t(first) * map.elementBytes, uint32_t(first - start[0]) * map.elementBytes,
               uint32_t(end - first) * map.elementBytes);
  }
}

} // namespace mlir::ssa::sim

#endif // SSA_LIB_SIMULATOR_TENSORMAP_H
