#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Answers ICMP echo requests (RFC 792; RFC 1122, 3.2.2.6).
///
///     ICMPPingResponder
///
/// Input: IP packets with a network header. Output 0: for each echo request the reply, made from the request: addresses
/// exchanged, time-to-live 255, destination address annotation set, paint annotation 0, timestamp now. Output 1
/// (optional): everything else, fragments of echo requests too; without it that is dropped and counted.
class ICMPPingResponder final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr Processing kProcessing{"a/ah"};

  Status configure(Args& args) override;
  Packet* act(Packet* p, Emitter& emit) override;
};

HEADRACE_ELEMENT(ICMPPingResponder)

}  // namespace headrace
