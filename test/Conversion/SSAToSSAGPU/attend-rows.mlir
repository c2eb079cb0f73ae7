// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(ssa-attach-target{chip=sm_90a},ssa-select-schedule,convert-ssa-to-ssa-gpu,canonicalize,cse)' | FileCheck %s

!q = tensor<?x4x?x65xf32>
!kv = tensor<?x2x?x65xf32>
!l = tensor<?x4x?xf32>

// f32 stays f32: no tile of 16 bits, no schedule. Keys come 32 at a time, one a lane.
// CHECK: gpu.func @ssa_sparse_attend_rows({{.*}}known_block_size = array<i32: 128, 1, 1>
// CHECK-NOT: {{ssa_gpu|bf16|truncf}}
// CHECK: math.fma {{.*}} : vector<4xf32>
// CHECK: gpu.shuffle
// CHECK: math.exp
// CHECK-NOT: {{ssa_gpu|bf16|truncf}}
// CHECK-LABEL: func.func @f32
// CHECK-NOT: ssa.schedule
func.func @f32(%q: !q, %k: !kv, %v: !kv) -> !q {
  %o, %lse = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal>} : !q, !kv, !kv -> !q, !l
  return %o : !q
}

// -----

!q = tensor<?x4x?x64xbf16>
!k = tensor<?x2x?x64xf16>
!v = tensor<?x2x?x32xf32>
!o = tensor<?x4x?x32xf16>
!l = tensor<?x4x?xf32>

// Each operand is widened, none is narrowed but the result.
// CHECK: gpu.func @ssa_sparse_attend_rows(
// CHECK-DAG: arith.extf {{.*}} : vector<8xbf16> to vector<8xf32>
// CHECK-DAG: arith.extf {{.*}} : vector<8xf16> to vector<8xf32>
// CHECK: arith.truncf {{.*}} to vector<1xf16>
// CHECK-LABEL: func.func @mixed
func.func @mixed(%q: !q, %k: !k, %v: !v) -> !o {
  %o, %lse = ssa.sparse_attend %q, %k, %v : !q, !k, !v -> !o, !l
  return %o : !o
}

// -----

!q = tensor<?x2x?x65xbf16>
!l = tensor<?x2x?xf32>

// CHECK: gpu.func @ssa_sparse_attend_rows(
// CHECK-LABEL: func.func @odd
func.func @odd(%q: !q, %k: !q, %v: !q) -> !q {
  %o, %lse = ssa.sparse_attend %q, %k, %v : !q, !q, !q -> !q, !l
  return %o : !q
}

// -----

!q = tensor<?x2x?x64xbf16>
!l = tensor<?x2x?xf32>

// CHECK-NOT: gpu.func @ssa_sparse_attend_rows(
// CHECK-LABEL: func.func @tensor_cores
func.func @tensor_cores(%q: !q, %k: !q, %v: !q) -> !q {
  %o, %lse = ssa.sparse_attend %q, %k, %v : !q, !q, !q -> !q, !l
  return %o : !q
}

// -----

!q = tensor<?x2x?x1024xf32>
!l = tensor<?x2x?xf32>

func.func @too_wide(%q: !q, %k: !q, %v: !q) -> !q {
  // expected-error @below {{'ssa.sparse_attend' op on CUDA cores needs 297344 bytes of shared memory for head dims of 1024 and 1024, but sm_90a has 232448}}
  %o, %lse = ssa.sparse_attend %q, %k, %v : !q, !q, !q -> !q, !l
  return %o : !q
}

// -----

!q = tensor<?x2x?x64xbf16>
!l = tensor<?x2x?xf32>
!s = !ssa.selection<?x2x?x3, key_block = 64, query_block = 1073741824>

func.func @all_queries(%q: !q, %k: !q, %v: !q, %t: tensor<?x2x?x3xi32>) -> !q {
  %s = ssa.from_indices %t : tensor<?x2x?x3xi32> -> !s
  // expected-remark @below {{would be faster without its lists}}
  // expected-error @below {{has a kernel for lists that serve fewer than 2^31 rows, but 'query_block' is 1073741824, for up to 2 heads; of one list for all queries make dimension 2 static, 1}}
  %o, %lse = ssa.sparse_attend %q, %k, %v at %s : !q, !q, !q, !s -> !q, !l
  return %o : !q
}

// -----

!q = tensor<?x2x?x64xbf16>
!l = tensor<?x2x?xf32>
!s = !ssa.selection<?x2x1x3, key_block = 64, query_block = 1073741824>

// CHECK: gpu.func @ssa_sparse_attend(
// CHECK-LABEL: func.func @one_list
func.func @one_list(%q: !q, %k: !q, %v: !q, %t: tensor<?x2x1x3xi32>) -> !q {
  %s = ssa.from_indices %t : tensor<?x2x1x3xi32> -> !s
  %o, %lse = ssa.sparse_attend %q, %k, %v at %s : !q, !q, !q, !s -> !q, !l
  return %o : !q
}
