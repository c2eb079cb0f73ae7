// RUN: ssa-opt %s --split-input-file --verify-diagnostics

// topk. Names of functions are the rules of its description; where something next to what is refused is accepted, it
// stands in front.

// Scores are f32.
func.func @topk_i1(%s: tensor<1x2x5x9xbf16>, %k: tensor<1x2x9x48xf32>) {
  // expected-error @below {{operand #0 must be 4D tensor of 32-bit float values}}
  %bad = ssa.topk %s of %k
      : tensor<1x2x5x9xbf16>, tensor<1x2x9x48xf32> -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  return
}

// -----

// Tokens have rank 4, like keys.
func.func @topk_i2(%s: tensor<1x2x5x9xf32>, %k: tensor<9x48xf32>) {
  // expected-error @below {{operand #1 must be 4D tensor of}}
  %bad = ssa.topk %s of %k : tensor<1x2x5x9xf32>, tensor<9x48xf32> -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  return
}

// -----

// Queries have rank 4.
func.func @topk_i3(%s: tensor<1x2x5x9xf32>, %k: tensor<1x2x9x48xf32>, %q: tensor<1x8x5xf32>) {
  // expected-error @below {{operand #2 must be 4D tensor of}}
  %bad = ssa.topk %s of %k for %q
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32>, tensor<1x8x5xf32> -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  return
}

// -----

// A list in memory is no selection yet.
func.func @topk_i4(%s: tensor<1x2x5x9xf32>, %k: tensor<1x2x9x48xf32>, %c: tensor<1x2x5x9xi32>) {
  // expected-error @below {{operand #2 must be selection (of an i32 tensor 'ssa.from_indices' makes one)}}
  %bad = ssa.topk %s of %k within %c
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32>, tensor<1x2x5x9xi32> -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  return
}

// -----

// How many queries 5 rows stand for is not known: 17 .. 20.
func.func @topk_c1(%s: tensor<1x2x5x9xf32>, %k: tensor<1x2x9x48xf32>, %q: tensor<1x8x17x48xf32>) {
  %0 = ssa.topk %s of %k for %q
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32>, tensor<1x8x17x48xf32>
      -> !ssa.selection<1x2x5x3, key_block = 1, query_block = 4, sorted>
  // expected-error @below {{expected 'for' with the queries that the rows of 'scores' stand for, as 'query_block' is 4}}
  %bad = ssa.topk %s of %k
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32> -> !ssa.selection<1x2x5x3, key_block = 1, query_block = 4, sorted>
  return
}

// -----

// 21 queries make 6 blocks of 4.
func.func @topk_c1_rows(%s: tensor<1x2x5x9xf32>, %k: tensor<1x2x9x48xf32>, %q: tensor<1x8x21x48xf32>) {
  // expected-error @below {{expected dimension 2 of 'scores' to be 6, the query blocks of 'queries', but got 5}}
  %bad = ssa.topk %s of %k for %q
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32>, tensor<1x8x21x48xf32>
      -> !ssa.selection<1x2x5x3, key_block = 1, query_block = 4, sorted>
  return
}

// -----

// The number of rows is known from the selection only.
func.func @topk_c1_by_selection(%s: tensor<1x2x?x9xf32>, %k: tensor<1x2x9x48xf32>, %q: tensor<1x8x21x48xf32>) {
  // expected-error @below {{expected dimension 2 of 'selection' to be 6, the query blocks of 'queries', but got 5}}
  %bad = ssa.topk %s of %k for %q
      : tensor<1x2x?x9xf32>, tensor<1x2x9x48xf32>, tensor<1x8x21x48xf32>
      -> !ssa.selection<1x2x5x3, key_block = 1, query_block = 4, sorted>
  return
}

// -----

// Without blocks a row is a query.
func.func @topk_c1_single(%s: tensor<1x2x5x9xf32>, %k: tensor<1x2x9x48xf32>, %q: tensor<1x8x5x48xf32>,
    %q1: tensor<1x8x7x48xf32>) {
  %0 = ssa.topk %s of %k for %q
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32>, tensor<1x8x5x48xf32>
      -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  // expected-error @below {{expected dimension 2 of 'scores' to be 7, the query blocks of 'queries', but got 5}}
  %bad = ssa.topk %s of %k for %q1
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32>, tensor<1x8x7x48xf32>
      -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  return
}

