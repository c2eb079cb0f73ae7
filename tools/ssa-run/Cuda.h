//===- Cuda.h - Runs on an NVIDIA GPU or its simulator ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_TOOLS_SSA_RUN_CUDA_H
#define SSA_TOOLS_SSA_RUN_CUDA_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "ssa/Reference/Tensor.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <memory>

namespace mlir::ssa::reference {

/// A GPU by its number, or the simulator of a chip.
struct DeviceChoice {
  unsigned number = 0;
  std::string simulatedChip;
};

/// A device with one bundle loaded on it.
class CudaProgram {
public:
  /// Hears what took how long: "compile", "load", "copy in", "kernels", "copy out".
  using Finished = std::function<void(StringRef step, double seconds)>;

  virtual ~CudaProgram() = default;

  /// Loads the text of a bundle, called `name` in messages.
  static llvm::Expected<std::unique_ptr<CudaProgram>> loadBundle(const DeviceChoice &device, StringRef text,
                                                                 StringRef name, Finished finished);

  /// Compiles a module for the device and loads it. Errors of the compiler are diagnostics; the error returned then has
  /// no text.
  static llvm::Expected<std::unique_ptr<CudaProgram>> compile(const DeviceChoice &device, ModuleOp module,
                                                              StringRef name, Finished finished);

  /// The functions of the bundle as a module: names and types, nothing in them.
  virtual OwningOpRef<ModuleOp> makeSignatures(MLIRContext *context) const = 0;

  /// Runs a function. `resultTypes` are the types of its results.
  virtual llvm::Expected<SmallVector<Tensor>> run(StringRef entry, ArrayRef<Tensor> arguments,
                                                  TypeRange resultTypes) = 0;
};

/// True if the text is that of a bundle rather than of a module.
bool isBundle(StringRef text);

} // namespace mlir::ssa::reference

#endif // SSA_TOOLS_SSA_RUN_CUDA_H
