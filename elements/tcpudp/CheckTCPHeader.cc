#include "elements/tcpudp/CheckTCPHeader.hh"

#include "elements/ip/header_check.hh"

namespace headrace {

Status CheckTCPHeader::configure(Args& args, HeaderCheckOwner& owner) {
  return args.read("VERBOSE", owner.verbose).read("DETAILS", owner.details).complete();
}

void CheckTCPHeader::add_handlers(Handlers& handlers, HeaderCheckOwner& owner, ShaderElementBase& element) {
  add_header_check_handlers(handlers, owner, element, kCounters.info, kCounters.kCount);
}

void CheckTCPHeader::refresh(const HeaderCheckOwner& owner) { tells = owner.tells(); }

Next CheckTCPHeader::escape(Packet*& p, Emitter& emit, HeaderCheckOwner& owner) const {
  CpuView<CheckTCPHeader> view(p, nullptr);
  owner.tell(emit.element(), "TCP", kCounters.info[check(view)].name);
  return 1;
}

HEADRACE_ELEMENT(CheckTCPHeader)

}  // namespace headrace
