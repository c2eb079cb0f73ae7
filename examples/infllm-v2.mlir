// InfLLM-v2: trainable sparse attention without extra weights; blocks are ranked by the best of their summaries.
//
//   summaries   mean of 32 keys, one every 16 tokens
//   p           softmax over the summaries per query head, summed over the 16 heads of a KV head
//   M[b]        max of p over the five summaries that touch block b of 64 tokens
//   select      the best 16 blocks, among them the first, the query's own and the 8 before it
//   attend      up to the query itself
//
// The scores are those of NSA (nsa.mlir); the block score is a maximum in place of a weighted sum, and the summaries are not
// attended to.

!q = tensor<?x32x?x128xbf16>
!kv = tensor<?x2x?x128xbf16>
!l = tensor<?x32x?xf32>
!s = tensor<?x2x?x?xf32>
!sel = !ssa.selection<?x2x?x16, key_block = 64, sorted>

func.func private @select(%q: !q, %k: !kv) -> !sel {
  %kc = ssa.pool mean %k {blocks = #ssa.blocks<32, stride = 16>} : !kv -> !kv
  %p = ssa.route %q, %kc of %k {blocks = #ssa.blocks<32, stride = 16>, mask = #ssa.mask<causal>, normalize = softmax, reduce = sum}
    : !q, !kv, !kv -> !s
  %m = ssa.rebin max %p of %k {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>} : !s, !kv -> !s
  %sel = ssa.topk %m of %k {init_blocks = 1, local_blocks = 9, mask = #ssa.mask<causal>} : !s, !kv -> !sel
  return %sel : !sel
}

func.func @infllm_v2(%q: !q, %k: !kv, %v: !kv) -> !q {
  %sel = func.call @select(%q, %k) : (!q, !kv) -> !sel
  %o, %lse = ssa.sparse_attend %q, %k, %v at %sel {mask = #ssa.mask<causal>} : !q, !kv, !kv, !sel -> !q, !l
  return %o : !q
}

// The selected blocks of every query and KV head, ascending, -1 where fewer exist.
func.func @infllm_v2_select(%q: !q, %k: !kv) -> tensor<?x2x?x16xi32> {
  %sel = func.call @select(%q, %k) : (!q, !kv) -> !sel
  %list = ssa.to_indices %sel : !sel -> tensor<?x2x?x16xi32>
  return %list : tensor<?x2x?x16xi32>
}
