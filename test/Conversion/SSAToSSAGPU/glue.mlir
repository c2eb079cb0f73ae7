// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --pass-pipeline='builtin.module(convert-ssa-to-ssa-gpu,canonicalize,cse)' | FileCheck %s

!x = tensor<?x4x?x128xbf16>
!y = tensor<?x4x?x16x128xbf16>
!z = tensor<?x4x?x2048xbf16>

// Padding is a kernel, new shapes are views of what it writes.
// CHECK: gpu.func @ssa_pad(
// CHECK: %[[INSIDE:.*]] = arith.subi %{{.*}}, %arg{{.*}} : index
// CHECK: arith.cmpi ult, %[[INSIDE]]
// CHECK: scf.if %{{.*}} -> (bf16)
// CHECK: memref.load %arg0
// CHECK: } else {
// CHECK-NEXT: scf.yield %cst
// CHECK-LABEL: func.func @strips
// CHECK: %[[PADDED:.*]] = memref.alloc
// CHECK: gpu.launch_func @kernels::@ssa_pad
// CHECK: cf.assert %{{.*}}, "'tensor.expand_shape' expected the new sizes to make up dimension 2 of its source"
// CHECK: memref.expand_shape
// CHECK: memref.collapse_shape
func.func @strips(%x: !x) -> !z {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : bf16
  %b = tensor.dim %x, %c0 : !x
  %n = tensor.dim %x, %c2 : !x
  %rows = arith.ceildivsi %n, %c16 : index
  %whole = arith.muli %rows, %c16 : index
  %more = arith.subi %whole, %n : index
  %padded = tensor.pad %x low[0, 0, 0, 0] high[0, 0, %more, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : bf16
  } : !x to !x
  %y = tensor.expand_shape %padded [[0], [1], [2, 3], [4]] output_shape [%b, 4, %rows, 16, 128] : !x into !y
  %z = tensor.collapse_shape %y [[0], [1], [2], [3, 4]] : !y into !z
  return %z : !z
}

// -----

!x = tensor<?x?x?xf32>
!y = tensor<?x?xf32>

// A thread sums a column; `%init` stays as it is.
// CHECK: gpu.func @ssa_generic(
// CHECK: %[[INIT:.*]] = memref.load %arg2
// CHECK: scf.for {{.*}} iter_args(%[[SUM:.*]] = %[[INIT]]) -> (f32)
// CHECK: %[[IN:.*]] = memref.load %arg1
// CHECK: arith.addf %[[SUM]], %[[IN]]
// CHECK: memref.store %{{.*}}, %arg0
// CHECK-LABEL: func.func @sums
// CHECK: cf.assert %{{.*}}, "'linalg.generic' expected all indices along dimension 2 of operand 0 to lie within it"
// CHECK: cf.assert %{{.*}}, "'linalg.generic' expected dimension 0 of operand 1 to be as long as others of loop 0"
func.func @sums(%x: !x, %init: !y) -> !y {
  %y = linalg.generic {indexing_maps = [affine_map<(b, i, r) -> (b, r, i + r)>, affine_map<(b, i, r) -> (b, i)>],
                       iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : !x) outs(%init : !y) {
  ^bb0(%in: f32, %acc: f32):
    %s = arith.addf %acc, %in : f32
    linalg.yield %s : f32
  } -> !y
  return %y : !y
}

// -----

!t = tensor<?x5xi32>

// Integers from outside are passed, tensors are read.
// CHECK: gpu.func @ssa_generic(%{{.*}}: memref<?x5xi32, {{.*}}>, %{{.*}}: index, %{{.*}}: index, %[[M:.*]]: index, %[[TABLE:.*]]: memref<5xi32
// CHECK: arith.subi %{{.*}}, %[[M]] : index
// CHECK: memref.load %[[TABLE]]
func.func @indices(%m: index, %table: tensor<5xi32>) -> !t {
  %e = tensor.empty(%m) : !t
  %y = linalg.generic {indexing_maps = [affine_map<(m, s) -> (m, s)>], iterator_types = ["parallel", "parallel"]} outs(%e : !t) {
  ^bb0(%out: i32):
    %i = linalg.index 0 : index
    %s = linalg.index 1 : index
    %back = arith.subi %i, %m : index
    %shift = arith.index_cast %back : index to i32
    %x = tensor.extract %table[%s] : tensor<5xi32>
    %z = arith.addi %x, %shift : i32
    linalg.yield %z : i32
  } -> !t
  return %y : !t
}

