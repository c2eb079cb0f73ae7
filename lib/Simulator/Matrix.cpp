//===- Matrix.cpp - ldmatrix, stmatrix, mma.sync --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Matrix.h"
#include "Lanes.h"

using namespace mlir::ssa::sim;

#if defined(__x86_64__) && defined(__linux__)
__attribute__((target_clones("avx2", "default")))
#endif
static void
multiplyRows(float *d, const float *a, const float *b, unsigned n, unsigned k) {
  constexpr unsigned width = 8;
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned column = 0; column < n; column += width) {
      double sums[width];
      for (unsigned i = 0; i < width; ++i)
        sums[i] = d[row * n + column + i];
      for (unsigned step = 0; step < k; ++step) {
        double factor = a[row * k + step];
        const float *other = b + step * n + column;
        for (unsigned i = 0; i < width; ++i)
          sums[i] += factor * double(other[i]);
      }
      for (unsigned i = 0; i < width; ++i)
        d[row * n + column + i] = float(sums[i]);
    }
}

void mlir::ssa::sim::multiply(float *d, const float *a, const float *b, unsigned n, unsigned k) {
  multiplyRows(d, a, b, n, k);
}

//===----------------------------------------------------------------------===//
// ldmatrix, stmatrix
//===----------------------------------------------------------------------===//

/// The row that each lane points to; rows that cannot be accessed are zeros.
static void gatherRows(Warp &warp, const Instruction &instruction, uint8_t *(&rows)[numLanes], bool isWrite,
                       bool isTransposed) {
  for (unsigned lane = 0; lane < 8u * instruction.count; ++lane) {
    uint64_t address = warp.addressOf(instruction, lane, 1);
    if (address - sharedWindow < windowBytes)
      address -= sharedWindow;
    rows[lane] = warp.locate(instruction, Space::Shared, lane, address, 16);
    uint32_t missing = rows[lane] ? warp.block->noteShared(warp, instruction, lane, uint32_t(address), 16, isWrite) : 0;
    if (!missing)
      continue;
    // Row `lane % 8` of matrix `lane / 8`: in four lanes as it is, in part of eight if transposed.
    int32_t to = warp.kernel->lists[instruction.list + lane / 8];
    unsigned row = lane % 8;
    for (unsigned other = 0; other < numLanes; ++other)
      if (isTransposed ? other % 4 == row / 2 && missing >> (other / 4 * 2) & 3
                       : other / 4 == row && missing >> (other % 4 * 4) & 15)
        warp.setUndefined(to, 0, 1u << other, true);
  }
}

template <bool isTransposed>
static void loadMatrix(Warp &warp, const Instruction &instruction) {
  uint8_t *rows[numLanes];
  gatherRows(warp, instruction, rows, false, isTransposed);
  static const uint8_t zeros[16] = {};
  const int32_t *to = warp.kernel->lists.data() + instruction.list;
  uint32_t results[4][numLanes];
  for (unsigned m = 0; m < instruction.count; ++m)
    for (unsigned lane = 0; lane < numLanes; ++lane) {
      auto element = [&](unsigned row, unsigned column) {
        const uint8_t *data = rows[8 * m + row] ? rows[8 * m + row] : zeros;
        return uint32_t(data[2 * column]) | uint32_t(data[2 * column + 1]) << 8;
      };
      unsigned pair = lane % 4 * 2, other = lane / 4;
      results[m][lane] = isTransposed ? element(pair, other) | element(pair + 1, other) << 16
                                      : element(other, pair) | element(other, pair + 1) << 16;
    }
  for (unsigned m = 0; m < instruction.count; ++m)
    std::memcpy(warp.destination<uint32_t>(to[m]), results[m], sizeof(results[m]));
}

template <bool isTransposed>
static void storeMatrix(Warp &warp, const Instruction &instruction) {
  uint8_t *rows[numLanes];
  gatherRows(warp, instruction, rows, true, isTransposed);
  const int32_t *from = warp.kernel->lists.data() + instruction.list;
  for (unsigned m = 0; m < instruction.count; ++m) {
    const uint32_t *values = warp.source<uint32_t>(from[m]);
    for (unsigned lane = 0; lane < numLanes; ++lane)
      for (unsigned i = 0; i < 2; ++i) {
        unsigned row = isTransposed ? lane % 4 * 2 + i : lane / 4, column = isTransposed ? lane / 4 : lane % 4 * 2 + i;
        uint16_t value = uint16_t(values[lane] >> (16 * i));
        if (rows[8 * m + row])
          std::memcpy(rows[8 * m + row] + 2 * column, &value, 2);
      }
  }
}

