// RUN: ssa-opt %s --split-input-file --verify-diagnostics

// route: lists of candidates and score regions. Names of functions are the rules of its description; where something
// next to what is refused is accepted, it stands in front.

// Lists of candidates are sorted.
func.func @route_c9(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>,
    %c: !ssa.selection<3x2x3x4, key_block = 8, query_block = 2, sorted>,
    %c1: !ssa.selection<3x2x3x4, key_block = 8, query_block = 2>) {
  %0 = ssa.route %q, %k within %c {reduce = sum}
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, !ssa.selection<3x2x3x4, key_block = 8, query_block = 2, sorted>
      -> tensor<3x2x5x32xf32>
  // expected-error @below {{expected 'within' to be sorted; use 'ssa.sort'}}
  %bad = ssa.route %q, %k within %c1 {reduce = sum}
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, !ssa.selection<3x2x3x4, key_block = 8, query_block = 2>
      -> tensor<3x2x5x32xf32>
  return
}

// -----

// A list per selection head; one for all heads is not enough.
func.func @route_c9_heads(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>,
    %c: !ssa.selection<3x1x3x4, key_block = 8, query_block = 2, sorted>) {
  // expected-error @below {{expected dimension 1 of 'within' to be 2, dimension 1 of 'scores', but got 1}}
  %bad = ssa.route %q, %k within %c {reduce = sum}
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, !ssa.selection<3x1x3x4, key_block = 8, query_block = 2, sorted>
      -> tensor<3x2x5x32xf32>
  return
}

// -----

// Lists of another batch.
func.func @route_c9_batch(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>,
    %c: !ssa.selection<1x2x3x4, key_block = 8, query_block = 2, sorted>) {
  // expected-error @below {{expected dimension 0 of 'within' to be 3, dimension 0 of 'query', but got 1}}
  %bad = ssa.route %q, %k within %c {reduce = sum}
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, !ssa.selection<1x2x3x4, key_block = 8, query_block = 2, sorted>
      -> tensor<3x2x5x32xf32>
  return
}

// -----

