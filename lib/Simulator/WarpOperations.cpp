//===- WarpOperations.cpp - Exchange between lanes ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// shfl, vote, match, redux, elect, activemask. They exchange registers and order no memory.
//
//===----------------------------------------------------------------------===//

#include "Lanes.h"
#include "Numeric.h"

using namespace mlir::ssa::sim;

//===----------------------------------------------------------------------===//
// shfl
//===----------------------------------------------------------------------===//

enum ShuffleMode { Up, Down, Butterfly, Index };

/// Operands: d, p, a, b, c, mask.
static void shuffle(Warp &warp, const Instruction &instruction) {
  uint32_t values[numLanes];
  std::memcpy(values, warp.source<uint32_t>(instruction.operands[2]), sizeof(values));
  const uint32_t *b = warp.source<uint32_t>(instruction.operands[3]),
                 *c = warp.source<uint32_t>(instruction.operands[4]);
  uint32_t *to = warp.destination<uint32_t>(instruction.operands[0]), found = 0;
  unsigned stranger = numLanes;
  forEachLane(warp.active, [&](unsigned lane) {
    uint32_t distance = b[lane] & 31, clamp = c[lane] & 31, segment = c[lane] >> 8 & 31;
    int last = int((lane & segment) | (clamp & ~segment)), first = int(lane & segment), from = 0;
    bool isInside = false;
    switch (ShuffleMode(instruction.flags & 3)) {
    case Up:
      from = int(lane) - int(distance);
      isInside = from >= last;
      break;
    case Down:
      from = int(lane + distance);
      isInside = from <= last;
      break;
    case Butterfly:
      from = int(lane ^ distance);
      isInside = from <= last;
      break;
    case Index:
      from = first | int(distance & ~segment);
      isInside = from <= last;
      break;
    }
    if (!isInside)
      from = int(lane);
    if (!(warp.active >> from & 1) && stranger == numLanes)
      stranger = lane;
    to[lane] = values[from];
    found |= uint32_t(isInside) << lane;
  });
  if (instruction.operands[1] != noRegister)
    warp.setPredicate(instruction.operands[1], found);
  if (stranger != numLanes && warp.block->checks)
    warp.fault(instruction, stranger, "collective", "reads a register of a lane that does not execute this");
}

/// The predicate behind `|` in the first operand, if there is one, as destination 1.
static bool decodeSecondDestination(Decoder &decoder) {
  if (decoder.operand(0).second.empty())
    return true;
  Operand second;
  second.kind = Operand::Name;
  second.name = decoder.operand(0).second;
  Class kind = Class::Predicate;
  return decoder.destination(second, kind, decoder.instruction.operands[1]);
}

static bool decodeShuffle(Decoder &decoder) {
  int mode = decoder.takeOneOf({"up", "down", "bfly", "idx"});
  if (mode < 0 || !decoder.take("sync") || !decoder.take("b32") || !decoder.expectNoParts() ||
      !decoder.expectOperands(5, 5))
    return false;
  Instruction &instruction = decoder.instruction;
  instruction.run = shuffle;
  instruction.isCollective = true;
  instruction.maskOperand = 5;
  instruction.flags = mode;
  for (unsigned i = 1; i <= 4; ++i)
    if (!decoder.source(i, Class::Word, i + 1))
      return false;
  if (!decodeSecondDestination(decoder))
    return false;
  return decoder.destination(0, Class::Word, 0);
}

//===----------------------------------------------------------------------===//
// vote, match, elect
//===----------------------------------------------------------------------===//

enum VoteMode { All, Any, Uniform, Ballot };

static void vote(Warp &warp, const Instruction &instruction) {
  uint32_t value = warp.predicate(instruction.operands[1]) ^ (instruction.flags & 4 ? ~0u : 0);
  value &= warp.active;
  uint32_t result = 0;
  switch (VoteMode(instruction.flags & 3)) {
  case All:
    result = value == warp.active ? ~0u : 0;
    break;
  case Any:
    result = value ? ~0u : 0;
    break;
  case Uniform:
    result = !value || value == warp.active ? ~0u : 0;
    break;
  case Ballot: {
    uint32_t *to = warp.destination<uint32_t>(instruction.operands[0]);
    forEachLane(warp.active, [&](unsigned lane) { to[lane] = value; });
    return;
  }
  }
  warp.setPredicate(instruction.operands[0], result);
}

