// RUN: ssa-opt %s --emit=ptx --chip=sm_90a | FileCheck %s --check-prefix=ONE
// RUN: ssa-opt %s --emit=ptx --chip=sm_90a --every-lane-arrives | FileCheck %s --check-prefix=ALL
// RUN: ssa-opt %s --emit=bundle --chip=sm_90a --every-lane-arrives -o %t.json
// RUN: ssa-opt %s --emit=bundle --chip=sm_90a -o %t-one.json
// RUN: ssa-run %t.json --device=sim --in randn:1x8x65x128,randn:1x8x65x128,randn:1x8x65x128 --out %t.npy,%t-lse.npy
// RUN: ssa-run %t-one.json --device=sim --in randn:1x8x65x128,randn:1x8x65x128,randn:1x8x65x128 --out %t-one.npy,%t-one-lse.npy
// RUN: cmp %t.npy %t-one.npy
// RUN: cmp %t-lse.npy %t-one-lse.npy
// RUN: not ssa-opt %s --emit=ptx --chip=sm_100a --every-lane-arrives 2>&1 | FileCheck %s --check-prefix=TENSORS
// RUN: not ssa-opt %s --every-lane-arrives 2>&1 | FileCheck %s --check-prefix=STRAY

// Four warps produce; a warp arrives once, or 32 times.
!t = tensor<1x8x?x128xbf16>
func.func @dense(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x8x?xf32>) {
  %o, %lse = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal>} : !t, !t, !t -> !t, tensor<1x8x?xf32>
  return %o, %lse : !t, tensor<1x8x?xf32>
}

// ONE: mbarrier.init.shared::cta.b64 [{{.*}}], 4;
// ALL: mbarrier.init.shared::cta.b64 [{{.*}}], 128;
// TENSORS: error: 'every-lane-arrives' is for kernels without tensor memory, where the ends of products arrive as well; choose another chip
// STRAY: ssa-opt: error: '--every-lane-arrives' needs '--explain' or '--emit'
