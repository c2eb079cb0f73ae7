//===- StreamTopK.h - A warp selects from a row that comes in parts -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Of a row that is never there as a whole a list is kept, in the order of columns, of the keys that may be among the K greatest. Its
// *floor* is a key that at least K of them reach, once there are so many: a later column is listed only if its key is above the floor,
// since of equal keys the earlier go first. When the list is full the floor rises: a histogram tells a key that K of the list reach,
// and hardly more, and the others are dropped. At the end the K-th greatest of the list is found exactly, and what is written is in order
// without a sort. Nothing is guessed, so there is no other way for unlucky rows; they fill the list more often.
//
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CONVERSION_SSATOSSAGPU_STREAMTOPK_H
#define SSA_LIB_CONVERSION_SSATOSSAGPU_STREAMTOPK_H

#include "TopK.h"

namespace mlir::ssa {

class StreamSelector : public Emitter {
public:
  /// `capacity`: the entries of a list; for each score so many values are loaded.
  StreamSelector(BlockKernel &k, TopKOp op, const TopKOperands &in, int64_t capacity, int64_t loadsOfScore = 1);

  /// Shared memory that a row has for what is known of it, and a warp for its histogram; words.
  static constexpr int64_t stateWords = 3, histogramWords = 256;
  void useShared(Value memory, Value stateBegin, Value histogramBegin);
  /// The list of a row: `lists` (i32) behind these indices has keys, then as many columns.
  void useList(Value lists, ArrayRef<Value> place);

  /// The row that `row` is at: before its first columns; columns `first` .. `end`-1 (i32), whose scores `row` has; and those behind the last.
  void begin();
  void take(Value first, Value end);
  /// Takes, of columns `first` .. `end`-1, those that must be taken, and writes the selection.
  void takeForced(Value first, Value end);
  void finish();

  /// The same where the row is a part of one: what may be among the K greatest becomes entries `first` (i32) .. of a list like this one, K of them with
  /// nothing in those that are left over; `parts` (i32) has such lists of `capacityOfParts` entries behind these indices.
  void finishPart(Value parts, ArrayRef<Value> place, int64_t capacityOfParts, Value first);
  /// Selects from the `count` entries (i32) of the list that parts have left.
  void selectFromParts(Value count);

  ScoreRow row;

private:
  /// Keys above `key` are taken, and of those equal to it the first `room`.
  struct Threshold {
    Value key, room;
  };
  enum StateWord { countWord, floorWord, greatestWord };

  void takeColumns(Value first, Value end, bool haveScores);
  void listScores(ArrayRef<Value> scores, Value first, Value boundScore, Value &count);
  void raiseFloor(Value count);
  Threshold findThreshold(Value count, int64_t slack, Value isShort);
  Threshold findThreshold(Value count, int64_t slack) { return findThreshold(count, slack, le(count, i32(width))); }
  SmallVector<Value> narrow(Value count, ValueRange range, int64_t slack);
  /// Calls `keep(rank, key, column)` in the lanes that have a key that is taken, in the order of columns; how many there are.
  Value forEachTaken(Value count, const Threshold &threshold, llvm::function_ref<void(Value rank, Value key, Value column)> keep);
  SmallVector<Value> loadList(Value first, Value count, bool columns);
  Value getList(Value buffer, ArrayRef<Value> place, int64_t capacity);
  void storeList(Value slot, Value key, Value column);
  Value getState(StateWord word) { return load(shared, add(stateBegin, index(word))); }
  void setState(StateWord word, Value v);

  BlockKernel &k;
  int64_t width, scoresAtATime, slack, trigger, capacity;
  Value shared, stateBegin, histogramBegin; // words (index)
  Value list;
};

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_STREAMTOPK_H
