//===- SSAToSSAGPU.cpp - convert-ssa-to-ssa-gpu ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Conversion.h"
#include "ElementKernel.h"
#include "Glue.h"
#include "ssa/Conversion/Passes.h"
#include "ssa/IR/SharedSums.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "ssa_gpu/IR/SSAGPU.h"
#include "llvm/ADT/TypeSwitch.h"
#include <numeric>

namespace mlir::ssa {
#define GEN_PASS_DEF_CONVERTSSATOSSAGPUPASS
#include "ssa/Conversion/Passes.h.inc"
} // namespace mlir::ssa

using namespace mlir;
using namespace mlir::ssa;

//===----------------------------------------------------------------------===//
// HostFunction
//===----------------------------------------------------------------------===//

Value HostFunction::getBuffer(Value v) const {
  if (!isa<ShapedType>(v.getType()))
    return v;
  return buffers.lookup(v);
}

Value HostFunction::getScalar(Value v) const { return scalars.lookup(v); }

void HostFunction::require(Operation *op, Value condition, const Twine &message) {
  cf::AssertOp::create(builder, op->getLoc(), condition, ("'" + op->getName().getStringRef() + "' " + message).str());
}

SmallVector<OpFoldResult> HostFunction::getSizes(ArrayRef<OpFoldResult> sizes) const {
  return llvm::map_to_vector(sizes, [&](OpFoldResult size) -> OpFoldResult {
    auto value = dyn_cast<Value>(size);
    return value ? OpFoldResult(getScalar(value)) : size;
  });
}

Value HostFunction::castToBuffer(Value buffer) {
  MemRefType type = getBufferType(cast<ShapedType>(buffer.getType()));
  return buffer.getType() == type ? buffer : memref::CastOp::create(builder, buffer.getLoc(), type, buffer).getResult();
}

OpBuilder::InsertionGuard HostFunction::beforeLoop() {
  OpBuilder::InsertionGuard guard(builder);
  if (loop)
    builder.setInsertionPoint(loop);
  return guard;
}

Value HostFunction::allocateWorkspace(Location loc, ArrayRef<OpFoldResult> sizes, Type elementType) {
  OpBuilder::InsertionGuard guard = beforeLoop();
  if (!lane)
    return castToBuffer(memref::AllocOp::create(builder, loc, sizes, elementType));
  Emitter e(builder, loc);
  SmallVector<OpFoldResult> ofAll(sizes);
  Value first = getValueOrCreateConstantIndexOp(builder, loc, sizes.front());
  ofAll.front() = e.mul(first, lanes);
  Value all = castToBuffer(memref::AllocOp::create(builder, loc, ofAll, elementType));
  builder.setInsertionPointAfterValue(lane);
  return getPart(all, 0, e.mul(lane, first), first);
}

Value HostFunction::getPart(Value buffer, unsigned dim, Value first, Value count) {
  Emitter e(builder, buffer.getLoc());
  auto type = cast<MemRefType>(buffer.getType());
  SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0)), strides(type.getRank(), builder.getIndexAttr(1)), sizes;
  for (int64_t i = 0; i < type.getRank(); ++i)
    sizes.push_back(type.isDynamicDim(i) ? OpFoldResult(e.dim(buffer, i)) : OpFoldResult(builder.getIndexAttr(type.getDimSize(i))));
  offsets[dim] = first;
  sizes[dim] = count;
  return castToBuffer(memref::SubViewOp::create(builder, buffer.getLoc(), buffer, offsets, sizes, strides));
}

LaneBuffer::LaneBuffer(HostFunction &host, Location loc, Value lanes, Value size, ArrayRef<OpFoldResult> others, Type elementType) : size(size) {
  Emitter e(host.builder, loc);
  SmallVector<OpFoldResult> sizes = {e.mul(size, lanes)};
  llvm::append_range(sizes, others);
  all = host.allocateWorkspace(loc, sizes, elementType);
}

