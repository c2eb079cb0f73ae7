// RUN: ssa-opt %s --emit=plan --chip=sm_90a | FileCheck %s
// RUN: ssa-opt %s --emit=ptx --chip=sm_90a | FileCheck %s --check-prefix=PTX

// Launches of both branches are there, whatever the flag is: their kernels look at it. What a branch allocates lies where the other one has its memory:
// 512 bytes behind those of the flag.
// CHECK: ["const",256],
// CHECK: ["const",768]
// CHECK: "buffers": [
// CHECK: {"workspace":0,"dtype":"i1",
// CHECK: {"workspace":3,"dtype":"f32","shape":[4],
// CHECK: {"workspace":3,"dtype":"f32","shape":[5],
// CHECK: "workspace": {"bytes":6,"alignment":256}
// CHECK-NOT: "when"
// CHECK: "kernel":"few"{{.*}}"after":[0],"when":{"buffer":1,"is":true},"reads":[1],"writes":[2]}
// CHECK: "kernel":"many"{{.*}}"after":[0],"when":{"buffer":1,"is":false},"reads":[1],"writes":[3]}

// PTX: .entry few(
// PTX: ld.global{{.*}}8
// PTX: bra
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @look(%flag: memref<1xi1>) kernel {
      %c0 = arith.constant 0 : index
      %true = arith.constant true
      memref.store %true, %flag[%c0] : memref<1xi1>
      gpu.return
    }
    gpu.func @few(%flag: memref<1xi1>, %x: memref<64xf32>) kernel attributes {ssa.when = #ssa.when<argument = 0, is = true>} {
      %c0 = arith.constant 0 : index
      %one = arith.constant 1.0 : f32
      memref.store %one, %x[%c0] : memref<64xf32>
      gpu.return
    }
    gpu.func @many(%flag: memref<1xi1>, %x: memref<128xf32>) kernel attributes {ssa.when = #ssa.when<argument = 0, is = false>} {
      %c0 = arith.constant 0 : index
      %one = arith.constant 1.0 : f32
      memref.store %one, %x[%c0] : memref<128xf32>
      gpu.return
    }
  }
  func.func @f(%unused: memref<?xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %flag = memref.alloc() : memref<1xi1>
    gpu.launch_func @kernels::@look blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%flag : memref<1xi1>)
    %set = memref.load %flag[%c0] : memref<1xi1>
    scf.if %set {
      %x = memref.alloc() : memref<64xf32>
      gpu.launch_func @kernels::@few blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%flag : memref<1xi1>, %x : memref<64xf32>)
    } else {
      %x = memref.alloc() : memref<128xf32>
      gpu.launch_func @kernels::@many blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%flag : memref<1xi1>, %x : memref<128xf32>)
    }
    return
  }
}
