// RUN: ssa-opt %s --emit=ptx --chip=sm_100a | FileCheck %s
// RUN: ssa-opt %s --emit=plan --chip=sm_100a | FileCheck %s --check-prefix=PLAN

// Rows of lists of tokens are gathered by the accelerator, keys and values each from a tensor of two dimensions with those of all sequences and heads. Where
// strides or sizes are such that there is none, a kernel whose threads copy runs in its place.
// PLAN: "tensormaps": [
// PLAN-NEXT: "box":[1,64],"swizzle":"128b"
// PLAN-NEXT: "box":[1,64],"swizzle":"128b"
// PLAN: "kernel":"ssa_sparse_attend"{{.*}}"if":
// PLAN: "kernel":"ssa_sparse_attend_1"{{.*}}"if":

// CHECK-LABEL: .visible .entry ssa_sparse_attend(
// CHECK: tile::gather4
// CHECK: tcgen05.mma.cta_group::1.kind::f16
// CHECK-LABEL: .visible .entry ssa_sparse_attend_1(
// CHECK-NOT: gather4
// CHECK: tcgen05.mma.cta_group::1.kind::f16
// CHECK-NOT: gather4
!q = tensor<?x64x?x128xbf16>
!kv = tensor<?x4x?x128xbf16>
!list = tensor<?x4x?x512xi32>
!sel = !ssa.selection<?x4x?x512, key_block = 1>
func.func @tokens(%q: !q, %k: !kv, %v: !kv, %list: !list) -> !q {
  %sel = ssa.from_indices %list : !list -> !sel
  %o, %lse = ssa.sparse_attend %q, %k, %v at %sel {mask = #ssa.mask<causal>} : !q, !kv, !kv, !sel -> !q, tensor<?x64x?xf32>
  return %o : !q
}
