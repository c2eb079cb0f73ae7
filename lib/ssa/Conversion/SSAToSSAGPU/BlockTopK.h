//===- BlockTopK.h - topk of long rows or wide lists ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A block selects from a row in these steps.
//
//   collect   The keys that may be among the K greatest go to a buffer in shared memory. A row that fits goes there
//   whole. Of a longer
//             one a sample is looked at first: the key that so many of the sample reach as should make somewhat more
//             than K of the row. That is a guess; fewer than K, or more than fit, are noticed.
//   select    The K-th greatest key is found by counting: a histogram of the range that it lies in, then one of the bin
//   that it lies
//             in, and so on. It is done on the buffer, or, where the guess was wrong, on the row itself, which is read
//             again for each of at most three histograms. No input makes it slower than that.
//   top_p     The keys taken so far are sorted; how many of them are needed follows from the sums of their scores.
//   write     Bits of the columns that are taken, for one section of the row after another; each thread then writes the
//   columns of its
//             bits, in order. They come from the buffer, or, if only some of the keys equal to the K-th are taken, from
//             the row.
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
  /// Gives key number `i`.
  using Source = llvm::function_ref<Value(Value i)>;

  void selectRow();
  /// The key of column `begin + i` of the row; `neverKey` from the end of the columns that may be taken on.
  Value loadRowKey(Value i);

  // collect
  Value guessBound();
  void collect(Value bound);
  void append(ArrayRef<Value> found, Value bound, Value first);

  // select
  Threshold findThreshold(Source source, Value size, Value wanted, Value lowest);
  SmallVector<Value> narrow(Source source, Value size, ValueRange range);
  void findBin(Value wanted);

  // top_p
  struct Masses {
    Value forced, others; // f64: of forced columns, and of those that are neither forced nor in the buffer
    Value size;           // how many keys are in the buffer
  };
  Threshold limitMass(const Threshold &threshold);
  Masses gatherTaken(const Threshold &threshold);
  void sortKeys(Value size);
  Value countNeeded(const Masses &masses);

  // write
  void writeSelected(const Threshold &threshold, Value isInBuffer, Value collected);
  void markFromBuffer(const Threshold &threshold, Value collected, Value first);
  void markFromRow(const Threshold &threshold, Value first);
  SmallVector<Value> writeSection(Value first, Value written, Value seen, Value room);
  Value writeBits(Value bits, Value firstColumn, Value rank);

  Value getWord(unsigned number) { return load(words, index(number)); }
  void setWord(unsigned number, Value v) { store(v, words, index(number)); }
  void fromOneThread(llvm::function_ref<void()> body) { ifThen(eq(thread(), i32(0)), body); }
  /// `body(i)` for 0 <= i < `size`, each by one thread.
  void forEach(Value size, llvm::function_ref<void(Value i)> body) { loop(thread(), size, i32(threads), body); }

  static constexpr int64_t unroll = 8, wordBytes = 4;
  static constexpr int64_t maxSlots = 8192, sampleSize = 4096;
  static constexpr int64_t binBits = 11, bins = 1 << binBits;
  static constexpr int64_t wordBits = 32, wordsPerThread = 2;
  /// Words that all threads see.
  enum { collectedWord, binWord, beforeBinWord, inBinWord, takenWord, numWords };

  TopKOp op;
  ScoreRow row;
  int64_t width, threads;
  int64_t sectionWords, sectionColumns; // of a section; its counts fit 16 bits
  Value count;                          // columns of the row that may be taken
  Value keys, columns, slots;           // the buffer
  Value histogram, words, sums;
  Value above, equal; // bits of a section: keys above the threshold, and equal to it
  Value doubles;      // an f64 for each thread
};

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_BLOCKTOPK_H
