// RUN: ssa-opt %s --pass-pipeline='builtin.module(gpu.module(ssa-gpu-verify-sync))' -split-input-file -verify-diagnostics

!pipe = !ssa_gpu.pipe<2>
!ring = !ssa_gpu.shared<2x64x64xbf16>
!tile = !ssa_gpu.shared<64x64xbf16>
!places = tensor<64xi64, #ssa_gpu.places<8>>
!sum = tensor<64x64xf32, #ssa_gpu.accumulator>

// The next step's scores are begun before the slot of this one is given back: nothing to find.
gpu.module @kernels {
  gpu.func @ahead(%source: memref<?x64xbf16>, %places: !places, %rounds: i32) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c4 = arith.constant 4 : i32
    %zero = arith.constant dense<0.0> : !sum
    %memory = ssa_gpu.alloc : !ring
    %pipe = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 4 : i64} : !pipe
    ssa_gpu.roles threads [128, 128] registers [232, 40] {
      ssa_gpu.await %pipe[%c0] : !pipe
      %last, %r = scf.for %i = %c1 to %rounds step %c1 iter_args(%ticket = %c0, %sum = %zero) -> (i32, !sum) : i32 {
        %more = arith.addi %ticket, %c1 : i32
        %wraps = arith.cmpi eq, %more, %c4 : i32
        %next = arith.select %wraps, %c0, %more : i32
        %s0 = arith.remui %ticket, %c2 : i32
        %s1 = arith.remui %next, %c2 : i32
        %this = ssa_gpu.slot %memory[%s0] : !ring -> !tile
        %first = ssa_gpu.mma wgmma async %this, transposed %this, %sum : !tile, !tile, !sum
        ssa_gpu.await %pipe[%next] : !pipe
        %other = ssa_gpu.slot %memory[%s1] : !ring -> !tile
        %second = ssa_gpu.mma wgmma async %other, transposed %other, %zero : !tile, !tile, !sum
        %done = ssa_gpu.wait_mma %first pending 1 : !sum
        ssa_gpu.release %pipe[%ticket] : !pipe
        %all = ssa_gpu.wait_mma %second pending 0 : !sum
        scf.yield %next, %done : i32, !sum
      }
      ssa_gpu.release %pipe[%last] : !pipe
    }, {
      %end = scf.for %i = %c0 to %rounds step %c1 iter_args(%ticket = %c0) -> i32 : i32 {
        %more = arith.addi %ticket, %c1 : i32
        %wraps = arith.cmpi eq, %more, %c4 : i32
        %next = arith.select %wraps, %c0, %more : i32
        ssa_gpu.acquire %pipe[%ticket] : !pipe
        %s0 = arith.remui %ticket, %c2 : i32
        %this = ssa_gpu.slot %memory[%s0] : !ring -> !tile
        ssa_gpu.copy_rows %source at %places to %this {columns = 64 : i64, width = 8 : i64} : memref<?x64xbf16>, !places, !tile
        ssa_gpu.commit_copies
        ssa_gpu.finish_copies 0
        ssa_gpu.publish %pipe[%ticket] : !pipe
        scf.yield %next : i32
      }
    }
    gpu.return
  }
}

// -----

!pipe = !ssa_gpu.pipe<2>
!ring = !ssa_gpu.shared<2x64x64xbf16>
!tile = !ssa_gpu.shared<64x64xbf16>
!places = tensor<64xi64, #ssa_gpu.places<8>>
!sum = tensor<64x64xf32, #ssa_gpu.accumulator>

// The slot is read after it was given back.
gpu.module @kernels {
  gpu.func @kernel(%source: memref<?x64xbf16>, %places: !places, %yes: i1) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !sum
    // expected-note@+1 {{the memory is allocated here}}
    %memory = ssa_gpu.alloc : !ring
    %pipe = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 4 : i64} : !pipe
    %slot = ssa_gpu.slot %memory[%c0] : !ring -> !tile
    ssa_gpu.roles threads [128, 128] registers [232, 40] {
      ssa_gpu.await %pipe[%c0] : !pipe
      ssa_gpu.release %pipe[%c0] : !pipe
      // expected-error@+1 {{reads '!ssa_gpu.shared<2x64x64xbf16>', which another role uses too, without holding its slot: an 'ssa_gpu.await' must come before, and nothing that gives the slot back}}
      %rows = ssa_gpu.load_operand %slot : !tile -> tensor<64x64xbf16, #ssa_gpu.operand>
    }, {
      ssa_gpu.acquire %pipe[%c0] : !pipe
      ssa_gpu.copy_rows %source at %places to %slot {columns = 64 : i64, width = 8 : i64} : memref<?x64xbf16>, !places, !tile
      ssa_gpu.commit_copies
      ssa_gpu.finish_copies 0
      ssa_gpu.publish %pipe[%c0] : !pipe
    }
    gpu.return
  }
}

