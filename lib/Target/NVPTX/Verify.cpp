//===- Verify.cpp - ssa-nvptx-verify --------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ChipNeeds.h"
#include "ssa/Target/NVPTX.h"
#include "llvm/ADT/StringExtras.h"

namespace mlir::ssa {
#define GEN_PASS_DEF_SSANVPTXVERIFYPASS
#include "ssa/Target/Passes.h.inc"
} // namespace mlir::ssa

using namespace mlir;
using namespace mlir::ssa;

//===----------------------------------------------------------------------===//
// What instructions need
//===----------------------------------------------------------------------===//

namespace {
/// Instructions that begin with `prefix` and have `part` further on need what `query` asks for.
struct ChipNeed {
  StringRef prefix, part;
  ChipQuery query;
};
} // namespace

// The first row that fits counts.
static constexpr ChipNeed needs[] = {
    {"wgmma", "", &TargetAttr::hasWGMMA},
    {"tcgen05", "", &TargetAttr::hasTCGen05},
    {"setmaxnreg", "", &TargetAttr::hasSetMaxRegister},
    {"setmaxregister", "", &TargetAttr::hasSetMaxRegister},
    {"cp.async.bulk.tensor", "scatter4", &TargetAttr::hasTMAScatter4},
    {"cp.async.bulk.tensor", "g2s.tile.gather4", &TargetAttr::hasTMAScatter4},
    {"cp.async.bulk.tensor", "shared::cluster.global.tile::gather4", &TargetAttr::hasTMAScatter4},
    {"cp.async.bulk", "gather4", &TargetAttr::hasTMAGather4},
    {"cp.async.bulk", "", &TargetAttr::hasTMA},
    {"cp.reduce.async.bulk", "", &TargetAttr::hasTMA},
    {"cp.async", "", &TargetAttr::hasCpAsync},
    {"ldmatrix", "m16n16", &TargetAttr::hasLdMatrixB8},
    {"ldmatrix", "m8n16", &TargetAttr::hasLdMatrixB8},
    {"stmatrix", "", &TargetAttr::hasTMA},
    {"elect", "", &TargetAttr::hasTMA},
    {"griddepcontrol", "", &TargetAttr::hasTMA},
    {"mbarrier", "try_wait", &TargetAttr::hasTMA},
    {"mbarrier", "try.wait", &TargetAttr::hasTMA},
    {"mbarrier", "expect", &TargetAttr::hasTMA},
    {"mbarrier", "complete", &TargetAttr::hasTMA},
    {"mbarrier", "cluster", &TargetAttr::hasClusters},
    {"mbarrier.txn", "", &TargetAttr::hasTMA},
    {"fence", "proxy", &TargetAttr::hasTMA},
    {"fence", "mbarrier", &TargetAttr::hasTMA},
    {"prefetch.tensormap", "", &TargetAttr::hasTMA},
    {"multimem", "", &TargetAttr::hasTMA},
    {"cluster", "launchcontrol", &TargetAttr::hasF32x2},
    {"clusterlaunchcontrol", "", &TargetAttr::hasF32x2},
    {"cluster", "", &TargetAttr::hasClusters},
    {"barrier.cluster", "", &TargetAttr::hasClusters},
    {"barrier", "cluster", &TargetAttr::hasClusters},
    {"mapa", "", &TargetAttr::hasClusters},
    {"getctarank", "", &TargetAttr::hasClusters},
    {"st.async", "", &TargetAttr::hasClusters},
    {"red.async", "", &TargetAttr::hasClusters},
    {"ld", "shared::cluster", &TargetAttr::hasClusters},
    {"st", "shared::cluster", &TargetAttr::hasClusters},
    {"read.ptx.sreg.cluster", "", &TargetAttr::hasClusters},
    {"mma", "block_scale", &TargetAttr::hasMMASyncBlockScale},
    {"mma", "block.scale", &TargetAttr::hasMMASyncBlockScale},
    {"mma", "f8f6f4", &TargetAttr::hasLdMatrixB8},
    {"mma", "e4m3", &TargetAttr::hasMMASyncFP8},
    {"mma", "e5m2", &TargetAttr::hasMMASyncFP8},
    {"mma", "", &TargetAttr::hasMMASync},
    {"ldmatrix", "", &TargetAttr::hasMMASync},
    {"cvt", "e4m3", &TargetAttr::hasMMASyncFP8},
    {"cvt", "e5m2", &TargetAttr::hasMMASyncFP8},
    {"convert", "bf16x2.to.f8x2", &TargetAttr::hasLdMatrixB8},
    {"convert", "f8x2", &TargetAttr::hasMMASyncFP8},
    {"cvt", "e2m1", &TargetAttr::hasLdMatrixB8},
    {"cvt", "e3m2", &TargetAttr::hasLdMatrixB8},
    {"cvt", "e2m3", &TargetAttr::hasLdMatrixB8},
    {"convert", "f6x2", &TargetAttr::hasLdMatrixB8},
    {"convert", "f4x2", &TargetAttr::hasLdMatrixB8},
    {"redux", "f32", &TargetAttr::hasReduxF32},
    {"redux.sync.f", "", &TargetAttr::hasReduxF32},
    {"ex2", "bf16", &TargetAttr::hasTMA},
    {"tanh", "bf16", &TargetAttr::hasTMA},
    {"red", "bf16x2", &TargetAttr::hasTMA},
    {"red", ".v2", &TargetAttr::hasTMA},
    {"red", ".v4", &TargetAttr::hasTMA},
    {"red", ".v8", &TargetAttr::hasTMA},
    {"", "f32x2", &TargetAttr::hasF32x2},
    {"ld", "v4.b64", &TargetAttr::hasF32x2},
    {"ld", "v8.b32", &TargetAttr::hasF32x2},
    {"ld", "v8.f32", &TargetAttr::hasF32x2},
};

