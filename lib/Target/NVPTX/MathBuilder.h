//===- MathBuilder.h - Arithmetic on f32, element by element ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_TARGET_NVPTX_MATHBUILDER_H
#define SSA_LIB_TARGET_NVPTX_MATHBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::ssa {

/// Calls an intrinsic that gives what its first operand is. Upstream's conversion takes the ops of the same names for
/// calls into a library.
Value callIntrinsic(OpBuilder &builder, Location loc, StringRef name, ValueRange operands);

/// Builds on f32 or vectors of it, element by element.
class Math {
public:
  Math(OpBuilder &builder, Location loc, Type type, bool approximate)
      : approximate(approximate), builder(builder), loc(loc), type(type) {}

  Value c(double value) { return splat(builder.getF32FloatAttr(float(value)), type); }
  Value add(Value a, Value b) { return arith::AddFOp::create(builder, loc, a, b); }
  Value sub(Value a, Value b) { return arith::SubFOp::create(builder, loc, a, b); }
  Value mul(Value a, Value b) { return arith::MulFOp::create(builder, loc, a, b); }
  Value div(Value a, Value b) { return arith::DivFOp::create(builder, loc, a, b); }
  Value fma(Value a, Value b, Value d) { return LLVM::FMAOp::create(builder, loc, type, a, b, d); }
  Value neg(Value a) { return arith::NegFOp::create(builder, loc, a); }
  // A number if one of the two is.
  Value min(Value a, Value b) { return LLVM::MinNumOp::create(builder, loc, type, a, b); }
  Value max(Value a, Value b) { return LLVM::MaxNumOp::create(builder, loc, type, a, b); }
  // NaN if one of the two is.
  Value maximum(Value a, Value b) { return arith::MaximumFOp::create(builder, loc, a, b); }
  Value abs(Value a) { return callIntrinsic(builder, loc, "llvm.fabs", a); }
  Value floor(Value a) { return callIntrinsic(builder, loc, "llvm.floor", a); }
  Value trunc(Value a) { return callIntrinsic(builder, loc, "llvm.trunc", a); }
  Value rint(Value a) { return callIntrinsic(builder, loc, "llvm.roundeven", a); }
  Value sqrt(Value a) { return callIntrinsic(builder, loc, "llvm.sqrt", a); }
  Value copySign(Value a, Value sign) { return callIntrinsic(builder, loc, "llvm.copysign", {a, sign}); }
  Value cmp(arith::CmpFPredicate p, Value a, Value b) { return arith::CmpFOp::create(builder, loc, p, a, b); }
  Value lt(Value a, Value b) { return cmp(arith::CmpFPredicate::OLT, a, b); }
  Value eq(Value a, Value b) { return cmp(arith::CmpFPredicate::OEQ, a, b); }
  Value both(Value a, Value b) { return arith::AndIOp::create(builder, loc, a, b); }
  Value select(Value p, Value a, Value b) { return arith::SelectOp::create(builder, loc, p, a, b); }

  /// The sum of coefficients[i] x^i, added from the last.
  Value poly(Value x, ArrayRef<double> coefficients) {
    Value sum = c(coefficients.back());
    for (double coefficient : llvm::reverse(coefficients.drop_back()))
      sum = fma(sum, x, c(coefficient));
    return sum;
  }

  Value ex2(Value a, bool flush) { return intrinsic(flush ? "llvm.nvvm.ex2.approx.ftz" : "llvm.nvvm.ex2.approx", a); }
  Value lg2(Value a) { return intrinsic("llvm.nvvm.lg2.approx.f", a); }
  Value rsqrt(Value a) { return intrinsic("llvm.nvvm.rsqrt.approx.f", a); }
  Value sinApprox(Value a) { return intrinsic("llvm.nvvm.sin.approx.f", a); }
  Value cosApprox(Value a) { return intrinsic("llvm.nvvm.cos.approx.f", a); }
  Value tanhApprox(Value a);

  /// The lesser bits of a number as those of an exponent, with the sign.
  Value toExponent(Value a);
  /// 2^k of integers -126 .. 127 that are rounded by adding 1.5 * 2^23.
  Value exp2OfRounded(Value shifted);
  /// Whether the integer that was rounded by adding 1.5 * 2^23 has a bit.
  Value hasBit(Value shifted, int32_t bit);
  Value isNegative(Value a); // by its sign, -0 too
  Value fromInteger(Value a) { return arith::SIToFPOp::create(builder, loc, type, a); }

  const bool approximate;

private:
  Value splat(FloatAttr value, Type like) {
    auto vector = dyn_cast<VectorType>(like);
    return arith::ConstantOp::create(builder, loc, vector ? TypedAttr(DenseElementsAttr::get(vector, value)) : value);
  }
  Type integers() {
    auto vector = dyn_cast<VectorType>(type);
    return vector ? Type(VectorType::get(vector.getShape(), builder.getI32Type())) : builder.getI32Type();
  }
  Value integer(int32_t value) {
    auto vector = dyn_cast<VectorType>(integers());
    IntegerAttr attr = builder.getI32IntegerAttr(value);
    return arith::ConstantOp::create(builder, loc, vector ? TypedAttr(DenseElementsAttr::get(vector, attr)) : attr);
  }
  Value bitcast(Value a, Type to) { return arith::BitcastOp::create(builder, loc, to, a); }
  Value perElement(Value a, llvm::function_ref<Value(Value)> f);
  Value intrinsic(StringRef name, Value a);

  OpBuilder &builder;
  Location loc;
  Type type;
};

} // namespace mlir::ssa

#endif // SSA_LIB_TARGET_NVPTX_MATHBUILDER_H