FailureOr<Value> HostFunction::allocateResult(Operation *op, unsigned number, Value as) {
  ReifiedRankedShapedTypeDims shapes;
  if (failed(cast<ReifyRankedShapedTypeOpInterface>(op).reifyResultShapes(builder, shapes)))
    return op->emitOpError("has a result whose size is no expression of the sizes of arguments"), failure();
  Value buffer = allocateWorkspace(op->getLoc(), shapes[number], cast<ShapedType>(as.getType()).getElementType());
  setBuffer(as, buffer);
  return buffer;
}

void HostFunction::requireSameDim(Operation *op, const NamedBuffer &a, const NamedBuffer &b, unsigned i) {
  auto typeA = cast<MemRefType>(a.buffer.getType()), typeB = cast<MemRefType>(b.buffer.getType());
  if (a.buffer == b.buffer || (!typeA.isDynamicDim(i) && !typeB.isDynamicDim(i)))
    return; // the verifier has seen static sizes
  Emitter e(builder, op->getLoc());
  require(op, e.eq(e.dim(a.buffer, i), e.dim(b.buffer, i)),
          "expected dimension " + Twine(i) + " of '" + a.name + "' to be dimension " + Twine(i) + " of '" + b.name + "'");
}

static int64_t getElementBytes(Value buffer) { return cast<MemRefType>(buffer.getType()).getElementTypeBitWidth() / 8; }

/// The function's argument that a buffer is a view of, if any, and the elements that its start is known to be a multiple of.
static std::pair<BlockArgument, int64_t> traceBuffer(Value buffer) {
  int64_t multiple = 0; // of any number
  while (Operation *source = buffer.getDefiningOp()) {
    if (auto view = dyn_cast<memref::SubViewOp>(source)) {
      std::optional<int64_t> offset = getConstantIntValue(view.getMixedOffsets().back());
      multiple = std::gcd(multiple, offset.value_or(1));
    } else if (!isa<memref::CastOp, memref::CollapseShapeOp, memref::ExpandShapeOp>(source)) {
      return {BlockArgument(), multiple};
    }
    buffer = source->getOperand(0);
  }
  return {cast<BlockArgument>(buffer), multiple};
}

int64_t HostFunction::getVectorWidth(Operation *op, int64_t elements, ArrayRef<NamedBuffer> rows) {
  OpBuilder::InsertionGuard guard = beforeLoop();
  constexpr int64_t maxBytes = 16;
  int64_t width = maxBytes;
  for (const NamedBuffer &row : rows) {
    int64_t whole = std::gcd(elements, traceBuffer(row.buffer).second);
    width = std::min({width, maxBytes / getElementBytes(row.buffer), whole & -whole});
  }
  for (const NamedBuffer &row : rows)
    if (BlockArgument argument = traceBuffer(row.buffer).first)
      requireAligned(op, row, argument, width);
  return width;
}

/// An address that is a multiple of `width` elements, and strides that keep it so.
void HostFunction::requireAligned(Operation *op, const NamedBuffer &rows, BlockArgument argument, int64_t width) {
  unsigned number = argument.getArgNumber();
  int64_t bytes = width * getElementBytes(rows.buffer);
  StringRef name = LLVM::LLVMDialect::getAlignAttrName();
  auto known = function.getArgAttrOfType<IntegerAttr>(number, name);
  if (!known || known.getInt() < bytes)
    function.setArgAttr(number, name, builder.getI64IntegerAttr(bytes));
  if (width == 1)
    return;
  Emitter e(builder, op->getLoc());
  auto metadata = memref::ExtractStridedMetadataOp::create(builder, op->getLoc(), rows.buffer);
  for (auto [i, stride] : llvm::enumerate(metadata.getStrides().drop_back())) {
    Value isOne = e.le(e.dim(rows.buffer, i), e.index(1)); // its stride means nothing
    require(op, e.either(isOne, e.eq(e.rem(stride, e.index(width)), e.index(0))),
            "expected stride " + Twine(i) + " of '" + rows.name + "' to be a multiple of " + Twine(width) + " elements, " + Twine(bytes) +
                " bytes");
  }
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

/// Turns one function into a host function beside it.
class FunctionConversion {
public:
  explicit FunctionConversion(func::FuncOp source) : source(source), builder(source) {}

  /// Makes the host function and erases the source.
  LogicalResult run();

private:
  func::FuncOp createTarget();
  LogicalResult findChains();
  LogicalResult findJoins();
  LogicalResult findOverlaps();
  LogicalResult checkSharedSums();
  LogicalResult convertOp(Operation *op);
  LogicalResult convertTopK(TopKOp op);
  LogicalResult convertJoin(Operation *op);
  LogicalResult convertAttend(SparseAttendOp op);
  LogicalResult convertGlue(Operation *op);
  LogicalResult convertReturn(func::ReturnOp op);
  void replaceDims();

  func::FuncOp source, target;
  OpBuilder builder;
  std::optional<HostFunction> host;
  IRMapping scalars;
  DenseMap<Operation *, SelectChain> chains; // of each `topk` that has chunks
  DenseMap<Operation *, AttendJoin> joins;   // of each `merge` or `mix` that a kernel of attention does
  DenseSet<Operation *> links;               // what is done with the `topk` that it leads to, or with what joins it
};

} // namespace

