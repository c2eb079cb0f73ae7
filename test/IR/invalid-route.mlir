// RUN: ssa-opt %s --split-input-file --verify-diagnostics

// route. Names of functions are the rules of its description; where something next to what is refused is accepted, it
// stands in front.

// Queries have rank 4.
func.func @route_i1(%q: tensor<8x5x48xf32>, %k: tensor<3x2x23x48xf32>) {
  // expected-error @below {{operand #0 must be 4D tensor of}}
  %bad = ssa.route %q, %k : tensor<8x5x48xf32>, tensor<3x2x23x48xf32> -> tensor<3x8x5x23xf32>
  return
}

// -----

// Keys are floats.
func.func @route_i2(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xi8>) {
  // expected-error @below {{operand #1 must be 4D tensor of}}
  %bad = ssa.route %q, %k : tensor<3x8x5x48xf32>, tensor<3x2x23x48xi8> -> tensor<3x8x5x23xf32>
  return
}

// -----

// Maxima have rank 4.
func.func @route_i3(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %m: tensor<2x23x48xf32>) {
  // expected-error @below {{operand #2 must be 4D tensor of}}
  %bad = ssa.route bound %q, %k, %m
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<2x23x48xf32> -> tensor<3x8x5x23xf32>
  return
}

// -----

// Tokens have rank 4, like keys.
func.func @route_i4(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %n: tensor<3x23xf32>) {
  // expected-error @below {{operand #2 must be 4D tensor of}}
  %bad = ssa.route %q, %k of %n : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x23xf32> -> tensor<3x8x5x23xf32>
  return
}

// -----

// Queries that are stood for have rank 4, like queries.
func.func @route_i5(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %n: tensor<3x5xf32>) {
  // expected-error @below {{operand #2 must be 4D tensor of}}
  %bad = ssa.route %q, %k for %n : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x5xf32> -> tensor<3x8x5x23xf32>
  return
}

// -----

// Weights are f32, one per row.
func.func @route_i6(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %w: tensor<3x8x5xbf16>) {
  // expected-error @below {{operand #2 must be 3D tensor of 32-bit float values}}
  %bad = ssa.route %q, %k weights %w
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x8x5xbf16> -> tensor<3x8x5x23xf32>
  return
}

// -----

// So are scales.
func.func @route_i7(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %w: tensor<3x2x23x1xf32>) {
  // expected-error @below {{operand #2 must be 3D tensor of 32-bit float values}}
  %bad = ssa.route %q, %k scales %w
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x1xf32> -> tensor<3x8x5x23xf32>
  return
}

// -----

// A list in memory is no selection yet.
func.func @route_i8(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %c: tensor<3x8x5x23xi32>) {
  // expected-error @below {{operand #2 must be selection (of an i32 tensor 'ssa.from_indices' makes one)}}
  %bad = ssa.route %q, %k within %c
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x8x5x23xi32> -> tensor<3x8x5x23xf32>
  return
}

// -----

// 8 query heads, 3 key heads; 4 will do.
func.func @route_c1(%q: tensor<3x8x5x48xf32>, %k: tensor<3x4x23x48xf32>, %k1: tensor<3x3x23x48xf32>) {
  %0 = ssa.route %q, %k : tensor<3x8x5x48xf32>, tensor<3x4x23x48xf32> -> tensor<3x8x5x23xf32>
  // expected-error @below {{expected the 8 heads of 'query' to be a multiple of the 3 heads of 'key'}}
  %bad = ssa.route %q, %k1 : tensor<3x8x5x48xf32>, tensor<3x3x23x48xf32> -> tensor<3x8x5x23xf32>
  return
}

// -----

