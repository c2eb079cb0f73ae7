// RUN: ssa-opt %s | FileCheck %s
// RUN: ssa-opt %s | ssa-opt | FileCheck %s
// RUN: ssa-opt %s --mlir-print-op-generic | ssa-opt | FileCheck %s
// RUN: ssa-opt %s --emit-bytecode | ssa-opt | FileCheck %s
// RUN: ssa-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

// How attributes may be spelt, and how they are printed.

!q = tensor<1x8x5x48xf32>
!k = tensor<1x2x23x48xf32>
!s = tensor<1x8x5x23xf32>
!l = tensor<1x8x5xf32>

// An integer is a number too.
// CHECK-LABEL: func @integer_for_float(
func.func @integer_for_float(%q: !q, %k: !k, %s: !s) {
  // CHECK: ssa.route %{{.*}} {scale = 1.000000e+00} :
  %0 = ssa.route %q, %k {scale = 1} : !q, !k -> !s
  // CHECK: ssa.sparse_attend %{{.*}} {scale = -2.000000e+00} :
  %1:2 = ssa.sparse_attend %q, %k, %k {scale = -2} : !q, !k, !k -> !q, !l
  // CHECK: ssa.topk %{{.*}} {threshold = 3.000000e+00, top_p = 0.000000e+00} :
  %2 = ssa.topk %s of %k {top_p = 0, threshold = 3} : !s, !k -> !ssa.selection<1x8x5x3, key_block = 1, sorted>
  return
}

// A whole number of many digits prints as bits, and then with its type: bits alone would be read as an integer.
// CHECK-LABEL: func @float_as_bits(
func.func @float_as_bits(%q: !q, %k: !k) {
  // CHECK: ssa.route %{{.*}} {scale = 0x41678C29C0000000 : f64} :
  %0 = ssa.route %q, %k {scale = 12345678.0} : !q, !k -> !s
  // CHECK: ssa.route %{{.*}} {scale = 1.000000e+22} :
  %1 = ssa.route %q, %k {scale = 1.0e+22} : !q, !k -> !s
  // CHECK: ssa.route %{{.*}} {scale = 0.10000000149011612} :
  %2 = ssa.route %q, %k {scale = 0.10000000149011612} : !q, !k -> !s
  return
}

