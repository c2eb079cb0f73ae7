// RUN: ssa-opt %s --split-input-file --verify-diagnostics

// What the parser refuses: slips of people who write patterns by hand. Messages of upstream stand here where they are
// what a person gets to see.

// `of` stands before `for`.
func.func @clause_order(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected ':' or, in this order, 'of', 'for', 'weights', 'scales', 'within', {..}, 'score', but got 'of'}}
  %bad = ssa.route %q, %k for %q of %k
      : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32>, tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// A word that is none of the clauses.
func.func @clause_misspelt(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected ':' or, in this order, 'of', 'for', 'weights', 'scales', 'within', {..}, 'score', but got 'form'}}
  %bad = ssa.route %q, %k form %q : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// A clause may stand once.
func.func @clause_twice(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected ':' or, in this order, 'of', 'for', 'weights', 'scales', 'within', {..}, 'score', but got 'of'}}
  %bad = ssa.route %q, %k of %k of %k : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// Clauses stand before the dictionary.
func.func @clause_after_dictionary(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected ':' or, in this order, 'of', 'for', 'weights', 'scales', 'within', {..}, 'score', but got 'of'}}
  %bad = ssa.route %q, %k {reduce = max} of %k : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// A keyword is not left without its operand: ODS itself would let it pass.
func.func @clause_without_operand(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected SSA operand}}
  %bad = ssa.route %q, %k of {reduce = max} : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// Nor is a comma.
func.func @second_operand_missing(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected SSA operand}}
  %bad = ssa.route %q, %k, of %k : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// Types of operands and results are written. Without them the next line is taken for a clause.
func.func @types_missing(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  %bad = ssa.route %q, %k {reduce = max}
  // expected-error @below {{expected ':' or, in this order, 'of', 'for', 'weights', 'scales', 'within', {..}, 'score', but got 'return'}}
  return
}

// -----

// Types of operands alone.
func.func @result_type_missing(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected '->'}}
  %bad = ssa.route %q, %k : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32>
  return
}

// -----

// One type for two operands.
func.func @operand_type_missing(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{number of operands and types do not match: got 2 operands and 1 types}}
  %bad = ssa.route %q, %k : tensor<1x8x5x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// Between operands.
func.func @comma_missing(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected ','}}
  %bad = ssa.route %q %k : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// Between entries of the dictionary.
func.func @entry_comma_missing(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected '}'}}
  %bad = ssa.route %q, %k {scale = 0.5 reduce = max}
      : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// A comma at the end.
func.func @entry_after_comma(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  %0 = ssa.route %q, %k {} : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  // expected-error @below {{expected the name of an attribute}}
  %bad = ssa.route %q, %k {scale = 0.5,} : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// A colon in place of `=`.
func.func @entry_colon(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected '=' after 'scale'}}
  %bad = ssa.route %q, %k {scale : 0.5} : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// A word that is no flag.
func.func @entry_without_value(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected '=' after 'reduce'}}
  %bad = ssa.route %q, %k {reduce} : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// An attribute that is given twice.
func.func @entry_twice(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{'scale' is given twice}}
  %bad = ssa.route %q, %k {scale = 0.5, scale = 0.5}
      : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// `bound` stands before the operands.
func.func @entry_elsewhere(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{'bound' does not stand in the dictionary}}
  %bad = ssa.route %q, %k {bound} : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// So does the kind of `pool`.
func.func @entry_elsewhere_kind(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{'kind' does not stand in the dictionary}}
  %bad = ssa.pool mean %k {kind = #ssa<pool_kind max>, blocks = #ssa.blocks<23>}
      : tensor<1x2x23x48xf32> -> tensor<1x2x1x48xf32>
  return
}

// -----

// Operands say themselves how many there are.
func.func @entry_elsewhere_segments(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{'operandSegmentSizes' does not stand in the dictionary}}
  %bad = ssa.route %q, %k {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>}
      : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// A name that is close to one.
func.func @unknown_attribute(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  %0 = ssa.route %q, %k {normalize = softmax} : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  // expected-error @below {{has no attribute 'normalise'; did you mean 'normalize'?}}
  %bad = ssa.route %q, %k {normalise = softmax} : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// A name that is close to none; `lengths` is reserved.
func.func @unknown_attribute_far(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  %0 = ssa.route %q, %k {my.lengths = 3} : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  // expected-error @below {{has no attribute 'lengths'}}
  %bad = ssa.route %q, %k {lengths = 3} : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// A word that is none of those.
func.func @word_visible(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected 'visible' to be 'complete' or 'partial', but got 'all'}}
  %bad = ssa.route %q, %k {visible = all} : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// Something else than a word.
func.func @word_visible_attribute(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected 'visible' to be 'complete' or 'partial', but got '"partial"'}}
  %bad = ssa.route %q, %k {visible = "partial"} : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// A word that is none of those.
func.func @word_normalize(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected 'normalize' to be 'none' or 'softmax', but got 'softmx'}}
  %bad = ssa.route %q, %k {normalize = softmx} : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// Something else than a word.
