//===- Finish.cpp - ssa-nvptx-finish --------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "ssa/Target/NVPTX.h"

namespace mlir::ssa {
#define GEN_PASS_DEF_SSANVPTXFINISHPASS
#include "ssa/Target/Passes.h.inc"
} // namespace mlir::ssa

using namespace mlir;

// The names of NVVM's attributes: its header costs more than the rest of this library.
static constexpr llvm::StringLiteral maxThreads = "nvvm.maxntid", requiredThreads = "nvvm.reqntid";

/// Upstream says that a known block size is the largest; it is the only one.
static void requireBlockSize(Operation *function) {
  Attribute size = function->getAttr(maxThreads);
  if (!size)
    return;
  function->removeAttr(maxThreads);
  if (!function->hasAttr(requiredThreads))
    function->setAttr(requiredThreads, size);
}

//===----------------------------------------------------------------------===//
// Loads that pass the cache of a multiprocessor by
//===----------------------------------------------------------------------===//

/// What a thread loads at most at a time.
static constexpr unsigned wordsOfLoad = 4, bytesOfLoad = 16;

/// Four words of global memory, `offset` bytes behind the address. Ordered like any load: what comes before may be what waits for them.
static Value loadPastL1(OpBuilder &builder, Location loc, Value address, unsigned offset) {
  MLIRContext *context = builder.getContext();
  Type word = builder.getI32Type(), four = LLVM::LLVMStructType::getLiteral(context, SmallVector<Type>(wordsOfLoad, word));
  std::string text = "ld.global.L1::no_allocate.v4.b32 {$0, $1, $2, $3}, [$4+" + std::to_string(offset) + "];";
  return LLVM::InlineAsmOp::create(builder, loc, four, address, text, "=r,=r,=r,=r,l,~{memory}", /*has_side_effects=*/true,
                                   /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
                                   LLVM::AsmDialectAttr::get(context, LLVM::AsmDialect::AD_ATT), ArrayAttr())
      .getResult(0);
}

/// LLVM drops `nontemporal`, and has no instruction for what it means here. Loads that are not of whole 16 bytes stay as they are.
static void expandNontemporal(LLVM::LoadOp op) {
  auto type = dyn_cast<VectorType>(op.getType());
  if (!op.getNontemporal() || !type)
    return;
  unsigned bytes = type.getNumElements() * type.getElementTypeBitWidth() / 8;
  if (bytes % bytesOfLoad != 0 || op.getAlignment().value_or(1) < bytesOfLoad)
    return;
  constexpr unsigned globalSpace = 1;
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Value address = op.getAddr();
  if (cast<LLVM::LLVMPointerType>(address.getType()).getAddressSpace() != globalSpace)
    address = LLVM::AddrSpaceCastOp::create(builder, loc, LLVM::LLVMPointerType::get(builder.getContext(), globalSpace), address);
  Value words = LLVM::PoisonOp::create(builder, loc, VectorType::get({int64_t(bytes / 4)}, builder.getI32Type()));
  for (unsigned i = 0; i < bytes / 4; i += wordsOfLoad) {
    Value four = loadPastL1(builder, loc, address, i * 4);
    for (unsigned j = 0; j < wordsOfLoad; ++j) {
      Value word = LLVM::ExtractValueOp::create(builder, loc, four, j), at = LLVM::ConstantOp::create(builder, loc, builder.getI64Type(), i + j);
      words = LLVM::InsertElementOp::create(builder, loc, words, word, at);
    }
  }
  op.replaceAllUsesWith(LLVM::BitcastOp::create(builder, loc, type, words).getResult());
  op.erase();
}

namespace {
struct Finish : ssa::impl::SSANVPTXFinishPassBase<Finish> {
  void runOnOperation() override {
    llvm::SmallDenseSet<OperationName> reported;
    getOperation().walk([&](Operation *op) {
      if (isa<FunctionOpInterface>(op))
        requireBlockSize(op);
      if (auto load = dyn_cast<LLVM::LoadOp>(op))
        return expandNontemporal(load);
      StringRef dialect = op->getName().getDialectNamespace();
      if (op == getOperation() || dialect == "llvm" || dialect == "nvvm" || !reported.insert(op->getName()).second)
        return;
      op->emitOpError("cannot be translated to PTX");
      signalPassFailure();
    });
  }
};
} // namespace
