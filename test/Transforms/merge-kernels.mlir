// RUN: ssa-opt %s -ssa-merge-kernels | FileCheck %s

// CHECK: gpu.launch_func @kernels::@add{{ }}
// CHECK: gpu.launch_func @kernels::@add{{ }}
// CHECK: gpu.launch_func @kernels::@other_constant
// CHECK: gpu.launch_func @kernels::@other_block
// CHECK: gpu.launch_func @kernels::@other_operands
// What nobody uses is no argument, and then makes no difference.
// CHECK: gpu.launch_func @kernels::@add blocks {{.*}} args(%{{.*}} : memref<?xf32>)
// CHECK: gpu.launch_func @kernels::@shared blocks {{.*}} args(%{{.*}} : memref<?xf32>)
// CHECK: gpu.launch_func @kernels::@guarded blocks {{.*}} args(%{{.*}} : memref<1xi1>)
module attributes {gpu.container_module} {
  func.func @f(%x: memref<?xf32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xf32>)
    gpu.launch_func @kernels::@same blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xf32>)
    gpu.launch_func @kernels::@other_constant blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xf32>)
    gpu.launch_func @kernels::@other_block blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xf32>)
    gpu.launch_func @kernels::@other_operands blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xf32>)
    gpu.launch_func @kernels::@unused_argument blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%c1 : index, %x : memref<?xf32>, %x : memref<?xf32>)
    gpu.launch_func @kernels::@shared blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%c1 : index, %x : memref<?xf32>)
    %flag = memref.alloc() : memref<1xi1>
    gpu.launch_func @kernels::@guarded blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%c1 : index, %flag : memref<1xi1>)
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
    // CHECK-NOT: @unused_argument
    gpu.func @unused_argument(%n: index, %x: memref<?xf32>, %y: memref<?xf32>) kernel {
      %i = gpu.thread_id x
      %0 = memref.load %x[%i] : memref<?xf32>
      %c = arith.constant 1.0 : f32
      %1 = arith.subf %0, %c : f32
      memref.store %1, %x[%i] : memref<?xf32>
      gpu.return
    }
    // CHECK: gpu.func @shared(%{{.*}}: memref<?xf32>) workgroup(%{{.*}} : memref<4xf32, #gpu.address_space<workgroup>>) kernel
    gpu.func @shared(%n: index, %x: memref<?xf32>) workgroup(%shared: memref<4xf32, #gpu.address_space<workgroup>>) kernel {
      %i = gpu.thread_id x
      %0 = memref.load %shared[%i] : memref<4xf32, #gpu.address_space<workgroup>>
      memref.store %0, %x[%i] : memref<?xf32>
      gpu.return
    }
    // The flag is used later on.
    // CHECK: gpu.func @guarded(%{{.*}}: memref<1xi1>) kernel attributes {ssa.when = #ssa.when<argument = 0, is = true>}
    gpu.func @guarded(%n: index, %flag: memref<1xi1>) kernel attributes {ssa.when = #ssa.when<argument = 1, is = true>} {
      gpu.return
    }
    // Who launches this one is not here.
    // CHECK: gpu.func @not_launched(%{{.*}}: index)
    gpu.func @not_launched(%n: index) kernel {
      gpu.return
    }
  }
}
