//===- MathBuilder.cpp - Arithmetic on f32, element by element -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "MathBuilder.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::ssa;

Value ssa::callIntrinsic(OpBuilder &builder, Location loc, StringRef name, ValueRange operands) {
  Type type = operands.front().getType();
  return LLVM::CallIntrinsicOp::create(builder, loc, type, builder.getStringAttr(name), operands).getResult(0);
}

Value Math::perElement(Value a, llvm::function_ref<Value(Value)> f) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector)
    return f(a);
  SmallVector<Value> elements;
  for (int64_t i = 0; i < vector.getNumElements(); ++i)
    elements.push_back(f(vector::ExtractOp::create(builder, loc, a, i)));
  return vector::FromElementsOp::create(builder, loc, vector, elements);
}

Value Math::intrinsic(StringRef name, Value a) {
  return perElement(a, [&](Value x) { return callIntrinsic(builder, loc, name, x); });
}

Value Math::tanhApprox(Value a) {
  return perElement(a, [&](Value x) {
    return LLVM::InlineAsmOp::create(builder, loc, x.getType(), ValueRange(x), "tanh.approx.f32 $0, $1;", "=f,f",
                                     /*has_side_effects=*/false, /*is_align_stack=*/false, LLVM::TailCallKind::None,
                                     /*asm_dialect=*/nullptr, /*operand_attrs=*/nullptr)
        .getRes();
  });
}

Value Math::toExponent(Value a) { return bitcast(arith::ShLIOp::create(builder, loc, bitcast(a, integers()), integer(23)), type); }

Value Math::exp2OfRounded(Value shifted) {
  // The last bits of the sum are the integer; shifting them to the exponent drops all others.
  return bitcast(arith::AddIOp::create(builder, loc, bitcast(toExponent(shifted), integers()), integer(127 << 23)), type);
}

Value Math::hasBit(Value shifted, int32_t bit) {
  Value masked = arith::AndIOp::create(builder, loc, bitcast(shifted, integers()), integer(bit));
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, masked, integer(0));
}

Value Math::isNegative(Value a) {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, bitcast(a, integers()), integer(0));
}
