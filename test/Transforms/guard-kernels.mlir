// RUN: ssa-opt %s --split-input-file --verify-diagnostics --ssa-guard-kernels | FileCheck %s

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: gpu.func @where_set
    //       CHECK:   %[[FLAG:.*]] = memref.load %{{.*}}[%{{.*}}] : memref<1xi1>
    //  CHECK-NEXT:   cf.cond_br %[[FLAG]], ^[[WORK:.*]], ^[[LEAVE:.*]]
    //  CHECK-NEXT: ^[[WORK]]:
    //       CHECK:   memref.store
    //       CHECK:   gpu.return
    //  CHECK-NEXT: ^[[LEAVE]]:
    //  CHECK-NEXT:   gpu.return
    gpu.func @where_set(%x: memref<?xf32>, %flag: memref<1xi1>) kernel attributes {ssa.when = #ssa.when<argument = 1, is = true>} {
      %i = gpu.thread_id x
      %zero = arith.constant 0.0 : f32
      memref.store %zero, %x[%i] : memref<?xf32>
      gpu.return
    }

    // CHECK-LABEL: gpu.func @where_not_set
    //       CHECK:   cf.cond_br %{{.*}}, ^[[LEAVE:.*]], ^[[WORK:.*]]
    //  CHECK-NEXT: ^[[WORK]]:
    //       CHECK:   memref.store
    gpu.func @where_not_set(%flag: memref<1xi1>, %x: memref<?xf32>) kernel attributes {ssa.when = #ssa.when<argument = 0, is = false>} {
      %i = gpu.thread_id x
      %zero = arith.constant 0.0 : f32
      memref.store %zero, %x[%i] : memref<?xf32>
      gpu.return
    }

    // CHECK-LABEL: gpu.func @always
    //  CHECK-NEXT:   gpu.return
    gpu.func @always(%flag: memref<1xi1>) kernel {
      gpu.return
    }
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{'gpu.func' op expected argument 0 to be a buffer of rank 1 with elements of i1, as 'ssa.when' says}}
  gpu.func @kind(%x: memref<1xf32>) kernel attributes {ssa.when = #ssa.when<argument = 0, is = true>} {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{'gpu.func' op expected argument 1 to be a buffer of rank 1 with elements of i1, as 'ssa.when' says}}
  gpu.func @number(%x: memref<1xi1>) kernel attributes {ssa.when = #ssa.when<argument = 1, is = true>} {
    gpu.return
  }
}
