//===- Warpgroup.cpp - wgmma ----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Each warp of a warpgroup computes its 16 rows by itself. The product is computed when it is waited for: until then
// the operands must not change, the result must not be touched, and both are checked.
//
//===----------------------------------------------------------------------===//

#include "Lanes.h"
#include "SharedMatrix.h"

using namespace mlir::ssa::sim;

namespace {
/// A form of wgmma, in Instruction::extra.
struct Form {
  Element type, otherType;
  uint8_t n8; // n / 8
  uint8_t flags;
  enum : uint8_t { RegistersA = 1, TransposedA = 2, TransposedB = 4, NegatedA = 8, NegatedB = 16, Half = 32 };

  unsigned n() const { return n8 * 8u; }
  unsigned k() const { return 256 / bitsOf(type); }
  unsigned numAccumulators() const { return flags & Half ? n() / 4 : n() / 2; }
};
} // namespace

static Form formOf(const Instruction &instruction) {
  Form form;
  std::memcpy(&form, &instruction.extra, sizeof(form));
  return form;
}

/// The matrix that a descriptor names.
static SharedMatrix matrixOf(uint64_t bits, const Form &form, bool isB) {
  static constexpr unsigned rows[] = {16, 128, 64, 32};
  SharedMatrix matrix;
  matrix.start = uint32_t(bits & 0x3fff) << 4;
  matrix.leading = uint32_t(bits >> 16 & 0x3fff) << 4;
  matrix.stride = uint32_t(bits >> 32 & 0x3fff) << 4;
  matrix.rowBytes = rows[bits >> 62];
  matrix.baseOffset = unsigned(bits >> 49 & 7);
  matrix.type = isB ? form.otherType : form.type;
  matrix.k = form.k();
  matrix.isTransposed = form.flags & (isB ? Form::TransposedB : Form::TransposedA);
  return matrix;
}

/// Sets when a warp read rows of a matrix last: UINT32_MAX while it still does.
static void markReading(Warp &warp, const SharedMatrix &matrix, unsigned first, unsigned count, uint32_t clock) {
  Block &block = *warp.block;
  if (!block.checks)
    return;
  matrix.forEachWord(block, first, count, [&](uint32_t word) {
    size_t slot = size_t(word) * block.clusterWarps + warp.number;
    block.readClocks[slot] = clock;
    block.readLanes[slot] = ~0u;
  });
}

/// Checks that an operand in shared memory may be read by the asynchronous proxy, and marks it as being read.
static void startReading(Warp &warp, const Instruction &instruction, const SharedMatrix &matrix, unsigned first,
                         unsigned count, const char *name) {
  matrix.check(*warp.block, warp, instruction, numLanes, first, count, name);
  markReading(warp, matrix, first, count, UINT32_MAX);
}

//===----------------------------------------------------------------------===//
// Registers in flight
//===----------------------------------------------------------------------===//

static void doWgmma(Warp &warp, const Instruction &instruction);

/// Any other instruction: registers of products that are under way must be left alone.
void Warp::checkRegisters(const Instruction &instruction) {
  const int32_t *touched = kernel->touched.data();
  bool isWgmma = instruction.run == doWgmma;
  for (uint32_t i = instruction.writes; i < instruction.touchedEnd; ++i) {
    unsigned number = unsigned(touched[i]) / 64;
    bool isUnderWay = inFlight[number] == Loaded ? !tensorLoads.empty() : !wgmmas.empty() && !isWgmma;
    if (inFlight[number] && isUnderWay && (i < instruction.reads || inFlight[number] != Factor)) {
      static const char *whose[] = {"", "an operand of a wgmma", "an accumulator of a wgmma",
                                    "the result of a tcgen05.ld"};
      fault(instruction, firstLane(), inFlight[number] == Loaded ? "tcgen05" : "wgmma",
            std::string(i < instruction.reads ? "writes " : "reads ") + kernel->registerNames.at(touched[i]) + ", " +
                whose[inFlight[number]] + " that nothing waited for");
      inFlight[number] = Nothing; // once is enough
    }
    if (!isWgmma && !instruction.isCopy)
      touchedAt[number] = executed;
  }
  if (!instruction.isCopy)
    return;
  // A copy of something that was last touched before a fence is as good as that.
  uint64_t last = 0;
  for (uint32_t i = instruction.reads; i < instruction.touchedEnd; ++i)
    last = std::max(last, touchedAt[unsigned(touched[i]) / 64]);
  for (uint32_t i = instruction.writes; i < instruction.reads; ++i)
    touchedAt[unsigned(touched[i]) / 64] = std::max(touchedAt[unsigned(touched[i]) / 64], last);
}

