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
  mmaSync = 1 << 0,
  cpAsync = 1 << 1,
  mmaFP8 = 1 << 2,
  tma = 1 << 3,
  clusters = 1 << 4,
  f32x2 = 1 << 5,
  gather4 = 1 << 6,
  scatter4 = 1 << 7,
  wgmma = 1 << 8,
  tcgen05 = 1 << 9,
  setMaxRegister = 1 << 10,
  reduxF32 = 1 << 11,
  ldMatrixB8 = 1 << 12,
  blockScale = 1 << 13,

  // What every later chip has as well.
  since80 = mmaSync | cpAsync,
  since89 = since80 | mmaFP8,
  since90 = since89 | tma | clusters,
  since100 = since90 | f32x2 | gather4,
  // What only some have.
  only90 = wgmma | setMaxRegister,
  only100 = tcgen05 | scatter4 | setMaxRegister | ldMatrixB8 | reduxF32,
  only110 = tcgen05 | scatter4 | setMaxRegister | ldMatrixB8,
  only120 = setMaxRegister | ldMatrixB8 | blockScale,
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
    {"sm_80", 80, 70, 163, 164, 2048, 108, 40, since80},
    {"sm_86", 86, 71, 99, 100, 1536, 82, 6, since80},
    {"sm_89", 89, 78, 99, 100, 1536, 142, 96, since89},
    {"sm_90", 90, 78, 227, 228, 2048, 132, 50, since90},
    {"sm_90a", 90, 80, 227, 228, 2048, 132, 50, since90 | only90},
    {"sm_100", 100, 86, 227, 228, 2048, 148, 126, since100},
    {"sm_100a", 100, 86, 227, 228, 2048, 148, 126, since100 | only100},
    {"sm_100f", 100, 88, 227, 228, 2048, 148, 126, since100 | only100},
    {"sm_103a", 103, 88, 227, 228, 2048, 148, 126, since100 | only100},
    {"sm_110a", 110, 90, 227, 228, 1536, 20, 32, since100 | only110},
    {"sm_120", 120, 87, 99, 100, 1536, 170, 96, since100},
    {"sm_120a", 120, 87, 99, 100, 1536, 170, 96, since100 | only120},
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

bool TargetAttr::hasMMASync() const { return has(*this, mmaSync); }
bool TargetAttr::hasMMASyncFP8() const { return has(*this, mmaFP8); }
bool TargetAttr::hasMMASyncBlockScale() const { return has(*this, blockScale); }
bool TargetAttr::hasCpAsync() const { return has(*this, cpAsync); }
bool TargetAttr::hasTMA() const { return has(*this, tma); }
bool TargetAttr::hasTMAGather4() const { return has(*this, gather4); }
bool TargetAttr::hasTMAScatter4() const { return has(*this, scatter4); }
bool TargetAttr::hasWGMMA() const { return has(*this, wgmma); }
bool TargetAttr::hasTCGen05() const { return has(*this, tcgen05); }
bool TargetAttr::hasSetMaxRegister() const { return has(*this, setMaxRegister); }
bool TargetAttr::hasClusters() const { return has(*this, clusters); }
bool TargetAttr::hasF32x2() const { return has(*this, f32x2); }
bool TargetAttr::hasReduxF32() const { return has(*this, reduxF32); }
bool TargetAttr::hasLdMatrixB8() const { return has(*this, ldMatrixB8); }

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
