// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --pass-pipeline='builtin.module(ssa-attach-target{chip=sm_90a},ssa-select-schedule,convert-ssa-to-ssa-gpu,canonicalize,cse)' | FileCheck %s

!q = tensor<?x16x?x128xbf16>
!kv = tensor<?x1x?x128xbf16>
!l = tensor<?x16x?xf32>
!sel = !ssa.selection<?x1x?x6, key_block = 64, sorted>

// Four queries of sixteen heads make a tile: their 24 numbers are united, and one word says who has an entry. A step is one entry.
// CHECK: gpu.func @ssa_union_of_neighbours
// CHECK: gpu.func @ssa_members_of_union
// CHECK: gpu.func @ssa_sparse_attend({{.*}}memref<?x1x?x24xi32, {{.*}}memref<?x1x?x24xi32,
// CHECK: ssa_gpu.alloc : <2x1xi32>
// CHECK: ssa_gpu.warp_all
// CHECK-LABEL: func.func @union
func.func @union(%q: !q, %k: !kv, %v: !kv, %s: !sel) -> !q {
  %o, %l = ssa.sparse_attend %q, %k, %v at %s
      {mask = #ssa.mask<causal>, ssa.schedule = #ssa.schedule<order = union, instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2>}
      : !q, !kv, !kv, !sel -> !q, !l
  return %o : !q
}

// -----

!q = tensor<?x1x?x128xbf16>
!kv = tensor<?x1x?x128xbf16>
!l = tensor<?x1x?xf32>
!sel = !ssa.selection<?x1x?x6, key_block = 8, sorted>

// 64 lists need two words, and a step of 32 keys has several entries, too short to be copied as boxes: words stand beside every key.
// CHECK: gpu.func @ssa_sparse_attend({{.*}}memref<?x1x?x384xi32, {{.*}}memref<?x1x?x768xi32,
// CHECK: ssa_gpu.alloc : <2x64xi32>
// CHECK-LABEL: func.func @many_lists
func.func @many_lists(%q: !q, %k: !kv, %v: !kv, %s: !sel) -> !q {
  %o, %l = ssa.sparse_attend %q, %k, %v at %s
      {mask = #ssa.mask<causal>, ssa.schedule = #ssa.schedule<order = union, instruction = wgmma, tile_rows = 64, tile_keys = 32, stages = 2>}
      : !q, !kv, !kv, !sel -> !q, !l
  return %o : !q
}

// -----

!q = tensor<?x1x?x128xbf16>
!kv = tensor<?x1x?x128xbf16>
!l = tensor<?x1x?xf32>
!sel = !ssa.selection<?x1x?x6, key_block = 16, sorted>

// Two blocks are a step: of each, where it begins and how many keys it has, two words, and a box of keys and of values.
// CHECK: gpu.func @ssa_sparse_attend({{.*}}memref<?x1x?x384xi32, {{.*}}memref<?x1x?x768xi32,
// CHECK-COUNT-2: ssa_gpu.alloc : <2x4xi32>
// CHECK: ssa_gpu.copy_box {{.*}} to %[[KEYS:.*]] through %[[FULL:.*]] : {{.*}} memref<16x64xbf16
// CHECK: ssa_gpu.copy_box {{.*}} to %[[KEYS]] through %[[FULL]] {first_row = 16 : i64}
// CHECK: ssa_gpu.copy_box {{.*}} to %[[VALUES:.*]] through %[[FULL:.*]] : {{.*}} memref<16x64xbf16
// CHECK: ssa_gpu.copy_box {{.*}} to %[[VALUES]] through %[[FULL]] {first_row = 16 : i64}
// CHECK-LABEL: func.func @several_blocks
func.func @several_blocks(%q: !q, %k: !kv, %v: !kv, %s: !sel) -> !q {
  %o, %l = ssa.sparse_attend %q, %k, %v at %s
      {mask = #ssa.mask<causal>, ssa.schedule = #ssa.schedule<order = union, instruction = wgmma, tile_rows = 64, tile_keys = 32, stages = 2>}
      : !q, !kv, !kv, !sel -> !q, !l
  return %o : !q
}

// -----

!q = tensor<?x16x?x128xbf16>
!kv = tensor<?x1x?x128xbf16>
!l = tensor<?x16x?xf32>
!sel = !ssa.selection<?x1x?x6, key_block = 64, sorted>

// Lists are transposed, some at a time: 16 heads of 6 blocks each take 25 KB of partial outputs and sums. The kernel knows from memory how many
// items there are. Four boxes of queries, of an entry each, make a tile; all keys of an item are one step, before which there is nothing to rescale.
// Blocks of threads mark stretches of 4096 lists.
// CHECK: gpu.func @ssa_mark_lists
// CHECK: %[[STRETCHES:.*]] = arith.ceildivsi %{{.*}}, %c4096
// CHECK: %[[DIVISOR:.*]] = arith.index_castui %[[STRETCHES]] : index to i32
// CHECK: arith.remui %{{.*}}, %[[DIVISOR]] : i32
// CHECK: gpu.func @ssa_place_entries
// CHECK: llvm.nvvm.redux.sync.add
// CHECK: gpu.func @ssa_write_entries({{.*}}memref<?xf32,
// CHECK: gpu.func @ssa_sparse_attend({{.*}}memref<?x128xbf16, {{.*}}memref<?xf32,
// CHECK: ssa_gpu.mma wgmma async
// CHECK: ssa_gpu.mma wgmma %{{.*}}, %{{.*}}, %cst
// CHECK: ssa_gpu.store_rows
// CHECK: {columns = 128 : i64, in_quads, width = 8 : i64}
// CHECK-NOT: ssa_gpu.copy_rows
// CHECK: gpu.shuffle idx
// CHECK: ssa_gpu.copy_box {{.*}} to %[[QUERIES:.*]] through %[[PIPE:.*]] : {{.*}} memref<16x64xbf16
// CHECK: ssa_gpu.copy_box {{.*}} to %[[QUERIES]] through %[[PIPE]] {first_row = 16 : i64}
// CHECK: gpu.func @ssa_join_partials
// CHECK: vector.load {{.*}} {alignment = 16 : i64, nontemporal = true} : memref<?x128xbf16, {{.*}}vector<8xbf16>
// CHECK-LABEL: func.func @key_outer
// CHECK: scf.for
// CHECK: gpu.launch_func @{{.*}}ssa_mark_lists
// CHECK: gpu.launch_func @{{.*}}ssa_sparse_attend
// CHECK: gpu.launch_func @{{.*}}ssa_join_partials
func.func @key_outer(%q: !q, %k: !kv, %v: !kv, %s: !sel) -> !q {
  %o, %l = ssa.sparse_attend %q, %k, %v at %s
      {mask = #ssa.mask<causal>, ssa.schedule = #ssa.schedule<order = key_outer, instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2, partials = bf16>}
      : !q, !kv, !kv, !sel -> !q, !l
  return %o : !q
}

// -----

!q = tensor<?x16x?x128xbf16>
!kv = tensor<?x1x?x128xbf16>
!l = tensor<?x16x?xf32>

// An output of f32 for each of three parts of the steps, joined in order.
// CHECK: gpu.func @ssa_sparse_attend({{.*}}memref<?x128xf32, {{.*}}memref<?xf32,
// CHECK: gpu.func @ssa_join_partials
// CHECK-LABEL: func.func @split
func.func @split(%q: !q, %k: !kv, %v: !kv) -> !q {
  %o, %l = ssa.sparse_attend %q, %k, %v
      {mask = #ssa.mask<causal>, ssa.schedule = #ssa.schedule<instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2, split = 3>}
      : !q, !kv, !kv -> !q, !l
  return %o : !q
}

// -----

!q = tensor<?x16x?x64xbf16>
!kv = tensor<?x1x?x64xbf16>
!l = tensor<?x16x?xf32>
!sel = !ssa.selection<?x1x?x6, key_block = 128, sorted>

// Blocks of two steps: every step loads the queries anew.
// CHECK: gpu.func @ssa_sparse_attend
// CHECK: ssa_gpu.await
// CHECK: scf.for
// CHECK: ssa_gpu.load_operand
// CHECK: ssa_gpu.mma wgmma async
// CHECK: ssa_gpu.wait_mma
// CHECK: ssa_gpu.store_rows
// CHECK-LABEL: func.func @two_steps
func.func @two_steps(%q: !q, %k: !kv, %v: !kv, %s: !sel) -> !q {
  %o, %l = ssa.sparse_attend %q, %k, %v at %s
      {mask = #ssa.mask<causal>, ssa.schedule = #ssa.schedule<order = key_outer, instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2>}
      : !q, !kv, !kv, !sel -> !q, !l
  return %o : !q
}