// What is taken when nothing is written is not printed.
// CHECK-LABEL: func @defaults(
func.func @defaults(%q: !q, %k: !k, %s: !s, %g: !l) {
  // CHECK: ssa.route %{{[a-z0-9]*}}, %{{[a-z0-9]*}} :
  %0 = ssa.route %q, %k {query_block = 1, visible = complete, normalize = none, reduce = none} : !q, !k -> !s
  // CHECK: ssa.topk %{{[a-z0-9]*}} of %{{[a-z0-9]*}} :
  %1 = ssa.topk %s of %k {init_blocks = 0, local_blocks = 0} : !s, !k -> !ssa.selection<1x8x5x3, key_block = 1, sorted>
  // CHECK: ssa.rebin max %{{[a-z0-9]*}} of %{{[a-z0-9]*}} {from = #ssa.blocks<1>, to = #ssa.blocks<1>} :
  %2 = ssa.rebin max %s of %k {from = #ssa.blocks<1>, to = #ssa.blocks<1>, query_block = 1} : !s, !k -> !s
  // CHECK: ssa.mix (%{{[a-z0-9]*}}, %{{[a-z0-9]*}}) :
  %3 = ssa.mix (%q, %g) {gate = sigmoid} : !q, !l -> !q
  // CHECK: ssa.route %{{[a-z0-9]*}}, %{{[a-z0-9]*}} :
  %4 = ssa.route %q, %k {} : !q, !k -> !s
  return
}

// CHECK-LABEL: func @default_of_blocks(
func.func @default_of_blocks(%k: !k) {
  // CHECK: {blocks = #ssa.blocks<8>}
  %0 = ssa.pool mean %k {blocks = #ssa.blocks<8, stride = 8, offset = 0>} : !k -> tensor<1x2x3x48xf32>
  // CHECK: {blocks = #ssa.blocks<8, stride = 4, offset = -7>}
  %1 = ssa.pool mean %k {blocks = #ssa.blocks<8, offset = -7, stride = 4>} : !k -> tensor<1x2x6x48xf32>
  return
}

// CHECK-LABEL: func @masks(
func.func @masks(%q: !q, %k: !k) {
  // CHECK: {mask = #ssa.mask<causal>}
  %0 = ssa.route %q, %k {mask = #ssa.mask<causal, sink = 0>} : !q, !k -> !s
  // CHECK: {mask = #ssa.mask<window = 1>}
  %1 = ssa.route %q, %k {mask = #ssa.mask<window = 1>} : !q, !k -> !s
  // CHECK: {mask = #ssa.mask<window = 3, sink = 4>}
  %2 = ssa.route %q, %k {mask = #ssa.mask<sink = 4, window = 3>} : !q, !k -> !s
  // CHECK: {mask = #ssa.mask<causal, window = 2147483647, sink = 2147483647>}
  %3 = ssa.route %q, %k {mask = #ssa.mask<window = 2147483647, sink = 2147483647, causal>} : !q, !k -> !s
  return
}

// Words, and the same as attributes of their own.
// CHECK-LABEL: func @words(
func.func @words(%q: !q, %k: !k, %g: !l) {
  // CHECK: {normalize = softmax, reduce = max, visible = partial}
  %0 = ssa.route %q, %k {visible = partial, normalize = softmax, reduce = max} : !q, !k -> tensor<1x4x5x23xf32>
  // CHECK: {normalize = softmax, reduce = max, visible = partial}
  %1 = ssa.route %q, %k {visible = #ssa<visibility partial>, normalize = #ssa<normalization softmax>,
      reduce = #ssa<reduction max>}
      : !q, !k -> tensor<1x4x5x23xf32>
  // CHECK: ssa.mix {{.*}} {gate = none}
  %2 = ssa.mix (%q, %g) {gate = #ssa<gate none>} : !q, !l -> !q
  // A key may be quoted.
  // CHECK: {reduce = max}
  %3 = ssa.route %q, %k {"reduce" = max} : !q, !k -> tensor<1x4x5x23xf32>
  return
}

#causal = #ssa.mask<causal>
#tokens = #ssa.blocks<1>

// CHECK-LABEL: func @aliases(
func.func @aliases(%q: !q, %k: !k) {
  // CHECK: {blocks = #ssa.blocks<1>, mask = #ssa.mask<causal>}
  %0 = ssa.route %q, %k {mask = #causal, blocks = #tokens} : !q, !k -> !s
  return
}

// Attributes of other dialects, which may mean anything, stay as they are: also where they look like ours.
// CHECK-LABEL: func @discardable(
func.func @discardable(%q: !q, %k: !k, %g: !l, %a: !ssa.selection<1x2x5x4>) {
  // CHECK:      ssa.route %{{.*}} {my.bits = 0x7FF0000000000000 : f64, my.byte = 1 : i8, my.dense = dense<1> : tensor<2xi64>, my.flag, my.long = 1,
  // CHECK-SAME: my.none = #ssa<reduction none>, my.one = 1.000000e+00, my.short = 1.000000e+00 : f32, my.size = 1 : index, my.text = "sum", my.true = true,
  // CHECK-SAME: my.unsigned = 1 : ui64, reduce = max, test.mask = #ssa.mask<causal>, "with space.key" = 2}
  %0 = ssa.route %q, %k {my.flag, my.none = #ssa<reduction none>, my.one = 1.0, my.bits = 0x7FF0000000000000 : f64,
      my.long = 1, my.byte = 1 : i8, my.unsigned = 1 : ui64, my.size = 1 : index, my.short = 1.0 : f32, my.true = true,
      my.text = "sum", my.dense = dense<1> : tensor<2xi64>, reduce = max, test.mask = #ssa.mask<causal>,
      "with space.key" = 2} : !q, !k -> tensor<1x4x5x23xf32>
  // CHECK: ssa.sort %{{.*}} {my.none = #ssa<reduction none>} :
  %1 = ssa.sort %a {my.none = #ssa<reduction none>} : !ssa.selection<1x2x5x4> -> !ssa.selection<1x2x5x4, sorted>
  // CHECK: ssa.merge (%{{.*}}, %{{.*}}) {my.long = 1} :
  %2:2 = ssa.merge (%q, %g) {my.long = 1} : !q, !l -> !q, !l
  return
}

// Generic form says everything; what is not written is filled in.
// GENERIC-LABEL: sym_name = "generic"
func.func @generic(%q: !q, %k: !k) {
  // GENERIC: "ssa.route"(%{{.*}}, %{{.*}}) <{normalize = #ssa<normalization none>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, query_block = 1 : i64, reduce = #ssa<reduction none>, visible = #ssa<visibility complete>}> ({
  %0 = ssa.route %q, %k : !q, !k -> !s
  return
}
