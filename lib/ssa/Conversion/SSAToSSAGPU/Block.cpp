//===- Block.cpp - Kernels whose threads work together --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Block.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::ssa;

/// As the mask of the lanes that take part in what a warp does together.
static constexpr int64_t allLanes = -1;

BlockKernel::BlockKernel(OpBuilder &host, Operation *op, StringRef name, int64_t threads, ValueRange arguments)
    : KernelBuilder(host, op, name, threads, arguments), numThreads(threads) {
  assert(threads % warpSize == 0 && "expected whole warps");
}

Value BlockKernel::thread() { return toI32(threadId()); }
Value BlockKernel::lane() { return rem(thread(), i32(warpSize)); }
Value BlockKernel::warp() { return div(thread(), i32(warpSize)); }

void BlockKernel::barrier() { gpu::BarrierOp::create(builder, loc); }

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

void BlockKernel::warpBarrier() {
  LLVM::CallIntrinsicOp::create(builder, loc, builder.getStringAttr("llvm.nvvm.bar.warp.sync"),
                                ValueRange{i32(allLanes)});
}

Value BlockKernel::anyLane(Value condition) {
  return callWarp(builder.getI1Type(), "llvm.nvvm.vote.any.sync", {i32(allLanes), condition});
}

Value BlockKernel::countBelow(Value mask) {
  Value below = sub(shiftLeft(i32(1), lane()), i32(1));
  return popCount(both(mask, below));
}

Value BlockKernel::shuffle(Value v, Value from) {
  return gpu::ShuffleOp::create(builder, loc, v, from, i32(warpSize), gpu::ShuffleMode::IDX).getShuffleResult();
}

std::pair<Value, Value> BlockKernel::shuffleUp(Value v, int64_t distance, int64_t groupSize) {
  // A width below the warp's would also leave out all lanes past it; so groups are told apart here.
  auto op = gpu::ShuffleOp::create(builder, loc, v, i32(distance), i32(warpSize), gpu::ShuffleMode::UP);
  return {op.getShuffleResult(), le(i32(distance), rem(lane(), i32(groupSize)))};
}

Value BlockKernel::callWarp(Type type, StringRef intrinsic, ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(builder, loc, type, builder.getStringAttr(intrinsic), operands).getResult(0);
}

Value BlockKernel::warpMax(Value v) { return callWarp(v.getType(), "llvm.nvvm.redux.sync.umax", {v, i32(allLanes)}); }
Value BlockKernel::warpMin(Value v) { return callWarp(v.getType(), "llvm.nvvm.redux.sync.umin", {v, i32(allLanes)}); }
Value BlockKernel::warpSum(Value v) { return callWarp(v.getType(), "llvm.nvvm.redux.sync.add", {v, i32(allLanes)}); }

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// The sum up to each lane of the warp. In one piece of assembly what a shuffle found nothing for is not added; LLVM compares and selects in each step.
static Value addUpLanes(OpBuilder &builder, Location loc, Value v) {
  std::string text = "{\n\t.reg .pred exists;\n\t.reg .b32 other;\n\tmov.b32 $0, $1;";
  for (int64_t distance = 1; distance < warpSize; distance *= 2)
    text += "\n\tshfl.sync.up.b32 other|exists, $0, " + std::to_string(distance) + ", 0, -1;\n\t@exists add.s32 $0, $0, other;";
  auto dialect = LLVM::AsmDialectAttr::get(builder.getContext(), LLVM::AsmDialect::AD_ATT);
  auto piece = LLVM::InlineAsmOp::create(builder, loc, v.getType(), v, text + "\n\t}", "=r,r", /*has_side_effects=*/true, /*is_align_stack=*/false,
                                         LLVM::tailcallkind::TailCallKind::None, dialect, ArrayAttr());
  return piece.getResult(0);
}

BlockKernel::Scan BlockKernel::scanWarp(Value v, int64_t groupSize) {
  Value inclusive = groupSize == warpSize ? addUpLanes(builder, loc, v) : v;
  for (int64_t distance = 1; groupSize < warpSize && distance < groupSize; distance *= 2) {
    auto [other, exists] = shuffleUp(inclusive, distance, groupSize);
    inclusive = add(inclusive, select(exists, other, i32(0)));
  }
  return {sub(inclusive, v), shuffle(inclusive, either(lane(), i32(groupSize - 1)))};
}

BlockKernel::Scan BlockKernel::scan(Value v, Value scratch, int64_t teamSize) {
  Scan ofWarp = scanWarp(v, std::min(teamSize, warpSize));
  if (teamSize <= warpSize)
    return ofWarp;
  Scan ofWarps = scanWarps(ofWarp.total, scratch, teamSize);
  return {add(ofWarp.before, ofWarps.before), ofWarps.total};
}

