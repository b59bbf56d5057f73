#include "elements/ip/SetRandIPAddress.hh"

#include <random>

namespace headrace {

SetRandIPAddress::SetRandIPAddress() {
  std::random_device seed;
  for (int i = 0; i < random_.size(); ++i) random_[i].state = uint64_t{seed()} << 32 | seed() | 1;
}

uint32_t SetRandIPAddress::Random::next() {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return static_cast<uint32_t>(state * 0x2545f4914f6cdd1d >> 32);
}

Status SetRandIPAddress::configure(Args& args) {
  int32_t limit = -1;
  if (!args.read_mp("PREFIX", prefix_, PrefixOrAddress()).read_p("LIMIT", limit, Between{-1, 1 << 24}).complete())
    return Status::failed();
  for (int32_t i = 0; i < limit; ++i) addresses_.push_back(draw(random_[0]));
  return {};
}

IpAddress SetRandIPAddress::draw(Random& random) const {
  return prefix_.network() | (IpAddress::from_network_order(random.next()) & ~prefix_.mask);
}

Packet* SetRandIPAddress::act(Packet* p, Emitter&) {
  Random& random = random_.local();
  const IpAddress address =
      addresses_.empty() ? draw(random) : addresses_[uint64_t{random.next()} * addresses_.size() >> 32];
  address.copy_to(p->anno() + anno_offset::kDstIp);
  return p;
}

}  // namespace headrace