func::FuncOp FunctionConversion::createTarget() {
  auto toBuffer = [](Type type) -> Type {
    auto shaped = dyn_cast<ShapedType>(type);
    return shaped ? getBufferType(shaped) : type;
  };
  FunctionType type = source.getFunctionType();
  SmallVector<Type> inputs = llvm::map_to_vector(type.getInputs(), toBuffer);
  SmallVector<Type> results = llvm::map_to_vector(type.getResults(), toBuffer);
  auto function = func::FuncOp::create(builder, source.getLoc(), source.getName(), builder.getFunctionType(inputs, results));
  Block *body = function.addEntryBlock();
  for (auto [from, to] : llvm::zip_equal(source.getArguments(), body->getArguments()))
    to.setLoc(from.getLoc()); // they carry the names that messages give
  return function;
}

LogicalResult FunctionConversion::run() {
  if (!source.getBody().hasOneBlock())
    return source.emitOpError("cannot be launched: it has more than one block");
  if (failed(findChains()) || failed(findJoins()) || failed(findOverlaps()) || failed(checkSharedSums()))
    return failure();
  target = createTarget();
  builder.setInsertionPointToStart(&target.getBody().front());
  host.emplace(builder, cast<FunctionOpInterface>(target.getOperation()), scalars);
  for (auto [from, to] : llvm::zip_equal(source.getArguments(), target.getArguments())) {
    host->setBuffer(from, to);
    scalars.map(from, to);
  }
  for (Operation &op : source.getBody().front()) {
    if (failed(convertOp(&op)))
      return failure();
    replaceDims();
  }
  source.erase();
  return success();
}

/// Sizes of results are first expressed by sizes of tensors: those are sizes of buffers now.
void FunctionConversion::replaceDims() {
  for (Operation &op : llvm::make_early_inc_range(target.getBody().front())) {
    auto dim = dyn_cast<tensor::DimOp>(op);
    if (!dim)
      continue;
    Value tensor = dim.getSource();
    auto indices = tensor.getDefiningOp<ToIndicesOp>();
    bool isScratch = indices && indices->getBlock() == op.getBlock(); // made to ask a selection for its size
    OpBuilder at(dim);
    Value buffer = host->getBuffer(isScratch ? indices.getSelection() : tensor);
    dim.replaceAllUsesWith(memref::DimOp::create(at, dim.getLoc(), buffer, dim.getIndex()).getResult());
    dim.erase();
    if (isScratch && indices->use_empty())
      indices.erase();
  }
}

LogicalResult FunctionConversion::findChains() {
  for (auto op : source.getBody().front().getOps<TopKOp>()) {
    ChunkAttr chunk = ChunkAttr::of(op);
    if (!chunk)
      continue;
    FailureOr<SelectChain> chain = SelectChain::find(op, [&](const Twine &reason) {
      op.emitOpError() << "cannot have '" << ChunkAttr::attrName() << "': " << reason;
    });
    if (failed(chain))
      return failure();
    if (chunk.getRows() % chain->rowStep != 0)
      return op.emitOpError() << "expected 'rows' of '" << ChunkAttr::attrName() << "' to be a multiple of " << chain->rowStep
                              << ", the rows that share a list of 'within', but got " << chunk.getRows();
    for (const SelectChain::Link &link : chain->links)
      links.insert(link.op);
    chains.try_emplace(op, std::move(*chain));
  }
  return success();
}

