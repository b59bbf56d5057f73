#pragma once
/// \file
/// Where the packet of a slot lies while shaders that scan or rewrite packets run, and how it moves. Read by the host
/// compiler and by NVRTC.
///
/// A packet comes from its buffer in the host's memory into a warp's *stage*, in shared memory, where a team works on it.
/// From one shader to the next it stays at *home*, in the device's memory. The *window* is the part of it that travels in the
/// slot's row. What is made of it goes to an *output buffer*, in the host's memory.

#include "headrace/device/jobs.hh"
#include "headrace/device/lane_view.hh"
#include "headrace/payload.hh"
#if defined(__CUDA_ARCH__)
#include "headrace/device/loads.hh"
#endif

namespace headrace::detail {

HEADRACE_SHADER int32_t network_of(const RowHeader& h) {
  return h.network == RowHeader::kNone ? PacketBytes::kNone
                                       : static_cast<int32_t>(h.network) - static_cast<int32_t>(h.data);
}

HEADRACE_SHADER uint64_t address_in(const Slot& slot, int at) {
  return load_bytes<4>(slot.row + at) | load_bytes<4>(slot.row + at + 4) << 32;
}

/// The address of a row's output buffer; 0 if it has none.
HEADRACE_SHADER uint64_t output_of(const Slot& slot, const RowLayout& row) {
  return address_in(slot, row.output()) & ((uint64_t{1} << 48) - 1);
}

/// The first byte of a packet's buffer that belongs to the packet or to a header that was stripped.
HEADRACE_SHADER uint32_t first_byte(const RowHeader& h) {
  uint32_t first = h.data;
  if (h.network < first) first = h.network;
  if (h.mac < first) first = h.mac;
  return first;
}

/// The address of the buffer in which a row's packet lies.
HEADRACE_SHADER uint64_t address_of(const Slot& slot, const RowLayout& row) {
#if defined(__CUDA_ARCH__)
  if (slot.home_from <= first_byte(slot.header)) return reinterpret_cast<uintptr_t>(slot.home);
#endif
  return slot.header.rewritten() ? output_of(slot, row) : address_in(slot, row.address());
}

/// True if a stage has room for the packet, and all of it is in one buffer: a header that was stripped before the packet
/// was rewritten, and pushed again, is not.
HEADRACE_SHADER bool can_stage(const Slot& slot, const RowLayout& row) {
  const RowHeader& h = slot.header;
  if (h.length > kBufferBytes || h.data + h.length > kBufferBytes) return false;
  return !h.rewritten() || first_byte(h) >= load_bytes<2>(slot.row + row.written_from());
}

/// Notes in a row that its output buffer has the packet from byte `first` on.
HEADRACE_SHADER void note_written(Slot& slot, const RowLayout& row, uint32_t first) {
  uint8_t* const at = slot.row + row.written_from();
  if (!slot.header.rewritten() || first < load_bytes<2>(at)) store_bytes<2>(at, first);
  slot.header.flags |= RowHeader::kRewritten;
}

#if defined(__CUDA_ARCH__)

inline __device__ uint64_t from_lane(uint64_t value, int lane) {
  const uint32_t low = __shfl_sync(~0u, static_cast<uint32_t>(value), lane);
  return uint64_t{__shfl_sync(~0u, static_cast<uint32_t>(value >> 32), lane)} << 32 | low;
}

/// A packet on its way from host memory to a warp's stage: begin() requests its first 2 KiB, finish() stores them in
/// the stage, each byte at its offset in the buffer. Between the two calls the warp works on another packet.
class Arrival {
 public:
  /// Bytes [first, end) of a buffer.
  __device__ void begin(uint64_t buffer, uint32_t first, uint32_t end) {
    from_ = buffer;
    first_ = first & ~15u;
    pieces_ = end > first ? (end + 15 - first_) / 16 : 0;
    if (!fits()) return;
#pragma unroll
    for (uint32_t i = 0; i < kInFlight; ++i)
      if (piece(i) < pieces_) v_[i] = device::load_fresh(at(i));
  }
  __device__ void finish(uint8_t* stage) const {
    uint4* const to = reinterpret_cast<uint4*>(stage + first_);
#pragma unroll
    for (uint32_t i = 0; i < kInFlight; ++i)
      if (piece(i) < pieces_) to[piece(i)] = v_[i];
    for (uint32_t i = kInFlight; piece(i) < pieces_; ++i) to[piece(i)] = device::load_fresh(at(i));
  }
  /// False if the bytes are more than a stage holds; then there is nothing to finish.
  __device__ bool fits() const { return first_ + pieces_ * 16 <= kStageBytes; }

