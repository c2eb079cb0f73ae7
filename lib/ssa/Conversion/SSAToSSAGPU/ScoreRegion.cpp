//===- ScoreRegion.cpp - Score regions in kernels -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ScoreRegion.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"
#include <limits>

using namespace mlir;
using namespace mlir::ssa;

static bool isConstantScalar(Value v) { return !isa<ShapedType>(v.getType()) && matchPattern(v, m_Constant()); }

/// The values from outside that ops of the region use and that are no constant scalars, in the order of their use.
static SmallVector<Value> findCaptured(Region &region) {
  llvm::SetVector<Value> captured;
  region.walk<WalkOrder::PreOrder>([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (!region.isAncestor(operand.getParentRegion()) && !isConstantScalar(operand))
        captured.insert(operand);
  });
  return captured.takeVector();
}

static bool hasMeaning(Operation *op) {
  if (auto dim = dyn_cast<tensor::DimOp>(op))
    return dim.getConstantIndex().has_value();
  bool isScalar = llvm::none_of(op->getResultTypes(), [](Type type) { return isa<ShapedType>(type); });
  bool isComputed = isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) && op->getNumRegions() == 0 && isScalar;
  return isComputed || isa<YieldOp, scf::IfOp, scf::YieldOp, tensor::ExtractOp>(op);
}

FailureOr<SmallVector<Value>> ssa::getScoreCaptures(HostFunction &host, Region &region) {
  WalkResult result = region.walk([](Operation *inner) {
    if (hasMeaning(inner))
      return WalkResult::advance();
    inner->emitOpError("has no meaning for kernels yet: score regions may use 'tensor.extract', 'tensor.dim' of a constant, 'scf.if' and scalar "
                       "ops of 'arith' and 'math'");
    return WalkResult::interrupt();
  });
  if (result.wasInterrupted())
    return failure();
  return llvm::map_to_vector(findCaptured(region), [&](Value v) { return isa<ShapedType>(v.getType()) ? host.getBuffer(v) : host.getScalar(v); });
}

//===----------------------------------------------------------------------===//
// ScoreShape
//===----------------------------------------------------------------------===//

Type ScoreShape::getType(Type scalar, bool perRow) const {
  if (!tiles)
    return scalar;
  return perRow ? tiles->rowsType(scalar) : tiles->accumulatorType(columns, scalar);
}

Value ScoreShape::splat(Value scalar) const {
  return tiles ? broadcastRows(tiles->mapRows(scalar.getType(), [&](Value) { return scalar; })) : scalar;
}

Value ScoreShape::constant(Type scalar, Attribute value, bool perRow) const {
  if (tiles)
    return tiles->constant(cast<RankedTensorType>(getType(scalar, perRow)), value);
  return arith::ConstantOp::create(e.builder, e.loc, scalar, cast<TypedAttr>(value));
}

Value ScoreShape::getRows(Value tile) const {
  auto broadcast = tile.getDefiningOp<ssa_gpu::BroadcastOp>();
  return broadcast ? broadcast.getRows() : Value();
}

/// One element.
static std::pair<Value, Value> lookUpElement(Emitter &e, Value table, ValueRange indices) {
  auto type = cast<MemRefType>(table.getType());
  Value exists = e.bit(true);
  for (auto [i, index] : llvm::enumerate(indices))
    exists = e.both(exists, e.ult(index, e.dim(table, i)));
  // A table that has elements can be read without a branch.
  if (type.hasStaticShape() && type.getNumElements() > 0) {
    auto safe = llvm::map_to_vector(indices, [&](Value index) { return e.select(exists, index, e.index(0)); });
    return {e.load(table, safe), exists};
  }
  auto zero = cast<TypedAttr>(e.builder.getZeroAttr(type.getElementType()));
  Value element = e.ifElse(
      exists, type.getElementType(), [&] { return SmallVector<Value>{e.load(table, indices)}; },
      [&] { return SmallVector<Value>{arith::ConstantOp::create(e.builder, e.loc, zero)}; })[0];
  return {element, exists};
}

