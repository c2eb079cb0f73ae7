//===- GlueLinalg.cpp - Structured ops ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A thread makes an element of the results: it goes through the reductions, if any, in order.
//
//===----------------------------------------------------------------------===//

#include "ElementKernel.h"
#include "Glue.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::ssa;

namespace {

/// Where an index may lie; inclusive.
struct IndexRange {
  Value low, high;
};

class StructuredConversion {
public:
  StructuredConversion(HostFunction &host, linalg::LinalgOp op)
      : host(host), op(op), e(host.builder, op->getLoc()), captures(host) {}

  LogicalResult prepare();
  void requireSizes();
  void allocateResults();
  void build();

  SmallVector<Value> results;

private:
  LogicalResult check();
  LogicalResult findSizes();
  bool isRead(OpOperand &operand) {
    return isa<ShapedType>(operand.get().getType()) && !op.getMatchingBlockArgument(&operand).use_empty();
  }
  SmallVector<Value> getIndices(ElementKernel &k, OpOperand &operand, ArrayRef<Value> loops);
  Value loadOperand(ElementKernel &k, OpOperand &operand, ArrayRef<Value> loops);
  SmallVector<Value> buildLoops(ElementKernel &k, ArrayRef<unsigned> reductions, SmallVector<Value> &loops,
                                ValueRange carried);

  HostFunction &host;
  linalg::LinalgOp op;
  Emitter e;
  Captures captures;
  SmallVector<Value> sizes;                              // of the loops, on the host
  SmallVector<std::pair<unsigned, unsigned>> sizeOwners; // the operands and dimensions that they are taken from
  // The kernel's arguments: results, operands that are read, sizes of loops, captures.
  SmallVector<Value> arguments;
  DenseMap<OpOperand *, unsigned> argumentOf;
  unsigned firstSize = 0;
  IRMapping captured;
};

} // namespace

/// Sums of loops times constants are what is understood of maps.
static bool isAffineSum(AffineExpr expr) {
  if (isa<AffineDimExpr, AffineConstantExpr>(expr))
    return true;
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary || (binary.getKind() != AffineExprKind::Add && binary.getKind() != AffineExprKind::Mul))
    return false;
  return isAffineSum(binary.getLHS()) && isAffineSum(binary.getRHS()) &&
         (binary.getKind() == AffineExprKind::Add || isa<AffineConstantExpr>(binary.getRHS()));
}

static Value evaluate(Emitter &e, AffineExpr expr, ArrayRef<Value> loops) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return loops[dim.getPosition()];
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return e.index(constant.getValue());
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Value a = evaluate(e, binary.getLHS(), loops), b = evaluate(e, binary.getRHS(), loops);
  return binary.getKind() == AffineExprKind::Add ? e.add(a, b) : e.mul(a, b);
}

static IndexRange getRange(Emitter &e, AffineExpr expr, ArrayRef<Value> sizes) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return {e.index(0), e.sub(sizes[dim.getPosition()], e.index(1))};
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return {e.index(constant.getValue()), e.index(constant.getValue())};
  auto binary = cast<AffineBinaryOpExpr>(expr);
  IndexRange a = getRange(e, binary.getLHS(), sizes), b = getRange(e, binary.getRHS(), sizes);
  if (binary.getKind() == AffineExprKind::Add)
    return {e.add(a.low, b.low), e.add(a.high, b.high)};
  bool isNegative = cast<AffineConstantExpr>(binary.getRHS()).getValue() < 0;
  return {e.mul(isNegative ? a.high : a.low, b.low), e.mul(isNegative ? a.low : a.high, b.low)};
}

LogicalResult StructuredConversion::check() {
  auto refuse = [&](const Twine &what) { return op->emitOpError("cannot be launched: " + what); };
  if (!op.hasPureTensorSemantics())
    return refuse("its operands must be tensors");
  if (op.getNumParallelLoops() + op.getNumReductionLoops() != op.getNumLoops())
    return refuse("its loops must be parallel or reductions");
  for (OpOperand &operand : op->getOpOperands())
    if (!llvm::all_of(op.getMatchingIndexingMap(&operand).getResults(), isAffineSum))
      return refuse("indices must be sums of loops, times constants");
  for (OpOperand &init : op.getDpsInitsMutable()) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    auto isParallel = [&](AffineExpr expr) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      return dim && op.getIteratorTypesArray()[dim.getPosition()] == utils::IteratorType::parallel;
    };
    if (!map.isProjectedPermutation() || map.getNumResults() != op.getNumParallelLoops() ||
        !llvm::all_of(map.getResults(), isParallel))
      return refuse("every parallel loop must be one dimension of every result");
  }
  return checkRegion(op->getRegion(0));
}

/// A loop is as long as a dimension that it alone goes along.
LogicalResult StructuredConversion::findSizes() {
  sizes.resize(op.getNumLoops());
  sizeOwners.resize(op.getNumLoops());
  for (OpOperand &operand : op->getOpOperands())
    for (auto [i, expr] : llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr); dim && !sizes[dim.getPosition()]) {
        sizes[dim.getPosition()] = e.dim(host.getBuffer(operand.get()), i);
        sizeOwners[dim.getPosition()] = {operand.getOperandNumber(), i};
      }
  if (llvm::is_contained(sizes, Value()))
    return op->emitOpError("cannot be launched: it has a loop that is no dimension of an operand");
  return success();
}

