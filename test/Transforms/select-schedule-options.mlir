// RUN: ssa-opt %s --split-input-file --verify-diagnostics --ssa-select-schedule="agreement=0.9" | FileCheck %s --check-prefixes=CHECK,AGREE
// RUN: ssa-opt %s --split-input-file --verify-diagnostics --ssa-select-schedule="agreement=0 sizes=tokens=131072" | FileCheck %s --check-prefixes=CHECK,RANDOM
// RUN: ssa-opt %s --split-input-file --verify-diagnostics --ssa-select-schedule | FileCheck %s --check-prefixes=CHECK,UNSAID
// RUN: ssa-opt %s --split-input-file --verify-diagnostics --ssa-select-schedule="agreement=0.9 tuning=%S/Inputs/tuning.json" | FileCheck %s --check-prefix=TUNED

!q = tensor<1x64x?x128xbf16>
!kv = tensor<1x4x?x128xbf16>
!l = tensor<1x64x?xf32>
!s = !ssa.selection<1x4x?x16, key_block = 64, sorted>

module attributes {ssa.target = #ssa.target<sm_90a>} {
  // Where lists of neighbours agree, their union is shorter than all of them; where they do not, rows are gathered for a key block at a time.
  // Where nobody says, arguments are lists at random.
  // CHECK-LABEL: @per_query
  // AGREE: ssa.schedule = #ssa.schedule<order = union, instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 3>
  // RANDOM: ssa.schedule = #ssa.schedule<order = key_outer, instruction = wgmma, tile_rows = 192, tile_keys = 64, stages = 2, partials = bf16>
  // UNSAID: ssa.schedule = #ssa.schedule<order = key_outer, instruction = wgmma, tile_rows = 192, tile_keys = 64, stages = 2, partials = bf16>
  // TUNED-LABEL: @per_query
  // TUNED: ssa.schedule = #ssa.schedule<order = head_packed, instruction = mma_sync, tile_rows = 16, tile_keys = 32, stages = 3>
  func.func @per_query(%q: !q, %k: !kv, %v: !kv, %s: !s) -> !q {
    %o, %l = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>} : !q, !kv, !kv, !s -> !q, !l
    return %o : !q
  }

  // What an op says of its lists counts more than what is said of all.
  // CHECK-LABEL: @said
  // CHECK: ssa.schedule = #ssa.schedule<order = key_outer
  func.func @said(%q: !q, %k: !kv, %v: !kv, %s: !s) -> !q {
    %o, %l = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>, ssa.agreement = 0.0} : !q, !kv, !kv, !s -> !q, !l
    return %o : !q
  }

  // What is written stays, whatever was measured.
  // TUNED-LABEL: @written
  // TUNED: ssa.schedule = #ssa.schedule<order = head_packed, instruction = mma_sync, tile_rows = 16, tile_keys = 64, stages = 2>
  func.func @written(%q: !q, %k: !kv, %v: !kv, %s: !s) -> !q {
    %o, %l = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>,
        ssa.schedule = #ssa.schedule<order = head_packed, instruction = mma_sync, tile_rows = 16, tile_keys = 64, stages = 2>} : !q, !kv, !kv, !s -> !q, !l
    return %o : !q
  }
}

// -----

!q = tensor<1x64x1024x128xbf16>
!kv = tensor<1x4x1024x128xbf16>
!l = tensor<1x64x1024xf32>
!s = !ssa.selection<1x4x1024x16, key_block = 64, sorted>

module attributes {ssa.target = #ssa.target<sm_90a>} {
  // The lists of 1024 tokens have all of them.
  func.func @dense_is_faster(%q: !q, %k: !kv, %v: !kv, %s: !s) -> !q {
    // expected-remark @below {{would be faster without its lists: predicted}}
    %o, %l = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>} : !q, !kv, !kv, !s -> !q, !l
    return %o : !q
  }
}

// -----

!q = tensor<1x64x1x128xbf16>
!kv = tensor<1x4x32768x128xbf16>
!l = tensor<1x64x1xf32>

module attributes {ssa.target = #ssa.target<sm_90a>} {
  // Few queries are few tiles; parts of their steps are tiles, too.
  // CHECK-LABEL: @one_query
  // CHECK: split =
  func.func @one_query(%q: !q, %k: !kv, %v: !kv) -> !q {
    %o, %l = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal>} : !q, !kv, !kv -> !q, !l
    return %o : !q
  }
}

// -----

!q = tensor<1x64x?x128xbf16>
!kv = tensor<1x4x?x128xbf16>
!l = tensor<1x64x?xf32>

module attributes {ssa.target = #ssa.target<sm_90a>} {
  func.func @agreement(%q: !q, %k: !kv, %v: !kv) -> !q {
    // expected-error @below {{expected 'ssa.agreement' to be a share in 0.0 .. 1.0, but got 75 : i64}}
    %o, %l = ssa.sparse_attend %q, %k, %v {ssa.agreement = 75} : !q, !kv, !kv -> !q, !l
    return %o : !q
  }
}

// -----

!q = tensor<1x64x?x128xbf16>
!kv = tensor<1x4x?x128xbf16>
!l = tensor<1x64x?xf32>
!s = !ssa.selection<1x4x?x16, key_block = 64, sorted>

module attributes {ssa.target = #ssa.target<sm_90a>} {
  // Lists that a selector makes are taken to agree in half; what is said counts more.
  // CHECK-LABEL: @selected
  // AGREE: ssa.sparse_attend {{.*}}order = union
  // RANDOM: ssa.sparse_attend {{.*}}order = key_outer
  // UNSAID: ssa.sparse_attend {{.*}}order = union
  func.func @selected(%q: !q, %k: !kv, %v: !kv, %x: tensor<1x4x?x?xf32>) -> !q {
    %s = ssa.topk %x of %k {mask = #ssa.mask<causal>} : tensor<1x4x?x?xf32>, !kv -> !s
    %o, %l = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>} : !q, !kv, !kv, !s -> !q, !l
    return %o : !q
  }
}
