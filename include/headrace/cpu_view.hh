#pragma once
/// \file
/// The packet that a shader sees when it runs on the CPU, in place.

#include <cstring>
#include <type_traits>

#include "headrace/packet.hh"
#include "headrace/packet_edit.hh"
#include "headrace/shader_base.hh"

namespace headrace {

namespace detail {
template <typename T>
HEADRACE_SHADER T from_network(T value) {
  if constexpr (sizeof(T) == 2 && std::is_integral_v<T>) return __builtin_bswap16(value);
  if constexpr (sizeof(T) == 4 && std::is_integral_v<T>) return __builtin_bswap32(value);
  if constexpr (sizeof(T) == 8 && std::is_integral_v<T>) return __builtin_bswap64(value);
  return value;
}
}  // namespace detail

/// A packet that is rewritten where it lies. Call finish() at the end.
class EditInPlace : public PacketEdit {
 public:
  explicit EditInPlace(Packet& packet)
      : PacketEdit(packet.buffer(), packet.capacity(), packet.row_header()), packet_(packet) {
    make_room_ = &make_room;
  }
  /// Gives the packet its new start and length.
  void finish() {
    RowHeader h = packet_.row_header();
    h.data = static_cast<uint16_t>(position());
    h.length = length();
    packet_.set_row_header(h);
  }

 private:
  static bool make_room(PacketEdit& edit, uint32_t front, uint32_t back) {
    auto& self = static_cast<EditInPlace&>(edit);
    self.finish();
    Packet& packet = self.packet_;
    if (front > 0 ? !packet.push(front) : !packet.put(back)) return false;
    self.place(packet.buffer(), packet.capacity(), packet.row_header());
    return true;
  }

  Packet& packet_;
};

/// The packet that a shader of type `S` sees when it runs on the CPU, in place.
/// \tparam P what works like a Packet*
template <typename S, typename P = Packet*>
class CpuView {
 public:
  HEADRACE_SHADER CpuView(Packet* p, uint64_t* counters) : p_(p), counters_(counters) {}
  template <typename State>
  HEADRACE_SHADER CpuView(const State& state, uint64_t* counters) : p_(state), counters_(counters) {}
  HEADRACE_SHADER const P& packet() const { return p_; }

  /// A declared field's value; integers in host order.
  template <typename F>
  HEADRACE_SHADER typename F::Value get(F) const {
    static_assert(S::kRegions.template readable<F>(), "this shader does not declare that it reads this field");
    typename F::Value value;
    std::memcpy(&value, at(F::kAnchor) + F::kOffset, sizeof value);
    return convert<F>(value);
  }
  template <typename F>
  HEADRACE_SHADER void set(F, const std::type_identity_t<typename F::Value>& value) {
    static_assert(S::kRegions.template writable<F>(), "this shader does not declare that it writes this field");
    if constexpr (std::is_integral_v<typename F::Value>) {
      const typename F::Value ordered = convert<F>(value);
      std::memcpy(at(F::kAnchor) + F::kOffset, &ordered, sizeof ordered);
    } else {
      std::memcpy(at(F::kAnchor) + F::kOffset, &value, sizeof value);
    }
  }

  /// Integers at an offset known only at run time, within a declared Span of that anchor; host order.
  HEADRACE_SHADER uint8_t load8(Anchor anchor, int offset) const { return at(anchor)[offset]; }
  HEADRACE_SHADER uint16_t load16(Anchor anchor, int offset) const { return load<uint16_t>(anchor, offset); }
  HEADRACE_SHADER uint32_t load32(Anchor anchor, int offset) const { return load<uint32_t>(anchor, offset); }
  /// The same in memory order, for masks in that order.
  HEADRACE_SHADER uint32_t load32_raw(Anchor anchor, int offset) const {
    uint32_t value;
    std::memcpy(&value, at(anchor) + offset, sizeof value);
    return value;
  }
  HEADRACE_SHADER uint64_t load64_raw(Anchor anchor, int offset) const {
    uint64_t value;
    std::memcpy(&value, at(anchor) + offset, sizeof value);
    return value;
  }
  HEADRACE_SHADER void store8(Anchor anchor, int offset, uint8_t value) { at(anchor)[offset] = value; }
  HEADRACE_SHADER void store16(Anchor anchor, int offset, uint16_t value) {
    value = __builtin_bswap16(value);
    std::memcpy(at(anchor) + offset, &value, sizeof value);
  }
  HEADRACE_SHADER void store32(Anchor anchor, int offset, uint32_t value) {
    value = __builtin_bswap32(value);
    std::memcpy(at(anchor) + offset, &value, sizeof value);
  }

