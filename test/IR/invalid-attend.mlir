// RUN: ssa-opt %s --split-input-file --verify-diagnostics

// sparse_attend. Names of functions are the rules of its description; where something next to what is refused is
// accepted, it stands in front.

// Queries have rank 4.
func.func @sparse_attend_i1(%q: tensor<3x8x1x5x48xf32>, %k: tensor<3x2x23x48xf32>, %v: tensor<3x2x23x24xf32>) {
  // expected-error @below {{operand #0 must be 4D tensor of}}
  %bad:2 = ssa.sparse_attend %q, %k, %v
      : tensor<3x8x1x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x24xf32> -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// Keys have rank 4, or 5 when gathered.
func.func @sparse_attend_i2(%q: tensor<3x8x5x48xf32>, %k: tensor<2x23x48xf32>, %v: tensor<3x2x23x24xf32>) {
  // expected-error @below {{operand #1 must be 4D/5D tensor of 32-bit float or bfloat16 type or 16-bit float values}}
  %bad:2 = ssa.sparse_attend %q, %k, %v
      : tensor<3x8x5x48xf32>, tensor<2x23x48xf32>, tensor<3x2x23x24xf32> -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// There are no scales yet.
func.func @sparse_attend_i2_f8(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf8E4M3FN>, %v: tensor<3x2x23x24xf32>) {
  // expected-error @below {{operand #1 must be 4D/5D tensor of}}
  %bad:2 = ssa.sparse_attend %q, %k, %v
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf8E4M3FN>, tensor<3x2x23x24xf32>
      -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// Values are floats.
func.func @sparse_attend_i3(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %v: tensor<3x2x23x24xi8>) {
  // expected-error @below {{operand #2 must be 4D/5D tensor of}}
  %bad:2 = ssa.sparse_attend %q, %k, %v
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x24xi8> -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// Tokens have rank 4; their type may be any that keys have somewhere.
func.func @sparse_attend_i4(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %v: tensor<3x2x23x24xf32>,
    %n: tensor<3x2x23x48xf8E4M3FN>, %n1: tensor<3x23x48xf32>) {
  %0:2 = ssa.sparse_attend %q, %k, %v of %n
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x24xf32>, tensor<3x2x23x48xf8E4M3FN>
      -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  // expected-error @below {{operand #3 must be 4D tensor of}}
  %bad:2 = ssa.sparse_attend %q, %k, %v of %n1
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x24xf32>, tensor<3x23x48xf32>
      -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// A list in memory is no selection yet.
func.func @sparse_attend_i5(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %v: tensor<3x2x23x24xf32>,
    %a: tensor<3x2x5x3xi32>) {
  // expected-error @below {{operand #3 must be variadic of selection (of an i32 tensor 'ssa.from_indices' makes one), but got 'tensor<3x2x5x3xi32>'}}
  %bad:2 = ssa.sparse_attend %q, %k, %v at %a
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x24xf32>, tensor<3x2x5x3xi32>
      -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// 8 query heads, 3 key heads; 4 will do.
func.func @sparse_attend_c1(%q: tensor<3x8x5x48xf32>, %k: tensor<3x4x23x48xf32>, %v: tensor<3x4x23x24xf32>,
    %k1: tensor<3x3x23x48xf32>,
    %v1: tensor<3x3x23x24xf32>) {
  %0:2 = ssa.sparse_attend %q, %k, %v
      : tensor<3x8x5x48xf32>, tensor<3x4x23x48xf32>, tensor<3x4x23x24xf32> -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  // expected-error @below {{expected the 8 heads of 'query' to be a multiple of the 3 heads of 'key'}}
  %bad:2 = ssa.sparse_attend %q, %k1, %v1
      : tensor<3x8x5x48xf32>, tensor<3x3x23x48xf32>, tensor<3x3x23x24xf32> -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// Ranks of keys and values differ.
func.func @sparse_attend_c2(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %v: tensor<3x2x5x12x24xf32>) {
  // expected-error @below {{expected 'value' to have the rank of 'key', 4, but got 5}}
  %bad:2 = ssa.sparse_attend %q, %k, %v
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x5x12x24xf32> -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// Head dims of queries and keys differ.
func.func @sparse_attend_c2_dim(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x40xf32>, %v: tensor<3x2x23x24xf32>) {
  // expected-error @below {{expected dimension 3 of 'key' to be 48, dimension 3 of 'query', but got 40}}
  %bad:2 = ssa.sparse_attend %q, %k, %v
      : tensor<3x8x5x48xf32>, tensor<3x2x23x40xf32>, tensor<3x2x23x24xf32> -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// Heads of keys and values.
func.func @sparse_attend_c2_heads(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %v: tensor<3x4x23x24xf32>) {
  // expected-error @below {{expected dimension 1 of 'value' to be 2, dimension 1 of 'key', but got 4}}
  %bad:2 = ssa.sparse_attend %q, %k, %v
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x4x23x24xf32> -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// Rows of keys and values.
func.func @sparse_attend_c2_rows(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %v: tensor<3x2x?x24xf32>,
    %v1: tensor<3x2x22x24xf32>) {
  %0:2 = ssa.sparse_attend %q, %k, %v
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x?x24xf32> -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  // expected-error @below {{expected dimension 2 of 'value' to be 23, dimension 2 of 'key', but got 22}}
  %bad:2 = ssa.sparse_attend %q, %k, %v1
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x22x24xf32> -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// Batches.
func.func @sparse_attend_c2_batch(%q: tensor<3x8x5x48xf32>, %k: tensor<1x2x23x48xf32>, %v: tensor<1x2x23x24xf32>) {
  // expected-error @below {{expected dimension 0 of 'key' to be 3, dimension 0 of 'query', but got 1}}
  %bad:2 = ssa.sparse_attend %q, %k, %v
      : tensor<3x8x5x48xf32>, tensor<1x2x23x48xf32>, tensor<1x2x23x24xf32> -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// Queries say nothing of the batch, but keys and result contradict each other.
func.func @sparse_attend_c2_batch_in_between(%q: tensor<?x8x5x48xf32>, %k: tensor<3x2x23x48xf32>,
    %v: tensor<3x2x23x24xf32>) {
  // expected-error @below {{expected dimension 0 of 'output' to be 3, dimension 0 of 'key', but got 2}}
  %bad:2 = ssa.sparse_attend %q, %k, %v
      : tensor<?x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x24xf32> -> tensor<2x8x5x24xf32>, tensor<2x8x5xf32>
  return
}

// -----

// 8 query heads, 3 lists; 1 will do, and 8.
func.func @sparse_attend_c3(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %v: tensor<3x2x23x24xf32>,
    %a: !ssa.selection<3x1x5x3, key_block = 1>, %b: !ssa.selection<3x8x5x3, key_block = 1>,
    %a1: !ssa.selection<3x3x5x3, key_block = 1>) {
  %0:2 = ssa.sparse_attend %q, %k, %v at %a, %b
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x24xf32>, !ssa.selection<3x1x5x3, key_block = 1>,
        !ssa.selection<3x8x5x3, key_block = 1>
      -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  // expected-error @below {{expected the 8 heads of 'query' to be a multiple of the 3 heads of 'selection 0'}}
  %bad:2 = ssa.sparse_attend %q, %k, %v at %a1
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x24xf32>, !ssa.selection<3x3x5x3, key_block = 1>
      -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// The second selection is looked at, too.
func.func @sparse_attend_c3_second(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %v: tensor<3x2x23x24xf32>,
    %a: !ssa.selection<3x2x5x3, key_block = 1>, %b: !ssa.selection<3x16x5x3, key_block = 1>) {
  // expected-error @below {{expected the 8 heads of 'query' to be a multiple of the 16 heads of 'selection 1'}}
  %bad:2 = ssa.sparse_attend %q, %k, %v at %a, %b
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x24xf32>, !ssa.selection<3x2x5x3, key_block = 1>,
        !ssa.selection<3x16x5x3, key_block = 1>
      -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// 5 queries make 3 blocks of 2; one list serves every query.
func.func @sparse_attend_c3_lists(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %v: tensor<3x2x23x24xf32>,
    %a: !ssa.selection<3x2x3x3, key_block = 1, query_block = 2>,
    %b: !ssa.selection<3x2x1x3, key_block = 1, query_block = 2>,
    %a1: !ssa.selection<3x2x5x3, key_block = 1, query_block = 2>) {
  %0:2 = ssa.sparse_attend %q, %k, %v at %a, %b
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x24xf32>,
        !ssa.selection<3x2x3x3, key_block = 1, query_block = 2>,
        !ssa.selection<3x2x1x3, key_block = 1, query_block = 2>
      -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  // expected-error @below {{expected dimension 2 of 'selection 0' to be 3, the query blocks of 'query', but got 5}}
  %bad:2 = ssa.sparse_attend %q, %k, %v at %a1
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x24xf32>,
        !ssa.selection<3x2x5x3, key_block = 1, query_block = 2>
      -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// The number of queries is known from a result only.
func.func @sparse_attend_c3_lists_by_output(%q: tensor<3x8x?x48xf32>, %k: tensor<3x2x23x48xf32>,
    %v: tensor<3x2x23x24xf32>,
    %a: !ssa.selection<3x2x5x3, key_block = 1, query_block = 2>) {
  // expected-error @below {{expected dimension 2 of 'selection 0' to be 3, the query blocks of 'query', but got 5}}
  %bad:2 = ssa.sparse_attend %q, %k, %v at %a
      : tensor<3x8x?x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x24xf32>,
        !ssa.selection<3x2x5x3, key_block = 1, query_block = 2>
      -> tensor<3x8x5x24xf32>, tensor<3x8x?xf32>
  return
}

// -----

// Lists of another batch.
func.func @sparse_attend_c3_batch(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %v: tensor<3x2x23x24xf32>,
    %a: !ssa.selection<1x2x5x3, key_block = 1>) {
  // expected-error @below {{expected dimension 0 of 'selection 0' to be 3, dimension 0 of 'query', but got 1}}
  %bad:2 = ssa.sparse_attend %q, %k, %v at %a
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x24xf32>, !ssa.selection<1x2x5x3, key_block = 1>
      -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// Two selections contradict each other.
func.func @sparse_attend_c3_batches(%q: tensor<?x8x5x48xf32>, %k: tensor<?x2x23x48xf32>, %v: tensor<?x2x23x24xf32>,
    %a: !ssa.selection<3x2x5x3, key_block = 1>, %b: !ssa.selection<2x2x5x3, key_block = 1>) {
  // expected-error @below {{expected dimension 0 of 'selection 1' to be 3, dimension 0 of 'selection 0', but got 2}}
  %bad:2 = ssa.sparse_attend %q, %k, %v at %a, %b
      : tensor<?x8x5x48xf32>, tensor<?x2x23x48xf32>, tensor<?x2x23x24xf32>, !ssa.selection<3x2x5x3, key_block = 1>,
        !ssa.selection<2x2x5x3, key_block = 1>
      -> tensor<?x8x5x24xf32>, tensor<?x8x5xf32>
  return
}

// -----

// How many tokens 23 summaries stand for is not known.
func.func @sparse_attend_c4(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %v: tensor<3x2x23x24xf32>) {
  %0:2 = ssa.sparse_attend %q, %k, %v {blocks = #ssa.blocks<1>}
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x24xf32> -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  // expected-error @below {{expected 'of' with the tokens that the rows of 'key' stand for, as 'blocks' are not single tokens}}
  %bad:2 = ssa.sparse_attend %q, %k, %v {blocks = #ssa.blocks<4>}
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x24xf32> -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// 92 tokens make 23 blocks of 4; there may be fewer summaries, not more.
func.func @sparse_attend_c4_rows(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %v: tensor<3x2x23x24xf32>,
    %n: tensor<3x2x97x48xf32>, %n1: tensor<3x2x88x48xf32>) {
  %0:2 = ssa.sparse_attend %q, %k, %v of %n {blocks = #ssa.blocks<4>}
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x24xf32>, tensor<3x2x97x48xf32>
      -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  // expected-error @below {{expected dimension 2 of 'key' to be at most 22, the number of blocks of 'tokens', but got 23}}
  %bad:2 = ssa.sparse_attend %q, %k, %v of %n1 {blocks = #ssa.blocks<4>}
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x24xf32>, tensor<3x2x88x48xf32>
      -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// The number of rows is known from the values only.
func.func @sparse_attend_c4_rows_of_values(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x?x48xf32>,
    %v: tensor<3x2x23x24xf32>,
    %n: tensor<3x2x88x48xf32>) {
  // expected-error @below {{expected dimension 2 of 'value' to be at most 22, the number of blocks of 'tokens', but got 23}}
  %bad:2 = ssa.sparse_attend %q, %k, %v of %n {blocks = #ssa.blocks<4>}
      : tensor<3x8x5x48xf32>, tensor<3x2x?x48xf32>, tensor<3x2x23x24xf32>, tensor<3x2x88x48xf32>
      -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// Tokens of another batch; their heads and dims may be any.
func.func @sparse_attend_c4_batch(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %v: tensor<3x2x23x24xf32>,
    %n: tensor<3x7x92x1xf32>, %n1: tensor<1x2x92x48xf32>) {
  %0:2 = ssa.sparse_attend %q, %k, %v of %n {blocks = #ssa.blocks<4>}
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x24xf32>, tensor<3x7x92x1xf32>
      -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  // expected-error @below {{expected dimension 0 of 'tokens' to be 3, dimension 0 of 'query', but got 1}}
  %bad:2 = ssa.sparse_attend %q, %k, %v of %n1 {blocks = #ssa.blocks<4>}
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x24xf32>, tensor<1x2x92x48xf32>
      -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// Positions of gathered rows need the number of tokens.
func.func @sparse_attend_c5(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x5x12x48xf32>, %v: tensor<3x2x5x12x24xf32>,
    %n: tensor<3x2x23x48xf32>, %a: !ssa.selection<3x2x5x3, key_block = 4>) {
  %0:2 = ssa.sparse_attend %q, %k, %v of %n at %a
      : tensor<3x8x5x48xf32>, tensor<3x2x5x12x48xf32>, tensor<3x2x5x12x24xf32>, tensor<3x2x23x48xf32>,
        !ssa.selection<3x2x5x3, key_block = 4>
      -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  // expected-error @below {{expected 'of' with the tokens that were gathered, as 'key' has rank 5}}
  %bad:2 = ssa.sparse_attend %q, %k, %v at %a
      : tensor<3x8x5x48xf32>, tensor<3x2x5x12x48xf32>, tensor<3x2x5x12x24xf32>, !ssa.selection<3x2x5x3, key_block = 4>
      -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// And the list that they were gathered at.
func.func @sparse_attend_c5_selection(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x5x12x48xf32>,
    %v: tensor<3x2x5x12x24xf32>,
    %n: tensor<3x2x23x48xf32>) {
  // expected-error @below {{expected one selection with gathered keys, but got 0}}
  %bad:2 = ssa.sparse_attend %q, %k, %v of %n
      : tensor<3x8x5x48xf32>, tensor<3x2x5x12x48xf32>, tensor<3x2x5x12x24xf32>, tensor<3x2x23x48xf32>
      -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// One list.
func.func @sparse_attend_c5_selections(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x5x12x48xf32>,
    %v: tensor<3x2x5x12x24xf32>,
    %n: tensor<3x2x23x48xf32>, %a: !ssa.selection<3x2x5x3, key_block = 4>) {
  // expected-error @below {{expected one selection with gathered keys, but got 2}}
  %bad:2 = ssa.sparse_attend %q, %k, %v of %n at %a, %a
      : tensor<3x8x5x48xf32>, tensor<3x2x5x12x48xf32>, tensor<3x2x5x12x24xf32>, tensor<3x2x23x48xf32>,
        !ssa.selection<3x2x5x3, key_block = 4>, !ssa.selection<3x2x5x3, key_block = 4>
      -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// Of as many rows.
func.func @sparse_attend_c5_rows(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x5x8x48xf32>, %v: tensor<3x2x5x8x24xf32>,
    %n: tensor<3x2x23x48xf32>, %a: !ssa.selection<3x2x5x3, key_block = 4>) {
  // expected-error @below {{expected dimension 3 of 'key' to be 12, the rows of a list, but got 8}}
  %bad:2 = ssa.sparse_attend %q, %k, %v of %n at %a
      : tensor<3x8x5x48xf32>, tensor<3x2x5x8x48xf32>, tensor<3x2x5x8x24xf32>, tensor<3x2x23x48xf32>,
        !ssa.selection<3x2x5x3, key_block = 4>
      -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// In keys and values.
func.func @sparse_attend_c5_rows_of_values(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x5x12x48xf32>,
    %v: tensor<3x2x5x8x24xf32>,
    %n: tensor<3x2x23x48xf32>, %a: !ssa.selection<3x2x5x3, key_block = 4>) {
  // expected-error @below {{expected dimension 3 of 'value' to be 12, dimension 3 of 'key', but got 8}}
  %bad:2 = ssa.sparse_attend %q, %k, %v of %n at %a
      : tensor<3x8x5x48xf32>, tensor<3x2x5x12x48xf32>, tensor<3x2x5x8x24xf32>, tensor<3x2x23x48xf32>,
        !ssa.selection<3x2x5x3, key_block = 4>
      -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// The rows of a list are part of the program.
func.func @sparse_attend_c5_static(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x5x?x48xf32>, %v: tensor<3x2x5x12x24xf32>,
    %n: tensor<3x2x23x48xf32>, %a: !ssa.selection<3x2x5x3, key_block = 4>) {
  // expected-error @below {{expected dimension 3 of 'key', the rows of a list, to be static}}
  %bad:2 = ssa.sparse_attend %q, %k, %v of %n at %a
      : tensor<3x8x5x48xf32>, tensor<3x2x5x?x48xf32>, tensor<3x2x5x12x24xf32>, tensor<3x2x23x48xf32>,
        !ssa.selection<3x2x5x3, key_block = 4>
      -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// A list per list; one for every query stands for itself.
func.func @sparse_attend_c5_lists(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x1x12x48xf32>, %v: tensor<3x2x1x12x24xf32>,
    %n: tensor<3x2x23x48xf32>, %a: !ssa.selection<3x2x1x3, key_block = 4>, %k1: tensor<3x2x5x12x48xf32>,
    %v1: tensor<3x2x5x12x24xf32>) {
  %0:2 = ssa.sparse_attend %q, %k, %v of %n at %a
      : tensor<3x8x5x48xf32>, tensor<3x2x1x12x48xf32>, tensor<3x2x1x12x24xf32>, tensor<3x2x23x48xf32>,
        !ssa.selection<3x2x1x3, key_block = 4>
      -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  // expected-error @below {{expected dimension 2 of 'selection 0' to be 5, dimension 2 of 'key', but got 1}}
  %bad:2 = ssa.sparse_attend %q, %k1, %v1 of %n at %a
      : tensor<3x8x5x48xf32>, tensor<3x2x5x12x48xf32>, tensor<3x2x5x12x24xf32>, tensor<3x2x23x48xf32>,
        !ssa.selection<3x2x1x3, key_block = 4>
      -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// Rows that were gathered at blocks of another size.
func.func @sparse_attend_c5_key_block(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x5x12x48xf32>,
    %v: tensor<3x2x5x12x24xf32>,
    %n: tensor<3x2x23x48xf32>, %a: !ssa.selection<3x2x5x3, key_block = 2>) {
  // expected-error @below {{expected dimension 3 of 'key' to be 6, the rows of a list, but got 12}}
  %bad:2 = ssa.sparse_attend %q, %k, %v of %n at %a
      : tensor<3x8x5x48xf32>, tensor<3x2x5x12x48xf32>, tensor<3x2x5x12x24xf32>, tensor<3x2x23x48xf32>,
        !ssa.selection<3x2x5x3, key_block = 2>
      -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// 0 and negative numbers are scales; infinity is none.
func.func @sparse_attend_c6(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %v: tensor<3x2x23x24xf32>) {
  %0:2 = ssa.sparse_attend %q, %k, %v {scale = -0.0}
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x24xf32> -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  // expected-error @below {{expected 'scale' to be a finite f32, but got inf}}
  %bad:2 = ssa.sparse_attend %q, %k, %v {scale = 0x7FF0000000000000 : f64}
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x24xf32> -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// A row of output per query.
func.func @sparse_attend_c7(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %v: tensor<3x2x23x24xf32>) {
  // expected-error @below {{expected dimension 2 of 'output' to be 5, dimension 2 of 'query', but got 6}}
  %bad:2 = ssa.sparse_attend %q, %k, %v
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x24xf32> -> tensor<3x8x6x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// Per head.
func.func @sparse_attend_c7_heads(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %v: tensor<3x2x23x24xf32>) {
  // expected-error @below {{expected dimension 1 of 'output' to be 8, dimension 1 of 'query', but got 2}}
  %bad:2 = ssa.sparse_attend %q, %k, %v
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x24xf32> -> tensor<3x2x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// As wide as values.
func.func @sparse_attend_c7_dim(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %v: tensor<3x2x23x24xf32>) {
  // expected-error @below {{expected dimension 3 of 'output' to be 24, dimension 3 of 'value', but got 48}}
  %bad:2 = ssa.sparse_attend %q, %k, %v
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x24xf32> -> tensor<3x8x5x48xf32>, tensor<3x8x5xf32>
  return
}

// -----

// A number per row.
func.func @sparse_attend_c7_lse(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %v: tensor<3x2x23x24xf32>) {
  // expected-error @below {{expected dimension 2 of 'lse' to be 5, dimension 2 of 'query', but got 6}}
  %bad:2 = ssa.sparse_attend %q, %k, %v
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x24xf32> -> tensor<3x8x5x24xf32>, tensor<3x8x6xf32>
  return
}

// -----

// It is f32.
func.func @sparse_attend_c7_lse_type(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>, %v: tensor<3x2x23x24xf32>) {
  // expected-error @below {{result #1 must be 3D tensor of 32-bit float values}}
  %bad:2 = ssa.sparse_attend %q, %k, %v
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, tensor<3x2x23x24xf32> -> tensor<3x8x5x24xf32>, tensor<3x8x5xbf16>
  return
}

// -----

// A region that takes other types; only the generic form can say so.
func.func @sparse_attend_c8(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected the score region to take (f32, i32, i32, i32, i32)}}
  %bad:2 = "ssa.sparse_attend"(%q, %k, %k) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> ({
  ^bb0(%x: f32, %w: f32, %b: i32, %h: i32, %p: i32):
    "ssa.yield"(%x) : (f32) -> ()
  }) : (tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32>, tensor<1x2x23x48xf32>) -> (tensor<1x8x5x48xf32>, tensor<1x8x5xf32>)
  return
}

// -----

// That yields nothing.
func.func @sparse_attend_c8_end(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  %0:2 = ssa.sparse_attend %q, %k, %k score (%x, %b, %h, %p, %n) {
    ssa.yield %x : f32
  } : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x48xf32>, tensor<1x8x5xf32>
  // expected-error @below {{expected the score region to end with 'ssa.yield'}}
  %bad:2 = ssa.sparse_attend %q, %k, %k score (%x, %b, %h, %p, %n) {
  } : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x48xf32>, tensor<1x8x5xf32>
  return
}

// -----

// That prints.
func.func @sparse_attend_c8_effect(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected the score region to be free of side effects}}
  %bad:2 = ssa.sparse_attend %q, %k, %k score (%x, %b, %h, %p, %n) {
    // expected-note @below {{'vector.print' may have one}}
    vector.print %x : f32
    ssa.yield %x : f32
  } : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x48xf32>, tensor<1x8x5xf32>
  return
}
