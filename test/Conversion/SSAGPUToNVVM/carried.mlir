// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --pass-pipeline='builtin.module(gpu.module(convert-ssa-gpu-to-nvvm,cse))' | FileCheck %s

!tile = tensor<64x8xf32, #ssa_gpu.accumulator>
!operand = tensor<64x16xbf16, #ssa_gpu.operand>
!wide = tensor<64x16xf32, #ssa_gpu.accumulator>

// A thread's values of a tile go through loops and branches one by one, and what is computed of them is computed one by one: no vector is put
// together or taken apart on the way.
gpu.module @kernels {
  // CHECK-LABEL: gpu.func @carried
  // CHECK-NOT: vector
  // CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
  // CHECK: scf.for {{.*}} iter_args({{.*}} = %[[ZERO]], {{.*}} = %[[ZERO]], {{.*}} = %[[ZERO]], {{.*}} = %[[ZERO]]) -> (f32, f32, f32, f32)
  // CHECK: scf.if {{.*}} -> (f32, f32, f32, f32)
  // CHECK-COUNT-4: arith.mulf {{.*}} : f32
  // CHECK-NOT: arith.mulf
  // CHECK: scf.yield {{.*}} : f32, f32, f32, f32
  // CHECK-NOT: vector
  // CHECK: gpu.return
  gpu.func @carried(%m: memref<?x?xf32>, %count: i32, %steps: index, %c: i1) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c100 = arith.constant 100 : index
    %yes = arith.constant true
    %zero = arith.constant dense<0.0> : !tile
    %half = arith.constant dense<0.5> : !tile
    %t = scf.for %i = %c0 to %steps step %c1 iter_args(%carried = %zero) -> !tile {
      %next = scf.if %c -> !tile {
        %product = arith.mulf %carried, %half : !tile
        scf.yield %product : !tile
      } else {
        scf.yield %carried : !tile
      }
      scf.yield %next : !tile
    }
    ssa_gpu.store_columns %t to %m rows %count {
    ^bb0(%column: i32):
      %i = arith.index_cast %column : i32 to index
      %begin = arith.muli %i, %c100 : index
      ssa_gpu.yield %begin, %yes : index, i1
    } : !tile, memref<?x?xf32>
    gpu.return
  }

  // Two numbers are rounded at once; both rows have the same here.
  // CHECK-LABEL: gpu.func @pairs
  // CHECK-COUNT-2: arith.truncf {{.*}} : vector<2xf32> to vector<2xbf16>
  // CHECK-NOT: arith.truncf
  // CHECK: scf.for {{.*}} -> (i32, i32, i32, i32)
  // CHECK: gpu.return
  gpu.func @pairs(%steps: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %b = ssa_gpu.alloc {offset = 0 : i64} : !ssa_gpu.shared<16x64xbf16>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #ssa_gpu.accumulator>
    %t = ssa_gpu.map_columns {
    ^bb0(%column: i32):
      %x = arith.sitofp %column : i32 to f32
      ssa_gpu.yield %x : f32
    } : !wide
    %o = ssa_gpu.to_operand %t : !wide -> !operand
    %r = scf.for %i = %c0 to %steps step %c1 iter_args(%carried = %o) -> !operand {
      %p = ssa_gpu.mma wgmma %carried, %b, %zero : !operand, !ssa_gpu.shared<16x64xbf16>, tensor<64x64xf32, #ssa_gpu.accumulator>
      scf.yield %carried : !operand
    }
    gpu.return
  }
}
