#pragma once
/// \file
/// How a shader that scans or rewrites packets runs over slots. Read by the host compiler and by NVRTC.
///
/// A shader that scans payloads has two functions where others have one:
///
///     template <typename Team>
///     HEADRACE_SHADER Found scan(const Team& team, const PayloadBytes& payload) const;
///     HEADRACE_SHADER Next shade(auto& p, const Found& found) const;
///
/// `scan` searches the payload with all lanes of a team and returns what it found, the same in every lane; it changes
/// nothing. `shade` then decides, as in any shader. The payload is what `l4_payload` returns, or a member
/// `HEADRACE_SHADER PayloadBytes payload(const PacketBytes&) const`. If the search depends on the headers, `scan` has
/// the form `scan(const Team& team, const PayloadBytes& payload, const PacketBytes& packet)`.
///
/// On the CPU, a member `Found scan_on_cpu(payload, const Owner&) const`, or one with parameters
/// `(payload, packet, const Owner&)`, replaces `scan` with a team of one.
///
/// A shader that rewrites packets has `rewrite` in the place of `scan`:
///
///     template <typename Team>
///     HEADRACE_SHADER Found rewrite(const Team& team, PacketEdit& packet) const;
///
/// It changes bytes and lengths; `shade` then chooses the output and may change annotations and header positions, but
/// no bytes. `move` tells where headers lie afterwards. On a device the result goes to an output buffer, which takes the
/// place of the packet's own when the job is released.
///
/// What `rewrite` must know of a packet besides its bytes, such as annotations, a type `About` holds, and
/// `HEADRACE_SHADER About about(const auto& p) const` finds it; `rewrite` then takes a `const About&` at the end.
///
/// A shader that keeps a table in the shared memory of a device has `static constexpr uint32_t kBlockBytes`, and fills
/// device::block_memory in `HEADRACE_SHADER static void prepare_block()`. All threads of a block call it once, before the
/// first packet.
///
/// Work that lanes cannot divide, such as a hash, says `static constexpr bool kSerial = true`: `rewrite` always gets a
/// team of one, and on a device each lane of a warp rewrites a packet of its own.

#include "headrace/device/jobs.hh"
#include "headrace/device/lane_view.hh"
#include "headrace/packet_edit.hh"
#include "headrace/payload.hh"
#include "headrace/payload_memory.hh"

