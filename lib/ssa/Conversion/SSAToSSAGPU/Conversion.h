//===- Conversion.h - Ops to kernels ----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CONVERSION_SSATOSSAGPU_CONVERSION_H
#define SSA_LIB_CONVERSION_SSATOSSAGPU_CONVERSION_H

#include "KernelBuilder.h"
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
  FailureOr<Value> allocateResult(Operation *op, unsigned number);

  /// A buffer that lives during the call.
  Value allocateWorkspace(Location loc, ArrayRef<OpFoldResult> sizes, Type elementType);

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

  OpBuilder &builder;

private:
  void requireAligned(Operation *op, const NamedBuffer &rows, BlockArgument argument, int64_t width);

  FunctionOpInterface function;
  IRMapping &scalars;
  DenseMap<Value, Value> buffers;
};

// Each makes the kernels of one kind of op and sets the buffers of its results.
LogicalResult convertGather(HostFunction &host, GatherOp op);
LogicalResult convertMerge(HostFunction &host, MergeOp op);
LogicalResult convertMix(HostFunction &host, MixOp op);
LogicalResult convertPool(HostFunction &host, PoolOp op);
LogicalResult convertProject(HostFunction &host, ProjectOp op);
LogicalResult convertRebin(HostFunction &host, RebinOp op);
LogicalResult convertRoute(HostFunction &host, RouteOp op);
LogicalResult convertSort(HostFunction &host, SortOp op);
LogicalResult convertSparseAttend(HostFunction &host, SparseAttendOp op);
LogicalResult convertToIndices(HostFunction &host, ToIndicesOp op);
LogicalResult convertTopK(HostFunction &host, TopKOp op);
LogicalResult convertUnion(HostFunction &host, UnionOp op);

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_CONVERSION_H
