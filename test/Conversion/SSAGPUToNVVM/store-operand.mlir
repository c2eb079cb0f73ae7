// RUN: ssa-opt %s --pass-pipeline='builtin.module(ssa-gpu-allocate,gpu.module(convert-ssa-gpu-to-nvvm))' -split-input-file | FileCheck %s

!tile = !ssa_gpu.shared<64x64xbf16>
!weights = tensor<64x64xf32, #ssa_gpu.accumulator>

// Roles are for chips that store matrices: the 16 rows of a warp and 16 columns at a time.

// CHECK-LABEL: gpu.func @in_a_role
// CHECK-COUNT-4: nvvm.stmatrix %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {
// CHECK-NOT: nvvm.stmatrix
// CHECK-NOT: llvm.store
gpu.module @kernels {
  gpu.func @in_a_role() kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %memory = ssa_gpu.alloc : !tile
    ssa_gpu.roles threads [128, 128] registers [232, 40] {
      %ones = arith.constant dense<1.0> : !weights
      ssa_gpu.store_operand %ones to %memory : !weights, !tile
    }, {
    }
    gpu.return
  }
}

// -----

!tile = !ssa_gpu.shared<64x64xbf16>
!weights = tensor<64x64xf32, #ssa_gpu.accumulator>

// Elsewhere a thread stores its pairs of neighbours.

// CHECK-LABEL: gpu.func @without_roles
// CHECK-NOT: nvvm.stmatrix
// CHECK-COUNT-16: llvm.store %{{.*}}, %{{.*}} {alignment = 4 : i64} : vector<2xbf16>
// CHECK-NOT: llvm.store
gpu.module @kernels {
  gpu.func @without_roles() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %memory = ssa_gpu.alloc : !tile
    %ones = arith.constant dense<1.0> : !weights
    ssa_gpu.store_operand %ones to %memory : !weights, !tile
    gpu.return
  }
}
