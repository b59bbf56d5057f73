#include "elements/ip/IPOutputCombo.hh"

#include "elements/ip/ip_options.hh"

namespace headrace {

Status IPOutputCombo::configure(Args& args, RouterAddresses& owner) {
  if (!args.read_mp("COLOR", color).read_mp("IPADDR", owner.address).read_mp("MTU", mtu).complete())
    return Status::failed();
  owner.all = {owner.address};
  address = owner.address.host_order();
  return {};
}

Next IPOutputCombo::escape(Packet*& p, Emitter& emit, RouterAddresses& owner) const {
  auto& element = static_cast<ShaderElementBase&>(emit.element());
  if (p->anno_u8(anno_offset::kPaint) == color && element.noutputs() > kCopies) {
    if (Packet* copy = p->clone())
      emit(kCopies, copy);
    else
      element.count_event(kNoCopy);
  }
  Ip4Header* ip = ip4_header(*p);
  if (!ip) {
    element.count_event(kBadHeader);
    return kDrop;
  }
  if (const int wrong = ip->header_length() > 20 ? record_in_options(*ip, owner) : 0) {
    p->set_anno_u8(anno_offset::kIcmpParamProb, static_cast<uint8_t>(wrong));
    element.count_event(kBadOption);
    return kToParameterProblem;
  }
  uint64_t events[kEvents] = {};
  CpuView<IPOutputCombo> view(p, events);
  const Next next = finish(view);
  for (int i = 0; i < kEvents; ++i)
    if (events[i]) element.count_event(i, events[i]);
  return next;
}

HEADRACE_ELEMENT(IPOutputCombo)

}  // namespace headrace
