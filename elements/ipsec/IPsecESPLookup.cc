#include "elements/ipsec/IPsecESPLookup.hh"

#include <algorithm>
#include <numeric>

#include "elements/ipsec/esp_place.hh"
#include "headrace/headers_of.hh"
#include "headrace/router.hh"
#include "headrace/text.hh"

namespace headrace {

namespace {
constexpr int kLookupAhead = 16;  // packets between asking for a packet and using it
}  // namespace

Status IPsecESPLookup::configure(Args& args) {
  count_reasons({"unknown SPI", "fragment", "NAT keepalive", "too short", "association gone", "ring full"});
  std::string ports = "4500";
  if (!args.read_mp("DATABASE", database_).read("ENCAP_PORTS", ports, AnyArg()).complete()) return Status::failed();
  ports_.clear();
  std::string_view rest = ports;
  for (std::string_view word = next_word(rest); !word.empty(); word = next_word(rest)) {
    uint16_t port = 0;
    if (!parse_argument(word, port, ArgContext(args.scope())))
      return args.errors().error("ENCAP_PORTS: expected ports, got '{}'", word);
    ports_.push_back(port);
  }
  return {};
}

Status IPsecESPLookup::initialize(Errors&) {
  std::vector<int> all(static_cast<size_t>(std::max(router().threads(), 1)));
  std::iota(all.begin(), all.end(), 0);
  rss_.initialize(all, kRingFull, SoftwareRss::kDefaultCapacity, true, SoftwareRss::WhenFull::kWait);
  return {};
}

void IPsecESPLookup::take_state(Element& old, Errors&) {
  auto& before = dynamic_cast<IPsecESPLookup&>(old);
  if (before.rss_.held() > 0) rss_.take_state(before.rss_, database_->adopter(*before.database_), kGone);
}

Next IPsecESPLookup::classify(Packet& p, const AssociationView& associations) {
  const auto dropped = [&](int reason) {
    count_drops(1, reason);
    return kConsumed;
  };
  if (!p.has_network_header()) return 1;
  if (p.network_header_offset() > 0) p.pull(static_cast<uint32_t>(p.network_header_offset()));
  const PacketBytes bytes{p.data(), p.length(), p.network_header_offset()};
  const TransportPlace place = find_transport(bytes);
  const bool udp = place.protocol == ip_protocol::kUdp;
  if (place.protocol != ip_protocol::kEsp && !udp) return 1;
  if (udp) {
    if (!place.has_header || place.fragment || place.at + 8 > place.end) return 1;
    const uint8_t* const header = p.data() + place.at;
    const auto port = static_cast<uint16_t>(header[2] << 8 | header[3]);
    if (std::find(ports_.begin(), ports_.end(), port) == ports_.end()) return 1;
    const int32_t payload = place.end - place.at - 8;
    // RFC 3948: one byte 0xff keeps the mappings of a NAT alive, four bytes 0 precede IKE.
    if (payload == 1 && header[8] == 0xff) return dropped(kKeepalive);
    if (payload < 4) return 1;
    if (load_be32(header + 8) == 0) return 1;
  } else if (place.fragment) {
    return dropped(kFragment);
  }
  const ESPPlace esp = esp_place(bytes);
  if (esp.length == 0) return dropped(kMalformed);
  // Bytes behind the packet are the link's.
  p.take(p.length() - static_cast<uint32_t>(place.end));
  const uint8_t* const ip = p.network_header();
  const bool v6 = place.version == 6;
  const auto address = [&](const uint8_t* at) {
    return v6 ? Ip6Address::from_bytes(at) : Ip6Address::v4_mapped(IpAddress::from_bytes(at));
  };
  Association* const a = associations.inbound(load_be32(p.data() + esp.at), address(ip + (v6 ? 24 : 16)));
  if (a == nullptr) return dropped(kUnknownSPI);
  const auto counted = [&](AssociationEvent event) {
    a->count(event);
    return kConsumed;
  };
  const AssociationConfig& c = a->config;
  if (udp != c.udp_encapsulation.has_value()) return counted(AssociationEvent::kMalformed);
  if (c.mode != IPsecMode::kTransport && !udp && address(ip + (v6 ? 8 : 12)) != c.source)
    return counted(AssociationEvent::kWrongSource);
  if (!database_->view().keys[a->index].fits(esp.length)) return counted(AssociationEvent::kMalformed);
  p.set_network_header(0, static_cast<int>(place.at) - p.network_header_offset());
  p.set_anno_u32(anno::esp_association.kOffset, IPsecDatabase::Tag::of(*a));
  p.set_rx_hash(IPsecDatabase::extra(*a).hash);
  return 0;
}

void IPsecESPLookup::push(int, Batch& batch) {
  const AssociationView associations = database_->associations();
  Batch esp, others;
  for (Packet* p : batch) {
    switch (classify(*p, associations)) {
      case 0:
        esp.push_back(p);
        break;
      case 1:
        others.push_back(p);
        break;
      default:
        p->kill();
    }
  }
  batch.clear();
  if (!esp.empty()) (void)rss_.spread(esp, SoftwareRss::Begin::kHashed);
  if (others.empty()) return;
  Next nexts[Batch::kCapacity];
  std::fill_n(nexts, others.size(), Next{1});
  push_split(others, nexts);
}

void IPsecESPLookup::check_numbers(Batch& batch) {
  const AssociationView associations = database_->associations();
  Batch out;
  // As in IPsecESPEncap.
  const int n = batch.size();
  const auto prefetch = [&](int i) {
    if (i + kLookupAhead < n) __builtin_prefetch(batch[i + kLookupAhead], 1);
    if (i + kLookupAhead / 2 < n) {
      Packet& p = *batch[i + kLookupAhead / 2];
      __builtin_prefetch(p.data());
      database_->prefetch(associations, p.anno_u32(anno::esp_association.kOffset));
    }
    if (i + kLookupAhead / 4 < n)
      database_->prefetch_state(associations, batch[i + kLookupAhead / 4]->anno_u32(anno::esp_association.kOffset));
    if (i + kLookupAhead / 8 < n)
      if (Association* a =
              database_->find(associations, batch[i + kLookupAhead / 8]->anno_u32(anno::esp_association.kOffset)))
        __builtin_prefetch(&a->state->window(), 1);
  };
  for (int i = 0; i < std::min(n, kLookupAhead); ++i) __builtin_prefetch(batch[i], 1);
  for (int i = 0; i < n; ++i) {
    Packet* const p = batch[i];
    prefetch(i);
    Association* const a = database_->find(associations, p->anno_u32(anno::esp_association.kOffset));
    if (a == nullptr) {
      drop(p, kGone);
      continue;
    }
    uint32_t high = 0;
    if (a->config.authenticates()) {
      const ESPPlace esp = esp_place({p->data(), p->length(), p->network_header_offset()});
      const ReplayWindow::Answer answer = a->state->window().check(load_be32(p->data() + esp.at + 4));
      if (answer.verdict != ReplayWindow::Verdict::kFresh) {
        a->count(answer.verdict == ReplayWindow::Verdict::kTooOld ? AssociationEvent::kTooOld
                                                                  : AssociationEvent::kReplayed);
        p->kill();
        continue;
      }
      high = answer.sequence_high;
    }
    p->set_anno_u32(anno::esp_sequence_high.kOffset, high);
    out.push_back(p);
  }
  batch.clear();
  if (!out.empty()) output(0).push(out);
}

HEADRACE_ELEMENT(IPsecESPLookup)

}  // namespace headrace
