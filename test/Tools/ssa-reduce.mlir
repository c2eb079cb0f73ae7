// A module whose evaluation fails becomes a smaller one whose evaluation fails.
// RUN: cp %S/Inputs/by-zero.sh %t.sh && chmod +x %t.sh
// RUN: ssa-reduce %s --reduction-tree='traversal-mode=0 test=%t.sh' 2> %t.log | FileCheck %s
// RUN: ssa-reduce %s --opt-reduction-pass='opt-pass=cse test=%t.sh' | FileCheck %s --check-prefix=CSE

// CHECK: module {
// CHECK-NEXT: func.func @main(%[[Q:.*]]: tensor<1x2x3x4xf32>, %{{.*}}, %[[N:.*]]: tensor<2xi32>, %[[D:.*]]: tensor<2xi32>)
// CHECK-NEXT: %[[R:.*]] = arith.divsi %[[N]], %[[D]]
// CHECK-NEXT: return %[[Q]], %[[R]]
// CHECK-NEXT: }
// CHECK-NEXT: }

// A pass that keeps the fault: the addition nobody uses goes, the division stays.
// CSE: func.func @unrelated
// CSE-NOT: arith.addi
// CSE: arith.divsi

// What shows no fault is left alone, with a word about it.
// RUN: sed 's/arith.divsi/arith.muli/' %s > %t.good.mlir
// RUN: not ssa-reduce %t.good.mlir --reduction-tree='traversal-mode=0 test=%t.sh' 2>&1 | FileCheck %s --check-prefix=GOOD
// GOOD: ssa-reduce: nothing was reduced; if no message tells why, the script does not exit with 1 for the file itself

// RUN: not ssa-reduce %t.missing.mlir --reduction-tree='traversal-mode=0 test=%t.sh' 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: cannot open input file '{{.*}}missing.mlir': No such file or directory

// RUN: ssa-reduce --help | FileCheck %s --check-prefix=HELP
// HELP: Usage: ssa-reduce FILE PASS
// RUN: ssa-reduce --help-all | grep -e '--opt-reduction-pass'

func.func @unrelated(%a: tensor<4xf32>) -> tensor<4xf32> {
  %b = arith.addf %a, %a : tensor<4xf32>
  return %b : tensor<4xf32>
}

func.func @main(%q: tensor<1x2x3x4xf32>, %k: tensor<1x1x5x4xf32>, %n: tensor<2xi32>, %d: tensor<2xi32>)
    -> (tensor<1x2x3x4xf32>, tensor<2xi32>) {
  %kc = ssa.pool mean %k {blocks = #ssa.blocks<2>} : tensor<1x1x5x4xf32> -> tensor<1x1x3x4xf32>
  %s = ssa.route %q, %kc of %k {blocks = #ssa.blocks<2>, reduce = sum}
    : tensor<1x2x3x4xf32>, tensor<1x1x3x4xf32>, tensor<1x1x5x4xf32> -> tensor<1x1x3x3xf32>
  %sel = ssa.topk %s of %k : tensor<1x1x3x3xf32>, tensor<1x1x5x4xf32> -> !ssa.selection<1x1x3x2, key_block = 2, sorted>
  %o, %lse = ssa.sparse_attend %q, %k, %k at %sel
    : tensor<1x2x3x4xf32>, tensor<1x1x5x4xf32>, tensor<1x1x5x4xf32>, !ssa.selection<1x1x3x2, key_block = 2, sorted>
    -> tensor<1x2x3x4xf32>, tensor<1x2x3xf32>
  %e = arith.addi %d, %n : tensor<2xi32>
  %r = arith.divsi %n, %d : tensor<2xi32>
  return %o, %r : tensor<1x2x3x4xf32>, tensor<2xi32>
}
