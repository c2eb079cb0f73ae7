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
    Block `j` covers the tokens `j*stride+offset .. j*stride+offset+size-1` that exist. `stride` defaults to `size`,
    `offset` to 0. With `stride == size` there are `ceil((N-offset)/size)` blocks, none when `N = 0`; with
    `stride < size` only whole ones, `max(floor((N-offset-size)/stride)+1, 0)`.

    - C1 `size` is in 1 .. 2^31-1; C2 `stride` is in 1 .. `size`; C3 `offset` is in 1-`size` .. 0.

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
    Key `n` is allowed to a query at position `p` iff (not `causal` or `n <= p`) and (no `window`, or `p-n < window`
    and, if not causal, `n-p < window`, or `n < sink`). A window counts the query itself. `sink` counts tokens.

    - C1 `window` is in 1 .. 2^31-1; C2 `sink` is in 0 .. 2^31-1; C3 a `sink` needs a `window`; C4 a mask is `causal`
      or has a `window`.

    Example: `#ssa.mask<causal>`, `#ssa.mask<causal, window = 512, sink = 4>`, `#ssa.mask<window = 512>`.
  }];
  // A window of 0 is none; the assembly refuses to write it.
  let parameters = (ins "bool":$causal, "int64_t":$window, "int64_t":$sink);
}

