// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --pass-pipeline='builtin.module(convert-ssa-to-ssa-gpu,canonicalize,cse)' | FileCheck %s

!k = tensor<?x1x?x128xbf16>
!t = tensor<?x4x?x16xi32>
!sel = !ssa.selection<?x4x?x16, key_block = 64>
!kg = tensor<?x4x?x1024x128xbf16>

// Rows that do not exist are 0, and form no address. One key head serves all selection heads.
// CHECK: gpu.func @ssa_gather(%arg0: memref<?x1x?x128xbf16, {{.*}}>, %arg1: memref<?x4x?x16xi32, {{.*}}>, %arg2: memref<?x4x?x1024x128xbf16
// CHECK: %[[NUMBER:.*]] = memref.load %arg1
// CHECK: %[[ROW:.*]] = arith.addi
// CHECK: %[[POSITIVE:.*]] = arith.cmpi sge, %[[NUMBER]], %c0_i32
// CHECK: %[[BEFORE:.*]] = arith.cmpi slt, %[[ROW]], %{{.*}} : index
// CHECK: %[[EXISTS:.*]] = arith.andi %[[POSITIVE]], %[[BEFORE]]
// CHECK: scf.if %[[EXISTS]] -> (vector<8xbf16>)
// CHECK: vector.load %arg0[%{{.*}}, %{{.*}}, %[[ROW]], %{{.*}}] {alignment = 16 : i64}
// CHECK: } else {
// CHECK: scf.yield %cst
// CHECK: vector.store
// CHECK-LABEL: func.func @rows
// CHECK: cf.assert %{{.*}}, "'ssa.gather' expected dimension 0 of 'selection' to be dimension 0 of 'input'"
// CHECK: gpu.launch_func @kernels::@ssa_gather
func.func @rows(%k: !k, %t: !t) -> !kg {
  %sel = ssa.from_indices %t : !t -> !sel
  %kg = ssa.gather %k at %sel : !k, !sel -> !kg
  return %kg : !kg
}

// -----

!k = tensor<1x2x8x6xf32>
!t = tensor<1x2x3x0xi32>
!sel = !ssa.selection<1x2x3x0, key_block = 2>
!kg = tensor<1x2x3x0x6xf32>

// Nothing to copy.
// CHECK-LABEL: func.func @empty
// CHECK-NOT: gpu.launch_func
func.func @empty(%k: !k, %t: !t) -> !kg {
  %sel = ssa.from_indices %t : !t -> !sel
  %kg = ssa.gather %k at %sel : !k, !sel -> !kg
  return %kg : !kg
}
