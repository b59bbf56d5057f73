#pragma once
#include "elements/tcpudp/port_rewriter.hh"

namespace headrace {

/// Rewrites addresses and ports of TCP packets, flow by flow, and sequence numbers on request of other elements.
///
///     TCPRewriter(INPUTSPEC, ... [, keyword TCP_TIMEOUT, TCP_DONE_TIMEOUT, TCP_NODATA_TIMEOUT, TCP_GUARANTEE,
///                 REAP_INTERVAL, MAPPING_CAPACITY, DST_ANNO, REPLY_ANNO])
///
/// Like IPRewriter, which describes input specs, the table of flows and the keywords, but for TCP only. An element such
/// as FTPPortMapper may change the length of segments; then the sequence numbers and acknowledgments of the connection
/// are shifted, including those in selective acknowledgments (RFC 2018).
///
/// Handlers: `table` (r), where shifted sequence numbers are shown as `seq +BYTES`; `lookup` (r) with the parameters
/// SADDR SPORT DADDR DPORT, the flow as it is when it leaves; and those of IPRewriter except `tcp_table`, `udp_table`,
/// `tcp_lookup`.
class TCPRewriter final : public PortRewriter {
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
  void apply(Packet& p, Ip4Header& ip, const FlowEntry& entry, int64_t now) { apply_tcp(p, ip, entry, now); }
};

HEADRACE_ELEMENT(TCPRewriter)

}  // namespace headrace