def SSA_TargetAttr : SSA_Attr<"Target", "target"> {
  let summary = "the chip that kernels are made for";
  let description = [{
    Names one row of the table of known chips (`lib/ssa/IR/SSATarget.cpp`), in NVIDIA's spelling. Passes ask it what
    the chip can do and never look at the name. A name with `a` means this chip only, with `f` its family, without a
    letter all later chips: then only what all of them can do is used.

    A module says its target by the attribute `ssa.target`; the pass `ssa-attach-target` sets it.

    Example: `#ssa.target<sm_90a>`.
  }];
  let parameters = (ins StringRefParameter<"name of the chip">:$chip);
  let extraClassDeclaration = [{
    /// Names of all known chips, separated by commas.
    static std::string knownChips();
    /// All known chips.
    static std::vector<TargetAttr> getAll(MLIRContext *context);
    static bool isKnown(StringRef chip);
    /// The chip that is meant where none is named.
    static StringRef defaultChip() { return "sm_100a"; }
    /// The attribute of modules that holds a target.
    static StringRef attrName() { return "ssa.target"; }
    /// The target of the module around `op`, if it has one.
    static TargetAttr of(Operation *op);

    /// Major and minor number of the compute capability, as 10 * major + minor.
    unsigned computeCapability() const;
    /// The lowest version of PTX that knows the chip, as 10 * major + minor.
    unsigned lowestPTXVersion() const;
    /// The version of PTX that is emitted for it.
    unsigned ptxVersion() const;

    /// The most shared memory of a block, static and dynamic.
    int64_t sharedMemoryBytes() const;
    /// Shared memory of a multiprocessor. A block takes 1024 bytes of it besides what it asks for.
    int64_t sharedMemoryBytesPerSM() const;
    /// 32-bit registers of a multiprocessor. A thread has at most 255.
    int64_t registersPerSM() const;
    int64_t threadsPerSM() const;
    /// Multiprocessors of a typical product.
    int64_t numSMs() const;
    /// Bytes of second-level cache of a typical product.
    int64_t l2Bytes() const;

    /// `mma.sync` on f16, bf16, tf32 and integers; `ldmatrix`.
    bool hasMMASync() const;
    /// `mma.sync` on fp8, and conversions to fp8.
    bool hasMMASyncFP8() const;
    /// `mma.sync` with block scales (mxf8, mxf4, nvf4).
    bool hasMMASyncBlockScale() const;
    /// `cp.async` of 4 to 16 bytes, mbarriers.
    bool hasCpAsync() const;
    /// Bulk and tensor copies (`cp.async.bulk`), mbarriers that count bytes, `elect`, `stmatrix`.
    bool hasTMA() const;
    /// Tensor copies that gather 4 rows, into the block's own memory.
    bool hasTMAGather4() const;
    /// The same into the memory of a cluster, and scatter.
    bool hasTMAScatter4() const;
    bool hasWGMMA() const;
    bool hasTCGen05() const;
    bool hasSetMaxRegister() const;
    /// Clusters of blocks, with access to each other's shared memory.
    bool hasClusters() const;
    /// Arithmetic on pairs of f32, maximum of three, 256-bit accesses.
    bool hasF32x2() const;
    /// `redux.sync` on f32.
    bool hasReduxF32() const;
    /// `ldmatrix` that transposes bytes; `mma.sync` on mixtures of fp8, fp6, fp4.
    bool hasLdMatrixB8() const;
  }];
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

def SSA_LoopOrder : SSA_Enum<"LoopOrder", "in which order attention goes over lists and keys",
    [I32EnumAttrCase<"shared_list", 0>, I32EnumAttrCase<"head_packed", 1>, I32EnumAttrCase<"union_lists", 2, "union">,
     I32EnumAttrCase<"key_outer", 3>]>;
def SSA_Partials : SSA_Enum<"Partials", "the type of outputs over some of the keys", [I32EnumAttrCase<"f32", 0>, I32EnumAttrCase<"bf16", 1>]>;

/// An enumerated value that is not written where it is the usual one.
class SSA_DefaultedEnum<EnumInfo info, string usual> : EnumParameter<info> {
  let defaultValue = info.cppType # "::" # usual;
}

def SSA_Instruction : SSA_Enum<"Instruction", "instructions for matrix products",
    [I32EnumAttrCase<"mma_sync", 0>, I32EnumAttrCase<"wgmma", 1>, I32EnumAttrCase<"tcgen05", 2>]>;

def SSA_ScheduleAttr : AttrDef<SSA_Dialect, "Schedule"> {
  let mnemonic = "schedule";
  let summary = "how the kernel of an attention op is built";
  let description = [{
    A decision of `ssa-select-schedule`, or one written by hand as the attribute `ssa.schedule` of an op, which no
    pass overrides.

    - `order`: which rows a tile has, and which keys pass by.
      - `shared_list`, where nothing is written: the rows of one list, its queries times the query heads that read the same keys.
        Without lists, queries that follow one another.
      - `head_packed`: the same where every query has a list of its own, so that a tile is the heads of one query.
      - `union`: the rows of as many neighbouring lists as fit. What passes by is the union of the lists, and a bit for every number and list
        says who takes part.
      - `key_outer`: rows of all lists that have one key block, whose keys pass by. Outputs over a block are memory between two kernels.
    - `instruction`: `mma_sync`, or `wgmma` or `tcgen05`, which need a target that has them.
    - `tile_rows`: rows of a tile, (query, head) pairs: a multiple of 16 up to 256, of 64 with `wgmma`, of 128 with `tcgen05`.
    - `tile_keys`: keys of a step, a multiple of 16 up to 256.
    - `stages`: steps whose keys are in shared memory at a time, 2 to 8, or 1 with `pair`.
    - `split`: into so many parts the steps of a tile are divided, 1 to 64, each with a program and an output of its own; for few queries.
      With `shared_list` and `head_packed`.
    - `pair`: two blocks have the rows of a tile together, half each, and make products as one (`cta_group::2`), with `tcgen05`: for 128 rows of wide heads whose
      values are the first columns of keys. Each block has half of the keys that scores are made with and half of the columns of values, gathered by the
      tensor memory accelerator; `stages` may be 1.
    - `polynomials`: of eight exponentials so many are polynomials on the units that multiply and add, 0 to 4, with `tcgen05`; the special-function units make
      the others.
    - `partials`: what outputs over some keys are rounded to, `f32` or `bf16`; the latter with `key_outer` and an output of bf16.

    Example: `#ssa.schedule<instruction = wgmma, tile_rows = 128, tile_keys = 64, stages = 2>`,
    `#ssa.schedule<order = key_outer, instruction = wgmma, tile_rows = 128, tile_keys = 64, stages = 2, partials = bf16>`.
  }];
  let parameters = (ins SSA_DefaultedEnum<SSA_LoopOrder, "shared_list">:$order, EnumParameter<SSA_Instruction>:$instruction,
      "int64_t":$tile_rows, "int64_t":$tile_keys, "int64_t":$stages, DefaultValuedParameter<"int64_t", "1">:$split,
      SSA_DefaultedEnum<SSA_Partials, "f32">:$partials, DefaultValuedParameter<"bool", "false">:$pair, DefaultValuedParameter<"int64_t", "0">:$polynomials);
  let builders = [AttrBuilder<(ins "LoopOrder":$order, "Instruction":$instruction, "int64_t":$tileRows, "int64_t":$tileKeys, "int64_t":$stages, "int64_t":$split,
      "Partials":$partials, "bool":$pair), [{
    return $_get($_ctxt, order, instruction, tileRows, tileKeys, stages, split, partials, pair, /*polynomials=*/int64_t(0));
  }]>];
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The attribute of ops that holds a schedule.
    static StringRef attrName() { return "ssa.schedule"; }
    /// The schedule of `op`, null if it has none.
    static ScheduleAttr of(Operation *op) { return op->getAttrOfType<ScheduleAttr>(attrName()); }
    /// Threads that copy where there are roles.
    static constexpr int64_t numProducers = 128;
    /// The most parts of `split`.
    static constexpr int64_t maxSplit = 64;
    /// Whether `order` is one for `op`, whatever the tile; if not, `reason` follows the name of the op.
    static LogicalResult verifyOrder(LoopOrder order, SparseAttendOp op, function_ref<void(const Twine &)> reason);
    /// Whether the kernel of `op` can be built so for `target`.
    LogicalResult verifyFor(SparseAttendOp op, TargetAttr target, function_ref<void(const Twine &)> reason) const;
    /// How many rows share a list of `op`: the queries of a block times the query heads of a cell. None if all queries share one list or
    /// there is none.
    static std::optional<int64_t> getRowsPerList(SparseAttendOp op);
    /// Lists whose rows a tile has.
    int64_t getListsOfTile(SparseAttendOp op) const;
    /// Numbers that say who takes part in an entry of the union of a tile's lists, a bit a list; 0 in other orders.
    int64_t getMemberWords(SparseAttendOp op) const;
    /// Threads of which some begin products in tensor memory.
    static constexpr int64_t numIssuers = 128;
    /// True if some warps copy and others multiply.
    bool hasRoles() const { return getInstruction() != Instruction::mma_sync; }
    /// True if results of products are in tensor memory.
    bool usesTensorMemory() const { return getInstruction() == Instruction::tcgen05; }
    /// Parts of the columns of an output that tensor memory cannot hold at once: an item each.
    int64_t getValueParts(SparseAttendOp op) const;
    /// Columns of a part, padded to what products need.
    int64_t getValueColumns(SparseAttendOp op) const;
    /// Tiles of scores, and of weights, in tensor memory at a time.
    int64_t getScoreSlots(SparseAttendOp op) const;
    int64_t getWeightSlots() const { return getPair() ? 1 : 2; }
    /// With `pair`: rows that a block has of a tile; columns of a piece of keys that products take at a time.
    static constexpr int64_t rowsOfPair = 64, pieceOfPair = 64;
    /// With `pair`: of each half of the columns of values so many lie where the keys of the step were, a half of which thus stays there.
    static int64_t getColumnsInPlace(int64_t valueDim) { return (valueDim / 2 / pieceOfPair + 1) / 2 * pieceOfPair; }
    /// The same schedule in another order.
    ScheduleAttr withOrder(LoopOrder order) const {
      return get(getContext(), order, getInstruction(), getTileRows(), getTileKeys(), getStages(), getSplit(), getPartials(), getPair(), getPolynomials());
    }
    /// The same schedule with another number of polynomials.
    ScheduleAttr withPolynomials(int64_t number) const {
      return get(getContext(), getOrder(), getInstruction(), getTileRows(), getTileKeys(), getStages(), getSplit(), getPartials(), getPair(), number);
    }
    static constexpr int64_t maxPolynomials = 4;
    /// Columns of tensor memory that a block takes.
    int64_t getTensorColumns(SparseAttendOp op) const;
    /// Groups of warps that share the columns of outputs which the registers of one warp cannot hold.
    int64_t getGroups(SparseAttendOp op) const;
    /// True if these, two then, make the weights of every second step each.
    bool takesTurns(SparseAttendOp op) const;
    /// True if weights that one group has for the other fit behind the values of their step, in the last columns of its keys.
    bool keepsWeightsInKeys(SparseAttendOp op) const;
    /// How many stretches of neighbours the keys of a step are: one where blocks fill steps, several of smaller blocks; 0 where every key has a
    /// number of its own.
    int64_t getStretches(SparseAttendOp op) const;
    /// True if products have their queries in registers, where steps leave room for them: none reads these from shared memory.
    bool keepsQueries(SparseAttendOp op) const;
    /// Tiles of queries in shared memory: with a second one the next item begins before the last has ended.
    int64_t getQuerySlots(SparseAttendOp op) const;
    /// Threads of a block.
    int64_t getThreads(SparseAttendOp op) const;
    /// Shared memory of a block.
    int64_t getSharedBytes(SparseAttendOp op) const;
    /// Blocks that run on a multiprocessor of the target at a time.
    int64_t getBlocksPerSM(SparseAttendOp op, TargetAttr target) const;
  }];
}

