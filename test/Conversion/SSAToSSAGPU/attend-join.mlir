// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --verify-diagnostics --ssa-attach-target=chip=sm_90a --ssa-select-schedule --convert-ssa-to-ssa-gpu | FileCheck %s

!q = tensor<1x8x?x64xbf16>
!kv = tensor<1x2x?x64xbf16>
!f = tensor<1x8x?x64xf32>
!l = tensor<1x8x?xf32>

// Attention to the keys of %k makes the whole, once the part that stands behind it is there: that is the first kernel.
// CHECK-LABEL: gpu.func @ssa_sparse_attend
// CHECK-NOT: plus
// CHECK: gpu.return
// CHECK-LABEL: gpu.func @ssa_sparse_attend
// CHECK: math.exp
// CHECK: ssa_gpu.store_rows {{.*}} plus(%{{.*}}, %{{.*}} : {{.*}}) times
// CHECK: source_width = 4
// CHECK-NOT: skip_zeros
// CHECK: gpu.return
// CHECK-LABEL: func.func @mix
// CHECK-COUNT-2: gpu.launch_func @kernels::@ssa_sparse_attend
// CHECK-NOT: gpu.launch_func
// CHECK: return
func.func @mix(%q: !q, %r: !q, %k: !kv, %n: !kv, %g: !l, %p: !f) -> !q {
  %o1, %l1 = ssa.sparse_attend %q, %k, %k {mask = #ssa.mask<causal>} : !q, !kv, !kv -> !q, !l
  %o2, %l2 = ssa.sparse_attend %r, %n, %n : !q, !kv, !kv -> !q, !l
  // expected-remark @below {{leaves a part to another kernel: part 2 has other queries}}
  %o = ssa.mix (%o1, %g), (%p, %g), (%o2, %g) {ssa.fused_attend = #ssa.fused_attend<part = 0>} : !q, !l, !f, !l, !q, !l -> !q
  return %o : !q
}

// -----

!q = tensor<1x8x?x64xbf16>
!kv = tensor<1x2x?x64xbf16>
!l = tensor<1x8x?xf32>

// Rows whose factor is 0 are not read. The lse that is stored is that of all.
// CHECK: ssa_gpu.store_rows {{.*}} plus
// CHECK: skip_zeros
// CHECK-LABEL: func.func @merge
// CHECK: gpu.launch_func @kernels::@ssa_sparse_attend
// CHECK-NOT: gpu.launch_func
// CHECK: return
func.func @merge(%q: !q, %k: !kv, %p: !q, %l: !l, %s: tensor<8xf32>) -> (!q, !l) {
  %o1, %l1 = ssa.sparse_attend %q, %k, %k : !q, !kv, !kv -> !q, !l
  %o, %z = ssa.merge (%p, %l), (%o1, %l1) sink_logits %s {ssa.fused_attend = #ssa.fused_attend<part = 1>} : !q, !l, !q, !l, tensor<8xf32> -> !q, !l
  return %o, %z : !q, !l
}

// -----

!q = tensor<1x8x?x64xbf16>
!kv = tensor<1x2x?x64xbf16>
!l = tensor<1x8x?xf32>

// Where parts of the steps have partial outputs, the kernel that joins these joins all.
// CHECK-NOT: plus
// CHECK-LABEL: func.func @split
// CHECK: gpu.launch_func @kernels::@ssa_sparse_attend
// CHECK: gpu.launch_func @kernels::@ssa_join_partials
// CHECK-NOT: gpu.launch_func
// CHECK: return
func.func @split(%q: !q, %k: !kv, %p: !q, %l: !l) -> !q {
  %o1, %l1 = ssa.sparse_attend %q, %k, %k {ssa.schedule = #ssa.schedule<instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2, split = 4>} : !q, !kv, !kv -> !q, !l
  %o, %z = ssa.merge (%p, %l), (%o1, %l1) {ssa.fused_attend = #ssa.fused_attend<part = 1>} : !q, !l, !q, !l -> !q, !l
  return %o : !q
}

// -----

!q = tensor<1x8x?x64xbf16>
!l = tensor<1x8x?xf32>

func.func @no_such_part(%p: !q, %g: !l) -> !q {
  // expected-error @below {{cannot have 'ssa.fused_attend': part 1 is none of 1}}
  %o = ssa.mix (%p, %g) {ssa.fused_attend = #ssa.fused_attend<part = 1>} : !q, !l -> !q
  return %o : !q
}

// -----

!q = tensor<1x8x?x64xf32>
!kv = tensor<1x2x?x64xf32>
!l = tensor<1x8x?xf32>

func.func @cuda_cores(%q: !q, %k: !kv, %g: !l) -> !q {
  %o1, %l1 = ssa.sparse_attend %q, %k, %k : !q, !kv, !kv -> !q, !l
  // expected-error @below {{cannot have 'ssa.fused_attend': part 0 is made on CUDA cores}}
  %o = ssa.mix (%o1, %g) {ssa.fused_attend = #ssa.fused_attend<part = 0>} : !q, !l -> !q
  return %o : !q
}
