// What --emit writes, for one chip and for several. The module scales, adds and exponentiates.
//
// RUN: ssa-opt %S/Inputs/exp.mlir --emit=mlir --chip=sm_90a | FileCheck %s --check-prefix=MLIR
// MLIR: module attributes {gpu.container_module, ssa.target = #ssa.target<sm_90a>}
// MLIR: gpu.launch_func
// MLIR: gpu.func @scale
//
// RUN: ssa-opt %S/Inputs/exp.mlir --emit=llvm --chip=sm_90a | FileCheck %s --check-prefix=LLVM
// LLVM: target triple = "nvptx64-nvidia-cuda"
// LLVM: define ptx_kernel void @scale
// LLVM-NOT: fast
//
// RUN: ssa-opt %S/Inputs/exp.mlir --emit=ptx --chip=sm_90a | FileCheck %s --check-prefixes=PTX,SM90
// RUN: ssa-opt %S/Inputs/exp.mlir --emit=ptx | FileCheck %s --check-prefixes=PTX,SM100
// RUN: ssa-opt %S/Inputs/exp.mlir --emit=ptx --chip=sm_110a | FileCheck %s --check-prefixes=PTX,SM110
// SM90: .version 8.8
// SM90: .target sm_90a
// SM100: .version 8.8
// SM100: .target sm_100a
// SM110: .version 9.0
// SM110: .target sm_110a
// PTX: .visible .entry scale(
// PTX: .reqntid 128, 1, 1
// 16 bytes at a time.
// PTX: ld.global.{{v4.b32|v2.b64}}
// Contracted, where nothing says otherwise.
// PTX: fma.rn.f32
// PTX: ex2.approx.ftz.f32
// PTX: st.global.{{v4.b32|v2.b64}}
//
// RUN: ssa-opt %S/Inputs/exp.mlir --emit=bundle --chip=sm_80,sm_90a,sm_100a -o %t.json
// RUN: FileCheck %s --check-prefix=BUNDLE < %t.json
// RUN: %python %S/Inputs/show_bundle.py %t.json | FileCheck %s --check-prefix=SHOWN
//      BUNDLE: {
// BUNDLE-NEXT:   "format": "ssa-bundle",
// BUNDLE-NEXT:   "version": 1,
// BUNDLE-NEXT:   "producer": "ssa {{[0-9.]+}}",
// BUNDLE-NEXT:   "targets": [
// BUNDLE-NEXT:     {
// BUNDLE-NEXT:       "chip": "sm_80",
// BUNDLE-NEXT:       "ptx_version": "8.8",
// BUNDLE-NEXT:       "ptx": "
// SHOWN: sm_80 8.8 .target sm_80 scale: scale
// SHOWN-NEXT: sm_90a 8.8 .target sm_90a scale: scale
// SHOWN-NEXT: sm_100a 8.8 .target sm_100a scale: scale
//
// RUN: ssa-opt %S/Inputs/exp.mlir --emit=ptx --chip=sm_90a --mlir-timing -o %t.ptx 2>&1 | FileCheck %s --check-prefix=TIMING
// Passes stand under the pipeline that they are of, each by its own name.
// TIMING: Parser
// TIMING: {{^.*%\)  }}Decisions
// TIMING: {{^.*%\)    }}SSAAttachTargetPass
// TIMING: {{^.*%\)    }}SSAChunkRowsPass
// TIMING: {{^.*%\)  }}Kernels
// TIMING: {{^.*%\)    }}ConvertSSAToSSAGPUPass
// TIMING: {{^.*%\)    }}SSAMergeKernelsPass
// TIMING: {{^.*%\)    }}SSACommonSubexpressionsPass
// TIMING: {{^.*%\)    }}Canonicalizer
// TIMING: {{^.*%\)    }}SSAMergeKernelsPass
// TIMING: {{^.*%\)  }}Verifier
// TIMING: {{^.*%\)  }}Host functions
// TIMING: LowerAffinePass
// TIMING: {{^.*%\)  }}Plans
// TIMING: {{^.*%\)  }}Lowering of kernels
// TIMING: SSANVPTXExpandMathPass
// TIMING: Translation to LLVM IR
// TIMING: LLVM optimization
// TIMING: PTX generation
//
// Nothing is written where there is an error.
// RUN: rm -f %t.none
// RUN: not ssa-opt %s --emit=bundle --chip=sm_9 -o %t.none 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not ls %t.none
// UNKNOWN: error: unknown chip 'sm_9'; known are sm_80, sm_86,
//
// RUN: not ssa-opt %s --emit=ptx --chip=sm_90a,sm_100a 2>&1 | FileCheck %s --check-prefix=SEVERAL
// SEVERAL: error: expected one chip, but got 2; only a bundle is for several
//
// RUN: not ssa-opt %s --emit=bundle --chip=sm_90a,sm_90a 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: the chip 'sm_90a' is named twice
//
// RUN: not ssa-opt %s --chip=sm_90a 2>&1 | FileCheck %s --check-prefix=ALONE
// ALONE: ssa-opt: error: '--chip' needs '--emit'; to name the target of a module use '--ssa-attach-target=chip=sm_90a'
//
// RUN: not ssa-opt %s --emit=sass 2>&1 | FileCheck %s --check-prefix=KIND
// KIND: for the --emit option: Cannot find option named 'sass'!
//
// RUN: not ssa-opt %t.missing --emit=ptx 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: ssa-opt: error: cannot read

module {}
