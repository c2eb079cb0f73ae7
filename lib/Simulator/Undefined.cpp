//===- Undefined.cpp - Where undefined values go --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reading memory that nothing has written is no fault by itself: compilers load first and ask later whether the value
// counts. So such values are followed, lane by lane and half by half of a register; it is a fault if one decides where
// control flow goes, which address is accessed or what lanes exchange. Stored, it makes memory undefined again.
//
//===----------------------------------------------------------------------===//

#include "Lanes.h"
#include "Matrix.h"

using namespace mlir::ssa::sim;

void Warp::setUndefined(int32_t offset, unsigned half, uint32_t lanes, bool isUndefined) {
  uint32_t &mask = undefined[unsigned(offset) / 32 + half];
  uint32_t after = isUndefined ? mask | lanes : mask & ~lanes;
  numUndefined += (after != 0) - (mask != 0);
  mask = after;
}

static uint32_t anyHalf(const Warp &warp, int32_t offset) {
  return warp.undefinedIn(offset, 0) | warp.undefinedIn(offset, 1);
}

static void assign(Warp &warp, int32_t offset, unsigned half, uint32_t lanes) {
  warp.setUndefined(offset, half, warp.active & ~lanes, false);
  if (lanes & warp.active)
    warp.setUndefined(offset, half, lanes & warp.active, true);
}

/// What an instruction writes whole is as undefined as all that it reads.
static void followAll(Warp &warp, const Instruction &instruction, bool readsCount) {
  const int32_t *touched = warp.kernel->touched.data();
  uint32_t lanes = 0;
  for (uint32_t i = instruction.reads; readsCount && i < instruction.touchedEnd; ++i)
    lanes |= anyHalf(warp, touched[i]);
  for (uint32_t i = instruction.writes; i < instruction.reads; ++i)
    for (unsigned half = 0; half < 2; ++half)
      assign(warp, touched[i], half, lanes);
}

/// Moves, also between a register and its halves, and operations on pairs.
static void followHalves(Warp &warp, const Instruction &instruction) {
  const int32_t *touched = warp.kernel->touched.data(), *parts = warp.kernel->lists.data() + instruction.list;
  if (instruction.listLength && instruction.extra == 4 && instruction.count == 2) { // a pair to or from 64 bits
    for (unsigned half = 0; half < 2; ++half)
      if (instruction.operands[0] != noRegister)
        assign(warp, instruction.operands[0], half, warp.undefinedIn(parts[half], 0));
      else
        assign(warp, parts[half], 0, warp.undefinedIn(instruction.operands[1], half));
    return;
  }
  if (instruction.listLength)
    return followAll(warp, instruction, true);
  for (unsigned half = 0; half < 2; ++half) {
    uint32_t lanes = 0;
    for (uint32_t i = instruction.reads; i < instruction.touchedEnd; ++i)
      lanes |= warp.undefinedIn(touched[i], half);
    for (uint32_t i = instruction.writes; i < instruction.reads; ++i)
      assign(warp, touched[i], half, lanes);
  }
}

static void followSelect(Warp &warp, const Instruction &instruction) {
  uint32_t condition = warp.predicate(instruction.operands[3]), unknown = anyHalf(warp, instruction.operands[3]);
  for (unsigned half = 0; half < 2; ++half) {
    uint32_t first = warp.undefinedIn(instruction.operands[1], half),
             second = warp.undefinedIn(instruction.operands[2], half);
    assign(warp, instruction.operands[0], half, unknown | (condition & first) | (~condition & second));
  }
}

/// `false and undefined` is false, `true or undefined` is true.
static void followLogic(Warp &warp, const Instruction &instruction, bool isAnd) {
  int32_t a = instruction.operands[1], b = instruction.operands[2];
  uint32_t unknownA = anyHalf(warp, a), unknownB = anyHalf(warp, b);
  uint32_t decides = (isAnd ? ~warp.predicate(a) : warp.predicate(a)) & ~unknownA;
  decides |= (isAnd ? ~warp.predicate(b) : warp.predicate(b)) & ~unknownB;
  assign(warp, instruction.operands[0], 0, (unknownA | unknownB) & ~decides);
}

