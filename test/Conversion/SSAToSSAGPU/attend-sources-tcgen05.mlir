// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --verify-diagnostics --ssa-attach-target=chip=sm_100a --convert-ssa-to-ssa-gpu | FileCheck %s

!q = tensor<1x8x?x64xbf16>
!kv = tensor<1x2x?x64xbf16>
!l = tensor<1x8x?xf32>
#s = #ssa.schedule<instruction = tcgen05, tile_rows = 128, tile_keys = 64, stages = 2>

// Steps of both are counted apart for the softmax, which goes on with the keys of the second; what begins products needs only their sum.
// CHECK-LABEL: gpu.func @ssa_sparse_attend
// CHECK: ssa_gpu.alloc : {{.*}}<2x2xi32>
// CHECK: ssa_gpu.roles
// CHECK-LABEL: func.func @merge
// CHECK-COUNT-1: gpu.launch_func @kernels::@ssa_sparse_attend
// CHECK-NOT: @ssa_sparse_attend
// CHECK: return
func.func @merge(%q: !q, %k: !kv, %v: !kv) -> !q {
  %o1, %l1 = ssa.sparse_attend %q, %k, %v {ssa.schedule = #s} : !q, !kv, !kv -> !q, !l
  %o2, %l2 = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal, window = 100>, ssa.schedule = #s} : !q, !kv, !kv -> !q, !l
  %o, %l = ssa.merge (%o1, %l1), (%o2, %l2) {ssa.fused_attend = #ssa.fused_attend<part = 1, with = [0]>} : !q, !l, !q, !l -> !q, !l
  return %o : !q
}

// -----

!q = tensor<1x8x?x64xbf16>
!kv = tensor<1x2x?x64xbf16>
!l = tensor<1x8x?xf32>
#s = #ssa.schedule<instruction = tcgen05, tile_rows = 128, tile_keys = 64, stages = 2>

func.func @mix(%q: !q, %k: !kv, %v: !kv, %g: !l) -> !q {
  %o1, %l1 = ssa.sparse_attend %q, %k, %v {ssa.schedule = #s} : !q, !kv, !kv -> !q, !l
  %o2, %l2 = ssa.sparse_attend %q, %k, %v {ssa.schedule = #s} : !q, !kv, !kv -> !q, !l
  // expected-error @below {{cannot have 'ssa.fused_attend': no kernel for several parts has 'instruction = tcgen05' with a softmax for each}}
  %o = ssa.mix (%o1, %g), (%o2, %g) {ssa.fused_attend = #ssa.fused_attend<part = 1, with = [0]>} : !q, !l, !q, !l -> !q
  return %o : !q
}
