// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --pass-pipeline='builtin.module(ssa-attach-target{chip=sm_90a},ssa-select-schedule,convert-ssa-to-ssa-gpu,canonicalize,cse)' | FileCheck %s
// RUN: ssa-opt %s --split-input-file --pass-pipeline='builtin.module(ssa-attach-target{chip=sm_100},ssa-select-schedule,convert-ssa-to-ssa-gpu,canonicalize,cse)' | FileCheck %s --check-prefix=SYNC

!q = tensor<?x16x?x128xbf16>
!kv = tensor<?x4x?x128xbf16>
!l = tensor<?x16x?xf32>

// Some warps copy, others multiply; queries and whole steps are boxes. There is one loop over steps: the product of values is under way during
// the next softmax, that of a tile's last step during the first one of the next tile, where the tile is stored. Queries are in registers; a tile's first
// product of values is not added to what there is.
// CHECK: gpu.func @ssa_sparse_attend(
// CHECK-SAME: !nvgpu.tensormap.descriptor
// Producers say how many steps an item has, and which rows these are of.
// CHECK: %[[ITEMS:.*]] = ssa_gpu.alloc : <1x5xi32>
// CHECK: ssa_gpu.alloc_pipe {consumers = 8 : i64, producers = 4 : i64} : <2>
// CHECK: ssa_gpu.roles threads [256, 128] registers [240, 24] {
// CHECK: scf.for
// CHECK: ssa_gpu.await
// CHECK: %[[ITEM:.*]] = ssa_gpu.slot %[[ITEMS]]
// CHECK-COUNT-5: ssa_gpu.load_entry %[[ITEM]]
// CHECK: %[[QUERIES:.*]] = ssa_gpu.load_operand
// CHECK: scf.for
// CHECK: ssa_gpu.mma wgmma async %[[QUERIES]], transposed
// CHECK: ssa_gpu.mma wgmma async %{{.*}}, %{{.*}}, %{{.*}} adds %{{.*}} : tensor<128x128xbf16, #ssa_gpu.operand>
// CHECK: ssa_gpu.load_entry
// CHECK: ssa_gpu.wait_mma %{{.*}} pending 1
// CHECK: ssa_gpu.release
// CHECK: %[[MAX:.*]] = ssa_gpu.reduce max %{{.*}} {of_lanes}
// CHECK: %[[KEPT:.*]] = ssa_gpu.warp_all
// CHECK: scf.if %[[KEPT]]
// CHECK: ssa_gpu.join_lanes max %[[MAX]]
// CHECK: math.exp2
// CHECK: ssa_gpu.reduce sum %{{.*}} {of_lanes}
// CHECK: ssa_gpu.wait_mma %{{.*}} pending 0
// CHECK: scf.if
// CHECK: ssa_gpu.join_lanes sum
// CHECK: ssa_gpu.store_rows
// CHECK: width = 8
// CHECK-NOT: ssa_gpu.store_rows
// CHECK: }, {
// Zeros are the values before the first.
// CHECK: ssa_gpu.copy_rows
// CHECK: ssa_gpu.publish
// CHECK: ssa_gpu.acquire
// CHECK: ssa_gpu.copy_box
// CHECK-NOT: ssa_gpu.finish_copies
// CHECK: ssa_gpu.publish
// CHECK: ssa_gpu.acquire
// CHECK: ssa_gpu.copy_box
// CHECK: } else {
// CHECK: ssa_gpu.copy_rows
// CHECK: ssa_gpu.finish_copies 0
// CHECK: ssa_gpu.publish
// Rows of keys are there twice in a map, from the first on: at `w` and `i` row `w + i`. Of no box is anything before the buffer.
// Without keys none is copied, so there is no other kernel for that.
// CHECK-LABEL: func.func @window
// CHECK-NOT: scf.if
// CHECK: nvgpu.tma.create.descriptor
// CHECK: memref.reinterpret_cast {{.*}} to offset: [%offset{{.*}}], {{.*}} strides: [%[[B:.*]]#0, %[[B]]#1, %[[B]]#2, %[[B]]#2, 1] : {{.*}} to memref<?x4x?x128x128xbf16, strided<[?, ?, ?, ?, 1], offset: ?>>
// CHECK: nvgpu.tma.create.descriptor
// CHECK: gpu.launch_func @kernels::@ssa_sparse_attend
// CHECK-NOT: gpu.launch_func
// CHECK: return

// SYNC: gpu.func @ssa_sparse_attend(
// SYNC-NOT: ssa_gpu.roles
// SYNC: ssa_gpu.mma mma_sync
func.func @window(%q: !q, %k: !kv, %v: !kv) -> !q {
  %o, %l = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal, window = 256>} : !q, !kv, !kv -> !q, !l
  return %o : !q
}

// -----

!q = tensor<?x16x?x576xbf16>
!k = tensor<?x1x?x576xbf16>
!v = tensor<?x1x?x512xbf16>
!o = tensor<?x16x?x512xbf16>
!l = tensor<?x16x?xf32>
!s = !ssa.selection<?x1x?x64, key_block = 1, sorted>

