//===- Route.cpp - route --------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Route.h"
#include "KeySlots.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::ssa;

//===----------------------------------------------------------------------===//
// RouteContext
//===----------------------------------------------------------------------===//

RouteContext::RouteContext(HostFunction &host, RouteOp op)
    : host(host), op(op), blocks(op.getBlocksOrTokens()), mask(op.getMask().value_or(nullptr)),
      dim(op.getQuery().getType().getDimSize(3)), heads(op.getQuery().getType().getDimSize(1)),
      keyHeads(op.getKey().getType().getDimSize(1)), cells(op.getType().getDimSize(1)), group(heads / cells),
      queryBlock(op.getQueryBlock()), sumsFrom(SharedSums::of(op)), numbers(unsigned(RouteArgument::maxima) + 1, -1) {
  std::optional<APFloat> written = op.getScale();
  scale = written ? double(float(written->convertToDouble())) : 1 / std::sqrt(double(dim));
  if (op.getWithin() && op.getWithin().getType().getDimSize(2) != 1)
    rowsPerList = op.getWithin().getType().getQueryBlock() / queryBlock;
}

void RouteContext::addArgument(RouteArgument a, Value v) {
  numbers[unsigned(a)] = int(arguments.size());
  arguments.push_back(v);
}

Value RouteContext::allocatePerRow(llvm::function_ref<Value(Emitter &)> columns) {
  OpBuilder::InsertionGuard guard = host.beforeLoop();
  Emitter e(host.builder, op.getLoc());
  SmallVector<OpFoldResult> sizes = {maxBatches, host.builder.getIndexAttr(heads), maxRows};
  if (columns)
    sizes.push_back(columns(e));
  return host.allocateWorkspace(op.getLoc(), sizes, host.builder.getF32Type());
}

/// Of the same type as one that is made here, so that kernels of scores are the same.
Value RouteContext::getSharedLse() {
  Value lse = part.getRows(host, host.getBuffer(sumsFrom.getLse()));
  SmallVector<int64_t> shape = {ShapedType::kDynamic, heads, ShapedType::kDynamic};
  auto type = MemRefType::Builder(cast<MemRefType>(lse.getType())).setShape(shape);
  return memref::CastOp::create(host.builder, op.getLoc(), MemRefType(type), lse);
}

LogicalResult RouteContext::prepare(const ScoreBuffer &scores, const RowPart &part) {
  this->part = part;
  Emitter e(host.builder, op.getLoc());
  if (scores.mostRows) {
    maxBatches = scores.mostBatches;
    maxRows = scores.mostRows;
  }
  Value query = host.getBuffer(op.getQuery()), key = host.getBuffer(op.getKey());
  Value queries = e.dim(op.getQueries() ? host.getBuffer(op.getQueries()) : query, 2);
  addArgument(RouteArgument::query, part.getRows(host, query));
  addArgument(RouteArgument::key, part.getBatches(host, key));
  if (scores.part)
    addArgument(RouteArgument::scores, scores.part);
  addArgument(RouteArgument::tokens, e.dim(op.getTokens() ? host.getBuffer(op.getTokens()) : key, 2));
  addArgument(RouteArgument::queries, part.getQueries(e, queries, queryBlock));
  if (!op.getScore().empty() && !op.getScore().getArgument(2).use_empty()) // the region wants to know the sequence
    addArgument(RouteArgument::firstBatch, part.getFirstBatch(e));
  if (op.getKeyMax())
    addArgument(RouteArgument::keyMax, part.getBatches(host, host.getBuffer(op.getKeyMax())));
  if (op.getWeights())
    addArgument(RouteArgument::weights, part.getRows(host, host.getBuffer(op.getWeights())));
  if (op.getScales())
    addArgument(RouteArgument::scales, part.getBatches(host, host.getBuffer(op.getScales())));
  if (op.getWithin())
    addArgument(RouteArgument::within, part.getLists(host, host.getBuffer(op.getWithin()), std::max<int64_t>(rowsPerList, 1)));
  if (isSoftmax())
    addArgument(RouteArgument::lse, sumsFrom ? getSharedLse() : allocatePerRow());
  FailureOr<SmallVector<Value>> values = getScoreCaptures(host, op.getScore());
  if (failed(values))
    return failure();
  captured = *values;
  firstCaptured = arguments.size();
  llvm::append_range(arguments, captured);
  return success();
}

