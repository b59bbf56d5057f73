#pragma once
/// \file
/// The kernels of `headrace esp`, compiled at run time.

namespace headrace::device_bench {

/// `packets`: `n` ESP packets of `length` bytes, `stride` bytes apart; packet i has keys i % `associations`. `direct` takes
/// the packets in the order of `order`, as packets of a pool come. `tables` and `slices` only add a key stream to `blocks`
/// blocks of each packet: AES by tables in shared memory, two blocks a lane, and in slices of bits, eight blocks a lane.
inline constexpr const char* kESPKernels = R"(#include "headrace/device/loads.hh"
#include "tables/sa/aes_bitsliced_view.hh"
#include "tables/sa/esp_crypto_view.hh"
using namespace headrace;

extern "C" __global__ void __launch_bounds__(256) seal(uint8_t* packets, uint32_t stride, uint32_t n, uint32_t length,
                                                       const ESPKeys* keys, uint32_t associations) {
  BestAESTable::fill();
  __syncthreads();
  const WarpTeam team;
  // A warp encrypts packets one after the other; then each lane authenticates one.
  for (uint32_t first = (blockIdx.x * blockDim.x + threadIdx.x) & ~31u; first < n; first += gridDim.x * blockDim.x) {
    for (uint32_t i = first; i < first + 32 && i < n; ++i) {
      const TeamKeys<WarpTeam> copy(team, keys[i % associations]);
      esp_encrypt(team, *copy, packets + size_t{i} * stride, length, 0);
      __syncwarp();
    }
    const uint32_t mine = first + (threadIdx.x & 31);
    if (mine < n) esp_authenticate(keys[mine % associations], packets + size_t{mine} * stride, length, 0);
    __syncwarp();
  }
}

extern "C" __global__ void __launch_bounds__(256) open(uint8_t* packets, uint32_t stride, uint32_t n, uint32_t length,
                                                       const ESPKeys* keys, uint32_t associations,
                                                       unsigned long long* bad) {
  BestAESTable::fill();
  __syncthreads();
  const WarpTeam team;
  for (uint32_t first = (blockIdx.x * blockDim.x + threadIdx.x) & ~31u; first < n; first += gridDim.x * blockDim.x) {
    const uint32_t mine = first + (threadIdx.x & 31);
    const bool good =
        mine < n && esp_verify(keys[mine % associations], packets + size_t{mine} * stride, length, 0);
    for (uint32_t todo = __ballot_sync(~0u, good); todo != 0; todo &= todo - 1) {
      const uint32_t i = first + __ffs(static_cast<int>(todo)) - 1;
      const TeamKeys<WarpTeam> copy(team, keys[i % associations]);
      const bool right = esp_decrypt(team, *copy, packets + size_t{i} * stride, length, 0);
      if (!right && (threadIdx.x & 31) == 0) atomicAdd(bad, 1ull);
      __syncwarp();
    }
    if (mine < n && !good) atomicAdd(bad, 1ull);
  }
}

template <uint32_t kBlocks, typename F>
inline __device__ void add_stream(uint8_t* packets, uint32_t stride, uint32_t n, uint32_t blocks, F&& encrypt) {
  const uint32_t lanes = blocks / kBlocks;  // of a packet
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n * lanes; i += gridDim.x * blockDim.x) {
    const uint32_t packet = i / lanes, lane = i % lanes;
    uint4* const at = reinterpret_cast<uint4*>(packets + size_t{stride} * packet) + lane;
    CipherBlock stream[kBlocks];
    for (uint32_t k = 0; k < kBlocks; ++k) stream[k] = {{packet, 0, 0, k * lanes + lane}};
    encrypt(packet, stream);
    for (uint32_t k = 0; k < kBlocks; ++k) {
      const uint4 v = at[k * lanes];
      at[k * lanes] = uint4{v.x ^ stream[k].w[0], v.y ^ stream[k].w[1], v.z ^ stream[k].w[2], v.w ^ stream[k].w[3]};
    }
  }
}
extern "C" __global__ void __launch_bounds__(256) tables(uint8_t* packets, uint32_t stride, uint32_t n, uint32_t blocks,
                                                         const ESPKeys* keys, const AESSlices*, uint32_t associations) {
  BestAESTable::fill();
  __syncthreads();
  add_stream<2>(packets, stride, n, blocks, [&](uint32_t packet, CipherBlock (&stream)[2]) {
    const ESPKeys& mine = keys[packet % associations];
    aes_encrypt(BestAESTable{}, RoundKeys(mine.round_keys, mine.rounds), stream);
  });
}
extern "C" __global__ void __launch_bounds__(256) slices(uint8_t* packets, uint32_t stride, uint32_t n, uint32_t blocks,
                                                         const ESPKeys* keys, const AESSlices* sliced,
                                                         uint32_t associations) {
  add_stream<8>(packets, stride, n, blocks, [&](uint32_t packet, CipherBlock (&stream)[8]) {
    const uint32_t rounds = keys[packet % associations].rounds;
    aes_encrypt_sliced(sliced + packet % associations * (rounds + 1), rounds, stream);
  });
}

extern "C" __global__ void direct(const uint8_t* from, uint8_t* to, uint32_t stride, uint32_t n, uint32_t length,
                                  const uint32_t* order) {
  const uint32_t lane = threadIdx.x & 31;
  for (uint32_t i = (blockIdx.x * blockDim.x + threadIdx.x) / 32; i < n; i += gridDim.x * blockDim.x / 32) {
    const size_t packet = size_t{order[i]} * stride;
    uint4 v[4];
    for (uint32_t k = 0; k < 4; ++k)
      if ((k * 32 + lane) * 16 < length) v[k] = device::load_fresh(from + packet + (k * 32 + lane) * 16);
    for (uint32_t k = 0; k < 4; ++k)
      if ((k * 32 + lane) * 16 < length) *reinterpret_cast<uint4*>(to + packet + (k * 32 + lane) * 16) = v[k];
  }
}
)";

}  // namespace headrace::device_bench
