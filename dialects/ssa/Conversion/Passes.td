// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SSA_CONVERSION_PASSES_TD
#define SSA_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertSSAToSSAGPUPass : Pass<"convert-ssa-to-ssa-gpu", "::mlir::ModuleOp"> {
  let summary = "turn patterns into kernels and a host function that launches them";
  let description = [{
    Input: public functions of `ssa` ops and glue on tensors. Output: the same functions on buffers, made of integer arithmetic
    on sizes, buffer views, allocations of results and workspace, and `gpu.launch_func`; and one `gpu.module` with the kernels.
    Results become results of the host function. Sizes that an op equates are required by `cf.assert`.

    An op without a kernel is an error that names it.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect", "::mlir::gpu::GPUDialect",
                           "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::nvgpu::NVGPUDialect",
                           "::mlir::scf::SCFDialect", "::mlir::ssa_gpu::SSAGPUDialect", "::mlir::vector::VectorDialect"];
}

#endif // SSA_CONVERSION_PASSES_TD