void RouteContext::setArgument(RouteArgument a, Value v) {
  if (has(a))
    arguments[numbers[unsigned(a)]] = v;
  else
    addArgument(a, v);
}

void RouteContext::buildApart(llvm::function_ref<void()> build) {
  SmallVector<Value> keptArguments = arguments;
  SmallVector<int> keptNumbers = numbers;
  build();
  arguments = std::move(keptArguments);
  numbers = std::move(keptNumbers);
}

// Without a list every row of keys has a column.
Value RouteContext::getColumns(Emitter &e) const {
  return op.getWithin() ? e.index(op.getWithin().getType().getWidth() * blocksPerEntry()) : e.dim(host.getBuffer(op.getKey()), 2);
}

Value RouteContext::getColumns(KernelBuilder &k) const {
  return op.getWithin() ? k.dim(get(k, RouteArgument::scores), 3) : k.dim(get(k, RouteArgument::key), 2);
}

SmallVector<Value> RouteContext::getCaptured(KernelBuilder &k) const {
  SmallVector<Value> values;
  for (unsigned i = 0; i < captured.size(); ++i)
    values.push_back(k.getArgument(firstCaptured + i));
  return values;
}

Value RouteContext::getBatchNumber(KernelBuilder &k, Value batch) const {
  return k.toI32(has(RouteArgument::firstBatch) ? k.add(batch, get(k, RouteArgument::firstBatch)) : batch);
}

Value RouteContext::getListRow(KernelBuilder &k, Value list) const {
  if (!op.getWithin())
    return list;
  return k.select(k.eq(k.dim(get(k, RouteArgument::within), 2), k.index(1)), k.index(0), list);
}

Value RouteContext::getBlock(KernelBuilder &k, Value batch, Value cell, Value list, Value column) const {
  Value keyRows = k.dim(get(k, RouteArgument::key), 2);
  if (!op.getWithin())
    return k.select(k.lt(column, keyRows), k.toI32(column), k.i32(none));
  Value width = k.index(op.getWithin().getType().getWidth()), perEntry = k.index(blocksPerEntry());
  Value place = k.div(column, perEntry), isPlace = k.lt(place, width);
  Value entry = k.toIndex(k.load(get(k, RouteArgument::within), {batch, cell, list, k.select(isPlace, place, k.index(0))}));
  Value number = k.add(k.mul(entry, perEntry), k.rem(column, perEntry));
  Value exists = k.both(isPlace, k.both(k.ge(entry, k.index(0)), k.lt(number, keyRows)));
  return k.select(exists, k.toI32(number), k.i32(none));
}

Value RouteContext::getScore(const ScoreShape &shape, Value product, ArrayRef<Value> captured, const Terms &terms, Region &region, bool scales) const {
  Emitter &e = shape.e;
  Value x = scale == 1 ? product : e.fmul(product, shape.f32(scale));
  if (op.getScales() && scales)
    x = e.fmul(x, terms.scale());
  auto weight = [&] { return op.getWeights() ? terms.weight() : shape.f32(1); };
  if (region.empty())
    return op.getWeights() ? e.fmul(x, weight()) : x;
  return applyScoreRegion(shape, region, captured, [&](unsigned i) -> Value {
    switch (i) {
    case 0:
      return x;
    case 1:
      return weight();
    case 2:
      return terms.batch();
    case 3:
      return terms.head();
    case 4:
      return terms.position();
    default:
      return terms.block();
    }
  });
}

//===----------------------------------------------------------------------===//
// Visibility
//===----------------------------------------------------------------------===//

