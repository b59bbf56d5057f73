#pragma once
/// \file
/// Several lanes that work on one packet together: one lane on a CPU, a warp of 32 or a part of it on a GPU. Code for a team
/// is written once, in structured form; on the host a team of any size runs lane by lane. Read by the host compiler and
/// by NVRTC.

#include "headrace/shader_types.hh"

namespace headrace {

/// The payload of a packet, read only.
struct PayloadBytes {
  const uint8_t* data = nullptr;
  uint32_t length = 0;

  HEADRACE_SHADER uint8_t operator[](uint32_t i) const { return data[i]; }
  /// Four bytes from `i` on, the first in the lowest bits; bytes past the end are 0.
  HEADRACE_SHADER uint32_t word(uint32_t i) const {
    if (i >= length) return 0;
    const uint32_t left = length - i;
#if defined(__CUDA_ARCH__)
    // An aligned word that contains at least one byte of the payload can be read as a whole.
    const uintptr_t at = reinterpret_cast<uintptr_t>(data) + i;
    const uint32_t* const words = reinterpret_cast<const uint32_t*>(at & ~uintptr_t{3});
    const uint32_t skip = static_cast<uint32_t>(at & 3);
    const uint32_t v = __funnelshift_r(words[0], skip + left > 4 ? words[1] : 0, skip * 8);
    return left < 4 ? v & ((1u << (left * 8)) - 1) : v;
#else
    uint32_t v = 0;
    if (left >= 4)
      __builtin_memcpy(&v, data + i, 4);
    else
      __builtin_memcpy(&v, data + i, left);
    return v;
#endif
  }
};

/// The part of `n` positions that belongs to a lane when a team divides them into runs of equal length, in order.
struct LanePart {
  uint32_t begin;
  uint32_t end;
};
HEADRACE_SHADER LanePart lane_part(uint32_t lane, uint32_t lanes, uint32_t n) {
  const uint32_t each = (n + lanes - 1) / lanes;
  const uint32_t begin = lane * each < n ? lane * each : n;
  return {begin, begin + each < n ? begin + each : n};
}

namespace detail {

HEADRACE_SHADER uint32_t bits_set(uint32_t word) {
#if defined(__CUDA_ARCH__)
  return static_cast<uint32_t>(__popc(static_cast<int>(word)));
#else
  return static_cast<uint32_t>(__builtin_popcount(word));
#endif
}

/// The position of the set bit that has `n` set bits below it; there must be one.
HEADRACE_SHADER uint32_t nth_bit(uint64_t bits, uint32_t n) {
  uint32_t word = static_cast<uint32_t>(bits), at = 0;
  if (const uint32_t low = bits_set(word); n >= low) {
    word = static_cast<uint32_t>(bits >> 32);
    n -= low;
    at = 32;
  }
  for (uint32_t width = 16; width > 0; width /= 2) {
    const uint32_t low = bits_set(word & ((1u << width) - 1));
    if (n < low) continue;
    n -= low;
    word >>= width;
    at += width;
  }
  return at;
}

}  // namespace detail

/// A team of `Size` lanes on the host. A per-lane value is a `Lanes<T>`, which on a GPU is a single T in each lane.
template <uint32_t Size>
class HostTeam {
 public:
  template <typename T>
  struct Lanes {
    T of[Size];
  };
  HEADRACE_SHADER static constexpr uint32_t size() { return Size; }

