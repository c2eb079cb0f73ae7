// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --verify-diagnostics --convert-ssa-to-ssa-gpu

func.func @reshape(%x: tensor<4x6xf32>, %s: tensor<1xi32>) -> tensor<24xf32> {
  // expected-error @+1 {{'tensor.reshape' op cannot be launched: around the ops of 'ssa' these have a meaning for kernels: scalar arithmetic}}
  %y = tensor.reshape %x(%s) : (tensor<4x6xf32>, tensor<1xi32>) -> tensor<24xf32>
  return %y : tensor<24xf32>
}

// -----

func.func @slice(%x: tensor<4x6xf32>) -> tensor<4x3xf32> {
  // expected-error @+1 {{'tensor.extract_slice' op cannot be launched: the innermost stride of a slice must be 1}}
  %y = tensor.extract_slice %x[0, 0] [4, 3] [1, 2] : tensor<4x6xf32> to tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}

// -----

func.func @map(%x: tensor<64xf32>, %e: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error @+1 {{'linalg.generic' op cannot be launched: indices must be sums of loops, times constants}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i floordiv 2 + j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

func.func @outer(%x: tensor<8xf32>, %e: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{'linalg.generic' op cannot be launched: every parallel loop must be one dimension of every result}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

func.func @region(%x: tensor<8xf32>, %c: i1) -> tensor<8xf32> {
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%x : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    // expected-error @+1 {{'scf.if' op cannot be launched: regions may use scalar ops of 'arith' and 'math', 'linalg.index' and 'tensor.extract'}}
    %z = scf.if %c -> f32 {
      scf.yield %in : f32
    } else {
      scf.yield %out : f32
    }
    linalg.yield %z : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

func.func @scalar(%x: tensor<8xbf16>, %s: bf16) -> tensor<8xbf16> {
  // expected-error @+1 {{'linalg.fill' op cannot be launched: it uses an argument of type 'bf16', but scalar arguments of kernels are integers, f32 or f64}}
  %y = linalg.fill ins(%s : bf16) outs(%x : tensor<8xbf16>) -> tensor<8xbf16>
  return %y : tensor<8xbf16>
}

// -----

func.func @constant() -> tensor<2xf32> {
  // expected-error @+1 {{'arith.constant' op cannot be launched: a constant tensor must have one value for all elements}}
  %y = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

func.func @result(%x: tensor<8xf32>, %n: index) -> index {
  // expected-error @+1 {{'func.return' op cannot be launched: result 0 is a scalar; only tensors are computed by kernels}}
  return %n : index
}