static bool decodeMatrixAccess(Decoder &decoder, bool isLoad) {
  bool isWhole = decoder.take("sync") && decoder.take("aligned") && decoder.take("m8n8") && decoder.take("b16");
  int count = decoder.takeOneOf({"x1", "x2", "x4"});
  bool isTransposed = decoder.take("trans");
  if (!decoder.take("shared"))
    decoder.take("shared::cta");
  if (!isWhole || count < 0 || !decoder.expectNoParts() || !decoder.expectOperands(2, 2))
    return false;
  Instruction &instruction = decoder.instruction;
  instruction.isCollective = true;
  instruction.count = uint8_t(1 << count);
  instruction.width = 16;
  instruction.run = isLoad ? (isTransposed ? loadMatrix<true> : loadMatrix<false>)
                           : (isTransposed ? storeMatrix<true> : storeMatrix<false>);
  unsigned registers = 0;
  if (!decoder.address(isLoad ? 1 : 0, Space::Shared, 1) ||
      !decoder.vector(decoder.operand(isLoad ? 0 : 1), Class::Word, isLoad, registers))
    return false;
  return registers == instruction.count || decoder.fail("expected " + std::to_string(instruction.count) + " registers");
}

//===----------------------------------------------------------------------===//
// mma.sync
//===----------------------------------------------------------------------===//

/// A form of mma: types, k, and what the result is. Packed into `flags`.
struct Form {
  Element a, b;
  uint8_t k;
  bool isHalf; // accumulators are f16
};

static Form formOf(const Instruction &instruction) {
  Form form;
  std::memcpy(&form, &instruction.extra, sizeof(form));
  return form;
}

/// Elements of a fragment: `perRegister` neighbours along k from `lane % 4`, of row `lane / 4`.
static void unpackA(const Warp &warp, const int32_t *registers, Form form, float *a) {
  unsigned width = bitsOf(form.a), perRegister = 32 / width, half = 4 * perRegister;
  unsigned count = form.k / half * 2;
  for (unsigned r = 0; r < count; ++r) {
    const uint32_t *values = warp.source<uint32_t>(registers[r]);
    for (unsigned lane = 0; lane < numLanes; ++lane)
      for (unsigned i = 0; i < perRegister; ++i) {
        unsigned row = lane / 4 + r % 2 * 8, column = lane % 4 * perRegister + i + r / 2 * half;
        uint32_t bits = values[lane] >> (width * i % 32);
        a[row * form.k + column] = decodeElement(width == 32 ? bits : bits & ((1u << width) - 1), form.a);
      }
  }
}

static void unpackB(const Warp &warp, const int32_t *registers, Form form, float *b) {
  unsigned width = bitsOf(form.b), perRegister = 32 / width, half = 4 * perRegister;
  for (unsigned r = 0; r < form.k / half; ++r) {
    const uint32_t *values = warp.source<uint32_t>(registers[r]);
    for (unsigned lane = 0; lane < numLanes; ++lane)
      for (unsigned i = 0; i < perRegister; ++i) {
        unsigned row = lane % 4 * perRegister + i + r * half, column = lane / 4;
        uint32_t bits = values[lane] >> (width * i % 32);
        b[row * 8 + column] = decodeElement(width == 32 ? bits : bits & ((1u << width) - 1), form.b);
      }
  }
}

