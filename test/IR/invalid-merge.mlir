// RUN: ssa-opt %s --split-input-file --verify-diagnostics

// merge and mix. Names of functions are the rules of the descriptions; where something next to what is refused is
// accepted, it stands in front.

// Parts are floats.
func.func @merge_i1(%o: tensor<3x8x5x24xi8>, %l: tensor<3x8x5xf32>) {
  // expected-error @below {{operand #0 must be variadic of 3D/4D tensor of}}
  %bad:2 = ssa.merge (%o, %l) : tensor<3x8x5x24xi8>, tensor<3x8x5xf32> -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// An output has rank 4.
func.func @merge_i1_rank(%o: tensor<3x8x5xf32>, %l: tensor<3x8x5xf32>) {
  // expected-error @below {{expected 'part 0' to have rank 4, but got 3}}
  %bad:2 = ssa.merge (%o, %l) : tensor<3x8x5xf32>, tensor<3x8x5xf32> -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// An lse has rank 3.
func.func @merge_i1_lse(%o: tensor<3x8x5x24xf32>, %l: tensor<3x8x5xf32>) {
  // expected-error @below {{expected 'lse of part 1' to be a 3D tensor of f32, but got 'tensor<3x8x5x24xf32>'}}
  %bad:2 = ssa.merge (%o, %l), (%o, %o)
      : tensor<3x8x5x24xf32>, tensor<3x8x5xf32>, tensor<3x8x5x24xf32>, tensor<3x8x5x24xf32>
      -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// And is f32.
func.func @merge_i1_lse_type(%o: tensor<3x8x5x24xf32>, %l: tensor<3x8x5xbf16>) {
  // expected-error @below {{expected 'lse of part 0' to be a 3D tensor of f32, but got 'tensor<3x8x5xbf16>'}}
  %bad:2 = ssa.merge (%o, %l) : tensor<3x8x5x24xf32>, tensor<3x8x5xbf16> -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// Sinks are f32, one per head.
func.func @merge_i2(%o: tensor<3x8x5x24xf32>, %l: tensor<3x8x5xf32>, %s: tensor<3x8xf32>) {
  // expected-error @below {{operand #2 must be 1D tensor of 32-bit float values}}
  %bad:2 = ssa.merge (%o, %l) sink_logits %s
      : tensor<3x8x5x24xf32>, tensor<3x8x5xf32>, tensor<3x8xf32> -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// Merging nothing; only the generic form can say so.
func.func @merge_c1() {
  // expected-error @below {{expected pairs of an output and its lse, at least one, but got 0 operands}}
  %bad:2 = "ssa.merge"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> (tensor<3x8x5x24xf32>, tensor<3x8x5xf32>)
  return
}

// -----

// Half a pair.
func.func @merge_c1_odd(%o: tensor<3x8x5x24xf32>) {
  // expected-error @below {{expected pairs of an output and its lse, at least one, but got 1 operands}}
  %bad:2 = "ssa.merge"(%o) <{operandSegmentSizes = array<i32: 1, 0>}>
      : (tensor<3x8x5x24xf32>) -> (tensor<3x8x5x24xf32>, tensor<3x8x5xf32>)
  return
}

// -----

// Parts of different queries.
func.func @merge_c2(%o: tensor<3x8x5x24xf32>, %l: tensor<3x8x5xf32>, %a: tensor<3x8x6x24xf32>, %b: tensor<3x8x6xf32>) {
  // expected-error @below {{expected dimension 2 of 'part 1' to be 5, dimension 2 of 'output', but got 6}}
  %bad:2 = ssa.merge (%o, %l), (%a, %b)
      : tensor<3x8x5x24xf32>, tensor<3x8x5xf32>, tensor<3x8x6x24xf32>, tensor<3x8x6xf32>
      -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// An lse of other queries than its output.
func.func @merge_c2_lse(%o: tensor<3x8x5x24xf32>, %l: tensor<3x8x6xf32>) {
  // expected-error @below {{expected dimension 2 of 'lse of part 0' to be 5, dimension 2 of 'output', but got 6}}
  %bad:2 = ssa.merge (%o, %l) : tensor<3x8x5x24xf32>, tensor<3x8x6xf32> -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// Parts of different width.
func.func @merge_c2_dim(%o: tensor<3x8x5x48xf32>, %l: tensor<3x8x5xf32>) {
  // expected-error @below {{expected dimension 3 of 'part 0' to be 24, dimension 3 of 'output', but got 48}}
  %bad:2 = ssa.merge (%o, %l) : tensor<3x8x5x48xf32>, tensor<3x8x5xf32> -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// Results that contradict each other.
func.func @merge_c2_results(%o: tensor<3x8x?x24xf32>, %l: tensor<3x8x?xf32>) {
  // expected-error @below {{expected dimension 2 of 'lse' to be 5, dimension 2 of 'output', but got 6}}
  %bad:2 = ssa.merge (%o, %l) : tensor<3x8x?x24xf32>, tensor<3x8x?xf32> -> tensor<3x8x5x24xf32>, tensor<3x8x6xf32>
  return
}

// -----

// Results say nothing, but parts contradict each other.
func.func @merge_c2_in_between(%o: tensor<3x8x?x24xf32>, %l: tensor<3x8x5xf32>, %o1: tensor<3x8x5x24xf32>,
    %l1: tensor<3x8x?xf32>,
    %a: tensor<3x8x6x24xf32>, %b: tensor<3x8x?xf32>) {
  %0:2 = ssa.merge (%o, %l), (%o1, %l1)
      : tensor<3x8x?x24xf32>, tensor<3x8x5xf32>, tensor<3x8x5x24xf32>, tensor<3x8x?xf32>
      -> tensor<3x8x?x24xf32>, tensor<3x8x?xf32>
  // expected-error @below {{expected dimension 2 of 'part 1' to be 5, dimension 2 of 'lse of part 0', but got 6}}
  %bad:2 = ssa.merge (%o, %l), (%a, %b)
      : tensor<3x8x?x24xf32>, tensor<3x8x5xf32>, tensor<3x8x6x24xf32>, tensor<3x8x?xf32>
      -> tensor<3x8x?x24xf32>, tensor<3x8x?xf32>
  return
}

// -----

// A sink per query head.
func.func @merge_c3(%o: tensor<3x8x5x24xf32>, %l: tensor<3x8x5xf32>, %s: tensor<8xf32>, %s1: tensor<2xf32>) {
  %0:2 = ssa.merge (%o, %l) sink_logits %s
      : tensor<3x8x5x24xf32>, tensor<3x8x5xf32>, tensor<8xf32> -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  // expected-error @below {{expected dimension 0 of 'sink_logits' to be 8, dimension 1 of 'output', but got 2}}
  %bad:2 = ssa.merge (%o, %l) sink_logits %s1
      : tensor<3x8x5x24xf32>, tensor<3x8x5xf32>, tensor<2xf32> -> tensor<3x8x5x24xf32>, tensor<3x8x5xf32>
  return
}

// -----

// Parts are floats.
func.func @mix_i1(%o: tensor<3x8x5x24xf32>, %g: tensor<3x8x5xi1>) {
  // expected-error @below {{operand #1 must be variadic of 3D/4D tensor of}}
  %bad = ssa.mix (%o, %g) : tensor<3x8x5x24xf32>, tensor<3x8x5xi1> -> tensor<3x8x5x24xf32>
  return
}

// -----

// An output has rank 4.
func.func @mix_i1_rank(%o: tensor<3x8x5x24xf32>, %g: tensor<3x8x5xf32>) {
  // expected-error @below {{expected 'part 1' to have rank 4, but got 3}}
  %bad = ssa.mix (%o, %g), (%g, %g)
      : tensor<3x8x5x24xf32>, tensor<3x8x5xf32>, tensor<3x8x5xf32>, tensor<3x8x5xf32> -> tensor<3x8x5x24xf32>
  return
}

// -----

// A gate is a number per row, not per channel.
func.func @mix_i1_gate(%o: tensor<3x8x5x24xf32>, %g: tensor<3x8x5x24xf32>) {
  // expected-error @below {{expected 'gate of part 0' to be a 3D tensor of f32, but got 'tensor<3x8x5x24xf32>'}}
  %bad = ssa.mix (%o, %g) : tensor<3x8x5x24xf32>, tensor<3x8x5x24xf32> -> tensor<3x8x5x24xf32>
  return
}

// -----

// Mixing nothing; only the generic form can say so.
func.func @mix_c1() {
  // expected-error @below {{expected pairs of an output and its gate, at least one, but got 0 operands}}
  %bad = "ssa.mix"() : () -> tensor<3x8x5x24xf32>
  return
}

// -----

// Gates of other heads.
func.func @mix_c2(%o: tensor<3x8x5x24xf32>, %g: tensor<3x2x5xf32>) {
  // expected-error @below {{expected dimension 1 of 'gate of part 0' to be 8, dimension 1 of 'output', but got 2}}
  %bad = ssa.mix (%o, %g) : tensor<3x8x5x24xf32>, tensor<3x2x5xf32> -> tensor<3x8x5x24xf32>
  return
}
