// Vertical-slash (MInference): per head, some columns and some diagonals of the attention matrix, found from the last queries.
//
//   A = softmax of the last 64 queries over all keys, causal
//   columns: v[i] = sum over those queries of A[t,i]; the 64 largest, the first 30 always
//   slashes: z[o] = sum over those queries of A[t,t-o]; the 160 largest distances o, the nearest 100 always
//   query t attends to { i : i is a column, or t - i is a slash }, i <= t
//
// Both lists go to one attention, which unites them: a key that is in a column and on a slash counts once.
//
// A diagonal is named by the key that the last query meets on it: i = N - 1 - o. Written so, the sums z are scores of keys for
// the last query, the nearest diagonals are its last tokens, and query m meets the diagonal at key i + m - (M - 1); where that is
// negative there is none, and a negative number in a list is padding.

!q = tensor<?x16x?x128xbf16>
!kv = tensor<?x4x?x128xbf16>
!l = tensor<?x16x?xf32>
!s = tensor<?x16x?x?xf32>
!row = tensor<?x16x1x?xf32>
!sum = tensor<?x16x?xf32>
!columns = !ssa.selection<?x16x1x64, key_block = 1, sorted>
!diagonals = !ssa.selection<?x16x1x160, key_block = 1, sorted>

// Columns and diagonals of every head, each as one list for all queries.
func.func private @estimate(%q: !q, %k: !kv) -> (!columns, !diagonals) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %batch = tensor.dim %q, %c0 : !q
  %m = tensor.dim %q, %c2 : !q
  %n = tensor.dim %k, %c2 : !kv

  // A, of the last 64 queries or of all when there are fewer. Hidden keys are -inf.
  %rows = arith.minsi %m, %c64 : index
  %first = arith.subi %m, %rows : index
  %last = tensor.extract_slice %q[0, 0, %first, 0] [%batch, 16, %rows, 128] [1, 1, 1, 1] : !q to !q
  %a = ssa.route %last, %k {mask = #ssa.mask<causal>, normalize = softmax} : !q, !kv -> !s

  // Sums down the columns.
  %empty = tensor.empty(%batch, %n) : !sum
  %init = linalg.fill ins(%zero : f32) outs(%empty : !sum) -> !sum
  %v = linalg.generic {indexing_maps = [affine_map<(b, h, i, r) -> (b, h, r, i)>, affine_map<(b, h, i, r) -> (b, h, i)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%a : !s) outs(%init : !sum) {
  ^bb0(%in: f32, %acc: f32):
    %x = arith.maximumf %in, %zero : f32
    %y = arith.addf %acc, %x : f32
    linalg.yield %y : f32
  } -> !sum

  // Sums along the diagonals: with `rows` - 1 columns of zeros on the left, row r meets diagonal i in column i + r.
  %some = arith.maxsi %rows, %c1 : index
  %low = arith.subi %some, %c1 : index
  %skewed = tensor.pad %a low[0, 0, 0, %low] high[0, 0, 0, 0] {
  ^bb0(%b: index, %h: index, %r: index, %i: index):
    tensor.yield %zero : f32
  } : !s to !s
  %z = linalg.generic {indexing_maps = [affine_map<(b, h, i, r) -> (b, h, r, i + r)>, affine_map<(b, h, i, r) -> (b, h, i)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%skewed : !s) outs(%init : !sum) {
  ^bb0(%in: f32, %acc: f32):
    %x = arith.maximumf %in, %zero : f32
    %y = arith.addf %acc, %x : f32
    linalg.yield %y : f32
  } -> !sum

  // Each is one row of scores at the position of the last query, N - 1.
  %v1 = tensor.expand_shape %v [[0], [1, 2], [3]] output_shape [%batch, 16, 1, %n] : !sum into !row
  %z1 = tensor.expand_shape %z [[0], [1, 2], [3]] output_shape [%batch, 16, 1, %n] : !sum into !row
  %columns = ssa.topk %v1 of %k {init_blocks = 30, mask = #ssa.mask<causal>} : !row, !kv -> !columns
  %diagonals = ssa.topk %z1 of %k {local_blocks = 100, mask = #ssa.mask<causal>} : !row, !kv -> !diagonals
  return %columns, %diagonals : !columns, !diagonals
}

// The ideal form: exact tokens.
func.func @vertical_slash(%q: !q, %k: !kv, %v: !kv) -> !q {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %q, %c0 : !q
  %m = tensor.dim %q, %c2 : !q
  %m1 = arith.subi %m, %c1 : index
  %columns, %diagonals = func.call @estimate(%q, %k) : (!q, !kv) -> (!columns, !diagonals)

  // The key of every query on every diagonal.
  %d = ssa.to_indices %diagonals : !diagonals -> tensor<?x16x1x160xi32>
  %d3 = tensor.collapse_shape %d [[0], [1, 2], [3]] : tensor<?x16x1x160xi32> into tensor<?x16x160xi32>
  %empty = tensor.empty(%batch, %m) : tensor<?x16x?x160xi32>
  %keys = linalg.generic {indexing_maps = [affine_map<(b, h, m, s) -> (b, h, s)>, affine_map<(b, h, m, s) -> (b, h, m, s)>],
                          iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%d3 : tensor<?x16x160xi32>) outs(%empty : tensor<?x16x?x160xi32>) {
  ^bb0(%in: i32, %out: i32):
    %query = linalg.index 2 : index
    %back = arith.subi %query, %m1 : index
    %shift = arith.index_cast %back : index to i32
    %key = arith.addi %in, %shift : i32
    linalg.yield %key : i32
  } -> tensor<?x16x?x160xi32>
  %slashes = ssa.from_indices %keys : tensor<?x16x?x160xi32> -> !ssa.selection<?x16x?x160, key_block = 1>

  %o, %lse = ssa.sparse_attend %q, %k, %v at %columns, %slashes {mask = #ssa.mask<causal>}
    : !q, !kv, !kv, !columns, !ssa.selection<?x16x?x160, key_block = 1> -> !q, !l
  return %o : !q
}

// The form of kernels: each slash is rounded to the one or two blocks of 64 keys that it crosses in a tile of 64 queries, which
// then share their list. Every key of the ideal form is there, and some more.
func.func @vertical_slash_blocks(%q: !q, %k: !kv, %v: !kv) -> !q {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  %c64_i32 = arith.constant 64 : i32
  %batch = tensor.dim %q, %c0 : !q
  %m = tensor.dim %q, %c2 : !q
  %m1 = arith.subi %m, %c1 : index
  %tiles = arith.ceildivui %m, %c64 : index
  %columns, %diagonals = func.call @estimate(%q, %k) : (!q, !kv) -> (!columns, !diagonals)

  // The block that a slash meets at the first query of the tile (e = 0), and at the last one that exists (e = 1).
  %d = ssa.to_indices %diagonals : !diagonals -> tensor<?x16x1x160xi32>
  %d3 = tensor.collapse_shape %d [[0], [1, 2], [3]] : tensor<?x16x1x160xi32> into tensor<?x16x160xi32>
  %empty = tensor.empty(%batch, %tiles) : tensor<?x16x?x160x2xi32>
  %ends = linalg.generic {indexing_maps = [affine_map<(b, h, t, s, e) -> (b, h, s)>,
                                           affine_map<(b, h, t, s, e) -> (b, h, t, s, e)>],
                          iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%d3 : tensor<?x16x160xi32>) outs(%empty : tensor<?x16x?x160x2xi32>) {
  ^bb0(%in: i32, %out: i32):
    %tile = linalg.index 2 : index
    %end = linalg.index 4 : index
    %first = arith.muli %tile, %c64 : index
    %more = arith.muli %end, %c63 : index
    %query = arith.addi %first, %more : index
    %exists = arith.minsi %query, %m1 : index
    %back = arith.subi %exists, %m1 : index
    %shift = arith.index_cast %back : index to i32
    %key = arith.addi %in, %shift : i32
    %block = arith.floordivsi %key, %c64_i32 : i32
    linalg.yield %block : i32
  } -> tensor<?x16x?x160x2xi32>
  %list = tensor.collapse_shape %ends [[0], [1], [2], [3, 4]] : tensor<?x16x?x160x2xi32> into tensor<?x16x?x320xi32>
  %slashes = ssa.from_indices %list : tensor<?x16x?x320xi32> -> !ssa.selection<?x16x?x320, key_block = 64, query_block = 64>

  %o, %lse = ssa.sparse_attend %q, %k, %v at %columns, %slashes {mask = #ssa.mask<causal>}
    : !q, !kv, !kv, !columns, !ssa.selection<?x16x?x320, key_block = 64, query_block = 64> -> !q, !l
  return %o : !q
}

// The columns, and the diagonals by the key that the last query meets on them; both ascending, -1 where there are fewer.
func.func @vertical_slash_select(%q: !q, %k: !kv) -> (tensor<?x16x1x64xi32>, tensor<?x16x1x160xi32>) {
  %columns, %diagonals = func.call @estimate(%q, %k) : (!q, !kv) -> (!columns, !diagonals)
  %i1 = ssa.to_indices %columns : !columns -> tensor<?x16x1x64xi32>
  %i2 = ssa.to_indices %diagonals : !diagonals -> tensor<?x16x1x160xi32>
  return %i1, %i2 : tensor<?x16x1x64xi32>, tensor<?x16x1x160xi32>
}
