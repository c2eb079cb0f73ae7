// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SSA_GPU_OPS_TD
#define SSA_GPU_OPS_TD

include "ssa_gpu/IR/SSAGPUBase.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

//===----------------------------------------------------------------------===//
// Memory and copies
//===----------------------------------------------------------------------===//

class SSAGPU_Op<string mnemonic, list<Trait> traits = []> : Op<SSAGPU_Dialect, mnemonic, traits>;
class SSAGPU_RegionOp<string mnemonic, list<Trait> traits = []>
    : SSAGPU_Op<mnemonic, !listconcat(traits, [SingleBlock])> {
  let regions = (region SizedRegion<1>:$body);
  let hasVerifier = 1;
}

def SSAGPU_YieldOp : SSAGPU_Op<"yield", [Pure, ReturnLike, Terminator]> {
  let summary = "ends the region of an op";
  let arguments = (ins Variadic<AnyType>:$values);
  let builders = [OpBuilder<(ins), "build($_builder, $_state, ValueRange());">];
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def SSAGPU_AllocOp : SSAGPU_Op<"alloc", [MemoryEffects<[MemAlloc]>]> {
  let summary = "shared memory for a tile, an array or a ring of them";
  let description = [{
    `offset`, in bytes, is given by `ssa-gpu-allocate`.

    Example: `%k = ssa_gpu.alloc : !ssa_gpu.shared<3x64x128xbf16>`
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$offset);
  let results = (outs SSAGPU_SharedType:$memory);
  let assemblyFormat = "attr-dict `:` type($memory)";
}

def SSAGPU_SlotOp : SSAGPU_Op<"slot", [Pure]> {
  let summary = "one tile or array of a ring";
  let description = "Example: `%t = ssa_gpu.slot %ring[%i] : !ssa_gpu.shared<3x64x128xbf16> -> !ssa_gpu.shared<64x128xbf16>`";
  let arguments = (ins AnyTypeOf<[SSAGPU_SharedType, SSAGPU_TensorMemoryType]>:$ring, I32:$index);
  let results = (outs AnyTypeOf<[SSAGPU_SharedType, SSAGPU_TensorMemoryType]>:$slot);
  let assemblyFormat = "$ring `[` $index `]` attr-dict `:` type($ring) `->` type($slot)";
  let hasVerifier = 1;
}

def SSAGPU_AllocTensorsOp : SSAGPU_Op<"alloc_tensors", [MemoryEffects<[MemAlloc]>]> {
  let summary = "tensor memory of a kernel";
  let description = [{
    All that a kernel uses of it, at once and before `roles`: waits, for all threads of the block, until it is there. Every such op has its `free_tensors`. Tiles lie
    behind one another; what is allocated is a power of two of columns. `offset`, in bytes of shared memory, is given by `ssa-gpu-allocate`: there the
    hardware writes where tensor memory begins.

    Example: `%s, %o = ssa_gpu.alloc_tensors : !ssa_gpu.tensor_memory<2x128x64xf32>, !ssa_gpu.tensor_memory<128x128xf32>`
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$offset);
  let results = (outs Variadic<SSAGPU_TensorMemoryType>:$memory);
  let assemblyFormat = "attr-dict `:` type($memory)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The columns that tiles of these types take together, and what is allocated for them.
    static int64_t getColumns(TypeRange types);
    static int64_t getAllocatedColumns(TypeRange types);
  }];
}

def SSAGPU_FreeTensorsOp : SSAGPU_Op<"free_tensors", [MemoryEffects<[MemFree]>]> {
  let summary = "free what `alloc_tensors` gave, once all threads of the block are here";
  let arguments = (ins Variadic<SSAGPU_TensorMemoryType>:$memory);
  let assemblyFormat = "$memory attr-dict `:` type($memory)";
}

def SSAGPU_ColumnsOp : SSAGPU_Op<"columns", [Pure]> {
  let summary = "some columns of a tile, as a tile";
  let description = [{
    They begin at column `first`, a multiple of 64 (of 128 where elements have 8 bits).

    Example: `%p = ssa_gpu.columns %t {first = 64 : i64} : !ssa_gpu.shared<64x192xf16> -> !ssa_gpu.shared<64x128xf16>`
  }];
  let arguments = (ins SSAGPU_SharedType:$tile, I64Attr:$first);
  let results = (outs SSAGPU_SharedType:$part);
  let assemblyFormat = "$tile attr-dict `:` type($tile) `->` type($part)";
  let hasVerifier = 1;
}

def SSAGPU_FindRowsOp : SSAGPU_RegionOp<"find_rows", [RecursiveMemoryEffects]> {
  let summary = "find the places of rows";
  let description = [{
    For every row `r` of a tile the region yields where the row begins in a buffer, in elements from its start, and whether it is to be read.
  }];
  let results = (outs SSAGPU_Places:$places);
  let assemblyFormat = "$body attr-dict `:` type($places)";
}

def SSAGPU_CopyRowsOp : SSAGPU_Op<"copy_rows", []> {
  let summary = "gather rows of a buffer into a tile, asynchronously";
  let description = [{
    The tile's first column is column `first` of the rows. Rows that are not to be read, and columns from `columns` of the tile on, become 0. `width` elements
    are copied at a time: rows of the tile have so many pieces. Done when `wait_copies` has seen the group that `commit_copies` closed. Where `rare` is said
    few instructions count for more than the time.
  }];
  let arguments = (ins AnyMemRef:$source, SSAGPU_Places:$places, SSAGPU_SharedType:$tile, I64Attr:$columns, I64Attr:$width, UnitAttr:$rare,
      DefaultValuedAttr<I64Attr, "0">:$first);
  let assemblyFormat = "$source `at` $places `to` $tile attr-dict `:` type($source) `,` type($places) `,` type($tile)";
  let hasVerifier = 1;
}

def SSAGPU_CopyBlockOp : SSAGPU_Op<"copy_block", []> {
  let summary = "copy neighbouring rows of a buffer into a tile, asynchronously";
  let description = [{
    As `copy_rows` where all rows are read and row `r` begins at `begin + r * stride`, in elements from the start of `source`.
  }];
  let arguments = (ins AnyMemRef:$source, Index:$begin, Index:$stride, SSAGPU_SharedType:$tile, I64Attr:$columns, I64Attr:$width);
  let assemblyFormat = "$source `[` $begin `]` `stride` $stride `to` $tile attr-dict `:` type($source) `,` type($tile)";
}

def SSAGPU_FetchAheadOp : SSAGPU_Op<"fetch_ahead"> {
  let summary = "bring what is read soon to the second-level cache";
  let description = "Nobody waits. `bytes` from element `begin` of the buffer on, which the threads of the role or block share.";
  let arguments = (ins AnyMemRef:$source, Index:$begin, I64Attr:$bytes);
  let assemblyFormat = "$source `[` $begin `]` attr-dict `:` type($source)";
}

def SSAGPU_ConvertRowsOp : SSAGPU_Op<"convert_rows", []> {
  let summary = "gather rows of a buffer into a tile through registers, converted to the tile's element type";
  let description = [{
    As `copy_rows`, but done when the op is, for this thread; others see it after a `barrier` or `wait_copies`. The source has elements
    of 8 bits, each of which is exact in the tile's type.
  }];
  let arguments = (ins AnyMemRef:$source, SSAGPU_Places:$places, SSAGPU_SharedType:$tile, I64Attr:$columns, I64Attr:$width);
  let assemblyFormat = "$source `at` $places `to` $tile attr-dict `:` type($source) `,` type($places) `,` type($tile)";
  let hasVerifier = 1;
}

def SSAGPU_OrderOp : SSAGPU_Op<"order"> {
  let summary = "exchange values of two tiles in shared memory: the smaller to the first, the larger to the second";
  let description = "NaN goes to both. Seen by other threads after a `barrier` or `wait_copies`.";
  let arguments = (ins SSAGPU_SharedType:$low, SSAGPU_SharedType:$high);
  let assemblyFormat = "$low `,` $high attr-dict `:` type($low) `,` type($high)";
  let hasVerifier = 1;
}

def SSAGPU_FillOp : SSAGPU_RegionOp<"fill", []> {
  let summary = "write an array in shared memory";
  let description = "Entry `i` becomes what the region yields for it. Seen by other threads after a `barrier`.";
  let arguments = (ins SSAGPU_SharedType:$array);
  let assemblyFormat = "$array $body attr-dict `:` type($array)";
}

def SSAGPU_LoadEntryOp : SSAGPU_Op<"load_entry", [MemoryEffects<[MemRead]>]> {
  let summary = "one entry of an array in shared memory";
  let description = "With a vector as result so many from there on, which is a multiple of their number.";
  let arguments = (ins SSAGPU_SharedType:$array, I32:$index);
  let results = (outs AnyType:$value);
  let assemblyFormat = "$array `[` $index `]` attr-dict `:` type($array) `->` type($value)";
}

def SSAGPU_CommitCopiesOp : SSAGPU_Op<"commit_copies"> {
  let summary = "close a group of copies";
  let assemblyFormat = "attr-dict";
}

def SSAGPU_WaitCopiesOp : SSAGPU_Op<"wait_copies"> {
  let summary = "wait until at most `pending` groups of this thread's copies are under way, then for all threads of the block";
  let description = "Afterwards all threads see the tiles of all older groups, also as operands of matrix products.";
  let arguments = (ins I64Attr:$pending);
  let assemblyFormat = "$pending attr-dict";
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

def SSAGPU_RolesOp : SSAGPU_Op<"roles", [NoRegionArguments, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "groups of warps that run programs of their own";
  let description = [{
    The first `threads[0]` threads of the block run the first region, the next `threads[1]` the second, and so on; inside, ops are those of
    the role's threads alone. A role is whole warps. `registers` is how many registers a thread of the role gets, in place of an equal share. A role
    begins where the one before ends if both have as many, else at the next warpgroup of 128 threads; a kernel has at most one such op, at its top,
    and nothing after it but `free_tensors`.

    Example: `ssa_gpu.roles threads [256, 128] registers [232, 40] {..}, {..}`
  }];
  let arguments = (ins DenseI32ArrayAttr:$threads, DenseI32ArrayAttr:$registers);
  let regions = (region VariadicRegion<SizedRegion<1>>:$programs);
  let assemblyFormat = "`threads` $threads `registers` $registers $programs attr-dict";
  let hasVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "ArrayRef<int32_t>":$threads, "ArrayRef<int32_t>":$registers)>];
  let extraClassDeclaration = [{
    static constexpr int32_t warpgroup = 128;
    int32_t getFirstThread(unsigned role);
  }];
}

