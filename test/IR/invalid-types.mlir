// RUN: ssa-opt %s --split-input-file --verify-diagnostics

// What attributes and the type of selections refuse. Names of functions are the rules of their descriptions.

// No block is empty; 1 is the smallest.
func.func @blocks_c1(%k: tensor<1x2x?x16xf32>) {
  %0 = ssa.pool mean %k {blocks = #ssa.blocks<1>} : tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>
  // expected-error @below {{expected the size of blocks to be in 1 .. 2147483647, but got 0}}
  %bad = ssa.pool mean %k {blocks = #ssa.blocks<0>} : tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>
  return
}

// -----

// A size with a sign.
func.func @blocks_c1_negative(%k: tensor<1x2x?x16xf32>) {
  // expected-error @below {{expected the size of blocks to be in 1 .. 2147483647, but got -4}}
  %bad = ssa.pool mean %k {blocks = #ssa.blocks<-4>} : tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>
  return
}

// -----

// 2^31 is one more than any number of keys.
func.func @blocks_c1_large(%k: tensor<1x2x?x16xf32>) {
  %0 = ssa.pool mean %k {blocks = #ssa.blocks<2147483647>} : tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>
  // expected-error @below {{expected the size of blocks to be in 1 .. 2147483647, but got 2147483648}}
  %bad = ssa.pool mean %k {blocks = #ssa.blocks<2147483648>} : tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>
  return
}

// -----

// Too large for 64 bits.
func.func @blocks_c1_huge(%k: tensor<1x2x?x16xf32>) {
  // expected-error @below {{integer value too large}}
  %bad = ssa.pool mean %k {blocks = #ssa.blocks<9223372036854775808>} : tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>
  return
}

// -----

// Blocks that leave out keys: the stride is larger than the size. Equal is the default.
func.func @blocks_c2(%k: tensor<1x2x?x16xf32>) {
  %0 = ssa.pool mean %k {blocks = #ssa.blocks<4, stride = 4>} : tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>
  // expected-error @below {{expected the stride of blocks to be in 1 .. 4, their size, but got 5}}
  %bad = ssa.pool mean %k {blocks = #ssa.blocks<4, stride = 5>} : tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>
  return
}

// -----

// Blocks that stay where they are.
func.func @blocks_c2_zero(%k: tensor<1x2x?x16xf32>) {
  %0 = ssa.pool mean %k {blocks = #ssa.blocks<4, stride = 1>} : tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>
  // expected-error @below {{expected the stride of blocks to be in 1 .. 4, their size, but got 0}}
  %bad = ssa.pool mean %k {blocks = #ssa.blocks<4, stride = 0>} : tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>
  return
}

// -----

// The first block begins after the first key.
func.func @blocks_c3(%k: tensor<1x2x?x16xf32>) {
  %0 = ssa.pool mean %k {blocks = #ssa.blocks<4, offset = 0>} : tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>
  // expected-error @below {{expected the offset of blocks to be in -3 .. 0, but got 1}}
  %bad = ssa.pool mean %k {blocks = #ssa.blocks<4, offset = 1>} : tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>
  return
}

// -----

// The first block ends before the first key.
func.func @blocks_c3_before(%k: tensor<1x2x?x16xf32>) {
  %0 = ssa.pool mean %k {blocks = #ssa.blocks<4, offset = -3>} : tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>
  // expected-error @below {{expected the offset of blocks to be in -3 .. 0, but got -4}}
  %bad = ssa.pool mean %k {blocks = #ssa.blocks<4, offset = -4>} : tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>
  return
}

// -----

// The smallest number there is: its negative does not exist.
func.func @blocks_c3_huge(%k: tensor<1x2x?x16xf32>) {
  // expected-error @below {{expected the offset of blocks to be in -3 .. 0, but got -9223372036854775808}}
  %bad = ssa.pool mean %k {blocks = #ssa.blocks<4, offset = -9223372036854775808>}
      : tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>
  return
}

// -----

// Only these keys.
func.func @blocks_key(%k: tensor<1x2x?x16xf32>) {
  // expected-error @below {{expected 'stride' or 'offset', but got 'step'}}
  %bad = ssa.pool mean %k {blocks = #ssa.blocks<4, step = 2>} : tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>
  return
}

// -----

// A number without a key.
func.func @blocks_key_missing(%k: tensor<1x2x?x16xf32>) {
  // expected-error @below {{expected 'stride' or 'offset'}}
  %bad = ssa.pool mean %k {blocks = #ssa.blocks<4, 2>} : tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>
  return
}

// -----

// No comma in between.
func.func @blocks_comma(%k: tensor<1x2x?x16xf32>) {
  // expected-error @below {{expected ',' or '>'}}
  %bad = ssa.pool mean %k {blocks = #ssa.blocks<4 stride = 2>} : tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>
  return
}

// -----

// A key that is given twice.
func.func @blocks_twice(%k: tensor<1x2x?x16xf32>) {
  // expected-error @below {{'stride' is given twice}}
  %bad = ssa.pool mean %k {blocks = #ssa.blocks<4, stride = 2, stride = 2>}
      : tensor<1x2x?x16xf32> -> tensor<1x2x?x16xf32>
  return
}

// -----

// A window counts the query itself: 1 is the smallest.
func.func @mask_c1(%q: tensor<1x2x5x16xf32>, %k: tensor<1x2x?x16xf32>) {
  %0 = ssa.route %q, %k {mask = #ssa.mask<causal, window = 1>}
      : tensor<1x2x5x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x5x?xf32>
  // expected-error @below {{expected 'window' to be in 1 .. 2147483647, but got 0}}
  %bad = ssa.route %q, %k {mask = #ssa.mask<causal, window = 0>}
      : tensor<1x2x5x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x5x?xf32>
  return
}

// -----

// A window with a sign.
func.func @mask_c1_negative(%q: tensor<1x2x5x16xf32>, %k: tensor<1x2x?x16xf32>) {
  // expected-error @below {{expected 'window' to be in 1 .. 2147483647, but got -1}}
  %bad = ssa.route %q, %k {mask = #ssa.mask<window = -1>}
      : tensor<1x2x5x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x5x?xf32>
  return
}

// -----

// 2^31 is one more than any number of keys.
func.func @mask_c1_large(%q: tensor<1x2x5x16xf32>, %k: tensor<1x2x?x16xf32>) {
  %0 = ssa.route %q, %k {mask = #ssa.mask<window = 2147483647>}
      : tensor<1x2x5x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x5x?xf32>
  // expected-error @below {{expected 'window' to be in 1 .. 2147483647, but got 2147483648}}
  %bad = ssa.route %q, %k {mask = #ssa.mask<window = 2147483648>}
      : tensor<1x2x5x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x5x?xf32>
  return
}

// -----

// A sink with a sign; none is 0.
func.func @mask_c2(%q: tensor<1x2x5x16xf32>, %k: tensor<1x2x?x16xf32>) {
  %0 = ssa.route %q, %k {mask = #ssa.mask<window = 3, sink = 0>}
      : tensor<1x2x5x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x5x?xf32>
  // expected-error @below {{expected 'sink' to be in 0 .. 2147483647, but got -1}}
  %bad = ssa.route %q, %k {mask = #ssa.mask<window = 3, sink = -1>}
      : tensor<1x2x5x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x5x?xf32>
  return
}

// -----

// 2^31 is one more than any number of keys.
func.func @mask_c2_large(%q: tensor<1x2x5x16xf32>, %k: tensor<1x2x?x16xf32>) {
  %0 = ssa.route %q, %k {mask = #ssa.mask<window = 3, sink = 2147483647>}
      : tensor<1x2x5x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x5x?xf32>
  // expected-error @below {{expected 'sink' to be in 0 .. 2147483647, but got 2147483648}}
  %bad = ssa.route %q, %k {mask = #ssa.mask<window = 3, sink = 2147483648>}
      : tensor<1x2x5x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x5x?xf32>
  return
}

// -----

// Where all earlier tokens are in sight no sink is needed.
func.func @mask_c3(%q: tensor<1x2x5x16xf32>, %k: tensor<1x2x?x16xf32>) {
  %0 = ssa.route %q, %k {mask = #ssa.mask<causal, sink = 0>}
      : tensor<1x2x5x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x5x?xf32>
  // expected-error @below {{'sink' needs a 'window': without one all tokens are in sight}}
  %bad = ssa.route %q, %k {mask = #ssa.mask<causal, sink = 1>}
      : tensor<1x2x5x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x5x?xf32>
  return
}

// -----

// A mask that allows everything is no mask.
func.func @mask_c4(%q: tensor<1x2x5x16xf32>, %k: tensor<1x2x?x16xf32>) {
  // expected-error @below {{expected 'causal' or 'window' in a mask; without either leave 'mask' out}}
  %bad = ssa.route %q, %k {mask = #ssa.mask<>} : tensor<1x2x5x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x5x?xf32>
  return
}

// -----

// The same, where something is written.
func.func @mask_c4_sink(%q: tensor<1x2x5x16xf32>, %k: tensor<1x2x?x16xf32>) {
  // expected-error @below {{expected 'causal' or 'window' in a mask; without either leave 'mask' out}}
  %bad = ssa.route %q, %k {mask = #ssa.mask<sink = 0>}
      : tensor<1x2x5x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x5x?xf32>
  return
}

// -----

// A misspelt key.
func.func @mask_key(%q: tensor<1x2x5x16xf32>, %k: tensor<1x2x?x16xf32>) {
  // expected-error @below {{expected 'causal', 'window' or 'sink', but got 'casual'}}
  %bad = ssa.route %q, %k {mask = #ssa.mask<casual>} : tensor<1x2x5x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x5x?xf32>
  return
}

// -----

// A flag that is given twice.
func.func @mask_twice(%q: tensor<1x2x5x16xf32>, %k: tensor<1x2x?x16xf32>) {
  // expected-error @below {{'causal' is given twice}}
  %bad = ssa.route %q, %k {mask = #ssa.mask<causal, causal>}
      : tensor<1x2x5x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x5x?xf32>
  return
}

// -----

// A flag has no value.
func.func @mask_flag(%q: tensor<1x2x5x16xf32>, %k: tensor<1x2x?x16xf32>) {
  // expected-error @below {{expected ',' or '>'}}
  %bad = ssa.route %q, %k {mask = #ssa.mask<causal = 1>}
      : tensor<1x2x5x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x5x?xf32>
  return
}

// -----

// A window is a whole number.
func.func @mask_number(%q: tensor<1x2x5x16xf32>, %k: tensor<1x2x?x16xf32>) {
  // expected-error @below {{expected integer value}}
  %bad = ssa.route %q, %k {mask = #ssa.mask<window = 2.5>}
      : tensor<1x2x5x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x2x5x?xf32>
  return
}

// -----

// A list per batch and query only.
func.func private @ok0(!ssa.selection<1x2x5x3, key_block = 64>)
// expected-error @below {{expected a selection of rank 4, BxGxMqxK, but got rank 3}}
func.func private @selection_c1(!ssa.selection<1x5x3, key_block = 64>)

// -----

// One dimension too many.
// expected-error @below {{expected a selection of rank 4, BxGxMqxK, but got rank 5}}
func.func private @selection_c1_above(!ssa.selection<1x2x5x3x1, key_block = 64>)

// -----

// No sizes at all.
// expected-error @below {{expected the sizes of a selection, BxGxMqxK}}
func.func private @selection_c1_none(!ssa.selection<key_block = 64>)

// -----

// 2^31 is more than any number of queries.
func.func private @ok0(!ssa.selection<0x2x0x0, key_block = 64>)
func.func private @ok1(!ssa.selection<1x2x2147483647x3, key_block = 64>)
// expected-error @below {{expected sizes of a selection in 0 .. 2147483647, but got 2147483648}}
func.func private @selection_c2(!ssa.selection<1x2x2147483648x3, key_block = 64>)

// -----

// Sizes that do not fit 64 bits.
// expected-error @below {{invalid dimension}}
func.func private @selection_c2_huge(!ssa.selection<1x2x9223372036854775808x3, key_block = 64>)

// -----

// Heads are part of the program; batch and queries are not.
func.func private @ok0(!ssa.selection<?x2x?x3, key_block = 64>)
// expected-error @below {{expected a static number of selection heads of at least 1 (dimension 1)}}
func.func private @selection_c3(!ssa.selection<1x?x5x3, key_block = 64>)

// -----

// Lists for nobody.
// expected-error @below {{expected a static number of selection heads of at least 1 (dimension 1)}}
func.func private @selection_c3_zero(!ssa.selection<1x0x5x3, key_block = 64>)

// -----

// So is the width of lists.
func.func private @ok0(!ssa.selection<1x2x5x0, key_block = 64>)
// expected-error @below {{expected a static width of lists (dimension 3)}}
func.func private @selection_c4(!ssa.selection<1x2x5x?, key_block = 64>)

// -----

// Blocks of no keys.
func.func private @ok0(!ssa.selection<1x2x5x3, key_block = 1>)
// expected-error @below {{expected 'key_block' to be in 1 .. 2147483647, but got 0}}
func.func private @selection_c5(!ssa.selection<1x2x5x3, key_block = 0>)

// -----

// Blocks of more keys than there can be.
// expected-error @below {{expected 'key_block' to be in 1 .. 2147483647, but got 2147483648}}
func.func private @selection_c5_large(!ssa.selection<1x2x5x3, key_block = 2147483648>)

// -----

// Blocks of less than no queries.
func.func private @ok0(!ssa.selection<1x2x5x3, query_block = 1>)
// expected-error @below {{expected 'query_block' to be in 1 .. 2147483647, but got -1}}
func.func private @selection_c6(!ssa.selection<1x2x5x3, query_block = -1>)

// -----

// Blocks of more queries than there can be.
// expected-error @below {{expected 'query_block' to be in 1 .. 2147483647, but got 2147483648}}
func.func private @selection_c6_large(!ssa.selection<1x2x5x3, query_block = 2147483648>)

// -----

// A misspelt promise.
// expected-error @below {{expected 'sorted', 'key_block' or 'query_block', but got 'sortd'}}
func.func private @selection_key(!ssa.selection<1x2x5x3, sortd>)

// -----

// A block size that is given twice.
// expected-error @below {{'key_block' is given twice}}
func.func private @selection_twice(!ssa.selection<1x2x5x3, key_block = 64, key_block = 64>)

// -----

// A selection has no element type: its numbers are i32.
// expected-error @below {{invalid dimension}}
func.func private @selection_element_type(!ssa.selection<1x2x5x3xi32, key_block = 64>)
