// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --verify-diagnostics --ssa-fuse | FileCheck %s

!x = tensor<2x1x?x128xbf16>
!w = tensor<4x128x16xbf16>
!y = tensor<2x4x?x16xbf16>

// One row of a block is projected. The mean is not rounded, and one head of it serves all.
// CHECK-LABEL: @mean
// CHECK-SAME: (%[[X:.*]]: tensor<2x1x?x128xbf16>, %[[W:.*]]: tensor<4x128x16xbf16>)
// CHECK: %[[MEAN:.*]] = ssa.pool mean %[[X]] {blocks = #ssa.blocks<32, stride = 16>} : tensor<2x1x?x128xbf16> -> tensor<2x1x?x128xf32>
// CHECK: %[[Y:.*]] = ssa.project %[[MEAN]], %[[W]] : tensor<2x1x?x128xf32>, tensor<4x128x16xbf16> -> tensor<2x4x?x16xf16>
// CHECK: return %[[Y]]
func.func @mean(%x: !x, %w: !w) -> tensor<2x4x?x16xf16> {
  %y = ssa.project %x, %w : !x, !w -> !y
  %m = ssa.pool mean %y {blocks = #ssa.blocks<32, stride = 16>} : !y -> tensor<2x4x?x16xf16>
  return %m : tensor<2x4x?x16xf16>
}

// CHECK-LABEL: @maximum
// CHECK: ssa.project
// CHECK-NEXT: ssa.pool max
func.func @maximum(%x: !x, %w: !w) -> !y {
  %y = ssa.project %x, %w : !x, !w -> !y
  // expected-remark @below {{is not made before the projection of its rows: the 'max' of projections is not the projection of the 'max'}}
  %m = ssa.pool max %y {blocks = #ssa.blocks<64>} : !y -> !y
  return %m : !y
}

// CHECK-LABEL: @rows_used
// CHECK: ssa.project
// CHECK-NEXT: ssa.pool mean
func.func @rows_used(%x: !x, %w: !w) -> (!y, !y) {
  %y = ssa.project %x, %w : !x, !w -> !y
  // expected-remark @below {{is not made before the projection of its rows: its rows are used by others, too}}
  %m = ssa.pool mean %y {blocks = #ssa.blocks<64>} : !y -> !y
  return %y, %m : !y, !y
}

// CHECK-LABEL: @scales
// CHECK: ssa.project
// CHECK-NEXT: ssa.pool mean
func.func @scales(%x: !x, %w: !w, %s: tensor<2x4x?xf32>) -> !y {
  %y = ssa.project %x, %w : !x, !w -> !y
  // expected-remark @below {{is not made before the projection of its rows: its heads, which have scales of their own, are made of one head}}
  %m = ssa.pool mean %y scales %s {blocks = #ssa.blocks<64>} : !y, tensor<2x4x?xf32> -> !y
  return %m : !y
}

// Scales of rows are those of what is projected.
// CHECK-LABEL: @own_scales
// CHECK: %[[MEAN:.*]] = ssa.pool mean %{{.*}} scales %{{.*}} {{.*}} -> tensor<2x1x?x128xf32>
// CHECK: ssa.project %[[MEAN]]
func.func @own_scales(%x: !x, %w: tensor<1x128x16xbf16>, %s: tensor<2x1x?xf32>) -> tensor<2x1x?x16xbf16> {
  %y = ssa.project %x, %w : !x, tensor<1x128x16xbf16> -> tensor<2x1x?x16xbf16>
  %m = ssa.pool mean %y scales %s {blocks = #ssa.blocks<64>} : tensor<2x1x?x16xbf16>, tensor<2x1x?xf32> -> tensor<2x1x?x16xbf16>
  return %m : tensor<2x1x?x16xbf16>
}
