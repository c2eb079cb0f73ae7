// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SSA_OPS_TD
#define SSA_OPS_TD

include "ssa/IR/SSAAttrs.td"
include "ssa/IR/SSATypes.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/OpAsmInterface.td"

//===----------------------------------------------------------------------===//
// Type constraints
//===----------------------------------------------------------------------===//

// Rows whose values are computed with, rows that an op with scales takes, and rows of which only the shape is read.
def SSA_Rows : 4DTensorOf<[F32, BF16, F16]>;
def SSA_ScaledRows : 4DTensorOf<[F32, BF16, F16, F8E4M3FN]>;
def SSA_ShapeOf : 4DTensorOf<[F32, BF16, F16, F8E4M3FN]>;
// Rows of an attention op: of rank 5 when gathered.
def SSA_AttendRows : TensorRankOf<[F32, BF16, F16], [4, 5]>;
def SSA_Gathered : TensorRankOf<[F32, BF16, F16], [5]>;
def SSA_Weight : 3DTensorOf<[F32, BF16, F16]>;
def SSA_Scores : 4DTensorOf<[F32]>;
def SSA_PerRow : 3DTensorOf<[F32]>;
def SSA_PerHead : 1DTensorOf<[F32]>;
def SSA_Indices : 4DTensorOf<[I32]>;
def SSA_Part : TensorRankOf<[F32, BF16, F16], [3, 4]>;

//===----------------------------------------------------------------------===//
// Base classes
//===----------------------------------------------------------------------===//

// Refuses attributes without a dialect prefix that the op does not define, in every form of the assembly.
def SSA_StrictAttributes : NativeOpTrait<"StrictAttributes"> { let cppNamespace = "::mlir::ssa::OpTrait"; }

