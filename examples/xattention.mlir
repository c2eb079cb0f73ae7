// XAttention: blocks ranked by sums along antidiagonals, as many of them as carry 90 % of the estimated attention.
//
//   Cut the logits into squares of 16 x 16 and take one antidiagonal of each; every row and column is met once:
//     cell (x,y) = sum over r < 16 of q[16x + 15 - r] . k[16y + r] / (16 sqrt(d))
//   causal on this reduced grid, softmax over each of its rows, then the sum over the 8 x 8 cells of each 128 x 128 block.
//   Of every row of blocks: the first, the diagonal, and the largest others until the taken ones hold 90 % of the row's sum.
//
// An antidiagonal sum is one dot product of rows that are 16 times as long: 16 queries in reverse order against 16 keys. So the
// estimate is a routing op on reshaped tensors. Lengths are padded with zeros to whole squares. A chunk of a longer sequence
// must start at a multiple of 128, or its squares do not line up.
//
// A row may want any number of blocks; the list holds at most 64 (8192 tokens). Of more, the best are kept.

!q = tensor<?x16x?x128xbf16>
!kv = tensor<?x4x?x128xbf16>
!q5 = tensor<?x16x?x16x128xbf16>
!kv5 = tensor<?x4x?x16x128xbf16>
!qs = tensor<?x16x?x2048xbf16>
!ks = tensor<?x4x?x2048xbf16>
!l = tensor<?x16x?xf32>
!s = tensor<?x16x?x?xf32>
!sel = !ssa.selection<?x16x?x64, key_block = 128, query_block = 128, sorted>

// Squares of 16: row x is queries 16x + 15 down to 16x, one after another.
func.func private @strips_of_queries(%q: !q) -> !qs {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : bf16
  %batch = tensor.dim %q, %c0 : !q
  %m = tensor.dim %q, %c2 : !q
  %rows = arith.ceildivui %m, %c16 : index
  %whole = arith.muli %rows, %c16 : index
  %more = arith.subi %whole, %m : index
  %padded = tensor.pad %q low[0, 0, 0, 0] high[0, 0, %more, 0] {
  ^bb0(%b: index, %h: index, %i: index, %d: index):
    tensor.yield %zero : bf16
  } : !q to !q
  %split = tensor.expand_shape %padded [[0], [1], [2, 3], [4]] output_shape [%batch, 16, %rows, 16, 128] : !q into !q5
  %empty = tensor.empty(%batch, %rows) : !q5
  %reversed = linalg.generic {
      indexing_maps = [affine_map<(b, h, x, r, d) -> (b, h, x, 15 - r, d)>, affine_map<(b, h, x, r, d) -> (b, h, x, r, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%split : !q5) outs(%empty : !q5) {
  ^bb0(%in: bf16, %out: bf16):
    linalg.yield %in : bf16
  } -> !q5
  %qs = tensor.collapse_shape %reversed [[0], [1], [2], [3, 4]] : !q5 into !qs
  return %qs : !qs
}

// Row y is keys 16y to 16y + 15, one after another.
func.func private @strips_of_keys(%k: !kv) -> !ks {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : bf16
  %batch = tensor.dim %k, %c0 : !kv
  %n = tensor.dim %k, %c2 : !kv
  %rows = arith.ceildivui %n, %c16 : index
  %whole = arith.muli %rows, %c16 : index
  %more = arith.subi %whole, %n : index
  %padded = tensor.pad %k low[0, 0, 0, 0] high[0, 0, %more, 0] {
  ^bb0(%b: index, %h: index, %i: index, %d: index):
    tensor.yield %zero : bf16
  } : !kv to !kv
  %split = tensor.expand_shape %padded [[0], [1], [2, 3], [4]] output_shape [%batch, 4, %rows, 16, 128] : !kv into !kv5
  %ks = tensor.collapse_shape %split [[0], [1], [2], [3, 4]] : !kv5 into !ks
  return %ks : !ks
}

// `scale` is 1 / (16 sqrt(128)). 8 x 8 cells make one block.
func.func private @select(%q: !q, %k: !kv) -> !sel {
  %qs = func.call @strips_of_queries(%q) : (!q) -> !qs
  %ks = func.call @strips_of_keys(%k) : (!kv) -> !ks
  %cells = ssa.route %qs, %ks {mask = #ssa.mask<causal>, normalize = softmax, scale = 0.005524271728019903} : !qs, !ks -> !s
  %s = ssa.rebin sum %cells of %k {from = #ssa.blocks<16>, query_block = 8, to = #ssa.blocks<128>} : !s, !kv -> !s
  %sel = ssa.topk %s of %k for %q {init_blocks = 1, local_blocks = 1, mask = #ssa.mask<causal>, top_p = 0.9} : !s, !kv, !q -> !sel
  return %sel : !sel
}

func.func @xattention(%q: !q, %k: !kv, %v: !kv) -> !q {
  %sel = func.call @select(%q, %k) : (!q, !kv) -> !sel
  %o, %lse = ssa.sparse_attend %q, %k, %v at %sel {mask = #ssa.mask<causal>} : !q, !kv, !kv, !sel -> !q, !l
  return %o : !q
}

// The selected blocks of every 128 queries and head, ascending, -1 after the last.
func.func @xattention_select(%q: !q, %k: !kv) -> tensor<?x16x?x64xi32> {
  %sel = func.call @select(%q, %k) : (!q, !kv) -> !sel
  %list = ssa.to_indices %sel : !sel -> tensor<?x16x?x64xi32>
  return %list : tensor<?x16x?x64xi32>
}
