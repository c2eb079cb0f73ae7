// RUN: ssa-opt %s --split-input-file --verify-diagnostics

// Rules of all ops, which the description of the dialect lists.

// An attribute that the op does not define, where the parser of the op does not see it; with a dialect's prefix it may
// mean anything.
func.func @ssa_c1(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  %0 = "ssa.route"(%q, %k) <{operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>}> ({}) {my.scal = 2.0}
      : (tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32>) -> tensor<1x8x5x23xf32>
  // expected-error @below {{has no attribute 'scal'; did you mean 'scale'?}}
  %bad = "ssa.route"(%q, %k) <{operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>}> ({}) {scal = 2.0}
      : (tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32>) -> tensor<1x8x5x23xf32>
  return
}

// -----

// An op that has none.
func.func @ssa_c1_no_attributes(%a: !ssa.selection<1x2x5x3>) {
  // expected-error @below {{has no attribute 'width'}}
  %bad = ssa.sort %a {width = 3} : !ssa.selection<1x2x5x3> -> !ssa.selection<1x2x5x3, sorted>
  return
}

// -----

// The end of a region.
func.func @ssa_c1_yield(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  %bad = ssa.route %q, %k score (%x, %w, %b, %h, %p, %j) {
    // expected-error @below {{has no attribute 'value'}}
    ssa.yield %x {value = 3} : f32
  } : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// 2^31 keys.
func.func @ssa_c2(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x2147483648x48xf32>) {
  // expected-error @below {{expected dimension 2 of operand #1 to be at most 2147483647, but got 2147483648}}
  %bad:2 = ssa.sparse_attend %q, %k, %k
      : tensor<1x8x5x48xf32>, tensor<1x2x2147483648x48xf32>, tensor<1x2x2147483648x48xf32>
      -> tensor<1x8x5x48xf32>, tensor<1x8x5xf32>
  return
}

// -----

// One key less.
func.func @ssa_c2_largest(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x2147483647x48xf32>) {
  %0:2 = ssa.sparse_attend %q, %k, %k
      : tensor<1x8x5x48xf32>, tensor<1x2x2147483647x48xf32>, tensor<1x2x2147483647x48xf32>
      -> tensor<1x8x5x48xf32>, tensor<1x8x5xf32>
  return
}

// -----

// 2^63-1 keys: neither a number of blocks nor their ends fit 64 bits.
func.func @ssa_c2_blocks(%k: tensor<1x2x9223372036854775807x48xf32>) {
  // expected-error @below {{expected dimension 2 of operand #0 to be at most 2147483647, but got 9223372036854775807}}
  %bad = ssa.pool mean %k {blocks = #ssa.blocks<4, offset = -3>}
      : tensor<1x2x9223372036854775807x48xf32> -> tensor<1x2x?x48xf32>
  return
}

// -----

// 2^31 rows of a result, where the operands do not say how many.
func.func @ssa_c2_result(%q: tensor<1x8x?x48xf32>, %k: tensor<1x2x?x48xf32>) {
  // expected-error @below {{expected dimension 2 of result #1 to be at most 2147483647, but got 2147483648}}
  %bad:2 = ssa.sparse_attend %q, %k, %k
      : tensor<1x8x?x48xf32>, tensor<1x2x?x48xf32>, tensor<1x2x?x48xf32>
      -> tensor<1x8x?x48xf32>, tensor<1x8x2147483648xf32>
  return
}

// -----

// 2^31 heads in all.
func.func @ssa_c2_heads(%q: tensor<268435456x8x5x48xf32>, %k: tensor<268435456x2x23x48xf32>) {
  // expected-error @below {{expected batches * heads of operand #0 to be at most 2147483647, but got 268435456 * 8}}
  %bad:2 = ssa.sparse_attend %q, %k, %k
      : tensor<268435456x8x5x48xf32>, tensor<268435456x2x23x48xf32>, tensor<268435456x2x23x48xf32>
      -> tensor<268435456x8x5x48xf32>, tensor<268435456x8x5xf32>
  return
}

// -----

// Seven eighths of that.
func.func @ssa_c2_fewer_heads(%q: tensor<268435456x7x5x48xf32>, %k: tensor<268435456x1x23x48xf32>) {
  %0:2 = ssa.sparse_attend %q, %k, %k
      : tensor<268435456x7x5x48xf32>, tensor<268435456x1x23x48xf32>, tensor<268435456x1x23x48xf32>
      -> tensor<268435456x7x5x48xf32>, tensor<268435456x7x5xf32>
  return
}

// -----

// Heads are part of the program.
func.func @ssa_c3(%q: tensor<1x?x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected dimension 1 of 'query', heads, to be static}}
  %bad:2 = ssa.sparse_attend %q, %k, %k
      : tensor<1x?x5x48xf32>, tensor<1x2x23x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x?x5x48xf32>, tensor<1x?x5xf32>
  return
}

// -----

