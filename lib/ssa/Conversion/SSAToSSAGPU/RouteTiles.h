//===- RouteTiles.h - route on tensor cores ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A tile has pairs of a query and a head of one cell: pair `head * queries + query`. They stay in shared memory while keys pass by. A cell
// with more heads than a tile takes, or with several key heads, has several tiles of pairs: *chunks*.
//
//   scores   The product is keys times pairs, so that a thread has the same queries of all heads: they are joined in registers. What
//            is left, a column for every query, is hidden where nobody sees it and written.
//   by pairs Many heads of one key are joined with fewer registers read where the product is pairs times keys: a thread has 32 products in a row
//            that have the same weight. A query's heads are rows of a thread, of neighbouring warps, and of chunks.
//   sums     For a softmax, before: the product is pairs times keys. A thread has some columns of its rows and adds up for itself;
//            lanes are joined once, at the end.
//
// A bound is two products: max(q, 0) with the greater of the two key rows, min(q, 0) with the smaller.
//
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CONVERSION_SSATOSSAGPU_ROUTETILES_H
#define SSA_LIB_CONVERSION_SSATOSSAGPU_ROUTETILES_H

#include "Block.h"
#include "KeySlots.h"
#include "Route.h"
#include "TileEmitter.h"
#include <limits>

namespace mlir::ssa {

/// The columns of one part of a softmax row. It depends on nothing, so that a row's bits do not depend on others.
constexpr int64_t columnsPerPart = 2048;

/// What all kernels of an op have in common.
struct RoutePlan {
  RoutePlan(const RouteContext &c, TargetAttr target);

  /// Decides sizes; false if shared memory is too small.
  bool setSizes(const RouteContext &c);
  /// Threads of a block: two hold a row of a product, or one where it is in tensor memory.
  int64_t threads() const { return usesTensorMemory ? std::max(pairs, keys) : 2 * pairs; }
  /// The same where warps have roles: of the kernel for sums, and of that for scores of up to `maxGroups` warpgroups, with `otherBytes` of shared
  /// memory for others.
  bool setSumsWithRoles(const RouteContext &c);
  bool setScoresWithRoles(const RouteContext &c, int64_t otherBytes, int64_t maxGroups);
  /// The same for scores by pairs.
  bool setScoresByPairs(const RouteContext &c, int64_t otherBytes);
  int64_t rowBytes() const { return ssa_gpu::SharedType::getRowBytes(paddedDim, elementType) * operands; }
  int64_t arrayBytes(const RouteContext &c, int64_t tilesOfPairs) const;
  int64_t scoresBytes(const RouteContext &c) const { return (queryStages * pairs + keyStages * keys) * rowBytes() + arrayBytes(c, chunks); }
  int64_t sumsBytes(const RouteContext &c) const { return (pairs + sumsStages * keys) * rowBytes() + arrayBytes(c, 1); }
  /// The plan of the kernel for sums, whose rows are pairs: where tiles of pairs and keys differ it has the sizes of the other.
  RoutePlan ofSums(const RouteContext &c) const;

  bool usesTensorMemory;  // for products: tcgen05
  ssa_gpu::Family family; // of products in registers
  Type elementType; // of tiles; null if there is none that holds the operands
  Type wideType;    // of 16 bits, where that has 8
  int64_t paddedDim, operands; // 2 for a bound
  int64_t unit;                // heads of a cell that follow one another and have one key head
  int64_t queryWidth = 0, keyWidth = 0;
  bool hasQueryBoxes = false;  // the pairs of a group are a box of the queries
  int64_t sharedBytes, sharedBytesPerSM;
  int64_t bytesForTensors = 0; // what the smallest tiles for tensor memory need, where they do not fit

private:
  bool setSizes(const RouteContext &c, int64_t pairsOfTile, int64_t keysOfStep);

public:
  int64_t pairs = 0, keys = 0;    // of a tile, of a step
  int64_t groups = 1;             // of queries: of warps, each with queries of its own, or by pairs of the rows of a warpgroup
  int64_t keyGroups = 1;          // by pairs: of warps, each with keys of its own
  int64_t folds = 1;              // by pairs: the rows of a chunk that are heads of a query
  int64_t queries = 0, heads = 0; // of a group's pairs
  int64_t tileQueries() const { return queries * groups; }
  int64_t chunksPerUnit = 0, chunks = 0;
  bool keepsQueries = false; // all chunks are in shared memory at a time
  int64_t queryStages = 1, keyStages = 1, sumsStages = 1;
  int64_t stepsPerTicket = 1; // where warps have roles: steps whose keys come together
  int64_t querySlots = 1; // where warps have roles: items that have their queries in shared memory at a time, if more than one of one chunk each
  /// Threads that multiply, where warps have roles.
  int64_t consumers(bool keysFirst) const { return 2 * (keysFirst ? keys * groups : pairs * keyGroups); }
};

class RouteTileKernel : public BlockKernel {
public:
  /// With `keysFirst` the rows of products are keys, else they are pairs.
  RouteTileKernel(RouteContext &c, const RoutePlan &plan, StringRef name, bool keysFirst)
      : RouteTileKernel(c, plan, name, keysFirst, plan.threads()) {}

