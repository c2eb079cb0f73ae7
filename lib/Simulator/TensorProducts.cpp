//===- TensorProducts.cpp - tcgen05: mma, cp, commit ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One thread issues them; they go into a queue of the block and are done when nothing else can go on. Operands are
// checked when they are issued, and read when the work is done.
//
//===----------------------------------------------------------------------===//

#include "Lanes.h"
#include "SharedMatrix.h"

using namespace mlir::ssa::sim;

namespace {
enum class Kind : uint8_t { F16, TF32, F8F6F4 };

/// What the instruction says of a product, in Instruction::extra.
struct Form {
  Kind kind;
  uint8_t group; // blocks
  uint8_t flags;
  uint8_t scale; // the accumulator is divided by 2 to the power of this
  enum : uint8_t { TensorA = 1, NegatedEnable = 2, Masked = 4 };
};
static_assert(sizeof(Form) == sizeof(uint32_t));

/// A product: what the instruction and its descriptors say together.
struct Product {
  unsigned m, n, k;
  Element typeA, typeB;
  bool isHalf, accumulates, negatesA, negatesB, isTransposedA, isTransposedB;
  bool hasTensorA;
  unsigned scale;
  uint32_t d, tensorA;
  SharedMatrix a, b;
  std::array<uint32_t, 8> disabled = {};
};

/// 16 rows of A that give 16 lanes of D.
struct Stripe {
  unsigned row, lane;
};
} // namespace

static Form formOf(const Instruction &instruction) {
  Form form;
  std::memcpy(&form, &instruction.extra, sizeof(form));
  return form;
}

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

/// Reads the descriptor of a matrix in shared memory; empty, or what is wrong with it.
static std::string readDescriptor(uint64_t bits, SharedMatrix &matrix) {
  static constexpr unsigned rows[] = {16, 0, 128, 0, 64, 0, 32, 0};
  matrix.start = uint32_t(bits & 0x3fff) << 4;
  matrix.leading = uint32_t(bits >> 16 & 0x3fff) << 4;
  matrix.stride = uint32_t(bits >> 32 & 0x3fff) << 4;
  matrix.baseOffset = unsigned(bits >> 49 & 7);
  unsigned swizzle = unsigned(bits >> 61);
  matrix.rowBytes = rows[swizzle];
  if ((bits >> 46 & 7) != 1)
    return "bits 46 to 48 must be 1, but are " + std::to_string(bits >> 46 & 7) + ": is it a descriptor of wgmma?";
  if (bits >> 52 & 1)
    return "absolute strides (bit 52) are not supported by the simulator";
  if (bits >> 53 & 0xff)
    return "bits 53 to 60 must be 0";
  if (swizzle == 1)
    return "swizzling 128 bytes in atoms of 32 is not supported by the simulator";
  return matrix.rowBytes ? "" : "there is no swizzle mode " + std::to_string(swizzle);
}

static Element elementOf(Kind kind, unsigned code) {
  if (kind == Kind::F16)
    return code == 0 ? Element::F16 : code == 1 ? Element::BF16 : Element::Unknown;
  if (kind == Kind::TF32)
    return code == 2 ? Element::TF32 : Element::Unknown;
  return code == 0 ? Element::E4M3 : code == 1 ? Element::E5M2 : Element::Unknown;
}