LogicalResult FunctionConversion::findJoins() {
  for (Operation &op : source.getBody().front()) {
    FusedAttendAttr fused = FusedAttendAttr::of(&op);
    if (!fused)
      continue;
    auto refuse = [&](const Twine &reason) { return op.emitOpError() << "cannot have '" << FusedAttendAttr::attrName() << "': " << reason; };
    FailureOr<AttendJoin> join = AttendJoin::find(&op, fused.getPart(), fused.getWith(), [&](const Twine &reason) { refuse(reason); });
    if (failed(join))
      return failure();
    for (auto [part, attend] : llvm::zip_equal(join->parts, join->attends)) {
      if (!takesTensorCores(attend))
        return refuse("part " + Twine(part) + " is made on CUDA cores");
      links.insert(attend);
    }
    if (failed(join->verifySchedules([&](const Twine &reason) { refuse(reason); })))
      return failure();
    joins.try_emplace(&op, *join);
  }
  return success();
}

/// Sums are there when a route is converted.
LogicalResult FunctionConversion::checkSharedSums() {
  for (auto op : source.getBody().front().getOps<RouteOp>()) {
    if (!op->hasAttr(SharedSums::attrName))
      continue;
    auto refuse = [&](const Twine &reason) { return op.emitOpError() << "cannot have '" << SharedSums::attrName << "': " << reason; };
    if (op.getNormalize() != Normalization::softmax || op.getBound())
      return refuse("it makes no softmax of products");
    std::string why = "no 'ssa.sparse_attend' has the same queries and keys";
    FailureOr<SparseAttendOp> attend = SharedSums::find(op, [&](const Twine &reason) { why = reason.str(); });
    if (failed(attend))
      return refuse(why);
    if (!attend->getOperation()->isBeforeInBlock(op))
      return refuse("'ssa.sparse_attend' with the same sums stands behind it");
  }
  return success();
}

/// A `topk` whose lists are made where they are attended to is done there.
LogicalResult FunctionConversion::findOverlaps() {
  for (auto op : source.getBody().front().getOps<SparseAttendOp>()) {
    if (!OverlapAttr::of(op))
      continue;
    Operation *topk = op.getSelections().empty() ? nullptr : op.getSelections().front().getDefiningOp();
    auto chain = chains.find(topk);
    if (failed(checkOverlap(op, chain == chains.end() ? nullptr : &chain->second, [&](const Twine &reason) { op.emitOpError() << reason; })))
      return failure();
    links.insert(topk);
  }
  return success();
}

LogicalResult FunctionConversion::convertAttend(SparseAttendOp op) {
  if (!OverlapAttr::of(op))
    return convertSparseAttend(*host, op);
  return convertSparseAttend(*host, op, nullptr, &chains.find(op.getSelections().front().getDefiningOp())->second);
}

/// Where a kernel of attention does it, that is made here, as the other parts are there now.
LogicalResult FunctionConversion::convertJoin(Operation *op) {
  if (auto join = joins.find(op); join != joins.end())
    return convertSparseAttend(*host, join->second.attend, &join->second);
  auto merge = dyn_cast<MergeOp>(op);
  return merge ? convertMerge(*host, merge) : convertMix(*host, cast<MixOp>(op));
}

LogicalResult FunctionConversion::convertTopK(TopKOp op) {
  auto chain = chains.find(op);
  return chain == chains.end() ? ssa::convertTopK(*host, op) : convertSelectChain(*host, chain->second);
}