// -----

!pipe = !ssa_gpu.pipe<2>
!ring = !ssa_gpu.shared<2x64x64xbf16>
!tile = !ssa_gpu.shared<64x64xbf16>
!places = tensor<64xi64, #ssa_gpu.places<8>>
!sum = tensor<64x64xf32, #ssa_gpu.accumulator>

// Another slot than that of the ticket is written.
gpu.module @kernels {
  gpu.func @kernel(%source: memref<?x64xbf16>, %places: !places, %yes: i1) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !sum
    // expected-note@+1 {{the memory is allocated here}}
    %memory = ssa_gpu.alloc : !ring
    %pipe = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 4 : i64} : !pipe
    %slot = ssa_gpu.slot %memory[%c0] : !ring -> !tile
    ssa_gpu.roles threads [128, 128] registers [232, 40] {
      ssa_gpu.await %pipe[%c0] : !pipe
      %rows = ssa_gpu.load_operand %slot : !tile -> tensor<64x64xbf16, #ssa_gpu.operand>
      ssa_gpu.release %pipe[%c0] : !pipe
    }, {
      ssa_gpu.acquire %pipe[%c1] : !pipe
      // expected-error@+1 {{writes '!ssa_gpu.shared<2x64x64xbf16>', which another role uses too, without holding its slot: an 'ssa_gpu.acquire' must come before}}
      ssa_gpu.copy_rows %source at %places to %slot {columns = 64 : i64, width = 8 : i64} : memref<?x64xbf16>, !places, !tile
      ssa_gpu.commit_copies
      ssa_gpu.finish_copies 0
      ssa_gpu.publish %pipe[%c1] : !pipe
    }
    gpu.return
  }
}

// -----

!pipe = !ssa_gpu.pipe<2, copies = true>
!ring = !ssa_gpu.shared<2x64x64xbf16>
!tile = !ssa_gpu.shared<64x64xbf16>
!places = tensor<64xi64, #ssa_gpu.places<8>>

// The pipe waits for copies: nothing to find.
gpu.module @kernels {
  gpu.func @kernel(%source: memref<?x64xbf16>, %places: !places) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %memory = ssa_gpu.alloc : !ring
    %pipe = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 4 : i64} : !pipe
    %slot = ssa_gpu.slot %memory[%c0] : !ring -> !tile
    ssa_gpu.roles threads [128, 128] registers [232, 40] {
      ssa_gpu.await %pipe[%c0] : !pipe
      %rows = ssa_gpu.load_operand %slot : !tile -> tensor<64x64xbf16, #ssa_gpu.operand>
      ssa_gpu.release %pipe[%c0] : !pipe
    }, {
      ssa_gpu.acquire %pipe[%c0] : !pipe
      ssa_gpu.copy_rows %source at %places to %slot {columns = 64 : i64, width = 8 : i64} : memref<?x64xbf16>, !places, !tile
      ssa_gpu.publish %pipe[%c0] : !pipe
    }
    gpu.return
  }
}

// -----

!pipe = !ssa_gpu.pipe<2>
!ring = !ssa_gpu.shared<2x64x64xbf16>
!tile = !ssa_gpu.shared<64x64xbf16>
!places = tensor<64xi64, #ssa_gpu.places<8>>
!sum = tensor<64x64xf32, #ssa_gpu.accumulator>

// Copies are not finished.
gpu.module @kernels {
  gpu.func @kernel(%source: memref<?x64xbf16>, %places: !places, %yes: i1) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !sum
    %memory = ssa_gpu.alloc : !ring
    %pipe = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 4 : i64} : !pipe
    %slot = ssa_gpu.slot %memory[%c0] : !ring -> !tile
    ssa_gpu.roles threads [128, 128] registers [232, 40] {
      ssa_gpu.await %pipe[%c0] : !pipe
      %rows = ssa_gpu.load_operand %slot : !tile -> tensor<64x64xbf16, #ssa_gpu.operand>
      ssa_gpu.release %pipe[%c0] : !pipe
    }, {
      ssa_gpu.acquire %pipe[%c0] : !pipe
      // expected-note@+1 {{copied here}}
      ssa_gpu.copy_rows %source at %places to %slot {columns = 64 : i64, width = 8 : i64} : memref<?x64xbf16>, !places, !tile
      ssa_gpu.commit_copies
      ssa_gpu.finish_copies 1
      // expected-error@+1 {{gives back a slot while copies into it may be under way: 'ssa_gpu.commit_copies' and 'ssa_gpu.finish_copies' must come between}}
      ssa_gpu.publish %pipe[%c0] : !pipe
    }
    gpu.return
  }
}

