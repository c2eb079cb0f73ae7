// Mixture of block attention (MoBA): every query head picks whole chunks by the mean of their keys.
//
//   u_n = mean of the keys of chunk n (here 128 tokens), in f32
//   s[n] = q_t . u_n for chunks that end before t; the query's own chunk always counts as chosen
//   attend to the best 3 chunks, up to the query itself
//
// There are no extra weights: the router is the attention's own q and k. Lists belong to query heads (G = Hq = 16), although keys
// have only 4 heads.

!q = tensor<?x16x?x128xbf16>
!kv = tensor<?x4x?x128xbf16>
!u = tensor<?x4x?x128xf32>
!l = tensor<?x16x?xf32>
!s = tensor<?x16x?x?xf32>
!sel = !ssa.selection<?x16x?x3, key_block = 128, sorted>

// The scale of a score changes no ranking.
func.func private @select(%q: !q, %k: !kv) -> !sel {
  %u = ssa.pool mean %k {blocks = #ssa.blocks<128>} : !kv -> !u
  %s = ssa.route %q, %u of %k {blocks = #ssa.blocks<128>, mask = #ssa.mask<causal>, scale = 1.0} : !q, !u, !kv -> !s
  %sel = ssa.topk %s of %k {local_blocks = 1, mask = #ssa.mask<causal>} : !s, !kv -> !sel
  return %sel : !sel
}

func.func @moba(%q: !q, %k: !kv, %v: !kv) -> !q {
  %sel = func.call @select(%q, %k) : (!q, !kv) -> !sel
  %o, %lse = ssa.sparse_attend %q, %k, %v at %sel {mask = #ssa.mask<causal>} : !q, !kv, !kv, !sel -> !q, !l
  return %o : !q
}

// The selected chunks of every query and head, ascending, -1 where fewer exist.
func.func @moba_select(%q: !q, %k: !kv) -> tensor<?x16x?x3xi32> {
  %sel = func.call @select(%q, %k) : (!q, !kv) -> !sel
  %list = ssa.to_indices %sel : !sel -> tensor<?x16x?x3xi32>
  return %list : tensor<?x16x?x3xi32>
}