void StructuredConversion::requireSizes() {
  Value isEmpty = e.bit(false);
  for (Value size : sizes)
    isEmpty = e.either(isEmpty, e.eq(size, e.index(0)));
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<ShapedType>(operand.get().getType()))
      continue;
    for (auto [i, expr] : llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults())) {
      Value size = e.dim(host.getBuffer(operand.get()), i);
      std::string where = ("dimension " + Twine(i) + " of operand " + Twine(operand.getOperandNumber())).str();
      if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
        if (sizeOwners[dim.getPosition()] != std::make_pair(operand.getOperandNumber(), unsigned(i)))
          host.require(op, e.eq(size, sizes[dim.getPosition()]),
                       "expected " + where + " to be as long as others of loop " + Twine(dim.getPosition()));
        continue;
      }
      IndexRange range = getRange(e, expr, sizes);
      Value fits = e.both(e.ge(range.low, e.index(0)), e.lt(range.high, size));
      host.require(op, e.either(isEmpty, fits), "expected all indices along " + where + " to lie within it");
    }
  }
}

void StructuredConversion::allocateResults() {
  for (auto [result, init] : llvm::zip_equal(op->getResults(), op.getDpsInits())) {
    Value buffer = host.getBuffer(init);
    auto type = cast<MemRefType>(buffer.getType());
    SmallVector<OpFoldResult> dims;
    for (int64_t i = 0; i < type.getRank(); ++i)
      dims.push_back(type.isDynamicDim(i) ? OpFoldResult(e.dim(buffer, i))
                                          : host.builder.getIndexAttr(type.getDimSize(i)));
    results.push_back(host.allocateWorkspace(op->getLoc(), dims, type.getElementType()));
    host.setBuffer(result, results.back());
  }
}

SmallVector<Value> StructuredConversion::getIndices(ElementKernel &k, OpOperand &operand, ArrayRef<Value> loops) {
  return llvm::map_to_vector(op.getMatchingIndexingMap(&operand).getResults(),
                             [&](AffineExpr expr) { return evaluate(k, expr, loops); });
}

Value StructuredConversion::loadOperand(ElementKernel &k, OpOperand &operand, ArrayRef<Value> loops) {
  if (!isa<ShapedType>(operand.get().getType()))
    return captured.lookup(operand.get());
  return k.load(k.getArgument(argumentOf.lookup(&operand)), getIndices(k, operand, loops));
}

/// The loops `reductions`, and inside of them the region; what the results have become.
SmallVector<Value> StructuredConversion::buildLoops(ElementKernel &k, ArrayRef<unsigned> reductions,
                                                    SmallVector<Value> &loops, ValueRange carried) {
  if (!reductions.empty()) {
    Value size = k.getArgument(firstSize + reductions.front());
    return k.loop(k.index(0), size, k.index(1), carried, [&](Value i, ValueRange inner) {
      loops[reductions.front()] = i;
      return buildLoops(k, reductions.drop_front(), loops, inner);
    });
  }
  IRMapping mapping = captured;
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(&operand);
    if (argument.use_empty())
      continue;
    bool isInit = op.isDpsInit(&operand);
    mapping.map(argument,
                isInit ? carried[argument.getArgNumber() - op.getNumDpsInputs()] : loadOperand(k, operand, loops));
  }
  return inlineRegion(k, op->getRegion(0), mapping, loops);
}

void StructuredConversion::build() {
  arguments = results;
  for (OpOperand &operand : op->getOpOperands())
    if (isRead(operand)) {
      argumentOf[&operand] = arguments.size();
      arguments.push_back(host.getBuffer(operand.get()));
    }
  firstSize = arguments.size();
  arguments.append(sizes);
  unsigned firstCapture = arguments.size();
  llvm::append_range(arguments, captures.getArguments());

  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  ElementKernel k(host, op, ("ssa_" + op->getName().stripDialect()).str(), arguments, results.front());
  k.build([&](ArrayRef<Value> indices) {
    captured.clear();
    captures.map(k, firstCapture, captured);
    SmallVector<Value> loops(op.getNumLoops()), carried;
    MutableArrayRef<OpOperand> inits = op.getDpsInitsMutable();
    for (auto [expr, i] : llvm::zip_equal(op.getMatchingIndexingMap(&inits.front()).getResults(), indices))
      loops[cast<AffineDimExpr>(expr).getPosition()] = i;
    for (OpOperand &init : inits) {
      auto zero = cast<TypedAttr>(k.builder.getZeroAttr(getElementTypeOrSelf(init.get())));
      carried.push_back(isRead(init) ? loadOperand(k, init, loops)
                                     : arith::ConstantOp::create(k.builder, k.loc, zero).getResult());
    }
    SmallVector<Value> made = buildLoops(k, reductions, loops, carried);
    for (auto [i, value] : llvm::enumerate(made))
      k.store(value, k.getArgument(i), getIndices(k, inits[i], loops));
  });
}

LogicalResult StructuredConversion::prepare() {
  if (failed(check()) || failed(captures.addRegions(op)))
    return failure();
  for (Value input : op.getDpsInputs())
    if (!isa<ShapedType>(input.getType()) && failed(captures.add(op, input)))
      return failure();
  return findSizes();
}

LogicalResult ssa::convertStructuredOp(HostFunction &host, linalg::LinalgOp op) {
  StructuredConversion conversion(host, op);
  if (failed(conversion.prepare()))
    return failure();
  conversion.requireSizes();
  conversion.allocateResults();
  conversion.build();
  return success();
}

LogicalResult ssa::requireStructuredSizes(HostFunction &host, linalg::LinalgOp op) {
  StructuredConversion conversion(host, op);
  if (failed(conversion.prepare()))
    return failure();
  conversion.requireSizes();
  return success();
}

LogicalResult ssa::buildStructuredOp(HostFunction &host, linalg::LinalgOp op, Value result) {
  StructuredConversion conversion(host, op);
  if (failed(conversion.prepare()))
    return failure();
  conversion.results.push_back(result);
  conversion.build();
  return success();
}
