#pragma once
#include <headrace/element.hh>

#include "elements/tcpudp/frame_source.hh"

namespace headrace {

/// Sends UDP packets with fixed headers, in Ethernet frames.
///
///     FastUDPSource([RATE, LIMIT, LENGTH, SRCETH, SRCIP, SPORT, DSTETH, DSTIP, DPORT, CHECKSUM, INTERVAL, ACTIVE,
///                   keyword STOP])
///
/// Output 0, pull. Every packet has its own buffer, so downstream elements may change it.
///
/// RATE: packets per second; 0 (default): as many as are pulled.
/// LIMIT: packets to send; negative: no limit. Default -1.
/// LENGTH: bytes of a frame, at least 60. Default 64.
/// SRCETH, DSTETH: Ethernet addresses. Default 0:0:0:0:0:0.
/// SRCIP, DSTIP: default 127.0.0.1.
/// SPORT, DPORT: default 1000.
/// CHECKSUM false: the UDP checksum is 0, which means no checksum. Default true.
/// INTERVAL: both ports are incremented after so many packets; 0 (default): never.
/// ACTIVE false: sends nothing. Default true.
/// STOP true: stops the router once LIMIT packets were sent. Default false.
///
/// Handlers: `count` (r) packets sent; `rate` (rw): reads the average rate from the first to the last of LIMIT packets
/// (0 before), writes RATE; `reset` (w) starts over; `active` (rw), where true starts over; `limit` (rw).
class FastUDPSource final : public FrameSource {
 public:
  static constexpr Processing kProcessing{"l/l"};

  Status configure(Args& args) override;

 protected:
  Packet* next_frame() override;
  void restart() override;

 private:
  FrameTemplate frame_;
  uint16_t src_port_ = 1000, dst_port_ = 1000;
  uint32_t interval_ = 0;
  uint32_t of_interval_ = 0;  // packets since the ports have changed
  uint16_t increment_ = 0;
};

HEADRACE_ELEMENT(FastUDPSource)

}  // namespace headrace
