#include "elements/ip/SetRandIPAddress.hh"

namespace headrace {

Status SetRandIPAddress::configure(Args& args) {
  int32_t limit = -1;
  if (!args.read_mp("PREFIX", prefix_, PrefixOrAddress()).read_p("LIMIT", limit, Between{-1, 1 << 24}).complete())
    return Status::failed();
  for (int32_t i = 0; i < limit; ++i) addresses_.push_back(draw());
  return {};
}

IpAddress SetRandIPAddress::draw() {
  return prefix_.network() | (IpAddress::from_network_order(random_.next()) & ~prefix_.mask);
}

Packet* SetRandIPAddress::act(Packet* p, Emitter&) {
  const IpAddress address =
      addresses_.empty() ? draw() : addresses_[random_.below(static_cast<uint32_t>(addresses_.size()))];
  address.copy_to(p->anno() + anno_offset::kDstIp);
  return p;
}

}  // namespace headrace
