#pragma once
#include <headrace/element.hh>

#include "headrace/headers.hh"

namespace headrace {

/// Puts packets into ICMP messages (RFC 792).
///
///     ICMPIPEncap(SRC, DST, TYPE [, CODE, keyword IDENTIFIER])
///
/// Input: any packets. Output: IP packets with an ICMP header of 8 bytes (20 for timestamps), the packet behind it. In
/// echo, timestamp and information messages the sequence number counts packets; each worker counts separately. The
/// destination address annotation is set. Packets that are too long, or have no room in front, are dropped and counted.
///
/// TYPE: 0 to 255, or a name such as `echo`.
/// CODE: 0 to 255, or a name. Default 0.
/// IDENTIFIER: of messages that have a sequence number. Default 0.
///
/// Handlers: `src`, `dst` (rw).
class ICMPIPEncap final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1"};

  Status configure(Args& args) override;
  void add_handlers(Handlers& handlers) override;
  Packet* act(Packet* p, Emitter& emit) override;

 private:
  /// A number that no other worker gives, never 0.
  uint16_t next_number();

  IpAddress src_, dst_;
  uint8_t type_ = 0;
  uint8_t code_ = 0;
  uint16_t identifier_ = 0;
  PerThread<uint32_t> count_;
};

HEADRACE_ELEMENT(ICMPIPEncap)

}  // namespace headrace
