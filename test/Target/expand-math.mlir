// RUN: ssa-opt %s -split-input-file -verify-diagnostics -pass-pipeline='builtin.module(gpu.module(ssa-nvptx-expand-math))' | FileCheck %s

gpu.module @functions {
  // The chip's approximation alone.
  // CHECK-LABEL: gpu.func @exp_approximate
  // CHECK: %[[T:.*]] = arith.mulf
  // CHECK-NEXT: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"(%[[T]])
  // CHECK-NEXT: gpu.return
  gpu.func @exp_approximate(%x: f32) {
    %0 = math.exp %x fastmath<afn> : f32
    gpu.return
  }

  // The argument is reduced first.
  // CHECK-LABEL: gpu.func @exp
  // CHECK-COUNT-3: llvm.intr.fma
  // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"
  // CHECK-NOT: math.
  gpu.func @exp(%x: f32) {
    %0 = math.exp %x : f32
    gpu.return
  }

  // Results below the normal range stay.
  // CHECK-LABEL: gpu.func @exp2
  // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx"(
  gpu.func @exp2(%x: f32) {
    %0 = math.exp2 %x : f32
    gpu.return
  }

  // Only the instruction is called element by element.
  // CHECK-LABEL: gpu.func @vector
  // CHECK: arith.mulf %{{.*}} : vector<4xf32>
  // CHECK-COUNT-4: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"
  // CHECK: vector.from_elements
  gpu.func @vector(%x: vector<4xf32>) {
    %0 = math.exp %x fastmath<afn> : vector<4xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @matrix
  // CHECK: vector.shape_cast %{{.*}} : vector<2x3xf32> to vector<6xf32>
  // CHECK: llvm.call_intrinsic "llvm.sqrt"(%{{.*}}) : (vector<6xf32>) -> vector<6xf32>
  // CHECK: vector.shape_cast %{{.*}} : vector<6xf32> to vector<2x3xf32>
  gpu.func @matrix(%x: vector<2x3xf32>) {
    %0 = math.sqrt %x : vector<2x3xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @narrow
  // CHECK: arith.extf %{{.*}} : bf16 to f32
  // CHECK: llvm.nvvm.rsqrt.approx.f
  // CHECK: arith.truncf %{{.*}} : f32 to bf16
  gpu.func @narrow(%x: bf16) {
    %0 = math.rsqrt %x : bf16
    gpu.return
  }

  // CHECK-LABEL: gpu.func @tanh_approximate
  // CHECK: llvm.inline_asm "tanh.approx.f32 $0, $1;"
  gpu.func @tanh_approximate(%x: f32) {
    %0 = math.tanh %x fastmath<afn> : f32
    gpu.return
  }

  // What upstream would turn into calls of a library.
  // CHECK-LABEL: gpu.func @libraries
  // CHECK-DAG: "llvm.maxnum"
  // CHECK-DAG: "llvm.nvvm.ex2.approx"
  // CHECK-NOT: arith.remf
  gpu.func @libraries(%x: f32, %y: f32) {
    %0 = arith.maxnumf %x, %y : f32
    %1 = llvm.intr.exp2(%x) : (f32) -> f32
    %2 = arith.remf %x, %y : f32
    gpu.return
  }
}

// -----

gpu.module @unsupported {
  gpu.func @f(%x: f64, %i: i32, %n: index) {
    // expected-error @below {{'math.exp' op has no device code for 'f64'}}
    %0 = math.exp %x : f64
    gpu.return
  }
}

// -----

gpu.module @unsupported {
  gpu.func @f(%i: i32) {
    // expected-error @below {{'math.ipowi' op has no device code for 'i32'}}
    %0 = math.ipowi %i, %i : i32
    gpu.return
  }
}

// -----

gpu.module @unsupported {
  gpu.func @f(%n: index) {
    // expected-error @below {{'math.absi' op has no device code for 'index'; cast it to 'i64'}}
    %0 = math.absi %n : index
    gpu.return
  }
}
