// RUN: ssa-opt %s --split-input-file --verify-diagnostics

// project, pool, rebin and gather. Names of functions are the rules of the descriptions; where something next to what
// is refused is accepted, it stands in front.

// Rows have rank 4.
func.func @project_i1(%x: tensor<8x5x48xf32>, %w: tensor<8x48x16xf32>) {
  // expected-error @below {{operand #0 must be 4D tensor of}}
  %bad = ssa.project %x, %w : tensor<8x5x48xf32>, tensor<8x48x16xf32> -> tensor<3x8x5x16xf32>
  return
}

// -----

// Numbers that are no floats.
func.func @project_i1_type(%x: tensor<3x8x5x48xi8>, %w: tensor<8x48x16xf32>) {
  // expected-error @below {{operand #0 must be 4D tensor of}}
  %bad = ssa.project %x, %w : tensor<3x8x5x48xi8>, tensor<8x48x16xf32> -> tensor<3x8x5x16xf32>
  return
}

// -----

// There are no scales here.
func.func @project_i1_f8(%x: tensor<3x8x5x48xf8E4M3FN>, %w: tensor<8x48x16xf32>) {
  // expected-error @below {{operand #0 must be 4D tensor of}}
  %bad = ssa.project %x, %w : tensor<3x8x5x48xf8E4M3FN>, tensor<8x48x16xf32> -> tensor<3x8x5x16xf32>
  return
}

// -----

func.func @project_f8_result(%x: tensor<3x8x5x48xf32>, %w: tensor<8x48x16xf32>) {
  // expected-error @below {{result #0 must be 4D tensor of}}
  %bad = ssa.project %x, %w : tensor<3x8x5x48xf32>, tensor<8x48x16xf32> -> tensor<3x8x5x16xf8E4M3FN>
  return
}

// -----

// A weight is a matrix per head.
func.func @project_i2(%x: tensor<3x8x5x48xf32>, %w: tensor<48x16xf32>) {
  // expected-error @below {{operand #1 must be 3D tensor of}}
  %bad = ssa.project %x, %w : tensor<3x8x5x48xf32>, tensor<48x16xf32> -> tensor<3x8x5x16xf32>
  return
}

// -----

// 3 heads and 8; 1 and 8 will do.
func.func @project_c1(%x: tensor<3x1x5x48xf32>, %w: tensor<8x48x16xf32>, %x1: tensor<3x8x5x48xf32>,
    %w1: tensor<3x48x16xf32>) {
  %0 = ssa.project %x, %w : tensor<3x1x5x48xf32>, tensor<8x48x16xf32> -> tensor<3x8x5x16xf32>
  // expected-error @below {{expected 'input' and 'weight' to have the same number of heads or one of them a single one, but got 8 and 3}}
  %bad = ssa.project %x1, %w1 : tensor<3x8x5x48xf32>, tensor<3x48x16xf32> -> tensor<3x8x5x16xf32>
  return
}

// -----

// Rows and columns do not match.
func.func @project_c2(%x: tensor<3x8x5x48xf32>, %w: tensor<8x40x16xf32>) {
  // expected-error @below {{expected dimension 1 of 'weight' to be 48, dimension 3 of 'input', but got 40}}
  %bad = ssa.project %x, %w : tensor<3x8x5x48xf32>, tensor<8x40x16xf32> -> tensor<3x8x5x16xf32>
  return
}

// -----

// Wider than any model.
func.func @project_c3(%x: tensor<3x8x5x16384xf32>, %w: tensor<8x16384x16xf32>, %x1: tensor<3x8x5x16385xf32>,
    %w1: tensor<8x16385x16xf32>) {
  %0 = ssa.project %x, %w : tensor<3x8x5x16384xf32>, tensor<8x16384x16xf32> -> tensor<3x8x5x16xf32>
  // expected-error @below {{expected dimension 3 of 'input' to be at most 16384, the widest head dim, but got 16385}}
  %bad = ssa.project %x1, %w1 : tensor<3x8x5x16385xf32>, tensor<8x16385x16xf32> -> tensor<3x8x5x16xf32>
  return
}

