!arg = memref<?x4x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>>
module attributes {gpu.container_module} {
  func.func @scale(%x: !arg, %y: !arg, %f: f32) -> !arg {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c128 = arith.constant 128 : index
    %b = memref.dim %x, %c0 : !arg
    %m = memref.dim %x, %c2 : !arg
    %my = memref.dim %y, %c2 : !arg
    %same = arith.cmpi eq, %m, %my : index
    cf.assert %same, "dimension 2 of 'y' must be dimension 2 of 'x'"
    %o = memref.alloc(%b, %m) : memref<?x4x?x64xbf16>
    %oc = memref.cast %o : memref<?x4x?x64xbf16> to !arg
    %rows = arith.muli %b, %c4 : index
    %all = arith.muli %rows, %m : index
    %vecs = arith.muli %all, %c8 : index
    %grid = arith.ceildivsi %vecs, %c128 : index
    gpu.launch_func @kernels::@scale blocks in (%grid, %c1, %c1) threads in (%c128, %c1, %c1) args(%x : !arg, %y : !arg, %oc : !arg, %f : f32)
    return %oc : !arg
  }
  gpu.module @kernels {
    gpu.func @scale(%x: !arg, %y: !arg, %o: !arg, %f: f32) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %c128 = arith.constant 128 : index
      %bid = gpu.block_id x
      %tid = gpu.thread_id x
      %base = arith.muli %bid, %c128 : index
      %i = arith.addi %base, %tid : index
      %b = memref.dim %x, %c0 : !arg
      %m = memref.dim %x, %c2 : !arg
      %v = arith.remui %i, %c8 : index
      %r = arith.divui %i, %c8 : index
      %row = arith.remui %r, %m : index
      %bh = arith.divui %r, %m : index
      %h = arith.remui %bh, %c4 : index
      %bb = arith.divui %bh, %c4 : index
      %in = arith.cmpi ult, %bb, %b : index
      scf.if %in {
        %d = arith.muli %v, %c8 : index
        %a = vector.load %x[%bb, %h, %row, %d] : !arg, vector<8xbf16>
        %c = vector.load %y[%bb, %h, %row, %d] : !arg, vector<8xbf16>
        %af = arith.extf %a : vector<8xbf16> to vector<8xf32>
        %cf = arith.extf %c : vector<8xbf16> to vector<8xf32>
        %fv = vector.broadcast %f : f32 to vector<8xf32>
        %p = arith.mulf %af, %fv : vector<8xf32>
        %s = arith.addf %p, %cf : vector<8xf32>
        %e = math.exp %s : vector<8xf32>
        %t = arith.truncf %e : vector<8xf32> to vector<8xbf16>
        vector.store %t, %o[%bb, %h, %row, %d] : !arg, vector<8xbf16>
      }
      gpu.return
    }
  }
}
