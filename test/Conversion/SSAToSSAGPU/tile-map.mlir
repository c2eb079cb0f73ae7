// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(convert-ssa-gpu-to-nvvm,canonicalize))' | FileCheck %s

!rows = tensor<16xindex, #ssa_gpu.rows>

// A thread has two rows.
gpu.module @kernels {
  // CHECK-LABEL: @two_rows
  // CHECK-COUNT-2: memref.load
  // CHECK-NOT: memref.load
  gpu.func @two_rows(%table: memref<4xf32>, %to: memref<16xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %numbers = ssa_gpu.map_rows {
    ^bb0(%row: i32):
      %i = arith.index_cast %row : i32 to index
      ssa_gpu.yield %i : index
    } : !rows
    %values = ssa_gpu.map %numbers {
    ^bb0(%i: index):
      %x = memref.load %table[%i] : memref<4xf32>
      ssa_gpu.yield %x : f32
    } : (!rows) -> tensor<16xf32, #ssa_gpu.rows>
    ssa_gpu.store_entries %values to %to {
    ^bb0(%row: i32):
      %i = arith.index_cast %row : i32 to index
      %true = arith.constant true
      ssa_gpu.yield %i, %true : index, i1
    } : tensor<16xf32, #ssa_gpu.rows>, memref<16xf32>
    gpu.return
  }
}

// -----

!rows = tensor<16xindex, #ssa_gpu.rows>
func.func @other_element(%a: !rows) {
  // expected-error @below {{expected a region from ('index') to ('f32')}}
  %b = ssa_gpu.map %a {
  ^bb0(%i: index):
    ssa_gpu.yield %i : index
  } : (!rows) -> tensor<16xf32, #ssa_gpu.rows>
  return
}

// -----

!rows = tensor<16xindex, #ssa_gpu.rows>
func.func @other_layout(%a: !rows) {
  // expected-error @below {{expected tiles of one shape and layout, but got}}
  %b = ssa_gpu.map %a {
  ^bb0(%i: index):
    ssa_gpu.yield %i : index
  } : (!rows) -> tensor<16x8xindex, #ssa_gpu.accumulator>
  return
}

// -----

func.func @nothing() {
  // expected-error @below {{expected at least one tile and one result}}
  ssa_gpu.map {
    ssa_gpu.yield
  } : () -> ()
  return
}
