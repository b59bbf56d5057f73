#pragma once
/// \file
/// The kernel of `headrace acl`, compiled at run time.

namespace headrace::device_bench {

/// Looks `n` keys of 16 bytes up in a table of keys of `kWords` words, whose other words are 0; stores numbers of entries.
inline constexpr const char* kAclKernels = R"(#include "tables/acl/acl_view.hh"
using namespace headrace;

template <unsigned kWords>
__device__ inline void look_up(AclView view, const uint4* keys, unsigned* numbers, unsigned n) {
  const AclLookup<kWords> lookup(*view.generation());
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const uint4 four = keys[i];
    uint32_t key[kWords] = {four.x, four.y, four.z, four.w};
    numbers[i] = lookup.find(key).number;
  }
}

extern "C" __global__ void look_up4(AclView view, const uint4* keys, unsigned* numbers, unsigned n) {
  look_up<4>(view, keys, numbers, n);
}
extern "C" __global__ void look_up12(AclView view, const uint4* keys, unsigned* numbers, unsigned n) {
  look_up<12>(view, keys, numbers, n);
}
extern "C" __global__ void look_up32(AclView view, const uint4* keys, unsigned* numbers, unsigned n) {
  look_up<32>(view, keys, numbers, n);
}
)";

}  // namespace headrace::device_bench
