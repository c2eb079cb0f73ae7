// RUN: ssa-opt %s --resolve-ranked-shaped-type-result-dims --canonicalize --cse | FileCheck %s --implicit-check-not="= ssa."
// RUN: ssa-opt %s --ssa-optimize | FileCheck %s --implicit-check-not="= ssa."

// Sizes of results are expressions of sizes of arguments: no op of the dialect is left.

!q = tensor<?x8x?x48xf32>
!k = tensor<?x2x?x48xf32>
!l = tensor<?x8x?xf32>
!s = tensor<?x2x?x?xf32>
!sel = !ssa.selection<?x2x?x3, key_block = 4, sorted>
!t = tensor<?x2x?x3xi32>

// CHECK-LABEL: func @project(
// CHECK-SAME:    %[[X:.*]]: tensor<?x1x?x48xf32>
func.func @project(%x: tensor<?x1x?x48xf32>, %w: tensor<8x48x16xf32>) -> (index, index, index, index) {
  // CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
  // CHECK-DAG: %[[C16:.*]] = arith.constant 16 : index
  // CHECK-DAG: %[[B:.*]] = tensor.dim %[[X]], %c0
  // CHECK-DAG: %[[N:.*]] = tensor.dim %[[X]], %c2
  // CHECK: return %[[B]], %[[C8]], %[[N]], %[[C16]]
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %y = ssa.project %x, %w : tensor<?x1x?x48xf32>, tensor<8x48x16xf32> -> tensor<?x8x?x16xf32>
  %d0 = tensor.dim %y, %c0 : tensor<?x8x?x16xf32>
  %d1 = tensor.dim %y, %c1 : tensor<?x8x?x16xf32>
  %d2 = tensor.dim %y, %c2 : tensor<?x8x?x16xf32>
  %d3 = tensor.dim %y, %c3 : tensor<?x8x?x16xf32>
  return %d0, %d1, %d2, %d3 : index, index, index, index
}

