// RUN: ssa-opt %s -pass-pipeline='builtin.module(gpu.module(ssa-nvptx-prepare))' | FileCheck %s

// CHECK: gpu.module @kernels
gpu.module @kernels {
  // No size: other shared memory cannot be put behind it.
  // CHECK: memref.global @ssa_dynamic_shared_memory : memref<0xi8, #gpu.address_space<workgroup>> {alignment = 1024 : i64}

  // CHECK-LABEL: gpu.func @shared
  // CHECK: %[[S:.*]] = memref.get_global @ssa_dynamic_shared_memory
  // CHECK: memref.cast %[[S]] : memref<0xi8, #gpu.address_space<workgroup>> to memref<?xi8, #gpu.address_space<workgroup>>
  gpu.func @shared() kernel {
    %0 = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %c0 = arith.constant 0 : index
    %1 = memref.load %0[%c0] : memref<?xi8, #gpu.address_space<workgroup>>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @alignment
  // CHECK: vector.load {{.*}} {alignment = 16 : i64} : memref<?xbf16>, vector<8xbf16>
  // CHECK: vector.load {{.*}} {alignment = 16 : i64} : memref<?xbf16>, vector<32xbf16>
  // CHECK: vector.load {{.*}} {alignment = 4 : i64} : memref<?xbf16>, vector<6xbf16>
  // CHECK: vector.load {{.*}} {alignment = 2 : i64} : memref<?xbf16>, vector<4xbf16>
  // CHECK: vector.store {{.*}} {alignment = 8 : i64} : memref<?xbf16>, vector<4xbf16>
  gpu.func @alignment(%x: memref<?xbf16>, %i: index) kernel {
    %0 = vector.load %x[%i] : memref<?xbf16>, vector<8xbf16>
    %1 = vector.load %x[%i] : memref<?xbf16>, vector<32xbf16>
    %2 = vector.load %x[%i] : memref<?xbf16>, vector<6xbf16>
    %3 = vector.load %x[%i] {alignment = 2 : i64} : memref<?xbf16>, vector<4xbf16>
    vector.store %3, %x[%i] : memref<?xbf16>, vector<4xbf16>
    gpu.return
  }

  // By a power of two a ceiling division is a shift, and by another number what it is in general.
  // CHECK-LABEL: gpu.func @ceilings
  // CHECK-SAME: (%[[X:.*]]: index
  // CHECK: %[[UP:.*]] = arith.addi %[[X]], %c63
  // CHECK: arith.shrsi %[[UP]], %c6
  // CHECK: arith.divsi %{{.*}}, %c48
  gpu.func @ceilings(%x: index, %out: memref<?xindex>) kernel {
    %c48 = arith.constant 48 : index
    %c64 = arith.constant 64 : index
    %0 = arith.ceildivsi %x, %c64 : index
    %1 = arith.ceildivsi %x, %c48 : index
    memref.store %0, %out[%0] : memref<?xindex>
    memref.store %1, %out[%1] : memref<?xindex>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @assumption
  // CHECK-SAME: (%[[X:.*]]: memref<?xf32> {llvm.align = 16 : i64})
  // CHECK-NOT: assume_alignment
  gpu.func @assumption(%x: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %0 = memref.assume_alignment %x, 16 : memref<?xf32>
    %1 = memref.load %0[%c0] : memref<?xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @tensor_map
  // CHECK-SAME: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<16 x i64>, nvvm.grid_constant}
  gpu.func @tensor_map(%map: !nvgpu.tensormap.descriptor<tensor = memref<64x64xbf16, #gpu.address_space<workgroup>>, swizzle = swizzle_128b,
      l2promo = none, oob = zero, interleave = none>) kernel {
    nvgpu.tma.prefetch.descriptor %map : !nvgpu.tensormap.descriptor<tensor = memref<64x64xbf16, #gpu.address_space<workgroup>>,
      swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @views
  // CHECK-NOT: memref.subview
  // CHECK-NOT: affine
  // CHECK: memref.reinterpret_cast
  gpu.func @views(%x: memref<?x8xf32>, %i: index) kernel {
    %0 = memref.subview %x[%i, 0] [1, 8] [1, 1] : memref<?x8xf32> to memref<8xf32, strided<[1], offset: ?>>
    %1 = memref.load %0[%i] : memref<8xf32, strided<[1], offset: ?>>
    gpu.return
  }
}
