// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --emit=plan --chip=sm_90a | FileCheck %s

!q = tensor<?x8x?x64xbf16>
!k = tensor<?x2x?x64xbf16>
!s = tensor<?x2x?x?xf32>
!sel = !ssa.selection<?x2x?x4, key_block = 1, sorted>

// Scores of 128 MiB at a time, however many queries there are; a caller may still give a result of any strides.
// CHECK: "results": [
// CHECK-NEXT: "strides":"any"
// CHECK: ["const",134217728]
// CHECK: ["index",0]
// CHECK: "repeats": [
// CHECK-NEXT: {"count":{{[0-9]+}},"values":[{{[0-9]+}},{{[0-9]+}}],"launches":[0,{{[0-9]+}}]}
func.func @select(%q: !q, %k: !k) -> tensor<?x2x?x4xi32> {
  %s = ssa.route %q, %k {mask = #ssa.mask<causal>, reduce = sum} : !q, !k -> !s
  %a = ssa.topk %s of %k {mask = #ssa.mask<causal>} : !s, !k -> !sel
  %r = ssa.to_indices %a : !sel -> tensor<?x2x?x4xi32>
  return %r : tensor<?x2x?x4xi32>
}
