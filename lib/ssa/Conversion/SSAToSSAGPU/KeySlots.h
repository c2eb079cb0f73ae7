//===- KeySlots.h - The keys that a tile of queries visits ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CONVERSION_SSATOSSAGPU_KEYSLOTS_H
#define SSA_LIB_CONVERSION_SSATOSSAGPU_KEYSLOTS_H

#include "KernelBuilder.h"
#include "ssa/IR/Geometry.h"

namespace mlir::ssa {

/// A buffer with its strides, in a kernel.
struct BufferView {
  BufferView() = default;
  BufferView(Emitter &e, Value buffer);
  /// Where the row (or entry) at these first indices begins, in elements.
  Value getBegin(Emitter &e, ValueRange indices) const;
  /// `count` steps along dimension `i` further.
  Value advance(Emitter &e, Value begin, unsigned i, Value count) const;

  Value buffer, offset;
  SmallVector<Value> strides;
};

/// The keys that the queries of a tile visit, as slots 0, 1, .. in steps of a tile of keys. The number of a slot is the token or
/// row that it stands for; of a slot without one it is `none`, which is greater than all. All values are i32.
class KeySlots {
public:
  static constexpr int64_t none = std::numeric_limits<int32_t>::max();

  struct Config {
    MaskAttr mask; // may be null
    BlocksAttr blocks;
    Value tokens, keyRows; // how many tokens there are, and rows of keys
    Value firstPosition, lastPosition; // of the tile's queries
    int64_t tileKeys;
    int64_t stretches = 1; // of neighbours that a step is, see ScheduleAttr
    int64_t windowStep = 1; // a window ends with the last of so many positions that a query is one of
  };
  KeySlots(Emitter &e, const Config &config) : config(config) {}

  /// Visits all that the mask allows to one of the queries.
  void useRange(Emitter &e);
  /// Visits the keys of block `block` (i32) of `size` keys.
  void useBlock(Emitter &e, Value block, int64_t size);
  /// Visits the numbers of a sorted list, of which the tile's queries see those before the first that comes too late.
  void useList(Emitter &e, SelectionType type, Value lists, ArrayRef<Value> place, int64_t cells);
  /// Brings a list that is used soon nearer.
  void fetchList(Emitter &e, SelectionType type, Value lists, ArrayRef<Value> place, int64_t cells);
  /// Visits the rows that were gathered by a list without repeats, in its order: slot `i` is row `i`. `keyRows` is then how many rows there
  /// were to gather from.
  void useGatheredRows(Emitter &e, SelectionType type, Value lists, ArrayRef<Value> place, int64_t cells);

  /// Beside the entries of a list: for each so many numbers, whose bits say which of the lists that it unites have the entry.
  void useMembers(Emitter &e, Value members, ArrayRef<Value> place, int64_t cells);
  /// How many of them a step has: of the entry that each stretch belongs to, or of every key.
  static int64_t getMembersOfStep(int64_t words, int64_t stretches, int64_t tileKeys) { return words * (stretches > 0 ? stretches : tileKeys); }
  /// Number `i` of these of a step.
  Value getMembers(Emitter &e, Value step, Value i) const;

  /// The same list where others look it up: no more than the steps is known here.
  void useSteps(SelectionType type, bool isGathered, Value lists, Value steps);

  /// Of all steps only the `part`-th (i32) of `parts` stretches, `firstStep` .. `firstStep + steps - 1`. May be none.
  void takePart(Emitter &e, Value part, int64_t parts);

  Value getNumber(Emitter &e, Value slot) const;

  /// Keys that are neighbours: `base` .. `base + count - 1`.
  struct Stretch {
    Value base, count;
  };
  /// The keys of one step where they are so many stretches, each as long as the others or cut short.
  using Step = SmallVector<Stretch>;
  /// True if the keys of every step are stretches, as those of a range or of large blocks are.
  bool isContiguous() const { return config.stretches > 0; }
  /// How many keys a stretch has that is not cut short.
  int64_t getLength() const { return config.tileKeys / config.stretches; }
  /// Whether what a row sees of a stretch lies between two of its keys, but for a sink. Of summaries in a window the last may be short, and without a causal mask a sink may be anywhere.
  bool seesRanges() const { return isContiguous() && (!config.mask || !config.mask.getWindow() || (config.blocks.isTokens() && (config.mask.getCausal() || !config.mask.getSink()))); }
  Step getStep(Emitter &e, Value step) const;
  /// The number of row `row` of a step.
  Value getNumber(Emitter &e, const Step &step, Value row) const;
  /// The keys of a stretch up to the last that stands before one of the tile's queries.
  Value countInSight(Emitter &e, const Stretch &stretch) const;
  /// True if the mask hides none of these from all queries of the tile. May be false though it is so.
  Value isInSight(Emitter &e, const Stretch &stretch) const;
  /// True if the mask hides none of the step's keys, of which there is a whole tile, from any of the tile's queries. May be false though none
  /// is hidden.
  Value isAllVisible(Emitter &e, const Step &step) const;
  /// The same of a step of a list whose last slot has number `last`.
  Value isAllVisible(Emitter &e, Value last) const;

  /// True if the mask allows `number` to one of the tile's queries.
  Value isInSight(Emitter &e, Value number) const { return isVisible(e, number, config.firstPosition, config.lastPosition); }
  /// True where the mask allows a number to a query that stands at `position`; both scalars or tiles.
  Value isVisible(Emitter &e, Value number, Value position) const { return isVisible(e, number, position, position); }

  /// Where the window of a query at `position` ends, both scalars or tiles.
  Value getWindowEnd(Emitter &e, Value position) const;

  Value steps;   // how many
  Value firstStep; // the first of them, null: 0
  Value listRow; // of a list: which of its head's lists it is, an index

private:
  Value isVisible(Emitter &e, Value number, Value first, Value last) const;
  Value isAllVisible(Emitter &e, const Stretch &stretch) const;
  Value countSeen(Emitter &e, Value position) const;
  Stretch getStretch(Emitter &e, Value number) const;
  Value splatLike(Emitter &e, Value like, Value scalar) const;
  void setList(Emitter &e, SelectionType type, Value lists, ArrayRef<Value> place, int64_t cells);
  Value countEntries(Emitter &e);
  Value isBlock(Emitter &e, Value entry) const;
  Value isVisibleFrom(Emitter &e, Value number) const;
  void finish(Emitter &e);

  Config config;
  Value slots;
  // Of a range: the first `sinkSlots` slots, whole stretches, are for the first `sinkEnd` keys; the others begin at `windowBegin`.
  Value sinkSlots, sinkEnd, windowBegin, rangeEnd;
  // Of a list.
  SelectionType type;
  Value lists, listBegin, numEntries;
  Value members, membersBegin;
  bool isGathered = false;
};

/// The number of blocks of `tokens` tokens, all `index`.
Value getNumBlocks(Emitter &e, BlocksAttr blocks, Value tokens);

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_KEYSLOTS_H