  /// Length of the packet in bytes; declare meta::length.
  HEADRACE_SHADER uint32_t length() const {
    static_assert(S::kRegions.template readable<std::remove_const_t<decltype(meta::length)>>(),
                  "declare Read{meta::length}");
    return p_->length();
  }
  /// Bytes from a header to the end of the packet; negative if the header is not there.
  HEADRACE_SHADER int length_from(Anchor anchor) const {
    static_assert(S::kRegions.template readable<std::remove_const_t<decltype(meta::length)>>(),
                  "declare Read{meta::length}");
    switch (anchor) {
      case Anchor::kMac:
        return p_->has_mac_header() ? static_cast<int>(p_->length()) - p_->mac_header_offset() : -1;
      case Anchor::kNetwork:
        return p_->has_network_header() ? p_->network_length() : -1;
      case Anchor::kTransport:
        return p_->has_transport_header() ? p_->transport_length() : -1;
      default:
        return static_cast<int>(p_->length());
    }
  }
  HEADRACE_SHADER bool has_network_header() const { return p_->has_network_header(); }
  HEADRACE_SHADER bool has_mac_header() const { return p_->has_mac_header(); }
  /// Header length in bytes, as set by the element that marked the network header.
  HEADRACE_SHADER int network_header_length() const { return p_->network_header_length(); }

  /// Moves the start of the packet; false if the packet is too short or the buffer has no room. Declare
  /// Write{meta::data}.
  HEADRACE_SHADER bool pull(uint32_t n) {
    moves();
    return p_->pull(n);
  }
  HEADRACE_SHADER bool push(uint32_t n) {
    moves();
    return p_->push(n);
  }
  /// Removes bytes from the end. Declare Write{meta::length}.
  HEADRACE_SHADER bool take(uint32_t n) {
    static_assert(S::kRegions.template writable<std::remove_const_t<decltype(meta::length)>>(),
                  "declare Write{meta::length}");
    return p_->take(n);
  }
  /// Header positions, relative to the start of the packet.
  HEADRACE_SHADER void set_mac_header(int offset = 0) {
    static_assert(S::kRegions.template writable<std::remove_const_t<decltype(meta::mac_header)>>(),
                  "declare Write{meta::mac_header}");
    p_->set_mac_header(offset);
  }
  HEADRACE_SHADER void set_network_header(int offset, int header_length) {
    static_assert(S::kRegions.template writable<std::remove_const_t<decltype(meta::network_header)>>(),
                  "declare Write{meta::network_header}");
    p_->set_network_header(offset, header_length);
  }

  HEADRACE_SHADER uint8_t packet_type() const {
    static_assert(S::kRegions.template readable<std::remove_const_t<decltype(meta::packet_type)>>(),
                  "declare Read{meta::packet_type}");
    return static_cast<uint8_t>(p_->packet_type());
  }
  HEADRACE_SHADER void set_packet_type(PacketType type) {
    static_assert(S::kRegions.template writable<std::remove_const_t<decltype(meta::packet_type)>>(),
                  "declare Write{meta::packet_type}");
    p_->set_packet_type(type);
  }

  /// Adds to the shader's counter number `index`.
  HEADRACE_SHADER void count(int index, uint64_t n = 1) { counters_[index] += n; }
  /// Sets what the shader's `release` gets for this packet; without it a Result{}.
  HEADRACE_SHADER void set_result(const typename detail::ResultOf<S>::Type& result) {
    static_assert(detail::ResultOf<S>::kExists, "this shader has no type Result");
    result_ = result;
  }
  HEADRACE_SHADER const typename detail::ResultOf<S>::Type& result() const { return result_; }

 private:
  template <typename F>
  HEADRACE_SHADER static typename F::Value convert(typename F::Value value) {
    if constexpr (F::kOrder == ByteOrder::kHost) return value;
    return detail::from_network(value);
  }
  template <typename T>
  HEADRACE_SHADER T load(Anchor anchor, int offset) const {
    T value;
    std::memcpy(&value, at(anchor) + offset, sizeof value);
    return detail::from_network(value);
  }
  HEADRACE_SHADER void moves() const {
    static_assert(S::kRegions.template writable<std::remove_const_t<decltype(meta::data)>>(),
                  "declare Write{meta::data}");
  }
  HEADRACE_SHADER uint8_t* at(Anchor anchor) const {
    switch (anchor) {
      case Anchor::kMac:
        return p_->mac_header();
      case Anchor::kNetwork:
        return p_->network_header();
      case Anchor::kTransport:
        return p_->transport_header();
      case Anchor::kAnno:
        return p_->anno();
      default:
        return p_->data();
    }
  }

  P p_;
  uint64_t* counters_;
  [[no_unique_address]] typename detail::ResultOf<S>::Type result_{};
};

}  // namespace headrace
