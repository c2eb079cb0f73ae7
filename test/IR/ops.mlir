// RUN: ssa-opt %s | FileCheck %s
// RUN: ssa-opt %s | ssa-opt | FileCheck %s
// RUN: ssa-opt %s --mlir-print-op-generic | ssa-opt | FileCheck %s
// RUN: ssa-opt %s --emit-bytecode | ssa-opt | FileCheck %s

// Every op, with every operand and attribute that it may have; each function in one of the forms that people write.

//===----------------------------------------------------------------------===//
// project
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func @project_static(
// CHECK-SAME:    %[[X:.*]]: tensor<3x8x5x48xbf16>, %[[W:.*]]: tensor<8x48x16xf32>
func.func @project_static(%x: tensor<3x8x5x48xbf16>, %w: tensor<8x48x16xf32>) -> tensor<3x8x5x16xf16> {
  // CHECK: ssa.project %[[X]], %[[W]] : tensor<3x8x5x48xbf16>, tensor<8x48x16xf32> -> tensor<3x8x5x16xf16>
  %y = ssa.project %x, %w : tensor<3x8x5x48xbf16>, tensor<8x48x16xf32> -> tensor<3x8x5x16xf16>
  return %y : tensor<3x8x5x16xf16>
}

// One head of rows serves all heads of the weight.
// CHECK-LABEL: func @project_one_row_head(
func.func @project_one_row_head(%x: tensor<?x1x?x48xf32>, %w: tensor<8x48x16xf32>) -> tensor<?x8x?x16xf32> {
  // CHECK: ssa.project
  %y = ssa.project %x, %w : tensor<?x1x?x48xf32>, tensor<8x48x16xf32> -> tensor<?x8x?x16xf32>
  return %y : tensor<?x8x?x16xf32>
}

// One head of the weight serves all heads of rows; the widest input.
// CHECK-LABEL: func @project_one_weight_head(
func.func @project_one_weight_head(%x: tensor<?x8x?x16384xf16>, %w: tensor<1x16384x4xf16>) -> tensor<?x8x?x4xbf16> {
  // CHECK: ssa.project
  %y = ssa.project %x, %w : tensor<?x8x?x16384xf16>, tensor<1x16384x4xf16> -> tensor<?x8x?x4xbf16>
  return %y : tensor<?x8x?x4xbf16>
}

//===----------------------------------------------------------------------===//
// pool
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func @pool_kinds(
// CHECK-SAME:    %[[K:[a-z0-9]*]]:
func.func @pool_kinds(%k: tensor<3x2x23x16xbf16>) {
  // CHECK: ssa.pool mean %[[K]] {blocks = #ssa.blocks<4>} :
  %0 = ssa.pool mean %k {blocks = #ssa.blocks<4>} : tensor<3x2x23x16xbf16> -> tensor<3x2x6x16xbf16>
  // CHECK: ssa.pool max %[[K]]
  %1 = ssa.pool max %k {blocks = #ssa.blocks<4>} : tensor<3x2x23x16xbf16> -> tensor<3x2x6x16xf32>
  // CHECK: ssa.pool min %[[K]]
  %2 = ssa.pool min %k {blocks = #ssa.blocks<4>} : tensor<3x2x23x16xbf16> -> tensor<3x2x6x16xf8E4M3FN>
  // A kind as an attribute of its own is read too, and printed as a word.
  // CHECK: ssa.pool min %[[K]]
  %3 = "ssa.pool"(%k) <{kind = #ssa<pool_kind min>, blocks = #ssa.blocks<4>}>
      : (tensor<3x2x23x16xbf16>) -> tensor<3x2x6x16xf8E4M3FN>
  return
}

// Overlapping blocks: only whole ones, floor((23-8)/4)+1. Shifted ones: floor((23+4-8)/4)+1, and ceil((23+3)/4).
// CHECK-LABEL: func @pool_blocks(
func.func @pool_blocks(%k: tensor<3x2x23x16xf32>) {
  // CHECK: {blocks = #ssa.blocks<8, stride = 4>}
  %0 = ssa.pool mean %k {blocks = #ssa.blocks<8, stride = 4>} : tensor<3x2x23x16xf32> -> tensor<3x2x4x16xf32>
  // CHECK: {blocks = #ssa.blocks<8, stride = 4, offset = -4>}
  %1 = ssa.pool mean %k {blocks = #ssa.blocks<8, stride = 4, offset = -4>}
      : tensor<3x2x23x16xf32> -> tensor<3x2x5x16xf32>
  // CHECK: {blocks = #ssa.blocks<4, offset = -3>}
  %2 = ssa.pool mean %k {blocks = #ssa.blocks<4, offset = -3>} : tensor<3x2x23x16xf32> -> tensor<3x2x7x16xf32>
  return
}

// CHECK-LABEL: func @pool_scales(
// CHECK-SAME:    %[[K:.*]]: tensor<?x2x?x16xf8E4M3FN>, %[[SC:[a-z0-9]*]]:
func.func @pool_scales(%k: tensor<?x2x?x16xf8E4M3FN>, %sc: tensor<?x2x?xf32>) -> tensor<?x2x?x16xf32> {
  // CHECK: ssa.pool mean %[[K]] scales %[[SC]] {blocks = #ssa.blocks<64>} :
  %0 = ssa.pool mean %k scales %sc {blocks = #ssa.blocks<64>}
      : tensor<?x2x?x16xf8E4M3FN>, tensor<?x2x?xf32> -> tensor<?x2x?x16xf32>
  return %0 : tensor<?x2x?x16xf32>
}

//===----------------------------------------------------------------------===//
// route
//===----------------------------------------------------------------------===//

// Without attributes: single tokens, all visible, one row of scores per query head.
// CHECK-LABEL: func @route_plain(
// CHECK-SAME:    %[[Q:.*]]: tensor<3x8x5x48xbf16>, %[[K:.*]]: tensor<3x2x23x48xf16>
func.func @route_plain(%q: tensor<3x8x5x48xbf16>, %k: tensor<3x2x23x48xf16>) -> tensor<3x8x5x23xf32> {
  // CHECK: ssa.route %[[Q]], %[[K]] : tensor<3x8x5x48xbf16>, tensor<3x2x23x48xf16> -> tensor<3x8x5x23xf32>
  %s = ssa.route %q, %k : tensor<3x8x5x48xbf16>, tensor<3x2x23x48xf16> -> tensor<3x8x5x23xf32>
  return %s : tensor<3x8x5x23xf32>
}

// Summaries with everything that `route` may read, and a score region with a number and a tensor from outside.
// CHECK-LABEL: func @route_everything(
// CHECK-SAME:    %[[Q:[a-z0-9]*]]: {{[^,]*}}, %[[KC:[a-z0-9]*]]: {{[^,]*}}, %[[K:[a-z0-9]*]]: {{[^,]*}}, %[[Q0:[a-z0-9]*]]:
// CHECK-SAME:    %[[W:[a-z0-9]*]]: {{[^,]*}}, %[[SC:[a-z0-9]*]]: {{[^!]*}}, %[[CAND:[a-z0-9]*]]: !ssa.selection<?x2x?x3, key_block = 64, query_block = 32, sorted>
func.func @route_everything(%q: tensor<?x8x?x48xbf16>, %kc: tensor<?x2x?x48xf8E4M3FN>, %k: tensor<?x2x?x48xf8E4M3FN>,
    %q0: tensor<?x8x?x48xbf16>, %w: tensor<?x8x?xf32>, %sc: tensor<?x2x?xf32>,
    %cand: !ssa.selection<?x2x?x3, key_block = 64, query_block = 32, sorted>, %slopes: tensor<8xf32>, %t: f32)
        -> tensor<?x2x?x12xf32> {
  // CHECK:      ssa.route %[[Q]], %[[KC]] of %[[K]] for %[[Q0]] weights %[[W]] scales %[[SC]] within %[[CAND]]
  // CHECK-SAME: {blocks = #ssa.blocks<16>, mask = #ssa.mask<causal, window = 512, sink = 4>, normalize = softmax, query_block = 16, reduce = sum, scale = 1.250000e-01, visible = partial}
  // CHECK-SAME: score (%[[X:.*]], %[[WH:.*]], %[[B:.*]], %[[H:.*]], %[[P:.*]], %[[J:.*]]) {
  // CHECK:        arith.index_cast %[[H]]
  // CHECK:        arith.mulf %[[X]], %[[WH]] : f32
  // CHECK:        ssa.yield %{{.*}} : f32
  // CHECK-NEXT: } : tensor<?x8x?x48xbf16>, tensor<?x2x?x48xf8E4M3FN>
  %s = ssa.route %q, %kc of %k for %q0 weights %w scales %sc within %cand
      {scale = 0.125, blocks = #ssa.blocks<16>, query_block = 16, mask = #ssa.mask<causal, window = 512, sink = 4>,
       visible = partial, normalize = softmax, reduce = sum} score (%x, %wh, %b, %h, %p, %j) {
    %i = arith.index_cast %h : i32 to index
    %slope = tensor.extract %slopes[%i] : tensor<8xf32>
    %xw = arith.mulf %x, %wh : f32
    %y = arith.mulf %xw, %slope : f32
    %z = arith.addf %y, %t : f32
    ssa.yield %z : f32
  } : tensor<?x8x?x48xbf16>, tensor<?x2x?x48xf8E4M3FN>, tensor<?x2x?x48xf8E4M3FN>, tensor<?x8x?x48xbf16>,
      tensor<?x8x?xf32>,
      tensor<?x2x?xf32>, !ssa.selection<?x2x?x3, key_block = 64, query_block = 32, sorted> -> tensor<?x2x?x12xf32>
  return %s : tensor<?x2x?x12xf32>
}

// Quest's bound takes two operands after the queries.
// CHECK-LABEL: func @route_bound(
// CHECK-SAME:    %[[Q:[a-z0-9]*]]: {{[^,]*}}, %[[LO:[a-z0-9]*]]: {{[^,]*}}, %[[HI:[a-z0-9]*]]: {{[^,]*}}, %[[K:[a-z0-9]*]]:
func.func @route_bound(%q: tensor<1x8x5x48xf32>, %lo: tensor<1x2x?x48xf8E4M3FN>, %hi: tensor<1x2x6x48xbf16>,
    %k: tensor<1x2x23x48xf32>,
    %w: tensor<1x8x5xf32>, %sc: tensor<1x2x6xf32>) {
  // CHECK: ssa.route bound %[[Q]], %[[LO]], %[[HI]] of %[[K]] {blocks = #ssa.blocks<4>} :
  %0 = ssa.route bound %q, %lo, %hi of %k {blocks = #ssa.blocks<4>}
      : tensor<1x8x5x48xf32>, tensor<1x2x?x48xf8E4M3FN>, tensor<1x2x6x48xbf16>, tensor<1x2x23x48xf32>
      -> tensor<1x8x5x6xf32>
  // CHECK: ssa.route bound %[[Q]], %[[LO]], %[[HI]] weights %{{.*}} scales %{{.*}} {reduce = max} :
  %1 = ssa.route bound %q, %lo, %hi weights %w scales %sc {reduce = max}
      : tensor<1x8x5x48xf32>, tensor<1x2x?x48xf8E4M3FN>, tensor<1x2x6x48xbf16>, tensor<1x8x5xf32>, tensor<1x2x6xf32>
      -> tensor<1x4x5x6xf32>
  return
}

// `for` is allowed where query blocks are single queries; `of` where blocks are single tokens.
// CHECK-LABEL: func @route_shapes_of_others(
func.func @route_shapes_of_others(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x21x48xf32>, %n: tensor<1x1x23x1xbf16>) {
  // CHECK: ssa.route %{{.*}}, %{{.*}} of %{{.*}} for %{{.*}} :
  %0 = ssa.route %q, %k of %n for %q
      : tensor<1x8x5x48xf32>, tensor<1x2x21x48xf32>, tensor<1x1x23x1xbf16>, tensor<1x8x5x48xf32> -> tensor<1x8x5x21xf32>
  return
}

// Summaries need no tokens where nothing asks for positions.
// CHECK-LABEL: func @route_summaries_alone(
func.func @route_summaries_alone(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x6x48xf32>) {
  // CHECK: ssa.route %{{.*}}, %{{.*}} {blocks = #ssa.blocks<4>, normalize = softmax} :
  %0 = ssa.route %q, %k {blocks = #ssa.blocks<4>, normalize = softmax}
      : tensor<1x8x5x48xf32>, tensor<1x2x6x48xf32> -> tensor<1x8x5x6xf32>
  return
}

//===----------------------------------------------------------------------===//
// rebin
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func @rebin(
// CHECK-SAME:    %[[S:[a-z0-9]*]]: {{[^,]*}}, %[[K:[a-z0-9]*]]:
func.func @rebin(%s: tensor<1x2x10x15xf32>, %k: tensor<1x2x269x48xbf16>) {
  // CHECK: ssa.rebin sum %[[S]] of %[[K]] {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>} :
  %0 = ssa.rebin sum %s of %k {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>}
      : tensor<1x2x10x15xf32>, tensor<1x2x269x48xbf16> -> tensor<1x2x10x5xf32>
  // CHECK: ssa.rebin max %[[S]] of %[[K]] {from = #ssa.blocks<16>, query_block = 4, to = #ssa.blocks<32>} :
  %1 = ssa.rebin max %s of %k {from = #ssa.blocks<16>, to = #ssa.blocks<32>, query_block = 4}
      : tensor<1x2x10x15xf32>, tensor<1x2x269x48xbf16> -> tensor<1x2x3x9xf32>
  return
}

//===----------------------------------------------------------------------===//
// topk
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func @topk_plain(
// CHECK-SAME:    %[[S:[a-z0-9]*]]: {{[^,]*}}, %[[K:[a-z0-9]*]]:
func.func @topk_plain(%s: tensor<1x2x5x?xf32>, %k: tensor<1x2x23x48xf8E4M3FN>) {
  // CHECK: ssa.topk %[[S]] of %[[K]] : tensor<1x2x5x?xf32>, tensor<1x2x23x48xf8E4M3FN> -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  %0 = ssa.topk %s of %k
      : tensor<1x2x5x?xf32>, tensor<1x2x23x48xf8E4M3FN> -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  // CHECK: ssa.topk {{.*}} -> !ssa.selection<1x2x5x0, key_block = 64, sorted>
  %1 = ssa.topk %s of %k
      : tensor<1x2x5x?xf32>, tensor<1x2x23x48xf8E4M3FN> -> !ssa.selection<1x2x5x0, key_block = 64, sorted>
  // CHECK: ssa.topk {{.*}} -> !ssa.selection<1x2x5x4096, key_block = 64, sorted>
  %2 = ssa.topk %s of %k
      : tensor<1x2x5x?xf32>, tensor<1x2x23x48xf8E4M3FN> -> !ssa.selection<1x2x5x4096, key_block = 64, sorted>
  return
}

// CHECK-LABEL: func @topk_everything(
// CHECK-SAME:    %[[S:[a-z0-9]*]]: {{[^,]*}}, %[[K:[a-z0-9]*]]: {{[^,]*}}, %[[Q0:[a-z0-9]*]]: {{[^!]*}}, %[[CAND:[a-z0-9]*]]: !ssa
func.func @topk_everything(%s: tensor<?x2x?x32xf32>, %k: tensor<?x2x?x48xbf16>, %q0: tensor<?x8x?x48xbf16>,
    %cand: !ssa.selection<?x2x?x8, key_block = 64, query_block = 32, sorted>)
        -> !ssa.selection<?x2x?x5, key_block = 16, query_block = 16, sorted> {
  // CHECK:      ssa.topk %[[S]] of %[[K]] for %[[Q0]] within %[[CAND]]
  // CHECK-SAME: {init_blocks = 1, local_blocks = 2, mask = #ssa.mask<causal>, threshold = -2.500000e+00, top_p = 9.000000e-01} :
  %sel = ssa.topk %s of %k for %q0 within %cand {mask = #ssa.mask<causal>, init_blocks = 1, local_blocks = 2,
      top_p = 0.9, threshold = -2.5}
      : tensor<?x2x?x32xf32>, tensor<?x2x?x48xbf16>, tensor<?x8x?x48xbf16>,
        !ssa.selection<?x2x?x8, key_block = 64, query_block = 32, sorted>
      -> !ssa.selection<?x2x?x5, key_block = 16, query_block = 16, sorted>
  return %sel : !ssa.selection<?x2x?x5, key_block = 16, query_block = 16, sorted>
}

// One list serves every row; so does one row of scores, which stands at the last query.
// CHECK-LABEL: func @topk_one_list(
func.func @topk_one_list(%s: tensor<1x2x5x32xf32>, %s1: tensor<1x2x1x23xf32>, %k: tensor<1x2x23x48xbf16>,
    %cand: !ssa.selection<1x2x1x32, key_block = 1, sorted>) {
  // CHECK: ssa.topk %{{.*}} of %{{.*}} within %{{.*}} :
  %0 = ssa.topk %s of %k within %cand
      : tensor<1x2x5x32xf32>, tensor<1x2x23x48xbf16>, !ssa.selection<1x2x1x32, key_block = 1, sorted>
      -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  // CHECK: ssa.topk
  %1 = ssa.topk %s1 of %k
      : tensor<1x2x1x23xf32>, tensor<1x2x23x48xbf16> -> !ssa.selection<1x2x1x3, key_block = 1, sorted>
  return
}

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func @lists(
// CHECK-SAME:    %[[T:[a-z0-9]*]]: tensor<1x2x5x4xi32>
func.func @lists(%t: tensor<1x2x5x4xi32>) -> tensor<1x2x5x9xi32> {
  // CHECK: %[[A:.*]] = ssa.from_indices %[[T]] : tensor<1x2x5x4xi32> -> !ssa.selection<1x2x5x4, key_block = 64>
  %a = ssa.from_indices %t : tensor<1x2x5x4xi32> -> !ssa.selection<1x2x5x4, key_block = 64>
  // CHECK: %[[B:.*]] = ssa.sort %[[A]] : !ssa.selection<1x2x5x4, key_block = 64> -> !ssa.selection<1x2x5x5, key_block = 64, sorted>
  %b = ssa.sort %a : !ssa.selection<1x2x5x4, key_block = 64> -> !ssa.selection<1x2x5x5, key_block = 64, sorted>
  // CHECK: %[[C:.*]] = ssa.union %[[A]], %[[B]] : !ssa.selection<1x2x5x4, key_block = 64>, !ssa.selection<1x2x5x5, key_block = 64, sorted> -> !ssa.selection<1x2x5x9, key_block = 64, sorted>
  %c = ssa.union %a, %b
      : !ssa.selection<1x2x5x4, key_block = 64>, !ssa.selection<1x2x5x5, key_block = 64, sorted>
      -> !ssa.selection<1x2x5x9, key_block = 64, sorted>
  // CHECK: ssa.to_indices %[[C]] : !ssa.selection<1x2x5x9, key_block = 64, sorted> -> tensor<1x2x5x9xi32>
  %i = ssa.to_indices %c : !ssa.selection<1x2x5x9, key_block = 64, sorted> -> tensor<1x2x5x9xi32>
  return %i : tensor<1x2x5x9xi32>
}

// Sizes known on one side only; the union of a value with itself needs no more room.
// CHECK-LABEL: func @lists_of_unknown_size(
func.func @lists_of_unknown_size(%t: tensor<?x2x5x4xi32>) {
  // CHECK: ssa.from_indices %{{.*}} : tensor<?x2x5x4xi32> -> !ssa.selection<3x2x?x4, key_block = 1, query_block = 16>
  %a = ssa.from_indices %t : tensor<?x2x5x4xi32> -> !ssa.selection<3x2x?x4, key_block = 1, query_block = 16>
  // CHECK: ssa.union %[[A:[a-z0-9]*]], %[[A]] :
  %b = ssa.union %a, %a
      : !ssa.selection<3x2x?x4, key_block = 1, query_block = 16>,
        !ssa.selection<3x2x?x4, key_block = 1, query_block = 16>
      -> !ssa.selection<?x2x?x4, key_block = 1, query_block = 16, sorted>
  return
}

// The blocks of a selection default to single keys and queries.
// CHECK-LABEL: func @selection_defaults(
// CHECK-SAME:    !ssa.selection<1x2x5x4, key_block = 1>, %{{.*}}: !ssa.selection<1x2x5x4, key_block = 1>
func.func @selection_defaults(%a: !ssa.selection<1x2x5x4>,
    %b: !ssa.selection<1x2x5x4, query_block = 1, key_block = 1>) {
  return
}

// The largest sizes.
// CHECK-LABEL: func @selection_largest(
// CHECK-SAME:    !ssa.selection<2147483647x1x2147483647x2147483647, key_block = 2147483647, query_block = 2147483647, sorted>
func.func @selection_largest(
    %a: !ssa.selection<2147483647x1x2147483647x2147483647, key_block = 2147483647, query_block = 2147483647, sorted>) {
  return
}

//===----------------------------------------------------------------------===//
// gather
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func @gather(
// CHECK-SAME:    %[[K:[a-z0-9]*]]: {{[^,]*}}, %[[SEL:[a-z0-9]*]]: !ssa
func.func @gather(%k: tensor<1x2x23x48xbf16>, %sel: !ssa.selection<1x2x5x3, key_block = 4>,
    %many: !ssa.selection<1x8x5x3, key_block = 4>,
    %one: !ssa.selection<1x1x1x3, key_block = 4>) {
  // CHECK: ssa.gather %[[K]] at %[[SEL]] : tensor<1x2x23x48xbf16>, !ssa.selection<1x2x5x3, key_block = 4> -> tensor<1x2x5x12x48xbf16>
  %0 = ssa.gather %k at %sel
      : tensor<1x2x23x48xbf16>, !ssa.selection<1x2x5x3, key_block = 4> -> tensor<1x2x5x12x48xbf16>
  // CHECK: ssa.gather {{.*}} -> tensor<1x8x5x12x48xbf16>
  %1 = ssa.gather %k at %many
      : tensor<1x2x23x48xbf16>, !ssa.selection<1x8x5x3, key_block = 4> -> tensor<1x8x5x12x48xbf16>
  // CHECK: ssa.gather {{.*}} -> tensor<1x2x1x12x48xbf16>
  %2 = ssa.gather %k at %one
      : tensor<1x2x23x48xbf16>, !ssa.selection<1x1x1x3, key_block = 4> -> tensor<1x2x1x12x48xbf16>
  return
}

//===----------------------------------------------------------------------===//
// sparse_attend
//===----------------------------------------------------------------------===//

// Types of queries, keys, values and output may all differ, and so may the dims of keys and values.
// CHECK-LABEL: func @attend_plain(
// CHECK-SAME:    %[[Q:[a-z0-9]*]]: {{[^,]*}}, %[[K:[a-z0-9]*]]: {{[^,]*}}, %[[V:[a-z0-9]*]]:
func.func @attend_plain(%q: tensor<3x8x5x48xbf16>, %k: tensor<3x2x23x48xf16>, %v: tensor<3x2x23x24xf32>) {
  // CHECK: ssa.sparse_attend %[[Q]], %[[K]], %[[V]] : tensor<3x8x5x48xbf16>, tensor<3x2x23x48xf16>, tensor<3x2x23x24xf32> -> tensor<3x8x5x24xf16>, tensor<3x8x5xf32>
  %o, %lse = ssa.sparse_attend %q, %k, %v
      : tensor<3x8x5x48xbf16>, tensor<3x2x23x48xf16>, tensor<3x2x23x24xf32> -> tensor<3x8x5x24xf16>, tensor<3x8x5xf32>
  return
}

// Several selections, whose heads, blocks, widths and promises differ; one of them serves every query.
// CHECK-LABEL: func @attend_selections(
// CHECK-SAME:    %[[A:[a-z0-9]*]]: !ssa.selection<1x2x5x4, key_block = 16, sorted>, %[[B:[a-z0-9]*]]: !ssa.selection<?x8x2x0, key_block = 1, query_block = 3>, %[[C:[a-z0-9]*]]: !ssa.selection<1x1x1x7, key_block = 64, query_block = 2>
func.func @attend_selections(%q: tensor<1x8x5x48xbf16>, %k: tensor<1x2x?x48xbf16>,
    %a: !ssa.selection<1x2x5x4, key_block = 16, sorted>,
    %b: !ssa.selection<?x8x2x0, key_block = 1, query_block = 3>,
    %c: !ssa.selection<1x1x1x7, key_block = 64, query_block = 2>) {
  // CHECK: ssa.sparse_attend %{{.*}}, %{{.*}}, %{{.*}} at %[[A]], %[[B]], %[[C]] {mask = #ssa.mask<causal>} :
  %o, %lse = ssa.sparse_attend %q, %k, %k at %a, %b, %c {mask = #ssa.mask<causal>}
      : tensor<1x8x5x48xbf16>, tensor<1x2x?x48xbf16>, tensor<1x2x?x48xbf16>,
        !ssa.selection<1x2x5x4, key_block = 16, sorted>,
        !ssa.selection<?x8x2x0, key_block = 1, query_block = 3>, !ssa.selection<1x1x1x7, key_block = 64, query_block = 2>
      -> tensor<1x8x5x48xbf16>, tensor<1x8x5xf32>
  return
}

// Summaries, selected by row, with a region that reads a tensor from outside.
// CHECK-LABEL: func @attend_everything(
func.func @attend_everything(%q: tensor<?x8x?x48xf32>, %kc: tensor<?x2x?x48xf32>, %k: tensor<?x2x?x48xf8E4M3FN>,
    %slopes: tensor<8xf32>,
    %sel: !ssa.selection<?x2x?x4, key_block = 1, sorted>) -> tensor<?x8x?x48xf32> {
  // CHECK:      ssa.sparse_attend %{{[a-z0-9]*}}, %[[KC:[a-z0-9]*]], %[[KC]] of %{{[a-z0-9]*}} at %{{[a-z0-9]*}}
  // CHECK-SAME: {blocks = #ssa.blocks<32, stride = 16>, mask = #ssa.mask<causal, window = 512>, scale = -5.000000e-01}
  // CHECK-SAME: score (%[[X:.*]], %[[B:.*]], %[[H:.*]], %[[P:.*]], %[[N:.*]]) {
  // CHECK:        arith.subi %[[N]], %[[P]] : i32
  // CHECK:        ssa.yield
  // CHECK-NEXT: } : tensor<?x8x?x48xf32>
  %o, %lse = ssa.sparse_attend %q, %kc, %kc of %k at %sel
      {scale = -0.5, mask = #ssa.mask<causal, window = 512>, blocks = #ssa.blocks<32, stride = 16>} score (%x, %b, %h,
          %p, %n) {
    %i = arith.index_cast %h : i32 to index
    %slope = tensor.extract %slopes[%i] : tensor<8xf32>
    %back = arith.subi %n, %p : i32
    %far = arith.sitofp %back : i32 to f32
    %y = arith.mulf %far, %slope : f32
    %z = arith.addf %x, %y : f32
    ssa.yield %z : f32
  } : tensor<?x8x?x48xf32>, tensor<?x2x?x48xf32>, tensor<?x2x?x48xf32>, tensor<?x2x?x48xf8E4M3FN>,
      !ssa.selection<?x2x?x4, key_block = 1, sorted>
    -> tensor<?x8x?x48xf32>, tensor<?x8x?xf32>
  return %o : tensor<?x8x?x48xf32>
}

// Gathered keys and values have rank 5. They may have more heads than lists, or fewer.
// CHECK-LABEL: func @attend_gathered(
func.func @attend_gathered(%q: tensor<1x8x5x48xbf16>, %k: tensor<1x2x23x48xbf16>, %kg: tensor<1x4x5x12x48xbf16>,
    %vg: tensor<1x4x?x12x24xbf16>,
    %sel: !ssa.selection<1x2x5x3, key_block = 4>, %one: !ssa.selection<1x8x1x3, key_block = 4, query_block = 2>,
    %k1: tensor<1x4x1x12x48xbf16>) {
  // CHECK: ssa.sparse_attend %{{.*}}, %{{.*}}, %{{.*}} of %{{.*}} at %{{.*}} {mask = #ssa.mask<causal>} :
  %0:2 = ssa.sparse_attend %q, %kg, %vg of %k at %sel {mask = #ssa.mask<causal>}
      : tensor<1x8x5x48xbf16>, tensor<1x4x5x12x48xbf16>, tensor<1x4x?x12x24xbf16>, tensor<1x2x23x48xbf16>,
        !ssa.selection<1x2x5x3, key_block = 4>
      -> tensor<1x8x5x24xbf16>, tensor<1x8x5xf32>
  // CHECK: ssa.sparse_attend %{{.*}}, %[[K1:[a-z0-9]*]], %[[K1]] of %{{.*}} at %{{.*}} :
  %1:2 = ssa.sparse_attend %q, %k1, %k1 of %k at %one
      : tensor<1x8x5x48xbf16>, tensor<1x4x1x12x48xbf16>, tensor<1x4x1x12x48xbf16>, tensor<1x2x23x48xbf16>,
        !ssa.selection<1x8x1x3, key_block = 4, query_block = 2> -> tensor<1x8x5x48xbf16>, tensor<1x8x5xf32>
  return
}

//===----------------------------------------------------------------------===//
// merge, mix
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func @merge(
// CHECK-SAME:    %[[O1:[a-z0-9]*]]: {{[^,]*}}, %[[L1:[a-z0-9]*]]: {{[^,]*}}, %[[O2:[a-z0-9]*]]: {{[^,]*}}, %[[L2:[a-z0-9]*]]: {{[^,]*}}, %[[S:[a-z0-9]*]]:
func.func @merge(%o1: tensor<1x8x5x48xf32>, %l1: tensor<1x8x5xf32>, %o2: tensor<?x8x?x48xbf16>, %l2: tensor<?x8x?xf32>,
    %s: tensor<8xf32>) {
  // CHECK: ssa.merge (%[[O1]], %[[L1]]) : tensor<1x8x5x48xf32>, tensor<1x8x5xf32> -> tensor<1x8x5x48xf32>, tensor<1x8x5xf32>
  %0:2 = ssa.merge (%o1, %l1) : tensor<1x8x5x48xf32>, tensor<1x8x5xf32> -> tensor<1x8x5x48xf32>, tensor<1x8x5xf32>
  // CHECK: ssa.merge (%[[O1]], %[[L1]]), (%[[O2]], %[[L2]]) sink_logits %[[S]] : tensor<1x8x5x48xf32>, tensor<1x8x5xf32>, tensor<?x8x?x48xbf16>, tensor<?x8x?xf32>, tensor<8xf32> -> tensor<?x8x5x48xf16>, tensor<1x8x?xf32>
  %1:2 = ssa.merge (%o1, %l1), (%o2, %l2) sink_logits %s
      : tensor<1x8x5x48xf32>, tensor<1x8x5xf32>, tensor<?x8x?x48xbf16>, tensor<?x8x?xf32>, tensor<8xf32>
      -> tensor<?x8x5x48xf16>, tensor<1x8x?xf32>
  return
}

// CHECK-LABEL: func @mix(
// CHECK-SAME:    %[[O1:[a-z0-9]*]]: {{[^,]*}}, %[[G1:[a-z0-9]*]]: {{[^,]*}}, %[[O2:[a-z0-9]*]]: {{[^,]*}}, %[[G2:[a-z0-9]*]]:
func.func @mix(%o1: tensor<1x8x5x48xf32>, %g1: tensor<1x8x5xf32>, %o2: tensor<1x8x?x48xbf16>, %g2: tensor<1x8x?xf32>) {
  // CHECK: ssa.mix (%[[O1]], %[[G1]]) :
  %0 = ssa.mix (%o1, %g1) : tensor<1x8x5x48xf32>, tensor<1x8x5xf32> -> tensor<1x8x5x48xbf16>
  // CHECK: ssa.mix (%[[O1]], %[[G1]]), (%[[O2]], %[[G2]]) {gate = none} :
  %1 = ssa.mix (%o1, %g1), (%o2, %g2) {gate = none}
      : tensor<1x8x5x48xf32>, tensor<1x8x5xf32>, tensor<1x8x?x48xbf16>, tensor<1x8x?xf32> -> tensor<1x8x5x48xf16>
  return
}

//===----------------------------------------------------------------------===//
// Zero sizes
//===----------------------------------------------------------------------===//

// No batch, no queries, no keys: all legal, and results have sizes of 0.
// CHECK-LABEL: func @zero_sizes(
func.func @zero_sizes(%b: tensor<0x8x5x48xf32>, %bk: tensor<0x2x23x48xf32>, %m: tensor<1x8x0x48xf32>,
    %k: tensor<1x2x23x48xf32>,
    %q: tensor<1x8x5x48xf32>, %n: tensor<1x2x0x48xf32>, %none: tensor<1x2x0x4xi32>) {
  // CHECK-COUNT-3: ssa.sparse_attend
  %0:2 = ssa.sparse_attend %b, %bk, %bk
      : tensor<0x8x5x48xf32>, tensor<0x2x23x48xf32>, tensor<0x2x23x48xf32> -> tensor<0x8x5x48xf32>, tensor<0x8x5xf32>
  %1:2 = ssa.sparse_attend %m, %k, %k
      : tensor<1x8x0x48xf32>, tensor<1x2x23x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x0x48xf32>, tensor<1x8x0xf32>
  %2:2 = ssa.sparse_attend %q, %n, %n
      : tensor<1x8x5x48xf32>, tensor<1x2x0x48xf32>, tensor<1x2x0x48xf32> -> tensor<1x8x5x48xf32>, tensor<1x8x5xf32>
  // An offset makes no block where there is no token.
  // CHECK: ssa.pool
  %3 = ssa.pool mean %n {blocks = #ssa.blocks<4, offset = -3>} : tensor<1x2x0x48xf32> -> tensor<1x2x0x48xf32>
  // CHECK: ssa.route
  %4 = ssa.route %q, %n : tensor<1x8x5x48xf32>, tensor<1x2x0x48xf32> -> tensor<1x8x5x0xf32>
  // CHECK: ssa.topk
  %5 = ssa.topk %4 of %n {init_blocks = 1}
      : tensor<1x8x5x0xf32>, tensor<1x2x0x48xf32> -> !ssa.selection<1x8x5x3, key_block = 64, sorted>
  // Of no query there is no list, or one that serves them all.
  // CHECK: ssa.from_indices
  %6 = ssa.from_indices %none : tensor<1x2x0x4xi32> -> !ssa.selection<1x2x0x4, key_block = 64, query_block = 16>
  // CHECK: ssa.sparse_attend
  %7:2 = ssa.sparse_attend %m, %k, %k at %6 : tensor<1x8x0x48xf32>, tensor<1x2x23x48xf32>, tensor<1x2x23x48xf32>,
      !ssa.selection<1x2x0x4, key_block = 64, query_block = 16> -> tensor<1x8x0x48xf32>, tensor<1x8x0xf32>
  return
}

//===----------------------------------------------------------------------===//
// A whole pattern
//===----------------------------------------------------------------------===//

!q = tensor<?x64x?x128xbf16>
!kv = tensor<?x4x?x128xbf16>
!l = tensor<?x64x?xf32>
!s = tensor<?x4x?x?xf32>
!sel = !ssa.selection<?x4x?x16, key_block = 64, sorted>

// The example of the dialect's description.
// CHECK-LABEL: func @nsa(
func.func @nsa(%q: !q, %k: !kv, %v: !kv, %g1: !l, %g2: !l, %g3: !l) -> !q {
  // CHECK: %[[KC:.*]] = ssa.pool mean
  // CHECK: %[[VC:.*]] = ssa.pool mean
  // CHECK: %[[O1:.*]], %{{.*}} = ssa.sparse_attend %{{.*}}, %[[KC]], %[[VC]] of
  // CHECK: %[[P:.*]] = ssa.route %{{.*}}, %[[KC]] of
  // CHECK: %[[I:.*]] = ssa.rebin sum %[[P]] of
  // CHECK: %[[SEL:.*]] = ssa.topk %[[I]] of
  // CHECK: %[[O2:.*]], %{{.*}} = ssa.sparse_attend {{.*}} at %[[SEL]]
  // CHECK: %[[O3:.*]], %{{.*}} = ssa.sparse_attend
  // CHECK: ssa.mix (%[[O1]], %{{.*}}), (%[[O2]], %{{.*}}), (%[[O3]], %{{.*}}) :
  %kc = ssa.pool mean %k {blocks = #ssa.blocks<32, stride = 16>} : !kv -> !kv
  %vc = ssa.pool mean %v {blocks = #ssa.blocks<32, stride = 16>} : !kv -> !kv
  %o1, %l1 = ssa.sparse_attend %q, %kc, %vc of %k {blocks = #ssa.blocks<32, stride = 16>, mask = #ssa.mask<causal>}
      : !q, !kv, !kv, !kv -> !q, !l
  %p = ssa.route %q, %kc of %k
      {blocks = #ssa.blocks<32, stride = 16>, mask = #ssa.mask<causal>, normalize = softmax, reduce = sum}
      : !q, !kv, !kv -> !s
  %i = ssa.rebin sum %p of %k {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>} : !s, !kv -> !s
  %sel = ssa.topk %i of %k {mask = #ssa.mask<causal>, init_blocks = 1, local_blocks = 2} : !s, !kv -> !sel
  %o2, %l2 = ssa.sparse_attend %q, %k, %v at %sel {mask = #ssa.mask<causal>} : !q, !kv, !kv, !sel -> !q, !l
  %o3, %l3 = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal, window = 512>} : !q, !kv, !kv -> !q, !l
  %o = ssa.mix (%o1, %g1), (%o2, %g2), (%o3, %g3) : !q, !l, !q, !l, !q, !l -> !q
  return %o : !q
}

!qi = tensor<?x64x?x128xf8E4M3FN>
!ki = tensor<?x1x?x128xf8E4M3FN>
!f = tensor<?x64x?x512xf32>
!o = tensor<?x64x?x512xbf16>

// Its other example: an indexer's region, and learned sinks.
// CHECK-LABEL: func @dsa(
func.func @dsa(%qi: !qi, %ki: !ki, %w: tensor<?x64x?xf32>, %sc: tensor<?x1x?xf32>, %o1: !f, %l1: !l, %o2: !f, %l2: !l,
    %sinks: tensor<64xf32>) -> !o {
  %zero = arith.constant 0.0 : f32
  // CHECK: ssa.route {{.*}} {mask = #ssa.mask<causal>, reduce = sum, scale = 1.000000e+00} score (%[[X:.*]], %[[WH:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {
  // CHECK:   %[[R:.*]] = arith.maximumf %[[X]], %{{.*}} : f32
  // CHECK:   %[[Y:.*]] = arith.mulf %[[R]], %[[WH]] : f32
  // CHECK:   ssa.yield %[[Y]] : f32
  %s = ssa.route %qi, %ki weights %w scales %sc {scale = 1.0, mask = #ssa.mask<causal>, reduce = sum} score (%x, %wh,
      %b, %h, %p, %j) {
    %r = arith.maximumf %x, %zero : f32
    %y = arith.mulf %r, %wh : f32
    ssa.yield %y : f32
  } : !qi, !ki, tensor<?x64x?xf32>, tensor<?x1x?xf32> -> tensor<?x1x?x?xf32>
  // CHECK: ssa.merge {{.*}} sink_logits
  %o, %l = ssa.merge (%o1, %l1), (%o2, %l2) sink_logits %sinks : !f, !l, !f, !l, tensor<64xf32> -> !o, !l
  return %o : !o
}
