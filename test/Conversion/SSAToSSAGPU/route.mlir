// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(ssa-attach-target{chip=sm_90a},convert-ssa-to-ssa-gpu,canonicalize,cse)' | FileCheck %s
// RUN: ssa-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(ssa-attach-target{chip=sm_100},convert-ssa-to-ssa-gpu,canonicalize,cse)' | FileCheck %s --check-prefix=SYNC

!q = tensor<?x16x?x128xbf16>
!k = tensor<?x2x?x128xbf16>
!s = tensor<?x2x?x?xf32>

// Keys are the rows of a product, so that the eight heads of a cell are joined in registers: 16 queries of them fill the 128 columns of each of
// three warpgroups. Eight steps of keys are in shared memory; they and the queries come as boxes. Few rows are split up along their columns.
// CHECK: gpu.func @ssa_route(
// CHECK-SAME: known_block_size = array<i32: 512, 1, 1>, nvvm.minctasm = 1 : i32
// CHECK: ssa_gpu.alloc : <1x384x128xbf16>
// CHECK: ssa_gpu.alloc : <8x64x128xbf16>
// CHECK: ssa_gpu.roles threads [384, 128] registers [152, 56] {
// CHECK: ssa_gpu.await
// CHECK: ssa_gpu.mma wgmma %{{.*}}, transposed
// CHECK: ssa_gpu.release
// CHECK: ssa_gpu.fold sum %{{.*}} {columns = 128 : i64, period = 16 : i64} : tensor<64x384xf32, #ssa_gpu.accumulator<groups = 3>> -> tensor<64x48xf32, #ssa_gpu.accumulator<groups = 3>>
// CHECK: ssa_gpu.store_columns
// CHECK: }, {
// CHECK: ssa_gpu.acquire
// CHECK: ssa_gpu.copy_box %{{.*}} to %{{.*}} {first_row = 256 : i64}
// CHECK: ssa_gpu.publish
// CHECK: ssa_gpu.acquire
// CHECK: ssa_gpu.copy_box
// CHECK-LABEL: func.func @scores
// CHECK-DAG: cf.assert %{{.*}}, "'ssa.route' expected dimension 2 of 'key' to be at most the number of blocks of 'tokens'"
// CHECK: arith.divui %c264
// CHECK: gpu.launch_func @kernels::@ssa_route blocks
// CHECK-NOT: gpu.launch_func
// SYNC: ssa_gpu.load_operand
// SYNC: ssa_gpu.mma mma_sync %{{.*}}, transposed
func.func @scores(%q: !q, %k: !k, %t: !k) -> !s {
  %s = ssa.route %q, %k of %t {blocks = #ssa.blocks<32, stride = 16>, mask = #ssa.mask<causal>, reduce = sum} : !q, !k, !k -> !s
  return %s : !s
}

// -----

!q = tensor<?x4x?x64xf16>
!s = tensor<?x4x?x?xf32>

// Sums of parts of 2048 columns, the parts together, then the scores. Most steps hide nothing; threads add up for themselves, and look for maxima only where
// there is nothing that sums are relative to, or they become too great. Queries stay in registers.
// Producers know what an item is: the parts of a tile begin with one or another of them.
// CHECK: gpu.func @ssa_route_softmax(
// CHECK: ssa_gpu.load_operand
// CHECK: ssa_gpu.mma wgmma
// CHECK: %[[SCORES:.*]] = scf.if
// CHECK: scf.while
// CHECK: scf.if
// CHECK: ssa_gpu.reduce max %[[SCORES]]
// CHECK: math.exp2 %{{.*}} fastmath<afn>
// CHECK: ssa_gpu.fold sum %{{.*}} {columns = 64 : i64, period = 8 : i64}
// CHECK: %[[FITS:.*]] = arith.cmpf olt
// CHECK: ssa_gpu.warp_all %[[FITS]]
// CHECK: scf.condition
// CHECK: ssa_gpu.reduce sum
// CHECK: %[[HASH:.*]] = arith.muli %{{.*}}, %c40503 : index
// CHECK: arith.remui %[[HASH]], %c65536 : index
// CHECK: gpu.func @ssa_route_join(
// CHECK: gpu.func @ssa_route(
// CHECK: math.fma
// CHECK: math.exp2 %{{.*}} fastmath<afn>
// CHECK-LABEL: func.func @softmax
// CHECK: gpu.launch_func @kernels::@ssa_route_softmax blocks
// CHECK: gpu.launch_func @kernels::@ssa_route_join blocks
// CHECK: gpu.launch_func @kernels::@ssa_route blocks
func.func @softmax(%q: !q, %k: !q) -> !s {
  %s = ssa.route %q, %k {mask = #ssa.mask<causal>, normalize = softmax} : !q, !q -> !s
  return %s : !s
}

// -----

!q = tensor<?x4x?x64xf16>
!s = tensor<?x4x?x?xf32>

// max(q, 0) times the greater of the two, plus min(q, 0) times the smaller.
// CHECK: gpu.func @ssa_route(
// CHECK: ssa_gpu.order
// CHECK: ssa_gpu.order
// CHECK: %[[LOW:.*]] = ssa_gpu.mma
// CHECK: ssa_gpu.mma wgmma %{{.*}}, transposed %{{.*}}, %[[LOW]]
func.func @bound(%q: !q, %lo: !q, %hi: !q) -> !s {
  %s = ssa.route bound %q, %lo, %hi : !q, !q, !q -> !s
  return %s : !s
}

// -----

!q = tensor<?x4x?x128xf8E4M3FN>
!sc = tensor<?x4x?xf32>
!s = tensor<?x4x?x?xf32>

// Tiles of 8 bits where there are products of them; elsewhere every value is exact in f16.
// CHECK: gpu.func @ssa_route(
// CHECK: ssa_gpu.mma wgmma %{{.*}} : !ssa_gpu.shared<64x128xf8E4M3FN>
// SYNC: gpu.func @ssa_route(
// SYNC: ssa_gpu.convert_rows {{.*}} to
// SYNC-LABEL: func.func @narrow
func.func @narrow(%q: !q, %k: !q, %sc: !sc) -> !s {
  %s = ssa.route %q, %k scales %sc : !q, !q, !sc -> !s
  return %s : !s
}

// -----

!q = tensor<?x160x?x128xbf16>
!k = tensor<?x1x?x128xbf16>
!s = tensor<?x1x?x?xf32>

// More heads than shared memory has room for: they pass by, two chunks of 16 at a time, for every step of keys.
// CHECK: gpu.func @ssa_route(
// CHECK: ssa_gpu.alloc : <2x128x128xbf16>
// CHECK: ssa_gpu.alloc : <2x128x128xbf16>
// CHECK: scf.for %{{.*}} = %c0_i32 to %c10_i32
// CHECK: ssa_gpu.wait_copies 0
// CHECK: ssa_gpu.fold sum %{{.*}} {columns = 128 : i64, period = 8 : i64}
// CHECK-LABEL: func.func @many
func.func @many(%q: !q, %k: !k) -> !s {
  %s = ssa.route %q, %k {reduce = sum} : !q, !k -> !s
  return %s : !s
}

// -----

!q = tensor<?x4x?x64xf32>
!s = tensor<?x4x?x?xf32>

// Tensor cores would round f32.
// CHECK: gpu.func @ssa_route(
// CHECK-NOT: ssa_gpu
// CHECK-LABEL: func.func @exact
func.func @exact(%q: !q, %k: !q) -> !s {
  %s = ssa.route %q, %k : !q, !q -> !s
  return %s : !s
}

// -----

!q = tensor<?x64x?x64xbf16>
!k = tensor<?x1x?x64xbf16>
!l = tensor<?x1x?x8xi32>
!s = tensor<?x1x?x512xf32>

// A list of its own for every row: a tile is one row and its heads.
// CHECK: gpu.func @ssa_route(
// CHECK: ssa_gpu.fold sum %{{.*}} {columns = 64 : i64, period = 1 : i64}
// CHECK-LABEL: func.func @within
func.func @within(%q: !q, %k: !k, %l: !l) -> !s {
  %a = ssa.from_indices %l : !l -> !ssa.selection<?x1x?x8, key_block = 64>
  %c = ssa.sort %a : !ssa.selection<?x1x?x8, key_block = 64> -> !ssa.selection<?x1x?x8, key_block = 64, sorted>
  %s = ssa.route %q, %k within %c {mask = #ssa.mask<causal>, reduce = sum} : !q, !k, !ssa.selection<?x1x?x8, key_block = 64, sorted> -> !s
  return %s : !s
}

// -----

!q = tensor<?x4x?x64xf16>
!s = tensor<?x4x?x?xf32>

// What the region reads from outside is an argument, and read where the scores are; a head is a column of the tile.
// CHECK: gpu.func @ssa_route({{.*}}%[[BIAS:.*]]: memref<4xf32, strided<[1], offset: ?>>, %{{.*}}: index)
// CHECK: ssa_gpu.map %{{.*}} {
// CHECK: memref.load %[[BIAS]]
// CHECK: } : (tensor<[[SHAPE:.*]]xindex, [[LAYOUT:#.*]]>) -> (tensor<[[SHAPE]]xf32, [[LAYOUT]]>, tensor<[[SHAPE]]xi1, [[LAYOUT]]>)
// CHECK-LABEL: func.func @region
func.func @region(%q: !q, %k: !q, %bias: tensor<4xf32>) -> !s {
  %s = ssa.route %q, %k score (%x, %w, %b, %h, %p, %j) {
    %i = arith.index_cast %h : i32 to index
    %c = tensor.extract %bias[%i] : tensor<4xf32>
    %y = arith.addf %x, %c : f32
    ssa.yield %y : f32
  } : !q, !q -> !s
  return %s : !s
}

// -----

!q = tensor<?x4x?x64xf16>
!s = tensor<?x4x?x?xf32>

func.func @no_meaning(%q: !q, %k: !q, %i: index) -> !s {
  %s = ssa.route %q, %k score (%x, %w, %b, %h, %p, %j) {
    // expected-error @+1 {{'index.casts' op has no meaning for kernels yet: score regions may use 'tensor.extract', 'tensor.dim' of a constant, 'scf.if' and scalar ops of 'arith' and 'math'}}
    %n = index.casts %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    %y = arith.addf %x, %f : f32
    ssa.yield %y : f32
  } : !q, !q -> !s
  return %s : !s
}

// -----

!x = tensor<?x1x?x130xbf16>
!w = tensor<8x130x64xbf16>
!y = tensor<?x8x?x64xbf16>

// The inner dimension goes by in steps of 64, the last of which has 2 columns.
// CHECK: gpu.func @ssa_project(
// CHECK: ssa_gpu.copy_rows {{.*}} to
// CHECK: columns = 64 : i64
// CHECK: columns = 2 : i64
// CHECK: ssa_gpu.mma wgmma
// CHECK: ssa_gpu.store_rows
// CHECK-LABEL: func.func @project
func.func @project(%x: !x, %w: !w) -> !y {
  %y = ssa.project %x, %w : !x, !w -> !y
  return %y : !y
}

// -----

!x = tensor<?x1x?x16xf32>
!w = tensor<8x16x4xf32>
!y = tensor<?x8x?x4xf32>

// CHECK: gpu.func @ssa_project(
// CHECK-NOT: ssa_gpu
// CHECK-LABEL: func.func @project_exactly
func.func @project_exactly(%x: !x, %w: !w) -> !y {
  %y = ssa.project %x, %w : !x, !w -> !y
  return %y : !y
}
