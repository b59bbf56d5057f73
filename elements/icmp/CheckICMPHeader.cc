#include "elements/icmp/CheckICMPHeader.hh"

#include "elements/ip/header_check.hh"

namespace headrace {

Status CheckICMPHeader::configure(Args& args, HeaderCheckOwner& owner) {
  return args.read("VERBOSE", owner.verbose).read("DETAILS", owner.details).complete();
}

void CheckICMPHeader::add_handlers(Handlers& handlers, HeaderCheckOwner& owner, ShaderElementBase& element) {
  add_header_check_handlers(handlers, owner, element, kCounters.info, kCounters.kCount);
}

void CheckICMPHeader::refresh(const HeaderCheckOwner& owner) { tells = owner.tells(); }

Next CheckICMPHeader::escape(Packet*& p, Emitter& emit, HeaderCheckOwner& owner) const {
  CpuView<CheckICMPHeader> view(p, nullptr);
  owner.tell(emit.element(), "ICMP", kCounters.info[check(view)].name);
  return 1;
}

HEADRACE_ELEMENT(CheckICMPHeader)

}  // namespace headrace