/// The list holds d, a, b, c.
static void multiplyAdd(Warp &warp, const Instruction &instruction) {
  Form form = formOf(instruction);
  unsigned half = 4 * (32 / bitsOf(form.a)), numA = form.k / half * 2, numB = form.k / half, numD = form.isHalf ? 2 : 4;
  const int32_t *d = warp.kernel->lists.data() + instruction.list, *a = d + numD, *b = a + numA, *c = b + numB;
  float left[16 * 32], right[32 * 8], sums[16 * 8];
  unpackA(warp, a, form, left);
  unpackB(warp, b, form, right);
  for (unsigned lane = 0; lane < numLanes; ++lane)
    for (unsigned i = 0; i < 4; ++i) {
      float value = form.isHalf ? fromF16(uint16_t(warp.source<uint32_t>(c[i / 2])[lane] >> (16 * (i % 2))))
                                : warp.source<float>(c[i])[lane];
      sums[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = value;
    }
  multiply(sums, left, right, 8, form.k);
  for (unsigned lane = 0; lane < numLanes; ++lane) {
    const float *first = sums + lane / 4 * 8 + lane % 4 * 2, *second = first + 8 * 8;
    if (form.isHalf) {
      warp.destination<uint32_t>(d[0])[lane] = uint32_t(toF16(first[0])) | uint32_t(toF16(first[1])) << 16;
      warp.destination<uint32_t>(d[1])[lane] = uint32_t(toF16(second[0])) | uint32_t(toF16(second[1])) << 16;
    } else {
      warp.destination<float>(d[0])[lane] = canonical(first[0]);
      warp.destination<float>(d[1])[lane] = canonical(first[1]);
      warp.destination<float>(d[2])[lane] = canonical(second[0]);
      warp.destination<float>(d[3])[lane] = canonical(second[1]);
    }
  }
}

/// The same with integers.
static void multiplyAddIntegers(Warp &warp, const Instruction &instruction) {
  Form form = formOf(instruction);
  unsigned numA = form.k / 16 * 2, numB = form.k / 16;
  const int32_t *d = warp.kernel->lists.data() + instruction.list, *a = d + 4, *b = a + numA, *c = b + numB;
  float left[16 * 32], right[32 * 8];
  int32_t results[4][numLanes];
  unpackA(warp, a, form, left);
  unpackB(warp, b, form, right);
  for (unsigned lane = 0; lane < numLanes; ++lane)
    for (unsigned i = 0; i < 4; ++i) {
      unsigned row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
      uint32_t sum = warp.source<uint32_t>(c[i])[lane];
      for (unsigned step = 0; step < form.k; ++step)
        sum += uint32_t(int32_t(left[row * form.k + step]) * int32_t(right[step * 8 + column]));
      results[i][lane] = int32_t(sum);
    }
  for (unsigned i = 0; i < 4; ++i)
    std::memcpy(warp.destination<int32_t>(d[i]), results[i], sizeof(results[i]));
}

static bool decodeMultiply(Decoder &decoder) {
  bool isWhole = decoder.take("sync") && decoder.take("aligned") && decoder.take("row") && decoder.take("col");
  decoder.take("kind::f8f6f4");
  int shape = decoder.takeOneOf({"m16n8k4", "m16n8k8", "m16n8k16", "m16n8k32"});
  if (!isWhole || shape < 0 || decoder.parts.size() != 4 || !decoder.expectOperands(4, 4))
    return false;
  static const std::unordered_map<std::string_view, Element> elements = {
      {"f16", Element::F16},   {"bf16", Element::BF16}, {"e4m3", Element::E4M3}, {"e5m2", Element::E5M2},
      {"tf32", Element::TF32}, {"s8", Element::S8},     {"u8", Element::U8}};
  auto elementOf = [&](std::string_view name) {
    auto found = elements.find(name);
    return found == elements.end() ? Element::Unknown : found->second;
  };
  Form form;
  form.a = elementOf(decoder.parts[1]);
  form.b = elementOf(decoder.parts[2]);
  form.k = uint8_t(4 << shape);
  form.isHalf = decoder.parts[0] == "f16";
  bool isInteger = decoder.parts[0] == "s32";
  if (form.a == Element::Unknown || form.b == Element::Unknown || bitsOf(form.a) != bitsOf(form.b) ||
      decoder.parts[3] != decoder.parts[0] || (!form.isHalf && !isInteger && decoder.parts[0] != "f32") ||
      isInteger != (form.a == Element::S8 || form.a == Element::U8))
    return false;
  unsigned half = 4 * (32 / bitsOf(form.a));
  if (form.k % half)
    return false;
  Instruction &instruction = decoder.instruction;
  std::memcpy(&instruction.extra, &form, sizeof(form));
  instruction.isCollective = true;
  instruction.run = isInteger ? multiplyAddIntegers : multiplyAdd;
  unsigned numD = form.isHalf ? 2 : 4, expected[] = {numD, form.k / half * 2, form.k / half, numD};
  for (unsigned i = 0; i < 4; ++i) {
    unsigned count = 0;
    if (!decoder.vector(decoder.operand(i), Class::Word, i == 0, count))
      return false;
    if (count != expected[i])
      return decoder.fail("operand " + std::to_string(i) + " must have " + std::to_string(expected[i]) +
                          " registers, but has " + std::to_string(count));
  }
  return true;
}

void mlir::ssa::sim::addMatrixOperations(Tables &tables) {
  tables.families["ldmatrix"] = [](Decoder &decoder) { return decodeMatrixAccess(decoder, true); };
  tables.families["stmatrix"] = [](Decoder &decoder) { return decodeMatrixAccess(decoder, false); };
  tables.families["mma"] = decodeMultiply;
}
