// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --ssa-attach-target=chip=sm_90a --ssa-select-schedule | FileCheck %s
// RUN: ssa-opt %s --split-input-file --ssa-attach-target=chip=sm_100a --ssa-select-schedule | FileCheck %s --check-prefix=OTHER

// On no other chip.
// OTHER-NOT: forced_apart

!q = tensor<1x32x?x128xbf16>
!l = tensor<1x32x?xf32>
!s = tensor<1x32x?x?xf32>
!sel = !ssa.selection<1x32x?x3, key_block = 2048, sorted>

// One of three blocks is the query's own: that is worth a kernel.
// CHECK-LABEL: func.func @own_of_three
// CHECK: ssa.sparse_attend {{.*}}ssa.forced_apart, ssa.schedule = #ssa.schedule<order = key_outer
func.func @own_of_three(%q: !q, %k: !q, %v: !q, %s: !s) -> !q {
  %a = ssa.topk %s of %k {local_blocks = 1, mask = #ssa.mask<causal>} : !s, !q -> !sel
  %o, %l = ssa.sparse_attend %q, %k, %v at %a {mask = #ssa.mask<causal>, ssa.agreement = 0.0 : f64} : !q, !q, !q, !sel -> !q, !l
  return %o : !q
}

// Nothing is forced.
// CHECK-LABEL: func.func @chosen
// CHECK-NOT: forced_apart
func.func @chosen(%q: !q, %k: !q, %v: !q, %s: !s) -> !q {
  %a = ssa.topk %s of %k {mask = #ssa.mask<causal>} : !s, !q -> !sel
  %o, %l = ssa.sparse_attend %q, %k, %v at %a {mask = #ssa.mask<causal>, ssa.agreement = 0.0 : f64} : !q, !q, !q, !sel -> !q, !l
  return %o : !q
}

// -----

!q = tensor<1x64x?x128xbf16>
!kv = tensor<1x4x?x128xbf16>
!l = tensor<1x64x?xf32>
!s = tensor<1x4x?x?xf32>
!sel = !ssa.selection<1x4x?x16, key_block = 64, sorted>

// So are three of sixteen.
// CHECK-LABEL: func.func @three_of_sixteen
// CHECK: ssa.sparse_attend {{.*}}ssa.forced_apart, ssa.schedule = #ssa.schedule<order = key_outer
func.func @three_of_sixteen(%q: !q, %k: !kv, %v: !kv, %s: !s) -> !q {
  %a = ssa.topk %s of %k {init_blocks = 1, local_blocks = 2, mask = #ssa.mask<causal>} : !s, !kv -> !sel
  %o, %l = ssa.sparse_attend %q, %k, %v at %a {mask = #ssa.mask<causal>, ssa.agreement = 0.0 : f64} : !q, !kv, !kv, !sel -> !q, !l
  return %o : !q
}

// One of sixteen is not: what it saves is less than what the kernel takes longer than one that only joins.
// CHECK-LABEL: func.func @own_of_sixteen
// CHECK-NOT: forced_apart
func.func @own_of_sixteen(%q: !q, %k: !kv, %v: !kv, %s: !s) -> !q {
  %a = ssa.topk %s of %k {local_blocks = 1, mask = #ssa.mask<causal>} : !s, !kv -> !sel
  %o, %l = ssa.sparse_attend %q, %k, %v at %a {mask = #ssa.mask<causal>, ssa.agreement = 0.0 : f64} : !q, !kv, !kv, !sel -> !q, !l
  return %o : !q
}
