#include "elements/ip/IPAddrRewriter.hh"

namespace headrace {

Status IPAddrRewriter::configure(Args& args) {
  read_annos(args, false);
  if (!configure_base(args)) return Status::failed();
  protocols_ = {{"addresses", {guarantee_.ns, {timeout_.ns, timeout_.ns, timeout_.ns}}}};
  return {};
}

void IPAddrRewriter::add_handlers(Handlers& handlers) {
  const auto flows = [this] {
    return list(0, [](const FlowEntry& e) {
      return e.is_reply() ? e.id().dst.unparse() + " => " + e.rewritten().dst.unparse()
                          : e.id().src.unparse() + " => " + e.rewritten().src.unparse();
    });
  };
  handlers.read("table", flows);
  handlers.read("mappings", flows, Handler::kDeprecated);
  add_base_handlers(handlers);
}

void IPAddrRewriter::apply(Packet& p, Ip4Header& ip, const FlowEntry& entry, int64_t now) {
  const FlowId to = entry.rewritten();
  if (entry.is_reply()) {
    ip.dst = to.dst;
    finish_addresses(p, ip, entry, to.dst);
  } else {
    ip.src = to.src;
    ip.checksum = changed(ip.checksum, entry.flow().ip_change(), false);
  }
  repair_transport(p, ip, entry);
  FlowTable::touch(entry.flow(), now);
}

FlowEntry* IPAddrRewriter::find_reply(uint8_t, const FlowId& id) const {
  const Key key{space(0), {id.src, {}, 0, 0}, id.dst};
  return find(table().bucket(key.space, key.id), key);
}

FlowEntry* IPAddrRewriter::find_flow(uint8_t, const FlowId& id, int input, uint8_t reply_anno) {
  FlowEntry* entry = find_reply(0, id);
  if (entry || input < 0) return entry;
  return add_flow(input, 0, {id.src, {}, 0, 0}, 0, RewriterPattern::Ports::kPorts, reply_anno, clock::steady().ns)
      .entry;
}

}  // namespace headrace