// More key heads than query heads.
func.func @route_c1_more(%q: tensor<3x8x5x48xf32>, %k: tensor<3x8x23x48xf32>, %k1: tensor<3x16x23x48xf32>) {
  %0 = ssa.route %q, %k : tensor<3x8x5x48xf32>, tensor<3x8x23x48xf32> -> tensor<3x8x5x23xf32>
  // expected-error @below {{expected the 8 heads of 'query' to be a multiple of the 16 heads of 'key'}}
  %bad = ssa.route %q, %k1 : tensor<3x8x5x48xf32>, tensor<3x16x23x48xf32> -> tensor<3x8x5x23xf32>
  return
}

// -----

// Head dims differ.
func.func @route_c2(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x40xf32>) {
  // expected-error @below {{expected dimension 3 of 'key' to be 48, dimension 3 of 'query', but got 40}}
  %bad = ssa.route %q, %k : tensor<3x8x5x48xf32>, tensor<3x2x23x40xf32> -> tensor<3x8x5x23xf32>
  return
}

// -----

// Batches differ.
func.func @route_c2_batch(%q: tensor<3x8x5x48xf32>, %k: tensor<?x2x23x48xf32>, %k1: tensor<1x2x23x48xf32>) {
  %0 = ssa.route %q, %k : tensor<3x8x5x48xf32>, tensor<?x2x23x48xf32> -> tensor<3x8x5x23xf32>
  // expected-error @below {{expected dimension 0 of 'key' to be 3, dimension 0 of 'query', but got 1}}
  %bad = ssa.route %q, %k1 : tensor<3x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<3x8x5x23xf32>
  return
}

// -----

// Batches of shapes count too; their heads and dims do not.
func.func @route_c2_batch_of_tokens(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %n: tensor<3x1x23x1xf32>,
    %n1: tensor<1x2x23x48xf32>) {
  %0 = ssa.route %q, %k of %n
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x1x23x1xf32> -> tensor<3x8x5x23xf32>
  // expected-error @below {{expected dimension 0 of 'tokens' to be 3, dimension 0 of 'query', but got 1}}
  %bad = ssa.route %q, %k of %n1
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<1x2x23x48xf32> -> tensor<3x8x5x23xf32>
  return
}

// -----

// Queries and keys say nothing of the batch, but others contradict each other.
func.func @route_c2_batch_in_between(%q: tensor<?x8x5x48xf32>, %k: tensor<?x2x23x48xf32>, %w: tensor<3x8x5xf32>) {
  // expected-error @below {{expected dimension 0 of 'scores' to be 3, dimension 0 of 'weights', but got 2}}
  %bad = ssa.route %q, %k weights %w
      : tensor<?x8x5x48xf32>, tensor<?x2x23x48xf32>, tensor<3x8x5xf32> -> tensor<2x8x5x23xf32>
  return
}

// -----

// A bound is made of minima and maxima.
func.func @route_c3(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %m: tensor<3x2x23x48xf32>) {
  %0 = ssa.route bound %q, %k, %m
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x48xf32> -> tensor<3x8x5x23xf32>
  // expected-error @below {{expected two operands after 'query' with 'bound', the minima and the maxima}}
  %bad = ssa.route bound %q, %k : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32> -> tensor<3x8x5x23xf32>
  return
}

// -----

// Without it there is one.
func.func @route_c3_without(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %m: tensor<3x2x23x48xf32>) {
  // expected-error @below {{expected one operand after 'query'; two need 'bound'}}
  %bad = ssa.route %q, %k, %m
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x48xf32> -> tensor<3x8x5x23xf32>
  return
}

// -----

// A maximum too few.
func.func @route_c3_rows(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %m: tensor<3x2x22x48xf32>) {
  // expected-error @below {{expected dimension 2 of 'key_max' to be 23, dimension 2 of 'key', but got 22}}
  %bad = ssa.route bound %q, %k, %m
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x22x48xf32> -> tensor<3x8x5x23xf32>
  return
}

// -----

// Maxima of other heads.
func.func @route_c3_heads(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %m: tensor<3x1x23x48xf32>) {
  // expected-error @below {{expected dimension 1 of 'key_max' to be 2, dimension 1 of 'key', but got 1}}
  %bad = ssa.route bound %q, %k, %m
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x1x23x48xf32> -> tensor<3x8x5x23xf32>
  return
}