/// Shuffles the marks as if they were the values.
static void followShuffle(Warp &warp, const Instruction &instruction) {
  int32_t from = instruction.operands[2], to = instruction.operands[0];
  uint32_t marks = anyHalf(warp, from), kept[numLanes], overwritten[numLanes];
  if (from >= 0 && marks) {
    uint32_t *values = warp.destination<uint32_t>(from), *results = warp.destination<uint32_t>(to);
    std::memcpy(kept, values, sizeof(kept));
    std::memcpy(overwritten, results, sizeof(overwritten));
    for (unsigned lane = 0; lane < numLanes; ++lane)
      values[lane] = marks >> lane & 1;
    instruction.run(warp, instruction);
    uint32_t moved = 0;
    for (unsigned lane = 0; lane < numLanes; ++lane)
      moved |= (results[lane] & 1) << lane;
    std::memcpy(results, overwritten, sizeof(overwritten));
    std::memcpy(values, kept, sizeof(kept));
    assign(warp, to, 0, moved);
  } else
    assign(warp, to, 0, 0);
}

/// A row of A spoils a row of the result, a column of B a column.
static void followProduct(Warp &warp, const Instruction &instruction) {
  const int32_t *list = warp.kernel->lists.data() + instruction.list;
  unsigned numD = instruction.reads - instruction.writes, numInputs = instruction.listLength - 2 * numD,
           numA = numInputs * 2 / 3;
  uint32_t rows = 0, columns = 0;
  for (unsigned r = 0; r < numInputs; ++r) {
    uint32_t lanes = warp.undefinedIn(list[numD + r], 0);
    for (unsigned lane = 0; lane < numLanes; ++lane)
      if (lanes >> lane & 1)
        (r < numA ? rows : columns) |= 1u << (lane / 4 + (r < numA ? r % 2 * 8 : 0));
  }
  uint32_t results[4] = {};
  for (unsigned r = 0; r < numD; ++r) {
    results[r] = warp.undefinedIn(list[numD + numInputs + r], 0);
    for (unsigned lane = 0; lane < numLanes; ++lane) {
      unsigned row = lane / 4 + (numD == 4 ? r / 2 : r) * 8, column = lane % 4 * 2;
      bool isSpoiled = rows >> row & 1 || columns >> (column + (numD == 4 ? r % 2 : 0)) & 1 ||
                       (numD == 2 && columns >> (column + 1) & 1);
      results[r] |= uint32_t(isSpoiled) << lane;
    }
  }
  for (unsigned r = 0; r < numD; ++r)
    assign(warp, list[r], 0, results[r]);
}

static void report(Warp &warp, const Instruction &instruction, uint32_t lanes, const std::string &what) {
  warp.fault(instruction, unsigned(__builtin_ctz(lanes)), "uninitialized",
             what + " was read from memory that nothing has written");
}

/// Reports undefined values among the registers that are read; once for each register.
static void checkUses(Warp &warp, const Instruction &instruction, int32_t only = noRegister) {
  const int32_t *touched = warp.kernel->touched.data();
  for (uint32_t i = instruction.reads; i < instruction.touchedEnd; ++i) {
    if (only != noRegister && touched[i] != only)
      continue;
    if (uint32_t lanes = anyHalf(warp, touched[i]) & warp.active) {
      report(warp, instruction, lanes, warp.kernel->registerNames.at(touched[i]));
      for (unsigned half = 0; half < 2; ++half)
        warp.setUndefined(touched[i], half, lanes, false);
    }
  }
}

/// Before an instruction runs, while there are undefined values at all.
void Warp::followUndefined(const Instruction &instruction) {
  if (!block->checks)
    return;
  if (instruction.guard != noRegister)
    if (uint32_t unknown = anyHalf(*this, instruction.guard) & lanes) {
      report(*this, instruction, unknown, kernel->registerNames.at(instruction.guard));
      setUndefined(instruction.guard, 0, unknown, false);
    }
  switch (instruction.flow) {
  case Flow::All:
    return followAll(*this, instruction, true);
  case Flow::Halves:
    return followHalves(*this, instruction);
  case Flow::Select:
    return followSelect(*this, instruction);
  case Flow::And:
    return followLogic(*this, instruction, true);
  case Flow::Or:
    return followLogic(*this, instruction, false);
  case Flow::Load:
    checkUses(*this, instruction);
    return followAll(*this, instruction, false);
  case Flow::Store:
    return checkUses(*this, instruction, instruction.operands[instruction.listLength ? 1 : 0]);
  case Flow::Shuffle:
    return followShuffle(*this, instruction);
  case Flow::Product:
    return followProduct(*this, instruction);
  case Flow::Use:
    checkUses(*this, instruction);
    return followAll(*this, instruction, false);
  }
}
