// A kernel that copies by a tensor map into dynamic shared memory: what upstream's conversions alone would get wrong.
//
// RUN: ssa-opt %s --emit=ptx --chip=sm_90a | FileCheck %s
// RUN: %if ptxas %{ ssa-opt %s --emit=cubin --chip=sm_90a -o %t.cubin %}
// RUN: %if ptxas %{ ssa-opt %s --emit=cubin --chip=sm_120 -o %t.cubin %}
// RUN: not ssa-opt %s --emit=ptx --chip=sm_89 2>&1 | FileCheck %s --check-prefix=OLD
// OLD: error: 'nvgpu.tma.create.descriptor' op makes a tensor map, which 'sm_89' does not have
//
// The text does not depend on how many threads made it.
// RUN: ssa-opt %s --emit=ptx --chip=sm_90a -o %t.many
// RUN: ssa-opt %s --emit=ptx --chip=sm_90a -o %t.one --mlir-disable-threading
// RUN: cmp %t.many %t.one

// Of no size and declared once: it begins behind all other shared memory.
// CHECK: .extern .shared .align 1024 .b8 ssa_dynamic_shared_memory[];
// CHECK-NOT: .extern
// CHECK-LABEL: .visible .entry tile(
// By value, where the chip reads it.
// CHECK-NEXT: .param .align 64 .b8 tile_param_0[128],
// CHECK: .reqntid 128, 1, 1
// CHECK: cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
// CHECK: ld.shared.v4.b32
// CHECK-LABEL: .visible .entry fill(
// CHECK: $L__BB1_

!any = memref<?x4x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>>
!sh = memref<64x64xbf16, #gpu.address_space<workgroup>>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xbf16, #gpu.address_space<workgroup>>, swizzle = none, l2promo = l2promo_256b, oob = zero, interleave = none>
!bar = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
module attributes {gpu.container_module} {
  // head h, rows r .. r+63 of the tensor, into a 64x64 result
  func.func @tile(%x: !any, %row: i32) -> memref<64x64xbf16> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %bytes = arith.constant 8192 : i32
    %m = memref.dim %x, %c2 : !any
    %rows = memref.subview %x[0, 1, 0, 0] [1, 1, %m, 64] [1, 1, 1, 1] : !any to memref<?x64xbf16, strided<[?, 1], offset: ?>>
    %u = memref.cast %rows : memref<?x64xbf16, strided<[?, 1], offset: ?>> to memref<*xbf16>
    %map = nvgpu.tma.create.descriptor %u box[%c64, %c64] : memref<*xbf16> -> !map
    %o = memref.alloc() : memref<64x64xbf16>
    gpu.launch_func @kernels::@tile blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1) dynamic_shared_memory_size %bytes
      args(%map : !map, %o : memref<64x64xbf16>, %row : i32)
    return %o : memref<64x64xbf16>
  }
  gpu.module @kernels {
    gpu.func @tile(%map: !map, %o: memref<64x64xbf16>, %row: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %c16 = arith.constant 16 : index
      %c64 = arith.constant 64 : index
      %c128 = arith.constant 128 : index
      %c512 = arith.constant 512 : index
      %ticks = arith.constant 10000000 : index
      %txc = arith.constant 8192 : index
      %false = arith.constant false
      %t = gpu.thread_id x
      %dyn = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
      %sh = memref.view %dyn[%c0][] : memref<?xi8, #gpu.address_space<workgroup>> to !sh
      %bar = nvgpu.mbarrier.create -> !bar
      %first = arith.cmpi eq, %t, %c0 : index
      nvgpu.mbarrier.init %bar[%c0], %c1 : !bar
      gpu.barrier
      scf.if %first {
        nvgpu.mbarrier.arrive.expect_tx %bar[%c0], %txc : !bar
        %r = arith.index_cast %row : i32 to index
        nvgpu.tma.async.load %map[%c0, %r], %bar[%c0] to %sh : !map, !bar -> !sh
      }
      nvgpu.mbarrier.try_wait.parity %bar[%c0], %false, %ticks : !bar
      scf.for %i = %t to %c512 step %c128 {
        %rr = arith.divui %i, %c8 : index
        %cc = arith.remui %i, %c8 : index
        %d = arith.muli %cc, %c8 : index
        %v = vector.load %sh[%rr, %d] : !sh, vector<8xbf16>
        vector.store %v, %o[%rr, %d] : memref<64x64xbf16>, vector<8xbf16>
      }
      gpu.return
    }
    gpu.func @fill(%o: memref<?xi8>, %n: index) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %dyn = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
      scf.for %i = %c0 to %n step %c1 {
        %v = memref.load %dyn[%i] : memref<?xi8, #gpu.address_space<workgroup>>
        memref.store %v, %o[%i] : memref<?xi8>
      }
      gpu.return
    }
  }
}