// -----

// Maxima of another head dim.
func.func @route_c3_dim(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %m: tensor<3x2x23x40xf32>) {
  // expected-error @below {{expected dimension 3 of 'key_max' to be 48, dimension 3 of 'query', but got 40}}
  %bad = ssa.route bound %q, %k, %m
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x40xf32> -> tensor<3x8x5x23xf32>
  return
}

// -----

// Weights belong to rows of queries.
func.func @route_c4(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %w: tensor<3x8x23xf32>) {
  // expected-error @below {{expected dimension 2 of 'weights' to be 5, dimension 2 of 'query', but got 23}}
  %bad = ssa.route %q, %k weights %w
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x8x23xf32> -> tensor<3x8x5x23xf32>
  return
}

// -----

// And to their heads.
func.func @route_c4_heads(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %w: tensor<3x2x5xf32>) {
  // expected-error @below {{expected dimension 1 of 'weights' to be 8, dimension 1 of 'query', but got 2}}
  %bad = ssa.route %q, %k weights %w
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x5xf32> -> tensor<3x8x5x23xf32>
  return
}

// -----

// Scales belong to rows of keys.
func.func @route_c4_scales(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %w: tensor<3x2x5xf32>) {
  // expected-error @below {{expected dimension 2 of 'scales' to be 23, dimension 2 of 'key', but got 5}}
  %bad = ssa.route %q, %k scales %w
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x5xf32> -> tensor<3x8x5x23xf32>
  return
}

// -----

// And to their heads.
func.func @route_c4_scales_heads(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %w: tensor<3x8x23xf32>) {
  // expected-error @below {{expected dimension 1 of 'scales' to be 2, dimension 1 of 'key', but got 8}}
  %bad = ssa.route %q, %k scales %w
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x8x23xf32> -> tensor<3x8x5x23xf32>
  return
}

// -----

// Blocks of no queries.
func.func @route_c5(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %n: tensor<3x8x5x48xf32>) {
  %0 = ssa.route %q, %k for %n {query_block = 1}
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x8x5x48xf32> -> tensor<3x8x5x23xf32>
  // expected-error @below {{expected 'query_block' to be in 1 .. 2147483647, but got 0}}
  %bad = ssa.route %q, %k for %n {query_block = 0}
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x8x5x48xf32> -> tensor<3x8x5x23xf32>
  return
}

// -----

// Of less than none; attributes have signs.
func.func @route_c5_negative(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %n: tensor<3x8x5x48xf32>) {
  // expected-error @below {{expected 'query_block' to be in 1 .. 2147483647, but got -9223372036854775808}}
  %bad = ssa.route %q, %k for %n {query_block = -9223372036854775808}
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x8x5x48xf32> -> tensor<3x8x5x23xf32>
  return
}

// -----

// Of more queries than there can be.
func.func @route_c5_large(%q: tensor<3x8x1x48xf32>, %k: tensor<3x2x23x48xf32>, %n: tensor<3x8x5x48xf32>,
    %q1: tensor<3x8x5x48xf32>) {
  %0 = ssa.route %q, %k for %n {query_block = 2147483647}
      : tensor<3x8x1x48xf32>, tensor<3x2x23x48xf32>, tensor<3x8x5x48xf32> -> tensor<3x8x1x23xf32>
  // expected-error @below {{expected 'query_block' to be in 1 .. 2147483647, but got 9223372036854775807}}
  %bad = ssa.route %q1, %k for %n {query_block = 9223372036854775807}
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x8x5x48xf32> -> tensor<3x8x5x23xf32>
  return
}

// -----

// How many queries 5 rows stand for is not known: 17 .. 20.
func.func @route_c5_queries(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>) {
  %0 = ssa.route %q, %k {query_block = 1} : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32> -> tensor<3x8x5x23xf32>
  // expected-error @below {{expected 'for' with the queries that the rows of 'query' stand for, as 'query_block' is 4}}
  %bad = ssa.route %q, %k {query_block = 4} : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32> -> tensor<3x8x5x23xf32>
  return
}

