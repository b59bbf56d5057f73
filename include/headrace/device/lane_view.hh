#pragma once
/// \file
/// The packet that a shader sees when it does not run in place: a row of a job. Read by the host compiler and by NVRTC.

#include "headrace/device/row.hh"
#include "headrace/shader_base.hh"

namespace headrace {

namespace detail {

template <typename T>
struct IsInteger {
  static constexpr bool kValue = false;
};
template <>
struct IsInteger<uint8_t> {
  static constexpr bool kValue = true;
};
template <>
struct IsInteger<uint16_t> {
  static constexpr bool kValue = true;
};
template <>
struct IsInteger<uint32_t> {
  static constexpr bool kValue = true;
};
template <>
struct IsInteger<uint64_t> {
  static constexpr bool kValue = true;
};

HEADRACE_SHADER uint64_t reverse_bytes(uint64_t v, int size) {
  uint64_t r = 0;
  for (int i = 0; i < size; ++i) r |= (v >> (8 * i) & 0xff) << (8 * (size - 1 - i));
  return r;
}

/// Loads `Size` bytes from any address, little-endian.
template <int Size>
HEADRACE_SHADER uint64_t load_bytes(const uint8_t* at) {
#if defined(__CUDA_ARCH__)
  // Loads whole words of the row, which begins at a multiple of 4, and shifts.
  const uint32_t odd = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(at)) & 3;
  const uint32_t* word = reinterpret_cast<const uint32_t*>(at - odd);
  const uint32_t shift = odd * 8;
  if constexpr (Size == 1) return word[0] >> shift & 0xff;
  if constexpr (Size == 2 || Size == 4) {
    const uint32_t high = shift > 32 - 8 * Size ? word[1] : 0;
    const uint32_t v = __funnelshift_r(word[0], high, shift);
    return Size == 2 ? v & 0xffff : v;
  }
  const uint32_t top = shift ? word[2] : 0;
  return uint64_t{__funnelshift_r(word[1], top, shift)} << 32 | __funnelshift_r(word[0], word[1], shift);
#else
  uint64_t v = 0;
  __builtin_memcpy(&v, at, Size);
  return v;
#endif
}

template <int Size>
HEADRACE_SHADER void store_bytes(uint8_t* at, uint64_t value) {
  for (int i = 0; i < Size; ++i) at[i] = static_cast<uint8_t>(value >> (8 * i));
}

#if defined(__CUDA_ARCH__)
/// Adds to a counter in a block's shared memory. Threads of a warp that add to the same counter combine their
/// additions, which would otherwise be serialized. A 64-bit atomic addition in shared memory is a loop, so two 32-bit
/// additions with carry are used instead.
inline __device__ void add_shared(uint64_t* counter, uint64_t n) {
  uint32_t* const words = reinterpret_cast<uint32_t*>(counter);
  const uint32_t mine = static_cast<uint32_t>(n);
  if (n >> 27) {  // the sum over a warp might overflow
    const uint32_t old = atomicAdd(words, mine);
    atomicAdd(words + 1, static_cast<uint32_t>(n >> 32) + (old + mine < old));
    return;
  }
  const uint32_t together =
      __match_any_sync(__activemask(), static_cast<uint32_t>(reinterpret_cast<uintptr_t>(counter)));
  const uint32_t sum = __reduce_add_sync(together, mine);
  uint32_t lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  if (sum == 0 || lane != static_cast<uint32_t>(__ffs(static_cast<int>(together))) - 1) return;
  const uint32_t old = atomicAdd(words, sum);
  if (old + sum < old) atomicAdd(words + 1, 1u);
}
#endif

}  // namespace detail

/// Mistakes that a shader can make.
enum class Fault : uint8_t {
  kNone,
  kTorn,        ///< it wrote or counted before it read bytes that are not in the row
  kUndeclared,  ///< it used bytes that it did not declare, at an offset known only at run time
  kNotSet       ///< a packet left by output 0 without an annotation that the shader declares to Set
};

