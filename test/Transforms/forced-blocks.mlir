// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --ssa-attach-target=chip=sm_90a --ssa-select-schedule=sizes=65536 | FileCheck %s
// RUN: ssa-opt %s --split-input-file --ssa-attach-target=chip=sm_100a --ssa-select-schedule=sizes=65536 | FileCheck %s --check-prefix=OTHER

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

!q = tensor<1x32x?x128xbf16>
!l = tensor<1x32x?xf32>
!s = tensor<1x32x?x?xf32>
!sel = !ssa.selection<1x32x?x8, key_block = 512, sorted>

// One of eight is not: reading the outputs over the others takes longer than in a kernel that does nothing else.
// CHECK-LABEL: func.func @own_of_eight
// CHECK-NOT: forced_apart
func.func @own_of_eight(%q: !q, %k: !q, %v: !q, %s: !s) -> !q {
  %a = ssa.topk %s of %k {local_blocks = 1, mask = #ssa.mask<causal>} : !s, !q -> !sel
  %o, %l = ssa.sparse_attend %q, %k, %v at %a {mask = #ssa.mask<causal>, ssa.agreement = 0.0 : f64} : !q, !q, !q, !sel -> !q, !l
  return %o : !q
}
