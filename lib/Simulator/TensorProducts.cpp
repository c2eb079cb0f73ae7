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

/// The blocks that take part: one, or the two of a pair. Each has its part of A and B, and of D.
struct Group {
  std::array<Block *, 2> blocks;
  unsigned size;
};

/// A product: what the instruction and its descriptors say together.
struct Product {
  unsigned m, n, k;
  Element typeA, typeB;
  bool isHalf, accumulates, negatesA, negatesB, isTransposedA, isTransposedB;
  bool hasTensorA;
  unsigned scale;
  uint32_t d, tensorA;
  Group group;
  SharedMatrix a, b;

  unsigned rowsOfA() const { return m / group.size; } // in each block
  unsigned rowsOfB() const { return n / group.size; }
  std::array<uint32_t, 8> disabled = {};
};

/// 16 rows of A that give 16 lanes of D, for some of the columns of B. `block` is that of a pair.
struct Stripe {
  unsigned block, row, lane, firstN, numN;
};

} // namespace

static Form formOf(const Instruction &instruction) {
  Form form;
  std::memcpy(&form, &instruction.extra, sizeof(form));
  return form;
}

/// The blocks that an instruction of a group works on; none after a fault.
static Group groupOf(Warp &warp, const Instruction &instruction, unsigned lane, unsigned size) {
  Block &block = *warp.block;
  if (size == 1)
    return {{&block, nullptr}, 1};
  auto &blocks = block.cluster.blocks;
  if (blocks.size() % 2) {
    warp.fault(instruction, lane, "tcgen05",
               "cta_group::2 takes clusters of an even number of blocks, but this has " +
                   std::to_string(blocks.size()));
    return {{}, 0};
  }
  return {{blocks[block.rank & ~1u].get(), blocks[block.rank | 1u].get()}, 2};
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
  product.group = groupOf(warp, instruction, lane, form.group);
  if (!product.group.size)
    return false;
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
  if (product.hasTensorA && form.group == 2 && product.m == 128)
    return complain("the instruction", "A in tensor memory of a pair must have 256 rows here");
  const int32_t *masks = warp.kernel->lists.data() + instruction.list;
  for (unsigned i = 0; i < instruction.listLength; ++i)
    product.disabled[i] = warp.source<uint32_t>(masks[i])[lane];
  return true;
}

//===----------------------------------------------------------------------===//
// mma
//===----------------------------------------------------------------------===//

/// Where the rows of a product go. 128 rows of a block fill all lanes. 64 rows of a single block fill half of the lanes
/// of each warp; of a pair, they fill half of all lanes with half of the columns, and the other half of the lanes with
/// the other columns.
static std::vector<Stripe> stripesOf(const Product &product) {
  std::vector<Stripe> stripes;
  unsigned rows = product.rowsOfA(), n = product.n;
  for (unsigned block = 0; block < product.group.size; ++block)
    for (unsigned row = 0; row < rows; row += 16) {
      if (rows == 64 && product.group.size == 2) {
        stripes.push_back({block, row, row, 0, n / 2});
        stripes.push_back({block, row, row + 64, n / 2, n / 2});
      } else
        stripes.push_back({block, row, rows == 64 ? 2 * row + (product.d >> 16) : row, 0, n});
    }
  return stripes;
}

