// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A step ends behind the last key that a query of the tile sees, and behind it are zeros: of 190 queries at 10 .. 199 the first 64 have a list of the
// keys up to 127, which the others do not have. Keys behind 73 are hidden from all then, and their values may be anything.
// RUN: %python -c "import numpy, sys; v = numpy.random.default_rng(1).standard_normal((1, 1, 200, 64), 'f4'); v[:, :, 74:128] = numpy.nan; numpy.save(sys.argv[1], v)" %t.v.npy
// RUN: %python -c "import numpy, sys; numpy.save(sys.argv[1], numpy.array([[0], [1], [1]], 'i4')[None, None])" %t.lists.npy
// RUN: ssa-run %s --entry=lists --in randn:1x1x190x64,randn:1x1x200x64,%t.v.npy,%t.lists.npy --device=sim --out %t.sim.npy
// RUN: ssa-run %s --entry=lists --in randn:1x1x190x64,randn:1x1x200x64,%t.v.npy,%t.lists.npy --out %t.npy
// RUN: %python -c "import numpy, sys; a, b = map(numpy.load, sys.argv[1:]); assert abs(a - b).max() < 0.02" %t.sim.npy %t.npy

// Where later queries see such a value it reaches none of the tiles before.
// RUN: %python -c "import numpy, sys; v = numpy.random.default_rng(1).standard_normal((1, 1, 200, 64), 'f4'); v[:, :, 100] = numpy.nan; numpy.save(sys.argv[1], v)" %t.late.npy
// RUN: ssa-run %s --entry=all --in randn:1x2x190x64,randn:1x1x200x64,%t.late.npy --device=sim --out %t.sim.npy
// RUN: ssa-run %s --entry=all --in randn:1x2x190x64,randn:1x1x200x64,%t.late.npy --out %t.npy
// RUN: %python -c "import numpy, sys; a, b = map(numpy.load, sys.argv[1:]); assert abs(a - b)[:, :, :64].max() < 0.02 and numpy.isnan(a[:, :, 90:]).all()" %t.sim.npy %t.npy

!q = tensor<?x1x?x64xbf16>
!kv = tensor<?x1x?x64xbf16>
func.func @lists(%q: !q, %k: !kv, %v: !kv, %t: tensor<?x1x?x1xi32>) -> !q {
  %s = ssa.from_indices %t : tensor<?x1x?x1xi32> -> !ssa.selection<?x1x?x1, key_block = 128, query_block = 64>
  %o, %l = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>, ssa.schedule = #ssa.schedule<instruction = wgmma, tile_rows = 64, tile_keys = 128, stages = 2>}
      : !q, !kv, !kv, !ssa.selection<?x1x?x1, key_block = 128, query_block = 64> -> !q, tensor<?x1x?xf32>
  return %o : !q
}

!q2 = tensor<?x2x?x64xbf16>
func.func @all(%q: !q2, %k: !kv, %v: !kv) -> !q2 {
  %o, %l = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal>, ssa.schedule = #ssa.schedule<instruction = wgmma, tile_rows = 64, tile_keys = 128, stages = 2>}
      : !q2, !kv, !kv -> !q2, tensor<?x2x?xf32>
  return %o : !q2
}
