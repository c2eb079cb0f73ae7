//===- Conversion.h - Ops to kernels ----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CONVERSION_SSATOSSAGPU_CONVERSION_H
#define SSA_LIB_CONVERSION_SSATOSSAGPU_CONVERSION_H

#include "KernelBuilder.h"
#include "ssa/IR/AttendJoin.h"
#include "ssa/IR/SelectChain.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::ssa {

/// A buffer with the name that messages give it.
struct NamedBuffer {
  std::string name;
  Value buffer;
};

/// The function being turned into a host function: which buffer stands for which tensor, and what is required of them before
/// the first launch.
class HostFunction {
public:
  HostFunction(OpBuilder &builder, FunctionOpInterface function, IRMapping &scalars)
      : builder(builder), function(function), scalars(scalars) {}

  /// The buffer of a tensor or selection; a scalar stands for itself.
  Value getBuffer(Value v) const;
  void setBuffer(Value v, Value buffer) { buffers[v] = buffer; }

  /// Sets a buffer of any layout.
  void setView(Value v, Value buffer) { setBuffer(v, castToBuffer(buffer)); }
  /// `buffer` as the type that stands for tensors of its shape.
  Value castToBuffer(Value buffer);

  /// A new buffer for result `number` of `op`, of the size that its operands give; it is set as the result's.
  FailureOr<Value> allocateResult(Operation *op, unsigned number) { return allocateResult(op, number, op->getResult(number)); }
  /// The same for `as`, a result of another op, which has the shape of this one.
  FailureOr<Value> allocateResult(Operation *op, unsigned number, Value as);

  /// A buffer that lives during the call. In a loop over chunks it is allocated before the loop; so its sizes must be there.
  Value allocateWorkspace(Location loc, ArrayRef<OpFoldResult> sizes, Type elementType);

  /// Entries `first .. first + count - 1` of dimension `dim` of a buffer, and all of the others.
  Value getPart(Value buffer, unsigned dim, Value first, Value count);

  /// What a scalar of the source function is in the host function.
  Value getScalar(Value v) const;
  /// Sizes, offsets or strides of the source function in the host function.
  SmallVector<OpFoldResult> getSizes(ArrayRef<OpFoldResult> sizes) const;

  /// Requires that `condition` hold; `message` follows the name of the op.
  void require(Operation *op, Value condition, const Twine &message);

  /// Requires that dimension `i` of both be equal.
  void requireSameDim(Operation *op, const NamedBuffer &a, const NamedBuffer &b, unsigned i);

  /// How many elements at a time a thread may read of rows of `elements` elements: the widest access of up to 16 bytes that
  /// divides the row, in all of `rows`. Arguments of the function are required to be aligned to it, with their strides.
  int64_t getVectorWidth(Operation *op, int64_t elements, ArrayRef<NamedBuffer> rows);

  /// The loop over chunks of rows that launches are being put into; null outside of one. What is required is checked, and memory
  /// allocated, before it.
  Operation *loop = nullptr;
  /// Where several runs of it are under way at a time: how many, and which of them the current one is, values of before the loop and of its body. Each
  /// run has workspace of its own then.
  Value lanes, lane;
  /// While it lives, `builder` stands before the loop, if there is one.
  OpBuilder::InsertionGuard beforeLoop();

  OpBuilder &builder;

private:
  void requireAligned(Operation *op, const NamedBuffer &rows, BlockArgument argument, int64_t width);

  FunctionOpInterface function;
  IRMapping &scalars;
  DenseMap<Value, Value> buffers;
};

/// Memory that several runs of a loop, which are under way at a time, have for themselves.
struct LaneBuffer {
  LaneBuffer() = default;
  /// Of `size` times what `others` say for each of `lanes`.
  LaneBuffer(HostFunction &host, Location loc, Value lanes, Value size, ArrayRef<OpFoldResult> others, Type elementType);
  void select(HostFunction &host, Value lane) { here = host.getPart(all, 0, Emitter(host.builder, lane.getLoc()).mul(lane, size), size); }

  Value getAll() const { return all; }

  Value here; // of the run, once it is selected

private:
  Value all, size;
};

/// The rows that the kernels of a chain work on: all of them, or a chunk, of some sequences from some row on.
class RowPart {
public:
  RowPart() = default;
  RowPart(Value firstBatch, Value batches, Value firstRow, Value rows)
      : firstBatch(firstBatch), batches(batches), firstRow(firstRow), rows(rows) {}

  /// The same where there are `factor` rows for one.
  RowPart scale(Emitter &e, int64_t factor) const;

  /// The part of a buffer: its sequences, and of these the rows (dimension 2).
  Value getRows(HostFunction &host, Value buffer) const;
  Value getBatches(HostFunction &host, Value buffer) const;
  /// The same of lists, one for `rowsPerList` rows, or one for all.
  Value getLists(HostFunction &host, Value buffer, int64_t rowsPerList) const;
  /// The part of memory that holds nothing but a chunk; `all` is shaped as all of it would be.
  Value getScratch(HostFunction &host, Value capacity, Value all) const;
  /// How many queries there are from the part's first on, when a row stands for `queryBlock` of `queries`. They are at the end of
  /// the sequence, so that positions follow from it.
  Value getQueries(Emitter &e, Value queries, int64_t queryBlock) const;
  /// The part's first row.
  Value getFirstRow(Emitter &e) const { return isAll() ? e.index(0) : firstRow; }
  /// The number of the part's first sequence.
  Value getFirstBatch(Emitter &e) const { return isAll() ? e.index(0) : firstBatch; }

private:
  bool isAll() const { return !firstBatch; }
  Value getView(HostFunction &host, Value buffer, Value first, Value count) const;

