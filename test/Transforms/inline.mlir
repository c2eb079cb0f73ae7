// RUN: ssa-opt %s --inline | FileCheck %s

// Parts of patterns may be functions.

!q = tensor<1x8x5x48xf32>
!k = tensor<1x2x23x48xf32>
!s = tensor<1x8x5x23xf32>

func.func private @score(%q: !q, %k: !k, %t: f32) -> !s {
  %s = ssa.route %q, %k score (%x, %w, %b, %h, %p, %j) {
    %y = arith.mulf %x, %t : f32
    ssa.yield %y : f32
  } : !q, !k -> !s
  return %s : !s
}

// CHECK-LABEL: func @pattern(
// CHECK-SAME:    %[[Q:.*]]: tensor<1x8x5x48xf32>, %[[K:.*]]: tensor<1x2x23x48xf32>, %[[T:.*]]: f32
func.func @pattern(%q: !q, %k: !k, %t: f32) -> !ssa.selection<1x8x5x3, key_block = 1, sorted> {
  // CHECK-NOT: call
  // CHECK:     %[[S:.*]] = ssa.route %[[Q]], %[[K]] score (%[[X:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {
  // CHECK:       arith.mulf %[[X]], %[[T]]
  // CHECK:     ssa.topk %[[S]]
  %s = call @score(%q, %k, %t) : (!q, !k, f32) -> !s
  %a = ssa.topk %s of %k : !s, !k -> !ssa.selection<1x8x5x3, key_block = 1, sorted>
  return %a : !ssa.selection<1x8x5x3, key_block = 1, sorted>
}
