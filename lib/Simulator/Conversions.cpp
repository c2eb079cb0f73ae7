//===- Conversions.cpp - cvt ----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Lanes.h"
#include "Numeric.h"

using namespace mlir::ssa::sim;

namespace {
/// A type that cvt knows. The order is that of `typeNames`.
enum class Type : uint8_t {
  U8,
  S8,
  U16,
  S16,
  U32,
  S32,
  U64,
  S64,
  F16,
  BF16,
  F32,
  F64,
  TF32,
  F16x2,
  BF16x2,
  E4M3x2,
  E5M2x2
};
constexpr const char *typeNames[] = {"u8",   "s8",  "u16", "s16",  "u32",   "s32",    "u64",    "s64",   "f16",
                                     "bf16", "f32", "f64", "tf32", "f16x2", "bf16x2", "e4m3x2", "e5m2x2"};

/// How a conversion is made; fits Instruction::extra.
struct Mode {
  Type to, from;
  Rounding rounding;
  uint8_t flags;
  enum : uint8_t { Flush = 1, Saturate = 2, SatFinite = 4, Relu = 8, ToInteger = 16 };
};
} // namespace

static bool isFloat(Type type) { return type >= Type::F16; }
static bool isSigned(Type type) { return type <= Type::S64 && int(type) % 2; }
static unsigned widthOf(Type type) {
  static const unsigned widths[] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 4, 4, 4, 2, 2};
  return widths[int(type)];
}
static const Format &formatOf(Type type) {
  static const Format formats[] = {formatF16, formatBF16, formatE4M3, formatE5M2};
  return type == Type::F16 || type == Type::F16x2     ? formats[0]
         : type == Type::BF16 || type == Type::BF16x2 ? formats[1]
         : type == Type::E4M3x2                       ? formats[2]
                                                      : formats[3];
}

static double readFloat(uint64_t value, Type type) {
  switch (type) {
  case Type::F32:
  case Type::TF32:
    return bits<float>(uint32_t(value));
  case Type::F64:
    return bits<double>(value);
  default:
    return decode(uint32_t(value), formatOf(type));
  }
}

static int64_t readInteger(uint64_t value, Type type) {
  unsigned shift = 64 - 8 * widthOf(type);
  return isSigned(type) ? int64_t(value << shift) >> shift : int64_t(value << shift >> shift);
}

static uint64_t floatToInteger(double value, Mode mode) {
  if (value != value)
    return mode.to == Type::U64 || mode.to == Type::S64 ? uint64_t(1) << 63 : 0;
  unsigned width = 8 * widthOf(mode.to);
  double low = isSigned(mode.to) ? -std::ldexp(1.0, width - 1) : 0;
  double high = std::ldexp(1.0, isSigned(mode.to) ? width - 1 : width); // one too many
  value = roundInteger(value, mode.rounding);
  if (value <= low)
    return uint64_t(int64_t(low));
  if (value >= high)
    return isSigned(mode.to) ? (uint64_t(1) << (width - 1)) - 1
           : width == 64     ? ~uint64_t(0)
                             : (uint64_t(1) << width) - 1;
  return value < 0 ? uint64_t(int64_t(value)) : uint64_t(value);
}

/// Integer to f32 with one rounding: f64 holds 53 bits, so larger numbers keep what they lose as a last bit.
static double widen(int64_t value, Type from) {
  bool isNegative = isSigned(from) && value < 0;
  uint64_t magnitude = isNegative ? 0 - uint64_t(value) : uint64_t(value);
  if (magnitude >> 53)
    magnitude = (magnitude & ~uint64_t(0xfff)) | (magnitude & 0xfff ? 0x800 : 0);
  return isNegative ? -double(magnitude) : double(magnitude);
}

static double integerToDouble(int64_t value, Mode mode) {
  // The host rounds to nearest; in other directions, numbers of more than 53 bits would differ.
  return isSigned(mode.from) ? double(value) : double(uint64_t(value));
}

