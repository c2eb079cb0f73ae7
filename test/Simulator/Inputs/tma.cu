// Compiled by `nvcc -ptx -arch=sm_90a -ccbin g++ tma.cu`: a kernel that is not ours, see nvcc.py.
#include <cstdint>
#include <cuda.h>
// c[m][n] = sum over k of a[m][k] * b[n][k], m and n up to 64, in steps of 64 of k: tensor maps with a 128-byte swizzle, two stages, wgmma.
constexpr int tile = 64 * 64 * 2;

__device__ static uint32_t shared_address(const void *p) { return uint32_t(__cvta_generic_to_shared(p)); }
__device__ static void load(uint32_t to, const CUtensorMap *map, int x, int y, uint32_t barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
               ::"r"(to), "l"(map), "r"(x), "r"(y), "r"(barrier) : "memory");
}
__device__ static void wait(uint32_t barrier, uint32_t parity) {
  asm volatile("{ .reg .pred done;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra WAIT;\n}" ::"r"(barrier), "r"(parity) : "memory");
}
__device__ static uint64_t descriptor(uint32_t address) { return uint64_t(address >> 4 & 0x3fff) | uint64_t(1) << 16 | uint64_t(64) << 32 | uint64_t(1) << 62; }

extern "C" __global__ void __launch_bounds__(128) gemm(float *c, const void *, const void *, const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, int m, int n, int k) {
  __shared__ __align__(1024) unsigned char tiles[4 * tile];
  __shared__ __align__(8) uint64_t full[2];
  uint32_t base = shared_address(tiles), barriers = shared_address(full);
  int steps = (k + 63) / 64;
  auto start = [&](int step) {
    uint32_t barrier = barriers + step % 2 * 8, to = base + step % 2 * 2 * tile;
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(2 * tile) : "memory");
    load(to, &a, step * 64, 0, barrier);
    load(to + tile, &b, step * 64, 0, barrier);
  };
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barriers) : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barriers + 8) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0)
    start(0);
  float d[32] = {};
  for (int step = 0; step < steps; ++step) {
    if (threadIdx.x == 0 && step + 1 < steps)
      start(step + 1);
    wait(barriers + step % 2 * 8, step / 2 % 2);
    uint32_t from = base + step % 2 * 2 * tile;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int kk = 0; kk < 4; ++kk)
      asm volatile("{ .reg .pred p;\nsetp.ne.b32 p, %34, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "
                   "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0;\n}"
                   : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
                     "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]),
                     "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
                   : "l"(descriptor(from + kk * 32)), "l"(descriptor(from + tile + kk * 32)), "r"(step + kk));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    __syncthreads();
  }
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = 0; i < 32; ++i) {
    int row = warp * 16 + lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    if (row < m && column < n)
      c[row * n + column] = d[i];
  }
}