/// Reads the instruction descriptor; empty, or what is wrong with it.
static std::string readInstructionDescriptor(uint32_t bits, const Form &form, Product &product) {
  product.typeA = elementOf(form.kind, bits >> 7 & 7);
  product.typeB = elementOf(form.kind, bits >> 10 & 7);
  product.negatesA = bits >> 13 & 1;
  product.negatesB = bits >> 14 & 1;
  product.isTransposedA = bits >> 15 & 1;
  product.isTransposedB = bits >> 16 & 1;
  product.n = (bits >> 17 & 63) * 8;
  product.m = (bits >> 24 & 31) * 16;
  unsigned d = bits >> 4 & 3;
  product.isHalf = d == 0;
  if (bits & 7)
    return "sparse products are not supported by the simulator";
  if (bits >> 3 & 1 || bits >> 6 & 1 || bits >> 23 & 1 || bits >> 29)
    return "bits 3, 6, 23 and 29 to 31 must be 0";
  if (product.typeA == Element::Unknown || product.typeB == Element::Unknown)
    return "the types of A and B (" + std::to_string(bits >> 7 & 7) + " and " + std::to_string(bits >> 10 & 7) +
           ") do not exist for this kind, or are not supported by the simulator";
  if (d != 1 && (d || form.kind == Kind::TF32))
    return "the type of D is not one of this kind";
  if (d == 0 && (product.typeA == Element::BF16 || product.typeB == Element::BF16))
    return "a product of bf16 has no f16 result";
  product.k = 256 / bitsOf(product.typeA);
  unsigned smallest = form.group == 2 ? 128 : 64, step = form.group == 2 ? 16 : 8;
  if ((product.m != smallest && product.m != 2 * smallest) || !product.n || product.n % step || product.n > 256)
    return "there is no product of " + std::to_string(product.m) + " x " + std::to_string(product.n);
  if (form.kind == Kind::TF32 && (product.isTransposedA || product.isTransposedB))
    return "matrices of tf32 must be K-major; others are not supported by the simulator";
  return "";
}

/// Reads the operands of a product: those of the lane. False after a fault.
static bool readProduct(Warp &warp, const Instruction &instruction, unsigned lane, Product &product) {
  Form form = formOf(instruction);
  auto complain = [&](const std::string &what, const std::string &problem) {
    if (!problem.empty())
      warp.fault(instruction, lane, "tcgen05", "the descriptor of " + what + " is wrong: " + problem);
    return problem.empty();
  };
  uint32_t descriptor = warp.source<uint32_t>(instruction.operands[4])[lane];
  if (!complain("the instruction (" + hex(descriptor) + ")", readInstructionDescriptor(descriptor, form, product)))
    return false;
  product.hasTensorA = form.flags & Form::TensorA;
  product.scale = form.scale;
  product.d = warp.source<uint32_t>(instruction.operands[1])[lane] + uint32_t(instruction.immediate);
  uint32_t enable = warp.predicate(instruction.operands[5]) ^ (form.flags & Form::NegatedEnable ? ~0u : 0);
  product.accumulates = enable >> lane & 1;
  if (product.hasTensorA)
    product.tensorA = warp.source<uint32_t>(instruction.operands[2])[lane] + uint32_t(instruction.immediate >> 32);
  else {
    uint64_t bits = warp.source<uint64_t>(instruction.operands[2])[lane];
    if (!complain("A (" + hex(bits) + ")", readDescriptor(bits, product.a)))
      return false;
  }
  uint64_t bits = warp.source<uint64_t>(instruction.operands[3])[lane];
  if (!complain("B (" + hex(bits) + ")", readDescriptor(bits, product.b)))
    return false;
  product.a.type = product.typeA;
  product.b.type = product.typeB;
  product.a.k = product.b.k = product.k;
  product.a.isTransposed = product.isTransposedA;
  product.b.isTransposed = product.isTransposedB;
  if (product.hasTensorA && product.isTransposedA)
    return complain("the instruction", "A in tensor memory cannot be transposed");
  const int32_t *masks = warp.kernel->lists.data() + instruction.list;
  for (unsigned i = 0; i < instruction.listLength; ++i)
    product.disabled[i] = warp.source<uint32_t>(masks[i])[lane];
  return true;
}

//===----------------------------------------------------------------------===//
// mma
//===----------------------------------------------------------------------===//

/// Where the rows of a product go: 128 rows fill all lanes, 64 rows half of the lanes of each warp.
static std::vector<Stripe> stripesOf(const Product &product) {
  std::vector<Stripe> stripes;
  for (unsigned row = 0; row < product.m; row += 16)
    stripes.push_back({row, product.m == 64 ? 2 * row + (product.d >> 16) : row});
  return stripes;
}

