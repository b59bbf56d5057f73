#pragma once
#include "elements/tcpudp/port_rewriter.hh"

namespace headrace {

/// Rewrites addresses and ports of TCP and UDP packets, flow by flow: network address and port translation (RFC 3022).
///
///     IPRewriter(INPUTSPEC, ... [, keyword TCP_TIMEOUT, TCP_DONE_TIMEOUT, TCP_NODATA_TIMEOUT, TCP_GUARANTEE,
///                UDP_TIMEOUT, UDP_STREAMING_TIMEOUT, UDP_GUARANTEE, REAP_INTERVAL, MAPPING_CAPACITY, DST_ANNO,
///                REPLY_ANNO])
///
/// Packets need a network header, as CheckIPHeader and MarkIPHeader mark it. All inputs and all workers share a table
/// of flows. A packet whose addresses and ports are in the table is rewritten and leaves by the output recorded there,
/// regardless of its input. The INPUTSPEC of its input decides about any other packet; there is one for each input:
///
/// `drop` (or `discard`): it is dropped.
///
/// `pass [OUTPUT]` (or `nochange`, `passthrough`): it leaves by OUTPUT (default 0) unchanged. Only here, later
/// fragments and packets of other protocols also pass.
///
/// `keep FOUTPUT ROUTPUT`: creates a flow that changes nothing. Its packets leave by FOUTPUT, returning packets by
/// ROUTPUT.
///
/// `pattern SADDR SPORT DADDR DPORT FOUTPUT ROUTPUT`: creates a flow whose packets get these addresses and ports; `-`
/// leaves a field unchanged. In returning packets the change is reversed. SPORT may be a range `L-H`: the packet's own
/// port is taken if it is in the range and not in use for this destination, otherwise a random one. `L-H#` takes the
/// ports in turn, `L-H?` at random. SADDR may be a range or a prefix in the same way. If nothing is free, the packet is
/// dropped. `pattern NAME FOUTPUT ROUTPUT` takes the pattern from an IPRewriterPatterns.
///
/// `ELEMENT`: a mapper, such as RoundRobinIPMapper, decides.
///
/// The table holds MAPPING_CAPACITY flows. A flow is guaranteed to stay for a time after each packet. After that it may
/// be evicted when a new flow needs room; the flow whose timeout ends first is evicted. If all flows are guaranteed,
/// new ones are refused. Expired flows are removed every REAP_INTERVAL. In a hot swap all flows continue unchanged,
/// even those of patterns that the new configuration has changed.
///
/// TCP_TIMEOUT (also TIMEOUT): for TCP connections with data both ways. Default 24 hours.
/// TCP_DONE_TIMEOUT: for those with FIN both ways, or RST. Default 4 minutes.
/// TCP_NODATA_TIMEOUT: for the others. Default 5 minutes.
/// UDP_TIMEOUT: for UDP. Default 5 minutes.
/// UDP_STREAMING_TIMEOUT: for UDP with three packets or more, and one back. Default: as UDP_TIMEOUT.
/// TCP_GUARANTEE (also GUARANTEE), UDP_GUARANTEE: the time for which a flow is guaranteed to stay. Default 5 seconds.
/// REAP_INTERVAL: default 15 minutes; 0: never.
/// MAPPING_CAPACITY (also CAPACITY): maximum number of flows, or the name of another rewriter whose capacity this one
/// shares. Default 1048576.
/// DST_ANNO true: the destination address annotation is set to the new address. Default true.
/// REPLY_ANNO: a one-byte annotation: that of a flow's first packet is set in all returning packets.
///
/// Handlers: `tcp_table`, `udp_table` (r) flows, one line for each direction, a star before the output of the line's
/// direction, the input of the first packet, and the seconds until the flow may go; `tcp_lookup` (r) with the
/// parameters SADDR SPORT DADDR DPORT, the flow as it is when it leaves; `table_size` (r) flows of this element;
/// `mapping_failures` (r) packets without room in the table or a free port; `patterns` (r), `pattern0`, ... (rw) input
/// specs with the number of their flows (a write removes them); `size` (r), `capacity` (rw) of the table; `clear` (w)
/// the table.
class IPRewriter final : public PortRewriter {
 public:
  struct Key : PortKey {};

  Status configure(Args& args) override;
  void add_handlers(Handlers& handlers) override;
  void push(int port, Batch& batch) override { process(*this, port, batch); }
  FlowEntry* find_reply(uint8_t protocol, const FlowId& id) const override;
  FlowEntry* find_flow(uint8_t protocol, const FlowId& id, int input, uint8_t reply_anno) override;

 private:
  friend class RewriterBase;
  enum { kTcp, kUdp };
  static int index_of(uint8_t protocol) {
    return protocol == ip_protocol::kTcp ? kTcp : protocol == ip_protocol::kUdp ? kUdp : -1;
  }
  bool key_of(const Packet& p, const Ip4Header& ip, Key& key) const;
  FlowEntry* find(const FlowTable::Bucket& bucket, const Key& key) const {
    return table().find(bucket, key.space, key.id);
  }
  Outcome add(int input, const Key& key, const Packet& p, int64_t now);
  void apply(Packet& p, Ip4Header& ip, const FlowEntry& entry, int64_t now);
};

HEADRACE_ELEMENT(IPRewriter)

}  // namespace headrace