 private:
  static constexpr uint32_t kInFlight = 4;
  __device__ static uint32_t piece(uint32_t i) { return (threadIdx.x & 31) + 32 * i; }
  __device__ const uint8_t* at(uint32_t i) const {
    return reinterpret_cast<const uint8_t*>(from_) + first_ + size_t{16} * piece(i);
  }

  uint64_t from_ = 0;
  uint32_t first_ = 0;
  uint32_t pieces_ = 0;
  uint4 v_[kInFlight];
};

/// Four bytes per lane of a row's window, which belongs at offset `window_at` of the packet's buffer: from the row to the
/// buffer, or back, but only the bytes [first, end) of the buffer.
enum class Way : uint8_t { kToStage, kToRow };
template <Way W>
__device__ void move_window(uint8_t* window, uint32_t bytes, uint8_t* buffer, uint32_t window_at, uint32_t first,
                            uint32_t end) {
  const uint32_t mine = 4 * (threadIdx.x & 31), at = window_at + mine;
  if (mine >= bytes) return;
  uint8_t* const to = W == Way::kToStage ? buffer + at : window + mine;
  const uint8_t* const from = W == Way::kToStage ? window + mine : buffer + at;
  for (uint32_t i = 0; i < 4; ++i)
    if (at + i >= first && at + i < end) to[i] = from[i];
}

/// Copies bytes [first, end) of a packet's buffer, in whole pieces of 16: all lanes of a warp together. The compiler does
/// not know that loads need not wait for the stores before them.
inline __device__ void copy_bytes(uint8_t* to, const uint8_t* from, uint32_t first, uint32_t end) {
  constexpr uint32_t kInFlight = 4, kStep = 16 * 32;
  for (uint32_t at = (first & ~15u) + 16 * (threadIdx.x & 31); at < end; at += kInFlight * kStep) {
    uint4 v[kInFlight];
#pragma unroll
    for (uint32_t i = 0; i < kInFlight; ++i)
      if (at + i * kStep < end) v[i] = *reinterpret_cast<const uint4*>(from + at + i * kStep);
#pragma unroll
    for (uint32_t i = 0; i < kInFlight; ++i)
      if (at + i * kStep < end) *reinterpret_cast<uint4*>(to + at + i * kStep) = v[i];
  }
}

/// Notes that a slot's home has its packet from byte `first` on.
inline __device__ void note_at_home(Slot& slot, uint32_t first) {
  if (first < slot.home_from) slot.home_from = first;
}

/// True if the packets of a plan's slots stay on the device from shader to shader.
template <typename Layout>
HEADRACE_SHADER constexpr bool has_homes() {
  if constexpr (requires { Layout::kHomes; }) {
    return Layout::kHomes;
  } else {
    return false;
  }
}

/// Copies a run of pieces of 16 bytes for each lane of a warp. Lanes divide the runs of several lanes, because each load
/// waits for the host's memory, and many can wait together. \param n up to 32 pieces for each lane, or 0
__noinline__ __device__ void copy_runs(uint64_t to, uint64_t from, uint32_t n) {
  const uint32_t all = __ballot_sync(~0u, n != 0), most = __reduce_max_sync(~0u, n);
  const uint32_t width = most <= 8 ? 8 : most <= 16 ? 16 : 32;  // lanes for a run
  const uint32_t steps = (most + width - 1) / width, lane = threadIdx.x & 31;
  const uint32_t runs = 32 - static_cast<uint32_t>(__clz(static_cast<int>(all)));
  const uint32_t turns = (runs * width + 31) / 32 * steps;
  constexpr uint32_t kInFlight = 12;
  for (uint32_t turn = 0; turn < turns; turn += kInFlight) {
    uint4 v[kInFlight];
    const auto each = [&](auto&& f) {
#pragma unroll
      for (uint32_t i = 0; i < kInFlight; ++i) {
        if (turn + i >= turns) return;
        const uint32_t piece = lane % width + (turn + i) % steps * width;
        const int owner = static_cast<int>((turn + i) / steps * (32 / width) + lane / width) & 31;
        const uint64_t theirs_from = from_lane(from, owner), theirs_to = from_lane(to, owner);
        if (piece < __shfl_sync(~0u, n, owner))
          f(v[i], theirs_from + size_t{16} * piece, theirs_to + size_t{16} * piece);
      }
    };
    each([](uint4& piece, uint64_t piece_from, uint64_t) {
      piece = device::load_fresh(reinterpret_cast<const void*>(piece_from));
    });
    each([](const uint4& piece, uint64_t, uint64_t piece_to) { *reinterpret_cast<uint4*>(piece_to) = piece; });
  }
  __syncwarp();
}

/// Brings the packets of the slots of a warp for which `go` holds to their homes, if they are not there.
inline __device__ void bring_home(Slot& slot, bool go, const RowLayout& row) {
  const uint32_t first = first_byte(slot.header), at = first & ~15u, end = slot.header.data + slot.header.length;
  const bool comes = go && slot.home != nullptr && slot.home_from > first;
  if (!__any_sync(~0u, comes)) return;
  copy_runs(reinterpret_cast<uintptr_t>(slot.home) + at, comes ? address_of(slot, row) + at : 0,
            comes && end > at ? (end - at + 15) / 16 : 0);
  if (comes) note_at_home(slot, first);
}

/// Takes the packets of the slots of a warp for which `go` holds through the warp's stage, one after the other. With
/// each in the stage, all lanes call `work(owner, header, window, window_at)`: the lane whose packet it is, its header,
/// and its row's window, which belongs at offset `window_at` of the stage.
template <typename Layout, typename Work>
__device__ void for_each_packet(const Slot& slot, bool go, const Layout& layout, Work&& work) {
  uint32_t todo = __ballot_sync(~0u, go);
  if (todo == 0) return;
  // A packet may have been rewritten just now, by other lanes.
  if (!has_homes<Layout>() && __any_sync(~0u, go && slot.header.rewritten())) __threadfence();
  __syncwarp();
  const RowHeader& h = slot.header;
  const uint64_t buffer = go ? address_of(slot, layout.row()) : 0;
  const uint32_t end = h.data + h.length, first = first_byte(h);
  const uint32_t window_at = static_cast<uint32_t>(slot.window_at + layout.row().window_begin);
  Arrival arrival;
  const auto begin = [&](int lane) {
    arrival.begin(from_lane(buffer, lane), __shfl_sync(~0u, first, lane), __shfl_sync(~0u, end, lane));
  };
  int owner = __ffs(static_cast<int>(todo)) - 1;
  begin(owner);
  while (todo != 0) {
    todo &= todo - 1;
    arrival.finish(slot.stage);
    __syncwarp();
    const int after = __ffs(static_cast<int>(todo)) - 1;
    if (todo != 0) begin(after);
    RowHeader theirs;
    uint32_t words[4];
    memcpy(words, &h, sizeof words);
    for (uint32_t& word : words) word = __shfl_sync(~0u, word, owner);
    memcpy(&theirs, words, sizeof words);
    uint8_t* const window =
        reinterpret_cast<uint8_t*>(from_lane(reinterpret_cast<uintptr_t>(slot.row), owner)) + layout.row().window();
    const uint32_t at = __shfl_sync(~0u, window_at, owner);
    if (slot.newer) {
      move_window<Way::kToStage>(window, static_cast<uint32_t>(layout.row().window_size), slot.stage, at,
                                 first_byte(theirs), theirs.data + theirs.length);
      __syncwarp();
    }
    work(owner, theirs, window, at);
    // The next packet overwrites this one.
    __syncwarp();
    owner = after;
  }
}

#else

/// Copies words of a packet that may have gone on, because its job was late. What is made of it is ignored then, as on a
/// device whose loads nobody sees, so ThreadSanitizer does not look at these.
__attribute__((noinline, no_sanitize("thread"))) inline void copy_words(const volatile uint64_t* from, uint64_t* to,
                                                                        uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) to[i] = from[i];
}

/// Copies a slot's packet to `stage`, each byte at its offset in the buffer, with what earlier shaders have written.
inline void fill_stage(const Slot& slot, const RowLayout& row, uint8_t* stage) {
  const uint32_t first = first_byte(slot.header) & ~7u, end = slot.header.data + slot.header.length;
  if (end > first)
    copy_words(reinterpret_cast<const volatile uint64_t*>(address_of(slot, row) + first),
               reinterpret_cast<uint64_t*>(stage + first), (end - first + 7) / 8);
  __builtin_memcpy(stage + slot.window_at + row.window_begin, slot.row + row.window(),
                   static_cast<size_t>(row.window_size));
}

#endif

}  // namespace headrace::detail