// -----

// A number of blocks with a sign.
func.func @topk_c2(%s: tensor<1x2x5x9xf32>, %k: tensor<1x2x9x48xf32>) {
  %0 = ssa.topk %s of %k {init_blocks = 0}
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32> -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  // expected-error @below {{expected 'init_blocks' to be at least 0, but got -1}}
  %bad = ssa.topk %s of %k {init_blocks = -1}
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32> -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  return
}

// -----

// The other one.
func.func @topk_c2_local(%s: tensor<1x2x5x9xf32>, %k: tensor<1x2x9x48xf32>) {
  // expected-error @below {{expected 'local_blocks' to be at least 0, but got -9223372036854775808}}
  %bad = ssa.topk %s of %k {local_blocks = -9223372036854775808}
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32> -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  return
}

// -----

// One block too many is forced. All that are selected may be.
func.func @topk_c3(%s: tensor<1x2x5x9xf32>, %k: tensor<1x2x9x48xf32>) {
  %0 = ssa.topk %s of %k {init_blocks = 1, local_blocks = 2}
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32> -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  // expected-error @below {{expected 'init_blocks' + 'local_blocks' to be at most 3, the width of the selection, but got 1 + 3}}
  %bad = ssa.topk %s of %k {init_blocks = 1, local_blocks = 3}
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32> -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  return
}

// -----

// Only first blocks.
func.func @topk_c3_init(%s: tensor<1x2x5x9xf32>, %k: tensor<1x2x9x48xf32>) {
  %0 = ssa.topk %s of %k {init_blocks = 3, local_blocks = 0}
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32> -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  // expected-error @below {{expected 'init_blocks' + 'local_blocks' to be at most 3, the width of the selection, but got 4 + 0}}
  %bad = ssa.topk %s of %k {init_blocks = 4, local_blocks = 0}
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32> -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  return
}

// -----

// Only local blocks.
func.func @topk_c3_local(%s: tensor<1x2x5x9xf32>, %k: tensor<1x2x9x48xf32>) {
  %0 = ssa.topk %s of %k {init_blocks = 0, local_blocks = 3}
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32> -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  // expected-error @below {{expected 'init_blocks' + 'local_blocks' to be at most 3, the width of the selection, but got 0 + 4}}
  %bad = ssa.topk %s of %k {init_blocks = 0, local_blocks = 4}
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32> -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  return
}

// -----

// As many as there are numbers: the sum would be -2.
func.func @topk_c3_overflow(%s: tensor<1x2x5x9xf32>, %k: tensor<1x2x9x48xf32>) {
  // expected-error @below {{expected 'init_blocks' + 'local_blocks' to be at most 3, the width of the selection, but got 9223372036854775807 + 9223372036854775807}}
  %bad = ssa.topk %s of %k {init_blocks = 9223372036854775807, local_blocks = 9223372036854775807}
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32> -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  return
}

// -----

// Nothing is selected and nothing forced; one forced block is too many.
func.func @topk_c3_empty(%s: tensor<1x2x5x9xf32>, %k: tensor<1x2x9x48xf32>) {
  %0 = ssa.topk %s of %k : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32> -> !ssa.selection<1x2x5x0, key_block = 1, sorted>
  // expected-error @below {{expected 'init_blocks' + 'local_blocks' to be at most 0, the width of the selection, but got 0 + 1}}
  %bad = ssa.topk %s of %k {init_blocks = 0, local_blocks = 1}
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32> -> !ssa.selection<1x2x5x0, key_block = 1, sorted>
  return
}

// -----

// 7 queries lie in up to 1 + ceil(6/4) blocks of 4 keys: 4 with the first one.
func.func @topk_c3_query_block(%s: tensor<1x2x5x3xf32>, %k: tensor<1x2x9x48xf32>, %q: tensor<1x8x31x48xf32>) {
  %0 = ssa.topk %s of %k for %q {init_blocks = 1, local_blocks = 1}
      : tensor<1x2x5x3xf32>, tensor<1x2x9x48xf32>, tensor<1x8x31x48xf32>
      -> !ssa.selection<1x2x5x4, key_block = 4, query_block = 7, sorted>
  // expected-error @below {{expected 'init_blocks' + 'local_blocks' + ceil((query_block-1)/key_block) to be at most 3, the width of the selection, but got 1 + 1 + 2}}
  %bad = ssa.topk %s of %k for %q {init_blocks = 1, local_blocks = 1}
      : tensor<1x2x5x3xf32>, tensor<1x2x9x48xf32>, tensor<1x8x31x48xf32>
      -> !ssa.selection<1x2x5x3, key_block = 4, query_block = 7, sorted>
  return
}

