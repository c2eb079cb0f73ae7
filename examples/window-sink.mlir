// Sliding window with attention sinks (StreamingLLM, the "A" shape): a mask, no selection.
//
//   query t attends to token i iff  i <= t  and  (t - i < 128  or  i < 4)
//
// The window counts the query itself. Only the tokens that the mask allows are read.

!q = tensor<?x16x?x128xbf16>
!kv = tensor<?x4x?x128xbf16>
!part = tensor<?x16x?x128xf32>
!l = tensor<?x16x?xf32>

func.func @window_sink(%q: !q, %k: !kv, %v: !kv) -> !q {
  %o, %lse = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal, window = 128, sink = 4>} : !q, !kv, !kv -> !q, !l
  return %o : !q
}

// The other sense of "sink": a learned logit per head that joins the softmax and carries no value, so that a head can attend to
// nothing. It is merged with the attention over the window, as if it were one more key.
func.func @window_sink_logit(%q: !q, %k: !kv, %v: !kv, %sinks: tensor<16xf32>) -> !q {
  %part, %part_lse = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal, window = 128>} : !q, !kv, !kv -> !part, !l
  %o, %lse = ssa.merge (%part, %part_lse) sink_logits %sinks : !part, !l, tensor<16xf32> -> !q, !l
  return %o : !q
}