def SSA_AgreeingAttr : AttrDef<SSA_Dialect, "Agreeing"> {
  let mnemonic = "agreeing";
  let summary = "another schedule, for lists that agree";
  let description = [{
    A decision of `ssa-select-schedule`, or one written by hand as the attribute `ssa.agreeing` of an `ssa.sparse_attend` that has a schedule as well:
    which of the two is used is found out on the device. A kernel looks at lists of neighbouring queries, a fixed sample of them; where the next
    query's list has at least `percent` percent of their numbers, too, the kernels of `schedule` do the work, else those of `ssa.schedule`. Kernels
    of both are launched, and those of the other one leave at once.

    - `percent`: in 0 .. 100.

    Example: `#ssa.agreeing<percent = 60, schedule = <order = union, instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 3>>`.
  }];
  let parameters = (ins "int64_t":$percent, "::mlir::ssa::ScheduleAttr":$schedule);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The attribute of ops that holds it.
    static StringRef attrName() { return "ssa.agreeing"; }
    /// That of `op`, null if it has none.
    static AgreeingAttr of(Operation *op) { return op->getAttrOfType<AgreeingAttr>(attrName()); }
    /// Whether `op` can have it: its schedule for `target`, and lists that have neighbours. If not, `reason` follows the name of the op.
    LogicalResult verifyFor(SparseAttendOp op, TargetAttr target, function_ref<void(const Twine &)> reason) const;
  }];
}