namespace headrace {

template <typename S>
HEADRACE_SHADER constexpr bool scans_payload() {
  return requires(const S& shader, const PayloadBytes& payload) { shader.scan(HostTeam<1>{}, payload); }
  || requires(const S& shader, const PayloadBytes& payload, const PacketBytes& packet) {
    shader.scan(HostTeam<1>{}, payload, packet);
  };
}

namespace detail {

/// `S::About`, or an empty struct.
template <typename S>
struct AboutOf {
  struct Type {};
};
template <typename S>
requires requires { typename S::About; }
struct AboutOf<S> {
  using Type = typename S::About;
};

}  // namespace detail

template <typename S>
HEADRACE_SHADER constexpr bool rewrites_packet() {
  return requires(const S& shader, PacketEdit& edit) { shader.rewrite(HostTeam<1>{}, edit); }
  || requires(const S& shader, PacketEdit& edit, const typename detail::AboutOf<S>::Type& about) {
    shader.rewrite(HostTeam<1>{}, edit, about);
  };
}

/// Called once by all threads of a block of a device; they wait for each other before the first packet.
template <typename S>
HEADRACE_SHADER void prepare_block() {
  if constexpr (requires { S::prepare_block(); }) S::prepare_block();
}

/// True if a device needs the whole packet for the shader.
template <typename S>
HEADRACE_SHADER constexpr bool reads_payload() {
  return scans_payload<S>() || rewrites_packet<S>();
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

/// Calls `about`, if the shader has it.
template <typename S, typename View>
HEADRACE_SHADER typename AboutOf<S>::Type about_of(const S& shader, const View& view) {
  if constexpr (requires { typename S::About; }) {
    return shader.about(view);
  } else {
    return {};
  }
}
/// Calls `rewrite`, with or without what it must know about the packet.
template <typename S, typename Team>
HEADRACE_SHADER auto rewrite_packet(const S& shader, const Team& team, PacketEdit& edit,
                                    const typename AboutOf<S>::Type& about) {
  if constexpr (requires { typename S::About; }) {
    return shader.rewrite(team, edit, about);
  } else {
    return shader.rewrite(team, edit);
  }
}

/// Calls `scan` or `rewrite` in an unevaluated context, for its type.
template <typename S>
HEADRACE_SHADER auto find_in(const S& shader, PacketEdit& edit) {
  if constexpr (rewrites_packet<S>()) {
    return rewrite_packet(shader, HostTeam<1>{}, edit, typename AboutOf<S>::Type{});
  } else {
    return scan_packet(shader, HostTeam<1>{}, PayloadBytes{}, PacketBytes{});
  }
}

template <typename S>
using FoundBy = decltype(find_in(*static_cast<const S*>(nullptr), *static_cast<PacketEdit*>(nullptr)));

template <typename S>
HEADRACE_SHADER PayloadBytes payload_of(const S& shader, const PacketBytes& packet) {
  if constexpr (requires { shader.payload(packet); }) {
    return shader.payload(packet);
  } else {
    return l4_payload(packet);
  }
}

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
  if (go && !(detail::holds_fields<S>(slot, layout) && detail::can_stage(slot, layout.row()))) {
    next = kResume;
    go = false;
  }
  detail::FoundBy<S> found{};
  // The next shader that reads this packet finds it on the device.
  const bool keep = detail::has_homes<Layout>() && slot.more && slot.home_from > detail::first_byte(slot.header);
  uint8_t* const home = keep ? slot.home : nullptr;
  detail::for_each_packet(slot, go, layout, [&](int owner, const RowHeader& h, uint8_t*, uint32_t) {
    if (uint8_t* const to = reinterpret_cast<uint8_t*>(detail::from_lane(reinterpret_cast<uintptr_t>(home), owner)))
      detail::copy_bytes(to, slot.stage, detail::first_byte(h), h.data + h.length);
    PacketBytes packet;
    packet.data = slot.stage + h.data;
    packet.length = h.length;
    packet.network = detail::network_of(h);
    const S& theirs = *reinterpret_cast<const S*>(detail::from_lane(reinterpret_cast<uintptr_t>(shader), owner));
    const detail::FoundBy<S> theirs_found =
        detail::scan_packet(theirs, WarpTeam{}, detail::payload_of(theirs, packet), packet);
    if ((threadIdx.x & 31) == static_cast<uint32_t>(owner)) found = theirs_found;
  });
  if (!go) return next;
  if (keep) detail::note_at_home(slot, detail::first_byte(slot.header));
  return detail::shade_or_resume(*shader, slot, layout, first_counter, result,
                                 [&](auto& view) { return shader->shade(view, found); });
}

namespace detail {

/// The same words as in another lane.
template <typename T>
__device__ T words_from_lane(const T& value, int lane) {
  static_assert(sizeof(T) <= 32, "what rewrite knows of a packet, and what it finds, has at most 32 bytes");
  T theirs = value;
  if constexpr (!__is_empty(T)) {
    constexpr int kWords = (sizeof(T) + 3) / 4;
    uint32_t words[kWords] = {};
    memcpy(words, &value, sizeof value);
    for (uint32_t& word : words) word = __shfl_sync(~0u, word, lane);
    memcpy(&theirs, words, sizeof theirs);
  }
  return theirs;
}

/// What a lane has made of its packet. `first`: the first byte of the buffer that belongs to it.
struct Rewritten {
  uint32_t data, length, first;
  uint32_t written_from, written_end;
  bool changed, stopped;

