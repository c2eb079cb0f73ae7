// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --pass-pipeline='builtin.module(ssa-gpu-allocate,gpu.module(convert-ssa-gpu-to-nvvm))' | FileCheck %s

!tile = tensor<64x64xf32, #ssa_gpu.accumulator>
!narrow = tensor<64x64xbf16, #ssa_gpu.accumulator>
!rows = tensor<64xi1, #ssa_gpu.rows>

gpu.module @kernels {
  // Of two rows a thread has 16 bytes of every 32 columns: two loads each, whose words count or are zeros. They are the columns that it has of an accumulator.
  // CHECK-LABEL: gpu.func @load
  // CHECK: llvm.load {{.*}} -> vector<4xi32>
  // CHECK-COUNT-4: arith.select {{.*}} : i32
  // CHECK-COUNT-3: llvm.load {{.*}} -> vector<4xi32>
  // CHECK-NOT: llvm.load
  // CHECK: gpu.return
  gpu.func @load(%counts: i1, %to: memref<?x64xf32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %yes = arith.constant true
    %c64 = arith.constant 64 : index
    %tile = ssa_gpu.alloc : !ssa_gpu.shared<64x64xbf16>
    %rows = ssa_gpu.map_rows {
    ^bb0(%row: i32):
      ssa_gpu.yield %counts : i1
    } : !rows
    %t = ssa_gpu.load_quads %tile where %rows : !ssa_gpu.shared<64x64xbf16>, !rows -> !narrow
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
