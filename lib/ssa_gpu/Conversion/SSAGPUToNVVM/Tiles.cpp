//===- Tiles.cpp - Tiles in registers -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "ssa/Target/MathAttrs.h"

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
    rewriter.replaceOp(op, hasVectors(op) ? copy->getResult(0) : scalarize(rewriter, copy));
    return success();
  }

  /// Chips with rows in tensor memory compute two values at once, but functions are expanded into what is written for scalars; all chips round two
  /// numbers at once. Otherwise the code generator would take vectors apart.
  static bool hasVectors(Operation *op) {
    auto tile = cast<RankedTensorType>(op->getResult(0).getType());
    if (!isRowwise(tile))
      return isa<arith::TruncFOp>(op);
    return isa<arith::ArithDialect>(op->getDialect()) || isa<math::FmaOp>(op) || op->hasAttr(ssa::polynomialsAttrName);
  }

  /// Replaces an op on vectors by ops on their elements.
  static Value scalarize(ConversionPatternRewriter &rewriter, Operation *op) {
    ThreadEmitter e(rewriter, op);
    auto type = cast<VectorType>(op->getResult(0).getType());
    SmallVector<SmallVector<Value>> elements = llvm::map_to_vector(op->getOperands(), [&](Value v) {
      return isa<VectorType>(v.getType()) ? e.elements(v) : SmallVector<Value>(type.getNumElements(), v);
    });
    SmallVector<Value> results;
    for (int64_t i = 0; i < type.getNumElements(); ++i) {
      SmallVector<Value> operands = llvm::map_to_vector(elements, [&](ArrayRef<Value> values) { return values[i]; });
      results.push_back(rewriter.create(op->getLoc(), op->getName().getIdentifier(), operands, type.getElementType(), op->getAttrs())->getResult(0));
    }
    rewriter.eraseOp(op);
    return e.fromElements(results);
  }
};

Value joinValues(OpBuilder &builder, Location loc, RowReduction kind, Value a, Value b, arith::FastMathFlags flags = arith::FastMathFlags::none) {
  if (kind == RowReduction::max)
    return arith::MaximumFOp::create(builder, loc, a, b);
  return arith::AddFOp::create(builder, loc, a, b, flags);
}

/// Joins values as a tree: short, and one order for all.
Value joinTree(SmallVector<Value> &values, llvm::function_ref<Value(Value, Value)> join) {
  while (values.size() > 1) {
    for (size_t i = 0; i < values.size() / 2; ++i)
      values[i] = join(values[2 * i], values[2 * i + 1]);
    if (values.size() % 2)
      values[values.size() / 2] = values.back();
    values.truncate((values.size() + 1) / 2);
  }
  return values.front();
}

/// Joins the values of a row that a thread has: halves as long as they are even, so that instructions on two values at once do.
Value reduceRow(ThreadEmitter &e, RowReduction kind, Value row) {
  int64_t size = cast<VectorType>(row.getType()).getNumElements();
  for (; kind == RowReduction::sum && size % 4 == 0; size /= 2) {
    auto half = [&](int64_t first) -> Value { return vector::ExtractStridedSliceOp::create(e.builder, e.loc, row, first, size / 2, 1); };
    row = joinValues(e.builder, e.loc, kind, half(0), half(size / 2));
  }
  SmallVector<Value> values = e.elements(row);
  return joinTree(values, [&](Value a, Value b) { return joinValues(e.builder, e.loc, kind, a, b); });
}

/// What the four lanes of a row have.
Value joinLanes(ThreadEmitter &e, Value value, llvm::function_ref<Value(Value, Value)> join) {
  for (int64_t distance : {1, 2})
    value = join(value, e.exchange(value, distance));
  return value;
}

