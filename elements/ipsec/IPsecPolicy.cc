#include "elements/ipsec/IPsecPolicy.hh"

#include "headrace/headers.hh"
#include "headrace/headers_of.hh"

namespace headrace {

Status IPsecPolicy::configure(Args& args) {
  count_reasons({"discarded by policy", "no policy", "no association", "should have been protected", "not IP"});
  std::string direction;
  if (!args.read_mp("DATABASE", database_).read_mp("DIRECTION", direction, WordArg()).complete())
    return Status::failed();
  if (direction != "in" && direction != "out")
    return args.errors().error("DIRECTION: expected in or out, got '{}'", direction);
  direction_ = direction == "in" ? IPsecDirection::kIn : IPsecDirection::kOut;
  return {};
}

bool IPsecPolicy::selector_of(const uint8_t* ip, const uint8_t* end, PolicySelector& selector) {
  const PacketBytes bytes{ip, static_cast<uint32_t>(end - ip), 0};
  if (end - ip < 20) return false;
  const bool v6 = *ip >> 4 == 6;
  if (v6 ? end - ip < 40 : *ip >> 4 != 4) return false;
  const TransportPlace place = find_transport(bytes);
  const auto protocol = static_cast<uint8_t>(place.protocol);
  selector = v6 ? PolicySelector::of_v6(ip + 8, protocol) : PolicySelector::of_v4(ip + 12, protocol);
  const bool with_ports = protocol == 6 || protocol == 17 || protocol == 132;
  if (with_ports && !place.fragment && place.at + 4 <= place.end)
    selector.set_ports(static_cast<uint16_t>(ip[place.at] << 8 | ip[place.at + 1]),
                       static_cast<uint16_t>(ip[place.at + 2] << 8 | ip[place.at + 3]));
  return true;
}

Next IPsecPolicy::decide(Packet& p, const PolicyView& policies, const AssociationView& associations) {
  PolicySelector selector;
  const auto dropped = [&](int reason) {
    count_drops(1, reason);
    return kConsumed;
  };
  if (!p.has_network_header() || !selector_of(p.network_header(), p.end_data(), selector)) return dropped(kMalformed);
  const PolicyAnswer answer = policies.lookup(direction_, selector);
  if (!answer.found) return dropped(kNoPolicy);
  switch (answer.action) {
    case PolicyAction::kDiscard:
      return dropped(kDiscarded);
    case PolicyAction::kBypass:
      return 1;
    case PolicyAction::kProtect:
      break;
  }
  if (direction_ == IPsecDirection::kIn) return dropped(kUnprotected);
  Association* const a = associations.outbound(answer.spi, answer.reqid);
  if (a == nullptr) return dropped(kNoAssociation);
  p.set_anno_u32(anno::esp_association.kOffset, IPsecDatabase::Tag::of(*a));
  p.set_rx_hash(IPsecDatabase::extra(*a).hash);
  return 0;
}

void IPsecPolicy::push(int, Batch& batch) {
  Next nexts[Batch::kCapacity];
  Batch left;
  const PolicyView policies = database_->policies();
  const AssociationView associations = database_->associations();
  for (Packet* p : batch) {
    const Next next = decide(*p, policies, associations);
    if (next == kConsumed) {
      p->kill();
      continue;
    }
    nexts[left.size()] = next;
    left.push_back(p);
  }
  push_split(left, nexts);
}

HEADRACE_ELEMENT(IPsecPolicy)

}  // namespace headrace