BlockKernel::Scan BlockKernel::scanWarps(Value ofWarp, Value scratch, int64_t teamSize) {
  int64_t warps = teamSize / warpSize;
  barrier(); // what was read of `scratch` before has been read
  ifThen(eq(lane(), i32(0)), [&] { store(ofWarp, scratch, toIndex(warp())); });
  barrier();
  // Every lane has the sum of a warp of the team.
  Value own = rem(warp(), i32(warps)), first = sub(warp(), own);
  Value sum = load(scratch, toIndex(add(first, min(lane(), i32(warps - 1)))));
  auto addUp = [&](Value end) { return warpSum(select(lt(lane(), end), sum, i32(0))); };
  return {addUp(own), addUp(i32(warps))};
}

Value BlockKernel::sum(Value v, Value scratch) {
  auto combine = [&](ValueRange a, ValueRange b) { return SmallVector<Value>{fadd(a[0], b[0])}; };
  Value sum = join(v, thread(), numThreads, 1, scratch, combine)[0];
  ifThen(eq(thread(), i32(0)), [&] { store(sum, scratch, index(0)); });
  barrier();
  return load(scratch, index(0));
}

SmallVector<Value> BlockKernel::addScratch(TypeRange types) {
  return llvm::map_to_vector(types, [&](Type type) {
    auto vector = dyn_cast<VectorType>(type);
    return addShared(getElementTypeOrSelf(type), numThreads * (vector ? vector.getNumElements() : 1));
  });
}

SmallVector<Value> BlockKernel::join(ValueRange values, Value position, int64_t count, int64_t stride,
                                     ValueRange scratch,
                                     llvm::function_ref<SmallVector<Value>(ValueRange, ValueRange)> combine) {
  SmallVector<Value> joined(values);
  if (count == 1)
    return joined;
  // Element e of a thread's vector is at e * threads + thread.
  auto elementsOf = [](Value v) {
    auto vector = dyn_cast<VectorType>(v.getType());
    return vector ? vector.getNumElements() : 1;
  };
  auto at = [&](Value thread, int64_t e) { return toIndex(add(thread, i32(e * numThreads))); };
  auto put = [&] {
    for (auto [v, memory] : llvm::zip_equal(joined, scratch))
      for (int64_t e = 0; e < elementsOf(v); ++e) {
        Value element = isa<VectorType>(v.getType()) ? vector::ExtractOp::create(builder, loc, v, e).getResult() : v;
        store(element, memory, at(thread(), e));
      }
  };
  auto get = [&](int64_t distance) {
    Value from = add(thread(), i32(distance));
    return llvm::map_to_vector(llvm::zip_equal(joined, scratch), [&](auto pair) {
      auto [v, memory] = pair;
      SmallVector<Value> elements;
      for (int64_t e = 0; e < elementsOf(v); ++e)
        elements.push_back(load(memory, at(from, e)));
      return isa<VectorType>(v.getType())
                 ? vector::FromElementsOp::create(builder, loc, v.getType(), elements).getResult()
                 : elements[0];
    });
  };
  barrier();
  put();
  for (int64_t half = count / 2; half > 0; half /= 2) {
    barrier();
    SmallVector<Value> kept = joined;
    joined = ifElse(
        lt(position, i32(half)), ValueRange(joined).getTypes(),
        [&] {
          joined = combine(kept, get(half * stride));
          put();
          return joined;
        },
        [&] { return kept; });
  }
  return joined;
}

void BlockKernel::sort(Value memory, Value begin, int64_t size, Value member, int64_t teamSize, bool isBitonic) {
  // A bitonic network: pairs of numbers `distance` apart are ordered, in the direction of their run of `length`
  // numbers.
  for (int64_t length = isBitonic ? size : 2; length <= size; length *= 2)
    for (int64_t distance = length / 2; distance > 0; distance /= 2) {
      barrier();
      loop(member, i32(size / 2), i32(teamSize), [&](Value pair) {
        // Places with the bit of `distance` clear, and set.
        Value low = rem(pair, i32(distance)), place = add(mul(sub(pair, low), i32(2)), low);
        Value i = toIndex(add(begin, place)), j = toIndex(add(begin, add(place, i32(distance))));
        Value a = load(memory, i), b = load(memory, j), least = umin(a, b), most = umax(a, b);
        Value rises = eq(both(place, i32(length)), i32(0));
        store(select(rises, least, most), memory, i);
        store(select(rises, most, least), memory, j);
      });
    }
  barrier();
}
