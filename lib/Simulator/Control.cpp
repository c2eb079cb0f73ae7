//===- Control.cpp - Control flow -----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Lanes.h"

using namespace mlir::ssa::sim;

static void jump(Warp &warp, const Instruction &instruction) {
  warp.branch(warp.active, uint32_t(instruction.immediate));
}

static bool decodeBranch(Decoder &decoder) {
  decoder.take("uni");
  if (!decoder.expectNoParts() || !decoder.expectOperands(1, 1))
    return false;
  decoder.instruction.run = jump;
  decoder.instruction.isControl = true;
  decoder.addBranch(decoder.operand(0).name);
  return true;
}

static void leave(Warp &warp, const Instruction &) { warp.exitLanes(warp.active); }

static bool decodeReturn(Decoder &decoder) {
  decoder.take("uni");
  decoder.instruction.run = leave;
  decoder.instruction.isControl = true;
  return decoder.expectNoParts() && decoder.expectOperands(0, 0);
}

static void trap(Warp &warp, const Instruction &instruction) {
  if (!warp.active)
    return;
  warp.fault(instruction, warp.firstLane(), "trap", "the kernel stopped itself");
  warp.block->isStopped = true;
  warp.exitLanes(warp.active);
}

static bool decodeTrap(Decoder &decoder) {
  decoder.instruction.run = trap;
  decoder.instruction.isControl = true;
  return decoder.expectOperands(0, 0);
}

static void doNothing(Warp &, const Instruction &) {}

static bool decodeNothing(Decoder &decoder) {
  decoder.instruction.run = doNothing;
  decoder.parts.clear();
  return true;
}

static void yieldWarp(Warp &warp, const Instruction &) { warp.mustYield = warp.isIdle = true; }

static bool decodeSleep(Decoder &decoder) {
  decoder.instruction.run = yieldWarp;
  return decoder.take("u32") && decoder.expectNoParts();
}

/// setmaxnreg: what a warp may use from now on. All warps of a warpgroup have to execute the same.
static void limitRegisters(Warp &warp, const Instruction &instruction) {
  warp.registerLimit = uint32_t(instruction.immediate);
}

static bool decodeRegisterLimit(Decoder &decoder) {
  int direction = decoder.takeOneOf({"inc", "dec"});
  bool isWhole = decoder.take("sync") && decoder.take("aligned") && decoder.take("u32");
  int64_t count = 0;
  if (direction < 0 || !isWhole || !decoder.expectNoParts() || !decoder.expectOperands(1, 1) ||
      !decoder.number(0, count))
    return false;
  if (count < 24 || count > 256 || count % 8)
    return decoder.fail("the number of registers must be a multiple of 8 from 24 to 256");
  decoder.instruction.run = limitRegisters;
  decoder.instruction.isCollective = true;
  decoder.instruction.immediate = count;
  return true;
}

void mlir::ssa::sim::addControl(Tables &tables) {
  auto &families = tables.families;
  families["bra"] = decodeBranch;
  families["ret"] = decodeReturn;
  families["exit"] = decodeReturn;
  families["trap"] = decodeTrap;
  families["nanosleep"] = decodeSleep;
  families["setmaxnreg"] = decodeRegisterLimit;
  families["griddepcontrol"] = decodeNothing; // launches run one after another
  families["prefetch"] = decodeNothing;
  families["prefetchu"] = decodeNothing;
  families["applypriority"] = decodeNothing;
  families["discard"] = decodeNothing;
}
