// RUN: ssa-opt %s --canonicalize | FileCheck %s

!q = tensor<1x8x5x48xf32>
!k = tensor<1x2x23x48xf32>
!l = tensor<1x8x5xf32>
!raw = !ssa.selection<1x2x5x3, key_block = 4>
!sorted = !ssa.selection<1x2x5x3, key_block = 4, sorted>
!wide = !ssa.selection<1x2x5x4, key_block = 4, sorted>

//===----------------------------------------------------------------------===//
// sort
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func @sort_of_sorted(
// CHECK-SAME:    %[[A:.*]]: !ssa
func.func @sort_of_sorted(%a: !sorted) -> !sorted {
  // CHECK-NEXT: return %[[A]]
  %b = ssa.sort %a : !sorted -> !sorted
  return %b : !sorted
}

// The type says more than the order: a wider list is another type, and so are sizes that the input does not tell.
// CHECK-LABEL: func @sort_of_sorted_wider(
func.func @sort_of_sorted_wider(%a: !sorted, %b: !ssa.selection<?x2x5x3, key_block = 4, sorted>) -> (!wide, !sorted) {
  // CHECK-COUNT-2: ssa.sort
  %c = ssa.sort %a : !sorted -> !wide
  %d = ssa.sort %b : !ssa.selection<?x2x5x3, key_block = 4, sorted> -> !sorted
  return %c, %d : !wide, !sorted
}

// CHECK-LABEL: func @sort_of_raw(
func.func @sort_of_raw(%a: !raw) -> !sorted {
  // CHECK: ssa.sort
  %b = ssa.sort %a : !raw -> !sorted
  return %b : !sorted
}

// CHECK-LABEL: func @sort_of_sort(
// CHECK-SAME:    %[[A:.*]]: !ssa
func.func @sort_of_sort(%a: !raw) -> !wide {
  // CHECK-NEXT: %[[B:.*]] = ssa.sort %[[A]] : !ssa.selection<1x2x5x3, key_block = 4> -> !ssa.selection<1x2x5x4, key_block = 4, sorted>
  // CHECK-NEXT: return %[[B]]
  %b = ssa.sort %a : !raw -> !sorted
  %c = ssa.sort %b : !sorted -> !wide
  return %c : !wide
}

// Only the type in between agrees with both ends: a run of this fails, but compiling it must not.
// CHECK-LABEL: func @sort_of_sort_that_cannot_run(
func.func @sort_of_sort_that_cannot_run(%a: !raw) -> !ssa.selection<1x2x6x4, key_block = 4, sorted> {
  // CHECK-COUNT-2: ssa.sort
  %b = ssa.sort %a : !raw -> !ssa.selection<1x2x?x3, key_block = 4, sorted>
  %c = ssa.sort %b : !ssa.selection<1x2x?x3, key_block = 4, sorted> -> !ssa.selection<1x2x6x4, key_block = 4, sorted>
  return %c : !ssa.selection<1x2x6x4, key_block = 4, sorted>
}

//===----------------------------------------------------------------------===//
// union
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func @union_with_itself(
// CHECK-SAME:    %[[A:.*]]: !ssa
func.func @union_with_itself(%a: !raw) -> !wide {
  // CHECK-NEXT: ssa.sort %[[A]] : {{.*}} -> !ssa.selection<1x2x5x4, key_block = 4, sorted>
  %b = ssa.union %a, %a : !raw, !raw -> !wide
  return %b : !wide
}

// CHECK-LABEL: func @union_with_empty(
// CHECK-SAME:    %[[A:.*]]: !ssa{{.*}}, %[[E:.*]]: !ssa
func.func @union_with_empty(%a: !raw, %e: !ssa.selection<1x2x5x0, key_block = 4>) -> (!sorted, !sorted) {
  // CHECK-NEXT: ssa.sort %[[A]]
  // CHECK-NEXT: ssa.sort %[[A]]
  %b = ssa.union %a, %e : !raw, !ssa.selection<1x2x5x0, key_block = 4> -> !sorted
  %c = ssa.union %e, %a : !ssa.selection<1x2x5x0, key_block = 4>, !raw -> !sorted
  return %b, %c : !sorted, !sorted
}

// CHECK-LABEL: func @union_of_two(
func.func @union_of_two(%a: !raw, %b: !raw) -> !ssa.selection<1x2x5x6, key_block = 4, sorted> {
  // CHECK: ssa.union
  %c = ssa.union %a, %b : !raw, !raw -> !ssa.selection<1x2x5x6, key_block = 4, sorted>
  return %c : !ssa.selection<1x2x5x6, key_block = 4, sorted>
}

//===----------------------------------------------------------------------===//
// from_indices, to_indices
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func @there_and_back(
// CHECK-SAME:    %[[A:.*]]: !ssa
func.func @there_and_back(%a: !raw) -> !raw {
  // CHECK-NEXT: return %[[A]]
  %t = ssa.to_indices %a : !raw -> tensor<1x2x5x3xi32>
  %b = ssa.from_indices %t : tensor<1x2x5x3xi32> -> !raw
  return %b : !raw
}

// Nobody says that what comes back has the same blocks.
// CHECK-LABEL: func @there_and_back_as_other_blocks(
func.func @there_and_back_as_other_blocks(%a: !raw) -> !ssa.selection<1x2x5x3, key_block = 8> {
  // CHECK: ssa.from_indices
  %t = ssa.to_indices %a : !raw -> tensor<1x2x5x3xi32>
  %b = ssa.from_indices %t : tensor<1x2x5x3xi32> -> !ssa.selection<1x2x5x3, key_block = 8>
  return %b : !ssa.selection<1x2x5x3, key_block = 8>
}

// The other way round numbers below 0 become -1.
// CHECK-LABEL: func @back_and_there(
func.func @back_and_there(%t: tensor<1x2x5x3xi32>) -> tensor<1x2x5x3xi32> {
  // CHECK: ssa.to_indices
  %a = ssa.from_indices %t : tensor<1x2x5x3xi32> -> !raw
  %u = ssa.to_indices %a : !raw -> tensor<1x2x5x3xi32>
  return %u : tensor<1x2x5x3xi32>
}

//===----------------------------------------------------------------------===//
// gather
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func @gather_nothing(
func.func @gather_nothing(%k: !k, %a: !ssa.selection<1x8x5x0, key_block = 4>) -> tensor<1x8x5x0x48xf32> {
  // CHECK-NEXT: %[[E:.*]] = tensor.empty() : tensor<1x8x5x0x48xf32>
  // CHECK-NEXT: return %[[E]]
  %g = ssa.gather %k at %a : !k, !ssa.selection<1x8x5x0, key_block = 4> -> tensor<1x8x5x0x48xf32>
  return %g : tensor<1x8x5x0x48xf32>
}

// What operands know of sizes the result need not; its type stays.
// CHECK-LABEL: func @gather_nothing_of_unknown_size(
// CHECK-SAME:    %[[K:.*]]: tensor<1x2x23x48xf32>, %[[T:.*]]: tensor<1x2x?x0xi32>
func.func @gather_nothing_of_unknown_size(%k: !k, %t: tensor<1x2x?x0xi32>) -> tensor<?x2x?x0x48xf32> {
  // CHECK: %[[MQ:.*]] = tensor.dim %[[T]], %{{.*}}
  // CHECK: %[[E:.*]] = tensor.empty(%[[MQ]]) : tensor<1x2x?x0x48xf32>
  // CHECK: %[[C:.*]] = tensor.cast %[[E]] : tensor<1x2x?x0x48xf32> to tensor<?x2x?x0x48xf32>
  // CHECK: return %[[C]]
  %a = ssa.from_indices %t : tensor<1x2x?x0xi32> -> !ssa.selection<1x2x?x0, key_block = 4>
  %g = ssa.gather %k at %a : !k, !ssa.selection<1x2x?x0, key_block = 4> -> tensor<?x2x?x0x48xf32>
  return %g : tensor<?x2x?x0x48xf32>
}

// CHECK-LABEL: func @gather_something(
func.func @gather_something(%k: !k, %a: !raw) -> tensor<1x2x5x12x48xf32> {
  // CHECK: ssa.gather
  %g = ssa.gather %k at %a : !k, !raw -> tensor<1x2x5x12x48xf32>
  return %g : tensor<1x2x5x12x48xf32>
}

//===----------------------------------------------------------------------===//
// merge
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func @merge_one(
func.func @merge_one(%q: !q, %k: !k) -> (!q, !l) {
  // CHECK-NEXT: %[[O:.*]], %[[L:.*]] = ssa.sparse_attend
  // CHECK-NEXT: return %[[O]], %[[L]]
  %o, %l = ssa.sparse_attend %q, %k, %k : !q, !k, !k -> !q, !l
  %m, %n = ssa.merge (%o, %l) : !q, !l -> !q, !l
  return %m, %n : !q, !l
}

// CHECK-LABEL: func @merge_one_merged(
func.func @merge_one_merged(%o1: !q, %l1: !l, %o2: !q, %l2: !l, %s: tensor<8xf32>) -> (!q, !l) {
  // CHECK-NEXT: %[[O:.*]], %[[L:.*]] = ssa.merge
  // CHECK-NEXT: return %[[O]], %[[L]]
  %o, %l = ssa.merge (%o1, %l1), (%o2, %l2) : !q, !l, !q, !l -> !q, !l
  %m, %n = ssa.merge (%o, %l) : !q, !l -> !q, !l
  return %m, %n : !q, !l
}

// What comes from outside may have any output where its lse is -inf, and merging makes it 0.
// CHECK-LABEL: func @merge_one_from_outside(
func.func @merge_one_from_outside(%o: !q, %l: !l) -> (!q, !l) {
  // CHECK: ssa.merge
  %m, %n = ssa.merge (%o, %l) : !q, !l -> !q, !l
  return %m, %n : !q, !l
}

// An output with another's lse is no attention state.
// CHECK-LABEL: func @merge_one_of_two_ops(
func.func @merge_one_of_two_ops(%q: !q, %k: !k) -> (!q, !l) {
  // CHECK: ssa.merge
  %o, %l = ssa.sparse_attend %q, %k, %k : !q, !k, !k -> !q, !l
  %p, %e = ssa.sparse_attend %q, %k, %k {mask = #ssa.mask<causal>} : !q, !k, !k -> !q, !l
  %m, %n = ssa.merge (%o, %e) : !q, !l -> !q, !l
  return %m, %n : !q, !l
}

// A sink changes the output.
// CHECK-LABEL: func @merge_one_with_sink(
func.func @merge_one_with_sink(%q: !q, %k: !k, %s: tensor<8xf32>) -> (!q, !l) {
  // CHECK: ssa.merge
  %o, %l = ssa.sparse_attend %q, %k, %k : !q, !k, !k -> !q, !l
  %m, %n = ssa.merge (%o, %l) sink_logits %s : !q, !l, tensor<8xf32> -> !q, !l
  return %m, %n : !q, !l
}

// Another type rounds.
// CHECK-LABEL: func @merge_one_into_another_type(
func.func @merge_one_into_another_type(%q: !q, %k: !k) -> (tensor<1x8x5x48xbf16>, !l) {
  // CHECK: ssa.merge
  %o, %l = ssa.sparse_attend %q, %k, %k : !q, !k, !k -> !q, !l
  %m, %n = ssa.merge (%o, %l) : !q, !l -> tensor<1x8x5x48xbf16>, !l
  return %m, %n : tensor<1x8x5x48xbf16>, !l
}

//===----------------------------------------------------------------------===//
// route, sparse_attend
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func @single_tokens(
func.func @single_tokens(%q: !q, %k: !k) -> (tensor<1x8x5x23xf32>, !q) {
  // CHECK: ssa.route %{{.*}}, %{{.*}} {mask = #ssa.mask<causal>} :
  %s = ssa.route %q, %k {blocks = #ssa.blocks<1>, mask = #ssa.mask<causal>} : !q, !k -> tensor<1x8x5x23xf32>
  // CHECK: ssa.sparse_attend %{{[a-z0-9]*}}, %{{[a-z0-9]*}}, %{{[a-z0-9]*}} :
  %o, %l = ssa.sparse_attend %q, %k, %k {blocks = #ssa.blocks<1>} : !q, !k, !k -> !q, !l
  return %s, %o : tensor<1x8x5x23xf32>, !q
}

//===----------------------------------------------------------------------===//
// All
//===----------------------------------------------------------------------===//

// What nobody reads goes, one result of two does not.
// CHECK-LABEL: func @unused(
func.func @unused(%q: !q, %k: !k, %a: !raw, %s: tensor<1x2x5x6xf32>) -> !q {
  // CHECK-NEXT: ssa.sparse_attend
  // CHECK-NEXT: return
  %0 = ssa.pool mean %k {blocks = #ssa.blocks<4>} : !k -> tensor<1x2x6x48xf32>
  %1 = ssa.route %q, %k {reduce = sum} score (%x, %w, %b, %h, %p, %j) { ssa.yield %x : f32 }
      : !q, !k -> tensor<1x2x5x23xf32>
  %2 = ssa.rebin sum %s of %k {from = #ssa.blocks<4>, to = #ssa.blocks<8>}
      : tensor<1x2x5x6xf32>, !k -> tensor<1x2x5x3xf32>
  %3 = ssa.topk %s of %k : tensor<1x2x5x6xf32>, !k -> !sorted
  %4 = ssa.gather %k at %a : !k, !raw -> tensor<1x2x5x12x48xf32>
  %o, %l = ssa.sparse_attend %q, %k, %k : !q, !k, !k -> !q, !l
  %5 = ssa.mix (%o, %l) : !q, !l -> !q
  %6:2 = ssa.merge (%q, %l) : !q, !l -> !q, !l
  return %o : !q
}

// A number of a region that never changes moves to the function.
// CHECK-LABEL: func @constants_of_regions(
func.func @constants_of_regions(%q: !q, %k: !k) -> tensor<1x8x5x23xf32> {
  // CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0
  // CHECK-NEXT: ssa.route
  // CHECK-NEXT:   arith.maximumf %{{.*}}, %[[ZERO]]
  %s = ssa.route %q, %k score (%x, %w, %b, %h, %p, %j) {
    %zero = arith.constant 0.0 : f32
    %y = arith.maximumf %x, %zero : f32
    ssa.yield %y : f32
  } : !q, !k -> tensor<1x8x5x23xf32>
  return %s : tensor<1x8x5x23xf32>
}
