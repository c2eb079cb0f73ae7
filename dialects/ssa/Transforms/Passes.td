// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SSA_TRANSFORMS_PASSES_TD
#define SSA_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def SSAAttachTargetPass : Pass<"ssa-attach-target", "::mlir::ModuleOp"> {
  let summary = "say which chip a module is compiled for";
  let description = [{
    Input: any module. Output: the same with the attribute `ssa.target`, which later passes ask what the chip can do. Without `chip` a
    target that the module has is kept, and `sm_100a` is taken where there is none. A `chip` that is not the one the module has is an
    error: schedules written for one chip are not silently used for another.

    Example: `--ssa-attach-target=chip=sm_90a` gives `module attributes {ssa.target = #ssa.target<sm_90a>}`.
  }];
  let options = [Option<"chip", "chip", "std::string", "\"\"", "the chip, such as sm_90a">];
  let dependentDialects = ["::mlir::ssa::SSADialect"];
}

def SSAFusePass : Pass<"ssa-fuse", "::mlir::ModuleOp"> {
  let summary = "turn chains of ops into one op or one kernel";
  let description = [{
    Input: any module. Output: attention to keys and values that were gathered at the list it is given attends to the sources of the
    gathers instead. The gathers are erased if nothing else reads them. Declines, with a remark, where the gathered rows come from elsewhere. Means
    of the rows of an `ssa.project` that nothing else reads are made before it, in f32; a remark says why others are not.

    Where the module has a target, an `ssa.topk` whose scores come straight from an `ssa.route` and serve nothing else has the attribute
    `ssa.fused_select`: one kernel scores and selects. One that is written already is kept. Declines, with a remark that says why, where there
    is no such kernel.

    An `ssa.route` with a softmax has the attribute `ssa.shared_sums` where an `ssa.sparse_attend` has the same logits, visible to the same queries: the
    lse of that are the logarithms of its sums. The attention is moved before it. Declines, with a remark, where attention to the same keys has other
    logits, or hangs on the scores.

    An `ssa.merge` or `ssa.mix` has the attribute `ssa.fused_attend`, where it has none: the kernel of the last attention among its parts makes its
    result. Declines, with a remark, where what such kernels make is used by others, too, or none is on tensor cores.
  }];
  let options = [Option<"bytes", "bytes", "int64_t", "402653184", "what the scores may take that such a kernel is at">,
                 Option<"minColumns", "min-columns", "int64_t", "1024", "the shortest rows for which it is faster, where there is another way">];
}