  __device__ void take(const PacketEdit& edit, const RowHeader& before) {
    stopped = edit.stopped();
    changed = !stopped && edit.changed();
    if (!changed) return;
    data = edit.position();
    length = edit.length();
    first = first_byte(before) < data ? first_byte(before) : data;
    written_from = edit.written_from();
    written_end = edit.written_end();
  }
};

/// Where a team's result goes. Null: not there.
struct Destinations {
  uint8_t* home;
  uint8_t* output;
};

/// A team rewrites one packet of the warp after the other, each in the stage.
template <typename S, typename Layout>
__device__ void rewrite_as_team(const S* shader, const Slot& slot, bool go, const Destinations& to,
                                const Layout& layout, const typename AboutOf<S>::Type& about, FoundBy<S>& found,
                                Rewritten& made) {
  // The bytes that the output buffer is to have, although the packet may begin behind them now.
  const uint32_t promised =
      go && slot.header.rewritten() ? load_bytes<2>(slot.row + layout.row().written_from()) : RowHeader::kNone;
  for_each_packet(slot, go, layout, [&](int owner, const RowHeader& h, uint8_t* window, uint32_t window_at) {
    PacketEdit edit(slot.stage, kBufferBytes, h);
    const S& theirs = *reinterpret_cast<const S*>(from_lane(reinterpret_cast<uintptr_t>(shader), owner));
    const FoundBy<S> theirs_found = rewrite_packet(theirs, WarpTeam{}, edit, words_from_lane(about, owner));
    __syncwarp();
    if ((threadIdx.x & 31) == static_cast<uint32_t>(owner)) {
      found = theirs_found;
      made.take(edit, h);
    }
    const uint64_t home = from_lane(reinterpret_cast<uintptr_t>(to.home), owner);
    const uint64_t output = from_lane(reinterpret_cast<uintptr_t>(to.output), owner);
    const uint32_t theirs_promised = __shfl_sync(~0u, promised, owner);
    if (edit.stopped() || !edit.changed()) return;
    const uint32_t first = first_byte(h) < edit.position() ? first_byte(h) : edit.position();
    const uint32_t end = edit.position() + edit.length();
    move_window<Way::kToRow>(window, static_cast<uint32_t>(layout.row().window_size), slot.stage, window_at, first,
                             end);
    if (home != 0) copy_bytes(reinterpret_cast<uint8_t*>(home), slot.stage, first, end);
    if (output == 0) return;
    copy_bytes(reinterpret_cast<uint8_t*>(output), slot.stage, first, end);
    // What lies in front is at home since an earlier shader rewrote the packet; a piece that both touch is in the stage.
    if (theirs_promised < (first & ~15u))
      copy_bytes(reinterpret_cast<uint8_t*>(output),
                 reinterpret_cast<const uint8_t*>(from_lane(reinterpret_cast<uintptr_t>(slot.home), owner)),
                 theirs_promised, first & ~15u);
  });
}

/// A packet on its way to the lane that rewrites it, and what becomes of it there.
template <typename S>
struct SerialWork {
  bool go;
  const S* shader;
  uint8_t* home;
  RowHeader header;
  typename AboutOf<S>::Type about;
  FoundBy<S> found;
  Rewritten made;
};

/// Each lane: writes to its row's window what it has made of its packet at home. Four words at a time, for each waits for
/// memory.
template <typename Layout>
__device__ void update_window(const Slot& slot, const Layout& layout, const Rewritten& made) {
  // What is the packet's; the rest of home is not.
  uint8_t* const window = slot.row + layout.row().window();
  const uint32_t first = made.first, end = made.data + made.length;
  const uint32_t from = static_cast<uint32_t>(slot.window_at + layout.row().window_begin);
  const uint32_t size = static_cast<uint32_t>(layout.row().window_size);
  const uint32_t skip = from & 3;
  const uint32_t* const words = reinterpret_cast<const uint32_t*>(slot.home) + from / 4;
  for (uint32_t at = 0; at < size && from + at < end; at += 16) {
    uint32_t v[5];
    for (uint32_t i = 0; i < 5; ++i) v[i] = from + at + 4 * i < kStageBytes ? words[at / 4 + i] : 0;
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t word = __funnelshift_r(v[i], v[i + 1], skip * 8), to = at + 4 * i;
      if (to >= size) break;
      if (from + to >= first && from + to + 4 <= end) {
        *reinterpret_cast<uint32_t*>(window + to) = word;
        continue;
      }
      for (uint32_t k = 0; k < 4; ++k)
        if (from + to + k >= first && from + to + k < end) window[to + k] = static_cast<uint8_t>(word >> 8 * k);
    }
  }
}

/// Lanes of a team that has a part of a warp.
constexpr uint32_t kFewLanes = 8;

/// True if a warp has several packets to rewrite, and all of them are short. Long ones keep the whole warp busy, and the
/// link: one comes while the one before it is rewritten.
inline __device__ bool divides(bool go, uint32_t length) {
  constexpr uint32_t kLong = 640;  // bytes
  return __popc(static_cast<int>(__ballot_sync(~0u, go))) > 1 && !__any_sync(~0u, go && length > kLong);
}

/// Teams of kFewLanes lanes rewrite packets, one each, at home.
template <typename S, typename Layout>
__device__ void rewrite_as_teams(const S* shader, Slot& slot, bool go, const Layout& layout,
                                 const typename AboutOf<S>::Type& about, FoundBy<S>& found, Rewritten& made) {
  using Team = LaneTeam<kFewLanes>;
  constexpr uint32_t kTeams = 32 / kFewLanes;
  static_assert(kTeams * Team::memory_bytes() <= kStageBytes);
  bring_home(slot, go, layout.row());
  const uint32_t todo = __ballot_sync(~0u, go), lane = threadIdx.x & 31, team = lane / kFewLanes;
  if (slot.newer) {
    const uint32_t window_at = static_cast<uint32_t>(slot.window_at + layout.row().window_begin);
    for (uint32_t left = todo; left != 0; left &= left - 1) {
      const int owner = __ffs(static_cast<int>(left)) - 1;
      const RowHeader h = words_from_lane(slot.header, owner);
      uint8_t* const row = reinterpret_cast<uint8_t*>(from_lane(reinterpret_cast<uintptr_t>(slot.row), owner));
      uint8_t* const home = reinterpret_cast<uint8_t*>(from_lane(reinterpret_cast<uintptr_t>(slot.home), owner));
      move_window<Way::kToStage>(row + layout.row().window(), static_cast<uint32_t>(layout.row().window_size), home,
                                 __shfl_sync(~0u, window_at, owner), first_byte(h), h.data + h.length);
    }
    __syncwarp();
  }
  for (uint32_t turn = 0; turn < kFewLanes && todo >> turn * kTeams != 0; ++turn) {
    const int owner = static_cast<int>(turn * kTeams + team);
    const S& theirs = *reinterpret_cast<const S*>(from_lane(reinterpret_cast<uintptr_t>(shader), owner));
    uint8_t* const home = reinterpret_cast<uint8_t*>(from_lane(reinterpret_cast<uintptr_t>(slot.home), owner));
    const RowHeader h = words_from_lane(slot.header, owner);
    const typename AboutOf<S>::Type theirs_about = words_from_lane(about, owner);
    FoundBy<S> theirs_found{};
    Rewritten theirs_made{};
    if ((todo >> owner & 1) != 0) {
      PacketEdit edit(home, kBufferBytes, h);
      theirs_found = rewrite_packet(theirs, Team(slot.stage + team * Team::memory_bytes()), edit, theirs_about);
      theirs_made.take(edit, h);
    }
    __syncwarp();
    const int from = static_cast<int>(lane % kTeams * kFewLanes);
    const FoundBy<S> mine_found = words_from_lane(theirs_found, from);
    const Rewritten mine_made = words_from_lane(theirs_made, from);
    if (go && lane / kTeams == turn) {
      found = mine_found;
      made = mine_made;
    }
  }
  if (go && made.changed) update_window(slot, layout, made);
}

/// Each lane rewrites a packet, at home. If the block has few, half of its warps take those of the other half, too: a
/// warp is as fast with all lanes as with one, and twice as fast if it is alone on its part of a multiprocessor.
template <typename S, typename Layout>
__device__ void rewrite_alone(const S* shader, Slot& slot, bool go, const Layout& layout,
                              const typename AboutOf<S>::Type& about, FoundBy<S>& found, Rewritten& made) {
  constexpr uint32_t kHalf = kJobWarps / 2, kStage = job_stage_bytes(kPayloadPlans) / kJobWarps;
  static_assert(16 * sizeof(SerialWork<S>) <= kStage);
  // What is not there yet, or changed in the row, comes home through the stage.
  const bool comes = go && (slot.newer || slot.home_from > first_byte(slot.header));
  for_each_packet(slot, comes, layout, [&](int owner, const RowHeader& h, uint8_t*, uint32_t) {
    copy_bytes(reinterpret_cast<uint8_t*>(from_lane(reinterpret_cast<uintptr_t>(slot.home), owner)), slot.stage,
               first_byte(h), h.data + h.length);
  });
  __syncwarp();
  if (comes) note_at_home(slot, first_byte(slot.header));
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x & 31;
  const bool halves = __syncthreads_or(go && lane >= 16) == 0;
  const bool gives = halves && warp >= kHalf && lane < 16, takes = halves && warp < kHalf && lane >= 16;
  // In the stage of the warp that gives, which is free until the next packet needs it.
  auto* const handed = reinterpret_cast<SerialWork<S>*>(slot.stage + (takes ? kHalf * kStage : 0)) + (lane & 15);
  SerialWork<S> work{go, shader, slot.home, slot.header, about, {}, made};
  if (gives) *handed = work;
  if (halves) __syncthreads();
  if (takes) work = *handed;
  if (work.go && !gives) {
    PacketEdit edit(work.home, kBufferBytes, work.header);
    work.found = rewrite_packet(*work.shader, HostTeam<1>{}, edit, work.about);
    work.made.take(edit, work.header);
    if (takes) *handed = work;
  }
  if (halves) __syncthreads();
  if (!go) return;
  if (gives) work = *handed;
  found = work.found;
  made = work.made;
  if (!made.changed) return;
  update_window(slot, layout, made);
}

}  // namespace detail

