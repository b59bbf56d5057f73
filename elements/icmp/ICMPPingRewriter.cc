#include "elements/icmp/ICMPPingRewriter.hh"

#include <algorithm>

#include "elements/icmp/ping_checksum.hh"

namespace headrace {

namespace {

/// True for what the older form has in place of an input spec.
bool is_address_or_dash(const std::string& text, const Args& args) {
  IpAddress address;
  return text == "-" || parse_argument(text, address, ArgContext(args.scope()));
}

}  // namespace

Status ICMPPingRewriter::configure(Args& args) {
  std::vector<std::string> texts = arguments();
  if (ninputs() == 1 && texts.size() >= 2 && is_address_or_dash(texts[0], args) && is_address_or_dash(texts[1], args)) {
    // Identifiers are chosen anew, so that pings of several hosts to the same one differ.
    texts[0] = fmt::format("pattern {} {} 0-65535 0 {}", texts[0], texts[1], noutputs() > 1 ? 1 : 0);
    texts.erase(texts.begin() + 1);
  }
  // All arguments were given to `args`, too.
  std::vector<std::string> ignored;
  args.consume_rest(ignored);
  Args own(std::move(texts), args.scope(), args.errors());
  read_annos(own, true);
  if (!configure_base(own)) return Status::failed();
  protocols_ = {{"pings", {guarantee_.ns, {timeout_.ns, timeout_.ns, timeout_.ns}}}};
  return {};
}

void ICMPPingRewriter::add_handlers(Handlers& handlers) {
  const auto flows = [this] {
    return list(0, [](const FlowEntry& e) {
      const FlowId to = e.rewritten();
      return fmt::format("({}, {}, {}) => ({}, {}, {})", e.id().src.unparse(), e.id().dst.unparse(), e.id().sport,
                         to.src.unparse(), to.dst.unparse(), to.sport);
    });
  };
  handlers.read("table", flows);
  handlers.read("mappings", flows, Handler::kDeprecated);
  add_base_handlers(handlers);
}

bool ICMPPingRewriter::key_of(const Packet& p, const Ip4Header& ip, Key& key) const {
  if (ip.protocol != ip_protocol::kIcmp || !ip.is_first_fragment() || p.network_length() < ip.header_length() + 8)
    return false;
  const auto& icmp = *reinterpret_cast<const IcmpHeader*>(ip.bytes() + ip.header_length());
  if (icmp.type != IcmpHeader::kEcho && icmp.type != IcmpHeader::kEchoReply) return false;
  key.is_request = icmp.type == IcmpHeader::kEcho;
  key.id = ping(ip.src, ip.dst, static_cast<uint16_t>(icmp.rest >> 16), key.is_request);
  key.space = space(0);
  return true;
}

RewriterBase::Outcome ICMPPingRewriter::add(int input, const Key& key, const Packet& p, int64_t now) {
  if (!key.is_request) return {nullptr, pass_only(input), kNoFlow};
  return add_flow(input, 0, key.id, ip_protocol::kIcmp, RewriterPattern::Ports::kPingIds, reply_anno_of(p), now);
}

void ICMPPingRewriter::apply(Packet& p, Ip4Header& ip, const FlowEntry& entry, int64_t now) {
  const FlowId to = entry.rewritten();
  rewrite_addresses(p, ip, entry, to);
  set_ping_identifier(ip.bytes() + ip.header_length(), p.network_length() - ip.header_length(),
                      entry.is_reply() ? to.dport : to.sport);
  FlowTable::touch(entry.flow(), now);
}

FlowEntry* ICMPPingRewriter::find_reply(uint8_t protocol, const FlowId& id) const {
  return protocol == ip_protocol::kIcmp ? table().find(space(0), ping(id.src, id.dst, id.sport, false)) : nullptr;
}

FlowEntry* ICMPPingRewriter::find_flow(uint8_t protocol, const FlowId& id, int input, uint8_t reply_anno) {
  if (protocol != ip_protocol::kIcmp) return nullptr;
  const FlowId request = ping(id.src, id.dst, id.sport, true);
  FlowEntry* entry = table().find(space(0), request);
  if (entry || input < 0) return entry;
  return add_flow(input, 0, request, protocol, RewriterPattern::Ports::kPingIds, reply_anno, clock::steady().ns).entry;
}

}  // namespace headrace