/// A row being processed: its header in registers, its bytes where the row lies.
struct Slot {
  RowHeader header;
  uint8_t* row;
  uint64_t* counts;    ///< the plan's counters; on a device, shared by a block
  uint16_t window_at;  ///< header.data when the slot came: the origin of the window
  bool stopped;        ///< the shader needed something that the row does not hold
  bool whole;          ///< the whole row must come back
  bool newer;          ///< shaders before this one may have written to the window: memory is older
  bool more;           ///< shaders behind this one may read the payload, too
  bool again;          ///< shaders behind this one may rewrite the whole packet
  uint8_t* stage;      ///< on a device: where this thread's warp loads a packet
  uint8_t* home;       ///< likewise: where this slot's packet stays between shaders that read payloads; null: nowhere
  uint32_t home_from;  ///< the byte of the packet's buffer from which on it is there
  bool settled;        ///< the output buffer has the packet, but for the bytes [owed_from, owed_end) of home
  uint32_t owed_from, owed_end;
  // Mistakes of shaders, which only the host checks for.
  bool changed;         ///< this shader has written or counted
  uint64_t set;         ///< the bytes of annotations that this shader has written
  Fault fault;          ///< the first one
  uint16_t fault_step;  ///< the step that made it
};

/// A slot as a shader of type `S` sees it. `Layout::row()` returns the RowLayout, which is a constant in a generated
/// program. The interface is that of CpuView.
template <typename S, typename Layout>
class LaneView {
 public:
  HEADRACE_SHADER LaneView(Slot& slot, const Layout& layout, int first_counter)
      : s_(slot), layout_(layout), first_counter_(first_counter) {}

  template <typename F>
  HEADRACE_SHADER typename F::Value get(F) const {
    static_assert(S::kRegions.template readable<F>(), "this shader does not declare that it reads this field");
    using T = typename F::Value;
    const int at = find(F::kAnchor, F::kOffset, F::kSize);
    if constexpr (detail::IsInteger<T>::kValue) {
      if (at < 0) return 0;
      const uint64_t raw = detail::load_bytes<sizeof(T)>(s_.row + at);
      return static_cast<T>(swaps<F>() ? detail::reverse_bytes(raw, sizeof(T)) : raw);
    } else {
      T value{};
      if (at >= 0)
        for (unsigned i = 0; i < sizeof(T); ++i) value.b[i] = s_.row[at + static_cast<int>(i)];
      return value;
    }
  }
  template <typename F>
  HEADRACE_SHADER void set(F, const typename F::Value& value) {
    static_assert(S::kRegions.template writable<F>(), "this shader does not declare that it writes this field");
    using T = typename F::Value;
    const int at = find(F::kAnchor, F::kOffset, F::kSize);
    if (at < 0 || s_.stopped) return;
    changes(F::kAnchor, F::kOffset, at, F::kSize);
    if constexpr (detail::IsInteger<T>::kValue) {
      detail::store_bytes<sizeof(T)>(s_.row + at, swaps<F>() ? detail::reverse_bytes(value, sizeof(T)) : value);
    } else {
      for (unsigned i = 0; i < sizeof(T); ++i) s_.row[at + static_cast<int>(i)] = value.b[i];
    }
  }

  HEADRACE_SHADER uint8_t load8(Anchor anchor, int offset) const {
    return static_cast<uint8_t>(load<1>(anchor, offset));
  }
  HEADRACE_SHADER uint16_t load16(Anchor anchor, int offset) const {
    return static_cast<uint16_t>(detail::reverse_bytes(load<2>(anchor, offset), 2));
  }
  HEADRACE_SHADER uint32_t load32(Anchor anchor, int offset) const {
    return static_cast<uint32_t>(detail::reverse_bytes(load<4>(anchor, offset), 4));
  }
  HEADRACE_SHADER uint32_t load32_raw(Anchor anchor, int offset) const {
    return static_cast<uint32_t>(load<4>(anchor, offset));
  }
  HEADRACE_SHADER uint64_t load64_raw(Anchor anchor, int offset) const { return load<8>(anchor, offset); }
  HEADRACE_SHADER void store8(Anchor anchor, int offset, uint8_t value) { store<1>(anchor, offset, value); }
  HEADRACE_SHADER void store16(Anchor anchor, int offset, uint16_t value) {
    store<2>(anchor, offset, detail::reverse_bytes(value, 2));
  }
  HEADRACE_SHADER void store32(Anchor anchor, int offset, uint32_t value) {
    store<4>(anchor, offset, detail::reverse_bytes(value, 4));
  }

