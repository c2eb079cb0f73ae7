// RUN: ssa-opt %s --split-input-file --verify-diagnostics --ssa-select-schedule | FileCheck %s

!q = tensor<1x8x?x128xbf16>
!kv = tensor<1x2x?x128xbf16>
!l = tensor<1x8x?xf32>

module attributes {ssa.target = #ssa.target<sm_90a>} {
  // Without lists all queries share their keys: a tall tile, long steps.
  // CHECK-LABEL: @range
  // CHECK: ssa.schedule = #ssa.schedule<instruction = wgmma, tile_rows = 128, tile_keys = 128, stages = 2>
  func.func @range(%q: !q, %k: !kv, %v: !kv) -> !q {
    %o, %l = ssa.sparse_attend %q, %k, %v : !q, !kv, !kv -> !q, !l
    return %o : !q
  }

  // Four query heads share a list: no more rows than a warp has.
  // CHECK-LABEL: @per_query
  // CHECK: #ssa.schedule<instruction = mma_sync, tile_rows = 16, tile_keys = 16, stages = 4>
  func.func @per_query(%q: !q, %k: !kv, %v: !kv, %s: !ssa.selection<1x2x?x4, key_block = 64, sorted>) -> !q {
    %o, %l = ssa.sparse_attend %q, %k, %v at %s : !q, !kv, !kv, !ssa.selection<1x2x?x4, key_block = 64, sorted> -> !q, !l
    return %o : !q
  }

  // Eight queries of four heads: 32 rows, of the 64 of a warpgroup.
  // CHECK-LABEL: @few_queries
  // CHECK: #ssa.schedule<instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2>
  func.func @few_queries(%q: !q, %k: !kv, %v: !kv, %s: !ssa.selection<1x2x?x4, key_block = 64, query_block = 8, sorted>) -> !q {
    %o, %l = ssa.sparse_attend %q, %k, %v at %s
        : !q, !kv, !kv, !ssa.selection<1x2x?x4, key_block = 64, query_block = 8, sorted> -> !q, !l
    return %o : !q
  }

  // Two blocks of 64 make a step.
  // CHECK-LABEL: @query_blocks
  // CHECK: #ssa.schedule<instruction = wgmma, tile_rows = 128, tile_keys = 128, stages = 2>
  func.func @query_blocks(%q: !q, %k: !kv, %v: !kv, %s: !ssa.selection<1x8x?x4, key_block = 64, query_block = 128, sorted>) -> !q {
    %o, %l = ssa.sparse_attend %q, %k, %v at %s : !q, !kv, !kv, !ssa.selection<1x8x?x4, key_block = 64, query_block = 128, sorted> -> !q, !l
    return %o : !q
  }

  // One that is written stays.
  // CHECK-LABEL: @written
  // CHECK: #ssa.schedule<instruction = mma_sync, tile_rows = 16, tile_keys = 32, stages = 4>
  func.func @written(%q: !q, %k: !kv, %v: !kv) -> !q {
    %o, %l = ssa.sparse_attend %q, %k, %v {ssa.schedule = #ssa.schedule<instruction = mma_sync, tile_rows = 16, tile_keys = 32, stages = 4>}
        : !q, !kv, !kv -> !q, !l
    return %o : !q
  }
}

// -----

!q = tensor<1x8x?x128xbf16>
!kv = tensor<1x2x?x128xbf16>
!l = tensor<1x8x?xf32>

module attributes {ssa.target = #ssa.target<sm_100>} {
  // CHECK-LABEL: @portable
  // CHECK: instruction = mma_sync
  func.func @portable(%q: !q, %k: !kv, %v: !kv) -> !q {
    %o, %l = ssa.sparse_attend %q, %k, %v : !q, !kv, !kv -> !q, !l
    return %o : !q
  }
}

// -----

!q = tensor<1x8x?x128xbf16>
!kv = tensor<1x2x?x128xbf16>
!l = tensor<1x8x?xf32>

module attributes {ssa.target = #ssa.target<sm_100>} {
  func.func @instruction(%q: !q, %k: !kv, %v: !kv) -> !q {
    // expected-error @below {{'instruction = wgmma' requires sm_90a, but the target is 'sm_100'; use 'mma_sync'}}
    %o, %l = ssa.sparse_attend %q, %k, %v {ssa.schedule = #ssa.schedule<instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2>}
        : !q, !kv, !kv -> !q, !l
    return %o : !q
  }
}

// -----

!q = tensor<1x8x?x128xbf16>
!kv = tensor<1x2x?x128xbf16>
!l = tensor<1x8x?xf32>

module attributes {ssa.target = #ssa.target<sm_90a>} {
  func.func @shared_memory(%q: !q, %k: !kv, %v: !kv) -> !q {
    // expected-error @below {{'ssa.schedule' needs 297172 bytes of shared memory, but sm_90a has 232448; lower 'stages', 'tile_keys' or 'tile_rows'}}
    %o, %l = ssa.sparse_attend %q, %k, %v {ssa.schedule = #ssa.schedule<instruction = wgmma, tile_rows = 128, tile_keys = 128, stages = 4>}
        : !q, !kv, !kv -> !q, !l
    return %o : !q
  }
}

// -----

!q = tensor<1x8x?x128xbf16>
!kv = tensor<1x2x?x128xbf16>
!l = tensor<1x8x?xf32>

func.func @no_target(%q: !q, %k: !kv, %v: !kv) -> !q {
  // expected-error @below {{has no target; run 'ssa-attach-target'}}
  %o, %l = ssa.sparse_attend %q, %k, %v : !q, !kv, !kv -> !q, !l
  return %o : !q
}

// -----

!f = tensor<1x2x?x64xf32>
!l = tensor<1x2x?xf32>

module attributes {ssa.target = #ssa.target<sm_90a>} {
  // f32 is not for tensor cores: the kernel has nothing to decide.
  // CHECK-LABEL: @cuda_cores
  // CHECK-NOT: ssa.schedule
  func.func @cuda_cores(%q: !f, %k: !f, %v: !f) -> !f {
    %o, %lse = ssa.sparse_attend %q, %k, %v : !f, !f, !f -> !f, !l
    return %o : !f
  }
}

// -----

!f = tensor<1x2x?x64xf32>
!l = tensor<1x2x?xf32>

module attributes {ssa.target = #ssa.target<sm_90a>} {
  func.func @schedule_on_cuda_cores(%q: !f, %k: !f, %v: !f) -> !f {
    // expected-error @below {{has 'ssa.schedule', but its kernel is one on CUDA cores, as operands are f32, of mixed types or of odd head dims}}
    %o, %lse = ssa.sparse_attend %q, %k, %v {ssa.schedule = #ssa.schedule<instruction = mma_sync, tile_rows = 64, tile_keys = 64, stages = 2>}
        : !f, !f, !f -> !f, !l
    return %o : !f
  }
}
