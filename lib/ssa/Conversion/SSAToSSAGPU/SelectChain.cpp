//===- SelectChain.cpp - Chunks of routing and selecting ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Scores of all rows of a long sequence do not fit in memory. So a loop of the host function launches the kernels of a
// chain for some of the rows at a time, all in the same memory: they see views of what has rows, and take the part for
// the end of a shorter sequence.
//
//===----------------------------------------------------------------------===//

#include "Conversion.h"
#include "Glue.h"
#include "ssa/Conversion/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include <numeric>

using namespace mlir;
using namespace mlir::ssa;

//===----------------------------------------------------------------------===//
// RowPart
//===----------------------------------------------------------------------===//

/// The sizes of a buffer; those that are static are attributes.
static SmallVector<OpFoldResult> getSizes(Emitter &e, Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  SmallVector<OpFoldResult> sizes;
  for (int64_t i = 0; i < type.getRank(); ++i)
    sizes.push_back(type.isDynamicDim(i) ? OpFoldResult(e.dim(buffer, i)) : OpFoldResult(e.builder.getIndexAttr(type.getDimSize(i))));
  return sizes;
}

/// Elements of a buffer from `offsets` on.
static Value getSubView(HostFunction &host, Value buffer, ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes) {
  SmallVector<OpFoldResult> strides(sizes.size(), host.builder.getIndexAttr(1));
  return host.castToBuffer(memref::SubViewOp::create(host.builder, buffer.getLoc(), buffer, offsets, sizes, strides));
}

RowPart RowPart::scale(Emitter &e, int64_t factor) const {
  if (isAll() || factor == 1)
    return *this;
  return RowPart(firstBatch, batches, e.mul(firstRow, e.index(factor)), e.mul(rows, e.index(factor)));
}

/// Some of the sequences of a buffer, and of its rows `count` from `first` on (null: all).
Value RowPart::getView(HostFunction &host, Value buffer, Value first, Value count) const {
  Emitter e(host.builder, buffer.getLoc());
  auto type = cast<MemRefType>(buffer.getType());
  SmallVector<OpFoldResult> offsets(type.getRank(), e.builder.getIndexAttr(0)), sizes = getSizes(e, buffer);
  if (type.getDimSize(0) != 1) {
    offsets[0] = firstBatch;
    sizes[0] = e.min(batches, e.sub(e.dim(buffer, 0), firstBatch));
  }
  if (first && type.getDimSize(2) != 1) {
    offsets[2] = first;
    sizes[2] = count;
  }
  return getSubView(host, buffer, offsets, sizes);
}

Value RowPart::getRows(HostFunction &host, Value buffer) const {
  if (isAll())
    return buffer;
  Emitter e(host.builder, buffer.getLoc());
  return getView(host, buffer, firstRow, e.min(rows, e.sub(e.dim(buffer, 2), firstRow)));
}

Value RowPart::getBatches(HostFunction &host, Value buffer) const { return isAll() ? buffer : getView(host, buffer, Value(), Value()); }

Value RowPart::getLists(HostFunction &host, Value buffer, int64_t rowsPerList) const {
  if (isAll())
    return buffer;
  Emitter e(host.builder, buffer.getLoc());
  Value lists = e.dim(buffer, 2), perList = e.index(rowsPerList), servesAll = e.eq(lists, e.index(1));
  Value first = e.select(servesAll, e.index(0), e.div(firstRow, perList));
  return getView(host, buffer, first, e.min(e.ceilDiv(rows, perList), e.sub(lists, first)));
}

Value RowPart::getScratch(HostFunction &host, Value capacity, Value all) const {
  Emitter e(host.builder, capacity.getLoc());
  SmallVector<OpFoldResult> offsets(4, e.builder.getIndexAttr(0)), sizes = getSizes(e, capacity);
  sizes[0] = e.min(batches, e.sub(e.dim(all, 0), firstBatch));
  sizes[2] = e.min(rows, e.sub(e.dim(all, 2), firstRow));
  return getSubView(host, capacity, offsets, sizes);
}

Value RowPart::getQueries(Emitter &e, Value queries, int64_t queryBlock) const {
  return isAll() ? queries : e.sub(queries, e.mul(firstRow, e.index(queryBlock)));
}

//===----------------------------------------------------------------------===//
// Chains
//===----------------------------------------------------------------------===//