  HEADRACE_SHADER uint32_t length() const {
    declared<false>(meta::length);
    return s_.header.length;
  }
  HEADRACE_SHADER int length_from(Anchor anchor) const {
    declared<false>(meta::length);
    if (!has(anchor)) return -1;
    return static_cast<int>(s_.header.length) + s_.header.data - static_cast<int>(position(anchor));
  }
  HEADRACE_SHADER bool has_network_header() const { return has(Anchor::kNetwork); }
  HEADRACE_SHADER bool has_mac_header() const { return has(Anchor::kMac); }
  HEADRACE_SHADER int network_header_length() const {
    return static_cast<int>(s_.header.transport) - static_cast<int>(s_.header.network);
  }

  HEADRACE_SHADER bool pull(uint32_t n) {
    declared<true>(meta::data);
    if (n > s_.header.length) return false;
    if (s_.header.data + n >= RowHeader::kNone) stop();
    if (s_.stopped) return false;
    s_.header.data = static_cast<uint16_t>(s_.header.data + n);
    s_.header.length -= n;
    return true;
  }
  HEADRACE_SHADER bool push(uint32_t n) {
    declared<true>(meta::data);
    // The host may find room by moving the packet within its buffer.
    if (n > s_.header.data) stop();
    if (s_.stopped) return false;
    s_.header.data = static_cast<uint16_t>(s_.header.data - n);
    s_.header.length += n;
    return true;
  }
  HEADRACE_SHADER bool take(uint32_t n) {
    declared<true>(meta::length);
    if (n > s_.header.length || s_.stopped) return false;
    s_.header.length -= n;
    return true;
  }
  HEADRACE_SHADER void set_mac_header(int offset = 0) {
    declared<true>(meta::mac_header);
    if (!s_.stopped) s_.header.mac = static_cast<uint16_t>(s_.header.data + offset);
  }
  HEADRACE_SHADER void set_network_header(int offset, int header_length) {
    declared<true>(meta::network_header);
    if (s_.stopped) return;
    s_.header.network = static_cast<uint16_t>(s_.header.data + offset);
    s_.header.transport = static_cast<uint16_t>(s_.header.network + header_length);
  }

  HEADRACE_SHADER uint8_t packet_type() const {
    declared<false>(meta::packet_type);
    return s_.header.type;
  }
  HEADRACE_SHADER void set_packet_type(PacketType type) {
    declared<true>(meta::packet_type);
    if (!s_.stopped) s_.header.type = static_cast<uint8_t>(type);
  }

  HEADRACE_SHADER void count(int index, uint64_t n = 1) {
    if (s_.stopped) return;
#if defined(__CUDA_ARCH__)
    detail::add_shared(s_.counts + first_counter_ + index, n);
#else
    s_.changed = true;
    s_.counts[first_counter_ + index] += n;
#endif
  }
  HEADRACE_SHADER void set_result(const typename detail::ResultOf<S>::Type& result) {
    static_assert(detail::ResultOf<S>::kExists, "this shader has no type Result");
    result_ = result;
  }
  HEADRACE_SHADER const typename detail::ResultOf<S>::Type& result() const { return result_; }

