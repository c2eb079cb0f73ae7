//===- Project.cpp - project ----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// On tensor cores an item is a tile of rows and a tile of columns of one head; both operands pass by in steps of the inner
// dimension. With `tcgen05` the sums are in tensor memory. On CUDA cores, for f32, mixed types and rows of odd length, a thread computes one value.
//
//===----------------------------------------------------------------------===//

#include "Conversion.h"
#include "KeySlots.h"
#include "TileEmitter.h"
#include "ssa/IR/Geometry.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::ssa;

namespace {

enum Argument { inputArg, weightArg, outputArg };

struct ProjectSizes {
  explicit ProjectSizes(ProjectOp op)
      : inputHeads(op.getInput().getType().getDimSize(1)), weightHeads(op.getWeight().getType().getDimSize(0)),
        heads(std::max(inputHeads, weightHeads)), dim(op.getInput().getType().getDimSize(3)),
        rank(op.getWeight().getType().getDimSize(2)) {}
  int64_t inputHeads, weightHeads, heads, dim, rank;
};

//===----------------------------------------------------------------------===//
// Tensor cores
//===----------------------------------------------------------------------===//

class ProjectTileKernel : public KernelBuilder {
public:
  static constexpr int64_t warps = 4, tileInner = 64, maxColumns = 64, stages = 3;

  ProjectTileKernel(HostFunction &host, ProjectOp op, TargetAttr target, ValueRange arguments, int64_t inputWidth, int64_t weightWidth)
      : KernelBuilder(host.builder, op, "ssa_project", 32 * warps, arguments), host(host), sizes(op),
        usesTensorMemory(target.hasTCGen05()), family(target.hasWGMMA() ? ssa_gpu::Family::wgmma : ssa_gpu::Family::mma_sync),
        tileRows(usesTensorMemory ? ssa_gpu::TensorMemoryType::lanes : 16 * warps), elementType(op.getInput().getType().getElementType()), columnTiles(ssa::ceilDiv(sizes.rank, maxColumns)),
        tileColumns(ssa::ceilDiv(ssa::ceilDiv(sizes.rank, columnTiles), 16) * 16), steps(ssa::ceilDiv(sizes.dim, tileInner)),
        inputWidth(inputWidth), weightWidth(weightWidth) {}

  void build(Value output);

private:
  /// The ticket after those that the item has taken.
  Value buildItem(Value item, Value ticket);
  Value multiply(TileEmitter &t);
  std::pair<Value, Value> multiplyInTensors(TileEmitter &t, Value ticket);
  void beginInTensors(TileEmitter &t, Value step, Value ticket);
  void loadStep(TileEmitter &t, Value step);
  /// Builds `body` for a full part of `count`, or for the last with what is left; `number` says which part it is.
  void forPart(Value number, int64_t parts, int64_t size, int64_t count, llvm::function_ref<void(int64_t size)> body);

  HostFunction &host;
  ProjectSizes sizes;
  bool usesTensorMemory;
  ssa_gpu::Family family; // of products in registers
  int64_t tileRows;
  Type elementType;
  Value productPipe, product; // in tensor memory
  int64_t columnTiles, tileColumns, steps, inputWidth, weightWidth;

  // Of the item.
  Value batch, head, firstRow, columnTile;
  BufferView inputView, weightView;
  Value inputRing, weightRing;
};

} // namespace

void ProjectTileKernel::forPart(Value number, int64_t parts, int64_t size, int64_t count, llvm::function_ref<void(int64_t)> body) {
  int64_t rest = count - (parts - 1) * size;
  if (rest == size)
    return body(size);
  Value last = i32(parts - 1);
  if (parts > 1)
    ifThen(lt(number, last), [&] { body(size); });
  ifThen(eq(number, last), [&] { body(rest); });
}

void ProjectTileKernel::loadStep(TileEmitter &t, Value step) {
  ifThen(lt(step, i32(steps)), [&] {
    Value stage = rem(step, i32(stages)), inner = mul(toIndex(step), index(tileInner));
    Value rows = dim(inputView.buffer, 2), column = mul(toIndex(columnTile), index(tileColumns));
    Value inputHead = sizes.inputHeads == 1 ? index(0) : head, weightHead = sizes.weightHeads == 1 ? index(0) : head;
    forPart(step, steps, tileInner, sizes.dim, [&](int64_t columns) {
      t.copyRows(inputView.buffer, t.slot(inputRing, stage), columns, inputWidth, [&](Value row) -> RowPlace {
        Value n = add(firstRow, toIndex(row));
        return {add(inputView.getBegin(*this, {batch, inputHead, n}), inner), lt(n, rows)};
      });
    });
    forPart(columnTile, columnTiles, tileColumns, sizes.rank, [&](int64_t columns) {
      t.copyRows(weightView.buffer, t.slot(weightRing, stage), columns, weightWidth, [&](Value row) -> RowPlace {
        Value d = add(inner, toIndex(row));
        return {add(weightView.getBegin(*this, {weightHead, d}), column), lt(d, index(sizes.dim))};
      });
    });
  });
  t.commitCopies();
}

