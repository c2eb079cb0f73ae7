// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attention that benchmarks/compare.py times, bf16: 64 query heads, 4 key heads, head dim 128, where nothing else is said.
!q = tensor<?x64x?x128xbf16>
!kv = tensor<?x4x?x128xbf16>
!l = tensor<?x64x?xf32>

// All that is causal.
func.func @dense(%q: !q, %k: !kv, %v: !kv) -> !q {
  %o, %l = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal>} : !q, !kv, !kv -> !q, !l
  return %o : !q
}

// The same for 32 query heads.
func.func @dense_32(%q: tensor<?x32x?x128xbf16>, %k: !kv, %v: !kv) -> tensor<?x32x?x128xbf16> {
  %o, %l = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal>}
      : tensor<?x32x?x128xbf16>, !kv, !kv -> tensor<?x32x?x128xbf16>, tensor<?x32x?xf32>
  return %o : tensor<?x32x?x128xbf16>
}

// The last 4096 tokens, and with the first 64.
func.func @window(%q: !q, %k: !kv, %v: !kv) -> !q {
  %o, %l = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal, window = 4096>} : !q, !kv, !kv -> !q, !l
  return %o : !q
}

func.func @window_sink(%q: !q, %k: !kv, %v: !kv) -> !q {
  %o, %l = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal, window = 4096, sink = 64>} : !q, !kv, !kv -> !q, !l
  return %o : !q
}

// NSA's selected branch: 16 blocks of 64 for every query and key head.
func.func @per_query(%q: !q, %k: !kv, %v: !kv, %t: tensor<?x4x?x16xi32>) -> !q {
  %s = ssa.from_indices %t : tensor<?x4x?x16xi32> -> !ssa.selection<?x4x?x16, key_block = 64>
  %o, %l = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>}
      : !q, !kv, !kv, !ssa.selection<?x4x?x16, key_block = 64> -> !q, !l
  return %o : !q
}

// The same where the device looks how much lists agree.
func.func @per_query_any(%q: !q, %k: !kv, %v: !kv, %t: tensor<?x4x?x16xi32>) -> !q {
  %s = ssa.from_indices %t : tensor<?x4x?x16xi32> -> !ssa.selection<?x4x?x16, key_block = 64>
  %o, %l = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>, ssa.choose_at_run_time}
      : !q, !kv, !kv, !ssa.selection<?x4x?x16, key_block = 64> -> !q, !l
  return %o : !q
}

// The same where the share is known that the list of the next query has in common.
func.func @per_query_0(%q: !q, %k: !kv, %v: !kv, %t: tensor<?x4x?x16xi32>) -> !q {
  %s = ssa.from_indices %t : tensor<?x4x?x16xi32> -> !ssa.selection<?x4x?x16, key_block = 64>
  %o, %l = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>, ssa.agreement = 0.0 : f64}
      : !q, !kv, !kv, !ssa.selection<?x4x?x16, key_block = 64> -> !q, !l
  return %o : !q
}
func.func @per_query_75(%q: !q, %k: !kv, %v: !kv, %t: tensor<?x4x?x16xi32>) -> !q {
  %s = ssa.from_indices %t : tensor<?x4x?x16xi32> -> !ssa.selection<?x4x?x16, key_block = 64>
  %o, %l = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>, ssa.agreement = 0.75 : f64}
      : !q, !kv, !kv, !ssa.selection<?x4x?x16, key_block = 64> -> !q, !l
  return %o : !q
}
func.func @per_query_90(%q: !q, %k: !kv, %v: !kv, %t: tensor<?x4x?x16xi32>) -> !q {
  %s = ssa.from_indices %t : tensor<?x4x?x16xi32> -> !ssa.selection<?x4x?x16, key_block = 64>
  %o, %l = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>, ssa.agreement = 0.9 : f64}
      : !q, !kv, !kv, !ssa.selection<?x4x?x16, key_block = 64> -> !q, !l
  return %o : !q
}

