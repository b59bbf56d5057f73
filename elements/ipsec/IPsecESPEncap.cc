#include "elements/ipsec/IPsecESPEncap.hh"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "headrace/checksum.hh"
#include "headrace/headers.hh"
#include "headrace/headers_of.hh"
#include "headrace/ip_protocol.hh"
#include "headrace/router.hh"
#include "tables/sa/aes_view.hh"

namespace headrace {

namespace {

using namespace ip_protocol;
constexpr uint8_t kOuterTTL = IPsecDatabase::kOuterTTL;
constexpr int kAhead = 16;  // packets between asking for a packet and using it
constexpr uint32_t kIp4Bytes = 20, kIp6Bytes = 40, kUDPBytes = 8, kTrailer = 2;

void store16(uint8_t* at, uint32_t value) {
  at[0] = static_cast<uint8_t>(value >> 8);
  at[1] = static_cast<uint8_t>(value);
}
void store32(uint8_t* at, uint32_t value) {
  value = __builtin_bswap32(value);
  std::memcpy(at, &value, 4);
}

/// What differs from packet to packet in an outer IPv4 header.
struct HeaderFields4 {
  uint8_t service;
  uint16_t length, id, fragment;
};
/// In three stores, so that whoever reads it next does not wait for many small ones.
void store_header4(uint8_t* ip, const IPsecDatabase::OuterHeader4& outer, const HeaderFields4& fields) {
  uint32_t sum = outer.sum + fields.service + fields.length + fields.id + fields.fragment;
  sum = (sum & 0xffff) + (sum >> 16);
  const auto checksum = static_cast<uint16_t>(~((sum & 0xffff) + (sum >> 16)));
  const auto swap = [](uint16_t value) { return uint64_t{__builtin_bswap16(value)}; };
  const uint64_t first = 0x45 | uint64_t{fields.service} << 8 | swap(fields.length) << 16 | swap(fields.id) << 32 |
                         swap(fields.fragment) << 48;
  const uint64_t second =
      kOuterTTL | uint64_t{outer.protocol} << 8 | swap(checksum) << 16 | uint64_t{outer.source} << 32;
  std::memcpy(ip, &first, 8);
  std::memcpy(ip + 8, &second, 8);
  std::memcpy(ip + 16, &outer.destination, 4);
}

/// Padding, its length, and the next header (RFC 4303, section 2.4). Up to six bytes of the ICV behind it, which is
/// at least 12 bytes long and written later, may change.
void store_trailer(uint8_t* at, uint32_t padding, uint8_t next) {
  if (padding <= 3) {
    const uint64_t ones = 0x030201 & ((uint64_t{1} << 8 * padding) - 1);
    const uint64_t word = ones | uint64_t{padding} << 8 * padding | uint64_t{next} << 8 * (padding + 1);
    std::memcpy(at, &word, sizeof word);
    return;
  }
  for (uint32_t i = 0; i < padding; ++i) at[i] = static_cast<uint8_t>(i + 1);
  at[padding] = static_cast<uint8_t>(padding);
  at[padding + 1] = next;
}

/// Where ESP goes in transport mode: behind the header of IPv4, or those of IPv6 that routers look at (RFC 4303, section
/// 3.1.1). \return bytes from `ip`, with the protocol there and where the field with it lies; 0: malformed
struct TransportPoint {
  uint32_t at = 0;
  uint32_t protocol_at = 0;
  bool fragment = false;
};
TransportPoint transport_point(const uint8_t* ip, uint32_t length) {
  TransportPoint point;
  if (ip[0] >> 4 == 4) {
    const uint32_t header = (ip[0] & 15u) * 4;
    if (header < kIp4Bytes || header > length) return point;
    point.at = header;
    point.protocol_at = 9;
    point.fragment = ((ip[6] << 8 | ip[7]) & 0x3fff) != 0;
    return point;
  }
  uint32_t at = kIp6Bytes, protocol_at = 6;
  for (;;) {
    const uint8_t next = ip[protocol_at];
    if (next == kFragment) point.fragment = true;
    if (next != kHopByHop && next != kRouting) break;
    if (at + 8 > length) return point;
    protocol_at = at;
    at += (ip[at + 1] + 1u) * 8;
    if (at > length) return point;
  }
  point.at = at;
  point.protocol_at = protocol_at;
  return point;
}

/// The inner header's DSCP and ECN.
uint8_t traffic_class(const uint8_t* ip) {
  return ip[0] >> 4 == 4 ? ip[1] : static_cast<uint8_t>((ip[0] << 8 | ip[1]) >> 4);
}

}  // namespace

Status IPsecESPEncap::configure(Args& args) {
  count_reasons({"association gone", "no room", "fragment", "not IP", "ring full"});
  return args.read_mp("DATABASE", database_).complete();
}

Status IPsecESPEncap::initialize(Errors&) {
  std::vector<int> all(static_cast<size_t>(std::max(router().threads(), 1)));
  std::iota(all.begin(), all.end(), 0);
  rss_.initialize(all, kRingFull, SoftwareRss::kDefaultCapacity, true, SoftwareRss::WhenFull::kWait);
  return {};
}

void IPsecESPEncap::take_state(Element& old, Errors&) {
  auto& before = dynamic_cast<IPsecESPEncap&>(old);
  if (before.rss_.held() > 0) rss_.take_state(before.rss_, database_->adopter(*before.database_), kGone);
}

void IPsecESPEncap::push(int, Batch& batch) { rss_.spread(batch, SoftwareRss::Begin::kHashed); }

void IPsecESPEncap::encapsulate(Batch& batch) {
  const AssociationView associations = database_->associations();
  Batch out;
  // Packets that other workers have handed over are in their caches, and most associations in none that is near.
  const int n = batch.size();
  const auto prefetch = [&](int i) {
    if (i + kAhead < n) __builtin_prefetch(batch[i + kAhead], 1);
    if (i + kAhead / 2 < n) {
      Packet& p = *batch[i + kAhead / 2];
      __builtin_prefetch(p.data() - 64, 1);
      __builtin_prefetch(p.data(), 1);
      __builtin_prefetch(p.end_data(), 1);
      database_->prefetch(associations, p.anno_u32(anno::esp_association.kOffset));
    }
    if (i + kAhead / 4 < n)
      database_->prefetch_state(associations, batch[i + kAhead / 4]->anno_u32(anno::esp_association.kOffset));
  };
  for (int i = 0; i < std::min(n, kAhead); ++i) __builtin_prefetch(batch[i], 1);
  for (int i = 0; i < n; ++i) {
    Packet* const p = batch[i];
    prefetch(i);
    if (encapsulate(*p, associations))
      out.push_back(p);
    else
      p->kill();
  }
  batch.clear();
  if (!out.empty()) output(0).push(out);
}

bool IPsecESPEncap::encapsulate(Packet& p, const AssociationView& associations) {
  const auto dropped = [&](int reason) {
    count_drops(1, reason);
    return false;
  };
  Association* const a = database_->find(associations, p.anno_u32(anno::esp_association.kOffset));
  if (a == nullptr) return dropped(kGone);
  if (!p.has_network_header()) return dropped(kMalformed);
  if (p.network_header_offset() > 0) p.pull(static_cast<uint32_t>(p.network_header_offset()));
  const uint8_t* const inner = p.data();
  const bool inner6 = p.length() > 0 && inner[0] >> 4 == 6;
  if (p.length() < (inner6 ? kIp6Bytes : kIp4Bytes)) return dropped(kMalformed);
  // Bytes behind the packet are the link's.
  const uint32_t claimed =
      inner6 ? kIp6Bytes + (inner[4] << 8 | inner[5]) : static_cast<uint32_t>(inner[2] << 8 | inner[3]);
  if (claimed > p.length() || claimed < (inner6 ? kIp6Bytes : kIp4Bytes)) return dropped(kMalformed);
  p.take(p.length() - claimed);

  const AssociationConfig& c = a->config;
  const ESPKeys& keys = database_->view().keys[a->index];
  const bool tunnel = c.mode != IPsecMode::kTransport, outer6 = tunnel ? c.mode == IPsecMode::kTunnel6 : inner6;
  TransportPoint point;
  if (!tunnel) {
    point = transport_point(inner, p.length());
    if (point.at == 0) return dropped(kMalformed);
    if (point.fragment) return dropped(kFragment);
  }
  // RFC 4303, section 2.4: the padding ends the last block, the pad length and next header bytes included.
  const uint32_t plain = p.length() - point.at, align = keys.block;
  const uint32_t padding = (0 - (plain + kTrailer)) & (align - 1);  // `align` is a power of two
  const uint32_t udp = c.udp_encapsulation ? kUDPBytes : 0;
  const uint32_t front = udp + ESPKeys::kHeader + keys.iv_length + (tunnel ? (outer6 ? kIp6Bytes : kIp4Bytes) : 0);
  const uint32_t back = padding + kTrailer + keys.icv_length;
  const uint32_t length = p.length() + front + back;
  if (length > 0xffff) return dropped(kNoRoom);

  AssociationState& state = *a->state;
  if (state.expired(c)) {
    a->count(AssociationEvent::kExpired);
    return false;
  }
  const uint8_t next = tunnel ? (inner6 ? kIp6 : kIpIp) : inner[point.protocol_at];
  const uint8_t inner_class = traffic_class(inner);
  const bool inner_df = !inner6 && (inner[6] & 0x40) != 0;
  // Room first: a number that is taken is used.
  if (!p.push(front)) return dropped(kNoRoom);
  if (!p.put(back)) {
    p.pull(front);
    return dropped(kNoRoom);
  }
  const std::optional<uint64_t> iv = keys.iv_length > 0 ? state.next_iv() : 0;
  if (!iv) {
    a->count(AssociationEvent::kNoIV);
    return false;
  }
  const std::optional<uint64_t> sequence = state.next_sequence();
  if (!sequence) {
    a->count(AssociationEvent::kSequenceOverflow);
    return false;
  }

  uint8_t* const ip = p.data();
  uint32_t at = point.at;
  if (!tunnel) std::memmove(ip, ip + front, point.at);
  if (tunnel) {
    const uint8_t dscp = c.outer_dscp ? *c.outer_dscp : inner_class >> 2;
    const auto outer_class = static_cast<uint8_t>(dscp << 2 | (inner_class & 3));
    if (outer6) {
      at = kIp6Bytes;
      store32(ip, 6u << 28 | uint32_t{outer_class} << 20);
      store16(ip + 4, length - kIp6Bytes);
      ip[6] = udp != 0 ? kUdp : kEsp;
      ip[7] = kOuterTTL;
      c.source.copy_to(ip + 8);
      c.destination.copy_to(ip + 24);
    } else {
      at = kIp4Bytes;
      const IPsecDatabase::OuterHeader4& outer = IPsecDatabase::extra(*a).outer;
      const bool df = c.outer_df == OuterDF::kSet || (c.outer_df == OuterDF::kCopy && inner_df);
      SingleWriter<uint32_t>& next_id = IPsecDatabase::extra(*a).next_id;
      store_header4(ip, outer,
                    {.service = outer_class,
                     .length = static_cast<uint16_t>(length),
                     .id = static_cast<uint16_t>(next_id),
                     .fragment = static_cast<uint16_t>(df ? 0x4000 : 0)});
      next_id += 1;
    }
  } else {
    ip[point.protocol_at] = udp != 0 ? kUdp : kEsp;
    if (inner6) {
      store16(ip + 4, length - kIp6Bytes);
    } else {
      store16(ip + 2, length);
      set_ip_checksum(*reinterpret_cast<Ip4Header*>(ip));
    }
  }
  uint8_t* esp = ip + at;
  if (udp != 0) {
    store16(esp, c.udp_encapsulation->source_port);
    store16(esp + 2, c.udp_encapsulation->destination_port);
    store16(esp + 4, length - at);
    store16(esp + 6, 0);
    esp += kUDPBytes;
  }
  store32(esp, c.spi);
  store32(esp + 4, static_cast<uint32_t>(*sequence));
  // An IV of CBC mode must not be predictable: it is the cipher of a number that never comes again (NIST SP 800-38A,
  // appendix C).
  if (keys.iv_length == 8) {
    const uint64_t big = __builtin_bswap64(*iv);
    std::memcpy(esp + 8, &big, 8);
    if (keys.cbc()) database_->library().encrypt_block_des3(IPsecDatabase::extra(*a).host, esp + 8);
  } else if (keys.iv_length == 16) {
    const uint64_t big = __builtin_bswap64(*iv);
    CipherBlock block[1] = {};
    std::memcpy(block[0].w, &big, 8);
    aes_encrypt(ConstantAESTable(), RoundKeys(keys.round_keys, keys.rounds), block);
    std::memcpy(esp + 8, block[0].w, 16);
  }
  store_trailer(p.end_data() - back, padding, next);

  p.set_network_header(0, static_cast<int>(at));
  p.clear_mac_header();
  p.set_anno_u32(anno::esp_sequence_high.kOffset, static_cast<uint32_t>(*sequence >> 32));
  if (outer6)
    std::memcpy(p.anno() + anno_offset::kDstIp6, ip + 24, 16);
  else
    std::memcpy(p.anno() + anno_offset::kDstIp, ip + 16, 4);
  state.count(1, plain);
  a->count(AssociationEvent::kPackets);
  a->count(AssociationEvent::kBytes, plain);
  return true;
}

HEADRACE_ELEMENT(IPsecESPEncap)

}  // namespace headrace
