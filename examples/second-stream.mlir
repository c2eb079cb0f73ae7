// Compressed entries beside a window of raw tokens, in one softmax with a learned sink (DeepSeek-V4's CSA and HCA).
//
//   CSA      one entry for every 4 tokens (each also looks at the 4 before); an fp8 indexer as in dsa.mlir picks 64 of them
//   HCA      one entry for every 128 tokens; all of them are attended to
//   window   the last 128 raw tokens
//
// Entry e is visible once its last token is: e < floor((t + 1) / 4), or / 128. Keys and values are the same 512 numbers.
// Entries and window are two attentions over different rows; `merge` makes them one softmax, in which the sink of a head counts as
// one more logit without a value. Entries come from a learned compressor outside of this program. The published
// models keep 512 or 1024 entries: only the type of the list changes.

!q = tensor<?x16x?x512xbf16>
!kv = tensor<?x1x?x512xbf16>
!part = tensor<?x16x?x512xf32>
!l = tensor<?x16x?xf32>
!qi = tensor<?x16x?x128xf8E4M3FN>
!ei = tensor<?x1x?x128xf8E4M3FN>
!w = tensor<?x16x?xf32>
!sc = tensor<?x1x?xf32>
!s = tensor<?x1x?x?xf32>
!sel = !ssa.selection<?x1x?x64, key_block = 1, sorted>
!sinks = tensor<16xf32>

// Entries of CSA cover 8 tokens, one starts every 4, the first at -4. They have no positions of their own, so `topk` gets no
// mask: the scores of entries that are not complete are -inf, and those are never chosen.
func.func private @select(%k: !kv, %qi: !qi, %ei: !ei, %sc: !sc, %w: !w) -> !sel {
  %zero = arith.constant 0.0 : f32
  %s = ssa.route %qi, %ei of %k weights %w scales %sc
      {blocks = #ssa.blocks<8, stride = 4, offset = -4>, mask = #ssa.mask<causal>, reduce = sum, scale = 1.0}
      score (%x, %wh, %b, %h, %p, %j) {
    %relu = arith.maximumf %x, %zero : f32
    %y = arith.mulf %relu, %wh : f32
    ssa.yield %y : f32
  } : !qi, !ei, !kv, !w, !sc -> !s
  %sel = ssa.topk %s of %ei : !s, !ei -> !sel
  return %sel : !sel
}

// `%k` are the raw tokens, `%e` the entries, `%ei` and `%sc` the indexer's own entries.
func.func @csa(%q: !q, %k: !kv, %e: !kv, %qi: !qi, %ei: !ei, %sc: !sc, %w: !w, %sinks: !sinks) -> !q {
  %sel = func.call @select(%k, %qi, %ei, %sc, %w) : (!kv, !qi, !ei, !sc, !w) -> !sel
  %o1, %l1 = ssa.sparse_attend %q, %e, %e of %k at %sel {blocks = #ssa.blocks<8, stride = 4, offset = -4>, mask = #ssa.mask<causal>}
    : !q, !kv, !kv, !kv, !sel -> !part, !l
  %o2, %l2 = ssa.sparse_attend %q, %k, %k {mask = #ssa.mask<causal, window = 128>} : !q, !kv, !kv -> !part, !l
  %o, %lse = ssa.merge (%o1, %l1), (%o2, %l2) sink_logits %sinks : !part, !l, !part, !l, !sinks -> !q, !l
  return %o : !q
}

// The selected entries of every query, ascending, -1 where fewer are complete.
func.func @csa_select(%k: !kv, %qi: !qi, %ei: !ei, %sc: !sc, %w: !w) -> tensor<?x1x?x64xi32> {
  %sel = func.call @select(%k, %qi, %ei, %sc, %w) : (!kv, !qi, !ei, !sc, !w) -> !sel
  %list = ssa.to_indices %sel : !sel -> tensor<?x1x?x64xi32>
  return %list : tensor<?x1x?x64xi32>
}

func.func @hca(%q: !q, %k: !kv, %e: !kv, %sinks: !sinks) -> !q {
  %o1, %l1 = ssa.sparse_attend %q, %e, %e of %k {blocks = #ssa.blocks<128>, mask = #ssa.mask<causal>}
    : !q, !kv, !kv, !kv -> !part, !l
  %o2, %l2 = ssa.sparse_attend %q, %k, %k {mask = #ssa.mask<causal, window = 128>} : !q, !kv, !kv -> !part, !l
  %o, %lse = ssa.merge (%o1, %l1), (%o2, %l2) sink_logits %sinks : !part, !l, !part, !l, !sinks -> !q, !l
  return %o : !q
}
