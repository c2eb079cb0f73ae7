// RUN: ssa-opt %s --split-input-file --verify-diagnostics --convert-ssa-to-ssa-gpu | FileCheck %s

!q = tensor<?x8x?x64xbf16>
!kv = tensor<?x2x?x64xbf16>
!l = tensor<?x8x?xf32>
!s = tensor<?x2x?x?xf32>
!sel = !ssa.selection<?x2x?x4, key_block = 16, sorted>

module attributes {ssa.target = #ssa.target<sm_90a>} {
  // One loop has what a part needs from its scores to its outputs; each of three that are under way has memory of its own.
  // CHECK-LABEL: func.func @parts
  //       CHECK: %[[COUNT:.*]] = arith.minsi %{{.*}}, %c3{{.*}} : index
  //       CHECK: %[[LANES:.*]] = arith.maxsi %[[COUNT]],
  //       CHECK: %[[SIZE:.*]] = arith.muli %{{.*}}, %[[LANES]] : index
  //       CHECK: memref.alloc(%[[SIZE]], {{.*}}x?xf32>
  //       CHECK: memref.alloc({{.*}}x64xi32>
  //       CHECK: memref.alloc({{.*}}x64xi32>
  //       CHECK: scf.for %[[PART:.*]] =
  //       CHECK:   arith.remui %[[PART]], %[[LANES]]
  //       CHECK:   gpu.launch_func @kernels::@ssa_route
  //       CHECK:   gpu.launch_func @kernels::@ssa_topk
  //       CHECK:   gpu.launch_func @kernels::@ssa_union_of_neighbours
  //       CHECK:   gpu.launch_func @kernels::@ssa_sparse_attend
  //       CHECK: } {ssa.lanes = 3 : i64}
  func.func @parts(%q: !q, %k: !kv, %v: !kv) -> !q {
    %s = ssa.route %q, %k of %k {blocks = #ssa.blocks<16>, mask = #ssa.mask<causal>, reduce = sum} : !q, !kv, !kv -> !s
    %a = ssa.topk %s of %k {mask = #ssa.mask<causal>, ssa.chunk = #ssa.chunk<bytes = 1048576, rows = 64>} : !s, !kv -> !sel
    %o, %z = ssa.sparse_attend %q, %k, %v at %a {mask = #ssa.mask<causal>, ssa.overlap = #ssa.overlap<rows = 32, lanes = 3>, ssa.schedule = #ssa.schedule<order = union, instruction = wgmma, tile_rows = 64, tile_keys = 32, stages = 2>}
        : !q, !kv, !kv, !sel -> !q, !l
    return %o : !q
  }
}

// -----

!q = tensor<?x8x?x64xbf16>
!kv = tensor<?x2x?x64xbf16>
!l = tensor<?x8x?xf32>
!s = tensor<?x2x?x?xf32>
!sel = !ssa.selection<?x2x?x4, key_block = 16, sorted>

module attributes {ssa.target = #ssa.target<sm_90a>} {
  func.func @no_chain(%q: !q, %k: !kv, %v: !kv) -> !q {
    %s = ssa.route %q, %k of %k {blocks = #ssa.blocks<16>, mask = #ssa.mask<causal>, reduce = sum} : !q, !kv, !kv -> !s
    %a = ssa.topk %s of %k {mask = #ssa.mask<causal>} : !s, !kv -> !sel
    // expected-error @below {{cannot have 'ssa.overlap': its lists are not those of an 'ssa.topk' that selects from scores in chunks}}
    %o, %z = ssa.sparse_attend %q, %k, %v at %a {mask = #ssa.mask<causal>, ssa.overlap = #ssa.overlap<rows = 32>, ssa.schedule = #ssa.schedule<order = union, instruction = wgmma, tile_rows = 64, tile_keys = 32, stages = 2>}
        : !q, !kv, !kv, !sel -> !q, !l
    return %o : !q
  }
}

// -----

!q = tensor<?x8x?x64xbf16>
!kv = tensor<?x2x?x64xbf16>
!l = tensor<?x8x?xf32>
!s = tensor<?x2x?x?xf32>
!sel = !ssa.selection<?x2x?x4, key_block = 16, sorted>

module attributes {ssa.target = #ssa.target<sm_90a>} {
  func.func @others(%q: !q, %k: !kv, %v: !kv) -> (!q, tensor<?x2x?x4xi32>) {
    %s = ssa.route %q, %k of %k {blocks = #ssa.blocks<16>, mask = #ssa.mask<causal>, reduce = sum} : !q, !kv, !kv -> !s
    %a = ssa.topk %s of %k {mask = #ssa.mask<causal>, ssa.chunk = #ssa.chunk<bytes = 1048576, rows = 64>} : !s, !kv -> !sel
    // expected-error @below {{cannot have 'ssa.overlap': its lists are read by others, too}}
    %o, %z = ssa.sparse_attend %q, %k, %v at %a {mask = #ssa.mask<causal>, ssa.overlap = #ssa.overlap<rows = 32>, ssa.schedule = #ssa.schedule<order = union, instruction = wgmma, tile_rows = 64, tile_keys = 32, stages = 2>}
        : !q, !kv, !kv, !sel -> !q, !l
    %t = ssa.to_indices %a : !sel -> tensor<?x2x?x4xi32>
    return %o, %t : !q, tensor<?x2x?x4xi32>
  }
}

// -----

!q = tensor<?x8x?x64xbf16>
!kv = tensor<?x2x?x64xbf16>
!l = tensor<?x8x?xf32>
!s = tensor<?x2x?x?xf32>
!sel = !ssa.selection<?x2x?x4, key_block = 16, sorted>

module attributes {ssa.target = #ssa.target<sm_90a>} {
  func.func @mask(%q: !q, %k: !kv, %v: !kv) -> !q {
    %s = ssa.route %q, %k of %k {blocks = #ssa.blocks<16>, mask = #ssa.mask<causal>, reduce = sum} : !q, !kv, !kv -> !s
    %a = ssa.topk %s of %k {mask = #ssa.mask<causal>, ssa.chunk = #ssa.chunk<bytes = 1048576, rows = 64>} : !s, !kv -> !sel
    // expected-error @below {{cannot have 'ssa.overlap': queries of a part are the last of a sequence under a causal mask only}}
    %o, %z = ssa.sparse_attend %q, %k, %v at %a {ssa.overlap = #ssa.overlap<rows = 32>, ssa.schedule = #ssa.schedule<order = union, instruction = wgmma, tile_rows = 64, tile_keys = 32, stages = 2>}
        : !q, !kv, !kv, !sel -> !q, !l
    return %o : !q
  }
}

// -----

!q = tensor<?x8x?x64xbf16>
!kv = tensor<?x2x?x64xbf16>
!l = tensor<?x8x?xf32>
!s = tensor<?x2x?x?xf32>
!sel = !ssa.selection<?x2x?x4, key_block = 16, sorted>

module attributes {ssa.target = #ssa.target<sm_90a>} {
  func.func @order(%q: !q, %k: !kv, %v: !kv) -> !q {
    %s = ssa.route %q, %k of %k {blocks = #ssa.blocks<16>, mask = #ssa.mask<causal>, reduce = sum} : !q, !kv, !kv -> !s
    %a = ssa.topk %s of %k {mask = #ssa.mask<causal>, ssa.chunk = #ssa.chunk<bytes = 1048576, rows = 64>} : !s, !kv -> !sel
    // expected-error @below {{cannot have 'ssa.overlap': it needs one schedule, on tensor cores, that is not split and whose order is not key_outer, which has a loop of its own}}
    %o, %z = ssa.sparse_attend %q, %k, %v at %a {mask = #ssa.mask<causal>, ssa.overlap = #ssa.overlap<rows = 32>, ssa.schedule = #ssa.schedule<order = key_outer, instruction = wgmma, tile_rows = 64, tile_keys = 16, stages = 2>}
        : !q, !kv, !kv, !sel -> !q, !l
    return %o : !q
  }
}

// -----

!q = tensor<?x8x?x64xbf16>
!kv = tensor<?x2x?x64xbf16>
!l = tensor<?x8x?xf32>
!s = tensor<?x2x?x?xf32>
!sel = !ssa.selection<?x2x?x4, key_block = 16, sorted>

module attributes {ssa.target = #ssa.target<sm_90a>} {
  func.func @rows(%q: !q, %k: !kv, %v: !kv) -> !q {
    %s = ssa.route %q, %k of %k {blocks = #ssa.blocks<16>, mask = #ssa.mask<causal>, reduce = sum} : !q, !kv, !kv -> !s
    %a = ssa.topk %s of %k {mask = #ssa.mask<causal>, ssa.chunk = #ssa.chunk<bytes = 1048576, rows = 64>} : !s, !kv -> !sel
    // expected-error @below {{cannot have 'ssa.overlap': expected 'rows' to be a multiple of 16, the lists that go together, but got 40}}
    %o, %z = ssa.sparse_attend %q, %k, %v at %a {mask = #ssa.mask<causal>, ssa.overlap = #ssa.overlap<rows = 40>, ssa.schedule = #ssa.schedule<order = union, instruction = wgmma, tile_rows = 64, tile_keys = 32, stages = 2>}
        : !q, !kv, !kv, !sel -> !q, !l
    return %o : !q
  }
}
