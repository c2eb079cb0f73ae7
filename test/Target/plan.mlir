// RUN: ssa-opt %s --emit=plan --chip=sm_90a | FileCheck %s --match-full-lines --strict-whitespace
// Plans hold what docs/bundle.md says. Each function shows one part of it.

!any = memref<?x4x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xbf16, #gpu.address_space<workgroup>>, swizzle = swizzle_128b, l2promo = l2promo_256b,
  oob = zero, interleave = none>

module attributes {gpu.container_module} {

//      CHECK:{
// CHECK-NEXT:  "chip": "sm_90a",
// CHECK-NEXT:  "entries": [

// Sizes, strides and scalars of arguments; a check; a result with strides of the caller's choice, from which only launches are computed.
// CHECK-NEXT:    {
// CHECK-NEXT:      "entry": "arguments",
// CHECK-NEXT:      "arguments": [
// CHECK-NEXT:        {"name":"x","dtype":"bf16","shape":[null,4,null,64],"strides":[null,null,null,1],"alignment":16,"access":"read"},
// CHECK-NEXT:        {"name":"len","dtype":"i32","shape":[null],"strides":"contiguous","alignment":4,"access":"none"},
// CHECK-NEXT:        {"name":"n","scalar":"i32"},
// CHECK-NEXT:        {"name":"scale","scalar":"f32"}
// CHECK-NEXT:      ],
// CHECK-NEXT:      "results": [
// CHECK-NEXT:        {"name":"o","dtype":"bf16","shape":[1,2,3,4],"strides":"any","alignment":16,"buffer":2}
// CHECK-NEXT:      ],
// CHECK-NEXT:      "values": [
// CHECK-NEXT:        ["const",0],
// CHECK-NEXT:        ["dim",0,0],
// CHECK-NEXT:        ["const",4],
// CHECK-NEXT:        ["dim",0,2],
// CHECK-NEXT:        ["const",64],
// CHECK-NEXT:        ["stride",0,0],
// CHECK-NEXT:        ["stride",0,1],
// CHECK-NEXT:        ["stride",0,2],
// CHECK-NEXT:        ["const",1],
// CHECK-NEXT:        ["dim",1,0],
// CHECK-NEXT:        ["scalar",2],
// CHECK-NEXT:        ["const",128],
// CHECK-NEXT:        ["mul",1,3],
// CHECK-NEXT:        ["ceildiv",12,11],
// CHECK-NEXT:        ["result_stride",0,0],
// CHECK-NEXT:        ["result_stride",0,1],
// CHECK-NEXT:        ["result_stride",0,2]
// CHECK-NEXT:      ],
// CHECK-NEXT:      "inputs": 14,
// CHECK-NEXT:      "checks": [
// CHECK-NEXT:        {"equal":[1,9],"message":"dimension 0 of 'len' must be dimension 0 of 'x'"},
// CHECK-NEXT:        {"at_most":[10,3],"message":"'n' must be at most dimension 2 of 'x'"}
// CHECK-NEXT:      ],
// CHECK-NEXT:      "buffers": [
// CHECK-NEXT:        {"argument":0,"dtype":"bf16","shape":[1,2,3,4],"strides":[5,6,7,8]},
// CHECK-NEXT:        {"argument":1,"dtype":"i32","shape":[9],"strides":[8]},
// CHECK-NEXT:        {"result":0,"dtype":"bf16","shape":[1,2,3,4],"strides":[14,15,16,8]}
// CHECK-NEXT:      ],
// CHECK-NEXT:      "workspace": {"bytes":0,"alignment":256},
// CHECK-NEXT:      "launches": [
// CHECK-NEXT:        {"kernel":"copy","grid":[13,8,8],"block":[128,1,1],"shared":0,"arguments":{{[[][[]}}"pointer",0],["pointer",0],["i64",0],["i64",1],["i64",2],["i64",3],["i64",4],["i64",5],["i64",6],["i64",7],["i64",8],["pointer",2],["pointer",2],["i64",0],["i64",1],["i64",2],["i64",3],["i64",4],["i64",14],["i64",15],["i64",16],["i64",8],["i32",10],["f32",{"argument":3}]],"after":[],"reads":[0],"writes":[2]}
// CHECK-NEXT:      ]
// CHECK-NEXT:    },
func.func @arguments(%x: !any {ssa.alignment = 16 : i64}, %len: memref<?xi32>, %n: i32, %scale: f32) -> (!any {ssa.name = "o"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c128 = arith.constant 128 : index
  %b = memref.dim %x, %c0 : !any
  %m = memref.dim %x, %c2 : !any
  %lens = memref.dim %len, %c0 : memref<?xi32>
  %same = arith.cmpi eq, %b, %lens : index
  cf.assert %same, "dimension 0 of 'len' must be dimension 0 of 'x'"
  %ni = arith.index_cast %n : i32 to index
  %fits = arith.cmpi sge, %m, %ni : index
  cf.assert %fits, "'n' must be at most dimension 2 of 'x'"
  %alloc = memref.alloc(%b, %m) : memref<?x4x?x64xbf16>
  %o = memref.cast %alloc : memref<?x4x?x64xbf16> to !any
  %rows = arith.muli %b, %m : index
  %grid = arith.ceildivsi %rows, %c128 : index
  gpu.launch_func @kernels::@copy blocks in (%grid, %c1, %c1) threads in (%c128, %c1, %c1) args(%x : !any, %o : !any, %n : i32, %scale : f32)
  return %o : !any
}

// Two buffers of workspace, laid out behind each other; launches that read what others write come after them, and independent ones do
// not. The third result is a part of an argument.
// CHECK-NEXT:    {
// CHECK-NEXT:      "entry": "workspace",
// CHECK-NEXT:      "arguments": [
// CHECK-NEXT:        {"name":"x","dtype":"f32","shape":[null],"strides":"contiguous","alignment":4,"access":"read"}
// CHECK-NEXT:      ],
// CHECK-NEXT:      "results": [
// CHECK-NEXT:        {"name":"result0","dtype":"f32","shape":[1],"strides":"contiguous","alignment":4,"buffer":3},
// CHECK-NEXT:        {"name":"result1","dtype":"f32","shape":[1],"strides":"contiguous","alignment":4,"buffer":3},
// CHECK-NEXT:        {"name":"result2","dtype":"f32","shape":[9],"strides":"any","alignment":4,"buffer":4}
// CHECK-NEXT:      ],
// CHECK-NEXT:      "values": [
// CHECK-NEXT:        ["const",0],
// CHECK-NEXT:        ["dim",0,0],
// CHECK-NEXT:        ["const",1],
// CHECK-NEXT:        ["const",256],
// CHECK-NEXT:        ["const",4],
// CHECK-NEXT:        ["mul",1,4],
// CHECK-NEXT:        ["ceildiv",5,3],
// CHECK-NEXT:        ["mul",6,3],
// CHECK-NEXT:        ["add",7,7],
// CHECK-NEXT:        ["const",2],
// CHECK-NEXT:        ["const",20]
// CHECK-NEXT:      ],
// CHECK-NEXT:      "inputs": 11,
// CHECK-NEXT:      "checks": [],
// CHECK-NEXT:      "buffers": [
// CHECK-NEXT:        {"argument":0,"dtype":"f32","shape":[1],"strides":[2]},
// CHECK-NEXT:        {"workspace":0,"dtype":"f32","shape":[1],"strides":[2]},
// CHECK-NEXT:        {"workspace":7,"dtype":"f32","shape":[1],"strides":[2]},
// CHECK-NEXT:        {"result":0,"dtype":"f32","shape":[1],"strides":[2]},
// CHECK-NEXT:        {"view":0,"offset":10,"dtype":"f32","shape":[9],"strides":[9]}
// CHECK-NEXT:      ],
// CHECK-NEXT:      "workspace": {"bytes":8,"alignment":256},
// CHECK-NEXT:      "launches": [
// CHECK-NEXT:        {"kernel":"add",{{.*}}["f32",1.5]],"after":[],"reads":[0],"writes":[1]},
// CHECK-NEXT:        {"kernel":"add",{{.*}}["f32","-inf"]],"after":[],"reads":[0],"writes":[2]},
// CHECK-NEXT:        {"kernel":"add",{{.*}}["f32","nan"]],"after":[0],"reads":[1],"writes":[3]},
// CHECK-NEXT:        {"kernel":"add",{{.*}}["f32",1.5]],"after":[1,2],"reads":[2],"writes":[3]}
// CHECK-NEXT:      ]
// CHECK-NEXT:    },
func.func @workspace(%x: memref<?xf32>) -> (memref<?xf32>, memref<?xf32>, memref<2xf32, strided<[2], offset: 5>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f = arith.constant 1.5 : f32
  %inf = arith.constant 0xFF800000 : f32
  %nan = arith.constant 0x7FC00000 : f32
  %n = memref.dim %x, %c0 : memref<?xf32>
  %a = memref.alloc(%n) : memref<?xf32>
  %b = memref.alloc(%n) : memref<?xf32>
  %o = memref.alloc(%n) : memref<?xf32>
  gpu.launch_func @kernels::@add blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xf32>, %a : memref<?xf32>, %f : f32)
  gpu.launch_func @kernels::@add blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xf32>, %b : memref<?xf32>, %inf : f32)
  gpu.launch_func @kernels::@add blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<?xf32>, %o : memref<?xf32>, %nan : f32)
  gpu.launch_func @kernels::@add blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1) args(%b : memref<?xf32>, %o : memref<?xf32>, %f : f32)
  %part = memref.subview %x[5] [2] [2] : memref<?xf32> to memref<2xf32, strided<[2], offset: 5>>
  memref.dealloc %a : memref<?xf32>
  return %o, %o, %part : memref<?xf32>, memref<?xf32>, memref<2xf32, strided<[2], offset: 5>>
}

