// Kernels are compiled apart where there are threads for it. The text does not depend on how many threads made it: each kernel declares what it uses.
//
// RUN: ssa-opt %s --emit=ptx --chip=sm_90a -o %t.many
// RUN: ssa-opt %s --emit=ptx --chip=sm_90a -o %t.one --mlir-disable-threading
// RUN: cmp %t.many %t.one
// RUN: FileCheck %s < %t.many
//
// RUN: ssa-opt %S/Inputs/two-barriers.mlir --emit=ptx --chip=sm_90a -o %t.many
// RUN: ssa-opt %S/Inputs/two-barriers.mlir --emit=ptx --chip=sm_90a -o %t.one --mlir-disable-threading
// RUN: cmp %t.many %t.one
//
// Labels within inline assembly, too:
// RUN: ssa-opt %S/../../examples/nsa.mlir --emit=ptx --chip=sm_90a -o %t.many
// RUN: ssa-opt %S/../../examples/nsa.mlir --emit=ptx --chip=sm_90a -o %t.one --mlir-disable-threading
// RUN: cmp %t.many %t.one

// CHECK-NOT: .shared
// CHECK: .visible .entry short(
// CHECK-NOT: .shared
// CHECK: .visible .entry long(
// CHECK: .shared .align 4 .b8 __wg_long_0[256];
gpu.module @kernels {
  gpu.func @short(%o: memref<64xf32>) kernel {
    %i = gpu.thread_id x
    %x = arith.constant 1.0 : f32
    memref.store %x, %o[%i] : memref<64xf32>
    gpu.return
  }
  gpu.func @long(%o: memref<64xf32>) workgroup(%shared: memref<64xf32, #gpu.address_space<workgroup>>) kernel {
    %i = gpu.thread_id x
    %c63 = arith.constant 63 : index
    %x = memref.load %o[%i] : memref<64xf32>
    memref.store %x, %shared[%i] : memref<64xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %j = arith.subi %c63, %i : index
    %y = memref.load %shared[%j] : memref<64xf32, #gpu.address_space<workgroup>>
    memref.store %y, %o[%i] : memref<64xf32>
    gpu.return
  }
}
