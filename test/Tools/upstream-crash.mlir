// Upstream's verifier of `tensor.concat` reads out of range: the tool says so and ends, as it does on any faulty text.
// RUN: not ssa-opt %s 2>&1 | FileCheck %s
// RUN: not ssa-run %s 2>&1 | FileCheck %s

// CHECK: error: {{.*}}crashed on it
func.func @f(%a: tensor<2xf32>) -> tensor<4xf32> {
  %0 = tensor.concat dim(-1) %a, %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
