// RUN: ssa-opt %s --ssa-fuse --verify-diagnostics | FileCheck %s

!q = tensor<1x8x?x64xbf16>
!kv = tensor<1x2x?x64xbf16>
!l = tensor<1x8x?xf32>
!g = tensor<1x2x?x256x64xbf16>
!sel = !ssa.selection<1x2x?x4, key_block = 64, sorted>

// CHECK-LABEL: @gather
// CHECK-SAME: (%[[Q:.*]]: tensor<1x8x?x64xbf16>, %[[K:.*]]: tensor<1x2x?x64xbf16>, %[[V:.*]]: tensor<1x2x?x64xbf16>, %[[SEL:.*]]: !ssa
func.func @gather(%q: !q, %k: !kv, %v: !kv, %s: !sel) -> !q {
  // CHECK-NOT: ssa.gather
  // CHECK: ssa.sparse_attend %[[Q]], %[[K]], %[[V]] at %[[SEL]] {mask = #ssa.mask<causal>}
  %kg = ssa.gather %k at %s : !kv, !sel -> !g
  %vg = ssa.gather %v at %s : !kv, !sel -> !g
  %o, %l = ssa.sparse_attend %q, %kg, %vg of %k at %s {mask = #ssa.mask<causal>} : !q, !g, !g, !kv, !sel -> !q, !l
  return %o : !q
}

// The rows are those of another list.
// CHECK-LABEL: @other_list
func.func @other_list(%q: !q, %k: !kv, %v: !kv, %s: !sel, %t: !sel) -> !q {
  // CHECK-COUNT-2: ssa.gather
  // CHECK: ssa.sparse_attend {{.*}} of
  %kg = ssa.gather %k at %t : !kv, !sel -> !g
  %vg = ssa.gather %v at %t : !kv, !sel -> !g
  // expected-remark @below {{keys are gathered before they are attended to}}
  %o, %l = ssa.sparse_attend %q, %kg, %vg of %k at %s {mask = #ssa.mask<causal>} : !q, !g, !g, !kv, !sel -> !q, !l
  return %o : !q
}

// Rows from outside: nothing is known of them.
// CHECK-LABEL: @from_outside
func.func @from_outside(%q: !q, %k: !kv, %kg: !g, %s: !sel) -> !q {
  // CHECK: ssa.sparse_attend {{.*}} of
  // expected-remark @below {{keys are gathered before they are attended to}}
  %o, %l = ssa.sparse_attend %q, %kg, %kg of %k at %s {mask = #ssa.mask<causal>} : !q, !g, !g, !kv, !sel -> !q, !l
  return %o : !q
}
