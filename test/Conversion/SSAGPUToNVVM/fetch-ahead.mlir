// RUN: ssa-opt %s --pass-pipeline='builtin.module(gpu.module(convert-ssa-gpu-to-nvvm))' | FileCheck %s

// A thread brings 64 bytes at a time: of 8200 all 128 do once, and the first of them once more.

// CHECK-LABEL: gpu.func @kernel
// CHECK: "prefetch.global.L2 [$0];"
// CHECK: %[[LEFT:.*]] = arith.constant 129 : i32
// CHECK: %[[IS_LEFT:.*]] = arith.cmpi ult, %{{.*}}, %[[LEFT]]
// CHECK: scf.if %[[IS_LEFT]]
// CHECK: "prefetch.global.L2 [$0];"
// CHECK-NOT: prefetch
gpu.module @kernels {
  gpu.func @kernel(%lists: memref<?xi32>, %begin: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    ssa_gpu.fetch_ahead %lists[%begin] {bytes = 8200 : i64} : memref<?xi32>
    gpu.return
  }
}
