// UNSUPPORTED: ptxas
// Without a toolkit there is no machine code; all else is there.
//
// RUN: not ssa-opt %s --emit=cubin 2>&1 | FileCheck %s
// CHECK: error: cannot make a cubin: there is no 'ptxas' in PATH, in CUDA_HOME or in /usr/local/cuda; install the CUDA toolkit, or emit 'ptx' or 'bundle', which the driver assembles

module {}
