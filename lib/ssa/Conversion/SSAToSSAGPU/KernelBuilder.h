//===- KernelBuilder.h - Kernels and their launches -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A conversion pattern makes one kernel or a few out of an op: it allocates the results in the host function, then builds
// kernels whose bodies see what it passes them. Host and device sides are built together, so that an argument cannot be
// passed in one order and read in another.
//
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CONVERSION_SSATOSSAGPU_KERNELBUILDER_H
#define SSA_LIB_CONVERSION_SSATOSSAGPU_KERNELBUILDER_H

#include "ssa/IR/SSA.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Transforms/DialectConversion.h"
#include <functional>

namespace mlir::ssa {

/// The memref that stands for a tensor or selection: any strides and offset, innermost stride 1.
MemRefType getBufferType(ShapedType type);

/// Integer and floating point arithmetic on one location, for code that reads like what it computes. Integers are
/// `index` (64 bits on the device) unless the operand is of another type.
class Emitter {
public:
  Emitter(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  Value index(int64_t c);
  Value i32(int64_t c);
  Value f32(double c);
  Value f64(double c);
  Value bit(bool c); // i1
  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value div(Value a, Value b); // of non-negative numbers, downwards
  Value rem(Value a, Value b);
  Value ceilDiv(Value a, Value b);
  /// `number % count`, and leaves `number / count`: how the number of an item, or of a row, is taken apart. 32 bits hold both, as each number stands for
  /// some memory; a division of 64 bits is a branch and ten instructions more.
  Value split(Value &number, Value count);
  Value min(Value a, Value b); // signed
  Value max(Value a, Value b);
  Value fmul(Value a, Value b);
  Value fadd(Value a, Value b);
  Value fsub(Value a, Value b);
  Value fdiv(Value a, Value b);
  Value select(Value c, Value a, Value b);
  Value both(Value a, Value b);
  Value either(Value a, Value b);
  Value lt(Value a, Value b); // signed
  Value le(Value a, Value b);
  Value ge(Value a, Value b);
  Value eq(Value a, Value b);
  Value ne(Value a, Value b);
  Value ult(Value a, Value b); // unsigned
  Value ule(Value a, Value b);
  Value ugt(Value a, Value b);
  Value uge(Value a, Value b);
  Value umin(Value a, Value b);
  Value umax(Value a, Value b);
  Value bitXor(Value a, Value b);
  Value shiftLeft(Value a, Value b);
  Value shiftRight(Value a, Value b); // filling with zeros
  Value popCount(Value v);
  Value countLeadingZeros(Value v);
  Value countTrailingZeros(Value v);
  /// The same bits as another type.
  Value bitcast(Value v, Type type);
  Value toIndex(Value i32);
  Value toI32(Value index);
  /// To f32, element by element of a vector.
  Value extend(Value v);
  /// To another float type, rounded to nearest even, element by element of a vector.
  Value round(Value v, Type elementType);
  Value dim(Value memref, int64_t i);

  Value load(Value memref, ValueRange at);
  void store(Value value, Value memref, ValueRange at);
  /// `width` elements that follow one another from `at` on, in one access: a buffer's address there is a multiple of its size.
  Value loadVector(Value memref, ValueRange at, int64_t width);
  /// The same of global memory that is read once: the cache of a multiprocessor keeps nothing of it.
  Value loadVectorOnce(Value memref, ValueRange at, int64_t width);
  void storeVector(Value vector, Value memref, ValueRange at);
  /// A scalar, `width` times.
  Value broadcast(Value scalar, int64_t width);
  /// Adds to an element; what stood there before.
  Value atomicAdd(Value value, Value memref, ValueRange at);
  Value atomicOr(Value value, Value memref, ValueRange at);

  /// `for (i = begin; i < end; i += step)`, carrying values.
  SmallVector<Value> loop(Value begin, Value end, Value step, ValueRange inits,
                          llvm::function_ref<SmallVector<Value>(Value i, ValueRange carried)> body);
  void loop(Value begin, Value end, Value step, llvm::function_ref<void(Value i)> body);
  void ifThen(Value condition, llvm::function_ref<void()> then);
  void ifThenElse(Value condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise);
  /// `while (condition(carried)) carried = body(carried);`
  SmallVector<Value> loopWhile(ValueRange inits, llvm::function_ref<Value(ValueRange carried)> condition,
                               llvm::function_ref<SmallVector<Value>(ValueRange carried)> body);
  /// The same where each run says whether there is another; `between` comes before another one.
  SmallVector<Value> repeatWhile(ValueRange inits, llvm::function_ref<std::pair<Value, SmallVector<Value>>(ValueRange carried)> body,
                                 llvm::function_ref<SmallVector<Value>(ValueRange carried)> between = nullptr);
  /// A bit for every lane of the warp where `condition` holds; all lanes are there.
  Value ballot(Value condition);
  SmallVector<Value> ifElse(Value condition, TypeRange types, llvm::function_ref<SmallVector<Value>()> then,
                            llvm::function_ref<SmallVector<Value>()> otherwise);

  OpBuilder &builder;
  Location loc;
};

/// One kernel and its launch.
class KernelBuilder : public Emitter {
public:
  /// `arguments` are host values (buffers and scalars); `getArgument(i)` is what the kernel sees of them. `name` is made
  /// unique. The insertion point of `device` is the kernel's body, that of `host` stays in the host function.
  KernelBuilder(OpBuilder &host, Operation *op, StringRef name, int64_t threads, ValueRange arguments);

