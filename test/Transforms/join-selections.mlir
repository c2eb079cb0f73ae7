// RUN: ssa-opt %s -split-input-file --ssa-join-selections --verify-diagnostics | FileCheck %s

!q = tensor<1x8x37x64xbf16>
!kv = tensor<1x2x?x64xbf16>
!l = tensor<1x8x37xf32>
!a = !ssa.selection<1x2x37x4, key_block = 64>
!b = !ssa.selection<1x2x37x3, key_block = 64>

// CHECK-LABEL: @united
// CHECK-SAME: %[[A:[^:]*]]: !ssa.selection<1x2x37x4, key_block = 64>, %[[B:[^:]*]]: !ssa.selection<1x2x37x3
// CHECK: %[[C:.*]] = ssa.union %[[A]], %[[B]] : {{.*}} -> !ssa.selection<1x2x37x7, key_block = 64, sorted>
// CHECK: ssa.sparse_attend {{.*}} at %[[C]] {mask = #ssa.mask<causal>}
// CHECK-NOT: ssa.merge
func.func @united(%q: !q, %k: !kv, %v: !kv, %a: !a, %b: !b) -> !q {
  %o, %l = ssa.sparse_attend %q, %k, %v at %a, %b {mask = #ssa.mask<causal>} : !q, !kv, !kv, !a, !b -> !q, !l
  return %o : !q
}

// One selection is left as it is.
// CHECK-LABEL: @alone
// CHECK-NOT: ssa.{{from_indices|union|merge}}
// CHECK: ssa.sparse_attend
func.func @alone(%q: !q, %k: !kv, %v: !kv, %a: !a) -> !q {
  %o, %l = ssa.sparse_attend %q, %k, %v at %a : !q, !kv, !kv, !a -> !q, !l
  return %o : !q
}

// -----

!q = tensor<1x8x?x64xbf16>
!kv = tensor<1x2x?x64xbf16>
!l = tensor<1x8x?xf32>
!blocks = !ssa.selection<1x2x?x4, key_block = 64, query_block = 16, sorted>
!tokens = !ssa.selection<1x2x1x20, key_block = 1>

// Large blocks come first; a token in one of them is left out of the other list, which gets one row for each query block. Outputs
// are rounded once.
// CHECK-DAG: #[[LISTS:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>
// CHECK-LABEL: @disjoint
// CHECK-SAME: %[[BLOCKS:[^:]*]]: !ssa.selection<1x2x?x4, {{.*}}>, %[[TOKENS:[^:]*]]: tensor<1x2x1x20xi32>
// CHECK: cf.assert %{{.*}}, "'ssa.sparse_attend' expected dimension 2 of 'selections' to be 1 or the number of query blocks of 'query'"
// CHECK: %[[FINE:.*]] = tensor.generate
// CHECK:   tensor.extract %[[TOKENS]]
// CHECK: %[[COARSE:.*]] = tensor.generate
// CHECK: %[[REST:.*]] = linalg.generic {indexing_maps = [#[[LISTS]], #{{.*}}], {{.*}}"reduction"]} ins(%[[COARSE]] : tensor<1x2x?x4xi32>) outs(%[[FINE]] : tensor<1x2x?x20xi32>)
// CHECK: %[[LEFT:.*]] = ssa.from_indices %[[REST]] : tensor<1x2x?x20xi32> -> !ssa.selection<1x2x?x20, key_block = 1, query_block = 16>
// CHECK: %[[O1:.*]], %[[L1:.*]] = ssa.sparse_attend {{.*}} at %[[BLOCKS]] {{.*}} -> tensor<1x8x?x64xf32>, tensor<1x8x?xf32>
// CHECK: %[[O2:.*]], %[[L2:.*]] = ssa.sparse_attend {{.*}} at %[[LEFT]] {{.*}} -> tensor<1x8x?x64xf32>, tensor<1x8x?xf32>
// CHECK: ssa.merge (%[[O1]], %[[L1]]), (%[[O2]], %[[L2]]) : {{.*}} -> tensor<1x8x?x64xbf16>, tensor<1x8x?xf32>
func.func @disjoint(%q: !q, %k: !kv, %v: !kv, %s: !blocks, %t: tensor<1x2x1x20xi32>) -> (!q, !l) {
  %a = ssa.from_indices %t : tensor<1x2x1x20xi32> -> !tokens
  %o, %l = ssa.sparse_attend %q, %k, %v at %a, %s {mask = #ssa.mask<causal>} : !q, !kv, !kv, !tokens, !blocks -> !q, !l
  return %o, %l : !q, !l
}

// -----

!q = tensor<1x8x37x64xbf16>
!kv = tensor<1x2x?x64xbf16>
!l = tensor<1x8x37xf32>
!a = !ssa.selection<1x2x37x100, key_block = 1024>
!b = !ssa.selection<1x2x37x100, key_block = 1000>

func.func @too_long(%q: !q, %k: !kv, %v: !kv, %a: !a, %b: !b) -> !q {
  // expected-error @below {{has no kernel for selections whose blocks have 8 keys in common: a list of 100 blocks of 1000 would have more than 8192 of them}}
  %o, %l = ssa.sparse_attend %q, %k, %v at %a, %b : !q, !kv, !kv, !a, !b -> !q, !l
  return %o : !q
}
