// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --verify-diagnostics --ssa-attach-target=chip=sm_90a --convert-ssa-to-ssa-gpu | FileCheck %s

!q = tensor<1x8x?x64xbf16>
!kv = tensor<1x2x?x64xbf16>
!part = tensor<1x8x?x64xf32>
!l = tensor<1x8x?xf32>
!sel = !ssa.selection<1x2x?x4, key_block = 64, query_block = 64, sorted>
#s = #ssa.schedule<instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2>

// One softmax over the keys of both: outputs are stored once, behind the last product of the item before, and so is their log-sum-exp.
// CHECK-LABEL: gpu.func @ssa_sparse_attend
// CHECK: ssa_gpu.roles
// CHECK: scf.for
// CHECK: ssa_gpu.store_rows
// CHECK: ssa_gpu.store_entries
// CHECK: scf.for
// CHECK-NOT: ssa_gpu.store_rows
// CHECK: gpu.return
// CHECK-LABEL: func.func @merge
// CHECK-COUNT-1: gpu.launch_func @kernels::@ssa_sparse_attend
// CHECK-NOT: @ssa_sparse_attend
// CHECK-NOT: @ssa_merge
// CHECK: return
func.func @merge(%q: !q, %k: !kv, %v: !kv, %t: tensor<1x2x?x4xi32>, %s: tensor<8xf32>) -> (!q, !l) {
  %raw = ssa.from_indices %t : tensor<1x2x?x4xi32> -> !ssa.selection<1x2x?x4, key_block = 64, query_block = 64>
  %o1, %l1 = ssa.sparse_attend %q, %k, %v at %raw {mask = #ssa.mask<causal>, ssa.schedule = #s} : !q, !kv, !kv, !ssa.selection<1x2x?x4, key_block = 64, query_block = 64> -> !part, !l
  %o2, %l2 = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal, window = 100>, ssa.schedule = #s} : !q, !kv, !kv -> !part, !l
  %o, %l = ssa.merge (%o1, %l1), (%o2, %l2) sink_logits %s {ssa.fused_attend = #ssa.fused_attend<part = 1, with = [0]>} : !part, !l, !part, !l, tensor<8xf32> -> !q, !l
  return %o, %l : !q, !l
}

// -----

!q = tensor<1x8x?x64xbf16>
!kv = tensor<1x2x?x64xbf16>
!l = tensor<1x8x?xf32>
#s = #ssa.schedule<instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2>

// A softmax for each: the second is added to what the first has left in the result. Keys of one may exist where there are none of the other, of which
// nothing is copied then.
// CHECK-LABEL: gpu.func @ssa_sparse_attend
// CHECK-SAME: (%{{[a-z0-9]+}}: memref{{[^%]*}}%[[OUT:[a-z0-9]+]]: memref
// CHECK: scf.for
// CHECK: ssa_gpu.store_rows {{.*}} to %[[OUT]] plus(%[[OUT]] : {{.*}}) times
// CHECK: scf.for
// CHECK: ssa_gpu.store_rows {{.*}} to %[[OUT]] {
// CHECK: gpu.return
// CHECK-LABEL: func.func @mix
// CHECK-COUNT-1: gpu.launch_func @kernels::@ssa_sparse_attend
// CHECK-NOT: @ssa_sparse_attend
// CHECK-NOT: @ssa_mix
// CHECK: return
func.func @mix(%q: !q, %k: !kv, %v: !kv, %e: !kv, %f: !kv, %g1: !l, %g2: !l) -> !q {
  %o1, %l1 = ssa.sparse_attend %q, %e, %f of %k {blocks = #ssa.blocks<16>, mask = #ssa.mask<causal>, ssa.schedule = #s} : !q, !kv, !kv, !kv -> !q, !l
  %o2, %l2 = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal, window = 100>, ssa.schedule = #s} : !q, !kv, !kv -> !q, !l
  %o = ssa.mix (%o1, %g1), (%o2, %g2) {ssa.fused_attend = #ssa.fused_attend<part = 1, with = [0]>} : !q, !l, !q, !l -> !q
  return %o : !q
}

// -----

!q = tensor<1x8x?x64xbf16>
!kv = tensor<1x2x?x64xbf16>
!l = tensor<1x8x?xf32>
#s = #ssa.schedule<instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2>

func.func @other_queries(%q: !q, %p: !q, %k: !kv) -> !q {
  %o1, %l1 = ssa.sparse_attend %q, %k, %k {ssa.schedule = #s} : !q, !kv, !kv -> !q, !l
  %o2, %l2 = ssa.sparse_attend %p, %k, %k {ssa.schedule = #s} : !q, !kv, !kv -> !q, !l
  // expected-error @below {{cannot have 'ssa.fused_attend': part 0 has other queries}}
  %o, %l = ssa.merge (%o1, %l1), (%o2, %l2) {ssa.fused_attend = #ssa.fused_attend<part = 1, with = [0]>} : !q, !l, !q, !l -> !q, !l
  return %o : !q
}

// -----

!q = tensor<1x8x?x64xbf16>
!kv = tensor<1x2x?x64xbf16>
!l = tensor<1x8x?xf32>
#s = #ssa.schedule<instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2>

func.func @other_values(%q: !q, %k: !kv, %v: !kv) -> !q {
  %o1, %l1 = ssa.sparse_attend %q, %k, %k {ssa.schedule = #s} : !q, !kv, !kv -> !q, !l
  %o2, %l2 = ssa.sparse_attend %q, %k, %v {ssa.schedule = #s} : !q, !kv, !kv -> !q, !l
  // expected-error @below {{cannot have 'ssa.fused_attend': part 0 has values that are columns of its keys, unlike the others}}
  %o, %l = ssa.merge (%o1, %l1), (%o2, %l2) {ssa.fused_attend = #ssa.fused_attend<part = 1, with = [0]>} : !q, !l, !q, !l -> !q, !l
  return %o : !q
}

// -----

!q = tensor<1x8x?x64xbf16>
!kv = tensor<1x2x?x64xbf16>
!l = tensor<1x8x?xf32>

func.func @other_schedule(%q: !q, %k: !kv) -> !q {
  %o1, %l1 = ssa.sparse_attend %q, %k, %k {ssa.schedule = #ssa.schedule<instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2>} : !q, !kv, !kv -> !q, !l
  %o2, %l2 = ssa.sparse_attend %q, %k, %k {ssa.schedule = #ssa.schedule<instruction = wgmma, tile_rows = 128, tile_keys = 64, stages = 2>} : !q, !kv, !kv -> !q, !l
  // expected-error @below {{cannot have 'ssa.fused_attend': parts 0 and 1 have different schedules}}
  %o, %l = ssa.merge (%o1, %l1), (%o2, %l2) {ssa.fused_attend = #ssa.fused_attend<part = 1, with = [0]>} : !q, !l, !q, !l -> !q, !l
  return %o : !q
}

// -----

!q = tensor<1x8x?x64xbf16>
!kv = tensor<1x2x?x64xbf16>
!l = tensor<1x8x?xf32>
#s = #ssa.schedule<instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2, split = 2>

func.func @split(%q: !q, %k: !kv) -> !q {
  %o1, %l1 = ssa.sparse_attend %q, %k, %k {ssa.schedule = #s} : !q, !kv, !kv -> !q, !l
  %o2, %l2 = ssa.sparse_attend %q, %k, %k {ssa.schedule = #s} : !q, !kv, !kv -> !q, !l
  // expected-error @below {{cannot have 'ssa.fused_attend': no kernel for several parts has 'split'}}
  %o, %l = ssa.merge (%o1, %l1), (%o2, %l2) {ssa.fused_attend = #ssa.fused_attend<part = 1, with = [0]>} : !q, !l, !q, !l -> !q, !l
  return %o : !q
}

// -----

!q = tensor<1x8x?x64xbf16>
!kv = tensor<1x2x?x64xbf16>
!l = tensor<1x8x?xf32>
!a = !ssa.selection<1x2x?x4, key_block = 64, query_block = 12>
!b = !ssa.selection<1x2x?x4, key_block = 64, query_block = 8>
#s = #ssa.schedule<instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2>

func.func @query_blocks(%q: !q, %k: !kv, %s: tensor<1x2x?x4xi32>, %t: tensor<1x2x?x4xi32>) -> !q {
  %a = ssa.from_indices %s : tensor<1x2x?x4xi32> -> !a
  %b = ssa.from_indices %t : tensor<1x2x?x4xi32> -> !b
  %o1, %l1 = ssa.sparse_attend %q, %k, %k at %a {ssa.schedule = #s} : !q, !kv, !kv, !a -> !q, !l
  %o2, %l2 = ssa.sparse_attend %q, %k, %k at %b {ssa.schedule = #s} : !q, !kv, !kv, !b -> !q, !l
  // expected-error @below {{cannot have 'ssa.fused_attend': part 0 has lists for 12 queries, no multiple of 8}}
  %o, %l = ssa.merge (%o1, %l1), (%o2, %l2) {ssa.fused_attend = #ssa.fused_attend<part = 1, with = [0]>} : !q, !l, !q, !l -> !q, !l
  return %o : !q
}
