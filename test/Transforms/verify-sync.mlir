// RUN: ssa-opt %s --pass-pipeline='builtin.module(gpu.module(ssa-gpu-verify-sync))' -split-input-file -verify-diagnostics

!ring = !ssa_gpu.shared<3x64x64xbf16>
!tile = !ssa_gpu.shared<64x64xbf16>
!places = tensor<64xi64, #ssa_gpu.places<8>>
!sum = tensor<64x64xf32, #ssa_gpu.accumulator>

// Three slots, two copies ahead: nothing to find, whatever the number of rounds and however many items.
gpu.module @kernels {
  gpu.func @ring(%source: memref<?x64xbf16>, %items: index, %rounds: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %zero = arith.constant dense<0.0> : !sum
    %block = gpu.block_id x
    %blocks = gpu.grid_dim x
    %memory = ssa_gpu.alloc : !ring
    scf.for %item = %block to %items step %blocks {
      ssa_gpu.wait_copies 0
      scf.for %s = %c0 to %c2 step %c1 : i32 {
        %isThere = arith.cmpi slt, %s, %rounds : i32
        scf.if %isThere {
          %slot = ssa_gpu.slot %memory[%s] : !ring -> !tile
          %places1 = ssa_gpu.find_rows {
          ^bb0(%row: i32):
            %at = arith.index_cast %row : i32 to index
            %reads = arith.constant true
            ssa_gpu.yield %at, %reads : index, i1
          } : !places
          ssa_gpu.copy_rows %source at %places1 to %slot {columns = 64 : i64, width = 8 : i64} : memref<?x64xbf16>, !places, !tile
        }
        ssa_gpu.commit_copies
      }
      %r = scf.for %i = %c0 to %rounds step %c1 iter_args(%sum = %zero) -> !sum : i32 {
        ssa_gpu.wait_copies 1
        %next = arith.addi %i, %c2 : i32
        %isThere = arith.cmpi slt, %next, %rounds : i32
        scf.if %isThere {
          %number = arith.remui %next, %c3 : i32
          %slot = ssa_gpu.slot %memory[%number] : !ring -> !tile
          %places2 = ssa_gpu.find_rows {
          ^bb0(%row: i32):
            %at = arith.index_cast %row : i32 to index
            %reads = arith.constant true
            ssa_gpu.yield %at, %reads : index, i1
          } : !places
          ssa_gpu.copy_rows %source at %places2 to %slot {columns = 64 : i64, width = 8 : i64} : memref<?x64xbf16>, !places, !tile
        }
        ssa_gpu.commit_copies
        %number = arith.remui %i, %c3 : i32
        %slot = ssa_gpu.slot %memory[%number] : !ring -> !tile
        %product = ssa_gpu.mma wgmma %slot, transposed %slot, %sum : !tile, !tile, !sum
        scf.yield %product : !sum
      }
    }
    gpu.return
  }
}

// -----

!tile = !ssa_gpu.shared<64x64xbf16>
!places = tensor<64xi64, #ssa_gpu.places<8>>
!operand = tensor<64x64xbf16, #ssa_gpu.operand>

// Two groups were closed since, of which the wait leaves two.
gpu.module @kernels {
  gpu.func @pending(%source: memref<?x64xbf16>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %true = arith.constant true
    // expected-note @below {{the memory is allocated here}}
    %tile = ssa_gpu.alloc : !tile
    %places3 = ssa_gpu.find_rows {
    ^bb0(%row: i32):
      %at = arith.index_cast %row : i32 to index
      ssa_gpu.yield %at, %true : index, i1
    } : !places
    // expected-note @below {{copied here by 'ssa_gpu.copy_rows'}}
    ssa_gpu.copy_rows %source at %places3 to %tile {columns = 64 : i64, width = 8 : i64} : memref<?x64xbf16>, !places, !tile
    ssa_gpu.commit_copies
    ssa_gpu.commit_copies
    ssa_gpu.wait_copies 2
    // expected-error @below {{reads '!ssa_gpu.shared<64x64xbf16>' while copies into it may be under way: an 'ssa_gpu.wait_copies' that leaves at most 1 groups pending must come between}}
    %o = ssa_gpu.load_operand %tile : !tile -> !operand
    gpu.return
  }
}