namespace {

/// What a chunk has at most, and how many chunks there are; index.
struct Chunks {
  Value batches, rows;
  Value perBatch, count;
  int64_t lanes = 1; // those that are under way at a time
};

class SelectChainConversion {
public:
  SelectChainConversion(HostFunction &host, const SelectChain &chain)
      : host(host), chain(chain), topk(chain.topk), e(host.builder, topk.getLoc()) {}

  LogicalResult run();
  LogicalResult runOverlapped(OverlapAttr overlap, llvm::function_ref<LogicalResult()> prepare,
                              llvm::function_ref<LogicalResult(const RowPart &part, Value mostRows)> attend);

private:
  LogicalResult allocate();
  void allocateScores(Value batches, Value rows);
  LogicalResult requireSizes();
  Value getBytesPerRow();
  Chunks chooseChunks(Value bytesPerRow);
  LogicalResult buildChunk(const RowPart &part);
  LogicalResult forEachChunk(const Chunks &chunks, llvm::function_ref<LogicalResult(const RowPart &part)> build);
  FailureOr<bool> buildFused();
  LogicalResult buildElementwise(const SelectChain::Link &link, Value scores, Value made);

  HostFunction &host;
  const SelectChain &chain;
  TopKOp topk;
  Emitter e;
  Value selection;
  Value isFused; // i1; null if nothing is
  SmallVector<ScoreBuffer> capacities; // memory for the scores of a chunk, of each link
};

} // namespace

/// Results of links get a shape only: all of their scores never exist.
LogicalResult SelectChainConversion::allocate() {
  for (const SelectChain::Link &link : chain.links) {
    if (auto structured = dyn_cast<linalg::LinalgOp>(link.op)) {
      Value init = host.getBuffer(structured.getDpsInits()[0]);
      Type type = cast<MemRefType>(init.getType()).getElementType();
      host.setBuffer(link.op->getResult(0), host.allocateWorkspace(link.op->getLoc(), getSizes(e, init), type));
    } else if (failed(host.allocateResult(link.op, 0))) {
      return failure();
    }
  }
  FailureOr<Value> result = host.allocateResult(topk, 0);
  if (failed(result))
    return failure();
  selection = *result;
  return success();
}

LogicalResult SelectChainConversion::requireSizes() {
  for (const SelectChain::Link &link : chain.links) {
    if (auto route = dyn_cast<RouteOp>(link.op))
      requireRouteSizes(host, route);
    else if (auto rebin = dyn_cast<RebinOp>(link.op))
      requireRebinSizes(host, rebin);
    else if (failed(requireStructuredSizes(host, cast<linalg::LinalgOp>(link.op))))
      return failure();
  }
  requireTopKSizes(host, topk);
  return success();
}

/// What a row of the selection needs of scores.
Value SelectChainConversion::getBytesPerRow() {
  Value bytesPerRow = e.index(0);
  for (const SelectChain::Link &link : chain.links) {
    Value scores = host.getBuffer(link.op->getResult(0));
    int64_t bytes = cast<MemRefType>(scores.getType()).getElementTypeBitWidth() / 8 * link.rowsPerRow;
    bytesPerRow = e.add(bytesPerRow, e.mul(e.mul(e.dim(scores, 1), e.dim(scores, 3)), e.index(bytes)));
  }
  return bytesPerRow;
}

/// As many rows as fit, of one sequence; of several sequences where all rows of one are fewer.
Chunks SelectChainConversion::chooseChunks(Value bytesPerRow) {
  ChunkAttr chunk = ChunkAttr::of(topk);
  Value one = e.index(1);
  Value fitting = e.div(e.index(chunk.getBytes()), e.max(bytesPerRow, one)), step = e.index(chunk.getRows());
  Value batches = e.dim(selection, 0), rows = e.dim(selection, 2);
  Chunks chunks;
  // Chunks of a sequence are of about one size.
  Value most = e.mul(e.max(e.div(fitting, step), one), step), number = e.ceilDiv(rows, most);
  Value even = e.mul(e.ceilDiv(e.ceilDiv(rows, e.max(number, one)), step), step);
  chunks.rows = e.max(e.min(even, rows), one);
  chunks.batches = e.max(e.min(e.div(fitting, chunks.rows), batches), one);
  chunks.perBatch = e.ceilDiv(rows, chunks.rows);
  chunks.count = e.mul(chunks.perBatch, e.ceilDiv(batches, chunks.batches));
  return chunks;
}