static void checkFence(Warp &warp, const Instruction &instruction, const int32_t *registers, unsigned count,
                       const char *what) {
  for (unsigned i = 0; i < count; ++i)
    if (registers[i] >= 0 && warp.touchedAt[unsigned(registers[i]) / 64] > warp.fenceAt) {
      warp.fault(instruction, 0, "wgmma",
                 std::string("uses ") + warp.kernel->registerNames.at(registers[i]) + " as " + what +
                     ", which was touched before this without a wgmma.fence in between");
      return;
    }
}

//===----------------------------------------------------------------------===//
// wgmma
//===----------------------------------------------------------------------===//

/// Operands: -, descriptor of A, descriptor of B, scale-d. The list holds the accumulators, then A.
static void doWgmma(Warp &warp, const Instruction &instruction) {
  Form form = formOf(instruction);
  Block &block = *warp.block;
  PendingWgmma pending = {&instruction, 0, 0, true, warp.wgmmaGroup};
  auto uniform = [&](int32_t offset, const char *what) {
    const uint64_t *values = warp.source<uint64_t>(offset);
    for (unsigned lane = 1; lane < numLanes; ++lane)
      if (values[lane] != values[0]) {
        warp.fault(instruction, lane, "wgmma",
                   std::string("the descriptor of ") + what + " differs between lanes: " + hex(values[0]) + " and " +
                       hex(values[lane]));
        break;
      }
    return values[0];
  };
  pending.b = uniform(instruction.operands[2], "B");
  if (!(form.flags & Form::RegistersA))
    pending.a = uniform(instruction.operands[1], "A");
  if (instruction.operands[3] != noRegister) {
    uint32_t scale = warp.predicate(instruction.operands[3]) ^ (instruction.flags & 1 ? ~0u : 0);
    if ((scale & warp.live) && (~scale & warp.live))
      warp.fault(instruction, 0, "wgmma", "scale-d differs between lanes");
    pending.accumulates = scale & 1;
  } else
    pending.accumulates = instruction.immediate != 0;

  if (warp.live != ~0u || warp.index / 4 * 4 + 4 > block.numWarps)
    warp.fault(instruction, 0, "wgmma", "needs the four whole warps of a warpgroup");
  auto &log = block.wgmmaLog[warp.index / 4];
  std::array<uint64_t, 3> entry = {instruction.line, pending.a, pending.b};
  if (warp.numWgmmas == log.size())
    log.push_back(entry);
  else if (log[warp.numWgmmas] != entry)
    warp.fault(instruction, 0, "wgmma",
               "warp " + std::to_string(warp.index) + " does not execute the same as the other warps of its warpgroup");
  ++warp.numWgmmas;

  const int32_t *registers = warp.kernel->lists.data() + instruction.list;
  unsigned numD = form.numAccumulators(), numA = form.flags & Form::RegistersA ? 4 : 0;
  if (block.checks) {
    checkFence(warp, instruction, registers, numD, "an accumulator");
    checkFence(warp, instruction, registers + numD, numA, "A");
    if (!warp.isFenced)
      warp.fault(instruction, 0, "wgmma", "is the first of this warp, and there was no wgmma.fence before it");
    warp.isFenced = true; // once is enough
    for (unsigned i = 0; i < numD; ++i)
      warp.inFlight[unsigned(registers[i]) / 64] = Warp::Accumulator;
    for (unsigned i = 0; i < numA; ++i)
      if (registers[numD + i] >= 0 && !warp.inFlight[unsigned(registers[numD + i]) / 64])
        warp.inFlight[unsigned(registers[numD + i]) / 64] = Warp::Factor;
  }
  startReading(warp, instruction, matrixOf(pending.b, form, true), 0, form.n(), "B");
  if (!numA)
    startReading(warp, instruction, matrixOf(pending.a, form, false), warp.index % 4 * 16, 16, "A");
  warp.wgmmas.push_back(pending);
}

/// A from registers, laid out as for mma.sync.
static void readFactor(const Warp &warp, const int32_t *registers, const Form &form, float *a) {
  unsigned width = bitsOf(form.type), perRegister = 32 / width, half = 4 * perRegister;
  for (unsigned r = 0; r < 4; ++r)
    for (unsigned lane = 0; lane < numLanes; ++lane)
      for (unsigned i = 0; i < perRegister; ++i) {
        uint32_t bits = warp.source<uint32_t>(registers[r])[lane] >> (width * i % 32);
        a[(lane / 4 + r % 2 * 8) * form.k() + lane % 4 * perRegister + i + r / 2 * half] =
            decodeElement(width == 32 ? bits : bits & ((1u << width) - 1), form.type);
      }
}

