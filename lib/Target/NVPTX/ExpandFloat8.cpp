//===- ExpandFloat8.cpp - ssa-nvptx-expand-float8 -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ChipNeeds.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "ssa/Target/NVPTX.h"

namespace mlir::ssa {
#define GEN_PASS_DEF_SSANVPTXEXPANDFLOAT8PASS
#include "ssa/Target/Passes.h.inc"
} // namespace mlir::ssa

using namespace mlir;
using namespace mlir::ssa;

static bool isFloat8(Type type) { return isa<Float8E4M3FNType, Float8E5M2Type>(getElementTypeOrSelf(type)); }

/// The format in names of instructions.
static StringRef formatName(Type type) {
  return isa<Float8E4M3FNType>(getElementTypeOrSelf(type)) ? "e4m3x2" : "e5m2x2";
}

namespace {

/// Expands one conversion. All is done on a flat vector.
class Float8Conversion {
public:
  Float8Conversion(Operation *op, TargetAttr target) : op(op), target(target), builder(op), loc(op->getLoc()) {}
  LogicalResult run();

private:
  Value extend(Value bytes);
  Value extendByInstruction(Value bytes);
  Value extendByArithmetic(Value bytes);
  Value truncate(Value floats);

  VectorType vectorOf(int64_t n, Type element) { return VectorType::get({n}, element); }
  Value bitcast(Value v, Type to) { return vector::BitCastOp::create(builder, loc, cast<VectorType>(to), v); }
  Value splat(int64_t n, TypedAttr value) {
    return arith::ConstantOp::create(builder, loc,
                                     DenseElementsAttr::get(vectorOf(n, value.getType()), Attribute(value)));
  }
  Value assembly(Type result, ValueRange operands, const Twine &text, StringRef constraints) {
    return LLVM::InlineAsmOp::create(builder, loc, result, operands, text.str(), constraints,
                                     /*has_side_effects=*/false,
                                     /*is_align_stack=*/false, LLVM::TailCallKind::None, /*asm_dialect=*/nullptr,
                                     /*operand_attrs=*/nullptr)
        .getRes();
  }
  SmallVector<Value> elements(Value v) {
    SmallVector<Value> list;
    for (int64_t i = 0; i < cast<VectorType>(v.getType()).getNumElements(); ++i)
      list.push_back(vector::ExtractOp::create(builder, loc, v, i));
    return list;
  }

  Operation *op;
  TargetAttr target;
  OpBuilder builder;
  Location loc;
};

} // namespace

/// An even number of bytes as f16, two at a time.
Value Float8Conversion::extendByInstruction(Value bytes) {
  int64_t n = cast<VectorType>(bytes.getType()).getNumElements();
  SmallVector<Value> pairs;
  for (Value pair : elements(bitcast(bytes, vectorOf(n / 2, builder.getI16Type()))))
    pairs.push_back(assembly(builder.getI32Type(), pair,
                             "cvt.rn.f16x2." + formatName(op->getOperand(0).getType()) + " $0, $1;", "=r,h"));
  Value words = vector::FromElementsOp::create(builder, loc, vectorOf(n / 2, builder.getI32Type()), pairs);
  return bitcast(words, vectorOf(n, builder.getF16Type()));
}

/// Exponent and mantissa are moved to where f16 has them, and the difference of the biases is made up for by a product,
/// which is exact.
Value Float8Conversion::extendByArithmetic(Value bytes) {
  int64_t n = cast<VectorType>(bytes.getType()).getNumElements();
  Type halves = vectorOf(n, builder.getF16Type());
  Value wide = arith::ExtUIOp::create(builder, loc, vectorOf(n, builder.getI16Type()), bytes);
  auto constant = [&](int64_t value) { return splat(n, builder.getI16IntegerAttr(value)); };
  auto shift = [&](Value v, int64_t by) -> Value { return arith::ShLIOp::create(builder, loc, v, constant(by)); };
  auto mask = [&](Value v, int64_t bits) -> Value { return arith::AndIOp::create(builder, loc, v, constant(bits)); };
  if (isa<Float8E5M2Type>(getElementTypeOrSelf(op->getOperand(0))))
    return arith::BitcastOp::create(builder, loc, halves, shift(wide, 8));
  Value size = mask(wide, 0x7f);
  Value bits = arith::OrIOp::create(builder, loc, shift(size, 7), shift(mask(wide, 0x80), 8));
  Value scaled = arith::MulFOp::create(builder, loc, arith::BitcastOp::create(builder, loc, halves, bits),
                                       splat(n, builder.getF16FloatAttr(256)));
  Value isNaN = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, size, constant(0x7f));
  return arith::SelectOp::create(builder, loc, isNaN, splat(n, builder.getF16FloatAttr(std::nanf(""))), scaled);
}