def SSA_WhenAttr : AttrDef<SSA_Dialect, "When"> {
  let mnemonic = "when";
  let summary = "a kernel that does nothing unless a flag in memory is set";
  let description = [{
    As the attribute `ssa.when` of a kernel, a `gpu.func`: it is launched in any case, and ends at once unless the first element of argument number
    `argument`, a buffer of `i1`, is `is`. `ssa-guard-kernels` makes it so.

    Example: `#ssa.when<argument = 3, is = true>`.
  }];
  let parameters = (ins "int64_t":$argument, "bool":$is);
  let assemblyFormat = "`<` struct(params) `>`";
  let extraClassDeclaration = [{
    /// The attribute of kernels that holds it.
    static StringRef attrName() { return "ssa.when"; }
    /// That of `kernel`, null if it has none.
    static WhenAttr of(Operation *kernel) { return kernel->getAttrOfType<WhenAttr>(attrName()); }
  }];
}

def SSA_OverlapAttr : AttrDef<SSA_Dialect, "Overlap"> {
  let mnemonic = "overlap";
  let summary = "select for some queries while those before attend";
  let description = [{
    Written as the attribute `ssa.overlap` of an `ssa.sparse_attend` whose lists an `ssa.topk` makes from scores, and nothing else reads: queries are
    taken some at a time, scored, selected for and attended, and the next ones are begun before the last have ended. No result depends on it.

    - `rows`: lists of a chunk, a multiple of so many as share a tile of attention or a list of `within`.
    - `lanes`: chunks that are under way at a time, 1 to 16. Each has workspace of its own.

    Example: `#ssa.overlap<rows = 16384, lanes = 2>`.
  }];
  let parameters = (ins "int64_t":$rows, DefaultValuedParameter<"int64_t", "2">:$lanes);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The attribute of ops that holds it.
    static StringRef attrName() { return "ssa.overlap"; }
    /// That of `op`, null if it has none.
    static OverlapAttr of(Operation *op) { return op->getAttrOfType<OverlapAttr>(attrName()); }
  }];
}

def SSA_ChunkAttr : AttrDef<SSA_Dialect, "Chunk"> {
  let mnemonic = "chunk";
  let summary = "how many rows of scores exist at a time";
  let description = [{
    A decision of `ssa-chunk-rows`, or one written by hand as the attribute `ssa.chunk` of an `ssa.topk`, which no pass
    overrides: the scores that it selects from are never there as a whole. Chunks of their rows are scored and
    selected from in turn, in the same workspace; no result depends on it.

    - `bytes`: what the scores of a chunk may take.
    - `rows`: a chunk has a multiple of so many rows of the selection, also if these take more.

    Example: `#ssa.chunk<bytes = 134217728, rows = 128>`.
  }];
  let parameters = (ins "int64_t":$bytes, "int64_t":$rows);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The attribute of ops that holds it.
    static StringRef attrName() { return "ssa.chunk"; }
    /// That of `op`, null if it has none.
    static ChunkAttr of(Operation *op) { return op->getAttrOfType<ChunkAttr>(attrName()); }
  }];
}