static void compute(Warp &warp, const PendingWgmma &pending) {
  const Instruction &instruction = *pending.instruction;
  Form form = formOf(instruction);
  Block &block = *warp.block;
  unsigned n = form.n(), k = form.k(), numD = form.numAccumulators();
  const int32_t *registers = warp.kernel->lists.data() + instruction.list;
  static thread_local std::vector<float> a, b, d;
  a.resize(16 * k);
  b.resize(size_t(k) * n);
  d.resize(size_t(16) * n);
  SharedMatrix left = matrixOf(pending.a, form, false), right = matrixOf(pending.b, form, true);
  if (form.flags & Form::RegistersA)
    readFactor(warp, registers + numD, form, a.data());
  else
    left.read(block, warp.index % 4 * 16, 16, a.data(), k, 1);
  right.read(block, 0, n, b.data(), 1, n);
  if (form.flags & Form::NegatedA)
    for (float &value : a)
      value = -value;
  if (form.flags & Form::NegatedB)
    for (float &value : b)
      value = -value;
  auto forEachResult = [&](auto function) { // register, half of it, lane, place
    for (unsigned lane = 0; lane < numLanes; ++lane)
      for (unsigned i = 0; i < n / 2; ++i) {
        unsigned row = lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        function(i, lane, d[size_t(row) * n + column]);
      }
  };
  bool isHalf = form.flags & Form::Half;
  forEachResult([&](unsigned i, unsigned lane, float &value) {
    value = !pending.accumulates ? 0
            : isHalf             ? fromF16(uint16_t(warp.source<uint32_t>(registers[i / 2])[lane] >> (16 * (i % 2))))
                                 : warp.source<float>(registers[i])[lane];
  });
  multiply(d.data(), a.data(), b.data(), n, k);
  forEachResult([&](unsigned i, unsigned lane, float &value) {
    if (isHalf) {
      uint32_t &word = warp.destination<uint32_t>(registers[i / 2])[lane];
      word = i % 2 ? (word & 0xffff) | uint32_t(toF16(value)) << 16 : (word & 0xffff0000) | toF16(value);
    } else
      warp.destination<float>(registers[i])[lane] = canonical(value);
  });
  markReading(warp, right, 0, n, warp.clock);
  if (!(form.flags & Form::RegistersA))
    markReading(warp, left, warp.index % 4 * 16, 16, warp.clock);
}

/// Computes what was committed before a group.
void Warp::finishWgmmas(const Instruction &, uint32_t beforeGroup) {
  size_t done = 0;
  while (done < wgmmas.size() && wgmmas[done].group < beforeGroup)
    compute(*this, wgmmas[done++]);
  if (!done)
    return;
  wgmmas.erase(wgmmas.begin(), wgmmas.begin() + done);
  if (!block->checks)
    return;
  std::fill(inFlight.begin(), inFlight.end(), Nothing);
  for (const PendingWgmma &left : wgmmas) {
    Form form = formOf(*left.instruction);
    const int32_t *registers = kernel->lists.data() + left.instruction->list;
    for (unsigned i = 0; i < form.numAccumulators(); ++i)
      inFlight[unsigned(registers[i]) / 64] = Warp::Accumulator;
    for (unsigned i = 0; form.flags & Form::RegistersA && i < 4; ++i)
      if (int32_t offset = registers[form.numAccumulators() + i]; offset >= 0 && !inFlight[unsigned(offset) / 64])
        inFlight[unsigned(offset) / 64] = Warp::Factor;
    // What is still read stays marked.
    markReading(*this, matrixOf(left.b, form, true), 0, form.n(), UINT32_MAX);
    if (!(form.flags & Form::RegistersA))
      markReading(*this, matrixOf(left.a, form, false), index % 4 * 16, 16, UINT32_MAX);
  }
}

