// RUN: ssa-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(gpu.module(convert-ssa-gpu-to-nvvm))" | FileCheck %s

!left = !ssa_gpu.shared<128x64xbf16>
!right = !ssa_gpu.shared<64x64xbf16>
!scores = !ssa_gpu.tensor_memory<2x128x64xf32>
!score = !ssa_gpu.tensor_memory<128x64xf32>
!weights = !ssa_gpu.tensor_memory<128x64xbf16>
!tile = tensor<128x64xf32, #ssa_gpu.accumulator<rowwise = true>>
!rows = tensor<128xf32, #ssa_gpu.rows<rowwise = true>>

gpu.module @kernels {
  // Tensor memory is there before roles begin and is freed when all threads are back. One thread begins products; the barrier hears of their end. Between roles
  // that both access tensor memory there are fences, not where one hands over what others have copied.
  // CHECK-LABEL: gpu.func @products
  // CHECK: tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32
  // CHECK: tcgen05.fence::before_thread_sync
  // CHECK: gpu.barrier
  // CHECK: tcgen05.fence::after_thread_sync
  // CHECK: setmaxregister
  // CHECK: mbarrier.try_wait
  // CHECK: tcgen05.fence::after_thread_sync
  // CHECK: tcgen05.ld.sync.aligned.32x32b.x32.b32
  // CHECK-SAME: tcgen05.ld.sync.aligned.32x32b.x32.b32
  // CHECK-SAME: tcgen05.wait::ld.sync.aligned
  // CHECK: tcgen05.st.sync.aligned.32x32b.x32.b32
  // CHECK-SAME: tcgen05.wait::st.sync.aligned
  // CHECK: tcgen05.fence::before_thread_sync
  // CHECK: mbarrier.arrive
  // CHECK: setmaxregister
  // CHECK: mbarrier.try_wait
  // CHECK: tcgen05.fence::after_thread_sync
  // CHECK: mbarrier.try_wait
  // CHECK-NOT: tcgen05.fence
  // CHECK: elect.sync
  // CHECK-COUNT-4: tcgen05.mma.cta_group::1.kind::f16
  // CHECK: tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64
  // CHECK: tcgen05.fence::before_thread_sync
  // CHECK: gpu.barrier
  // CHECK: tcgen05.dealloc.cta_group::1.sync.aligned.b32
  // CHECK: gpu.return
  gpu.func @products() kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %false = arith.constant false
    %left = ssa_gpu.alloc {offset = 0 : i64} : !left
    %right = ssa_gpu.alloc {offset = 16384 : i64} : !right
    %pipe = ssa_gpu.alloc_pipe {producers = 1 : i64, consumers = 4 : i64, offset = 24576 : i64} : !ssa_gpu.pipe<2>
    %back = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 1 : i64, offset = 24608 : i64} : !ssa_gpu.pipe<1>
    %full = ssa_gpu.alloc_pipe {producers = 1 : i64, consumers = 1 : i64, offset = 24624 : i64} : !ssa_gpu.pipe<1>
    %scores, %weights = ssa_gpu.alloc_tensors {offset = 24640 : i64} : !scores, !weights
    ssa_gpu.roles threads [128, 32, 32] registers [232, 40, 40] {
      ssa_gpu.await %pipe[%c0] : !ssa_gpu.pipe<2>
      %score = ssa_gpu.slot %scores[%c0] : !scores -> !score
      %tile = ssa_gpu.load_tensor %score[%c0] : !score -> !tile
      %double = arith.addf %tile, %tile : !tile
      ssa_gpu.store_tensor %double to %weights[%c0] : !tile, !weights
      ssa_gpu.publish %back[%c0] : !ssa_gpu.pipe<1>
    }, {
      ssa_gpu.await %back[%c0] : !ssa_gpu.pipe<1>
      ssa_gpu.await %full[%c0] : !ssa_gpu.pipe<1>
      %score = ssa_gpu.slot %scores[%c0] : !scores -> !score
      ssa_gpu.mma_tensor %left, transposed %right to %score adds %false : !left, !right, !score
      ssa_gpu.publish %pipe[%c0] after products : !ssa_gpu.pipe<2>
    }, {
      ssa_gpu.publish %full[%c0] : !ssa_gpu.pipe<1>
    }
    ssa_gpu.free_tensors %scores, %weights : !scores, !weights
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @no_offset() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    // expected-error @+2 {{has no offset; run 'ssa-gpu-allocate' first}}
    // expected-error @below {{failed to legalize operation 'ssa_gpu.alloc_tensors' that was explicitly marked illegal}}
    %s = ssa_gpu.alloc_tensors : !ssa_gpu.tensor_memory<128x64xf32>
    gpu.return
  }
}