// -----

// A result of the wrong batch.
func.func @project_c4(%x: tensor<?x8x5x48xf32>, %w: tensor<8x48x16xf32>, %x1: tensor<3x8x5x48xf32>) {
  %0 = ssa.project %x, %w : tensor<?x8x5x48xf32>, tensor<8x48x16xf32> -> tensor<3x8x?x16xf32>
  // expected-error @below {{expected dimension 0 of 'output' to be 3, dimension 0 of 'input', but got 2}}
  %bad = ssa.project %x1, %w : tensor<3x8x5x48xf32>, tensor<8x48x16xf32> -> tensor<2x8x5x16xf32>
  return
}

// -----

// With the wrong number of rows.
func.func @project_c4_rows(%x: tensor<3x8x5x48xf32>, %w: tensor<8x48x16xf32>) {
  // expected-error @below {{expected dimension 2 of 'output' to be 5, dimension 2 of 'input', but got 6}}
  %bad = ssa.project %x, %w : tensor<3x8x5x48xf32>, tensor<8x48x16xf32> -> tensor<3x8x6x16xf32>
  return
}

// -----

// With the heads of the one that serves all.
func.func @project_c4_heads(%x: tensor<3x8x5x48xf32>, %w: tensor<1x48x16xf32>) {
  // expected-error @below {{expected dimension 1 of 'output' to be 8, the greater number of heads, but got 1}}
  %bad = ssa.project %x, %w : tensor<3x8x5x48xf32>, tensor<1x48x16xf32> -> tensor<3x1x5x16xf32>
  return
}

// -----

// Of another rank.
func.func @project_c4_rank(%x: tensor<3x8x5x48xf32>, %w: tensor<8x48x16xf32>) {
  // expected-error @below {{expected dimension 3 of 'output' to be 16, dimension 2 of 'weight', but got 48}}
  %bad = ssa.project %x, %w : tensor<3x8x5x48xf32>, tensor<8x48x16xf32> -> tensor<3x8x5x48xf32>
  return
}

// -----

