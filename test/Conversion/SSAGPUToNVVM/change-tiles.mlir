// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --pass-pipeline='builtin.module(gpu.module(convert-ssa-gpu-to-nvvm))' | FileCheck %s

!tile = tensor<64x16xf32, #ssa_gpu.accumulator>
!rows = tensor<64xf32, #ssa_gpu.rows>
!bounds = tensor<64xi32, #ssa_gpu.rows>

// A thread has two rows of 2 blocks of eight columns: 8 values, which pass through one piece of assembly.
gpu.module @kernels {
  // CHECK-LABEL: gpu.func @scale
  // CHECK: llvm.inline_asm
  // CHECK-SAME: @$16 bra done${:uid};
  // CHECK-SAME: mul.rn.f32 $0, $0, $17;
  // CHECK-SAME: mul.rn.f32 $1, $1, $17;
  // CHECK-SAME: mul.rn.f32 $2, $2, $18;
  // CHECK-SAME: mul.rn.f32 $7, $7, $18;
  // CHECK-SAME: done${:uid}:
  // CHECK-SAME: "=&f,=&f,=&f,=&f,=&f,=&f,=&f,=&f,0,1,2,3,4,5,6,7,b,f,f"
  gpu.func @scale(%x: f32, %c: i1, %m: memref<?x?xf32>, %count: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %yes = arith.constant true
    %zero = arith.constant dense<0.0> : !tile
    %rows = ssa_gpu.map_rows {
    ^bb0(%row: i32):
      ssa_gpu.yield %x : f32
    } : !rows
    %t = ssa_gpu.change_rows scale %zero by %rows unless %c : !tile, !rows
    ssa_gpu.store_columns %t to %m rows %count {
    ^bb0(%column: i32):
      ssa_gpu.yield %c0, %yes : index, i1
    } : !tile, memref<?x?xf32>
    gpu.return
  }

  // Bounds are made relative to a thread's first column, and columns are constants. Of a sink a column may be before the window.
  // CHECK-LABEL: gpu.func @hide
  // CHECK: llvm.inline_asm
  // CHECK-SAME: sub.s32 [[LAST:last[0-9_]+]], $17, $16;
  // CHECK-SAME: sub.s32 [[FIRST:first[0-9_]+]], $19, $16;
  // CHECK-SAME: sub.s32 [[BELOW:below[0-9_]+]], $21, $16;
  // CHECK-SAME: setp.le.s32 hidden, [[BELOW]], 9;
  // CHECK-SAME: setp.gt.and.s32 hidden, [[FIRST]], 9, hidden;
  // CHECK-SAME: setp.lt.or.s32 hidden, [[LAST]], 9, hidden;
  // CHECK-SAME: selp.f32 $5, 0fFF800000, $5, hidden;
  gpu.func @hide(%x: i32, %m: memref<?x?xf32>, %count: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %yes = arith.constant true
    %zero = arith.constant dense<0.0> : !tile
    %rows = ssa_gpu.map_rows {
    ^bb0(%row: i32):
      %bound = arith.addi %row, %x : i32
      ssa_gpu.yield %bound : i32
    } : !bounds
    %t = ssa_gpu.hide_columns %zero to (%rows : !bounds) from (%rows : !bounds) below (%rows : !bounds) : !tile
    ssa_gpu.store_columns %t to %m rows %count {
    ^bb0(%column: i32):
      ssa_gpu.yield %c0, %yes : index, i1
    } : !tile, memref<?x?xf32>
    gpu.return
  }
}
