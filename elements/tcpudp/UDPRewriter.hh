#pragma once
#include "elements/tcpudp/port_rewriter.hh"

namespace headrace {

/// Rewrites addresses and ports of UDP and TCP packets, flow by flow.
///
///     UDPRewriter(INPUTSPEC, ... [, keyword TIMEOUT, STREAMING_TIMEOUT, GUARANTEE, REAP_INTERVAL, MAPPING_CAPACITY,
///                 DST_ANNO, REPLY_ANNO])
///
/// Like IPRewriter, which describes input specs, the table of flows and most keywords. It ignores TCP flags: all flows
/// are treated alike, and TCP, UDP and DCCP packets with the same addresses and ports belong to one flow.
///
/// TIMEOUT (also UDP_TIMEOUT): how long a flow is kept without packets. Default 5 minutes.
/// STREAMING_TIMEOUT (also UDP_STREAMING_TIMEOUT): the same for flows with three packets or more, and one back.
/// Default: as TIMEOUT.
/// GUARANTEE (also UDP_GUARANTEE): how long a flow is kept after a packet even if there is no room for others. Default
/// 5 seconds.
///
/// Handlers: `table` (r) and those of IPRewriter except `tcp_table`, `udp_table`, `tcp_lookup`.
class UDPRewriter final : public PortRewriter {
 public:
  struct Key : PortKey {};

  Status configure(Args& args) override;
  void add_handlers(Handlers& handlers) override;
  void push(int port, Batch& batch) override { process(*this, port, batch); }
  FlowEntry* find_reply(uint8_t protocol, const FlowId& id) const override;
  FlowEntry* find_flow(uint8_t protocol, const FlowId& id, int input, uint8_t reply_anno) override;

 private:
  friend class RewriterBase;
  bool key_of(const Packet& p, const Ip4Header& ip, Key& key) const;
  FlowEntry* find(const FlowTable::Bucket& bucket, const Key& key) const {
    return table().find(bucket, key.space, key.id);
  }
  Outcome add(int input, const Key& key, const Packet& p, int64_t now);
  void apply(Packet& p, Ip4Header& ip, const FlowEntry& entry, int64_t now);
};

HEADRACE_ELEMENT(UDPRewriter)

}  // namespace headrace