static uint64_t writeFloat(double value, Mode mode) {
  if (mode.flags & Mode::Relu && !(value > 0))
    value = value != value ? value : 0.0;
  if (mode.flags & Mode::Saturate)
    value = value > 0 ? std::min(value, 1.0) : 0.0;
  switch (mode.to) {
  case Type::F64:
    return bits<uint64_t>(value);
  case Type::F32: {
    if (value != value && mode.from == Type::F64) // the upper part of the payload stays
      return bits<uint32_t>(float(value));
    float narrow = canonical(roundToFloat(value, mode.rounding));
    return bits<uint32_t>(mode.flags & Mode::Flush ? flush(narrow) : narrow);
  }
  case Type::TF32:
    return uint64_t(encode(value, formatTF32, mode.rounding, mode.flags & Mode::SatFinite)) << 13;
  default:
    return encode(value, formatOf(mode.to), mode.rounding, mode.flags & Mode::SatFinite);
  }
}

static uint64_t convert(uint64_t value, Mode mode) {
  if (!isFloat(mode.from)) {
    int64_t integer = readInteger(value, mode.from);
    if (!isFloat(mode.to)) {
      if (mode.flags & Mode::Saturate) {
        unsigned width = 8 * widthOf(mode.to);
        __int128 wide = isSigned(mode.from) ? __int128(integer) : __int128(uint64_t(integer));
        __int128 high = isSigned(mode.to) ? (__int128(1) << (width - 1)) - 1 : (__int128(1) << width) - 1;
        __int128 low = isSigned(mode.to) ? -high - 1 : 0;
        return uint64_t(wide < low ? low : wide > high ? high : wide);
      }
      return uint64_t(readInteger(uint64_t(integer), mode.to));
    }
    return writeFloat(mode.to == Type::F64 ? integerToDouble(integer, mode) : widen(integer, mode.from), mode);
  }
  double number = readFloat(value, mode.from);
  if (mode.flags & Mode::Flush && mode.from == Type::F32)
    number = flush(float(number));
  if (!isFloat(mode.to))
    return floatToInteger(number, mode);
  if (mode.flags & Mode::ToInteger)
    number = std::isfinite(number) ? std::copysign(roundInteger(number, mode.rounding), number) : number;
  return writeFloat(number, mode);
}

static Mode modeOf(const Instruction &instruction) {
  Mode mode;
  std::memcpy(&mode, &instruction.extra, sizeof(mode));
  return mode;
}

/// One value. `width` and `count` are the bytes of the registers.
static void convertOne(Warp &warp, const Instruction &instruction) {
  Mode mode = modeOf(instruction);
  forEachLane(warp.active, [&](unsigned lane) {
    uint64_t value = warp.read(instruction.operands[1], instruction.count, lane);
    warp.write(instruction.operands[0], instruction.width, lane, convert(value, mode));
  });
}

/// Two f32 into a pair: the first one is the upper half.
static void convertToPair(Warp &warp, const Instruction &instruction) {
  Mode mode = modeOf(instruction);
  const float *high = warp.source<float>(instruction.operands[1]), *low = warp.source<float>(instruction.operands[2]);
  if (mode.to == Type::BF16x2 && mode.rounding == Rounding::Nearest && !mode.flags) {
    uint32_t *to = warp.destination<uint32_t>(instruction.operands[0]);
    forEachLane(warp.active, [&](unsigned lane) { to[lane] = uint32_t(toBF16(high[lane])) << 16 | toBF16(low[lane]); });
    return;
  }
  unsigned half = widthOf(mode.to) * 4;
  forEachLane(warp.active, [&](unsigned lane) {
    uint64_t value = writeFloat(high[lane], mode) << half | writeFloat(low[lane], mode);
    warp.write(instruction.operands[0], widthOf(mode.to), lane, value);
  });
}

