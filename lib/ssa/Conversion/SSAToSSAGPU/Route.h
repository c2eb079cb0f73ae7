//===- Route.h - What the kernels of route share ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A *cell* is a selection head; its scores join those of `group` query heads. Columns of a row of scores stand for key blocks: all
// of them, or under `within` those of a list. Kernels on tensor cores take tiles of rows and columns (RouteTiles), kernels on
// CUDA cores a column at a time (RouteRows). A softmax needs the maximum and the sum of a row before any of its scores: a
// pass over all columns leaves them in workspace.
//
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CONVERSION_SSATOSSAGPU_ROUTE_H
#define SSA_LIB_CONVERSION_SSATOSSAGPU_ROUTE_H

#include "Conversion.h"
#include "ScoreRegion.h"
#include "ssa/IR/Geometry.h"
#include "ssa/IR/SharedSums.h"
#include "ssa_gpu/IR/SSAGPU.h"

namespace mlir::ssa {

/// What the kernels of a `route` have as arguments; those that an op has none of are left out.
enum class RouteArgument { query, key, keyMax, scores, weights, scales, within, tokens, queries, firstBatch, lse, partMaxima, partSums, steps, keyMap, queryMap, firstRow, selection, topkTokens, topkQueries, scratch, lists, rowParts, rowShares, partLists, maxima };

/// A `route` with what its kernels see of it.
class RouteContext {
public:
  RouteContext(HostFunction &host, RouteOp op);

  /// Collects the arguments of kernels for a part of the rows. Without a buffer for scores they are not kept, and parts have up to `maxRows`
  /// rows of `maxBatches` sequences.
  LogicalResult prepare(const ScoreBuffer &scores, const RowPart &part);
  /// Allocates memory with an entry, or a row of `columns` entries (on the host), for every row of every head.
  Value allocatePerRow(llvm::function_ref<Value(Emitter &e)> columns = nullptr);

  bool has(RouteArgument a) const { return numbers[unsigned(a)] >= 0; }
  Value getHost(RouteArgument a) const { return arguments[numbers[unsigned(a)]]; }
  Value get(KernelBuilder &k, RouteArgument a) const { return k.getArgument(numbers[unsigned(a)]); }
  void addArgument(RouteArgument a, Value v);
  /// Another value for one that is there, or a new one.
  void setArgument(RouteArgument a, Value v);
  /// Makes kernels whose further arguments later ones do not have.
  void buildApart(llvm::function_ref<void()> build);
  SmallVector<Value> getCaptured(KernelBuilder &k) const;
  bool isSoftmax() const { return op.getNormalize() == Normalization::softmax; }
  /// Whether sums have to be made first: of a softmax that takes none from attention.
  bool makesSums() const { return isSoftmax() && !sumsFrom; }
  /// The reference of a row of one head: its scores become `2^(exponent - reference)`.
  Value loadReference(KernelBuilder &k, ValueRange place) const;
  bool isMax() const { return op.getReduce() == Reduction::max; }

  /// The number (i32) that a sequence of the part has among all.
  Value getBatchNumber(KernelBuilder &k, Value batch) const;
  /// The blocks that stand for one entry of a list of `within`.
  int64_t blocksPerEntry() const { return op.getWithin().getType().getKeyBlock() / blocks.getSize(); }
  /// The row of `within` (index) that list number `list` is.
  Value getListRow(KernelBuilder &k, Value list) const;
  /// The number (i32) of the block that a column (index) stands for; `none`, greater than all, where there is none. `list` is a row of
  /// `within`.
  Value getBlock(KernelBuilder &k, Value batch, Value cell, Value list, Value column) const;
  static constexpr int64_t none = std::numeric_limits<int32_t>::max();

  /// The score that `product` leads to, before any softmax; all of one shape.
  struct Terms {
    llvm::function_ref<Value()> scale, weight;                     // f32
    llvm::function_ref<Value()> batch, head, position, block;      // i32
  };
  /// Without `scales` those of keys are left out; `region` stands for the op's.
  Value getScore(const ScoreShape &shape, Value product, ArrayRef<Value> captured, const Terms &terms, Region &region, bool scales = true) const;
  Value getScore(const ScoreShape &shape, Value product, ArrayRef<Value> captured, const Terms &terms) const {
    return getScore(shape, product, captured, terms, op.getScore());
  }

  HostFunction &host;
  /// The columns of a row of scores, on the host and in a kernel.
  Value getColumns(Emitter &e) const;
  Value getColumns(KernelBuilder &k) const;

  mutable RouteOp op; // its accessors are not const
  RowPart part;
  Value maxBatches, maxRows; // of the largest part
  BlocksAttr blocks;
  MaskAttr mask; // may be null
  int64_t dim, heads, keyHeads, cells, group, queryBlock;
  int64_t rowsPerList = 0; // rows of scores that share a list; 0: all do
  double scale;
  SparseAttendOp sumsFrom; // null where a softmax makes its own
  SmallVector<Value> arguments; // of all kernels, on the host

private:
  Value getSharedLse();

  SmallVector<int> numbers;
  SmallVector<Value> captured;
  unsigned firstCaptured = 0;
};

/// The blocks that a row of scores sees: `begin` .. `end`-1, and those below `sinkEnd`; i32.
struct VisibleBlocks {
  VisibleBlocks() = default;
  VisibleBlocks(KernelBuilder &k, const RouteContext &context, Value row);

  /// Whether block `j` is among them; all of one shape. A null `begin` or `sinkEnd` is 0.
  Value contains(Emitter &e, Value j) const;

  Value begin, end, sinkEnd;
  Value position; // where the row stands
};

constexpr double log2OfE = 1.4426950408889634;

/// `2^x`, of scalars or tiles: the chip's approximation, 0 below 2^-126.
Value exp2(Emitter &e, Value x);

/// Maximum of exponents and sum of `2^(exponent - maximum)` of a row, of two parts of it together; scalars.
SmallVector<Value> joinSums(Emitter &e, ValueRange a, ValueRange b);

/// The logarithm of a row's sum, from maximum and sum of powers of 2; -inf where there is nothing.
Value getLse(Emitter &e, Value max, Value sum);

/// Makes the kernels on tensor cores; false if they do not take the op. Where warps have roles (RouteRoles) these make what they can.
bool buildRouteTiles(RouteContext &context, TargetAttr target);
/// Makes the kernels on CUDA cores.
void buildRouteRows(RouteContext &context);

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_ROUTE_H
