#pragma once
#include <headrace/element.hh>
#include <vector>

#include "elements/tcpudp/frame_source.hh"
#include "headrace/random_numbers.hh"

namespace headrace {

/// Sends flows of UDP packets, in Ethernet frames.
///
///     FastUDPFlows(RATE, LIMIT, LENGTH, SRCETH, SRCIP, DSTETH, DSTIP, FLOWS, FLOWSIZE
///                  [, keyword CHECKSUM, ACTIVE, STOP, SEQUENTIAL, DUPLICATE, BURST, FLOWBURST])
///
/// Output 0, push or pull. A flow is a pair of ports, at first random. The flow of each packet is picked at random;
/// after FLOWSIZE packets a flow is replaced by one with other ports. Every packet has its own buffer, so downstream
/// elements may change it.
///
/// RATE: packets per second; 0: as many as are taken.
/// LIMIT: packets to send; negative: no limit.
/// LENGTH: bytes of a frame, at least 60.
/// FLOWS: flows at a time, 1 to 16777216.
/// FLOWSIZE: packets of a flow.
/// CHECKSUM false: the UDP checksum is 0, which means no checksum. Default true.
/// ACTIVE false: sends nothing. Default true.
/// STOP true: stops the router once LIMIT packets were sent. Default false.
/// SEQUENTIAL true: flows are picked in turn, and the ports of a new flow are those of the old one plus 1. Default
/// false.
/// DUPLICATE: accepted but ignored: packets are always copies.
/// BURST: packets that are pushed in a row, which downstream elements see as a batch. Default 32.
/// FLOWBURST: packets of a flow in a row. Default 1.
///
/// Handlers: `count` (r) packets sent; `rate` (rw): reads the average rate from the first to the last of LIMIT packets
/// (0 before), writes RATE; `reset` (w) starts over; `active` (rw), where true starts over; `limit`,
/// `length`, `stop` (rw); `srceth`, `dsteth` (w).
class FastUDPFlows final : public FrameSource {
 public:
  Status configure(Args& args) override;
  void add_handlers(Handlers& handlers) override;

 protected:
  Packet* next_frame() override;

 private:
  struct UdpFlow {
    uint16_t src_port = 0, dst_port = 0;
    uint32_t sent = 0;
  };
  void build() { frame_.build_udp(settings_.ends, settings_.length, checksum_); }
  /// The index of the next packet's flow.
  uint32_t pick();
  uint16_t random_port() { return static_cast<uint16_t>(random_.below(0xffff)); }

  uint32_t flow_size_ = 0;
  uint32_t flow_burst_ = 1;
  bool checksum_ = true;
  bool sequential_ = false;

  FrameTemplate frame_;
  std::vector<UdpFlow> flows_;
  uint32_t flow_ = UINT32_MAX;  // of the last packet
  uint32_t in_a_row_ = 0;
  RandomNumbers random_;
};

HEADRACE_ELEMENT(FastUDPFlows)

}  // namespace headrace
