// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(ssa-attach-target{chip=sm_90a},convert-ssa-to-ssa-gpu,canonicalize,cse)' | FileCheck %s

!q = tensor<?x16x?x128xbf16>
!k = tensor<?x4x?x128xbf16>
!s = tensor<?x4x?x?xf32>
!sel = !ssa.selection<?x4x?x16, key_block = 64, query_block = 8, sorted>
!t = tensor<?x4x?x16xi32>

// One loop launches all kernels. Scores have memory for a chunk, allocated before it and of no size that grows with the queries;
// the kernels see rows of the queries and of the result. What is required is checked before the first launch.
// CHECK-LABEL: func.func @chain(
// CHECK: %[[RESULT:.*]] = memref.alloc(%{{.*}}) : memref<?x4x?x16xi32>
// CHECK: cf.assert {{.*}}'ssa.route' expected dimension 2 of 'key'
// CHECK: cf.assert {{.*}}'ssa.rebin' expected dimension 3 of 'input'
// CHECK: cf.assert {{.*}}'ssa.topk' expected dimension 2 of 'scores'
// CHECK: %[[FITTING:.*]] = arith.divui %c1048576
// 8 rows of cells for each row that is selected for.
// CHECK: %[[CELLS:.*]] = memref.alloc(%[[BATCHES:.*]], %[[CELLROWS:.*]], %{{.*}}) : memref<?x4x?x?xf32>
// CHECK: %[[BLOCKS:.*]] = memref.alloc(%[[BATCHES]], %[[ROWS:.*]], %{{.*}}) : memref<?x4x?x?xf32>
// CHECK: memref.alloc(%[[BATCHES]], %[[CELLROWS]]) : memref<?x16x?xf32>
// CHECK: scf.for %[[CHUNK:.*]] = %c0 to %{{.*}} step %c1 {
// CHECK: memref.subview %arg0[%{{.*}}, 0, %{{.*}}, 0]
// CHECK: gpu.launch_func {{.*}}ssa_route_softmax
// CHECK: gpu.launch_func {{.*}}ssa_route_join
// CHECK: gpu.launch_func {{.*}}ssa_route
// CHECK: gpu.launch_func {{.*}}ssa_rebin
// CHECK: memref.subview %[[RESULT]][%{{.*}}, 0, %{{.*}}, 0]
// CHECK: gpu.launch_func {{.*}}ssa_topk
// CHECK-NOT: memref.alloc
// CHECK: return
func.func @chain(%q: !q, %kc: !k, %k: !k, %q0: !q) -> !t {
  %s = ssa.route %q, %kc of %k {blocks = #ssa.blocks<64>, mask = #ssa.mask<causal>, normalize = softmax, reduce = sum} : !q, !k, !k -> !s
  %i = ssa.rebin sum %s of %k {from = #ssa.blocks<64>, query_block = 8, to = #ssa.blocks<64>} : !s, !k -> !s
  %a = ssa.topk %i of %k for %q0 {mask = #ssa.mask<causal>, ssa.chunk = #ssa.chunk<bytes = 1048576, rows = 16>} : !s, !k, !q -> !sel
  %r = ssa.to_indices %a : !sel -> !t
  return %r : !t
}

// -----

!q = tensor<?x4x?x128xbf16>
!s = tensor<?x4x?x?xf32>
!sel = !ssa.selection<?x4x?x16, key_block = 1, sorted>

// A score region that asks for its sequence gets its number among all, not that within the chunk.
// CHECK: gpu.func @ssa_route(%{{[^:]*}}: memref{{.*}}, %{{[^:]*}}: memref{{.*}}, %{{[^:]*}}: memref{{.*}}, %{{[^:]*}}: index, %{{[^:]*}}: index, %[[FIRST:[^:]*]]: index, %{{[^:]*}}: index, %{{[^:]*}}: !nvgpu
// CHECK: %[[NUMBER:.*]] = arith.addi %{{.*}}, %[[FIRST]] : index
// CHECK: arith.index_cast %[[NUMBER]] : index to i32
// CHECK-LABEL: func.func @sequence
func.func @sequence(%q: !q, %k: !q) -> tensor<?x4x?x16xi32> {
  %s = ssa.route %q, %k score (%x, %w, %b, %h, %p, %j) {
    %f = arith.sitofp %b : i32 to f32
    %y = arith.mulf %x, %f : f32
    ssa.yield %y : f32
  } : !q, !q -> !s
  %a = ssa.topk %s of %k {ssa.chunk = #ssa.chunk<bytes = 4096, rows = 128>} : !s, !q -> !sel
  %r = ssa.to_indices %a : !sel -> tensor<?x4x?x16xi32>
  return %r : tensor<?x4x?x16xi32>
}

// -----

!q = tensor<?x4x?x128xbf16>
!s = tensor<?x4x?x?xf32>
!blocks = !ssa.selection<?x4x?x16, key_block = 64, query_block = 48, sorted>
!sel = !ssa.selection<?x4x?x16, key_block = 1, sorted>

func.func @lists(%q: !q, %k: !q, %c: tensor<?x4x?x16xi32>) -> tensor<?x4x?x16xi32> {
  %u = ssa.from_indices %c : tensor<?x4x?x16xi32> -> !ssa.selection<?x4x?x16, key_block = 64, query_block = 48>
  %b = ssa.sort %u : !ssa.selection<?x4x?x16, key_block = 64, query_block = 48> -> !blocks
  %s = ssa.route %q, %k within %b : !q, !q, !blocks -> !s
  // expected-error@+1 {{expected 'rows' of 'ssa.chunk' to be a multiple of 48, the rows that share a list of 'within', but got 128}}
  %a = ssa.topk %s of %k within %b {ssa.chunk = #ssa.chunk<bytes = 4096, rows = 128>} : !s, !q, !blocks -> !sel
  %r = ssa.to_indices %a : !sel -> tensor<?x4x?x16xi32>
  return %r : tensor<?x4x?x16xi32>
}

// -----

!q = tensor<?x4x?x128xbf16>
!s = tensor<?x4x?x?xf32>
!sel = !ssa.selection<?x4x?x16, key_block = 1, sorted>

func.func @two(%q: !q, %k: !q) -> (tensor<?x4x?x16xi32>, !s) {
  %s = ssa.route %q, %k : !q, !q -> !s
  // expected-error@+1 {{cannot have 'ssa.chunk': the scores of 'ssa.route' are used by more than one op}}
  %a = ssa.topk %s of %k {ssa.chunk = #ssa.chunk<bytes = 4096, rows = 128>} : !s, !q -> !sel
  %r = ssa.to_indices %a : !sel -> tensor<?x4x?x16xi32>
  return %r, %s : tensor<?x4x?x16xi32>, !s
}

// -----

!s = tensor<?x4x?x?xf32>
!k = tensor<?x4x?x128xbf16>
!sel = !ssa.selection<?x4x?x16, key_block = 1, sorted>

func.func @given(%s: !s, %k: !k) -> tensor<?x4x?x16xi32> {
  // expected-error@+1 {{cannot have 'ssa.chunk': its scores are an argument}}
  %a = ssa.topk %s of %k {ssa.chunk = #ssa.chunk<bytes = 4096, rows = 128>} : !s, !k -> !sel
  %r = ssa.to_indices %a : !sel -> tensor<?x4x?x16xi32>
  return %r : tensor<?x4x?x16xi32>
}

// -----

!q = tensor<?x4x?x128xbf16>
!s = tensor<?x4x?x?xf32>
!sel = !ssa.selection<?x4x?x16, key_block = 64, sorted>
#all = affine_map<(b, g, m, j) -> (b, g, m, j)>

// Scores that become others one by one, with a bias for each head and block, are done in the same chunks.
// CHECK-LABEL: func.func @elementwise
// CHECK: cf.assert {{.*}}'linalg.generic' expected dimension 1 of operand 1
// CHECK: scf.for
// CHECK: gpu.launch_func {{.*}}ssa_route
// CHECK: gpu.launch_func {{.*}}ssa_generic
// CHECK: gpu.launch_func {{.*}}ssa_topk
func.func @elementwise(%q: !q, %kc: !q, %k: !q, %bias: tensor<4x?xf32>) -> tensor<?x4x?x16xi32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %s = ssa.route %q, %kc of %k {blocks = #ssa.blocks<64>, mask = #ssa.mask<causal>} : !q, !q, !q -> !s
  %batch = tensor.dim %q, %c0 : !q
  %rows = tensor.dim %q, %c2 : !q
  %blocks = tensor.dim %kc, %c2 : !q
  %empty = tensor.empty(%batch, %rows, %blocks) : !s
  %t = linalg.generic {indexing_maps = [#all, affine_map<(b, g, m, j) -> (g, j)>, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s, %bias : !s, tensor<4x?xf32>) outs(%empty : !s) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %z = arith.addf %x, %y : f32
    linalg.yield %z : f32
  } -> !s
  %a = ssa.topk %t of %k {mask = #ssa.mask<causal>, ssa.chunk = #ssa.chunk<bytes = 4096, rows = 128>} : !s, !q -> !sel
  %r = ssa.to_indices %a : !sel -> tensor<?x4x?x16xi32>
  return %r : tensor<?x4x?x16xi32>
}

// -----

!q = tensor<?x4x?x128xbf16>
!s = tensor<?x4x?x?xf32>
!sel = !ssa.selection<?x4x?x16, key_block = 64, sorted>
#all = affine_map<(b, g, m, j) -> (b, g, m, j)>

// What depends on the number of the row does not know it within a chunk.
func.func @numbers(%q: !q, %kc: !q, %k: !q, %empty: !s) -> tensor<?x4x?x16xi32> {
  %s = ssa.route %q, %kc of %k {blocks = #ssa.blocks<64>, mask = #ssa.mask<causal>} : !q, !q, !q -> !s
  %t = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : !s) outs(%empty : !s) {
  ^bb0(%x: f32, %o: f32):
    %m = linalg.index 2 : index
    %i = arith.index_cast %m : index to i32
    %y = arith.sitofp %i : i32 to f32
    %z = arith.addf %x, %y : f32
    linalg.yield %z : f32
  } -> !s
  // expected-error@+1 {{cannot have 'ssa.chunk': its scores come from 'linalg.generic'}}
  %a = ssa.topk %t of %k {mask = #ssa.mask<causal>, ssa.chunk = #ssa.chunk<bytes = 4096, rows = 128>} : !s, !q -> !sel
  %r = ssa.to_indices %a : !sel -> tensor<?x4x?x16xi32>
  return %r : tensor<?x4x?x16xi32>
}

// -----

!q = tensor<?x32x?x128xbf16>
!k = tensor<?x2x?x128xbf16>
!s = tensor<?x2x?x?xf32>
!sel = !ssa.selection<?x2x?x16, key_block = 64, sorted>

// Consumers score into memory of the block, selectors select from what they have written; producers and selectors are one warpgroup. Rows that
// are too long, and too few of them, go the long way: one of the two loops has no rounds.
// CHECK: gpu.func @ssa_route_topk(
// CHECK: ssa_gpu.roles threads [256, 32, 224] registers [184, 72, 72] {
// CHECK: ssa_gpu.acquire %[[ROWS:.*]][
// CHECK: ssa_gpu.mma wgmma
// CHECK: arith.maxnumf
// CHECK: ssa_gpu.publish %[[ROWS]][
// CHECK: }, {
// CHECK: ssa_gpu.copy_box
// CHECK: }, {
// CHECK: ssa_gpu.await %[[ROWS]][
// CHECK: ssa_gpu.release %[[ROWS]][
// CHECK-LABEL: func.func @one_kernel
// CHECK: memref.alloc(%{{.*}}) : memref<?x32x?xf32>
// CHECK: scf.for
// CHECK: gpu.launch_func {{.*}}ssa_route_softmax
// CHECK: gpu.launch_func {{.*}}ssa_route_join
// CHECK: gpu.launch_func {{.*}}ssa_route_topk
// CHECK: scf.for
// CHECK: gpu.launch_func {{.*}}ssa_route_softmax
// CHECK: gpu.launch_func {{.*}}ssa_topk
func.func @one_kernel(%q: !q, %kc: !k, %k: !k) -> tensor<?x2x?x16xi32> {
  %s = ssa.route %q, %kc of %k {blocks = #ssa.blocks<64>, mask = #ssa.mask<causal>, normalize = softmax, reduce = sum} : !q, !k, !k -> !s
  %a = ssa.topk %s of %k {mask = #ssa.mask<causal>, ssa.chunk = #ssa.chunk<bytes = 1048576, rows = 16>, ssa.fused_select = #ssa.fused_select<min_columns = 1, max_columns = 4096>} : !s, !k -> !sel
  %r = ssa.to_indices %a : !sel -> tensor<?x2x?x16xi32>
  return %r : tensor<?x2x?x16xi32>
}

// -----

!q = tensor<?x32x?x128xbf16>
!k = tensor<?x2x?x128xbf16>
!s = tensor<?x2x?x?xf32>
!sel = !ssa.selection<?x2x?x16, key_block = 64, sorted>

// In stretches: memory of blocks is that of two sets of 16 rows, of 1024 scores and one before, and of a list for each row with 2 x (256 + 257 + 512)
// words, however long rows are. Consumers hand over a stretch at a time.
// CHECK: gpu.func @ssa_route_topk(
// CHECK: ssa_gpu.roles threads [256, 32, 224] registers [200, 56, 56] {
// CHECK: ssa_gpu.acquire %[[ROWS:.*]][
// CHECK: ssa_gpu.mma wgmma async
// CHECK: ssa_gpu.publish %[[ROWS]][
// CHECK: }, {
// CHECK: ssa_gpu.copy_box
// CHECK: }, {
// CHECK: ssa_gpu.await %[[ROWS]][
// CHECK: memref.atomic_rmw addi
// CHECK: ssa_gpu.release %[[ROWS]][
// CHECK-LABEL: func.func @stretches
// CHECK: %[[BLOCKS:.*]] = arith.select %{{.*}}, %c132, %c0
// CHECK: memref.alloc(%[[BLOCKS]]) : memref<?x32x1040xf32>
// CHECK: memref.alloc(%[[BLOCKS]]) : memref<?x16x2050xi32>
// CHECK: gpu.launch_func {{.*}}ssa_route_softmax
// CHECK: gpu.launch_func {{.*}}ssa_route_topk
// CHECK: gpu.launch_func {{.*}}ssa_rebin
func.func @stretches(%q: !q, %kc: !k, %k: !k) -> tensor<?x2x?x16xi32> {
  %s = ssa.route %q, %kc of %k {blocks = #ssa.blocks<32, stride = 16>, mask = #ssa.mask<causal>, normalize = softmax, reduce = sum} : !q, !k, !k -> !s
  %i = ssa.rebin sum %s of %k {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>} : !s, !k -> !s
  %a = ssa.topk %i of %k {mask = #ssa.mask<causal>, ssa.chunk = #ssa.chunk<bytes = 1048576, rows = 16>, ssa.fused_select = #ssa.fused_select<min_columns = 1, max_columns = 65536, stretch = 1024>} : !s, !k -> !sel
  %r = ssa.to_indices %a : !sel -> tensor<?x2x?x16xi32>
  return %r : tensor<?x2x?x16xi32>
}

// -----

!q = tensor<?x4x?x64xf32>
!s = tensor<?x4x?x?xf32>
!sel = !ssa.selection<?x4x?x16, key_block = 1, sorted>

// CHECK-LABEL: func.func @by_hand
func.func @by_hand(%q: !q, %k: !q) -> tensor<?x4x?x16xi32> {
  %s = ssa.route %q, %k : !q, !q -> !s
  // expected-remark@+1 {{is not scored and selected in one kernel: there is none for these operands}}
  %a = ssa.topk %s of %k {ssa.chunk = #ssa.chunk<bytes = 4096, rows = 128>, ssa.fused_select = #ssa.fused_select<min_columns = 1, max_columns = 4096>} : !s, !q -> !sel
  %r = ssa.to_indices %a : !sel -> tensor<?x4x?x16xi32>
  return %r : tensor<?x4x?x16xi32>
}

// -----

!q = tensor<?x24x?x128xf8E4M3FN>
!k = tensor<?x1x?x128xf8E4M3FN>
!s = tensor<?x1x?x?xf32>
!sel = !ssa.selection<?x1x?x100, key_block = 1, sorted>

// Scores of many heads of single tokens are made by pairs: four heads of twice eight queries times 128 keys for each of two warpgroups, six chunks, of
// which the products of one are under way while those of another are joined; at last pairs of warps join what they have. Every second round of items is
// dealt out backwards. Rows that are not regrouped have four sets; selectors load scores in vectors, and mark the columns that they list.
// CHECK: gpu.func @ssa_route_topk(
// CHECK: ssa_gpu.alloc : <6x64x128xf8E4M3FN>
// CHECK: ssa_gpu.alloc : <4x256x128xf8E4M3FN>
// CHECK: ssa_gpu.roles threads [256, 32, 224]
// CHECK: %[[BITS:.*]] = arith.index_castui %[[NUMBER:.*]] : index to i32
// CHECK: arith.divui %[[BITS]], %{{.*}} : i32
// CHECK: arith.remui %[[BITS]], %{{.*}} : i32
// CHECK: %[[BACKWARDS:.*]] = arith.subi %{{.*}}, %[[NUMBER]] : index
// CHECK: arith.select %{{.*}}, %[[NUMBER]], %[[BACKWARDS]] : index
// CHECK: llvm.load {{.*}} -> vector<4xf32>
// CHECK: llvm.store {{.*}} : i8, !llvm.ptr<3>
// CHECK: ssa_gpu.mma wgmma async {{.*}} tensor<64x256xf32, #ssa_gpu.accumulator<groups = 2>>
// CHECK: ssa_gpu.fold_rows {{.*}} -> tensor<32x256xf32, #ssa_gpu.accumulator<groups = 2, folds = 2>>
// CHECK: ssa_gpu.join_rows {{.*}} -> tensor<16x256xf32, #ssa_gpu.accumulator<groups = 2, folds = 4>>
// CHECK: ssa_gpu.store_rows
// CHECK-LABEL: func.func @by_pairs
// CHECK: memref.alloc({{.*}}) : memref<?x64x1024xf32>
func.func @by_pairs(%q: !q, %k: !k) -> tensor<?x1x?x100xi32> {
  %s = ssa.route %q, %k of %k {scale = 1.0, mask = #ssa.mask<causal>, reduce = sum} : !q, !k, !k -> !s
  %a = ssa.topk %s of %k {mask = #ssa.mask<causal>, ssa.chunk = #ssa.chunk<bytes = 1048576, rows = 16>, ssa.fused_select = #ssa.fused_select<min_columns = 1, max_columns = 65536, stretch = 1024>} : !s, !k -> !sel
  %r = ssa.to_indices %a : !sel -> tensor<?x1x?x100xi32>
  return %r : tensor<?x1x?x100xi32>
}