/// Lanes of 16 that a product leaves alone.
static uint16_t disabledOf(const Product &product, unsigned lane) {
  return uint16_t(product.disabled[lane / 32] >> lane % 32);
}

static float readCell(uint32_t word, bool isHalf) { return isHalf ? fromF16(uint16_t(word)) : bits<float>(word); }

/// 16 rows of A from tensor memory: a column holds 32 bits of k.
static void readTensorA(TensorMemory &memory, const Product &product, unsigned lane, float *a) {
  unsigned width = bitsOf(product.typeA), perColumn = 32 / width;
  uint32_t mask = width == 32 ? ~0u : (1u << width) - 1;
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned k = 0; k < product.k; ++k) {
      uint32_t word = memory.word(lane + row, (product.tensorA & 0xffff) + k / perColumn);
      a[row * product.k + k] = decodeElement(word >> (k % perColumn * width) & mask, product.typeA);
    }
}

static void compute(Block &block, const Product &product) {
  unsigned n = product.n, k = product.k;
  static thread_local std::vector<float> a, b, d;
  a.resize(16 * k);
  b.resize(size_t(k) * n);
  d.resize(size_t(16) * n);
  product.b.read(block, 0, n, b.data(), 1, n);
  if (product.negatesB)
    for (float &value : b)
      value = -value;
  float factor = std::ldexp(1.0f, -int(product.scale));
  for (Stripe stripe : stripesOf(product)) {
    if (product.hasTensorA)
      readTensorA(block.tensor, product, stripe.lane, a.data());
    else
      product.a.read(block, stripe.row, 16, a.data(), k, 1);
    if (product.negatesA)
      for (float &value : a)
        value = -value;
    uint32_t *cells = &block.tensor.word(stripe.lane, product.d & 0xffff);
    for (unsigned row = 0; row < 16; ++row)
      for (unsigned column = 0; column < n; ++column)
        d[row * n + column] =
            product.accumulates ? readCell(cells[row * TensorMemory::numColumns + column], product.isHalf) * factor : 0;
    multiply(d.data(), a.data(), b.data(), n, k);
    uint16_t disabled = disabledOf(product, stripe.lane);
    for (unsigned row = 0; row < 16; ++row)
      for (unsigned column = 0; column < n && !(disabled >> row & 1); ++column) {
        float value = d[row * n + column];
        cells[row * TensorMemory::numColumns + column] =
            product.isHalf ? toF16(value) : bits<uint32_t>(canonical(value));
      }
  }
}

/// Marks a matrix as read by the pipe of a warp.
static void markReading(Warp &warp, const SharedMatrix &matrix, unsigned count) {
  Block &block = *warp.block;
  if (block.checks)
    matrix.forEachWord(block, 0, count, [&](uint32_t word) {
      block.pipeReads[size_t(word) * block.numPipes + warp.index] = warp.tensorClocks[unsigned(TensorAgent::Pipe)];
    });
}

