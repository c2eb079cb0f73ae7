// RUN: ssa-opt %s --split-input-file --verify-diagnostics

// sort, union, from_indices and to_indices. Names of functions are the rules of the descriptions; where something next
// to what is refused is accepted, it stands in front.

// A list in memory is no selection yet.
func.func @sort_i1(%a: tensor<1x2x5x3xi32>) {
  // expected-error @below {{operand #0 must be selection (of an i32 tensor 'ssa.from_indices' makes one)}}
  %bad = ssa.sort %a : tensor<1x2x5x3xi32> -> !ssa.selection<1x2x5x3, key_block = 64, query_block = 16, sorted>
  return
}

// -----

// The result of sorting is sorted.
func.func @sort_c1(%a: !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>) {
  %0 = ssa.sort %a
      : !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>
      -> !ssa.selection<1x2x5x3, key_block = 64, query_block = 16, sorted>
  // expected-error @below {{expected 'output' to be sorted}}
  %bad = ssa.sort %a
      : !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>
      -> !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>
  return
}

// -----

// Sorting does not change what a number stands for: keys.
func.func @sort_c2(%a: !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>) {
  // expected-error @below {{expected the 'key_block' of 'output' to be 64, that of 'input', but got 16}}
  %bad = ssa.sort %a
      : !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>
      -> !ssa.selection<1x2x5x3, key_block = 16, query_block = 16, sorted>
  return
}

// -----

// Queries.
func.func @sort_c2_query_block(%a: !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>) {
  // expected-error @below {{expected the 'query_block' of 'output' to be 16, that of 'input', but got 64}}
  %bad = ssa.sort %a
      : !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>
      -> !ssa.selection<1x2x5x3, key_block = 64, query_block = 64, sorted>
  return
}

// -----

// Heads.
func.func @sort_c2_heads(%a: !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>) {
  // expected-error @below {{expected dimension 1 of 'output' to be 2, dimension 1 of 'input', but got 1}}
  %bad = ssa.sort %a
      : !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>
      -> !ssa.selection<1x1x5x3, key_block = 64, query_block = 16, sorted>
  return
}

// -----

// Lists.
func.func @sort_c2_lists(%a: !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>) {
  %0 = ssa.sort %a
      : !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>
      -> !ssa.selection<?x2x?x3, key_block = 64, query_block = 16, sorted>
  // expected-error @below {{expected dimension 2 of 'output' to be 5, dimension 2 of 'input', but got 1}}
  %bad = ssa.sort %a
      : !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>
      -> !ssa.selection<1x2x1x3, key_block = 64, query_block = 16, sorted>
  return
}

// -----

// Nothing is dropped; there may be room for more.
func.func @sort_c3(%a: !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>) {
  %0 = ssa.sort %a
      : !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>
      -> !ssa.selection<1x2x5x4, key_block = 64, query_block = 16, sorted>
  // expected-error @below {{expected 'output' to be at least 3 wide, as 'input' is, but got 2}}
  %bad = ssa.sort %a
      : !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>
      -> !ssa.selection<1x2x5x2, key_block = 64, query_block = 16, sorted>
  return
}

// -----

// A list in memory is no selection yet.
func.func @union_i1(%a: tensor<1x2x5x3xi32>, %b: !ssa.selection<1x2x5x4, key_block = 64, query_block = 16, sorted>) {
  // expected-error @below {{operand #0 must be selection (of an i32 tensor 'ssa.from_indices' makes one)}}
  %bad = ssa.union %a, %b
      : tensor<1x2x5x3xi32>, !ssa.selection<1x2x5x4, key_block = 64, query_block = 16, sorted>
      -> !ssa.selection<1x2x5x7, key_block = 64, query_block = 16, sorted>
  return
}

// -----

// The other one.
func.func @union_i2(%a: !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>, %b: tensor<1x2x5x4xi32>) {
  // expected-error @below {{operand #1 must be selection (of an i32 tensor 'ssa.from_indices' makes one)}}
  %bad = ssa.union %a, %b
      : !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>, tensor<1x2x5x4xi32>
      -> !ssa.selection<1x2x5x7, key_block = 64, query_block = 16, sorted>
  return
}

// -----