LogicalResult FunctionConversion::convertOp(Operation *op) {
  if (links.contains(op))
    return success();
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](GatherOp o) { return convertGather(*host, o); })
      .Case<MergeOp, MixOp>([&](Operation *o) { return convertJoin(o); })
      .Case([&](PoolOp o) { return convertPool(*host, o); })
      .Case([&](ProjectOp o) { return convertProject(*host, o); })
      .Case([&](RebinOp o) { return convertRebin(*host, o); })
      .Case([&](RouteOp o) { return convertRoute(*host, o); })
      .Case([&](SortOp o) { return convertSort(*host, o); })
      .Case([&](SparseAttendOp o) { return convertAttend(o); })
      .Case([&](ToIndicesOp o) { return convertToIndices(*host, o); })
      .Case([&](TopKOp o) { return convertTopK(o); })
      .Case([&](UnionOp o) { return convertUnion(*host, o); })
      .Case([&](FromIndicesOp o) {
        host->setBuffer(o.getSelection(), host->getBuffer(o.getIndices()));
        return success();
      })
      .Case([&](func::ReturnOp o) { return convertReturn(o); })
      .Default([&](Operation *o) -> LogicalResult {
        if (isa<SSADialect>(o->getDialect()))
          return o->emitOpError("has no kernel yet");
        return convertGlue(o);
      });
}

LogicalResult FunctionConversion::convertGlue(Operation *op) {
  Location loc = op->getLoc();
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](tensor::DimOp dim) {
        Value index = scalars.lookup(dim.getIndex());
        scalars.map(dim.getResult(), memref::DimOp::create(builder, loc, host->getBuffer(dim.getSource()), index).getResult());
        return success();
      })
      .Case([&](tensor::EmptyOp empty) {
        host->setBuffer(empty, host->allocateWorkspace(loc, host->getSizes(empty.getMixedSizes()), empty.getType().getElementType()));
        return success();
      })
      .Case([&](tensor::CastOp cast) {
        MemRefType type = getBufferType(llvm::cast<ShapedType>(cast.getType()));
        host->setBuffer(cast, memref::CastOp::create(builder, loc, type, host->getBuffer(cast.getSource())));
        return success();
      })
      .Case([&](cf::AssertOp check) {
        builder.clone(*check, scalars);
        return success();
      })
      .Default([&](Operation *other) -> LogicalResult {
        auto isScalar = [](Type type) { return !isa<ShapedType>(type); };
        bool isOfScalars = llvm::all_of(other->getOperandTypes(), isScalar) && llvm::all_of(other->getResultTypes(), isScalar);
        if (!isOfScalars || !isa<arith::ArithDialect, math::MathDialect>(other->getDialect()))
          return convertTensorOp(*host, other);
        builder.clone(*other, scalars);
        return success();
      });
}

/// Results are memory of their own: what is an argument, a view or another result is copied.
LogicalResult FunctionConversion::convertReturn(func::ReturnOp op) {
  SmallVector<Value> results;
  for (auto [i, value] : llvm::enumerate(op.getOperands())) {
    if (!isa<ShapedType>(value.getType()))
      return op.emitOpError("cannot be launched: result ") << i << " is a scalar; only tensors are computed by kernels";
    Value buffer = host->getBuffer(value), allocation = buffer;
    if (auto cast = buffer.getDefiningOp<memref::CastOp>())
      allocation = cast.getSource();
    bool isOwn = allocation.getDefiningOp<memref::AllocOp>() && !llvm::is_contained(results, buffer);
    results.push_back(isOwn ? buffer : copyBuffer(*host, op, buffer));
  }
  func::ReturnOp::create(builder, op.getLoc(), results);
  return success();
}

namespace {
struct ConvertSSAToSSAGPU : ssa::impl::ConvertSSAToSSAGPUPassBase<ConvertSSAToSSAGPU> {
  void runOnOperation() override {
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      auto isMemRef = [](Type type) { return isa<MemRefType>(type); };
      bool isHost = llvm::any_of(function.getArgumentTypes(), isMemRef) || llvm::any_of(function.getResultTypes(), isMemRef);
      if (function.isExternal() || function.isPrivate() || isHost)
        continue;
      if (failed(FunctionConversion(function).run()))
        return signalPassFailure();
    }
  }
};
} // namespace
