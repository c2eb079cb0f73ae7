// RUN: ssa-opt %s --pass-pipeline="builtin.module(gpu.module(convert-ssa-gpu-to-nvvm))" | FileCheck %s

!left = !ssa_gpu.shared<64x64xbf16>
!right = !ssa_gpu.shared<64x128xbf16>
!result = !ssa_gpu.tensor_memory<64x256xf32>
!tile = tensor<64x64xf32, #ssa_gpu.accumulator<groups = 2, rowwise = true>>
!map = !nvgpu.tensormap.descriptor<tensor = memref<1x64xbf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>

gpu.module @kernels {
  // Blocks of a pair wait for one another before anyone uses a barrier, and before tensor memory is freed. Only the first begins products, once the second
  // has said that its operands are there; both hear of their end.
  // CHECK-LABEL: gpu.func @pair
  // CHECK: mbarrier.init
  // CHECK: fence.mbarrier_init.release.cluster
  // CHECK: tcgen05.alloc.cta_group::2
  // CHECK-SAME: tcgen05.relinquish_alloc_permit.cta_group::2
  // CHECK: barrier.cluster.arrive.release.aligned
  // CHECK-SAME: barrier.cluster.wait.acquire.aligned
  // CHECK: barrier.cluster.arrive.release.aligned
  // CHECK: setmaxregister
  // CHECK: mbarrier.expect_tx
  // CHECK: cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes
  // CHECK: setmaxregister
  // CHECK: mbarrier.try_wait.parity.acquire.cta
  // CHECK: scf.if
  // CHECK: mbarrier.try_wait.parity.acquire.cluster
  // CHECK: else
  // CHECK: mapa.shared::cluster.u32
  // CHECK-SAME: mbarrier.arrive.release.cluster.shared::cluster.b64
  // CHECK: elect.sync
  // CHECK-COUNT-4: tcgen05.mma.cta_group::2.kind::f16
  // CHECK-NOT: tcgen05.mma
  // CHECK: tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64
  // CHECK: tcgen05.ld.sync.aligned.32x32b.x32.b32
  // CHECK-NOT: tcgen05.ld
  // CHECK: barrier.cluster.arrive.release.aligned
  // CHECK: tcgen05.dealloc.cta_group::2
  gpu.func @pair(%map: !map) kernel attributes {known_block_size = array<i32: 384, 1, 1>, ssa_gpu.pair} {
    %c0 = arith.constant 0 : i32
    %false = arith.constant false
    %left = ssa_gpu.alloc {offset = 0 : i64} : !left
    %right = ssa_gpu.alloc {offset = 8192 : i64} : !right
    %full = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 1 : i64, offset = 40960 : i64} : !ssa_gpu.pipe<1, pair = true>
    %made = ssa_gpu.alloc_pipe {producers = 1 : i64, consumers = 4 : i64, offset = 40984 : i64} : !ssa_gpu.pipe<1>
    %result = ssa_gpu.alloc_tensors {offset = 41008 : i64} : !result
    ssa_gpu.roles threads [128, 32, 128] registers [56, 40, 200] {
      ssa_gpu.acquire %full[%c0] : !ssa_gpu.pipe<1, pair = true>
      ssa_gpu.gather_box %map[%c0] to %right through %full[%c0] {
      ^bb0(%row: i32):
        ssa_gpu.yield %row : i32
      } : !map, !right, !ssa_gpu.pipe<1, pair = true>
      ssa_gpu.publish %full[%c0] : !ssa_gpu.pipe<1, pair = true>
    }, {
      ssa_gpu.await %full[%c0] in pair : !ssa_gpu.pipe<1, pair = true>
      ssa_gpu.mma_tensor %left, %right to %result adds %false : !left, !right, !result
      ssa_gpu.publish %made[%c0] after products : !ssa_gpu.pipe<1>
    }, {
      ssa_gpu.await %made[%c0] : !ssa_gpu.pipe<1>
      %tile = ssa_gpu.load_tensor %result[%c0] : !result -> !tile
    }
    ssa_gpu.free_tensors %result : !result
    gpu.return
  }
}
