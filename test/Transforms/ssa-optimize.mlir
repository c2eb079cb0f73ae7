// RUN: ssa-opt %s --ssa-optimize | FileCheck %s
// RUN: ssa-opt %s --pass-pipeline='builtin.module(ssa-optimize)' | FileCheck %s

// Folds, common subexpressions and sizes together: each makes room for the others.

!q = tensor<?x8x?x48xf32>
!k = tensor<?x2x?x48xf32>
!l = tensor<?x8x?xf32>
!s = tensor<?x2x?x?xf32>
!sel = !ssa.selection<?x2x?x3, key_block = 4, sorted>

// Two branches that score with the same summaries, a selection that is sorted once more, and a merge of one part.
// CHECK-LABEL: func @pattern(
// CHECK-SAME:    %[[Q:.*]]: tensor<?x8x?x48xf32>, %[[K:.*]]: tensor<?x2x?x48xf32>, %[[V:.*]]: tensor<?x2x?x48xf32>
func.func @pattern(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  // CHECK-NEXT: %[[KC:.*]] = ssa.pool mean %[[K]]
  // CHECK-NEXT: %[[S:.*]] = ssa.route %[[Q]], %[[KC]] of %[[K]]
  // CHECK-NEXT: %[[SEL:.*]] = ssa.topk %[[S]] of %[[K]]
  // CHECK-NEXT: %[[O:.*]], %[[L:.*]] = ssa.sparse_attend %[[Q]], %[[K]], %[[V]] at %[[SEL]]
  // CHECK-NEXT: return %[[O]], %[[L]]
  %c0 = ssa.pool mean %k {blocks = #ssa.blocks<4>} : !k -> !k
  %c1 = ssa.pool mean %k {blocks = #ssa.blocks<4, stride = 4>} : !k -> !k
  %s0 = ssa.route %q, %c0 of %k {blocks = #ssa.blocks<4>, mask = #ssa.mask<causal>, reduce = sum} : !q, !k, !k -> !s
  %s1 = ssa.route %q, %c1 of %k {blocks = #ssa.blocks<4>, mask = #ssa.mask<causal>, reduce = sum} : !q, !k, !k -> !s
  %a0 = ssa.topk %s0 of %k {mask = #ssa.mask<causal>} : !s, !k -> !sel
  %a1 = ssa.topk %s1 of %k {mask = #ssa.mask<causal>} : !s, !k -> !sel
  %a2 = ssa.union %a0, %a1 : !sel, !sel -> !ssa.selection<?x2x?x6, key_block = 4, sorted>
  %a3 = ssa.sort %a1 : !sel -> !sel
  %o, %l = ssa.sparse_attend %q, %k, %v at %a3 {blocks = #ssa.blocks<1>} : !q, !k, !k, !sel -> !q, !l
  %m, %n = ssa.merge (%o, %l) : !q, !l -> !q, !l
  return %m, %n : !q, !l
}

// The shape of a result is all that is read: the op that made it is not needed.
// CHECK-LABEL: func @shape_of_a_result(
// CHECK-SAME:    %[[Q:.*]]: tensor<?x8x?x48xf32>, %[[K:.*]]: tensor<?x2x?x48xf32>
func.func @shape_of_a_result(%q: !q, %k: !k) -> !q {
  // CHECK-NOT: ssa.
  // CHECK: %[[B:.*]] = tensor.dim %[[Q]], %{{.*}}
  // CHECK: %[[M:.*]] = tensor.dim %[[Q]], %{{.*}}
  // CHECK: tensor.empty(%[[B]], %[[M]])
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %o, %l = ssa.sparse_attend %q, %k, %k : !q, !k, !k -> !q, !l
  %x = ssa.mix (%o, %l) : !q, !l -> !q
  %d0 = tensor.dim %x, %c0 : !q
  %d2 = tensor.dim %x, %c2 : !q
  %e = tensor.empty(%d0, %d2) : !q
  return %e : !q
}

// A selection that comes from outside of the function has no sizes but its own.
// CHECK-LABEL: func @shape_of_an_argument(
// CHECK-SAME:    %[[A:.*]]: !ssa
func.func @shape_of_an_argument(%a: !sel) -> index {
  // CHECK: %[[T:.*]] = ssa.to_indices %[[A]]
  // CHECK: %[[D:.*]] = tensor.dim %[[T]], %{{.*}}
  // CHECK: return %[[D]]
  %c2 = arith.constant 2 : index
  %b = ssa.sort %a : !sel -> !ssa.selection<?x2x?x4, key_block = 4, sorted>
  %t = ssa.to_indices %b : !ssa.selection<?x2x?x4, key_block = 4, sorted> -> tensor<?x2x?x4xi32>
  %d = tensor.dim %t, %c2 : tensor<?x2x?x4xi32>
  return %d : index
}

// A dimension that does not exist is not asked for.
// CHECK-LABEL: func @dimension_out_of_range(
func.func @dimension_out_of_range(%q: !q, %k: !k) -> index {
  // CHECK: %[[O:.*]], %{{.*}} = ssa.sparse_attend
  // CHECK: tensor.dim %[[O]], %c7
  %c7 = arith.constant 7 : index
  %o, %l = ssa.sparse_attend %q, %k, %k : !q, !k, !k -> !q, !l
  %d = tensor.dim %o, %c7 : !q
  return %d : index
}
