//===- ssa-reduce.cpp - Makes failing patterns small ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "../Help.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Reducer/ReductionPatternInterface.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"
#include "ssa/IR/SSA.h"
#include "ssa/InitAll.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

static constexpr llvm::StringLiteral helpText =
    R"(ssa-reduce makes a file that shows a fault smaller, as long as it shows the fault.

Usage: ssa-reduce FILE PASS [-o FILE]

A script decides: it is run with the name of a candidate, and exits with 1 if the candidate still
shows the fault, with 0 if it does not. For a message of ssa-run:

  #!/bin/sh
  ! ssa-run "$1" --entry=main --in randn:4,zeros:4 2>&1 | grep -q 'by zero'

Passes
  --reduction-tree='traversal-mode=0 test=SCRIPT'
                         remove functions and ops; ops of ssa give way to an operand, or to empty tensors
  --opt-reduction-pass='opt-pass=PASS test=SCRIPT'
                         run a pass, such as canonicalize or symbol-dce, if the fault stays

More
  --help-all             all options
)";

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

static bool canBeEmpty(Type type) { return isa<RankedTensorType, ssa::SelectionType>(type); }

/// A tensor or selection like `result`, of those sizes, that nothing has been computed for.
static Value makeEmpty(OpBuilder &b, OpResult result, ArrayRef<OpFoldResult> sizes) {
  Location loc = result.getLoc();
  auto shaped = cast<ShapedType>(result.getType());
  SmallVector<Value> dynamicSizes;
  for (auto [size, isDynamic] : llvm::zip_equal(sizes, llvm::map_range(shaped.getShape(), ShapedType::isDynamic)))
    if (isDynamic)
      dynamicSizes.push_back(getValueOrCreateConstantIndexOp(b, loc, size));
  Value empty = tensor::EmptyOp::create(b, loc, shaped.getShape(), shaped.getElementType(), dynamicSizes);
  auto type = dyn_cast<ssa::SelectionType>(result.getType());
  if (!type)
    return empty;
  auto unsortedType = ssa::SelectionType::get(b.getContext(), type.getShape(), type.getKeyBlock(), type.getQueryBlock(),
                                              /*sorted=*/false);
  Value selection = ssa::FromIndicesOp::create(b, loc, unsortedType, empty);
  return type.getSorted() ? Value(ssa::SortOp::create(b, loc, type, selection)) : selection;
}

namespace {
/// An op of the dialect gives way to its operands, or to empty tensors.
struct ReplaceOp : RewritePattern {
  explicit ReplaceOp(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const final {
    if (!isa_and_nonnull<ssa::SSADialect>(op->getDialect()) || op->use_empty() ||
        !llvm::all_of(op->getResultTypes(), canBeEmpty))
      return failure();
    // What an empty selection is made of stays.
    Operation *first = op->getNumOperands() ? op->getOperand(0).getDefiningOp() : nullptr;
    if (isa<ssa::SortOp, ssa::FromIndicesOp>(op) && isa_and_nonnull<tensor::EmptyOp, ssa::FromIndicesOp>(first))
      return failure();
    ReifiedRankedShapedTypeDims sizes;
    if (failed(reifyResultShapes(rewriter, op, sizes)))
      return failure();
    SmallVector<Value> values;
    for (OpResult result : op->getResults()) {
      auto same = llvm::find_if(op->getOperands(), [&](Value v) { return v.getType() == result.getType(); });
      values.push_back(same != op->operand_end() ? *same
                                                 : makeEmpty(rewriter, result, sizes[result.getResultNumber()]));
    }
    rewriter.replaceOp(op, values);
    return success();
  }
};

struct SSAReductionInterface : DialectReductionPatternInterface {
  explicit SSAReductionInterface(Dialect *dialect) : DialectReductionPatternInterface(dialect) {}
  void populateReductionPatterns(RewritePatternSet &patterns) const final {
    patterns.add<ReplaceOp>(patterns.getContext());
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Program
//===----------------------------------------------------------------------===//

int main(int argc, char **argv) {
  if (ssa::printHelp(argc, argv, helpText))
    return 0;
  DialectRegistry registry;
  ssa::registerAllDialects(registry);
  registry.addExtension(+[](MLIRContext *context, ssa::SSADialect *dialect) {
    dialect->addInterfaces<SSAReductionInterface>();
    context->loadDialect<arith::ArithDialect, tensor::TensorDialect>();
  });
  ssa::registerAllPasses();
  MLIRContext context(registry);
  if (succeeded(mlirReduceMain(argc, argv, context)))
    return 0;
  // A script that does not find the fault makes the passes fail without a word.
  llvm::errs()
      << "ssa-reduce: nothing was reduced; if no message tells why, the script does not exit with 1 for the file "
         "itself (see --help)\n";
  return 1;
}
