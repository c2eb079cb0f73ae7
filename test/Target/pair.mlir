// RUN: ssa-opt %s --emit=ptx --chip=sm_100a | FileCheck %s
// RUN: ssa-opt %s --emit=plan --chip=sm_100a | FileCheck %s --check-prefix=PLAN
// RUN: ssa-opt %s --explain --chip=sm_100a --sizes=tokens=32768,queries=4096,list=4096 | FileCheck %s --check-prefix=EXPLAIN

// DeepSeek's latent attention at 2048 tokens: two blocks make the products of the 128 heads of a query together. Rows of keys are gathered by the accelerator,
// from a tensor of two dimensions that has those of all sequences.
// PLAN: "tensormaps": [
// PLAN-NEXT: "box":[1,64],"swizzle":"128b"
// PLAN: "kernel":"ssa_sparse_attend"{{.*}}"cluster":[2,1,1]

// CHECK-LABEL: .visible .entry ssa_sparse_attend(
// CHECK: tcgen05.alloc.cta_group::2
// CHECK: tile::gather4
// CHECK: tcgen05.mma.cta_group::2.kind::f16
// CHECK-NOT: cta_group::1

// At least 1450 TFLOP/s of useful work by the model, where one block at a time had 720; shared memory is the limit.
// EXPLAIN: * head_packed, pairs{{ +}}tcgen05{{ +}}128 x 128{{ +}}1{{ .*}}shared
// EXPLAIN: Useful work: 14{{[5-9].}} TFLOP/s, at most 162{{.}} by shared.
!q = tensor<?x128x?x576xbf16>
!kv = tensor<?x1x?x576xbf16>
!v = tensor<?x1x?x512xbf16>
!o = tensor<?x128x?x512xbf16>
!list = tensor<?x1x?x2048xi32>
!sel = !ssa.selection<?x1x?x2048, key_block = 1>
func.func @latent(%q: !q, %k: !kv, %list: !list) -> !o {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %k, %c0 : !kv
  %n = tensor.dim %k, %c2 : !kv
  %v = tensor.extract_slice %k[0, 0, 0, 0] [%b, 1, %n, 512] [1, 1, 1, 1] : !kv to !v
  %sel = ssa.from_indices %list : !list -> !sel
  %o, %lse = ssa.sparse_attend %q, %k, %v at %sel {mask = #ssa.mask<causal>} : !q, !kv, !v, !sel -> !o, tensor<?x128x?xf32>
  return %o : !o
}