// A row of scores, here of 2 queries, reads one list.
func.func @route_c9_query_block(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x6x48xf32>, %n: tensor<3x2x23x48xf32>,
    %p: tensor<3x8x10x48xf32>, %c: !ssa.selection<3x2x2x4, key_block = 8, query_block = 6, sorted>,
    %c1: !ssa.selection<3x2x4x4, key_block = 8, query_block = 3, sorted>) {
  %0 = ssa.route %q, %k of %n for %p within %c {reduce = sum, query_block = 2, blocks = #ssa.blocks<4>}
      : tensor<3x8x5x48xf32>, tensor<3x2x6x48xf32>, tensor<3x2x23x48xf32>, tensor<3x8x10x48xf32>,
        !ssa.selection<3x2x2x4, key_block = 8, query_block = 6, sorted>
      -> tensor<3x2x5x8xf32>
  // expected-error @below {{expected the 'query_block' of 'within' to be a multiple of 2, that of 'scores', but got 3}}
  %bad = ssa.route %q, %k of %n for %p within %c1 {reduce = sum, query_block = 2, blocks = #ssa.blocks<4>}
      : tensor<3x8x5x48xf32>, tensor<3x2x6x48xf32>, tensor<3x2x23x48xf32>, tensor<3x8x10x48xf32>,
        !ssa.selection<3x2x4x4, key_block = 8, query_block = 3, sorted>
      -> tensor<3x2x5x8xf32>
  return
}

// -----

// Candidates are divided into whole blocks.
func.func @route_c9_key_block(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x6x48xf32>, %n: tensor<3x2x23x48xf32>,
    %p: tensor<3x8x5x48xf32>,
    %c: !ssa.selection<3x2x3x4, key_block = 8, query_block = 2, sorted>,
    %c1: !ssa.selection<3x2x3x4, key_block = 6, query_block = 2, sorted>) {
  %0 = ssa.route %q, %k of %n for %p within %c {reduce = sum, query_block = 1, blocks = #ssa.blocks<4>}
      : tensor<3x8x5x48xf32>, tensor<3x2x6x48xf32>, tensor<3x2x23x48xf32>, tensor<3x8x5x48xf32>,
        !ssa.selection<3x2x3x4, key_block = 8, query_block = 2, sorted>
      -> tensor<3x2x5x8xf32>
  // expected-error @below {{expected the 'key_block' of 'within' to be a multiple of 4, that of 'scores', but got 6}}
  %bad = ssa.route %q, %k of %n for %p within %c1 {reduce = sum, query_block = 1, blocks = #ssa.blocks<4>}
      : tensor<3x8x5x48xf32>, tensor<3x2x6x48xf32>, tensor<3x2x23x48xf32>, tensor<3x8x5x48xf32>,
        !ssa.selection<3x2x3x4, key_block = 6, query_block = 2, sorted>
      -> tensor<3x2x5x8xf32>
  return
}

// -----

// Blocks that overlap do not divide them.
func.func @route_c9_overlap(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x6x48xf32>, %n: tensor<3x2x23x48xf32>,
    %p: tensor<3x8x5x48xf32>,
    %c: !ssa.selection<3x2x3x4, key_block = 8, query_block = 2, sorted>) {
  // expected-error @below {{expected 'blocks' under 'within' not to overlap and to have no offset, but got #ssa.blocks<4, stride = 2>}}
  %bad = ssa.route %q, %k of %n for %p within %c {reduce = sum, query_block = 1, blocks = #ssa.blocks<4, stride = 2>}
      : tensor<3x8x5x48xf32>, tensor<3x2x6x48xf32>, tensor<3x2x23x48xf32>, tensor<3x8x5x48xf32>,
        !ssa.selection<3x2x3x4, key_block = 8, query_block = 2, sorted>
      -> tensor<3x2x5x8xf32>
  return
}

// -----

// Nor do shifted ones.
func.func @route_c9_offset(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x6x48xf32>, %n: tensor<3x2x23x48xf32>,
    %p: tensor<3x8x5x48xf32>,
    %c: !ssa.selection<3x2x3x4, key_block = 8, query_block = 2, sorted>) {
  // expected-error @below {{expected 'blocks' under 'within' not to overlap and to have no offset, but got #ssa.blocks<4, offset = -2>}}
  %bad = ssa.route %q, %k of %n for %p within %c {reduce = sum, query_block = 1, blocks = #ssa.blocks<4, offset = -2>}
      : tensor<3x8x5x48xf32>, tensor<3x2x6x48xf32>, tensor<3x2x23x48xf32>, tensor<3x8x5x48xf32>,
        !ssa.selection<3x2x3x4, key_block = 8, query_block = 2, sorted>
      -> tensor<3x2x5x8xf32>
  return
}

// -----

// A column per block of a list, here 4 * 8 tokens, however many keys there are.
func.func @route_c9_slots(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>,
    %c: !ssa.selection<3x2x3x4, key_block = 8, query_block = 2, sorted>) {
  // expected-error @below {{expected dimension 3 of 'scores' to be 32, the blocks of a list of 'within', but got 23}}
  %bad = ssa.route %q, %k within %c {reduce = sum}
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, !ssa.selection<3x2x3x4, key_block = 8, query_block = 2, sorted>
      -> tensor<3x2x5x23xf32>
  return
}

// -----

// More columns than there can be.
func.func @route_c9_many_slots(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>,
    %c: !ssa.selection<3x2x3x1024, key_block = 2097152, query_block = 2, sorted>) {
  // expected-error @below {{expected a list of 'within' to hold at most 2147483647 blocks, but got 2147483648}}
  %bad = ssa.route %q, %k within %c {reduce = sum}
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>,
        !ssa.selection<3x2x3x1024, key_block = 2097152, query_block = 2, sorted>
      -> tensor<3x2x5x?xf32>
  return
}

// -----

// 5 rows read 3 lists of 2; one list serves every row.
func.func @route_c9_lists(%q: tensor<3x8x5x48xf32>, %k: tensor<3x2x23x48xf32>,
    %c: !ssa.selection<3x2x1x4, key_block = 8, query_block = 2, sorted>,
    %c1: !ssa.selection<3x2x2x4, key_block = 8, query_block = 2, sorted>) {
  %0 = ssa.route %q, %k within %c {reduce = sum}
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, !ssa.selection<3x2x1x4, key_block = 8, query_block = 2, sorted>
      -> tensor<3x2x5x32xf32>
  // expected-error @below {{expected dimension 2 of 'within' to be 3, the lists for the rows of 'scores', but got 2}}
  %bad = ssa.route %q, %k within %c1 {reduce = sum}
      : tensor<3x8x5x48xf32>, tensor<3x2x23x48xf32>, !ssa.selection<3x2x2x4, key_block = 8, query_block = 2, sorted>
      -> tensor<3x2x5x32xf32>
  return
}

// -----

// A region that takes other types; only the generic form can say so.
func.func @route_c10(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected the score region to take (f32, f32, i32, i32, i32, i32)}}
  %bad = "ssa.route"(%q, %k) <{operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>}> ({
  ^bb0(%x: f32, %w: f32, %b: i32, %h: i32, %p: i32, %j: index):
    "ssa.yield"(%x) : (f32) -> ()
  }) : (tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32>) -> tensor<1x8x5x23xf32>
  return
}

// -----

// That takes too few.
func.func @route_c10_number(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected the score region to take (f32, f32, i32, i32, i32, i32)}}
  %bad = "ssa.route"(%q, %k) <{operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>}> ({
  ^bb0(%x: f32, %w: f32, %b: i32, %h: i32, %p: i32):
    "ssa.yield"(%x) : (f32) -> ()
  }) : (tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32>) -> tensor<1x8x5x23xf32>
  return
}

// -----

// Indices have no sign in their type.
func.func @route_c10_sign(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected the score region to take (f32, f32, i32, i32, i32, i32)}}
  %bad = "ssa.route"(%q, %k) <{operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>}> ({
  ^bb0(%x: f32, %w: f32, %b: i32, %h: i32, %p: i32, %j: si32):
    "ssa.yield"(%x) : (f32) -> ()
  }) : (tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32>) -> tensor<1x8x5x23xf32>
  return
}

