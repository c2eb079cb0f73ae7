// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(ssa-attach-target{chip=sm_100a},convert-ssa-to-ssa-gpu,canonicalize,cse)' | FileCheck %s

!q = tensor<?x4x?x256xf16>
!s = tensor<?x4x?x?xf32>

// Tiles of 64 pairs fit.
// CHECK: gpu.func @ssa_route(
// CHECK: ssa_gpu.mma_tensor
func.func @bound(%q: !q, %lo: !q, %hi: !q) -> !s {
  %s = ssa.route bound %q, %lo, %hi : !q, !q, !q -> !s
  return %s : !s
}

// -----

!q = tensor<?x4x?x320xf16>
!s = tensor<?x4x?x?xf32>

// CHECK: gpu.func @ssa_route(
// CHECK-NOT: ssa_gpu.mma_tensor
// CHECK: ssa_gpu.mma mma_sync
func.func @wide_bound(%q: !q, %lo: !q, %hi: !q) -> !s {
  // expected-remark @below {{makes its products with 'mma.sync': tiles for 'tcgen05' need}}
  %s = ssa.route bound %q, %lo, %hi : !q, !q, !q -> !s
  return %s : !s
}

// -----

!q = tensor<?x4x?x640xf16>
!s = tensor<?x4x?x?xf32>

// CHECK: gpu.func @ssa_route(
// CHECK: ssa_gpu.mma mma_sync
func.func @wide(%q: !q, %k: !q) -> !s {
  // expected-remark @below {{makes its products with 'mma.sync': tiles for 'tcgen05' need}}
  %s = ssa.route %q, %k : !q, !q -> !s
  return %s : !s
}