std::pair<Value, Value> ScoreShape::lookUp(Value table, ValueRange indices) const {
  if (!tiles || indices.empty()) {
    auto [element, exists] = lookUpElement(e, table, indices);
    return {splat(element), splat(exists)};
  }
  Type type = cast<MemRefType>(table.getType()).getElementType();
  SmallVector<Value> made = tiles->map(indices, {type, e.builder.getI1Type()}, [&](ValueRange elements) {
    auto [element, exists] = lookUpElement(e, table, elements);
    return SmallVector<Value>{element, exists};
  });
  return {made[0], made[1]};
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

namespace {

class RegionBuilder {
public:
  RegionBuilder(const ScoreShape &shape, Region &region, ArrayRef<Value> captured, llvm::function_ref<Value(unsigned)> getArgument)
      : shape(shape), region(region) {
    // Only what is used is made: an unused one would cost registers.
    for (BlockArgument argument : region.getArguments())
      if (!argument.use_empty())
        mapping.map(argument, getArgument(argument.getArgNumber()));
    for (auto [outside, value] : llvm::zip_equal(findCaptured(region), captured))
      mapping.map(outside, isa<ShapedType>(outside.getType()) ? value : shape.splat(value));
  }

  Value build() {
    buildBlock(region.front());
    Value score = getOperand(region.front().getTerminator()->getOperand(0), /*perRow=*/false);
    return exists ? shape.e.select(exists, score, shape.f32(std::numeric_limits<double>::quiet_NaN())) : score;
  }

private:
  void buildBlock(Block &block) {
    for (Operation &op : block.without_terminator()) {
      if (op.hasTrait<mlir::OpTrait::ConstantLike>())
        continue;
      if (auto branch = dyn_cast<scf::IfOp>(op))
        buildIf(branch);
      else if (auto dim = dyn_cast<tensor::DimOp>(op))
        mapping.map(dim.getResult(), shape.splat(shape.e.dim(mapping.lookup(dim.getSource()), *dim.getConstantIndex())));
      else
        buildOp(op);
    }
  }

  /// What depends on the row alone is computed once a row.
  bool isPerRow(Value operand) const { return isConstantScalar(operand) || shape.getRows(mapping.lookup(operand)); }
  bool arePerRow(ValueRange operands) const {
    return shape.isTiled() && !operands.empty() && llvm::all_of(operands, [&](Value v) { return isPerRow(v); });
  }

  Value getOperand(Value operand, bool perRow) {
    Attribute constant;
    if (matchPattern(operand, m_Constant(&constant)))
      return shape.constant(operand.getType(), constant, perRow);
    Value value = mapping.lookup(operand);
    return perRow ? shape.getRows(value) : value;
  }

  void buildOp(Operation &op) {
    auto extract = dyn_cast<tensor::ExtractOp>(op);
    ValueRange inputs = extract ? ValueRange(extract.getIndices()) : op.getOperands();
    bool perRow = arePerRow(inputs);
    SmallVector<Value> operands = llvm::map_to_vector(inputs, [&](Value v) { return getOperand(v, perRow); });
    auto finish = [&](Value value) { return perRow ? shape.broadcastRows(value) : value; };
    if (extract) {
      auto [element, isThere] = shape.lookUp(mapping.lookup(extract.getTensor()), operands);
      mapping.map(extract.getResult(), finish(element));
      require(finish(isThere));
      return;
    }
    SmallVector<Type> types = llvm::map_to_vector(op.getResultTypes(), [&](Type type) { return shape.getType(type, perRow); });
    Operation *copy = shape.e.builder.create(shape.e.loc, op.getName().getIdentifier(), operands, types, op.getAttrs());
    for (auto [result, value] : llvm::zip_equal(op.getResults(), copy->getResults()))
      mapping.map(result, finish(value));
  }

  /// Both branches are computed: one has no effects, and what it looks up is only read where it is there.
  void buildIf(scf::IfOp op) {
    Value condition = getOperand(op.getCondition(), /*perRow=*/false), outer = taken;
    auto buildBranch = [&](Block *block, Value isTaken) {
      taken = outer ? shape.e.both(outer, isTaken) : isTaken;
      if (block)
        buildBlock(*block);
    };
    buildBranch(op.thenBlock(), condition);
    buildBranch(op.elseBlock(), negate(condition));
    taken = outer;
    for (OpResult result : op->getResults()) {
      Value yes = op.thenYield().getOperand(result.getResultNumber()), no = op.elseYield().getOperand(result.getResultNumber());
      bool perRow = arePerRow({op.getCondition(), yes, no});
      Value chosen = shape.e.select(getOperand(op.getCondition(), perRow), getOperand(yes, perRow), getOperand(no, perRow));
      mapping.map(result, perRow ? shape.broadcastRows(chosen) : chosen);
    }
  }

  Value negate(Value bits) {
    Builder &b = shape.e.builder;
    return shape.e.bitXor(bits, shape.constant(b.getI1Type(), b.getBoolAttr(true)));
  }

  /// Something was looked up, where this is reached.
  void require(Value isThere) {
    if (taken)
      isThere = shape.e.either(negate(taken), isThere);
    exists = exists ? shape.e.both(exists, isThere) : isThere;
  }

  const ScoreShape &shape;
  Region &region;
  IRMapping mapping;
  Value exists; // all that was looked up; null if nothing was
  Value taken;  // the branch that is being built; null outside of branches
};

} // namespace

Value ssa::applyScoreRegion(const ScoreShape &shape, Region &region, ArrayRef<Value> captured,
                            llvm::function_ref<Value(unsigned)> getArgument) {
  return RegionBuilder(shape, region, captured, getArgument).build();
}
