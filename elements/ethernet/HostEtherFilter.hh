#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Classifies and filters packets as an Ethernet interface does: sets the packet type and drops packets for other
/// hosts.
///
///     HostEtherFilter(ETHER [, DROP_OWN, DROP_OTHER, keyword OFFSET])
///
/// Sets the packet type annotation to HOST, BROADCAST, MULTICAST or OTHERHOST by the destination address. Output 0:
/// packets that are not filtered. Output 1 (optional): the others; without it they are dropped and counted. Packets too
/// short for an Ethernet header are among them.
///
/// ETHER: the address of this host.
/// DROP_OWN true: filters packets whose source is ETHER. Default false.
/// DROP_OTHER false: lets packets for other hosts pass. Default true.
/// OFFSET: where the Ethernet header begins. Default 0.
///
/// Handlers: `ether` (rw).
struct HostEtherFilter : Shader<HostEtherFilter> {
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr auto kRegions =
      regions(Read{Span<Anchor::kData, 0, 64>{}}, Read{meta::length}, Write{meta::packet_type});
  enum { kShort, kOwn, kOther };
  static constexpr auto kCounters =
      counters(reason("no Ethernet header"), reason("own packet"), reason("for another host"));
  enum Type : uint8_t { kTypeHost, kTypeBroadcast, kTypeMulticast, kTypeOtherHost };

  uint32_t ether_high = 0;  // of ETHER, four bytes and two
  uint16_t ether_low = 0;
  bool drop_own = false;
  bool drop_other = true;
  int32_t offset = 0;

  Status configure(Args& args);
  void add_handlers(Handlers& handlers);

  Extent extent(Anchor) const { return {offset, offset + 12}; }

  HEADRACE_SHADER Next shade(auto& p) const {
    if (static_cast<int>(p.length()) - 14 < offset) [[unlikely]] {
      p.count(kShort);
      return 1;
    }
    if (drop_own && is_mine(p, 6)) {
      p.count(kOwn);
      return 1;
    }
    Type type = kTypeOtherHost;
    const uint32_t high = p.load32(Anchor::kData, offset);
    if (is_mine(p, 0))
      type = kTypeHost;
    else if (high == 0xffffffff && p.load16(Anchor::kData, offset + 4) == 0xffff)
      type = kTypeBroadcast;
    else if (high >> 24 & 1)
      type = kTypeMulticast;
    p.set_packet_type(static_cast<PacketType>(type));
    if (type != kTypeOtherHost || !drop_other) return 0;
    p.count(kOther);
    return 1;
  }

 private:
  HEADRACE_SHADER bool is_mine(auto& p, int at) const {
    return p.load32(Anchor::kData, offset + at) == ether_high && p.load16(Anchor::kData, offset + at + 4) == ether_low;
  }
};

HEADRACE_ELEMENT(HostEtherFilter)

}  // namespace headrace
