//===- BlockTopK.h - topk of long rows or wide lists ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A block selects from a row in these steps.
//
//   collect   The scores that may be among the K greatest go to a buffer in shared memory, in any order. A row that fits goes there whole.
//             Of a longer one a sample is looked at first: the key that so many of the sample reach as should make somewhat more than K
//             of the row. That is a guess; fewer than K, or more than fit, are noticed. More than fit are usually equal to the guess:
//             if fewer than K are above it, it is the K-th greatest.
//   select    The K-th greatest key is found by counting: a histogram of the range that it lies in, then one of the bin that it lies
//             in, and so on. It is done on the buffer, or, where the guess was wrong, on the row itself, which is read again for each
//             of at most three histograms. No input makes it slower than that.
//   top_p     The keys taken so far are sorted; how many of them are needed follows from the sums of their scores.
//   write     Bits of the columns that are taken, for one section of the row after another. They come from the buffer: then the rank of each of
//             its columns is how many bits are set before its own. If only some of the keys equal to the K-th are taken they come from the
//             row: each thread then writes the columns of its bits, in order.
//
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CONVERSION_SSATOSSAGPU_BLOCKTOPK_H
#define SSA_LIB_CONVERSION_SSATOSSAGPU_BLOCKTOPK_H

#include "TopK.h"

namespace mlir::ssa {

class BlockTopK : public BlockKernel {
public:
  BlockTopK(HostFunction &host, TopKOp op, const TopKOperands &operands);

  void build(HostFunction &host, const TopKOperands &operands);

private:
  /// The keys that are taken: those above `key`, and of those equal to it the first `room`.
  struct Threshold {
    Value key, room;
    Value takesAll; // true if no more than `room` keys are equal to it
  };
  /// Calls a function for every key.
  using KeyVisitor = llvm::function_ref<void(llvm::function_ref<void(Value key)> visit)>;

  /// What was found, and whether among the keys of the buffer, of which there are `taken`, or in the row.
  struct Selection {
    Threshold threshold;
    Value isInBuffer, taken;
  };
  void selectRow();
  Selection selectKeys();
  /// The key of column `begin + i` of the row; `neverKey` from the end of the columns that may be taken on.
  Value loadRowKey(Value i);

  // collect
  /// A marked score in a slot of the buffer; its key. Hardly more are kept than taken, so it costs less to make keys of them later.
  void storeKept(Value score, Value slot);
  Value loadKept(Value slot);
  Value countScored();
  Value loadSample();
  Value scanRow(Value init, llvm::function_ref<Value(ArrayRef<Value> scores, ArrayRef<Value> numbers, Value carried)> visit);
  Value collect(Value bound);
  Value countAbove(Value bound);
  void append(ArrayRef<Value> scores, ArrayRef<Value> numbers, Value boundScore);

  // select
  Threshold findThreshold(KeyVisitor visitKeys, Value wanted, Value lowest, Value isKnown, Value takesAll);
  SmallVector<Value> narrow(KeyVisitor visitKeys, ValueRange range);
  void findBin(Value wanted);

  // top_p
  struct Masses {
    Value forced, others; // f64: of forced columns, and of those that are
                          // neither forced nor in the buffer
    Value size;           // how many keys are in the buffer
  };
  Threshold limitMass(const Threshold &threshold);
  Masses gatherTaken(const Threshold &threshold);
  void sortKeys(Value size);
  Value countNeeded(const Masses &masses);

  // write
  void writeSelected(const Threshold &threshold, Value isInBuffer, Value taken);
  Value getSectionWords(Value first);
  void dropOthers(const Threshold &threshold, Value taken);
  void forEachInSection(Value taken, Value first, llvm::function_ref<void(Value column, Value bit, Value word)> body);
  void markFromBuffer(Value taken, Value first);
  void markFromRow(const Threshold &threshold, Value first);
  std::pair<Value, Value> getStretch(Value first);
  Value writeFromBuffer(Value first, Value written, Value taken);
  SmallVector<Value> writeFromRow(Value first, Value written, Value seen, Value room);
  std::pair<Value, Value> takeFirst(Value equal, Value room);
  Value writeBits(Value bits, Value firstColumn, Value rank);

  Value getWord(unsigned number) { return load(words, index(number)); }
  void setWord(unsigned number, Value v) { store(v, words, index(number)); }
  void fromOneThread(llvm::function_ref<void()> body) { ifThen(eq(thread(), i32(0)), body); }
  /// `body(i)` for 0 <= i < `size`, each by one thread.
  void forEach(Value size, llvm::function_ref<void(Value i)> body) { loop(thread(), size, i32(threads), body); }

  static constexpr int64_t unroll = 8, wordBytes = 4;
  static constexpr int64_t maxSlots = 8192, sampleSize = 4096;
  static constexpr int64_t binBits = 11, bins = 1 << binBits;
  static constexpr int32_t noColumn = std::numeric_limits<int32_t>::min(); // in no section
  static constexpr int64_t wordBits = 32, sectionWords = 4096, sectionColumns = sectionWords * wordBits;
  static_assert(bins <= sectionWords && sectionWords <= maxSlots, "they share memory");
  /// Words that all threads see.
  enum { collectedWord, aboveWord, binWord, beforeBinWord, inBinWord, takenWord, numWords };

  TopKOp op;
  ScoreRow row;
  int64_t width, threads;
  Value count;                // columns of the row that may be taken
  Value keys, columns, slots; // the buffer
  Value histogram, words, sums;
  Value above;   // bits of a section: keys above the threshold, and those equal to it that are taken
  Value doubles; // an f64 for each thread
};

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_BLOCKTOPK_H
