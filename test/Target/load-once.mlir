// RUN: ssa-opt %s --emit=llvm --chip=sm_90a | FileCheck %s

// What is read once passes the cache of a multiprocessor by, 16 bytes at a time, and no load passes what waits for memory.
// CHECK-LABEL: @once(
// CHECK: call { i32, i32, i32, i32 } asm sideeffect "ld.global.L1::no_allocate.v4.b32 {$0, $1, $2, $3}, [$4+0];", "=r,=r,=r,=r,l,~{memory}"(ptr addrspace(1)
// CHECK-NOT: asm
// CHECK: call {{.*}} asm sideeffect "{{.*}}[$4+0];"
// CHECK: call {{.*}} asm sideeffect "{{.*}}[$4+16];"
// Shorter pieces, and those that may lie anywhere, are plain loads.
// CHECK-NOT: asm
// CHECK: load <4 x bfloat>
// CHECK: load <8 x bfloat>, ptr {{.*}}, align 2
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @once(%x: memref<?xbf16>, %y: memref<?xf32>, %z: memref<?xbf16>, %u: memref<?xf32>, %i: index) kernel {
      %0 = vector.load %x[%i] {nontemporal = true} : memref<?xbf16>, vector<8xbf16>
      vector.store %0, %z[%i] : memref<?xbf16>, vector<8xbf16>
      %1 = vector.load %y[%i] {nontemporal = true} : memref<?xf32>, vector<8xf32>
      vector.store %1, %u[%i] : memref<?xf32>, vector<8xf32>
      %2 = vector.load %x[%i] {nontemporal = true} : memref<?xbf16>, vector<4xbf16>
      vector.store %2, %z[%i] : memref<?xbf16>, vector<4xbf16>
      %3 = vector.load %x[%i] {alignment = 2 : i64, nontemporal = true} : memref<?xbf16>, vector<8xbf16>
      vector.store %3, %z[%i] : memref<?xbf16>, vector<8xbf16>
      gpu.return
    }
  }
}
