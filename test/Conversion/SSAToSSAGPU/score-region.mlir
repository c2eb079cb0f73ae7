// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --pass-pipeline='builtin.module(ssa-attach-target{chip=sm_90a},ssa-select-schedule,convert-ssa-to-ssa-gpu,canonicalize,cse)' | FileCheck %s

!q = tensor<?x4x?x64xbf16>
!kv = tensor<?x2x?x64xbf16>
!l = tensor<?x4x?xf32>

// A value per head is read once a row, without a branch, as the table has elements; where the index is outside, the logit is NaN.
// CHECK: gpu.func @ssa_sparse_attend({{.*}}%[[SLOPES:.*]]: memref<4xf32, strided<[1], offset: ?>>, %{{.*}}: index)
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
// CHECK-DAG: %[[NAN:.*]] = arith.constant dense<0x7FC00000> : tensor<{{.*}}xf32, #ssa_gpu.accumulator>
// CHECK: %[[HEADS:.*]] = arith.index_cast %{{.*}} : tensor<[[ROWS:.*]]xi32, #ssa_gpu.rows> to
// CHECK: %[[MADE:.*]]:2 = ssa_gpu.map %[[HEADS]] {
// CHECK-NEXT: ^bb0(%[[HEAD:.*]]: index):
// CHECK-NEXT: %[[INSIDE:.*]] = arith.cmpi ult, %[[HEAD]], %[[C4]]
// CHECK-NEXT: %[[SAFE:.*]] = arith.select %[[INSIDE]], %[[HEAD]], %[[C0]]
// CHECK-NEXT: %[[SLOPE:.*]] = memref.load %[[SLOPES]][%[[SAFE]]]
// CHECK-NEXT: ssa_gpu.yield %[[SLOPE]], %[[INSIDE]]
// CHECK: %[[EXISTS:.*]] = ssa_gpu.broadcast %[[MADE]]#1
// CHECK: arith.select %[[EXISTS]], %{{.*}}, %[[NAN]]
func.func @slopes(%q: !q, %k: !kv, %v: !kv, %slopes: tensor<4xf32>) -> !q {
  %o, %lse = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal>} score (%x, %b, %h, %p, %n) {
    %head = arith.index_cast %h : i32 to index
    %slope = tensor.extract %slopes[%head] : tensor<4xf32>
    %y = arith.addf %x, %slope : f32
    ssa.yield %y : f32
  } : !q, !kv, !kv -> !q, !l
  return %o : !q
}

// -----

!q = tensor<?x4x?x64xbf16>
!kv = tensor<?x2x?x64xbf16>
!l = tensor<?x4x?xf32>

// A value per pair is read for each; a table that may be empty only where the index is inside.
// CHECK: gpu.func @ssa_sparse_attend({{.*}}%[[TABLE:.*]]: memref<?xbf16, strided<[1], offset: ?>>, %{{.*}}: index)
// CHECK: ssa_gpu.map %{{.*}} {
// CHECK: scf.if
// CHECK-NEXT: memref.load %[[TABLE]]
// CHECK: } : (tensor<[[SHAPE:.*]]xindex, #ssa_gpu.accumulator>) -> (tensor<[[SHAPE]]xbf16, #ssa_gpu.accumulator>, tensor<[[SHAPE]]xi1, #ssa_gpu.accumulator>)
func.func @distances(%q: !q, %k: !kv, %v: !kv, %t: tensor<?xbf16>) -> !q {
  %o, %lse = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal>} score (%x, %b, %h, %p, %n) {
    %d = arith.subi %p, %n : i32
    %i = arith.index_cast %d : i32 to index
    %bias = tensor.extract %t[%i] : tensor<?xbf16>
    %z = arith.extf %bias : bf16 to f32
    %y = arith.addf %x, %z : f32
    ssa.yield %y : f32
  } : !q, !kv, !kv -> !q, !l
  return %o : !q
}

// -----

!q = tensor<?x4x?x64xbf16>
!kv = tensor<?x2x?x64xbf16>
!l = tensor<?x4x?xf32>

// A branch becomes a choice, and what only one side looks up need not be there for the other.
// CHECK: gpu.func @ssa_sparse_attend({{.*}}%[[TABLE:.*]]: memref<?xf32, strided<[1], offset: ?>>, %{{.*}}: index)
// CHECK: %[[SIZE:.*]] = memref.dim %[[TABLE]]
// CHECK: %[[NEAR:.*]] = arith.cmpi slt, %{{.*}} : tensor<[[SHAPE:.*]]xindex, #ssa_gpu.accumulator>
// CHECK: %[[MADE:.*]]:2 = ssa_gpu.map
// CHECK: %[[FAR:.*]] = arith.xori %[[NEAR]]
// CHECK: %[[GOOD:.*]] = arith.ori %[[FAR]], %[[MADE]]#1
// CHECK: arith.select %[[NEAR]], %[[MADE]]#0
// CHECK: arith.select %[[GOOD]]
func.func @branch(%q: !q, %k: !kv, %v: !kv, %t: tensor<?xf32>) -> !q {
  %o, %lse = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal>} score (%x, %b, %h, %p, %n) {
    %c0 = arith.constant 0 : index
    %none = arith.constant -1.0 : f32
    %size = tensor.dim %t, %c0 : tensor<?xf32>
    %d = arith.subi %p, %n : i32
    %i = arith.index_cast %d : i32 to index
    %near = arith.cmpi slt, %i, %size : index
    %bias = scf.if %near -> f32 {
      %e = tensor.extract %t[%i] : tensor<?xf32>
      scf.yield %e : f32
    } else {
      scf.yield %none : f32
    }
    %y = arith.addf %x, %bias : f32
    ssa.yield %y : f32
  } : !q, !kv, !kv -> !q, !l
  return %o : !q
}