 private:
  template <bool Written, typename F>
  HEADRACE_SHADER static constexpr void declared(F) {
    static_assert(Written ? S::kRegions.template writable<F>() : S::kRegions.template readable<F>(),
                  "this shader does not declare what it uses here in kRegions");
  }
  template <typename F>
  HEADRACE_SHADER static constexpr bool swaps() {
    return F::kOrder == ByteOrder::kNetwork;
  }
  HEADRACE_SHADER uint16_t position(Anchor anchor) const {
    switch (anchor) {
      case Anchor::kMac:
        return s_.header.mac;
      case Anchor::kNetwork:
        return s_.header.network;
      case Anchor::kTransport:
        return s_.header.transport;
      default:
        return s_.header.data;
    }
  }
  HEADRACE_SHADER bool has(Anchor anchor) const { return position(anchor) != RowHeader::kNone; }
  HEADRACE_SHADER void stop() const {
    s_.stopped = true;
#if !defined(__CUDA_ARCH__)
    if (s_.changed) blame(Fault::kTorn);
#endif
  }
  /// Bytes [at, at + size) of the row are written.
  HEADRACE_SHADER void changes(Anchor anchor, [[maybe_unused]] int offset, int at, int size) const {
    const RowLayout row = layout_.row();
    if (anchor != Anchor::kAnno && at + size > row.window() + row.written) s_.whole = true;
#if !defined(__CUDA_ARCH__)
    s_.changed = true;
    if (anchor == Anchor::kAnno) s_.set |= ((uint64_t{1} << size) - 1) << offset;
#endif
  }
  HEADRACE_SHADER void blame(Fault fault) const {
    if (s_.fault != Fault::kNone) return;
    s_.fault = fault;
    s_.fault_step = s_.header.at;
  }
  template <bool Written>
  HEADRACE_SHADER void used([[maybe_unused]] Anchor anchor, [[maybe_unused]] int offset,
                            [[maybe_unused]] int size) const {
#if !defined(__CUDA_ARCH__)
    if (!S::kRegions.covers(anchor, offset, size, Written)) blame(Fault::kUndeclared);
#endif
  }

  /// Where bytes lie in the row. If they are not in it, returns a negative number and stops the slot.
  HEADRACE_SHADER int find(Anchor anchor, int offset, int size) const {
    if (anchor == Anchor::kAnno) {
      if (layout_.row().has_annotations(offset, size)) return layout_.row().annotation(offset);
    } else {
      const int in_window = static_cast<int>(position(anchor)) + offset - s_.window_at - layout_.row().window_begin;
      if (in_window >= 0 && in_window + size <= layout_.row().window_size) return layout_.row().window() + in_window;
    }
    stop();
    return -1;
  }
  template <int Size>
  HEADRACE_SHADER uint64_t load(Anchor anchor, int offset) const {
    used<false>(anchor, offset, Size);
    const int at = find(anchor, offset, Size);
    return at < 0 ? 0 : detail::load_bytes<Size>(s_.row + at);
  }
  template <int Size>
  HEADRACE_SHADER void store(Anchor anchor, int offset, uint64_t value) {
    used<true>(anchor, offset, Size);
    const int at = find(anchor, offset, Size);
    if (at < 0 || s_.stopped) return;
    changes(anchor, offset, at, Size);
    detail::store_bytes<Size>(s_.row + at, value);
  }

  Slot& s_;
  const Layout& layout_;
  int first_counter_;
  [[no_unique_address]] typename detail::ResultOf<S>::Type result_{};
};

namespace detail {

/// False if a declared field of a header that the packet has lies outside the row. The shader must not start then,
/// because it might write before it reaches that field. Fields of a header that the shader itself sets are checked as
/// they are accessed.
template <typename S, typename Layout>
HEADRACE_SHADER bool holds_fields(const Slot& s, const Layout& layout) {
  constexpr Uses<S, Anchor::kMac> mac;
  constexpr Uses<S, Anchor::kNetwork> network;
  constexpr Uses<S, Anchor::kTransport> transport;
  constexpr Uses<S, Anchor::kData> data;
  const int origin = s.window_at + layout.row().window_begin;
  const int size = layout.row().window_size;
  const auto inside = [&](uint16_t position, int first, int last) {
    if (first == last || position == RowHeader::kNone) return true;
    return position + first - origin >= 0 && position + last - origin <= size;
  };
  if constexpr (!kSetsMac<S>)
    if (!inside(s.header.mac, mac.first, mac.last)) return false;
  if constexpr (!kSetsNetwork<S>) {
    if (!inside(s.header.network, network.first, network.last)) return false;
    if (!inside(s.header.transport, transport.first, transport.last)) return false;
  }
  if constexpr (!kMovesData<S>)
    if (!inside(s.header.data, data.first, data.last)) return false;
  return true;
}

}  // namespace detail