// -----

!tile = !ssa_gpu.shared<64x64xbf16>
!places = tensor<64xi64, #ssa_gpu.places<8>>
!operand = tensor<64x64xbf16, #ssa_gpu.operand>

// On one of two paths the copy is in no group.
gpu.module @kernels {
  gpu.func @uncommitted(%source: memref<?x64xbf16>, %commits: i1) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %true = arith.constant true
    // expected-note @below {{the memory is allocated here}}
    %tile = ssa_gpu.alloc : !tile
    %places4 = ssa_gpu.find_rows {
    ^bb0(%row: i32):
      %at = arith.index_cast %row : i32 to index
      ssa_gpu.yield %at, %true : index, i1
    } : !places
    // expected-note @below {{copied here by 'ssa_gpu.copy_rows'}}
    ssa_gpu.copy_rows %source at %places4 to %tile {columns = 64 : i64, width = 8 : i64} : memref<?x64xbf16>, !places, !tile
    scf.if %commits {
      ssa_gpu.commit_copies
    }
    ssa_gpu.wait_copies 0
    // expected-error @below {{'ssa_gpu.commit_copies' and 'ssa_gpu.wait_copies' must come between}}
    %o = ssa_gpu.load_operand %tile : !tile -> !operand
    gpu.return
  }
}

// -----

!array = !ssa_gpu.shared<64xi32>

gpu.module @kernels {
  gpu.func @unseen(%out: memref<?xi32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : i32
    // expected-note @below {{the memory is allocated here}}
    %array = ssa_gpu.alloc : !array
    // expected-note @below {{written here by 'ssa_gpu.fill'}}
    ssa_gpu.fill %array {
    ^bb0(%i: i32):
      ssa_gpu.yield %i : i32
    } : !array
    // expected-error @below {{reads '!ssa_gpu.shared<64xi32>' before it may see what other threads write there: a 'gpu.barrier' or 'ssa_gpu.wait_copies' must come between}}
    %v = ssa_gpu.load_entry %array[%c0] : !array -> i32
    gpu.return
  }
}

// -----

!array = !ssa_gpu.shared<64xi32>

// The next round of a loop writes what threads of this one may still read; with a barrier at the end of the loop it does not.
gpu.module @kernels {
  gpu.func @back_edge(%rounds: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    // expected-note @below {{the memory is allocated here}}
    %array = ssa_gpu.alloc : !array
    scf.for %i = %c0 to %rounds step %c1 : i32 {
      // expected-error @below {{overwrites '!ssa_gpu.shared<64xi32>' while other threads may still read it: a 'gpu.barrier' or 'ssa_gpu.wait_copies' must come between}}
      ssa_gpu.fill %array {
      ^bb0(%e: i32):
        ssa_gpu.yield %e : i32
      } : !array
      gpu.barrier
      // expected-note @below {{read here by 'ssa_gpu.load_entry'}}
      %v = ssa_gpu.load_entry %array[%c0] : !array -> i32
    }
    gpu.return
  }
  gpu.func @back_edge_covered(%rounds: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %array = ssa_gpu.alloc : !array
    scf.for %i = %c0 to %rounds step %c1 : i32 {
      ssa_gpu.fill %array {
      ^bb0(%e: i32):
        ssa_gpu.yield %e : i32
      } : !array
      gpu.barrier
      %v = ssa_gpu.load_entry %array[%c0] : !array -> i32
      gpu.barrier
    }
    gpu.return
  }
}

// -----

!tile = !ssa_gpu.shared<64x64xbf16>
!places = tensor<64xi64, #ssa_gpu.places<8>>
!sum = tensor<64x64xf32, #ssa_gpu.accumulator>