/// `floor(x / c) + 1`, or 0 where that is negative.
static Value countUpTo(Emitter &e, Value x, int64_t c) { return e.div(e.max(e.add(x, e.index(c)), e.index(0)), e.index(c)); }

// The arithmetic of Geometry::allowed and Geometry::isVisible, solved for the number of the block.
VisibleBlocks::VisibleBlocks(KernelBuilder &k, const RouteContext &c, Value row) {
  Value tokens = c.get(k, RouteArgument::tokens), queries = c.get(k, RouteArgument::queries);
  Value keyRows = k.dim(c.get(k, RouteArgument::key), 2), zero = k.index(0), one = k.index(1);
  Value shift = k.sub(tokens, queries), block = k.index(c.queryBlock);
  Value first = k.add(k.mul(row, block), shift);
  Value last = k.add(k.sub(k.min(k.mul(k.add(row, one), block), queries), one), shift);
  position = k.toI32(last);
  end = k.toI32(keyRows);
  if (!c.mask)
    return;
  int64_t size = c.blocks.getSize(), stride = c.blocks.getStride(), offset = c.blocks.getOffset(), window = c.mask.getWindow();
  bool causal = c.mask.getCausal();
  auto clamp = [&](Value n) { return k.max(k.min(n, tokens), zero); };
  // Blocks that begin before a token that is not below 0.
  auto beginningBefore = [&](Value token) {
    Value count = k.div(k.add(token, k.index(stride - 1 - offset)), k.index(stride));
    return k.select(k.lt(zero, token), k.min(count, keyRows), zero);
  };
  Value visibleEnd = causal ? clamp(k.add(last, one)) : tokens, windowEnd = visibleEnd;
  Value windowBegin = window ? k.max(k.sub(first, k.index(window - 1)), zero) : Value();
  if (window && !causal)
    windowEnd = clamp(k.add(last, k.index(window)));
  Value blockEnd = beginningBefore(windowEnd);
  if (window) // blocks that do not end before the window begins
    begin = k.toI32(k.min(countUpTo(k, k.sub(windowBegin, k.index(offset + size)), stride), keyRows));
  if (window)
    blockEnd = k.select(k.lt(windowBegin, windowEnd), blockEnd, zero);
  Value sink = c.mask.getSink() ? beginningBefore(k.min(k.index(c.mask.getSink()), visibleEnd)) : Value();
  if (causal && c.op.getVisible() == Visibility::complete) {
    Value complete = countUpTo(k, k.sub(last, k.index(offset + size - 1)), stride);
    blockEnd = k.min(blockEnd, complete);
    if (sink)
      sink = k.min(sink, complete);
  }
  end = k.toI32(blockEnd);
  if (sink)
    sinkEnd = k.toI32(sink);
}