def SSAGPU_AllocPipeOp : SSAGPU_Op<"alloc_pipe", [MemoryEffects<[MemAlloc]>]> {
  let summary = "the barriers by which two roles hand over the slots of rings";
  let description = [{
    Slots go round: the `producers` warps of one role `acquire` a slot, write to it and `publish` it; the `consumers` warps of
    another role `await` it, read and `release` it. At first all slots are empty. Both sides count with a *ticket* of their own,
    from 0 to twice the number of slots and round again: ticket `t` is slot `t mod slots`. Stands before `roles`.
    `offset`, in bytes, is given by `ssa-gpu-allocate`.

    Example: `%p = ssa_gpu.alloc_pipe {producers = 4 : i64, consumers = 8 : i64} : !ssa_gpu.pipe<2>`
  }];
  let arguments = (ins I64Attr:$producers, I64Attr:$consumers, OptionalAttr<I64Attr>:$offset);
  let results = (outs SSAGPU_PipeType:$pipe);
  let assemblyFormat = "attr-dict `:` type($pipe)";
}

def SSAGPU_BarrierOp : SSAGPU_Op<"barrier"> {
  let summary = "wait for all threads of the block or, inside a role, of that";
  let description = "Afterwards all see what any wrote to shared memory before, also as operands of matrix products.";
  let assemblyFormat = "attr-dict";
}

