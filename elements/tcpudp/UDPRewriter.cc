#include "elements/tcpudp/UDPRewriter.hh"

namespace headrace {

Status UDPRewriter::configure(Args& args) {
  UdpTimes times;
  read_annos(args, true);
  args.read("UDP_TIMEOUT", times.idle).read("TIMEOUT", times.idle);
  args.read("UDP_STREAMING_TIMEOUT", times.streaming).read("STREAMING_TIMEOUT", times.streaming);
  args.read("UDP_GUARANTEE", guarantee_);
  if (!args.consume() || !configure_base(args)) return Status::failed();
  protocols_ = {{"flows", times.lifetimes(guarantee_)}};
  return {};
}

void UDPRewriter::add_handlers(Handlers& handlers) {
  const auto flows = [this] { return list(0, list_ids); };
  handlers.read("table", flows);
  handlers.read("mappings", flows, Handler::kDeprecated);
  add_base_handlers(handlers);
}

bool UDPRewriter::key_of(const Packet& p, const Ip4Header& ip, Key& key) const {
  key.space = space(0);
  key.protocol = ip.protocol;
  return (ip.protocol == ip_protocol::kUdp || ip.protocol == ip_protocol::kTcp || ip.protocol == ip_protocol::kDccp) &&
         ports_of(p, ip, key.id);
}

RewriterBase::Outcome UDPRewriter::add(int input, const Key& key, const Packet& p, int64_t now) {
  return add_flow(input, 0, key.id, key.protocol, RewriterPattern::Ports::kPorts, reply_anno_of(p), now);
}

void UDPRewriter::apply(Packet& p, Ip4Header& ip, const FlowEntry& entry, int64_t now) { apply_udp(p, ip, entry, now); }

FlowEntry* UDPRewriter::find_reply(uint8_t protocol, const FlowId& id) const {
  FlowEntry* entry = table().find(space(0), id);
  return entry && protocol == entry->flow().protocol() ? entry : nullptr;
}

FlowEntry* UDPRewriter::find_flow(uint8_t protocol, const FlowId& id, int input, uint8_t reply_anno) {
  FlowEntry* entry = table().find(space(0), id);
  if (entry) return protocol == entry->flow().protocol() ? entry : nullptr;
  if (input < 0) return nullptr;
  return add_flow(input, 0, id, protocol, RewriterPattern::Ports::kPorts, reply_anno, clock::steady().ns).entry;
}

}  // namespace headrace