// -----

!pipe = !ssa_gpu.pipe<2>
!ring = !ssa_gpu.shared<2x64x64xbf16>
!tile = !ssa_gpu.shared<64x64xbf16>
!places = tensor<64xi64, #ssa_gpu.places<8>>
!sum = tensor<64x64xf32, #ssa_gpu.accumulator>

// A product is under way.
gpu.module @kernels {
  gpu.func @kernel(%source: memref<?x64xbf16>, %places: !places, %yes: i1) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !sum
    %memory = ssa_gpu.alloc : !ring
    %pipe = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 4 : i64} : !pipe
    %slot = ssa_gpu.slot %memory[%c0] : !ring -> !tile
    ssa_gpu.roles threads [128, 128] registers [232, 40] {
      ssa_gpu.await %pipe[%c0] : !pipe
      // expected-note@+1 {{the product begins here}}
      %sum = ssa_gpu.mma wgmma async %slot, transposed %slot, %zero : !tile, !tile, !sum
      // expected-error@+1 {{gives back a slot while a product may still read it: an 'ssa_gpu.wait_mma' must come between}}
      ssa_gpu.release %pipe[%c0] : !pipe
      %done = ssa_gpu.wait_mma %sum pending 0 : !sum
    }, {
      ssa_gpu.acquire %pipe[%c0] : !pipe
      ssa_gpu.copy_rows %source at %places to %slot {columns = 64 : i64, width = 8 : i64} : memref<?x64xbf16>, !places, !tile
      ssa_gpu.commit_copies
      ssa_gpu.finish_copies 0
      ssa_gpu.publish %pipe[%c0] : !pipe
    }
    gpu.return
  }
}

// -----

!pipe = !ssa_gpu.pipe<2>
!ring = !ssa_gpu.shared<2x64x64xbf16>
!tile = !ssa_gpu.shared<64x64xbf16>
!places = tensor<64xi64, #ssa_gpu.places<8>>
!sum = tensor<64x64xf32, #ssa_gpu.accumulator>

// What is not held is given back.
gpu.module @kernels {
  gpu.func @kernel(%source: memref<?x64xbf16>, %places: !places, %yes: i1) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !sum
    %memory = ssa_gpu.alloc : !ring
    %pipe = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 4 : i64} : !pipe
    %slot = ssa_gpu.slot %memory[%c0] : !ring -> !tile
    ssa_gpu.roles threads [128, 128] registers [232, 40] {
      ssa_gpu.await %pipe[%c0] : !pipe
      %rows = ssa_gpu.load_operand %slot : !tile -> tensor<64x64xbf16, #ssa_gpu.operand>
      ssa_gpu.release %pipe[%c0] : !pipe
    }, {
      // expected-error@+1 {{gives back a slot that the role does not hold: an 'ssa_gpu.acquire' of this ticket must come before}}
      ssa_gpu.publish %pipe[%c0] : !pipe
    }
    gpu.return
  }
}

// -----

!pipe = !ssa_gpu.pipe<2>
!ring = !ssa_gpu.shared<2x64x64xbf16>
!tile = !ssa_gpu.shared<64x64xbf16>
!places = tensor<64xi64, #ssa_gpu.places<8>>
!sum = tensor<64x64xf32, #ssa_gpu.accumulator>

// A slot is taken twice.
gpu.module @kernels {
  gpu.func @kernel(%source: memref<?x64xbf16>, %places: !places, %yes: i1) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !sum
    %memory = ssa_gpu.alloc : !ring
    %pipe = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 4 : i64} : !pipe
    %slot = ssa_gpu.slot %memory[%c0] : !ring -> !tile
    ssa_gpu.roles threads [128, 128] registers [232, 40] {
      // expected-note@+1 {{taken here}}
      ssa_gpu.await %pipe[%c0] : !pipe
      // expected-error@+1 {{takes a slot that the role holds already}}
      ssa_gpu.await %pipe[%c0] : !pipe
    }, {
      ssa_gpu.acquire %pipe[%c0] : !pipe
      ssa_gpu.copy_rows %source at %places to %slot {columns = 64 : i64, width = 8 : i64} : memref<?x64xbf16>, !places, !tile
      ssa_gpu.commit_copies
      ssa_gpu.finish_copies 0
      ssa_gpu.publish %pipe[%c0] : !pipe
    }
    gpu.return
  }
}

// -----

!pipe = !ssa_gpu.pipe<2>
!ring = !ssa_gpu.shared<2x64x64xbf16>
!tile = !ssa_gpu.shared<64x64xbf16>
!places = tensor<64xi64, #ssa_gpu.places<8>>
!sum = tensor<64x64xf32, #ssa_gpu.accumulator>

