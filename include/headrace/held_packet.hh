#pragma once
/// \file
/// A packet whose length and header positions are held in registers. For chains compiled for the CPU.

#include "headrace/packet.hh"
#include "headrace/shader_base.hh"

namespace headrace {

/// Where a packet and its headers lie in its buffer: what shaders read most often. In local variables these values need
/// not be loaded again after each store to the packet's bytes, which the compiler must otherwise take for stores to them.
/// Header positions are held from when a shader needs them, or has set them; until then the packet has them.
/// \tparam S the shaders that see the packet; what none of them changes is never written back
template <typename... S>
struct PacketState {
  static constexpr bool kStoresData = (... || (detail::kMovesData<S> || detail::kSetsLength<S>));
  static constexpr bool kStoresMac = (... || detail::kSetsMac<S>);
  static constexpr bool kStoresNetwork = (... || detail::kSetsNetwork<S>);
  static constexpr bool kStoresType = (... || detail::kSetsType<S>);

  Packet* packet;
  size_t data;  // as wide as an address, so that nothing has to be widened to become part of one
  uint32_t length;
  uint32_t mac = 0;
  uint32_t network = 0;
  uint16_t transport = 0;
  uint8_t type;
  // Constants wherever a packet takes one way through the shaders, as nearly all do.
  bool holds_mac : 1 = false;
  bool holds_network : 1 = false;

  HEADRACE_SHADER explicit PacketState(Packet* p) : packet(p) { load(); }
  /// Reads anew what is held.
  HEADRACE_SHADER void load() {
    uint32_t begin;
    uint16_t mac_there, network_there, transport_there;
    packet->get_positions(length, begin, mac_there, network_there, transport_there, type);
    data = begin;
    if (holds_mac) mac = mac_there;
    if (holds_network) {
      network = network_there;
      transport = transport_there;
    }
  }
  /// Writes back what may have changed.
  HEADRACE_SHADER Packet* store() const {
    auto begin = static_cast<uint16_t>(data);
    // Or g++ 12 joins it with the MAC header's position in a vector register, and takes it out of there for each use.
    if constexpr (kStoresData) asm("" : "+r"(begin));
    set<kStoresData, false, false, kStoresType>(begin);
    if (kStoresMac && holds_mac) set<false, true, false, false>(begin);
    if (kStoresNetwork && holds_network) set<false, false, true, false>(begin);
    return packet;
  }
  /// In front of shader `Next`, holds what that needs.
  template <typename Next>
  HEADRACE_SHADER void need() {
    using namespace detail;
    if (Uses<Next, Anchor::kMac>().any && !kSetsMac<Next>) hold_mac();
    if ((Uses<Next, Anchor::kNetwork>().any || Uses<Next, Anchor::kTransport>().any) && !kSetsNetwork<Next>)
      hold_network();
  }
  /// After shader `Last`, holds what that may have set, whether it did or not: this is known wherever the packet goes next.
  template <typename Last>
  HEADRACE_SHADER void hold() {
    if (detail::kSetsMac<Last>) hold_mac();
    if (detail::kSetsNetwork<Last>) hold_network();
  }

  HEADRACE_SHADER uint32_t mac_position() const { return there().mac; }
  HEADRACE_SHADER uint32_t network_position() const { return there().network; }
  HEADRACE_SHADER uint16_t transport_position() const { return there().transport; }
  HEADRACE_SHADER void set_mac(uint32_t position) {
    mac = position;
    holds_mac = true;
  }
  HEADRACE_SHADER void set_network(uint32_t position, uint16_t behind) {
    network = position;
    transport = behind;
    holds_network = true;
  }
  HEADRACE_SHADER bool has_mac_header() const { return mac_position() != Packet::kNoHeader; }
  HEADRACE_SHADER bool has_network_header() const { return network_position() != Packet::kNoHeader; }
  HEADRACE_SHADER bool has_transport_header() const { return transport_position() != Packet::kNoHeader; }

