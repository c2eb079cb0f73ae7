//===- TensorMap.h - Tensor maps of the simulator ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_SIMULATOR_TENSORMAP_H
#define SSA_LIB_SIMULATOR_TENSORMAP_H

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

} // namespace mlir::ssa::sim

#endif // SSA_LIB_SIMULATOR_TENSORMAP_H