  /// The results of `f(lane)`, one per lane.
  template <typename F>
  HEADRACE_SHADER auto map(F&& f) const {
    Lanes<decltype(f(0u))> all;
    for (uint32_t lane = 0; lane < Size; ++lane) all.of[lane] = f(lane);
    return all;
  }
  /// Calls `f(lane)` in every lane. What a lane writes, all lanes see after it.
  template <typename F>
  HEADRACE_SHADER void run(F&& f) const {
    for (uint32_t lane = 0; lane < Size; ++lane) f(lane);
  }
  /// A lane's own value, for a function that runs for that lane.
  template <typename T>
  HEADRACE_SHADER static T& own(Lanes<T>& values, uint32_t lane) {
    return values.of[lane];
  }
  /// Calls `f(lane, value)` with each lane's value, which it may change.
  template <typename T, typename F>
  HEADRACE_SHADER void each(Lanes<T>& values, F&& f) const {
    for (uint32_t lane = 0; lane < Size; ++lane) f(lane, values.of[lane]);
  }
  /// The minimum over all lanes; T is uint32_t or uint64_t. All lanes get it.
  template <typename T>
  HEADRACE_SHADER T min(const Lanes<T>& values) const {
    T least = values.of[0];
    for (uint32_t lane = 1; lane < Size; ++lane) least = values.of[lane] < least ? values.of[lane] : least;
    return least;
  }
  template <typename T>
  HEADRACE_SHADER T max(const Lanes<T>& values) const {
    T most = values.of[0];
    for (uint32_t lane = 1; lane < Size; ++lane) most = values.of[lane] > most ? values.of[lane] : most;
    return most;
  }
  HEADRACE_SHADER uint32_t sum(const Lanes<uint32_t>& values) const {
    uint32_t all = 0;
    for (uint32_t lane = 0; lane < Size; ++lane) all += values.of[lane];
    return all;
  }
  /// The exclusive or of all lanes' bits.
  HEADRACE_SHADER uint32_t parity(const Lanes<uint32_t>& values) const {
    uint32_t all = 0;
    for (uint32_t lane = 0; lane < Size; ++lane) all ^= values.of[lane];
    return all;
  }
  /// The last lane's value. All lanes get it.
  HEADRACE_SHADER uint32_t last(const Lanes<uint32_t>& values) const { return values.of[Size - 1]; }
  HEADRACE_SHADER bool any(const Lanes<bool>& values) const {
    bool some = false;
    for (uint32_t lane = 0; lane < Size; ++lane) some = some || values.of[lane];
    return some;
  }
  /// Calls `f(lane, owner, bit)` for every bit set in the mask of a lane, its owner. The bits are distributed over the
  /// lanes, one per lane and round, so that all lanes have equal work. After each round all lanes call `go_on()`, which
  /// returns the same in each: whether there is another round.
  template <typename F, typename G>
  HEADRACE_SHADER void share(const Lanes<uint64_t>& masks, F&& f, G&& go_on) const {
    uint32_t lane = 0;
    for (uint32_t owner = 0; owner < Size; ++owner) {
      for (uint64_t mask = masks.of[owner]; mask != 0; mask &= mask - 1) {
        f(lane, owner, detail::nth_bit(mask, 0));
        lane = (lane + 1) % Size;
        if (lane == 0 && !go_on()) return;
      }
    }
    if (lane != 0) go_on();
  }
  /// The value of the previous lane; lane 0 gets `first`. T as for min.
  template <typename T>
  HEADRACE_SHADER Lanes<T> previous(const Lanes<T>& values, T first) const {
    Lanes<T> all;
    all.of[0] = first;
    for (uint32_t lane = 1; lane < Size; ++lane) all.of[lane] = values.of[lane - 1];
    return all;
  }
};

#if defined(__CUDA_ARCH__)
/// `Size` adjacent threads of a warp, a power of two. They must make every call together; the others of the warp need not.
template <uint32_t Size>
class LaneTeam {
 public:
  template <typename T>
  struct Lanes {
    T of;
  };
  LaneTeam() = default;
  /// \param memory `memory_bytes()` of shared memory that nobody else uses
  __device__ explicit LaneTeam(uint8_t* memory) : memory_(memory) {}
  __device__ uint8_t* memory() const { return memory_; }
  __device__ static constexpr uint32_t memory_bytes() { return 72 * Size; }
  __device__ static constexpr uint32_t size() { return Size; }
  __device__ static uint32_t lane() { return threadIdx.x & (Size - 1); }
  __device__ static void wait() { __syncwarp(all()); }

