#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Answers ICMP echo requests (RFC 792; RFC 1122, 3.2.2.6).
///
///     ICMPPingResponder
///
/// Input: IP packets with a network header. Output 0: for each echo request the reply, made from the request: addresses
/// exchanged, time-to-live 255, destination address annotation set, paint annotation 0, timestamp now. Output 1
/// (optional): everything else, also fragments of echo requests, and requests to a link's or an IP broadcast or
/// multicast address, which no reply can come from (RFC 1122, 3.2.1.3; RFC 1812, 4.3.3.6); without it that is dropped
/// and counted.
class ICMPPingResponder final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr Processing kProcessing{"a/ah"};

  Status configure(Args& args) override;
  Packet* act(Packet* p, Emitter& emit) override;
};

HEADRACE_ELEMENT(ICMPPingResponder)

}  // namespace headrace