class SSAGPU_PipeOp<string mnemonic> : SSAGPU_Op<mnemonic> {
  let arguments = (ins SSAGPU_PipeType:$pipe, I32:$ticket);
  let assemblyFormat = "$pipe `[` $ticket `]` attr-dict `:` type($pipe)";
}
class SSAGPU_TakeOp<string mnemonic> : SSAGPU_Op<mnemonic> {
  let arguments = (ins SSAGPU_PipeType:$pipe, I32:$ticket, UnitAttr:$pair);
  let assemblyFormat = "$pipe `[` $ticket `]` (`in` `pair` $pair^)? attr-dict `:` type($pipe)";
  let hasVerifier = 1;
}
class SSAGPU_ArriveOp<string mnemonic> : SSAGPU_Op<mnemonic> {
  let arguments = (ins SSAGPU_PipeType:$pipe, I32:$ticket, UnitAttr:$products);
  let assemblyFormat = "$pipe `[` $ticket `]` (`after` `products` $products^)? attr-dict `:` type($pipe)";
}
def SSAGPU_AcquireOp : SSAGPU_TakeOp<"acquire"> {
  let summary = "wait until the slot of a ticket is empty";
  let description = "With `in pair`, in the first block of a pair, until it is in both.";
}
def SSAGPU_AwaitEmptyOp : SSAGPU_PipeOp<"await_empty"> {
  let summary = "wait until the slot of a ticket is empty, without taking it";
  let description = "For the role that fills slots: what others did with what was there has come to its end.";
}
def SSAGPU_PublishOp : SSAGPU_ArriveOp<"publish"> {
  let summary = "say that a slot is full";
  let description = [{
    It is once all earlier writes of the producers are done: those of `copy_box` to this slot are waited for by nobody here; other copies have
    to be finished by `finish_copies`, unless the pipe is one of `copies`. With `after products` it is once the products of `mma_tensor` that this role has begun are done, which nobody waits for
    here; that counts for one warp.
  }];
}
def SSAGPU_AwaitOp : SSAGPU_TakeOp<"await"> {
  let summary = "wait until the slot of a ticket is full";
  let description = [{
    Afterwards its content is seen, also by matrix products. With `in pair`, in the first block of a pair, until it is full in both: one role awaits or
    acquires slots of such a pipe so, by one of the two ops.
  }];
}
def SSAGPU_ReleaseOp : SSAGPU_ArriveOp<"release"> {
  let summary = "say that all earlier reads from a slot are done";
  let description = "With `after products`: once those of the products of `mma_tensor` are, as for `publish`.";
}

