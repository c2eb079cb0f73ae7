// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --verify-diagnostics --ssa-attach-target=chip=sm_90a --ssa-fuse | FileCheck %s
// RUN: ssa-opt %s --split-input-file --verify-diagnostics --ssa-attach-target=chip=sm_100a --ssa-fuse | FileCheck %s

!q = tensor<1x8x?x64xbf16>
!kv = tensor<1x2x?x64xbf16>
!l = tensor<1x8x?xf32>

// The last attention that there is, not the last part.
// CHECK-LABEL: @mix
// CHECK: ssa.mix {{.*}} {ssa.fused_attend = #ssa.fused_attend<part = 1>}
func.func @mix(%q: !q, %k: !kv, %v: !kv, %g: !l, %p: !q) -> !q {
  %o2, %l2 = ssa.sparse_attend %q, %k, %v : !q, !kv, !kv -> !q, !l
  %o1, %l1 = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal>} : !q, !kv, !kv -> !q, !l
  %o = ssa.mix (%p, %g), (%o1, %g), (%o2, %g) : !q, !l, !q, !l, !q, !l -> !q
  return %o : !q
}

// CHECK-LABEL: @merge_with_sinks
// CHECK: ssa.merge {{.*}} {ssa.fused_attend = #ssa.fused_attend<part = 0>}
func.func @merge_with_sinks(%q: !q, %k: !kv, %v: !kv, %s: tensor<8xf32>) -> !q {
  %p, %l = ssa.sparse_attend %q, %k, %v : !q, !kv, !kv -> tensor<1x8x?x64xf32>, !l
  %o, %z = ssa.merge (%p, %l) sink_logits %s : tensor<1x8x?x64xf32>, !l, tensor<8xf32> -> !q, !l
  return %o : !q
}

// What is written stays.
// CHECK-LABEL: @by_hand
// CHECK: #ssa.fused_attend<part = 0>
func.func @by_hand(%q: !q, %k: !kv, %v: !kv, %g: !l) -> !q {
  %o1, %l1 = ssa.sparse_attend %q, %k, %v : !q, !kv, !kv -> !q, !l
  %o2, %l2 = ssa.sparse_attend %q, %k, %v : !q, !kv, !kv -> !q, !l
  %o = ssa.mix (%o1, %g), (%o2, %g) {ssa.fused_attend = #ssa.fused_attend<part = 0>} : !q, !l, !q, !l -> !q
  return %o : !q
}

// Many parts are read faster by a kernel that does nothing else.
// CHECK-LABEL: @many_parts
// CHECK-NOT: fused_attend
func.func @many_parts(%q: !q, %k: !kv, %v: !kv, %g: !l, %p: tensor<1x8x?x64xf32>, %r: tensor<1x8x?x64xf32>, %s: tensor<1x8x?x64xf32>) -> !q {
  %o1, %l1 = ssa.sparse_attend %q, %k, %v : !q, !kv, !kv -> !q, !l
  // expected-remark @below {{is a kernel of its own: that reads so many parts faster than the kernel of one of them}}
  %o = ssa.mix (%o1, %g), (%p, %g), (%r, %g), (%s, %g)
      : !q, !l, tensor<1x8x?x64xf32>, !l, tensor<1x8x?x64xf32>, !l, tensor<1x8x?x64xf32>, !l -> !q
  return %o : !q
}

// CHECK-LABEL: @used_twice
// CHECK-NOT: fused_attend
func.func @used_twice(%q: !q, %k: !kv, %v: !kv, %g: !l, %p: !q) -> (!q, !q) {
  %o1, %l1 = ssa.sparse_attend %q, %k, %v : !q, !kv, !kv -> !q, !l
  // expected-remark @below {{is a kernel of its own: part 0 has an output that is used by others, too; part 1 is not the output of an 'ssa.sparse_attend'}}
  %o = ssa.mix (%o1, %g), (%p, %g) : !q, !l, !q, !l -> !q
  return %o, %o1 : !q, !q
}

// CHECK-LABEL: @lse_used
// CHECK-NOT: fused_attend
func.func @lse_used(%q: !q, %k: !kv, %v: !kv) -> !q {
  %o1, %l1 = ssa.sparse_attend %q, %k, %v : !q, !kv, !kv -> !q, !l
  // expected-remark @below {{is a kernel of its own: part 0 has an lse that is used, too}}
  %o = ssa.mix (%o1, %l1) : !q, !l -> !q
  return %o : !q
}

// CHECK-LABEL: @merged_lse_used
// CHECK-NOT: fused_attend
func.func @merged_lse_used(%q: !q, %k: !kv, %v: !kv, %p: !q, %l: !l) -> (!q, !l) {
  %o1, %l1 = ssa.sparse_attend %q, %k, %v : !q, !kv, !kv -> !q, !l
  // expected-remark @below {{is a kernel of its own: part 0 is not the output of an 'ssa.sparse_attend'; part 1 has an lse that is used by others, too}}
  %o, %z = ssa.merge (%p, %l), (%o1, %l1) : !q, !l, !q, !l -> !q, !l
  return %o, %l1 : !q, !l
}

// CHECK-LABEL: @another_lse
// CHECK-NOT: fused_attend
func.func @another_lse(%q: !q, %k: !kv, %v: !kv, %l: !l) -> !q {
  %o1, %l1 = ssa.sparse_attend %q, %k, %v : !q, !kv, !kv -> !q, !l
  // expected-remark @below {{is a kernel of its own: part 0 is not weighed by its own lse}}
  %o, %z = ssa.merge (%o1, %l) : !q, !l -> !q, !l
  return %o : !q
}

// CHECK-LABEL: @cuda_cores
// CHECK-NOT: fused_attend
func.func @cuda_cores(%q: tensor<1x8x?x64xf32>, %k: !kv, %v: !kv, %g: !l) -> !q {
  %o1, %l1 = ssa.sparse_attend %q, %k, %v : tensor<1x8x?x64xf32>, !kv, !kv -> !q, !l
  // expected-remark @below {{is a kernel of its own: part 0 is made on CUDA cores}}
  %o = ssa.mix (%o1, %g) : !q, !l -> !q
  return %o : !q
}

// -----

!q = tensor<1x8x?x64xbf16>
!kv = tensor<1x2x?x64xbf16>
!l = tensor<1x8x?xf32>

func.func @on_another_op(%q: !q, %k: !kv, %v: !kv) -> !q {
  // expected-error @below {{cannot have 'ssa.fused_attend': it belongs to 'ssa.merge' or 'ssa.mix'}}
  %o, %l = ssa.sparse_attend %q, %k, %v {ssa.fused_attend = #ssa.fused_attend<part = 0>} : !q, !kv, !kv -> !q, !l
  return %o : !q
}

// -----

!q = tensor<1x8x?x64xbf16>
!l = tensor<1x8x?xf32>

func.func @of_another_type(%p: !q, %g: !l) -> !q {
  // expected-error @below {{expected 'ssa.fused_attend' to be a '#ssa.fused_attend', but got 1 : i64}}
  %o = ssa.mix (%p, %g) {ssa.fused_attend = 1 : i64} : !q, !l -> !q
  return %o : !q
}