def SSAJoinSelectionsPass : Pass<"ssa-join-selections", "::mlir::ModuleOp"> {
  let summary = "attend at one selection at a time";
  let description = [{
    Input: any module. Output: every `ssa.sparse_attend` has at most one selection, and a key that is in several of the lists that were
    there counts once. Selections of the same key block that serve the same queries of the same heads are united by `ssa.union`. Others
    are made disjoint: from those of smaller blocks goes what is in those of larger ones, lists that agree in neither blocks nor heads
    being brought to what both consist of; each is attended to by itself and `ssa.merge` joins the parts. Sizes that
    only a run can see are required by `cf.assert`.
  }];
  let statistics = [Statistic<"numUnited", "num-united", "ssa.union ops inserted">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::ssa::SSADialect", "::mlir::tensor::TensorDialect"];
}

def SSASelectSchedulePass : Pass<"ssa-select-schedule", "::mlir::ModuleOp"> {
  let summary = "decide how the kernels of attention ops are built";
  let description = [{
    Input: a module that has a target. Output: every `ssa.sparse_attend` has the attribute `ssa.schedule`. One that is written
    already is kept. Else it is what a tuning file says of such an op on this chip; else what was measured for its kind, unless the
    model of `ssa-opt --explain` predicts another to be faster by more than the model is wrong. All are checked against the target: a schedule that needs what it
    has not is an error that names the limit. A remark says where attention would be faster without its lists.

    Sizes that types leave open are assumed: `sizes=tokens=131072,queries=16,batch=2,NAME=1024`, where `NAME` is an argument
    whose rows are not plain, and a number alone is `tokens`. `agreement` is the share of a list that the next query's list has too;
    an op may say its own by the attribute `ssa.agreement`. Where neither does, what is usual for lists of their kind is assumed; with
    `choose-at-run-time`, or for an op that has the attribute `ssa.choose_at_run_time`, it is measured where the model says that the best schedules for
    lists that agree and for lists that do not differ by more than that costs: `ssa.agreeing` has the second schedule.

    Blocks that an `ssa.topk` forces into all lists are attended to apart in the order `key_outer`, which the unit attribute `ssa.forced_apart` says, where that is predicted to be
    faster by so much that another kernel is worth compiling: the first blocks, and the last ones up to that of the query, of lists for every query that scores alone fill up.

    Then the kernel that makes an `ssa.merge` or `ssa.mix` (`ssa.fused_attend`) gets as many of its other parts as pays: those have the same schedule then, and are
    `with` in the attribute. Declines, with a remark, where they have other queries, tiles that do not fit one another or no schedule in common, or where two kernels are
    predicted to take less.
  }];
  let options = [Option<"sizesText", "sizes", "std::string", "\"131072\"", "the sizes that are assumed where types leave them open">,
                 Option<"agreement", "agreement", "double", "-1.0", "the share that lists of neighbouring queries have in common; negative: not said">,
                 Option<"chooseAtRunTime", "choose-at-run-time", "bool", "false", "let the device choose where nobody says how much lists agree">,
                 Option<"tuningFile", "tuning", "std::string", "\"\"", "a file that ssa-tune wrote">];
}

def SSAChunkRowsPass : Pass<"ssa-chunk-rows", "::mlir::ModuleOp"> {
  let summary = "bound the memory that scores take between routing and selecting";
  let description = [{
    Input: any module. Output: every `ssa.topk` whose scores come from an `ssa.route`, with or without `ssa.rebin` between
    them, and serve nothing else has the attribute `ssa.chunk`: scores are made and selected from for some rows at a time.
    One that is written already is kept. Left alone, where sizes are static and all fit; with a remark, where the scores come
    from elsewhere or are used by others too: they are there as a whole then.
  }];
  let options = [Option<"bytes", "bytes", "int64_t", "134217728", "what the scores of a chunk may take">,
                 Option<"rows", "rows", "int64_t", "128", "a chunk has a multiple of so many rows">];
}

def SSASortSelectionPass : Pass<"ssa-sort-selection", "::mlir::ModuleOp"> {
  let summary = "make selections ascending and free of repeats";
  let description = [{
    Input: any module. Output: every selection read by `ssa.sparse_attend` is typed `sorted`; where its producer does not
    give that, `ssa.sort` is inserted. Gathered keys lie in the order of their list: there repeats become padding, and nothing moves.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::ssa::SSADialect"];
  let statistics = [Statistic<"numSorted", "num-sorted", "ssa.sort ops inserted">];
}

def SSAMergeKernelsPass : Pass<"ssa-merge-kernels", "::mlir::ModuleOp"> {
  let summary = "keep one of kernels that are the same";
  let description = [{
    Functions that share a part of a pattern become kernels of their own each, and so do ways of making one thing in parts or as a whole.
    Arguments of launched kernels that nothing uses are dropped, from kernels and launches. Then kernels that differ in their name alone
    become one, and launches of the others launch that.
  }];
  let statistics = [Statistic<"numMerged", "num-merged", "kernels left out">];
}

def SSACommonSubexpressionsPass : Pass<"ssa-common-subexpressions"> {
  let summary = "keep one of ops that compute the same, and none whose results nothing uses";
  let description = [{
    What `cse` does to structured code, in a third of the time, of which compiling has enough: blocks know what is around their region, and a read of
    memory stands for a later one if nothing that may write comes between. Blocks of one region do not know of each other.
  }];
  let statistics = [Statistic<"numErased", "num-erased", "ops left out">];
}

def SSAGuardKernelsPass : Pass<"ssa-guard-kernels", "::mlir::ModuleOp"> {
  let summary = "let kernels of a branch that is not taken leave at once";
  let description = [{
    A kernel that is launched where a flag in the device's memory says so has the attribute `ssa.when = #ssa.when<argument = 3, is = true>`: it begins by reading the
    first element of this argument, and ends there if that is not what it should be. Nothing else of such a kernel changes.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect", "::mlir::memref::MemRefDialect"];
}

def SSADependentLaunchesPass : Pass<"ssa-dependent-launches", "::mlir::ModuleOp"> {
  let summary = "let kernels be launched before the one before has ended";
  let description = [{
    Of a module with the attribute `ssa.dependent_launches` every kernel begins with a wait for all that was launched before it (`griddepcontrol.wait`), and launches say so (`ssa.dependent`): a launcher may
    have blocks of the next kernel take their places while those of the one before end. What a kernel reads and writes is ordered as before. Of chips
    without such instructions (before sm_90) nothing changes.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // SSA_TRANSFORMS_PASSES_TD