// Values that are the first columns of keys are there once. Two groups have half of the columns of the output each and take turns: each makes
// the weights of every second step and gives them to the other; those of the first lie behind the values of its step. The keys of a step are two parts,
// each with a pipe that waits for copies.
// CHECK: gpu.func @ssa_sparse_attend(
// CHECK: ssa_gpu.alloc : <1x64x576xbf16>
// CHECK-NEXT: ssa_gpu.alloc : <1x64x256xbf16>
// CHECK-NEXT: ssa_gpu.alloc_pipe {consumers = 4 : i64, producers = 4 : i64} : <1, copies = true>
// CHECK-NEXT: ssa_gpu.alloc : <1x64x320xbf16>
// CHECK-NEXT: ssa_gpu.alloc_pipe {consumers = 8 : i64, producers = 4 : i64} : <1, copies = true>
// CHECK: ssa_gpu.alloc : <1x64x256xbf16>
// CHECK: ssa_gpu.alloc : <64x64xbf16>
// CHECK: ssa_gpu.roles threads [128, 128, 128] registers [224, 224, 56] {
// The first group begins with what the second has made in the round before, and with a few scores behind that. Where a softmax begins the one before is
// stored, while scores are under way.
// CHECK: ssa_gpu.mma wgmma async %{{.*}}, %{{.*}}, %{{.*}} : !ssa_gpu.shared<64x64xbf16>, <64x256xbf16>
// CHECK: ssa_gpu.columns %{{.*}} {first = 0 : i64} : <64x576xbf16> -> <64x128xbf16>
// CHECK: ssa_gpu.mma wgmma async %{{.*}}, transposed
// CHECK: ssa_gpu.wait_mma %{{.*}} pending 1
// CHECK: ssa_gpu.columns %{{.*}} {first = 128 : i64} : <64x576xbf16> -> <64x128xbf16>
// CHECK: ssa_gpu.mma wgmma async %{{.*}}, transposed
// CHECK: ssa_gpu.columns %{{.*}} {first = 256 : i64} : <64x576xbf16> -> <64x320xbf16>
// CHECK: ssa_gpu.mma wgmma async %{{.*}}, transposed
// CHECK: scf.if
// CHECK: ssa_gpu.store_rows
// CHECK: ssa_gpu.wait_mma %{{.*}} pending 0
// CHECK: ssa_gpu.barrier
// CHECK: ssa_gpu.save_rows
// CHECK: %[[WEIGHTS:.*]] = ssa_gpu.columns %{{.*}} {first = 256 : i64} : <64x320xbf16> -> <64x64xbf16>
// CHECK: ssa_gpu.store_operand %{{.*}} to %[[WEIGHTS]]
// CHECK: ssa_gpu.publish
// CHECK: ssa_gpu.mma wgmma async %{{.*}}, %{{.*}}, %{{.*}} : tensor<64x64xbf16, #ssa_gpu.operand>, <64x256xbf16>
// CHECK: }, {
// CHECK: ssa_gpu.store_operand
// CHECK: scf.for
// CHECK: ssa_gpu.await
// CHECK: ssa_gpu.columns %{{.*}} {first = 0 : i64} : <64x320xbf16> -> <64x256xbf16>
// CHECK: ssa_gpu.mma wgmma async %{{.*}}, %{{.*}}, %{{.*}} : !ssa_gpu.shared<64x64xbf16>, <64x256xbf16>
// The end of a list is looked for, and the rows of its first step are looked up, before producers wait for room; queries come first, then the keys of the
// groups, numbers behind the copies of a part, which do not wait for them. The list of the next item is fetched ahead.
// CHECK: }, {
// CHECK: llvm.nvvm.vote.ballot.sync
// CHECK: %[[FIRST:.*]] = ssa_gpu.find_rows
// CHECK: memref.load
// CHECK: scf.for {{.*}} iter_args(%[[FOUND:.*]] = %[[FIRST]],
// CHECK: ssa_gpu.acquire
// CHECK: scf.if
// CHECK: ssa_gpu.copy_box
// CHECK: ssa_gpu.publish
// CHECK: ssa_gpu.acquire
// CHECK: ssa_gpu.copy_rows %{{.*}} at %[[FOUND]] to
// CHECK-NEXT: arith
// CHECK-NEXT: ssa_gpu.fill
// CHECK: ssa_gpu.publish
// CHECK: ssa_gpu.copy_rows %{{.*}} at %[[FOUND]] to
// CHECK: ssa_gpu.publish
// CHECK: scf.if
// CHECK: ssa_gpu.fetch_ahead %{{.*}} {bytes = {{.*}}}
// CHECK-NOT: ssa_gpu.finish_copies
// CHECK-LABEL: func.func @latent
// SYNC: gpu.func @ssa_sparse_attend(
// SYNC: tensor<64x512xf32, #ssa_gpu.accumulator<groups = 4>>
func.func @latent(%q: !q, %k: !k, %s: !s) -> !o {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %k, %c0 : !k
  %n = tensor.dim %k, %c2 : !k
  %v = tensor.extract_slice %k[0, 0, 0, 0] [%b, 1, %n, 512] [1, 1, 1, 1] : !k to !v
  %o, %l = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>} : !q, !k, !v, !s -> !o, !l
  return %o : !o
}
