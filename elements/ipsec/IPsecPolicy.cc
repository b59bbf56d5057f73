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
  if (v6)
    selector.set_v6(ip + 8, protocol);
  else
    selector.set_v4(ip + 12, protocol);
  const bool with_ports = protocol == 6 || protocol == 17 || protocol == 132;
  if (with_ports && !place.fragment && place.at + 4 <= place.end)
    selector.set_ports(static_cast<uint16_t>(ip[place.at] << 8 | ip[place.at + 1]),
                       static_cast<uint16_t>(ip[place.at + 2] << 8 | ip[place.at + 3]));
  return true;
}

void IPsecPolicy::push(int, Batch& batch) {
  // One question for all packets, then the next: a packet's answers depend on each other, those of packets do not, so the
  // processor waits for the memory of several at a time.
  Next nexts[Batch::kCapacity];
  PolicyAnswer answers[Batch::kCapacity];
  Association* found[Batch::kCapacity];
  Batch left;
  const PolicyView policies = database_->policies();
  for (Packet* p : batch) {
    PolicySelector selector;
    if (!p->has_network_header() || !selector_of(p->network_header(), p->end_data(), selector)) {
      drop(p, kMalformed);
      continue;
    }
    PolicyAnswer& answer = answers[left.size()];
    policies.lookup(direction_, selector, answer);
    if (!answer.found) {
      drop(p, kNoPolicy);
    } else if (answer.action == PolicyAction::kDiscard) {
      drop(p, kDiscarded);
    } else if (answer.action == PolicyAction::kProtect && direction_ == IPsecDirection::kIn) {
      drop(p, kUnprotected);
    } else {
      left.push_back(p);
    }
  }
  const AssociationView associations = database_->associations();
  for (int i = 0; i < left.size(); ++i)
    found[i] =
        answers[i].action == PolicyAction::kProtect ? associations.outbound(answers[i].spi, answers[i].reqid) : nullptr;
  int n = 0;
  for (int i = 0; i < left.size(); ++i) {
    Packet* const p = left[i];
    const bool bypass = answers[i].action == PolicyAction::kBypass;
    if (Association* const a = found[i]) {
      p->set_anno_u32(anno::esp_association.kOffset, IPsecDatabase::Tag::of(*a));
      p->set_rx_hash(IPsecDatabase::extra(*a).hash);
    } else if (!bypass) {
      drop(p, kNoAssociation);
      continue;
    }
    nexts[n] = bypass ? 1 : 0;
    left[n++] = p;
  }
  left.resize(n);
  push_split(left, nexts);
}

HEADRACE_ELEMENT(IPsecPolicy)

}  // namespace headrace