/// Not a port: the host must process this element; the slot is unchanged.
inline constexpr Next kResume = 0xfffc;

namespace detail {

/// Writes a result to a row, behind the number of the step that gave it.
template <typename Result>
HEADRACE_SHADER void store_result(uint8_t* to, uint16_t step, const Result& result) {
  constexpr int kWords = (sizeof(Result) + 3) / 4;
  uint32_t words[kWords] = {};
#if defined(__CUDA_ARCH__)
  memcpy(words, &result, sizeof result);
#else
  __builtin_memcpy(words, &result, sizeof result);
#endif
  uint32_t* const out = reinterpret_cast<uint32_t*>(to);
  out[0] = step + 1u;
  for (int i = 0; i < kWords; ++i) out[1 + i] = words[i];
}

#if !defined(__CUDA_ARCH__)
template <typename S, typename... D>
bool sets_all(const S& shader, const Slot& slot, const Regions<D...>&) {
  [[maybe_unused]] const auto one = [&](const RegionInfo& r, bool narrows) {
    if (!r.sets) return true;
    int first = r.offset, last = r.offset + r.size;
    if constexpr (requires { shader.extent(Anchor::kAnno); }) {
      if (narrows) {
        const Extent used = shader.extent(Anchor::kAnno);
        first = used.first;
        last = used.last;
      }
    }
    const uint64_t bytes = ((uint64_t{1} << (last - first)) - 1) << first;
    return (slot.set & bytes) == bytes;
  };
  return (one(
              Regions<D>::template info<D>(), !requires { typename D::Where::Value; }) &&
          ...);
}
/// False if the shader has not written an annotation that it declares to Set.
template <typename S>
bool sets_what_it_declares(const S& shader, const Slot& slot) {
  return sets_all(shader, slot, S::kRegions);
}
#endif

/// Calls `shade(view)`; if the slot must go to the host, restores its header.
template <typename S, typename Layout, typename Shade>
HEADRACE_SHADER Next shade_or_resume([[maybe_unused]] const S& shader, Slot& slot, const Layout& layout,
                                     int first_counter, int result, Shade&& shade) {
  const RowHeader before = slot.header;
#if !defined(__CUDA_ARCH__)
  slot.changed = false;
  slot.set = 0;
#endif
  LaneView<S, Layout> view(slot, layout, first_counter);
  const Next next = shade(view);
  if (slot.stopped) {
    slot.stopped = false;
    slot.header = before;
    return kResume;
  }
#if !defined(__CUDA_ARCH__)
  if (next == 0 && !sets_what_it_declares(shader, slot) && slot.fault == Fault::kNone) {
    slot.fault = Fault::kNotSet;
    slot.fault_step = before.at;
  }
#endif
  if constexpr (ResultOf<S>::kExists)
    if (next != kEscape) store_result(slot.row + layout.row().result(result), before.at, view.result());
  return next;
}

}  // namespace detail

/// Runs shader `shader` on a slot. Returns its next, or kResume.
/// \param result the number of its result in the row, if it has one
template <typename S, typename Layout>
HEADRACE_SHADER Next shade_slot(const S& shader, Slot& slot, const Layout& layout, int first_counter, int result = 0) {
  if (!detail::has_headers<S>(slot.header)) return kDrop;
  if (!detail::holds_fields<S>(slot, layout)) return kResume;
  return detail::shade_or_resume(shader, slot, layout, first_counter, result,
                                 [&](auto& view) { return shader.shade(view); });
}

}  // namespace headrace
