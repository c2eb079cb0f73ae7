// RUN: ssa-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{expected 'tile_rows' to be a multiple of 64 up to 256, but got 96}}
func.func private @rows() attributes {s = #ssa.schedule<instruction = wgmma, tile_rows = 96, tile_keys = 64, stages = 2>}

// -----

// expected-error @below {{expected 'tile_keys' to be a multiple of 16 up to 256, but got 24}}
func.func private @keys() attributes {s = #ssa.schedule<instruction = mma_sync, tile_rows = 96, tile_keys = 24, stages = 2>}

// -----

// expected-error @below {{expected 'stages' to be in 2 .. 8, but got 1}}
func.func private @stages() attributes {s = #ssa.schedule<instruction = mma_sync, tile_rows = 96, tile_keys = 32, stages = 1>}

// -----

// expected-error @below {{expected 'split' to be in 1 .. 64, but got 65}}
func.func private @parts() attributes {s = #ssa.schedule<instruction = mma_sync, tile_rows = 96, tile_keys = 32, stages = 2, split = 65>}

// -----

// expected-error @below {{expected 'split' with 'order = union' to be 1, but got 2}}
func.func private @order() attributes {s = #ssa.schedule<order = union, instruction = mma_sync, tile_rows = 96, tile_keys = 32, stages = 2, split = 2>}

// -----

// expected-error @below {{expected 'partials' with 'order = shared_list' to be f32, but got bf16}}
func.func private @partials() attributes {s = #ssa.schedule<instruction = mma_sync, tile_rows = 96, tile_keys = 32, stages = 2, partials = bf16>}
