// RUN: ssa-opt %s -split-input-file -ssa-attach-target | FileCheck %s --check-prefix=DEFAULT
// RUN: ssa-opt %s -split-input-file -ssa-attach-target=chip=sm_90a -verify-diagnostics | FileCheck %s --check-prefix=CHIP

// DEFAULT: module @none attributes {ssa.target = #ssa.target<sm_100a>}
// CHIP: module @none attributes {ssa.target = #ssa.target<sm_90a>}
module @none {}

// -----

// DEFAULT: module @same attributes {ssa.target = #ssa.target<sm_90a>}
// CHIP: module @same attributes {ssa.target = #ssa.target<sm_90a>}
module @same attributes {ssa.target = #ssa.target<sm_90a>} {}

// -----

// A target that is written down is kept, and never overridden.
// DEFAULT: module @other attributes {ssa.target = #ssa.target<sm_120a>}
// expected-error @below {{is written for 'sm_120a', as its 'ssa.target' says, and cannot be compiled for 'sm_90a'}}
module @other attributes {ssa.target = #ssa.target<sm_120a>} {}