// -----

// That yields nothing.
func.func @route_c10_end(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  %0 = ssa.route %q, %k score (%x, %w, %b, %h, %p, %j) {
    ssa.yield %x : f32
  } : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  // expected-error @below {{expected the score region to end with 'ssa.yield'}}
  %bad = ssa.route %q, %k score (%x, %w, %b, %h, %p, %j) {
  } : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// That ends with the end of something else.
func.func @route_c10_other_end(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected the score region to end with 'ssa.yield'}}
  %bad = ssa.route %q, %k score (%x, %w, %b, %h, %p, %j) {
    ub.unreachable
  } : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// That does more than give a score. What is called is not looked at.
func.func private @callee(f32) -> f32
func.func @route_c10_effect(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected the score region to be free of side effects}}
  %bad = ssa.route %q, %k score (%x, %w, %b, %h, %p, %j) {
    // expected-note @below {{'func.call' may have one}}
    %y = func.call @callee(%x) : (f32) -> f32
    ssa.yield %y : f32
  } : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// A loop without effects is fine, whatever a kernel makes of it.
func.func @route_c10_nested(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>, %n: index) {
  %0 = ssa.route %q, %k score (%x, %w, %b, %h, %p, %j) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %y = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %x) -> f32 {
      %z = arith.addf %acc, %acc : f32
      scf.yield %z : f32
    }
    ssa.yield %y : f32
  } : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// One that stores is not.
func.func @route_c10_nested_effect(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>, %n: index, %m: memref<f32>) {
  // expected-error @below {{expected the score region to be free of side effects}}
  %bad = ssa.route %q, %k score (%x, %w, %b, %h, %p, %j) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // expected-note @below {{'scf.for' may have one}}
    scf.for %i = %c0 to %n step %c1 {
      memref.store %x, %m[] : memref<f32>
    }
    ssa.yield %x : f32
  } : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// One block only.
func.func @route_c10_blocks(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{region #0 ('score') failed to verify constraint: region with at most 1 blocks}}
  %bad = "ssa.route"(%q, %k) <{operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>}> ({
  ^bb0(%x: f32, %w: f32, %b: i32, %h: i32, %p: i32, %j: i32):
    cf.br ^bb1
  ^bb1:
    "ssa.yield"(%x) : (f32) -> ()
  }) : (tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32>) -> tensor<1x8x5x23xf32>
  return
}

// -----

// A score is an f32.
func.func @yield_i1(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  %bad = ssa.route %q, %k score (%x, %w, %b, %h, %p, %j) {
    // expected-error @below {{operand #0 must be 32-bit float, but got 'i32'}}
    ssa.yield %b : i32
  } : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// Of something.
func.func @yield_outside(%x: f32) {
  // expected-error @below {{expects parent op to be one of 'ssa.route, ssa.sparse_attend'}}
  ssa.yield %x : f32
}
