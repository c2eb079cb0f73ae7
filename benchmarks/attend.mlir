// Attention patterns whose kernels benchmarks/attend.py times: 64 query heads, 4 key heads, head dim 128, bf16.
!q = tensor<?x64x?x128xbf16>
!kv = tensor<?x4x?x128xbf16>
!l = tensor<?x64x?xf32>

// All that is causal.
func.func @dense(%q: !q, %k: !kv, %v: !kv) -> !q {
  %o, %l = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal>} : !q, !kv, !kv -> !q, !l
  return %o : !q
}

// The last 4096 tokens.
func.func @window(%q: !q, %k: !kv, %v: !kv) -> !q {
  %o, %l = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal, window = 4096>} : !q, !kv, !kv -> !q, !l
  return %o : !q
}

// NSA's selected branch: 16 blocks of 64 for every query and key head.
func.func @per_query(%q: !q, %k: !kv, %v: !kv, %t: tensor<?x4x?x16xi32>) -> !q {
  %s = ssa.from_indices %t : tensor<?x4x?x16xi32> -> !ssa.selection<?x4x?x16, key_block = 64>
  %o, %l = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>}
      : !q, !kv, !kv, !ssa.selection<?x4x?x16, key_block = 64> -> !q, !l
  return %o : !q
}

// Lists that 128 queries share: 8 blocks of 128 for every query head.
func.func @shared(%q: !q, %k: !kv, %v: !kv, %t: tensor<?x64x?x8xi32>) -> !q {
  %s = ssa.from_indices %t : tensor<?x64x?x8xi32> -> !ssa.selection<?x64x?x8, key_block = 128, query_block = 128>
  %o, %l = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>}
      : !q, !kv, !kv, !ssa.selection<?x64x?x8, key_block = 128, query_block = 128> -> !q, !l
  return %o : !q
}
