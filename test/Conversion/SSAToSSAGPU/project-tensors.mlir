// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --pass-pipeline='builtin.module(ssa-attach-target{chip=sm_100a},convert-ssa-to-ssa-gpu,canonicalize,cse)' | FileCheck %s

// Sums are in tensor memory, added to by the product of every step; the last is read before it is given back.
// CHECK: gpu.func @ssa_project(
// CHECK: ssa_gpu.alloc_tensors
// CHECK: ssa_gpu.mma_tensor
// CHECK: ssa_gpu.mma_tensor
// CHECK: ssa_gpu.load_tensor
// CHECK: ssa_gpu.release
// CHECK: ssa_gpu.free_tensors
func.func @project(%x: tensor<?x1x?x256xbf16>, %w: tensor<4x256x48xbf16>) -> tensor<?x4x?x48xbf16> {
  %y = ssa.project %x, %w : tensor<?x1x?x256xbf16>, tensor<4x256x48xbf16> -> tensor<?x4x?x48xbf16>
  return %y : tensor<?x4x?x48xbf16>
}
