// RUN: ssa-opt %s -split-input-file -verify-diagnostics -pass-pipeline='builtin.module(gpu.module(ssa-nvptx-verify))'

module attributes {ssa.target = #ssa.target<sm_90a>} {
  gpu.module @fits {
    gpu.func @f() kernel {
      nvvm.wgmma.fence.aligned
      nvvm.setmaxregister increase 120
      nvvm.cluster.arrive
      llvm.inline_asm has_side_effects "cp.async.bulk.commit_group;", "" : () -> ()
      gpu.return
    }
  }
}

// -----

// The plain chip stands for all later ones, none of which has wgmma.
module attributes {ssa.target = #ssa.target<sm_90>} {
  gpu.module @plain {
    gpu.func @f() kernel {
      // expected-error @below {{'nvvm.wgmma.fence.aligned' op requires sm_90a, but the target is 'sm_90'}}
      nvvm.wgmma.fence.aligned
      // expected-error @below {{'nvvm.setmaxregister' op requires one of sm_90a, sm_100a, sm_100f, sm_103a, sm_110a, sm_120a, but the target is 'sm_90'}}
      nvvm.setmaxregister increase 120
      nvvm.cluster.arrive
      gpu.return
    }
  }
}

// -----

module attributes {ssa.target = #ssa.target<sm_80>} {
  gpu.module @ampere {
    gpu.func @f(%x: f32, %h: i16, %barrier: !llvm.ptr<3>, %parity: i32, %ticks: i32) kernel {
      nvvm.cp.async.commit.group
      // expected-error @below {{'nvvm.cluster.arrive' op requires one of sm_90, sm_90a, sm_100}}
      nvvm.cluster.arrive
      // expected-error @below {{'nvvm.mbarrier.try_wait.parity' op requires one of sm_90, sm_90a}}
      nvvm.mbarrier.try_wait.parity %barrier, %parity, %ticks : !llvm.ptr<3>, i32, i32
      gpu.return
    }
  }
}

// -----

// Intrinsics by name.
module attributes {ssa.target = #ssa.target<sm_90a>} {
  gpu.module @intrinsic {
    gpu.func @f(%x: f32, %m: i32) kernel {
      // expected-error @below {{'llvm.call_intrinsic' op with 'llvm.nvvm.redux.sync.fmax' requires one of sm_100a, sm_100f, sm_103a, but the target is 'sm_90a'}}
      %0 = llvm.call_intrinsic "llvm.nvvm.redux.sync.fmax"(%x, %m) : (f32, i32) -> f32
      gpu.return
    }
  }
}

// -----

// Every instruction of inline PTX, behind predicates and braces too.
module attributes {ssa.target = #ssa.target<sm_100>} {
  gpu.module @inline {
    gpu.func @f(%x: i64, %y: i32) kernel {
      // expected-error @below {{'llvm.inline_asm' op with 'tcgen05.wait::ld.sync.aligned' requires one of sm_100a, sm_100f, sm_103a, sm_110a, but the target is 'sm_100'}}
      llvm.inline_asm has_side_effects "{ .reg .pred p; setp.ne.b32 p, $0, 0; @p tcgen05.wait::ld.sync.aligned; }", "r" %y : (i32) -> ()
      %0 = llvm.inline_asm "fma.rn.f32x2 $0, $1, $1, $1;", "=l,l" %x : (i64) -> i64
      gpu.return
    }
  }
}

// -----

// expected-error @below {{is in a module without a target; run 'ssa-attach-target' first}}
gpu.module @no_target {
}
