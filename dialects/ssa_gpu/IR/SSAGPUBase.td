// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SSA_GPU_BASE_TD
#define SSA_GPU_BASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def SSAGPU_Dialect : Dialect {
  let name = "ssa_gpu";
  let cppNamespace = "::mlir::ssa_gpu";
  let summary = "tiles of a thread block";
  let description = [{
    What a kernel does with tiles: matrix products, reductions along rows, asynchronous copies of gathered rows. All threads of
    the block take part in every op, or all threads of a role: `ssa_gpu.roles` splits the block into groups of warps that run programs of
    their own and meet at pipes.

    A tile in registers is a builtin tensor whose encoding says how it is spread over threads, so `arith` and `math` apply to
    tiles as they are. The set of layouts is closed:

    | type | is | a thread holds |
    | --- | --- | --- |
    | `tensor<MxNxT, #ssa_gpu.accumulator>` | result of a matrix product | `N/2` values (`N/2/G` with `<groups = G>`): of rows `l/4` and `l/4 + 8` of its warp's 16 rows, columns `8j + 2*(l%4)` and the next |
    | `tensor<MxT, #ssa_gpu.rows>` | one value per row of an accumulator | 2 values |
    | `tensor<MxNxT, #ssa_gpu.accumulator<folds = F>>`, `tensor<MxT, #ssa_gpu.rows<folds = F>>` | an accumulator of `F*M` rows of which `F` each have been joined | `N/2/F` values (`/G` with `<groups = G>`) of one row, or one |
    | `tensor<MxNxT, #ssa_gpu.accumulator<rowwise = true>>`, `tensor<MxT, #ssa_gpu.rows<rowwise = true>>` | what is read from tensor memory, one value per row of it | all `N` values of row number `t`, or one: thread `t`; with `<groups = 2>` half of the values, thread `t` and `t + M` |
    | `tensor<MxKxT, #ssa_gpu.operand>` | left operand of a matrix product | `K/2` values |
    | `tensor<Rxi64, #ssa_gpu.places<P>>` | where rows of `P` pieces lie that are to be copied | those that its lane finds for the warp |

    `M` is 16 times the number of warps of the block, role or group, where a thread has a row 32 times; lane `l` of a warp. A tile in shared memory is a `!ssa_gpu.shared`: rows of 128 bytes, a panel of
    64 columns of 16 bits (128 of 8 bits) after another, the 16-byte pieces of row `r` exchanged by `r % 8` (the hardware's 128-byte swizzle). A tile in tensor
    memory is a `!ssa_gpu.tensor_memory`: products by `tcgen05` leave their results there.

    With the attribute `ssa_gpu.pair` of a kernel its blocks run in *pairs* (clusters of two) that make products together: each has half of the rows of the
    left operand and of the result, and half of the columns of the right operand. Both blocks run the same ops; a product begins in the first, once the
    second has come to it as well.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

//===----------------------------------------------------------------------===//
// Attributes and types
//===----------------------------------------------------------------------===//

class SSAGPU_Attr<string name, string mnemo> : AttrDef<SSAGPU_Dialect, name> { let mnemonic = mnemo; }
def SSAGPU_AccumulatorAttr : SSAGPU_Attr<"Accumulator", "accumulator"> {
  let summary = "layout of the result of a matrix product";
  let description = [{
    With `groups` the warps are so many groups that hold all rows each, and an equal share of the columns: what lets rows be longer than
    the registers of one warp. With `rowwise` a thread has a whole row, as in tensor memory.

    With `folds = F`, a power of two, rows have been joined that `F/2` warps have side by side and each of them 8 rows apart: these warps have the same eight
    rows, number `l/4` of them is that of lane `l`, and an equal share of the columns each, `8j + 2*(l%4)` and the next of it; the lowest bit
    of the warp's number says which half of a group's columns it is in, the next one which half of this.
  }];
  let parameters = (ins DefaultValuedParameter<"int64_t", "1">:$groups, DefaultValuedParameter<"bool", "false">:$rowwise,
                        DefaultValuedParameter<"int64_t", "1">:$folds);
  let assemblyFormat = "(`<` struct(params)^ `>`)?";
}
def SSAGPU_RowsAttr : SSAGPU_Attr<"Rows", "rows"> {
  let summary = "layout of one value per row of an accumulator";
  let parameters = (ins DefaultValuedParameter<"bool", "false">:$rowwise, DefaultValuedParameter<"int64_t", "1">:$folds);
  let assemblyFormat = "(`<` struct(params)^ `>`)?";
}
def SSAGPU_OperandAttr : SSAGPU_Attr<"Operand", "operand"> { let summary = "layout of the left operand of a matrix product"; }

def SSAGPU_PlacesAttr : SSAGPU_Attr<"Places", "places"> {
  let summary = "layout of the places of rows that are to be copied";
  let description = "Each is with a lane of the warp that copies the row, in an order that suits rows of so many `pieces`.";
  let parameters = (ins "int64_t":$pieces);
  let assemblyFormat = "`<` $pieces `>`";
  let extraClassDeclaration = [{
    /// How many lanes copy a row: of many pieces those of 128 bytes, one after another, so that a lane needs the places of few rows.
    static int64_t getLanesOfRow(int64_t pieces) { return pieces < 32 ? pieces : ::std::gcd(pieces, int64_t(8)); }
    /// Rows that the lanes of a warp copy at once: all that the order depends on.
    static int64_t getRowsOfWarp(int64_t pieces) { return 32 / getLanesOfRow(pieces); }
  }];
}

def SSAGPU_SharedType : TypeDef<SSAGPU_Dialect, "Shared"> {
  let mnemonic = "shared";
  let summary = "memory of a thread block";
  let description = [{
    `!ssa_gpu.shared<64x128xbf16>`: a tile, `!ssa_gpu.shared<64xi32>`: an array; a leading dimension more on either makes it a ring of
    them. Elements of tiles have 16 bits, or 8 for products by `tcgen05` and `wgmma`; a panel has 128 columns then.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getElementBytes() const { return getElementType().getIntOrFloatBitWidth() / 8; }
    bool isTile() const { return getElementType().getIntOrFloatBitWidth() <= 16; }
    /// Columns of a panel, and of 16 bytes of it.
    int64_t getPanelColumns() const { return 1024 / getElementType().getIntOrFloatBitWidth(); }
    int64_t getPieceColumns() const { return 128 / getElementType().getIntOrFloatBitWidth(); }
    /// The bytes of a row of so many columns: panels are whole.
    static int64_t getRowBytes(int64_t columns, Type elementType) {
      return (columns * elementType.getIntOrFloatBitWidth() + 1023) / 1024 * 128;
    }
    /// The bytes of one tile or array, without the dimension of a ring.
    int64_t getSlotBytes() const;
    int64_t getNumSlots() const;
    int64_t getBytes() const { return getSlotBytes() * getNumSlots(); }
    bool isRing() const { return getShape().size() == (isTile() ? 3u : 2u); }
  }];
}

def SSAGPU_TensorMemoryType : TypeDef<SSAGPU_Dialect, "TensorMemory"> {
  let mnemonic = "tensor_memory";
  let summary = "a tile in tensor memory, or a ring of them";
  let description = [{
    `!ssa_gpu.tensor_memory<128x64xf32>`: results of products, or, of 16 bits, left operands; a leading dimension more makes it a ring. Tensor memory
    has 128 lanes of 512 columns of 32 bits. Row `r` of a tile is lane `r % 128`; rows from 128 on lie behind those before, in columns of their own. Two
    elements of 16 bits share a column. A tile of 64 rows is what a block has of the result of a pair: the first half of its columns is in lanes 0 to 63,
    the second in lanes 64 to 127.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static constexpr int64_t lanes = 128, maxColumns = 512;
    /// Rows of a block of a pair.
    static constexpr int64_t rowsOfPair = 64;
    bool isOfPair() const { return getRows() == rowsOfPair; }
    bool isRing() const { return getShape().size() == 3; }
    int64_t getRows() const { return getShape()[getShape().size() - 2]; }
    /// Columns of 32 bits that 128 rows of a tile take, and all rows of it, and all tiles of a ring.
    int64_t getColumnsOfLanes() const { return getShape().back() / (isOfPair() ? 2 : 1) * getElementType().getIntOrFloatBitWidth() / 32; }
    int64_t getColumnsOfSlot() const { return (isOfPair() ? 1 : getRows() / lanes) * getColumnsOfLanes(); }
    int64_t getColumns() const { return isRing() ? getShape().front() * getColumnsOfSlot() : getColumnsOfSlot(); }
  }];
}

def SSAGPU_PipeType : TypeDef<SSAGPU_Dialect, "Pipe"> {
  let mnemonic = "pipe";
  let summary = "the barriers of a ring";
  let description = [{
    `!ssa_gpu.pipe<3>`: for each of three slots a barrier that says it is full and one that says it is empty. With `pair = true` one more,
    by which the first block of a pair hears that the slot of the second one is there too. With `copies = true` a slot is full once all copies are done
    that its producers had begun when they published it; they need not wait for these.
  }];
  let parameters = (ins "int64_t":$slots, DefaultValuedParameter<"bool", "false">:$pair, DefaultValuedParameter<"bool", "false">:$copies);
  let assemblyFormat = "`<` $slots (`,` struct($pair, $copies)^)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = "int64_t getBytes() const { return (getPair() ? 24 : 16) * getSlots(); }";
}

def SSAGPU_Accumulator : Type<CPred<"::mlir::ssa_gpu::hasLayout<::mlir::ssa_gpu::AccumulatorAttr>($_self)">, "accumulator tile", "::mlir::RankedTensorType">;
def SSAGPU_RowVector : Type<CPred<"::mlir::ssa_gpu::hasLayout<::mlir::ssa_gpu::RowsAttr>($_self)">, "row tile", "::mlir::RankedTensorType">;
def SSAGPU_Operand : Type<CPred<"::mlir::ssa_gpu::hasLayout<::mlir::ssa_gpu::OperandAttr>($_self)">, "operand tile", "::mlir::RankedTensorType">;

def SSAGPU_Places : Type<CPred<"::mlir::ssa_gpu::hasLayout<::mlir::ssa_gpu::PlacesAttr>($_self)">, "places of rows", "::mlir::RankedTensorType">;

class SSAGPU_Enum<string name, string about, list<I32EnumAttrCase> cases> : I32EnumAttr<name, about, cases> {
  let cppNamespace = "::mlir::ssa_gpu";
  let genSpecializedAttr = 0;
}
def SSAGPU_Family : SSAGPU_Enum<"Family", "instructions for matrix products", [I32EnumAttrCase<"mma_sync", 0>, I32EnumAttrCase<"wgmma", 1>]>;
def SSAGPU_FamilyAttr : EnumAttr<SSAGPU_Dialect, SSAGPU_Family, "family">;
def SSAGPU_RowReduction : SSAGPU_Enum<"RowReduction", "how a row is reduced", [I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"max", 1>]>;
def SSAGPU_RowReductionAttr : EnumAttr<SSAGPU_Dialect, SSAGPU_RowReduction, "row_reduction">;
def SSAGPU_RowChange : SSAGPU_Enum<"RowChange", "how the elements of a row change", [I32EnumAttrCase<"scale", 0>, I32EnumAttrCase<"subtract", 1>]>;
def SSAGPU_RowChangeAttr : EnumAttr<SSAGPU_Dialect, SSAGPU_RowChange, "row_change">;

#endif // SSA_GPU_BASE_TD