/// Checks and records what a product touches; false if it cannot be done at all.
static bool noteProduct(Warp &warp, const Instruction &instruction, unsigned lane, const Product &product) {
  Block &block = *warp.block;
  unsigned first = product.d >> 16;
  if (first && (product.m != 64 || first != 16)) {
    warp.fault(instruction, lane, "tcgen05",
               "D must start in lane 0" + std::string(product.m == 64 ? " or 16" : "") + " of tensor memory, but the " +
                   "address names lane " + std::to_string(first));
    return false;
  }
  if (product.hasTensorA && product.tensorA >> 16 != first) {
    warp.fault(instruction, lane, "tcgen05", "A and D must start in the same lane of tensor memory");
    return false;
  }
  unsigned columnsA = product.k * bitsOf(product.typeA) / 32;
  for (Stripe stripe : stripesOf(product)) {
    TensorRange a = {stripe.lane, 16, product.tensorA & 0xffff, columnsA},
                d = {stripe.lane, 16, product.d & 0xffff, product.n};
    if ((product.hasTensorA && !warp.checkTensorRange(instruction, lane, block, a)) ||
        !warp.checkTensorRange(instruction, lane, block, d))
      return false;
    auto expectDefined = [&](uint16_t missing, const char *what) {
      if (missing)
        warp.fault(instruction, lane, "uninitialized",
                   std::string("reads ") + what + " from lanes " + std::to_string(stripe.lane) + " to " +
                       std::to_string(stripe.lane + 15) + " of tensor memory, which nothing has written");
    };
    if (product.hasTensorA)
      expectDefined(warp.noteTensor(instruction, lane, block, a, TensorAgent::Pipe, false), "A");
    d.lanes = uint16_t(~disabledOf(product, stripe.lane));
    uint16_t missing = 0;
    if (product.accumulates)
      missing = warp.noteTensor(instruction, lane, block, d, TensorAgent::Pipe, false);
    warp.noteTensor(instruction, lane, block, d, TensorAgent::Pipe, true);
    expectDefined(missing, "D");
  }
  return true;
}

/// Operands: -, D, A, B, instruction descriptor, enable-input-d. The list holds the lanes that are disabled.
static void multiplyTensor(Warp &warp, const Instruction &instruction) {
  Block &block = *warp.block;
  if (warp.active & (warp.active - 1))
    warp.fault(instruction, warp.firstLane(), "tcgen05",
               std::to_string(__builtin_popcount(warp.active)) + " lanes issue this: each of them adds the product");
  forEachLane(warp.active, [&](unsigned lane) {
    Product product;
    if (!readProduct(warp, instruction, lane, product) || !noteProduct(warp, instruction, lane, product))
      return;
    product.b.check(block, warp, instruction, lane, 0, product.n, "B");
    markReading(warp, product.b, product.n);
    if (!product.hasTensorA) {
      product.a.check(block, warp, instruction, lane, 0, product.m, "A");
      markReading(warp, product.a, product.m);
    }
    block.tensorWork.push_back({&instruction, [&block, product] { compute(block, product); }});
  });
}

//===----------------------------------------------------------------------===//
// cp
//===----------------------------------------------------------------------===//

namespace {
/// Lanes of the source, bits of a row of it, and where else in tensor memory its lanes go.
struct CopyShape {
  const char *name, *multicast;
  unsigned lanes, bits;
  std::array<int, 4> targets; // by lanes / 32 of the memory: which 32 lanes of the source, -1 for none
};
constexpr CopyShape copyShapes[] = {{"128x256b", "", 128, 256, {0, 1, 2, 3}},
                                    {"4x256b", "", 4, 256, {0, 0, 0, 0}},
                                    {"128x128b", "", 128, 128, {0, 1, 2, 3}},
                                    {"64x128b", "warpx2::02_13", 64, 128, {0, 1, 0, 1}},
                                    {"64x128b", "warpx2::01_23", 64, 128, {0, 0, 1, 1}},
                                    {"32x128b", "warpx4", 32, 128, {0, 0, 0, 0}}};
} // namespace

