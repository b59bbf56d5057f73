#include "elements/ipsec/IPsecESPUnencap.hh"

#include <cstring>

#include "elements/ipsec/IPsecPolicy.hh"
#include "elements/ipsec/esp_place.hh"
#include "headrace/checksum.hh"
#include "headrace/headers.hh"
#include "headrace/headers_of.hh"

namespace headrace {

namespace {

using namespace ip_protocol;

constexpr uint8_t kNoNextHeader = 59;
constexpr uint8_t kCE = 3;

uint8_t ecn_of(const uint8_t* ip) { return ip[0] >> 4 == 4 ? ip[1] & 3 : ip[1] >> 4 & 3; }

void set_ce(uint8_t* ip) {
  if (ip[0] >> 4 == 4) {
    ip[1] |= kCE;
    set_ip_checksum(*reinterpret_cast<Ip4Header*>(ip));
  } else {
    ip[1] |= kCE << 4;
  }
}

/// Bytes of the IP packet at `ip`; 0 if it does not lie within `length`.
uint32_t ip_length(const uint8_t* ip, uint32_t length) {
  if (length < 20) return 0;
  uint32_t claimed = 0;
  if (ip[0] >> 4 == 4) {
    claimed = static_cast<uint32_t>(ip[2] << 8 | ip[3]);
    if ((ip[0] & 15) < 5 || (ip[0] & 15u) * 4 > claimed) return 0;
  } else if (ip[0] >> 4 == 6 && length >= 40) {
    claimed = 40 + static_cast<uint32_t>(ip[4] << 8 | ip[5]);
  }
  return claimed <= length ? claimed : 0;
}

}  // namespace

Status IPsecESPUnencap::configure(Args& args) {
  count_reasons({"association gone", "dummy packet", "congestion that the inner packet cannot tell"});
  return args.read_mp("DATABASE", database_).complete();
}

void IPsecESPUnencap::push(int, Batch& batch) {
  const AssociationView associations = database_->associations();
  const PolicyView policies = database_->policies();
  Batch out;
  for (Packet* p : batch) {
    if (unwrap(*p, associations, policies))
      out.push_back(p);
    else
      p->kill();
  }
  batch.clear();
  if (!out.empty()) output(0).push(out);
}

bool IPsecESPUnencap::unwrap(Packet& p, const AssociationView& associations, const PolicyView& policies) {
  const auto dropped = [&](int reason) {
    count_drops(1, reason);
    return false;
  };
  Association* const a = database_->find(associations, p.anno_u32(anno::esp_association.kOffset));
  if (a == nullptr) return dropped(kGone);
  const auto counted = [&](AssociationEvent event) {
    a->count(event);
    return false;
  };
  const AssociationConfig& c = a->config;
  const ESPKeys& keys = database_->view().keys[a->index];
  const ESPPlace esp =
      esp_place({p.data(), p.length(), p.has_network_header() ? p.network_header_offset() : PacketBytes::kNone});
  if (!keys.fits(esp.length)) return counted(AssociationEvent::kMalformed);
  const uint8_t* const header = p.data() + esp.at;
  if (c.authenticates()) {
    const uint64_t sequence = uint64_t{p.anno_u32(anno::esp_sequence_high.kOffset)} << 32 | load_be32(header + 4);
    ReplayWindow& window = a->state->window();
    if (!window.update(sequence)) {
      const bool old = window.check(static_cast<uint32_t>(sequence)).verdict == ReplayWindow::Verdict::kTooOld;
      return counted(old ? AssociationEvent::kTooOld : AssociationEvent::kReplayed);
    }
  }
  if (a->state->expired(c)) return counted(AssociationEvent::kExpired);
  // The trailer: padding, its length, the next header.
  const uint32_t plain = esp.length - keys.overhead();
  const uint8_t* const end = header + esp.length - keys.icv_length;
  if (plain < 2 || end[-2] + 2u > plain) return counted(AssociationEvent::kBadPadding);
  const uint32_t padding = end[-2];
  for (uint32_t i = 0; i < padding; ++i)
    if (end[-2 - static_cast<int>(padding) + static_cast<int>(i)] != i + 1)
      return counted(AssociationEvent::kBadPadding);
  const uint8_t next = end[-1];
  if (next == kNoNextHeader) return dropped(kDummy);
  const uint32_t payload = plain - padding - 2;
  p.take(padding + 2 + keys.icv_length);
  const uint32_t front = esp.at + keys.front();
  uint8_t* const outer = p.network_header();
  if (c.mode != IPsecMode::kTransport) {
    if (next != kIpIp && next != kIp6) return counted(AssociationEvent::kPolicyViolation);
    const uint8_t outer_ecn = ecn_of(outer);
    p.pull(front);
    uint8_t* const inner = p.data();
    const uint32_t length = ip_length(inner, p.length());
    if (length == 0 || (inner[0] >> 4 == 6) != (next == kIp6)) return counted(AssociationEvent::kMalformed);
    // What follows is traffic flow confidentiality padding (RFC 4303, section 2.7).
    p.take(p.length() - length);
    if (outer_ecn == kCE) {
      if (ecn_of(inner) == 0) return dropped(kCongested);
      set_ce(inner);
    }
    p.set_network_header(0, next == kIpIp ? (inner[0] & 15) * 4 : 40);
  } else {
    // The IP header goes to where the payload begins.
    const uint32_t ip_bytes = static_cast<uint32_t>(p.data() + esp.at - outer) - (c.udp_encapsulation ? 8 : 0);
    uint8_t* const to = p.data() + front - ip_bytes;
    std::memmove(to, outer, ip_bytes);
    p.pull(front - ip_bytes);
    if (to[0] >> 4 == 4) {
      to[9] = next;
      reinterpret_cast<Ip4Header*>(to)->total_length = static_cast<uint16_t>(ip_bytes + payload);
      set_ip_checksum(*reinterpret_cast<Ip4Header*>(to));
    } else {
      uint32_t protocol_at = 6, at = 40;
      while (at < ip_bytes && (to[protocol_at] == kHopByHop || to[protocol_at] == kRouting)) {
        protocol_at = at;
        at += (to[at + 1] + 1u) * 8;
      }
      to[protocol_at] = next;
      const uint32_t length = ip_bytes + payload - 40;
      to[4] = static_cast<uint8_t>(length >> 8);
      to[5] = static_cast<uint8_t>(length);
    }
    p.set_network_header(0, static_cast<int>(ip_bytes));
  }
  PolicySelector selector;
  if (!IPsecPolicy::selector_of(p.data(), p.end_data(), selector)) return counted(AssociationEvent::kMalformed);
  const PolicyAnswer answer = policies.lookup(IPsecDirection::kIn, selector);
  const bool named = c.reqid != 0 ? answer.reqid == c.reqid && (answer.spi == 0 || answer.spi == c.spi)
                                  : answer.reqid == 0 && answer.spi == c.spi;
  if (answer.action != PolicyAction::kProtect || !named) return counted(AssociationEvent::kPolicyViolation);
  const uint8_t* const ip = p.data();
  if (ip[0] >> 4 == 4)
    std::memcpy(p.anno() + anno_offset::kDstIp, ip + 16, 4);
  else
    std::memcpy(p.anno() + anno_offset::kDstIp6, ip + 24, 16);
  a->state->count(1, payload);
  a->count(AssociationEvent::kPackets);
  a->count(AssociationEvent::kBytes, payload);
  return true;
}

HEADRACE_ELEMENT(IPsecESPUnencap)

}  // namespace headrace
