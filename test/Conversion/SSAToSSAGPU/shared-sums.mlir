// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --verify-diagnostics --ssa-attach-target=chip=sm_90a --ssa-select-schedule --convert-ssa-to-ssa-gpu | FileCheck %s

!q = tensor<1x32x?x64xbf16>
!kv = tensor<1x2x?x64xbf16>
!l = tensor<1x32x?xf32>
!s = tensor<1x2x?x?xf32>

// No kernel makes sums; that of the scores takes the lse, which is a natural logarithm.
// CHECK-NOT: ssa_route_softmax
// CHECK-NOT: ssa_route_join
// CHECK-LABEL: gpu.func @ssa_route
// CHECK: arith.constant 1.44269502 : f32
// CHECK-LABEL: func.func @shared
// CHECK: %[[ALLOC:.*]] = memref.alloc(%{{.*}}) : memref<1x32x?xf32>
// CHECK-NEXT: %[[LSE:.*]] = memref.cast %[[ALLOC]]
// CHECK: gpu.launch_func @kernels::@ssa_sparse_attend {{.*}}args({{.*}}%[[LSE]]
// CHECK: %[[SHARED:.*]] = memref.cast %[[LSE]] : {{.*}} to memref<?x32x?xf32
// CHECK: gpu.launch_func @kernels::@ssa_route {{.*}}args({{.*}}%[[SHARED]]
func.func @shared(%q: !q, %k: !kv, %v: !kv) -> (!q, !s) {
  %o, %l = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal>} : !q, !kv, !kv -> !q, !l
  %s = ssa.route %q, %k {mask = #ssa.mask<causal>, normalize = softmax, reduce = sum, ssa.shared_sums} : !q, !kv -> !s
  return %o, %s : !q, !s
}

// -----

!q = tensor<1x8x?x64xbf16>
!kv = tensor<1x2x?x64xbf16>
!l = tensor<1x8x?xf32>
!s = tensor<1x2x?x?xf32>

func.func @no_attention(%q: !q, %k: !kv) -> !s {
  // expected-error @below {{cannot have 'ssa.shared_sums': no 'ssa.sparse_attend' has the same queries and keys}}
  %s = ssa.route %q, %k {normalize = softmax, reduce = sum, ssa.shared_sums} : !q, !kv -> !s
  return %s : !s
}

// -----

!q = tensor<1x8x?x64xbf16>
!kv = tensor<1x2x?x64xbf16>
!l = tensor<1x8x?xf32>
!s = tensor<1x2x?x?xf32>

func.func @other_attention(%q: !q, %k: !kv, %v: !kv) -> (!q, !s) {
  %o, %l = ssa.sparse_attend %q, %k, %v : !q, !kv, !kv -> !q, !l
  // expected-error @below {{cannot have 'ssa.shared_sums': 'ssa.sparse_attend' to the same keys has another scale}}
  %s = ssa.route %q, %k {scale = 2.0, normalize = softmax, reduce = sum, ssa.shared_sums} : !q, !kv -> !s
  return %o, %s : !q, !s
}

// -----

!q = tensor<1x8x?x64xbf16>
!kv = tensor<1x2x?x64xbf16>
!l = tensor<1x8x?xf32>
!s = tensor<1x2x?x?xf32>

func.func @attention_behind(%q: !q, %k: !kv, %v: !kv) -> (!q, !s) {
  // expected-error @below {{cannot have 'ssa.shared_sums': 'ssa.sparse_attend' with the same sums stands behind it}}
  %s = ssa.route %q, %k {normalize = softmax, reduce = sum, ssa.shared_sums} : !q, !kv -> !s
  %o, %l = ssa.sparse_attend %q, %k, %v : !q, !kv, !kv -> !q, !l
  return %o, %s : !q, !s
}

// -----

!q = tensor<1x8x?x64xbf16>
!kv = tensor<1x2x?x64xbf16>
!l = tensor<1x8x?xf32>
!s = tensor<1x2x?x?xf32>

func.func @no_softmax(%q: !q, %k: !kv, %v: !kv) -> (!q, !s) {
  %o, %l = ssa.sparse_attend %q, %k, %v : !q, !kv, !kv -> !q, !l
  // expected-error @below {{cannot have 'ssa.shared_sums': it makes no softmax of products}}
  %s = ssa.route %q, %k {reduce = sum, ssa.shared_sums} : !q, !kv -> !s
  return %o, %s : !q, !s
}