def SSAGPU_FinishCopiesOp : SSAGPU_Op<"finish_copies"> {
  let summary = "wait until at most `pending` groups of this thread's copies are under way";
  let description = "Others see what was copied after a `publish`, also as operands of matrix products.";
  let arguments = (ins I64Attr:$pending);
  let assemblyFormat = "$pending attr-dict";
}

def SSAGPU_CopyBoxOp : SSAGPU_Op<"copy_box", []> {
  let summary = "copy a box of a tensor into a slot, by the tensor memory accelerator";
  let description = [{
    The box of `map` at `at`, outermost first, is some rows of the tile, from `first_row` on, a multiple of 8, and the columns of a panel; it is copied for
    every panel of the tile, from column `first_column` of the tensor on, and what is outside of it becomes 0. The rows are those that the map says. Part of
    what makes the slot of `ticket` full.

    Example: `ssa_gpu.copy_box %map[%b, %h, %n] to %tile through %pipe[%ticket] : !map, !ssa_gpu.shared<128x128xbf16>, !ssa_gpu.pipe<2>`
  }];
  let arguments = (ins AnyType:$map, Variadic<I32>:$at, SSAGPU_SharedType:$tile, SSAGPU_PipeType:$pipe, I32:$ticket,
      DefaultValuedAttr<I64Attr, "0">:$first_row, DefaultValuedAttr<I64Attr, "0">:$first_column);
  let assemblyFormat = [{
    $map `[` $at `]` `to` $tile `through` $pipe `[` $ticket `]` attr-dict `:` type($map) `,` type($tile) `,` type($pipe)
  }];
  let hasVerifier = 1;
}

def SSAGPU_GatherBoxOp : SSAGPU_RegionOp<"gather_box", []> {
  let summary = "gather rows of a tensor into a slot, by the tensor memory accelerator";
  let description = [{
    For every row of the tile the region yields which row of `map`, a tensor of two dimensions, it is, an i32; a row outside of it becomes 0. Columns
    begin at `column`. Part of what makes the slot of `ticket` full, as `copy_box`. Four rows and a panel are an instruction.

    Example:
    ```
    ssa_gpu.gather_box %map[%column] to %tile through %pipe[%ticket] {
    ^bb0(%row: i32):
      ssa_gpu.yield %row : i32
    } : !map, !ssa_gpu.shared<64x64xbf16>, !ssa_gpu.pipe<2>
    ```
  }];
  let arguments = (ins AnyType:$map, I32:$column, SSAGPU_SharedType:$tile, SSAGPU_PipeType:$pipe, I32:$ticket);
  let assemblyFormat = [{
    $map `[` $column `]` `to` $tile `through` $pipe `[` $ticket `]` $body attr-dict `:` type($map) `,` type($tile) `,` type($pipe)
  }];
}

//===----------------------------------------------------------------------===//
// Products and tiles in registers
//===----------------------------------------------------------------------===//

def SSAGPU_LoadOperandOp : SSAGPU_Op<"load_operand", [MemoryEffects<[MemRead]>]> {
  let summary = "a tile in shared memory as left operand in registers";
  let arguments = (ins SSAGPU_SharedType:$tile);
  let results = (outs SSAGPU_Operand:$operand);
  let assemblyFormat = "$tile attr-dict `:` type($tile) `->` type($operand)";
}

def SSAGPU_LoadQuadsOp : SSAGPU_Op<"load_quads", [MemoryEffects<[MemRead]>]> {
  let summary = "rows in quads, which are a tile in shared memory, in registers";
  let description = [{
    The columns of the tile stand in the order that `in_quads` of `store_rows` says, of 16 bits each, so that every thread reads what it has of an accumulator 16 bytes at a time. A row
    whose bit in `counts` is not set is zeros, whatever the tile holds.
  }];
  let arguments = (ins SSAGPU_SharedType:$tile, SSAGPU_RowVector:$counts);
  let results = (outs SSAGPU_Accumulator:$rows);
  let assemblyFormat = "$tile `where` $counts attr-dict `:` type($tile) `,` type($counts) `->` type($rows)";
  let hasVerifier = 1;
}

