//===- RouteTiles.h - route on tensor cores ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An item is a tile of rows of one cell and a tile of columns. The keys stay in shared memory while the heads of the cell pass by
// in chunks; the scores of chunks are joined in registers. With few rows a chunk is several heads: rows of the tile are then
// (row of scores, head) pairs, heads next to each other, and are joined when the tile leaves through shared memory. That is also
// where columns that nobody sees become -inf.
//
// A bound is two products: max(q, 0) with the greater of the two key rows, min(q, 0) with the smaller.
//
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CONVERSION_SSATOSSAGPU_ROUTETILES_H
#define SSA_LIB_CONVERSION_SSATOSSAGPU_ROUTETILES_H

#include "KeySlots.h"
#include "Route.h"
#include "TileEmitter.h"
#include <limits>

namespace mlir::ssa {

constexpr int64_t warps = 4, tileRows = 16 * warps, tileColumns = 64;
/// The pitch of a tile that leaves: rows that are written at once lie in different banks.
constexpr int64_t pitch = tileColumns + 8;
/// The column tiles of one part of a softmax row. It depends on nothing, so that a row's bits do not depend on others.
constexpr int64_t tilesPerPart = 32;

/// How rows of a tile stand for rows of scores and heads.
struct RouteTiling {
  int64_t queries, heads;
};

/// What all kernels of an op have in common.
struct RoutePlan {
  RoutePlan(const RouteContext &c, TargetAttr target);

  int64_t bytes(int64_t queryStages, int64_t keyStages) const {
    int64_t tile = tileRows * ssa_gpu::SharedType::getPaddedColumns(paddedDim) * 2 * operands;
    return (queryStages + keyStages) * tile + tileRows * pitch * 4 + 4096;
  }

  ssa_gpu::Family family;
  Type elementType; // of tiles; null if there is none that holds the operands
  int64_t paddedDim, operands; // 2 for a bound
  int64_t unit;                // heads of a cell that follow one another and have one key head
  int64_t queryWidth = 0, keyWidth = 0;
  int64_t sharedBytes;
};

class RouteTileKernel : public KernelBuilder {
public:
  RouteTileKernel(RouteContext &c, const RoutePlan &plan, RouteTiling tiling, StringRef name)
      : KernelBuilder(c.host.builder, c.op, name, 32 * warps, c.arguments), c(c), plan(plan), tiling(tiling),
        chunksPerUnit(ssa::ceilDiv(plan.unit, tiling.heads)), chunks(c.group / plan.unit * chunksPerUnit) {}

  /// The kernel that leaves maximum and sum of parts of rows, and the one that writes scores. Launched if `condition`, a value of the host
  /// function, holds (null: always).
  void buildSums(Value condition);
  void buildScores(Value condition);

private:
  /// A row of the tile; where there is none, another one's numbers.
  struct Row {
    Value m, head, exists; // index, index, i1
  };
  Row getRow(Value row, Value chunk);
  Value getKeyHead(Value chunk);
  Value get(RouteArgument a) { return c.get(*this, a); }

  Value countRowTiles(Emitter &e, Value rows);
  void decodeRows(Value &item);
  void prepareItem(TileEmitter &t, int64_t queryStages, int64_t keyStages);
  void fillVisible(TileEmitter &t);
  void fillNumbers(TileEmitter &t, Value numbers, Value firstColumn);
  void loadRows(TileEmitter &t, const BufferView &view, Value tile, int64_t width, llvm::function_ref<RowPlace(Value)> place);
  void loadQueries(TileEmitter &t, Value chunk, Value stage);
  void loadKeys(TileEmitter &t, Value chunk, Value stage, Value firstColumn);
  void orderKeys(TileEmitter &t, Value stage);
  void orderQueries(TileEmitter &t, Value stage);
  Value addProduct(TileEmitter &t, Value queries, Value keys, Value sum);
  Value multiply(TileEmitter &t, Value queryStage, Value keyStage);
  Value getTileScores(TileEmitter &t, Value products, Value chunk, Value numbers);
  Value getVisibleTile(TileEmitter &t, Value numbers);

  std::pair<Value, Value> getColumnTiles(Value part);
  void buildSumsItem(Value item);
  void storeSums(TileEmitter &t, ValueRange state, Value chunk, Value part);
  SmallVector<Value> addToSums(TileEmitter &t, Value scores, ValueRange state);
  void buildScoresItem(Value item);
  Value isInSight(TileEmitter &t);
  Value joinScores(TileEmitter &t, Value scores, Value chunk, Value before);
  Value joinChunks(TileEmitter &t, Value firstColumn, int64_t stages);
  void storeScores(TileEmitter &t, Value firstColumn);

  RankedTensorType tileType(TileEmitter &t) { return t.accumulatorType(tileColumns, builder.getF32Type()); }
  Value rowsOf(TileEmitter &t, double value) { return t.constant(t.rowsType(builder.getF32Type()), builder.getF32FloatAttr(float(value))); }
  Value splat(TileEmitter &t, double value) { return t.constant(tileType(t), builder.getF32FloatAttr(float(value))); }
  Value none() { return f32(-std::numeric_limits<double>::infinity()); }
  static constexpr double infinity = std::numeric_limits<double>::infinity();

  RouteContext &c;
  RoutePlan plan;
  RouteTiling tiling;
  int64_t chunksPerUnit, chunks;

  // Of the item: rows `firstRow` .. are those of the tile, none is after `lastRow` (index). `lastQuery` (i32) is the number of the
  // last in the tile, negative where there is none.
  Value batch, cell, list, firstRow, lastRow, lastQuery;
  BufferView queryView, keyView, keyMaxView;
  // Rings, and arrays with an entry per row of scores or per column.
  Value queryLow, queryHigh, keyLow, keyHigh, numberRing, joined;
  VisibleBlocks visibleArrays;
};

/// Joins the parts of each row of a softmax.
void joinRouteParts(RouteContext &context);

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_ROUTETILES_H