Value VisibleBlocks::contains(Emitter &e, Value j) const {
  Value visible = e.lt(j, end);
  if (begin)
    visible = e.both(visible, e.ge(j, begin));
  return sinkEnd ? e.either(visible, e.lt(j, sinkEnd)) : visible;
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

Value ssa::exp2(Emitter &e, Value x) { return math::Exp2Op::create(e.builder, e.loc, x, arith::FastMathFlags::afn); }

SmallVector<Value> ssa::joinSums(Emitter &e, ValueRange a, ValueRange b) {
  Value max = arith::MaximumFOp::create(e.builder, e.loc, a[0], b[0]), none = e.f32(-std::numeric_limits<double>::infinity());
  // As long as there is nothing, differences are taken from 0: -inf - -inf is NaN.
  Value isNone = arith::CmpFOp::create(e.builder, e.loc, arith::CmpFPredicate::OEQ, max, none);
  Value reference = e.select(isNone, e.f32(0), max);
  auto rescale = [&](Value partMax) { return exp2(e, e.fsub(partMax, reference)); };
  return {max, e.fadd(e.fmul(a[1], rescale(a[0])), e.fmul(b[1], rescale(b[0])))};
}

Value ssa::getLse(Emitter &e, Value max, Value sum) {
  Value isEmpty = arith::CmpFOp::create(e.builder, e.loc, arith::CmpFPredicate::OEQ, sum, e.f32(0));
  Value lse = e.fmul(e.fadd(max, math::Log2Op::create(e.builder, e.loc, sum)), e.f32(1 / log2OfE));
  return e.select(isEmpty, e.f32(-std::numeric_limits<double>::infinity()), lse);
}

Value RouteContext::loadReference(KernelBuilder &k, ValueRange place) const {
  Value lse = k.load(get(k, RouteArgument::lse), place);
  // Scores of a row of nothing but -inf become 0 wherever they are visible.
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Value isEmpty = arith::CmpFOp::create(k.builder, k.loc, arith::CmpFPredicate::OEQ, lse, k.f32(-infinity));
  return k.select(isEmpty, k.f32(infinity), k.fmul(lse, k.f32(log2OfE)));
}

//===----------------------------------------------------------------------===//
// The op
//===----------------------------------------------------------------------===//

void ssa::requireRouteSizes(HostFunction &host, RouteOp op) {
  Emitter e(host.builder, op.getLoc());
  NamedBuffer query{"query", host.getBuffer(op.getQuery())}, key{"key", host.getBuffer(op.getKey())};
  host.requireSameDim(op, key, query, 0);
  auto requireSame = [&](const Twine &name, Value v, const NamedBuffer &like, ArrayRef<unsigned> dims) {
    if (v)
      for (unsigned i : dims)
        host.requireSameDim(op, {name.str(), host.getBuffer(v)}, like, i);
  };
  requireSame("key_max", op.getKeyMax(), key, {0, 2});
  requireSame("weights", op.getWeights(), query, {0, 2});
  requireSame("scales", op.getScales(), key, {0, 2});
  requireSame("queries", op.getQueries(), query, {0});
  requireSame("tokens", op.getTokens(), query, {0});
  requireSame("within", op.getWithin(), query, {0});
  int64_t queryBlock = op.getQueryBlock();
  if (op.getQueries()) {
    Value rows = e.ceilDiv(e.dim(host.getBuffer(op.getQueries()), 2), e.index(queryBlock));
    host.require(op, e.eq(e.dim(query.buffer, 2), rows),
                 "expected dimension 2 of 'query' to be the number of query blocks of 'queries'");
  }
  if (op.getTokens())
    host.require(op, e.le(e.dim(key.buffer, 2), getNumBlocks(e, op.getBlocksOrTokens(), e.dim(host.getBuffer(op.getTokens()), 2))),
                 "expected dimension 2 of 'key' to be at most the number of blocks of 'tokens'");
  if (!op.getWithin())
    return;
  Value lists = e.dim(host.getBuffer(op.getWithin()), 2);
  Value wanted = e.ceilDiv(e.dim(query.buffer, 2), e.index(op.getWithin().getType().getQueryBlock() / queryBlock));
  host.require(op, e.either(e.eq(lists, e.index(1)), e.eq(lists, wanted)),
               "expected dimension 2 of 'within' to be 1 or the number of lists for the rows of 'query'");
}

LogicalResult ssa::buildRoute(HostFunction &host, RouteOp op, const ScoreBuffer &scores, const RowPart &part) {
  TargetAttr target = TargetAttr::of(op);
  if (!target)
    return op.emitOpError("has no target; run 'ssa-attach-target'");
  RouteContext context(host, op);
  if (failed(context.prepare(scores, part)))
    return failure();
  if (!buildRouteTiles(context, target))
    buildRouteRows(context);
  return success();
}

LogicalResult ssa::convertRoute(HostFunction &host, RouteOp op) {
  FailureOr<Value> scores = host.allocateResult(op, 0);
  if (failed(scores))
    return failure();
  requireRouteSizes(host, op);
  Emitter e(host.builder, op.getLoc());
  return buildRoute(host, op, {*scores, e.dim(*scores, 0), e.dim(*scores, 2)}, RowPart());
}
