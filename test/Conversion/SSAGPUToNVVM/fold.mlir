// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(convert-ssa-gpu-to-nvvm))' | FileCheck %s

!tile = tensor<64x32xf32, #ssa_gpu.accumulator>
!eight = tensor<64x8xf32, #ssa_gpu.accumulator>

gpu.module @kernels {
  // Four columns of eight each, of which a thread has two of two rows: 12 additions, and nothing of other threads. Rows from %count on
  // are not written.
  // CHECK-LABEL: gpu.func @fold
  // CHECK-COUNT-12: arith.addf {{.*}} fastmath<contract>
  // CHECK-NOT: arith.addf
  // CHECK-NOT: gpu.shuffle
  // CHECK-COUNT-4: llvm.store {{.*}} : f32
  // CHECK-NOT: llvm.store
  // CHECK: gpu.return
  gpu.func @fold(%x: f32, %m: memref<?x?xf32>, %count: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %yes = arith.constant true
    %c100 = arith.constant 100 : index
    %t = ssa_gpu.map_columns {
    ^bb0(%column: i32):
      ssa_gpu.yield %x : f32
    } : !tile
    %s = ssa_gpu.fold sum %t {columns = 32 : i64, period = 8 : i64} : !tile -> !eight
    ssa_gpu.store_columns %s to %m rows %count {
    ^bb0(%column: i32):
      %i = arith.index_cast %column : i32 to index
      %begin = arith.muli %i, %c100 : index
      ssa_gpu.yield %begin, %yes : index, i1
    } : !eight, memref<?x?xf32>
    gpu.return
  }

  // Columns at equal distances: the address of one makes that of the next.
  // CHECK-LABEL: gpu.func @distances
  // CHECK-SAME: %{{.*}}: f32, %{{.*}}: memref<?x?xf32>, %{{.*}}: i32, %{{.*}}: index, %[[STRIDE:.*]]: index
  // CHECK: arith.muli %[[STRIDE]], %{{.*}} : index
  // CHECK: %[[ONE:.*]] = arith.index_cast %[[STRIDE]] : index to i64
  // CHECK: llvm.getelementptr %{{.*}}[%[[ONE]]]
  // CHECK: arith.muli %[[STRIDE]], %c8
  // CHECK-NOT: arith.addi
  // CHECK: gpu.return
  gpu.func @distances(%x: f32, %m: memref<?x?xf32>, %count: i32, %first: index, %stride: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %yes = arith.constant true
    %t = ssa_gpu.map_columns {
    ^bb0(%column: i32):
      ssa_gpu.yield %x : f32
    } : !tile
    ssa_gpu.store_columns %t to %m rows %count {
    ^bb0(%column: i32):
      %i = arith.index_cast %column : i32 to index
      %place = arith.muli %stride, %i : index
      %begin = arith.addi %place, %first : index
      ssa_gpu.yield %begin, %yes : index, i1
    } : !tile, memref<?x?xf32>
    gpu.return
  }

  // A period of 2: lanes that are 2 and 1 apart have columns of the same kind.
  // CHECK-LABEL: gpu.func @across
  // CHECK-COUNT-8: arith.maximumf
  // CHECK-COUNT-8: gpu.shuffle
  // CHECK-NOT: gpu.shuffle
  // CHECK: gpu.return
  gpu.func @across(%x: f32, %m: memref<?x?xf32>, %count: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %yes = arith.constant true
    %t = ssa_gpu.map_columns {
    ^bb0(%column: i32):
      ssa_gpu.yield %x : f32
    } : !tile
    %s = ssa_gpu.fold max %t {columns = 24 : i64, period = 2 : i64} : !tile -> !eight
    ssa_gpu.store_columns %s to %m rows %count {
    ^bb0(%column: i32):
      %i = arith.index_cast %column : i32 to index
      ssa_gpu.yield %i, %yes : index, i1
    } : !eight, memref<?x?xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @period(%t: tensor<64x32xf32, #ssa_gpu.accumulator>) {
    // expected-error@+1 {{expected a period of 1, 2, 4 or a multiple of 8 that divides 'columns', a multiple of 8 up to 32, but got 3 and 32}}
    %s = ssa_gpu.fold sum %t {columns = 32 : i64, period = 3 : i64} : tensor<64x32xf32, #ssa_gpu.accumulator> -> tensor<64x8xf32, #ssa_gpu.accumulator>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @result(%t: tensor<64x32xf32, #ssa_gpu.accumulator>) {
    // expected-error@+1 {{expected a result of 'tensor<64x16xf32, #ssa_gpu.accumulator>', but got 'tensor<64x8xf32, #ssa_gpu.accumulator>'}}
    %s = ssa_gpu.fold sum %t {columns = 32 : i64, period = 16 : i64} : tensor<64x32xf32, #ssa_gpu.accumulator> -> tensor<64x8xf32, #ssa_gpu.accumulator>
    gpu.return
  }
}