// -----

!x = tensor<?x8xf32>

// Two copies into parts of one buffer.
// CHECK-LABEL: func.func @concat
// CHECK: %[[RESULT:.*]] = memref.alloc
// CHECK: memref.subview %{{.*}}[0, 0]
// CHECK: gpu.launch_func @kernels::@ssa_copy
// CHECK: memref.subview
// CHECK: gpu.launch_func @kernels::@ssa_copy
func.func @concat(%x: !x, %y: tensor<?x8xf32>) -> !x {
  %z = tensor.concat dim(0) %x, %y : (!x, !x) -> !x
  return %z : !x
}

// -----

!x = tensor<?x8xf32>

// The rest of the destination is copied first.
// CHECK-LABEL: func.func @insert
// CHECK: gpu.launch_func @kernels::@ssa_copy{{.*}} args(%arg1
// CHECK: memref.subview
// CHECK: gpu.launch_func @kernels::@ssa_copy{{.*}} args(%arg0
func.func @insert(%x: tensor<3x8xf32>, %y: !x, %i: index) -> !x {
  %z = tensor.insert_slice %x into %y[%i, 0] [3, 8] [1, 1] : tensor<3x8xf32> into !x
  return %z : !x
}

// -----

!x = tensor<?x4x1x8xf32>
!y = tensor<?x4x8xf32>
!z = tensor<?x32xf32>

// Of an argument only what no stride can be wrong for is a view without a question. Results are memory of their own.
// CHECK-LABEL: func.func @views
// CHECK: memref.collapse_shape %arg0
// CHECK: cf.assert %{{.*}}, "'tensor.collapse_shape' expected dimensions 1 to 2 of its source to follow one another in memory without gaps"
// CHECK: memref.collapse_shape
// CHECK: gpu.launch_func @kernels::@ssa_copy
// CHECK: gpu.launch_func @kernels::@ssa_copy
func.func @views(%x: !x) -> (!y, !z) {
  %y = tensor.collapse_shape %x [[0], [1, 2], [3]] : !x into !y
  %z = tensor.collapse_shape %y [[0], [1, 2]] : !y into !z
  return %y, %z : !y, !z
}

// -----

// CHECK: gpu.func @ssa_constant(
// CHECK: memref.store %cst
// CHECK: gpu.func @ssa_splat(%[[VALUE:.*]]: f32, %{{.*}}: memref<?x3xf32
// CHECK: memref.store %[[VALUE]]
// CHECK: gpu.func @ssa_generate(
func.func @values(%v: f32, %n: index) -> (tensor<4x3xf32>, tensor<?x3xf32>, tensor<?x3xi32>) {
  %a = arith.constant dense<1.5> : tensor<4x3xf32>
  %b = tensor.splat %v[%n] : tensor<?x3xf32>
  %c = tensor.generate %n {
  ^bb0(%i: index, %j: index):
    %k = arith.addi %i, %j : index
    %l = arith.index_cast %k : index to i32
    tensor.yield %l : i32
  } : tensor<?x3xi32>
  return %a, %b, %c : tensor<4x3xf32>, tensor<?x3xf32>, tensor<?x3xi32>
}

// -----

// CHECK: gpu.func @ssa_constant(
// CHECK: %[[ALL:.*]] = arith.constant dense<[1, 2, 3, 5, 8, 13]> : vector<6xi32>
// CHECK: vector.extract %[[ALL]][%{{.*}}]
// CHECK-LABEL: func.func @numbers
func.func @numbers() -> tensor<2x3xi32> {
  %y = arith.constant dense<[[1, 2, 3], [5, 8, 13]]> : tensor<2x3xi32>
  return %y : tensor<2x3xi32>
}
