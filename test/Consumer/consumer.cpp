//===- consumer.cpp - Builds, verifies and evaluates a pattern ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Verifier.h"
#include "ssa/IR/SSA.h"
#include "ssa/Reference/Interpreter.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

#include "ConsumerDialect.h.inc"

#define GET_OP_CLASSES
#include "ConsumerOps.h.inc"

#include "ConsumerDialect.cpp.inc"

#define GET_OP_CLASSES
#include "ConsumerOps.cpp.inc"

void consumer::ConsumerDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "ConsumerOps.cpp.inc"
      >();
}

OpFoldResult consumer::WidthOp::fold(FoldAdaptor) {
  auto selection = cast<ssa::SelectionType>(getSelection().getType());
  return IntegerAttr::get(IndexType::get(getContext()), selection.getShape().back());
}

/// Attention of one head to two listed blocks of two keys.
static OwningOpRef<ModuleOp> buildModule(MLIRContext *context) {
  ImplicitLocOpBuilder b(UnknownLoc::get(context), context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(b.getLoc());
  b.setInsertionPointToEnd(module->getBody());
  constexpr int64_t dynamic = ShapedType::kDynamic;
  Type rows = RankedTensorType::get({1, 1, dynamic, 2}, b.getF32Type());
  Type list = RankedTensorType::get({1, 1, dynamic, 2}, b.getI32Type());
  Type lse = RankedTensorType::get({1, 1, dynamic}, b.getF32Type());
  Type selection =
      ssa::SelectionType::get(context, {1, 1, dynamic, 2}, /*keyBlock=*/2, /*queryBlock=*/1, /*sorted=*/false);

  auto function = func::FuncOp::create(b, "attend", b.getFunctionType({rows, rows, rows, list}, {rows, lse}));
  Block *body = function.addEntryBlock();
  b.setInsertionPointToStart(body);
  auto selected = ssa::FromIndicesOp::create(b, selection, body->getArgument(3));
  consumer::WidthOp::create(b, b.getIndexType(), selected);
  auto attend =
      ssa::SparseAttendOp::create(b, rows, lse, body->getArgument(0), body->getArgument(1), body->getArgument(2),
                                  /*tokens=*/Value(), ValueRange(selected), /*scale=*/FloatAttr(),
                                  /*mask=*/ssa::MaskAttr(), /*blocks=*/ssa::BlocksAttr());
  func::ReturnOp::create(b, attend.getResults());
  return module;
}

int main() {
  DialectRegistry registry;
  registry.insert<ssa::SSADialect, func::FuncDialect, consumer::ConsumerDialect>();
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module = buildModule(&context);
  if (failed(verify(*module)))
    return 1;
  module->walk([](consumer::WidthOp width) {
    SmallVector<OpFoldResult> folded;
    if (succeeded(width->fold(folded)))
      llvm::outs() << "width " << cast<IntegerAttr>(cast<Attribute>(folded[0])).getInt() << "\n";
    width.erase();
  });

  // Five keys; the query is 0 and weighs alike what it sees, which is key 4 and keys 0 and 1.
  using ssa::reference::Tensor;
  Type f32 = Float32Type::get(&context), i32 = IntegerType::get(&context, 32);
  Tensor query(f32, {1, 1, 1, 2}), key(f32, {1, 1, 5, 2}), list(i32, {1, 1, 1, 2});
  for (int64_t i = 0; i < 10; ++i)
    key.setFloat(i, i);
  list.setInt(0, 2);
  auto function = cast<FunctionOpInterface>(module->lookupSymbol("attend"));
  FailureOr<SmallVector<Tensor>> results = ssa::reference::evaluate(function, {query, key, key, list});
  if (failed(results))
    return 1;
  llvm::outs() << "output " << (*results)[0].getFloat(0) << " " << (*results)[0].getFloat(1) << "\n";
  return 0;
}