// A slot is never given back.
gpu.module @kernels {
  gpu.func @kernel(%source: memref<?x64xbf16>, %places: !places, %yes: i1) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !sum
    %memory = ssa_gpu.alloc : !ring
    %pipe = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 4 : i64} : !pipe
    %slot = ssa_gpu.slot %memory[%c0] : !ring -> !tile
    ssa_gpu.roles threads [128, 128] registers [232, 40] {
      // expected-error@+1 {{takes a slot that the role does not give back before its end}}
      ssa_gpu.await %pipe[%c0] : !pipe
    }, {
      ssa_gpu.acquire %pipe[%c0] : !pipe
      ssa_gpu.copy_rows %source at %places to %slot {columns = 64 : i64, width = 8 : i64} : memref<?x64xbf16>, !places, !tile
      ssa_gpu.commit_copies
      ssa_gpu.finish_copies 0
      ssa_gpu.publish %pipe[%c0] : !pipe
    }
    gpu.return
  }
}

// -----

!pipe = !ssa_gpu.pipe<2>
!ring = !ssa_gpu.shared<2x64x64xbf16>
!tile = !ssa_gpu.shared<64x64xbf16>
!places = tensor<64xi64, #ssa_gpu.places<8>>
!sum = tensor<64x64xf32, #ssa_gpu.accumulator>

// A slot is given back on one path only.
gpu.module @kernels {
  gpu.func @kernel(%source: memref<?x64xbf16>, %places: !places, %yes: i1) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !sum
    %memory = ssa_gpu.alloc : !ring
    %pipe = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 4 : i64} : !pipe
    %slot = ssa_gpu.slot %memory[%c0] : !ring -> !tile
    ssa_gpu.roles threads [128, 128] registers [232, 40] {
      // expected-note@+1 {{one holds what is taken here}}
      ssa_gpu.await %pipe[%c0] : !pipe
      // expected-error@+1 {{has paths that meet with different slots of a pipe: each must hold the same}}
      scf.if %yes {
        ssa_gpu.release %pipe[%c0] : !pipe
      }
    }, {
      ssa_gpu.acquire %pipe[%c0] : !pipe
      ssa_gpu.copy_rows %source at %places to %slot {columns = 64 : i64, width = 8 : i64} : memref<?x64xbf16>, !places, !tile
      ssa_gpu.commit_copies
      ssa_gpu.finish_copies 0
      ssa_gpu.publish %pipe[%c0] : !pipe
    }
    gpu.return
  }
}

// -----

!pipe = !ssa_gpu.pipe<2>
!ring = !ssa_gpu.shared<2x64x64xbf16>
!tile = !ssa_gpu.shared<64x64xbf16>
!places = tensor<64xi64, #ssa_gpu.places<8>>
!sum = tensor<64x64xf32, #ssa_gpu.accumulator>

// Readers and writers use different pipes.
gpu.module @kernels {
  gpu.func @kernel(%source: memref<?x64xbf16>, %places: !places, %yes: i1) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !sum
    %memory = ssa_gpu.alloc : !ring
    %other = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 4 : i64} : !pipe
    %pipe = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 4 : i64} : !pipe
    %slot = ssa_gpu.slot %memory[%c0] : !ring -> !tile
    ssa_gpu.roles threads [128, 128] registers [232, 40] {
      ssa_gpu.await %other[%c0] : !pipe
      // expected-note@+1 {{used here under another}}
      %rows = ssa_gpu.load_operand %slot : !tile -> tensor<64x64xbf16, #ssa_gpu.operand>
      ssa_gpu.release %other[%c0] : !pipe
      ssa_gpu.await %pipe[%c0] : !pipe
      ssa_gpu.release %pipe[%c0] : !pipe
    }, {
      ssa_gpu.acquire %other[%c0] : !pipe
      ssa_gpu.publish %other[%c0] : !pipe
      ssa_gpu.acquire %pipe[%c0] : !pipe
      // expected-error@+1 {{uses '!ssa_gpu.shared<2x64x64xbf16>' under another pipe than others do: one pipe must guard all its uses}}
      ssa_gpu.copy_rows %source at %places to %slot {columns = 64 : i64, width = 8 : i64} : memref<?x64xbf16>, !places, !tile
      ssa_gpu.commit_copies
      ssa_gpu.finish_copies 0
      ssa_gpu.publish %pipe[%c0] : !pipe
    }
    gpu.return
  }
}

// -----

!pipe = !ssa_gpu.pipe<2>
!ring = !ssa_gpu.shared<2x64x64xbf16>
!tile = !ssa_gpu.shared<64x64xbf16>
!places = tensor<64xi64, #ssa_gpu.places<8>>
!sum = tensor<64x64xf32, #ssa_gpu.accumulator>