def SSA_FusedSelectAttr : AttrDef<SSA_Dialect, "FusedSelect"> {
  let mnemonic = "fused_select";
  let summary = "score and select in one kernel";
  let description = [{
    A decision of `ssa-fuse`, or one written by hand as the attribute `ssa.fused_select` of an `ssa.topk` whose scores come straight from an
    `ssa.route`: one kernel scores a few rows at a time, in memory of its own that stays in the second-level cache, and some of its warps
    select from them while others score the next.

    - `min_columns`: rows of fewer scores go the long way, where that is faster.
    - `max_columns`: rows of more scores do, too.
    - `stretch`: if not 0, rows are selected from while they are being scored, so many columns of scores at a time, and only what may be among
      the greatest is kept: memory does not depend on how long rows are. If 0, a row is selected from when it is complete. Each block of the
      kernel has memory for two sets of its rows, of `stretch` or of `max_columns` scores, or for four of stretches that are not regrouped. With lists of up to
      128 entries, a call with fewer tiles of rows than there are multiprocessors splits rows into parts, and a second kernel selects from what these leave;
      with `min_columns = 0` and the greatest `max_columns` there is no long way then.

    Example: `#ssa.fused_select<min_columns = 1024, max_columns = 4096>`.
  }];
  let parameters = (ins "int64_t":$min_columns, "int64_t":$max_columns, DefaultValuedParameter<"int64_t", "0">:$stretch);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The attribute of ops that holds it.
    static StringRef attrName() { return "ssa.fused_select"; }
    /// That of `op`, null if it has none.
    static FusedSelectAttr of(Operation *op) { return op->getAttrOfType<FusedSelectAttr>(attrName()); }

    /// Of rows that come in stretches: the entries that a row's list has room for when the lists of a selection have `width`, and so many with which
    /// it counts as full.
    static int64_t getListTrigger(int64_t width) { return std::max<int64_t>(2 * width, 256); }
    static int64_t getListEntries(int64_t width, int64_t stretch) { return getListTrigger(width) + std::max(stretch, width); }
    /// Into how many parts a call with fewer tiles of rows than multiprocessors may split its rows, 1 if it may not: so many that a warp can select from
    /// the lists of all. Where rows are split up no call needs the long way.
    static int64_t getMaxParts(int64_t width, int64_t stretch) {
      constexpr int64_t mostEntries = 512, leastParts = 4, mostParts = 32;
      int64_t parts = std::min(mostEntries / std::max<int64_t>(width, 1), mostParts);
      return stretch && parts >= leastParts ? parts : 1;
    }
  }];
}

def SSA_FusedAttendAttr : AttrDef<SSA_Dialect, "FusedAttend"> {
  let mnemonic = "fused_attend";
  let summary = "join attention where one part of it is stored";
  let description = [{
    A decision of `ssa-fuse`, or one written by hand as the attribute `ssa.fused_attend` of an `ssa.merge` or `ssa.mix`: the kernel of the attention that
    makes part number `part` adds the other parts where it stores its rows, and writes what the op has as result. That part is never in memory. Nor are parts `with`,
    a decision of `ssa-select-schedule`: the same kernel attends to their keys, too.

    Example: `#ssa.fused_attend<part = 2>`, `#ssa.fused_attend<part = 2, with = [0]>`.
  }];
  let parameters = (ins "int64_t":$part, OptionalArrayRefParameter<"int64_t">:$with);
  let assemblyFormat = "`<` `part` `=` $part (`,` `with` `=` `[` $with^ `]`)? `>`";
  let extraClassDeclaration = [{
    /// The attribute of ops that holds it.
    static StringRef attrName() { return "ssa.fused_attend"; }
    /// That of `op`, null if it has none.
    static FusedAttendAttr of(Operation *op) { return op->getAttrOfType<FusedAttendAttr>(attrName()); }
  }];
}

#endif // SSA_ATTRS_TD
