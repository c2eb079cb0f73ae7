// Fading memory: a formula of our own, to show that nothing here depends on a published one.
//
// What is far away has to matter more to be looked at. Every query head has a rate r; a key that lies d tokens back loses r log2(1 + d) of its
// logit, in routing as in attention:
//
//   route      blocks of 64 by their mean key:  s[j] = max over the 4 heads of a group of  relu(x)^2 - r_h log2(1 + distance to the block's end)
//   select     the first block, the two newest, and the best others, 8 in all, one list for every query and group
//   attend     y = 30 tanh((x - r_h log2(1 + distance)) / 30)
//
// The scores are as many as queries times blocks and are never in memory as a whole.

!q = tensor<?x16x?x128xbf16>
!kv = tensor<?x4x?x128xbf16>
!l = tensor<?x16x?xf32>
!s = tensor<?x4x?x?xf32>
!rates = tensor<16xf32>
!sel = !ssa.selection<?x4x?x8, key_block = 64, sorted>

func.func private @select(%q: !q, %k: !kv, %rates: !rates) -> !sel {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %size = arith.constant 64 : i32
  %means = ssa.pool mean %k {blocks = #ssa.blocks<64>} : !kv -> !kv
  %s = ssa.route %q, %means of %k {blocks = #ssa.blocks<64>, mask = #ssa.mask<causal>, reduce = max} score (%x, %w, %b, %h, %p, %j) {
    %head = arith.index_cast %h : i32 to index
    %rate = tensor.extract %rates[%head] : !rates
    // The first token behind the block; only blocks that are complete are scored, so that it is not behind the query by more than one.
    %begin = arith.muli %j, %size : i32
    %end = arith.addi %begin, %size : i32
    %back = arith.subi %p, %end : i32
    %steps = arith.sitofp %back : i32 to f32
    %away = arith.maximumf %steps, %zero : f32
    %more = arith.addf %away, %one : f32
    %log = math.log2 %more : f32
    %lost = arith.mulf %rate, %log : f32
    %positive = arith.maximumf %x, %zero : f32
    %square = arith.mulf %positive, %positive : f32
    %y = arith.subf %square, %lost : f32
    ssa.yield %y : f32
  } : !q, !kv, !kv -> !s
  %sel = ssa.topk %s of %k {init_blocks = 1, local_blocks = 2, mask = #ssa.mask<causal>} : !s, !kv -> !sel
  return %sel : !sel
}

func.func @fading(%q: !q, %k: !kv, %v: !kv, %rates: !rates) -> !q {
  %one = arith.constant 1.0 : f32
  %cap = arith.constant 30.0 : f32
  %sel = func.call @select(%q, %k, %rates) : (!q, !kv, !rates) -> !sel
  %o, %lse = ssa.sparse_attend %q, %k, %v at %sel {mask = #ssa.mask<causal>} score (%x, %b, %h, %p, %n) {
    %head = arith.index_cast %h : i32 to index
    %rate = tensor.extract %rates[%head] : !rates
    %back = arith.subi %p, %n : i32
    %steps = arith.sitofp %back : i32 to f32
    %more = arith.addf %steps, %one : f32
    %log = math.log2 %more : f32
    %lost = arith.mulf %rate, %log : f32
    %rest = arith.subf %x, %lost : f32
    %small = arith.divf %rest, %cap : f32
    %tanh = math.tanh %small : f32
    %y = arith.mulf %tanh, %cap : f32
    ssa.yield %y : f32
  } : !q, !kv, !kv, !sel -> !q, !l
  return %o : !q
}

// The selected blocks of every query and group, ascending, -1 where fewer exist.
func.func @fading_select(%q: !q, %k: !kv, %rates: !rates) -> tensor<?x4x?x8xi32> {
  %sel = func.call @select(%q, %k, %rates) : (!q, !kv, !rates) -> !sel
  %list = ssa.to_indices %sel : !sel -> tensor<?x4x?x8xi32>
  return %list : tensor<?x4x?x8xi32>
}
