#pragma once
#include "elements/ip/rewriter_base.hh"

namespace headrace {

/// Rewrites source addresses of IP packets, and the destination addresses of returning packets: basic network address
/// translation (RFC 3022).
///
///     IPAddrRewriter(INPUTSPEC, ... [, keyword TIMEOUT, GUARANTEE, REAP_INTERVAL, MAPPING_CAPACITY, REPLY_ANNO])
///
/// Like IPRewriter, which explains input specs, the table and its keywords, but a flow is all traffic from and to a
/// host, of any protocol; fragments are also rewritten. A packet is looked up by its source address, then by its
/// destination address among the new ones. Checksums of TCP and UDP are repaired. The destination address annotation is
/// set in returning packets.
///
/// Patterns are `SADDR -`: an address, a range `L-H` or a prefix `ADDR/BITS` (without its first and its last address);
/// a suffix `#` takes addresses in turn, otherwise a free one is chosen at random.
///
/// TIMEOUT: how long a flow is kept without packets. Default 2 hours.
///
/// Handlers: `table` (r), and those of IPRewriter except `tcp_table`, `udp_table`, `tcp_lookup`.
class IPAddrRewriter final : public RewriterBase {
 public:
  struct Key {
    uint32_t space;
    FlowId id;
    IpAddress dst;
  };

  IPAddrRewriter() { timeout_ = Interval::from_sec(7200); }
  Status configure(Args& args) override;
  void add_handlers(Handlers& handlers) override;
  void push(int port, Batch& batch) override { process(*this, port, batch); }
  FlowEntry* find_reply(uint8_t protocol, const FlowId& id) const override;
  FlowEntry* find_flow(uint8_t protocol, const FlowId& id, int input, uint8_t reply_anno) override;

 private:
  friend class RewriterBase;
  bool may_become(const FlowId& rewritten) const override {
    return !rewritten.dst && rewritten.sport == 0 && rewritten.dport == 0;
  }
  bool key_of(const Packet&, const Ip4Header& ip, Key& key) const {
    key = {space(0), {ip.src, {}, 0, 0}, ip.dst};
    return true;
  }
  FlowEntry* find(const FlowTable::Bucket& bucket, const Key& key) const {
    FlowEntry* entry = table().find(bucket, key.space, key.id);
    return entry ? entry : table().find(key.space, {{}, key.dst, 0, 0});
  }
  Outcome add(int input, const Key& key, const Packet& p, int64_t now) {
    return add_flow(input, 0, key.id, 0, RewriterPattern::Ports::kPorts, reply_anno_of(p), now);
  }
  void apply(Packet& p, Ip4Header& ip, const FlowEntry& entry, int64_t now);
};

HEADRACE_ELEMENT(IPAddrRewriter)

}  // namespace headrace
