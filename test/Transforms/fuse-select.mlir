// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --verify-diagnostics --ssa-attach-target=chip=sm_90a --ssa-fuse | FileCheck %s
// RUN: ssa-opt %s --split-input-file --ssa-attach-target=chip=sm_90a --ssa-fuse=bytes=8192 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: ssa-opt %s --split-input-file --ssa-attach-target=chip=sm_100 --ssa-fuse 2>&1 | FileCheck %s --check-prefix=OTHER
// FEW: remark: is not scored and selected in one kernel: its scores need more than 8192 bytes
// OTHER: remark: is not scored and selected in one kernel: 'sm_100' has no 'wgmma'

!q = tensor<?x16x?x64xbf16>
!k = tensor<?x2x?x64xbf16>
!s = tensor<?x2x?x?xf32>
!sel = !ssa.selection<?x2x?x4, key_block = 64, sorted>

// Eight heads of 16 queries fill 128 rows of a warpgroup: 32 queries of two, in two sets, on 132 multiprocessors.
// CHECK-LABEL: @one_kernel
// CHECK: ssa.topk {{.*}}ssa.fused_select = #ssa.fused_select<min_columns = 1024, max_columns = 11904>
func.func @one_kernel(%q: !q, %kc: !k, %k: !k) -> !sel {
  %s = ssa.route %q, %kc of %k {blocks = #ssa.blocks<64>, normalize = softmax, reduce = sum} : !q, !k, !k -> !s
  %a = ssa.topk %s of %k : !s, !k -> !sel
  return %a : !sel
}

// What is written stays.
// CHECK-LABEL: @by_hand
// CHECK: ssa.fused_select = #ssa.fused_select<min_columns = 1, max_columns = 7>
func.func @by_hand(%q: !q, %kc: !k, %k: !k) -> !sel {
  %s = ssa.route %q, %kc of %k {blocks = #ssa.blocks<64>, reduce = sum} : !q, !k, !k -> !s
  %a = ssa.topk %s of %k {ssa.fused_select = #ssa.fused_select<min_columns = 1, max_columns = 7>} : !s, !k -> !sel
  return %a : !sel
}

// Scores that are regrouped on the way, and wide lists, are selected from as they come: memory does not depend on how long rows are.
// CHECK-LABEL: @regrouped
// CHECK: ssa.topk {{.*}}ssa.fused_select = #ssa.fused_select<min_columns = 0, max_columns = 2147483647, stretch = 2048>
func.func @regrouped(%q: !q, %kc: !k, %k: !k) -> !sel {
  %s = ssa.route %q, %kc of %k {blocks = #ssa.blocks<32, stride = 16>, reduce = sum} : !q, !k, !k -> !s
  %i = ssa.rebin sum %s of %k {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>} : !s, !k -> !s
  %a = ssa.topk %i of %k : !s, !k -> !sel
  return %a : !sel
}

// Stretches are as long as their memory allows, of which there are four.
// CHECK-LABEL: @wide
// CHECK: ssa.topk {{.*}}ssa.fused_select = #ssa.fused_select<min_columns = 0, max_columns = 2147483647, stretch = 2048>
func.func @wide(%q: !q, %kc: !k, %k: !k) -> !ssa.selection<?x2x?x65, key_block = 64, sorted> {
  %s = ssa.route %q, %kc of %k {blocks = #ssa.blocks<64>, reduce = sum} : !q, !k, !k -> !s
  %a = ssa.topk %s of %k : !s, !k -> !ssa.selection<?x2x?x65, key_block = 64, sorted>
  return %a : !ssa.selection<?x2x?x65, key_block = 64, sorted>
}

// A formula of one's own.
// CHECK-LABEL: @region
// CHECK: ssa.topk {{.*}}ssa.fused_select = #ssa.fused_select<min_columns = 1024, max_columns = 11904>
func.func @region(%q: !q, %kc: !k, %k: !k) -> !sel {
  %s = ssa.route %q, %kc of %k {blocks = #ssa.blocks<64>, reduce = sum} score (%x, %w, %b, %h, %p, %j) {
    %y = math.absf %x : f32
    ssa.yield %y : f32
  } : !q, !k, !k -> !s
  %a = ssa.topk %s of %k : !s, !k -> !sel
  return %a : !sel
}

// CHECK-LABEL: @query_blocks
// CHECK-NOT: ssa.fused_select
func.func @query_blocks(%q: !q, %kc: !k, %k: !k) -> !ssa.selection<?x2x?x4, key_block = 64, query_block = 8, sorted> {
  %s = ssa.route %q, %kc of %k {blocks = #ssa.blocks<32>, reduce = sum} : !q, !k, !k -> !s
  %i = ssa.rebin sum %s of %k {from = #ssa.blocks<32>, query_block = 8, to = #ssa.blocks<64>} : !s, !k -> !s
  // expected-remark @below {{is not scored and selected in one kernel: 'ssa.rebin' joins the scores of 8 queries}}
  %a = ssa.topk %i of %k for %q : !s, !k, !q -> !ssa.selection<?x2x?x4, key_block = 64, query_block = 8, sorted>
  return %a : !ssa.selection<?x2x?x4, key_block = 64, query_block = 8, sorted>
}

// CHECK-LABEL: @thirds
func.func @thirds(%q: !q, %kc: !k, %k: !k) -> !ssa.selection<?x2x?x4, key_block = 48, sorted> {
  %s = ssa.route %q, %kc of %k {blocks = #ssa.blocks<16>, reduce = sum} : !q, !k, !k -> !s
  %i = ssa.rebin max %s of %k {from = #ssa.blocks<16>, to = #ssa.blocks<48>} : !s, !k -> !s
  // expected-remark @below {{is not scored and selected in one kernel: 'ssa.rebin' makes windows of 3 scores that begin every 3, of which steps of 64 are no multiple}}
  %a = ssa.topk %i of %k : !s, !k -> !ssa.selection<?x2x?x4, key_block = 48, sorted>
  return %a : !ssa.selection<?x2x?x4, key_block = 48, sorted>
}

// CHECK-LABEL: @twice
func.func @twice(%q: !q, %kc: !k, %k: !k) -> !sel {
  %s = ssa.route %q, %kc of %k {blocks = #ssa.blocks<16>, reduce = sum} : !q, !k, !k -> !s
  %i = ssa.rebin max %s of %k {from = #ssa.blocks<16>, to = #ssa.blocks<32>} : !s, !k -> !s
  %j = ssa.rebin sum %i of %k {from = #ssa.blocks<32>, to = #ssa.blocks<64>} : !s, !k -> !s
  // expected-remark @below {{is not scored and selected in one kernel: 'ssa.rebin' changes the scores}}
  %a = ssa.topk %j of %k : !s, !k -> !sel
  return %a : !sel
}

// CHECK-LABEL: @share
func.func @share(%q: !q, %kc: !k, %k: !k) -> !sel {
  %s = ssa.route %q, %kc of %k {blocks = #ssa.blocks<64>, reduce = sum} : !q, !k, !k -> !s
  // expected-remark @below {{is not scored and selected in one kernel: 'top_p' needs a whole row before it takes anything}}
  %a = ssa.topk %s of %k {top_p = 0.5} : !s, !k -> !sel
  return %a : !sel
}

// CHECK-LABEL: @candidates
func.func @candidates(%q: !q, %kc: !k, %k: !k, %c: !sel) -> !sel {
  %s = ssa.route %q, %kc of %k within %c {blocks = #ssa.blocks<64>, reduce = sum} : !q, !k, !k, !sel -> tensor<?x2x?x4xf32>
  // expected-remark @below {{is not scored and selected in one kernel: keys under 'within' are not neighbours}}
  %a = ssa.topk %s of %k within %c : tensor<?x2x?x4xf32>, !k, !sel -> !sel
  return %a : !sel
}

// CHECK-LABEL: @bound
func.func @bound(%q: !q, %lo: !k, %hi: !k, %k: !k) -> !sel {
  %s = ssa.route bound %q, %lo, %hi of %k {blocks = #ssa.blocks<64>, reduce = sum} : !q, !k, !k, !k -> !s
  // expected-remark @below {{is not scored and selected in one kernel: a bound is made of two products}}
  %a = ssa.topk %s of %k : !s, !k -> !sel
  return %a : !sel
}

// CHECK-LABEL: @mixed
func.func @mixed(%q: !q, %kc: tensor<?x2x?x64xf32>, %k: !k) -> !sel {
  %s = ssa.route %q, %kc of %k {blocks = #ssa.blocks<64>, reduce = sum} : !q, tensor<?x2x?x64xf32>, !k -> !s
  // expected-remark @below {{is not scored and selected in one kernel: tensor cores do not take queries and keys of these types as they are}}
  %a = ssa.topk %s of %k : !s, !k -> !sel
  return %a : !sel
}

// CHECK-LABEL: @odd
func.func @odd(%q: tensor<?x16x?x36xbf16>, %kc: tensor<?x2x?x36xbf16>, %k: !k) -> !sel {
  %s = ssa.route %q, %kc of %k {blocks = #ssa.blocks<64>, reduce = sum} : tensor<?x16x?x36xbf16>, tensor<?x2x?x36xbf16>, !k -> !s
  // expected-remark @below {{is not scored and selected in one kernel: rows of keys have 72 bytes, which is no multiple of 16}}
  %a = ssa.topk %s of %k : !s, !k -> !sel
  return %a : !sel
}

// CHECK-LABEL: @key_heads
func.func @key_heads(%q: !q, %kc: !k, %k: !k) -> !ssa.selection<?x1x?x4, key_block = 64, sorted> {
  %s = ssa.route %q, %kc of %k {blocks = #ssa.blocks<64>, reduce = sum} : !q, !k, !k -> tensor<?x1x?x?xf32>
  // expected-remark @below {{is not scored and selected in one kernel: a selection head has several key heads}}
  %a = ssa.topk %s of %k : tensor<?x1x?x?xf32>, !k -> !ssa.selection<?x1x?x4, key_block = 64, sorted>
  return %a : !ssa.selection<?x1x?x4, key_block = 64, sorted>
}

// Scores that are an argument are no chain.
// CHECK-LABEL: @given
func.func @given(%s: !s, %k: !k) -> !sel {
  %a = ssa.topk %s of %k : !s, !k -> !sel
  return %a : !sel
}
