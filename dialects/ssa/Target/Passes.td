// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SSA_TARGET_PASSES_TD
#define SSA_TARGET_PASSES_TD

include "mlir/Pass/PassBase.td"

def SSANVPTXVerifyPass : Pass<"ssa-nvptx-verify", "::mlir::gpu::GPUModuleOp"> {
  let summary = "refuse kernels that use instructions their chip does not have";
  let description = [{
    Looks at NVVM ops, LLVM intrinsics and inline PTX of a module that has a target. The backend ends the process when it meets an
    intrinsic that a chip lacks; this pass says it before, at the op.
  }];
}

def SSANVPTXExpandMathPass : Pass<"ssa-nvptx-expand-math", "::mlir::gpu::GPUModuleOp"> {
  let summary = "turn functions of 'math' into what the chip computes";
  let description = [{
    Every op of `math` becomes LLVM intrinsics and arithmetic, without calls into a library. Ops marked `fastmath<afn>` become the
    chip's approximations where there are any; others are within a few units of the last place of f32, except where the
    table at the head of `lib/Target/NVPTX/ExpandMath.cpp` says more. f16 and bf16 are computed in f32. What has no expansion
    is an error.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect", "::mlir::vector::VectorDialect"];
}

def SSANVPTXExpandFloat8Pass : Pass<"ssa-nvptx-expand-float8", "::mlir::gpu::GPUModuleOp"> {
  let summary = "turn conversions from and to 8-bit floats into what the chip computes";
  let description = [{
    LLVM has no 8-bit floats; the types become `i8` further on. `arith.extf` from `f8E4M3FN` and `f8E5M2` becomes conversion
    instructions where the target has them, else integer arithmetic with the same results. `arith.truncf` to them needs the
    instructions: it rounds to nearest even, and numbers beyond the largest become the largest.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect", "::mlir::vector::VectorDialect"];
}

def SSANVPTXPreparePass : Pass<"ssa-nvptx-prepare", "::mlir::gpu::GPUModuleOp"> {
  let summary = "say to LLVM what kernels take for granted";
  let description = [{
    - `gpu.dynamic_shared_memory` becomes an external symbol without size, as CUDA has it. (Upstream makes it a variable of one
      byte, which other shared memory may be put behind.)
    - `vector.load` and `vector.store` without `alignment` get the largest power of two that divides the size of the vector, at
      most 16. Kernels that cannot promise it write a smaller one.
    - `memref.assume_alignment` of an argument becomes `llvm.align`.
    - Ops of `vector` for which LLVM has no counterpart are taken apart; views of buffers, `affine` and divisions that round up or
      down become arithmetic.
    - Tensor map arguments become 128 bytes by value.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def SSANVPTXConvertPass : Pass<"ssa-nvptx-convert", "::mlir::gpu::GPUModuleOp"> {
  let summary = "from 'gpu', 'nvgpu', 'memref', 'vector', 'arith', 'scf', 'cf' to 'nvvm' and 'llvm'";
  let description = [{
    Ops of `nvvm` that are inline assembly become that. Kernels take buffers as pointer, aligned pointer, offset, sizes and strides, all of 64 bits, and `index` is 64 bits wide.
  }];
}

def SSANVPTXFinishPass : Pass<"ssa-nvptx-finish", "::mlir::gpu::GPUModuleOp"> {
  let summary = "set attributes of kernels and check that all is in LLVM's dialects";
  let description = [{
    Block sizes that are known become required ones (`.reqntid`). An op that has not become one of `llvm` or `nvvm` is an error.
  }];
}

#endif // SSA_TARGET_PASSES_TD
