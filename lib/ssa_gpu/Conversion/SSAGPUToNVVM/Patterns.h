//===- Patterns.h - Tiles to registers --------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_GPU_LIB_CONVERSION_SSAGPUTONVVM_PATTERNS_H
#define SSA_GPU_LIB_CONVERSION_SSAGPUTONVVM_PATTERNS_H

#include "ssa_gpu/IR/SSAGPU.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mlir::ssa_gpu {

/// The name of the kernels' dynamic shared memory.
constexpr llvm::StringLiteral sharedMemoryName = "ssa_shared_memory";

/// Arithmetic in i32 and the places of a thread, for lowering one op.
class ThreadEmitter {
public:
  ThreadEmitter(OpBuilder &builder, Operation *op);

  Value i32(int64_t c);
  Value add(Value a, Value b);
  Value add(Value a, int64_t b) { return b ? add(a, i32(b)) : a; }
  Value sub(Value a, Value b);
  Value mul(Value a, int64_t b);
  Value div(Value a, int64_t b); // unsigned
  Value rem(Value a, int64_t b); // unsigned
  Value bitXor(Value a, Value b);
  Value lt(Value a, int64_t b); // unsigned

  /// The number of this thread in the block or, inside a role, in that.
  Value thread();
  Value lane() { return rem(thread(), 32); }
  Value warp() { return div(thread(), 32); }
  /// The group of warps that this one belongs to, where each has all `rows` rows of a tile.
  Value group(int64_t rows);
  /// This warp's number in its group.
  Value warpInGroup(int64_t rows);
  /// Row number `half` (0 or 1) of the two that a thread has of an accumulator of `rows` rows.
  Value row(unsigned half, int64_t rows);
  /// The same of a tile, of which a thread may have one row.
  Value row(unsigned half, RankedTensorType tile);
  /// The first of the two neighbouring columns that a thread has of columns 8j .. 8j+7 of its group's share.
  Value column(int64_t j);
  /// The same as a column of the whole tile; with `folds` columns 8j .. 8j+7 of the warp's share.
  Value column(int64_t j, RankedTensorType tile);
  /// Of a rowwise tile: the group that this thread is of, and column `j` of the thread's.
  Value groupOfThread(RankedTensorType tile) { return div(thread(), tile.getDimSize(0)); }
  Value columnOfThread(int64_t j, RankedTensorType tile);
  /// A barrier of the block or role, and one of the warps of a group that has `rows` rows of a product.
  void barrier();
  void barrierOfGroup(int64_t rows);

  /// `value` (i32), of which LLVM thinks that it is another every time.
  Value computeHere(Value value);

  /// `value`, equal in all lanes of a warp, read from one lane: then the assembler knows, and keeps what depends on it in uniform registers.
  Value uniform(Value value) { return readLane(value, i32(0)); }
  /// Builds what one thread of the role or block does, always the same one.
  void ifElected(llvm::function_ref<void()> body);

  /// What lane `from` (i32) has of a value of 32 or 64 bits.
  Value readLane(Value value, Value from);
  /// What the lane whose number differs in these bits has of a value of 32 bits.
  Value exchange(Value value, int64_t bits);

  Value extract(Value vector, int64_t i);
  SmallVector<Value> elements(Value vector);
  Value insert(Value scalar, Value vector, int64_t i);
  Value fromElements(ArrayRef<Value> elements);

  /// Inline assembly with side effects; `type` is that of its result, void if it has none.
  Value inlineAsm(Type type, StringRef text, StringRef constraints, ValueRange operands);
  /// The same, and memory is ordered by it; without a type it has no result.
  Value orderingAsm(StringRef text, StringRef constraints, ValueRange operands, Type type = Type());
  /// What the text makes of `values`, which are `$0` ..; the inputs follow them, the first as `$(2 * size of values)`.
  SmallVector<Value> changeByAsm(StringRef text, ArrayRef<Value> values, ValueRange inputs);

