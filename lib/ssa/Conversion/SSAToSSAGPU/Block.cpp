//===- Block.cpp - Kernels whose threads work together --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Block.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::ssa;

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
  LLVM::CallIntrinsicOp::create(builder, loc, builder.getStringAttr("llvm.nvvm.bar.warp.sync"), ValueRange{i32(-1)});
}

Value BlockKernel::ballot(Value condition) {
  return LLVM::CallIntrinsicOp::create(builder, loc, builder.getI32Type(), builder.getStringAttr("llvm.nvvm.vote.ballot.sync"),
                                       ValueRange{i32(-1), condition})
      .getResult(0);
}

Value BlockKernel::countBelow(Value mask) {
  Value below = sub(shiftLeft(i32(1), lane()), i32(1));
  return popCount(both(mask, below));
}

Value BlockKernel::shuffle(Value v, Value from) {
  return gpu::ShuffleOp::create(builder, loc, v, from, i32(warpSize), gpu::ShuffleMode::IDX).getShuffleResult();
}

std::pair<Value, Value> BlockKernel::shuffleUp(Value v, int64_t distance, int64_t groupSize) {
  auto op = gpu::ShuffleOp::create(builder, loc, v, i32(distance), i32(groupSize), gpu::ShuffleMode::UP);
  return {op.getShuffleResult(), op.getValid()};
}

Value BlockKernel::warpMax(Value v) {
  return gpu::SubgroupReduceOp::create(builder, loc, v, gpu::AllReduceOperation::MAXUI, /*uniform=*/true);
}

Value BlockKernel::warpSum(Value v) {
  return gpu::SubgroupReduceOp::create(builder, loc, v, gpu::AllReduceOperation::ADD, /*uniform=*/true);
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

BlockKernel::Scan BlockKernel::scan(Value v, Value scratch, int64_t teamSize) {
  int64_t groupSize = std::min(teamSize, warpSize), warps = teamSize / warpSize;
  Value inclusive = v;
  for (int64_t distance = 1; distance < groupSize; distance *= 2) {
    auto [other, exists] = shuffleUp(inclusive, distance, groupSize);
    inclusive = add(inclusive, select(exists, other, i32(0)));
  }
  Value before = sub(inclusive, v);
  if (warps <= 1)
    return {before, shuffle(inclusive, either(lane(), i32(groupSize - 1)))};
  barrier(); // what was read of `scratch` before has been read
  ifThen(eq(lane(), i32(warpSize - 1)), [&] { store(inclusive, scratch, toIndex(warp())); });
  barrier();
  Value own = rem(warp(), i32(warps)), first = sub(warp(), own), total = i32(0);
  for (int64_t w = 0; w < warps; ++w) {
    Value sum = load(scratch, toIndex(add(first, i32(w))));
    before = add(before, select(lt(i32(w), own), sum, i32(0)));
    total = add(total, sum);
  }
  return {before, total};
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

SmallVector<Value> BlockKernel::join(ValueRange values, Value position, int64_t count, int64_t stride, ValueRange scratch,
                                     llvm::function_ref<SmallVector<Value>(ValueRange, ValueRange)> combine) {
  SmallVector<Value> joined(values);
  if (count == 1)
    return joined;
  auto width = [](Value v) {
    auto vector = dyn_cast<VectorType>(v.getType());
    return vector ? vector.getNumElements() : 0;
  };
  auto put = [&] {
    for (auto [v, memory] : llvm::zip_equal(joined, scratch)) {
      if (int64_t w = width(v))
        storeVector(v, memory, toIndex(mul(thread(), i32(w))));
      else
        store(v, memory, threadId());
    }
  };
  auto get = [&](int64_t distance) {
    Value from = add(thread(), i32(distance));
    return llvm::map_to_vector(llvm::zip_equal(joined, scratch), [&](auto pair) {
      auto [v, memory] = pair;
      int64_t w = width(v);
      return w ? loadVector(memory, toIndex(mul(from, i32(w))), w) : load(memory, toIndex(from));
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
