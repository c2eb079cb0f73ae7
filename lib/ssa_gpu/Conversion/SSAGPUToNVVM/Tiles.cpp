//===- Tiles.cpp - Tiles in registers -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::ssa_gpu;

namespace {

/// Elementwise ops apply to a thread's values as they do to the tile.
struct ConvertElementwise : ConversionPattern {
  ConvertElementwise(const TypeConverter &converter, MLIRContext *context)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), /*benefit=*/1, context) {}

  LogicalResult matchAndRewrite(Operation *op, ArrayRef<Value> operands, ConversionPatternRewriter &rewriter) const override {
    if (!isa_and_nonnull<arith::ArithDialect, math::MathDialect>(op->getDialect()) || op->getNumResults() != 1)
      return failure();
    Type type = getTypeConverter()->convertType(op->getResult(0).getType());
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
      if (!splat)
        return rewriter.notifyMatchFailure(op, "a tile has no order of elements: only splats");
      auto value = DenseElementsAttr::get(cast<ShapedType>(type), splat.getSplatValue<Attribute>());
      rewriter.replaceOpWithNewOp<arith::ConstantOp>(op, value);
      return success();
    }
    Operation *copy = rewriter.create(op->getLoc(), op->getName().getIdentifier(), operands, type, op->getAttrs());
    // Functions have no instructions for vectors; what they are expanded into is written for scalars.
    rewriter.replaceOp(op, isa<math::MathDialect>(op->getDialect()) ? scalarize(rewriter, copy) : copy->getResult(0));
    return success();
  }

  /// Replaces an op on vectors by ops on their elements.
  static Value scalarize(ConversionPatternRewriter &rewriter, Operation *op) {
    ThreadEmitter e(rewriter, op);
    auto type = cast<VectorType>(op->getResult(0).getType());
    SmallVector<Value> results;
    for (int64_t i = 0; i < type.getNumElements(); ++i) {
      SmallVector<Value> operands = llvm::map_to_vector(op->getOperands(), [&](Value v) { return e.extract(v, i); });
      results.push_back(rewriter.create(op->getLoc(), op->getName().getIdentifier(), operands, type.getElementType(), op->getAttrs())->getResult(0));
    }
    rewriter.eraseOp(op);
    return e.fromElements(results);
  }
};

struct ConvertReduce : OpConversionPattern<ReduceOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(ReduceOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    auto join = [&](Value a, Value b) -> Value {
      if (op.getKind() == RowReduction::max)
        return arith::MaximumFOp::create(rewriter, e.loc, a, b);
      return arith::AddFOp::create(rewriter, e.loc, a, b);
    };
    SmallVector<Value> results;
    for (int64_t half : {0, 1}) {
      SmallVector<Value> values;
      for (int64_t i = 0, n = getValuesPerThread(op.getTile().getType()); i < n; ++i)
        if (i / 2 % 2 == half)
          values.push_back(e.extract(adaptor.getTile(), i));
      while (values.size() > 1) { // a tree: short, and one order for all
        for (size_t i = 0; i < values.size() / 2; ++i)
          values[i] = join(values[2 * i], values[2 * i + 1]);
        if (values.size() % 2)
          values[values.size() / 2] = values.back();
        values.truncate((values.size() + 1) / 2);
      }
      Value joined = values.front();
      for (int64_t distance : {1, 2}) // the four lanes of a row
        joined = join(joined, gpu::ShuffleOp::create(rewriter, e.loc, joined, distance, 32, gpu::ShuffleMode::XOR).getShuffleResult());
      results.push_back(joined);
    }
    rewriter.replaceOp(op, e.fromElements(results));
    return success();
  }
};

struct ConvertBroadcast : OpConversionPattern<BroadcastOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(BroadcastOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    SmallVector<int64_t> places;
    for (int64_t i = 0, n = getValuesPerThread(op.getType()); i < n; ++i)
      places.push_back(i / 2 % 2);
    rewriter.replaceOpWithNewOp<vector::ShuffleOp>(op, adaptor.getRows(), adaptor.getRows(), places);
    return success();
  }
};

struct ConvertMapRows : OpConversionPattern<MapRowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(MapRowsOp op, OpAdaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    SmallVector<Value> values;
    for (unsigned half : {0, 1})
      values.push_back(e.inlineBody(op.getBody(), e.row(half)).front());
    rewriter.replaceOp(op, e.fromElements(values));
    return success();
  }
};

