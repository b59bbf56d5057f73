#include "elements/ip/IPAddrPairRewriter.hh"

namespace headrace {

Status IPAddrPairRewriter::configure(Args& args) {
  read_annos(args, false);
  if (!configure_base(args)) return Status::failed();
  protocols_ = {{"pairs", {guarantee_.ns, {timeout_.ns, timeout_.ns, timeout_.ns}}}};
  return {};
}

void IPAddrPairRewriter::add_handlers(Handlers& handlers) {
  const auto flows = [this] {
    return list(0, [](const FlowEntry& e) {
      const FlowId to = e.rewritten();
      return fmt::format("({}, {}) => ({}, {})", e.id().src.unparse(), e.id().dst.unparse(), to.src.unparse(),
                         to.dst.unparse());
    });
  };
  handlers.read("table", flows);
  handlers.read("mappings", flows, Handler::kDeprecated);
  add_base_handlers(handlers);
}

void IPAddrPairRewriter::apply(Packet& p, Ip4Header& ip, const FlowEntry& entry, int64_t now) {
  rewrite_addresses(p, ip, entry, entry.rewritten());
  repair_transport(p, ip, entry);
  FlowTable::touch(entry.flow(), now);
}

FlowEntry* IPAddrPairRewriter::find_reply(uint8_t, const FlowId& id) const {
  return table().find(space(0), {id.src, id.dst, 0, 0});
}

FlowEntry* IPAddrPairRewriter::find_flow(uint8_t, const FlowId& id, int input, uint8_t reply_anno) {
  const FlowId pair{id.src, id.dst, 0, 0};
  FlowEntry* entry = table().find(space(0), pair);
  if (entry || input < 0) return entry;
  return add_flow(input, 0, pair, 0, RewriterPattern::Ports::kPorts, reply_anno, clock::steady().ns).entry;
}

}  // namespace headrace
