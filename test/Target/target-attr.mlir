// RUN: ssa-opt %s -split-input-file -verify-diagnostics | FileCheck %s

// CHECK: module attributes {ssa.target = #ssa.target<sm_90a>}
module attributes {ssa.target = #ssa.target<sm_90a>} {}

// -----

// CHECK: module attributes {ssa.target = #ssa.target<sm_100f>}
module attributes {ssa.target = #ssa.target<sm_100f>} {}

// -----

// expected-error @below {{unknown chip 'sm_70'; known are sm_80, sm_86, sm_89, sm_90, sm_90a, sm_100, sm_100a, sm_100f, sm_103a, sm_110a, sm_120, sm_120a}}
module attributes {ssa.target = #ssa.target<sm_70>} {}

// -----

// expected-error @below {{expected 'ssa.target' to be a '#ssa.target', but got "sm_90a"}}
module attributes {ssa.target = "sm_90a"} {}

// -----

// expected-error @below {{cannot have 'ssa.target': it belongs to a module}}
func.func private @f() attributes {ssa.target = #ssa.target<sm_90a>}