  /// The kernel that leaves maximum and sum of parts of rows (pairs first), and the one that writes scores (keys first).
  void buildSums();
  void buildScores();

protected:
  RouteTileKernel(RouteContext &c, const RoutePlan &plan, StringRef name, bool keysFirst, int64_t threads)
      : BlockKernel(c.host.builder, c.op, name, threads, c.arguments), c(c), plan(plan), keysFirst(keysFirst), keys(plan.keys) {
    doubleScore();
  }

  /// A pair; where there is none, another one's numbers.
  struct Pair {
    Value m, head, exists; // index, index, i1
  };
  /// Keys side by side: those of columns `firstColumn` (index) ... `stage` (i32) is where they are.
  struct Step {
    Value firstColumn, stage;
  };
  Pair getPair(Value number, Value chunk);
  Value getKeyHead(Value chunk);
  Value get(RouteArgument a) { return c.get(*this, a); }

  void decodeRows(Value &item);
  void setBlocks(int64_t bytes);
  void allocate(TileEmitter &t, int64_t queryStages, int64_t keyStages, int64_t chunks);
  void fillVisible(TileEmitter &t);
  Value getWeightPlace(Value pair);
  Value getPairOfWeight(Value place);
  void fillPairs(TileEmitter &t, Value chunk, Value slot);
  void loadRows(TileEmitter &t, const BufferView &view, Value tile, int64_t width, llvm::function_ref<RowPlace(Value)> place);
  void loadQueries(TileEmitter &t, Value chunk, Value stage);
  void loadKeys(TileEmitter &t, Value chunk, const Step &step);
  void forEachTile(Value count, llvm::function_ref<void(Value item)> body);
  int64_t getRows() const { return keysFirst ? plan.keys : plan.pairs; }
  TileEmitter getTiles() { return TileEmitter(*this, getRows(), /*groups=*/1, /*rowwise=*/plan.usesTensorMemory); }
  Value addProduct(TileEmitter &t, Value lhs, Value rhs, Value sum);
  Value multiplyInTensors(TileEmitter &t, Value queryStage, Value keyStage);
  Value multiply(TileEmitter &t, Value queryStage, Value keyStage);

  // Tiles of a product: rows are keys and columns pairs, or the other way round.
  Value ofKeys(TileEmitter &t, Type type, llvm::function_ref<Value(Value entry)> value);
  Value ofPairs(TileEmitter &t, Type type, llvm::function_ref<Value(Value pair)> value);
  // The same when heads are joined.
  Value ofJoinedKeys(TileEmitter &t, Type type, llvm::function_ref<Value(Value entry)> value);
  Value ofQueries(TileEmitter &t, Type type, llvm::function_ref<Value(Value query)> value);
  Value getNumber(TileEmitter &t, const Step &step, Value entry);
  /// Where the queries of a chunk are, and what their pairs have: a place for each of several chunks, or that of the item.
  Value getQuerySlot(Value chunk) { return joinsChunks() && plan.querySlots == 1 ? chunk : querySlot ? querySlot : i32(0); }
  /// Scores before any softmax, and, for one, the positive factor that makes exponents of 2 of them.
  std::pair<Value, double> getScores(TileEmitter &t, Value products, Value chunk, const Step &step);
  Value getExponent(TileEmitter &t, Value scores, double factor, Value reference);
  std::pair<Value, Value> getSteps(Value begin, Value end);

  // Sums
  std::pair<Value, Value> decodeSums(Value item);
  void buildSumsItem(Value item);
  std::pair<Value, Value> getSeen(TileEmitter &t);
  Value hide(TileEmitter &t, Value scores, const Step &step, std::pair<Value, Value> seen);
  /// Of rows of a softmax: what sums are relative to, and what is added to exponents for that; sums; and whether a row of the warp has no reference yet.
  struct Sums {
    Sums(Value reference, Value negated, Value sum, Value isOpen) : reference(reference), negated(negated), sum(sum), isOpen(isOpen) {}
    explicit Sums(ValueRange values) : Sums(values[0], values[1], values[2], values[3]) {}
    static constexpr unsigned numValues = 4;
    SmallVector<Value> getValues() const { return {reference, negated, sum, isOpen}; }
    Value reference, negated, sum, isOpen;
  };
  Sums beginSums(TileEmitter &t);
  Sums raiseReferences(TileEmitter &t, Value scores, double factor, const Sums &sums, Value attempt);
  Sums addToSums(TileEmitter &t, Value scores, double factor, const Sums &sums);
  void storeSums(TileEmitter &t, const Sums &sums, Value chunk, Value part);

