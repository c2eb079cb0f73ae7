// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SSA_ATTRS_TD
#define SSA_ATTRS_TD

include "ssa/IR/SSABase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class SSA_Attr<string name, string mnemo> : AttrDef<SSA_Dialect, name> {
  let mnemonic = mnemo;
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def SSA_BlocksAttr : SSA_Attr<"Blocks", "blocks"> {
  let summary = "a division of the keys into blocks";
  let description = [{
    Block `j` covers the tokens `j*stride+offset .. j*stride+offset+size-1` that exist. `stride` defaults to `size`, `offset` to 0;
    `0 < stride <= size` and `-size < offset <= 0`. With `stride == size` there are `ceil((N-offset)/size)` blocks, none when
    `N = 0`; with `stride < size` only whole ones, `max(floor((N-offset-size)/stride)+1, 0)`.

    Example: `#ssa.blocks<64>`, `#ssa.blocks<32, stride = 16>`, `#ssa.blocks<8, stride = 4, offset = -4>`.
  }];
  let parameters = (ins "int64_t":$size, "int64_t":$stride, "int64_t":$offset);
  let builders = [AttrBuilder<(ins "int64_t":$size), [{ return $_get($_ctxt, size, size, 0); }]>];
  let extraClassDeclaration = [{
    /// The number of blocks of `tokens` tokens.
    int64_t getNumBlocks(int64_t tokens) const;
    /// The first token of block `j`; negative where it does not exist.
    int64_t getBegin(int64_t j) const { return j * getStride() + getOffset(); }
    /// One past the last token of block `j`, whether it exists or not (the *unclipped* end).
    int64_t getEnd(int64_t j) const { return getBegin(j) + getSize(); }
    /// True if the blocks neither overlap nor are shifted.
    bool isPartition() const { return getStride() == getSize() && getOffset() == 0; }
    /// True if every block is one token.
    bool isTokens() const { return getSize() == 1; }
  }];
}

def SSA_MaskAttr : SSA_Attr<"Mask", "mask"> {
  let summary = "which keys a query may see";
  let description = [{
    Key `n` is allowed to a query at position `p` iff (not `causal` or `n <= p`) and (no `window`, or `p-n < window` and, if
    not causal, `n-p < window`, or `n < sink`). A window counts the query itself. `sink` counts tokens and needs a window.

    Example: `#ssa.mask<causal>`, `#ssa.mask<causal, window = 512, sink = 4>`, `#ssa.mask<window = 512>`.
  }];
  // A window of 0 is none; the assembly refuses to write it.
  let parameters = (ins "bool":$causal, "int64_t":$window, "int64_t":$sink);
}

class SSA_Enum<string name, string about, list<I32EnumAttrCase> cases> : I32EnumAttr<name, about, cases> {
  let cppNamespace = "::mlir::ssa";
  let genSpecializedAttr = 0;
}
def SSA_PoolKind : SSA_Enum<"PoolKind", "what a summary keeps of its block",
    [I32EnumAttrCase<"mean", 0>, I32EnumAttrCase<"max", 1>, I32EnumAttrCase<"min", 2>]>;
def SSA_Reduction : SSA_Enum<"Reduction", "how scores are joined",
    [I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"sum", 1>, I32EnumAttrCase<"max", 2>]>;
def SSA_Normalization : SSA_Enum<"Normalization", "how the scores of a row are normalized",
    [I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"softmax", 1>]>;
def SSA_Visibility : SSA_Enum<"Visibility", "which blocks a causal query sees",
    [I32EnumAttrCase<"complete", 0>, I32EnumAttrCase<"partial", 1>]>;
def SSA_Gate : SSA_Enum<"Gate", "what is done to gates", [I32EnumAttrCase<"sigmoid", 0>, I32EnumAttrCase<"none", 1>]>;

def SSA_PoolKindAttr : EnumAttr<SSA_Dialect, SSA_PoolKind, "pool_kind">;
def SSA_ReductionAttr : EnumAttr<SSA_Dialect, SSA_Reduction, "reduction">;
def SSA_NormalizationAttr : EnumAttr<SSA_Dialect, SSA_Normalization, "normalization">;
def SSA_VisibilityAttr : EnumAttr<SSA_Dialect, SSA_Visibility, "visibility">;
def SSA_GateAttr : EnumAttr<SSA_Dialect, SSA_Gate, "gate">;

#endif // SSA_ATTRS_TD