func.func @word_normalize_attribute(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected 'normalize' to be 'none' or 'softmax', but got 'true'}}
  %bad = ssa.route %q, %k {normalize = true} : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// A word that is none of those.
func.func @word_reduce(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected 'reduce' to be 'none', 'sum' or 'max', but got 'mean'}}
  %bad = ssa.route %q, %k {reduce = mean} : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// Something else than a word.
func.func @word_reduce_attribute(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected 'reduce' to be 'none', 'sum' or 'max', but got '1'}}
  %bad = ssa.route %q, %k {reduce = 1} : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// A word that is none of those.
func.func @word_gate(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>, %g: tensor<1x8x5xf32>) {
  // expected-error @below {{expected 'gate' to be 'sigmoid' or 'none', but got 'tanh'}}
  %bad = ssa.mix (%q, %g) {gate = tanh} : tensor<1x8x5x48xf32>, tensor<1x8x5xf32> -> tensor<1x8x5x48xf32>
  return
}

// -----

// A mask is an attribute of its own.
func.func @mask_word(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected 'mask' to be '#ssa.mask<..>', but got 'causal'}}
  %bad = ssa.route %q, %k {mask = causal} : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// Blocks in place of a mask.
func.func @mask_kind(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected 'mask' to be '#ssa.mask<..>', but got '#ssa.blocks<3>'}}
  %bad = ssa.route %q, %k {mask = #ssa.blocks<3>} : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// Blocks are an attribute of their own.
func.func @blocks_number(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected 'blocks' to be '#ssa.blocks<..>', but got '64'}}
  %bad = ssa.route %q, %k {blocks = 64} : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// So are the two of `rebin`.
func.func @from_number(%s: tensor<1x2x5x23xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected 'from' to be '#ssa.blocks<..>', but got '1'}}
  %bad = ssa.rebin sum %s of %k {from = 1, to = #ssa.blocks<1>}
      : tensor<1x2x5x23xf32>, tensor<1x2x23x48xf32> -> tensor<1x2x5x23xf32>
  return
}

// -----

// The other one.
func.func @to_number(%s: tensor<1x2x5x23xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected 'to' to be '#ssa.blocks<..>', but got '1'}}
  %bad = ssa.rebin sum %s of %k {from = #ssa.blocks<1>, to = 1}
      : tensor<1x2x5x23xf32>, tensor<1x2x23x48xf32> -> tensor<1x2x5x23xf32>
  return
}

// -----

// A number is no text.
func.func @number_kind(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{attribute 'query_block' failed to satisfy constraint: 64-bit signless integer attribute}}
  %bad = ssa.route %q, %k {query_block = "1"} : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// A scale is an f64, whatever is computed with it.
func.func @scale_kind(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{attribute 'scale' failed to satisfy constraint: 64-bit float attribute}}
  %bad = ssa.route %q, %k {scale = 0.5 : f32} : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// What is pooled stands first.
func.func @pool_kind(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected one of 'mean', 'max', 'min', but got 'sum'}}
  %bad = ssa.pool sum %k {blocks = #ssa.blocks<23>} : tensor<1x2x23x48xf32> -> tensor<1x2x1x48xf32>
  return
}

// -----

// Nothing stands first.
func.func @pool_kind_missing(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected one of 'mean', 'max', 'min'}}
  %bad = ssa.pool %k {blocks = #ssa.blocks<23>} : tensor<1x2x23x48xf32> -> tensor<1x2x1x48xf32>
  return
}

// -----

// Nothing says which blocks.
func.func @pool_blocks(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{requires attribute 'blocks'}}
  %bad = ssa.pool mean %k : tensor<1x2x23x48xf32> -> tensor<1x2x1x48xf32>
  return
}

// -----

// A misspelt clause.
func.func @pool_clause(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected ':' or, in this order, 'scales', {..}, but got 'scale'}}
  %bad = ssa.pool mean %k scale %k {blocks = #ssa.blocks<23>}
      : tensor<1x2x23x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x2x1x48xf32>
  return
}

// -----

// What the scores stand for is not optional.
func.func @topk_of(%s: tensor<1x2x5x23xf32>) {
  // expected-error @below {{expected 'of'}}
  %bad = ssa.topk %s : tensor<1x2x5x23xf32> -> !ssa.selection<1x2x5x3, key_block = 1, sorted>
  return
}

// -----

// `for` stands before `within`.
func.func @topk_clause(%s: tensor<1x2x5x23xf32>, %k: tensor<1x2x23x48xf32>, %c: !ssa.selection<1x2x5x23, sorted>) {
  // expected-error @below {{expected ':' or, in this order, 'for', 'within', {..}, but got 'for'}}
  %bad = ssa.topk %s of %k within %c for %k
      : tensor<1x2x5x23xf32>, tensor<1x2x23x48xf32>, !ssa.selection<1x2x5x23, sorted>, tensor<1x2x23x48xf32>
      -> !ssa.selection<1x2x5x3, sorted>
  return
}

// -----

// A clause of another op.
func.func @rebin_clause(%s: tensor<1x2x5x23xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected ':' or, in this order, {..}, but got 'for'}}
  %bad = ssa.rebin sum %s of %k for %k {from = #ssa.blocks<1>, to = #ssa.blocks<1>}
      : tensor<1x2x5x23xf32>, tensor<1x2x23x48xf32> -> tensor<1x2x5x23xf32>
  return
}