ChipQuery ssa::getChipNeed(StringRef instruction) {
  for (const ChipNeed &need : needs)
    if (instruction.starts_with(need.prefix) && instruction.substr(need.prefix.size()).contains(need.part))
      return need.query;
  return nullptr;
}

void ssa::forEachInstruction(StringRef ptx, llvm::function_ref<void(StringRef)> visit) {
  while (!ptx.empty()) {
    auto [instruction, rest] = ptx.split(';');
    ptx = rest;
    instruction = instruction.ltrim(" \t\n\r{}");
    if (instruction.consume_front("@"))
      instruction = instruction.drop_until([](char c) { return c == ' ' || c == '\t'; }).ltrim();
    if (!instruction.empty())
      visit(instruction.take_until([](char c) { return c == ' ' || c == '\t'; }));
  }
}

std::string ssa::describeNeed(ChipQuery query, TargetAttr target) {
  SmallVector<StringRef> able;
  for (TargetAttr known : TargetAttr::getAll(target.getContext()))
    if ((known.*query)())
      able.push_back(known.getChip());
  StringRef which = able.size() == 1 ? "" : "one of ";
  return ("requires " + which + llvm::join(able, ", ") + ", but the target is '" + target.getChip() + "'").str();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Attributes of NVVM ops that choose between instructions, in the order of PTX.
static std::string spellNVVM(Operation *op) {
  std::string text = op->getName().getStringRef().drop_front(StringRef("nvvm.").size()).str();
  llvm::raw_string_ostream os(text);
  bool isOwnMemory = false;
  if (auto own = op->getAttrOfType<BoolAttr>("isCTAOnly"))
    isOwnMemory = own.getValue();
  if (Attribute mode = op->getAttr("mode")) {
    std::string spelled;
    llvm::raw_string_ostream(spelled) << mode;
    if (StringRef(spelled).contains("gather4"))
      os << (isOwnMemory ? ".cta.tile.gather4" : ".g2s.tile.gather4");
    else if (StringRef(spelled).contains("scatter4"))
      os << ".scatter4";
  }
  for (StringRef name : {"multiplicandAPtxType", "multiplicandBPtxType", "kind"})
    if (Attribute attribute = op->getAttr(name))
      os << "." << attribute;
  if (op->getNumResults() == 1 && op->getResult(0).getType().isF32())
    os << ".f32";
  return text;
}

namespace {
struct Verify : ssa::impl::SSANVPTXVerifyPassBase<Verify> {
  void runOnOperation() override {
    target = TargetAttr::of(getOperation());
    if (!target) {
      getOperation().emitOpError("is in a module without a target; run 'ssa-attach-target' first");
      return signalPassFailure();
    }
    getOperation().walk([&](Operation *op) { verify(op); });
    markAllAnalysesPreserved();
  }

private:
  void verify(Operation *op) {
    StringRef name = op->getName().getStringRef();
    if (name.starts_with("nvvm."))
      return check(op, spellNVVM(op), "");
    if (name == "llvm.call_intrinsic") {
      StringRef intrinsic = op->getAttrOfType<StringAttr>("intrin").getValue();
      StringRef instruction = intrinsic;
      if (instruction.consume_front("llvm.nvvm."))
        check(op, instruction, intrinsic);
    } else if (name == "llvm.inline_asm") {
      auto text = op->getAttrOfType<StringAttr>("asm_string");
      forEachInstruction(text.getValue(), [&](StringRef instruction) { check(op, instruction, instruction); });
    }
  }

  void check(Operation *op, StringRef instruction, StringRef shown) {
    ChipQuery query = getChipNeed(instruction);
    if (!query || (target.*query)())
      return;
    InFlightDiagnostic diag = op->emitOpError();
    if (!shown.empty())
      diag << "with '" << shown << "' ";
    diag << describeNeed(query, target);
    signalPassFailure();
  }

  TargetAttr target;
};
} // namespace