def SSAGPU_ToOperandOp : SSAGPU_Op<"to_operand", [Pure]> {
  let summary = "an accumulator, rounded to 16 bits, as left operand of the next product";
  let arguments = (ins SSAGPU_Accumulator:$tile);
  let results = (outs SSAGPU_Operand:$operand);
  let assemblyFormat = "$tile attr-dict `:` type($tile) `->` type($operand)";
}

def SSAGPU_MmaOp : SSAGPU_Op<"mma", [MemoryEffects<[MemRead]>, TypesMatchWith<"result like accumulator", "accumulator", "result", "$_self">]> {
  let summary = "matrix product added to an accumulator";
  let description = [{
    `result = lhs * rhs + accumulator`, or `lhs * transpose(rhs) + accumulator` with `transposed`: `rhs` is then `NxK`, else `KxN`. `lhs` is an
    operand tile, or a tile in shared memory. Elements of 8 bits are for `wgmma`, with `rhs` transposed; products of them are added up
    with fewer bits than f32 has. With `async` (of `wgmma`) the result is not there, and operands in shared memory are still being read, until a `wait_mma` of the result.
    Where `adds` (of `wgmma`) is false, the same in a warpgroup, 0 stands for the accumulator, whatever it holds.
  }];
  let arguments = (ins AnyTypeOf<[SSAGPU_Operand, SSAGPU_SharedType]>:$lhs, SSAGPU_SharedType:$rhs, SSAGPU_Accumulator:$accumulator,
      Optional<I1>:$adds, UnitAttr:$transposed, UnitAttr:$async, SSAGPU_FamilyAttr:$family);
  let results = (outs SSAGPU_Accumulator:$result);
  let assemblyFormat = "$family (`async` $async^)? $lhs `,` (`transposed` $transposed^)? $rhs `,` $accumulator (`adds` $adds^)? attr-dict `:` type($lhs) `,` type($rhs) `,` type($accumulator)";
  let hasVerifier = 1;
}

def SSAGPU_WaitMmaOp : SSAGPU_Op<"wait_mma", [TypesMatchWith<"result like tile", "tile", "result", "$_self">]> {
  let summary = "wait until at most `pending` products are under way, of those begun with `async`";
  let description = "They end in the order in which they began. `tile` is the result of one that has ended then.";
  let arguments = (ins SSAGPU_Accumulator:$tile, I64Attr:$pending);
  let results = (outs SSAGPU_Accumulator:$result);
  let assemblyFormat = "$tile `pending` $pending attr-dict `:` type($tile)";
}

def SSAGPU_MmaTensorOp : SSAGPU_Op<"mma_tensor"> {
  let summary = "begin a matrix product whose result is in tensor memory";
  let description = [{
    `result = lhs * rhs`, or `result + lhs * rhs` if `adds` is true, by `tcgen05`; with `transposed` as in `mma`. Begun by one thread of the role or block, for all;
    products end in the order in which they begin. Done, and operands free, when a `publish` or `release` `after products` has come through.

    A result of 64 rows, and up to 256 columns, is that of a block of a pair: operands are 64 rows of the left one and half of the columns of the right one, those of
    the first half in the first block.

    Example: `ssa_gpu.mma_tensor %q, transposed %k to %s adds %false : !ssa_gpu.shared<128x128xbf16>, !ssa_gpu.shared<64x128xbf16>, !ssa_gpu.tensor_memory<128x64xf32>`
  }];
  let arguments = (ins AnyTypeOf<[SSAGPU_SharedType, SSAGPU_TensorMemoryType]>:$lhs, SSAGPU_SharedType:$rhs, SSAGPU_TensorMemoryType:$result, I1:$adds,
      UnitAttr:$transposed);
  let assemblyFormat = "$lhs `,` (`transposed` $transposed^)? $rhs `to` $result `adds` $adds attr-dict `:` type($lhs) `,` type($rhs) `,` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The inner columns of one instruction.
    int64_t getInnerStep() { return 256 / getRhs().getType().getElementType().getIntOrFloatBitWidth(); }
  }];
}

class SSAGPU_TensorAccessOp<string mnemonic> : SSAGPU_Op<mnemonic> {
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The columns of one instruction each, in order.
    static SmallVector<int64_t> getPieces(int64_t columns);
  }];
}
def SSAGPU_LoadTensorOp : SSAGPU_TensorAccessOp<"load_tensor"> {
  let summary = "columns of a tile in tensor memory, from `column` on";
  let description = "Of a tile of a pair, from there on in each half of the columns. Example: `%s = ssa_gpu.load_tensor %t[%c] : !ssa_gpu.tensor_memory<128x64xf32> -> tensor<128x32xf32, #ssa_gpu.accumulator<rowwise = true>>`";
  let arguments = (ins SSAGPU_TensorMemoryType:$source, I32:$column);
  let results = (outs SSAGPU_Accumulator:$tile);
  let assemblyFormat = "$source `[` $column `]` attr-dict `:` type($source) `->` type($tile)";
}
def SSAGPU_StoreTensorOp : SSAGPU_TensorAccessOp<"store_tensor"> {
  let summary = "write columns of a tile in tensor memory, from `column` on, rounded to its elements";
  let description = "Seen by products after a `publish`.";
  let arguments = (ins SSAGPU_Accumulator:$tile, SSAGPU_TensorMemoryType:$target, I32:$column);
  let assemblyFormat = "$tile `to` $target `[` $column `]` attr-dict `:` type($tile) `,` type($target)";
}