// Nobody empties the pipe.
gpu.module @kernels {
  gpu.func @kernel(%source: memref<?x64xbf16>, %places: !places, %yes: i1) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !sum
    %memory = ssa_gpu.alloc : !ring
    // expected-error@+1 {{has 1 roles that fill its slots and 0 that empty them: one must fill them, and others empty them}}
    %pipe = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 4 : i64} : !pipe
    %slot = ssa_gpu.slot %memory[%c0] : !ring -> !tile
    ssa_gpu.roles threads [128, 128] registers [232, 40] {
    }, {
      ssa_gpu.acquire %pipe[%c0] : !pipe
      ssa_gpu.copy_rows %source at %places to %slot {columns = 64 : i64, width = 8 : i64} : memref<?x64xbf16>, !places, !tile
      ssa_gpu.commit_copies
      ssa_gpu.finish_copies 0
      ssa_gpu.publish %pipe[%c0] : !pipe
    }
    gpu.return
  }
}

// -----

!pipe = !ssa_gpu.pipe<2>
!ring = !ssa_gpu.shared<2x64x64xbf16>
!tile = !ssa_gpu.shared<64x64xbf16>
!places = tensor<64xi64, #ssa_gpu.places<8>>
!sum = tensor<64x64xf32, #ssa_gpu.accumulator>

// What a role has for itself is checked like a kernel.
gpu.module @kernels {
  gpu.func @kernel(%source: memref<?x64xbf16>, %places: !places, %yes: i1) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !sum
    // expected-note@+1 {{the memory is allocated here}}
    %mine = ssa_gpu.alloc : !ssa_gpu.shared<64xi32>
    %memory = ssa_gpu.alloc : !ring
    %pipe = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 4 : i64} : !pipe
    %slot = ssa_gpu.slot %memory[%c0] : !ring -> !tile
    ssa_gpu.roles threads [128, 128] registers [232, 40] {
      ssa_gpu.await %pipe[%c0] : !pipe
      %rows = ssa_gpu.load_operand %slot : !tile -> tensor<64x64xbf16, #ssa_gpu.operand>
      ssa_gpu.release %pipe[%c0] : !pipe
      // expected-note@+1 {{written here by 'ssa_gpu.fill'}}
      ssa_gpu.fill %mine {
      ^bb0(%i: i32):
        ssa_gpu.yield %i : i32
      } : !ssa_gpu.shared<64xi32>
      // expected-error@+1 {{reads '!ssa_gpu.shared<64xi32>' before it may see what other threads write there}}
      %entry = ssa_gpu.load_entry %mine[%c0] : !ssa_gpu.shared<64xi32> -> i32
    }, {
      ssa_gpu.acquire %pipe[%c0] : !pipe
      ssa_gpu.copy_rows %source at %places to %slot {columns = 64 : i64, width = 8 : i64} : memref<?x64xbf16>, !places, !tile
      ssa_gpu.commit_copies
      ssa_gpu.finish_copies 0
      ssa_gpu.publish %pipe[%c0] : !pipe
    }
    gpu.return
  }
}

// -----

!pipe = !ssa_gpu.pipe<1>
!tile = !ssa_gpu.shared<128x64xbf16>
!places = tensor<128xi64, #ssa_gpu.places<8>>
!result = !ssa_gpu.tensor_memory<128x128xf32>

// Products in tensor memory are under way for as long as nobody hears of their end; a pipe does.
gpu.module @kernels {
  gpu.func @heard(%source: memref<?x64xbf16>, %places: !places, %adds: i1) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %slot = ssa_gpu.alloc : !tile
    %pipe = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 1 : i64} : !pipe
    %result = ssa_gpu.alloc_tensors : !result
    ssa_gpu.roles threads [128, 32] registers [128, 40] {
      ssa_gpu.acquire %pipe[%c0] : !pipe
      ssa_gpu.copy_rows %source at %places to %slot {columns = 64 : i64, width = 8 : i64} : memref<?x64xbf16>, !places, !tile
      ssa_gpu.commit_copies
      ssa_gpu.finish_copies 0
      ssa_gpu.publish %pipe[%c0] : !pipe
      ssa_gpu.await_empty %pipe[%c0] : !pipe
    }, {
      ssa_gpu.await %pipe[%c0] : !pipe
      ssa_gpu.mma_tensor %slot, transposed %slot to %result adds %adds : !tile, !tile, !result
      ssa_gpu.release %pipe[%c0] after products : !pipe
    }
    ssa_gpu.free_tensors %result : !result
    gpu.return
  }

  gpu.func @not_heard(%source: memref<?x64xbf16>, %places: !places, %adds: i1) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %slot = ssa_gpu.alloc : !tile
    %pipe = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 1 : i64} : !pipe
    %result = ssa_gpu.alloc_tensors : !result
    ssa_gpu.roles threads [128, 32] registers [128, 40] {
      ssa_gpu.acquire %pipe[%c0] : !pipe
      ssa_gpu.copy_rows %source at %places to %slot {columns = 64 : i64, width = 8 : i64} : memref<?x64xbf16>, !places, !tile
      ssa_gpu.commit_copies
      ssa_gpu.finish_copies 0
      ssa_gpu.publish %pipe[%c0] : !pipe
    }, {
      ssa_gpu.await %pipe[%c0] : !pipe
      // expected-note@+1 {{the product begins here}}
      ssa_gpu.mma_tensor %slot, transposed %slot to %result adds %adds : !tile, !tile, !result
      // expected-error@+1 {{gives back a slot while a product may still read it: it must be given back 'after products'}}
      ssa_gpu.release %pipe[%c0] : !pipe
    }
    ssa_gpu.free_tensors %result : !result
    gpu.return
  }
}