// A barrier is enough for threads, but not for `wgmma`, which reads through another proxy.
gpu.module @kernels {
  gpu.func @proxy(%source: memref<?x64xi8>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %true = arith.constant true
    %zero = arith.constant dense<0.0> : !sum
    // expected-note @below {{the memory is allocated here}}
    %tile = ssa_gpu.alloc : !tile
    %places5 = ssa_gpu.find_rows {
    ^bb0(%row: i32):
      %at = arith.index_cast %row : i32 to index
      ssa_gpu.yield %at, %true : index, i1
    } : !places
    // expected-note @below {{written here by 'ssa_gpu.convert_rows'}}
    ssa_gpu.convert_rows %source at %places5 to %tile {columns = 64 : i64, width = 8 : i64} : memref<?x64xi8>, !places, !tile
    gpu.barrier
    // expected-error @below {{reads '!ssa_gpu.shared<64x64xbf16>' by 'wgmma' before it may see what is written there: an 'ssa_gpu.wait_copies' must come between}}
    %r = ssa_gpu.mma wgmma %tile, transposed %tile, %zero : !tile, !tile, !sum
    gpu.return
  }
}

// -----

!tile = !ssa_gpu.shared<64x64xbf16>
!places = tensor<64xi64, #ssa_gpu.places<8>>

// A barrier does not end copies.
gpu.module @kernels {
  gpu.func @copied_twice(%source: memref<?x64xbf16>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %true = arith.constant true
    // expected-note @below {{the memory is allocated here}}
    %tile = ssa_gpu.alloc : !tile
    %places6 = ssa_gpu.find_rows {
    ^bb0(%row: i32):
      %at = arith.index_cast %row : i32 to index
      ssa_gpu.yield %at, %true : index, i1
    } : !places
    // expected-note @below {{copied here by 'ssa_gpu.copy_rows'}}
    ssa_gpu.copy_rows %source at %places6 to %tile {columns = 64 : i64, width = 8 : i64} : memref<?x64xbf16>, !places, !tile
    ssa_gpu.commit_copies
    gpu.barrier
    %places7 = ssa_gpu.find_rows {
    ^bb0(%row: i32):
      %at = arith.index_cast %row : i32 to index
      ssa_gpu.yield %at, %true : index, i1
    } : !places
    // expected-error @below {{overwrites '!ssa_gpu.shared<64x64xbf16>' while copies into it may be under way: an 'ssa_gpu.wait_copies' must come between}}
    ssa_gpu.copy_rows %source at %places7 to %tile {columns = 64 : i64, width = 8 : i64} : memref<?x64xbf16>, !places, !tile
    gpu.return
  }
}

// -----

!array = !ssa_gpu.shared<4096xf32>

// Different ops may give an entry to different threads.
gpu.module @kernels {
  gpu.func @written_twice(%sums: tensor<64xf32, #ssa_gpu.rows>) attributes {known_block_size = array<i32: 128, 1, 1>} {
    %zero = arith.constant 0.0 : f32
    // expected-note @below {{the memory is allocated here}}
    %array = ssa_gpu.alloc : !array
    // expected-note @below {{written here by 'ssa_gpu.fill'}}
    ssa_gpu.fill %array {
    ^bb0(%e: i32):
      ssa_gpu.yield %zero : f32
    } : !array
    // expected-error @below {{overwrites '!ssa_gpu.shared<4096xf32>' while other threads may still write it}}
    %all = ssa_gpu.join_groups sum %sums through %array groups 2 : tensor<64xf32, #ssa_gpu.rows>, !array -> tensor<64xf32, #ssa_gpu.rows>
    gpu.return
  }
}

// -----

// Tensor memory is freed on every path.
!tensor = !ssa_gpu.tensor_memory<128x64xf32>
gpu.module @kernels {
  gpu.func @freed() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %a, %b = ssa_gpu.alloc_tensors : !tensor, !tensor
    ssa_gpu.free_tensors %a, %b : !tensor, !tensor
    gpu.return
  }
  gpu.func @freed_on_one_path(%condition: i1) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    // expected-error @below {{needs one 'ssa_gpu.free_tensors' of all its tiles behind it, in the same block: no path may leave the kernel without it}}
    %a = ssa_gpu.alloc_tensors : !tensor
    scf.if %condition {
      ssa_gpu.free_tensors %a : !tensor
    }
    gpu.return
  }
}

// -----

!tensor = !ssa_gpu.tensor_memory<128x64xf32>
gpu.module @kernels {
  gpu.func @freed_in_part() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    // expected-error @below {{needs one 'ssa_gpu.free_tensors'}}
    %a, %b = ssa_gpu.alloc_tensors : !tensor, !tensor
    ssa_gpu.free_tensors %a : !tensor
    gpu.return
  }
}
