#pragma once
#include <headrace/element.hh>

#include "headrace/headers.hh"

namespace headrace {

/// Puts an IP header in front of packets, as for tunnels (RFC 2003).
///
///     IPEncap(PROTO, SRC, DST [, keyword TOS, TTL, DSCP, ECT, CE, DF])
///
/// The network header and destination address annotations are set. Identifications count up. A packet that would be
/// longer than 65535 bytes, or whose buffer has no room, is dropped and counted.
///
/// PROTO: the IP protocol, by number or name. SRC, DST: IP addresses. DST may be DST_ANNO, for the destination address
/// annotation.
/// TTL: time to live. Default 250.
/// TOS: type of service, 0 to 255; or DSCP, 0 to 63, with ECT (true or 1: ECN-capable transport 1, 2: ECN-capable
/// transport 2) or CE true (congestion experienced). Default: all zero.
/// DF true: do not fragment. Default false.
///
/// Handlers: `src`, `dst` (rw).
class IPEncap final : public SimpleElement {
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

  Ip4Header header_{};
  bool dst_from_annotation_ = false;
  /// How many packets a thread has sent. Threads take turns in the sequence of identifications.
  PerThread<uint32_t> sent_;
};

HEADRACE_ELEMENT(IPEncap)

}  // namespace headrace
