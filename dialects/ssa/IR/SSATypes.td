// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SSA_TYPES_TD
#define SSA_TYPES_TD

include "ssa/IR/SSABase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"

def SSA_SelectionType : TypeDef<SSA_Dialect, "Selection", [ShapedTypeInterface]> {
  let mnemonic = "selection";
  let summary = "lists of the key blocks that queries selected";
  let description = [{
    `!ssa.selection<BxGxMqxK, key_block = 64, query_block = 1, sorted>`: for each of `Mq = ceil(M/query_block)` query
    blocks up to `K` key-block numbers. A *set*: order and repeats change nothing. Numbers below 0 or past the end are
    padding. `sorted` promises ascending, unique, padding last. In memory an `i32` tensor `BxGxMqxK`, -1 where
    padding. `Mq` may be 1 to serve every query. `key_block` and `query_block` default to 1.

    - C1 the rank is 4; C2 sizes are below 2^31; C3 `G` is static and at least 1; C4 `K` is static; C5 `key_block` and
      C6 `query_block` are in 1 .. 2^31-1.

    Example: `!ssa.selection<1x2x?x16, key_block = 64, sorted>`,
    `!ssa.selection<?x2x?x0, key_block = 1, query_block = 16>`.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "int64_t":$keyBlock, "int64_t":$queryBlock,
      "bool":$sorted);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    // ShapedTypeInterface: in memory a selection is an i32 tensor.
    ::mlir::Type getElementType() const;
    bool hasRank() const { return true; }
    ::mlir::ShapedType cloneWith(std::optional<::llvm::ArrayRef<int64_t>> shape, ::mlir::Type elementType) const;

    int64_t getHeads() const { return getShape()[1]; }
    int64_t getWidth() const { return getShape()[3]; }
    /// The i32 tensor type that holds it.
    ::mlir::RankedTensorType getIndicesType() const;
  }];
}

// The same as a constraint, with the remedy for what people write in its place.
def SSA_Selection : Type<CPred<"::llvm::isa<::mlir::ssa::SelectionType>($_self)">,
    "selection (of an i32 tensor 'ssa.from_indices' makes one)", "::mlir::ssa::SelectionType">;

#endif // SSA_TYPES_TD