static void fenceRegisters(Warp &warp, const Instruction &) {
  warp.fenceAt = warp.executed;
  warp.isFenced = true;
}
static void commitGroup(Warp &warp, const Instruction &) { ++warp.wgmmaGroup; }
static void waitForGroup(Warp &warp, const Instruction &instruction) {
  uint32_t open = uint32_t(instruction.immediate);
  warp.finishWgmmas(instruction, warp.wgmmaGroup > open ? warp.wgmmaGroup - open : 0);
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

static bool takeShape(Decoder &decoder, Form &form, unsigned &k) {
  for (size_t i = 0; i < decoder.parts.size(); ++i) {
    std::string part(decoder.parts[i]);
    unsigned n = 0;
    if (std::sscanf(part.c_str(), "m64n%uk%u", &n, &k) != 2)
      continue;
    decoder.parts.erase(decoder.parts.begin() + i);
    form.n8 = uint8_t(n / 8);
    return n % 8 == 0 && n >= 8 && n <= 256;
  }
  return false;
}

static bool decodeProduct(Decoder &decoder) {
  Form form = {};
  unsigned k = 0;
  if (!takeShape(decoder, form, k) || decoder.parts.size() != 3)
    return false;
  auto elementOf = [](std::string_view name) {
    return name == "f16"    ? Element::F16
           : name == "bf16" ? Element::BF16
           : name == "e4m3" ? Element::E4M3
           : name == "e5m2" ? Element::E5M2
           : name == "tf32" ? Element::TF32
                            : Element::Unknown;
  };
  form.type = elementOf(decoder.parts[1]);
  form.otherType = elementOf(decoder.parts[2]);
  if (form.type == Element::Unknown || form.otherType == Element::Unknown || form.k() != k ||
      bitsOf(form.type) != bitsOf(form.otherType) || (decoder.parts[0] != "f32" && decoder.parts[0] != "f16"))
    return false;
  form.flags |= decoder.parts[0] == "f16" ? Form::Half : 0;
  bool isHalfType = bitsOf(form.type) == 16, hasRegisters = decoder.operand(1).kind == Operand::Vector;
  form.flags |= hasRegisters ? Form::RegistersA : 0;
  size_t count = 6 + (isHalfType ? (hasRegisters ? 1 : 2) : 0);
  if (!decoder.expectOperands(count, count))
    return false;
  Instruction &instruction = decoder.instruction;
  unsigned numD = 0, numA = 4;
  if (!decoder.vector(decoder.operand(0), Class::Word, true, numD))
    return false;
  if (hasRegisters ? !decoder.vector(decoder.operand(1), Class::Word, false, numA)
                   : !decoder.source(1, Class::Double, 1))
    return false;
  if (numD != form.numAccumulators() || numA != 4)
    return decoder.fail("expected " + std::to_string(form.numAccumulators()) + " accumulators, but got " +
                        std::to_string(numD));
  if (!decoder.source(2, Class::Double, 2))
    return false;
  if (decoder.operand(3).kind == Operand::Integer)
    instruction.immediate = decoder.operand(3).value;
  else if (!decoder.source(3, Class::Predicate, 3))
    return false;
  instruction.flags = decoder.operand(3).isNegated;
  int64_t scaleA = 1, scaleB = 1, transA = 0, transB = 0;
  if (!decoder.number(4, scaleA) || !decoder.number(5, scaleB))
    return false;
  if (isHalfType && !hasRegisters && (!decoder.number(6, transA) || !decoder.number(7, transB)))
    return false;
  if (isHalfType && hasRegisters && !decoder.number(6, transB))
    return false;
  form.flags |= (scaleA < 0 ? Form::NegatedA : 0) | (scaleB < 0 ? Form::NegatedB : 0) |
                (transA ? Form::TransposedA : 0) | (transB ? Form::TransposedB : 0);
  instruction.run = doWgmma;
  static_assert(sizeof(form) == sizeof(instruction.extra));
  std::memcpy(&instruction.extra, &form, sizeof(form));
  return true;
}

static bool decodeWgmma(Decoder &decoder) {
  decoder.kernel.usesWgmma = true;
  Instruction &instruction = decoder.instruction;
  instruction.isCollective = true;
  int kind = decoder.takeOneOf({"mma_async", "fence", "commit_group", "wait_group"});
  if (!decoder.take("sync") || !decoder.take("aligned"))
    return false;
  if (kind == 0)
    return decodeProduct(decoder);
  static const Handler handlers[] = {nullptr, fenceRegisters, commitGroup, waitForGroup};
  if (kind < 0 || !decoder.expectNoParts() || !decoder.expectOperands(kind == 3, kind == 3))
    return false;
  instruction.run = handlers[kind];
  return kind != 3 || decoder.number(0, instruction.immediate);
}

void mlir::ssa::sim::addWarpgroupOperations(Tables &tables) { tables.families["wgmma"] = decodeWgmma; }
