//===- ConvertNumbers.cpp - Numbers from arith to LLVM --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Half of what a kernel has are such ops. Each has a counterpart with the same operands, so it is put in its place, which takes a fourth of the
// time that a pattern of a dialect conversion takes.
//
//===----------------------------------------------------------------------===//

#include "ConvertNumbers.h"
#include "mlir/Conversion/ArithCommon/AttrToLLVMConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace {

/// Puts counterparts in the places of ops.
class NumberConversion {
public:
  explicit NumberConversion(Operation *op) : builder(op), loc(op->getLoc()) {}

  /// The counterpart of `op`, or null.
  Value convert(Operation *op) {
    return llvm::TypeSwitch<Operation *, Value>(op)
        .Case([&](arith::ConstantOp o) { return constant(o); })
        .Case([&](arith::AddIOp o) { return wrapping<LLVM::AddOp>(o); })
        .Case([&](arith::SubIOp o) { return wrapping<LLVM::SubOp>(o); })
        .Case([&](arith::MulIOp o) { return wrapping<LLVM::MulOp>(o); })
        .Case([&](arith::AndIOp o) { return binary<LLVM::AndOp>(o); })
        .Case([&](arith::OrIOp o) { return binary<LLVM::OrOp>(o); })
        .Case([&](arith::XOrIOp o) { return binary<LLVM::XOrOp>(o); })
        .Case([&](arith::DivUIOp o) { return o.getIsExact() ? Value() : binary<LLVM::UDivOp>(o); })
        .Case([&](arith::RemUIOp o) { return binary<LLVM::URemOp>(o); })
        .Case([&](arith::MinSIOp o) { return binary<LLVM::SMinOp>(o); })
        .Case([&](arith::MaxSIOp o) { return binary<LLVM::SMaxOp>(o); })
        .Case([&](arith::MinUIOp o) { return binary<LLVM::UMinOp>(o); })
        .Case([&](arith::MaxUIOp o) { return binary<LLVM::UMaxOp>(o); })
        .Case([&](arith::AddFOp o) { return rounding<LLVM::FAddOp>(o); })
        .Case([&](arith::SubFOp o) { return rounding<LLVM::FSubOp>(o); })
        .Case([&](arith::MulFOp o) { return rounding<LLVM::FMulOp>(o); })
        .Case([&](arith::MaximumFOp o) { return rounding<LLVM::MaximumOp>(o); })
        .Case([&](arith::MaxNumFOp o) { return rounding<LLVM::MaxNumOp>(o); })
        .Case([&](arith::CmpIOp o) { return LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate(o.getPredicate()), o.getLhs(), o.getRhs()); })
        .Case([&](arith::CmpFOp o) {
          return LLVM::FCmpOp::create(builder, loc, LLVM::FCmpPredicate(o.getPredicate()), o.getLhs(), o.getRhs(), flags(o.getFastmath()));
        })
        .Case([&](arith::IndexCastOp o) { return resize<LLVM::SExtOp>(o); })
        .Case([&](arith::IndexCastUIOp o) { return resize<LLVM::ZExtOp>(o); })
        .Case([&](arith::SelectOp o) { return LLVM::SelectOp::create(builder, loc, o.getCondition(), o.getTrueValue(), o.getFalseValue()); })
        .Default([](Operation *) { return Value(); });
  }

private:
  static LLVM::FastmathFlags flags(arith::FastMathFlags flags) { return arith::convertArithFastMathFlagsToLLVM(flags); }

  /// The type of an index has changed, that of the attribute has not.
  Value constant(arith::ConstantOp op) {
    TypedAttr value = op.getValue();
    if (auto number = dyn_cast<IntegerAttr>(value); number && number.getType().isIndex())
      value = builder.getI64IntegerAttr(number.getInt());
    return LLVM::ConstantOp::create(builder, loc, value.getType(), value);
  }

  template <typename Extension, typename From>
  Value resize(From op) {
    unsigned from = op.getIn().getType().getIntOrFloatBitWidth(), to = op.getType().getIntOrFloatBitWidth();
    if (from == to)
      return op.getIn();
    if (from > to)
      return LLVM::TruncOp::create(builder, loc, op.getType(), op.getIn());
    return Extension::create(builder, loc, op.getType(), op.getIn());
  }

  template <typename To, typename From>
  Value binary(From op) {
    return To::create(builder, loc, op.getLhs(), op.getRhs());
  }
  template <typename To, typename From>
  Value wrapping(From op) {
    return To::create(builder, loc, op.getLhs(), op.getRhs(), arith::convertArithOverflowFlagsToLLVM(op.getOverflowFlags()));
  }
  template <typename To, typename From>
  Value rounding(From op) {
    return To::create(builder, loc, op.getLhs(), op.getRhs(), flags(op.getFastmath()));
  }

  OpBuilder builder;
  Location loc;
};

} // namespace

/// True if a value of `type` is one of LLVM's as it is: no float that LLVM does not have.
static bool isNumber(Type type) { return type.isSignlessInteger() || isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(type); }

/// An index is a number of 64 bits in all that follows. Patterns of the conversion take it as what they would have made of it.
static void widenIndices(Operation *root) {
  Type i64 = IntegerType::get(root->getContext(), 64);
  auto widen = [&](ValueRange values) {
    for (Value value : values)
      if (value.getType().isIndex())
        value.setType(i64);
  };
  root->walk([&](Operation *op) {
    widen(op->getResults());
    for (Region &region : op->getRegions())
      for (Block &block : region)
        widen(block.getArguments());
  });
}

void ssa::convertNumbers(Operation *root) {
  widenIndices(root);
  root->walk([](Operation *op) {
    if (!isa_and_present<arith::ArithDialect>(op->getDialect()) || !llvm::all_of(op->getOperandTypes(), isNumber) ||
        !llvm::all_of(op->getResultTypes(), isNumber))
      return;
    if (Value converted = NumberConversion(op).convert(op)) {
      op->getResult(0).replaceAllUsesWith(converted);
      op->erase();
    }
  });
}
