// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --pass-pipeline='builtin.module(convert-ssa-to-ssa-gpu,canonicalize,cse)' | FileCheck %s

!s = tensor<?x2x?x?xf32>
!k = tensor<?x2x?x128xbf16>
!sel = !ssa.selection<?x2x?x16, key_block = 64, sorted>
!t = tensor<?x2x?x16xi32>

// Rows of up to 4096 blocks are a warp's work, longer ones a block's; those of up to 128 stay in registers. One of the kernels is launched. Shared memory
// is for the longest row that there can be.
// CHECK: gpu.func @ssa_topk_short(
// CHECK-COUNT-5: memref.load %arg0
// CHECK: gpu.func @ssa_topk(
// CHECK-SAME: known_block_size = array<i32: 128, 1, 1>
// A lane loads 16 at a time.
// CHECK-COUNT-16: memref.load %arg0
// What is compared is the score itself; NaN becomes -inf, forced blocks a NaN of our own.
// CHECK: %[[INIT:.*]] = arith.cmpi ult, %{{.*}}, %c1_i32
// CHECK: %[[LOCAL:.*]] = arith.cmpi ult
// CHECK: %[[FORCED:.*]] = arith.ori %[[INIT]], %[[LOCAL]]
// CHECK: %[[NUMBER:.*]] = arith.maxnumf %{{.*}}, %{{.*}} : f32
// CHECK: arith.select %[[FORCED]], %{{.*}}, %[[NUMBER]] : f32
// No wait for other warps, and no order that depends on which thread comes first.
// CHECK-NOT: gpu.barrier
// CHECK-NOT: memref.atomic_rmw
// CHECK: gpu.func @ssa_topk_long(
// CHECK-SAME: known_block_size = array<i32: 512, 1, 1>, nvvm.minctasm = 2 : i32
// A sample of two vectors of a thread, then four of the row under way at a time: one is loaded where one has been looked at, for which the row need not
// be aligned.
// CHECK-COUNT-2: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK: scf.if
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK: scf.for
// CHECK: memref.atomic_rmw addi
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK: memref.atomic_rmw addi
// CHECK-LABEL: func.func @forced
// CHECK: %[[BLOCKS:.*]] = arith.ceildivsi %{{.*}}, %c64
// CHECK: cf.assert %{{.*}}, "'ssa.topk' expected dimension 0 of 'tokens' to be dimension 0 of 'scores'"
// CHECK: cf.assert %{{.*}}, "'ssa.topk' expected dimension 3 of 'scores' to be at most the number of blocks of 'tokens'"
// CHECK: %[[SHORT:.*]] = arith.cmpi sle, %[[BLOCKS]], %c128
// CHECK: scf.if %[[SHORT]] {
// CHECK: gpu.launch_func @kernels::@ssa_topk_short blocks
// CHECK-NOT: dynamic_shared_memory_size
// CHECK: } else {
// CHECK: %[[MIDDLE:.*]] = arith.cmpi sle, %[[BLOCKS]], %c4096
// CHECK: scf.if %[[MIDDLE]] {
// CHECK: gpu.launch_func @kernels::@ssa_topk blocks {{.*}} dynamic_shared_memory_size
// CHECK: } else {
// CHECK: gpu.launch_func @kernels::@ssa_topk_long blocks {{.*}} dynamic_shared_memory_size
// CHECK: }
// CHECK-NOT: gpu.launch_func
func.func @forced(%s: !s, %k: !k) -> !t {
  %a = ssa.topk %s of %k {init_blocks = 1, local_blocks = 2, mask = #ssa.mask<causal>} : !s, !k -> !sel
  %r = ssa.to_indices %a : !sel -> !t
  return %r : !t
}

// -----

!s = tensor<?x1x?x?xf32>
!k = tensor<?x1x1000x16xbf16>
!q = tensor<?x4x?x16xbf16>
!sel = !ssa.selection<?x1x?x16, key_block = 1, query_block = 8, sorted>
!t = tensor<?x1x?x16xi32>

// The length of rows is known, so there is one kernel. Without a mask nothing is asked of a column, and nothing is forced. 0.5 is the least score that is
// taken: its key is -1090519040.
// CHECK-NOT: gpu.func @ssa_topk_short
// CHECK: gpu.func @ssa_topk(
// CHECK-NOT: arith.cmpi ult, %{{.*}} : i1
// CHECK: arith.constant -1090519040 : i32
// CHECK-NOT: gpu.func @ssa_topk_long
// CHECK-LABEL: func.func @threshold
// CHECK: cf.assert %{{.*}}, "'ssa.topk' expected dimension 2 of 'scores' to be the query blocks of 'queries'"
// CHECK: gpu.launch_func @kernels::@ssa_topk blocks
func.func @threshold(%s: !s, %k: !k, %q: !q) -> !t {
  %a = ssa.topk %s of %k for %q {threshold = 0.5} : !s, !k, !q -> !sel
  %r = ssa.to_indices %a : !sel -> !t
  return %r : !t
}

// -----

!s = tensor<?x1x?x512xf32>
!k = tensor<?x1x?x16xbf16>
!raw = !ssa.selection<?x1x?x8, key_block = 64, query_block = 16>
!cand = !ssa.selection<?x1x?x8, key_block = 64, query_block = 16, sorted>
!sel = !ssa.selection<?x1x?x96, key_block = 1, sorted>
!t = tensor<?x1x?x96xi32>
!l = tensor<?x1x?x8xi32>

// A column is a token of the 8 blocks of the list of 16 queries; what is written is its number.
// CHECK: gpu.func @ssa_topk(
// CHECK: %[[SHARED:.*]] = arith.cmpi eq, %{{.*}}, %c1 : index
// CHECK: arith.divui %{{.*}}, %c16
// Columns whose first and last entry lie within the mask are taken as they are; of others each is looked at.
// CHECK: %[[LOW:.*]] = memref.load %arg5
// CHECK: %[[HIGH:.*]] = memref.load %arg5
// CHECK: %[[ASCENDS:.*]] = arith.cmpi sle, %[[LOW]], %[[HIGH]]
// CHECK: %[[PLAIN:.*]] = arith.andi %{{.*}}, %[[ASCENDS]]
// CHECK: scf.if %[[PLAIN]]
// CHECK-NOT: memref.load %arg5
// CHECK: } else {
// CHECK: %[[ENTRY:.*]] = memref.load %arg5
// CHECK: arith.cmpi ult, %[[ENTRY]], %{{.*}} : i32
// CHECK: arith.muli %[[ENTRY]], %c64_i32
// CHECK-LABEL: func.func @within
// CHECK: cf.assert %{{.*}}, "'ssa.topk' expected dimension 0 of 'within' to be dimension 0 of 'scores'"
// CHECK: cf.assert %{{.*}}, "'ssa.topk' expected dimension 2 of 'within' to be the lists for the rows of 'scores'"
// CHECK: gpu.launch_func @kernels::@ssa_topk blocks
func.func @within(%s: !s, %k: !k, %l: !l) -> !t {
  %raw = ssa.from_indices %l : !l -> !raw
  %cand = ssa.sort %raw : !raw -> !cand
  %a = ssa.topk %s of %k within %cand {mask = #ssa.mask<causal>} : !s, !k, !cand -> !sel
  %r = ssa.to_indices %a : !sel -> !t
  return %r : !t
}

// -----

!s = tensor<?x1x?x?xf32>
!k = tensor<?x1x?x16xbf16>
!sel = !ssa.selection<?x1x?x64, key_block = 128, sorted>
!t = tensor<?x1x?x64xi32>

// Sums of scores are of f64: they decide as exact ones would.
// CHECK: gpu.func @ssa_topk_long(
// CHECK-SAME: memref<256xf64, #gpu.address_space<workgroup>>
// CHECK-SAME: nvvm.minctasm = 1 : i32
// CHECK: arith.extf %{{.*}} : f32 to f64
// CHECK: arith.cmpf olt, %{{.*}} : f64
// CHECK-LABEL: func.func @top_p
// CHECK: gpu.launch_func @kernels::@ssa_topk_long blocks
// CHECK-NOT: gpu.launch_func
func.func @top_p(%s: !s, %k: !k) -> !t {
  %a = ssa.topk %s of %k {mask = #ssa.mask<causal>, top_p = 0.9} : !s, !k -> !sel
  %r = ssa.to_indices %a : !sel -> !t
  return %r : !t
}

// -----

!s = tensor<?x1x?x?xf32>
!k = tensor<?x1x?x16xbf16>
!sel = !ssa.selection<?x1x?x0, key_block = 128, sorted>
!t = tensor<?x1x?x0xi32>

// CHECK-LABEL: func.func @none
// CHECK-NOT: gpu.launch_func
func.func @none(%s: !s, %k: !k) -> !t {
  %a = ssa.topk %s of %k : !s, !k -> !sel
  %r = ssa.to_indices %a : !sel -> !t
  return %r : !t
}