Value Float8Conversion::extend(Value bytes) {
  int64_t n = cast<VectorType>(bytes.getType()).getNumElements();
  Type to = getElementTypeOrSelf(op->getResult(0));
  Value halves = target.hasMMASyncFP8() && n % 2 == 0 ? extendByInstruction(bytes) : extendByArithmetic(bytes);
  if (to.isF16())
    return halves;
  Value floats = arith::ExtFOp::create(builder, loc, vectorOf(n, to.isF64() ? to : builder.getF32Type()), halves);
  return to.isBF16() ? arith::TruncFOp::create(builder, loc, vectorOf(n, to), floats).getResult() : floats;
}

Value Float8Conversion::truncate(Value floats) {
  int64_t n = cast<VectorType>(floats.getType()).getNumElements();
  Type f32 = builder.getF32Type();
  if (getElementTypeOrSelf(floats).getIntOrFloatBitWidth() < 32)
    floats = arith::ExtFOp::create(builder, loc, vectorOf(n, f32), floats);
  SmallVector<Value> list = elements(floats), pairs;
  if (n % 2)
    list.push_back(list.back());
  std::string text = ("cvt.rn.satfinite." + formatName(op->getResult(0).getType()) + ".f32 $0, $1, $2;").str();
  for (size_t i = 0; i < list.size(); i += 2) // the first operand of the instruction becomes the upper byte
    pairs.push_back(assembly(builder.getI16Type(), {list[i + 1], list[i]}, text, "=h,f,f"));
  Value words = vector::FromElementsOp::create(builder, loc, vectorOf(pairs.size(), builder.getI16Type()), pairs);
  Value bytes = bitcast(words, vectorOf(list.size(), builder.getI8Type()));
  if (n % 2)
    bytes = vector::ExtractStridedSliceOp::create(builder, loc, bytes, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{n},
                                                  ArrayRef<int64_t>{1});
  return bytes;
}

LogicalResult Float8Conversion::run() {
  bool isExtension = isa<arith::ExtFOp>(op);
  ChipQuery query = &TargetAttr::hasMMASyncFP8;
  if (!isExtension && !(target.*query)())
    return op->emitOpError("to an 8-bit float ") << describeNeed(query, target);
  if (!isExtension && op->getOperand(0).getType().isF64())
    return op->emitOpError("from f64 to an 8-bit float has no device code");
  Type from = op->getOperand(0).getType(), to = op->getResult(0).getType();
  auto shaped = dyn_cast<VectorType>(from);
  int64_t n = shaped ? shaped.getNumElements() : 1;
  Value v = op->getOperand(0);
  if (isExtension) {
    Type bytes = shaped ? Type(shaped.clone(builder.getI8Type())) : builder.getI8Type();
    v = arith::BitcastOp::create(builder, loc, bytes, v);
  }
  VectorType flat = vectorOf(n, getElementTypeOrSelf(v));
  if (!shaped)
    v = vector::BroadcastOp::create(builder, loc, flat, v);
  else if (shaped.getRank() != 1)
    v = vector::ShapeCastOp::create(builder, loc, flat, v);
  v = isExtension ? extend(v) : truncate(v);
  Type element = getElementTypeOrSelf(v);
  if (!shaped)
    v = vector::ExtractOp::create(builder, loc, v, 0);
  else if (shaped.getRank() != 1)
    v = vector::ShapeCastOp::create(builder, loc, shaped.clone(element), v);
  if (!isExtension)
    v = arith::BitcastOp::create(builder, loc, to, v);
  op->getResult(0).replaceAllUsesWith(v);
  op->erase();
  return success();
}

namespace {
struct ExpandFloat8 : ssa::impl::SSANVPTXExpandFloat8PassBase<ExpandFloat8> {
  void runOnOperation() override {
    TargetAttr target = TargetAttr::of(getOperation());
    if (!target) {
      getOperation().emitOpError("is in a module without a target; run 'ssa-attach-target' first");
      return signalPassFailure();
    }
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<arith::ExtFOp>(op) ? isFloat8(op->getOperand(0).getType())
                                 : isa<arith::TruncFOp>(op) && isFloat8(op->getResult(0).getType()))
        ops.push_back(op);
    });
    for (Operation *op : ops)
      if (failed(Float8Conversion(op, target).run()))
        return signalPassFailure();
  }
};
} // namespace