struct ConvertReduce : OpConversionPattern<ReduceOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(ReduceOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    auto join = [&](Value a, Value b) { return joinValues(rewriter, e.loc, op.getKind(), a, b); };
    if (isRowwise(op.getTile().getType())) {
      rewriter.replaceOp(op, e.fromElements(reduceRow(e, op.getKind(), adaptor.getTile())));
      return success();
    }
    SmallVector<Value> results;
    for (int64_t half : {0, 1}) {
      SmallVector<Value> values;
      for (int64_t i = 0, n = getValuesPerThread(op.getTile().getType()); i < n; ++i)
        if (i / 2 % 2 == half)
          values.push_back(e.extract(adaptor.getTile(), i));
      results.push_back(op.getOfLanes() ? joinAsTheyCome(values, join) : joinLanes(e, joinTree(values, join), join));
    }
    rewriter.replaceOp(op, e.fromElements(results));
    return success();
  }

private:
  /// In two chains: few values are kept, and each is joined when it is there.
  static Value joinAsTheyCome(ArrayRef<Value> values, llvm::function_ref<Value(Value, Value)> join) {
    Value even = values[0], odd = values[1];
    for (size_t i = 2; i < values.size(); i += 2) {
      even = join(even, values[i]);
      odd = join(odd, values[i + 1]);
    }
    return join(even, odd);
  }
};

struct ConvertJoinLanes : OpConversionPattern<JoinLanesOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(JoinLanesOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    if (isRowwise(op.getRows().getType())) {
      rewriter.replaceOp(op, adaptor.getRows());
      return success();
    }
    ThreadEmitter e(rewriter, op);
    auto join = [&](Value a, Value b) { return joinValues(rewriter, e.loc, op.getKind(), a, b); };
    rewriter.replaceOp(op, e.fromElements(llvm::map_to_vector(e.elements(adaptor.getRows()), [&](Value value) { return joinLanes(e, value, join); })));
    return success();
  }
};

struct ConvertBroadcast : OpConversionPattern<BroadcastOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(BroadcastOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    SmallVector<int64_t> places;
    for (int64_t i = 0, n = getValuesPerThread(op.getType()); i < n; ++i)
      places.push_back(isRowwise(op.getType()) || getFolds(op.getType()) > 1 ? 0 : i / 2 % 2);
    rewriter.replaceOpWithNewOp<vector::ShuffleOp>(op, adaptor.getRows(), adaptor.getRows(), places);
    return success();
  }
};

struct ConvertMapRows : OpConversionPattern<MapRowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(MapRowsOp op, OpAdaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    SmallVector<Value> values;
    for (int64_t half = 0; half < getValuesPerThread(op.getType()); ++half)
      values.push_back(e.inlineBody(op.getBody(), e.row(half, op.getType())).front());
    rewriter.replaceOp(op, e.fromElements(values));
    return success();
  }
};

struct ConvertMapColumns : OpConversionPattern<MapColumnsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(MapColumnsOp op, OpAdaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    SmallVector<Value> values;
    LoadEntryOp pairs = isRowwise(op.getType()) ? LoadEntryOp() : getNeighbours(op);
    for (int64_t j = 0, n = getValuesPerThread(op.getType()); isRowwise(op.getType()) && j < n; ++j)
      values.push_back(e.inlineBody(op.getBody(), e.columnOfThread(j, op.getType())).front());
    int64_t rows = getFolds(op.getType()) > 1 ? 1 : 2; // of a thread
    for (int64_t j = 0, n = getValuesPerThread(op.getType()) / (2 * rows); !isRowwise(op.getType()) && j < n; ++j) {
      Value column = e.column(j, op.getType()), first, second;
      if (pairs) {
        Value both = loadBoth(e, op, pairs, column);
        first = e.extract(both, 0);
        second = e.extract(both, 1);
      } else {
        first = e.inlineBody(op.getBody(), column).front();
        second = e.inlineBody(op.getBody(), e.add(column, 1)).front();
      }
      for (int64_t row = 0; row < rows; ++row)
        values.append({first, second});
    }
    rewriter.replaceOp(op, e.fromElements(values));
    return success();
  }

