#pragma once
#include <headrace/element.hh>
#include <vector>

#include "headrace/headers.hh"

namespace headrace {

/// Answers ICMP echo requests (RFC 792; RFC 1122, 3.2.2.6).
///
///     ICMPPingResponder([keyword BADADDRS])
///
/// Input: IP packets with a network header. Output 0: for each echo request the reply, made from the request: addresses
/// exchanged, time-to-live 255, destination address annotation set, paint annotation 0, timestamp now. Output 1
/// (optional): everything else, including fragments of echo requests, and requests to an address that cannot be the
/// source of a reply (RFC 1122, 3.2.1.3; RFC 1812, 4.3.3.6): a link's broadcast or multicast address, network 0, an IP
/// multicast or broadcast address. Without output 1 these are dropped and counted.
///
/// BADADDRS: further addresses that are not single hosts, such as the broadcast addresses of networks.
class ICMPPingResponder final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr Processing kProcessing{"a/ah"};

  Status configure(Args& args) override;
  std::vector<RegionInfo> annotations() const override { return declared(Write{anno::dst_ip}, Write{anno::paint}); }
  Packet* act(Packet* p, Emitter& emit) override;

 private:
  bool can_be_answered(const Packet& p, const Ip4Header& ip) const;

  std::vector<IpAddress> bad_addresses_;
};

HEADRACE_ELEMENT(ICMPPingResponder)

}  // namespace headrace
