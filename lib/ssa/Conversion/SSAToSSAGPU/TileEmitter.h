//===- TileEmitter.h - Building tile programs -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CONVERSION_SSATOSSAGPU_TILEEMITTER_H
#define SSA_LIB_CONVERSION_SSATOSSAGPU_TILEEMITTER_H

#include "KernelBuilder.h"
#include "ssa_gpu/IR/SSAGPU.h"
#include <functional>

namespace mlir::ssa {

/// Where a row lies in a buffer, and whether it is there at all.
struct RowPlace {
  Value begin; // elements from the start of the buffer
  Value exists;
};

/// Rows of buffers that are added to those of a tile when they are stored.
struct AddedRows {
  SmallVector<Value> sources, factors; // buffers; a factor for each row
  std::function<Value(unsigned source, Value row)> begin; // elements from the start of the buffer
  int64_t width = 1;                                      // elements that all places are multiples of
  bool skipZeros = false;                                 // rows of factor 0
};

/// Builds ops on tiles of `rows` rows at the place of an emitter; the columns of accumulators are spread over `groups` of warps, or, with `rowwise`,
/// a thread has a row.
class TileEmitter {
public:
  TileEmitter(Emitter &e, int64_t rows, int64_t groups = 1, bool rowwise = false)
      : builder(e.builder), loc(e.loc), rows(rows), groups(groups), rowwise(rowwise) {}

  RankedTensorType accumulatorType(int64_t columns, Type elementType);
  RankedTensorType rowsType(Type elementType);
  Value constant(RankedTensorType tile, Attribute scalar);