private:
  /// The load of a body that does nothing but read the entry of an array that has the number of the column: the two columns of a thread are
  /// neighbours in memory.
  static LoadEntryOp getNeighbours(MapColumnsOp op) {
    Block &body = op.getBody().front();
    Value column = body.getArgument(0);
    auto load = body.getTerminator()->getOperand(0).getDefiningOp<LoadEntryOp>();
    return load && load->getBlock() == &body && load.getIndex() == column && column.hasOneUse() ? load : LoadEntryOp();
  }

  static Value loadBoth(ThreadEmitter &e, MapColumnsOp op, LoadEntryOp load, Value column) {
    IRMapping mapping;
    for (Operation &other : op.getBody().front().without_terminator())
      if (&other != load)
        e.builder.clone(other, mapping);
    return LoadEntryOp::create(e.builder, e.loc, VectorType::get({2}, load.getType()), mapping.lookupOrDefault(load.getArray()), column);
  }
};

struct ConvertMap : OpConversionPattern<MapOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(MapOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    SmallVector<SmallVector<Value>> made(op.getNumResults());
    for (int64_t i = 0, n = getValuesPerThread(cast<RankedTensorType>(op.getTiles().front().getType())); i < n; ++i) {
      SmallVector<Value> elements = llvm::map_to_vector(adaptor.getTiles(), [&](Value tile) { return e.extract(tile, i); });
      for (auto [values, value] : llvm::zip_equal(made, e.inlineBody(op.getBody(), elements)))
        values.push_back(value);
    }
    rewriter.replaceOp(op, llvm::map_to_vector(made, [&](ArrayRef<Value> values) { return e.fromElements(values); }));
    return success();
  }
};

struct ConvertWarpAll : OpConversionPattern<WarpAllOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(WarpAllOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    Value own;
    for (Value bit : e.elements(adaptor.getTile()))
      own = own ? arith::AndIOp::create(rewriter, e.loc, own, bit).getResult() : bit;
    rewriter.replaceOpWithNewOp<NVVM::VoteSyncOp>(op, rewriter.getI1Type(), e.i32(-1), own, NVVM::VoteSyncKind::all);
    return success();
  }
};