struct ConvertMapColumns : OpConversionPattern<MapColumnsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(MapColumnsOp op, OpAdaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    SmallVector<Value> values;
    for (int64_t j = 0, n = op.getType().getDimSize(1) / 8; j < n; ++j) {
      Value first = e.inlineBody(op.getBody(), e.column(j)).front();
      Value second = e.inlineBody(op.getBody(), e.add(e.column(j), 1)).front();
      values.append({first, second, first, second});
    }
    rewriter.replaceOp(op, e.fromElements(values));
    return success();
  }
};

struct ConvertStoreRows : OpConversionPattern<StoreRowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(StoreRowsOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    Type type = cast<MemRefType>(op.getTarget().getType()).getElementType();
    Value target = e.globalAddress(op.getTarget());
    int64_t columns = op.getColumns();
    for (unsigned half : {0, 1}) {
      SmallVector<Value> place = e.inlineBody(op.getBody(), e.row(half));
      scf::IfOp::create(rewriter, e.loc, place[1], [&](OpBuilder &, Location) {
        Value row = e.element(target, place[0], type);
        for (int64_t j = 0; 8 * j < columns; ++j)
          storePair(e, op, adaptor.getTile(), j, half, row, type, columns);
        scf::YieldOp::create(rewriter, e.loc);
      });
    }
    rewriter.eraseOp(op);
    return success();
  }

  /// Stores the pair of columns of a thread within columns 8j .. 8j+7.
  static void storePair(ThreadEmitter &e, Operation *op, Value tile, int64_t j, unsigned half, Value row, Type type, int64_t columns) {
    OpBuilder &b = e.builder;
    Value column = e.column(j);
    auto store = [&] {
      Value pair = e.fromElements({e.extract(tile, 4 * j + 2 * half), e.extract(tile, 4 * j + 2 * half + 1)});
      if (type != b.getF32Type())
        pair = arith::TruncFOp::create(b, e.loc, VectorType::get({2}, type), pair);
      Value address = LLVM::GEPOp::create(b, e.loc, row.getType(), type, row, LLVM::GEPArg(column));
      unsigned bytes = type.getIntOrFloatBitWidth() / 8;
      if (columns % 2 == 0) { // rows begin at even elements, so a pair is aligned
        LLVM::StoreOp::create(b, e.loc, pair, address, 2 * bytes);
        return;
      }
      LLVM::StoreOp::create(b, e.loc, e.extract(pair, 0), address, bytes);
      scf::IfOp::create(b, e.loc, e.lt(column, columns - 1), [&](OpBuilder &, Location) {
        LLVM::StoreOp::create(b, e.loc, e.extract(pair, 1), e.offset(address, bytes), bytes);
        scf::YieldOp::create(b, e.loc);
      });
    };
    if (8 * j + 8 <= columns)
      return store();
    scf::IfOp::create(b, e.loc, e.lt(column, columns), [&](OpBuilder &, Location) {
      store();
      scf::YieldOp::create(b, e.loc);
    });
  }
};

struct ConvertStoreEntries : OpConversionPattern<StoreEntriesOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(StoreEntriesOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    Type type = cast<MemRefType>(op.getTarget().getType()).getElementType();
    Value target = e.globalAddress(op.getTarget());
    Value isFirst = e.lt(e.rem(e.lane(), 4), 1); // one of the four lanes of a row
    for (unsigned half : {0, 1}) {
      SmallVector<Value> place = e.inlineBody(op.getBody(), e.row(half));
      Value stores = arith::AndIOp::create(rewriter, e.loc, place[1], isFirst);
      scf::IfOp::create(rewriter, e.loc, stores, [&](OpBuilder &, Location) {
        LLVM::StoreOp::create(rewriter, e.loc, e.extract(adaptor.getRows(), half), e.element(target, place[0], type),
                              type.getIntOrFloatBitWidth() / 8);
        scf::YieldOp::create(rewriter, e.loc);
      });
    }
    rewriter.eraseOp(op);
    return success();
  }
};

/// Two neighbouring accumulator blocks of 8 columns are what a thread holds of 16 inner columns of an operand.
struct ConvertToOperand : OpConversionPattern<ToOperandOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(ToOperandOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    int64_t values = getValuesPerThread(op.getTile().getType());
    auto narrow = VectorType::get({values}, op.getType().getElementType());
    Value rounded = arith::TruncFOp::create(rewriter, op.getLoc(), narrow, adaptor.getTile());
    rewriter.replaceOpWithNewOp<vector::BitCastOp>(op, VectorType::get({values / 2}, rewriter.getI32Type()), rounded);
    return success();
  }
};

} // namespace

void ssa_gpu::populateTilePatterns(const TypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<ConvertElementwise, ConvertReduce, ConvertBroadcast, ConvertMapRows, ConvertMapColumns, ConvertStoreRows,
               ConvertStoreEntries, ConvertToOperand>(converter, patterns.getContext());
}
