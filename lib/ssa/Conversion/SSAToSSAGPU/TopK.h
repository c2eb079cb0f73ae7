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

namespace mlir::ssa {

/// The buffers and sizes of a `topk`, on the host, and the arguments of its kernels.
struct TopKOperands {
  SmallVector<Value> getArguments() const;

  Value scores, selection;
  Value within; // may be null
  Value tokens, queries;
  Value columns; // of a row: blocks that exist, or slots of `within`
  Value rows;
};

/// Makes the kernel that has a warp for each row, and the one that has a block.
void buildWarpTopK(HostFunction &host, TopKOp op, const TopKOperands &operands);
void buildBlockTopK(HostFunction &host, TopKOp op, const TopKOperands &operands);

/// What the first of these can do.
constexpr int64_t maxColumnsOfWarp = 4096, maxWidthOfWarp = 128;

/// Keys that no score has.
constexpr uint32_t neverKey = 0, forcedKey = 0xffffffff;
/// The key of +inf, the greatest of a score.
constexpr uint32_t infinityKey = 0xff800000;

/// In a kernel: one row of scores. Columns are i32.
class ScoreRow {
public:
  ScoreRow(BlockKernel &k, TopKOp op) : k(k), op(op), type(op.getType()) {}

  /// Goes to a row (index).
  void locate(Value row);

  /// How many rows there are, and the most columns that one has; index.
  Value getNumRows();
  Value getMaxColumns();

  /// The score of a column below `scored`.
  Value loadScore(Value column);
  /// The score of a column; -inf where it has none.
  Value loadScoreOrNone(Value column);

  /// Which columns may be taken, and which must be.
  struct Class {
    Value mayBe, isForced; // null: true, false
  };
  Class classify(Value column);
  /// The key of a score in a column of a class.
  Value getKey(Value score, const Class &columnClass);
  /// The key of a column before `end`, and of any one.
  Value getKey(Value column, Value score) { return getKey(score, classify(column)); }
  Value getKeyOrNever(Value column, Value score);

  /// What a key's score adds to a mass: `max(score, 0)`, as f64. Neither forced keys nor others that no score has.
  Value getMass(Value key);

  /// The least key that is taken by its score.
  Value getLowestKey();

  void storeEntry(Value rank, Value number);
  /// Writes the block of a column.
  void storeColumn(Value rank, Value column) { storeEntry(rank, getBlock(column)); }
  /// Padding from entry `rank` on, by threads `thread` of `numThreads`.
  void storePadding(Value rank, Value thread, int64_t numThreads);

  Value begin, end; // only columns begin .. end-1 may be taken
  Value scored;     // columns from here on have no score

private:
  void locateMask(Value first, Value last, Value numBlocks);
  Value getBlock(Value column);
  Value loadEntry(Value column);
  bool isWithin() { return bool(op.getWithin()); }
  int64_t blocksPerEntry() { return op.getWithin().getType().getKeyBlock() / type.getKeyBlock(); }

  BlockKernel &k;
  TopKOp op;
  SelectionType type;
  Value b, g, m, listRow; // index
  // Blocks, i32: those of the first tokens, those of the window, those that are forced for being near.
  Value sinkEnd, windowBegin, windowSize, localBegin, localSize;
  Value entryEnd; // entries of `within` from here on are past the end
};

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_TOPK_H