// A launch under conditions, and launches in a loop.
//      CHECK:      "entry": "structure",
//      CHECK:      "values": [
// CHECK-NEXT:        ["const",0],
// CHECK-NEXT:        ["dim",0,0],
// CHECK-NEXT:        ["const",1],
// CHECK-NEXT:        ["const",100],
// CHECK-NEXT:        ["cmp","sgt",1,3],
// CHECK-NEXT:        ["cmp","eq",4,0],
// CHECK-NEXT:        ["ceildiv",1,3],
// CHECK-NEXT:        ["index",0],
// CHECK-NEXT:        ["mul",7,3],
// CHECK-NEXT:        ["sub",1,8],
// CHECK-NEXT:        ["min",9,3]
// CHECK-NEXT:      ],
// CHECK-NEXT:      "inputs": 7,
//      CHECK:      "repeats": [
// CHECK-NEXT:        {"count":6,"values":[7,11],"launches":[2,3]}
// CHECK-NEXT:      ],
// CHECK-NEXT:      "launches": [
// CHECK-NEXT:        {"kernel":"add",{{.*}},"after":[],"if":4,"reads":[0],"writes":[1]},
// CHECK-NEXT:        {"kernel":"add",{{.*}},"after":[0],"if":5,"reads":[0],"writes":[1]},
// CHECK-NEXT:        {"kernel":"add_part","grid":[10,2,2],{{.*}},"arguments":{{[[][[]}}"pointer",0],["pointer",0],["i64",8],["i64",10],["i64",2],{{.*}},"after":[1],"reads":[0],"writes":[1]}
// CHECK-NEXT:      ]
// CHECK-NEXT:    },
func.func @structure(%x: memref<?xf32>) -> memref<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  %f = arith.constant 1.5 : f32
  %n = memref.dim %x, %c0 : memref<?xf32>
  %o = memref.alloc(%n) : memref<?xf32>
  %many = arith.cmpi sgt, %n, %c100 : index
  scf.if %many {
    gpu.launch_func @kernels::@add blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xf32>, %o : memref<?xf32>, %f : f32)
  } else {
    gpu.launch_func @kernels::@add blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xf32>, %o : memref<?xf32>, %f : f32)
  }
  scf.for %i = %c0 to %n step %c100 {
    %rest = arith.subi %n, %i : index
    %m = arith.minsi %rest, %c100 : index
    %part = memref.subview %x[%i] [%m] [1] : memref<?xf32> to memref<?xf32, strided<[1], offset: ?>>
    %out = memref.subview %o[%i] [%m] [1] : memref<?xf32> to memref<?xf32, strided<[1], offset: ?>>
    gpu.launch_func @kernels::@add_part blocks in (%m, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%part : memref<?xf32, strided<[1], offset: ?>>, %out : memref<?xf32, strided<[1], offset: ?>>, %f : f32)
  }
  return %o : memref<?xf32>
}