// -----

// Where none is forced, the queries of a block may lie in any number of blocks.
func.func @topk_c3_unforced(%s: tensor<1x2x5x9xf32>, %k: tensor<1x2x9x48xf32>, %q: tensor<1x8x31x48xf32>) {
  %0 = ssa.topk %s of %k for %q
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32>, tensor<1x8x31x48xf32>
      -> !ssa.selection<1x2x5x1, key_block = 1, query_block = 7, sorted>
  // expected-error @below {{expected 'init_blocks' + 'local_blocks' + ceil((query_block-1)/key_block) to be at most 1, the width of the selection, but got 1 + 0 + 6}}
  %bad = ssa.topk %s of %k for %q {init_blocks = 1, local_blocks = 0}
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32>, tensor<1x8x31x48xf32>
      -> !ssa.selection<1x2x5x1, key_block = 1, query_block = 7, sorted>
  return
}

// -----

// Wider than a selector goes.
func.func @topk_c4(%s: tensor<1x2x5x9xf32>, %k: tensor<1x2x9x48xf32>) {
  %0 = ssa.topk %s of %k
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32> -> !ssa.selection<1x2x5x4096, key_block = 1, sorted>
  // expected-error @below {{expected the width of 'selection' to be at most 4096, but got 4097}}
  %bad = ssa.topk %s of %k
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32> -> !ssa.selection<1x2x5x4097, key_block = 1, sorted>
  return
}

// -----

// More than the whole mass.
func.func @topk_c5(%s: tensor<1x2x5x9xf32>, %k: tensor<1x2x9x48xf32>) {
  %0 = ssa.topk %s of %k {top_p = 1.0}
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32> -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  // expected-error @below {{expected 'top_p' to be in 0 .. 1, but got 1.5}}
  %bad = ssa.topk %s of %k {top_p = 1.5}
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32> -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  return
}

// -----

// Less than none.
func.func @topk_c5_negative(%s: tensor<1x2x5x9xf32>, %k: tensor<1x2x9x48xf32>) {
  %0 = ssa.topk %s of %k {top_p = 0.0}
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32> -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  // expected-error @below {{expected 'top_p' to be in 0 .. 1, but got -0.5}}
  %bad = ssa.topk %s of %k {top_p = -0.5}
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32> -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  return
}

// -----

// What counts is the f32: this one is 1.
func.func @topk_c5_rounded(%s: tensor<1x2x5x9xf32>, %k: tensor<1x2x9x48xf32>) {
  %0 = ssa.topk %s of %k {top_p = 1.00000001}
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32> -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  // expected-error @below {{expected 'top_p' to be in 0 .. 1, but got 1.00000012}}
  %bad = ssa.topk %s of %k {top_p = 1.0000001}
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32> -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  return
}

// -----

// No part at all.
func.func @topk_c5_nan(%s: tensor<1x2x5x9xf32>, %k: tensor<1x2x9x48xf32>) {
  // expected-error @below {{expected 'top_p' to be a finite f32, but got nan}}
  %bad = ssa.topk %s of %k {top_p = 0x7FF8000000000000 : f64}
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32> -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  return
}

// -----

// No score is as large, or all are.
func.func @topk_c5_threshold(%s: tensor<1x2x5x9xf32>, %k: tensor<1x2x9x48xf32>) {
  %0 = ssa.topk %s of %k {threshold = -1.0e30}
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32> -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  // expected-error @below {{expected 'threshold' to be a finite f32, but got -inf}}
  %bad = ssa.topk %s of %k {threshold = 0xFFF0000000000000 : f64}
      : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32> -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  return
}

// -----

// A selector sorts.
func.func @topk_c6(%s: tensor<1x2x5x9xf32>, %k: tensor<1x2x9x48xf32>) {
  // expected-error @below {{expected 'selection' to be sorted}}
  %bad = ssa.topk %s of %k : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32> -> !ssa.selection<1x2x5x3, key_block = 1>
  return
}