// A union is sorted.
func.func @union_c1(%a: !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>,
    %b: !ssa.selection<1x2x5x4, key_block = 64, query_block = 16, sorted>) {
  %0 = ssa.union %a, %b
      : !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>,
        !ssa.selection<1x2x5x4, key_block = 64, query_block = 16, sorted>
      -> !ssa.selection<1x2x5x7, key_block = 64, query_block = 16, sorted>
  // expected-error @below {{expected 'output' to be sorted}}
  %bad = ssa.union %a, %b
      : !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>,
        !ssa.selection<1x2x5x4, key_block = 64, query_block = 16, sorted>
      -> !ssa.selection<1x2x5x7, key_block = 64, query_block = 16>
  return
}

// -----

// Numbers of different blocks.
func.func @union_c2(%a: !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>,
    %b: !ssa.selection<1x2x5x4, key_block = 16, query_block = 16>) {
  // expected-error @below {{expected the 'key_block' of 'rhs' to be 64, that of 'lhs', but got 16}}
  %bad = ssa.union %a, %b
      : !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>,
        !ssa.selection<1x2x5x4, key_block = 16, query_block = 16>
      -> !ssa.selection<1x2x5x7, key_block = 64, query_block = 16, sorted>
  return
}

// -----

// Lists of different queries.
func.func @union_c2_query_block(%a: !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>,
    %b: !ssa.selection<1x2x5x4, key_block = 64, query_block = 64>) {
  // expected-error @below {{expected the 'query_block' of 'rhs' to be 16, that of 'lhs', but got 64}}
  %bad = ssa.union %a, %b
      : !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>,
        !ssa.selection<1x2x5x4, key_block = 64, query_block = 64>
      -> !ssa.selection<1x2x5x7, key_block = 64, query_block = 16, sorted>
  return
}

// -----

// The result says something else.
func.func @union_c2_output(%a: !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>,
    %b: !ssa.selection<1x2x5x4, key_block = 64, query_block = 16, sorted>) {
  // expected-error @below {{expected the 'key_block' of 'output' to be 64, that of 'lhs', but got 16}}
  %bad = ssa.union %a, %b
      : !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>,
        !ssa.selection<1x2x5x4, key_block = 64, query_block = 16, sorted>
      -> !ssa.selection<1x2x5x7, key_block = 16, query_block = 16, sorted>
  return
}

// -----

// Lists of different heads.
func.func @union_c2_heads(%a: !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>,
    %b: !ssa.selection<1x1x5x4, key_block = 64, query_block = 16>) {
  // expected-error @below {{expected dimension 1 of 'rhs' to be 2, dimension 1 of 'lhs', but got 1}}
  %bad = ssa.union %a, %b
      : !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>,
        !ssa.selection<1x1x5x4, key_block = 64, query_block = 16>
      -> !ssa.selection<1x2x5x7, key_block = 64, query_block = 16, sorted>
  return
}

// -----

// One operand says nothing, but the other and the result contradict each other.
func.func @union_c2_in_between(%a: !ssa.selection<1x2x?x3, key_block = 64, query_block = 16>,
    %b: !ssa.selection<1x2x5x4, key_block = 64, query_block = 16, sorted>) {
  // expected-error @below {{expected dimension 2 of 'output' to be 5, dimension 2 of 'rhs', but got 6}}
  %bad = ssa.union %a, %b
      : !ssa.selection<1x2x?x3, key_block = 64, query_block = 16>,
        !ssa.selection<1x2x5x4, key_block = 64, query_block = 16, sorted>
      -> !ssa.selection<1x2x6x7, key_block = 64, query_block = 16, sorted>
  return
}

// -----

// Two lists may have nothing in common.
func.func @union_c3(%a: !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>,
    %b: !ssa.selection<1x2x5x4, key_block = 64, query_block = 16, sorted>) {
  // expected-error @below {{expected 'output' to be at least 7 wide, so that every union fits, but got 6}}
  %bad = ssa.union %a, %b
      : !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>,
        !ssa.selection<1x2x5x4, key_block = 64, query_block = 16, sorted>
      -> !ssa.selection<1x2x5x6, key_block = 64, query_block = 16, sorted>
  return
}

// -----

