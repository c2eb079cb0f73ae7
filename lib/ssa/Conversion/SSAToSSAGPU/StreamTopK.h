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
  /// `capacity`: the entries of a list; for each score so many values are loaded. `inVectors`: rows have scores for whole chunks, which are in a buffer.
  StreamSelector(BlockKernel &k, TopKOp op, const TopKOperands &in, int64_t capacity, int64_t loadsOfScore = 1, bool inVectors = false);
  static constexpr int64_t chunkColumns = 1024;

  /// Shared memory that a row has for what is known of it, and a warp for its histogram; words.
  static constexpr int64_t stateWords = 3, histogramWords = 256;
  void useShared(Value memory, Value stateBegin, Value histogramBegin);
  /// The list of a row: `lists` (i32) behind these indices has keys, each followed by its column. A list has so many entries behind its last.
  static int64_t getPadding(int64_t width);
  void useList(Value lists, ArrayRef<Value> place);

  /// The row that `row` is at: before its first columns; columns `first` .. `end`-1 (i32), whose scores `row` has; and those behind the last.
  void begin();
  void take(Value first, Value end, Value isLast);
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
  /// Keys above `key` are taken, and of those equal to it the first `room`, which is 0 where none or all of them are.
  struct Threshold {
    Value key, room;
  };
  enum StateWord { countWord, floorWord, greatestWord };

  /// How many keys are listed, and the greatest that the lane has seen.
  using ListState = SmallVector<Value>;
  void takeColumns(Value first, Value end, bool haveScores);
  ListState listMarked(Value first, Value end, Value boundScore, bool haveScores, ListState state);
  ListState listPlain(Value first, Value end, Value boundScore, ListState state);
  void markReaching(Value first, Value firstBit, Value boundScore);
  void listScores(ArrayRef<Value> scores, Value first, Value boundScore, ListState &state);
  ListState listMarks(Value first, Value begin, Value end, ValueRange state);
  Value listWords(Value first, Value begin, Value end, ValueRange state);
  Value listBits(Value first, Value begin, Value end, SmallVector<Value> state);
  Value placeOfBits(Value word) { return add(histogramBegin, toIndex(word)); }
  void raiseFloor(Value count);
  Threshold findThreshold(Value count, int64_t slack, Value isShort);
  Threshold findThreshold(Value count, int64_t slack) { return findThreshold(count, slack, le(count, i32(width))); }
  SmallVector<Value> forEachKey(Value first, Value count, ValueRange inits, llvm::function_ref<SmallVector<Value>(Value key, ValueRange carried)> visit);
  SmallVector<Value> narrow(Value first, Value count, ValueRange range, Value mostBits, int64_t slack);
  Value copyRange(Value count, Value low, Value high, Value to);
  /// Calls `keep(rank, key, column)` in the lanes that have a key that is taken, in the order of columns; how many there are.
  Value forEachTaken(Value count, const Threshold &threshold, llvm::function_ref<void(Value rank, Value key, Value column)> keep);
  Value placeOfEntry(Value slot, int64_t further = 0);
  Value getList(Value buffer, ArrayRef<Value> place, int64_t capacity);
  void padList(Value count, int64_t times);
  void storeEntry(Value list, Value slot, Value key, Value column);
  Value getState(StateWord word) { return load(shared, add(stateBegin, index(word))); }
  void setState(StateWord word, Value v);

  BlockKernel &k;
  int64_t width, scoresAtATime, slack, trigger, capacity, keysAtATime;
  bool inVectors; // whether scores are loaded as they are in memory
  Value shared, stateBegin, histogramBegin; // words (index)
  Value list;
};

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_STREAMTOPK_H
