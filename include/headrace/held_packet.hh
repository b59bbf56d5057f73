#pragma once
/// \file
/// A packet whose length and header positions are held in registers. For chains compiled for the CPU.

#include "headrace/packet.hh"
#include "headrace/shader_base.hh"

namespace headrace {

/// Where a packet and its headers lie in its buffer: what shaders read most often. In local variables these values need
/// not be loaded again after each store to the packet's bytes, which the compiler must otherwise take for stores to them.
/// \tparam S the shaders that see the packet; what none of them changes is never written back
template <typename... S>
struct PacketState {
  static constexpr bool kStoresData = (... || (detail::kMovesData<S> || detail::kSetsLength<S>));
  static constexpr bool kStoresMac = (... || detail::kSetsMac<S>);
  static constexpr bool kStoresNetwork = (... || detail::kSetsNetwork<S>);
  static constexpr bool kStoresType = (... || detail::kSetsType<S>);

  Packet* packet;
  uint32_t length;
  uint32_t data;
  uint16_t mac;
  uint16_t network;
  uint16_t transport;
  uint8_t type;

  HEADRACE_SHADER explicit PacketState(Packet* p) : packet(p) { load(); }
  HEADRACE_SHADER void load() { packet->get_positions(length, data, mac, network, transport, type); }
  /// Writes back what may have changed.
  HEADRACE_SHADER Packet* store() const {
    packet->set_positions<kStoresData, kStoresMac, kStoresNetwork, kStoresType>(length, static_cast<uint16_t>(data),
                                                                                mac, network, transport, type);
    return packet;
  }

  HEADRACE_SHADER bool has_mac_header() const { return mac != Packet::kNoHeader; }
  HEADRACE_SHADER bool has_network_header() const { return network != Packet::kNoHeader; }
  HEADRACE_SHADER bool has_transport_header() const { return transport != Packet::kNoHeader; }
};

/// Stands for the Packet* of a CpuView. A copy, which a shader makes when it passes its view to a function by value, works
/// on the packet itself, and the original reads anew what the function has changed.
template <typename State>
class HeldPacket {
 public:
  HEADRACE_SHADER explicit HeldPacket(const State& state) : s_(state) {}
  HEADRACE_SHADER HeldPacket(HeldPacket& from) : s_(from.s_.store()), is_copy_(true) { from.copied_ = true; }
  HEADRACE_SHADER ~HeldPacket() {
    if (is_copy_) (void)s_.store();
  }
  HeldPacket& operator=(const HeldPacket&) = delete;

  /// The state after the shader.
  HEADRACE_SHADER State state() const {
    State now = s_;
    if (copied_) [[unlikely]]
      now.load();
    return now;
  }

  HEADRACE_SHADER HeldPacket* operator->() { return this; }
  HEADRACE_SHADER const HeldPacket* operator->() const { return this; }

  HEADRACE_SHADER uint8_t* data() const { return s_.packet->buffer() + s_.data; }
  HEADRACE_SHADER uint8_t* mac_header() const { return s_.packet->buffer() + s_.mac; }
  HEADRACE_SHADER uint8_t* network_header() const { return s_.packet->buffer() + s_.network; }
  HEADRACE_SHADER uint8_t* transport_header() const { return s_.packet->buffer() + s_.transport; }
  HEADRACE_SHADER uint8_t* anno() const { return s_.packet->anno(); }
  HEADRACE_SHADER uint32_t length() const { return s_.length; }
  HEADRACE_SHADER bool has_mac_header() const { return s_.has_mac_header(); }
  HEADRACE_SHADER bool has_network_header() const { return s_.has_network_header(); }
  HEADRACE_SHADER bool has_transport_header() const { return s_.has_transport_header(); }
  HEADRACE_SHADER int mac_header_offset() const { return s_.mac - static_cast<int>(s_.data); }
  HEADRACE_SHADER int network_header_length() const { return static_cast<int>(s_.transport) - s_.network; }
  HEADRACE_SHADER int network_length() const { return static_cast<int>(s_.length + s_.data) - s_.network; }
  HEADRACE_SHADER int transport_length() const { return static_cast<int>(s_.length + s_.data) - s_.transport; }
  HEADRACE_SHADER PacketType packet_type() const { return static_cast<PacketType>(s_.type); }

  HEADRACE_SHADER bool pull(uint32_t n) {
    if (n > s_.length) return false;
    if (s_.data + n >= Packet::kNoHeader) [[unlikely]]
      return in_memory([n](Packet& p) { return p.pull(n); });
    s_.data += n;
    s_.length -= n;
    return true;
  }
  HEADRACE_SHADER bool push(uint32_t n) {
    if (n > s_.data) [[unlikely]]
      return in_memory([n](Packet& p) { return p.push(n); });
    s_.data -= n;
    s_.length += n;
    return true;
  }
  HEADRACE_SHADER bool take(uint32_t n) {
    if (n > s_.length) return false;
    s_.length -= n;
    return true;
  }
  HEADRACE_SHADER void set_mac_header(int offset) {
    s_.mac = static_cast<uint16_t>(static_cast<int>(s_.data) + offset);
  }
  HEADRACE_SHADER void set_network_header(int offset, int header_length) {
    s_.network = static_cast<uint16_t>(static_cast<int>(s_.data) + offset);
    s_.transport = static_cast<uint16_t>(s_.network + header_length);
  }
  HEADRACE_SHADER void set_packet_type(PacketType type) { s_.type = static_cast<uint8_t>(type); }

 private:
  HEADRACE_SHADER bool in_memory(auto&& change) {
    (void)s_.store();
    const bool done = change(*s_.packet);
    s_.load();
    return done;
  }

  State s_;
  bool is_copy_ = false;
  bool copied_ = false;
};

}  // namespace headrace
