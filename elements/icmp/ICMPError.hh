#pragma once
#include <headrace/element.hh>
#include <vector>

#include "elements/icmp/error_rate.hh"
#include "headrace/headers.hh"

namespace headrace {

/// Answers IP packets with ICMP errors (RFC 792; RFC 1812, 4.3.2).
///
///     ICMPError(SRC, TYPE [, CODE, BADADDRS, keyword MTU, PMTU, RATE, BURST, SET_FIX_ANNO])
///
/// Input: IP packets with a network header; they are consumed. Output: for each that may be answered, an IP packet with
/// an ICMP error that quotes the packet's header and as much of its data as fits. Its destination address annotation is
/// set, and its Fix IP Source annotation, so that FixIPSrc on the way out replaces SRC; send it to the routing table.
///
/// No error is sent about ICMP errors, fragments other than the first, packets that came by link broadcast or
/// multicast, packets to an IP broadcast or multicast address, and packets whose source is not a single host (RFC
/// 1812, 4.3.2.7). If the packet was source routed, the error returns along the recorded part of the route, from the
/// last router back to the sender (4.3.2.6). A redirect is not sent then (5.2.7.2). Errors have the precedence of
/// internetwork control (4.3.2.5), and are limited to RATE (4.3.2.8).
///
/// TYPE, CODE: numbers or names; CODE is 0 by default. Names:
///
///     unreachable       net host protocol port needfrag srcroutefail netunknown hostunknown isolated netprohibited
///                       hostprohibited tosnet toshost filterprohibited hostprecedence precedencecutoff
///     sourcequench
///     redirect          net host tosnet toshost; the gateway is the destination address annotation
///     timeexceeded      transit reassembly
///     parameterproblem  erroratptr missingopt length; erroratptr takes the pointer from the ICMP parameter problem
///                       annotation, which IPGWOptions sets
///
/// BADADDRS: addresses that are not single hosts, such as the broadcast addresses of networks.
/// MTU: the longest packet sent. Default 576.
/// PMTU: the MTU reported in an unreachable needfrag error (RFC 1191). Default 0.
/// RATE: maximum number of errors per second, for all workers together. Default 1000; 0: no limit.
/// BURST: errors that may be sent at once after an idle period. Default 100.
/// SET_FIX_ANNO (also USE_FIX_ANNO) false: leaves the Fix IP Source annotation alone. Default true.
///
/// Handlers: `src`, `mtu`, `pmtu`, `rate`, `burst` (rw).
class ICMPError final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1"};

  Status configure(Args& args) override;
  std::vector<RegionInfo> annotations() const override;
  bool can_live_reconfigure() const override { return true; }
  void add_handlers(Handlers& handlers) override;
  Packet* act(Packet* p, Emitter& emit) override;

 private:
  enum Reason : int;
  bool is_unicast(IpAddress address) const;
  bool is_host(IpAddress address) const;
  /// Why no error is sent about a packet, or kNone.
  Reason find_exclusion(const Packet& p, const Ip4Header& ip, const uint8_t* source_route) const;
  Packet* make_error(const Packet& p, const Ip4Header& ip, const uint8_t* source_route) const;

  IpAddress src_;
  int type_ = 0;
  int code_ = 0;
  std::vector<IpAddress> bad_addresses_;
  uint32_t mtu_ = 576;
  uint16_t pmtu_ = 0;
  ErrorRate rate_;
  bool set_fix_ip_src_ = true;
};

HEADRACE_ELEMENT(ICMPError)

}  // namespace headrace
