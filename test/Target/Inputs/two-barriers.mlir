// Barriers become variables whose names are numbered within a module.
!bar = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
gpu.module @kernels {
  gpu.func @a() kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %bar = nvgpu.mbarrier.create -> !bar
    nvgpu.mbarrier.init %bar[%c0], %c1 : !bar
    gpu.return
  }
  gpu.func @b() kernel {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %bar = nvgpu.mbarrier.create -> !bar
    nvgpu.mbarrier.init %bar[%c0], %c2 : !bar
    gpu.return
  }
}