// A tensor map of the two inner dimensions, and shared memory that depends on a size.
//      CHECK:      "entry": "tensor_map",
//      CHECK:        {"name":"x","dtype":"bf16","shape":[null,4,null,64],"strides":[null,null,null,1],"alignment":16,"access":"read"}
//      CHECK:      "buffers": [
// CHECK-NEXT:        {"argument":0,"dtype":"bf16","shape":[1,2,3,4],"strides":[5,6,7,8]},
// CHECK-NEXT:        {"view":0,"offset":12,"dtype":"bf16","shape":[3,4],"strides":[7,8]}
// CHECK-NEXT:      ],
//      CHECK:      "tensormaps": [
// CHECK-NEXT:        {"buffer":1,"box":[64,64],"swizzle":"128b","l2_promotion":"256b","fill":"zero","interleave":"none"}
// CHECK-NEXT:      ],
// CHECK-NEXT:      "launches": [
// CHECK-NEXT:        {"kernel":"prefetch","grid":[8,8,8],"block":[32,1,1],"shared":{{[0-9]+}},"cluster":[2,1,1],"arguments":{{[[][[]}}"tensormap",0]],"after":[],"reads":[0],"writes":[]}
// CHECK-NEXT:      ]
// CHECK-NEXT:    }
func.func @tensor_map(%x: !any) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %m = memref.dim %x, %c2 : !any
  %bytes = arith.muli %m, %c128 : index
  %shared = arith.index_cast %bytes : index to i32
  %rows = memref.subview %x[0, 1, 0, 0] [1, 1, %m, 64] [1, 1, 1, 1] : !any to memref<?x64xbf16, strided<[?, 1], offset: ?>>
  %unranked = memref.cast %rows : memref<?x64xbf16, strided<[?, 1], offset: ?>> to memref<*xbf16>
  %map = nvgpu.tma.create.descriptor %unranked box[%c64, %c64] : memref<*xbf16> -> !map
  gpu.launch_func @kernels::@prefetch clusters in (%c2, %c1, %c1) blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
    dynamic_shared_memory_size %shared args(%map : !map)
  return
}

