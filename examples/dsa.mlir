// DeepSeek sparse attention (DSA): a light indexer scores every token in fp8, all heads attend to the best ones.
//
//   indexer   I[t,i] = sum over 16 index heads of w[t,h] * max(0, qI[t,h] . kI[i])
//   select    the 256 visible tokens of largest I; one list serves all attention heads
//   attend    multi-head latent attention in its absorbed form: one shared key row of 576 = 512 latent + 64 rotary
//             numbers; the value row is the latent part of the same row
//
// The published model has 64 index heads, 128 attention heads and keeps 2048 tokens: only types change. The fp8 key of a token is
// stored with one scale; the scale of a query row and the factor 1/sqrt(heads * dim) are folded into `%w`.
// A weight may be negative, so hidden tokens score -inf, not 0. A query that sees fewer tokens than the list holds attends to all.

!q = tensor<?x16x?x576xbf16>
!k = tensor<?x1x?x576xbf16>
!v = tensor<?x1x?x512xbf16>
!o = tensor<?x16x?x512xbf16>
!l = tensor<?x16x?xf32>
!qi = tensor<?x16x?x128xf8E4M3FN>
!ki = tensor<?x1x?x128xf8E4M3FN>
!w = tensor<?x16x?xf32>
!sc = tensor<?x1x?xf32>
!s = tensor<?x1x?x?xf32>
!sel = !ssa.selection<?x1x?x256, key_block = 1, sorted>

func.func private @select(%qi: !qi, %ki: !ki, %sc: !sc, %w: !w) -> !sel {
  %zero = arith.constant 0.0 : f32
  %s = ssa.route %qi, %ki weights %w scales %sc
      {mask = #ssa.mask<causal>, reduce = sum, scale = 1.0} score (%x, %wh, %b, %h, %p, %j) {
    %relu = arith.maximumf %x, %zero : f32
    %y = arith.mulf %relu, %wh : f32
    ssa.yield %y : f32
  } : !qi, !ki, !w, !sc -> !s
  %sel = ssa.topk %s of %ki {mask = #ssa.mask<causal>} : !s, !ki -> !sel
  return %sel : !sel
}

// `scale` is that of the heads before absorption: 1/sqrt(128 + 64).
func.func @dsa(%q: !q, %k: !k, %qi: !qi, %ki: !ki, %sc: !sc, %w: !w) -> !o {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %k, %c0 : !k
  %n = tensor.dim %k, %c2 : !k
  %v = tensor.extract_slice %k[0, 0, 0, 0] [%batch, 1, %n, 512] [1, 1, 1, 1] : !k to !v
  %sel = func.call @select(%qi, %ki, %sc, %w) : (!qi, !ki, !sc, !w) -> !sel
  %o, %lse = ssa.sparse_attend %q, %k, %v at %sel {mask = #ssa.mask<causal>, scale = 0.07216878364870322}
    : !q, !k, !v, !sel -> !o, !l
  return %o : !o
}

// The selected tokens of every query, ascending, -1 where fewer are visible.
func.func @dsa_select(%qi: !qi, %ki: !ki, %sc: !sc, %w: !w) -> tensor<?x1x?x256xi32> {
  %sel = func.call @select(%qi, %ki, %sc, %w) : (!qi, !ki, !sc, !w) -> !sel
  %list = ssa.to_indices %sel : !sel -> tensor<?x1x?x256xi32>
  return %list : tensor<?x1x?x256xi32>
}
