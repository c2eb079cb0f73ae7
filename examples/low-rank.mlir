// Low-rank routed attention, in two levels: blocks, then tokens.
//
// Scoring every key with the full head is as dear as dense attention. Here a router projects queries and keys to 16 numbers per
// head; all scoring happens in that small space:
//
//   router     a_t = Wq q_t, over all query heads of a group together;  b_i = Wk k_i, one row per key and group
//   level 1    u_b = mean of b_i over each block of 64 keys; 16 neighbouring queries share one row of scores, that of their
//              mean query, and keep 8 blocks: the first (attention sinks), those that hold each query's own token
//              and the block before, and the best of the rest
//   level 2    every query scores only the tokens of those 8 blocks, and keeps 96: the first 4, its last 16 and the best
//   attend     ordinary softmax attention over the 96 tokens, with the full heads
//
// The 4 query heads of a group share one list. A block is scored once it is complete, so no score sees a later token; a
// query's own block is forced.

!q = tensor<?x16x?x128xbf16>
!kv = tensor<?x4x?x128xbf16>
!wq = tensor<16x128x16xbf16>
!wk = tensor<4x128x16xbf16>
!a = tensor<?x16x?x16xbf16>
!b = tensor<?x4x?x16xbf16>
!s1 = tensor<?x4x?x?xf32>
!s2 = tensor<?x4x?x512xf32>
!blocks = !ssa.selection<?x4x?x8, key_block = 64, query_block = 16, sorted>
!tokens = !ssa.selection<?x4x?x96, key_block = 1, sorted>
!l = tensor<?x16x?xf32>

func.func private @select(%q: !q, %k: !kv, %wq: !wq, %wk: !wk) -> (!blocks, !tokens) {
  // The router. A group's score is the sum over its heads of a[h] . b, which is one product with the concatenated heads.
  // `%b` is what a cache would hold: 16 numbers per key.
  %a = ssa.project %q, %wq : !q, !wq -> !a
  %b = ssa.project %k, %wk : !kv, !wk -> !b

  // Level 1: blocks of 64 keys for blocks of 16 queries.
  %u = ssa.pool mean %b {blocks = #ssa.blocks<64>} : !b -> !b
  %ap = ssa.pool mean %a {blocks = #ssa.blocks<16>} : !a -> !a
  %s1 = ssa.route %ap, %u of %k for %q {blocks = #ssa.blocks<64>, mask = #ssa.mask<causal>, query_block = 16, reduce = sum}
    : !a, !b, !kv, !q -> !s1
  %blocks = ssa.topk %s1 of %k for %q {init_blocks = 1, local_blocks = 2, mask = #ssa.mask<causal>} : !s1, !kv, !q -> !blocks

  // Level 2: 8 * 64 = 512 candidates for every query, by the same scorer.
  %s2 = ssa.route %a, %b within %blocks {mask = #ssa.mask<causal>, reduce = sum} : !a, !b, !blocks -> !s2
  %tokens = ssa.topk %s2 of %k within %blocks {init_blocks = 4, local_blocks = 16, mask = #ssa.mask<causal>}
    : !s2, !kv, !blocks -> !tokens
  return %blocks, %tokens : !blocks, !tokens
}

func.func @low_rank(%q: !q, %k: !kv, %v: !kv, %wq: !wq, %wk: !wk) -> !q {
  %blocks, %tokens = func.call @select(%q, %k, %wq, %wk) : (!q, !kv, !wq, !wk) -> (!blocks, !tokens)
  %o, %lse = ssa.sparse_attend %q, %k, %v at %tokens {mask = #ssa.mask<causal>} : !q, !kv, !kv, !tokens -> !q, !l
  return %o : !q
}

// The lists of both levels: block numbers per 16 queries, token numbers per query, -1 where fewer were chosen.
func.func @low_rank_select(%q: !q, %k: !kv, %wq: !wq, %wk: !wk) -> (tensor<?x4x?x8xi32>, tensor<?x4x?x96xi32>) {
  %blocks, %tokens = func.call @select(%q, %k, %wq, %wk) : (!q, !kv, !wq, !wk) -> (!blocks, !tokens)
  %i1 = ssa.to_indices %blocks : !blocks -> tensor<?x4x?x8xi32>
  %i2 = ssa.to_indices %tokens : !tokens -> tensor<?x4x?x96xi32>
  return %i1, %i2 : tensor<?x4x?x8xi32>, tensor<?x4x?x96xi32>
}

// A later layer that takes over the token lists of an earlier one and routes nothing itself. A list from outside may hold
// anything, in any order; `sort` makes it ascending and free of repeats, which is the cheap form to attend at.
func.func @low_rank_reuse(%q: !q, %k: !kv, %v: !kv, %list: tensor<?x4x?x96xi32>) -> !q {
  %raw = ssa.from_indices %list : tensor<?x4x?x96xi32> -> !ssa.selection<?x4x?x96, key_block = 1>
  %tokens = ssa.sort %raw : !ssa.selection<?x4x?x96, key_block = 1> -> !tokens
  %o, %lse = ssa.sparse_attend %q, %k, %v at %tokens {mask = #ssa.mask<causal>} : !q, !kv, !kv, !tokens -> !q, !l
  return %o : !q
}
