#pragma once
/// \file
/// How a shader that scans payloads runs over slots. Read by the host compiler and by NVRTC.
///
/// Such a shader has two functions where others have one:
///
///     template <typename Team>
///     HEADRACE_SHADER Found scan(const Team& team, const PayloadBytes& payload) const;
///     HEADRACE_SHADER Next shade(auto& p, const Found& found) const;
///
/// `scan` searches the payload with all lanes of a team and returns what it found, the same in every lane; it changes
/// nothing. `shade` then decides, as in any shader. The payload is what `l4_payload` returns, or a member
/// `HEADRACE_SHADER PayloadBytes payload(const PacketBytes&) const`. If the search depends on the headers, `scan` has
/// the form `scan(const Team& team, const PayloadBytes& payload, const PacketBytes& packet)`. All of these see the
/// packet's bytes as they were when the packet came to the plan, with header positions as set by the shaders before
/// this one.
///
/// On the CPU, a member `Found scan_on_cpu(payload, const Owner&) const`, or one with parameters
/// `(payload, packet, const Owner&)`, replaces `scan` with a team of one.

#include "headrace/device/lane_view.hh"
#include "headrace/payload.hh"
#if defined(__CUDA_ARCH__)
#include "headrace/device/jobs.hh"
#include "headrace/device/loads.hh"
#endif

namespace headrace {

template <typename S>
HEADRACE_SHADER constexpr bool scans_payload() {
  return requires(const S& shader, const PayloadBytes& payload) { shader.scan(HostTeam<1>{}, payload); }
  || requires(const S& shader, const PayloadBytes& payload, const PacketBytes& packet) {
    shader.scan(HostTeam<1>{}, payload, packet);
  };
}

namespace detail {

/// Calls `scan`, with or without the packet.
template <typename S, typename Team>
HEADRACE_SHADER auto scan_packet(const S& shader, const Team& team, const PayloadBytes& payload,
                                 const PacketBytes& packet) {
  if constexpr (requires { shader.scan(team, payload, packet); }) {
    return shader.scan(team, payload, packet);
  } else {
    return shader.scan(team, payload);
  }
}

template <typename S>
using FoundBy = decltype(scan_packet(*static_cast<const S*>(nullptr), HostTeam<1>{}, PayloadBytes{}, PacketBytes{}));

template <typename S>
HEADRACE_SHADER PayloadBytes payload_of(const S& shader, const PacketBytes& packet) {
  if constexpr (requires { shader.payload(packet); }) {
    return shader.payload(packet);
  } else {
    return l4_payload(packet);
  }
}

/// Whether the packet's memory, which may lack the writes of earlier shaders, shows where its payload lies.
HEADRACE_SHADER bool lies_in_memory(const Slot& slot) {
  return slot.writes == HeaderWrites::kNone ||
         (slot.writes == HeaderWrites::kLink && slot.header.network != RowHeader::kNone);
}

HEADRACE_SHADER int32_t network_of(const RowHeader& h) {
  return h.network == RowHeader::kNone ? PacketBytes::kNone
                                       : static_cast<int32_t>(h.network) - static_cast<int32_t>(h.data);
}

/// The address of the buffer of a row's packet.
HEADRACE_SHADER uint64_t address_of(const Slot& slot) {
  const uint8_t* const at = slot.row + RowLayout::kAddressAt;
  return load_bytes<4>(at) | load_bytes<4>(at + 4) << 32;
}

#if defined(__CUDA_ARCH__)

inline __device__ uint64_t from_lane(uint64_t value, int lane) {
  const uint32_t low = __shfl_sync(~0u, static_cast<uint32_t>(value), lane);
  return uint64_t{__shfl_sync(~0u, static_cast<uint32_t>(value >> 32), lane)} << 32 | low;
}

/// A packet on its way from host memory to a warp's stage: begin() requests its first 2 KiB, finish() stores them in
/// the stage. Between the two calls the warp scans another packet.
class Arrival {
 public:
  /// Bytes [first, end) of a buffer.
  __device__ void begin(uint64_t buffer, uint32_t first, uint32_t end) {
    from_ = (buffer + first) & ~uint64_t{15};
    pieces_ = end > first ? static_cast<uint32_t>((buffer + end + 15 - from_) / 16) : 0;
    if (!fits()) return;
#pragma unroll
    for (uint32_t i = 0; i < kInFlight; ++i)
      if (piece(i) < pieces_)
        v_[i] = device::load_fresh(reinterpret_cast<const uint8_t*>(from_) + size_t{16} * piece(i));
  }
  /// Returns the address at which `buffer` would begin, so that offsets into the buffer lead to the loaded bytes.
  __device__ const uint8_t* finish(uint64_t buffer, uint8_t* stage) const {
    if (!fits()) return reinterpret_cast<const uint8_t*>(buffer);
    uint4* const to = reinterpret_cast<uint4*>(stage);
#pragma unroll
    for (uint32_t i = 0; i < kInFlight; ++i)
      if (piece(i) < pieces_) to[piece(i)] = v_[i];
    for (uint32_t i = kInFlight; piece(i) < pieces_; ++i)
      to[piece(i)] = device::load_fresh(reinterpret_cast<const uint8_t*>(from_) + size_t{16} * piece(i));
    return stage - (from_ - buffer);
  }

