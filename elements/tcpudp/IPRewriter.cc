#include "elements/tcpudp/IPRewriter.hh"

namespace headrace {

Status IPRewriter::configure(Args& args) {
  TcpTimes tcp;
  UdpTimes udp;
  Interval udp_guarantee = Interval::from_sec(5);
  read_annos(args, true);
  read_times(args, tcp);
  args.read("UDP_TIMEOUT", udp.idle).read("UDP_STREAMING_TIMEOUT", udp.streaming).read("UDP_GUARANTEE", udp_guarantee);
  if (!args.consume() || !configure_base(args)) return Status::failed();
  protocols_ = {{"tcp", tcp.lifetimes(guarantee_)}, {"udp", udp.lifetimes(udp_guarantee)}};
  return {};
}

void IPRewriter::add_handlers(Handlers& handlers) {
  const auto tcp = [this] { return list(kTcp, list_tcp); };
  const auto udp = [this] { return list(kUdp, list_ids); };
  handlers.read("tcp_table", tcp);
  handlers.read("udp_table", udp);
  handlers.read("tcp_mappings", tcp, Handler::kDeprecated);
  handlers.read("udp_mappings", udp, Handler::kDeprecated);
  handlers.read_with("tcp_lookup", [this](const std::string& text, std::string& value, Errors& errors) {
    return look_up(kTcp, text, value, errors);
  });
  add_base_handlers(handlers);
}

bool IPRewriter::key_of(const Packet& p, const Ip4Header& ip, Key& key) const {
  const int protocol = index_of(ip.protocol);
  if (protocol < 0 || !ports_of(p, ip, key.id)) return false;
  key.space = space(protocol);
  key.protocol = ip.protocol;
  return true;
}

RewriterBase::Outcome IPRewriter::add(int input, const Key& key, const Packet& p, int64_t now) {
  return add_flow(input, index_of(key.protocol), key.id, key.protocol, RewriterPattern::Ports::kPorts, reply_anno_of(p),
                  now);
}

void IPRewriter::apply(Packet& p, Ip4Header& ip, const FlowEntry& entry, int64_t now) {
  if (ip.protocol == ip_protocol::kTcp)
    apply_tcp(p, ip, entry, now);
  else
    apply_udp(p, ip, entry, now);
}

FlowEntry* IPRewriter::find_reply(uint8_t protocol, const FlowId& id) const {
  const int index = index_of(protocol);
  return index < 0 ? nullptr : table().find(space(index), id);
}

FlowEntry* IPRewriter::find_flow(uint8_t protocol, const FlowId& id, int input, uint8_t reply_anno) {
  const int index = index_of(protocol);
  if (index < 0) return nullptr;
  FlowEntry* entry = table().find(space(index), id);
  if (entry || input < 0) return entry;
  return add_flow(input, index, id, protocol, RewriterPattern::Ports::kPorts, reply_anno, clock::steady().ns).entry;
}

}  // namespace headrace