// -----

// `of` stands before `at`.
func.func @attend_clause(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>, %a: !ssa.selection<1x2x5x3>) {
  // expected-error @below {{expected ':' or, in this order, 'of', 'at', {..}, 'score', but got 'of'}}
  %bad:2 = ssa.sparse_attend %q, %k, %k at %a of %k
      : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32>, tensor<1x2x23x48xf32>, !ssa.selection<1x2x5x3>,
        tensor<1x2x23x48xf32>
      -> tensor<1x8x5x48xf32>, tensor<1x8x5xf32>
  return
}

// -----

// Attending at no selection would be attending to all keys.
func.func @attend_at_nothing(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected SSA operand}}
  %bad:2 = ssa.sparse_attend %q, %k, %k at
      : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x48xf32>, tensor<1x8x5xf32>
  return
}

// -----

// A misspelt clause.
func.func @merge_clause(%o: tensor<1x8x5x48xf32>, %l: tensor<1x8x5xf32>, %s: tensor<8xf32>) {
  // expected-error @below {{expected ':' or, in this order, 'sink_logits', {..}, but got 'sinks'}}
  %bad:2 = ssa.merge (%o, %l) sinks %s
      : tensor<1x8x5x48xf32>, tensor<1x8x5xf32>, tensor<8xf32> -> tensor<1x8x5x48xf32>, tensor<1x8x5xf32>
  return
}

// -----

// Parts are pairs.
func.func @merge_pairs(%o: tensor<1x8x5x48xf32>, %l: tensor<1x8x5xf32>) {
  // expected-error @below {{expected '('}}
  %bad:2 = ssa.merge %o, %l : tensor<1x8x5x48xf32>, tensor<1x8x5xf32> -> tensor<1x8x5x48xf32>, tensor<1x8x5xf32>
  return
}

// -----

// An output without its lse.
func.func @merge_half_a_pair(%o: tensor<1x8x5x48xf32>) {
  // expected-error @below {{expected ','}}
  %bad:2 = ssa.merge (%o) : tensor<1x8x5x48xf32> -> tensor<1x8x5x48xf32>, tensor<1x8x5xf32>
  return
}

// -----

// Gates may not be left without an operand.
func.func @mix_clause(%o: tensor<1x8x5x48xf32>, %l: tensor<1x8x5xf32>) {
  // expected-error @below {{expected ':' or, in this order, {..}, but got 'gates'}}
  %bad = ssa.mix (%o, %l) gates : tensor<1x8x5x48xf32>, tensor<1x8x5xf32> -> tensor<1x8x5x48xf32>
  return
}

// -----

// `route` gives a region 6 values.
func.func @score_arguments(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  %0 = ssa.route %q, %k score (%x, %w, %b, %h, %p, %j) { ssa.yield %x : f32 }
      : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  // expected-error @below {{expected 6 arguments of the score region, (x, w, b, h, p, j), but got 2}}
  %bad = ssa.route %q, %k score (%x, %w) { ssa.yield %x : f32 }
      : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// `sparse_attend` gives it 5.
func.func @score_arguments_attend(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected 5 arguments of the score region, (x, b, h, p, n), but got 6}}
  %bad:2 = ssa.sparse_attend %q, %k, %k score (%x, %w, %b, %h, %p, %j) { ssa.yield %x : f32 }
      : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x48xf32>, tensor<1x8x5xf32>
  return
}

// -----

// Their types are fixed.
func.func @score_argument_types(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected no types of arguments of the score region, as they are fixed}}
  %bad = ssa.route %q, %k score (%x : f32, %w : f32, %b : i32, %h : i32, %p : i32, %j : i32) { ssa.yield %x : f32 }
      : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// Their names are not.
func.func @score_without_arguments(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected '(' before the score region}}
  %bad = ssa.route %q, %k score { ssa.yield %x : f32 }
      : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// The dictionary stands before the region.
func.func @score_before_dictionary(%q: tensor<1x8x5x48xf32>, %k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected ':'}}
  %bad = ssa.route %q, %k score (%x, %w, %b, %h, %p, %j) { ssa.yield %x : f32 } {reduce = none}
      : tensor<1x8x5x48xf32>, tensor<1x2x23x48xf32> -> tensor<1x8x5x23xf32>
  return
}

// -----

// An op without attributes.
func.func @project_dictionary(%q: tensor<1x8x5x48xf32>, %w: tensor<1x48x16xf32>) {
  // expected-error @below {{has no attribute 'scale'}}
  %bad = ssa.project %q, %w {scale = 2.0} : tensor<1x8x5x48xf32>, tensor<1x48x16xf32> -> tensor<1x8x5x16xf32>
  return
}

// -----

// Which rows is not optional.
func.func @gather_at(%k: tensor<1x2x23x48xf32>) {
  // expected-error @below {{expected 'at'}}
  %bad = ssa.gather %k : tensor<1x2x23x48xf32> -> tensor<1x2x5x12x48xf32>
  return
}
