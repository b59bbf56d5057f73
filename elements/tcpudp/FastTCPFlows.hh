#pragma once
#include <headrace/element.hh>
#include <vector>

#include "elements/tcpudp/frame_source.hh"
#include "headrace/random_numbers.hh"

namespace headrace {

/// Sends flows of TCP packets, in Ethernet frames.
///
///     FastTCPFlows(RATE, LIMIT, LENGTH, SRCETH, SRCIP, DSTETH, DSTIP, FLOWS, FLOWSIZE [, ACTIVE, keyword STOP])
///
/// Output 0, pull. A flow is a pair of random ports: a SYN, packets with data (PSH and ACK), and finally a FIN,
/// FLOWSIZE packets in all; then another flow takes its place. The flow of each packet is picked at random. Sequence
/// numbers are random, so a TCP would not accept these flows. After LIMIT packets, each flow that has not sent its FIN
/// sends it. Every packet has its own buffer, so downstream elements may change it.
///
/// RATE: packets per second; 0: as many as are pulled.
/// LIMIT: packets to send before the last FINs; negative: no limit.
/// LENGTH: bytes of a frame, at least 60.
/// FLOWS: flows at a time, 1 to 16777216.
/// FLOWSIZE: packets of a flow, at least 3.
/// ACTIVE false: sends nothing. Default true.
/// STOP true: stops the router at the end. Default false.
///
/// Handlers: `count` (r) packets sent; `rate` (rw): reads the average rate from the first packet to the last (0 before
/// LIMIT), writes RATE; `reset` (w) starts over; `active` (rw), where true starts over; `limit` (rw).
class FastTCPFlows final : public FrameSource {
 public:
  static constexpr Processing kProcessing{"l/l"};

  Status configure(Args& args) override;

 protected:
  Packet* next_frame() override;
  bool has_last_frames() override;
  Packet* last_frame() override;
  void restart() override { open_ = 0; }

 private:
  struct TcpFlow {
    uint16_t src_port = 0, dst_port = 0;
    uint32_t sent = 0;
  };
  enum Kind { kSyn, kData, kFin, kKinds };
  uint16_t random_port() { return static_cast<uint16_t>(random_.below(0xffff)); }

  uint32_t flow_size_ = 3;
  FrameTemplate frames_[kKinds];
  std::vector<TcpFlow> flows_;
  size_t open_ = 0;  // at the end: flows before this one have sent their FIN
  RandomNumbers random_;
};

HEADRACE_ELEMENT(FastTCPFlows)

}  // namespace headrace
