#pragma once
#include "elements/ip/rewriter_base.hh"

namespace headrace {

/// Rewrites addresses of IP packets by pairs of source and destination: a middle ground between IPAddrRewriter and
/// IPRewriter.
///
///     IPAddrPairRewriter(INPUTSPEC, ... [, keyword TIMEOUT, GUARANTEE, REAP_INTERVAL, MAPPING_CAPACITY, REPLY_ANNO])
///
/// Like IPRewriter, which explains input specs, the table and its keywords, but a flow is all traffic between two
/// addresses, of any protocol; fragments are also rewritten. Checksums of TCP and UDP are repaired. The destination
/// address annotation is set.
///
/// Patterns are `SADDR DADDR`; SADDR may be a range or a prefix, see IPAddrRewriter. The new source address is one not
/// in use for this destination.
///
/// TIMEOUT: how long a flow is kept without packets. Default 2 hours.
///
/// Handlers: `table` (r), and those of IPRewriter except `tcp_table`, `udp_table`, `tcp_lookup`.
class IPAddrPairRewriter final : public RewriterBase {
 public:
  struct Key {
    uint32_t space;
    FlowId id;
  };

  IPAddrPairRewriter() { timeout_ = Interval::from_sec(7200); }
  Status configure(Args& args) override;
  void add_handlers(Handlers& handlers) override;
  void push(int port, Batch& batch) override { process(*this, port, batch); }
  FlowEntry* find_reply(uint8_t protocol, const FlowId& id) const override;
  FlowEntry* find_flow(uint8_t protocol, const FlowId& id, int input, uint8_t reply_anno) override;

 private:
  friend class RewriterBase;
  bool may_become(const FlowId& rewritten) const override { return rewritten.sport == 0 && rewritten.dport == 0; }
  bool key_of(const Packet&, const Ip4Header& ip, Key& key) const {
    key = {space(0), {ip.src, ip.dst, 0, 0}};
    return true;
  }
  FlowEntry* find(const FlowTable::Bucket& bucket, const Key& key) const {
    return table().find(bucket, key.space, key.id);
  }
  Outcome add(int input, const Key& key, const Packet& p, int64_t now) {
    return add_flow(input, 0, key.id, 0, RewriterPattern::Ports::kPorts, reply_anno_of(p), now);
  }
  void apply(Packet& p, Ip4Header& ip, const FlowEntry& entry, int64_t now);
};

HEADRACE_ELEMENT(IPAddrPairRewriter)

}  // namespace headrace
