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

//===----------------------------------------------------------------------===//
// setmaxnreg
//===----------------------------------------------------------------------===//

constexpr uint32_t registersOfChip = 65536;

uint32_t Kernel::registersAtStart(unsigned numThreads) const {
  uint32_t share = registersOfChip / (numThreads * std::max(minBlocks, 1u)) / 8 * 8;
  return maxRegisters ? maxRegisters : std::min(share, 255u);
}

bool Block::hasRegistersFor(const Warp &warp, uint32_t count) const {
  uint32_t pool = kernel.registersAtStart(numThreads) * numWarps, used = count;
  for (const Warp &other : warps)
    used += &other == &warp ? 0 : other.registerLimit;
  return used <= pool;
}

/// What a warp may use from now on. More is waited for until others have given it back. Flag 1: less.
static void limitRegisters(Warp &warp, const Instruction &instruction) {
  uint32_t count = uint32_t(instruction.immediate);
  bool isLess = instruction.flags & 1;
  if (isLess ? count > warp.registerLimit : count < warp.registerLimit)
    warp.fault(instruction, 0, "registers",
               std::string(isLess ? "decreases" : "increases") + " the registers of a thread to " +
                   std::to_string(count) + ", but they are " + std::to_string(warp.registerLimit));
  if (!isLess && !warp.block->hasRegistersFor(warp, count)) {
    warp.waitFor = Split::Registers;
    warp.waitPhase = count;
    return;
  }
  warp.registerLimit = count;
  warp.registerLimits.push_back(count);
  ++warp.block->events;
}

/// All warps of a warpgroup have to execute the same.
void Block::checkRegistersAtEnd() {
  for (Warp &warp : warps) {
    Warp &first = warps[warp.index / 4 * 4];
    if (warp.registerLimits == first.registerLimits)
      continue;
    for (const Instruction &instruction : kernel.code)
      if (instruction.run == limitRegisters) {
        warp.fault(instruction, 0, "registers",
                   "warp " + std::to_string(warp.index) +
                       " does not execute the same setmaxnreg as the other warps of its warpgroup");
        return;
      }
  }
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
  decoder.instruction.flags = unsigned(direction);
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
