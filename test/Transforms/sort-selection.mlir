// RUN: ssa-opt %s --ssa-sort-selection | FileCheck %s

!q = tensor<1x8x?x64xbf16>
!kv = tensor<1x2x?x64xbf16>
!l = tensor<1x8x?xf32>
!raw = !ssa.selection<1x2x?x4, key_block = 64, query_block = 16>
!sorted = !ssa.selection<1x2x?x4, key_block = 64, query_block = 16, sorted>

// CHECK-LABEL: @raw
func.func @raw(%q: !q, %k: !kv, %v: !kv, %s: !raw) -> !q {
  // CHECK: %[[SORTED:.*]] = ssa.sort %{{.*}} : !ssa.selection<1x2x?x4, key_block = 64, query_block = 16> -> !ssa.selection<1x2x?x4, key_block = 64, query_block = 16, sorted>
  // CHECK: ssa.sparse_attend {{.*}} at %[[SORTED]]
  %o, %l = ssa.sparse_attend %q, %k, %v at %s : !q, !kv, !kv, !raw -> !q, !l
  return %o : !q
}

// A producer that sorts already costs nothing.
// CHECK-LABEL: @sorted
// CHECK-NOT: ssa.sort
func.func @sorted(%q: !q, %k: !kv, %v: !kv, %s: !sorted) -> !q {
  %o, %l = ssa.sparse_attend %q, %k, %v at %s : !q, !kv, !kv, !sorted -> !q, !l
  return %o : !q
}

// Gathered rows lie in the order of the list: of repeats the first stays, and nothing moves.
// CHECK-LABEL: @gathered
// CHECK-NOT: ssa.sort
// CHECK: %[[UNIQUE:.*]] = linalg.generic {{.*}} ins(%[[LIST:.*]] : tensor<1x2x?x4xi32>) outs(%[[LIST]] : tensor<1x2x?x4xi32>)
// CHECK: %[[SEL:.*]] = ssa.from_indices %[[UNIQUE]]
// CHECK: ssa.sparse_attend {{.*}} at %[[SEL]]
func.func @gathered(%q: !q, %k: !kv, %g: tensor<1x2x?x256x64xbf16>, %s: !raw) -> !q {
  %o, %l = ssa.sparse_attend %q, %g, %g of %k at %s
      : !q, tensor<1x2x?x256x64xbf16>, tensor<1x2x?x256x64xbf16>, !kv, !raw -> !q, !l
  return %o : !q
}

// CHECK-LABEL: @gathered_sorted
// CHECK-NOT: {{ssa.sort|linalg.generic}}
// CHECK: ssa.sparse_attend
func.func @gathered_sorted(%q: !q, %k: !kv, %g: tensor<1x2x?x256x64xbf16>, %s: !sorted) -> !q {
  %o, %l = ssa.sparse_attend %q, %g, %g of %k at %s
      : !q, tensor<1x2x?x256x64xbf16>, tensor<1x2x?x256x64xbf16>, !kv, !sorted -> !q, !l
  return %o : !q
}