def SSAGPU_SaveRowsOp : SSAGPU_Op<"save_rows"> {
  let summary = "write one value per row to an array in shared memory: entry `r` is that of row `r`";
  let description = "Seen by others after a `publish` or `barrier`.";
  let arguments = (ins SSAGPU_RowVector:$rows, SSAGPU_SharedType:$array);
  let assemblyFormat = "$rows `to` $array attr-dict `:` type($rows) `,` type($array)";
  let hasVerifier = 1;
}

def SSAGPU_ReduceOp : SSAGPU_Op<"reduce", [Pure]> {
  let summary = "sum or maximum of every row";
  let description = [{
    NaN propagates. With `of_lanes` every lane that has columns of a row has what these make, so that the lanes of a row differ: `join_lanes` makes it the
    row's.
  }];
  let arguments = (ins SSAGPU_RowReductionAttr:$kind, SSAGPU_Accumulator:$tile, UnitAttr:$of_lanes);
  let results = (outs SSAGPU_RowVector:$rows);
  let assemblyFormat = "$kind $tile attr-dict `:` type($tile) `->` type($rows)";
}

def SSAGPU_JoinLanesOp : SSAGPU_Op<"join_lanes", [Pure, SameOperandsAndResultType]> {
  let summary = "sum or maximum of what the lanes of every row have";
  let description = [{
    Of what `reduce` with `of_lanes` gave, or was made of that row by row.

    Example: `%s = ssa_gpu.join_lanes sum %r : tensor<64xf32, #ssa_gpu.rows>`
  }];
  let arguments = (ins SSAGPU_RowReductionAttr:$kind, SSAGPU_RowVector:$rows);
  let results = (outs SSAGPU_RowVector:$result);
  let assemblyFormat = "$kind $rows attr-dict `:` type($rows)";
}

def SSAGPU_WarpAllOp : SSAGPU_Op<"warp_all", [Pure]> {
  let summary = "true in a warp if a bit is set for all its rows, or elements";
  let description = "For choosing between ways to compute the same: warps may differ.";
  let arguments = (ins AnyTypeOf<[SSAGPU_RowVector, SSAGPU_Accumulator]>:$tile);
  let results = (outs I1:$all);
  let assemblyFormat = "$tile attr-dict `:` type($tile)";
}

def SSAGPU_JoinGroupsOp : SSAGPU_Op<"join_groups"> {
  let summary = "sum or maximum over the groups of warps that hold parts of the columns";
  let description = [{
    Each group gets the same result, added in the order of the groups. `scratch` has an entry per row and group; it may be used again
    after the next barrier.
  }];
  let arguments = (ins SSAGPU_RowReductionAttr:$kind, SSAGPU_RowVector:$rows, SSAGPU_SharedType:$scratch, I64Attr:$groups);
  let results = (outs SSAGPU_RowVector:$result);
  let assemblyFormat = "$kind $rows `through` $scratch `groups` $groups attr-dict `:` type($rows) `,` type($scratch) `->` type($result)";
}

def SSAGPU_StoreOperandOp : SSAGPU_Op<"store_operand"> {
  let summary = "write an accumulator, rounded to 16 bits, to a tile in shared memory";
  let description = "Seen by other threads, and by matrix products, after a `barrier`, or a `publish` behind `finish_copies`.";
  let arguments = (ins SSAGPU_Accumulator:$tile, SSAGPU_SharedType:$target);
  let assemblyFormat = "$tile `to` $target attr-dict `:` type($tile) `,` type($target)";
}

def SSAGPU_BroadcastOp : SSAGPU_Op<"broadcast", [Pure]> {
  let summary = "one value per row, in every column";
  let arguments = (ins SSAGPU_RowVector:$rows);
  let results = (outs SSAGPU_Accumulator:$tile);
  let assemblyFormat = "$rows attr-dict `:` type($rows) `->` type($tile)";
}