/// Operands: -, to, descriptor.
static void copyToTensor(Warp &warp, const Instruction &instruction) {
  Block &block = *warp.block;
  const CopyShape &shape = copyShapes[instruction.extra];
  forEachLane(warp.active, [&](unsigned lane) {
    uint32_t to = warp.source<uint32_t>(instruction.operands[1])[lane] + uint32_t(instruction.immediate);
    uint64_t bits = warp.source<uint64_t>(instruction.operands[2])[lane];
    SharedMatrix from;
    if (std::string problem = readDescriptor(bits, from); !problem.empty())
      return warp.fault(instruction, lane, "tcgen05",
                        "the descriptor of the source (" + hex(bits) + ") is wrong: " + problem);
    from.type = Element::TF32;
    from.k = shape.bits / 32;
    unsigned perTarget = std::min(shape.lanes, 32u);
    if (to >> 16)
      return warp.fault(instruction, lane, "tcgen05", "the destination must start in lane 0 of tensor memory");
    for (unsigned target = 0; target < 4; ++target)
      for (unsigned first = 0; first < perTarget; first += 16) {
        TensorRange range = {target * 32 + first, 16, to & 0xffff, from.k};
        range.lanes = perTarget < 16 ? uint16_t((1u << perTarget) - 1) : 0xffff;
        if (!warp.checkTensorRange(instruction, lane, block, range))
          return;
        warp.noteTensor(instruction, lane, block, range, TensorAgent::Pipe, true);
      }
    from.check(block, warp, instruction, lane, 0, shape.lanes, "the source");
    markReading(warp, from, shape.lanes);
    block.tensorWork.push_back({&instruction, [&block, &shape, from, to, perTarget] {
                                  for (unsigned target = 0; target < 4; ++target)
                                    for (unsigned row = 0; row < perTarget; ++row)
                                      for (unsigned column = 0; column < from.k; ++column) {
                                        uint32_t address =
                                            from.locate(unsigned(shape.targets[target]) * 32 + row, column);
                                        if (address >= sharedBase && address + 4 <= block.sharedEnd())
                                          std::memcpy(&block.tensor.word(target * 32 + row, (to & 0xffff) + column),
                                                      block.shared.data() + (address - sharedBase), 4);
                                      }
                                }});
  });
}

//===----------------------------------------------------------------------===//
// commit
//===----------------------------------------------------------------------===//

/// Operands: -, mbarrier. It arrives when all that this warp put into the pipe before is done.
static void commitTensor(Warp &warp, const Instruction &instruction) {
  Block &block = *warp.block;
  forEachLane(warp.active, [&](unsigned lane) {
    uint64_t address = warp.addressOf(instruction, lane, 1);
    uint32_t at = uint32_t(address - sharedWindow < windowBytes ? address - sharedWindow : address);
    if (!block.mbarriers.count(at))
      return warp.fault(instruction, lane, "mbarrier",
                        "there is no mbarrier at " + block.nameShared(at) + ": it was not initialized");
    // Whoever waits for it knows of the work, and of what that was ordered after.
    Clocks clocks = warp.clocks;
    if (warp.laneClocks[lane])
      clocks.join(*warp.laneClocks[lane]);
    uint32_t &clock = warp.tensorClocks[unsigned(TensorAgent::Pipe)];
    clocks.known[block.numThreads + warp.index] = clock;
    clocks.joinTensor(warp.tensorKnown);
    clocks.tensor[warp.agentOf(TensorAgent::Pipe)] = clock;
    ++clock;
    const Instruction *place = &instruction;
    Warp *owner = &warp;
    block.tensorWork.push_back({&instruction,
                                [&block, at, clocks, place, owner, lane] {
                                  auto found = block.mbarriers.find(at);
                                  if (found != block.mbarriers.end() && found->second.pending <= 0)
                                    return owner->fault(*place, lane, "mbarrier",
                                                        "one arrival too many at the mbarrier at " +
                                                            block.nameShared(at));
                                  block.arriveAt(at, 1, clocks);
                                },
                                true});
  });
}

