//===- Moves.cpp - Moves, selections and comparisons ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Lanes.h"
#include "Numeric.h"

using namespace mlir::ssa::sim;

//===----------------------------------------------------------------------===//
// mov
//===----------------------------------------------------------------------===//

template <class T>
static void copyLanes(Warp &warp, const Instruction &instruction) {
  const T *from = warp.source<T>(instruction.operands[1]);
  T *to = warp.destination<T>(instruction.operands[0]);
  if (warp.active == ~0u)
    std::memmove(to, from, sizeof(T) * numLanes);
  else
    forEachLane(warp.active, [&](unsigned lane) { to[lane] = from[lane]; });
}

static void copyPredicate(Warp &warp, const Instruction &instruction) {
  warp.setPredicate(instruction.operands[0], warp.predicate(instruction.operands[1]));
}

/// d = {a, b, ..}; `extra` bytes each, `width` bytes together.
static void pack(Warp &warp, const Instruction &instruction) {
  const int32_t *parts = warp.kernel->lists.data() + instruction.list;
  forEachLane(warp.active, [&](unsigned lane) {
    uint64_t value = 0;
    for (unsigned i = 0; i < instruction.count; ++i)
      value |= warp.read(parts[i], instruction.extra, lane) << (8 * instruction.extra * i);
    warp.write(instruction.operands[0], instruction.width, lane, value);
  });
}

static void unpack(Warp &warp, const Instruction &instruction) {
  const int32_t *parts = warp.kernel->lists.data() + instruction.list;
  forEachLane(warp.active, [&](unsigned lane) {
    uint64_t value = warp.read(instruction.operands[1], instruction.width, lane);
    for (unsigned i = 0; i < instruction.count; ++i)
      warp.write(parts[i], instruction.extra, lane, value >> (8 * instruction.extra * i));
  });
}

static bool decodeMove(Decoder &decoder) {
  if (decoder.parts.size() != 1 || !decoder.expectOperands(2, 2))
    return false;
  Class kind = classOfType(decoder.parts[0]);
  if (kind == Class::None)
    return false;
  Instruction &instruction = decoder.instruction;
  instruction.isCopy = true;
  const Operand &to = decoder.operand(0), &from = decoder.operand(1);
  if (to.kind == Operand::Vector || from.kind == Operand::Vector) {
    const Operand &many = to.kind == Operand::Vector ? to : from;
    bool isPacking = from.kind == Operand::Vector;
    instruction.width = bytesOfType(decoder.parts[0]);
    instruction.count = many.elements.size();
    instruction.extra = instruction.width / instruction.count;
    instruction.run = isPacking ? pack : unpack;
    Class part = instruction.extra == 4 ? Class::Word : instruction.extra == 2 ? Class::Half : Class::None;
    unsigned count;
    return part != Class::None && decoder.vector(many, part, !isPacking, count) &&
           (isPacking ? decoder.destination(0, kind, 0) : decoder.source(1, kind, 1));
  }
  static const Handler handlers[] = {copyPredicate, copyLanes<uint16_t>, copyLanes<uint32_t>, copyLanes<uint64_t>};
  instruction.run = handlers[int(kind)];
  return decoder.source(1, kind, 1) && decoder.destination(0, kind, 0);
}

//===----------------------------------------------------------------------===//
// cvta, isspacep
//===----------------------------------------------------------------------===//

static void convertAddress(Warp &warp, const Instruction &instruction) {
  const uint64_t *from = warp.source<uint64_t>(instruction.operands[1]);
  uint64_t *to = warp.destination<uint64_t>(instruction.operands[0]);
  forEachLane(warp.active, [&](unsigned lane) { to[lane] = from[lane] + uint64_t(instruction.immediate); });
}

static bool decodeConvertAddress(Decoder &decoder) {
  bool isInverse = decoder.take("to");
  decoder.take("cta");
  int space = decoder.takeOneOf({"global", "shared", "shared::cta", "local", "const", "param"});
  int size = decoder.takeOneOf({"u64", "u32"});
  if (space < 0 || size != 0 || !decoder.expectNoParts() || !decoder.expectOperands(2, 2))
    return false;
  uint64_t window = space == 1 || space == 2 ? sharedWindow : space == 3 ? localWindow : space == 5 ? paramWindow : 0;
  decoder.instruction.run = convertAddress;
  if (!decoder.source(1, Class::Double, 1) || !decoder.destination(0, Class::Double, 0))
    return false;
  decoder.instruction.immediate = int64_t(isInverse ? 0 - window : window);
  return true;
}

