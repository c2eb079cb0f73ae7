// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --pass-pipeline='builtin.module(convert-ssa-to-ssa-gpu,canonicalize,cse)' | FileCheck %s

!k = tensor<?x4x?x128xbf16>

// A thread has 8 channels of every 8th row of a block, 16 bytes at a time; the 8 threads of a block join their sums.
// CHECK: gpu.func @ssa_pool(
// CHECK-SAME: workgroup(%[[SCRATCH:.*]] : memref<2048xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64})
// CHECK-SAME: kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 4 : i32}
// Four rows are on their way at a time.
// CHECK: %[[SUM:.*]] = scf.for %{{.*}} step %c4 iter_args(%[[ACC:.*]] = %{{.*}}) -> (vector<8xf32>)
// CHECK: %[[ROW:.*]] = vector.load %arg0[%{{.*}}] {alignment = 16 : i64} : {{.*}}, vector<8xbf16>
// CHECK: %[[WIDE:.*]] = arith.extf %[[ROW]]
// CHECK-COUNT-3: vector.load %arg0
// CHECK: arith.addf %[[ACC]], %[[WIDE]]
// CHECK-COUNT-4: gpu.barrier
// CHECK-NOT: gpu.barrier
// CHECK: arith.divf
// CHECK: arith.truncf %{{.*}} : vector<8xf32> to vector<8xbf16>
// CHECK: vector.store
// CHECK-LABEL: func.func @mean
// CHECK-SAME: llvm.align = 16
// CHECK: %[[BLOCKS:.*]] = arith.ceildivsi %{{.*}}, %c64
// CHECK: memref.alloc(%{{.*}}, %[[BLOCKS]]) : memref<?x4x?x128xbf16>
// CHECK: cf.assert %{{.*}}, "'ssa.pool' expected stride 0 of 'input' to be a multiple of 8 elements, 16 bytes"
// CHECK: gpu.launch_func @kernels::@ssa_pool
func.func @mean(%k: !k) -> !k {
  %kc = ssa.pool mean %k {blocks = #ssa.blocks<64>} : !k -> !k
  return %kc : !k
}

// -----

!k = tensor<?x2x?x24xf8E4M3FN>
!y = tensor<?x2x?x24xf32>

// Rows are scaled before they are compared; blocks overlap, and begin before the first token. NaN wins. Of rows of 24 bytes a
// thread reads 4 (what is written is 16 bytes), and a block is too small to be shared.
// CHECK: gpu.func @ssa_pool(
// CHECK-NOT: workgroup(
// CHECK: %[[FIRST:.*]] = arith.addi %{{.*}}, %c-4
// CHECK: arith.maxsi %[[FIRST]], %c0
// CHECK: %[[ROW:.*]] = vector.load %{{.*}} vector<4xf8E4M3FN>
// CHECK: %[[WIDE:.*]] = arith.extf %[[ROW]]
// CHECK: memref.load %arg2
// CHECK: %[[SCALED:.*]] = arith.mulf %[[WIDE]]
// CHECK: arith.maximumf %{{.*}}, %[[SCALED]]
// CHECK-NOT: gpu.barrier
// CHECK-LABEL: func.func @scaled
// CHECK: cf.assert %{{.*}}, "'ssa.pool' expected dimension 0 of 'scales' to be dimension 0 of 'input'"
// CHECK: cf.assert %{{.*}}, "'ssa.pool' expected dimension 2 of 'scales' to be dimension 2 of 'input'"
func.func @scaled(%k: !k, %s: tensor<?x2x?xf32>) -> !y {
  %kc = ssa.pool max %k scales %s {blocks = #ssa.blocks<8, stride = 4, offset = -4>} : !k, tensor<?x2x?xf32> -> !y
  return %kc : !y
}

// -----

!k = tensor<?x1x?x64xf32>

// Sums of long blocks are made of shorter ones.
// CHECK: gpu.func @ssa_pool(
// CHECK: scf.for %{{.*}} step %c1024 iter_args
// CHECK: scf.for %{{.*}} step %c4 iter_args
func.func @long(%k: !k) -> !k {
  %kc = ssa.pool mean %k {blocks = #ssa.blocks<100000>} : !k -> !k
  return %kc : !k
}
