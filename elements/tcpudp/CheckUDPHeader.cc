#include "elements/tcpudp/CheckUDPHeader.hh"

#include "elements/ip/header_check.hh"

namespace headrace {

Status CheckUDPHeader::configure(Args& args, HeaderCheckOwner& owner) {
  return args.read("VERBOSE", owner.verbose).read("DETAILS", owner.details).complete();
}

void CheckUDPHeader::add_handlers(Handlers& handlers, HeaderCheckOwner& owner, ShaderElementBase& element) {
  add_header_check_handlers(handlers, owner, element, kCounters.info, kCounters.kCount);
}

void CheckUDPHeader::refresh(const HeaderCheckOwner& owner) { tells = owner.tells(); }

Next CheckUDPHeader::escape(Packet*& p, Emitter& emit, HeaderCheckOwner& owner) const {
  CpuView<CheckUDPHeader> view(p, nullptr);
  owner.tell(emit.element(), "UDP", kCounters.info[check(view)].name);
  return 1;
}

HEADRACE_ELEMENT(CheckUDPHeader)

}  // namespace headrace
