//===- SSATarget.cpp - What chips can do ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "ssa/IR/SSA.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::ssa;

//===----------------------------------------------------------------------===//
// KnownTargets
//===----------------------------------------------------------------------===//

namespace {

enum Feature : unsigned {
  MMASync = 1 << 0,
  CpAsync = 1 << 1,
  MMAFP8 = 1 << 2,
  TMA = 1 << 3,
  Clusters = 1 << 4,
  F32x2 = 1 << 5,
  Gather4 = 1 << 6,
  Scatter4 = 1 << 7,
  WGMMA = 1 << 8,
  TCGen05 = 1 << 9,
  SetMaxRegister = 1 << 10,
  ReduxF32 = 1 << 11,
  LdMatrixB8 = 1 << 12,
  BlockScale = 1 << 13,

  // What every later chip has as well.
  Since80 = MMASync | CpAsync,
  Since89 = Since80 | MMAFP8,
  Since90 = Since89 | TMA | Clusters,
  Since100 = Since90 | F32x2 | Gather4,
  // What only some have.
  Only90 = WGMMA | SetMaxRegister,
  Only100 = TCGen05 | Scatter4 | SetMaxRegister | LdMatrixB8 | ReduxF32,
  Only110 = TCGen05 | Scatter4 | SetMaxRegister | LdMatrixB8,
  Only120 = SetMaxRegister | LdMatrixB8 | BlockScale,
};

struct KnownTarget {
  StringRef chip;
  unsigned computeCapability;
  unsigned ptx;
  int64_t sharedMemory, sharedMemoryPerSM; // KiB
  int64_t threadsPerSM;
  int64_t numSMs, l2; // of a typical product; MiB
  unsigned features;
};

} // namespace

// Features as ptxas 13.0 accepts them, sizes from the CUDA programming guide. Products: A100, RTX 3090, L40S, H100 and
// H200, B200, B300, Jetson Thor, RTX 5090.
static constexpr KnownTarget knownTargets[] = {
    // chip      cc  ptx  shared    threads  SMs  L2  features
    {"sm_80", 80, 70, 163, 164, 2048, 108, 40, Since80},
    {"sm_86", 86, 71, 99, 100, 1536, 82, 6, Since80},
    {"sm_89", 89, 78, 99, 100, 1536, 142, 96, Since89},
    {"sm_90", 90, 78, 227, 228, 2048, 132, 50, Since90},
    {"sm_90a", 90, 80, 227, 228, 2048, 132, 50, Since90 | Only90},
    {"sm_100", 100, 86, 227, 228, 2048, 148, 126, Since100},
    {"sm_100a", 100, 86, 227, 228, 2048, 148, 126, Since100 | Only100},
    {"sm_100f", 100, 88, 227, 228, 2048, 148, 126, Since100 | Only100},
    {"sm_103a", 103, 88, 227, 228, 2048, 148, 126, Since100 | Only100},
    {"sm_110a", 110, 90, 227, 228, 1536, 20, 32, Since100 | Only110},
    {"sm_120", 120, 87, 99, 100, 1536, 170, 96, Since100},
    {"sm_120a", 120, 87, 99, 100, 1536, 170, 96, Since100 | Only120},
};

static const KnownTarget *find(StringRef chip) {
  const auto *row = llvm::find_if(knownTargets, [&](const KnownTarget &known) { return known.chip == chip; });
  return row == std::end(knownTargets) ? nullptr : row;
}

/// An attribute that exists names a known chip: its verifier has seen to it.
static const KnownTarget &row(const TargetAttr &target) { return *find(target.getChip()); }

static bool has(const TargetAttr &target, Feature feature) { return (row(target).features & feature) == feature; }

bool TargetAttr::isKnown(StringRef chip) { return find(chip) != nullptr; }

std::string TargetAttr::knownChips() {
  return llvm::join(llvm::map_range(knownTargets, [](const KnownTarget &known) { return known.chip; }), ", ");
}

std::vector<TargetAttr> TargetAttr::getAll(MLIRContext *context) {
  std::vector<TargetAttr> all;
  for (const KnownTarget &known : knownTargets)
    all.push_back(get(context, known.chip));
  return all;
}

unsigned TargetAttr::computeCapability() const { return row(*this).computeCapability; }
unsigned TargetAttr::lowestPTXVersion() const { return row(*this).ptx; }
// 8.6 has copies into the block's own memory, 8.8 256-bit accesses.
unsigned TargetAttr::ptxVersion() const { return std::max(88u, row(*this).ptx); }

int64_t TargetAttr::sharedMemoryBytes() const { return row(*this).sharedMemory << 10; }
int64_t TargetAttr::sharedMemoryBytesPerSM() const { return row(*this).sharedMemoryPerSM << 10; }
int64_t TargetAttr::registersPerSM() const { return 65536; }
int64_t TargetAttr::threadsPerSM() const { return row(*this).threadsPerSM; }
int64_t TargetAttr::numSMs() const { return row(*this).numSMs; }
int64_t TargetAttr::l2Bytes() const { return row(*this).l2 << 20; }

bool TargetAttr::hasMMASync() const { return has(*this, MMASync); }
bool TargetAttr::hasMMASyncFP8() const { return has(*this, MMAFP8); }
bool TargetAttr::hasMMASyncBlockScale() const { return has(*this, BlockScale); }
bool TargetAttr::hasCpAsync() const { return has(*this, CpAsync); }
bool TargetAttr::hasTMA() const { return has(*this, TMA); }
bool TargetAttr::hasTMAGather4() const { return has(*this, Gather4); }
bool TargetAttr::hasTMAScatter4() const { return has(*this, Scatter4); }
bool TargetAttr::hasWGMMA() const { return has(*this, WGMMA); }
bool TargetAttr::hasTCGen05() const { return has(*this, TCGen05); }
bool TargetAttr::hasSetMaxRegister() const { return has(*this, SetMaxRegister); }
bool TargetAttr::hasClusters() const { return has(*this, Clusters); }
bool TargetAttr::hasF32x2() const { return has(*this, F32x2); }
bool TargetAttr::hasReduxF32() const { return has(*this, ReduxF32); }
bool TargetAttr::hasLdMatrixB8() const { return has(*this, LdMatrixB8); }

//===----------------------------------------------------------------------===//
// The attribute
//===----------------------------------------------------------------------===//

TargetAttr TargetAttr::of(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto target = op->getAttrOfType<TargetAttr>(attrName()))
      return target;
  return {};
}

LogicalResult TargetAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef chip) {
  if (!isKnown(chip))
    return emitError() << "unknown chip '" << chip << "'; known are " << knownChips();
  return success();
}

Attribute TargetAttr::parse(AsmParser &parser, Type) {
  StringRef chip;
  SMLoc loc;
  if (parser.parseLess())
    return {};
  loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&chip) || parser.parseGreater())
    return {};
  return parser.getChecked<TargetAttr>(loc, parser.getContext(), chip);
}

void TargetAttr::print(AsmPrinter &printer) const { printer << '<' << getChip() << '>'; }
