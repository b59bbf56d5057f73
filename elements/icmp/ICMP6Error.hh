#pragma once
#include <headrace/element.hh>

#include "elements/icmp/error_rate.hh"
#include "headrace/headers.hh"

namespace headrace {

/// Answers IPv6 packets with ICMPv6 errors (RFC 4443).
///
///     ICMP6Error(SRC, TYPE [, CODE, keyword PMTU, RATE, BURST])
///
/// Input: IPv6 packets with a network header; they are consumed. Output: for each that may be answered, an IPv6 packet
/// with an ICMPv6 error that quotes as much of the packet as fits into 1280 bytes, the smallest MTU of IPv6. Its
/// destination address annotation is set; send it to the routing table.
///
/// No error is sent about ICMPv6 errors and redirects, packets to a multicast address or that came by link broadcast or
/// multicast (except packettoobig and parameterproblem option, by which path MTUs are found), and packets whose source
/// is not a single node: the unspecified and multicast addresses (RFC 4443, section 2.4 (e)). Later fragments of
/// ICMPv6 messages, which do not tell whether they are errors, are not answered either.
///
/// TYPE, CODE: numbers or names; CODE is 0 by default. Names:
///
///     unreachable       noroute adminprohibited beyondscope address port sourcepolicy rejectroute
///     packettoobig
///     timeexceeded      transit reassembly
///     parameterproblem  header nextheader option; the pointer is the ICMP parameter problem annotation
///
/// PMTU: the MTU reported in a packettoobig error. Default 1280; 1280 is also the smallest that receivers believe.
/// RATE: maximum number of errors per second, for all workers together. Default 1000; 0: no limit.
/// BURST: errors that may be sent at once after an idle period. Default 100.
///
/// Handlers: `src`, `pmtu`, `rate`, `burst` (rw).
class ICMP6Error final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1"};

  Status configure(Args& args) override;
  std::vector<RegionInfo> annotations() const override;
  bool can_live_reconfigure() const override { return true; }
  void add_handlers(Handlers& handlers) override;
  Packet* act(Packet* p, Emitter& emit) override;

 private:
  enum Reason : int { kNoHeader, kAboutError, kDestination, kLinkBroadcast, kSource, kOverRate, kNoBuffer, kNone };
  /// Why no error is sent about a packet, or kNone.
  Reason find_exclusion(const Packet& p) const;
  Packet* make_error(const Packet& p) const;

  Ip6Address src_;
  int type_ = 0;
  int code_ = 0;
  uint32_t pmtu_ = 1280;
  ErrorRate rate_;
};

HEADRACE_ELEMENT(ICMP6Error)

}  // namespace headrace
