// RUN: ssa-opt %s --emit=ptx --chip=sm_100a | FileCheck %s

// Rows of a step that a thread finds the place of one of: through the loop over steps it is a number, not a vector.

!q = tensor<?x128x?x576xbf16>
!k = tensor<?x1x?x576xbf16>
!v = tensor<?x1x?x512xbf16>
!o = tensor<?x128x?x512xbf16>
!l = tensor<?x128x?xf32>
!sel = !ssa.selection<?x1x?x70, key_block = 1>

// CHECK: .visible .entry ssa_sparse_attend
// CHECK: cp.async.cg.shared.global
func.func @attend(%q: !q, %k: !k, %v: !v, %t: tensor<?x1x?x70xi32>) -> (!o, !l) {
  %s = ssa.from_indices %t : tensor<?x1x?x70xi32> -> !sel
  %o, %l = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>} : !q, !k, !v, !sel -> !o, !l
  return %o, %l : !o, !l
}
