//===- Finish.cpp - ssa-nvptx-finish --------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

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

namespace {
struct Finish : ssa::impl::SSANVPTXFinishPassBase<Finish> {
  void runOnOperation() override {
    llvm::SmallDenseSet<OperationName> reported;
    getOperation().walk([&](Operation *op) {
      if (isa<FunctionOpInterface>(op))
        requireBlockSize(op);
      StringRef dialect = op->getName().getDialectNamespace();
      if (op == getOperation() || dialect == "llvm" || dialect == "nvvm" || !reported.insert(op->getName()).second)
        return;
      op->emitOpError("cannot be translated to PTX");
      signalPassFailure();
    });
  }
};
} // namespace
