//===- SharedMatrix.cpp - Matrices that descriptors name ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "SharedMatrix.h"

using namespace mlir::ssa::sim;

void SharedMatrix::read(const Block &block, unsigned first, unsigned count, float *values, unsigned outerStep,
                        unsigned innerStep) const {
  unsigned bytes = elementBytes(), perPiece = 16 / bytes, step = isTransposed ? outerStep : innerStep;
  forEachPiece(first, count, [&](uint32_t address, unsigned outer, unsigned inner) {
    uint8_t piece[16] = {};
    if (address >= sharedBase && address + 16 <= block.sharedEnd())
      std::memcpy(piece, block.shared.data() + (address - sharedBase), 16);
    float *to = values + size_t(outer - first) * outerStep + size_t(inner) * innerStep;
    for (unsigned i = 0; i < perPiece; ++i) {
      uint32_t bits = 0;
      std::memcpy(&bits, piece + i * bytes, bytes);
      to[size_t(i) * step] = decodeElement(bits, type);
    }
  });
}

ReadProblem mlir::ssa::sim::problemOf(const SharedCell &cell, const Warp &warp, unsigned lane) {
  std::string thread = warp.block->describeMember(cell.thread);
  if (cell.flags & SharedCell::Pending)
    return {"async", "an asynchronous copy of " + thread + " is on its way there: nothing waited for it"};
  if ((cell.flags & SharedCell::Defined) != SharedCell::Defined)
    return {"uninitialized", "nothing has written that"};
  if (cell.flags & SharedCell::AsyncProxy) {
    if (!warp.knowsAs(lane, cell.thread, cell.clock))
      return {"race", "nothing waited for the copy to there that " + thread + " started"};
    return {};
  }
  if (!cell.clock || warp.hasFenced(lane, cell.thread, cell.clock))
    return {};
  bool isKnown = warp.knowsAs(lane, cell.thread, cell.clock) || warp.hasMember(cell.thread);
  return {isKnown ? "proxy" : "race",
          thread + " wrote that without " + (isKnown ? "a fence.proxy.async before this" : "a barrier in between")};
}

void SharedMatrix::check(const Block &block, Warp &warp, const Instruction &instruction, unsigned lane, unsigned first,
                         unsigned count, const char *name) const {
  bool isTold = false;
  unsigned teller = lane % numLanes;
  forEachPiece(first, count, [&](uint32_t address, unsigned, unsigned) {
    if (isTold)
      return;
    if (address < sharedBase || address + 16 > block.sharedEnd()) {
      warp.fault(instruction, teller, "out-of-bounds",
                 std::string("the descriptor of ") + name + " reaches " + hex(address) +
                     ", but the block has shared memory from " + hex(sharedBase) + " to " + hex(block.sharedEnd()));
      isTold = true;
      return;
    }
    if (!block.checks)
      return;
    for (uint32_t word = (address - sharedBase) / 4, end = word + 4; word < end && !isTold; ++word) {
      ReadProblem problem = problemOf(block.cells[word], warp, lane);
      if (problem.what.empty())
        continue;
      warp.fault(instruction, teller, problem.kind,
                 std::string("reads ") + name + " at " + block.nameShared(sharedBase + 4 * word) + ", but " +
                     problem.what);
      isTold = true;
    }
  });
}