// Rows have rank 4.
func.func @pool_i1(%k: tensor<2x23x16xf32>) {
  // expected-error @below {{operand #0 must be 4D tensor of}}
  %bad = ssa.pool mean %k {blocks = #ssa.blocks<4>} : tensor<2x23x16xf32> -> tensor<3x2x6x16xf32>
  return
}

// -----

// Scales are f32, one per row.
func.func @pool_i2(%k: tensor<3x2x23x16xf32>, %s: tensor<3x2x23xbf16>) {
  // expected-error @below {{operand #1 must be 3D tensor of 32-bit float values}}
  %bad = ssa.pool mean %k scales %s {blocks = #ssa.blocks<4>}
      : tensor<3x2x23x16xf32>, tensor<3x2x23xbf16> -> tensor<3x2x6x16xf32>
  return
}

// -----

// A scale too few.
func.func @pool_c1(%k: tensor<3x2x23x16xf32>, %s: tensor<3x2x?xf32>, %s1: tensor<3x2x22xf32>) {
  %0 = ssa.pool mean %k scales %s {blocks = #ssa.blocks<4>}
      : tensor<3x2x23x16xf32>, tensor<3x2x?xf32> -> tensor<3x2x6x16xf32>
  // expected-error @below {{expected dimension 2 of 'scales' to be 23, dimension 2 of 'input', but got 22}}
  %bad = ssa.pool mean %k scales %s1 {blocks = #ssa.blocks<4>}
      : tensor<3x2x23x16xf32>, tensor<3x2x22xf32> -> tensor<3x2x6x16xf32>
  return
}

// -----

// Scales of other heads.
func.func @pool_c1_heads(%k: tensor<3x2x23x16xf32>, %s: tensor<3x1x23xf32>) {
  // expected-error @below {{expected dimension 1 of 'scales' to be 2, dimension 1 of 'input', but got 1}}
  %bad = ssa.pool mean %k scales %s {blocks = #ssa.blocks<4>}
      : tensor<3x2x23x16xf32>, tensor<3x1x23xf32> -> tensor<3x2x6x16xf32>
  return
}

// -----

// Scales of another batch.
func.func @pool_c1_batch(%k: tensor<3x2x23x16xf32>, %s: tensor<1x2x23xf32>) {
  // expected-error @below {{expected dimension 0 of 'scales' to be 3, dimension 0 of 'input', but got 1}}
  %bad = ssa.pool mean %k scales %s {blocks = #ssa.blocks<4>}
      : tensor<3x2x23x16xf32>, tensor<1x2x23xf32> -> tensor<3x2x6x16xf32>
  return
}

// -----

// A short last block counts: ceil(23/4) = 6.
func.func @pool_c2(%k: tensor<3x2x23x16xf32>) {
  %0 = ssa.pool mean %k {blocks = #ssa.blocks<4>} : tensor<3x2x23x16xf32> -> tensor<3x2x6x16xf32>
  // expected-error @below {{expected dimension 2 of 'output' to be 6, the number of blocks, but got 5}}
  %bad = ssa.pool mean %k {blocks = #ssa.blocks<4>} : tensor<3x2x23x16xf32> -> tensor<3x2x5x16xf32>
  return
}

// -----

// Where blocks overlap a short one does not: floor((23-8)/4)+1 = 4.
func.func @pool_c2_overlapping(%k: tensor<3x2x23x16xf32>) {
  %0 = ssa.pool mean %k {blocks = #ssa.blocks<8, stride = 4>} : tensor<3x2x23x16xf32> -> tensor<3x2x4x16xf32>
  // expected-error @below {{expected dimension 2 of 'output' to be 4, the number of blocks, but got 5}}
  %bad = ssa.pool mean %k {blocks = #ssa.blocks<8, stride = 4>} : tensor<3x2x23x16xf32> -> tensor<3x2x5x16xf32>
  return
}

// -----

// And there is none where no whole block fits.
func.func @pool_c2_none(%k: tensor<3x2x23x16xf32>) {
  %0 = ssa.pool mean %k {blocks = #ssa.blocks<24, stride = 8>} : tensor<3x2x23x16xf32> -> tensor<3x2x0x16xf32>
  // expected-error @below {{expected dimension 2 of 'output' to be 0, the number of blocks, but got 1}}
  %bad = ssa.pool mean %k {blocks = #ssa.blocks<24, stride = 8>} : tensor<3x2x23x16xf32> -> tensor<3x2x1x16xf32>
  return
}

// -----

// An offset makes room for one more: ceil((23+2)/4) = 7.
func.func @pool_c2_shifted(%k: tensor<3x2x23x16xf32>) {
  %0 = ssa.pool mean %k {blocks = #ssa.blocks<4, offset = -2>} : tensor<3x2x23x16xf32> -> tensor<3x2x7x16xf32>
  // expected-error @below {{expected dimension 2 of 'output' to be 7, the number of blocks, but got 6}}
  %bad = ssa.pool mean %k {blocks = #ssa.blocks<4, offset = -2>} : tensor<3x2x23x16xf32> -> tensor<3x2x6x16xf32>
  return
}

// -----

// The number of rows is known from the scales only.
func.func @pool_c2_by_scales(%k: tensor<3x2x?x16xf32>, %s: tensor<3x2x23xf32>) {
  // expected-error @below {{expected dimension 2 of 'output' to be 6, the number of blocks, but got 5}}
  %bad = ssa.pool mean %k scales %s {blocks = #ssa.blocks<4>}
      : tensor<3x2x?x16xf32>, tensor<3x2x23xf32> -> tensor<3x2x5x16xf32>
  return
}

// -----

// A result of other heads.
func.func @pool_c2_heads(%k: tensor<3x2x23x16xf32>) {
  // expected-error @below {{expected dimension 1 of 'output' to be 2, dimension 1 of 'input', but got 1}}
  %bad = ssa.pool mean %k {blocks = #ssa.blocks<4>} : tensor<3x2x23x16xf32> -> tensor<3x1x6x16xf32>
  return
}

// -----

// Of another head dim.
func.func @pool_c2_dim(%k: tensor<3x2x23x16xf32>) {
  // expected-error @below {{expected dimension 3 of 'output' to be 16, dimension 3 of 'input', but got 8}}
  %bad = ssa.pool mean %k {blocks = #ssa.blocks<4>} : tensor<3x2x23x16xf32> -> tensor<3x2x6x8xf32>
  return
}

// -----

// Scores are f32.
func.func @rebin_i1(%s: tensor<1x2x10x15xbf16>, %k: tensor<1x2x269x48xf32>) {
  // expected-error @below {{operand #0 must be 4D tensor of 32-bit float values}}
  %bad = ssa.rebin sum %s of %k {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>}
      : tensor<1x2x10x15xbf16>, tensor<1x2x269x48xf32> -> tensor<1x2x10x5xf32>
  return
}

// -----

// Tokens have rank 4, like keys.
func.func @rebin_i2(%s: tensor<1x2x10x15xf32>, %k: tensor<269x48xf32>) {
  // expected-error @below {{operand #1 must be 4D tensor of}}
  %bad = ssa.rebin sum %s of %k {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>}
      : tensor<1x2x10x15xf32>, tensor<269x48xf32> -> tensor<1x2x10x5xf32>
  return
}

// -----

// Joining without a way to join.
func.func @rebin_c1(%s: tensor<1x2x10x15xf32>, %k: tensor<1x2x269x48xf32>) {
  // expected-error @below {{expected 'sum' or 'max', but got 'none'}}
  %bad = ssa.rebin none %s of %k {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>}
      : tensor<1x2x10x15xf32>, tensor<1x2x269x48xf32> -> tensor<1x2x10x5xf32>
  return
}

// -----

// Summaries that do not begin where others end.
func.func @rebin_c2(%s: tensor<1x2x10x?xf32>, %k: tensor<1x2x269x48xf32>) {
  // expected-error @below {{expected the stride of 'from' to divide its size, but got #ssa.blocks<32, stride = 12>}}
  %bad = ssa.rebin sum %s of %k {from = #ssa.blocks<32, stride = 12>, to = #ssa.blocks<36>}
      : tensor<1x2x10x?xf32>, tensor<1x2x269x48xf32> -> tensor<1x2x10x?xf32>
  return
}

// -----

// Blocks that begin in the middle of a summary.
func.func @rebin_c2_size(%s: tensor<1x2x10x15xf32>, %k: tensor<1x2x269x48xf32>) {
  // expected-error @below {{expected the stride of 'from', 16, to divide the size of 'to', 40}}
  %bad = ssa.rebin sum %s of %k {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<40>}
      : tensor<1x2x10x15xf32>, tensor<1x2x269x48xf32> -> tensor<1x2x10x?xf32>
  return
}

// -----

// Blocks that overlap.
func.func @rebin_c2_overlap(%s: tensor<1x2x10x15xf32>, %k: tensor<1x2x269x48xf32>) {
  // expected-error @below {{expected 'to' not to overlap and to have no offset, but got #ssa.blocks<64, stride = 32>}}
  %bad = ssa.rebin sum %s of %k {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64, stride = 32>}
      : tensor<1x2x10x15xf32>, tensor<1x2x269x48xf32> -> tensor<1x2x10x?xf32>
  return
}

// -----

// Blocks that are shifted.
func.func @rebin_c2_shifted(%s: tensor<1x2x10x15xf32>, %k: tensor<1x2x269x48xf32>) {
  // expected-error @below {{expected 'to' not to overlap and to have no offset, but got #ssa.blocks<64, offset = -16>}}
  %bad = ssa.rebin sum %s of %k {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64, offset = -16>}
      : tensor<1x2x10x15xf32>, tensor<1x2x269x48xf32> -> tensor<1x2x10x?xf32>
  return
}

// -----

// Summaries that are shifted.
func.func @rebin_c2_offset(%s: tensor<1x2x10x15xf32>, %k: tensor<1x2x269x48xf32>) {
  // expected-error @below {{expected 'from' to have no offset, but got #ssa.blocks<32, stride = 16, offset = -16>}}
  %bad = ssa.rebin sum %s of %k {from = #ssa.blocks<32, stride = 16, offset = -16>, to = #ssa.blocks<64>}
      : tensor<1x2x10x15xf32>, tensor<1x2x269x48xf32> -> tensor<1x2x10x5xf32>
  return
}

// -----

// Blocks of no queries.
func.func @rebin_c3(%s: tensor<1x2x10x15xf32>, %k: tensor<1x2x269x48xf32>) {
  %0 = ssa.rebin sum %s of %k {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>, query_block = 1}
      : tensor<1x2x10x15xf32>, tensor<1x2x269x48xf32> -> tensor<1x2x10x5xf32>
  // expected-error @below {{expected 'query_block' to be in 1 .. 2147483647, but got 0}}
  %bad = ssa.rebin sum %s of %k {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>, query_block = 0}
      : tensor<1x2x10x15xf32>, tensor<1x2x269x48xf32> -> tensor<1x2x10x5xf32>
  return
}

// -----

// Of less than none; attributes have signs.
func.func @rebin_c3_negative(%s: tensor<1x2x10x15xf32>, %k: tensor<1x2x269x48xf32>) {
  // expected-error @below {{expected 'query_block' to be in 1 .. 2147483647, but got -4}}
  %bad = ssa.rebin sum %s of %k {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>, query_block = -4}
      : tensor<1x2x10x15xf32>, tensor<1x2x269x48xf32> -> tensor<1x2x10x5xf32>
  return
}

// -----

// Of more queries than there can be.
func.func @rebin_c3_large(%s: tensor<1x2x10x15xf32>, %k: tensor<1x2x269x48xf32>) {
  // expected-error @below {{expected 'query_block' to be in 1 .. 2147483647, but got 2147483648}}
  %bad = ssa.rebin sum %s of %k {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>, query_block = 2147483648}
      : tensor<1x2x10x15xf32>, tensor<1x2x269x48xf32> -> tensor<1x2x10x5xf32>
  return
}

// -----

// 10 rows make 3 query blocks of 4.
func.func @rebin_c4(%s: tensor<1x2x10x15xf32>, %k: tensor<1x2x269x48xf32>) {
  %0 = ssa.rebin sum %s of %k {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>, query_block = 4}
      : tensor<1x2x10x15xf32>, tensor<1x2x269x48xf32> -> tensor<1x2x3x5xf32>
  // expected-error @below {{expected dimension 2 of 'output' to be 3, the query blocks of 'input', but got 2}}
  %bad = ssa.rebin sum %s of %k {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>, query_block = 4}
      : tensor<1x2x10x15xf32>, tensor<1x2x269x48xf32> -> tensor<1x2x2x5xf32>
  return
}

// -----

// 269 tokens make 5 blocks of 64.
func.func @rebin_c4_blocks(%s: tensor<1x2x10x15xf32>, %k: tensor<1x2x269x48xf32>) {
  // expected-error @below {{expected dimension 3 of 'output' to be 5, the number of blocks of 'to', but got 4}}
  %bad = ssa.rebin sum %s of %k {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>}
      : tensor<1x2x10x15xf32>, tensor<1x2x269x48xf32> -> tensor<1x2x10x4xf32>
  return
}

// -----

// Scores keep their heads.
func.func @rebin_c4_heads(%s: tensor<1x2x10x15xf32>, %k: tensor<1x2x269x48xf32>) {
  // expected-error @below {{expected dimension 1 of 'output' to be 2, dimension 1 of 'input', but got 1}}
  %bad = ssa.rebin sum %s of %k {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>}
      : tensor<1x2x10x15xf32>, tensor<1x2x269x48xf32> -> tensor<1x1x10x5xf32>
  return
}

// -----

// Tokens of another batch; their heads and dims may be any.
func.func @rebin_c5(%s: tensor<1x2x10x15xf32>, %k: tensor<1x7x269x1xf32>, %k1: tensor<3x2x269x48xf32>) {
  %0 = ssa.rebin sum %s of %k {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>}
      : tensor<1x2x10x15xf32>, tensor<1x7x269x1xf32> -> tensor<1x2x10x5xf32>
  // expected-error @below {{expected dimension 0 of 'tokens' to be 1, dimension 0 of 'input', but got 3}}
  %bad = ssa.rebin sum %s of %k1 {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>}
      : tensor<1x2x10x15xf32>, tensor<3x2x269x48xf32> -> tensor<1x2x10x5xf32>
  return
}

// -----

// Operands say nothing of the batch, but results contradict each other.
func.func @rebin_c5_by_output(%s: tensor<?x2x10x15xf32>, %k: tensor<3x2x269x48xf32>) {
  // expected-error @below {{expected dimension 0 of 'output' to be 3, dimension 0 of 'tokens', but got 1}}
  %bad = ssa.rebin sum %s of %k {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>}
      : tensor<?x2x10x15xf32>, tensor<3x2x269x48xf32> -> tensor<1x2x10x5xf32>
  return
}

// -----

// 269 tokens make 15 summaries of 32; some may be missing.
func.func @rebin_c6(%s: tensor<1x2x10x3xf32>, %k: tensor<1x2x269x48xf32>, %s1: tensor<1x2x10x16xf32>) {
  %0 = ssa.rebin sum %s of %k {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>}
      : tensor<1x2x10x3xf32>, tensor<1x2x269x48xf32> -> tensor<1x2x10x5xf32>
  // expected-error @below {{expected dimension 3 of 'input' to be at most 15, the number of blocks of 'from', but got 16}}
  %bad = ssa.rebin sum %s1 of %k {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>}
      : tensor<1x2x10x16xf32>, tensor<1x2x269x48xf32> -> tensor<1x2x10x5xf32>
  return
}

// -----

// Rows have rank 4.
func.func @gather_i1(%k: tensor<1x2x5x12x48xf32>, %a: !ssa.selection<1x2x5x3, key_block = 4>) {
  // expected-error @below {{operand #0 must be 4D tensor of}}
  %bad = ssa.gather %k at %a
      : tensor<1x2x5x12x48xf32>, !ssa.selection<1x2x5x3, key_block = 4> -> tensor<1x2x5x12x48xf32>
  return
}

// -----

// A list in memory is no selection yet.
func.func @gather_i2(%k: tensor<1x2x23x48xf32>, %a: tensor<1x2x5x3xi32>) {
  // expected-error @below {{operand #1 must be selection (of an i32 tensor 'ssa.from_indices' makes one), but got 'tensor<1x2x5x3xi32>'}}
  %bad = ssa.gather %k at %a : tensor<1x2x23x48xf32>, tensor<1x2x5x3xi32> -> tensor<1x2x5x12x48xf32>
  return
}

// -----

// 2 heads and 3 lists; 2 and 6 will do.
func.func @gather_c1(%k: tensor<1x2x23x48xf32>, %a: !ssa.selection<1x6x5x3, key_block = 4>,
    %a1: !ssa.selection<1x3x5x3, key_block = 4>) {
  %0 = ssa.gather %k at %a : tensor<1x2x23x48xf32>, !ssa.selection<1x6x5x3, key_block = 4> -> tensor<1x6x5x12x48xf32>
  // expected-error @below {{expected the 2 heads of 'input' and the 3 selection heads to divide one another}}
  %bad = ssa.gather %k at %a1 : tensor<1x2x23x48xf32>, !ssa.selection<1x3x5x3, key_block = 4> -> tensor<1x3x5x12x48xf32>
  return
}

// -----

// Lists of another batch.
func.func @gather_c2(%k: tensor<1x2x23x48xf32>, %a: !ssa.selection<3x2x5x3, key_block = 4>) {
  // expected-error @below {{expected dimension 0 of 'selection' to be 1, dimension 0 of 'input', but got 3}}
  %bad = ssa.gather %k at %a : tensor<1x2x23x48xf32>, !ssa.selection<3x2x5x3, key_block = 4> -> tensor<1x2x5x12x48xf32>
  return
}

// -----

// More lists than heads: a head is gathered for each of its lists.
func.func @gather_c3(%k: tensor<1x2x23x48xf32>, %a: !ssa.selection<1x4x5x3, key_block = 4>) {
  // expected-error @below {{expected dimension 1 of 'output' to be 4, the greater number of heads, but got 2}}
  %bad = ssa.gather %k at %a : tensor<1x2x23x48xf32>, !ssa.selection<1x4x5x3, key_block = 4> -> tensor<1x2x5x12x48xf32>
  return
}

// -----

// A list too many.
func.func @gather_c3_lists(%k: tensor<1x2x23x48xf32>, %a: !ssa.selection<1x2x5x3, key_block = 4>) {
  // expected-error @below {{expected dimension 2 of 'output' to be 5, dimension 2 of 'selection', but got 6}}
  %bad = ssa.gather %k at %a : tensor<1x2x23x48xf32>, !ssa.selection<1x2x5x3, key_block = 4> -> tensor<1x2x6x12x48xf32>
  return
}

// -----

// Blocks are spelt out: 3 of 4 rows.
func.func @gather_c3_rows(%k: tensor<1x2x23x48xf32>, %a: !ssa.selection<1x2x5x3, key_block = 4>) {
  // expected-error @below {{expected dimension 3 of 'output' to be 12, the rows of a list, but got 3}}
  %bad = ssa.gather %k at %a : tensor<1x2x23x48xf32>, !ssa.selection<1x2x5x3, key_block = 4> -> tensor<1x2x5x3x48xf32>
  return
}

// -----

// As many blocks as there can be, each as large as there can be; the product is not cut to 32 bits, where it would be
// 1.
func.func @gather_c3_overflow(%k: tensor<1x2x23x48xf32>, %a: !ssa.selection<1x2x5x2147483647, key_block = 2147483647>) {
  // expected-error @below {{expected dimension 3 of 'output' to be 4611686014132420609, the rows of a list, but got 1}}
  %bad = ssa.gather %k at %a
      : tensor<1x2x23x48xf32>, !ssa.selection<1x2x5x2147483647, key_block = 2147483647> -> tensor<1x2x5x1x48xf32>
  return
}

// -----

// Rows keep their width.
func.func @gather_c3_dim(%k: tensor<1x2x23x48xf32>, %a: !ssa.selection<1x2x5x3, key_block = 4>) {
  // expected-error @below {{expected dimension 4 of 'output' to be 48, dimension 3 of 'input', but got 40}}
  %bad = ssa.gather %k at %a : tensor<1x2x23x48xf32>, !ssa.selection<1x2x5x3, key_block = 4> -> tensor<1x2x5x12x40xf32>
  return
}

// -----

// And their type.
func.func @gather_c3_type(%k: tensor<1x2x23x48xf32>, %a: !ssa.selection<1x2x5x3, key_block = 4>) {
  // expected-error @below {{expected 'output' to have the element type of 'input', 'f32', but got 'bf16'}}
  %bad = ssa.gather %k at %a : tensor<1x2x23x48xf32>, !ssa.selection<1x2x5x3, key_block = 4> -> tensor<1x2x5x12x48xbf16>
  return
}