// Unless they are the same value.
func.func @union_c3_same(%a: !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>) {
  %0 = ssa.union %a, %a
      : !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>,
        !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>
      -> !ssa.selection<1x2x5x3, key_block = 64, query_block = 16, sorted>
  // expected-error @below {{expected 'output' to be at least 3 wide, so that every union fits, but got 2}}
  %bad = ssa.union %a, %a
      : !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>,
        !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>
      -> !ssa.selection<1x2x5x2, key_block = 64, query_block = 16, sorted>
  return
}

// -----

// Indices are i32.
func.func @from_indices_i1(%t: tensor<1x2x5x3xi64>) {
  // expected-error @below {{operand #0 must be 4D tensor of 32-bit signless integer values}}
  %bad = ssa.from_indices %t : tensor<1x2x5x3xi64> -> !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>
  return
}

// -----

// A selection of other heads.
func.func @from_indices_c1(%t: tensor<1x2x5x3xi32>) {
  // expected-error @below {{expected dimension 1 of 'selection' to be 2, dimension 1 of 'indices', but got 1}}
  %bad = ssa.from_indices %t : tensor<1x2x5x3xi32> -> !ssa.selection<1x1x5x3, key_block = 1>
  return
}

// -----

// Of another width.
func.func @from_indices_c1_width(%t: tensor<1x2x5x3xi32>) {
  // expected-error @below {{expected dimension 3 of 'selection' to be 3, dimension 3 of 'indices', but got 4}}
  %bad = ssa.from_indices %t : tensor<1x2x5x3xi32> -> !ssa.selection<1x2x5x4, key_block = 1>
  return
}

// -----

// Of other lists; what one side does not know the other may.
func.func @from_indices_c1_lists(%t: tensor<1x2x?x3xi32>, %t1: tensor<1x2x5x3xi32>) {
  %0 = ssa.from_indices %t : tensor<1x2x?x3xi32> -> !ssa.selection<1x2x5x3, key_block = 1>
  // expected-error @below {{expected dimension 2 of 'selection' to be 5, dimension 2 of 'indices', but got 6}}
  %bad = ssa.from_indices %t1 : tensor<1x2x5x3xi32> -> !ssa.selection<1x2x6x3, key_block = 1>
  return
}

// -----

// Numbers from outside may be in any order.
func.func @from_indices_c2(%t: tensor<1x2x5x3xi32>) {
  // expected-error @below {{expected 'selection' not to be sorted: nothing is known of the numbers; use 'ssa.sort'}}
  %bad = ssa.from_indices %t : tensor<1x2x5x3xi32> -> !ssa.selection<1x2x5x3, key_block = 64, sorted>
  return
}

// -----

// Indices that are already in memory.
func.func @to_indices_i1(%a: tensor<1x2x5x3xi32>) {
  // expected-error @below {{operand #0 must be selection (of an i32 tensor 'ssa.from_indices' makes one)}}
  %bad = ssa.to_indices %a : tensor<1x2x5x3xi32> -> tensor<1x2x5x3xi32>
  return
}

// -----

// Another width; lists are not cut.
func.func @to_indices_c1(%a: !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>) {
  // expected-error @below {{expected dimension 3 of 'indices' to be 3, dimension 3 of 'selection', but got 2}}
  %bad = ssa.to_indices %a : !ssa.selection<1x2x5x3, key_block = 64, query_block = 16> -> tensor<1x2x5x2xi32>
  return
}

// -----

// Other heads.
func.func @to_indices_c1_heads(%a: !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>) {
  // expected-error @below {{expected dimension 1 of 'indices' to be 2, dimension 1 of 'selection', but got 1}}
  %bad = ssa.to_indices %a : !ssa.selection<1x2x5x3, key_block = 64, query_block = 16> -> tensor<1x1x5x3xi32>
  return
}

// -----

// Indices are i32.
func.func @to_indices_type(%a: !ssa.selection<1x2x5x3, key_block = 64, query_block = 16>) {
  // expected-error @below {{result #0 must be 4D tensor of 32-bit signless integer values}}
  %bad = ssa.to_indices %a : !ssa.selection<1x2x5x3, key_block = 64, query_block = 16> -> tensor<1x2x5x3xi64>
  return
}
