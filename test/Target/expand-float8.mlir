// RUN: ssa-opt %s -split-input-file -verify-diagnostics -pass-pipeline='builtin.module(gpu.module(ssa-nvptx-expand-float8))' | FileCheck %s

module attributes {ssa.target = #ssa.target<sm_90a>} {
  gpu.module @instructions {
    // Two at a time.
    // CHECK-LABEL: gpu.func @extend
    // CHECK-COUNT-2: llvm.inline_asm "cvt.rn.f16x2.e4m3x2 $0, $1;", "=r,h"
    // CHECK: arith.extf %{{.*}} : vector<4xf16> to vector<4xf32>
    gpu.func @extend(%x: vector<4xf8E4M3FN>) {
      %0 = arith.extf %x : vector<4xf8E4M3FN> to vector<4xf32>
      gpu.return
    }

    // CHECK-LABEL: gpu.func @truncate
    // CHECK: %[[A:.*]] = vector.extract %[[X:.*]][0]
    // CHECK: %[[B:.*]] = vector.extract %[[X]][1]
    // CHECK: llvm.inline_asm "cvt.rn.satfinite.e5m2x2.f32 $0, $1, $2;", "=h,f,f" %[[B]], %[[A]]
    gpu.func @truncate(%x: vector<2xf32>) {
      %0 = arith.truncf %x : vector<2xf32> to vector<2xf8E5M2>
      gpu.return
    }
  }
}

// -----

module attributes {ssa.target = #ssa.target<sm_80>} {
  gpu.module @arithmetic {
    // CHECK-LABEL: gpu.func @extend
    // CHECK-NOT: llvm.inline_asm
    // CHECK: arith.mulf %{{.*}} : vector<1xf16>
    gpu.func @extend(%x: f8E4M3FN) {
      %0 = arith.extf %x : f8E4M3FN to bf16
      gpu.return
    }
  }
}

// -----

module attributes {ssa.target = #ssa.target<sm_80>} {
  gpu.module @missing {
    gpu.func @truncate(%x: f32) {
      // expected-error @below {{'arith.truncf' op to an 8-bit float requires one of sm_89, sm_90}}
      %0 = arith.truncf %x : f32 to f8E4M3FN
      gpu.return
    }
  }
}