struct ConvertStoreEntries : OpConversionPattern<StoreEntriesOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(StoreEntriesOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    Type type = cast<MemRefType>(op.getTarget().getType()).getElementType();
    Value target = e.globalAddress(op.getTarget());
    RankedTensorType layout = op.getRows().getType();
    int64_t rows = layout.getDimSize(0);
    Value isFirst; // null where each thread has rows of its own
    if (!isRowwise(layout))
      isFirst = e.lt(e.rem(e.lane(), 4), 1); // one of the four lanes of a row
    else if (rows < e.getNumThreads()) // one of the groups
      isFirst = e.lt(e.thread(), rows);
    if (!isRowwise(layout) && 2 * rows < e.getNumThreads()) // one of the groups
      isFirst = arith::AndIOp::create(rewriter, e.loc, isFirst, e.lt(e.group(rows), 1));
    for (int64_t half = 0; half < getValuesPerThread(layout); ++half) {
      SmallVector<Value> place = e.inlineBody(op.getBody(), e.row(half, layout));
      Value stores = isFirst ? arith::AndIOp::create(rewriter, e.loc, place[1], isFirst).getResult() : place[1];
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

/// Writes the values of rows to the array at `address`, which has one for every row.
void saveRows(ThreadEmitter &e, Value values, RankedTensorType rowVector, Value address) {
  auto save = [&](unsigned i, Value row) {
    LLVM::StoreOp::create(e.builder, e.loc, e.extract(values, i), e.offset(address, e.mul(row, 4)), /*alignment=*/4);
  };
  if (isRowwise(rowVector))
    return save(0, e.row(0, rowVector));
  scf::IfOp::create(e.builder, e.loc, e.lt(e.rem(e.lane(), 4), 1), [&](OpBuilder &, Location) { // one of the four lanes of a row
    for (unsigned half : {0, 1})
      save(half, e.row(half, rowVector.getDimSize(0)));
    scf::YieldOp::create(e.builder, e.loc);
  });
}

struct ConvertSaveRows : OpConversionPattern<SaveRowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(SaveRowsOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    RankedTensorType rows = op.getRows().getType();
    auto save = [&] { saveRows(e, adaptor.getRows(), rows, adaptor.getArray()); };
    if (isRowwise(rows) && rows.getDimSize(0) < e.getNumThreads()) // one of the groups
      scf::IfOp::create(rewriter, e.loc, e.lt(e.thread(), rows.getDimSize(0)), [&](OpBuilder &, Location) {
        save();
        scf::YieldOp::create(rewriter, e.loc);
      });
    else
      save();
    rewriter.eraseOp(op);
    return success();
  }
};

struct ConvertJoinGroups : OpConversionPattern<JoinGroupsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(JoinGroupsOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    Type f32 = rewriter.getF32Type();
    RankedTensorType layout = op.getRows().getType();
    int64_t rows = layout.getDimSize(0), groups = op.getGroups();
    Value own = e.offset(adaptor.getScratch(), e.mul(isRowwise(layout) ? e.groupOfThread(layout) : e.group(rows), 4 * rows));
    auto place = [&](Value base, unsigned half) { return e.offset(base, e.mul(e.row(half, layout), 4)); };
    saveRows(e, adaptor.getRows(), layout, own);
    e.barrier();
    SmallVector<Value> results;
    for (unsigned half = 0; half < getValuesPerThread(layout); ++half) {
      Value joined;
      for (int64_t g = 0; g < groups; ++g) {
        Value part = LLVM::LoadOp::create(rewriter, e.loc, f32, place(e.offset(adaptor.getScratch(), 4 * rows * g), half), /*alignment=*/4);
        joined = g == 0 ? part : joinValues(rewriter, e.loc, op.getKind(), joined, part);
      }
      results.push_back(joined);
    }
    rewriter.replaceOp(op, e.fromElements(results));
    return success();
  }
};

