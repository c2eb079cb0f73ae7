// RUN: ssa-opt %s -ssa-merge-kernels | FileCheck %s

// CHECK: gpu.launch_func @kernels::@add{{ }}
// CHECK: gpu.launch_func @kernels::@add{{ }}
// CHECK: gpu.launch_func @kernels::@other_constant
// CHECK: gpu.launch_func @kernels::@other_block
// CHECK: gpu.launch_func @kernels::@other_operands
module attributes {gpu.container_module} {
  func.func @f(%x: memref<?xf32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xf32>)
    gpu.launch_func @kernels::@same blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xf32>)
    gpu.launch_func @kernels::@other_constant blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xf32>)
    gpu.launch_func @kernels::@other_block blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xf32>)
    gpu.launch_func @kernels::@other_operands blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xf32>)
    return
  }
  gpu.module @kernels {
    // CHECK: gpu.func @add
    gpu.func @add(%x: memref<?xf32>) kernel {
      %i = gpu.thread_id x
      %0 = memref.load %x[%i] : memref<?xf32>
      %c = arith.constant 1.0 : f32
      %1 = arith.subf %0, %c : f32
      memref.store %1, %x[%i] : memref<?xf32>
      gpu.return
    }
    // CHECK-NOT: @same
    gpu.func @same(%x: memref<?xf32>) kernel {
      %i = gpu.thread_id x
      %0 = memref.load %x[%i] : memref<?xf32>
      %c = arith.constant 1.0 : f32
      %1 = arith.subf %0, %c : f32
      memref.store %1, %x[%i] : memref<?xf32>
      gpu.return
    }
    // CHECK: gpu.func @other_constant
    gpu.func @other_constant(%x: memref<?xf32>) kernel {
      %i = gpu.thread_id x
      %0 = memref.load %x[%i] : memref<?xf32>
      %c = arith.constant 2.0 : f32
      %1 = arith.subf %0, %c : f32
      memref.store %1, %x[%i] : memref<?xf32>
      gpu.return
    }
    // CHECK: gpu.func @other_block
    gpu.func @other_block(%x: memref<?xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %i = gpu.thread_id x
      %0 = memref.load %x[%i] : memref<?xf32>
      %c = arith.constant 1.0 : f32
      %1 = arith.subf %0, %c : f32
      memref.store %1, %x[%i] : memref<?xf32>
      gpu.return
    }
    // CHECK: gpu.func @other_operands
    gpu.func @other_operands(%x: memref<?xf32>) kernel {
      %i = gpu.thread_id x
      %0 = memref.load %x[%i] : memref<?xf32>
      %c = arith.constant 1.0 : f32
      %1 = arith.subf %c, %0 : f32
      memref.store %1, %x[%i] : memref<?xf32>
      gpu.return
    }
  }
}