/// The same for a shader that rewrites packets: the result goes to the output buffer, or stays on the device until the
/// plan's end if other shaders may read it.
template <typename S, typename Layout>
__device__ Next rewrite_slot(const S* shader, Slot& slot, bool here, const Layout& layout, int first_counter,
                             int result = 0) {
  const uint64_t output = here ? detail::output_of(slot, layout.row()) : 0;
  bool go = output != 0 && detail::can_stage(slot, layout.row());
  typename detail::AboutOf<S>::Type about{};
  if (go) about = detail::about_of(*shader, LaneView<S, Layout>(slot, layout, first_counter));
  detail::FoundBy<S> found{};
  detail::Rewritten made{slot.header.data, slot.header.length, 0, 0, 0, false, false};
  constexpr bool kHomes = detail::has_homes<Layout>();
  // A packet that other teams rewrite stays at home; otherwise this is the time to send it.
  bool settles = !kHomes || !slot.again, keeps = kHomes && (slot.more || !settles);
  if constexpr (S::kSerial) {
    detail::rewrite_alone(shader, slot, go, layout, about, found, made);
  } else if (kHomes && detail::divides(go, slot.header.length)) {
    settles = false;
    keeps = true;
    detail::rewrite_as_teams(shader, slot, go, layout, about, found, made);
  } else {
    const detail::Destinations to{keeps ? slot.home : nullptr, settles ? reinterpret_cast<uint8_t*>(output) : nullptr};
    detail::rewrite_as_team(shader, slot, go, to, layout, about, found, made);
  }
  if (!here) return kDrop;
  if (!go || made.stopped) return kResume;
  if (made.changed) {
    detail::note_written(slot, layout.row(), made.first);
    if constexpr (S::kSerial) {
      if (made.written_from < slot.owed_from) slot.owed_from = made.written_from;
      if (made.written_end > slot.owed_end) slot.owed_end = made.written_end;
    } else {
      slot.settled = settles;
      slot.owed_from = ~uint32_t{0};
      slot.owed_end = 0;
    }
    if (kHomes && (S::kSerial || keeps)) detail::note_at_home(slot, made.first);
    slot.header.data = static_cast<uint16_t>(made.data);
    slot.header.length = made.length;
  }
  return detail::shade_or_resume(*shader, slot, layout, first_counter, result,
                                 [&](auto& view) { return shader->shade(view, found); });
}

