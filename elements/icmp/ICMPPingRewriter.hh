#pragma once
#include "elements/ip/rewriter_base.hh"

namespace headrace {

/// Rewrites addresses and identifiers of ICMP echo requests, and of the replies to them.
///
///     ICMPPingRewriter(INPUTSPEC, ... [, keyword TIMEOUT, GUARANTEE, REAP_INTERVAL, MAPPING_CAPACITY, DST_ANNO,
///                      REPLY_ANNO])
///     ICMPPingRewriter(SADDR, DADDR [, keyword ...])
///
/// Like IPRewriter, which explains input specs, the table and its keywords, but for pings: a flow is all requests with
/// the same addresses and identifier, and the identifier takes the role of the source port. Only requests create flows.
/// Replies without a flow, later fragments, and packets that are not pings are dropped unless the input spec is `pass`.
///
/// Patterns: `SADDR DADDR` or `SADDR DADDR IDENTIFIER`, where IDENTIFIER may be a range, as in `1.0.0.1 - 0-65535`.
///
/// The second form, of older configurations, is for one input. It means `pattern SADDR DADDR 0-65535 0 1`, and output 0
/// also carries replies if there is no other output; either address may be `-`.
///
/// TIMEOUT: how long a flow is kept without packets. Default 5 minutes.
///
/// Handlers: `table` (r), and those of IPRewriter except `tcp_table`, `udp_table`, `tcp_lookup`.
class ICMPPingRewriter final : public RewriterBase {
 public:
  struct Key {
    uint32_t space;
    FlowId id;
    bool is_request;
  };

  Status configure(Args& args) override;
  void add_handlers(Handlers& handlers) override;
  void push(int port, Batch& batch) override { process(*this, port, batch); }
  FlowEntry* find_reply(uint8_t protocol, const FlowId& id) const override;
  FlowEntry* find_flow(uint8_t protocol, const FlowId& id, int input, uint8_t reply_anno) override;

 private:
  friend class RewriterBase;
  /// A request with identifier I has ports I and I+1 in the table, a reply I+1 and I, so that a way back is never taken
  /// for the way there of another flow.
  static FlowId ping(IpAddress src, IpAddress dst, uint16_t identifier, bool is_request) {
    const auto next = static_cast<uint16_t>(identifier + 1);
    return is_request ? FlowId{src, dst, identifier, next} : FlowId{src, dst, next, identifier};
  }
  bool key_of(const Packet& p, const Ip4Header& ip, Key& key) const;
  FlowEntry* find(const FlowTable::Bucket& bucket, const Key& key) const {
    return table().find(bucket, key.space, key.id);
  }
  Outcome add(int input, const Key& key, const Packet& p, int64_t now);
  void apply(Packet& p, Ip4Header& ip, const FlowEntry& entry, int64_t now);
};

HEADRACE_ELEMENT(ICMPPingRewriter)

}  // namespace headrace