  Value firstBatch, batches, firstRow, rows; // index, of the host function; null for all
};

/// Where scores go: those of a part, of which the largest one has so many sequences and rows, host values of before a loop.
struct ScoreBuffer {
  Value part, mostBatches, mostRows;
};

// What the ops of a chain require of sizes, and the kernels that they have for a part of their rows.
void requireRouteSizes(HostFunction &host, RouteOp op);
void requireRebinSizes(HostFunction &host, RebinOp op);
void requireTopKSizes(HostFunction &host, TopKOp op);
LogicalResult buildRoute(HostFunction &host, RouteOp op, const ScoreBuffer &scores, const RowPart &part);
void buildRebin(HostFunction &host, RebinOp op, Value input, Value output);
void buildTopK(HostFunction &host, TopKOp op, Value scores, Value selection, const RowPart &part);

struct RouteStream;
class RouteContext;
struct RouteRolePlans;

/// A kernel that scores and selects at once, as `#ssa.fused_select` says.
class RouteSelect {
public:
  /// Nothing if there is no such kernel for the chain.
  static std::optional<RouteSelect> get(HostFunction &host, const SelectChain &chain);

  /// Whether it is used whatever a call's sizes are: then there is no need for the long way.
  bool isAlwaysUsed() const;
  /// On the host: whether it is to be used for all rows; the bytes that it needs of memory for a row.
  Value isUsed() const;
  Value getBytesPerRow() const;
  /// Memory for `rows` rows of `batches` sequences, where it is used.
  void allocate(Value isUsed, Value batches, Value rows);
  LogicalResult build(const RowPart &part, Value selection) const;

private:
  RouteSelect(HostFunction &host, RouteOp route, RebinOp rebin, TopKOp topk, FusedSelectAttr fused)
      : host(&host), route(route), rebin(rebin), topk(topk), fused(fused) {}
  int64_t getSelectorBytes() const;
  std::optional<RouteRolePlans> getPlans(const RouteContext &context) const;
  RouteStream getStream() const;
  Value countTiles(Value query) const;
  /// On the host: into how many parts rows of `query` are split, and how many blocks share the rows of a part.
  std::pair<Value, Value> splitRows(Value query, int64_t keysOfStep) const;

  HostFunction *host;
  mutable RouteOp route; // their accessors are not const
  mutable RebinOp rebin; // may be null
  mutable TopKOp topk;
  FusedSelectAttr fused;
  int64_t tileQueries = 0, blocks = 0;
  Value maxBatches, maxRows, scratch, maxima, lists, partLists;
};

/// Makes the kernels of a `topk` that has chunks, and of all that leads to it.
LogicalResult convertSelectChain(HostFunction &host, const SelectChain &chain);
/// The same for as many rows of lists as `overlap` says at a time, with what `attend` makes for these, several parts being under way at a time. `prepare`
/// is called when there is memory for the lists, before the loop; `attend` is given the most rows that there are, too.
LogicalResult convertOverlapped(HostFunction &host, const SelectChain &chain, OverlapAttr overlap, llvm::function_ref<LogicalResult()> prepare,
                                llvm::function_ref<LogicalResult(const RowPart &part, Value mostRows)> attend);

/// Unites lists that are neighbours, `neighbours` of them (the last may be fewer), in `output`: ascending, padding last.
void buildUnionOfNeighbours(HostFunction &host, Operation *op, Value lists, SelectionType type, int64_t neighbours, Value output);

// Each makes the kernels of one kind of op and sets the buffers of its results.
LogicalResult convertGather(HostFunction &host, GatherOp op);
LogicalResult convertMerge(HostFunction &host, MergeOp op);
LogicalResult convertMix(HostFunction &host, MixOp op);
LogicalResult convertPool(HostFunction &host, PoolOp op);
LogicalResult convertProject(HostFunction &host, ProjectOp op);
LogicalResult convertRebin(HostFunction &host, RebinOp op);
LogicalResult convertRoute(HostFunction &host, RouteOp op);
LogicalResult convertSort(HostFunction &host, SortOp op);
/// The kernel may be one that makes the rows of a `merge` or `mix`. With `overlapped`, what makes its lists is made here, too.
LogicalResult convertSparseAttend(HostFunction &host, SparseAttendOp op, const AttendJoin *join = nullptr, const SelectChain *overlapped = nullptr);
/// Whether `op` can have its lists made for some queries while it attends for others. If not, `reason` follows the name of the op.
LogicalResult checkOverlap(SparseAttendOp op, const SelectChain *chain, llvm::function_ref<void(const Twine &)> reason);
LogicalResult convertToIndices(HostFunction &host, ToIndicesOp op);
LogicalResult convertTopK(HostFunction &host, TopKOp op);
LogicalResult convertUnion(HostFunction &host, UnionOp op);

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_CONVERSION_H
