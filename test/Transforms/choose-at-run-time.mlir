// RUN: ssa-opt %s --split-input-file --verify-diagnostics --ssa-select-schedule | FileCheck %s --check-prefixes=CHECK,OP
// RUN: ssa-opt %s --split-input-file --verify-diagnostics --ssa-select-schedule="choose-at-run-time=true" | FileCheck %s --check-prefixes=CHECK,ALL

!q = tensor<1x64x?x128xbf16>
!kv = tensor<1x4x?x128xbf16>
!l = tensor<1x64x?xf32>
!s = !ssa.selection<1x4x?x16, key_block = 64, sorted>

module attributes {ssa.target = #ssa.target<sm_90a>} {
  // Where lists agree in enough, their union is the faster way; nobody says in how much they do.
  // CHECK-LABEL: @wanted
  // CHECK: ssa.agreeing = #ssa.agreeing<percent = {{[12]?[0-9]}}, schedule = <order = union,
  // CHECK-SAME: ssa.schedule = #ssa.schedule<order = key_outer,
  func.func @wanted(%q: !q, %k: !kv, %v: !kv, %s: !s) -> !q {
    %o, %l = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>, ssa.choose_at_run_time} : !q, !kv, !kv, !s -> !q, !l
    return %o : !q
  }

  // Without being asked the pass does so for none.
  // CHECK-LABEL: @not_asked
  // OP-NOT: ssa.agreeing
  // ALL: ssa.agreeing
  // CHECK: return
  func.func @not_asked(%q: !q, %k: !kv, %v: !kv, %s: !s) -> !q {
    %o, %l = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>} : !q, !kv, !kv, !s -> !q, !l
    return %o : !q
  }

  // It is known here.
  // CHECK-LABEL: @said
  // CHECK-NOT: ssa.agreeing
  // CHECK: return
  func.func @said(%q: !q, %k: !kv, %v: !kv, %s: !s) -> !q {
    %o, %l = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>, ssa.agreement = 0.5, ssa.choose_at_run_time} : !q, !kv, !kv, !s -> !q, !l
    return %o : !q
  }

  // What is written stays.
  // CHECK-LABEL: @written
  // CHECK: ssa.agreeing = #ssa.agreeing<percent = 40, schedule = <order = union, instruction = mma_sync, tile_rows = 64, tile_keys = 32, stages = 2>>
  // CHECK-SAME: ssa.schedule = #ssa.schedule<order = head_packed, instruction = mma_sync, tile_rows = 16, tile_keys = 16, stages = 4>
  func.func @written(%q: !q, %k: !kv, %v: !kv, %s: !s) -> !q {
    %o, %l = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>,
        ssa.schedule = #ssa.schedule<order = head_packed, instruction = mma_sync, tile_rows = 16, tile_keys = 16, stages = 4>,
        ssa.agreeing = #ssa.agreeing<percent = 40, schedule = <order = union, instruction = mma_sync, tile_rows = 64, tile_keys = 32, stages = 2>>}
        : !q, !kv, !kv, !s -> !q, !l
    return %o : !q
  }

  // CHECK-LABEL: @dense
  // CHECK-NOT: ssa.agreeing
  // CHECK: return
  func.func @dense(%q: !q, %k: !kv, %v: !kv) -> !q {
    // expected-remark @below {{is not chosen at run time: there are no lists of numbers that those of neighbouring queries may have, too}}
    %o, %l = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal>, ssa.choose_at_run_time} : !q, !kv, !kv -> !q, !l
    return %o : !q
  }

  // Single tokens of 64 heads: the heads of a query fill a tile.
  // CHECK-LABEL: @one_is_best
  // CHECK-NOT: ssa.agreeing
  // CHECK: return
  func.func @one_is_best(%q: !q, %k: tensor<1x1x?x128xbf16>, %s: !ssa.selection<1x1x?x64, key_block = 1, sorted>) -> !q {
    // expected-remark @below {{is not chosen at run time: one schedule is the best for lists that agree and for those that do not}}
    %o, %l = ssa.sparse_attend %q, %k, %k at %s {mask = #ssa.mask<causal>, ssa.choose_at_run_time}
        : !q, tensor<1x1x?x128xbf16>, tensor<1x1x?x128xbf16>, !ssa.selection<1x1x?x64, key_block = 1, sorted> -> !q, !l
    return %o : !q
  }
}

// -----

!q = tensor<1x64x?x128xbf16>
!kv = tensor<1x4x?x128xbf16>
!l = tensor<1x64x?xf32>
!s = !ssa.selection<1x4x?x16, key_block = 64, sorted>

module attributes {ssa.target = #ssa.target<sm_100a>} {
  // CHECK-LABEL: @not_measured
  // CHECK-NOT: ssa.agreeing
  // CHECK: return
  func.func @not_measured(%q: !q, %k: !kv, %v: !kv, %s: !s) -> !q {
    // expected-remark @below {{is not chosen at run time: rates of 'sm_100a' have not been measured}}
    %o, %l = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>, ssa.choose_at_run_time} : !q, !kv, !kv, !s -> !q, !l
    return %o : !q
  }
}

// -----

!q = tensor<1x64x?x128xbf16>
!kv = tensor<1x4x?x128xbf16>
!l = tensor<1x64x?xf32>

module attributes {ssa.target = #ssa.target<sm_90a>} {
  func.func @no_lists(%q: !q, %k: !kv, %v: !kv) -> !q {
    // expected-error @below {{cannot have 'ssa.agreeing': it has no lists of numbers that those of neighbouring queries may have, too}}
    %o, %l = ssa.sparse_attend %q, %k, %v
        {ssa.agreeing = #ssa.agreeing<percent = 40, schedule = <instruction = mma_sync, tile_rows = 64, tile_keys = 32, stages = 2>>} : !q, !kv, !kv -> !q, !l
    return %o : !q
  }
}

// -----

!q = tensor<1x64x?x128xbf16>
!kv = tensor<1x4x?x128xbf16>
!l = tensor<1x64x?xf32>
!s = !ssa.selection<1x4x?x16, key_block = 64, sorted>

module attributes {ssa.target = #ssa.target<sm_90a>} {
  func.func @second_schedule(%q: !q, %k: !kv, %v: !kv, %s: !s) -> !q {
    // expected-error @below {{'order = union' needs two lists in a tile, but one has 16 rows and 'tile_rows' is 16}}
    %o, %l = ssa.sparse_attend %q, %k, %v at %s
        {ssa.agreeing = #ssa.agreeing<percent = 40, schedule = <order = union, instruction = mma_sync, tile_rows = 16, tile_keys = 32, stages = 2>>}
        : !q, !kv, !kv, !s -> !q, !l
    return %o : !q
  }
}
