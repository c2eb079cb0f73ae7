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

  // Four query heads share a list of blocks from anywhere: rows of many lists fill a tile, for a key block at a time.
  // CHECK-LABEL: @per_query
  // CHECK: #ssa.schedule<order = key_outer, instruction = wgmma, {{.*}}partials = bf16>
  func.func @per_query(%q: !q, %k: !kv, %v: !kv, %s: !ssa.selection<1x2x?x4, key_block = 64, sorted>) -> !q {
    %o, %l = ssa.sparse_attend %q, %k, %v at %s : !q, !kv, !kv, !ssa.selection<1x2x?x4, key_block = 64, sorted> -> !q, !l
    return %o : !q
  }

  // Eight queries of four heads: 32 rows, of the 64 of a warpgroup; two warps waste none.
  // CHECK-LABEL: @few_queries
  // CHECK: #ssa.schedule<instruction = mma_sync, tile_rows = 32, tile_keys = 32, stages = 2>
  func.func @few_queries(%q: !q, %k: !kv, %v: !kv, %s: !ssa.selection<1x2x?x4, key_block = 64, query_block = 8, sorted>) -> !q {
    %o, %l = ssa.sparse_attend %q, %k, %v at %s
        : !q, !kv, !kv, !ssa.selection<1x2x?x4, key_block = 64, query_block = 8, sorted> -> !q, !l
    return %o : !q
  }

  // Two blocks of 64 make a step.
  // CHECK-LABEL: @query_blocks
  // CHECK: #ssa.schedule<instruction = wgmma, tile_rows = 128, tile_keys = 128, stages = 3>
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

  // CHECK-LABEL: @key_outer
  // CHECK: #ssa.schedule<order = key_outer, instruction = wgmma, tile_rows = 128, tile_keys = 64, stages = 2, partials = bf16>
  func.func @key_outer(%q: !q, %k: !kv, %v: !kv, %s: !ssa.selection<1x2x?x4, key_block = 64, sorted>) -> !q {
    %o, %l = ssa.sparse_attend %q, %k, %v at %s
        {ssa.schedule = #ssa.schedule<order = key_outer, instruction = wgmma, tile_rows = 128, tile_keys = 64, stages = 2, partials = bf16>}
        : !q, !kv, !kv, !ssa.selection<1x2x?x4, key_block = 64, sorted> -> !q, !l
    return %o : !q
  }

  // Sixteen queries of four heads each.
  // CHECK-LABEL: @union
  // CHECK: #ssa.schedule<order = union, instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2>
  func.func @union(%q: !q, %k: !kv, %v: !kv, %s: !ssa.selection<1x2x?x4, key_block = 64, sorted>) -> !q {
    %o, %l = ssa.sparse_attend %q, %k, %v at %s
        {ssa.schedule = #ssa.schedule<order = union, instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2>}
        : !q, !kv, !kv, !ssa.selection<1x2x?x4, key_block = 64, sorted> -> !q, !l
    return %o : !q
  }

  // CHECK-LABEL: @split
  // CHECK: #ssa.schedule<instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2, split = 8>
  func.func @split(%q: !q, %k: !kv, %v: !kv) -> !q {
    %o, %l = ssa.sparse_attend %q, %k, %v {ssa.schedule = #ssa.schedule<instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2, split = 8>}
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

// -----

!q = tensor<1x8x?x128xbf16>
!kv = tensor<1x2x?x128xbf16>
!l = tensor<1x8x?xf32>

module attributes {ssa.target = #ssa.target<sm_90a>} {
  func.func @order_without_lists(%q: !q, %k: !kv, %v: !kv) -> !q {
    // expected-error @below {{'order = union' needs lists of keys, but there are none}}
    %o, %l = ssa.sparse_attend %q, %k, %v {ssa.schedule = #ssa.schedule<order = union, instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2>}
        : !q, !kv, !kv -> !q, !l
    return %o : !q
  }
}

// -----

!q = tensor<1x8x?x128xbf16>
!kv = tensor<1x2x?x128xbf16>
!l = tensor<1x8x?xf32>

module attributes {ssa.target = #ssa.target<sm_90a>} {
  func.func @order_of_one_list(%q: !q, %k: !kv, %v: !kv, %s: !ssa.selection<1x2x1x4, key_block = 64, sorted>) -> !q {
    // expected-error @below {{'order = key_outer' needs lists that differ between queries, but all queries share one}}
    %o, %l = ssa.sparse_attend %q, %k, %v at %s {ssa.schedule = #ssa.schedule<order = key_outer, instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2>}
        : !q, !kv, !kv, !ssa.selection<1x2x1x4, key_block = 64, sorted> -> !q, !l
    return %o : !q
  }
}

// -----

!q = tensor<1x8x?x128xbf16>
!kv = tensor<1x2x?x128xbf16>
!l = tensor<1x8x?xf32>

module attributes {ssa.target = #ssa.target<sm_90a>} {
  func.func @heads_of_query_blocks(%q: !q, %k: !kv, %v: !kv, %s: !ssa.selection<1x2x?x4, key_block = 64, query_block = 8, sorted>) -> !q {
    // expected-error @below {{'order = head_packed' needs a list for every query, but lists are for 8 queries}}
    %o, %l = ssa.sparse_attend %q, %k, %v at %s {ssa.schedule = #ssa.schedule<order = head_packed, instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2>}
        : !q, !kv, !kv, !ssa.selection<1x2x?x4, key_block = 64, query_block = 8, sorted> -> !q, !l
    return %o : !q
  }
}

// -----

!q = tensor<1x8x?x128xbf16>
!kv = tensor<1x2x?x128xbf16>
!l = tensor<1x8x?xf32>

module attributes {ssa.target = #ssa.target<sm_90a>} {
  func.func @union_of_one(%q: !q, %k: !kv, %v: !kv, %s: !ssa.selection<1x2x?x4, key_block = 64, query_block = 16, sorted>) -> !q {
    // expected-error @below {{'order = union' needs two lists in a tile, but one has 64 rows and 'tile_rows' is 64}}
    %o, %l = ssa.sparse_attend %q, %k, %v at %s {ssa.schedule = #ssa.schedule<order = union, instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2>}
        : !q, !kv, !kv, !ssa.selection<1x2x?x4, key_block = 64, query_block = 16, sorted> -> !q, !l
    return %o : !q
  }
}

// -----

!q = tensor<1x8x?x128xbf16>
!kv = tensor<1x2x?x128xbf16>
!l = tensor<1x8x?xf32>

module attributes {ssa.target = #ssa.target<sm_90a>} {
  func.func @union_of_long_lists(%q: !q, %k: !kv, %v: !kv, %s: !ssa.selection<1x2x?x600, key_block = 1, sorted>) -> !q {
    // expected-error @below {{'order = union' sorts up to 8192 numbers, but 16 lists of a tile have 9600; lower 'tile_rows'}}
    %o, %l = ssa.sparse_attend %q, %k, %v at %s {ssa.schedule = #ssa.schedule<order = union, instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2>}
        : !q, !kv, !kv, !ssa.selection<1x2x?x600, key_block = 1, sorted> -> !q, !l
    return %o : !q
  }
}

// -----

!q = tensor<1x8x?x128xbf16>
!kv = tensor<1x2x?x128xbf16>
!l = tensor<1x8x?xf32>

module attributes {ssa.target = #ssa.target<sm_90a>} {
  func.func @parts_of_steps(%q: !q, %k: !kv, %v: !kv, %s: !ssa.selection<1x2x?x4, key_block = 32, sorted>) -> !q {
    // expected-error @below {{'order = key_outer' needs blocks of whole steps, but 'tile_keys' is 64 and blocks have 32 keys}}
    %o, %l = ssa.sparse_attend %q, %k, %v at %s {ssa.schedule = #ssa.schedule<order = key_outer, instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2>}
        : !q, !kv, !kv, !ssa.selection<1x2x?x4, key_block = 32, sorted> -> !q, !l
    return %o : !q
  }
}

// -----

!q = tensor<1x8x?x128xbf16>
!g = tensor<1x2x?x256x128xbf16>
!l = tensor<1x8x?xf32>
!sel = !ssa.selection<1x2x?x4, key_block = 64>

module attributes {ssa.target = #ssa.target<sm_90a>} {
  func.func @gathered(%q: !q, %k: !g, %v: !g, %k0: tensor<1x2x?x128xbf16>, %s: !sel) -> !q {
    // expected-error @below {{'order = key_outer' needs keys that lists share, but they are gathered for every list}}
    %o, %l = ssa.sparse_attend %q, %k, %v of %k0 at %s
        {ssa.schedule = #ssa.schedule<order = key_outer, instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2>}
        : !q, !g, !g, tensor<1x2x?x128xbf16>, !sel -> !q, !l
    return %o : !q
  }
}

// -----

!q = tensor<1x8x?x128xf16>
!kv = tensor<1x2x?x128xf16>
!l = tensor<1x8x?xf32>
!sel = !ssa.selection<1x2x?x4, key_block = 64, sorted>

module attributes {ssa.target = #ssa.target<sm_90a>} {
  func.func @partials(%q: !q, %k: !kv, %v: !kv, %s: !sel) -> !q {
    // expected-error @below {{'partials = bf16' is for outputs of bf16: others are more accurate}}
    %o, %l = ssa.sparse_attend %q, %k, %v at %s
        {ssa.schedule = #ssa.schedule<order = key_outer, instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2, partials = bf16>}
        : !q, !kv, !kv, !sel -> !q, !l
    return %o : !q
  }
}

// -----

!q = tensor<1x8x?x128xbf16>
!kv = tensor<1x2x?x128xbf16>
!l = tensor<1x8x?xf32>
!sel = !ssa.selection<1x2x?x0, key_block = 64, sorted>

module attributes {ssa.target = #ssa.target<sm_90a>} {
  func.func @empty_lists(%q: !q, %k: !kv, %v: !kv, %s: !sel) -> !q {
    // expected-error @below {{'order = union' needs lists with numbers, but they have none}}
    %o, %l = ssa.sparse_attend %q, %k, %v at %s {ssa.schedule = #ssa.schedule<order = union, instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2>}
        : !q, !kv, !kv, !sel -> !q, !l
    return %o : !q
  }
}

// -----

!q = tensor<1x8x?x128xbf16>
!kv = tensor<1x2x?x128xbf16>
!l = tensor<1x8x?xf32>
!mla = tensor<1x128x?x576xbf16>
!latent = tensor<1x1x?x576xbf16>
!value = tensor<1x1x?x512xbf16>
!out = tensor<1x128x?x512xbf16>
!tokens = !ssa.selection<1x1x?x64, sorted>

module attributes {ssa.target = #ssa.target<sm_100a>} {
  // Two tiles of 128 rows, which is what fills tensor memory.
  // CHECK-LABEL: @tensor_range
  // CHECK: #ssa.schedule<instruction = tcgen05, tile_rows = 256, tile_keys = 64, stages = 4>
  func.func @tensor_range(%q: !q, %k: !kv, %v: !kv) -> !q {
    %o, %l = ssa.sparse_attend %q, %k, %v : !q, !kv, !kv -> !q, !l
    return %o : !q
  }

  // CHECK-LABEL: @tensor_per_query
  // CHECK: #ssa.schedule<order = head_packed, instruction = tcgen05, tile_rows = 128, tile_keys = 64, stages = 2>
  func.func @tensor_per_query(%q: !q, %k: !kv, %v: !kv, %s: !ssa.selection<1x2x?x4, key_block = 64, sorted>) -> !q {
    %o, %l = ssa.sparse_attend %q, %k, %v at %s : !q, !kv, !kv, !ssa.selection<1x2x?x4, key_block = 64, sorted> -> !q, !l
    return %o : !q
  }

  // Outputs that one block would make in two parts, a pair of blocks makes at once.
  // CHECK-LABEL: @tensor_latent
  // CHECK: #ssa.schedule<order = head_packed, instruction = tcgen05, tile_rows = 128, tile_keys = 128, stages = 1, pair = true>
  func.func @tensor_latent(%q: !mla, %k: !latent, %s: !tokens) -> !out {
    %n = arith.constant 2 : index
    %d = tensor.dim %k, %n : !latent
    %v = tensor.extract_slice %k[0, 0, 0, 0] [1, 1, %d, 512] [1, 1, 1, 1] : !latent to !value
    %o, %l = ssa.sparse_attend %q, %k, %v at %s : !mla, !latent, !value, !tokens -> !out, tensor<1x128x?xf32>
    return %o : !out
  }
}

// -----

!q = tensor<1x8x?x128xbf16>
!kv = tensor<1x2x?x128xbf16>
!l = tensor<1x8x?xf32>

module attributes {ssa.target = #ssa.target<sm_120a>} {
  func.func @tensor_instruction(%q: !q, %k: !kv, %v: !kv) -> !q {
    // expected-error @below {{'instruction = tcgen05' requires sm_100a, sm_100f, sm_103a or sm_110a, but the target is 'sm_120a'; use 'mma_sync'}}
    %o, %l = ssa.sparse_attend %q, %k, %v {ssa.schedule = #ssa.schedule<instruction = tcgen05, tile_rows = 128, tile_keys = 64, stages = 2>}
        : !q, !kv, !kv -> !q, !l
    return %o : !q
  }
}

// -----

!q = tensor<1x8x?x128xbf16>
!kv = tensor<1x2x?x128xbf16>
!l = tensor<1x8x?xf32>

module attributes {ssa.target = #ssa.target<sm_100a>} {
  func.func @tensor_memory(%q: !q, %k: !kv, %v: !kv) -> !q {
    // expected-error @below {{'ssa.schedule' needs 1024 columns of tensor memory, but sm_100a has 512; lower 'tile_keys' or 'tile_rows'}}
    %o, %l = ssa.sparse_attend %q, %k, %v {ssa.schedule = #ssa.schedule<instruction = tcgen05, tile_rows = 256, tile_keys = 128, stages = 2>}
        : !q, !kv, !kv -> !q, !l
    return %o : !q
  }
}

// -----

!q = tensor<1x8x?x128xbf16>
!kv = tensor<1x2x?x128xbf16>
!l = tensor<1x8x?xf32>

module attributes {ssa.target = #ssa.target<sm_100a>} {
  func.func @pair_of_values(%q: !q, %k: !kv, %v: !kv) -> !q {
    // expected-error @below {{'pair' needs values that are the first columns of keys that are not gathered, and head dims that are multiples of 64, of values of 128, but they are 128 and 128}}
    %o, %l = ssa.sparse_attend %q, %k, %v {ssa.schedule = #ssa.schedule<instruction = tcgen05, tile_rows = 128, tile_keys = 128, stages = 1, pair = true>}
        : !q, !kv, !kv -> !q, !l
    return %o : !q
  }
}

// -----

!wide = tensor<1x2x?x384xbf16>
!l = tensor<1x2x?xf32>

module attributes {ssa.target = #ssa.target<sm_100>} {
  func.func @columns_of_groups(%q: !wide, %k: !wide, %v: !wide) -> !wide {
    // expected-error @below {{'ssa.schedule' needs 'tile_keys' to be a multiple of 48, as 3 groups of warps share outputs of 384 columns, but it is 32}}
    %o, %l = ssa.sparse_attend %q, %k, %v : !wide, !wide, !wide -> !wide, !l
    return %o : !wide
  }
}

// -----

!wide = tensor<1x2x?x384xbf16>
!l = tensor<1x2x?xf32>

module attributes {ssa.target = #ssa.target<sm_90a>} {
  func.func @steps_of_groups(%q: !wide, %k: !wide) -> !wide {
    // expected-error @below {{'ssa.schedule' needs 'stages' to be 2, as two groups of warps have a step each of keys that values are part of, but it is 4}}
    %o, %l = ssa.sparse_attend %q, %k, %k {ssa.schedule = #ssa.schedule<instruction = wgmma, tile_rows = 64, tile_keys = 32, stages = 4>} : !wide, !wide, !wide -> !wide, !l
    return %o : !wide
  }
}