 private:
  struct Positions {
    uint32_t mac, network;
    uint16_t transport;
  };
  /// Where the headers are, whether that is held or not. What nobody asks for is not loaded.
  HEADRACE_SHADER Positions there() const {
    uint32_t length_there, data_there;
    uint16_t mac_there, network_there, transport_there;
    uint8_t type_there;
    packet->get_positions(length_there, data_there, mac_there, network_there, transport_there, type_there);
    return {holds_mac ? mac : mac_there, holds_network ? network : network_there,
            holds_network ? transport : transport_there};
  }
  HEADRACE_SHADER void hold_mac() {
    if (!holds_mac) set_mac(mac_position());
  }
  HEADRACE_SHADER void hold_network() {
    if (!holds_network) set_network(network_position(), transport_position());
  }
  template <bool kData, bool kMac, bool kNetwork, bool kType>
  HEADRACE_SHADER void set(uint16_t begin) const {
    packet->set_positions<kData, kMac, kNetwork, kType>(length, begin, static_cast<uint16_t>(mac),
                                                        static_cast<uint16_t>(network), transport, type);
  }
};

// A larger one g++ does not take apart into registers: 298 instructions a packet of the standard router, and not 171.
static_assert(sizeof(PacketState<>) <= 32);

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

  /// The state after the shader, `S`.
  template <typename S>
  HEADRACE_SHADER State state() const {
    State now = s_;
    if (copied_) [[unlikely]]
      now.load();
    now.template hold<S>();
    return now;
  }

  HEADRACE_SHADER HeldPacket* operator->() { return this; }
  HEADRACE_SHADER const HeldPacket* operator->() const { return this; }

  HEADRACE_SHADER uint8_t* data() const { return s_.packet->buffer() + s_.data; }
  HEADRACE_SHADER uint8_t* mac_header() const { return s_.packet->buffer() + s_.mac_position(); }
  HEADRACE_SHADER uint8_t* network_header() const { return s_.packet->buffer() + s_.network_position(); }
  HEADRACE_SHADER uint8_t* transport_header() const { return s_.packet->buffer() + s_.transport_position(); }
  HEADRACE_SHADER uint8_t* anno() const { return s_.packet->anno(); }
  HEADRACE_SHADER uint32_t length() const { return s_.length; }
  HEADRACE_SHADER bool has_mac_header() const { return s_.has_mac_header(); }
  HEADRACE_SHADER bool has_network_header() const { return s_.has_network_header(); }
  HEADRACE_SHADER bool has_transport_header() const { return s_.has_transport_header(); }
  HEADRACE_SHADER int mac_header_offset() const {
    return static_cast<int>(s_.mac_position()) - static_cast<int>(s_.data);
  }
  HEADRACE_SHADER int network_header_length() const {
    return static_cast<int>(s_.transport_position()) - static_cast<int>(s_.network_position());
  }
  HEADRACE_SHADER int network_length() const {
    return static_cast<int>(static_cast<uint32_t>(s_.length + s_.data) - s_.network_position());
  }
  HEADRACE_SHADER int transport_length() const {
    return static_cast<int>(s_.length + s_.data) - s_.transport_position();
  }
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
  HEADRACE_SHADER void set_mac_header(int offset) { s_.set_mac(position(offset)); }
  HEADRACE_SHADER void set_network_header(int offset, int header_length) {
    const uint32_t begin = position(offset);
    s_.set_network(begin, static_cast<uint16_t>(static_cast<int>(begin) + header_length));
  }
  HEADRACE_SHADER void set_packet_type(PacketType type) { s_.type = static_cast<uint8_t>(type); }

 private:
  /// A place in the packet as Packet keeps it, in 16 bits. Its beginning is less without being cut.
  HEADRACE_SHADER uint32_t position(int offset) const {
    return offset == 0 ? static_cast<uint32_t>(s_.data) : static_cast<uint16_t>(static_cast<int>(s_.data) + offset);
  }
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
