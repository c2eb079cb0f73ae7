// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What benchmarks/compare.py times of routing and selecting.

!s = tensor<?x1x?x?xf32>
!k = tensor<?x1x?x16xbf16>
!k16 = !ssa.selection<?x1x?x16, key_block = 1, sorted>
!k2048 = !ssa.selection<?x1x?x2048, key_block = 1, sorted>
!k64 = !ssa.selection<?x1x?x64, key_block = 1, sorted>
!t16 = tensor<?x1x?x16xi32>
!t64 = tensor<?x1x?x64xi32>
!t2048 = tensor<?x1x?x2048xi32>

func.func @topk_16(%s: !s, %k: !k) -> !t16 {
  %a = ssa.topk %s of %k : !s, !k -> !k16
  %r = ssa.to_indices %a : !k16 -> !t16
  return %r : !t16
}

// With all that a selector of blocks asks for.
func.func @topk_16_forced(%s: !s, %k: !k) -> !t16 {
  %a = ssa.topk %s of %k {init_blocks = 1, local_blocks = 2, mask = #ssa.mask<causal>} : !s, !k -> !k16
  %r = ssa.to_indices %a : !k16 -> !t16
  return %r : !t16
}

func.func @topk_2048(%s: !s, %k: !k) -> !t2048 {
  %a = ssa.topk %s of %k : !s, !k -> !k2048
  %r = ssa.to_indices %a : !k2048 -> !t2048
  return %r : !t2048
}

func.func @top_p_64(%s: !s, %k: !k) -> !t64 {
  %a = ssa.topk %s of %k {top_p = 0.9} : !s, !k -> !k64
  %r = ssa.to_indices %a : !k64 -> !t64
  return %r : !t64
}

func.func @sort_16(%t: !t16) -> !t16 {
  %a = ssa.from_indices %t : !t16 -> !ssa.selection<?x1x?x16, key_block = 1>
  %b = ssa.sort %a : !ssa.selection<?x1x?x16, key_block = 1> -> !k16
  %r = ssa.to_indices %b : !k16 -> !t16
  return %r : !t16
}

func.func @sort_2048(%t: !t2048) -> !t2048 {
  %a = ssa.from_indices %t : !t2048 -> !ssa.selection<?x1x?x2048, key_block = 1>
  %b = ssa.sort %a : !ssa.selection<?x1x?x2048, key_block = 1> -> !k2048
  %r = ssa.to_indices %b : !k2048 -> !t2048
  return %r : !t2048
}

!kv = tensor<?x4x?x128xbf16>

func.func @pool_64(%k: !kv) -> !kv {
  %y = ssa.pool mean %k {blocks = #ssa.blocks<64>} : !kv -> !kv
  return %y : !kv
}

func.func @pool_32_16(%k: !kv) -> !kv {
  %y = ssa.pool mean %k {blocks = #ssa.blocks<32, stride = 16>} : !kv -> !kv
  return %y : !kv
}

func.func @rebin(%s: !s, %k: !k) -> !s {
  %y = ssa.rebin sum %s of %k {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>} : !s, !k -> !s
  return %y : !s
}

func.func @rebin_tokens(%s: !s, %k: !k) -> !s {
  %y = ssa.rebin max %s of %k {from = #ssa.blocks<1>, to = #ssa.blocks<128>} : !s, !k -> !s
  return %y : !s
}

func.func @gather(%k: !kv, %t: tensor<?x4x?x16xi32>) -> tensor<?x4x?x1024x128xbf16> {
  %a = ssa.from_indices %t : tensor<?x4x?x16xi32> -> !ssa.selection<?x4x?x16, key_block = 64>
  %y = ssa.gather %k at %a : !kv, !ssa.selection<?x4x?x16, key_block = 64> -> tensor<?x4x?x1024x128xbf16>
  return %y : tensor<?x4x?x1024x128xbf16>
}

// Chains from keys to lists: 64 query heads, 4 key heads.
!q = tensor<?x64x?x128xbf16>
!blocks = tensor<?x4x?x?xf32>
!list = !ssa.selection<?x4x?x16, key_block = 64, sorted>
!lists = tensor<?x4x?x16xi32>

// The mean of 64 keys, a softmax over the means, the sum of 16 heads, 16 blocks for every query and key head.
func.func @chain_64(%q: !q, %k: !kv) -> !lists {
  %kc = ssa.pool mean %k {blocks = #ssa.blocks<64>} : !kv -> !kv
  %s = ssa.route %q, %kc of %k {blocks = #ssa.blocks<64>, mask = #ssa.mask<causal>, normalize = softmax, reduce = sum} : !q, !kv, !kv -> !blocks
  %a = ssa.topk %s of %k {init_blocks = 1, local_blocks = 2, mask = #ssa.mask<causal>} : !blocks, !kv -> !list
  %r = ssa.to_indices %a : !list -> !lists
  return %r : !lists
}

// The same from the overlapping means of NSA.
func.func @chain_nsa(%q: !q, %k: !kv) -> !lists {
  %kc = ssa.pool mean %k {blocks = #ssa.blocks<32, stride = 16>} : !kv -> !kv
  %s = ssa.route %q, %kc of %k {blocks = #ssa.blocks<32, stride = 16>, mask = #ssa.mask<causal>, normalize = softmax, reduce = sum} : !q, !kv, !kv -> !blocks
  %i = ssa.rebin sum %s of %k {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>} : !blocks, !kv -> !blocks
  %a = ssa.topk %i of %k {init_blocks = 1, local_blocks = 2, mask = #ssa.mask<causal>} : !blocks, !kv -> !list
  %r = ssa.to_indices %a : !list -> !lists
  return %r : !lists
}

// DSA's indexer: 64 heads of fp8, 2048 tokens for every query.
func.func @chain_dsa(%q: tensor<?x64x?x128xf8E4M3FN>, %k: tensor<?x1x?x128xf8E4M3FN>, %w: tensor<?x64x?xf32>, %c: tensor<?x1x?xf32>) -> !t2048 {
  %zero = arith.constant 0.0 : f32
  %s = ssa.route %q, %k weights %w scales %c {scale = 1.0, mask = #ssa.mask<causal>, reduce = sum} score (%x, %wh, %b, %h, %p, %j) {
    %r = arith.maximumf %x, %zero : f32
    %y = arith.mulf %r, %wh : f32
    ssa.yield %y : f32
  } : tensor<?x64x?x128xf8E4M3FN>, tensor<?x1x?x128xf8E4M3FN>, tensor<?x64x?xf32>, tensor<?x1x?xf32> -> !s
  %a = ssa.topk %s of %k {mask = #ssa.mask<causal>} : !s, tensor<?x1x?x128xf8E4M3FN> -> !k2048
  %r = ssa.to_indices %a : !k2048 -> !t2048
  return %r : !t2048
}