/// At the end of a plan in which several shaders read payloads: what output buffers do not have yet of their packets
/// goes there from home. All threads of a warp must call it.
inline __device__ void deliver(const Slot& slot, const RowLayout& row) {
  constexpr uint32_t kFew = 64;  // bytes: lanes copy so many on their own
  const bool any = slot.header.rewritten();
  const uint64_t home = reinterpret_cast<uintptr_t>(slot.home), output = any ? detail::output_of(slot, row) : 0;
  uint32_t from = 0, end = 0;
  if (any && !slot.settled) {
    from = detail::load_bytes<2>(slot.row + row.written_from());
    end = slot.header.data + slot.header.length;
  } else if (any && slot.owed_from < slot.owed_end) {
    from = slot.owed_from;
    end = slot.owed_end;
  }
  if (end - from <= kFew)
    for (uint32_t at = from & ~15u; at < end; at += 16)
      *reinterpret_cast<uint4*>(output + at) = *reinterpret_cast<const uint4*>(home + at);
  __syncwarp();
  for (uint32_t todo = __ballot_sync(~0u, end - from > kFew); todo != 0; todo &= todo - 1) {
    const int owner = __ffs(static_cast<int>(todo)) - 1;
    detail::copy_bytes(reinterpret_cast<uint8_t*>(detail::from_lane(output, owner)),
                       reinterpret_cast<const uint8_t*>(detail::from_lane(home, owner)), __shfl_sync(~0u, from, owner),
                       __shfl_sync(~0u, end, owner));
  }
}

