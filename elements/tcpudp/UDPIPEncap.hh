#pragma once
#include <headrace/element.hh>

#include "headrace/headers.hh"

namespace headrace {

/// Puts UDP and IP headers in front of packets.
///
///     UDPIPEncap(SRC, SPORT, DST, DPORT [, CHECKSUM])
///
/// The network header and destination address annotations are set. Packets have a TTL of 250 and increasing
/// identifications. A packet that would be longer than 65535 bytes, or whose buffer has no room, is dropped and
/// counted.
///
/// SRC, DST: IP addresses. DST may be DST_ANNO, for the destination address annotation.
/// SPORT, DPORT: UDP ports, by number or name.
/// CHECKSUM false: omits the UDP checksum. Default true.
///
/// Handlers: `src`, `sport`, `dst`, `dport` (rw).
class UDPIPEncap final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1"};

  Status configure(Args& args) override;
  std::vector<RegionInfo> annotations() const override {
    return dst_from_annotation_ ? declared(Read{anno::dst_ip}) : declared(Write{anno::dst_ip});
  }
  bool can_live_reconfigure() const override { return true; }
  void add_handlers(Handlers& handlers) override;
  Packet* act(Packet* p, Emitter& emit) override;

 private:
  enum { kNoRoom, kTooLong };

  IpAddress src_, dst_;
  uint16_t src_port_ = 0, dst_port_ = 0;
  bool dst_from_annotation_ = false;
  bool checksum_ = true;
  /// How many packets a thread has sent. Threads take turns in the sequence of identifications.
  PerThread<uint32_t> sent_;
};

HEADRACE_ELEMENT(UDPIPEncap)

}  // namespace headrace