//===----------------------------------------------------------------------===//
// setp, selp
//===----------------------------------------------------------------------===//

template <class T>
static void addIntegerComparisons(Tables &tables, const std::string &type) {
  auto &rows = tables.rows;
  rows["compare.eq." + type] = lanewise([](T a, T b) { return a == b; });
  rows["compare.ne." + type] = lanewise([](T a, T b) { return a != b; });
  for (auto [lt, le, gt, ge] : {std::array{"lt", "le", "gt", "ge"}, std::array{"lo", "ls", "hi", "hs"}}) {
    rows[std::string("compare.") + lt + "." + type] = lanewise([](T a, T b) { return a < b; });
    rows[std::string("compare.") + le + "." + type] = lanewise([](T a, T b) { return a <= b; });
    rows[std::string("compare.") + gt + "." + type] = lanewise([](T a, T b) { return a > b; });
    rows[std::string("compare.") + ge + "." + type] = lanewise([](T a, T b) { return a >= b; });
  }
}

/// `T` is what is compared, `R` what the registers hold.
template <class T, class R, T (*convert)(R)>
static void addFloatComparisons(Tables &tables, const std::string &type) {
  auto &rows = tables.rows;
  std::string name = "compare.";
  rows[name + "eq." + type] = lanewise([](R a, R b) { return convert(a) == convert(b); });
  rows[name + "ne." + type] = lanewise([](R a, R b) {
    T x = convert(a), y = convert(b);
    return x < y || x > y;
  });
  rows[name + "lt." + type] = lanewise([](R a, R b) { return convert(a) < convert(b); });
  rows[name + "le." + type] = lanewise([](R a, R b) { return convert(a) <= convert(b); });
  rows[name + "gt." + type] = lanewise([](R a, R b) { return convert(a) > convert(b); });
  rows[name + "ge." + type] = lanewise([](R a, R b) { return convert(a) >= convert(b); });
  rows[name + "equ." + type] = lanewise([](R a, R b) {
    T x = convert(a), y = convert(b);
    return !(x < y || x > y);
  });
  rows[name + "neu." + type] = lanewise([](R a, R b) { return !(convert(a) == convert(b)); });
  rows[name + "ltu." + type] = lanewise([](R a, R b) { return !(convert(a) >= convert(b)); });
  rows[name + "leu." + type] = lanewise([](R a, R b) { return !(convert(a) > convert(b)); });
  rows[name + "gtu." + type] = lanewise([](R a, R b) { return !(convert(a) <= convert(b)); });
  rows[name + "geu." + type] = lanewise([](R a, R b) { return !(convert(a) < convert(b)); });
  rows[name + "num." + type] = lanewise([](R a, R b) {
    T x = convert(a), y = convert(b);
    return x == x && y == y;
  });
  rows[name + "nan." + type] = lanewise([](R a, R b) {
    T x = convert(a), y = convert(b);
    return x != x || y != y;
  });
}

static float sameFloat(float a) { return a; }
static double sameDouble(double a) { return a; }
static double fromHalf(uint16_t a) { return decode(a, formatF16); }
static double fromBrain(uint16_t a) { return decode(a, formatBF16); }

/// p|q = compare(a, b) op c: the comparison is in operand 2, c in operand 3 (negated by flag 4), op in the low flags.
static void combine(Warp &warp, const Instruction &instruction) {
  uint32_t found = warp.predicate(instruction.operands[2]), other = ~0u;
  if (instruction.operands[3] != noRegister)
    other = warp.predicate(instruction.operands[3]) ^ (instruction.flags & 4 ? ~0u : 0);
  auto join = [&](uint32_t value) {
    unsigned op = instruction.flags & 3;
    return op == 0 ? value & other : op == 1 ? value | other : value ^ other;
  };
  uint32_t first = join(found), second = join(~found);
  warp.setPredicate(instruction.operands[0], first);
  if (instruction.operands[1] != noRegister)
    warp.setPredicate(instruction.operands[1], second);
}

