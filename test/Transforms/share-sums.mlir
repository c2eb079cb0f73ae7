// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --verify-diagnostics --ssa-attach-target=chip=sm_90a --ssa-fuse | FileCheck %s
// RUN: ssa-opt %s --ssa-fuse | FileCheck %s --check-prefix=ANY

!q = tensor<1x8x?x64xbf16>
!kv = tensor<1x2x?x64xbf16>
!l = tensor<1x8x?xf32>
!s = tensor<1x2x?x?xf32>
!sel = !ssa.selection<1x2x?x4, key_block = 16, sorted>
#blocks = #ssa.blocks<16>
#causal = #ssa.mask<causal>

// Without a target nothing is decided.
// ANY-NOT: shared_sums

// CHECK-LABEL: @before
// CHECK: ssa.route {{.*}}ssa.shared_sums
func.func @before(%q: !q, %k: !kv, %kc: !kv, %vc: !kv) -> (!q, !s) {
  %o, %l = ssa.sparse_attend %q, %kc, %vc of %k {blocks = #blocks, mask = #causal} : !q, !kv, !kv, !kv -> !q, !l
  %s = ssa.route %q, %kc of %k {blocks = #blocks, mask = #causal, normalize = softmax, reduce = sum} : !q, !kv, !kv -> !s
  return %o, %s : !q, !s
}

// Attention moves, with what it is made of. A scale that is written is the one that there is without.
// CHECK-LABEL: @behind
// CHECK: ssa.pool max
// CHECK: ssa.sparse_attend
// CHECK: ssa.route {{.*}}ssa.shared_sums
// CHECK: ssa.topk
func.func @behind(%q: !q, %k: !kv, %kc: !kv, %v: !kv) -> (!sel, !q) {
  %s = ssa.route %q, %kc of %k {scale = 0.125, blocks = #blocks, mask = #causal, normalize = softmax, reduce = sum} : !q, !kv, !kv -> !s
  %a = ssa.topk %s of %k {mask = #causal} : !s, !kv -> !sel
  %vc = ssa.pool max %v {blocks = #blocks} : !kv -> !kv
  %o, %l = ssa.sparse_attend %q, %kc, %vc of %k {blocks = #blocks, mask = #causal} : !q, !kv, !kv, !kv -> !q, !l
  return %a, %o : !sel, !q
}

// Attention whose sums are taken is done before what it is part of: the other part is joined.
// CHECK-LABEL: @part_of_a_mix
// CHECK: ssa.route {{.*}}ssa.shared_sums
// CHECK: ssa.mix {{.*}}part = 0
func.func @part_of_a_mix(%q: !q, %k: !kv, %kc: !kv, %vc: !kv, %g: !l) -> (!s, !q) {
  %o1, %l1 = ssa.sparse_attend %q, %k, %k {mask = #causal} : !q, !kv, !kv -> !q, !l
  %o2, %l2 = ssa.sparse_attend %q, %kc, %vc of %k {blocks = #blocks, mask = #causal} : !q, !kv, !kv, !kv -> !q, !l
  %s = ssa.route %q, %kc of %k {blocks = #blocks, mask = #causal, normalize = softmax, reduce = sum} : !q, !kv, !kv -> !s
  %o = ssa.mix (%o1, %g), (%o2, %g) : !q, !l, !q, !l -> !q
  return %s, %o : !s, !q
}

// Other keys, other queries, lists, no softmax: nothing to tell.
// CHECK-LABEL: @unrelated
// CHECK-NOT: shared_sums
func.func @unrelated(%q: !q, %k: !kv, %kc: !kv, %vc: !kv, %a: !sel, %p: !q) -> (!q, !q, !q, !s, !s) {
  %o1, %l1 = ssa.sparse_attend %q, %vc, %vc of %k {blocks = #blocks, mask = #causal} : !q, !kv, !kv, !kv -> !q, !l
  %o2, %l2 = ssa.sparse_attend %p, %kc, %vc of %k {blocks = #blocks, mask = #causal} : !q, !kv, !kv, !kv -> !q, !l
  %o3, %l3 = ssa.sparse_attend %q, %k, %k at %a {mask = #causal} : !q, !kv, !kv, !sel -> !q, !l
  %s1 = ssa.route %q, %kc of %k {blocks = #blocks, mask = #causal, normalize = softmax, reduce = sum} : !q, !kv, !kv -> !s
  %s2 = ssa.route %p, %kc of %k {blocks = #blocks, mask = #causal, reduce = sum} : !q, !kv, !kv -> !s
  return %o1, %o2, %o3, %s1, %s2 : !q, !q, !q, !s, !s
}

// CHECK-LABEL: @declined
// CHECK-NOT: shared_sums
func.func @declined(%q: !q, %k: !kv, %n: !kv, %kc: !kv, %vc: !kv, %w: !l, %x: !l, %a: !ssa.selection<1x2x?x4, key_block = 16, query_block = 1, sorted>)
    -> (!q, !s, !s, !s, !s, !s, !s, tensor<1x2x?x4xf32>) {
  %o, %l = ssa.sparse_attend %q, %kc, %vc of %k {blocks = #blocks, mask = #causal} : !q, !kv, !kv, !kv -> !q, !l
  // expected-remark @below {{makes sums of its own: 'ssa.sparse_attend' to the same keys has another scale}}
  %s1 = ssa.route %q, %kc of %k {scale = 1.0, blocks = #blocks, mask = #causal, normalize = softmax, reduce = sum} : !q, !kv, !kv -> !s
  // expected-remark @below {{makes sums of its own: 'ssa.sparse_attend' to the same keys has other visible keys}}
  %s2 = ssa.route %q, %kc of %k {blocks = #blocks, mask = #ssa.mask<causal, window = 64>, normalize = softmax, reduce = sum} : !q, !kv, !kv -> !s
  // expected-remark @below {{makes sums of its own: 'ssa.sparse_attend' to the same keys has other visible keys}}
  %s3 = ssa.route %q, %kc of %n {blocks = #blocks, mask = #causal, normalize = softmax, reduce = sum} : !q, !kv, !kv -> !s
  // expected-remark @below {{makes sums of its own: 'ssa.sparse_attend' to the same keys has complete blocks only}}
  %s4 = ssa.route %q, %kc of %k {blocks = #blocks, mask = #causal, visible = partial, normalize = softmax, reduce = sum} : !q, !kv, !kv -> !s
  // expected-remark @below {{makes sums of its own: 'ssa.sparse_attend' to the same keys has logits without weights or scales}}
  %s5 = ssa.route %q, %kc of %k weights %w {blocks = #blocks, mask = #causal, normalize = softmax, reduce = sum} : !q, !kv, !kv, !l -> !s
  // expected-remark @below {{makes sums of its own: 'ssa.sparse_attend' to the same keys has scores that no region makes}}
  %s6 = ssa.route %q, %kc of %k {blocks = #blocks, mask = #causal, normalize = softmax, reduce = sum} score (%y, %z, %b, %h, %p, %j) {
    ssa.yield %y : f32
  } : !q, !kv, !kv -> !s
  // expected-remark @below {{makes sums of its own: 'ssa.sparse_attend' to the same keys has keys of no list}}
  %s7 = ssa.route %q, %kc of %k within %a {blocks = #blocks, mask = #causal, normalize = softmax, reduce = sum}
      : !q, !kv, !kv, !ssa.selection<1x2x?x4, key_block = 16, query_block = 1, sorted> -> tensor<1x2x?x4xf32>
  return %o, %s1, %s2, %s3, %s4, %s5, %s6, %s7 : !q, !s, !s, !s, !s, !s, !s, tensor<1x2x?x4xf32>
}

// CHECK-LABEL: @attention_with_a_region
// CHECK-NOT: shared_sums
func.func @attention_with_a_region(%q: !q, %k: !kv, %kc: !kv, %vc: !kv) -> (!q, !s) {
  %o, %l = ssa.sparse_attend %q, %kc, %vc of %k {blocks = #blocks, mask = #causal} score (%x, %b, %h, %p, %n) {
    ssa.yield %x : f32
  } : !q, !kv, !kv, !kv -> !q, !l
  // expected-remark @below {{makes sums of its own: 'ssa.sparse_attend' to the same keys has scores that a region makes}}
  %s = ssa.route %q, %kc of %k {blocks = #blocks, mask = #causal, normalize = softmax, reduce = sum} : !q, !kv, !kv -> !s
  return %o, %s : !q, !s
}

// CHECK-LABEL: @query_blocks
// CHECK-NOT: shared_sums
func.func @query_blocks(%q: !q, %k: !kv, %kc: !kv, %vc: !kv, %all: tensor<1x8x?x64xbf16>) -> (!q, !s) {
  %o, %l = ssa.sparse_attend %q, %kc, %vc of %k {blocks = #blocks, mask = #causal} : !q, !kv, !kv, !kv -> !q, !l
  // expected-remark @below {{makes sums of its own: 'ssa.sparse_attend' to the same keys has a row for every query}}
  %s = ssa.route %q, %kc of %k for %all {blocks = #blocks, mask = #causal, query_block = 16, normalize = softmax, reduce = sum} : !q, !kv, !kv, !q -> !s
  return %o, %s : !q, !s
}

// What is attended to hangs on the scores.
// CHECK-LABEL: @values_of_the_list
// CHECK-NOT: shared_sums
func.func @values_of_the_list(%q: !q, %k: !kv, %kc: !kv, %r: tensor<1x2x?x4xbf16>) -> !q {
  // expected-remark @below {{makes sums of its own: those of 'ssa.sparse_attend' are made later, of what the scores lead to}}
  %s = ssa.route %q, %kc of %k {blocks = #blocks, mask = #causal, normalize = softmax, reduce = sum} : !q, !kv, !kv -> !s
  %i = ssa.topk %s of %k {mask = #causal} : !s, !kv -> !ssa.selection<1x2x?x1, key_block = 16, sorted>
  %g = ssa.gather %k at %i : !kv, !ssa.selection<1x2x?x1, key_block = 16, sorted> -> tensor<1x2x?x16x64xbf16>
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %n = tensor.dim %kc, %two : !kv
  %v = tensor.extract_slice %g[0, 0, 0, 0, 0] [1, 2, %n, 1, 64] [1, 1, 1, 1, 1] : tensor<1x2x?x16x64xbf16> to !kv
  %o, %l = ssa.sparse_attend %q, %kc, %v of %k {blocks = #blocks, mask = #causal} : !q, !kv, !kv, !kv -> !q, !l
  return %o : !q
}

// CHECK-LABEL: @joined_by_hand
// CHECK-NOT: shared_sums
func.func @joined_by_hand(%q: !q, %k: !kv, %kc: !kv, %vc: !kv, %g: !l) -> (!s, !q) {
  %o, %l = ssa.sparse_attend %q, %kc, %vc of %k {blocks = #blocks, mask = #causal} : !q, !kv, !kv, !kv -> !q, !l
  // expected-remark @below {{makes sums of its own: those of 'ssa.sparse_attend' are made later, for what it is part of}}
  %s = ssa.route %q, %kc of %k {blocks = #blocks, mask = #causal, normalize = softmax, reduce = sum} : !q, !kv, !kv -> !s
  %r = ssa.mix (%o, %g) {ssa.fused_attend = #ssa.fused_attend<part = 0>} : !q, !l -> !q
  return %s, %r : !s, !q
}