struct ConvertStoreOperand : OpConversionPattern<StoreOperandOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(StoreOperandOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    RankedTensorType tile = op.getTile().getType();
    if (isRowwise(tile)) {
      storeWhole(e, adaptor.getTile(), tile, adaptor.getTarget(), op.getTarget().getType());
      rewriter.eraseOp(op);
      return success();
    }
    // Chips that have roles store matrices.
    if (op->getParentOfType<RolesOp>() && getValuesPerThread(tile) % 8 == 0)
      storeMatrices(e, adaptor.getTile(), tile, adaptor.getTarget(), op.getTarget().getType());
    else
      storePairs(e, adaptor.getTile(), tile, adaptor.getTarget(), op.getTarget().getType());
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// The two neighbours that a thread has in row number `half` of columns 8j .. 8j+7.
  static Value getPair(ThreadEmitter &e, Value values, SharedType target, int64_t j, unsigned half) {
    Value pair = e.fromElements({e.extract(values, 4 * j + 2 * half), e.extract(values, 4 * j + 2 * half + 1)});
    return arith::TruncFOp::create(e.builder, e.loc, VectorType::get({2}, target.getElementType()), pair);
  }

  static void storePairs(ThreadEmitter &e, Value values, RankedTensorType tile, Value target, SharedType type) {
    int64_t rows = tile.getDimSize(0);
    for (unsigned half : {0, 1})
      for (int64_t j = 0; j < getValuesPerThread(tile) / 4; ++j) {
        Value column = e.column(j, tile), piece = e.div(e.rem(column, 64), 8);
        Value panel = e.offset(target, e.mul(e.div(column, 64), rows * 128));
        Value address = e.offset(e.swizzled(panel, rows, 0, e.row(half, rows), piece), e.mul(e.rem(column, 8), 2));
        LLVM::StoreOp::create(e.builder, e.loc, getPair(e, values, type, j, half), address, /*alignment=*/4);
      }
  }

  /// Four 8x8 matrices at a time, the rows of the warp and 16 columns; lane l gives the address of row l%8 of matrix l/8.
  static void storeMatrices(ThreadEmitter &e, Value values, RankedTensorType tile, Value target, SharedType type) {
    int64_t rows = tile.getDimSize(0), groups = getGroups(tile), share = tile.getDimSize(1) / groups;
    Value row = e.add(e.mul(e.warpInGroup(rows), 16), e.rem(e.lane(), 16)), begin = groups == 1 ? e.i32(0) : e.mul(e.group(rows), share);
    Type i32 = e.builder.getI32Type();
    for (int64_t j = 0; j < share / 8; j += 2) {
      SmallVector<Value> matrices;
      for (int64_t i : {j, j + 1})
        for (unsigned half : {0, 1})
          matrices.push_back(LLVM::BitcastOp::create(e.builder, e.loc, i32, getPair(e, values, type, i, half)));
      Value column = e.add(e.add(begin, 8 * j), e.mul(e.div(e.lane(), 16), 8));
      Value panel = e.offset(target, e.mul(e.div(column, 64), rows * 128));
      Value address = e.swizzled(panel, rows, 0, row, e.div(e.rem(column, 64), 8));
      NVVM::StMatrixOp::create(e.builder, e.loc, address, matrices, NVVM::MMALayout::row, NVVM::LdStMatrixShapeAttr::get(e.builder.getContext(), 8, 8),
                               NVVM::LdStMatrixEltType::B16);
    }
  }

  /// All that a thread has of its row, in pieces of 16 bytes.
  static void storeWhole(ThreadEmitter &e, Value values, RankedTensorType tile, Value target, SharedType type) {
    int64_t width = type.getPieceColumns(), panelColumns = type.getPanelColumns(), rows = tile.getDimSize(0);
    Value row = e.row(0, tile);
    for (int64_t i = 0, n = getValuesPerThread(tile); i < n; i += width) {
      SmallVector<Value> elements;
      for (int64_t j = i; j < i + width; ++j)
        elements.push_back(e.extract(values, j));
      Value piece = arith::TruncFOp::create(e.builder, e.loc, VectorType::get({width}, type.getElementType()), e.fromElements(elements));
      Value column = e.columnOfThread(i, tile), panel = e.offset(target, e.mul(e.div(column, panelColumns), rows * 128));
      Value address = e.swizzled(panel, rows, 0, row, e.div(e.rem(column, panelColumns), width));
      LLVM::StoreOp::create(e.builder, e.loc, piece, address, /*alignment=*/16);
    }
  }
};

/// A thread has columns 8j + 2*(l%4) and the next of every j: those that are a multiple of 8 apart.
struct ConvertFold : OpConversionPattern<FoldOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(FoldOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    auto join = [&](Value a, Value b) { return joinValues(rewriter, e.loc, op.getKind(), a, b, arith::FastMathFlags::contract); };
    bool rowwise = isRowwise(op.getTile().getType());
    int64_t period = op.getPeriod(), kept = rowwise ? period : getValuesPerThread(op.getResult().getType());
    SmallVector<Value> values;
    for (int64_t i = 0, n = rowwise ? op.getColumns() : op.getColumns() / 2; i < n; ++i) {
      Value value = e.extract(adaptor.getTile(), i);
      if (i < kept)
        values.push_back(value);
      else
        values[i % kept] = join(values[i % kept], value);
    }
    if (rowwise) { // as many columns as the result has
      for (int64_t i = kept; i < getValuesPerThread(op.getResult().getType()); ++i)
        values.push_back(values[i % kept]);
      rewriter.replaceOp(op, e.fromElements(values));
      return success();
    }
    for (int64_t distance = 2; distance >= 1; distance /= 2) // of lanes, whose columns are twice as far apart
      if (period <= 2 * distance)
        for (Value &value : values)
          value = join(value, e.exchange(value, distance));
    if (period == 1)
      for (int64_t i = 0; i < kept; i += 2)
        values[i] = values[i + 1] = join(values[i], values[i + 1]);
    rewriter.replaceOp(op, e.fromElements(values));
    return success();
  }
};

