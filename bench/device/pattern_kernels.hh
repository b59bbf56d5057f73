#pragma once
/// \file
/// The kernel of `headrace patterns`, compiled at run time.

namespace headrace::device_bench {

inline constexpr const char* kPatternKernels = R"cuda(
#include "headrace/payload_shader.hh"
#include "tables/pattern/pattern_view.hh"

using namespace headrace;

// Each warp searches one payload after the other, brought to shared memory as in a job. Counts what it finds: payloads
// with a match, the sum of the keys of first matches, payloads that were given up.
template <typename Scan>
__device__ void scan_all(const uint8_t* payloads, unsigned n, unsigned stride, unsigned length,
                         unsigned long long* results, Scan&& scan) {
  extern __shared__ uint4 stages[];
  uint8_t* const stage = reinterpret_cast<uint8_t*>(stages) + threadIdx.x / 32 * kStageBytes;
  const unsigned warps = gridDim.x * blockDim.x / 32;
  unsigned i = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  unsigned long long matches = 0, sum = 0, cut = 0;
  detail::Arrival arrival;
  const auto address = [&](unsigned k) { return reinterpret_cast<uint64_t>(payloads) + uint64_t{k} * stride; };
  if (i < n) arrival.begin(address(i), 0, length);
  for (; i < n; i += warps) {
    const PayloadBytes payload{arrival.finish(address(i), stage), length};
    __syncwarp();
    if (i + warps < n) arrival.begin(address(i + warps), 0, length);
    const uint64_t key = scan(payload);
    if (key == FirstMatch::kCut) {
      ++cut;
    } else if (key != FirstMatch::kNone) {
      ++matches;
      sum += key;
    }
    __syncwarp();
  }
  if ((threadIdx.x & 31) != 0) return;
  atomicAdd(results, matches);
  atomicAdd(results + 1, sum);
  atomicAdd(results + 2, cut);
}

extern "C" __global__ void __launch_bounds__(256)
    patterns_first(const uint8_t* payloads, unsigned n, unsigned stride, unsigned length,
                   const PatternView* view, unsigned long long* results) {
  scan_all(payloads, n, stride, length, results,
           [&](const PayloadBytes& payload) { return first_match(*view, WarpTeam{}, payload).key; });
}

extern "C" __global__ void __launch_bounds__(256)
    patterns_candidates(const uint8_t* payloads, unsigned n, unsigned stride, unsigned length,
                        const PatternView* view, unsigned long long* results) {
  scan_all(payloads, n, stride, length, results, [&](const PayloadBytes& payload) {
    const Candidates found = candidates(*view, WarpTeam{}, payload);
    return found.none() ? FirstMatch::kNone : found.cut() ? FirstMatch::kCut : found.packed;
  });
}
)cuda";

}  // namespace headrace::device_bench