// -----

!pipe = !ssa_gpu.pipe<2>
!one = !ssa_gpu.pipe<1>
!ring = !ssa_gpu.shared<2x64x64xbf16>
!tile = !ssa_gpu.shared<64x64xbf16>
!places = tensor<64xi64, #ssa_gpu.places<8>>
!sum = tensor<64x64xf32, #ssa_gpu.accumulator>

// Two roles empty the slots of a pipe, and one puts weights for the other into a slot that both read.
gpu.module @kernels {
  gpu.func @kernel(%source: memref<?x64xbf16>, %places: !places) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %zero = arith.constant dense<0.0> : !sum
    %memory = ssa_gpu.alloc : !ring
    %pipe = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 8 : i64} : !pipe
    %weights = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 4 : i64} : !one
    %slot = ssa_gpu.slot %memory[%c0] : !ring -> !tile
    ssa_gpu.roles threads [128, 128, 128] registers [232, 232, 40] {
      ssa_gpu.await %pipe[%c0] : !pipe
      ssa_gpu.acquire %weights[%c0] : !one
      ssa_gpu.store_operand %zero to %slot : !sum, !tile
      ssa_gpu.finish_copies 0
      ssa_gpu.publish %weights[%c0] : !one
      ssa_gpu.release %pipe[%c0] : !pipe
    }, {
      ssa_gpu.await %pipe[%c0] : !pipe
      ssa_gpu.await %weights[%c0] : !one
      %sum = ssa_gpu.mma wgmma %slot, %slot, %zero : !tile, !tile, !sum
      ssa_gpu.release %weights[%c0] : !one
      ssa_gpu.release %pipe[%c0] : !pipe
    }, {
      ssa_gpu.acquire %pipe[%c0] : !pipe
      ssa_gpu.copy_rows %source at %places to %slot {columns = 64 : i64, width = 8 : i64} : memref<?x64xbf16>, !places, !tile
      ssa_gpu.commit_copies
      ssa_gpu.finish_copies 0
      ssa_gpu.publish %pipe[%c0] : !pipe
    }
    gpu.return
  }
}

// -----

!pipe = !ssa_gpu.pipe<2>
!ring = !ssa_gpu.shared<2x64x64xbf16>
!tile = !ssa_gpu.shared<64x64xbf16>
!places = tensor<64xi64, #ssa_gpu.places<8>>
!sum = tensor<64x64xf32, #ssa_gpu.accumulator>

// The same without another pipe that says when the weights are there.
gpu.module @kernels {
  gpu.func @kernel(%source: memref<?x64xbf16>, %places: !places) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %zero = arith.constant dense<0.0> : !sum
    // expected-note@+1 {{the memory is allocated here}}
    %memory = ssa_gpu.alloc : !ring
    %pipe = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 4 : i64} : !pipe
    %slot = ssa_gpu.slot %memory[%c0] : !ring -> !tile
    ssa_gpu.roles threads [128, 128] registers [232, 40] {
      ssa_gpu.await %pipe[%c0] : !pipe
      // expected-error@+1 {{writes '!ssa_gpu.shared<2x64x64xbf16>', which another role uses too, without holding its slot}}
      ssa_gpu.store_operand %zero to %slot : !sum, !tile
      ssa_gpu.release %pipe[%c0] : !pipe
    }, {
      ssa_gpu.acquire %pipe[%c0] : !pipe
      ssa_gpu.copy_rows %source at %places to %slot {columns = 64 : i64, width = 8 : i64} : memref<?x64xbf16>, !places, !tile
      ssa_gpu.commit_copies
      ssa_gpu.finish_copies 0
      ssa_gpu.publish %pipe[%c0] : !pipe
    }
    gpu.return
  }
}

