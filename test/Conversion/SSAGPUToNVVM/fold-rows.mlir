// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(ssa-gpu-allocate,gpu.module(convert-ssa-gpu-to-nvvm))' | FileCheck %s

!tile = tensor<64x64xf32, #ssa_gpu.accumulator<groups = 2>>
!half = tensor<32x64xf32, #ssa_gpu.accumulator<groups = 2, folds = 2>>
!quarter = tensor<16x64xf32, #ssa_gpu.accumulator<groups = 2, folds = 4>>
!scratch = !ssa_gpu.shared<1024xf32>

gpu.module @kernels {
  // Two rows of 8 columns each join what was joined before. Then two warps exchange half of that: four values of each lane side by side, between barriers
  // of the 128 threads of their group, and a thread has two columns of each of 2 blocks of eight, of one row.
  // CHECK-LABEL: gpu.func @fold
  // CHECK-COUNT-16: arith.addf {{.*}} fastmath<contract>
  // CHECK: nvvm.barrier id = %{{.*}} number_of_threads = %c128
  // CHECK: llvm.store {{.*}} {alignment = 16 : i64} : vector<4xf32>
  // CHECK-NOT: llvm.store
  // CHECK: nvvm.barrier id = %{{.*}} number_of_threads = %c128
  // CHECK: llvm.load {{.*}} {alignment = 16 : i64} : {{.*}} -> vector<4xf32>
  // CHECK-COUNT-4: arith.addf
  // CHECK-NOT: arith.addf
  // CHECK: llvm.store {{.*}} : vector<2xf32>
  // CHECK: llvm.store {{.*}} : vector<2xf32>
  // CHECK-NOT: llvm.store
  // CHECK: gpu.return
  gpu.func @fold(%x: f32, %m: memref<?x?xf32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %yes = arith.constant true
    %c100 = arith.constant 100 : index
    %zero = arith.constant dense<0.0> : !half
    %scratch = ssa_gpu.alloc : !scratch
    %t = ssa_gpu.map_columns {
    ^bb0(%column: i32):
      ssa_gpu.yield %x : f32
    } : !tile
    %h = ssa_gpu.fold_rows sum %t onto %zero : !tile -> !half
    %q = ssa_gpu.join_rows sum %h through %scratch : !half, !scratch -> !quarter
    ssa_gpu.store_rows %q to %m {
    ^bb0(%row: i32):
      %i = arith.index_cast %row : i32 to index
      %begin = arith.muli %i, %c100 : index
      ssa_gpu.yield %begin, %yes : index, i1
    } {columns = 64 : i64, width = 2 : i64} : !quarter, memref<?x?xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @layout(%t: tensor<64x64xf32, #ssa_gpu.accumulator>, %b: tensor<64x64xf32, #ssa_gpu.accumulator>) {
    // expected-error@+1 {{expected a result of 'tensor<32x64xf32, #ssa_gpu.accumulator<folds = 2>>', but got 'tensor<64x64xf32, #ssa_gpu.accumulator>'}}
    %s = ssa_gpu.fold_rows sum %t onto %b : tensor<64x64xf32, #ssa_gpu.accumulator> -> tensor<64x64xf32, #ssa_gpu.accumulator>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @folded(%t: tensor<64x64xf32, #ssa_gpu.accumulator>, %s: !ssa_gpu.shared<2048xf32>) {
    // expected-error@+1 {{expected a tile that threads have rows of, in eights, with 'folds' from 2 to 4, but got 'tensor<64x64xf32, #ssa_gpu.accumulator>'}}
    %r = ssa_gpu.join_rows sum %t through %s : tensor<64x64xf32, #ssa_gpu.accumulator>, !ssa_gpu.shared<2048xf32> -> tensor<32x64xf32, #ssa_gpu.accumulator<folds = 2>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @scratch(%t: tensor<32x64xf32, #ssa_gpu.accumulator<folds = 2>>, %s: !ssa_gpu.shared<512xf32>) {
    // expected-error@+1 {{expected 1024 entries of f32 in 'scratch', but got '!ssa_gpu.shared<512xf32>'}}
    %r = ssa_gpu.join_rows sum %t through %s : tensor<32x64xf32, #ssa_gpu.accumulator<folds = 2>>, !ssa_gpu.shared<512xf32> -> tensor<16x64xf32, #ssa_gpu.accumulator<folds = 4>>
    gpu.return
  }
}