// There is at least one head; batches, queries and keys may be none.
func.func @ssa_c3_no_heads(%q: tensor<1x8x5x48xf32>, %k: tensor<1x0x23x48xf32>) {
  // expected-error @below {{expected dimension 1 of 'key', heads, to be at least 1, but got 0}}
  %bad:2 = ssa.sparse_attend %q, %k, %k
      : tensor<1x8x5x48xf32>, tensor<1x0x23x48xf32>, tensor<1x0x23x48xf32> -> tensor<1x8x5x48xf32>, tensor<1x8x5xf32>
  return
}

// -----

// So is the head dim.
func.func @ssa_c3_head_dim(%q: tensor<1x8x5x?xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected dimension 3 of 'query', the head dim, to be static}}
  %bad:2 = ssa.sparse_attend %q, %k, %k
      : tensor<1x8x5x?xf32>, tensor<1x2x23x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x48xf32>, tensor<1x8x5xf32>
  return
}

// -----

// Rows of nothing.
func.func @ssa_c3_no_head_dim(%q: tensor<1x8x5x0xf32>, %k: tensor<1x2x23x0xf32>) {
  // expected-error @below {{expected dimension 3 of 'query', the head dim, to be at least 1, but got 0}}
  %bad:2 = ssa.sparse_attend %q, %k, %k
      : tensor<1x8x5x0xf32>, tensor<1x2x23x0xf32>, tensor<1x2x23x0xf32> -> tensor<1x8x5x0xf32>, tensor<1x8x5xf32>
  return
}

// -----

// And the dim of values.
func.func @ssa_c3_value_dim(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>, %v: tensor<1x2x23x?xf32>) {
  // expected-error @below {{expected dimension 3 of 'value', the value dim, to be static}}
  %bad:2 = ssa.sparse_attend %q, %k, %v
      : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32>, tensor<1x2x23x?xf32> -> tensor<1x8x5x48xf32>, tensor<1x8x5xf32>
  return
}

// -----

// Results say so too.
func.func @ssa_c3_lse(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected dimension 1 of 'lse', heads, to be static}}
  %bad:2 = ssa.sparse_attend %q, %k, %k
      : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x48xf32>, tensor<1x?x5xf32>
  return
}

// -----

// Rank of a router.
func.func @ssa_c3_project(%q: tensor<1x8x5x48xf32>, %w: tensor<8x48x?xf32>) {
  // expected-error @below {{expected dimension 2 of 'weight', the rank, to be static}}
  %bad = ssa.project %q, %w : tensor<1x8x5x48xf32>, tensor<8x48x?xf32> -> tensor<1x8x5x16xf32>
  return
}

// -----

// Heads of scales.
func.func @ssa_c3_pool(%k: tensor<1x2x23x48xf32>, %s: tensor<1x?x23xf32>) {
  // expected-error @below {{expected dimension 1 of 'scales', heads, to be static}}
  %bad = ssa.pool mean %k scales %s {blocks = #ssa.blocks<23>}
      : tensor<1x2x23x48xf32>, tensor<1x?x23xf32> -> tensor<1x2x1x48xf32>
  return
}

// -----

// Heads of weights.
func.func @ssa_c3_weights(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>, %w: tensor<1x?x5xf32>) {
  // expected-error @below {{expected dimension 1 of 'weights', heads, to be static}}
  %bad = ssa.route %q, %k weights %w
      : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32>, tensor<1x?x5xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// Selection heads.
func.func @ssa_c3_scores(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected dimension 1 of 'scores', selection heads, to be static}}
  %bad = ssa.route %q, %k {reduce = sum} : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x?x5x23xf32>
  return
}

// -----

// The width of lists in memory.
func.func @ssa_c3_indices(%t: tensor<1x2x5x?xi32>) {
  // expected-error @below {{expected dimension 3 of 'indices', the width, to be static}}
  %bad = ssa.from_indices %t : tensor<1x2x5x?xi32> -> !ssa.selection<1x2x5x3>
  return
}

// -----

// Rows of a gathered list.
func.func @ssa_c3_gathered(%k: tensor<1x2x23x48xf32>, %a: !ssa.selection<1x2x5x3>) {
  // expected-error @below {{expected dimension 3 of 'output', the rows of a list, to be static}}
  %bad = ssa.gather %k at %a : tensor<1x2x23x48xf32>, !ssa.selection<1x2x5x3> -> tensor<1x2x5x?x48xf32>
  return
}

// -----

// Heads of sinks.
func.func @ssa_c3_sinks(%o: tensor<1x8x5x48xf32>, %l: tensor<1x8x5xf32>, %s: tensor<?xf32>) {
  // expected-error @below {{expected dimension 0 of 'sink_logits', heads, to be static}}
  %bad:2 = ssa.merge (%o, %l) sink_logits %s
      : tensor<1x8x5x48xf32>, tensor<1x8x5xf32>, tensor<?xf32> -> tensor<1x8x5x48xf32>, tensor<1x8x5xf32>
  return
}
