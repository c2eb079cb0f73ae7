// Compiled by `nvcc -ptx -arch=sm_100a -ccbin g++ tensor.cu`: a kernel that is not ours, see nvcc.py.
#include <cstdint>
#include <cuda.h>
// c[m][n] = sum over k of a[m][k] * b[n][k], m up to 128 and n up to 64, in steps of 64 of k: one warp loads tiles into three stages, one multiplies
// them into tensor memory, and all store what comes out.
constexpr int stages = 3, tileA = 128 * 64 * 2, tileB = 64 * 64 * 2;

__device__ static uint32_t shared_address(const void *p) { return uint32_t(__cvta_generic_to_shared(p)); }
__device__ static void load(uint32_t to, const CUtensorMap *map, int x, uint32_t barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
               ::"r"(to), "l"(map), "r"(x), "r"(0), "r"(barrier) : "memory");
}
__device__ static void wait(uint32_t barrier, uint32_t parity) {
  asm volatile("{ .reg .pred done;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra WAIT;\n}" ::"r"(barrier), "r"(parity) : "memory");
}
__device__ static uint64_t descriptor(uint32_t address) { return uint64_t(address >> 4 & 0x3fff) | uint64_t(64) << 32 | uint64_t(1) << 46 | uint64_t(2) << 61; }
__device__ static void commit(uint32_t barrier) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier) : "memory");
}

extern "C" __global__ void __launch_bounds__(128) gemm(float *c, const void *, const void *, const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, int m, int n, int k) {
  __shared__ __align__(1024) unsigned char tiles[stages * (tileA + tileB)];
  __shared__ __align__(8) uint64_t barriers[2 * stages + 1];
  __shared__ uint32_t slot;
  uint32_t base = shared_address(tiles), full = shared_address(barriers), empty = full + 8 * stages, done = empty + 8 * stages;
  int warp = threadIdx.x / 32, steps = (k + 63) / 64;
  if (warp == 2) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared_address(&slot)), "r"(64) : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
  }
  if (threadIdx.x == 0) {
    for (int i = 0; i <= 2 * stages; ++i)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(full + 8 * i) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  uint32_t d = *(volatile uint32_t *)&slot;
  if (threadIdx.x == 0) {
    for (int step = 0; step < steps; ++step) {
      int stage = step % stages;
      wait(empty + 8 * stage, step / stages % 2 ^ 1);
      uint32_t to = base + stage * (tileA + tileB), barrier = full + 8 * stage;
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(tileA + tileB) : "memory");
      load(to, &a, step * 64, barrier);
      load(to + tileA, &b, step * 64, barrier);
    }
  }
  if (warp == 1) {
    uint32_t leads;
    asm volatile("{ .reg .pred p;\n.reg .b32 leader;\nelect.sync leader|p, 0xffffffff;\nselp.b32 %0, 1, 0, p;\n}" : "=r"(leads));
    if (leads) {
      // f32 from bf16, 128 x 64.
      constexpr uint32_t instruction = 1u << 4 | 1u << 7 | 1u << 10 | 64u >> 3 << 17 | 128u >> 4 << 24;
      for (int step = 0; step < steps; ++step) {
        int stage = step % stages;
        wait(full + 8 * stage, step / stages % 2);
        asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
        uint32_t from = base + stage * (tileA + tileB);
        for (int kk = 0; kk < 4; ++kk)
          asm volatile("{ .reg .pred p;\nsetp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n}"
                       ::"r"(d), "l"(descriptor(from + kk * 32)), "l"(descriptor(from + tileA + kk * 32)), "r"(instruction), "r"(step + kk) : "memory");
        commit(empty + 8 * stage);
      }
      commit(done);
    }
  }
  __syncwarp();
  wait(done, 0);
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  for (int first = 0; first < 64; first += 8) {
    uint32_t v[8];
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]), "=r"(v[4]), "=r"(v[5]), "=r"(v[6]), "=r"(v[7]) : "r"(d + (warp * 32 << 16) + first));
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    for (int i = 0; i < 8; ++i)
      if (threadIdx.x < m && first + i < n)
        c[threadIdx.x * n + first + i] = __uint_as_float(v[i]);
  }
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  if (warp == 2)
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(d), "r"(64));
}
