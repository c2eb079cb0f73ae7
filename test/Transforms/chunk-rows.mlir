// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --verify-diagnostics --ssa-chunk-rows | FileCheck %s
// RUN: ssa-opt %s --split-input-file --verify-diagnostics --ssa-chunk-rows="bytes=4096 rows=8" | FileCheck %s --check-prefix=SMALL
// RUN: not ssa-opt %s --split-input-file --ssa-chunk-rows=bytes=0 2>&1 | FileCheck %s --check-prefix=OPTION
// OPTION: error: expected 'bytes' and 'rows' of 'ssa-chunk-rows' to be at least 1, but got 0 and 128

!q = tensor<?x16x?x128xbf16>
!kv = tensor<?x4x?x128xbf16>
!s = tensor<?x4x?x?xf32>
!sel = !ssa.selection<?x4x?x16, key_block = 64, sorted>

// CHECK-LABEL: @regrouped
// CHECK: ssa.topk {{.*}}ssa.chunk = #ssa.chunk<bytes = 134217728, rows = 128>
// SMALL-LABEL: @regrouped
// SMALL: ssa.topk {{.*}}ssa.chunk = #ssa.chunk<bytes = 4096, rows = 8>
func.func @regrouped(%q: !q, %k: !kv, %kc: !kv) -> !sel {
  %s = ssa.route %q, %kc of %k {blocks = #ssa.blocks<32, stride = 16>, mask = #ssa.mask<causal>, normalize = softmax, reduce = sum} : !q, !kv, !kv -> !s
  %i = ssa.rebin sum %s of %k {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>} : !s, !kv -> !s
  %a = ssa.topk %i of %k {mask = #ssa.mask<causal>} : !s, !kv -> !sel
  return %a : !sel
}

// What is written stays.
// CHECK-LABEL: @written
// CHECK: ssa.chunk = #ssa.chunk<bytes = 1, rows = 7>
func.func @written(%q: !q, %kc: !kv, %k: !kv) -> !sel {
  %s = ssa.route %q, %kc of %k {blocks = #ssa.blocks<64>, reduce = sum} : !q, !kv, !kv -> !s
  %a = ssa.topk %s of %k {ssa.chunk = #ssa.chunk<bytes = 1, rows = 7>} : !s, !kv -> !sel
  return %a : !sel
}

// -----

!q = tensor<1x4x64x128xbf16>
!kv = tensor<1x4x4096x128xbf16>
!kc = tensor<1x4x64x128xbf16>
!s = tensor<1x4x64x64xf32>
!sel = !ssa.selection<1x4x64x16, key_block = 64, sorted>

// All scores take 64 KiB.
// CHECK-LABEL: @fits
// CHECK-NOT: ssa.chunk
// CHECK: return
// SMALL-LABEL: @fits
// SMALL: ssa.chunk = #ssa.chunk<bytes = 4096, rows = 8>
func.func @fits(%q: !q, %kc: !kc, %k: !kv) -> !sel {
  %s = ssa.route %q, %kc of %k {blocks = #ssa.blocks<64>} : !q, !kc, !kv -> !s
  %a = ssa.topk %s of %k : !s, !kv -> !sel
  return %a : !sel
}

// -----

!q = tensor<?x4x?x128xbf16>
!s = tensor<?x4x?x?xf32>
!blocks = !ssa.selection<?x4x?x16, key_block = 64, query_block = 48, sorted>
!sel = !ssa.selection<?x4x?x16, key_block = 1, sorted>

// 48 rows share a list: a chunk has all of them.
// CHECK-LABEL: @lists
// CHECK: ssa.chunk = #ssa.chunk<bytes = 134217728, rows = 144>
func.func @lists(%q: !q, %k: !q, %c: !blocks) -> !sel {
  %s = ssa.route %q, %k within %c : !q, !q, !blocks -> !s
  %a = ssa.topk %s of %k within %c : !s, !q, !blocks -> !sel
  return %a : !sel
}

// -----

!q = tensor<?x4x?x128xbf16>
!s = tensor<?x4x?x?xf32>
!sel = !ssa.selection<?x4x?x16, key_block = 1, sorted>

// CHECK-LABEL: @two
// CHECK-NOT: ssa.chunk
// CHECK: return
func.func @two(%q: !q, %k: !q) -> (!sel, !s) {
  %s = ssa.route %q, %k : !q, !q -> !s
  // expected-remark@+1 {{selects from scores that are in memory as a whole: the scores of 'ssa.route' are used by more than one op}}
  %a = ssa.topk %s of %k : !s, !q -> !sel
  return %a, %s : !sel, !s
}

// An argument is in memory anyway.
func.func @given(%s: !s, %k: !q) -> !sel {
  %a = ssa.topk %s of %k : !s, !q -> !sel
  return %a : !sel
}

// -----

!s = tensor<?x4x?x?xf32>
!k = tensor<?x4x?x128xbf16>
!sel = !ssa.selection<?x4x?x16, key_block = 1, sorted>

func.func @number(%s: !s, %k: !k) -> !sel {
  // expected-error@+1 {{expected 'ssa.chunk' to be a '#ssa.chunk', but got 4096}}
  %a = ssa.topk %s of %k {ssa.chunk = 4096 : i64} : !s, !k -> !sel
  return %a : !sel
}

// -----

!k = tensor<?x4x?x128xbf16>

func.func @elsewhere(%k: !k) -> !k {
  // expected-error@+1 {{cannot have 'ssa.chunk': it belongs to 'ssa.topk'}}
  %y = ssa.pool mean %k {blocks = #ssa.blocks<64>, ssa.chunk = #ssa.chunk<bytes = 4096, rows = 1>} : !k -> !k
  return %y : !k
}

// -----

// expected-error@+1 {{expected 'bytes' to be at least 1, but got 0}}
func.func private @bytes() attributes {test = #ssa.chunk<bytes = 0, rows = 1>}

// -----

// expected-error@+1 {{expected 'rows' to be in 1 .. 2147483647, but got 0}}
func.func private @rows() attributes {test = #ssa.chunk<bytes = 1, rows = 0>}

// -----

!s = tensor<?x4x?x?xf32>
!k = tensor<?x4x?x128xbf16>
!sel = !ssa.selection<?x4x?x16, key_block = 1, sorted>

func.func @fused_number(%s: !s, %k: !k) -> !sel {
  // expected-error@+1 {{expected 'ssa.fused_select' to be a '#ssa.fused_select', but got 4096}}
  %a = ssa.topk %s of %k {ssa.fused_select = 4096 : i64} : !s, !k -> !sel
  return %a : !sel
}

// -----

!k = tensor<?x4x?x128xbf16>

func.func @fused_elsewhere(%k: !k) -> !k {
  // expected-error@+1 {{cannot have 'ssa.fused_select': it belongs to 'ssa.topk'}}
  %y = ssa.pool mean %k {blocks = #ssa.blocks<64>, ssa.fused_select = #ssa.fused_select<min_columns = 1, max_columns = 4096>} : !k -> !k
  return %y : !k
}

// -----

// expected-error@+1 {{expected 'min_columns' and 'max_columns' to be in 0 .. 2147483647 and not to fall, but got 2 and 1}}
func.func private @columns() attributes {test = #ssa.fused_select<min_columns = 2, max_columns = 1>}

// -----

// expected-error@+1 {{expected 'stretch' to be a multiple of 64 in 0 .. 1048576, but got 100}}
func.func private @stretch() attributes {test = #ssa.fused_select<min_columns = 1, max_columns = 2, stretch = 100>}

// -----

!q = tensor<1x4x64x64xbf16>
!s = tensor<1x4x64x64xf32>
!sel = !ssa.selection<1x4x64x8, key_block = 1, sorted>

// All scores fit, but a kernel that scores and selects needs chunks beside it.
// CHECK-LABEL: @fused
// CHECK: ssa.chunk = #ssa.chunk<bytes = 134217728, rows = 128>, ssa.fused_select = #ssa.fused_select<min_columns = 1, max_columns = 64>
func.func @fused(%q: !q, %k: !q) -> !sel {
  %s = ssa.route %q, %k : !q, !q -> !s
  %a = ssa.topk %s of %k {ssa.fused_select = #ssa.fused_select<min_columns = 1, max_columns = 64>} : !s, !q -> !sel
  return %a : !sel
}
