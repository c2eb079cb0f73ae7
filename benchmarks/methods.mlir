// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whole methods, from queries, keys and values to outputs, which benchmarks/compare.py times.

// Native sparse attention without its window: means of 64 keys for every query, and the 16 blocks of 64 whose means weigh most, added by gates.
!q_nsa = tensor<?x64x?x128xbf16>
!kv_nsa = tensor<?x4x?x128xbf16>
!l_nsa = tensor<?x64x?xf32>
!s_nsa = tensor<?x4x?x?xf32>
!sel_nsa = !ssa.selection<?x4x?x16, key_block = 64, sorted>

func.func private @select_nsa(%q: !q_nsa, %k: !kv_nsa, %kc: !kv_nsa) -> !sel_nsa {
  %s = ssa.route %q, %kc of %k {blocks = #ssa.blocks<64>, mask = #ssa.mask<causal>, normalize = softmax, reduce = sum}
      : !q_nsa, !kv_nsa, !kv_nsa -> !s_nsa
  %a = ssa.topk %s of %k {init_blocks = 1, local_blocks = 2, mask = #ssa.mask<causal>} : !s_nsa, !kv_nsa -> !sel_nsa
  return %a : !sel_nsa
}

func.func private @compressed_nsa(%q: !q_nsa, %k: !kv_nsa, %kc: !kv_nsa, %v: !kv_nsa) -> (!q_nsa, !l_nsa) {
  %vc = ssa.pool mean %v {blocks = #ssa.blocks<64>} : !kv_nsa -> !kv_nsa
  %o, %l = ssa.sparse_attend %q, %kc, %vc of %k {blocks = #ssa.blocks<64>, mask = #ssa.mask<causal>}
      : !q_nsa, !kv_nsa, !kv_nsa, !kv_nsa -> !q_nsa, !l_nsa
  return %o, %l : !q_nsa, !l_nsa
}

// Lists of neighbouring queries that have little in common; and those that share three quarters; and such that the device looks at.
func.func @nsa_0(%q: !q_nsa, %k: !kv_nsa, %v: !kv_nsa, %g1: !l_nsa, %g2: !l_nsa) -> !q_nsa {
  %kc = ssa.pool mean %k {blocks = #ssa.blocks<64>} : !kv_nsa -> !kv_nsa
  %o1, %l1 = func.call @compressed_nsa(%q, %k, %kc, %v) : (!q_nsa, !kv_nsa, !kv_nsa, !kv_nsa) -> (!q_nsa, !l_nsa)
  %a = func.call @select_nsa(%q, %k, %kc) : (!q_nsa, !kv_nsa, !kv_nsa) -> !sel_nsa
  %o2, %l2 = ssa.sparse_attend %q, %k, %v at %a {mask = #ssa.mask<causal>, ssa.agreement = 0.0 : f64} : !q_nsa, !kv_nsa, !kv_nsa, !sel_nsa -> !q_nsa, !l_nsa
  %o = ssa.mix (%o1, %g1), (%o2, %g2) : !q_nsa, !l_nsa, !q_nsa, !l_nsa -> !q_nsa
  return %o : !q_nsa
}
func.func @nsa_75(%q: !q_nsa, %k: !kv_nsa, %v: !kv_nsa, %g1: !l_nsa, %g2: !l_nsa) -> !q_nsa {
  %kc = ssa.pool mean %k {blocks = #ssa.blocks<64>} : !kv_nsa -> !kv_nsa
  %o1, %l1 = func.call @compressed_nsa(%q, %k, %kc, %v) : (!q_nsa, !kv_nsa, !kv_nsa, !kv_nsa) -> (!q_nsa, !l_nsa)
  %a = func.call @select_nsa(%q, %k, %kc) : (!q_nsa, !kv_nsa, !kv_nsa) -> !sel_nsa
  %o2, %l2 = ssa.sparse_attend %q, %k, %v at %a {mask = #ssa.mask<causal>, ssa.agreement = 0.75 : f64} : !q_nsa, !kv_nsa, !kv_nsa, !sel_nsa -> !q_nsa, !l_nsa
  %o = ssa.mix (%o1, %g1), (%o2, %g2) : !q_nsa, !l_nsa, !q_nsa, !l_nsa -> !q_nsa
  return %o : !q_nsa
}
func.func @nsa_any(%q: !q_nsa, %k: !kv_nsa, %v: !kv_nsa, %g1: !l_nsa, %g2: !l_nsa) -> !q_nsa {
  %kc = ssa.pool mean %k {blocks = #ssa.blocks<64>} : !kv_nsa -> !kv_nsa
  %o1, %l1 = func.call @compressed_nsa(%q, %k, %kc, %v) : (!q_nsa, !kv_nsa, !kv_nsa, !kv_nsa) -> (!q_nsa, !l_nsa)
  %a = func.call @select_nsa(%q, %k, %kc) : (!q_nsa, !kv_nsa, !kv_nsa) -> !sel_nsa
  %o2, %l2 = ssa.sparse_attend %q, %k, %v at %a {mask = #ssa.mask<causal>, ssa.choose_at_run_time} : !q_nsa, !kv_nsa, !kv_nsa, !sel_nsa -> !q_nsa, !l_nsa
  %o = ssa.mix (%o1, %g1), (%o2, %g2) : !q_nsa, !l_nsa, !q_nsa, !l_nsa -> !q_nsa
  return %o : !q_nsa
}

// Mixture of block attention, 32 heads with keys of their own: every query of a head takes its own chunk and the best of those before, by means
// in bf16.
!q_moba = tensor<?x32x?x128xbf16>
!l_moba = tensor<?x32x?xf32>
!s_moba = tensor<?x32x?x?xf32>
!sel_moba_2048 = !ssa.selection<?x32x?x3, key_block = 2048, sorted>
!sel_moba_512 = !ssa.selection<?x32x?x8, key_block = 512, sorted>

func.func @moba_2048(%q: !q_moba, %k: !q_moba, %v: !q_moba) -> !q_moba {
  %u = ssa.pool mean %k {blocks = #ssa.blocks<2048>} : !q_moba -> !q_moba
  %s = ssa.route %q, %u of %k {blocks = #ssa.blocks<2048>, mask = #ssa.mask<causal>, scale = 1.0} : !q_moba, !q_moba, !q_moba -> !s_moba
  %a = ssa.topk %s of %k {local_blocks = 1, mask = #ssa.mask<causal>} : !s_moba, !q_moba -> !sel_moba_2048
  %o, %l = ssa.sparse_attend %q, %k, %v at %a {mask = #ssa.mask<causal>, ssa.agreement = 0.0 : f64}
      : !q_moba, !q_moba, !q_moba, !sel_moba_2048 -> !q_moba, !l_moba
  return %o : !q_moba
}
func.func @moba_512(%q: !q_moba, %k: !q_moba, %v: !q_moba) -> !q_moba {
  %u = ssa.pool mean %k {blocks = #ssa.blocks<512>} : !q_moba -> !q_moba
  %s = ssa.route %q, %u of %k {blocks = #ssa.blocks<512>, mask = #ssa.mask<causal>, scale = 1.0} : !q_moba, !q_moba, !q_moba -> !s_moba
  %a = ssa.topk %s of %k {local_blocks = 1, mask = #ssa.mask<causal>} : !s_moba, !q_moba -> !sel_moba_512
  %o, %l = ssa.sparse_attend %q, %k, %v at %a {mask = #ssa.mask<causal>, ssa.agreement = 0.0 : f64}
      : !q_moba, !q_moba, !q_moba, !sel_moba_512 -> !q_moba, !l_moba
  return %o : !q_moba
}

// Tokens by low rank in two levels, 32 query heads for 8 key heads: 64 numbers for every key, and for the 4 query heads of a group together; 64 queries
// share 64 blocks of 64 keys, and every query keeps 64 of their tokens.
!q_low = tensor<?x32x?x128xbf16>
!kv_low = tensor<?x8x?x128xbf16>
!wq_low = tensor<32x128x64xbf16>
!wk_low = tensor<8x128x64xbf16>
!heads_low = tensor<?x32x?x64xbf16>
!b_low = tensor<?x8x?x64xbf16>
!s1_low = tensor<?x8x?x?xf32>
!s2_low = tensor<?x8x?x4096xf32>
!blocks_low = !ssa.selection<?x8x?x64, key_block = 64, query_block = 64, sorted>
!tokens_low = !ssa.selection<?x8x?x64, key_block = 1, sorted>
#each = affine_map<(b, h, m, r) -> (b, h, m, r)>

// A score is the sum over the heads of a group, whose queries can be added before.
func.func private @add_heads_low(%x: !heads_low) -> !b_low {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %x, %c0 : !heads_low
  %m = tensor.dim %x, %c2 : !heads_low
  %x0 = tensor.extract_slice %x[0, 0, 0, 0] [%b, 8, %m, 64] [1, 4, 1, 1] : !heads_low to !b_low
  %x1 = tensor.extract_slice %x[0, 1, 0, 0] [%b, 8, %m, 64] [1, 4, 1, 1] : !heads_low to !b_low
  %x2 = tensor.extract_slice %x[0, 2, 0, 0] [%b, 8, %m, 64] [1, 4, 1, 1] : !heads_low to !b_low
  %x3 = tensor.extract_slice %x[0, 3, 0, 0] [%b, 8, %m, 64] [1, 4, 1, 1] : !heads_low to !b_low
  %e = tensor.empty(%b, %m) : !b_low
  %y = linalg.generic {indexing_maps = [#each, #each, #each, #each, #each], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x0, %x1, %x2, %x3 : !b_low, !b_low, !b_low, !b_low) outs(%e : !b_low) {
  ^bb0(%y0: bf16, %y1: bf16, %y2: bf16, %y3: bf16, %out: bf16):
    %f0 = arith.extf %y0 : bf16 to f32
    %f1 = arith.extf %y1 : bf16 to f32
    %f2 = arith.extf %y2 : bf16 to f32
    %f3 = arith.extf %y3 : bf16 to f32
    %s1 = arith.addf %f0, %f1 : f32
    %s2 = arith.addf %f2, %f3 : f32
    %s = arith.addf %s1, %s2 : f32
    %r = arith.truncf %s : f32 to bf16
    linalg.yield %r : bf16
  } -> !b_low
  return %y : !b_low
}

func.func @low_rank(%q: !q_low, %k: !kv_low, %v: !kv_low, %wq: !wq_low, %wk: !wk_low) -> !q_low {
  %heads = ssa.project %q, %wq : !q_low, !wq_low -> !heads_low
  %a = func.call @add_heads_low(%heads) : (!heads_low) -> !b_low
  %b = ssa.project %k, %wk : !kv_low, !wk_low -> !b_low
  %u = ssa.pool mean %b {blocks = #ssa.blocks<64>} : !b_low -> !b_low
  %m = ssa.pool mean %a {blocks = #ssa.blocks<64>} : !b_low -> !b_low
  %s1 = ssa.route %m, %u of %k for %q {blocks = #ssa.blocks<64>, mask = #ssa.mask<causal>, query_block = 64}
      : !b_low, !b_low, !kv_low, !q_low -> !s1_low
  %blocks = ssa.topk %s1 of %k for %q {init_blocks = 1, local_blocks = 2, mask = #ssa.mask<causal>} : !s1_low, !kv_low, !q_low -> !blocks_low
  %s2 = ssa.route %a, %b within %blocks {mask = #ssa.mask<causal>} : !b_low, !b_low, !blocks_low -> !s2_low
  // More scores at a time than usual, and fewer stages, so that more blocks fit: both measured.
  %tokens = ssa.topk %s2 of %k within %blocks
      {init_blocks = 4, local_blocks = 16, mask = #ssa.mask<causal>, ssa.chunk = #ssa.chunk<bytes = 536870912, rows = 128>}
      : !s2_low, !kv_low, !blocks_low -> !tokens_low
  %o, %l = ssa.sparse_attend %q, %k, %v at %tokens
      {mask = #ssa.mask<causal>,
       ssa.schedule = #ssa.schedule<order = head_packed, instruction = mma_sync, tile_rows = 16, tile_keys = 16, stages = 2>}
      : !q_low, !kv_low, !kv_low, !tokens_low -> !q_low, tensor<?x32x?xf32>
  return %o : !q_low
}