/// Makes scores of scores one by one: both stand for all of them meanwhile.
LogicalResult SelectChainConversion::buildElementwise(const SelectChain::Link &link, Value scores, Value made) {
  auto op = cast<linalg::LinalgOp>(link.op);
  Value init = op.getDpsInits()[0], allScores = host.getBuffer(link.scores), allOfInit = host.getBuffer(init);
  host.setBuffer(link.scores, scores);
  host.setBuffer(init, made);
  LogicalResult result = buildStructuredOp(host, op, made);
  host.setBuffer(link.scores, allScores);
  host.setBuffer(init, allOfInit);
  return result;
}

LogicalResult SelectChainConversion::buildChunk(const RowPart &part) {
  Value scores;
  for (const auto &[link, capacity] : llvm::zip_equal(chain.links, capacities)) {
    RowPart own = part.scale(e, link.rowsPerRow);
    ScoreBuffer made = capacity;
    made.part = own.getScratch(host, capacity.part, host.getBuffer(link.op->getResult(0)));
    LogicalResult result = success();
    if (auto rebin = dyn_cast<RebinOp>(link.op))
      buildRebin(host, rebin, scores, made.part);
    else if (auto route = dyn_cast<RouteOp>(link.op))
      result = buildRoute(host, route, made, own);
    else
      result = buildElementwise(link, scores, made.part);
    if (failed(result))
      return failure();
    scores = made.part;
  }
  buildTopK(host, topk, scores, part.getRows(host, selection), part);
  return success();
}

LogicalResult SelectChainConversion::forEachChunk(const Chunks &chunks, llvm::function_ref<LogicalResult(const RowPart &)> build) {
  auto loop = scf::ForOp::create(host.builder, topk.getLoc(), e.index(0), chunks.count, e.index(1));
  OpBuilder::InsertionGuard guard(host.builder);
  host.builder.setInsertionPointToStart(loop.getBody());
  host.loop = loop;
  Value number = loop.getInductionVar();
  if (chunks.lanes > 1) {
    loop->setAttr(lanesAttrName, host.builder.getI64IntegerAttr(chunks.lanes));
    {
      OpBuilder::InsertionGuard before = host.beforeLoop();
      host.lanes = e.max(e.min(chunks.count, e.index(chunks.lanes)), e.index(1));
    }
    host.lane = e.rem(number, host.lanes);
  }
  RowPart part(e.mul(e.div(number, chunks.perBatch), chunks.batches), chunks.batches, e.mul(e.rem(number, chunks.perBatch), chunks.rows),
               chunks.rows);
  LogicalResult result = build(part);
  host.loop = nullptr;
  host.lanes = host.lane = Value();
  return result;
}

/// One kernel that scores and selects, for rows that are not too long. Whether it does all rows of all calls.
FailureOr<bool> SelectChainConversion::buildFused() {
  if (!FusedSelectAttr::of(topk))
    return false;
  std::optional<RouteSelect> kernel = RouteSelect::get(host, chain);
  if (!kernel) {
    topk.emitRemark("is not scored and selected in one kernel: there is none for these operands");
    return false;
  }
  isFused = kernel->isUsed();
  Chunks chunks = chooseChunks(kernel->getBytesPerRow());
  kernel->allocate(isFused, chunks.batches, chunks.rows);
  chunks.count = e.select(isFused, chunks.count, e.index(0));
  if (failed(forEachChunk(chunks, [&](const RowPart &part) { return kernel->build(part, part.getRows(host, selection)); })))
    return failure();
  return kernel->isAlwaysUsed();
}

LogicalResult SelectChainConversion::run() {
  if (failed(allocate()) || failed(requireSizes()))
    return failure();
  if (topk.getType().getWidth() == 0)
    return success(); // nothing to write
  FailureOr<bool> isDone = buildFused();
  if (failed(isDone) || *isDone)
    return success(succeeded(isDone));
  Chunks chunks = chooseChunks(getBytesPerRow());
  Value batches = chunks.batches;
  if (isFused) {
    batches = e.select(isFused, e.index(0), batches);
    chunks.count = e.select(isFused, e.index(0), chunks.count);
  }
  allocateScores(batches, chunks.rows);
  return forEachChunk(chunks, [&](const RowPart &part) { return buildChunk(part); });
}

