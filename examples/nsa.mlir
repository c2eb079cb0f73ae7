// Native sparse attention (NSA): three branches, each its own softmax, added with learned gates.
//
//   compressed   every query attends to summaries: the mean of 32 keys (values), one every 16 tokens
//   selected     the softmax weights of the compressed branch, summed over the query heads of a KV head, say which blocks of
//                64 tokens matter; the best 16 are attended to in full, among them the first block, the query's own and
//                the one before
//   window       the last 512 tokens
//
//   o_t = sigmoid(g1) o_compressed + sigmoid(g2) o_selected + sigmoid(g3) o_window
//
// The published method learns the compression (a small MLP with position embeddings); its output can be passed in place of
// the means.

!q = tensor<?x16x?x128xbf16>
!kv = tensor<?x4x?x128xbf16>
!l = tensor<?x16x?xf32>
!s = tensor<?x4x?x?xf32>
!sel = !ssa.selection<?x4x?x16, key_block = 64, sorted>

// Importance of the 64-blocks from the weights of the 32/16 summaries (the paper's equation 9), then the selection. A
// summary counts once all of its 32 tokens are visible; the query's own block is forced, so it needs no score.
func.func private @select(%q: !q, %k: !kv, %kc: !kv) -> !sel {
  %p = ssa.route %q, %kc of %k {blocks = #ssa.blocks<32, stride = 16>, mask = #ssa.mask<causal>, normalize = softmax, reduce = sum}
    : !q, !kv, !kv -> !s
  %i = ssa.rebin sum %p of %k {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>} : !s, !kv -> !s
  %sel = ssa.topk %i of %k {init_blocks = 1, local_blocks = 2, mask = #ssa.mask<causal>} : !s, !kv -> !sel
  return %sel : !sel
}

func.func @nsa(%q: !q, %k: !kv, %v: !kv, %g1: !l, %g2: !l, %g3: !l) -> !q {
  %kc = ssa.pool mean %k {blocks = #ssa.blocks<32, stride = 16>} : !kv -> !kv
  %vc = ssa.pool mean %v {blocks = #ssa.blocks<32, stride = 16>} : !kv -> !kv
  %o1, %l1 = ssa.sparse_attend %q, %kc, %vc of %k {blocks = #ssa.blocks<32, stride = 16>, mask = #ssa.mask<causal>}
    : !q, !kv, !kv, !kv -> !q, !l
  %sel = func.call @select(%q, %k, %kc) : (!q, !kv, !kv) -> !sel
  %o2, %l2 = ssa.sparse_attend %q, %k, %v at %sel {mask = #ssa.mask<causal>} : !q, !kv, !kv, !sel -> !q, !l
  %o3, %l3 = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal, window = 512>} : !q, !kv, !kv -> !q, !l
  %o = ssa.mix (%o1, %g1), (%o2, %g2), (%o3, %g3) : !q, !l, !q, !l, !q, !l -> !q
  return %o : !q
}

// The selected blocks of every query and KV head: ascending block numbers, -1 where fewer than 16 exist.
func.func @nsa_select(%q: !q, %k: !kv) -> tensor<?x4x?x16xi32> {
  %kc = ssa.pool mean %k {blocks = #ssa.blocks<32, stride = 16>} : !kv -> !kv
  %sel = func.call @select(%q, %k, %kc) : (!q, !kv, !kv) -> !sel
  %list = ssa.to_indices %sel : !sel -> tensor<?x4x?x16xi32>
  return %list : tensor<?x4x?x16xi32>
}
