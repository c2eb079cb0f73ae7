// RUN: ssa-opt %s --split-input-file --verify-diagnostics

func.func @threads() {
  // expected-error @below {{expected the threads of a role to be a multiple of 32, but got 90}}
  ssa_gpu.roles threads [128, 90] registers [232, 40] {
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
func.func @adds(%lhs: !tile, %rhs: !tile, %sum: tensor<64x64xf32, #ssa_gpu.accumulator>, %adds: i1) {
  // expected-error @below {{expected 'wgmma', as 'adds' needs it}}
  %r = ssa_gpu.mma mma_sync %lhs, transposed %rhs, %sum adds %adds : !tile, !tile, tensor<64x64xf32, #ssa_gpu.accumulator>
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

// -----

func.func @in_quads(%target: memref<?x64xf32>, %tile: tensor<64x64xf32, #ssa_gpu.accumulator>) {
  // expected-error @below {{expected with 'in_quads' a width of 8, multiples of 32 columns of a tile that is not rowwise, a target of 16 bits and no sources}}
  ssa_gpu.store_rows %tile to %target {
  ^bb0(%row: i32):
    %at = arith.index_cast %row : i32 to index
    %true = arith.constant true
    ssa_gpu.yield %at, %true : index, i1
  } {columns = 64 : i64, width = 8 : i64, in_quads} : tensor<64x64xf32, #ssa_gpu.accumulator>, memref<?x64xf32>
  return
}

// -----

func.func @source_width(%target: memref<?x64xbf16>, %tile: tensor<64x64xf32, #ssa_gpu.accumulator>, %factors: tensor<64xf32, #ssa_gpu.rows>) {
  // expected-error @below {{expected a 'source_width' of 1, 2, 4 or 8, but got 3}}
  ssa_gpu.store_rows %tile to %target plus (%target : memref<?x64xbf16>) times (%factors : tensor<64xf32, #ssa_gpu.rows>) {
  ^bb0(%row: i32):
    %at = arith.index_cast %row : i32 to index
    %true = arith.constant true
    ssa_gpu.yield %at, %true, %at : index, i1, index
  } {columns = 64 : i64, width = 8 : i64, source_width = 3 : i64} : tensor<64x64xf32, #ssa_gpu.accumulator>, memref<?x64xbf16>
  return
}

// -----

func.func @width_of_sum(%target: memref<?x63xbf16>, %tile: tensor<64x64xf32, #ssa_gpu.accumulator>, %factors: tensor<64xf32, #ssa_gpu.rows>) {
  // expected-error @below {{expected a width of 2 or 8 where rows are added, but got 1}}
  ssa_gpu.store_rows %tile to %target plus (%target : memref<?x63xbf16>) times (%factors : tensor<64xf32, #ssa_gpu.rows>) {
  ^bb0(%row: i32):
    %at = arith.index_cast %row : i32 to index
    %true = arith.constant true
    ssa_gpu.yield %at, %true, %at : index, i1, index
  } {columns = 63 : i64, width = 1 : i64} : tensor<64x64xf32, #ssa_gpu.accumulator>, memref<?x63xbf16>
  return
}

// -----

// Where the rows of a source begin is not said.
func.func @place_of_source(%target: memref<?x64xbf16>, %tile: tensor<64x64xf32, #ssa_gpu.accumulator>, %factors: tensor<64xf32, #ssa_gpu.rows>) {
  // expected-error @below {{expected a region from i32 to ('index', 'i1', 'index')}}
  ssa_gpu.store_rows %tile to %target plus (%target : memref<?x64xbf16>) times (%factors : tensor<64xf32, #ssa_gpu.rows>) {
  ^bb0(%row: i32):
    %at = arith.index_cast %row : i32 to index
    %true = arith.constant true
    ssa_gpu.yield %at, %true : index, i1
  } {columns = 64 : i64, width = 8 : i64} : tensor<64x64xf32, #ssa_gpu.accumulator>, memref<?x64xbf16>
  return
}

// -----

// expected-error @below {{expected elements of f32, f16 or bf16, but got 'i32'}}
func.func private @tensor_elements(!ssa_gpu.tensor_memory<128x64xi32>)

// -----

// expected-error @below {{expected rank 2, or 3 for a ring, but got 1}}
func.func private @tensor_rank(!ssa_gpu.tensor_memory<128xf32>)

// -----

// expected-error @below {{expected rows that are a multiple of 128 and columns that are one of 16, or 64 rows of a pair and columns that are a multiple of 32, but got 64 and 48}}
func.func private @tensor_rows(!ssa_gpu.tensor_memory<2x64x48xf32>)

// -----

func.func @pair_of_blocks(%pipe: !ssa_gpu.pipe<2>, %ticket: i32) {
  // expected-error @below {{expected a pipe with 'pair = true', as it is 'in pair', but got '!ssa_gpu.pipe<2>'}}
  ssa_gpu.await %pipe[%ticket] in pair : !ssa_gpu.pipe<2>
  return
}

// -----

func.func @columns_of_pair(%left: !ssa_gpu.shared<64x64xbf16>, %right: !ssa_gpu.shared<64x192xbf16>, %result: !ssa_gpu.tensor_memory<64x384xf32>, %adds: i1) {
  // expected-error @below {{expected of a pair a left operand in shared memory and up to 256 columns, but got '!ssa_gpu.shared<64x64xbf16>' and '!ssa_gpu.tensor_memory<64x384xf32>'}}
  ssa_gpu.mma_tensor %left, %right to %result adds %adds : !ssa_gpu.shared<64x64xbf16>, !ssa_gpu.shared<64x192xbf16>, !ssa_gpu.tensor_memory<64x384xf32>
  return
}

// -----

func.func @rows_of_box(%map: i64, %i: i32, %tile: !ssa_gpu.shared<12x64xbf16>, %pipe: !ssa_gpu.pipe<2>) {
  // expected-error @below {{expected a tile of a multiple of 8 rows, but got '!ssa_gpu.shared<12x64xbf16>'}}
  ssa_gpu.gather_box %map[%i] to %tile through %pipe[%i] {
  ^bb0(%row: i32):
    ssa_gpu.yield %row : i32
  } : i64, !ssa_gpu.shared<12x64xbf16>, !ssa_gpu.pipe<2>
  return
}

// -----

func.func @share_of_row(%tile: tensor<128x64xf32, #ssa_gpu.accumulator<rowwise = true>>, %target: memref<?xf32>) {
  // expected-error @below {{expected with 'share' all columns of a rowwise tile, but got 32 of 'tensor<128x64xf32, #ssa_gpu.accumulator<rowwise = true>>'}}
  ssa_gpu.store_rows %tile to %target {
  ^bb0(%row: i32):
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    ssa_gpu.yield %c0, %true : index, i1
  } {columns = 32 : i64, width = 8 : i64, share = 64 : i64} : tensor<128x64xf32, #ssa_gpu.accumulator<rowwise = true>>, memref<?xf32>
  return
}

// -----

func.func @tensor_columns() {
  // expected-error @below {{needs 640 columns of tensor memory, but there are 512}}
  %s, %o = ssa_gpu.alloc_tensors : !ssa_gpu.tensor_memory<3x128x128xf32>, !ssa_gpu.tensor_memory<256x128xf32>
  return
}

// -----

!tile = !ssa_gpu.shared<128x64xbf16>
func.func @tensor_types(%lhs: !tile, %rhs: !ssa_gpu.shared<64x64xf16>, %result: !ssa_gpu.tensor_memory<128x64xf32>, %adds: i1) {
  // expected-error @below {{expected tiles, of one type for a result of f32, but got '!ssa_gpu.shared<128x64xbf16>', '!ssa_gpu.shared<64x64xf16>' and '!ssa_gpu.tensor_memory<128x64xf32>'}}
  ssa_gpu.mma_tensor %lhs, transposed %rhs to %result adds %adds : !tile, !ssa_gpu.shared<64x64xf16>, !ssa_gpu.tensor_memory<128x64xf32>
  return
}

// -----

!tile = !ssa_gpu.shared<128x64xbf16>
func.func @tensor_shapes(%lhs: !tile, %rhs: !ssa_gpu.shared<64x80xbf16>, %result: !ssa_gpu.tensor_memory<128x64xf32>, %adds: i1) {
  // expected-error @below {{expected 128x80 and 80x64 as operands (the right one transposed), but got 128x64 and 80x64}}
  ssa_gpu.mma_tensor %lhs, transposed %rhs to %result adds %adds : !tile, !ssa_gpu.shared<64x80xbf16>, !ssa_gpu.tensor_memory<128x64xf32>
  return
}

// -----

!tile = !ssa_gpu.shared<128x64xbf16>
func.func @tensor_product(%lhs: !tile, %rhs: !ssa_gpu.shared<64x272xbf16>, %result: !ssa_gpu.tensor_memory<128x272xf32>, %adds: i1) {
  // expected-error @below {{expected the inner size to be a multiple of 16 and the columns of 16, at most 256, but got 64 and 272}}
  ssa_gpu.mma_tensor %lhs, %rhs to %result adds %adds : !tile, !ssa_gpu.shared<64x272xbf16>, !ssa_gpu.tensor_memory<128x272xf32>
  return
}

// -----

func.func @tensor_load(%source: !ssa_gpu.tensor_memory<128x64xf32>, %c: i32) {
  // expected-error @below {{expected a rowwise tile of f32 with 128 rows and a multiple of 16 columns of a tile, but got 'tensor<128x64xf32, #ssa_gpu.accumulator>' and '!ssa_gpu.tensor_memory<128x64xf32>'}}
  %t = ssa_gpu.load_tensor %source[%c] : !ssa_gpu.tensor_memory<128x64xf32> -> tensor<128x64xf32, #ssa_gpu.accumulator>
  return
}

// -----

func.func @tensor_load_weights(%source: !ssa_gpu.tensor_memory<128x64xbf16>, %c: i32) {
  // expected-error @below {{expected elements of f32, but got '!ssa_gpu.tensor_memory<128x64xbf16>'}}
  %t = ssa_gpu.load_tensor %source[%c] : !ssa_gpu.tensor_memory<128x64xbf16> -> tensor<128x64xf32, #ssa_gpu.accumulator<rowwise = true>>
  return
}

// -----

!rows = tensor<128xf32, #ssa_gpu.rows<rowwise = true>>
func.func @save(%rows: !rows, %array: !ssa_gpu.shared<64xf32>) {
  // expected-error @below {{expected an array with an entry for each row of the tile, but got 'tensor<128xf32, #ssa_gpu.rows<rowwise = true>>' and '!ssa_gpu.shared<64xf32>'}}
  ssa_gpu.save_rows %rows to %array : !rows, !ssa_gpu.shared<64xf32>
  return
}

// -----

!tile = !ssa_gpu.shared<128x64xf8E4M3FN>
func.func @tensor_bytes(%lhs: !tile, %rhs: !ssa_gpu.shared<64x128xf8E4M3FN>, %result: !ssa_gpu.tensor_memory<128x128xf32>, %adds: i1) {
  // expected-error @below {{expected elements of f8E4M3FN and a transposed right operand, as they have 8 bits, but got '!ssa_gpu.shared<64x128xf8E4M3FN>'}}
  ssa_gpu.mma_tensor %lhs, %rhs to %result adds %adds : !tile, !ssa_gpu.shared<64x128xf8E4M3FN>, !ssa_gpu.tensor_memory<128x128xf32>
  return
}

// -----

!tile = !ssa_gpu.shared<64x64xf8E4M3FN>
!sum = tensor<64x64xf32, #ssa_gpu.accumulator>
func.func @narrow(%lhs: !tile, %rhs: !tile, %sum: !sum) {
  // expected-error @below {{expected 'wgmma' and a transposed right operand, as elements have 8 bits}}
  %r = ssa_gpu.mma mma_sync %lhs, transposed %rhs, %sum : !tile, !tile, !sum
  return
}

// -----

!tile = !ssa_gpu.shared<64x64xbf16>
func.func @box(%map: !nvgpu.tensormap.descriptor<tensor = memref<64x64xbf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>,
               %i: i32, %tile: !tile, %pipe: !ssa_gpu.pipe<2>) {
  // expected-error @below {{expected the box to be rows of '!ssa_gpu.shared<64x64xbf16>' from a multiple of 8 on, but got 64 from 8}}
  ssa_gpu.copy_box %map[%i] to %tile through %pipe[%i] {first_row = 8 : i64}
    : !nvgpu.tensormap.descriptor<tensor = memref<64x64xbf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>, !tile, !ssa_gpu.pipe<2>
  return
}

// -----

func.func @quads_of_32_bits(%tile: !ssa_gpu.shared<64x64xf32>, %counts: tensor<64xi1, #ssa_gpu.rows>) -> tensor<64x64xf32, #ssa_gpu.accumulator> {
  // expected-error @below {{expected a tile of 16 bits and multiples of 32 columns, and as much of an accumulator that is neither rowwise nor of groups}}
  %t = ssa_gpu.load_quads %tile where %counts : !ssa_gpu.shared<64x64xf32>, tensor<64xi1, #ssa_gpu.rows> -> tensor<64x64xf32, #ssa_gpu.accumulator>
  return %t : tensor<64x64xf32, #ssa_gpu.accumulator>
}

// -----

!tile = tensor<32x64xf32, #ssa_gpu.accumulator<folds = 2>>
!rows = tensor<32xf32, #ssa_gpu.rows<folds = 2>>
func.func @change_folded(%tile: !tile, %rows: !rows, %c: i1) {
  // expected-error @below {{expected a tile whose rows are not folded}}
  %r = ssa_gpu.change_rows scale %tile by %rows unless %c : !tile, !rows
  return
}

// -----

!tile = tensor<64x64xf32, #ssa_gpu.accumulator>
!rows = tensor<64xi32, #ssa_gpu.rows>
func.func @hide_parts(%tile: !tile, %rows: !rows) {
  // expected-error @below {{expected an entry of 'last' for each of some equal parts of 64 columns, but got 3}}
  %r = ssa_gpu.hide_columns %tile to (%rows, %rows, %rows : !rows, !rows, !rows) : !tile
  return
}

// -----

!tile = tensor<64x64xf32, #ssa_gpu.accumulator<groups = 2>>
!rows = tensor<64xi32, #ssa_gpu.rows>
func.func @hide_groups(%tile: !tile, %rows: !rows) {
  // expected-error @below {{expected one part, as columns are spread over groups of warps, but got 2}}
  %r = ssa_gpu.hide_columns %tile to (%rows, %rows : !rows, !rows) : !tile
  return
}

// -----

!tile = tensor<64x64xf32, #ssa_gpu.accumulator>
!rows = tensor<64xi32, #ssa_gpu.rows>
func.func @hide_first(%tile: !tile, %rows: !rows) {
  // expected-error @below {{expected 2 of 'first', as many as of 'last', but got 1}}
  %r = ssa_gpu.hide_columns %tile to (%rows, %rows : !rows, !rows) from (%rows : !rows) : !tile
  return
}

// -----

!tile = tensor<64x64xf32, #ssa_gpu.accumulator>
!rows = tensor<64xi32, #ssa_gpu.rows>
func.func @hide_below(%tile: !tile, %rows: !rows) {
  // expected-error @below {{expected 'first', as 'below' is about columns before it}}
  %r = ssa_gpu.hide_columns %tile to (%rows : !rows) below (%rows : !rows) : !tile
  return
}
