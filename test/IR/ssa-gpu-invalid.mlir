// RUN: ssa-opt %s --split-input-file --verify-diagnostics

func.func @threads() {
  // expected-error @below {{expected the threads of a role to be a multiple of 128, but got 96}}
  ssa_gpu.roles threads [128, 96] registers [232, 40] {
  }, {
  }
  return
}

// -----

func.func @registers() {
  // expected-error @below {{expected the registers of a role to be a multiple of 8 in 24 .. 256, but got 300}}
  ssa_gpu.roles threads [128, 128] registers [300, 40] {
  }, {
  }
  return
}

// -----

func.func @programs() {
  // expected-error @below {{expected threads and registers for 1 programs, but got 2 and 1}}
  ssa_gpu.roles threads [128, 128] registers [40] {
  }
  return
}

// -----

// expected-error @below {{expected at least 1 slot, but got 0}}
func.func private @slots(!ssa_gpu.pipe<0>)

// -----

!tile = !ssa_gpu.shared<64x64xbf16>
func.func @async(%lhs: !tile, %rhs: !tile, %sum: tensor<64x64xf32, #ssa_gpu.accumulator>) {
  // expected-error @below {{expected 'wgmma', as 'async' needs it}}
  %r = ssa_gpu.mma mma_sync async %lhs, transposed %rhs, %sum : !tile, !tile, tensor<64x64xf32, #ssa_gpu.accumulator>
  return
}

// -----

!tile = !ssa_gpu.shared<64x64xbf16>
!sum = tensor<64x64xf32, #ssa_gpu.accumulator<groups = 2>>
func.func @groups(%lhs: !tile, %rhs: !tile, %sum: !sum) {
  // expected-error @below {{expected the columns of a group to be a multiple of 64, but got 64 for 2 groups}}
  %r = ssa_gpu.mma wgmma %lhs, %rhs, %sum : !tile, !tile, !sum
  return
}

// -----

!tile = !ssa_gpu.shared<64x64xbf16>
func.func @places(%source: memref<?x64xbf16>, %places: tensor<64xi64, #ssa_gpu.places<16>>, %tile: !tile) {
  // expected-error @below {{expected places of the rows of '!ssa_gpu.shared<64x64xbf16>', of 8 elements a piece, but got 'tensor<64xi64, #ssa_gpu.places<16>>'}}
  ssa_gpu.copy_rows %source at %places to %tile {columns = 64 : i64, width = 8 : i64} : memref<?x64xbf16>, tensor<64xi64, #ssa_gpu.places<16>>, !tile
  return
}

// -----

func.func @width(%target: memref<?x64xbf16>, %tile: tensor<64x64xf32, #ssa_gpu.accumulator>) {
  // expected-error @below {{expected a width of 1, 2 or 8 that divides 64 columns, but got 4}}
  ssa_gpu.store_rows %tile to %target {
  ^bb0(%row: i32):
    %at = arith.index_cast %row : i32 to index
    %true = arith.constant true
    ssa_gpu.yield %at, %true : index, i1
  } {columns = 64 : i64, width = 4 : i64} : tensor<64x64xf32, #ssa_gpu.accumulator>, memref<?x64xbf16>
  return
}
