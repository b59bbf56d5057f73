#pragma once
#include <headrace/element.hh>

#include "headrace/headers.hh"

namespace headrace {

/// Puts packets into ICMP echo requests (RFC 792).
///
///     ICMPPingEncap(SRC, DST [, keyword IDENTIFIER])
///
/// Input: any packets. Output: IP packets whose echo requests carry them, numbered from 1 on; with several
/// workers each has numbers of its own. The destination address annotation is set. Packets that are too long, or have
/// no room in front, are dropped and counted.
///
/// IDENTIFIER: default 0.
///
/// Handlers: `src`, `dst` (rw).
class ICMPPingEncap final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1"};

  Status configure(Args& args) override;
  void add_handlers(Handlers& handlers) override;
  Packet* act(Packet* p, Emitter& emit) override;

 private:
  /// A number that no other worker gives, never 0.
  uint16_t next_number();

  IpAddress src_, dst_;
  uint16_t identifier_ = 0;
  PerThread<uint32_t> count_;
};

HEADRACE_ELEMENT(ICMPPingEncap)

}  // namespace headrace
