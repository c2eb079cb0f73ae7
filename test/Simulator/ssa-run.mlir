// RUN: ssa-run %s --in randn:1x1x100x64 --device=sim --out %t.sim.npy
// RUN: ssa-run %s --in randn:1x1x100x64 --device=sim --chip=sm_100 --cores=1 --time --out %t.100.npy 2>&1 | FileCheck %s --check-prefix=TIME
// RUN: ssa-run %s --in randn:1x1x100x64 --out %t.npy
// RUN: %python -c "import numpy, sys; a, b, c = map(numpy.load, sys.argv[1:]); assert abs(a - b).max() < 1e-5 and (b == c).all()" %t.npy %t.sim.npy %t.100.npy
// TIME: {{[0-9.]+}} s 1 x kernels
// TIME: simulated {{[0-9.]+}} million thread instructions, {{[0-9.]+}} million a second of a core

// A bundle runs too, by the code for just the chip that is asked for, else by what would run there.
// RUN: ssa-opt %s --emit=bundle --chip=sm_80,sm_90 -o %t.json
// RUN: ssa-run %t.json --in randn:1x1x100x64 --device=sim --chip=sm_90a --out %t.json.npy
// RUN: %python -c "import numpy, sys; a, b = map(numpy.load, sys.argv[1:]); assert (a == b).all()" %t.sim.npy %t.json.npy

// RUN: not ssa-run %s --in randn:1x1x100x64 --device=sim --chip=sm_1 2>&1 | FileCheck %s --check-prefix=CHIP
// CHIP: error: device 'sim': the simulator knows no chip 'sm_1'
// RUN: not ssa-run %s --in randn:1x1x100x64 --chip=sm_90a 2>&1 | FileCheck %s --check-prefix=CPU
// CPU: error: --chip is for --device=sim only

// A result that a kernel leaves out is told.
// RUN: sed 's/st\.global[^;]*;//g' %t.json > %t.wrong.json
// RUN: not ssa-run %t.wrong.json --in randn:1x1x100x64 --device=sim --chip=sm_90 --out %t.none.npy 2>&1 | FileCheck %s --check-prefix=LEFT
// LEFT: error: device 'sim': cannot copy a result from the device: CUDA_ERROR_LAUNCH_FAILED (byte 0 of 1792 was never written)

func.func @mean(%k: tensor<1x1x?x64xf32>) -> tensor<1x1x?x64xf32> {
  %m = ssa.pool mean %k {blocks = #ssa.blocks<16>} : tensor<1x1x?x64xf32> -> tensor<1x1x?x64xf32>
  return %m : tensor<1x1x?x64xf32>
}
