// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SSA_GPU_TRANSFORMS_PASSES_TD
#define SSA_GPU_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def SSAGPUVerifySyncPass : Pass<"ssa-gpu-verify-sync", "::mlir::gpu::GPUModuleOp"> {
  let summary = "check that tiles in shared memory are read after they are written, and written after they are read";
  let description = [{
    Input: kernels of `ssa_gpu`, before or after `ssa-gpu-allocate`; they stay as they are. An error is each kernel in which, on
    some path,

    - a tile or array is read while a copy into it may be under way, or while only the thread that wrote an entry sees it: between the two
      must be `commit_copies` and a `wait_copies` that leaves few enough groups pending, or a `gpu.barrier` where no copy and
      no `wgmma` is involved;
    - one is written while other threads may still read it: between the two must be a `gpu.barrier` or `wait_copies`;
    - one is written while a copy into it may be under way.

    Rings are followed slot by slot: the loops of a kernel are walked for every number of rounds up to one more than the most slots of a
    ring, and its loop over items twice, so that what one round or item leaves behind meets the next one. A slot whose number is not made
    of loop variables and constants stands for all slots. A condition that is not decided by the numbers of rounds goes both ways.

    In a kernel with roles, memory that several roles touch is guarded by a pipe. An error is

    - an access without a slot of that pipe: reads stand between `await` and `release`, writes between `acquire` and `publish`, of a ticket
      from which the number of the slot is computed; all accesses of an allocation under the same pipe; weights that a role puts into a slot
      which it awaited stand between `acquire` and `publish` of another pipe;
    - a slot that is published while copies into it may be under way, or released while an asynchronous product may still read it; a result of
      a product that may be under way;
    - a slot that is given back without being held, taken twice, or held at the end of a role, or on one of two paths that meet;
    - a pipe without exactly one role that fills it, or without others that empty it.

    What one role has for itself is checked like a kernel of its own. Kernels with loops that begin at a number which is only known at run
    time, and with shared memory behind block arguments, are not checked.
  }];
}

#endif // SSA_GPU_TRANSFORMS_PASSES_TD
