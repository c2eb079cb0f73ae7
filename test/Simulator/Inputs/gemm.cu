// Compiled by `nvcc -ptx -arch=sm_90 -ccbin g++ gemm.cu`: a kernel that is not ours, see nvcc.py.
#include <cuda_bf16.h>
// c[m][n] = sum over k of a[m][k] * b[n][k]: tiles of 64 x 64 in shared memory, four warps.
constexpr int tile = 64, depth = 32;
extern "C" __global__ void __launch_bounds__(128) gemm(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k) {
  __shared__ __align__(16) __nv_bfloat16 as[tile][depth + 8], bs[tile][depth + 8];
  int row0 = blockIdx.y * tile, column0 = blockIdx.x * tile, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float d[8][4] = {};
  for (int k0 = 0; k0 < k; k0 += depth) {
    __syncthreads();
    for (int i = threadIdx.x; i < tile * depth; i += blockDim.x) {
      int r = i / depth, x = i % depth;
      as[r][x] = row0 + r < m && k0 + x < k ? a[(row0 + r) * k + k0 + x] : __float2bfloat16(0.0f);
      bs[r][x] = column0 + r < n && k0 + x < k ? b[(column0 + r) * k + k0 + x] : __float2bfloat16(0.0f);
    }
    __syncthreads();
    for (int kk = 0; kk < depth; kk += 16) {
      unsigned af[4];
      int r = warp * 16 + lane / 4, x = kk + lane % 4 * 2;
      af[0] = *(unsigned *)&as[r][x];
      af[1] = *(unsigned *)&as[r + 8][x];
      af[2] = *(unsigned *)&as[r][x + 8];
      af[3] = *(unsigned *)&as[r + 8][x + 8];
      for (int j = 0; j < 8; ++j) {
        unsigned bf[2] = {*(unsigned *)&bs[j * 8 + lane / 4][x], *(unsigned *)&bs[j * 8 + lane / 4][x + 8]};
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3]) : "r"(af[0]), "r"(af[1]), "r"(af[2]), "r"(af[3]), "r"(bf[0]), "r"(bf[1]));
      }
    }
  }
  for (int j = 0; j < 8; ++j)
    for (int i = 0; i < 4; ++i) {
      int r = row0 + warp * 16 + lane / 4 + i / 2 * 8, x = column0 + j * 8 + lane % 4 * 2 + i % 2;
      if (r < m && x < n)
        c[r * n + x] = d[j][i];
    }
}
