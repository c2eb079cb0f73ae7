// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SSA_GPU_CONVERSION_PASSES_TD
#define SSA_GPU_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def SSAGPUAllocatePass : Pass<"ssa-gpu-allocate", "::mlir::ModuleOp"> {
  let summary = "place tiles and arrays in shared memory";
  let description = [{
    Gives every `ssa_gpu.alloc` its `offset`, tiles at multiples of 1024 bytes as swizzles need, and launches of the kernel the
    size of its dynamic shared memory. All live as long as the kernel. A kernel that needs more than the target has is an error.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def ConvertSSAGPUToNVVMPass : Pass<"convert-ssa-gpu-to-nvvm", "::mlir::gpu::GPUModuleOp"> {
  let summary = "turn tiles into the registers and instructions of a thread";
  let description = [{
    Input: kernels of `ssa_gpu`, `gpu`, `scf`, `arith`, `math`, `memref`, with allocated shared memory. Output: the same without
    `ssa_gpu`: tiles are vectors, products are `mma.sync` or `wgmma`, copies are `cp.async`.

    A warp arrives at a barrier of a pipe by one lane, behind a synchronisation of all. Tools that order only what the arriving lane did
    (racecheck of compute-sanitizer) take that for a race; with `every-lane-arrives` kernels are slower and they do not.
  }];
  let options = [Option<"everyLaneArrives", "every-lane-arrives", "bool", "false",
                        "all lanes of a warp arrive at barriers, for tools that look for races">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

#endif // SSA_GPU_CONVERSION_PASSES_TD