/// The two rows of a thread follow one another within every block of 8 columns.
struct ConvertFoldRows : OpConversionPattern<FoldRowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(FoldRowsOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    SmallVector<Value> values = e.elements(adaptor.getBefore());
    for (int64_t half : {0, 1}) // neighbours have a factor of their row in common
      for (auto [i, value] : llvm::enumerate(values))
        value = joinValues(rewriter, e.loc, op.getKind(), value, e.extract(adaptor.getTile(), i / 2 * 4 + 2 * half + i % 2), arith::FastMathFlags::contract);
    rewriter.replaceOp(op, e.fromElements(values));
    return success();
  }
};

/// Of two warps one keeps the first half of its values, the other the second; each gives the other what that keeps.
struct ConvertJoinRows : OpConversionPattern<JoinRowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(JoinRowsOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    RankedTensorType tile = op.getTile().getType();
    constexpr int64_t width = 4, lanes = 32; // values of a lane side by side, so that lanes lie side by side
    int64_t folds = getFolds(tile), rows = tile.getDimSize(0) * folds, half = getValuesPerThread(tile) / 2;
    Value bit = e.rem(e.div(e.warpInGroup(rows), folds / 2), 2), isFirst = e.lt(bit, 1);
    auto addressOf = [&](Value warp) { return e.offset(adaptor.getScratch(), e.add(e.mul(warp, half * lanes * 4), e.mul(e.lane(), width * 4))); };
    auto select = [&](int64_t first, int64_t second) -> Value {
      return arith::SelectOp::create(rewriter, e.loc, isFirst, e.extract(adaptor.getTile(), first), e.extract(adaptor.getTile(), second));
    };
    Value own = addressOf(e.warp()), others = addressOf(e.bitXor(e.warp(), e.i32(folds / 2)));
    e.barrierOfGroup(rows);
    for (int64_t i = 0; i < half; i += width) {
      SmallVector<Value> given;
      for (int64_t j = i; j < i + width; ++j)
        given.push_back(select(half + j, j));
      LLVM::StoreOp::create(rewriter, e.loc, e.fromElements(given), e.offset(own, i * lanes * 4), width * 4);
    }
    e.barrierOfGroup(rows);
    SmallVector<Value> results;
    for (int64_t i = 0; i < half; i += width) {
      auto type = VectorType::get({width}, rewriter.getF32Type());
      Value taken = LLVM::LoadOp::create(rewriter, e.loc, type, e.offset(others, i * lanes * 4), width * 4);
      for (int64_t j = 0; j < width; ++j)
        results.push_back(joinValues(rewriter, e.loc, op.getKind(), select(i + j, half + i + j), e.extract(taken, j)));
    }
    rewriter.replaceOp(op, e.fromElements(results));
    return success();
  }
};

/// By how much places rise from one number to the next, where the body makes them of its number like that and all are there or none; else null.
Value getStride(Region &body) {
  Block &block = body.front();
  auto isOutside = [&](Value v) { return !body.isAncestor(v.getParentRegion()); };
  ValueRange place = block.getTerminator()->getOperands();
  auto sum = isOutside(place[1]) ? place[0].getDefiningOp<arith::AddIOp>() : nullptr;
  for (unsigned first : {0, 1}) {
    auto product = sum ? sum->getOperand(first).getDefiningOp<arith::MulIOp>() : nullptr;
    if (!product || !isOutside(sum->getOperand(1 - first)))
      continue;
    for (unsigned number : {0, 1}) {
      auto cast = product->getOperand(number).getDefiningOp<arith::IndexCastOp>();
      if (cast && cast.getIn() == block.getArgument(0) && isOutside(product->getOperand(1 - number)))
        return product->getOperand(1 - number);
    }
  }
  return Value();
}