static bool decodeVote(Decoder &decoder) {
  if (!decoder.take("sync"))
    return false;
  int mode = decoder.takeOneOf({"all", "any", "uni", "ballot"});
  bool isWord = decoder.take("b32");
  if (mode < 0 || isWord != (mode == Ballot) || !(isWord || decoder.take("pred")) || !decoder.expectNoParts() ||
      !decoder.expectOperands(3, 3))
    return false;
  Instruction &instruction = decoder.instruction;
  instruction.run = vote;
  instruction.isCollective = true;
  instruction.maskOperand = 2;
  instruction.flags = mode | (decoder.operand(1).isNegated ? 4 : 0);
  return decoder.source(1, Class::Predicate, 1) && decoder.source(2, Class::Word, 2) &&
         decoder.destination(0, isWord ? Class::Word : Class::Predicate, 0);
}

/// Operands: d, p, a, mask.
template <class T, bool isAll>
static void match(Warp &warp, const Instruction &instruction) {
  const T *from = warp.source<T>(instruction.operands[2]);
  uint32_t results[numLanes] = {};
  bool isSame = true;
  T first = from[warp.firstLane()];
  forEachLane(warp.active, [&](unsigned lane) {
    isSame &= from[lane] == first;
    forEachLane(warp.active, [&](unsigned other) { results[lane] |= uint32_t(from[other] == from[lane]) << other; });
  });
  uint32_t *to = warp.destination<uint32_t>(instruction.operands[0]);
  forEachLane(warp.active, [&](unsigned lane) { to[lane] = isAll ? (isSame ? warp.active : 0) : results[lane]; });
  if (isAll && instruction.operands[1] != noRegister)
    warp.setPredicate(instruction.operands[1], isSame ? ~0u : 0);
}

static bool decodeMatch(Decoder &decoder) {
  int mode = decoder.takeOneOf({"any", "all"});
  int type = decoder.takeOneOf({"b32", "b64"});
  if (mode < 0 || type < 0 || !decoder.take("sync") || !decoder.expectNoParts() || !decoder.expectOperands(3, 3))
    return false;
  Instruction &instruction = decoder.instruction;
  instruction.run = mode ? (type ? match<uint64_t, true> : match<uint32_t, true>)
                         : (type ? match<uint64_t, false> : match<uint32_t, false>);
  instruction.isCollective = true;
  instruction.maskOperand = 3;
  if (!decodeSecondDestination(decoder))
    return false;
  return decoder.source(1, type ? Class::Double : Class::Word, 2) && decoder.source(2, Class::Word, 3) &&
         decoder.destination(0, Class::Word, 0);
}

/// Operands: d, p, mask. The lowest lane is the one.
static void elect(Warp &warp, const Instruction &instruction) {
  unsigned leader = warp.firstLane();
  if (instruction.operands[0] != noRegister) {
    uint32_t *to = warp.destination<uint32_t>(instruction.operands[0]);
    forEachLane(warp.active, [&](unsigned lane) { to[lane] = leader; });
  }
  warp.setPredicate(instruction.operands[1], 1u << leader);
}

static bool decodeElect(Decoder &decoder) {
  if (!decoder.take("sync") || !decoder.expectNoParts() || !decoder.expectOperands(2, 2))
    return false;
  Instruction &instruction = decoder.instruction;
  instruction.run = elect;
  instruction.isCollective = true;
  instruction.maskOperand = 2;
  Operand to = decoder.operand(0), second;
  second.kind = Operand::Name;
  second.name = to.second;
  if (to.name.empty() && to.second.empty())
    return decoder.fail("expected 'register|predicate'");
  Class kind = Class::Predicate, word = Class::Word;
  return decoder.source(1, Class::Word, 2) && decoder.destination(second, kind, instruction.operands[1]) &&
         decoder.destination(to, word, instruction.operands[0]);
}

//===----------------------------------------------------------------------===//
// redux, activemask
//===----------------------------------------------------------------------===//

