//===- WarpTopK.h - A warp selects from a row -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Of groups of columns the greatest scores are known: the K-th greatest of all these is a bound that usually hardly more than K
// scores reach. The keys of those that reach it are listed, in the order of their columns; among them the K-th greatest is
// searched by halving. Where more reach the bound than the list holds (many are equal), the whole row takes its place. What is
// written is in order without a sort. Only what is listed becomes keys: instructions bind, not memory. Rows of few columns stay in registers, in a
// kernel of their own, as what they ask for at its begin costs others a twentieth.
//
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CONVERSION_SSATOSSAGPU_WARPTOPK_H
#define SSA_LIB_CONVERSION_SSATOSSAGPU_WARPTOPK_H

#include "TopK.h"

namespace mlir::ssa {

class WarpSelector : public Emitter {
public:
  /// With `keepsRow` a row is read once and kept in shared memory; else it is read again whenever it is needed.
  WarpSelector(BlockKernel &k, TopKOp op, const TopKOperands &in, bool keepsRow);

  /// Words of shared memory that a warp has for its list, and for a row of so many columns.
  int64_t getListWords() const { return 2 * getListSlots(); }
  Value getRowWords(Emitter &e, Value columns) const;
  /// Of `memory`, i32 of all warps: where those of this one are (index).
  void useMemory(Value memory, Value rowBegin, Value listBegin);

  /// Selects from the row that `row` is at.
  void selectRow();
  /// The same of a row of at most `maxColumnsOfShort` columns, without shared memory.
  void selectShortRow();
  /// The same where the greatest scores of 32 groups of columns for each of `maxima` are known, a group a lane. Other columns may have been
  /// counted: that costs time only.
  void selectRow(ArrayRef<Value> maxima);
  /// The widest list for which two groups a lane are enough.
  static constexpr int64_t maxWidthFromMaxima = 64;

  ScoreRow row;

private:
  /// `size` keys (i32), a multiple of a warp: those of the list or, if `isList` does not hold, of the row.
  struct KeyArray {
    Value isList, size;
  };
  struct Bound {
    Value key, greatest;
  };

  Bound loadRow();
  void loadChunk(Value first, bool isWhole, MutableArrayRef<Value> greatest);
  Bound findBound(ArrayRef<Value> greatest);
  Value findGreatest(ArrayRef<Value> keys);
  Value listKeys(Value bound);
  Value listMarked(Value boundScore, Value first, Value end, Value count);
  Value listPlain(Value boundScore, Value first, Value end, Value count);
  void listScores(ArrayRef<Value> scores, Value first, llvm::function_ref<Value(Value score, Value column)> reaches, llvm::function_ref<Value(Value score)> key,
                  Value &count);
  void turnRowIntoKeys();
  void selectAmong(Value bound, Value greatest, Value count);
  void selectFew(Value bound, Value count);
  void selectShort(int64_t keysOfLane);
  void writeSelected(KeyArray keys, Value threshold);
  Value loadKey(KeyArray keys, Value i);
  Value countIf(KeyArray keys, llvm::function_ref<Value(Value key)> condition);
  Value searchKey(Value low, Value high, llvm::function_ref<Value(Value key)> countAtLeast);
  SmallVector<Value> loadScores(Value first, bool isWhole);
  SmallVector<Value> forEachChunk(ValueRange init, llvm::function_ref<SmallVector<Value>(Value first, bool isWhole, ValueRange carried)> body);
  /// The lane's word `offset` + `i` (i32) + lane of an array. What is constant stays apart, so that it costs nothing.
  Value at(Value begin, Value i, int64_t offset = 0) { return add(add(begin, toIndex(add(i, k.lane()))), index(offset)); }

  /// The list is read by whole warps, several keys at a time.
  int64_t getListSlots() const { return capacity + keysAtATime * warpSize; }

  BlockKernel &k;
  bool keepsRow;
  int64_t width, groups, capacity, unroll, wholeUnroll, chunk, keysAtATime;
  Value memory, rowBegin, listBegin; // words (index); the list's columns follow its keys
  Value columns, size;               // of the row: those that may be taken, and as many in whole chunks (i32)
};

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_WARPTOPK_H