// CHECK-NEXT:  ]
// CHECK-NEXT:}

gpu.module @kernels {
  gpu.func @copy(%x: !any, %o: !any, %n: i32, %scale: f32) kernel {
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %column = arith.index_cast %n : i32 to index
    %v = vector.load %x[%c0, %c0, %b, %column] : !any, vector<8xbf16>
    %s = arith.truncf %scale : f32 to bf16
    %all = vector.broadcast %s : bf16 to vector<8xbf16>
    %scaled = arith.mulf %v, %all : vector<8xbf16>
    vector.store %scaled, %o[%c0, %c0, %b, %column] : !any, vector<8xbf16>
    gpu.return
  }
  gpu.func @add(%x: memref<?xf32>, %o: memref<?xf32>, %f: f32) kernel {
    %b = gpu.block_id x
    %0 = memref.load %x[%b] : memref<?xf32>
    %1 = arith.addf %0, %f : f32
    memref.store %1, %o[%b] : memref<?xf32>
    gpu.return
  }
  gpu.func @add_part(%x: memref<?xf32, strided<[1], offset: ?>>, %o: memref<?xf32, strided<[1], offset: ?>>, %f: f32) kernel {
    %b = gpu.block_id x
    %0 = memref.load %x[%b] : memref<?xf32, strided<[1], offset: ?>>
    %1 = arith.addf %0, %f : f32
    memref.store %1, %o[%b] : memref<?xf32, strided<[1], offset: ?>>
    gpu.return
  }
  gpu.func @prefetch(%map: !map) kernel {
    nvgpu.tma.prefetch.descriptor %map : !map
    gpu.return
  }
}
}