// CHECK-LABEL: func @pool(
// CHECK-SAME:    %[[K:.*]]: tensor<?x2x?x48xf32>
func.func @pool(%k: !k) -> (index, index) {
  // CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
  // CHECK-DAG: %[[B:.*]] = tensor.dim %[[K]], %c0
  // CHECK-DAG: %[[N:.*]] = tensor.dim %[[K]], %c2
  // CHECK: %[[NB:.*]] = arith.ceildivsi %[[N]], %[[C4]]
  // CHECK: return %[[B]], %[[NB]]
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %y = ssa.pool mean %k {blocks = #ssa.blocks<4>} : !k -> !k
  %d0 = tensor.dim %y, %c0 : !k
  %d2 = tensor.dim %y, %c2 : !k
  return %d0, %d2 : index, index
}

// A shifted block may begin before the first token, but not where there is no token.
// CHECK-LABEL: func @pool_shifted(
// CHECK-SAME:    %[[K:.*]]: tensor<?x2x?x48xf32>
func.func @pool_shifted(%k: !k) -> index {
  // CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
  // CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
  // CHECK-DAG: %[[M3:.*]] = arith.constant -3 : index
  // CHECK: %[[N:.*]] = tensor.dim %[[K]], %c2
  // CHECK: %[[SHIFTED:.*]] = arith.subi %[[N]], %[[M3]]
  // CHECK: %[[COUNT:.*]] = arith.ceildivsi %[[SHIFTED]], %[[C4]]
  // CHECK: %[[NONE:.*]] = arith.cmpi eq, %[[N]], %[[C0]]
  // CHECK: %[[NB:.*]] = arith.select %[[NONE]], %[[C0]], %[[COUNT]]
  // CHECK: return %[[NB]]
  %c2 = arith.constant 2 : index
  %y = ssa.pool mean %k {blocks = #ssa.blocks<4, offset = -3>} : !k -> !k
  %d2 = tensor.dim %y, %c2 : !k
  return %d2 : index
}

// Of blocks that overlap only whole ones count; max(floor((N - 8 + 2) / 4) + 1, 0).
// CHECK-LABEL: func @pool_overlapping(
// CHECK-SAME:    %[[K:.*]]: tensor<?x2x?x48xf32>
func.func @pool_overlapping(%k: !k) -> index {
  // CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
  // CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
  // CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
  // CHECK-DAG: %[[C6:.*]] = arith.constant 6 : index
  // CHECK: %[[N:.*]] = tensor.dim %[[K]], %c2
  // CHECK: %[[ROOM:.*]] = arith.subi %[[N]], %[[C6]]
  // CHECK: %[[WHOLE:.*]] = arith.floordivsi %[[ROOM]], %[[C4]]
  // CHECK: %[[COUNT:.*]] = arith.addi %[[WHOLE]], %[[C1]]
  // CHECK: %[[NB:.*]] = arith.maxsi %[[COUNT]], %[[C0]]
  // CHECK: return %[[NB]]
  %c2 = arith.constant 2 : index
  %y = ssa.pool mean %k {blocks = #ssa.blocks<8, stride = 4, offset = -2>} : !k -> !k
  %d2 = tensor.dim %y, %c2 : !k
  return %d2 : index
}

// The formula by numbers: of 0, 5, 6, 9 and 10 tokens blocks <8, stride = 4, offset = -2> make 0, 0, 1, 1 and 2.
// CHECK-LABEL: func @pool_overlapping_by_numbers(
func.func @pool_overlapping_by_numbers() -> (index, index, index, index, index) {
  // CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
  // CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
  // CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
  // CHECK: return %[[C0]], %[[C0]], %[[C1]], %[[C1]], %[[C2]]
  %c2 = arith.constant 2 : index
  %e0 = tensor.empty() : tensor<1x2x0x48xf32>
  %e5 = tensor.empty() : tensor<1x2x5x48xf32>
  %e6 = tensor.empty() : tensor<1x2x6x48xf32>
  %e9 = tensor.empty() : tensor<1x2x9x48xf32>
  %e10 = tensor.empty() : tensor<1x2x10x48xf32>
  %y0 = ssa.pool mean %e0 {blocks = #ssa.blocks<8, stride = 4, offset = -2>} : tensor<1x2x0x48xf32> -> !k
  %y5 = ssa.pool mean %e5 {blocks = #ssa.blocks<8, stride = 4, offset = -2>} : tensor<1x2x5x48xf32> -> !k
  %y6 = ssa.pool mean %e6 {blocks = #ssa.blocks<8, stride = 4, offset = -2>} : tensor<1x2x6x48xf32> -> !k
  %y9 = ssa.pool mean %e9 {blocks = #ssa.blocks<8, stride = 4, offset = -2>} : tensor<1x2x9x48xf32> -> !k
  %y10 = ssa.pool mean %e10 {blocks = #ssa.blocks<8, stride = 4, offset = -2>} : tensor<1x2x10x48xf32> -> !k
  %d0 = tensor.dim %y0, %c2 : !k
  %d5 = tensor.dim %y5, %c2 : !k
  %d6 = tensor.dim %y6, %c2 : !k
  %d9 = tensor.dim %y9, %c2 : !k
  %d10 = tensor.dim %y10, %c2 : !k
  return %d0, %d5, %d6, %d9, %d10 : index, index, index, index, index
}

// The same for <4, offset = -3>: of 0, 1 and 2 tokens 0, 1 and 2 blocks.
// CHECK-LABEL: func @pool_shifted_by_numbers(
func.func @pool_shifted_by_numbers() -> (index, index, index) {
  // CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
  // CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
  // CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
  // CHECK: return %[[C0]], %[[C1]], %[[C2]]
  %c2 = arith.constant 2 : index
  %e0 = tensor.empty() : tensor<1x2x0x48xf32>
  %e1 = tensor.empty() : tensor<1x2x1x48xf32>
  %e2 = tensor.empty() : tensor<1x2x2x48xf32>
  %y0 = ssa.pool mean %e0 {blocks = #ssa.blocks<4, offset = -3>} : tensor<1x2x0x48xf32> -> !k
  %y1 = ssa.pool mean %e1 {blocks = #ssa.blocks<4, offset = -3>} : tensor<1x2x1x48xf32> -> !k
  %y2 = ssa.pool mean %e2 {blocks = #ssa.blocks<4, offset = -3>} : tensor<1x2x2x48xf32> -> !k
  %d0 = tensor.dim %y0, %c2 : !k
  %d1 = tensor.dim %y1, %c2 : !k
  %d2 = tensor.dim %y2, %c2 : !k
  return %d0, %d1, %d2 : index, index, index
}

// CHECK-LABEL: func @route(
// CHECK-SAME:    %[[Q:.*]]: tensor<?x8x?x48xf32>, %[[K:.*]]: tensor<?x2x?x48xf32>
func.func @route(%q: !q, %k: !k) -> (index, index, index) {
  // CHECK-DAG: %[[B:.*]] = tensor.dim %[[Q]], %c0
  // CHECK-DAG: %[[M:.*]] = tensor.dim %[[Q]], %c2
  // CHECK-DAG: %[[N:.*]] = tensor.dim %[[K]], %c2
  // CHECK: return %[[B]], %[[M]], %[[N]]
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %s = ssa.route %q, %k {reduce = sum} : !q, !k -> !s
  %d0 = tensor.dim %s, %c0 : !s
  %d2 = tensor.dim %s, %c2 : !s
  %d3 = tensor.dim %s, %c3 : !s
  return %d0, %d2, %d3 : index, index, index
}

// Within lists of 3 blocks of 64 the scores of blocks of 16 have 12 columns.
// CHECK-LABEL: func @route_within(
func.func @route_within(%q: !q, %kc: !k, %k: !k, %c: !ssa.selection<?x2x?x3, key_block = 64, sorted>) -> index {
  // CHECK: %[[C12:.*]] = arith.constant 12 : index
  // CHECK: return %[[C12]]
  %c3 = arith.constant 3 : index
  %s = ssa.route %q, %kc of %k within %c {blocks = #ssa.blocks<16>, reduce = sum}
    : !q, !k, !k, !ssa.selection<?x2x?x3, key_block = 64, sorted> -> !s
  %d3 = tensor.dim %s, %c3 : !s
  return %d3 : index
}

// CHECK-LABEL: func @rebin(
// CHECK-SAME:    %[[S:.*]]: tensor<?x2x?x?xf32>, %[[K:.*]]: tensor<?x2x?x48xf32>
func.func @rebin(%s: !s, %k: !k) -> (index, index, index) {
  // CHECK-DAG: %[[C5:.*]] = arith.constant 5 : index
  // CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
  // CHECK-DAG: %[[B:.*]] = tensor.dim %[[S]], %c0
  // CHECK-DAG: %[[M:.*]] = tensor.dim %[[S]], %c2
  // CHECK-DAG: %[[MQ:.*]] = arith.ceildivsi %[[M]], %[[C5]]
  // CHECK-DAG: %[[N:.*]] = tensor.dim %[[K]], %c2
  // CHECK-DAG: %[[NB:.*]] = arith.ceildivsi %[[N]], %[[C8]]
  // CHECK: return %[[B]], %[[MQ]], %[[NB]]
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %y = ssa.rebin sum %s of %k {from = #ssa.blocks<4, stride = 2>, to = #ssa.blocks<8>, query_block = 5} : !s, !k -> !s
  %d0 = tensor.dim %y, %c0 : !s
  %d2 = tensor.dim %y, %c2 : !s
  %d3 = tensor.dim %y, %c3 : !s
  return %d0, %d2, %d3 : index, index, index
}

// The sizes of a selection are those of the tensor that holds it.
// CHECK-LABEL: func @topk(
// CHECK-SAME:    %[[S:.*]]: tensor<?x2x?x?xf32>
func.func @topk(%s: !s, %k: !k) -> (index, index) {
  // CHECK-DAG: %[[B:.*]] = tensor.dim %[[S]], %c0
  // CHECK-DAG: %[[MQ:.*]] = tensor.dim %[[S]], %c2
  // CHECK: return %[[B]], %[[MQ]]
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %a = ssa.topk %s of %k : !s, !k -> !sel
  %t = ssa.to_indices %a : !sel -> !t
  %d0 = tensor.dim %t, %c0 : !t
  %d2 = tensor.dim %t, %c2 : !t
  return %d0, %d2 : index, index
}

// CHECK-LABEL: func @lists(
// CHECK-SAME:    %[[T:.*]]: tensor<?x2x?x3xi32>, %[[U:.*]]: tensor<?x2x?x3xi32>
func.func @lists(%t: !t, %u: !t) -> (index, index) {
  // CHECK-DAG: %[[B:.*]] = tensor.dim %[[T]], %c0
  // CHECK-DAG: %[[MQ:.*]] = tensor.dim %[[T]], %c2
  // CHECK: return %[[B]], %[[MQ]]
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %a = ssa.from_indices %t : !t -> !ssa.selection<?x2x?x3, key_block = 4>
  %b = ssa.from_indices %u : !t -> !ssa.selection<?x2x?x3, key_block = 4>
  %c = ssa.union %a, %b
      : !ssa.selection<?x2x?x3, key_block = 4>, !ssa.selection<?x2x?x3, key_block = 4>
      -> !ssa.selection<?x2x?x6, key_block = 4, sorted>
  %d = ssa.sort %c : !ssa.selection<?x2x?x6, key_block = 4, sorted> -> !ssa.selection<?x2x?x7, key_block = 4, sorted>
  %i = ssa.to_indices %d : !ssa.selection<?x2x?x7, key_block = 4, sorted> -> tensor<?x2x?x7xi32>
  %d0 = tensor.dim %i, %c0 : tensor<?x2x?x7xi32>
  %d2 = tensor.dim %i, %c2 : tensor<?x2x?x7xi32>
  return %d0, %d2 : index, index
}

// CHECK-LABEL: func @gather(
// CHECK-SAME:    %[[K:.*]]: tensor<?x2x?x48xf32>, %[[T:.*]]: tensor<?x2x?x3xi32>
func.func @gather(%k: !k, %t: !t) -> (index, index, index) {
  // CHECK-DAG: %[[C12:.*]] = arith.constant 12 : index
  // CHECK-DAG: %[[B:.*]] = tensor.dim %[[K]], %c0
  // CHECK-DAG: %[[MQ:.*]] = tensor.dim %[[T]], %c2
  // CHECK: return %[[B]], %[[MQ]], %[[C12]]
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %a = ssa.from_indices %t : !t -> !ssa.selection<?x2x?x3, key_block = 4>
  %g = ssa.gather %k at %a : !k, !ssa.selection<?x2x?x3, key_block = 4> -> tensor<?x2x?x12x48xf32>
  %d0 = tensor.dim %g, %c0 : tensor<?x2x?x12x48xf32>
  %d2 = tensor.dim %g, %c2 : tensor<?x2x?x12x48xf32>
  %d3 = tensor.dim %g, %c3 : tensor<?x2x?x12x48xf32>
  return %d0, %d2, %d3 : index, index, index
}

// CHECK-LABEL: func @sparse_attend(
// CHECK-SAME:    %[[Q:.*]]: tensor<?x8x?x48xf32>, %[[K:.*]]: tensor<?x2x?x48xf32>
func.func @sparse_attend(%q: !q, %k: !k) -> (index, index, index, index) {
  // CHECK-DAG: %[[B:.*]] = tensor.dim %[[Q]], %c0
  // CHECK-DAG: %[[M:.*]] = tensor.dim %[[Q]], %c2
  // CHECK: return %[[B]], %[[M]], %[[B]], %[[M]]
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %o, %l = ssa.sparse_attend %q, %k, %k : !q, !k, !k -> !q, !l
  %d0 = tensor.dim %o, %c0 : !q
  %d2 = tensor.dim %o, %c2 : !q
  %e0 = tensor.dim %l, %c0 : !l
  %e2 = tensor.dim %l, %c2 : !l
  return %d0, %d2, %e0, %e2 : index, index, index, index
}

// CHECK-LABEL: func @merge_and_mix(
// CHECK-SAME:    %[[O:.*]]: tensor<?x8x?x48xf32>, %[[L:.*]]: tensor<?x8x?xf32>
func.func @merge_and_mix(%o: !q, %l: !l) -> (index, index, index) {
  // CHECK-DAG: %[[B:.*]] = tensor.dim %[[O]], %c0
  // CHECK-DAG: %[[M:.*]] = tensor.dim %[[O]], %c2
  // CHECK: return %[[B]], %[[M]], %[[M]]
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %m, %n = ssa.merge (%o, %l), (%o, %l) : !q, !l, !q, !l -> !q, !l
  %x = ssa.mix (%m, %n), (%o, %l) : !q, !l, !q, !l -> !q
  %d0 = tensor.dim %x, %c0 : !q
  %d2 = tensor.dim %x, %c2 : !q
  %e2 = tensor.dim %n, %c2 : !l
  return %d0, %d2, %e2 : index, index, index
}