  // Scores
  std::pair<Value, Value> decodeScores(Value item);
  void buildScoresItem(Value item);
  void startTurn(TileEmitter &t, Value turn);
  void takeTurn(TileEmitter &t, Value turn);
  Value joinHeads(TileEmitter &t, Value queryStage, Value chunk, const Step &step, Value before);
  /// The scales of a step's keys (a row tile), if they come after heads are joined, where `comeLast` holds (i1 of the warp); else null.
  struct KeyScales {
    Value rows, comeLast; // by pairs no rows
  };
  KeyScales getKeyScales(TileEmitter &t, const Step &step);
  Value joinUnscaled(Type type, const KeyScales &scales, llvm::function_ref<SmallVector<Value>()> join, llvm::function_ref<SmallVector<Value>()> joinScaled);
  Value scaleJoined(TileEmitter &t, Value joined, const Step &step, const KeyScales &scales);
  Value joinProducts(TileEmitter &t, Value products, Value chunk, const Step &step, Value before);
  Value joinScaled(TileEmitter &t, Value products, Value chunk, const Step &step, Value before);
  /// Whether scores are known to follow a positive factor of the product.
  bool isProportional() const;
  bool scalesLast() const;
  void doubleScore();
  VisibleBlocks loadVisible(TileEmitter &t);
  Value hideScores(TileEmitter &t, Value scores, const Step &step, const VisibleBlocks &visible);
  Value loadReferences(TileEmitter &t, Value chunk);
  Value getStepScores(TileEmitter &t, Value number);
  void storeScores(TileEmitter &t, Value scores, Value firstColumn);

  /// The columns of a product.
  int64_t getColumns() const { return keysFirst ? plan.pairs : plan.keys; }
  /// And of its scores when heads are joined.
  int64_t foldedColumns() const { return keysFirst ? std::max<int64_t>(plan.queries, 8) * plan.groups : keys; }
  /// Whether all chunks are under one ticket, and a step's scores are joined from them.
  bool joinsChunks() const { return keysFirst || plan.folds > 1; }
  Type f32Type() { return builder.getF32Type(); }
  Type i32Type() { return builder.getI32Type(); }
  Value rowsOf(TileEmitter &t, double value) { return t.constant(t.rowsType(f32Type()), builder.getF32FloatAttr(float(value))); }
  Value splat(TileEmitter &t, int64_t columns, double value) {
    return t.constant(t.accumulatorType(columns, f32Type()), builder.getF32FloatAttr(float(value)));
  }
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  static constexpr int64_t sumColumns = 8; // of a row's sum: each is one thread's

  RouteContext &c;
  RoutePlan plan;
  bool keysFirst;
  int64_t keys; // of a step

  // Of the item: rows `firstRow` .. are those of the tile, none is after `lastRow` (index). `lastQuery` (i32) is the number of the
  // last in the tile.
  Value batch, cell, list, firstRow, lastRow, lastQuery;
  Value beginStep, endStep; // i32: the steps that have something to see
  BufferView queryView, keyView, keyMaxView;
  // Rings of tiles; arrays with an entry per query, per pair or per key.
  Value queryLow, queryHigh, keyLow, keyHigh;
  VisibleBlocks visibleArrays;
  // Of products in tensor memory: where they are, the pipe that hands them over, and the ticket of the next one, a variable of a thread.
  Value product, productPipe, productTicket;
  Value numberRing, scaleRing, weightRing, referenceRing;
  bool scalesAfter = false; // scores that are being made have no scales yet
  Region doubledScore;      // the op's region with twice its score, for scores that have scales after; may be empty
  Value references; // those of the item, where they stay in registers
  Value querySlot;  // where its queries are (i32), if there are several
};

/// Memory for maximum and sum of parts of each row of a softmax, and the kernel that joins them.
void addPartArguments(RouteContext &context);
void joinRouteParts(RouteContext &context);

/// The number of row tiles of one cell; those of all cells of the sequences and rows that a buffer (b, h, m, ..) has, on the host.
Value countRowTiles(Emitter &e, const RouteContext &c, const RoutePlan &plan, Value rows);
Value countTiles(Emitter &e, const RouteContext &c, const RoutePlan &plan, Value buffer);
/// The steps of an item of scores, on the host: few tiles of rows are split up, so that there is work for all multiprocessors.
Value getStepsPerItem(RouteContext &c, const RoutePlan &plan, int64_t wantedItems);

/// Makes the kernels whose warps have roles; false if these do not take the op.
bool buildRouteRoles(RouteContext &context, TargetAttr target);

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_ROUTETILES_H