  Value alloc(ArrayRef<int64_t> shape, Type elementType);
  Value slot(Value ring, Value index);
  /// Columns `first` .. `first`+`columns`-1 of a tile; `first` is a multiple of 64.
  Value columns(Value tile, int64_t first, int64_t columns);
  /// The places of rows that are to be copied to a tile like this one, in `width` elements a piece.
  Value findRows(ssa_gpu::SharedType tile, int64_t width, llvm::function_ref<RowPlace(Value row)> place);
  /// Columns of the rows from `first` on.
  void copyRows(Value source, Value places, Value tile, int64_t columns, int64_t width, bool rare = false, int64_t first = 0) {
    ssa_gpu::CopyRowsOp::create(builder, loc, source, places, tile, columns, width, rare, first);
  }
  void copyRows(Value source, Value tile, int64_t columns, int64_t width, llvm::function_ref<RowPlace(Value row)> place, bool rare = false, int64_t first = 0) {
    copyRows(source, findRows(cast<ssa_gpu::SharedType>(tile.getType()), width, place), tile, columns, width, rare, first);
  }
  /// The same of rows that follow one another.
  void copyBlock(Value source, Value begin, Value stride, Value tile, int64_t columns, int64_t width) {
    ssa_gpu::CopyBlockOp::create(builder, loc, source, begin, stride, tile, columns, width);
  }
  /// The same from elements of 8 bits, through registers.
  void convertRows(Value source, Value tile, int64_t columns, int64_t width, llvm::function_ref<RowPlace(Value row)> place);
  void order(Value low, Value high);
  void fill(Value array, llvm::function_ref<Value(Value entry)> value);
  /// Entries that are known one by one.
  void fill(Value array, ArrayRef<Value> entries);
  Value loadEntry(Value array, Value index);
  void commitCopies();
  void finishCopies(int64_t pending) { ssa_gpu::FinishCopiesOp::create(builder, loc, pending); }
  /// Between so many warps each; with `copies` nobody waits for those of the producers.
  Value allocPipe(int64_t slots, int64_t producers, int64_t consumers, bool pair = false, bool copies = false);
  void copyBox(Value map, ValueRange at, Value tile, Value pipe, Value ticket, int64_t firstRow = 0, int64_t firstColumn = 0) {
    ssa_gpu::CopyBoxOp::create(builder, loc, map, at, tile, pipe, ticket, firstRow, firstColumn);
  }
  /// Row `r` of the tile is row `row(r)` of a map of two dimensions, zeros if that has no such row.
  void gatherBox(Value map, Value column, Value tile, Value pipe, Value ticket, llvm::function_ref<Value(Value r)> row);
  /// `inPair` where both blocks of a pair meet.
  void acquire(Value pipe, Value ticket, bool inPair = false) { ssa_gpu::AcquireOp::create(builder, loc, pipe, ticket, inPair); }
  void awaitEmpty(Value pipe, Value ticket) { ssa_gpu::AwaitEmptyOp::create(builder, loc, pipe, ticket); }
  void publish(Value pipe, Value ticket, bool afterProducts = false) { ssa_gpu::PublishOp::create(builder, loc, pipe, ticket, afterProducts); }
  void await(Value pipe, Value ticket, bool inPair = false) { ssa_gpu::AwaitOp::create(builder, loc, pipe, ticket, inPair); }
  void release(Value pipe, Value ticket, bool afterProducts = false) { ssa_gpu::ReleaseOp::create(builder, loc, pipe, ticket, afterProducts); }
  void waitCopies(int64_t pending);
  /// Begins a product of `wgmma`, which `waitMma` ends. Where `adds` is false it is not added to the accumulator.
  Value beginMma(Value lhs, Value rhs, bool transposed, Value accumulator, Value adds = {}) {
    return ssa_gpu::MmaOp::create(builder, loc, accumulator.getType(), lhs, rhs, accumulator, adds, transposed, /*async=*/true, ssa_gpu::Family::wgmma);
  }
  Value waitMma(Value tile, int64_t pending) { return ssa_gpu::WaitMmaOp::create(builder, loc, tile.getType(), tile, pending); }
  Value mma(ssa_gpu::Family family, Value lhs, Value rhs, bool transposed, Value accumulator);
  /// Tiles in tensor memory, of these shapes and elements.
  SmallVector<Value> allocTensors(ArrayRef<std::pair<SmallVector<int64_t>, Type>> tiles);
  void freeTensors(ValueRange tiles) { ssa_gpu::FreeTensorsOp::create(builder, loc, tiles); }
  void mmaTensor(Value lhs, Value rhs, bool transposed, Value result, Value adds) {
    ssa_gpu::MmaTensorOp::create(builder, loc, lhs, rhs, result, adds, transposed);
  }
  Value loadTensor(Value tile, Value column, int64_t columns) {
    return ssa_gpu::LoadTensorOp::create(builder, loc, accumulatorType(columns, builder.getF32Type()), tile, column);
  }
  void storeTensor(Value values, Value tile, Value column) { ssa_gpu::StoreTensorOp::create(builder, loc, values, tile, column); }
  /// One value per row to an array in shared memory.
  void saveRows(Value rowVector, Value array) { ssa_gpu::SaveRowsOp::create(builder, loc, rowVector, array); }
  Value loadOperand(Value tile);
  /// Of rows that were stored in quads; those that do not count are zeros.
  Value loadQuads(Value tile, Value counts);
  Value toOperand(Value accumulator, Type elementType);
  void storeOperand(Value accumulator, Value tile);
  void barrier() { ssa_gpu::BarrierOp::create(builder, loc); }
  /// Of the columns of a group.
  Value reduce(ssa_gpu::RowReduction kind, Value tile) { return reduce(kind, tile, /*ofLanes=*/false); }
  /// Of the columns that a lane has; and of all lanes of a row.
  Value reduceLanes(ssa_gpu::RowReduction kind, Value tile) { return reduce(kind, tile, /*ofLanes=*/true); }
  Value joinLanes(ssa_gpu::RowReduction kind, Value rowVector) { return ssa_gpu::JoinLanesOp::create(builder, loc, rowVector.getType(), kind, rowVector); }
  /// Of what the groups have; `scratch` is only used if there is more than one.
  Value joinGroups(ssa_gpu::RowReduction kind, Value rowVector, Value scratch);
  Value broadcast(Value rowVector, int64_t columns);
  /// The first of the columns from the first of these, and so on: equal parts.
  Value broadcastParts(ArrayRef<Value> rowVectors, int64_t columns);
  Value mapRows(Type elementType, llvm::function_ref<Value(Value row)> value);
  Value mapColumns(int64_t columns, Type elementType, llvm::function_ref<Value(Value column)> value);
  /// Tiles made of elements of `tiles`, all of one shape; the results' elements are of these types.
  SmallVector<Value> map(ValueRange tiles, TypeRange elementTypes, llvm::function_ref<SmallVector<Value>(ValueRange elements)> values);
  /// True in a warp if a bit is set for all its rows, or elements.
  /// Rarely: `tile` times, or less, what rows have, unless the condition holds.
  Value changeRows(ssa_gpu::RowChange kind, Value tile, Value rows, Value unless) {
    return ssa_gpu::ChangeRowsOp::create(builder, loc, tile.getType(), kind, tile, rows, unless);
  }
  Value warpAll(Value tile) { return ssa_gpu::WarpAllOp::create(builder, loc, tile); }
  /// Rows begin at multiples of `width` elements. With `share` the columns of groups lie so far apart; with `inQuads` they are not in order.
  void storeRows(Value tile, Value target, int64_t columns, int64_t width, llvm::function_ref<RowPlace(Value row)> place, const AddedRows &added = {},
                 int64_t share = 0, bool inQuads = false);
  /// Columns that are `period` apart together, of the first `columns` of each group.
  Value fold(ssa_gpu::RowReduction kind, Value tile, int64_t columns, int64_t period);
  /// For tiles of which `factor` times as many rows have been joined.
  TileEmitter folded(int64_t factor) const;
  /// The rows that a thread has of `tile`, onto those of `before`, a tile that is folded once; and, of a tile like these, the rows of two warps.
  Value foldRows(ssa_gpu::RowReduction kind, Value tile, Value before);
  Value joinRows(ssa_gpu::RowReduction kind, Value tile, Value scratch);
  /// Column by column: `place` says where a column begins, which has `count` (i32) rows.
  void storeColumns(Value tile, Value target, Value count, llvm::function_ref<RowPlace(Value column)> place);
  void storeEntries(Value rowVector, Value target, llvm::function_ref<RowPlace(Value row)> place);

private:
  Value reduce(ssa_gpu::RowReduction kind, Value tile, bool ofLanes);
  void buildBody(Region &region, llvm::function_ref<SmallVector<Value>(Value)> body);

  OpBuilder &builder;
  Location loc;
  int64_t rows, groups, folds = 1;
  bool rowwise;
};

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_TILEEMITTER_H