// -----

!pipe = !ssa_gpu.pipe<2>
!one = !ssa_gpu.pipe<1>
!ring = !ssa_gpu.shared<2x64x64xbf16>
!tile = !ssa_gpu.shared<64x64xbf16>
!places = tensor<64xi64, #ssa_gpu.places<8>>
!sum = tensor<64x64xf32, #ssa_gpu.accumulator>

// Products may not see the weights yet.
gpu.module @kernels {
  gpu.func @kernel(%source: memref<?x64xbf16>, %places: !places) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %zero = arith.constant dense<0.0> : !sum
    %memory = ssa_gpu.alloc : !ring
    %pipe = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 8 : i64} : !pipe
    %weights = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 4 : i64} : !one
    %slot = ssa_gpu.slot %memory[%c0] : !ring -> !tile
    ssa_gpu.roles threads [128, 128, 128] registers [232, 232, 40] {
      ssa_gpu.await %pipe[%c0] : !pipe
      ssa_gpu.acquire %weights[%c0] : !one
      // expected-note@+1 {{written here}}
      ssa_gpu.store_operand %zero to %slot : !sum, !tile
      // expected-error@+1 {{hands over what products may not see yet: an 'ssa_gpu.finish_copies 0' must come between}}
      ssa_gpu.publish %weights[%c0] : !one
      ssa_gpu.release %pipe[%c0] : !pipe
    }, {
      ssa_gpu.await %pipe[%c0] : !pipe
      ssa_gpu.await %weights[%c0] : !one
      %sum = ssa_gpu.mma wgmma %slot, %slot, %zero : !tile, !tile, !sum
      ssa_gpu.release %weights[%c0] : !one
      ssa_gpu.release %pipe[%c0] : !pipe
    }, {
      ssa_gpu.acquire %pipe[%c0] : !pipe
      ssa_gpu.copy_rows %source at %places to %slot {columns = 64 : i64, width = 8 : i64} : memref<?x64xbf16>, !places, !tile
      ssa_gpu.commit_copies
      ssa_gpu.finish_copies 0
      ssa_gpu.publish %pipe[%c0] : !pipe
    }
    gpu.return
  }
}

// -----

!pipe = !ssa_gpu.pipe<2>
!one = !ssa_gpu.pipe<1>
!ring = !ssa_gpu.shared<2x64x64xbf16>
!tile = !ssa_gpu.shared<64x64xbf16>
!places = tensor<64xi64, #ssa_gpu.places<8>>
!sum = tensor<64x64xf32, #ssa_gpu.accumulator>

// Other warps of the role may still multiply by what was in the slot.
gpu.module @kernels {
  gpu.func @kernel(%source: memref<?x64xbf16>, %places: !places) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %zero = arith.constant dense<0.0> : !sum
    %memory = ssa_gpu.alloc : !ring
    %pipe = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 8 : i64} : !pipe
    %weights = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 4 : i64} : !one
    %slot = ssa_gpu.slot %memory[%c0] : !ring -> !tile
    ssa_gpu.roles threads [128, 128, 128] registers [232, 232, 40] {
      ssa_gpu.await %pipe[%c0] : !pipe
      ssa_gpu.acquire %weights[%c0] : !one
      // expected-note@+1 {{read here}}
      %own = ssa_gpu.mma wgmma async %slot, %slot, %zero : !tile, !tile, !sum
      %made = ssa_gpu.wait_mma %own pending 0 : !sum
      // expected-error@+1 {{overwrites '!ssa_gpu.shared<2x64x64xbf16>' while other threads may still read it: an 'ssa_gpu.wait_mma' and an 'ssa_gpu.barrier' must come between}}
      ssa_gpu.store_operand %made to %slot : !sum, !tile
      ssa_gpu.finish_copies 0
      ssa_gpu.publish %weights[%c0] : !one
      ssa_gpu.release %pipe[%c0] : !pipe
    }, {
      ssa_gpu.await %pipe[%c0] : !pipe
      ssa_gpu.await %weights[%c0] : !one
      %sum = ssa_gpu.mma wgmma %slot, %slot, %zero : !tile, !tile, !sum
      ssa_gpu.release %weights[%c0] : !one
      ssa_gpu.release %pipe[%c0] : !pipe
    }, {
      ssa_gpu.acquire %pipe[%c0] : !pipe
      ssa_gpu.copy_rows %source at %places to %slot {columns = 64 : i64, width = 8 : i64} : memref<?x64xbf16>, !places, !tile
      ssa_gpu.commit_copies
      ssa_gpu.finish_copies 0
      ssa_gpu.publish %pipe[%c0] : !pipe
    }
    gpu.return
  }
}