template <class T, class F, bool isAbsolute>
static void reduce(Warp &warp, const Instruction &instruction) {
  const F &function = stateless<F>();
  const T *from = warp.source<T>(instruction.operands[1]);
  auto value = [&](unsigned lane) {
    if constexpr (isAbsolute)
      return std::fabs(from[lane]);
    else
      return from[lane];
  };
  T result = value(warp.firstLane());
  forEachLane(warp.active & (warp.active - 1), [&](unsigned lane) { result = function(result, value(lane)); });
  T *to = warp.destination<T>(instruction.operands[0]);
  forEachLane(warp.active, [&](unsigned lane) { to[lane] = result; });
}

template <class T, bool isAbsolute = false, class F>
static Row reductionRow(F) {
  return {reduce<T, F, isAbsolute>, Class::Word, {Class::Word, Class::Word}};
}

static bool decodeReduction(Decoder &decoder) {
  static const std::map<std::string, Row> forms = {
      {"add.u32", reductionRow<uint32_t>([](uint32_t a, uint32_t b) { return a + b; })},
      {"add.s32", reductionRow<uint32_t>([](uint32_t a, uint32_t b) { return a + b; })},
      {"min.u32", reductionRow<uint32_t>([](uint32_t a, uint32_t b) { return std::min(a, b); })},
      {"max.u32", reductionRow<uint32_t>([](uint32_t a, uint32_t b) { return std::max(a, b); })},
      {"min.s32", reductionRow<int32_t>([](int32_t a, int32_t b) { return std::min(a, b); })},
      {"max.s32", reductionRow<int32_t>([](int32_t a, int32_t b) { return std::max(a, b); })},
      {"and.b32", reductionRow<uint32_t>([](uint32_t a, uint32_t b) { return a & b; })},
      {"or.b32", reductionRow<uint32_t>([](uint32_t a, uint32_t b) { return a | b; })},
      {"xor.b32", reductionRow<uint32_t>([](uint32_t a, uint32_t b) { return a ^ b; })},
      {"min.f32", reductionRow<float>([](float a, float b) { return minimum(a, b); })},
      {"max.f32", reductionRow<float>([](float a, float b) { return maximum(a, b); })},
      {"min.NaN.f32", reductionRow<float>([](float a, float b) { return minimumNaN(a, b); })},
      {"max.NaN.f32", reductionRow<float>([](float a, float b) { return maximumNaN(a, b); })},
      {"min.abs.f32", reductionRow<float, true>([](float a, float b) { return minimum(a, b); })},
      {"max.abs.f32", reductionRow<float, true>([](float a, float b) { return maximum(a, b); })},
      {"min.abs.NaN.f32", reductionRow<float, true>([](float a, float b) { return minimumNaN(a, b); })},
      {"max.abs.NaN.f32", reductionRow<float, true>([](float a, float b) { return maximumNaN(a, b); })}};
  if (!decoder.take("sync") || !decoder.expectOperands(3, 3))
    return false;
  std::string form;
  for (std::string_view part : decoder.parts)
    form += (form.empty() ? "" : ".") + std::string(part);
  auto found = forms.find(form);
  if (found == forms.end())
    return false;
  decoder.instruction.run = found->second.run;
  decoder.instruction.isCollective = true;
  decoder.instruction.maskOperand = 2;
  return decoder.source(1, Class::Word, 1) && decoder.source(2, Class::Word, 2) &&
         decoder.destination(0, Class::Word, 0);
}

static void activeMask(Warp &warp, const Instruction &instruction) {
  uint32_t *to = warp.destination<uint32_t>(instruction.operands[0]);
  forEachLane(warp.active, [&](unsigned lane) { to[lane] = warp.active; });
}

static bool decodeActiveMask(Decoder &decoder) {
  decoder.instruction.run = activeMask;
  return decoder.take("b32") && decoder.expectNoParts() && decoder.expectOperands(1, 1) &&
         decoder.destination(0, Class::Word, 0);
}

void mlir::ssa::sim::addWarpOperations(Tables &tables) {
  tables.families["shfl"] = decodeShuffle;
  tables.families["vote"] = decodeVote;
  tables.families["match"] = decodeMatch;
  tables.families["elect"] = decodeElect;
  tables.families["redux"] = decodeReduction;
  tables.families["activemask"] = decodeActiveMask;
}
