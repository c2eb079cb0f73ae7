// RUN: ssa-opt %s -ssa-common-subexpressions | FileCheck %s

// One of two that are equal, and none that nothing uses.
// CHECK-LABEL: func @numbers
func.func @numbers(%a: i32, %b: i32) -> (i32, i32, i32) {
  // CHECK-NEXT: %[[SUM:.*]] = arith.addi %{{.*}}, %{{.*}} : i32
  // CHECK-NEXT: %[[OTHER:.*]] = arith.addi %{{.*}}, %{{.*}} overflow<nsw> : i32
  // CHECK-NEXT: return %[[SUM]], %[[SUM]], %[[OTHER]]
  %0 = arith.addi %a, %b : i32
  %1 = arith.addi %a, %b : i32
  %2 = arith.addi %a, %b overflow<nsw> : i32
  %3 = arith.muli %a, %b : i32
  return %0, %1, %2 : i32, i32, i32
}

// Blocks know what stands before their op, not what is in the other branch.
// CHECK-LABEL: func @branches
func.func @branches(%a: i32, %c: i1) -> i32 {
  // CHECK: %[[DOUBLE:.*]] = arith.addi
  // CHECK: scf.if
  // CHECK-NEXT: %[[SQUARE:.*]] = arith.muli
  // CHECK-NEXT: arith.addi %[[DOUBLE]], %[[SQUARE]]
  // CHECK: else
  // CHECK-NEXT: arith.muli
  %0 = arith.addi %a, %a : i32
  %1 = scf.if %c -> i32 {
    %2 = arith.addi %a, %a : i32
    %3 = arith.muli %a, %a : i32
    %4 = arith.addi %2, %3 : i32
    scf.yield %4 : i32
  } else {
    %2 = arith.muli %a, %a : i32
    %3 = arith.subi %0, %2 : i32
    scf.yield %3 : i32
  }
  return %1 : i32
}

// A read stands for another one behind branches that only read, but not behind what may write, nor in a loop that does.
// CHECK-LABEL: func @reads
func.func @reads(%m: memref<?xi32>, %i: index, %n: index, %c: i1) -> (i32, i32, i32, i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: %[[FIRST:.*]] = memref.load
  // CHECK: %[[SUM:.*]] = scf.if
  // CHECK: memref.load
  // CHECK-NOT: memref.load
  // CHECK: scf.for
  // CHECK: memref.load
  // CHECK: memref.store
  // CHECK: %[[LAST:.*]] = memref.load
  // CHECK: return %[[FIRST]], %[[FIRST]], %[[SUM]], %[[LAST]]
  %0 = memref.load %m[%i] : memref<?xi32>
  %1 = scf.if %c -> i32 {
    %4 = memref.load %m[%n] : memref<?xi32>
    scf.yield %4 : i32
  } else {
    scf.yield %0 : i32
  }
  %2 = memref.load %m[%i] : memref<?xi32>
  scf.for %j = %c0 to %n step %c1 {
    %4 = memref.load %m[%i] : memref<?xi32>
    memref.store %4, %m[%j] : memref<?xi32>
  }
  %3 = memref.load %m[%i] : memref<?xi32>
  return %0, %2, %1, %3 : i32, i32, i32, i32
}

// Ops with regions are equal if these are. A kernel knows nothing of what is around it.
// CHECK-LABEL: func @regions
func.func @regions(%a: i32, %c: i1) -> (i32, i32, i32) {
  // CHECK-NEXT: %[[ONE:.*]] = scf.if
  // CHECK: arith.addi
  // CHECK: %[[TWO:.*]] = scf.if
  // CHECK: arith.muli
  // CHECK: return %[[ONE]], %[[ONE]], %[[TWO]]
  %0 = scf.if %c -> i32 {
    %3 = arith.addi %a, %a : i32
    scf.yield %3 : i32
  } else {
    scf.yield %a : i32
  }
  %1 = scf.if %c -> i32 {
    %3 = arith.addi %a, %a : i32
    scf.yield %3 : i32
  } else {
    scf.yield %a : i32
  }
  %2 = scf.if %c -> i32 {
    %3 = arith.muli %a, %a : i32
    scf.yield %3 : i32
  } else {
    scf.yield %a : i32
  }
  return %0, %1, %2 : i32, i32, i32
}