/// Lanes of 16 that a product leaves alone.
static uint16_t disabledOf(const Product &product, const Stripe &stripe) {
  return uint16_t(product.disabled[stripe.block * 4 + stripe.lane / 32] >> stripe.lane % 32);
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

static void compute(const Product &product) {
  unsigned n = product.n, k = product.k;
  static thread_local std::vector<float> a, b, d;
  a.resize(16 * k);
  b.resize(size_t(k) * n);
  d.resize(size_t(16) * n);
  for (unsigned i = 0; i < product.group.size; ++i)
    product.b.read(*product.group.blocks[i], 0, product.rowsOfB(), b.data() + i * product.rowsOfB(), 1, n);
  if (product.negatesB)
    for (float &value : b)
      value = -value;
  float factor = std::ldexp(1.0f, -int(product.scale));
  for (const Stripe &stripe : stripesOf(product)) {
    Block &block = *product.group.blocks[stripe.block];
    if (product.hasTensorA)
      readTensorA(block.tensor, product, stripe.lane, a.data());
    else
      product.a.read(block, stripe.row, 16, a.data(), k, 1);
    if (product.negatesA)
      for (float &value : a)
        value = -value;
    uint32_t *cells = &block.tensor.word(stripe.lane, product.d & 0xffff);
    for (unsigned row = 0; row < 16; ++row)
      for (unsigned column = 0; column < stripe.numN; ++column)
        d[row * n + stripe.firstN + column] =
            product.accumulates ? readCell(cells[row * TensorMemory::numColumns + column], product.isHalf) * factor : 0;
    multiply(d.data(), a.data(), b.data(), n, k);
    uint16_t disabled = disabledOf(product, stripe);
    for (unsigned row = 0; row < 16; ++row)
      for (unsigned column = 0; column < stripe.numN && !(disabled >> row & 1); ++column) {
        float value = d[row * n + stripe.firstN + column];
        cells[row * TensorMemory::numColumns + column] =
            product.isHalf ? toF16(value) : bits<uint32_t>(canonical(value));
      }
  }
}

/// Marks a matrix as read by the pipe of a warp.
static void markReading(Warp &warp, Block &block, const SharedMatrix &matrix, unsigned count) {
  matrix.forEachWord(block, 0, count, [&](uint32_t word) { block.noteUnit(warp, Unit::Tensor, word); });
}

/// Checks and records what a product touches; false if it cannot be done at all.
static bool noteProduct(Warp &warp, const Instruction &instruction, unsigned lane, const Product &product) {
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
  for (const Stripe &stripe : stripesOf(product)) {
    Block &block = *product.group.blocks[stripe.block];
    TensorRange a = {stripe.lane, 16, product.tensorA & 0xffff, columnsA},
                d = {stripe.lane, 16, product.d & 0xffff, stripe.numN};
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
    d.lanes = uint16_t(~disabledOf(product, stripe));
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
    for (unsigned i = 0; i < product.group.size; ++i) {
      Block &owner = *product.group.blocks[i];
      product.b.check(owner, warp, instruction, lane, 0, product.rowsOfB(), "B");
      markReading(warp, owner, product.b, product.rowsOfB());
      if (product.hasTensorA)
        continue;
      product.a.check(owner, warp, instruction, lane, 0, product.rowsOfA(), "A");
      markReading(warp, owner, product.a, product.rowsOfA());
    }
    block.tensorWork.push_back({&instruction, [product] { compute(product); }});
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

/// Checks a copy into one block and puts it on its way.
static void startCopy(Warp &warp, const Instruction &instruction, unsigned lane, Block &block, const CopyShape &shape,
                      const SharedMatrix &from, uint32_t to) {
  unsigned perTarget = std::min(shape.lanes, 32u);
  for (unsigned target = 0; target < 4; ++target)
    for (unsigned first = 0; first < perTarget; first += 16) {
      TensorRange range = {target * 32 + first, 16, to & 0xffff, from.k};
      range.lanes = perTarget < 16 ? uint16_t((1u << perTarget) - 1) : 0xffff;
      if (!warp.checkTensorRange(instruction, lane, block, range))
        return;
      warp.noteTensor(instruction, lane, block, range, TensorAgent::Pipe, true);
    }
  from.check(block, warp, instruction, lane, 0, shape.lanes, "the source");
  markReading(warp, block, from, shape.lanes);
  auto copy = [&block, &shape, from, to, perTarget] {
    for (unsigned target = 0; target < 4; ++target)
      for (unsigned row = 0; row < perTarget; ++row)
        for (unsigned column = 0; column < from.k; ++column) {
          uint32_t address = from.locate(unsigned(shape.targets[target]) * 32 + row, column);
          if (address >= sharedBase && address + 4 <= block.sharedEnd())
            std::memcpy(&block.tensor.word(target * 32 + row, (to & 0xffff) + column),
                        block.shared.data() + (address - sharedBase), 4);
        }
  };
  warp.block->tensorWork.push_back({&instruction, copy});
}

/// Operands: -, to, descriptor. Flag 1: in both blocks of a pair.
static void copyToTensor(Warp &warp, const Instruction &instruction) {
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
    if (to >> 16)
      return warp.fault(instruction, lane, "tcgen05", "the destination must start in lane 0 of tensor memory");
    Group group = groupOf(warp, instruction, lane, instruction.flags & 1 ? 2 : 1);
    for (unsigned i = 0; i < group.size; ++i)
      startCopy(warp, instruction, lane, *group.blocks[i], shape, from, to);
  });
}

//===----------------------------------------------------------------------===//
// commit
//===----------------------------------------------------------------------===//

/// Whoever waits for a commit knows of the work before it, and of what that was ordered after.
static Clocks clocksOfCommit(Warp &warp, unsigned lane) {
  Clocks clocks = warp.clocks;
  if (warp.laneClocks[lane])
    clocks.join(*warp.laneClocks[lane]);
  clocks.known[warp.block->numMembers() + warp.pipeOf(Unit::Tensor)] = warp.unitClocks[unsigned(Unit::Tensor)]++;
  clocks.joinTensor(warp.tensorKnown);
  clocks.tensor[warp.agentOf(TensorAgent::Pipe)] = warp.tensorClocks[unsigned(TensorAgent::Pipe)]++;
  return clocks;
}

/// Operands: -, mbarrier, mask of blocks. It arrives when all that this warp put into the pipe before is done.
static void commitTensor(Warp &warp, const Instruction &instruction) {
  auto &blocks = warp.block->cluster.blocks;
  forEachLane(warp.active, [&](unsigned lane) {
    uint64_t address = warp.addressOf(instruction, lane, 1);
    uint32_t at = uint32_t(address - sharedWindow < windowBytes ? address - sharedWindow : address);
    Block *owner = warp.ownerOf(instruction, lane, at);
    if (!owner)
      return;
    uint32_t mask = 1u << owner->rank;
    if (instruction.operands[2] != noRegister)
      mask = warp.source<uint16_t>(instruction.operands[2])[lane];
    if (!mask || mask >> blocks.size())
      return warp.fault(instruction, lane, "tcgen05",
                        "the mask " + hex(mask) + " does not name blocks of a cluster of " +
                            std::to_string(blocks.size()));
    std::vector<Block *> targets;
    for (uint32_t left = mask; left; left &= left - 1) {
      targets.push_back(blocks[unsigned(__builtin_ctz(left))].get());
      if (!targets.back()->mbarriers.count(at))
        return warp.fault(instruction, lane, "mbarrier",
                          "there is no mbarrier at " + targets.back()->nameShared(at) + ": it was not initialized");
    }
    auto signal = [targets, at, clocks = clocksOfCommit(warp, lane), place = &instruction, warp = &warp, lane] {
      for (Block *target : targets) {
        auto found = target->mbarriers.find(at);
        if (found != target->mbarriers.end() && found->second.pending <= 0)
          warp->fault(*place, lane, "mbarrier", "one arrival too many at the mbarrier at " + target->nameShared(at));
        else
          target->arriveAt(at, 1, clocks);
      }
    };
    warp.block->tensorWork.push_back({&instruction, signal, true});
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
  if (!decoder.takeGroup(group + 1))
    return false;
  if (operation == "shift")
    return decoder.fail("tcgen05.shift is not supported by the simulator");
  if (operation == "mma")
    return decodeProduct(decoder, unsigned(group) + 1);
  instruction.flags = operation == "cp" && group == 1;
  if (operation == "cp")
    return decodeCopy(decoder);
  bool isMulticast = decoder.take("multicast::cluster");
  if (!decoder.take("mbarrier::arrive::one") || !decoder.take("b64"))
    return false;
  decoder.take("shared::cluster");
  instruction.run = commitTensor;
  return decoder.expectNoParts() && decoder.expectOperands(1 + isMulticast, 1 + isMulticast) &&
         (!isMulticast || decoder.source(1, Class::Half, 2)) && decoder.address(0, Space::Shared, 1);
}
