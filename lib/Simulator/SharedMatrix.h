//===- SharedMatrix.h - Matrices that descriptors name ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What wgmma and tcgen05.mma read from shared memory: both have the same layouts, under different descriptors.
//
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_SIMULATOR_SHAREDMATRIX_H
#define SSA_LIB_SIMULATOR_SHAREDMATRIX_H

#include "Machine.h"
#include "Matrix.h"

namespace mlir::ssa::sim {

struct SharedMatrix {
  uint32_t start = 0, leading = 0, stride = 0;
  unsigned rowBytes = 16; // of the swizzle: 16 (none), 32, 64, 128
  unsigned baseOffset = 0;
  Element type = Element::F16;
  unsigned k = 0;
  /// k is the slower dimension: "MN-major".
  bool isTransposed = false;

  unsigned elementBytes() const { return bitsOf(type) / 8; }

  /// The address of an element, `outer` along m or n and `inner` along k.
  uint32_t locate(unsigned outer, unsigned inner) const {
    unsigned row = rowBytes, bytes = elementBytes();
    uint32_t address;
    if (!isTransposed) {
      unsigned at = inner * bytes;
      address = start + outer / 8 * stride + outer % 8 * row + at % row + at / row * leading;
    } else {
      unsigned at = outer * bytes;
      address = start + inner % 8 * row + at % row;
      address += row == 16 ? at / row * stride + inner / 8 * leading : at / row * leading + inner / 8 * stride;
    }
    return address ^ ((((address >> 7) + baseOffset) & (row / 16 - 1)) << 4);
  }

  /// Calls the function with the address of every 16 bytes, and which element that starts with.
  template <class F>
  void forEachPiece(unsigned firstOuter, unsigned numOuter, F function) const {
    unsigned perPiece = 16 / elementBytes();
    if (isTransposed) {
      for (unsigned outer = firstOuter; outer < firstOuter + numOuter; outer += perPiece)
        for (unsigned inner = 0; inner < k; ++inner)
          function(locate(outer, inner), outer, inner);
    } else {
      for (unsigned outer = firstOuter; outer < firstOuter + numOuter; ++outer)
        for (unsigned inner = 0; inner < k; inner += perPiece)
          function(locate(outer, inner), outer, inner);
    }
  }

  /// The same, word by word, for those that are in shared memory.
  template <class F>
  void forEachWord(const Block &block, unsigned firstOuter, unsigned numOuter, F function) const {
    forEachPiece(firstOuter, numOuter, [&](uint32_t address, unsigned, unsigned) {
      if (address >= sharedBase && address + 16 <= block.sharedEnd())
        for (uint32_t word = (address - sharedBase) / 4, end = word + 4; word < end; ++word)
          function(word);
    });
  }

  /// Reads elements into floats; what lies outside of shared memory is 0. Element (outer, inner) goes to
  /// `values[(outer - first) * outerStep + inner * innerStep]`.
  void read(const Block &block, unsigned first, unsigned count, float *values, unsigned outerStep,
            unsigned innerStep) const;

  /// Whether the asynchronous proxy may read rows (`outer`) of it, as the lane of a warp sees it; `lane` is numLanes if
  /// the warp does as a whole. Reports what is wrong.
  void check(const Block &block, Warp &warp, const Instruction &instruction, unsigned lane, unsigned first,
             unsigned count, const char *name) const;
};

/// Why the asynchronous proxy may not read a word of shared memory, for a lane of a warp; no `what` if it may.
struct ReadProblem {
  const char *kind = "race";
  std::string what;
};
ReadProblem problemOf(const SharedCell &cell, const Warp &warp, unsigned lane);

} // namespace mlir::ssa::sim

#endif // SSA_LIB_SIMULATOR_SHAREDMATRIX_H