def SSAGPU_ChangeRowsOp : SSAGPU_Op<"change_rows", [Pure, TypesMatchWith<"result like tile", "tile", "result", "$_self">]> {
  let summary = "elements times what their row has, or less that, unless a condition holds";
  let description = [{
    Where `unless` is true, for all threads of a warp or none, the tile stays as it is. For what is rarely to be done: a tile that comes out of a branch passes
    value by value through all that LLVM and its code generator do about branches.
  }];
  let arguments = (ins SSAGPU_RowChangeAttr:$kind, SSAGPU_Accumulator:$tile, SSAGPU_RowVector:$rows, I1:$unless);
  let results = (outs SSAGPU_Accumulator:$result);
  let assemblyFormat = "$kind $tile `by` $rows `unless` $unless attr-dict `:` type($tile) `,` type($rows)";
  let hasVerifier = 1;
}

def SSAGPU_HideColumnsOp : SSAGPU_Op<"hide_columns", [Pure, AttrSizedOperandSegments, TypesMatchWith<"result like tile", "tile", "result", "$_self">]> {
  let summary = "scores outside of a range of columns in each row are hidden";
  let description = [{
    Columns are in parts of the same size, one for each entry of `last`. In a part a row keeps its columns up to its entry of `last`, of these with `first` only those from that on and, with
    `below`, those below that. Others become `-inf`.
  }];
  let arguments = (ins SSAGPU_Accumulator:$tile, Variadic<SSAGPU_RowVector>:$last, Variadic<SSAGPU_RowVector>:$first, Variadic<SSAGPU_RowVector>:$below);
  let results = (outs SSAGPU_Accumulator:$result);
  let assemblyFormat = [{ $tile `to` `(` $last `:` type($last) `)` (`from` `(` $first^ `:` type($first) `)`)? (`below` `(` $below^ `:` type($below) `)`)? attr-dict `:` type($tile) }];
  let hasVerifier = 1;
}

def SSAGPU_MapRowsOp : SSAGPU_RegionOp<"map_rows", [RecursiveMemoryEffects]> {
  let summary = "one value per row, made from the number of the row";
  let results = (outs SSAGPU_RowVector:$rows);
  let assemblyFormat = "$body attr-dict `:` type($rows)";
}

def SSAGPU_MapColumnsOp : SSAGPU_RegionOp<"map_columns", [RecursiveMemoryEffects]> {
  let summary = "one value per column, made from the number of the column, in every row";
  let results = (outs SSAGPU_Accumulator:$tile);
  let assemblyFormat = "$body attr-dict `:` type($tile)";
}

def SSAGPU_MapOp : SSAGPU_RegionOp<"map", [RecursiveMemoryEffects]> {
  let summary = "tiles made element by element from tiles of the same shape and layout";
  let description = [{
    The region takes an element of each and yields one for each result. It is for what `arith` and `math` cannot say of whole tiles: a load
    from a place that differs between elements.
  }];
  let arguments = (ins Variadic<AnyTypeOf<[SSAGPU_Accumulator, SSAGPU_RowVector]>>:$tiles);
  let results = (outs Variadic<AnyTypeOf<[SSAGPU_Accumulator, SSAGPU_RowVector]>>:$outputs);
  let assemblyFormat = "$tiles $body attr-dict `:` functional-type($tiles, results)";
}

def SSAGPU_StoreRowsOp : SSAGPU_RegionOp<"store_rows", [SameVariadicOperandSize]> {
  let summary = "write the rows of an accumulator to a buffer";
  let description = [{
    For every row the region yields where it begins in `target`, in elements from its start, and whether it is written at all; the first
    `columns` columns are, rounded to the element type. Rows begin at multiples of `width` elements, 1, 2 or 8, which divides `columns`. With `share` columns of
    a rowwise tile of groups, which are all stored then, are those of a part of each group's share, which is so many columns wide: `share` apart.

    With `in_quads` columns stand in memory in the order in which the four lanes of a row have them, so that none needs what another has: of every 32, column
    `8 b + 2 q + i` stands at `8 q + 2 b + i`. The target is of 16 bits then, `width` 8, `columns` a multiple of 32, and nothing is added. Such
    rows are for another kernel, and are the first to leave the second-level cache.

    What is written is the row plus the rows of `sources`, each times its factor; the region yields where these begin, too, at multiples of `source_width`
    elements, 1, 2, 4 or 8; `width` is not 1 then, and there is no `share`. Every source has a first row that may be read. With `skip_zeros` a row whose factor
    is 0 is not read and adds nothing, whatever it holds. A source may be the target: who writes an element reads it, and a tile of the same type that was stored to the
    same places was written by the same threads.
  }];
  let arguments = (ins SSAGPU_Accumulator:$tile, AnyMemRef:$target, Variadic<AnyMemRef>:$sources, Variadic<SSAGPU_RowVector>:$factors, I64Attr:$columns,
                       I64Attr:$width, DefaultValuedAttr<I64Attr, "1">:$source_width, UnitAttr:$skip_zeros, OptionalAttr<I64Attr>:$share, UnitAttr:$in_quads);
  let assemblyFormat = "$tile `to` $target (`plus` `(` $sources^ `:` type($sources) `)` `times` `(` $factors `:` type($factors) `)`)? $body attr-dict `:` type($tile) `,` type($target)";
}

