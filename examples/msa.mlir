// Block-max sparse attention (MSA): a block is worth as much as its best token.
//
//   s[g,t,b] = max over the visible tokens i of block b (128 tokens) of qI[g,t] . kI[i]
//   select the best 16 blocks per KV group, among them the first and the query's own; all 4 heads of a group share them
//   attend up to the query itself
//
// The indexer has one query head per group and one key head for all. Since the maximum runs over visible tokens only, the
// query's own block has a score that sees no later token.

!q = tensor<?x16x?x128xbf16>
!kv = tensor<?x4x?x128xbf16>
!qi = tensor<?x4x?x128xbf16>
!ki = tensor<?x1x?x128xbf16>
!l = tensor<?x16x?xf32>
!s = tensor<?x4x?x?xf32>
!sel = !ssa.selection<?x4x?x16, key_block = 128, sorted>

func.func private @select(%qi: !qi, %ki: !ki) -> !sel {
  %s = ssa.route %qi, %ki {mask = #ssa.mask<causal>, scale = 1.0} : !qi, !ki -> !s
  %m = ssa.rebin max %s of %ki {from = #ssa.blocks<1>, to = #ssa.blocks<128>} : !s, !ki -> !s
  %sel = ssa.topk %m of %ki {init_blocks = 1, local_blocks = 1, mask = #ssa.mask<causal>} : !s, !ki -> !sel
  return %sel : !sel
}

func.func @msa(%q: !q, %k: !kv, %v: !kv, %qi: !qi, %ki: !ki) -> !q {
  %sel = func.call @select(%qi, %ki) : (!qi, !ki) -> !sel
  %o, %lse = ssa.sparse_attend %q, %k, %v at %sel {mask = #ssa.mask<causal>} : !q, !kv, !kv, !sel -> !q, !l
  return %o : !q
}

// The selected blocks of every query and group, ascending, -1 where fewer exist.
func.func @msa_select(%qi: !qi, %ki: !ki) -> tensor<?x4x?x16xi32> {
  %sel = func.call @select(%qi, %ki) : (!qi, !ki) -> !sel
  %list = ssa.to_indices %sel : !sel -> tensor<?x4x?x16xi32>
  return %list : tensor<?x4x?x16xi32>
}
