//===- StreamTopK.h - A warp selects from a row that comes in parts -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Of a row that is never there as a whole a list is kept, in the order of columns, of the keys that may be among the K greatest. Its
// *floor* is a key that at least K of them reach, once there are so many: a later column is listed only if its key is above the floor,
// since of equal keys the earlier go first. When the list is full the floor rises: a histogram tells a key that K of the list reach,
// and hardly more, and the others are dropped. At the end the same is done for the K-th greatest, exactly, and what is left is written: it is in order
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
  /// Whether scores are loaded as they are in memory; else a column's may be asked for up to the last column that `take` is given, or a few further.
  bool readsVectors() const { return inVectors; }

  /// Shared memory that a row has for what is known of it, and a warp for its histogram (at a multiple of 16 bytes); words.
  static constexpr int64_t stateWords = 3, histogramWords = 256;
  void useShared(Value memory, Value stateBegin, Value histogramBegin);
  /// The list of a row: `lists` (i32) behind these indices has keys, each followed by its column. A list has so many entries behind its last.
  static int64_t getPadding(int64_t width);
  void useList(Value lists, ArrayRef<Value> place);

  /// What becomes of the selection: for entries `rank` of a list whether there is one, and which.
  using Leave = llvm::function_ref<void(Value rank, Value isThere, Value key, Value column)>;
  /// Takes columns `first` .. `end`-1 (i32) of the row that `row` is at; of its last ones `leave` gets the selection.
  void take(Value first, Value end, Value isFirst, Value isLast, Leave leave);
  /// Selects from the `count` entries (i32) of the list that parts have left.
  void selectFromParts(Value count);
  /// These write the row's blocks; or entry `slot` (i32) of a list like this one, of `capacity` entries, that `lists` has behind these indices.
  void leaveRow(Value rank, Value isThere, Value column);
  void leavePart(Value lists, ArrayRef<Value> place, int64_t capacity, Value slot, Value isThere, Value key, Value column);

  ScoreRow row;

private:
  /// Keys above `key` are taken, and of those equal to it the first `room`, which is 0 where none or all of them are.
  struct Threshold {
    Value key, room;
  };
  enum StateWord { countWord, floorWord, greatestWord };

  /// How many keys are listed, and the greatest that the lane has seen, where that is not known before.
  using ListState = SmallVector<Value>;
  ListState listMarked(Value first, Value end, Value boundScore, ListState state);
  ListState listPlain(Value first, Value end, Value boundScore, ListState state);
  void markReaching(Value first, Value firstBit, Value boundScore);
  void listScore(Value score, Value column, Value boundScore, ListState &state);
  ListState listMarks(Value first, Value begin, Value end, ValueRange state);
  Value listWords(Value first, Value begin, Value end, ValueRange state);
  Value listBits(Value first, Value begin, Value end, SmallVector<Value> state);
  Value placeOfBits(Value word) { return add(histogramBegin, toIndex(word)); }
  Value getBound(Value floor);
  /// The range of keys where the K-th greatest of a list is.
  struct KeyRange {
    Value low, high;
  };
  KeyRange getRange(Value floor, Value greatest);
  Threshold findThreshold(Value count, const KeyRange &range, Value slack, Value isShort);
  SmallVector<Value> forEachKey(Value first, Value count, ValueRange inits, llvm::function_ref<SmallVector<Value>(Value key, ValueRange carried)> visit);
  SmallVector<Value> narrow(Value first, Value count, ValueRange range, Value mostBits, Value slack);
  Value copyRange(Value count, Value low, Value high, Value to);
  Value keepTaken(Value count, const Threshold &threshold);
  void leaveKept(Value count, Leave leave);
  /// How many of the lanes below the own one are in `mask`.
  Value countBelow(Value mask) { return popCount(both(mask, lanesBelow)); }
  Value placeOfEntry(Value slot, int64_t further = 0);
  Value getList(Value buffer, ArrayRef<Value> place, int64_t capacity);
  std::pair<Value, Value> loadEntry(Value slot, int64_t further);
  void padList(Value count);
  /// Where the threshold of a wide list is exact the last few that it may be are looked at by themselves, behind the keys of the list.
  bool looksAtFew() const { return width > keysAtATime * warpSize; }
  void storeEntry(Value list, Value slot, Value key, Value column);

  BlockKernel &k;
  int64_t width, scoresAtATime, slack, trigger, capacity, keysAtATime;
  bool inVectors;
  Value shared, stateBegin, histogramBegin; // words (index)
  Value list, lanesBelow;
};

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_STREAMTOPK_H