// -----

// 21 queries make 6 blocks of 4; 17 make 5.
func.func @route_c5_rows(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %n: tensor<3x8x17x48xf32>,
    %n1: tensor<3x8x21x48xf32>) {
  %0 = ssa.route %q, %k for %n {query_block = 4}
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x8x17x48xf32> -> tensor<3x8x5x23xf32>
  // expected-error @below {{expected dimension 2 of 'query' to be 6, the query blocks of 'queries', but got 5}}
  %bad = ssa.route %q, %k for %n1 {query_block = 4}
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x8x21x48xf32> -> tensor<3x8x5x23xf32>
  return
}

// -----

// Without blocks a row is a query.
func.func @route_c5_single(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %n: tensor<3x8x7x48xf32>) {
  // expected-error @below {{expected dimension 2 of 'query' to be 7, the query blocks of 'queries', but got 5}}
  %bad = ssa.route %q, %k for %n
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x8x7x48xf32> -> tensor<3x8x5x23xf32>
  return
}

// -----

// Positions need the number of tokens: 6 summaries stand for 21 .. 24.
func.func @route_c6(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x6x48xf32>, %n: tensor<3x2x23x48xf32>) {
  %0 = ssa.route %q, %k of %n {blocks = #ssa.blocks<4>, mask = #ssa.mask<causal>}
      : tensor<3x8x5x48xf32>, tensor<3x2x6x48xf32>, tensor<3x2x23x48xf32> -> tensor<3x8x5x6xf32>
  // expected-error @below {{expected 'of' with the tokens that the rows of 'key' stand for, as 'blocks' are not single tokens}}
  %bad = ssa.route %q, %k {blocks = #ssa.blocks<4>, mask = #ssa.mask<causal>}
      : tensor<3x8x5x48xf32>, tensor<3x2x6x48xf32> -> tensor<3x8x5x6xf32>
  return
}

// -----

// So does a region, which gets positions.
func.func @route_c6_region(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x6x48xf32>) {
  %0 = ssa.route %q, %k {blocks = #ssa.blocks<4>} : tensor<3x8x5x48xf32>, tensor<3x2x6x48xf32> -> tensor<3x8x5x6xf32>
  // expected-error @below {{expected 'of' with the tokens that the rows of 'key' stand for, as 'blocks' are not single tokens}}
  %bad = ssa.route %q, %k {blocks = #ssa.blocks<4>} score (%x, %w, %b, %h, %p, %j) { ssa.yield %x : f32 }
      : tensor<3x8x5x48xf32>, tensor<3x2x6x48xf32> -> tensor<3x8x5x6xf32>
  return
}

// -----

// 23 tokens make 6 blocks; there may be fewer summaries, not more.
func.func @route_c6_rows(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x5x48xf32>, %n: tensor<3x2x23x48xf32>,
    %k1: tensor<3x2x7x48xf32>) {
  %0 = ssa.route %q, %k of %n {blocks = #ssa.blocks<4>, mask = #ssa.mask<causal>}
      : tensor<3x8x5x48xf32>, tensor<3x2x5x48xf32>, tensor<3x2x23x48xf32> -> tensor<3x8x5x5xf32>
  // expected-error @below {{expected dimension 2 of 'key' to be at most 6, the number of blocks of 'tokens', but got 7}}
  %bad = ssa.route %q, %k1 of %n {blocks = #ssa.blocks<4>, mask = #ssa.mask<causal>}
      : tensor<3x8x5x48xf32>, tensor<3x2x7x48xf32>, tensor<3x2x23x48xf32> -> tensor<3x8x5x7xf32>
  return
}

// -----

// The same for single tokens.
func.func @route_c6_tokens(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x22x48xf32>, %n: tensor<3x2x23x48xf32>,
    %k1: tensor<3x2x24x48xf32>) {
  %0 = ssa.route %q, %k of %n
      : tensor<3x8x5x48xf32>, tensor<3x2x22x48xf32>, tensor<3x2x23x48xf32> -> tensor<3x8x5x22xf32>
  // expected-error @below {{expected dimension 2 of 'key' to be at most 23, the number of blocks of 'tokens', but got 24}}
  %bad = ssa.route %q, %k1 of %n
      : tensor<3x8x5x48xf32>, tensor<3x2x24x48xf32>, tensor<3x2x23x48xf32> -> tensor<3x8x5x24xf32>
  return
}

// -----

// The number of rows is known from the scores only.
func.func @route_c6_by_scores(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x?x48xf32>, %n: tensor<3x2x23x48xf32>) {
  // expected-error @below {{expected dimension 3 of 'scores' to be at most 23, the number of blocks of 'tokens', but got 24}}
  %bad = ssa.route %q, %k of %n
      : tensor<3x8x5x48xf32>, tensor<3x2x?x48xf32>, tensor<3x2x23x48xf32> -> tensor<3x8x5x24xf32>
  return
}

// -----

// A scale that makes every score NaN.
func.func @route_c7(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>) {
  // expected-error @below {{expected 'scale' to be a finite f32, but got nan}}
  %bad = ssa.route %q, %k {scale = 0x7FF8000000000000 : f64}
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32> -> tensor<3x8x5x23xf32>
  return
}

// -----

// Or infinite; 0 is legal.
func.func @route_c7_infinite(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>) {
  %0 = ssa.route %q, %k {scale = 0.0} : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32> -> tensor<3x8x5x23xf32>
  // expected-error @below {{expected 'scale' to be a finite f32, but got inf}}
  %bad = ssa.route %q, %k {scale = 0x7FF0000000000000 : f64}
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32> -> tensor<3x8x5x23xf32>
  return
}

// -----

// Infinite after rounding to f32; the largest that is not stands in front.
func.func @route_c7_overflow(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>) {
  %0 = ssa.route %q, %k {scale = 3.4e38} : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32> -> tensor<3x8x5x23xf32>
  // expected-error @below {{expected 'scale' to be a finite f32, but got 3.5e+38}}
  %bad = ssa.route %q, %k {scale = 3.5e38} : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32> -> tensor<3x8x5x23xf32>
  return
}

// -----

// Scores have a row per row of queries.
func.func @route_c8(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>) {
  // expected-error @below {{expected dimension 2 of 'scores' to be 5, dimension 2 of 'query', but got 6}}
  %bad = ssa.route %q, %k : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32> -> tensor<3x8x6x23xf32>
  return
}

// -----

// And a column per row of keys.
func.func @route_c8_blocks(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>) {
  // expected-error @below {{expected dimension 3 of 'scores' to be 23, dimension 2 of 'key', but got 22}}
  %bad = ssa.route %q, %k : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32> -> tensor<3x8x5x22xf32>
  return
}

// -----

// 8 heads are joined to 3; 4 will do.
func.func @route_c8_heads(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>) {
  %0 = ssa.route %q, %k {reduce = sum} : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32> -> tensor<3x4x5x23xf32>
  // expected-error @below {{expected the 8 heads of 'query' to be a multiple of the 3 heads of 'scores'}}
  %bad = ssa.route %q, %k {reduce = sum} : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32> -> tensor<3x3x5x23xf32>
  return
}

// -----

// Nothing says how heads are joined. To join each with itself is legal.
func.func @route_c8_none(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>) {
  %0 = ssa.route %q, %k {reduce = max} : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32> -> tensor<3x8x5x23xf32>
  // expected-error @below {{expected dimension 1 of 'scores' to be 8, the heads of 'query', as 'reduce' is none, but got 4}}
  %bad = ssa.route %q, %k : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32> -> tensor<3x4x5x23xf32>
  return
}