/// Does what stands in the queue, up to a signal that somebody may wait for.
void Block::landTensorWork() {
  while (!tensorWork.empty()) {
    TensorWork work = std::move(tensorWork.front());
    tensorWork.pop_front();
    work.run();
    if (work.isSignal)
      return;
  }
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

static bool decodeProduct(Decoder &decoder, unsigned group) {
  Instruction &instruction = decoder.instruction;
  if (decoder.take("ws"))
    return decoder.fail("tcgen05.mma.ws is not supported by the simulator");
  if (decoder.take("sp") || decoder.take("block_scale"))
    return decoder.fail("products that are sparse or have block scales are not supported by the simulator");
  int kind = decoder.takeOneOf({"kind::f16", "kind::tf32", "kind::f8f6f4"});
  if (kind < 0)
    return decoder.fail("this kind of product is not supported by the simulator");
  for (std::string_view hint :
       {"collector::a::fill", "collector::a::use", "collector::a::lastuse", "collector::a::discard"})
    decoder.take(hint);
  if (!decoder.expectNoParts() || !decoder.expectOperands(5, 7))
    return false;
  Form form = {Kind(kind), uint8_t(group), 0, 0};
  bool hasTensorA = decoder.operand(1).kind == Operand::Address;
  form.flags |= hasTensorA ? Form::TensorA : 0;
  int64_t ofD = 0, ofA = 0;
  if (!decoder.tensorAddress(0, 1, ofD) ||
      !(hasTensorA ? decoder.tensorAddress(1, 2, ofA) : decoder.source(1, Class::Double, 2)) ||
      !decoder.source(2, Class::Double, 3) || !decoder.source(3, Class::Word, 4))
    return false;
  instruction.immediate = int64_t(uint64_t(ofA) << 32 | uint32_t(ofD));
  size_t next = 4;
  if (decoder.operand(next).kind == Operand::Vector) {
    unsigned count = 0;
    if (!decoder.vector(decoder.operand(next++), Class::Word, false, count))
      return false;
    if (count != 4 * group)
      return decoder.fail("expected " + std::to_string(4 * group) + " masks of lanes, but got " +
                          std::to_string(count));
  }
  if (next >= decoder.numOperands() || !decoder.source(next, Class::Predicate, 5))
    return false;
  form.flags |= decoder.operand(next++).isNegated ? Form::NegatedEnable : 0;
  if (next < decoder.numOperands()) {
    int64_t scale = 0;
    if (!decoder.number(next++, scale))
      return false;
    if (scale < 0 || scale > 15 || kind == int(Kind::F8F6F4))
      return decoder.fail("scale-input-d must be 0 to 15, for f16 and tf32");
    form.scale = uint8_t(scale);
  }
  instruction.run = multiplyTensor;
  std::memcpy(&instruction.extra, &form, sizeof(form));
  return next == decoder.numOperands();
}

static bool decodeCopy(Decoder &decoder) {
  Instruction &instruction = decoder.instruction;
  instruction.run = copyToTensor;
  for (const CopyShape &shape : copyShapes) {
    auto &parts = decoder.parts;
    bool isIt = std::find(parts.begin(), parts.end(), shape.name) != parts.end() &&
                (!*shape.multicast || std::find(parts.begin(), parts.end(), shape.multicast) != parts.end());
    if (!isIt)
      continue;
    decoder.take(shape.name);
    decoder.take(shape.multicast);
    instruction.extra = uint32_t(&shape - copyShapes);
    if (decoder.take("b8x16"))
      return decoder.fail("copies that unpack elements of 4 or 6 bits are not supported by the simulator");
    return decoder.expectNoParts() && decoder.expectOperands(2, 2) &&
           decoder.tensorAddress(0, 1, instruction.immediate) && decoder.source(1, Class::Double, 2);
  }
  return false;
}

bool mlir::ssa::sim::decodeTensorWork(Decoder &decoder, std::string_view operation) {
  Instruction &instruction = decoder.instruction;
  int group = decoder.takeOneOf({"cta_group::1", "cta_group::2"});
  if (group < 0)
    return false;
  if (group == 1)
    return decoder.fail("pairs of blocks (cta_group::2) are not supported by the simulator yet");
  if (operation == "shift")
    return decoder.fail("tcgen05.shift is not supported by the simulator");
  if (operation == "mma")
    return decodeProduct(decoder, unsigned(group) + 1);
  if (operation == "cp")
    return decodeCopy(decoder);
  if (!decoder.take("mbarrier::arrive::one") || !decoder.take("b64"))
    return false;
  decoder.take("shared::cluster");
  instruction.run = commitTensor;
  return decoder.expectNoParts() && decoder.expectOperands(1, 1) && decoder.address(0, Space::Shared, 1);
}