#else

/// A device of this process writes to output buffers at once.
inline void deliver(const Slot&, const RowLayout&) {}

/// Runs a slot of a shader that scans payloads as a device would, with a team as large as a warp.
template <typename S, typename Layout>
Next scan_slot(const S* shader, Slot& slot, bool here, const Layout& layout, int first_counter, int result = 0) {
  if (!here || !detail::has_headers<S>(slot.header)) return kDrop;
  if (!detail::holds_fields<S>(slot, layout) || !detail::can_stage(slot, layout.row())) return kResume;
  PacketBytes packet;
  alignas(16) uint8_t stage[kStageBytes];
  detail::fill_stage(slot, layout.row(), stage);
  packet.data = stage + slot.header.data;
  packet.length = slot.header.length;
  packet.network = detail::network_of(slot.header);
  const auto found = detail::scan_packet(*shader, HostTeam<32>{}, detail::payload_of(*shader, packet), packet);
  return detail::shade_or_resume(*shader, slot, layout, first_counter, result,
                                 [&](auto& view) { return shader->shade(view, found); });
}

/// The same for a shader that rewrites packets.
template <typename S, typename Layout>
Next rewrite_slot(const S* shader, Slot& slot, bool here, const Layout& layout, int first_counter, int result = 0) {
  if (!here) return kDrop;
  const uint64_t output = detail::output_of(slot, layout.row());
  RowHeader& h = slot.header;
  if (output == 0 || !detail::can_stage(slot, layout.row())) return kResume;
  alignas(16) uint8_t stage[kStageBytes];
  const RowLayout& row = layout.row();
  detail::fill_stage(slot, row, stage);
  PacketEdit edit(stage, kBufferBytes, h);
  const auto about = detail::about_of(*shader, LaneView<S, Layout>(slot, layout, first_counter));
  const auto found = detail::rewrite_packet(*shader, HostTeam < S::kSerial ? 1 : 32 > {}, edit, about);
  if (edit.stopped()) return kResume;
  if (edit.changed()) {
    const uint32_t first = detail::first_byte(h) < edit.position() ? detail::first_byte(h) : edit.position();
    detail::note_written(slot, row, first);
    h.data = static_cast<uint16_t>(edit.position());
    h.length = edit.length();
    __builtin_memcpy(slot.row + row.window(), stage + slot.window_at + row.window_begin,
                     static_cast<size_t>(row.window_size));
    __builtin_memcpy(reinterpret_cast<uint8_t*>(output) + first, stage + first, h.data + h.length - first);
  }
  return detail::shade_or_resume(*shader, slot, layout, first_counter, result,
                                 [&](auto& view) { return shader->shade(view, found); });
}

#endif

}  // namespace headrace