// All keys for one query, whose steps 33 programs share for each key head; and 16 blocks, 16 programs.
func.func @decode(%q: tensor<?x64x1x128xbf16>, %k: !kv, %v: !kv) -> tensor<?x64x1x128xbf16> {
  %o, %l = ssa.sparse_attend %q, %k, %v
      {ssa.schedule = #ssa.schedule<instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2, split = 33>}
      : tensor<?x64x1x128xbf16>, !kv, !kv -> tensor<?x64x1x128xbf16>, tensor<?x64x1xf32>
  return %o : tensor<?x64x1x128xbf16>
}
func.func @decode_lists(%q: tensor<?x64x1x128xbf16>, %k: !kv, %v: !kv, %s: !ssa.selection<?x4x1x16, key_block = 64, sorted>) -> tensor<?x64x1x128xbf16> {
  %o, %l = ssa.sparse_attend %q, %k, %v at %s
      {ssa.schedule = #ssa.schedule<instruction = mma_sync, tile_rows = 16, tile_keys = 16, stages = 4, split = 16>}
      : tensor<?x64x1x128xbf16>, !kv, !kv, !ssa.selection<?x4x1x16, key_block = 64, sorted> -> tensor<?x64x1x128xbf16>, tensor<?x64x1xf32>
  return %o : tensor<?x64x1x128xbf16>
}

// Lists that 128 queries share, 8 or 32 blocks of 128, or 64, 16 blocks of 64: one for the 16 query heads of a key head.
func.func @shared_8_128(%q: !q, %k: !kv, %v: !kv, %t: tensor<?x4x?x8xi32>) -> !q {
  %s = ssa.from_indices %t : tensor<?x4x?x8xi32> -> !ssa.selection<?x4x?x8, key_block = 128, query_block = 128>
  %o, %l = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>}
      : !q, !kv, !kv, !ssa.selection<?x4x?x8, key_block = 128, query_block = 128> -> !q, !l
  return %o : !q
}
func.func @shared_32_128(%q: !q, %k: !kv, %v: !kv, %t: tensor<?x4x?x32xi32>) -> !q {
  %s = ssa.from_indices %t : tensor<?x4x?x32xi32> -> !ssa.selection<?x4x?x32, key_block = 128, query_block = 128>
  %o, %l = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>}
      : !q, !kv, !kv, !ssa.selection<?x4x?x32, key_block = 128, query_block = 128> -> !q, !l
  return %o : !q
}
func.func @shared_16_64(%q: !q, %k: !kv, %v: !kv, %t: tensor<?x4x?x16xi32>) -> !q {
  %s = ssa.from_indices %t : tensor<?x4x?x16xi32> -> !ssa.selection<?x4x?x16, key_block = 64, query_block = 64>
  %o, %l = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>}
      : !q, !kv, !kv, !ssa.selection<?x4x?x16, key_block = 64, query_block = 64> -> !q, !l
  return %o : !q
}

// The same, a list for every query head.
func.func @shared(%q: !q, %k: !kv, %v: !kv, %t: tensor<?x64x?x8xi32>) -> !q {
  %s = ssa.from_indices %t : tensor<?x64x?x8xi32> -> !ssa.selection<?x64x?x8, key_block = 128, query_block = 128>
  %o, %l = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>}
      : !q, !kv, !kv, !ssa.selection<?x64x?x8, key_block = 128, query_block = 128> -> !q, !l
  return %o : !q
}
func.func @shared_64(%q: !q, %k: !kv, %v: !kv, %t: tensor<?x64x?x16xi32>) -> !q {
  %s = ssa.from_indices %t : tensor<?x64x?x16xi32> -> !ssa.selection<?x64x?x16, key_block = 64, query_block = 64>
  %o, %l = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>}
      : !q, !kv, !kv, !ssa.selection<?x64x?x16, key_block = 64, query_block = 64> -> !q, !l
  return %o : !q
}

// DeepSeek sparse attention: 2048 tokens of every query for 128 heads, values the first 512 of 576 numbers of a key.
!q_dsa = tensor<?x128x?x576xbf16>
!k_dsa = tensor<?x1x?x576xbf16>
!v_dsa = tensor<?x1x?x512xbf16>
!o_dsa = tensor<?x128x?x512xbf16>
// The lists are sorted, as `ssa.topk` makes them.
!lists_dsa = !ssa.selection<?x1x?x2048, key_block = 1, sorted>
func.func @dsa(%q: !q_dsa, %k: !k_dsa, %s: !lists_dsa) -> !o_dsa {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %k, %c0 : !k_dsa
  %n = tensor.dim %k, %c2 : !k_dsa
  %v = tensor.extract_slice %k[0, 0, 0, 0] [%b, 1, %n, 512] [1, 1, 1, 1] : !k_dsa to !v_dsa
  %o, %l = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>} : !q_dsa, !k_dsa, !v_dsa, !lists_dsa -> !o_dsa, tensor<?x128x?xf32>
  return %o : !o_dsa
}
