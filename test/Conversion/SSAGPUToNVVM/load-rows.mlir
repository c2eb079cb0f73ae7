// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --pass-pipeline='builtin.module(ssa-gpu-allocate,gpu.module(convert-ssa-gpu-to-nvvm))' | FileCheck %s

!tile = tensor<64x64xf32, #ssa_gpu.accumulator>
!narrow = tensor<64x64xbf16, #ssa_gpu.accumulator>

gpu.module @kernels {
  // Of two rows a thread has 16 bytes of every 32 columns: two loads each, of which nobody waits for a branch. They are the columns that it has of an accumulator.
  // CHECK-LABEL: gpu.func @load
  // CHECK-COUNT-4: llvm.inline_asm asm_dialect = att "mov.b32 $0, 0;{{.*}}@$5 ld.global.L1::no_allocate.v4.b32
  // CHECK-NOT: llvm.inline_asm
  // CHECK: gpu.return
  gpu.func @load(%from: memref<?x64xbf16>, %to: memref<?x64xf32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %yes = arith.constant true
    %c64 = arith.constant 64 : index
    %t = ssa_gpu.load_rows %from {
    ^bb0(%row: i32):
      %i = arith.index_cast %row : i32 to index
      %begin = arith.muli %i, %c64 : index
      ssa_gpu.yield %begin, %yes : index, i1
    } : memref<?x64xbf16> -> !narrow
    %w = arith.extf %t : !narrow to !tile
    ssa_gpu.store_rows %w to %to {
    ^bb0(%row: i32):
      %i = arith.index_cast %row : i32 to index
      %begin = arith.muli %i, %c64 : index
      ssa_gpu.yield %begin, %yes : index, i1
    } {columns = 64 : i64, width = 2 : i64} : !tile, memref<?x64xf32>
    gpu.return
  }
}
