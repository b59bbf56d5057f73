#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Answers ICMPv6 echo requests (RFC 4443, section 4).
///
///     ICMP6PingResponder
///
/// Input: IPv6 packets with a network header. Output 0: for each echo request to a single node the reply, made from the
/// request: addresses exchanged, hop limit 255, destination address annotation set, paint annotation 0, timestamp now.
/// Output 1 (optional): everything else, including requests to a multicast address or from one, and requests with
/// extension headers, such as fragments. Without output 1 these are dropped and counted.
class ICMP6PingResponder final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr Processing kProcessing{"a/ah"};

  Status configure(Args& args) override;
  std::vector<RegionInfo> annotations() const override { return declared(Write{anno::dst_ip6}, Write{anno::paint}); }
  Packet* act(Packet* p, Emitter& emit) override;
};

HEADRACE_ELEMENT(ICMP6PingResponder)

}  // namespace headrace