  template <typename F>
  __device__ auto map(F&& f) const {
    Lanes<decltype(f(0u))> values;
    values.of = f(lane());
    wait();
    return values;
  }
  template <typename F>
  __device__ void run(F&& f) const {
    f(lane());
    wait();
  }
  template <typename T>
  __device__ static T& own(Lanes<T>& values, uint32_t) {
    return values.of;
  }
  template <typename T, typename F>
  __device__ void each(Lanes<T>& values, F&& f) const {
    f(lane(), values.of);
    wait();
  }
  template <typename T>
  __device__ T min(const Lanes<T>& values) const {
    return reduce(values.of, [](T a, T b) { return a < b ? a : b; });
  }
  template <typename T>
  __device__ T max(const Lanes<T>& values) const {
    return reduce(values.of, [](T a, T b) { return a > b ? a : b; });
  }
  __device__ uint32_t sum(const Lanes<uint32_t>& values) const {
    return reduce(values.of, [](uint32_t a, uint32_t b) { return a + b; });
  }
  __device__ uint32_t parity(const Lanes<uint32_t>& values) const {
    return reduce(values.of, [](uint32_t a, uint32_t b) { return a ^ b; });
  }
  __device__ uint32_t last(const Lanes<uint32_t>& values) const { return from(values.of, Size - 1); }
  __device__ bool any(const Lanes<bool>& values) const { return __any_sync(all(), values.of) != 0; }
  template <typename F, typename G>
  __device__ void share(const Lanes<uint64_t>& masks, F&& f, G&& go_on) const {
    const uint32_t low = static_cast<uint32_t>(masks.of), high = static_cast<uint32_t>(masks.of >> 32);
    const uint32_t mine = detail::bits_set(low) + detail::bits_set(high);
    uint32_t sum = mine;  // of this lane and those before it
    for (uint32_t step = 1; step < Size; step *= 2) {
      const uint32_t before = __shfl_up_sync(all(), sum, step, Size);
      if (lane() >= step) sum += before;
    }
    const uint32_t items = from(sum, Size - 1);
    for (uint32_t first = 0; first < items; first += Size) {
      const uint32_t item = first + lane();
      uint32_t owner = 0;  // the first lane whose sum is above the item, by binary search
      for (uint32_t step = Size / 2; step > 0; step /= 2) {
        if (from(sum, owner + step - 1) <= item) owner += step;
      }
      const uint32_t n = item - from(sum - mine, owner);
      const uint64_t mask = uint64_t{from(high, owner)} << 32 | from(low, owner);
      if (item < items) f(lane(), owner, detail::nth_bit(mask, n));
      wait();
      if (!go_on()) return;
    }
  }
  template <typename T>
  __device__ Lanes<T> previous(const Lanes<T>& values, T first) const {
    const T before = __shfl_up_sync(all(), values.of, 1, Size);
    return {lane() == 0 ? first : before};
  }

 private:
  /// The team's lanes of the warp.
  __device__ static uint32_t all() {
    if constexpr (Size == 32) return ~0u;
    return ((1u << Size % 32) - 1) << (threadIdx.x & 31 & ~(Size - 1));
  }
  __device__ static uint32_t from(uint32_t value, uint32_t lane) {
    return __shfl_sync(all(), value, static_cast<int>(lane), Size);
  }
  template <typename T, typename F>
  __device__ static T reduce(T value, F&& f) {
    for (uint32_t step = Size / 2; step > 0; step /= 2) value = f(value, __shfl_xor_sync(all(), value, step, Size));
    return value;
  }

  uint8_t* memory_ = nullptr;
};

/// The 32 threads of a warp.
class WarpTeam : public LaneTeam<32> {
 public:
  __device__ uint32_t min(const Lanes<uint32_t>& values) const { return __reduce_min_sync(~0u, values.of); }
  __device__ uint64_t min(const Lanes<uint64_t>& values) const {
    const uint32_t high = __reduce_min_sync(~0u, static_cast<uint32_t>(values.of >> 32));
    const uint32_t mine = static_cast<uint32_t>(values.of >> 32) == high ? static_cast<uint32_t>(values.of) : ~0u;
    return uint64_t{high} << 32 | __reduce_min_sync(~0u, mine);
  }
  __device__ uint32_t max(const Lanes<uint32_t>& values) const { return __reduce_max_sync(~0u, values.of); }
  __device__ uint64_t max(const Lanes<uint64_t>& values) const {
    const uint32_t high = __reduce_max_sync(~0u, static_cast<uint32_t>(values.of >> 32));
    const uint32_t mine = static_cast<uint32_t>(values.of >> 32) == high ? static_cast<uint32_t>(values.of) : 0u;
    return uint64_t{high} << 32 | __reduce_max_sync(~0u, mine);
  }
  __device__ uint32_t sum(const Lanes<uint32_t>& values) const { return __reduce_add_sync(~0u, values.of); }
  __device__ uint32_t parity(const Lanes<uint32_t>& values) const { return __reduce_xor_sync(~0u, values.of); }
};
#endif

}  // namespace headrace
