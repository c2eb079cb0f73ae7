// RUN: ssa-opt %s --ssa-attach-target=chip=sm_90a --ssa-dependent-launches | FileCheck %s
// RUN: ssa-opt %s --ssa-attach-target=chip=sm_89 --ssa-dependent-launches | FileCheck %s --check-prefix=NONE
// RUN: ssa-opt %s --emit=plan --chip=sm_90a | FileCheck %s --check-prefix=PLAN

// A kernel waits before it does anything else. Of older chips, and of modules that do not say so (emit.mlir), nothing changes.
// NONE-NOT: griddepcontrol
// NONE-NOT: ssa.dependent{{ }}
// PLAN: "kernel":"twice"{{.*}}"dependent":true
module attributes {gpu.container_module, ssa.dependent_launches} {
  gpu.module @kernels {
    // CHECK: gpu.func @twice
    // CHECK-NEXT: llvm.inline_asm has_side_effects {{.*}}"griddepcontrol.wait;", "~{memory}"
    // CHECK-NEXT: llvm.inline_asm has_side_effects {{.*}}"griddepcontrol.launch_dependents;"
    gpu.func @twice(%x: memref<?xf32>) kernel {
      %i = gpu.thread_id x
      %a = memref.load %x[%i] : memref<?xf32>
      %b = arith.addf %a, %a : f32
      memref.store %b, %x[%i] : memref<?xf32>
      gpu.return
    }
    gpu.func @helper() {
      // CHECK: gpu.func @helper
      // CHECK-NEXT: gpu.return
      gpu.return
    }
  }
  // CHECK: gpu.launch_func {{.*}}ssa.dependent
  func.func @f(%x: memref<?xf32>) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    gpu.launch_func @kernels::@twice blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%x : memref<?xf32>)
    return
  }

  // Runs in lanes are on several streams: where one waits for others a launch depends on more than the one before.
  // CHECK-LABEL: func.func @lanes
  // CHECK: gpu.launch_func {{.*}}ssa.dependent
  // CHECK: scf.for
  // CHECK-NEXT: gpu.launch_func
  // CHECK-NOT: ssa.dependent
  // CHECK: gpu.launch_func {{.*}}ssa.dependent
  // CHECK: ssa.lanes = 2
  // CHECK-NEXT: gpu.launch_func
  // CHECK-NOT: ssa.dependent
  // CHECK: gpu.launch_func {{.*}}ssa.dependent
  func.func @lanes(%x: memref<?xf32>, %n: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    gpu.launch_func @kernels::@twice blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%x : memref<?xf32>)
    gpu.launch_func @kernels::@twice blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%x : memref<?xf32>)
    scf.for %i = %c0 to %n step %c1 {
      gpu.launch_func @kernels::@twice blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%x : memref<?xf32>)
      gpu.launch_func @kernels::@twice blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%x : memref<?xf32>)
    } {ssa.lanes = 2 : i64}
    gpu.launch_func @kernels::@twice blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%x : memref<?xf32>)
    gpu.launch_func @kernels::@twice blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%x : memref<?xf32>)
    return
  }
}