/// Memory for the scores of a chunk.
void SelectChainConversion::allocateScores(Value batches, Value rows) {
  OpBuilder::InsertionGuard guard = host.beforeLoop();
  for (const SelectChain::Link &link : chain.links) {
    Value all = host.getBuffer(link.op->getResult(0));
    SmallVector<OpFoldResult> sizes = getSizes(e, all);
    Value rowsOfLink = e.mul(rows, e.index(link.rowsPerRow));
    sizes[0] = batches;
    sizes[2] = rowsOfLink;
    capacities.push_back({host.allocateWorkspace(link.op->getLoc(), sizes, cast<MemRefType>(all.getType()).getElementType()), batches, rowsOfLink});
  }
}

/// Parts have all sequences, and a run is what a part needs from its scores to its outputs.
LogicalResult SelectChainConversion::runOverlapped(OverlapAttr overlap, llvm::function_ref<LogicalResult()> prepare,
                                                   llvm::function_ref<LogicalResult(const RowPart &, Value)> attend) {
  if (failed(allocate()) || failed(requireSizes()) || failed(prepare()))
    return failure();
  Value one = e.index(1), rows = e.dim(selection, 2);
  Chunks chunks;
  chunks.batches = e.dim(selection, 0);
  chunks.rows = e.max(e.min(e.index(overlap.getRows()), rows), one);
  chunks.count = e.ceilDiv(rows, chunks.rows);
  chunks.perBatch = e.max(chunks.count, one);
  chunks.lanes = overlap.getLanes();
  std::optional<RouteSelect> kernel = FusedSelectAttr::of(topk) ? RouteSelect::get(host, chain) : std::nullopt;
  Value isUsed = kernel ? kernel->isUsed() : Value(), batches = kernel ? e.select(isUsed, e.index(0), chunks.batches) : chunks.batches;
  bool isAlwaysUsed = kernel && kernel->isAlwaysUsed();
  return forEachChunk(chunks, [&](const RowPart &part) {
    LogicalResult fused = success(), apart = success();
    if (!isAlwaysUsed)
      allocateScores(batches, chunks.rows);
    if (kernel) {
      {
        OpBuilder::InsertionGuard guard = host.beforeLoop();
        kernel->allocate(isUsed, chunks.batches, chunks.rows);
      }
      auto buildKernel = [&] { fused = kernel->build(part, part.getRows(host, selection)); };
      if (isAlwaysUsed)
        buildKernel();
      else
        e.ifThenElse(isUsed, buildKernel, [&] { apart = buildChunk(part); });
    } else {
      apart = buildChunk(part);
    }
    return success(succeeded(fused) && succeeded(apart) && succeeded(attend(part, chunks.rows)));
  });
}

LogicalResult ssa::checkOverlap(SparseAttendOp op, const SelectChain *chain, llvm::function_ref<void(const Twine &)> reason) {
  auto refuse = [&](const Twine &why) {
    reason("cannot have '" + OverlapAttr::attrName() + "': " + why);
    return failure();
  };
  ScheduleAttr schedule = ScheduleAttr::of(op);
  if (!chain)
    return refuse("its lists are not those of an 'ssa.topk' that selects from scores in chunks");
  if (!op.getSelections().front().hasOneUse())
    return refuse("its lists are read by others, too");
  if (!op.getMask() || !op.getMask()->getCausal())
    return refuse("queries of a part are the last of a sequence under a causal mask only");
  if (!takesTensorCores(op) || !schedule || schedule.getOrder() == LoopOrder::key_outer || schedule.getSplit() > 1 || AgreeingAttr::of(op))
    return refuse("it needs one schedule, on tensor cores, that is not split and whose order is not key_outer, which has a loop of its own");
  if (!ScheduleAttr::getRowsPerList(op))
    return refuse("all queries share one list");
  if (op.getQuery() == op.getKey() || op.getQuery() == op.getValue() || !op.getScore().empty())
    return refuse("its queries are keys as well, or it has a score region");
  int64_t step = std::lcm(schedule.getListsOfTile(op), chain->rowStep), rows = OverlapAttr::of(op).getRows();
  if (rows % step != 0)
    return refuse("expected 'rows' to be a multiple of " + Twine(step) + ", the lists that go together, but got " + Twine(rows));
  return success();
}

LogicalResult ssa::convertOverlapped(HostFunction &host, const SelectChain &chain, OverlapAttr overlap, llvm::function_ref<LogicalResult()> prepare,
                                     llvm::function_ref<LogicalResult(const RowPart &part, Value mostRows)> attend) {
  return SelectChainConversion(host, chain).runOverlapped(overlap, prepare, attend);
}

LogicalResult ssa::convertSelectChain(HostFunction &host, const SelectChain &chain) { return SelectChainConversion(host, chain).run(); }
