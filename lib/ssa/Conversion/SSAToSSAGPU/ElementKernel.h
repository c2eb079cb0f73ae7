//===- ElementKernel.h - Kernels that make one element at a time -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CONVERSION_SSATOSSAGPU_ELEMENTKERNEL_H
#define SSA_LIB_CONVERSION_SSATOSSAGPU_ELEMENTKERNEL_H

#include "Conversion.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::ssa {

/// A kernel that goes over the elements of one buffer.
class ElementKernel : public KernelBuilder {
public:
  /// `output` is one of `arguments`.
  ElementKernel(HostFunction &host, Operation *op, StringRef name, ValueRange arguments, Value output);

  /// Builds the kernel; `body` gets the indices of an element.
  void build(llvm::function_ref<void(ArrayRef<Value> indices)> body);

private:
  static constexpr int64_t threads = 256, elementsPerThread = 4;
  HostFunction &host;
  Value output;
  unsigned outputArgument;
};

/// What the regions of an op use from outside.
class Captures {
public:
  explicit Captures(HostFunction &host) : host(host) {}

  /// Adds what the regions of an op use, or one scalar. An error where something cannot be passed to a kernel.
  LogicalResult addRegions(Operation *op);
  LogicalResult add(Operation *user, Value v);

  /// Host values to be passed.
  ArrayRef<Value> getArguments() const { return arguments; }

  /// Lets `mapping` lead to what kernel `k` has of them; they are its arguments from `first` on.
  void map(KernelBuilder &k, unsigned first, IRMapping &mapping) const;

private:
  HostFunction &host;
  llvm::SetVector<Value> passed;
  SmallVector<Value> arguments;
  llvm::SetVector<Operation *> cloned; // computed in the kernel
};

/// The values that the only block of `region` yields. Its arguments are mapped; `indices` is what `linalg.index` gives.
SmallVector<Value> inlineRegion(Emitter &e, Region &region, IRMapping &mapping, ArrayRef<Value> indices);

/// True if every op of the region has a meaning in a kernel; else an error.
LogicalResult checkRegion(Region &region);

/// Makes a kernel that sets all elements of a buffer of floats.
void fill(HostFunction &host, Operation *op, Value buffer, double value);
/// Makes a kernel that copies elements between buffers of the same sizes.
void copyElements(HostFunction &host, Operation *op, Value from, Value to);
/// A new buffer with the elements of `buffer`.
Value copyBuffer(HostFunction &host, Operation *op, Value buffer);

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_ELEMENTKERNEL_H
