// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --verify-diagnostics

func.func @of_another_op(%t: tensor<1x2x?x4xi32>) {
  // expected-error @below {{cannot have 'ssa.shared_sums': it belongs to 'ssa.route'}}
  %a = ssa.from_indices %t {ssa.shared_sums} : tensor<1x2x?x4xi32> -> !ssa.selection<1x2x?x4, key_block = 16>
  return
}

// -----

func.func @value(%q: tensor<1x8x?x64xbf16>, %k: tensor<1x2x?x64xbf16>) -> tensor<1x2x?x?xf32> {
  // expected-error @below {{expected 'ssa.shared_sums' to be a unit attribute, but got true}}
  %s = ssa.route %q, %k {normalize = softmax, reduce = sum, ssa.shared_sums = true} : tensor<1x8x?x64xbf16>, tensor<1x2x?x64xbf16> -> tensor<1x2x?x?xf32>
  return %s : tensor<1x2x?x?xf32>
}
