// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s -pass-pipeline='builtin.module(gpu.module(ssa-nvptx-convert))' | FileCheck %s

// Structured control flow, ops that are inline assembly and buffers become LLVM's in this one pass. What is read of a buffer are arguments of
// the kernel: no descriptor is put together to be taken apart.
gpu.module @kernels {
  // CHECK-LABEL: llvm.func @sum(
  // CHECK-SAME: %{{.*}}: !llvm.ptr, %[[BASE:[a-z0-9]+]]: !llvm.ptr, %[[OFFSET:[a-z0-9]+]]: i64, %{{[a-z0-9]+}}: i64, %[[STRIDE:[a-z0-9]+]]: i64, %[[N:[a-z0-9]+]]: i64, %[[C:[a-z0-9]+]]: i1)
  // CHECK-NOT: insertvalue
  // CHECK-NOT: extractvalue
  // CHECK-NOT: scf
  // CHECK: llvm.icmp "slt" %{{.*}}, %[[N]]
  // CHECK: llvm.cond_br
  // CHECK: llvm.getelementptr %[[BASE]][%[[OFFSET]]]
  // CHECK: llvm.mul %{{.*}}, %[[STRIDE]]
  // CHECK: llvm.cond_br %[[C]]
  // CHECK: llvm.inline_asm {{.*}}bar.arrive
  // CHECK-NOT: unrealized_conversion_cast
  // CHECK: llvm.return
  gpu.func @sum(%x: memref<?xf32, strided<[?], offset: ?>>, %n: index, %c: i1) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %id = arith.constant 1 : i32
    %threads = arith.constant 128 : i32
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%carried = %zero) -> f32 {
      %v = memref.load %x[%i] : memref<?xf32, strided<[?], offset: ?>>
      %s = arith.addf %carried, %v : f32
      scf.yield %s : f32
    }
    scf.if %c {
      nvvm.barrier.arrive id = %id number_of_threads = %threads
      memref.store %sum, %x[%c0] : memref<?xf32, strided<[?], offset: ?>>
    }
    gpu.return
  }

  // What is known of numbers is kept.
  // CHECK-LABEL: llvm.func @numbers(
  // CHECK-SAME: %{{.*}}: !llvm.ptr, %[[BASE:[a-z0-9]+]]: !llvm.ptr, {{.*}} %[[A:[a-z0-9]+]]: i32, %[[B:[a-z0-9]+]]: i32, %[[F:[a-z0-9]+]]: f32)
  // CHECK: %[[SUM:.*]] = llvm.add %[[A]], %[[B]] overflow<nsw> : i32
  // CHECK: %[[PART:.*]] = llvm.udiv exact %[[SUM]], %[[B]] : i32
  // CHECK: %[[LESS:.*]] = llvm.icmp "ult" %[[A]], %[[PART]] : i32
  // CHECK: %[[TWICE:.*]] = llvm.fadd %[[F]], %[[F]] {fastmathFlags = #llvm.fastmath<contract>} : f32
  // CHECK: %[[IS:.*]] = llvm.fcmp "une" %[[TWICE]], %[[F]] : f32
  // CHECK: %[[BOTH:.*]] = llvm.and %[[LESS]], %[[IS]] : i1
  // CHECK: llvm.select %[[BOTH]], %[[TWICE]], %[[F]] : i1, f32
  gpu.func @numbers(%x: memref<?xf32>, %a: i32, %b: i32, %f: f32) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %sum = arith.addi %a, %b overflow<nsw> : i32
    %part = arith.divui %sum, %b exact : i32
    %less = arith.cmpi ult, %a, %part : i32
    %twice = arith.addf %f, %f fastmath<contract> : f32
    %is = arith.cmpf une, %twice, %f : f32
    %both = arith.andi %less, %is : i1
    %s = arith.select %both, %twice, %f : f32
    %i = arith.index_cast %a : i32 to index
    memref.store %s, %x[%i] : memref<?xf32>
    gpu.return
  }
}