def SSAGPU_StoreEntriesOp : SSAGPU_RegionOp<"store_entries", []> {
  let summary = "write one value per row to a buffer";
  let description = "The region yields where the value of a row goes, in elements from the start of `target`, and whether it is written.";
  let arguments = (ins SSAGPU_RowVector:$rows, AnyMemRef:$target);
  let assemblyFormat = "$rows `to` $target $body attr-dict `:` type($rows) `,` type($target)";
}

def SSAGPU_FoldOp : SSAGPU_Op<"fold", [Pure]> {
  let summary = "join the columns of an accumulator that are a period apart";
  let description = [{
    Column `c` of the result is the sum or maximum, in ascending order, of those of the first `columns` columns of `tile` whose number
    modulo `period` is `c` modulo `period`. `period` is 1, 2, 4 or a multiple of 8 and divides `columns`; the result has `period` columns,
    at least 8. With groups of warps each joins its own share of the columns: `columns` and the columns of the result are those of a
    group. From a period of 8 on no thread needs what another has. Products that are added may be fused with it. NaN propagates.

    Example: `%s = ssa_gpu.fold sum %t {columns = 120 : i64, period = 24 : i64} : tensor<64x128xf32, #ssa_gpu.accumulator> -> tensor<64x24xf32, #ssa_gpu.accumulator>`
  }];
  let arguments = (ins SSAGPU_RowReductionAttr:$kind, SSAGPU_Accumulator:$tile, I64Attr:$columns, I64Attr:$period);
  let results = (outs SSAGPU_Accumulator:$result);
  let assemblyFormat = "$kind $tile attr-dict `:` type($tile) `->` type($result)";
  let hasVerifier = 1;
}

def SSAGPU_FoldRowsOp : SSAGPU_Op<"fold_rows", [Pure, TypesMatchWith<"'before' is like the result", "result", "before", "$_self">]> {
  let summary = "join the two rows of every thread with those joined before";
  let description = [{
    Rows `r` and `r + 8` of every 16 become one row of a tile with `folds = 2`: what is in `before`, then the first, then the second. No thread needs what
    another has, and products that are added may be fused with it. NaN propagates.

    Example: `%s = ssa_gpu.fold_rows sum %t onto %b : tensor<64x256xf32, #ssa_gpu.accumulator<groups = 2>> -> tensor<32x256xf32, #ssa_gpu.accumulator<groups = 2, folds = 2>>`
  }];
  let arguments = (ins SSAGPU_RowReductionAttr:$kind, SSAGPU_Accumulator:$tile, SSAGPU_Accumulator:$before);
  let results = (outs SSAGPU_Accumulator:$result);
  let assemblyFormat = "$kind $tile `onto` $before attr-dict `:` type($tile) `->` type($result)";
  let hasVerifier = 1;
}

def SSAGPU_JoinRowsOp : SSAGPU_Op<"join_rows"> {
  let summary = "join the rows of neighbouring warps, which keep half of the columns each";
  let description = [{
    Twice as many rows have been joined of the result as of `tile`, whose `folds` are 2 or 4. Warps of which each has what the other joins exchange halves of
    what they have through `scratch`, which has an entry for every second value of the block or role: the result does not depend on which of them joins a
    column. All warps of a group meet before and after they write there, so that nothing else has to come between two such ops.
  }];
  let arguments = (ins SSAGPU_RowReductionAttr:$kind, SSAGPU_Accumulator:$tile, SSAGPU_SharedType:$scratch);
  let results = (outs SSAGPU_Accumulator:$result);
  let assemblyFormat = "$kind $tile `through` $scratch attr-dict `:` type($tile) `,` type($scratch) `->` type($result)";
  let hasVerifier = 1;
}

def SSAGPU_StoreColumnsOp : SSAGPU_RegionOp<"store_columns", []> {
  let summary = "write the columns of an accumulator to a buffer, each as a row";
  let description = [{
    For every column the region yields where it goes in `target`, in elements from its start, and whether it is written at all. Entry
    `r` of it, of the first `count`, is written `r` elements further.
  }];
  let arguments = (ins SSAGPU_Accumulator:$tile, AnyMemRef:$target, I32:$count);
  let assemblyFormat = "$tile `to` $target `rows` $count $body attr-dict `:` type($tile) `,` type($target)";
}

#endif // SSA_GPU_OPS_TD
