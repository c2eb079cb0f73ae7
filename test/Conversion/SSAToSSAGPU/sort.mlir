// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(convert-ssa-to-ssa-gpu,canonicalize,cse)' | FileCheck %s

!t = tensor<?x2x?x16xi32>
!raw = !ssa.selection<?x2x?x16, key_block = 64>
!sorted = !ssa.selection<?x2x?x16, key_block = 64, sorted>

// 32 lists of 16 numbers to a block; 10 steps of a network, as unsigned numbers.
// CHECK: gpu.func @ssa_sort(
// CHECK-SAME: workgroup(%[[NUMBERS:[a-z0-9]*]] : memref<512xi32, #gpu.address_space<workgroup>>
// CHECK-COUNT-10: arith.minui
// CHECK-NOT: arith.minui
// CHECK-LABEL: func.func @sort
// CHECK: gpu.launch_func @kernels::@ssa_sort
func.func @sort(%t: !t) -> !t {
  %a = ssa.from_indices %t : !t -> !raw
  %b = ssa.sort %a : !raw -> !sorted
  %r = ssa.to_indices %b : !sorted -> !t
  return %r : !t
}

// -----

!ta = tensor<?x2x?x100xi32>
!tb = tensor<?x2x?x28xi32>
!tc = tensor<?x2x?x128xi32>
!a = !ssa.selection<?x2x?x100, key_block = 64>
!b = !ssa.selection<?x2x?x28, key_block = 64>
!as = !ssa.selection<?x2x?x100, key_block = 64, sorted>
!bs = !ssa.selection<?x2x?x28, key_block = 64, sorted>
!c = !ssa.selection<?x2x?x128, key_block = 64, sorted>

// Two lists that are sorted need the last 7 steps only.
// CHECK: gpu.func @ssa_union(
// CHECK-COUNT-7: arith.minui
// CHECK-NOT: arith.minui
// CHECK-LABEL: func.func @union
// CHECK: cf.assert %{{.*}}, "'ssa.union' expected dimension 0 of 'rhs' to be dimension 0 of 'lhs'"
// CHECK: gpu.launch_func @kernels::@ssa_union
func.func @union(%s: !ta, %t: !tb) -> !tc {
  %a = ssa.from_indices %s : !ta -> !a
  %b = ssa.from_indices %t : !tb -> !b
  %as = ssa.sort %a : !a -> !as
  %bs = ssa.sort %b : !b -> !bs
  %c = ssa.union %as, %bs : !as, !bs -> !c
  %r = ssa.to_indices %c : !c -> !tc
  return %r : !tc
}

// -----

!t = tensor<?x2x?x16xi32>
!raw = !ssa.selection<?x2x?x16, key_block = 64>

// What is not sorted may hold any negative number.
// CHECK: gpu.func @ssa_to_indices(
// CHECK: arith.maxsi %{{.*}}, %c-1_i32
func.func @to_indices(%t: !t) -> !t {
  %a = ssa.from_indices %t : !t -> !raw
  %r = ssa.to_indices %a : !raw -> !t
  return %r : !t
}

// -----

!t = tensor<?x1x?x8193xi32>
!raw = !ssa.selection<?x1x?x8193, key_block = 64>
!sorted = !ssa.selection<?x1x?x8193, key_block = 64, sorted>

func.func @long(%t: !t) -> !t {
  %a = ssa.from_indices %t : !t -> !raw
  // expected-error @+1 {{'ssa.sort' op has no kernel for lists of 8193 numbers: they are sorted in shared memory, which takes 8192}}
  %b = ssa.sort %a : !raw -> !sorted
  %r = ssa.to_indices %b : !sorted -> !t
  return %r : !t
}