// -----

!pipe = !ssa_gpu.pipe<2>
!one = !ssa_gpu.pipe<1>
!ring = !ssa_gpu.shared<2x64x64xbf16>
!tile = !ssa_gpu.shared<64x64xbf16>
!places = tensor<64xi64, #ssa_gpu.places<8>>
!sum = tensor<64x64xf32, #ssa_gpu.accumulator>

// With a barrier they do not.
gpu.module @kernels {
  gpu.func @kernel(%source: memref<?x64xbf16>, %places: !places) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %zero = arith.constant dense<0.0> : !sum
    %memory = ssa_gpu.alloc : !ring
    %pipe = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 8 : i64} : !pipe
    %weights = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 4 : i64} : !one
    %slot = ssa_gpu.slot %memory[%c0] : !ring -> !tile
    ssa_gpu.roles threads [128, 128, 128] registers [232, 232, 40] {
      ssa_gpu.await %pipe[%c0] : !pipe
      ssa_gpu.acquire %weights[%c0] : !one
      %own = ssa_gpu.mma wgmma async %slot, %slot, %zero : !tile, !tile, !sum
      %made = ssa_gpu.wait_mma %own pending 0 : !sum
      ssa_gpu.barrier
      ssa_gpu.store_operand %made to %slot : !sum, !tile
      ssa_gpu.finish_copies 0
      ssa_gpu.publish %weights[%c0] : !one
      ssa_gpu.release %pipe[%c0] : !pipe
    }, {
      ssa_gpu.await %pipe[%c0] : !pipe
      ssa_gpu.await %weights[%c0] : !one
      %sum = ssa_gpu.mma wgmma %slot, %slot, %zero : !tile, !tile, !sum
      ssa_gpu.release %weights[%c0] : !one
      ssa_gpu.release %pipe[%c0] : !pipe
    }, {
      ssa_gpu.acquire %pipe[%c0] : !pipe
      ssa_gpu.copy_rows %source at %places to %slot {columns = 64 : i64, width = 8 : i64} : memref<?x64xbf16>, !places, !tile
      ssa_gpu.commit_copies
      ssa_gpu.finish_copies 0
      ssa_gpu.publish %pipe[%c0] : !pipe
    }
    gpu.return
  }
}

// -----

!pipe = !ssa_gpu.pipe<2>
!one = !ssa_gpu.pipe<1>
!ring = !ssa_gpu.shared<2x64x64xbf16>
!tile = !ssa_gpu.shared<64x64xbf16>
!places = tensor<64xi64, #ssa_gpu.places<8>>
!sum = tensor<64x64xf32, #ssa_gpu.accumulator>

// The product has not ended when its result is used.
gpu.module @kernels {
  gpu.func @kernel(%source: memref<?x64xbf16>, %places: !places) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %zero = arith.constant dense<0.0> : !sum
    %memory = ssa_gpu.alloc : !ring
    %pipe = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 8 : i64} : !pipe
    %weights = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 4 : i64} : !one
    %slot = ssa_gpu.slot %memory[%c0] : !ring -> !tile
    ssa_gpu.roles threads [128, 128, 128] registers [232, 232, 40] {
      ssa_gpu.await %pipe[%c0] : !pipe
      ssa_gpu.acquire %weights[%c0] : !one
      // expected-note@+1 {{the product begins here}}
      %own = ssa_gpu.mma wgmma async %slot, %slot, %zero : !tile, !tile, !sum
      // expected-error@+1 {{gives the result of a product that may be under way: 'pending' is too large}}
      %made = ssa_gpu.wait_mma %own pending 1 : !sum
      ssa_gpu.barrier
      ssa_gpu.store_operand %made to %slot : !sum, !tile
      ssa_gpu.finish_copies 0
      ssa_gpu.publish %weights[%c0] : !one
      ssa_gpu.release %pipe[%c0] : !pipe
    }, {
      ssa_gpu.await %pipe[%c0] : !pipe
      ssa_gpu.await %weights[%c0] : !one
      %sum = ssa_gpu.mma wgmma %slot, %slot, %zero : !tile, !tile, !sum
      ssa_gpu.release %weights[%c0] : !one
      ssa_gpu.release %pipe[%c0] : !pipe
    }, {
      ssa_gpu.acquire %pipe[%c0] : !pipe
      ssa_gpu.copy_rows %source at %places to %slot {columns = 64 : i64, width = 8 : i64} : memref<?x64xbf16>, !places, !tile
      ssa_gpu.commit_copies
      ssa_gpu.finish_copies 0
      ssa_gpu.publish %pipe[%c0] : !pipe
    }
    gpu.return
  }
}
