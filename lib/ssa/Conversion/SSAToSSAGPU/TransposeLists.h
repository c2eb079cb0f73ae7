//===- TransposeLists.h - Which lists have a key block ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CONVERSION_SSATOSSAGPU_TRANSPOSELISTS_H
#define SSA_LIB_CONVERSION_SSATOSSAGPU_TRANSPOSELISTS_H

#include "Conversion.h"
#include "ssa/IR/ForcedBlocks.h"

namespace mlir::ssa {

/// The lists of one sequence that are transposed at a time: `count` of each of `heads` selection heads; index, of the host function.
struct ListRange {
  Value batch, firstHead, heads, first, count;
  Value lane; // whose memory is used
};

/// Lists turned around: for every key block of every selection head its *entries*, the places in lists where it stands, in ascending order;
/// and *items*, up to so many rows of a block's entries. All is made on the device, in the same order on every run.
class TransposedLists {
public:
  /// Memory of `lanes` for up to `capacity` lists of each of up to `heads` heads. An entry has `rows` rows in each of `cells`, an item up to `tileRows`. Of lists
  /// with `forced` blocks only the others count.
  TransposedLists(HostFunction &host, SparseAttendOp op, std::optional<ForcedBlocks> forced, Value heads, Value capacity, Value lanes, int64_t cells, int64_t rows, int64_t tileRows);

  /// Makes the kernels for some of the lists. Places that stand for nothing have rows in `lses`, too, cell x list x place x row: these are `-inf`.
  void build(const ListRange &range, Value lses);

  /// An item: head * blocks + block, where heads count from the range's first; the block's first entry, how many it has, and the first of their rows that is the item's.
  enum ItemPart { blockPart, firstEntryPart, entriesPart, firstRowPart, numItemParts };
  LaneBuffer items;    // number of items x parts, i32
  LaneBuffer entries;  // list * places + place in it, where lists count from the range's first and places from the first that counts; i32
  LaneBuffer numItems; // i32, one
  Value mostItems; // an index of the host function

private:
  void buildMarks(const ListRange &range);
  void buildPlaces(const ListRange &range);
  void buildEntries(const ListRange &range, Value lses);

  HostFunction &host;
  SparseAttendOp op;
  SelectionType type;
  std::optional<ForcedBlocks> forced;
  int64_t firstPlace, places; // of a list, that count
  int64_t cells, rows, tileRows;
  Value lists, blocks;       // of each head
  LaneBuffer marks;          // a bit for every block and list, and sums of them
  LaneBuffer counts, firstEntries; // of every block and stretch of lists, and where the last one's entries end; i32
  LaneBuffer firstItems;           // of every block; i32
};

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_TRANSPOSELISTS_H