/// The sums of a tile, in registers.
Value ProjectTileKernel::multiply(TileEmitter &t) {
  Value zeros = t.constant(t.accumulatorType(tileColumns, builder.getF32Type()), builder.getF32FloatAttr(0));
  return loop(i32(0), i32(steps), i32(1), zeros, [&](Value step, ValueRange carried) -> SmallVector<Value> {
    t.waitCopies(stages - 2);
    loadStep(t, add(step, i32(stages - 1)));
    Value stage = rem(step, i32(stages)), lhs = t.slot(inputRing, stage);
    if (family == ssa_gpu::Family::mma_sync)
      lhs = t.loadOperand(lhs);
    return {t.mma(family, lhs, t.slot(weightRing, stage), /*transposed=*/false, carried[0])};
  })[0];
}

/// Begins the product of a step and waits for its end: then its operands may be overwritten.
void ProjectTileKernel::beginInTensors(TileEmitter &t, Value step, Value ticket) {
  Value stage = rem(step, i32(stages));
  t.acquire(productPipe, ticket);
  t.mmaTensor(t.slot(inputRing, stage), t.slot(weightRing, stage), /*transposed=*/false, product, lt(i32(0), step));
  t.publish(productPipe, ticket, /*afterProducts=*/true);
  t.await(productPipe, ticket);
}

/// The same by `tcgen05`, and the ticket after those that it takes.
std::pair<Value, Value> ProjectTileKernel::multiplyInTensors(TileEmitter &t, Value ticket) {
  auto next = [&](Value ticket) { return bitXor(ticket, i32(1)); }; // of one slot tickets are 0 and 1
  ticket = loop(i32(0), i32(steps - 1), i32(1), ticket, [&](Value step, ValueRange carried) -> SmallVector<Value> {
    t.waitCopies(stages - 2);
    loadStep(t, add(step, i32(stages - 1)));
    beginInTensors(t, step, carried[0]);
    t.release(productPipe, carried[0]);
    return {next(carried[0])};
  })[0];
  t.waitCopies(stages - 2);
  beginInTensors(t, i32(steps - 1), ticket);
  Value sum = t.loadTensor(product, i32(0), tileColumns);
  t.release(productPipe, ticket);
  return {sum, next(ticket)};
}

Value ProjectTileKernel::buildItem(Value item, Value ticket) {
  TileEmitter t(*this, tileRows, /*groups=*/1, /*rowwise=*/usesTensorMemory);
  inputView = BufferView(*this, getArgument(inputArg));
  weightView = BufferView(*this, getArgument(weightArg));
  Value rows = dim(inputView.buffer, 2), rowTiles = ceilDiv(rows, index(tileRows));
  columnTile = toI32(split(item, index(columnTiles)));
  firstRow = mul(split(item, rowTiles), index(tileRows));
  head = split(item, index(sizes.heads));
  batch = item;
  inputRing = t.alloc({stages, tileRows, tileInner}, elementType);
  weightRing = t.alloc({stages, tileInner, tileColumns}, elementType);

  gpu::BarrierOp::create(builder, loc); // tiles of the last item have been read
  for (int64_t s = 0; s + 1 < stages; ++s)
    loadStep(t, i32(s));
  auto [sum, after] = usesTensorMemory ? multiplyInTensors(t, ticket) : std::pair(multiply(t), ticket);
  BufferView outputView(*this, getArgument(outputArg));
  forPart(columnTile, columnTiles, tileColumns, sizes.rank, [&, sum = sum](int64_t columns) {
    Value column = mul(toIndex(columnTile), index(tileColumns));
    t.storeRows(sum, outputView.buffer, columns, columns % 2 == 0 ? 2 : 1, [&](Value row) -> RowPlace {
      Value n = add(firstRow, toIndex(row));
      return {add(outputView.getBegin(*this, {batch, head, n}), column), lt(n, rows)};
    });
  });
  return after;
}

void ProjectTileKernel::build(Value output) {
  Emitter e(host.builder, loc);
  Value tiles = e.mul(e.ceilDiv(e.dim(output, 2), e.index(tileRows)), e.index(columnTiles));
  Value total = addItems(e.mul(e.mul(e.dim(output, 0), e.index(sizes.heads)), tiles), maxGrid);
  SmallVector<Value> tensors;
  if (usesTensorMemory) {
    TileEmitter t(*this, tileRows, /*groups=*/1, /*rowwise=*/true);
    productPipe = t.allocPipe(1, /*producers=*/1, /*consumers=*/warps);
    tensors = t.allocTensors({{{tileRows, tileColumns}, builder.getF32Type()}});
    product = tensors.front();
  }
  forEachItem(total, i32(0), [&](Value item, ValueRange carried) -> SmallVector<Value> { return {buildItem(item, carried[0])}; });
  if (usesTensorMemory)
    TileEmitter(*this, tileRows).freeTensors(tensors);
  finish();
}

