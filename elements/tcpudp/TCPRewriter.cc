#include "elements/tcpudp/TCPRewriter.hh"

namespace headrace {

Status TCPRewriter::configure(Args& args) {
  TcpTimes times;
  read_annos(args, true);
  read_times(args, times);
  if (!args.consume() || !configure_base(args)) return Status::failed();
  protocols_ = {{"tcp", times.lifetimes(guarantee_)}};
  return {};
}

void TCPRewriter::add_handlers(Handlers& handlers) {
  const auto flows = [this] { return list(0, list_tcp); };
  handlers.read("table", flows);
  handlers.read("mappings", flows, Handler::kDeprecated);
  handlers.read_with("lookup", [this](const std::string& text, std::string& value, Errors& errors) {
    return look_up(0, text, value, errors);
  });
  add_base_handlers(handlers);
}

bool TCPRewriter::key_of(const Packet& p, const Ip4Header& ip, Key& key) const {
  key.space = space(0);
  return ip.protocol == ip_protocol::kTcp && ports_of(p, ip, key.id);
}

RewriterBase::Outcome TCPRewriter::add(int input, const Key& key, const Packet& p, int64_t now) {
  return add_flow(input, 0, key.id, ip_protocol::kTcp, RewriterPattern::Ports::kPorts, reply_anno_of(p), now);
}

FlowEntry* TCPRewriter::find_reply(uint8_t protocol, const FlowId& id) const {
  return protocol == ip_protocol::kTcp ? table().find(space(0), id) : nullptr;
}

FlowEntry* TCPRewriter::find_flow(uint8_t protocol, const FlowId& id, int input, uint8_t reply_anno) {
  if (protocol != ip_protocol::kTcp) return nullptr;
  FlowEntry* entry = table().find(space(0), id);
  if (entry || input < 0) return entry;
  return add_flow(input, 0, id, protocol, RewriterPattern::Ports::kPorts, reply_anno, clock::steady().ns).entry;
}

}  // namespace headrace
