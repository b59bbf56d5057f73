#pragma once
/// \file
/// The kernels of `headrace limits`, compiled at run time.

namespace headrace::device_bench {

inline constexpr const char* kLimitKernels = R"cuda(
#include "tables/lpm4/lpm4_view.hh"
#include "tables/lpm6/lpm6_view.hh"

using headrace::Lpm4Generation;
using headrace::Lpm4View;
using headrace::Lpm6Generation;
using headrace::Lpm6Key;
using headrace::Lpm6View;

__device__ inline uint4 load_fresh(const uint4* from) {
  uint4 v;
  asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}

// Reads `pieces` times 16 bytes of each of `cells` cells that lie `stride` times 16 bytes apart; writes them back
// changed if `back`.
extern "C" __global__ void limit_cells(uint4* memory, unsigned cells, unsigned stride, unsigned pieces, int back,
                                       uint4* sink) {
  constexpr unsigned kInFlight = 4;
  const unsigned all = cells * pieces, step = gridDim.x * blockDim.x;
  uint4 sum = {0, 0, 0, 0};
  for (unsigned first = blockIdx.x * blockDim.x + threadIdx.x; first < all; first += kInFlight * step) {
    uint4 v[kInFlight];
    uint4* at[kInFlight];
#pragma unroll
    for (unsigned k = 0; k < kInFlight; ++k) {
      const unsigned i = first + k * step;
      at[k] = memory + size_t{i / pieces} * stride + i % pieces;
      if (i < all) v[k] = load_fresh(at[k]);
    }
#pragma unroll
    for (unsigned k = 0; k < kInFlight; ++k) {
      if (first + k * step >= all) break;
      if (back) {
        v[k].x ^= 0x55;
        *at[k] = v[k];
      } else {
        sum = {sum.x ^ v[k].x, sum.y ^ v[k].y, sum.z ^ v[k].z, sum.w ^ v[k].w};
      }
    }
  }
  if (!back && sum.x == 0x12345678 && sum.y == 0x9abcdef0) *sink = sum;
}

// One thread answers `rounds` rings of a bell in the host's memory.
extern "C" __global__ void limit_doorbell(const unsigned* bell, unsigned* answer, unsigned rounds) {
  for (unsigned round = 1; round <= rounds; ++round) {
    unsigned value;
    do {
      asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(bell) : "memory");
    } while (value != round);
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(answer), "r"(value) : "memory");
  }
}

extern "C" __global__ void limit_launch(unsigned* answer, unsigned value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(answer), "r"(value) : "memory");
}

extern "C" __global__ void limit_lookup4(Lpm4View view, const unsigned* keys, unsigned short* hops, unsigned n) {
  const unsigned step = gridDim.x * blockDim.x;
  for (unsigned i = 4 * (blockIdx.x * blockDim.x + threadIdx.x); i < n; i += 4 * step) {
    const uint4 key = *reinterpret_cast<const uint4*>(keys + i);
    ushort4 hop;
    hop.x = static_cast<unsigned short>(view.lookup(key.x));
    hop.y = static_cast<unsigned short>(view.lookup(key.y));
    hop.z = static_cast<unsigned short>(view.lookup(key.z));
    hop.w = static_cast<unsigned short>(view.lookup(key.w));
    *reinterpret_cast<ushort4*>(hops + i) = hop;
  }
}

extern "C" __global__ void limit_lookup6(Lpm6View view, const ulonglong2* keys, unsigned short* hops, unsigned n) {
  const unsigned step = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    const ulonglong2 key = keys[i];
    hops[i] = static_cast<unsigned short>(view.lookup(Lpm6Key{key.x, key.y}));
  }
}
)cuda";

}  // namespace headrace::device_bench
