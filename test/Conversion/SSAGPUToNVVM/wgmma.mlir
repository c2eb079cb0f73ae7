// RUN: ssa-opt %s --pass-pipeline='builtin.module(ssa-gpu-allocate,gpu.module(convert-ssa-gpu-to-nvvm))' -split-input-file | FileCheck %s

!tile = !ssa_gpu.shared<64x32xbf16>
!result = tensor<64x64xf32, #ssa_gpu.accumulator>

// A product is one piece of inline assembly: accumulators pass through it once, and its first step starts at 0 where the
// accumulator is 0, which then takes no registers.

// CHECK-LABEL: gpu.func @from_zero
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att
// CHECK-SAME: wgmma.fence.sync.aligned;
// CHECK-SAME: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {$0, {{.*}}, $31}, $32, $33, 0, 1, 1, 0, 0;
// CHECK-SAME: add.s64 d0, $32, 2;
// CHECK-SAME: add.s64 d1, $33, 2;
// CHECK-SAME: {$0, {{.*}}, $31}, d0, d1, 1, 1, 1, 0, 0;
// CHECK-SAME: wgmma.commit_group.sync.aligned;
// CHECK-SAME: wgmma.wait_group.sync.aligned 0;
// CHECK-NOT: llvm.inline_asm
gpu.module @kernels {
  gpu.func @from_zero() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %a = ssa_gpu.alloc : !tile
    %b = ssa_gpu.alloc : !tile
    %zero = arith.constant dense<0.0> : !result
    %r = ssa_gpu.mma wgmma %a, transposed %b, %zero : !tile, !tile, !result
    gpu.return
  }
}

// -----

!tile = !ssa_gpu.shared<32x64xf16>
!operand = tensor<64x32xf16, #ssa_gpu.operand>
!result = tensor<64x64xf32, #ssa_gpu.accumulator>

// The left operand in registers, rows as the inner dimension, an accumulator that goes in and out.

// CHECK-LABEL: gpu.func @accumulated
// CHECK: llvm.inline_asm
// CHECK-SAME: m64n64k16.f32.f16.f16 {$0, {{.*}}, $31}, {$64, $65, $66, $67}, $72, 1, 1, 1, 1;
// CHECK-SAME: add.s64 d0, $72, 128;
// CHECK-SAME: {$0, {{.*}}, $31}, {$68, $69, $70, $71}, d0, 1, 1, 1, 1;
gpu.module @kernels {
  gpu.func @accumulated() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %b = ssa_gpu.alloc : !tile
    %a = ssa_gpu.alloc : !ssa_gpu.shared<64x32xf16>
    %lhs = ssa_gpu.load_operand %a : !ssa_gpu.shared<64x32xf16> -> !operand
    %ones = arith.constant dense<1.0> : !result
    %r = ssa_gpu.mma wgmma %lhs, %b, %ones : !operand, !tile, !result
    gpu.return
  }
}

// -----

!tile = !ssa_gpu.shared<32x64xf16>
!operand = tensor<64x32xf16, #ssa_gpu.operand>
!result = tensor<64x64xf32, #ssa_gpu.accumulator>

// Where a condition says what becomes of the accumulator it goes in, and the first step asks.

// CHECK-LABEL: gpu.func @conditional
// CHECK-SAME: %[[ADDS:.*]]: i1
// CHECK: %[[NUMBER:.*]] = arith.extui %[[ADDS]] : i1 to i32
// CHECK: llvm.inline_asm
// CHECK-SAME: .reg .pred adds;
// CHECK-SAME: setp.ne.b32 adds, $73, 0;
// CHECK-SAME: m64n64k16.f32.f16.f16 {$0, {{.*}}, $31}, {$64, $65, $66, $67}, $72, adds, 1, 1, 1;
// CHECK-SAME: {$0, {{.*}}, $31}, {$68, $69, $70, $71}, d0, 1, 1, 1, 1;
// CHECK-SAME: %[[NUMBER]]
gpu.module @kernels {
  gpu.func @conditional(%adds: i1) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %b = ssa_gpu.alloc : !tile
    %a = ssa_gpu.alloc : !ssa_gpu.shared<64x32xf16>
    %lhs = ssa_gpu.load_operand %a : !ssa_gpu.shared<64x32xf16> -> !operand
    %ones = arith.constant dense<1.0> : !result
    %r = ssa_gpu.mma wgmma %lhs, %b, %ones adds %adds : !operand, !tile, !result
    gpu.return
  }
}

// -----

!keys = !ssa_gpu.shared<64x64xf8E4M3FN>
!operand = tensor<64x64xf8E4M3FN, #ssa_gpu.operand>
!result = tensor<64x64xf32, #ssa_gpu.accumulator>

// Of 8 bits: 32 columns, four in a register.

// CHECK-LABEL: gpu.func @narrow
// CHECK-COUNT-2: nvvm.ldmatrix
// CHECK-NOT: nvvm.ldmatrix
// CHECK: llvm.inline_asm
// CHECK-SAME: m64n64k32.f32.e4m3.e4m3 {$0, {{.*}}, $31}, {$32, $33, $34, $35}, $40, 0, 1, 1;
// CHECK-SAME: add.s64 d0, $40, 2;
// CHECK-SAME: {$0, {{.*}}, $31}, {$36, $37, $38, $39}, d0, 1, 1, 1;
gpu.module @kernels {
  gpu.func @narrow() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %b = ssa_gpu.alloc : !keys
    %a = ssa_gpu.alloc : !keys
    %lhs = ssa_gpu.load_operand %a : !keys -> !operand
    %zero = arith.constant dense<0.0> : !result
    %r = ssa_gpu.mma wgmma %lhs, transposed %b, %zero : !operand, !keys, !result
    gpu.return
  }
}
