//===- TopK.h - Rows of scores in kernels -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Selecting is a question about keys: unsigned numbers, one for each column of a row, in the order in which columns are
// taken. The key of a column that is never taken is 0, that of a forced one is the greatest; between them they are
// ordered as the scores are, with -0 equal to +0. Of equal keys the lower column goes first. Columns stand for key
// blocks in ascending order.
//
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CONVERSION_SSATOSSAGPU_TOPK_H
#define SSA_LIB_CONVERSION_SSATOSSAGPU_TOPK_H

#include "Block.h"
#include <functional>

namespace mlir::ssa {

/// The buffers and sizes of a `topk`, on the host or in one of its kernels.
struct TopKOperands {
  /// Their order as arguments of kernels that have no others.
  enum Argument { scoresArgument, selectionArgument, tokensArgument, queriesArgument, columnsArgument, withinArgument };
  SmallVector<Value> getArguments() const;
  /// What a kernel that has no other arguments sees of them.
  static TopKOperands inKernel(KernelBuilder &k, TopKOp op);

  Value scores, selection;
  Value within; // may be null
  Value tokens, queries;
  Value columns; // of a row: blocks that exist, or slots of `within`
  Value rows;
};

/// Makes the kernel that has a warp for each row, which keeps it in registers, that in which it is in memory, and the one that has a block.
void buildShortTopK(HostFunction &host, TopKOp op, const TopKOperands &operands);
void buildWarpTopK(HostFunction &host, TopKOp op, const TopKOperands &operands, bool keepsRow);
void buildBlockTopK(HostFunction &host, TopKOp op, const TopKOperands &operands);

/// What the first of these can do: of few keys it is quickest to take one after another.
constexpr int64_t maxColumnsOfShort = 128, maxWidthOfShort = 16;
/// What the second can do, and the longest rows of a known length that it keeps in shared memory: longer ones are read twice, so that more warps fit.
constexpr int64_t maxColumnsOfWarp = 4096, maxWidthOfWarp = 128, maxKeptColumns = 2048;

/// Keys that no score has.
constexpr uint32_t neverKey = 0, forcedKey = 0xffffffff;

/// In a kernel: one row of scores. Columns are i32.
class ScoreRow {
public:
  ScoreRow(BlockKernel &k, TopKOp op, const TopKOperands &in) : k(k), op(op), in(in), type(op.getType()) {}

  /// Goes to a row (index), or to that of query `query` of a sequence and head.
  void locate(Value row);
  void locate(Value batch, Value head, Value query);
  /// Its scores are elsewhere: those of columns before `count` (i32), behind these indices or as `load` makes them. The first one in the buffer may be
  /// that of another column than 0.
  void useScores(Value buffer, ArrayRef<Value> place, Value count, Value firstColumn = Value());
  void useScores(std::function<Value(Value column)> load, Value count);

  /// How many rows there are, and the most columns that one has; index.
  Value getNumRows();
  Value getMaxColumns();

  /// What is looked at of a row is f32: the *marked scores* of its columns. It
  /// is the score where a column may be taken, -inf where it may not or has
  /// none, and a certain NaN where it must. With `areAll` every one of the
  /// columns may be taken and has a score; else any will do, if `begin < end`:
  /// from `end` on they may not be taken.
  SmallVector<Value> loadMarked(ArrayRef<Value> columns, bool areAll);
  /// Scores that one load can have. How many columns from `begin` on come before one from which on there may be such a load; and the scores of so many
  /// columns from there, or some vectors further, on, which have some. Only of scores in a buffer.
  static constexpr int64_t vectorColumns = 4;
  Value countBeforeVectors();
  SmallVector<Value> loadVector(Value first);
  /// The marked score of a column from `begin` to `end`-1.
  Value mark(Value score, Value number);
  /// Whether the `count` columns from `first` on may all be taken, and none must be; null where that can only be told of each by itself. Of such
  /// columns the scores are the marked ones.
  Value arePlain(Value first, int64_t count);
  SmallVector<Value> loadPlain(ArrayRef<Value> columns);
  /// Columns of which all may be taken, and none must be: `begin` .. `end`-1, and those from `rest` on, which may be null.
  struct PlainColumns {
    Value begin, end, rest;
  };
  /// Nothing where that can only be told of each by itself.
  std::optional<PlainColumns> getPlainColumns();
  /// The score of a column that has one, as it is.
  Value loadPlainScore(Value column) { return loadScore(column); }
  Value getKey(Value marked);
  /// The key of a marked score that reaches a bound.
  Value getReachingKey(Value marked);
  /// The same of the score of a plain column.
  Value getPlainKey(Value score) { return orderBits(score); }
  /// Whether the key of a marked score is at least that of a bound, which is
  /// given as a score: one comparison for most.
  Value reaches(Value marked, Value boundScore);
  /// The least score whose key is at least `key`.
  Value getBoundScore(Value key);
  /// Whether there may be columns that are taken whatever their score.
  bool canForce() { return op.getInitBlocks() || op.getLocalBlocks(); }
  /// Whether all columns from `begin` to `end`-1 may be taken.
  bool isOneRange() { return !isWithin() && !(op.getMask() && op.getMask()->getSink()); }
  /// The greatest key that there can be, if `greatest` is that of the scores.
  Value getGreatestKey(Value greatest) { return canForce() ? k.i32(int32_t(forcedKey)) : greatest; }

  /// A column's score, or -inf where it has none, and which of the columns may
  /// be taken and must be.
  struct Column {
    Value score;
    Value mayBe, isForced; // null: true, false
  };
  Column loadColumn(Value column);
  Value getScoreKey(Value score);

  /// What a key's score adds to a mass: `max(score, 0)`, as f64. Neither forced keys nor others that no score has.
  Value getMass(Value key);

  /// The least key that is taken by its score.
  Value getLowestKey();

  void storeEntry(Value rank, Value number);
  Value getBlock(Value column);
  /// Writes the block of a column.
  void storeColumn(Value rank, Value column) { storeEntry(rank, getBlock(column)); }
  /// Padding from entry `rank` on, by threads `thread` of `numThreads`.
  void storePadding(Value rank, Value thread, int64_t numThreads);

  Value begin, end; // only columns begin .. end-1 may be taken
  Value scored;     // columns from here on have no score
  Value firstScored; // the column of the first score in a buffer; null: 0

private:
  void locateMask(Value first, Value last, Value numBlocks);
  SmallVector<Value> loadScores(ArrayRef<Value> columns, bool haveAll);
  void classify(Value number, Column &column);
  Value getNumber(Value column);
  Value getPlace(Value column);
  Value orderBits(Value score);
  Value withForced(Value key, Value marked);
  Value loadEntry(Value column);
  bool isWithin() { return bool(op.getWithin()); }
  int64_t blocksPerEntry() { return op.getWithin().getType().getKeyBlock() / type.getKeyBlock(); }

  BlockKernel &k;
  TopKOp op;
  TopKOperands in;
  SelectionType type;
  Value b, g, m, listRow; // index
  std::function<Value(Value column)> loadScore;
  Value scoreBuffer; // where the scores are, if they are in memory, with the indices but the last
  SmallVector<Value> scorePlace;
  // Blocks, i32: those of the first tokens, those of the window, those that are forced for being near.
  Value sinkEnd, windowBegin, windowSize, localBegin, localSize;
  Value entryEnd; // entries of `within` from here on are past the end
};

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_TOPK_H
