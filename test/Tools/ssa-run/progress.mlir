// What takes longer than two seconds (here: a tenth) says how far it is.
// RUN: ssa-run %s --in uniform:1000 --cores=1 --progress-after=0.1 2>&1 | FileCheck %s
// RUN: ssa-run %s --in uniform:1000 --cores=3 --progress-after=1000 2>&1 | FileCheck %s --check-prefix=QUIET
// CHECK: {{^ *[0-9]+}} % of linalg.generic, {{[0-9]+}} s{{$}}
// CHECK: result 0: tensor<9000xf32>, min [[X:.*]], max [[X]], mean
// QUIET-NOT: % of
// QUIET: result 0:

func.func @progress(%x: tensor<?xf32>) -> tensor<9000xf32> {
  %zero = arith.constant dense<0.0> : tensor<9000xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (m)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?xf32>) outs(%zero : tensor<9000xf32>) {
  ^bb0(%v: f32, %sum: f32):
    %p = math.powf %v, %v : f32
    %q = math.erfc %p : f32
    %s = arith.addf %sum, %q : f32
    linalg.yield %s : f32
  } -> tensor<9000xf32>
  return %r : tensor<9000xf32>
}