//===----------------------------------------------------------------------===//
// CUDA cores
//===----------------------------------------------------------------------===//

/// A value of the output. Long sums are made of shorter ones, so that the error does not grow with the inner dimension.
static Value computeValue(KernelBuilder &k, const ProjectSizes &sizes, Value batch, Value head, Value row, Value column) {
  constexpr int64_t termsOfSum = 64;
  Value input = k.getArgument(inputArg), weight = k.getArgument(weightArg);
  Value inputHead = sizes.inputHeads == 1 ? k.index(0) : head, weightHead = sizes.weightHeads == 1 ? k.index(0) : head;
  auto sumOf = [&](Value begin, Value end) {
    return k.loop(begin, end, k.index(1), k.f32(0), [&](Value d, ValueRange sum) -> SmallVector<Value> {
      Value x = k.extend(k.load(input, {batch, inputHead, row, d})), w = k.extend(k.load(weight, {weightHead, d, column}));
      return {k.fadd(sum[0], k.fmul(x, w))};
    })[0];
  };
  Value end = k.index(sizes.dim);
  if (sizes.dim <= 2 * termsOfSum)
    return sumOf(k.index(0), end);
  return k.loop(k.index(0), end, k.index(termsOfSum), k.f32(0), [&](Value begin, ValueRange sum) -> SmallVector<Value> {
    return {k.fadd(sum[0], sumOf(begin, k.min(end, k.add(begin, k.index(termsOfSum)))))};
  })[0];
}

static void buildProjectRows(HostFunction &host, ProjectOp op, ValueRange arguments) {
  constexpr int64_t threads = 256;
  ProjectSizes sizes(op);
  KernelBuilder k(host.builder, op, "ssa_project", threads, arguments);
  Emitter e(host.builder, op.getLoc());
  // An item is a stretch of the values of one head.
  Value output = arguments[outputArg], tiles = e.ceilDiv(e.mul(e.dim(output, 2), e.index(sizes.rank)), e.index(threads));
  k.forEachItem(e.mul(e.mul(e.dim(output, 0), e.index(sizes.heads)), tiles), [&](Value item) {
    Value perHead = k.mul(k.dim(k.getArgument(outputArg), 2), k.index(sizes.rank)), tilesPerHead = k.ceilDiv(perHead, k.index(threads));
    Value place = k.add(k.mul(k.split(item, tilesPerHead), k.index(threads)), k.threadId());
    Value head = k.split(item, k.index(sizes.heads)), batch = item;
    k.ifThen(k.lt(place, perHead), [&] {
      Value row = k.div(place, k.index(sizes.rank)), column = k.rem(place, k.index(sizes.rank));
      Value value = computeValue(k, sizes, batch, head, row, column);
      k.store(k.round(value, op.getType().getElementType()), k.getArgument(outputArg), {batch, head, row, column});
    });
  });
  k.finish();
}

//===----------------------------------------------------------------------===//
// The op
//===----------------------------------------------------------------------===//

LogicalResult ssa::convertProject(HostFunction &host, ProjectOp op) {
  TargetAttr target = TargetAttr::of(op);
  if (!target)
    return op.emitOpError("has no target; run 'ssa-attach-target'");
  FailureOr<Value> output = host.allocateResult(op, 0);
  if (failed(output))
    return failure();
  ProjectSizes sizes(op);
  Value input = host.getBuffer(op.getInput()), weight = host.getBuffer(op.getWeight());
  SmallVector<Value> arguments = {input, weight, *output};
  Type type = op.getInput().getType().getElementType();
  bool isTileType = type.getIntOrFloatBitWidth() == 16 && op.getWeight().getType().getElementType() == type;
  bool isWide = op.getType().getElementTypeBitWidth() >= 16; // tiles are not written as bytes
  if (isTileType && isWide && sizes.dim % 2 == 0 && sizes.rank % 2 == 0 && target.hasMMASync() && target.hasCpAsync()) {
    int64_t inputWidth = host.getVectorWidth(op, sizes.dim, {{"input", input}});
    int64_t weightWidth = host.getVectorWidth(op, sizes.rank, {{"weight", weight}});
    if (inputWidth > 1 && weightWidth > 1) {
      ProjectTileKernel(host, op, target, arguments, inputWidth, weightWidth).build(*output);
      return success();
    }
  }
  buildProjectRows(host, op, arguments);
  return success();
}