  /// What the body does with buffer `i`, where its ops do not show it; all places that it touches are multiples of `bytes`. To be said once
  /// all arguments are there.
  void setAligned(unsigned i, int64_t bytes);
  void setReadOnly(unsigned i, int64_t bytes);
  void setWriteOnly(unsigned i, int64_t bytes);

  Value getArgument(unsigned i) { return function.getArgument(i); }
  unsigned getNumArguments() { return function.getNumArguments(); }

  /// Lets the assembler use all registers with which so many blocks fit a multiprocessor. Without a word it takes fewer and spills.
  void setBlocksPerSM(int64_t blocks);
  /// Blocks work in pairs, an item each.
  void setPairs();
  Value threadId();

  /// Which of the two blocks of a pair this is, an index.
  Value rankInPair();

  /// The most blocks of a grid along x.
  static constexpr int64_t maxGrid = std::numeric_limits<int32_t>::max();

  /// Calls `body(item)` with the kernel's share of the items 0 .. `count`-1, one item per block at a time; `count` is a value of
  /// the host function. There is no limit to the count.
  void forEachItem(Value count, llvm::function_ref<void(Value item)> body);

  /// The two parts of that, for programs that carry something from one item to the next: what the kernel sees of the count, for a grid of at
  /// most so many blocks; and the loop.
  Value addItems(Value count, int64_t maxBlocks);
  SmallVector<Value> forEachItem(Value total, ValueRange inits, llvm::function_ref<SmallVector<Value>(Value item, ValueRange carried)> body);

  /// The item in place of `number`, with which every second round of items is dealt out backwards: so that blocks have about the same to do where
  /// every item is a little shorter than the one before.
  Value backAndForth(Value number, Value total);

  /// A program that some warps of the block run, with registers of their own.
  struct Role {
    int64_t threads, registers;
    llvm::function_ref<void()> program;
  };
  void addRoles(ArrayRef<Role> roles);

  /// Shared memory for `count` elements, at a multiple of 16 bytes.
  Value addShared(Type elementType, int64_t count);

  /// `count` elements from byte `begin` on of the memory whose size is given to `finish`; both are of the kernel.
  Value getDynamicShared(Type elementType, Value begin, Value count);

  /// Ends the kernel and launches it with `sharedBytes` (a host value) of dynamic shared memory.
  void finish(int64_t sharedBytes = 0);
  void finish(Value sharedBytes);

private:
  OpBuilder device;
  OpBuilder &host;
  Operation *op;
  int64_t threads;
  SmallVector<Value> hostArguments;
  gpu::GPUFuncOp function;
  Value blocks; // the grid, a host value
  int64_t blocksPerItem = 1;
};

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_KERNELBUILDER_H
