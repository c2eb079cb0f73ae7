// Score regions: a formula of your own between the dot product and the softmax.
//
// The region gets the scaled logit, the batch, the query head, the position of the query (in the whole sequence, also when the
// queries are a chunk of it) and the number of the key; it gives the new logit. It may read tensors and scalars from outside.

!q = tensor<?x16x?x128xbf16>
!kv = tensor<?x4x?x128xbf16>
!l = tensor<?x16x?xf32>
!slopes = tensor<16xf32>

// Soft-capped logits over a window (Gemma 2): x becomes 50 tanh(x / 50).
func.func @soft_cap(%q: !q, %k: !kv, %v: !kv) -> !q {
  %cap = arith.constant 50.0 : f32
  %o, %lse = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal, window = 256>} score (%x, %b, %h, %p, %n) {
    %small = arith.divf %x, %cap : f32
    %tanh = math.tanh %small : f32
    %y = arith.mulf %tanh, %cap : f32
    ssa.yield %y : f32
  } : !q, !kv, !kv -> !q, !l
  return %o : !q
}

// ALiBi: a logit loses its head's slope for every token between query and key.
func.func @alibi(%q: !q, %k: !kv, %v: !kv, %slopes: !slopes) -> !q {
  %o, %lse = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal>} score (%x, %b, %h, %p, %n) {
    %head = arith.index_cast %h : i32 to index
    %slope = tensor.extract %slopes[%head] : !slopes
    %steps = arith.subi %n, %p : i32
    %distance = arith.sitofp %steps : i32 to f32
    %bias = arith.mulf %slope, %distance : f32
    %y = arith.addf %x, %bias : f32
    ssa.yield %y : f32
  } : !q, !kv, !kv -> !q, !l
  return %o : !q
}

// The same at a list of blocks of 32 that comes from anywhere. Regions compose with selections: `%n` stays the token's own number.
func.func @alibi_at(%q: !q, %k: !kv, %v: !kv, %slopes: !slopes, %list: tensor<?x4x?x6xi32>) -> !q {
  %blocks = ssa.from_indices %list : tensor<?x4x?x6xi32> -> !ssa.selection<?x4x?x6, key_block = 32>
  %o, %lse = ssa.sparse_attend %q, %k, %v at %blocks {mask = #ssa.mask<causal>} score (%x, %b, %h, %p, %n) {
    %head = arith.index_cast %h : i32 to index
    %slope = tensor.extract %slopes[%head] : !slopes
    %steps = arith.subi %n, %p : i32
    %distance = arith.sitofp %steps : i32 to f32
    %bias = arith.mulf %slope, %distance : f32
    %y = arith.addf %x, %bias : f32
    ssa.yield %y : f32
  } : !q, !kv, !kv, !ssa.selection<?x4x?x6, key_block = 32> -> !q, !l
  return %o : !q
}
