//===- NVPTX.h - From kernels to PTX ----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_TARGET_NVPTX_H
#define SSA_TARGET_NVPTX_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/Pass.h"
#include "ssa/IR/SSA.h"
#include <map>
#include <string>

namespace mlir {
class DialectRegistry;
class OpPassManager;
class TimingScope;
} // namespace mlir

namespace mlir::ssa {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "ssa/Target/Passes.h.inc"

/// What compiling kernels needs of a context.
void registerNVPTXTarget(DialectRegistry &registry);

/// `ssa-kernels-to-nvvm`: from kernels in `gpu`, `memref`, `scf`, `arith`, `math`, `vector`, `nvgpu`, `nvvm`, `llvm` to
/// `llvm` and `nvvm`. Runs on modules that have a target.
void buildKernelsToNVVMPipeline(OpPassManager &pm);

/// Makes the pipelines of this library known by name.
void registerNVPTXPipelines();

/// What becomes of a module of kernels.
struct DeviceCode {
  std::string llvm; // optimised LLVM IR
  std::string ptx;
};

/// Moves kernels into modules of their own beside `module`, the longest first, for all that follows to be done to several at once. Gives their
/// names in the order that they had; none where they have functions or variables in common, and then they stay together.
SmallVector<std::string> splitKernels(gpu::GPUModuleOp module);

/// Compiles the modules of kernels in `device`, in `llvm` and `nvvm`. In PTX kernels come in `order`, or as they are if there is none. LLVM IR
/// is printed only if `printLLVM`, of the first module.
FailureOr<DeviceCode> compileKernels(ModuleOp device, ArrayRef<std::string> order, TargetAttr target, bool printLLVM, TimingScope &timing);

/// Assembles PTX with the `ptxas` of an installed CUDA toolkit: in PATH, below CUDA_HOME or in /usr/local/cuda. Errors
/// are reported at `loc`.
FailureOr<std::string> assemblePTX(Location loc, StringRef ptx, TargetAttr target, TimingScope &timing);

/// What `ptxas` says of the code that it makes of a kernel.
struct AssembledKernel {
  int64_t registers = 0, spilledBytes = 0;
};

/// Assembles PTX and says what becomes of its kernels, by name; as `assemblePTX`.
FailureOr<std::map<std::string, AssembledKernel>> describePTX(Location loc, StringRef ptx, TargetAttr target, TimingScope &timing);

/// The alignment of a `vector.load` or `vector.store` that says none: the largest power of two that divides the size of
/// the vector, at most 16 and at least the size of an element.
uint64_t getAccessAlignment(VectorType type);

/// The name of the symbol that stands for dynamic shared memory.
inline constexpr llvm::StringLiteral dynamicSharedMemoryName = "ssa_dynamic_shared_memory";

} // namespace mlir::ssa

#endif // SSA_TARGET_NVPTX_H
