// RUN: ssa-opt %s --emit=plan --chip=sm_90a | FileCheck %s
// A tensor map may begin rows before its buffer: 4 rows of 64 elements of 2 bytes.

!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xbf16, #gpu.address_space<workgroup>>, swizzle = swizzle_128b, l2promo = l2promo_256b,
  oob = zero, interleave = none>

module attributes {gpu.container_module} {

// CHECK: "values": [
// CHECK: ["const",64],
// CHECK-NEXT: ["const",1],
// CHECK-NEXT: ["const",-512]
// CHECK: {"view":0,"offset":4,"dtype":"bf16","shape":[1,2],"strides":[2,3]}
// CHECK: "tensormaps": [
// CHECK-NEXT: {"buffer":1,"box":[64,64]
func.func @tensor_map(%x: memref<?x64xbf16>) {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %unranked = memref.cast %x : memref<?x64xbf16> to memref<*xbf16>
  %map = nvgpu.tma.create.descriptor %unranked box[%c64, %c64] {ssa.rows_before = 4 : i64} : memref<*xbf16> -> !map
  gpu.launch_func @kernels::@prefetch blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%map : !map)
  return
}

gpu.module @kernels {
  gpu.func @prefetch(%map: !map) kernel {
    nvgpu.tma.prefetch.descriptor %map : !map
    gpu.return
  }
}
}