// -----

// A list per row of scores: heads.
func.func @topk_c6_heads(%s: tensor<1x2x5x9xf32>, %k: tensor<1x2x9x48xf32>) {
  // expected-error @below {{expected dimension 1 of 'selection' to be 2, dimension 1 of 'scores', but got 1}}
  %bad = ssa.topk %s of %k : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32> -> !ssa.selection<1x1x5x3, key_block = 1, sorted>
  return
}

// -----

// Rows.
func.func @topk_c6_rows(%s: tensor<1x2x5x9xf32>, %k: tensor<1x2x9x48xf32>) {
  // expected-error @below {{expected dimension 2 of 'selection' to be 5, dimension 2 of 'scores', but got 1}}
  %bad = ssa.topk %s of %k : tensor<1x2x5x9xf32>, tensor<1x2x9x48xf32> -> !ssa.selection<1x2x1x3, key_block = 1, sorted>
  return
}

// -----

// Batches, of tokens too.
func.func @topk_c6_batch(%s: tensor<1x2x5x9xf32>, %k: tensor<1x7x9x1xf32>, %k1: tensor<3x2x9x48xf32>) {
  %0 = ssa.topk %s of %k : tensor<1x2x5x9xf32>, tensor<1x7x9x1xf32> -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  // expected-error @below {{expected dimension 0 of 'tokens' to be 1, dimension 0 of 'scores', but got 3}}
  %bad = ssa.topk %s of %k1
      : tensor<1x2x5x9xf32>, tensor<3x2x9x48xf32> -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  return
}

// -----

// Lists of candidates are sorted.
func.func @topk_c7(%s: tensor<1x2x5x32xf32>, %k: tensor<1x2x23x48xf32>,
    %c: !ssa.selection<1x2x3x4, key_block = 8, query_block = 2, sorted>,
    %c1: !ssa.selection<1x2x3x4, key_block = 8, query_block = 2>) {
  %0 = ssa.topk %s of %k within %c
      : tensor<1x2x5x32xf32>, tensor<1x2x23x48xf32>, !ssa.selection<1x2x3x4, key_block = 8, query_block = 2, sorted>
      -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  // expected-error @below {{expected 'within' to be sorted; use 'ssa.sort'}}
  %bad = ssa.topk %s of %k within %c1
      : tensor<1x2x5x32xf32>, tensor<1x2x23x48xf32>, !ssa.selection<1x2x3x4, key_block = 8, query_block = 2>
      -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  return
}

// -----

// A list per selection head.
func.func @topk_c7_heads(%s: tensor<1x2x5x32xf32>, %k: tensor<1x2x23x48xf32>,
    %c: !ssa.selection<1x1x3x4, key_block = 8, query_block = 2, sorted>) {
  // expected-error @below {{expected dimension 1 of 'within' to be 2, dimension 1 of 'scores', but got 1}}
  %bad = ssa.topk %s of %k within %c
      : tensor<1x2x5x32xf32>, tensor<1x2x23x48xf32>, !ssa.selection<1x1x3x4, key_block = 8, query_block = 2, sorted>
      -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  return
}

// -----

// A row of scores, here of 2 queries, reads one list.
func.func @topk_c7_query_block(%s: tensor<1x2x5x32xf32>, %k: tensor<1x2x23x48xf32>, %q: tensor<1x8x10x48xf32>,
    %c: !ssa.selection<1x2x2x4, key_block = 8, query_block = 6, sorted>,
    %c1: !ssa.selection<1x2x4x4, key_block = 8, query_block = 3, sorted>) {
  %0 = ssa.topk %s of %k for %q within %c
      : tensor<1x2x5x32xf32>, tensor<1x2x23x48xf32>, tensor<1x8x10x48xf32>,
        !ssa.selection<1x2x2x4, key_block = 8, query_block = 6, sorted>
      -> !ssa.selection<1x2x5x3, key_block = 1, query_block = 2, sorted>
  // expected-error @below {{expected the 'query_block' of 'within' to be a multiple of 2, that of 'scores', but got 3}}
  %bad = ssa.topk %s of %k for %q within %c1
      : tensor<1x2x5x32xf32>, tensor<1x2x23x48xf32>, tensor<1x8x10x48xf32>,
        !ssa.selection<1x2x4x4, key_block = 8, query_block = 3, sorted>
      -> !ssa.selection<1x2x5x3, key_block = 1, query_block = 2, sorted>
  return
}