struct ConvertStoreColumns : OpConversionPattern<StoreColumnsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(StoreColumnsOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    Type type = cast<MemRefType>(op.getTarget().getType()).getElementType();
    Value target = e.globalAddress(op.getTarget());
    RankedTensorType tile = op.getTile().getType();
    bool rowwise = isRowwise(tile);
    SmallVector<Value> exists;
    for (unsigned half = 0; half < (rowwise ? 1 : 2); ++half)
      exists.push_back(arith::CmpIOp::create(rewriter, e.loc, arith::CmpIPredicate::slt, e.row(half, tile), op.getCount()));
    int64_t columns = getValuesPerThread(tile) / (rowwise ? 1 : 2); // of a thread
    constexpr int64_t fewColumns = 8; // one address is made of another: a chain of so many is not waited for
    Value stride = columns <= fewColumns ? getStride(op.getBody()) : Value(), row, even;
    SmallVector<Value> place;
    for (int64_t i = 0; i < columns; ++i) {
      if (i == 0 || !stride) {
        place = e.inlineBody(op.getBody(), rowwise ? e.i32(i) : e.add(e.column(i / 2, tile), i % 2));
        row = e.element(e.element(target, place[0], type), arith::IndexCastOp::create(rewriter, e.loc, rewriter.getIndexType(), e.row(0, tile)), type);
      } else if (rowwise || i % 2 != 0) {
        row = e.element(row, stride, type);
      } else { // of the next eight columns of the tile
        row = e.element(even, arith::MulIOp::create(rewriter, e.loc, stride, arith::ConstantIndexOp::create(rewriter, e.loc, 8)), type);
      }
      if (i % 2 == 0)
        even = row;
      for (unsigned half = 0; half < exists.size(); ++half)
        scf::IfOp::create(rewriter, e.loc, arith::AndIOp::create(rewriter, e.loc, place[1], exists[half]), [&](OpBuilder &b, Location) {
          unsigned bytes = type.getIntOrFloatBitWidth() / 8;
          Value value = e.extract(adaptor.getTile(), rowwise ? i : i / 2 * 4 + 2 * half + i % 2);
          if (type != b.getF32Type())
            value = arith::TruncFOp::create(b, e.loc, type, value);
          LLVM::StoreOp::create(b, e.loc, value, e.offset(row, int64_t(8 * half * bytes)), bytes);
          scf::YieldOp::create(b, e.loc);
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
    ThreadEmitter e(rewriter, op);
    auto narrow = VectorType::get({2}, op.getType().getElementType());
    SmallVector<Value> values = e.elements(adaptor.getTile()), pairs;
    for (size_t i = 0; i < values.size(); i += 2) { // an instruction rounds two numbers
      Value rounded = arith::TruncFOp::create(rewriter, e.loc, narrow, e.fromElements({values[i], values[i + 1]}));
      pairs.push_back(LLVM::BitcastOp::create(rewriter, e.loc, rewriter.getI32Type(), rounded));
    }
    rewriter.replaceOp(op, e.fromElements(pairs));
    return success();
  }
};

} // namespace

void ssa_gpu::populateTilePatterns(const TypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<ConvertElementwise, ConvertReduce, ConvertJoinLanes, ConvertBroadcast, ConvertMapRows, ConvertMapColumns, ConvertMap,
               ConvertStoreEntries, ConvertWarpAll, ConvertSaveRows, ConvertJoinGroups, ConvertStoreOperand, ConvertToOperand, ConvertFold, ConvertFoldRows, ConvertJoinRows,
               ConvertStoreColumns>(converter, patterns.getContext());
}
