// KV compression: after a prompt has been read, only the keys and values that its last queries looked at are kept.
//
//   compress   the last 64 queries score all keys, softmax over the keys, summed over the queries and over the 4 query heads of a group:
//              a[i] = sum over those queries and heads of softmax(q . k)[i]
//              per KV head the first 4 tokens (attention sinks), the last 64 and the best others, 512 in all, ascending.
//              Their keys and values are gathered into a cache of their own; the index says which tokens they are
//   attend     later queries attend to the compact cache and to all that has come since, as one softmax
//
// The index belongs to the cache: -1 stands where a short prompt had fewer tokens, and rows there do not exist. A cache serves any number of
// calls, and other layers whose keys it was gathered from (`gather_by` takes an index from elsewhere).

!q = tensor<?x16x?x128xbf16>
!kv = tensor<?x4x?x128xbf16>
!l = tensor<?x16x?xf32>
!s = tensor<?x4x?x?xf32>
!sum = tensor<?x4x?xf32>
!row = tensor<?x4x1x?xf32>
!kept = !ssa.selection<?x4x1x512, key_block = 1, sorted>
!index = tensor<?x4x1x512xi32>
!cache = tensor<?x4x1x512x128xbf16>

func.func private @keep(%q: !q, %k: !kv) -> !kept {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %batch = tensor.dim %q, %c0 : !q
  %m = tensor.dim %q, %c2 : !q
  %n = tensor.dim %k, %c2 : !kv

  // The last 64 queries, or all when there are fewer.
  %rows = arith.minsi %m, %c64 : index
  %first = arith.subi %m, %rows : index
  %last = tensor.extract_slice %q[0, 0, %first, 0] [%batch, 16, %rows, 128] [1, 1, 1, 1] : !q to !q
  %a = ssa.route %last, %k {mask = #ssa.mask<causal>, normalize = softmax, reduce = sum} : !q, !kv -> !s

  // Sums down the columns; hidden keys are -inf and count as 0.
  %empty = tensor.empty(%batch, %n) : !sum
  %init = linalg.fill ins(%zero : f32) outs(%empty : !sum) -> !sum
  %v = linalg.generic {indexing_maps = [affine_map<(b, h, i, r) -> (b, h, r, i)>, affine_map<(b, h, i, r) -> (b, h, i)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%a : !s) outs(%init : !sum) {
  ^bb0(%in: f32, %acc: f32):
    %x = arith.maximumf %in, %zero : f32
    %y = arith.addf %acc, %x : f32
    linalg.yield %y : f32
  } -> !sum

  // One row of scores, at the position of the last query.
  %row = tensor.expand_shape %v [[0], [1, 2], [3]] output_shape [%batch, 4, 1, %n] : !sum into !row
  %kept = ssa.topk %row of %k {init_blocks = 4, local_blocks = 64, mask = #ssa.mask<causal>} : !row, !kv -> !kept
  return %kept : !kept
}

// The compact keys, the compact values, and the tokens that they are.
func.func @compress(%q: !q, %k: !kv, %v: !kv) -> (!cache, !cache, !index) {
  %kept = func.call @keep(%q, %k) : (!q, !kv) -> !kept
  %kc = ssa.gather %k at %kept : !kv, !kept -> !cache
  %vc = ssa.gather %v at %kept : !kv, !kept -> !cache
  %index = ssa.to_indices %kept : !kept -> !index
  return %kc, %vc, %index : !cache, !cache, !index
}

// The tokens alone.
func.func @compress_select(%q: !q, %k: !kv) -> tensor<?x4x1x512xi32> {
  %kept = func.call @keep(%q, %k) : (!q, !kv) -> !kept
  %index = ssa.to_indices %kept : !kept -> tensor<?x4x1x512xi32>
  return %index : tensor<?x4x1x512xi32>
}

// Attends to a compact cache and to the tokens that have come since, `%kn` and `%vn`; the queries are the last of these. Of `%prompt` only the size is
// read: it has as many rows as tokens that were compressed, and may be one element seen many times.
func.func @attend_compressed(%q: !q, %kc: !cache, %vc: !cache, %index: !index, %prompt: tensor<?x1x?x1xbf16>, %kn: !kv, %vn: !kv) -> !q {
  %kept = ssa.from_indices %index : !index -> !ssa.selection<?x4x1x512, key_block = 1>
  %o1, %l1 = ssa.sparse_attend %q, %kc, %vc of %prompt at %kept
      : !q, !cache, !cache, tensor<?x1x?x1xbf16>, !ssa.selection<?x4x1x512, key_block = 1> -> !q, !l
  %o2, %l2 = ssa.sparse_attend %q, %kn, %vn {mask = #ssa.mask<causal>} : !q, !kv, !kv -> !q, !l
  %o, %lse = ssa.merge (%o1, %l1), (%o2, %l2) : !q, !l, !q, !l -> !q, !l
  return %o : !q
}

// Keys or values of another layer, at an index from elsewhere.
func.func @gather_by(%x: !kv, %index: !index) -> !cache {
  %kept = ssa.from_indices %index : !index -> !ssa.selection<?x4x1x512, key_block = 1>
  %xc = ssa.gather %x at %kept : !kv, !ssa.selection<?x4x1x512, key_block = 1> -> !cache
  return %xc : !cache
}