/// A pair of f8 into one of f16.
static void convertPair(Warp &warp, const Instruction &instruction) {
  Mode mode = modeOf(instruction);
  unsigned from = widthOf(mode.from) * 4, to = widthOf(mode.to) * 4;
  forEachLane(warp.active, [&](unsigned lane) {
    uint64_t value = warp.read(instruction.operands[1], widthOf(mode.from), lane);
    uint64_t low = writeFloat(readFloat(value & ((1u << from) - 1), mode.from), mode);
    uint64_t high = writeFloat(readFloat(value >> from, mode.from), mode);
    warp.write(instruction.operands[0], widthOf(mode.to), lane, high << to | low);
  });
}

static unsigned bytesOfClass(Class kind) { return kind == Class::Half ? 2 : kind == Class::Word ? 4 : 8; }

static bool decodeConvert(Decoder &decoder) {
  Mode mode = {};
  auto takeType = [&](Type &type) {
    if (decoder.parts.empty())
      return false;
    for (size_t i = 0; i < std::size(typeNames); ++i)
      if (decoder.parts.back() == typeNames[i]) {
        type = Type(i);
        decoder.parts.pop_back();
        return true;
      }
    return false;
  };
  if (!takeType(mode.from) || !takeType(mode.to))
    return false;
  int rounding = decoder.takeOneOf({"rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi"});
  static const Rounding roundings[] = {Rounding::Nearest, Rounding::Zero,        Rounding::Down,
                                       Rounding::Up,      Rounding::NearestAway, Rounding::Nearest,
                                       Rounding::Zero,    Rounding::Down,        Rounding::Up};
  mode.rounding = rounding < 0 ? Rounding::Nearest : roundings[rounding];
  mode.flags = (rounding >= 5 ? Mode::ToInteger : 0) | (decoder.take("ftz") ? Mode::Flush : 0) |
               (decoder.take("satfinite") ? Mode::SatFinite : 0) | (decoder.take("sat") ? Mode::Saturate : 0) |
               (decoder.take("relu") ? Mode::Relu : 0);
  if (!decoder.expectNoParts())
    return false;
  Instruction &instruction = decoder.instruction;
  static_assert(sizeof(Mode) == sizeof(instruction.extra));
  std::memcpy(&instruction.extra, &mode, sizeof(mode));
  if (mode.to >= Type::F16x2 && mode.from == Type::F32) {
    instruction.run = convertToPair;
    Class result = widthOf(mode.to) == 2 ? Class::Half : Class::Word;
    return decoder.expectOperands(3, 3) && decoder.source(1, Class::Word, 1) && decoder.source(2, Class::Word, 2) &&
           decoder.destination(0, result, 0);
  }
  if (!decoder.expectOperands(2, 2))
    return false;
  // Registers may be wider than the types.
  Class from = decoder.operand(1).kind == Operand::Name ? Class::None
               : widthOf(mode.from) == 8                ? Class::Double
                                                        : Class::Word;
  Class to = Class::None;
  if (!decoder.source(decoder.operand(1), from, instruction.operands[1]) ||
      !decoder.destination(decoder.operand(0), to, instruction.operands[0]))
    return false;
  instruction.width = bytesOfClass(to);
  instruction.count = bytesOfClass(from);
  if (instruction.width < widthOf(mode.to) || instruction.count < widthOf(mode.from))
    return decoder.fail("a register is narrower than its type");
  instruction.run = mode.from >= Type::F16x2 ? convertPair : convertOne;
  const auto &rows = Tables::get().rows;
  auto fast = rows.find("fast." + std::string(decoder.statement->mnemonic));
  if (fast != rows.end() && fast->second.arguments[0] == from && fast->second.result == to)
    instruction.run = fast->second.run;
  return true;
}

void mlir::ssa::sim::addConversions(Tables &tables) {
  tables.families["cvt"] = decodeConvert;
  auto &rows = tables.rows;
  // The frequent ones.
  rows["fast.cvt.u64.u32"] = lanewise([](uint32_t a) { return uint64_t(a); });
  rows["fast.cvt.u32.u64"] = lanewise([](uint64_t a) { return uint32_t(a); });
  rows["fast.cvt.s64.s32"] = lanewise([](int32_t a) { return int64_t(a); });
  rows["fast.cvt.f32.bf16"] = lanewise([](uint16_t a) { return uint32_t(a) << 16; });
}