static bool decodeCompare(Decoder &decoder) {
  int boolean = decoder.takeOneOf({"and", "or", "xor"});
  bool flushes = decoder.take("ftz");
  if (decoder.parts.size() != 2 || !decoder.expectOperands(boolean >= 0 ? 4 : 3, boolean >= 0 ? 4 : 3))
    return false;
  std::string name = "compare." + std::string(decoder.parts[0]) + "." + std::string(decoder.parts[1]);
  const auto &rows = Tables::get().rows;
  auto row = rows.find(flushes ? name + ".ftz" : name);
  if (row == rows.end())
    return false;
  Instruction &instruction = decoder.instruction;
  instruction.run = row->second.run;
  for (unsigned i = 1; i <= 2; ++i)
    if (!decoder.source(i, row->second.arguments[0], i))
      return false;
  const Operand &to = decoder.operand(0);
  if (boolean < 0 && to.second.empty())
    return decoder.destination(0, Class::Predicate, 0);
  // Two instructions: the comparison into a predicate of its own, then what follows.
  int32_t found = int32_t(decoder.kernel.registerBytes);
  decoder.kernel.registerBytes += bytesOf(Class::Predicate);
  instruction.operands[0] = found;
  Instruction first = instruction;
  first.touchedEnd = first.reads = first.writes = decoder.kernel.touched.size();
  decoder.kernel.code.push_back(first);
  instruction.run = combine;
  instruction.operands = {noRegister, noRegister, found, noRegister, noRegister, noRegister};
  instruction.flags = std::max(boolean, 0);
  if (!decoder.destination(0, Class::Predicate, 0))
    return false;
  if (!to.second.empty() && to.second != "_") {
    Operand second;
    second.kind = Operand::Name;
    second.name = to.second;
    Class kind = Class::Predicate;
    if (!decoder.destination(second, kind, instruction.operands[1]))
      return false;
  }
  if (boolean < 0)
    return true;
  instruction.flags |= decoder.operand(3).isNegated ? 4 : 0;
  return decoder.source(3, Class::Predicate, 3);
}

void mlir::ssa::sim::addMoves(Tables &tables) {
  auto &rows = tables.rows;
  tables.families["mov"] = decodeMove;
  tables.families["cvta"] = decodeConvertAddress;
  for (std::string type : {"b16", "u16", "s16", "f16", "bf16"})
    rows["selp." + type] = lanewise([](uint16_t a, uint16_t b, bool p) { return p ? a : b; });
  for (std::string type : {"b32", "u32", "s32", "f32"})
    rows["selp." + type] = lanewise([](uint32_t a, uint32_t b, bool p) { return p ? a : b; });
  for (std::string type : {"b64", "u64", "s64", "f64"})
    rows["selp." + type] = lanewise([](uint64_t a, uint64_t b, bool p) { return p ? a : b; });
  auto inWindow = [](uint64_t address, uint64_t window) { return address - window < windowBytes; };
  using InWindow = decltype(inWindow);
  rows["isspacep.shared"] = lanewise([](uint64_t a) { return stateless<InWindow>()(a, sharedWindow); });
  rows["isspacep.local"] = lanewise([](uint64_t a) { return stateless<InWindow>()(a, localWindow); });
  rows["isspacep.global"] = lanewise(
      [](uint64_t a) { return !stateless<InWindow>()(a, sharedWindow) && !stateless<InWindow>()(a, localWindow); });
}

static float flushed(float a) { return flush(a); }

void mlir::ssa::sim::addComparisons(Tables &tables) {
  tables.families["setp"] = decodeCompare;
  addIntegerComparisons<uint16_t>(tables, "u16");
  addIntegerComparisons<uint16_t>(tables, "b16");
  addIntegerComparisons<int16_t>(tables, "s16");
  addIntegerComparisons<uint32_t>(tables, "u32");
  addIntegerComparisons<uint32_t>(tables, "b32");
  addIntegerComparisons<int32_t>(tables, "s32");
  addIntegerComparisons<uint64_t>(tables, "u64");
  addIntegerComparisons<uint64_t>(tables, "b64");
  addIntegerComparisons<int64_t>(tables, "s64");
  addFloatComparisons<float, float, sameFloat>(tables, "f32");
  addFloatComparisons<float, float, flushed>(tables, "f32.ftz");
  addFloatComparisons<double, double, sameDouble>(tables, "f64");
  addFloatComparisons<double, uint16_t, fromHalf>(tables, "f16");
  addFloatComparisons<double, uint16_t, fromBrain>(tables, "bf16");
}
