#include "elements/ip/IPGWOptions.hh"

#include "elements/ip/ip_options.hh"

namespace headrace {

/// The router's addresses.
struct IPGWOptionsOwner : RouterAddresses {};

Status IPGWOptions::configure(Args& args, IPGWOptionsOwner& owner) {
  if (!args.read_mp("MYADDR", owner.address).read_p("OTHERADDRS", owner.all).complete()) return Status::failed();
  owner.all.push_back(owner.address);
  return {};
}

void IPGWOptions::add_handlers(Handlers& handlers, IPGWOptionsOwner&, ShaderElementBase& element) {
  handlers.read("drops", [&element] { return std::to_string(element.counter(kBadOption)); });
}

Next IPGWOptions::escape(Packet*& p, Emitter& emit, IPGWOptionsOwner& owner) const {
  auto& element = static_cast<ShaderElementBase&>(emit.element());
  Ip4Header* ip = ip4_header(*p);
  if (!ip) {
    element.count_event(kBadHeader);
    return kDrop;
  }
  const int wrong = record_in_options(*ip, owner);
  if (wrong == 0) return 0;
  element.count_event(kBadOption);
  p->set_anno_u8(anno_offset::kIcmpParamProb, static_cast<uint8_t>(wrong));
  return 1;
}

HEADRACE_ELEMENT(IPGWOptions)

}  // namespace headrace
