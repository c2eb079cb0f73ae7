// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: ssa-opt %s --split-input-file --verify-diagnostics --ssa-attach-target=chip=sm_90a --ssa-select-schedule --convert-ssa-to-ssa-gpu --canonicalize | FileCheck %s

!q = tensor<1x32x?x128xbf16>
!kv = tensor<1x2x?x128xbf16>
!l = tensor<1x32x?xf32>
!s = tensor<1x2x?x?xf32>
!sel = !ssa.selection<1x2x?x16, key_block = 64, sorted>

// Of 16 places of a list 13 have partial outputs. The kernel of the others sees the first block and a window that begins with one, and adds these to what it
// stores, in boxes of eight lists; nothing else joins them.
// CHECK: gpu.func @ssa_sparse_attend(
// CHECK: in_quads
// CHECK: gpu.func @ssa_sparse_attend_1(
// CHECK: ssa_gpu.alloc : <4x128x128xbf16>
// CHECK: scf.for {{.*}} iter_args
// CHECK: ssa_gpu.load_quads
// CHECK: ssa_gpu.store_rows
// CHECK-NOT: ssa_join_partials
// CHECK-LABEL: func.func @apart
func.func @apart(%q: !q, %k: !kv, %v: !kv, %s: !s) -> (!q, !l) {
  %a = ssa.topk %s of %k {init_blocks = 1, local_blocks = 2, mask = #ssa.mask<causal>} : !s, !kv -> !sel
  %o, %l = ssa.sparse_attend %q, %k, %v at %a {mask = #ssa.mask<causal>, ssa.forced_apart,
      ssa.schedule = #ssa.schedule<order = key_outer, instruction = wgmma, tile_rows = 192, tile_keys = 64, stages = 2, partials = bf16>} : !q, !kv, !kv, !sel -> !q, !l
  return %o, %l : !q, !l
}

// -----

!q = tensor<1x32x?x128xbf16>
!kv = tensor<1x2x?x128xbf16>
!l = tensor<1x32x?xf32>
!s = tensor<1x2x?x?xf32>
!sel = !ssa.selection<1x2x?x16, key_block = 64, sorted>

func.func @lists_from_outside(%q: !q, %k: !kv, %v: !kv, %s: tensor<1x2x?x16xi32>) -> !q {
  %n = ssa.from_indices %s : tensor<1x2x?x16xi32> -> !ssa.selection<1x2x?x16, key_block = 64>
  %a = ssa.sort %n : !ssa.selection<1x2x?x16, key_block = 64> -> !sel
  // expected-error @below {{cannot have 'ssa.forced_apart': no 'ssa.topk' forces blocks into its lists}}
  %o, %l = ssa.sparse_attend %q, %k, %v at %a {mask = #ssa.mask<causal>, ssa.forced_apart,
      ssa.schedule = #ssa.schedule<order = key_outer, instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2, partials = bf16>} : !q, !kv, !kv, !sel -> !q, !l
  return %o : !q
}

// -----

!q = tensor<1x32x?x128xbf16>
!kv = tensor<1x2x?x128xbf16>
!l = tensor<1x32x?xf32>
!s = tensor<1x2x?x?xf32>
!sel = !ssa.selection<1x2x?x16, key_block = 64, sorted>

func.func @nothing_forced(%q: !q, %k: !kv, %v: !kv, %s: !s) -> !q {
  %a = ssa.topk %s of %k {mask = #ssa.mask<causal>} : !s, !kv -> !sel
  // expected-error @below {{cannot have 'ssa.forced_apart': no 'ssa.topk' forces blocks into its lists}}
  %o, %l = ssa.sparse_attend %q, %k, %v at %a {mask = #ssa.mask<causal>, ssa.forced_apart,
      ssa.schedule = #ssa.schedule<order = key_outer, instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2, partials = bf16>} : !q, !kv, !kv, !sel -> !q, !l
  return %o : !q
}

// -----

!q = tensor<1x32x?x128xbf16>
!kv = tensor<1x2x?x128xbf16>
!l = tensor<1x32x?xf32>
!s = tensor<1x2x?x?xf32>
!sel = !ssa.selection<1x2x?x16, key_block = 64, sorted>

func.func @threshold(%q: !q, %k: !kv, %v: !kv, %s: !s) -> !q {
  %a = ssa.topk %s of %k {init_blocks = 1, local_blocks = 2, threshold = 0.5, mask = #ssa.mask<causal>} : !s, !kv -> !sel
  // expected-error @below {{cannot have 'ssa.forced_apart': a list is selected by more than scores}}
  %o, %l = ssa.sparse_attend %q, %k, %v at %a {mask = #ssa.mask<causal>, ssa.forced_apart,
      ssa.schedule = #ssa.schedule<order = key_outer, instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2, partials = bf16>} : !q, !kv, !kv, !sel -> !q, !l
  return %o : !q
}

// -----

!q = tensor<1x32x?x128xbf16>
!kv = tensor<1x2x?x128xbf16>
!l = tensor<1x32x?xf32>
!s = tensor<1x2x?x?xf32>
!sel = !ssa.selection<1x2x?x16, key_block = 64, sorted>

func.func @no_own_block(%q: !q, %k: !kv, %v: !kv, %s: !s) -> !q {
  %a = ssa.topk %s of %k {init_blocks = 1, mask = #ssa.mask<causal>} : !s, !kv -> !sel
  // expected-error @below {{cannot have 'ssa.forced_apart': a list lacks the query's own block, unless it is chosen}}
  %o, %l = ssa.sparse_attend %q, %k, %v at %a {mask = #ssa.mask<causal>, ssa.forced_apart,
      ssa.schedule = #ssa.schedule<order = key_outer, instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2, partials = bf16>} : !q, !kv, !kv, !sel -> !q, !l
  return %o : !q
}

// -----

!q = tensor<1x32x?x128xbf16>
!kv = tensor<1x2x?x128xbf16>
!l = tensor<1x32x?xf32>
!s = tensor<1x2x?x?xf32>
!sel = !ssa.selection<1x2x?x16, key_block = 64, query_block = 4, sorted>

func.func @several_queries(%q: !q, %k: !kv, %v: !kv, %s: !s) -> !q {
  %a = ssa.topk %s of %k for %q {init_blocks = 1, local_blocks = 2, mask = #ssa.mask<causal>} : !s, !kv, !q -> !sel
  // expected-error @below {{cannot have 'ssa.forced_apart': a list is for several queries}}
  %o, %l = ssa.sparse_attend %q, %k, %v at %a {mask = #ssa.mask<causal>, ssa.forced_apart,
      ssa.schedule = #ssa.schedule<order = key_outer, instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2, partials = bf16>} : !q, !kv, !kv, !sel -> !q, !l
  return %o : !q
}

// -----

!q = tensor<1x32x?x128xbf16>
!kv = tensor<1x2x?x128xbf16>
!l = tensor<1x32x?xf32>
!s = tensor<1x2x?x?xf32>
!sel = !ssa.selection<1x2x?x16, key_block = 64, sorted>

func.func @window(%q: !q, %k: !kv, %v: !kv, %s: !s) -> !q {
  %a = ssa.topk %s of %k {init_blocks = 1, local_blocks = 2, mask = #ssa.mask<causal, window = 500>} : !s, !kv -> !sel
  // expected-error @below {{cannot have 'ssa.forced_apart': a list is of other keys than those before the query}}
  %o, %l = ssa.sparse_attend %q, %k, %v at %a {mask = #ssa.mask<causal>, ssa.forced_apart,
      ssa.schedule = #ssa.schedule<order = key_outer, instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2, partials = bf16>} : !q, !kv, !kv, !sel -> !q, !l
  return %o : !q
}

// -----

!q = tensor<1x32x?x128xbf16>
!kv = tensor<1x2x?x128xbf16>
!l = tensor<1x32x?xf32>
!s = tensor<1x2x?x?xf32>
!sel = !ssa.selection<1x2x?x16, key_block = 64, sorted>

func.func @other_tokens(%q: !q, %k: !kv, %v: !kv, %s: !s, %t: !kv) -> !q {
  %a = ssa.topk %s of %t {init_blocks = 1, local_blocks = 2, mask = #ssa.mask<causal>} : !s, !kv -> !sel
  // expected-error @below {{cannot have 'ssa.forced_apart': a list is of other tokens}}
  %o, %l = ssa.sparse_attend %q, %k, %v at %a {mask = #ssa.mask<causal>, ssa.forced_apart,
      ssa.schedule = #ssa.schedule<order = key_outer, instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2, partials = bf16>} : !q, !kv, !kv, !sel -> !q, !l
  return %o : !q
}

// -----

!q = tensor<1x32x?x128xbf16>
!kv = tensor<1x1x?x128xbf16>
!l = tensor<1x32x?xf32>
!s = tensor<1x2x?x?xf32>
!sel = !ssa.selection<1x2x?x16, key_block = 64, sorted>

func.func @two_lists_of_a_head(%q: !q, %k: !kv, %v: !kv, %s: !s) -> !q {
  %a = ssa.topk %s of %k {init_blocks = 1, local_blocks = 2, mask = #ssa.mask<causal>} : !s, !kv -> !sel
  // expected-error @below {{cannot have 'ssa.forced_apart': a list is for some of the heads that read the same keys}}
  %o, %l = ssa.sparse_attend %q, %k, %v at %a {mask = #ssa.mask<causal>, ssa.forced_apart,
      ssa.schedule = #ssa.schedule<order = key_outer, instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2, partials = bf16>} : !q, !kv, !kv, !sel -> !q, !l
  return %o : !q
}

// -----

!q = tensor<1x32x?x128xbf16>
!kv = tensor<1x2x?x128xbf16>
!l = tensor<1x32x?xf32>
!s = tensor<1x2x?x?xf32>
!sel = !ssa.selection<1x2x?x16, key_block = 1073741824, sorted>

func.func @many_keys(%q: !q, %k: !kv, %v: !kv, %s: !s) -> !q {
  %a = ssa.topk %s of %k {init_blocks = 1, local_blocks = 2, mask = #ssa.mask<causal>} : !s, !kv -> !sel
  // expected-remark @below {{would be faster without its lists}}
  // expected-error @below {{cannot have 'ssa.forced_apart': a list has blocks of too many keys}}
  %o, %l = ssa.sparse_attend %q, %k, %v at %a {mask = #ssa.mask<causal>, ssa.forced_apart,
      ssa.schedule = #ssa.schedule<order = key_outer, instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2, partials = bf16>} : !q, !kv, !kv, !sel -> !q, !l
  return %o : !q
}

// -----

!q = tensor<1x32x?x128xbf16>
!kv = tensor<1x2x?x128xbf16>
!l = tensor<1x32x?xf32>
!s = tensor<1x2x?x?xf32>
!sel = !ssa.selection<1x2x?x3, key_block = 64, sorted>

func.func @all_forced(%q: !q, %k: !kv, %v: !kv, %s: !s) -> !q {
  %a = ssa.topk %s of %k {init_blocks = 1, local_blocks = 2, mask = #ssa.mask<causal>} : !s, !kv -> !sel
  // expected-error @below {{cannot have 'ssa.forced_apart': a list has no other blocks}}
  %o, %l = ssa.sparse_attend %q, %k, %v at %a {mask = #ssa.mask<causal>, ssa.forced_apart,
      ssa.schedule = #ssa.schedule<order = key_outer, instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2, partials = bf16>} : !q, !kv, !kv, !sel -> !q, !l
  return %o : !q
}

// -----

!q = tensor<1x32x?x128xbf16>
!kv = tensor<1x2x?x128xbf16>
!l = tensor<1x32x?xf32>
!s = tensor<1x2x?x?xf32>
!sel = !ssa.selection<1x2x?x16, key_block = 64, sorted>

func.func @partials_of_f32(%q: !q, %k: !kv, %v: !kv, %s: !s) -> !q {
  %a = ssa.topk %s of %k {init_blocks = 1, local_blocks = 2, mask = #ssa.mask<causal>} : !s, !kv -> !sel
  // expected-error @below {{cannot have 'ssa.forced_apart': no schedule has 'order = key_outer', 'instruction = wgmma' and 'partials = bf16', for heads of up to 128 columns, of values a multiple of 32}}
  %o, %l = ssa.sparse_attend %q, %k, %v at %a {mask = #ssa.mask<causal>, ssa.forced_apart,
      ssa.schedule = #ssa.schedule<order = key_outer, instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2>} : !q, !kv, !kv, !sel -> !q, !l
  return %o : !q
}
