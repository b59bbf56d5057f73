#pragma once
#include <atomic>
#include <headrace/element.hh>

#include "headrace/headers.hh"

namespace headrace {

/// Puts packets into ICMP echo requests (RFC 792).
///
///     ICMPPingEncap(SRC, DST [, keyword IDENTIFIER])
///
/// Input: any packets. Output: IP packets whose echo requests carry them, numbered from 1 on. The destination address
/// annotation is set. Packets that are too long, or have no room in front, are dropped and counted.
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
  IpAddress src_, dst_;
  uint16_t identifier_ = 0;
  std::atomic<uint32_t> count_{0};
};

HEADRACE_ELEMENT(ICMPPingEncap)

}  // namespace headrace
