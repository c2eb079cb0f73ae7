// HISA: the indexer of DSA in two levels, so that it need not score every token.
//
//   level 1   the indexer keys of each block of 128 tokens are averaged in f32 and stored as fp8 with one scale per block;
//             DSA's formula scores blocks, the best 8 stay, among them the first and the query's own
//   level 2   DSA's formula on the tokens of those 8 blocks; the best 256 tokens stay
//   attend    as in dsa.mlir
//
// While there are no more than 8 blocks the lists equal DSA's. See dsa.mlir for the indexer and the latent attention.

!q = tensor<?x16x?x576xbf16>
!k = tensor<?x1x?x576xbf16>
!v = tensor<?x1x?x512xbf16>
!o = tensor<?x16x?x512xbf16>
!l = tensor<?x16x?xf32>
!qi = tensor<?x16x?x128xf8E4M3FN>
!ki = tensor<?x1x?x128xf8E4M3FN>
!kf = tensor<?x1x?x128xf32>
!w = tensor<?x16x?xf32>
!sc = tensor<?x1x?xf32>
!s1 = tensor<?x1x?x?xf32>
!s2 = tensor<?x1x?x1024xf32>
!blocks = !ssa.selection<?x1x?x8, key_block = 128, sorted>
!tokens = !ssa.selection<?x1x?x256, key_block = 1, sorted>
#row = affine_map<(b, h, n, d) -> (b, h, n)>
#all = affine_map<(b, h, n, d) -> (b, h, n, d)>

// Rows as fp8 and their scales: the largest magnitude of a row becomes 448, the largest number of the format.
func.func private @quantize(%x: !kf) -> (!ki, !sc) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %tiny = arith.constant 1.0e-10 : f32
  %largest = arith.constant 448.0 : f32
  %batch = tensor.dim %x, %c0 : !kf
  %n = tensor.dim %x, %c2 : !kf
  %e0 = tensor.empty(%batch, %n) : !sc
  %init = linalg.fill ins(%tiny : f32) outs(%e0 : !sc) -> !sc
  %amax = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x : !kf) outs(%init : !sc) {
  ^bb0(%in: f32, %acc: f32):
    %abs = math.absf %in : f32
    %max = arith.maximumf %abs, %acc : f32
    linalg.yield %max : f32
  } -> !sc
  %sc = linalg.generic {indexing_maps = [affine_map<(b, h, n) -> (b, h, n)>, affine_map<(b, h, n) -> (b, h, n)>],
                        iterator_types = ["parallel", "parallel", "parallel"]} ins(%amax : !sc) outs(%e0 : !sc) {
  ^bb0(%in: f32, %out: f32):
    %y = arith.divf %in, %largest : f32
    linalg.yield %y : f32
  } -> !sc
  %e1 = tensor.empty(%batch, %n) : !ki
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %sc : !kf, !sc) outs(%e1 : !ki) {
  ^bb0(%in: f32, %scale: f32, %out: f8E4M3FN):
    %div = arith.divf %in, %scale : f32
    %f8 = arith.truncf %div : f32 to f8E4M3FN
    linalg.yield %f8 : f8E4M3FN
  } -> !ki
  return %y, %sc : !ki, !sc
}

func.func private @select(%qi: !qi, %ki: !ki, %sc: !sc, %w: !w) -> (!blocks, !tokens) {
  %zero = arith.constant 0.0 : f32

  // Level 1. The pooled keys are multiplied by the scales of their tokens before they are averaged.
  %mean = ssa.pool mean %ki scales %sc {blocks = #ssa.blocks<128>} : !ki, !sc -> !kf
  %kb, %scb = func.call @quantize(%mean) : (!kf) -> (!ki, !sc)
  %s1 = ssa.route %qi, %kb of %ki weights %w scales %scb
      {blocks = #ssa.blocks<128>, mask = #ssa.mask<causal>, reduce = sum, scale = 1.0} score (%x, %wh, %b, %h, %p, %j) {
    %relu = arith.maximumf %x, %zero : f32
    %y = arith.mulf %relu, %wh : f32
    ssa.yield %y : f32
  } : !qi, !ki, !ki, !w, !sc -> !s1
  %blocks = ssa.topk %s1 of %ki {init_blocks = 1, local_blocks = 1, mask = #ssa.mask<causal>} : !s1, !ki -> !blocks

  // Level 2: 8 * 128 = 1024 candidates for every query.
  %s2 = ssa.route %qi, %ki weights %w scales %sc within %blocks
      {mask = #ssa.mask<causal>, reduce = sum, scale = 1.0} score (%x, %wh, %b, %h, %p, %j) {
    %relu = arith.maximumf %x, %zero : f32
    %y = arith.mulf %relu, %wh : f32
    ssa.yield %y : f32
  } : !qi, !ki, !w, !sc, !blocks -> !s2
  %tokens = ssa.topk %s2 of %ki within %blocks {mask = #ssa.mask<causal>} : !s2, !ki, !blocks -> !tokens
  return %blocks, %tokens : !blocks, !tokens
}

func.func @hisa(%q: !q, %k: !k, %qi: !qi, %ki: !ki, %sc: !sc, %w: !w) -> !o {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %k, %c0 : !k
  %n = tensor.dim %k, %c2 : !k
  %v = tensor.extract_slice %k[0, 0, 0, 0] [%batch, 1, %n, 512] [1, 1, 1, 1] : !k to !v
  %blocks, %tokens = func.call @select(%qi, %ki, %sc, %w) : (!qi, !ki, !sc, !w) -> (!blocks, !tokens)
  %o, %lse = ssa.sparse_attend %q, %k, %v at %tokens {mask = #ssa.mask<causal>, scale = 0.07216878364870322}
    : !q, !k, !v, !tokens -> !o, !l
  return %o : !o
}

// The lists of both levels: blocks of 128, then tokens.
func.func @hisa_select(%qi: !qi, %ki: !ki, %sc: !sc, %w: !w) -> (tensor<?x1x?x8xi32>, tensor<?x1x?x256xi32>) {
  %blocks, %tokens = func.call @select(%qi, %ki, %sc, %w) : (!qi, !ki, !sc, !w) -> (!blocks, !tokens)
  %i1 = ssa.to_indices %blocks : !blocks -> tensor<?x1x?x8xi32>
  %i2 = ssa.to_indices %tokens : !tokens -> tensor<?x1x?x256xi32>
  return %i1, %i2 : tensor<?x1x?x8xi32>, tensor<?x1x?x256xi32>
}