// -----

// Candidates are divided into whole blocks.
func.func @topk_c7_key_block(%s: tensor<1x2x5x8xf32>, %k: tensor<1x2x23x48xf32>,
    %c: !ssa.selection<1x2x3x4, key_block = 8, query_block = 2, sorted>, %s1: tensor<1x2x5x32xf32>) {
  %0 = ssa.topk %s of %k within %c
      : tensor<1x2x5x8xf32>, tensor<1x2x23x48xf32>, !ssa.selection<1x2x3x4, key_block = 8, query_block = 2, sorted>
      -> !ssa.selection<1x2x5x3, key_block = 4, sorted>
  // expected-error @below {{expected the 'key_block' of 'within' to be a multiple of 3, that of 'scores', but got 8}}
  %bad = ssa.topk %s1 of %k within %c
      : tensor<1x2x5x32xf32>, tensor<1x2x23x48xf32>, !ssa.selection<1x2x3x4, key_block = 8, query_block = 2, sorted>
      -> !ssa.selection<1x2x5x3, key_block = 3, sorted>
  return
}

// -----

// A score per block of a list.
func.func @topk_c7_slots(%s: tensor<1x2x5x31xf32>, %k: tensor<1x2x23x48xf32>,
    %c: !ssa.selection<1x2x3x4, key_block = 8, query_block = 2, sorted>) {
  // expected-error @below {{expected dimension 3 of 'scores' to be 32, the blocks of a list of 'within', but got 31}}
  %bad = ssa.topk %s of %k within %c
      : tensor<1x2x5x31xf32>, tensor<1x2x23x48xf32>, !ssa.selection<1x2x3x4, key_block = 8, query_block = 2, sorted>
      -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  return
}

// -----

// More scores than there can be.
func.func @topk_c7_many_slots(%s: tensor<1x2x5x?xf32>, %k: tensor<1x2x23x48xf32>,
    %c: !ssa.selection<1x2x3x1024, key_block = 2097152, query_block = 2, sorted>) {
  // expected-error @below {{expected a list of 'within' to hold at most 2147483647 blocks, but got 2147483648}}
  %bad = ssa.topk %s of %k within %c
      : tensor<1x2x5x?xf32>, tensor<1x2x23x48xf32>,
        !ssa.selection<1x2x3x1024, key_block = 2097152, query_block = 2, sorted>
      -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  return
}

// -----

// 5 rows read 3 lists of 2; one list serves every row.
func.func @topk_c7_lists(%s: tensor<1x2x5x32xf32>, %k: tensor<1x2x23x48xf32>,
    %c: !ssa.selection<1x2x1x4, key_block = 8, query_block = 2, sorted>,
    %c1: !ssa.selection<1x2x4x4, key_block = 8, query_block = 2, sorted>) {
  %0 = ssa.topk %s of %k within %c
      : tensor<1x2x5x32xf32>, tensor<1x2x23x48xf32>, !ssa.selection<1x2x1x4, key_block = 8, query_block = 2, sorted>
      -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  // expected-error @below {{expected dimension 2 of 'within' to be 3, the lists for the rows of 'scores', but got 4}}
  %bad = ssa.topk %s of %k within %c1
      : tensor<1x2x5x32xf32>, tensor<1x2x23x48xf32>, !ssa.selection<1x2x4x4, key_block = 8, query_block = 2, sorted>
      -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  return
}

// -----

// 9 tokens make 3 blocks of 4; there may be fewer scores, not more.
func.func @topk_c8(%s: tensor<1x2x5x2xf32>, %k: tensor<1x2x9x48xf32>, %s1: tensor<1x2x5x4xf32>) {
  %0 = ssa.topk %s of %k : tensor<1x2x5x2xf32>, tensor<1x2x9x48xf32> -> !ssa.selection<1x2x5x3, key_block = 4, sorted>
  // expected-error @below {{expected dimension 3 of 'scores' to be at most 3, the number of blocks of 'tokens', but got 4}}
  %bad = ssa.topk %s1 of %k
      : tensor<1x2x5x4xf32>, tensor<1x2x9x48xf32> -> !ssa.selection<1x2x5x3, key_block = 4, sorted>
  return
}
