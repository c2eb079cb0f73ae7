// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --verify-diagnostics

func.func @of_another_op(%t: tensor<1x2x?x4xi32>) {
  // expected-error @below {{cannot have 'ssa.forced_apart': it belongs to 'ssa.sparse_attend'}}
  %a = ssa.from_indices %t {ssa.forced_apart} : tensor<1x2x?x4xi32> -> !ssa.selection<1x2x?x4, key_block = 16>
  return
}

// -----

func.func @value(%q: tensor<1x8x?x64xbf16>, %k: tensor<1x2x?x64xbf16>) -> tensor<1x8x?x64xbf16> {
  // expected-error @below {{expected 'ssa.forced_apart' to be a unit attribute, but got true}}
  %o, %l = ssa.sparse_attend %q, %k, %k {ssa.forced_apart = true} : tensor<1x8x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16> -> tensor<1x8x?x64xbf16>, tensor<1x8x?xf32>
  return %o : tensor<1x8x?x64xbf16>
}
