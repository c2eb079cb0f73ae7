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

// -----

// expected-error @below {{expected with 'pair' 'instruction' to be tcgen05, 'tile_rows' 128 and 'tile_keys' a multiple of 128, but got wgmma, 128 and 64}}
func.func private @pair() attributes {s = #ssa.schedule<instruction = wgmma, tile_rows = 128, tile_keys = 64, stages = 2, pair = true>}

// -----

// expected-error @below {{expected 'order' with 'pair' to be shared_list or head_packed, but got union}}
func.func private @pair_order() attributes {s = #ssa.schedule<order = union, instruction = tcgen05, tile_rows = 128, tile_keys = 128, stages = 2, pair = true>}

// -----

// expected-error @below {{expected 'stages' to be in 1 .. 8, but got 0}}
func.func private @pair_stages() attributes {s = #ssa.schedule<instruction = tcgen05, tile_rows = 128, tile_keys = 128, stages = 0, pair = true>}

// -----

// expected-error @below {{expected 'percent' to be in 0 .. 100, but got 101}}
func.func private @percent() attributes {s = #ssa.agreeing<percent = 101, schedule = <instruction = mma_sync, tile_rows = 64, tile_keys = 32, stages = 2>>}

// -----

// expected-error @below {{'func.func' op cannot have 'ssa.agreeing': it belongs to 'ssa.sparse_attend'}}
func.func private @agreeing() attributes {ssa.agreeing = #ssa.agreeing<percent = 1, schedule = <instruction = mma_sync, tile_rows = 64, tile_keys = 32, stages = 2>>}

// -----

// expected-error @below {{'builtin.module' op cannot have 'ssa.when': it belongs to a kernel}}
module attributes {ssa.when = #ssa.when<argument = 0, is = true>} {}

// -----

// expected-error @below {{'func.func' op expected 'ssa.when' to be a '#ssa.when', but got true}}
func.func private @when() attributes {ssa.when = true}

// -----

// expected-error @below {{expected 'rows' to be in 1 .. 2147483647, but got 0}}
func.func private @overlap_rows() attributes {s = #ssa.overlap<rows = 0>}

// -----

// expected-error @below {{expected 'lanes' to be in 1 .. 16, but got 17}}
func.func private @overlap_lanes() attributes {s = #ssa.overlap<rows = 64, lanes = 17>}

// -----

// expected-error @below {{expected 'polynomials' to be in 0 .. 4, but got 5}}
func.func private @polynomials() attributes {s = #ssa.schedule<instruction = tcgen05, tile_rows = 128, tile_keys = 64, stages = 2, polynomials = 5>}

// -----

// expected-error @below {{expected 'polynomials' with 'instruction = wgmma' to be 0, but got 1}}
func.func private @polynomials_of_others() attributes {s = #ssa.schedule<instruction = wgmma, tile_rows = 128, tile_keys = 64, stages = 2, polynomials = 1>}