class SSA_Op<string mnemonic, list<Trait> traits = []>
    : Op<SSA_Dialect, mnemonic, !listconcat(traits, [
        SSA_StrictAttributes,
        DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>,
        DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes", "reifyDimOfResult"]>])> {
  let hasVerifier = 1;
  // Asking for a dimension that does not exist is undefined behaviour of who asks, not an error.
  let extraClassDefinition = [{
    ::mlir::FailureOr<::mlir::OpFoldResult>
    $cppClass::reifyDimOfResult(::mlir::OpBuilder &builder, int result, int dim) {
      return reifyExistingDim(*this, builder, result, dim);
    }
  }];
}
// The printed dictionary is the same on every op: see Dict in SSAAssembly.h.
class SSA_I64<string default> : DefaultValuedAttr<I64Attr, default>;

//===----------------------------------------------------------------------===//
// Routing
//===----------------------------------------------------------------------===//

def SSA_ProjectOp : SSA_Op<"project", [NoMemoryEffect]> {
  let summary = "rows multiplied by one small matrix per head";
  let description = [{
    `output[b,h,n,:] = input[b,h,n,:] @ weight[h]`: the small router of low-rank routing. Either operand may have one
    head, which serves all heads of the other.

    - I1 `input`: `BxHxNxD`; I2 `weight`: `HxDxR`.
    - C1 heads are equal, or one of them is 1; C2 both have the same `D`; C3 it is at most 16384; C4 `output` is
      `BxHxNxR`.

    Example:
    ```mlir
    %a = ssa.project %q, %w : tensor<1x8x?x128xbf16>, tensor<8x128x16xbf16> -> tensor<1x8x?x16xbf16>
    ```
  }];
  let arguments = (ins SSA_Rows:$input /*project_i1*/, SSA_Weight:$weight /*project_i2*/);
  let results = (outs SSA_Rows:$output);
  let assemblyFormat = "$input `,` $weight attr-dict `:` type(operands) `->` type(results)";
}

def SSA_PoolOp : SSA_Op<"pool", [NoMemoryEffect]> {
  let summary = "one summary row per block of rows";
  let description = [{
    The mean, maximum or minimum per channel over the tokens of each block that exist; a row is multiplied by its
    scale first. NaN propagates.

    - I1 `input`: `BxHxNxD`; I2 `scales`: `BxHxN`.
    - C1 `scales` has the `B`, `H` and `N` of `input`; C2 `output` is `BxHxNbxD`, `Nb` the number of blocks.

    Example:
    ```mlir
    %kc = ssa.pool mean %k {blocks = #ssa.blocks<32, stride = 16>} : tensor<1x2x?x128xbf16> -> tensor<1x2x?x128xbf16>
    ```
  }];
  let arguments = (ins SSA_PoolKindAttr:$kind, SSA_ScaledRows:$input /*pool_i1*/,
      Optional<SSA_PerRow>:$scales /*pool_i2*/, SSA_BlocksAttr:$blocks);
  let results = (outs SSA_ScaledRows:$output);
  let assemblyFormat = [{ custom<Word>($kind) $input `` custom<Clause>($scales, "Clause::scales") ``
    custom<Dict>(attr-dict, "getOperationName()", "verifyInherentAttrs")
    `:` type(operands) `->` type(results) }];
}

def SSA_RouteOp : SSA_Op<"route", [AttrSizedOperandSegments, NoMemoryEffect]> {
  let summary = "scores of key blocks for queries";
  let description = [{
    `x = scale * (query . key)`, times the key row's entry of `scales`; `bound` uses
    `sum_d max(q_d*kmin_d, q_d*kmax_d)` for the dot. Then the score: `x * w`, `w` the entry of `weights` (1 without),
    or the region. Then `normalize = softmax` per head over the visible blocks; then `reduce` over the `Hq/G` heads of
    a selection head. `scale` defaults to `1/sqrt(D)`, `blocks` to single tokens.

    Block `j` is visible to a query at position `p` iff the mask allows it and, unless `visible = partial`, a causal
    mask does not put the block's unclipped end after `p`. Invisible blocks are `-inf` after everything else; a
    softmax row with none visible is all `-inf`; a visible NaN or `+inf` makes a softmax row NaN. With
    `query_block > 1` a row of `query` stands for a block of the queries of `for`: the mask allows what it allows to
    one of them, completeness is judged at the last one, where the row stands. `of` gives the tokens that the rows of
    `key` stand for.

    `within`: row `m` scores only the blocks of list `m*query_block / query_block(within)`, in the list's order; slots
    of padding, past the end or invisible are `-inf`.

    Score region: `(x, w, b, h, p, j)`: `f32, f32, i32, i32, i32, i32`; `p` the position, `j` the number of the block.

    - I1 `query`: `BxHqxMqxD`; I2 `key`: `BxHkxNbxD`; I3 `key_max` like `key`, exactly when `bound`; I4 `tokens`: rank
      4; I5 `queries`: rank 4; I6 `weights`: `BxHqxMq`; I7 `scales`: `BxHkxNb`; I8 `within`.
    - C1 `Hq % Hk == 0`; C2 equal `D`, equal `B`; C3 `key_max` stands exactly with `bound` and matches `key`; C4
      shapes of `weights` and `scales`; C5 `query_block >= 1`, and `queries` when it is above 1,
      `Mq = ceil(M/query_block)`; C6 `tokens` when `blocks` are not single tokens and there is a mask or a region;
      `key` has at most as many rows as they make blocks; C7 `scale` is finite; C8 the result is `BxGxMqxNb`,
      `Hq % G == 0`, `G = Hq` with `reduce = none`; C9 `within` is `sorted`, has the heads `G`, a `query_block` that
      is a multiple of the op's and a `key_block` that is a multiple of the size of `blocks`, which neither overlap
      nor are shifted, and the result's last dimension is `Kc*key_block/size`; C10 the region.

    Example:
    ```mlir
    %s = ssa.route %q, %kc of %k {blocks = #ssa.blocks<64>, mask = #ssa.mask<causal>, reduce = sum}
        : tensor<1x8x?x128xbf16>, tensor<1x2x?x128xbf16>, tensor<1x2x?x128xbf16> -> tensor<1x2x?x?xf32>
    ```
  }];
  let arguments = (ins SSA_ScaledRows:$query /*route_i1*/, SSA_ScaledRows:$key /*route_i2*/,
      Optional<SSA_ScaledRows>:$key_max /*route_i3*/, Optional<SSA_ShapeOf>:$tokens /*route_i4*/,
      Optional<SSA_ShapeOf>:$queries /*route_i5*/, Optional<SSA_PerRow>:$weights /*route_i6*/,
      Optional<SSA_PerRow>:$scales /*route_i7*/, Optional<SSA_Selection>:$within /*route_i8*/, UnitAttr:$bound,
      OptionalAttr<F64Attr>:$scale, OptionalAttr<SSA_BlocksAttr>:$blocks, SSA_I64<"1">:$query_block,
      OptionalAttr<SSA_MaskAttr>:$mask,
      DefaultValuedAttr<SSA_VisibilityAttr, "::mlir::ssa::Visibility::complete">:$visible,
      DefaultValuedAttr<SSA_NormalizationAttr, "::mlir::ssa::Normalization::none">:$normalize,
      DefaultValuedAttr<SSA_ReductionAttr, "::mlir::ssa::Reduction::none">:$reduce);
  let results = (outs SSA_Scores:$scores);
  let regions = (region MaxSizedRegion<1>:$score);
  let assemblyFormat = [{
    (`bound` $bound^)? $query `,` $key `` custom<Another>($key_max) `` custom<Clause>($tokens, "Clause::of")
    `` custom<Clause>($queries, "Clause::queries") `` custom<Clause>($weights, "Clause::weights")
    `` custom<Clause>($scales, "Clause::scales") `` custom<Clause>($within, "Clause::within")
    `` custom<Dict>(attr-dict, "getOperationName()", "verifyInherentAttrs")
    `` custom<Score>($score, "getOperationName()", "2")
    `:` type(operands) `->` type(results) }];
  let hasCanonicalizeMethod = 1;
  let extraClassDeclaration = [{
    /// The blocks that the rows of the keys stand for; single tokens without the attribute.
    BlocksAttr getBlocksOrTokens();
  }];
}

def SSA_RebinOp : SSA_Op<"rebin", [NoMemoryEffect]> {
  let summary = "scores of blocks regrouped into larger blocks";
  let description = [{
    From `from = #ssa.blocks<l, stride = d>` to `to = #ssa.blocks<L>`: `output[b]` is the sum (or maximum) of
    `input[(L/d)*b + L/d - 1 - x - y]` over `x < L/d`, `y < l/d`. With `query_block = b` the `b` rows of a query block
    are joined too. Terms out of range or `-inf` are left out; none left: `-inf`; NaN propagates.

    - I1 `input`: `BxGxMqxNb`; I2 `tokens`: rank 4.
    - C1 the kind is `sum` or `max`; C2 `stride` divides `l` and `L`, `to` does not overlap, no offsets; C3
      `query_block >= 1`; C4 `output` is `BxGxceil(Mq/query_block)xNb`, `Nb` the number of blocks of `to`; C5 equal
      `B`; C6 `input` has at most as many columns as `tokens` make blocks of `from`.

    Example:
    ```mlir
    %i = ssa.rebin sum %p of %k {from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>}
        : tensor<1x2x?x?xf32>, tensor<1x2x?x128xbf16> -> tensor<1x2x?x?xf32>
    ```
  }];
  let arguments = (ins SSA_ReductionAttr:$kind, SSA_Scores:$input /*rebin_i1*/, SSA_ShapeOf:$tokens /*rebin_i2*/,
      SSA_BlocksAttr:$from, SSA_BlocksAttr:$to, SSA_I64<"1">:$query_block);
  let results = (outs SSA_Scores:$output);
  let assemblyFormat = [{ custom<Word>($kind) $input `of` $tokens
    `` custom<Dict>(attr-dict, "getOperationName()", "verifyInherentAttrs")
    `:` type(operands) `->` type(results) }];
}

//===----------------------------------------------------------------------===//
// Selections
//===----------------------------------------------------------------------===//

def SSA_TopKOp : SSA_Op<"topk", [AttrSizedOperandSegments, NoMemoryEffect]> {
  let summary = "the k best key blocks of every query block";
  let description = [{
    Takes no block that the mask denies. Forced blocks come first and count inside `K`: the first `init_blocks`, and
    of every query of the query block its own block and the `local_blocks - 1` before it; under `within` only
    candidates. Then by score, descending in f32, ties to the lower number, `-0 = +0`, `+inf` greatest; `-inf` and NaN
    are never chosen by score. Fewer chosen: padding.

    `top_p = t`: blocks are taken while the sum of the scores before is below `t` times the sum over all that may be
    chosen; forced ones count and come first; a score counts as `max(score, 0)`, NaN and `-inf` as 0. `threshold = t`:
    only scores `>= t`, forced ones aside. A pure function of its row.

    - I1 `scores`: `BxGxMqxNb`; I2 `tokens`: rank 4; I3 `queries`: rank 4; I4 `within`.
    - C1 `queries` when `query_block > 1`; C2 `init_blocks` and `local_blocks` are not negative; C3
      `init_blocks + local_blocks + ceil((query_block-1)/key_block) <= K` where any is forced; C4 `K <= 4096`; C5
      `top_p` is in 0 .. 1, `threshold` finite; C6 the result is `sorted` and has the `B`, `G`, `Mq` of `scores`; C7
      `within` is `sorted`, has the same heads, a `query_block` and a `key_block` that are multiples of the result's,
      and `Nb = Kc*key_block(within)/key_block`; C8 without it `Nb` is at most the number of blocks of `tokens`.

    Example:
    ```mlir
    %sel = ssa.topk %s of %k {mask = #ssa.mask<causal>, init_blocks = 1, local_blocks = 2}
        : tensor<1x2x?x?xf32>, tensor<1x2x?x128xbf16> -> !ssa.selection<1x2x?x16, key_block = 64, sorted>
    ```
  }];
  let arguments = (ins SSA_Scores:$scores /*topk_i1*/, SSA_ShapeOf:$tokens /*topk_i2*/,
      Optional<SSA_ShapeOf>:$queries /*topk_i3*/, Optional<SSA_Selection>:$within /*topk_i4*/,
      OptionalAttr<SSA_MaskAttr>:$mask, SSA_I64<"0">:$init_blocks,
      SSA_I64<"0">:$local_blocks, OptionalAttr<F64Attr>:$top_p, OptionalAttr<F64Attr>:$threshold);
  let results = (outs SSA_Selection:$selection);
  let assemblyFormat = [{ $scores `of` $tokens `` custom<Clause>($queries, "Clause::queries")
    `` custom<Clause>($within, "Clause::within")
    `` custom<Dict>(attr-dict, "getOperationName()", "verifyInherentAttrs") `:` type(operands) `->` type(results) }];
}

def SSA_SortOp : SSA_Op<"sort", [Pure]> {
  let summary = "the same selection, sorted";
  let description = [{
    Ascending, unique, padding last. Numbers past the end of the keys are not known here: they stay, after all others.

    - I1 `input`: any selection.
    - C1 `output` is `sorted`; C2 it has the blocks and the `B`, `G`, `Mq` of `input`; C3 it is at least as wide.

    Example:
    ```mlir
    %b = ssa.sort %a : !ssa.selection<1x2x?x16, key_block = 64> -> !ssa.selection<1x2x?x16, key_block = 64, sorted>
    ```
  }];
  let arguments = (ins SSA_Selection:$input /*sort_i1*/);
  let results = (outs SSA_Selection:$output);
  let assemblyFormat = "$input attr-dict `:` type(operands) `->` type(results)";
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

def SSA_UnionOp : SSA_Op<"union", [Pure]> {
  let summary = "all that is in one selection or the other, sorted";
  let description = [{
    - I1 `lhs`; I2 `rhs`: selections.
    - C1 `output` is `sorted`; C2 all three have the same blocks, `B`, `G` and `Mq`; C3 `output` is at least as wide
      as both together, so that every union fits (as wide as one where both are the same value).

    Example:
    ```mlir
    %c = ssa.union %a, %b : !ssa.selection<1x2x?x4, key_block = 64>, !ssa.selection<1x2x?x16, key_block = 64>
        -> !ssa.selection<1x2x?x20, key_block = 64, sorted>
    ```
  }];
  let arguments = (ins SSA_Selection:$lhs /*union_i1*/, SSA_Selection:$rhs /*union_i2*/);
  let results = (outs SSA_Selection:$output);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type(operands) `->` type(results)";
  let hasCanonicalizeMethod = 1;
}

def SSA_FromIndicesOp : SSA_Op<"from_indices", [Pure]> {
  let summary = "an i32 tensor taken as a selection";
  let description = [{
    Nothing about the numbers is trusted: those below 0 or past the end are padding, repeats count once.

    - I1 `indices`: `BxGxMqxK` of i32.
    - C1 the selection has the shape of `indices`; C2 it is not `sorted`.

    Example:
    ```mlir
    %a = ssa.from_indices %t : tensor<1x2x?x16xi32> -> !ssa.selection<1x2x?x16, key_block = 64>
    ```
  }];
  let arguments = (ins SSA_Indices:$indices /*from_indices_i1*/);
  let results = (outs SSA_Selection:$selection);
  let assemblyFormat = "$indices attr-dict `:` type(operands) `->` type(results)";
  let hasFolder = 1;
}

def SSA_ToIndicesOp : SSA_Op<"to_indices", [Pure]> {
  let summary = "a selection as an i32 tensor";
  let description = [{
    The numbers as they stand, -1 for those below 0.

    - I1 `selection`.
    - C1 `indices` has the shape of `selection`.

    Example:
    ```mlir
    %t = ssa.to_indices %sel : !ssa.selection<1x2x?x16, key_block = 64, sorted> -> tensor<1x2x?x16xi32>
    ```
  }];
  let arguments = (ins SSA_Selection:$selection /*to_indices_i1*/);
  let results = (outs SSA_Indices:$indices);
  let assemblyFormat = "$selection attr-dict `:` type(operands) `->` type(results)";
}

def SSA_GatherOp : SSA_Op<"gather", [NoMemoryEffect]> {
  let summary = "the selected rows, one after another";
  let description = [{
    Rows that do not exist are 0. Row `i*key_block + r` of a list is row `list[i]*key_block + r` of `input`.

    - I1 `input`: `BxHkxNxD`; I2 `selection`.
    - C1 `G` and `Hk` divide one another; C2 equal `B`; C3 `output` is `Bxmax(G,Hk)xMqx(K*key_block)xD` of the same
      element type.

    Example:
    ```mlir
    %kg = ssa.gather %k at %sel : tensor<1x2x?x128xbf16>, !ssa.selection<1x2x?x16, key_block = 64, sorted>
        -> tensor<1x2x?x1024x128xbf16>
    ```
  }];
  let arguments = (ins SSA_Rows:$input /*gather_i1*/, SSA_Selection:$selection /*gather_i2*/);
  let results = (outs SSA_Gathered:$output);
  let assemblyFormat = "$input `at` $selection attr-dict `:` type(operands) `->` type(results)";
  let hasCanonicalizeMethod = 1;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

def SSA_SparseAttendOp : SSA_Op<"sparse_attend", [AttrSizedOperandSegments, NoMemoryEffect]> {
  let summary = "attention over the selected keys, with its log-sum-exp";
  let description = [{
    The keys of a query are the tokens of its selected blocks that exist and that the mask allows, each once; several
    selections are united; without `at`, all that the mask allows. `x = scale * (q . k)`, `scale` defaults to
    `1/sqrt(D)`; then the region. `o = softmax(x) v`, `lse = log sum exp x`. Empty set: `o = 0`, `lse = -inf`. A key
    whose logit is `-inf` is as if not in the set; a NaN or `+inf` logit makes its own row NaN.

    *Summaries*: with `of` and `blocks`, rows of `key` and `value` are summaries, visible by the rule of `route`, and
    selections count rows. *Gathered*: `key` and `value` of rank 5 need `of` and one selection; row `i*key_block + r`
    is taken as token `list[i]*key_block + r`; a token listed twice counts once (the first).

    Score region: `(x, b, h, p, n)`: `f32, i32, i32, i32, i32`; `n` the number of the row or token.

    - I1 `query`: `BxHqxMxD`; I2 `key`: `BxHkxNxD`, or gathered `BxHkxMqxLxD`; I3 `value` like `key` with `Dv`; I4
      `tokens`: rank 4; I5 `selections`.
    - C1 `Hq % Hk == 0`; C2 equal `B`, `D`, and the rows of `key` and `value`; C3 `Hq % G == 0` of every selection; C4
      `blocks` needs `tokens`, and `key` has at most as many rows as they make blocks; C5 gathered operands need
      `tokens` and exactly one selection, whose width times `key_block` is `L` and whose `Mq` is theirs; C6 `scale` is
      finite; C7 `output` is `BxHqxMxDv`, `lse` is `BxHqxM`; C8 the region.

    Example:
    ```mlir
    %o, %lse = ssa.sparse_attend %q, %k, %v at %sel {mask = #ssa.mask<causal>}
        : tensor<1x8x?x128xbf16>, tensor<1x2x?x128xbf16>, tensor<1x2x?x128xbf16>,
          !ssa.selection<1x2x?x16, key_block = 64, sorted>
        -> tensor<1x8x?x128xbf16>, tensor<1x8x?xf32>
    ```
  }];
  let arguments = (ins SSA_Rows:$query /*sparse_attend_i1*/, SSA_AttendRows:$key /*sparse_attend_i2*/,
      SSA_AttendRows:$value /*sparse_attend_i3*/, Optional<SSA_ShapeOf>:$tokens /*sparse_attend_i4*/,
      Variadic<SSA_Selection>:$selections /*sparse_attend_i5*/, OptionalAttr<F64Attr>:$scale,
      OptionalAttr<SSA_MaskAttr>:$mask, OptionalAttr<SSA_BlocksAttr>:$blocks);
  let results = (outs SSA_Rows:$output, SSA_PerRow:$lse);
  let regions = (region MaxSizedRegion<1>:$score);
  let assemblyFormat = [{
    $query `,` $key `,` $value `` custom<Clause>($tokens, "Clause::of") `` custom<Clause>($selections, "Clause::at")
    `` custom<Dict>(attr-dict, "getOperationName()", "verifyInherentAttrs")
    `` custom<Score>($score, "getOperationName()", "1")
    `:` type(operands) `->` type(results) }];
  let hasCanonicalizeMethod = 1;
  let extraClassDeclaration = [{
    /// The blocks that the rows of the keys stand for; single tokens without the attribute.
    BlocksAttr getBlocksOrTokens();
    /// True if keys and values are gathered rows.
    bool isGathered() { return getKey().getType().getRank() == 5; }
    /// True if values are the first columns of keys, as in multi-head latent attention.
    bool valuesAreKeys();
    /// How many pairs of a key head and a selection head there are, each for as many query heads.
    int64_t getCells();
  }];
}

def SSA_MergeOp : SSA_Op<"merge", [AttrSizedOperandSegments, NoMemoryEffect]> {
  let summary = "attention states over parts of the keys, as one softmax";
  let description = [{
    `z = log(sum exp lse_i [+ exp sink_h])`, `o = sum exp(lse_i - z) o_i`; the returned lse is without the sink. A key
    in two parts counts twice. A part with lse `-inf` adds nothing, whatever its `o`; all empty: 0 and `-inf`, sink or
    not. A sink of `-inf` is none.

    - I1 `parts`: pairs of `BxHqxMxDv` and an lse `BxHqxM` of f32; I2 `sink_logits`: `Hq`.
    - C1 at least one pair; C2 all pairs have the shape of the results; C3 `sink_logits` has `Hq` entries.

    Example:
    ```mlir
    %o, %lse = ssa.merge (%o1, %l1), (%o2, %l2) sink_logits %s
        : tensor<1x8x?x128xf32>, tensor<1x8x?xf32>, tensor<1x8x?x128xf32>, tensor<1x8x?xf32>, tensor<8xf32>
        -> tensor<1x8x?x128xbf16>, tensor<1x8x?xf32>
    ```
  }];
  let arguments = (ins Variadic<SSA_Part>:$parts /*merge_i1*/, Optional<SSA_PerHead>:$sink_logits /*merge_i2*/);
  let results = (outs SSA_Rows:$output, SSA_PerRow:$lse);
  let assemblyFormat = [{ custom<Pairs>($parts) `` custom<Clause>($sink_logits, "Clause::sinkLogits")
    `` custom<Dict>(attr-dict, "getOperationName()", "verifyInherentAttrs") `:` type(operands) `->` type(results) }];
  let hasCanonicalizeMethod = 1;
}

def SSA_MixOp : SSA_Op<"mix", [NoMemoryEffect]> {
  let summary = "the gated sum of attention outputs";
  let description = [{
    `sum sigmoid(g_i) * o_i`; with `gate = none`, `sum g_i * o_i`.

    - I1 `parts`: pairs of `BxHqxMxDv` and a gate `BxHqxM` of f32.
    - C1 at least one pair; C2 all pairs have the shape of the result.

    Example:
    ```mlir
    %o = ssa.mix (%o1, %g1), (%o2, %g2)
        : tensor<1x8x?x128xbf16>, tensor<1x8x?xf32>, tensor<1x8x?x128xbf16>, tensor<1x8x?xf32>
        -> tensor<1x8x?x128xbf16>
    ```
  }];
  let arguments = (ins Variadic<SSA_Part>:$parts /*mix_i1*/,
      DefaultValuedAttr<SSA_GateAttr, "::mlir::ssa::Gate::sigmoid">:$gate);
  let results = (outs SSA_Rows:$output);
  let assemblyFormat = [{ custom<Pairs>($parts) `` custom<Dict>(attr-dict, "getOperationName()", "verifyInherentAttrs")
    `:` type(operands) `->` type(results) }];
}

def SSA_YieldOp : Op<SSA_Dialect, "yield", [SSA_StrictAttributes, Pure, ReturnLike, Terminator,
                                            ParentOneOf<["RouteOp", "SparseAttendOp"]>]> {
  let summary = "ends a score region";
  let description = [{
    Gives the score of one pair of query and key.

    - I1 `value`: the score, an f32.

    Example:
    ```mlir
    %s = ssa.route %q, %k {reduce = sum} score (%x, %w, %b, %h, %p, %j) {
      %r = math.absf %x : f32
      ssa.yield %r : f32
    } : tensor<1x8x?x128xbf16>, tensor<1x1x?x128xbf16> -> tensor<1x1x?x?xf32>
    ```
  }];
  let arguments = (ins F32:$value /*yield_i1*/);
  let assemblyFormat = "$value attr-dict `:` type(operands)";
}

#endif // SSA_OPS_TD
