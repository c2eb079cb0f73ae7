// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --pass-pipeline='builtin.module(convert-ssa-to-ssa-gpu,canonicalize,cse)' | FileCheck %s

!s = tensor<?x2x?x?xf32>
!k = tensor<?x2x?x128xbf16>

// Five neighbours, with weights 1, 2, 2, 2, 1, loaded at once; those that are -inf or not there are left out.
// CHECK: gpu.func @ssa_rebin(
// CHECK: %[[THERE:.*]] = arith.cmpi eq
// CHECK: %[[LOADED:.*]] = memref.load %arg0
// CHECK: %[[SCORE:.*]] = arith.select %[[THERE]], %[[LOADED]], %{{.*}} : f32
// CHECK-COUNT-4: memref.load %arg0
// CHECK: arith.cmpf une, %[[SCORE]], %{{.*}} : f32
// CHECK: arith.mulf %{{.*}}, %cst{{.*}} : f32
// CHECK-NOT: gpu.barrier
// CHECK-LABEL: func.func @sum
// CHECK: cf.assert %{{.*}}, "'ssa.rebin' expected dimension 0 of 'tokens' to be dimension 0 of 'input'"
// CHECK: cf.assert %{{.*}}, "'ssa.rebin' expected dimension 3 of 'input' to be at most the number of blocks of 'from'"
func.func @sum(%s: !s, %k: !k) -> !s {
  %i = ssa.rebin sum %s of %k {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>} : !s, !k -> !s
  return %i : !s
}

// -----

!s = tensor<?x2x?x?xf32>
!k = tensor<?x2x?x128xbf16>

// A window of 128 tokens is shared by 32 lanes, the 20 rows of a query block by 8 warps; each maximum is joined in 5 and 3 steps.
// CHECK: gpu.func @ssa_rebin(
// CHECK-SAME: workgroup(%{{.*}} : memref<256xf32, #gpu.address_space<workgroup>>
// CHECK: scf.for %{{.*}} step %c8
// CHECK: scf.for %{{.*}} step %c32
// CHECK: arith.maximumf
// CHECK-COUNT-10: gpu.barrier
// CHECK-NOT: gpu.barrier
func.func @max(%s: !s, %k: !k) -> !s {
  %i = ssa.rebin max %s of %k {from = #ssa.blocks<1>, query_block = 20, to = #ssa.blocks<128>} : !s, !k -> !s
  return %i : !s
}
