// RUN: ssa-opt %s --pass-pipeline='builtin.module(ssa-gpu-allocate,gpu.module(convert-ssa-gpu-to-nvvm))' | FileCheck %s

!pipe = !ssa_gpu.pipe<1, copies = true>
!tile = !ssa_gpu.shared<64x256xbf16>
!places = tensor<64xi64, #ssa_gpu.places<72>>

// A slot is full once each of four warps and each of their 128 threads has arrived, a thread when its copies are done. Who reads it sees them as
// operands of products after a fence. Columns of longer rows: they begin 256 elements behind the place of a row. A warp copies of four rows at once, 128
// bytes of each and then the next: a lane needs the place of one row for four copies.

// CHECK-LABEL: gpu.func @kernel
// CHECK: mbarrier.init.shared::cta.b64 [$0+0], 132;
// CHECK: mbarrier.try_wait.parity
// CHECK: "fence.proxy.async.shared::cta;"
// CHECK: mbarrier.arrive.release.cta
// CHECK: mbarrier.try_wait.parity
// CHECK: %[[FIRST:.*]] = arith.constant 256 : i64
// CHECK: llvm.getelementptr %{{.*}}[%[[FIRST]]]
// CHECK: shfl.sync.idx.b32 high, high
// CHECK-NOT: shfl.sync
// CHECK-COUNT-4: nvvm.cp.async.shared.global
// CHECK: shfl.sync.idx.b32 high, high
// CHECK-COUNT-12: nvvm.cp.async.shared.global
// CHECK-NOT: nvvm.cp.async
// CHECK: "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [$0];"
// CHECK: mbarrier.arrive.release.cta
gpu.module @kernels {
  gpu.func @kernel(%source: memref<?x576xbf16>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %memory = ssa_gpu.alloc : !tile
    %pipe = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 4 : i64} : !pipe
    ssa_gpu.roles threads [128, 128] registers [232, 40] {
      ssa_gpu.await %pipe[%c0] : !pipe
      ssa_gpu.release %pipe[%c0] : !pipe
    }, {
      %places = ssa_gpu.find_rows {
      ^bb0(%row: i32):
        %at = arith.index_cast %row : i32 to index
        %yes = arith.constant true
        ssa_gpu.yield %at, %yes : index, i1
      } : !places
      ssa_gpu.acquire %pipe[%c0] : !pipe
      ssa_gpu.copy_rows %source at %places to %memory {columns = 256 : i64, width = 8 : i64, first = 256 : i64} : memref<?x576xbf16>, !places, !tile
      ssa_gpu.publish %pipe[%c0] : !pipe
    }
    gpu.return
  }
}
