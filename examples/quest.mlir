// Quest: decoding over pages of a KV cache, ranked by an upper bound of their logits.
//
//   per page (16 tokens), channel and KV head: kmin, kmax over the tokens that exist
//   s[page] = sum over d of max(q_d kmin_d, q_d kmax_d), which no token of the page exceeds
//   per query head: the newest page and the best others, 24 pages (384 tokens) in all
//
// Written for decoding (M = 1, or a few speculated tokens); longer chunks work too. A page that is still being filled counts
// with the tokens it has (`visible = partial`).

!q = tensor<?x16x?x128xbf16>
!kv = tensor<?x4x?x128xbf16>
!l = tensor<?x16x?xf32>
!s = tensor<?x16x?x?xf32>
!sel = !ssa.selection<?x16x?x24, key_block = 16, sorted>
!gathered = tensor<?x16x?x384x128xbf16>

func.func private @bound(%q: !q, %k: !kv) -> !s {
  %kmin = ssa.pool min %k {blocks = #ssa.blocks<16>} : !kv -> !kv
  %kmax = ssa.pool max %k {blocks = #ssa.blocks<16>} : !kv -> !kv
  %s = ssa.route bound %q, %kmin, %kmax of %k {blocks = #ssa.blocks<16>, mask = #ssa.mask<causal>, scale = 1.0, visible = partial}
    : !q, !kv, !kv, !kv -> !s
  return %s : !s
}

func.func private @select(%q: !q, %k: !kv) -> !sel {
  %s = func.call @bound(%q, %k) : (!q, !kv) -> !s
  %sel = ssa.topk %s of %k {local_blocks = 1, mask = #ssa.mask<causal>} : !s, !kv -> !sel
  return %sel : !sel
}

func.func @quest(%q: !q, %k: !kv, %v: !kv) -> !q {
  %sel = func.call @select(%q, %k) : (!q, !kv) -> !sel
  %o, %lse = ssa.sparse_attend %q, %k, %v at %sel {mask = #ssa.mask<causal>} : !q, !kv, !kv, !sel -> !q, !l
  return %o : !q
}

// The same with the selected rows copied together first, as when the cache lies in slower memory than the attention reads.
func.func @quest_gathered(%q: !q, %k: !kv, %v: !kv) -> !q {
  %sel = func.call @select(%q, %k) : (!q, !kv) -> !sel
  %kg = ssa.gather %k at %sel : !kv, !sel -> !gathered
  %vg = ssa.gather %v at %sel : !kv, !sel -> !gathered
  %o, %lse = ssa.sparse_attend %q, %kg, %vg of %k at %sel {mask = #ssa.mask<causal>} : !q, !gathered, !gathered, !kv, !sel -> !q, !l
  return %o : !q
}

// The bound of every page, -inf for pages that a query does not see.
func.func @quest_bound(%q: !q, %k: !kv) -> !s {
  %s = func.call @bound(%q, %k) : (!q, !kv) -> !s
  return %s : !s
}

// The selected pages of every query and head, ascending, -1 where fewer exist.
func.func @quest_select(%q: !q, %k: !kv) -> tensor<?x16x?x24xi32> {
  %sel = func.call @select(%q, %k) : (!q, !kv) -> !sel
  %list = ssa.to_indices %sel : !sel -> tensor<?x16x?x24xi32>
  return %list : tensor<?x16x?x24xi32>
}
