// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --verify-diagnostics --ssa-attach-target=chip=sm_90a --ssa-fuse --ssa-select-schedule=sizes=tokens=32768 | FileCheck %s

!q = tensor<1x64x?x128xbf16>
!kv = tensor<1x4x?x128xbf16>
!part = tensor<1x64x?x128xf32>
!l = tensor<1x64x?xf32>
!sel = !ssa.selection<1x4x?x8, key_block = 128, query_block = 128, sorted>

// Both have tiles of 128 rows: one kernel has a softmax over the keys of both.
// CHECK-LABEL: @merge
// CHECK: ssa.sparse_attend {{.*}} ssa.schedule = #[[S:.*]]}
// CHECK: ssa.sparse_attend {{.*}} ssa.schedule = #[[S]]}
// CHECK: ssa.merge {{.*}} {ssa.fused_attend = #ssa.fused_attend<part = 1, with = [0]>}
func.func @merge(%q: !q, %k: !kv, %v: !kv, %s: !sel) -> !q {
  %o1, %l1 = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>} : !q, !kv, !kv, !sel -> !part, !l
  %o2, %l2 = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal, window = 512>} : !q, !kv, !kv -> !part, !l
  %o, %l = ssa.merge (%o1, %l1), (%o2, %l2) : !part, !l, !part, !l -> !q, !l
  return %o : !q
}

// -----

!q = tensor<1x64x?x128xbf16>
!kv = tensor<1x4x?x128xbf16>
!l = tensor<1x64x?xf32>

// What comes from elsewhere is read, as before; part 2 has keys with other values.
// CHECK-LABEL: @mix
// CHECK: ssa.mix {{.*}} {ssa.fused_attend = #ssa.fused_attend<part = 3, with = [1]>}
func.func @mix(%q: !q, %k: !kv, %v: !kv, %e: !kv, %f: !kv, %o0: !q, %g: !l) -> !q {
  %o1, %l1 = ssa.sparse_attend %q, %e, %f of %k {blocks = #ssa.blocks<64>, mask = #ssa.mask<causal>} : !q, !kv, !kv, !kv -> !q, !l
  %o2, %l2 = ssa.sparse_attend %q, %e, %e of %k {blocks = #ssa.blocks<64>, mask = #ssa.mask<causal>} : !q, !kv, !kv, !kv -> !q, !l
  %o3, %l3 = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal, window = 512>} : !q, !kv, !kv -> !q, !l
  // expected-remark @below {{leaves a part to another kernel: part 2 has values that are columns of its keys, unlike the others}}
  %o = ssa.mix (%o0, %g), (%o1, %g), (%o2, %g), (%o3, %g) : !q, !l, !q, !l, !q, !l, !q, !l -> !q
  return %o : !q
}

// -----

!q = tensor<1x64x?x128xbf16>
!kv = tensor<1x4x?x128xbf16>
!part = tensor<1x64x?x128xf32>
!l = tensor<1x64x?xf32>
!sel = !ssa.selection<1x4x?x16, key_block = 64, sorted>

// A list for every query has 16 rows: a window in tiles of those would read its keys for every query.
// CHECK-LABEL: @lists_of_queries
// CHECK: ssa.merge {{.*}} {ssa.fused_attend = #ssa.fused_attend<part = 1>}
func.func @lists_of_queries(%q: !q, %k: !kv, %v: !kv, %s: !sel) -> !q {
  %o1, %l1 = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>} : !q, !kv, !kv, !sel -> !part, !l
  %o2, %l2 = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal, window = 512>} : !q, !kv, !kv -> !part, !l
  // expected-remark @below {{leaves a part to another kernel: with part 0 one kernel would take}}
  %o, %l = ssa.merge (%o1, %l1), (%o2, %l2) : !part, !l, !part, !l -> !q, !l
  return %o : !q
}

// -----

!q = tensor<1x64x?x128xbf16>
!kv = tensor<1x4x?x128xbf16>
!l = tensor<1x64x?xf32>

// What is written stays: these schedules differ. So does the part.
// CHECK-LABEL: @written
// CHECK: tile_rows = 64
// CHECK: tile_rows = 128
// CHECK: ssa.merge {{.*}} {ssa.fused_attend = #ssa.fused_attend<part = 0>}
func.func @written(%q: !q, %k: !kv, %v: !kv) -> !q {
  %o1, %l1 = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal>, ssa.schedule = #ssa.schedule<instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2>} : !q, !kv, !kv -> !q, !l
  %o2, %l2 = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal, window = 512>, ssa.schedule = #ssa.schedule<instruction = wgmma, tile_rows = 128, tile_keys = 64, stages = 2>} : !q, !kv, !kv -> !q, !l
  // expected-remark @below {{leaves a part to another kernel: its attention has no schedule that one kernel could have for all}}
  %o, %l = ssa.merge (%o1, %l1), (%o2, %l2) {ssa.fused_attend = #ssa.fused_attend<part = 0>} : !q, !l, !q, !l -> !q, !l
  return %o : !q
}

// CHECK-LABEL: @by_hand
// CHECK: tile_rows = 64, tile_keys = 64, stages = 3
// CHECK: tile_rows = 64, tile_keys = 64, stages = 3
// CHECK: ssa.merge {{.*}} {ssa.fused_attend = #ssa.fused_attend<part = 0, with = [1]>}
func.func @by_hand(%q: !q, %k: !kv, %v: !kv) -> !q {
  %o1, %l1 = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal>, ssa.schedule = #ssa.schedule<instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 3>} : !q, !kv, !kv -> !q, !l
  %o2, %l2 = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal, window = 512>} : !q, !kv, !kv -> !q, !l
  %o, %l = ssa.merge (%o1, %l1), (%o2, %l2) {ssa.fused_attend = #ssa.fused_attend<part = 0, with = [1]>} : !q, !l, !q, !l -> !q, !l
  return %o : !q
}
