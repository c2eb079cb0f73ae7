// REQUIRES: ptxas
// Machine code for every known chip; no warnings, no spills.
//
// RUN: ssa-opt %S/Inputs/exp.mlir --emit=cubin --chip=sm_90a -o %t.cubin 2>&1 | count 0
// RUN: %python -c "assert open(r'%t.cubin', 'rb').read(4) == b'\x7fELF'"
// RUN: ssa-opt %S/Inputs/exp.mlir --emit=bundle --chip=sm_80,sm_86,sm_89,sm_90,sm_90a,sm_100,sm_100a,sm_100f,sm_103a,sm_110a,sm_120,sm_120a -o %t.json
// RUN: %python %S/Inputs/assemble.py %ptxas %t.json | FileCheck %s
// CHECK-COUNT-12: {{^sm_[0-9]+[af]?: 0 bytes spilled, [0-9]+ registers$}}