  /// Byte `offset` of the kernel's shared memory.
  Value sharedAddress(int64_t offset);
  /// `address` plus bytes, in shared memory.
  Value offset(Value address, Value bytes);
  Value offset(Value address, int64_t bytes);
  /// Where 16 bytes, columns 8*`piece` .. 8*`piece`+7, of row `row` lie in a tile of `rows` rows at `address`; `piece` is relative to a
  /// panel, which is added: `panel` 64 columns.
  Value swizzled(Value address, int64_t rows, int64_t panel, Value row, Value piece);
  /// `address`, in shared memory, with `bits` (i32) of it the other way round. So it moves within 8 rows of a swizzled tile, which begin at
  /// a multiple of 1024: by 16 times a piece or row that has no bit in common with where it was.
  Value flip(Value address, Value bits);
  /// The start of a buffer as an address in global memory.
  Value globalAddress(Value memref);
  /// `address` plus `elements` (index) of `type`.
  Value element(Value address, Value elements, Type type);

  /// Has LLVM leave a loop as it is.
  void keepRolled(Operation *loop);
  /// The values that a region yields for `arguments`; the ops of the region are built here.
  SmallVector<Value> inlineBody(Region &region, ValueRange arguments);

  /// Of the block or, inside a role, of that.
  int64_t getNumThreads() const { return numThreads; }

  OpBuilder &builder;
  Location loc;

private:
  /// An op without effects, unless it is in this block already: building it for each element of a tile, and merging it then, takes longer.
  template <typename Op, typename... Arguments>
  Value once(std::pair<intptr_t, intptr_t> key, Arguments &&...arguments);
  template <typename Op>
  Value binary(Value a, Value b);

  DenseMap<std::tuple<Block *, TypeID, intptr_t, intptr_t>, Value> built;
  std::optional<unsigned> role;
  int64_t firstThread = 0, numThreads, numRoles = 0;
};

/// A matrix descriptor of the 128-byte swizzle: 8 rows are 1024 bytes; `leading` bytes between panels where rows are the inner dimension.
Value makeDescriptor(ThreadEmitter &e, Value address, int64_t leading);

/// True if the role that an op is in, or else the kernel, accesses tensor memory.
bool usesTensorMemory(Operation *op);

/// True if an op on a pipe stands between accesses to it: of the op's program, and of another one that has the pipe.
bool ordersTensorMemory(Operation *op, Value pipe);

/// True if products of a kernel read shared memory through another proxy than copies write it through.
bool needsProxyFence(Operation *op);
/// Orders accesses to tensor memory before or after a barrier.
void fenceTensors(ThreadEmitter &e, bool before);
/// An arrival once all products in tensor memory that the role has begun are done.
void arriveAfterProducts(ThreadEmitter &e, Operation *op, Value barrier);
/// True if `op` is in a kernel whose blocks make products in pairs.
bool isOfPair(Operation *op);
/// Builds what the first block of a pair does, and what the second does.
void ifFirstOfPair(ThreadEmitter &e, llvm::function_ref<void()> first, llvm::function_ref<void()> second = nullptr);
/// A barrier of all threads of the block, or of both blocks of a pair.
void synchronizeBlocks(OpBuilder &builder, ThreadEmitter &e, Operation *op);

void populateTilePatterns(const TypeConverter &converter, RewritePatternSet &patterns);
void populateChangePatterns(const TypeConverter &converter, RewritePatternSet &patterns);
void populateStorePatterns(const TypeConverter &converter, RewritePatternSet &patterns);
void populateMemoryPatterns(const TypeConverter &converter, RewritePatternSet &patterns);
void populateMmaPatterns(const TypeConverter &converter, RewritePatternSet &patterns);
void populatePipePatterns(const TypeConverter &converter, RewritePatternSet &patterns, bool everyLaneArrives);
void populateTensorMemoryPatterns(const TypeConverter &converter, RewritePatternSet &patterns);

/// Turns the programs of roles, in which nothing else of `ssa_gpu` is left, into branches.
void expandRoles(gpu::GPUFuncOp kernel);

} // namespace mlir::ssa_gpu

#endif // SSA_GPU_LIB_CONVERSION_SSAGPUTONVVM_PATTERNS_H