 private:
  static constexpr uint32_t kInFlight = 4;
  __device__ static uint32_t piece(uint32_t i) { return (threadIdx.x & 31) + 32 * i; }
  __device__ bool fits() const { return pieces_ * 16 <= kStageBytes; }

  uint64_t from_ = 0;
  uint32_t pieces_ = 0;
  uint4 v_[kInFlight];
};

#endif

}  // namespace detail

#if defined(__CUDA_ARCH__)

/// Runs the slots of a warp that are at this shader, one after the other: a team of all lanes scans each payload; then
/// each thread continues with its own slot. All threads of the warp must call it. `here` tells whether this thread's
/// slot takes part; `shader` may differ between threads.
template <typename S, typename Layout>
__device__ Next scan_slot(const S* shader, Slot& slot, bool here, const Layout& layout, int first_counter,
                          int result = 0) {
  Next next = kDrop;
  bool go = here && detail::has_headers<S>(slot.header);
  if (go && !(detail::holds_fields<S>(slot, layout) && detail::lies_in_memory(slot))) {
    next = kResume;
    go = false;
  }
  const uint64_t buffer = go ? detail::address_of(slot) : 0;
  const RowHeader& h = slot.header;
  const uint32_t end = h.data + h.length;
  const uint32_t first = h.network < h.data ? h.network : h.data;
  detail::FoundBy<S> found{};
  uint32_t todo = __ballot_sync(~0u, go);
  int owner = __ffs(static_cast<int>(todo)) - 1;
  detail::Arrival arrival;
  const auto begin = [&](int lane) {
    arrival.begin(detail::from_lane(buffer, lane), __shfl_sync(~0u, first, lane), __shfl_sync(~0u, end, lane));
  };
  if (todo != 0) begin(owner);
  while (todo != 0) {
    todo &= todo - 1;
    const uint32_t data = __shfl_sync(~0u, uint32_t{h.data}, owner);
    const uint32_t network = __shfl_sync(~0u, uint32_t{h.network}, owner);
    const uint8_t* const at = arrival.finish(detail::from_lane(buffer, owner), slot.stage);
    PacketBytes packet;
    packet.data = at + data;
    packet.length = __shfl_sync(~0u, h.length, owner);
    packet.network = network == RowHeader::kNone ? PacketBytes::kNone : static_cast<int32_t>(network - data);
    const S& theirs = *reinterpret_cast<const S*>(detail::from_lane(reinterpret_cast<uintptr_t>(shader), owner));
    __syncwarp();
    const int after = __ffs(static_cast<int>(todo)) - 1;
    if (todo != 0) begin(after);
    const detail::FoundBy<S> theirs_found =
        detail::scan_packet(theirs, WarpTeam{}, detail::payload_of(theirs, packet), packet);
    if ((threadIdx.x & 31) == static_cast<uint32_t>(owner)) found = theirs_found;
    // The next packet overwrites this one.
    __syncwarp();
    owner = after;
  }
  if (!go) return next;
  return detail::shade_or_resume<S>(slot, layout, first_counter, result,
                                    [&](auto& view) { return shader->shade(view, found); });
}

#else

/// Runs a slot of a payload shader as a device would, with a team as large as a warp.
template <typename S, typename Layout>
Next scan_slot(const S* shader, Slot& slot, bool here, const Layout& layout, int first_counter, int result = 0) {
  if (!here || !detail::has_headers<S>(slot.header)) return kDrop;
  if (!detail::holds_fields<S>(slot, layout) || !detail::lies_in_memory(slot)) return kResume;
  PacketBytes packet;
  packet.data = reinterpret_cast<const uint8_t*>(detail::address_of(slot)) + slot.header.data;
  packet.length = slot.header.length;
  packet.network = detail::network_of(slot.header);
  const auto found = detail::scan_packet(*shader, HostTeam<32>{}, detail::payload_of(*shader, packet), packet);
  return detail::shade_or_resume<S>(slot, layout, first_counter, result,
                                    [&](auto& view) { return shader->shade(view, found); });
}

#endif

}  // namespace headrace
